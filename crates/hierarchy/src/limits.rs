//! Limits on the size of a hierarchy: builders stop at them, and readers refuse what exceeds them.

/// How many subnets a hierarchy may have: the world's WHOIS has about five million.
pub(super) const MAX_SUBNETS: usize = 16_000_000;

/// How many organisations a hierarchy may have.
pub(super) const MAX_ORGANISATIONS: usize = 4_000_000;

/// How many subnets may lie inside one another; the whole tree is then at most 4 levels higher (IPMicra expects 8 in all).
pub(super) const MAX_NESTING: usize = 12;

/// The longest text in a hierarchy (an organisation's id or name), in bytes.
pub(super) const MAX_TEXT: usize = 255;
