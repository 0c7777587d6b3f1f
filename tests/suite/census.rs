//! Do all reports of real daemons agree with a made-up web whose facts are known? The command as people give it, in its smallest size.

use crate::support::{nearcrawl, nearcrawl_within};
use serde_json::Value;
use std::time::Duration;

#[tokio::test]
async fn every_report_is_what_the_generator_says() {
    let arguments = ["lab", "census", "--seed", "3", "--hosts", "20", "--daemons", "2", "--runs", "1", "--kill", "0", "--json"];
    let ended = nearcrawl_within(&arguments, Duration::from_secs(240)).await;
    let told: Value = serde_json::from_str(&ended.said).unwrap_or_else(|why| panic!("{why}: {ended:?}"));
    let reports = told["reports"].as_array().unwrap();
    let wrong: Vec<&Value> = reports.iter().filter(|report| report["wrong"] != 0 || report["rows"] == 0).collect();
    assert_eq!((ended.code, wrong), (Some(0), Vec::new()), "{}", ended.said);
    assert!(reports.len() >= 11 && ["falls", "extra_requests", "missing_pages"].iter().all(|name| told[*name] == 0), "{}", ended.said);
    let rows: u64 = reports.iter().map(|report| report["rows"].as_u64().unwrap()).sum();
    assert!(rows > 500, "{}", ended.said);
}

#[tokio::test]
async fn more_kills_than_can_be_survived_are_refused_before_anything_is_started() {
    let ended = nearcrawl(&["lab", "census", "--daemons", "4", "--kill", "2"]).await;
    assert_eq!((ended.code, ended.said.as_str()), (Some(64), ""), "{ended:?}");
    assert!(ended.complained.contains("use --kill 1 at most"), "{ended:?}");
}
