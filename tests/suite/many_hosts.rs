//! Test of one address with more hosts than are visited soon: which hosts come first, and what is said of the rest.
//!
//! It runs a real daemon, with real names and a real server.

use crate::support::{Ground, Habits, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

const HOSTS: usize = 240;
const SOON: Duration = Duration::from_secs(120);

/// A small web, and many hosts at one address, of which every fourth has no page.
struct Blogs {
    web: SmallWeb,
}

impl Blogs {
    fn name(number: usize) -> String {
        format!("blog{number:03}.ke.test")
    }

    fn number(host: &str) -> Option<usize> {
        host.strip_prefix("blog")?.strip_suffix(".ke.test")?.parse().ok()
    }
}

impl HttpSite for Blogs {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        match Blogs::number(host) {
            Some(number) if path == "/" && !number.is_multiple_of(4) => HttpAnswer::html("<p>a page</p>\n".to_owned()),
            Some(_) => HttpAnswer::status(404),
            None => self.web.respond(host, path),
        }
    }
}

async fn said(swarm: &Swarm, command: &[&str]) -> String {
    let api = format!("http://{}:{API_PORT}", swarm.daemons[0].address);
    let ended = nearcrawl(&[command, &["--api", &api]].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.said
}

async fn summary(swarm: &Swarm) -> Value {
    let results: Value = serde_json::from_str(&said(swarm, &["results", "--json"]).await).unwrap();
    results["summary"].clone()
}

/// The hosts of the address by the probability that their rows tell.
async fn probabilities(swarm: &Swarm) -> BTreeMap<usize, Option<f64>> {
    let rows = said(swarm, &["export", "servers"]).await;
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    rows.filter_map(|row| Some((Blogs::number(row["host"].as_str()?)?, row["inclusion_probability"].as_f64()))).collect()
}

#[tokio::test]
async fn the_hosts_of_a_portal_are_a_uniform_sample_until_all_were_visited_and_totals_say_so() {
    let ground = Ground::claim();
    let web = Arc::new(Blogs { web: SmallWeb::new(&ground, 2, 4, 0) });
    let portal: Ipv4Addr = web.web.hosts[0].1;
    let mut names = web.web.names();
    names.extend((0..HOSTS).map(|number| (Blogs::name(number).parse().unwrap(), IpAddr::V4(portal))));
    let habits = Habits { min_delay_ms: 40, threshold_ms: 4, ..Habits::default() };
    let points = [web.web.places.access_points[0]];
    let mut swarm = Swarm::prepare(ground, web.clone(), web.web.places.registry_files(), names, &points, habits).await;
    swarm.start([0]).await;
    let mut seeds = vec![web.web.url(1, 0)];
    seeds.extend((0..HOSTS).map(|number| format!("http://{}:8080/", Blogs::name(number))));
    swarm.seed(0, &seeds).await;

    let api = format!("http://{}:{API_PORT}", swarm.daemons[0].address);
    let estimated = swarm
        .until("a part of them was visited", SOON, async || {
            let ended = nearcrawl(&["results", "--json", "--api", &api]).await;
            let results: Value = serde_json::from_str(&ended.said).map_err(|why| why.to_string())?;
            let estimates = results["summary"]["estimates"].clone();
            let is_part = estimates["hosts"].as_u64() == Some(HOSTS as u64) && estimates["sampled"].as_u64().unwrap_or(0) >= 50;
            if is_part { Ok(results) } else { Err(format!("{estimates}")) }
        })
        .await;
    let (text, csv, rows) = (said(&swarm, &["results"]).await, said(&swarm, &["results", "--csv"]).await, probabilities(&swarm).await);
    let up = &estimated["summary"]["estimates"]["up"];
    let (number, margin) = (up["estimated"].as_u64().unwrap(), up["margin"].as_u64().unwrap());
    let truth = (HOSTS * 3 / 4 + 1) as u64;
    assert!(margin > 0 && number.abs_diff(truth) <= 2 * margin, "{number} ± {margin}, in truth {truth}");
    assert!(text.contains(" ± ") && text.contains("estimated"), "{text}");
    let head = csv.lines().next().unwrap();
    assert!(head.ends_with(",sample_text,consistent_age_ms,in_transition_text,exact"), "{csv}");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let total: BTreeMap<String, String> = reader.deserialize().next().unwrap().unwrap();
    assert!(total["dimension"] == "total" && total["sample_text"].contains("estimated: "), "{csv}");
    let [up_in_csv, pages_in_csv] = ["up", "pages"].map(|figure| total[&format!("{figure}_estimated")].parse::<u64>().unwrap());
    assert!(up_in_csv >= total["up"].parse().unwrap() && pages_in_csv > total["pages"].parse().unwrap(), "{csv}");

    // Sums over rows are estimated, too, from what the rows say.
    let by_rows: Value = serde_json::from_str(&said(&swarm, &["results", "--by", "status,rule", "--json"]).await).unwrap();
    let sampled = by_rows["sample"]["sampled"].as_u64().unwrap();
    assert_eq!(by_rows["sample"], serde_json::json!({"addresses": 1, "hosts": HOSTS, "sampled": sampled, "not_estimated": 0}));
    assert!(sampled >= 50 && sampled < HOSTS as u64, "{sampled}");
    let up = &by_rows["estimates"]["up"];
    let (number, margin) = (up["estimated"].as_u64().unwrap(), up["margin"].as_u64().unwrap());
    assert!(margin > 0 && number.abs_diff(truth) <= 2 * margin, "{number} ± {margin}, in truth {truth}");
    let in_words = said(&swarm, &["results", "--by", "status,rule"]).await.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = format!("of {HOSTS} hosts at 1 address with many were visited so far, in random order");
    assert!(in_words.contains(&told) && in_words.contains("estimated: ") && in_words.contains(" ± "), "{in_words}");
    let csv = said(&swarm, &["results", "--by", "status,rule", "--csv"]).await;
    let head = csv.lines().next().unwrap();
    assert!(
        head.contains("up_estimated,up_margin,pages_estimated,pages_margin")
            && head.ends_with(",sample_text,consistent_age_ms,in_transition_text"),
        "{csv}"
    );

    assert_eq!(rows.len(), HOSTS);
    // Those that began before many others were known count as themselves.
    let alone = rows.values().filter(|probability| **probability == Some(1.0)).count();
    let sample = rows.iter().filter_map(|(number, probability)| Some((*number as f64, (*probability)?)));
    let sample: Vec<_> = sample.filter(|(_, probability)| *probability < 1.0).collect();
    assert!(sample.len() >= 50 && sample.len() < HOSTS, "{rows:?}");
    // Hosts that were visited since the estimates were made are in the sample, and not in the probability.
    let shares: std::collections::BTreeSet<_> =
        sample.iter().map(|(_, probability)| (probability * (HOSTS - alone) as f64).round() as usize).collect();
    assert!(shares.len() == 1 && shares.iter().all(|share| share.abs_diff(sample.len()) <= 5), "{sample:?}");
    // Seeds were named in order: the first of them would have a mean of a quarter of all, or less.
    let mean = sample.iter().map(|(number, _)| number).sum::<f64>() / sample.len() as f64;
    let error = HOSTS as f64 / (12.0 * sample.len() as f64).sqrt();
    assert!((mean - HOSTS as f64 / 2.0).abs() < 4.0 * error, "mean number {mean} of {}", sample.len());

    swarm
        .until("all were visited", SOON, async || {
            let ended = nearcrawl(&["results", "--json", "--api", &api]).await;
            let results: Value = serde_json::from_str(&ended.said).map_err(|why| why.to_string())?;
            let total = &results["summary"]["total"];
            if results["exact"] == true && total["unfinished"] == 0 && total["up"] == truth { Ok(()) } else { Err(format!("{total}")) }
        })
        .await;
    assert_eq!(summary(&swarm).await["estimates"]["addresses"], 0);
    let by_rows: Value = serde_json::from_str(&said(&swarm, &["results", "--by", "status,rule", "--json"]).await).unwrap();
    assert_eq!((&by_rows["sample"]["addresses"], &by_rows["estimates"]["addresses"]), (&0.into(), &0.into()));
    assert!(by_rows["cells"].as_array().unwrap().iter().all(|cell| cell["estimates"].is_null()), "{by_rows}");
    assert!(!said(&swarm, &["results"]).await.contains('±'), "what was counted is not estimated");
    assert!(probabilities(&swarm).await.values().all(|probability| *probability == Some(1.0)));
    assert!(swarm.stop().await);
}
