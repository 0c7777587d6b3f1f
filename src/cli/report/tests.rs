//! Tests that reports say what the rows say, in every format, and that their page keeps its own rules.

use super::*;
use crate::cli::{chart::Chart, table::Style};
use nearcrawl_model::{access_point::AccessPoint, record::ServerStatus};
use nearcrawl_page::evaluation::{Limits, evaluate};
use serde_json::{Value, json};
use std::time::Duration;

/// A server as its owner tells it.
fn row(number: u64, host: &str, country: &str, more: Value) -> String {
    let mut row = json!({
        "access_point": "x", "country": country, "registry": "afrinic", "organisation": "A & B <Ltd>", "host": host, "tree": host,
        "address": format!("192.0.2.{number}"), "run": 2, "status": "up", "state": "complete", "software": "nginx/1.2", "pages": 3, "requests": 5, "bytes": 900,
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
            gathered.hierarchy = Some("edition 1234, made of tests".to_owned());
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
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let head = reader.headers().unwrap().clone();
        let values = document.columns.len();
        assert_eq!(&head.iter().collect::<Vec<_>>()[values..values + 3], ["report", "survey", "first_run"], "{csv}");
        for row in reader.records().map(Result::unwrap) {
            assert!(row.iter().take(values).all(|value| !value.contains('%')), "values have no units: {csv}");
            let about = |name: &str| row[head.iter().position(|column| column == name).unwrap()].to_owned();
            let wanted = [
                ("report", name),
                ("survey", ""),
                ("first_run", "2"),
                ("last_run", "2"),
                ("first_visit_at", "2026-11-25T08:00:00.000Z"),
                ("last_visit_at", "2026-11-25T09:00:00.000Z"),
                ("hierarchy", "edition 1234, made of tests"),
                ("method_text", &document.method),
            ];
            wanted.into_iter().for_each(|(column, value)| assert_eq!(about(column), value, "{name}: {column}"));
            assert!(about("coverage_text").contains("coverage: 62 servers of 1 member"), "{csv}");
        }
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
        let description = svg.split("<desc").nth(1).and_then(|rest| rest.split("</desc>").next()).unwrap_or_default();
        for wanted in ["time span: 2026-11-25", "hierarchy: edition 1234", "run 2 of each server", "62 servers of 1 member", "method: "] {
            assert!(description.contains(wanted), "{name}: {description}");
        }
        for wanted in [">time span: ", ">run: ", ">coverage: ", ">hierarchy: ", ">survey: ", ">method: "] {
            assert!(svg.contains(wanted), "{name}: {wanted} is not drawn");
        }
        if let Ok(directory) = std::env::var("NEARCRAWL_REPORTS") {
            std::fs::write(format!("{directory}/{name}.html"), html).unwrap();
            std::fs::write(format!("{directory}/{name}.svg"), svg).unwrap();
        }
    }
}

/// Numbers without end, by a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A host of the portal as its owner tells it; one that was not visited has no probability.
fn of_portal(host: &str, probability: Option<f64>) -> String {
    let at = json!({ "inclusion_probability": probability, "address": "192.0.2.200" });
    let unvisited = json!({ "status": "waiting", "state": "running", "pages": 0, "requests": 0, "levels": [], "evaluation": null });
    let mut more = at.as_object().unwrap().clone();
    more.extend(if probability.is_none() { unvisited.as_object().unwrap().clone() } else { Default::default() });
    row(0, host, "KE", Value::Object(more))
}

/// 60 ordinary servers, of which 54 are up, and one address with 1,000 hosts, of which 300 are: 120 of these were visited, in random order.
fn with_a_portal(seed: u64) -> Vec<Row> {
    let ordinary = |n: u64| row(n, &format!("s{n}.ke"), "KE", json!({ "inclusion_probability": 1.0 }));
    let mut rows: Vec<Row> = (0..60).map(|n| Row::of(&ordinary(n)).unwrap()).collect();
    rows.iter_mut().take(6).for_each(|row| row.record.status = ServerStatus::NoPages);
    let (mut draws, mut hosts) = (Draws(seed), (0..1_000).collect::<Vec<u64>>());
    for place in 0..1_000 {
        hosts.swap(place, place + draws.below(1_000 - place as u64) as usize);
        let mut row = Row::of(&of_portal(&format!("p{place}.ke"), (place < 120).then_some(0.12))).unwrap();
        if place < 120 && hosts[place] >= 300 {
            row.record.status = ServerStatus::NoPages;
        }
        rows.push(row);
    }
    let mut sample = Sample::default();
    rows.iter().for_each(|row| sample.enter(row));
    rows.iter_mut().for_each(|row| sample.weigh(row));
    rows
}

/// Makes a report of rows as they are read from their owners, one by one.
fn made_of(rows: impl IntoIterator<Item = String>) -> (Vec<Entered>, Gathered) {
    let (mut gathered, mut entered) = (Gathered::of(100, None), Entries::default());
    let mut read = Rows { gathered: &mut gathered, maker: &mut entered, filter: SurveyFilter::new(None), undecided: Vec::new() };
    assert!(rows.into_iter().all(|row| read.enter(AccessPoint([1; 32]), &row)));
    read.finish().unwrap();
    (entered.0, gathered)
}

/// A host, and how many it stands for.
type Entered = (String, f64);

/// A report that only remembers what was entered.
#[derive(Default)]
struct Entries(Vec<Entered>);

impl Maker for Entries {
    fn enter(&mut self, row: &Row) {
        self.0.push((row.record.host.to_string(), row.weight));
    }

    fn finish(self: Box<Self>) -> Document {
        Box::new(Offshore::default()).finish()
    }
}

#[test]
fn where_a_sample_of_an_address_was_visited_it_weighs_as_much_as_all_and_intervals_hold_the_truth() {
    let (truth, mut held, mut sum) = (354.0 / 1_060.0, 0, 0.0);
    for seed in 0..100 {
        let mut maker = Reachability::by(By::Tld);
        with_a_portal(seed).iter().for_each(|row| maker.enter(row));
        let report = Box::new(maker).finish().json();
        let ke = find(&report, "tld", "ke");
        let [share, low, high] = ["share_up", "share_low", "share_high"].map(|name| ke[name].as_f64().unwrap());
        assert_eq!(ke["servers"], 180, "counts are not weighted");
        held += u64::from(low <= truth && truth <= high);
        sum += share;
    }
    assert!(held >= 90, "{held} of 100 intervals hold {truth}");
    assert!((sum / 100.0 - truth).abs() < 0.01, "the mean is {}, in truth {truth}", sum / 100.0);
}

/// Hosts of the portal: so many in the sample, so many that were visited and are not, and so many others.
fn portal_rows(sampled: usize, visited: usize, waiting: usize) -> Vec<String> {
    let unsampled = |n: usize| {
        let mut row: Value = serde_json::from_str(&of_portal(&format!("v{n}.ke"), Some(1.0))).unwrap();
        row["inclusion_probability"] = Value::Null;
        row.to_string()
    };
    let sample = (0..sampled).map(|n| of_portal(&format!("p{n}.ke"), Some(0.01)));
    let waiting = (0..waiting).map(|n| of_portal(&format!("w{n}.ke"), None));
    sample.chain((0..visited).map(unsampled)).chain(waiting).collect()
}

fn weights(entered: &[Entered]) -> Vec<f64> {
    let mut weights: Vec<f64> = entered.iter().map(|(_, weight)| *weight).collect();
    weights.sort_by(f64::total_cmp);
    weights.dedup();
    weights
}

#[test]
fn reports_say_how_many_hosts_of_how_many_were_visited_at_large_addresses() {
    let ordinary = row(1, "alone.ke", "KE", json!({ "inclusion_probability": 1.0 }));
    let (entered, gathered) = made_of(portal_rows(20, 1, 79).into_iter().chain([ordinary.clone()]));
    assert_eq!((weights(&entered), entered.len()), (vec![0.0, 1.0, 5.0], 101));
    let said = gathered.facts().into_iter().find(|(name, _)| *name == "sample").unwrap().1;
    assert!(said.starts_with("20 of 100 hosts at 1 address with many were visited so far, in random order"), "{said}");
    let told = &gathered.data()["sample"];
    assert_eq!(told, &json!({ "addresses": 1, "hosts": 100, "sampled": 20, "not_estimated": 0 }));
    // Of fewer than ten nothing is said of the others: shares are not made of one or two.
    let (entered, gathered) = made_of(portal_rows(9, 0, 91).into_iter().chain([ordinary]));
    assert_eq!(weights(&entered), [0.0, 1.0]);
    assert_eq!(entered.iter().filter(|(_, weight)| *weight > 0.0).count(), 1, "{entered:?}");
    let (told, estimates) = (gathered.data()["sample"].clone(), gathered.data()["estimates"].clone());
    assert_eq!((&told["not_estimated"], &told["not_estimated"]), (&100.into(), &estimates["not_estimated"]));
    let said = gathered.facts().into_iter().find(|(name, _)| *name == "sample").unwrap().1;
    assert!(said.contains("100 of them are where too few were visited") && said.ends_with("weigh nothing, too"), "{said}");
    assert!(gathered.facts().iter().all(|(name, _)| *name != "estimated"), "too few were visited");

    let mut gathered = Gathered::of(60, None);
    with_a_portal(1).iter().for_each(|row| gathered.sample.enter(row));
    let said = gathered.facts().into_iter().find(|(name, _)| *name == "estimated").unwrap().1;
    let up = &gathered.data()["estimates"]["up"];
    assert!(said.starts_with(&format!("{} ± {} servers up, ", up["estimated"], up["margin"])), "{said}");
    let (estimated, margin) = (up["estimated"].as_u64().unwrap(), up["margin"].as_u64().unwrap());
    assert!(margin > 0 && estimated.abs_diff(354) <= 2 * margin, "{said}");
    let whole = Gathered::of(1, None);
    assert!(whole.facts().iter().all(|(name, _)| *name != "sample"));
}

#[test]
fn a_survey_of_which_all_hosts_were_visited_is_counted_though_others_at_their_address_were_not() {
    // As rows of the survey are: none of those at the address that are not in it.
    let (entered, gathered) = made_of(portal_rows(0, 100, 0));
    assert_eq!((weights(&entered), entered.len()), (vec![1.0], 100));
    assert!(gathered.facts().iter().all(|(name, _)| !["sample", "estimated"].contains(name)), "all is counted");
    let (entered, _) = made_of(portal_rows(0, 100, 9_900));
    assert_eq!(weights(&entered), [0.0], "of all hosts they are no sample");
    // Half of the survey's hosts are in the sample of an address of which a hundredth was visited: each stands for two, not for a hundred.
    assert_eq!(weights(&made_of(portal_rows(50, 0, 50)).0), [0.0, 2.0]);
}

#[test]
fn distances_have_intervals_of_as_many_values_as_there_are_addresses() {
    let report = documents()[1].0.json();
    let ke = find(&report, "country", "KE");
    let [low, median, high] = ["p50_low_ms", "p50_ms", "p50_high_ms"].map(|name| ke[name].as_f64().unwrap());
    // 20 servers, 30 ms apart: the sixth and the fifteenth. No interval of the first tenth is that sure.
    assert_eq!((low, median, high, &ke["p10_low_ms"]), (160.0, 295.0, 430.0, &Value::Null));
    let text = documents()[1].0.text(Style::Plain);
    assert!(text.contains("median from") && !text.contains("p10_low_ms"), "{text}");
    // The same servers at one address are equally far, whatever was measured, and say as much as one.
    let mut maker = Nearness::by(By::Country);
    rows().iter().filter_map(|row| Row::of(row)).for_each(|mut row| {
        row.record.address = "192.0.2.7".parse().ok();
        maker.enter(&row);
    });
    let report = Box::new(maker).finish().json();
    let ke = find(&report, "country", "KE");
    assert_eq!((&ke["p50_ms"], &ke["p50_low_ms"], &ke["p50_high_ms"]), (&295.0.into(), &Value::Null, &Value::Null));
}

#[test]
fn a_server_that_was_not_measured_is_as_far_as_the_nearest_at_its_address() {
    let mut maker = Nearness::by(By::Tld);
    let none = json!({ "address": "192.0.2.1", "facts": null });
    let rows = [
        row(9, "later.ke", "KE", none),
        row(1, "far.ke", "KE", json!({})),
        row(0, "near.ke", "KE", json!({ "address": "192.0.2.1" })),
        row(5, "alone.ke", "KE", json!({ "facts": null })),
    ];
    rows.iter().filter_map(|row| Row::of(row)).for_each(|row| maker.enter(&row));
    let report = Box::new(maker).finish().json();
    let ke = find(&report, "tld", "ke");
    // 10 ms, 10 ms and 20 ms.
    assert_eq!((&ke["servers"], &ke["p50_ms"], &ke["p90_ms"]), (&3.into(), &10.0.into(), &18.0.into()), "{report}");
    assert_eq!(report["data"]["servers_unmeasured"], 1);
}

#[test]
fn hosts_that_were_not_visited_are_as_far_as_their_address_and_are_not_called_measured() {
    // An address 10 ms away with 1,000 hosts of which 20 were visited, one of them out of turn, another with 100 of which five were, and 30
    // servers 1,000 ms away.
    let host = |name: &str, address: &str, probability: Value, visited: bool| {
        let mut row = row(0, name, "KE", json!({ "inclusion_probability": probability, "address": address }));
        if !visited {
            let mut record: Value = serde_json::from_str(&row).unwrap();
            (record["facts"], record["first_visit_at"], record["software"]) = (Value::Null, Value::Null, Value::Null);
            (record["status"], record["state"]) = ("waiting".into(), "running".into());
            row = record.to_string();
        }
        row
    };
    let of_many = |n: u64| {
        let probability = if n < 19 { json!(0.019) } else { json!((n == 19).then_some(1.0)) };
        host(&format!("p{n}.ke"), "192.0.2.8", probability, n < 20)
    };
    let of_few = |n: u64| host(&format!("q{n}.ke"), "192.0.2.9", json!((n < 5).then_some(0.05)), n < 5);
    let others = (0..30).map(|n| row(99, &format!("s{n}.ke"), "KE", json!({ "address": format!("198.51.100.{n}") })));
    let mut rows: Vec<Row> = (0..1_000).map(of_many).chain((0..100).map(of_few)).chain(others).filter_map(|row| Row::of(&row)).collect();
    let mut sample = Sample::default();
    rows.iter().for_each(|row| sample.enter(row));
    rows.iter_mut().filter_map(|row| (!Sample::weigh_alone(row)).then_some(row)).for_each(|row| sample.weigh(row));
    let report = |by: By| {
        let mut maker = Nearness::by(by);
        rows.iter().for_each(|row| maker.enter(row));
        Box::new(maker).finish()
    };
    let by_country = report(By::Country);
    let json = by_country.json();
    let ke = find(&json, "country", "KE");
    assert_eq!((&ke["servers"], &ke["p50_ms"], &ke["p90_ms"]), (&1_130.into(), &10.0.into(), &10.0.into()), "{json}");
    assert_eq!((&json["data"]["servers_in_no_sample"], &json["data"]["servers_not_visited"]), (&0.into(), &0.into()));
    assert!(!by_country.text(Style::Plain).contains("in the sample"), "all of them count");
    // What software they have is not known before a visit: those visited stand for them.
    let by_software = report(By::Software);
    let json = by_software.json();
    assert_eq!((&json["data"]["servers_in_no_sample"], &json["data"]["servers_not_visited"]), (&5.into(), &1_075.into()), "{json}");
    let words = by_software.text(Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("5 servers visited at addresses where fewer than ten are in the sample, 1075 servers not visited, for which"),
        "{words}"
    );
}

#[test]
fn words_have_their_headings_above_them_and_figures_their_units_beside_them() {
    let page = documents().remove(3).0.html();
    for wanted in
        [r#"<th scope="col" class="word">rule</th>"#, r#"<th scope="col" class="word">name</th>"#, r#"<th scope="col">share</th>"#]
    {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    assert!(page.contains(".word{text-align:left}td:not(.word){white-space:nowrap}"), "{page}");
}

#[test]
fn a_report_on_a_survey_names_what_of_its_list_is_not_on_record() {
    let mut gathered = Gathered::of(1, Some("tiny".to_owned()));
    gathered.enter(AccessPoint([1; 32]), &row(1, "www.a.ke", "KE", json!({ "tree": "a.ke" }))).unwrap();
    assert_eq!(gathered.trees, ["a.ke".parse().unwrap()].into());
    gathered.off_record = Some(OffRecord { without_address: 1, not_known: 2 });
    let said = gathered.facts().into_iter().find(|(name, _)| *name == "survey").unwrap().1;
    let wanted = "tiny; 0 servers on record not in it; 1 host of the list has no address; of 2 hosts of the list nothing is known yet";
    assert_eq!((said.as_str(), &gathered.data()["hosts_without_address"]), (wanted, &1.into()));
}

#[test]
fn a_report_without_an_interval_says_why_and_mentions_are_not_called_hosts() {
    let mut load = Load::default();
    rows().iter().take(3).filter_map(|row| Row::of(row)).for_each(|row| load.enter(&row));
    let document = Box::new(load).finish();
    let why = document.data["no_interval_text"].as_str().unwrap();
    assert!(why.starts_with("none: 3 trees with pages are in ") && document.text(Style::Plain).contains("interval: none"), "{why}");
    assert!(document.svg().contains("interval: none: 3 trees"), "{}", document.svg());
    let enough = documents().remove(4).0;
    assert_eq!(enough.data["no_interval_text"], Value::Null);
    let text = enough.text(Style::Plain).replace('\n', " ");
    assert!(text.contains("host mentions") && text.contains("mentions of external hosts are found"), "{text}");
}

#[test]
fn accessibility_says_how_many_were_evaluated_where_no_rule_is_failed() {
    let mut maker = Accessibility::by(By::Country);
    rows()
        .iter()
        .filter_map(|row| Row::of(row))
        .filter(|row| row.record.evaluation.as_ref().is_none_or(|sums| sums.failures.is_empty()))
        .for_each(|row| maker.enter(&row));
    let document = Box::new(maker).finish();
    let report = document.json();
    let told: Vec<_> =
        report["rows"].as_array().unwrap().iter().map(|row| [&row["rule"], &row["servers"], &row["failing"], &row["share_low"]]).collect();
    assert!(
        told.iter().all(|[rule, _, failing, low]| **rule == "(none detected)" && **failing == 0 && low.as_f64() == Some(0.0)),
        "{told:?}"
    );
    let servers = |group: &str| find(&report, "country", group)["servers"].as_u64().unwrap();
    let groups = told[1..].iter().map(|[_, servers, ..]| servers.as_u64().unwrap()).sum::<u64>();
    assert_eq!((&document.data["servers_evaluated"], servers("(all)"), groups), (&45.into(), 45, 45));
    assert!(document.facts.iter().any(|(name, value)| *name == "evaluated" && value == "45 servers of 46"), "{:?}", document.facts);
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
