//! Does the prober measure?
