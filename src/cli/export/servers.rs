//! `export servers`: a row for each server.

use super::column::{Column, int, real, text, time};

/// The columns, and behind them the rest.
pub const COLUMNS: [Column; 32] = [
    text("access_point"),
    text("host").called("url_host_name"),
    text("country"),
    text("registry"),
    text("organisation"),
    text("address"),
    text("tree"),
    int("run"),
    text("status"),
    text("state"),
    text("software"),
    int("pages"),
    int("page_bytes"),
    int("requests"),
    int("bytes"),
    int("busy_ms"),
    int("known"),
    int("fetched"),
    int("unanswered"),
    int("waiting"),
    int("cut_by_depth"),
    int("refused_by_robots"),
    int("cut_by_script"),
    int("failed"),
    int("external_hosts"),
    int("external_urls"),
    int("external_domains"),
    int("deepest"),
    int("crawl_delay_ms"),
    time("first_visit_at"),
    time("last_visit_at"),
    real("inclusion_probability"),
];
