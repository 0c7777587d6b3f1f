//! Does the fetcher keep to its limits?
