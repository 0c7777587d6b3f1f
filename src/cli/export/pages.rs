//! `export pages`: a row for each visit.

use super::column::{Column, Row, flag, int, text, time};
use nearcrawl_model::exported::PageRow;
use serde_json::Value;

/// The columns, and behind them the rest.
pub const COLUMNS: [Column; 29] = [
    text("access_point"),
    text("host").called("url_host_name"),
    text("tree"),
    int("run"),
    text("run_state"),
    text("url"),
    int("level"),
    time("fetch_time"),
    int("fetch_status"),
    text("outcome"),
    text("failure"),
    text("fetch_redirect"),
    text("content_mime_type"),
    text("content_mime_detected"),
    int("took_ms"),
    int("first_byte_us"),
    int("bytes"),
    int("page_bytes"),
    flag("no_index"),
    flag("no_follow"),
    text("change"),
    text("content"),
    text("etag"),
    text("last_modified"),
    int("internal_links"),
    int("external_links"),
    int("links_beyond_scope"),
    int("detected_failures"),
    int("evaluation_rules"),
];

/// Whether this is a visit of its host.
pub fn is_visit(row: &Row) -> bool {
    serde_json::from_value::<PageRow>(Value::Object(row.clone())).is_ok_and(|page| page.url.host() == page.host)
}
