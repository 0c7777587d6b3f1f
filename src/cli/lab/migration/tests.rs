//! Tests of `nearcrawl lab migration`.

use super::super::{LabCommand, lab};
use crate::cli::{CommandError, table::Style};
use clap::{CommandFactory, Parser};
use std::{collections::BTreeSet, fs};

#[derive(Debug, Parser)]
struct TestCli {
    #[command(subcommand)]
    command: LabCommand,
}

async fn type_in(line: &str) -> Result<String, CommandError> {
    let cli = TestCli::try_parse_from(["lab", "migration"].into_iter().chain(line.split_whitespace())).unwrap();
    lab(cli.command, Style::Plain).await
}

async fn rows(line: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&type_in(&format!("{line} --json")).await.unwrap()).unwrap()
}

#[test]
fn the_help_teaches_and_its_examples_can_be_typed() {
    let help = TestCli::command().find_subcommand_mut("migration").unwrap().render_long_help().to_string();
    for word in ["What is simulated", "1.5 to 4.05 s", "linear program", "hours a day", "--rtt-slices", "in hindsight"] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
    let help = super::EXAMPLES.replace(" \\\n    ", " ");
    let examples = help.lines().filter_map(|line| line.strip_prefix("  nearcrawl lab "));
    for example in examples.clone() {
        TestCli::try_parse_from(["lab"].into_iter().chain(example.split_whitespace())).unwrap();
    }
    assert!(examples.count() >= 5);
}

#[tokio::test]
async fn a_seed_makes_a_run_exact_and_another_one_another() {
    let line = "--sites 200 --runs 12 --rounds 3 --sizes lognormal --noise 0.2 --prior-error 0.2";
    let (one, same) = (rows(&format!("{line} --seed 7")).await, rows(&format!("{line} --seed 7")).await);
    assert_eq!(one, same);
    assert_ne!(one, rows(&format!("{line} --seed 8")).await);
    assert_eq!(one.len(), 5 * 13, "five rules, and the start before twelve runs");
    let names = ["policy", "access_points", "sites", "run", "total_vs_oracle", "makespan_vs_bound", "right_place", "moves"];
    let keys: BTreeSet<&str> = one[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(names));
}

#[tokio::test]
async fn matrices_are_read_in_the_order_of_their_numbers_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("slices");
    fs::create_dir(&folder).unwrap();
    for slice in 1..=11 {
        let cell = |line: usize, column: usize| (line != column) as usize as f64 * (0.01 * slice as f64 + 0.1 * (line + column) as f64);
        let line = |line: usize| (0..6).map(|column| cell(line, column).to_string()).collect::<Vec<_>>().join("\t") + "\n";
        fs::write(folder.join(format!("Data_{slice}")), (0..6).map(line).collect::<String>()).unwrap();
    }
    let plot = directory.path().join("figure.svg");
    let hours = directory.path().join("hours.csv");
    fs::write(&hours, "access_point,hours\n2,12\n").unwrap();
    let line = format!(
        "--rtt-slices {} --access-points 2 --rounds 2 --policy uniform,oracle --availability {} --plot {}",
        folder.display(),
        hours.display(),
        plot.display()
    );
    let text = type_in(&line).await.unwrap();
    assert!(text.contains("uniform") && text.contains("run 10"), "{text}");
    assert!(fs::read_to_string(&plot).unwrap().contains("figure 3"));
    // The oracle's mean over all runs is one by definition; as the slices grow in order, so do its totals.
    let totals: Vec<f64> =
        rows(&line).await.iter().filter(|row| row["policy"] == "oracle").map(|row| row["total_vs_oracle"].as_f64().unwrap()).collect();
    assert_eq!(totals.len(), 11);
    assert!((totals.iter().sum::<f64>() / 11.0 - 1.0).abs() < 1e-6, "{totals:?}");
    assert!(totals.windows(2).all(|pair| pair[0] < pair[1]), "{totals:?}");
}

#[tokio::test]
async fn mistakes_are_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (hours, ninth, empty) = (file("a", "1,25\n"), file("b", "9,12\n"), directory.path().join("folder"));
    fs::create_dir(&empty).unwrap();
    let cases = [
        ("--policy twomaa".to_owned(), "do you mean twoma?"),
        ("--start ipmicra".to_owned(), "--prior-error 0.2"),
        (format!("--availability {hours}"), "line 1: hours a day are a number above 0, up to 24"),
        (format!("--availability {ninth}"), "hours are said of access point 9, but there are only 8"),
        (format!("--rtt-slices {}", empty.display()), "there is no matrix"),
        ("--sites 1000000 --access-points 1000".to_owned(), "ask for fewer"),
    ];
    for (line, told) in cases {
        let failure = type_in(&line).await.unwrap_err();
        assert!(format!("{failure:?}").contains(told), "{failure:?} for {line:?}");
    }
}
