//! Keys that had another name in earlier versions.
//!
//! The error for an old key gives the new one.

/// The keys that were renamed, as (section, name until commit 3107d04, name now).
pub(super) const RENAMED: &[(&str, &str, &str)] = &[
    ("swarm", "most_peers", "max_connected"),
    ("crawl", "pages_per_run", "max_pages_per_run"),
    ("crawl", "parallel", "max_parallel"),
    ("crawl", "per_subnet", "max_parallel_per_subnet"),
    ("crawl", "least_delay", "min_delay"),
    ("crawl", "user_agent", "product_token"),
    ("crawl", "most_waiting", "max_waiting_urls"),
    ("dns", "least_ttl", "min_ttl"),
    ("fetch", "connect", "connect_timeout"),
    ("fetch", "tls", "tls_timeout"),
    ("fetch", "head", "head_timeout"),
    ("fetch", "idle", "idle_timeout"),
    ("fetch", "total", "total_timeout"),
    ("fetch", "most_bytes", "max_body_size"),
    ("fetch", "most_decoded", "max_decoded_size"),
    ("fetch", "authorities", "ca_files"),
    ("delegation", "price", "probe_price"),
    ("delegation", "at_once", "max_parallel_rounds"),
    ("delegation", "contacts_per_subnet", "max_contacts_per_subnet"),
    ("delegation", "access_requests", "requests_per_access"),
    ("timers", "pair_patience", "replace_voter_after"),
    ("timers", "fence_after", "lease"),
    ("timers", "stable_after", "vote_after"),
    ("timers", "probe_every", "ping_interval"),
    ("timers", "probe_timeout", "ping_timeout"),
    ("timers", "suspect_for", "suspicion_timeout"),
];

/// What `key` of `section` is called now, if it had another name.
pub(super) fn name_now(section: &str, key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(home, old, _)| *home == section && *old == key).map(|(_, _, now)| *now)
}

/// What `key` of `section` was called before, if it was.
pub(super) fn name_before(section: &str, key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(home, _, now)| *home == section && *now == key).map(|(_, old, _)| *old)
}
