//! `export history`: a row for each run of each server.

use super::column::{Column, Row, int, text, time};
use nearcrawl_model::time::WallTime;
use serde_json::{Value, json};

/// The columns, and behind them the rest.
pub const COLUMNS: [Column; 37] = [
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
    int("duration_ms"),
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
    // Where the server is today is no part of a run.
    server.remove("today");
    let row = |run: Value| match run {
        Value::Object(run) if run.get("run").is_some_and(Value::is_u64) => {
            let duration = ("duration_ms".to_owned(), json!(duration_ms(&run)));
            Some(run.into_iter().chain(server.clone()).chain([duration]).collect())
        }
        _ => None,
    };
    runs.into_iter().map(row).collect()
}

/// How long a run took, from its first request to its last one, in milliseconds; none if nothing was asked, or the clock was set back.
fn duration_ms(run: &Row) -> Option<u64> {
    let at = |name: &str| run.get(name)?.as_str()?.parse().ok().map(|at: WallTime| at.0);
    at("last_visit_at")?.checked_sub(at("first_visit_at")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Value) -> Row {
        let Value::Object(row) = value else { panic!("{value}") };
        row
    }

    #[test]
    fn a_run_lasts_from_its_first_request_to_its_last() {
        let run = |first: Value, last: Value| json!({"run": 1, "first_visit_at": first, "last_visit_at": last});
        let (early, late) = ("2026-11-22T20:17:14.250Z", "2026-11-23T20:17:15.000Z");
        let runs = [
            run(json!(early), json!(late)),
            run(json!(early), json!(early)),
            run(json!(late), json!(early)),
            run(Value::Null, Value::Null),
        ];
        let rows = runs_of(row(json!({"host": "a.ke", "today": {"country": "KE"}, "runs": runs}))).unwrap();
        let durations: Vec<_> = rows.iter().map(|row| row["duration_ms"].as_u64()).collect();
        assert_eq!(durations, [Some(86_400_750), Some(0), None, None]);
        assert!(rows.iter().all(|row| row["host"] == "a.ke" && !row.contains_key("today")));
    }
}
