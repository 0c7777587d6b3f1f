//! Do reports say what the rows say, in every format, and does their page keep its own rules?

use super::*;
use crate::cli::{chart::Chart, table::Style};
use nearcrawl_model::access_point::AccessPoint;
use nearcrawl_page::evaluation::{Limits, evaluate};
use serde_json::{Value, json};
use std::time::Duration;

/// A server as its owner tells it.
fn row(number: u64, host: &str, country: &str, more: Value) -> String {
    let mut row = json!({
        "access_point": "x", "country": country, "registry": "afrinic", "organisation": "A & B <Ltd>", "host": host, "tree": host,
        "address": "192.0.2.7", "run": 2, "status": "up", "state": "complete", "software": "nginx/1.2", "pages": 3, "requests": 5, "bytes": 900,
        "busy_ms": 40, "known": 3, "cut_by_depth": 1, "refused_by_robots": 0, "cut_by_script": 0, "cut_by_yield": 0, "failed": 0,
        "by_status": {"200": 3}, "external_hosts": 4, "deepest": 1, "first_visit_at": "2026-11-25T08:00:00.000Z",
        "last_visit_at": "2026-11-25T09:00:00.000Z", "no_index": 0, "no_follow": 0, "crawl_delay_ms": null, "refused_by_crawl_delay": 0,
        "facts": { "rtt_ms": 10.0 * (number + 1) as f64 },
        "levels": [
            { "pages": 1, "requests": 2, "bytes": 1, "busy_ms": 1, "external_hosts": 3 },
            { "pages": 2, "requests": 2 + number % 3, "bytes": 1, "busy_ms": 1, "external_hosts": 1 },
        ],
        "evaluation": { "pages": 3, "refused": {}, "elements": 9, "failures": if number.is_multiple_of(4) { json!({"23a2a8": 2}) } else { json!({}) },
            "failing": 1, "took_ms": 0.5 },
        "evaluation_rules": 1,
    });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    row.to_string()
}

pub(crate) fn rows() -> Vec<String> {
    let mut rows: Vec<_> = (0..60)
        .map(|n| row(n, &format!("s{n}.{}", if n < 40 { "ke" } else { "co.uk" }), ["KE", "DE", "GB"][n as usize % 3], json!({})))
        .collect();
    rows.push(row(60, "big.org", "US", json!({})));
    rows.push(row(
        61,
        "nowhere.ke",
        "ZZ",
        json!({ "status": "down", "by_failure": {"head-timeout": 2}, "facts": null, "evaluation": null }),
    ));
    rows
}

fn documents() -> Vec<(Document, Gathered)> {
    let makers: [Box<dyn Maker + Send>; 5] = [
        Box::new(Offshore::default()),
        Box::new(Nearness::by(By::Country)),
        Box::new(Reachability::by(By::Tld)),
        Box::new(Accessibility::by(By::Country)),
        Box::new(Load::default()),
    ];
    makers
        .into_iter()
        .map(|mut maker| {
            let mut gathered = Gathered::of(62, None);
            for row in rows() {
                maker.enter(&gathered.enter(AccessPoint([1; 32]), &row).unwrap());
            }
            let mut document = maker.finish();
            document.facts = gathered.facts().into_iter().chain(document.facts).collect();
            document.data.extend(gathered.data());
            (document, gathered)
        })
        .collect()
}

fn find<'a>(json: &'a Value, column: &str, value: &str) -> &'a Value {
    json["rows"].as_array().unwrap().iter().find(|row| row[column] == value).unwrap()
}

