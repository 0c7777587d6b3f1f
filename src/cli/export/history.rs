//! `export history`: a row for each run of each server.

use super::column::{Column, Row, int, text, time};
use serde_json::Value;

/// The columns, and behind them the rest.
pub const COLUMNS: [Column; 36] = [
    text("access_point"),
    text("host").called("url_host_name"),
    int("run"),
    text("country"),
    text("registry"),
    text("organisation"),
    text("address"),
    text("tree"),
    text("status"),
    text("state"),
    time("first_visit_at"),
    time("last_visit_at"),
    int("known"),
    int("pages"),
    int("page_bytes"),
    int("bytes"),
    int("requests"),
    int("failed"),
    int("busy_ms"),
    int("external_hosts"),
    int("external_urls"),
    int("external_domains"),
    int("compared_run"),
    int("pages_before"),
    int("new_pages"),
    int("changed_pages"),
    int("gone_pages"),
    int("evaluated"),
    int("failing"),
    int("detected_failures"),
    int("evaluation_rules"),
    text("software"),
    text("language"),
    int("runs_left_out"),
    text("surveys"),
    text("labels"),
];

/// Of a server with its runs, a row for each run; none if that is not what it is.
pub fn runs_of(mut server: Row) -> Option<Vec<Row>> {
    let Value::Array(runs) = server.remove("runs")? else { return None };
    let row = |run: Value| match run {
        Value::Object(run) if run.get("run").is_some_and(Value::is_u64) => Some(run.into_iter().chain(server.clone()).collect()),
        _ => None,
    };
    runs.into_iter().map(row).collect()
}
