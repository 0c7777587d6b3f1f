//! Are mistakes explained, and do the defaults hold?
