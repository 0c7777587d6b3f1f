//! Expectations of the laboratory for the same places: `nearcrawl lab delegation`, run as anybody can run it.

use super::figures::{Figures, Measured};
use crate::support::{RealPlaces, Swarm};
use serde::Deserialize;
use std::path::Path;

/// How many orders of the sites the laboratory plays: enough to know how far chance brings one.
const ROUNDS: u32 = 16;

/// So many standard deviations of one round are taken for chance: once in some ten thousand times it is more.
const MAX_DEVIATIONS: f64 = 4.0;

/// Of the sites that the daemons decide at the same time none learns from the others, as each does in the laboratory: what that costs.
/// In a simulation of the paper's procedure it was 0.05 probes with twelve sites at a time, and no share; here sixteen are waiting.
const PROBES_UNLEARNT: f64 = 0.1;
const SHARE_UNLEARNT: f64 = 0.02;

/// A row of what the laboratory prints, as far as it is compared.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    policy: String,
    sites: usize,
    probes_per_site: f64,
    probes_per_site_se: f64,
    optimal: f64,
    optimal_se: f64,
    within_10pct_or_2ms: f64,
}

/// What the laboratory expects, and how far from that the order of the sites alone brings one round (standard deviations).
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub figures: Figures,
    pub probes_sd: f64,
    pub share_sd: f64,
}

impl Expected {
    /// Panics if the daemons' figures are farther from these than one order of the sites is from the average of many.
    pub fn check(&self, got: &Figures) {
        let near = |what: &str, got: f64, expected: f64, allowed: f64| {
            assert!(
                (got - expected).abs() <= allowed,
                "{what}: {got:.3}, but the laboratory says {expected:.3}, give or take {allowed:.3}"
            );
        };
        let (figures, share) = (&self.figures, MAX_DEVIATIONS * self.share_sd + SHARE_UNLEARNT);
        near("probes a site", got.probes, figures.probes, MAX_DEVIATIONS * self.probes_sd + PROBES_UNLEARNT);
        near("share with a nearest owner", got.optimal, figures.optimal, share);
        near("share with an owner at most 10 % or 2 ms slower", got.within, figures.within, share);
    }
}

/// Plays `policy` (as the laboratory names it) on the places with their round trips as they were measured.
pub async fn play(swarm: &Swarm, places: &RealPlaces, measured: &Measured<'_>, policy: &str, threshold_ms: f64) -> Expected {
    let write = |name: &str, text: String| swarm.common.write(name, &text).expect("a file for the laboratory");
    let nodes = text(&write("nodes.csv", places.nodes_csv()));
    let rtt = text(&write("round-trips.csv", places.round_trips_csv(|site, point| measured.ms(site, point))));
    let snapshot = text(&swarm.common.directory.join("places.snapshot"));
    let registries: Vec<String> = swarm.common.registries.iter().map(|file| text(file)).collect();
    let mut build = vec!["hierarchy", "build", "--out", &snapshot];
    build.extend(registries.iter().map(String::as_str));
    swarm.common.ask(&build).await.unwrap_or_else(|why| panic!("{why}"));
    let (threshold, rounds, crawlers) = (threshold_ms.to_string(), ROUNDS.to_string(), places.points.len().to_string());
    // All sites are evaluated, as all are in the daemons.
    let command = ["lab", "delegation", "--train", "0", "--json", "--seed", "1", "--policy", policy];
    let inputs = ["--nodes", &nodes, "--rtt", &rtt, "--hierarchy", &snapshot, "--crawlers", &crawlers];
    let settings = ["--threshold-ms", &threshold, "--rounds", &rounds];
    let said = swarm.common.ask(&[&command[..], &inputs[..], &settings[..]].concat()).await.unwrap_or_else(|why| panic!("{why}"));
    let rows: Vec<Row> = serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"));
    let [row] = &rows[..] else { panic!("one policy was asked for: {said}") };
    assert_eq!((policy.split('@').next(), row.sites), (Some(&*row.policy), places.sites.len()), "{said}");
    let one_round = f64::from(ROUNDS).sqrt();
    Expected {
        figures: Figures { probes: row.probes_per_site, optimal: row.optimal, within: row.within_10pct_or_2ms },
        probes_sd: row.probes_per_site_se * one_round,
        share_sd: row.optimal_se * one_round,
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
