//! Does the resolver pin what it should?
