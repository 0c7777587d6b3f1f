//! `export history`: a row for each run of each server.

use super::{
    column::{Column, Row, int, text, time},
    derived::crawl_rule,
};
use nearcrawl_model::time::WallTime;
use serde_json::{Value, json};

/// The columns, and behind them the rest.
pub const COLUMNS: [Column; 41] = [
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
    text("crawl_rule").made(crawl_rule),
    int("yield_price_millionths").within("crawled_by.yield_price_millionths"),
    int("depth").within("crawled_by.depth"),
    int("max_pages_per_run").within("crawled_by.max_pages_per_run"),
];

/// Of a server with its runs, a row for each run; none if that is not what it is.
pub fn runs_of(mut server: Row) -> Option<Vec<Row>> {
    let Value::Array(runs) = server.remove("runs")? else { return None };
    // Where the server is today is no part of a run.
    server.remove("today");
    let row = |run: Value| match run {
        Value::Object(run) if run.get("run").is_some_and(Value::is_u64) => {
            let duration = ("duration_ms".to_owned(), json!(duration_ms(&run)));
            // By which rules an earlier version crawled is not known.
            let known = run.into_iter().filter(|(name, value)| name != "crawled_by" || !value.is_null());
            Some(known.chain(server.clone()).chain([duration]).collect())
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
    use super::{super::column::cells, *};
    use nearcrawl_model::crawled_by::CrawledBy;

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

    #[test]
    fn a_run_says_by_which_rules_its_pages_were_chosen() {
        let by = |depth, price| json!({"run": 1, "crawled_by": CrawledBy::new(depth, price, 1_000)});
        let rows = runs_of(row(json!({"host": "a.ke", "runs": [by(5, 0), by(1, 4_000), json!({"run": 3, "crawled_by": null})]}))).unwrap();
        let names = ["depth", "crawl_rule", "yield_price_millionths", "max_pages_per_run"];
        let of_rules = |mut row: Row| {
            let cells = cells(&COLUMNS, &mut row);
            assert!(!row.contains_key("crawled_by"), "{row:?}");
            names.map(|name| cells[COLUMNS.iter().position(|column| column.name == name).unwrap()].clone())
        };
        let rows: Vec<_> = rows.into_iter().map(of_rules).collect();
        assert_eq!(rows[0], [json!(5), json!("depth"), json!(0), json!(1_000)]);
        assert_eq!(rows[1], [json!(1), json!("yield"), json!(4_000), json!(1_000)]);
        assert!(rows[2].iter().all(Value::is_null), "an earlier version did not record them");
    }
}