#[test]
fn reports_count_what_the_rows_say() {
    let all: Vec<Value> = documents().iter().map(|(document, _)| document.json()).collect();
    let ke = find(&all[0], "tld", ".ke");
    assert_eq!((&ke["servers"], &ke["abroad"], &ke["most_abroad"]), (&40.into(), &26.into(), &"DE 13, GB 13".into()));
    assert!(ke["share_low"].as_f64() < Some(0.65) && ke["share_high"].as_f64() > Some(0.65), "{ke}");
    let uk = find(&all[0], "tld", ".uk");
    assert_eq!((&uk["country"], &uk["servers"], &uk["abroad"]), (&"GB".into(), &20.into(), &13.into()));
    let left_out = (&all[0]["data"]["servers_of_other_domains"], &all[0]["data"]["servers_of_unknown_country"]);
    assert_eq!(left_out, (&1.into(), &1.into()));
    assert_eq!((&find(&all[1], "country", "KE")["p50_ms"], &all[1]["data"]["servers_unmeasured"]), (&295.0.into(), &1.into()));
    let ke = find(&all[2], "tld", "ke");
    assert_eq!(
        (&ke["servers"], &ke["up"], &ke["down"], &all[2]["data"]["down_by_failure"]["head-timeout"]),
        (&41.into(), &40.into(), &1.into(), &1.into())
    );
    let rule = find(&all[3], "country", "(all)");
    assert_eq!(
        (&rule["rule"], &rule["servers"], &rule["failing"], &rule["failures"]),
        (&"23a2a8".into(), &61.into(), &16.into(), &32.into())
    );
    let rows = all[4]["rows"].as_array().unwrap();
    assert_eq!((&rows[0]["requests"], &rows[0]["external_hosts"], &rows[0]["coverage"]), (&124.into(), &186.into(), &0.75.into()));
    assert_eq!((&rows[1]["trees"], &rows[1]["load"]), (&62.into(), &1.0.into()));
    let (load, low) = (rows[0]["coverage"].as_f64().unwrap(), rows[0]["coverage_low"].as_f64().unwrap());
    assert!(low <= load, "{low} {load}");
    for report in &all {
        assert_eq!((&report["data"]["servers"], &report["data"]["runs"]), (&62.into(), &json!([2])));
    }
}

#[test]
fn every_format_has_the_values_and_the_page_fails_no_rule() {
    for (document, _) in documents() {
        let (name, csv, html) = (document.name, document.csv().unwrap(), document.html());
        let lines = csv.lines().count();
        assert_eq!(lines, document.rows.len() + 1, "{csv}");
        assert!(csv.lines().all(|line| !line.contains('%')), "values have no units: {csv}");
        let text = document.text(Style::Plain);
        for wanted in [
            "time span: 2026-11-25T08:00:00.000Z to 2026-11-25T09:00:00.000Z",
            "run 2 of each server",
            "62 servers of 1 member",
            "method: ",
        ] {
            assert!(text.replace('\n', " ").contains(wanted), "{name}: {text}");
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{name}: {widest:?}");
        let found = evaluate(&html, &Limits::default(), &|| Duration::ZERO);
        assert_eq!((found.total(), found.gate), (0, None), "{name}: {found:?}");
        assert!(!html.contains("http://") || html.matches("http://").count() == html.matches("http://www.w3.org/2000/svg").count());
        assert!(!html.contains("https://") && !html.contains("<script") && !html.contains("url("), "nothing from elsewhere");
        let svg = document.svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{name}: {svg}");
        if let Ok(directory) = std::env::var("NEARCRAWL_REPORTS") {
            std::fs::write(format!("{directory}/{name}.html"), html).unwrap();
            std::fs::write(format!("{directory}/{name}.svg"), svg).unwrap();
        }
    }
}

#[test]
fn a_report_of_nothing_says_so_and_what_is_missing_is_said() {
    for maker in [Box::new(Offshore::default()) as Box<dyn Maker + Send>, Box::new(Load::default()), Box::new(Accessibility::by(By::Tld))] {
        let document = maker.finish();
        assert!(document.text(Style::Plain).contains("no server on record") && document.html().contains("No server on record"));
        assert_eq!(document.csv().unwrap().lines().count(), 1);
        document.charts.iter().map(|chart: &Chart| chart.svg("x")).for_each(|svg| assert!(!svg.contains("NaN")));
    }
    let mut gathered = Gathered::of(9, None);
    gathered.missing = vec!["3kjLcUyQ: no answer".to_owned()];
    assert!(gathered.enter(AccessPoint([1; 32]), "[]").is_none() && !gather::is_whole(&gathered));
    let coverage = &gathered.facts()[2].1;
    assert!(
        coverage.contains("said that they have 9") && coverage.contains("3kjLcUyQ: no answer") && coverage.contains("1 row cannot"),
        "{coverage}"
    );
}
