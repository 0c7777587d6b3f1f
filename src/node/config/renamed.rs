//! Keys of `[timers]` that had another name when members decided otherwise who takes over.
//!
//! The error for an old key gives the new one.

/// The section of all of them.
const SECTION: &str = "timers";

/// The keys that were renamed: the name before, and the name now.
pub(super) const RENAMED: &[(&str, &str)] = &[
    ("pair_patience", "replace_voter_after"),
    ("fence_after", "lease"),
    ("stable_after", "vote_after"),
    ("probe_every", "ping_interval"),
    ("probe_timeout", "ping_timeout"),
    ("suspect_for", "suspicion_timeout"),
];

/// What `key` of `section` is called now, if it had another name.
pub(super) fn name_now(section: &str, key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| section == SECTION && *old == key).map(|(_, now)| *now)
}

/// What `key` of `section` was called before, if it was.
pub(super) fn name_before(section: &str, key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(_, now)| section == SECTION && *now == key).map(|(old, _)| *old)
}
