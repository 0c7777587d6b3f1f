//! Tests that all reports of real daemons agree with a made-up web whose facts are known.
//!
//! They run the command as people give it, in its smallest size.

use crate::support::{nearcrawl, nearcrawl_within};
use serde_json::Value;
use std::time::Duration;

/// A census of this size and seed, of which all must be as it must be: its answer.
async fn census(seed: &str, daemons: &str, runs: &str, kills: &str) -> Value {
    let arguments = ["lab", "census", "--seed", seed, "--hosts", "20", "--daemons", daemons, "--runs", runs, "--kill", kills, "--json"];
    let ended = nearcrawl_within(&arguments, Duration::from_secs(340)).await;
    let told: Value = serde_json::from_str(&ended.said).unwrap_or_else(|why| panic!("{why}: {ended:?}"));
    let reports = told["reports"].as_array().unwrap();
    let wrong: Vec<&Value> = reports.iter().filter(|report| report["wrong"] != 0 || report["rows"] == 0).collect();
    assert_eq!((ended.code, wrong), (Some(0), Vec::new()), "{}", ended.said);
    assert!(["falls", "extra_requests", "missing_pages"].iter().all(|name| told[*name] == 0), "{}", ended.said);
    told
}

fn rows(told: &Value) -> u64 {
    told["reports"].as_array().unwrap().iter().map(|report| report["rows"].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn every_report_is_what_the_generator_says() {
    let told = census("3", "2", "1", "0").await;
    assert!(told["reports"].as_array().unwrap().len() >= 26 && rows(&told) > 2_500, "{told}");
}

#[tokio::test]
async fn reports_of_two_runs_are_true_too_though_a_daemon_is_killed_in_the_second_one() {
    let told = census("7", "4", "2", "1").await;
    let compared = |name: &str| told["reports"].as_array().unwrap().iter().any(|report| report["name"] == name && report["rows"] != 0);
    assert!(
        compared("trend")
            && compared("export servers, amid a re-visit")
            && compared("results, after a deny and a no")
            && rows(&told) > 5_000,
        "{told}"
    );
    assert_eq!((&told["killed"], &told["joined"]), (&1.into(), &1.into()), "{told}");
}

#[tokio::test]
async fn more_kills_than_can_be_survived_are_refused_before_anything_is_started() {
    let ended = nearcrawl(&["lab", "census", "--daemons", "4", "--kill", "2"]).await;
    assert_eq!((ended.code, ended.said.as_str()), (Some(64), ""), "{ended:?}");
    assert!(ended.complained.contains("use --kill 1 at most"), "{ended:?}");
}
