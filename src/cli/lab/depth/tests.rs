//! Tests of `nearcrawl lab depth`.

use super::{DepthArgs, Style, choice, depth};
use crate::cli::{CommandError, Exit};
use clap::{CommandFactory, Parser};
use std::fs;

#[derive(Debug, Parser)]
struct TestCli {
    #[command(flatten)]
    args: DepthArgs,
}

fn type_in(line: &str) -> Result<String, CommandError> {
    let cli = TestCli::try_parse_from(["depth"].into_iter().chain(line.split_whitespace())).unwrap();
    depth(&cli.args, Style::Plain)
}

fn figures(line: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&type_in(&format!("{line} --json")).unwrap()).unwrap()
}

#[test]
fn the_help_teaches_and_its_examples_can_be_typed() {
    TestCli::command().debug_assert();
    let examples = super::EXAMPLES.lines().filter_map(|line| line.strip_prefix("  nearcrawl lab depth"));
    for example in examples.clone() {
        TestCli::try_parse_from(["depth"].into_iter().chain(example.split_whitespace())).unwrap();
    }
    assert!(examples.count() >= 4);
}

#[test]
fn json_has_the_promised_keys_and_equal_seeds_give_equal_rows() {
    let line = "--sites 40 --max-depth 9 --prices 0.1,0.01 --seed 3";
    let rows = figures(line);
    assert_eq!(rows.len(), 11);
    for row in &rows {
        for key in ["rule", "depth", "price", "pages", "load", "coverage_hosts", "coverage_urls", "trees"] {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
    }
    assert_eq!(
        (rows[0]["rule"].as_str(), rows[0]["depth"].as_u64(), &rows[0]["price"]),
        (Some("depth"), Some(1), &serde_json::Value::Null)
    );
    assert_eq!((rows[8]["load"].as_f64(), rows[8]["coverage_hosts"].as_f64()), (Some(1.0), Some(1.0)));
    assert_eq!((rows[10]["rule"].as_str(), rows[10]["price"].as_f64()), (Some("yield"), Some(0.01)));
    assert_eq!(rows, figures(line));
    assert_ne!(rows, figures("--sites 40 --max-depth 9 --prices 0.1,0.01 --seed 4"));
}

#[test]
fn people_see_both_rules_the_paper_and_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("plot.svg");
    let text = type_in(&format!("--sites 30 --prices 0.05 --plot {}", plot.display())).unwrap();
    for part in ["30 sites", "depth", "yield", "0.05", "100.0 %", "The paper", "plot.svg"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let svg = fs::read_to_string(plot).unwrap();
    for part in ["figure 1", "figure 2", "figure 3", "hosts, by yield"] {
        assert!(svg.contains(part), "{part} is missing in\n{svg}");
    }
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn webs_are_changed_by_name() {
    let shape = choice::shape(&["uneven=0.5".to_owned(), "fade=2".to_owned()]).unwrap();
    let usual = choice::shape(&[]).unwrap();
    assert_eq!((shape.uneven, shape.fade, shape.tail), (usual.uneven / 2.0, usual.fade * 2.0, usual.tail));
}

#[test]
fn what_cannot_be_done_ends_with_its_exit_code_and_says_what_to_do() {
    for (line, exit, told) in [
        ("--sites 3 --change", Exit::Usage, "NAME=FACTOR"),
        ("--sites 3 --change x=2", Exit::Usage, "no number \"x\""),
        ("--sites 3 --change uneven=0", Exit::Usage, "from 0.1 to 10"),
        ("--sites 3 --prices 0.1 --plot /no/such/directory/p.svg", Exit::InUse, "/no/such/directory"),
    ] {
        let line = if line.ends_with("--change") { format!("{line} uneven") } else { line.to_owned() };
        let failure = type_in(&line).unwrap_err();
        assert_eq!(failure.exit, exit, "{line}: {failure}");
        assert!(failure.to_string().contains(told), "{failure}");
    }
    for wrong in
        ["--sites 0", "--max-depth 0", "--max-depth 64", "--prices x", "--prices 0", "--prices -1", "--sensitivity --change fade=2"]
    {
        assert!(TestCli::try_parse_from(["depth"].into_iter().chain(wrong.split_whitespace())).is_err(), "{wrong}");
    }
}
