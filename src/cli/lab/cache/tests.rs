//! Tests of `nearcrawl lab cache`.

use super::{CacheArgs, Style, cache, choice};
use crate::cli::{CommandError, Exit};
use clap::{CommandFactory, Parser};
use nearcrawl_lab::cache::policies::Policy;
use std::{fs, path::Path};

#[derive(Debug, Parser)]
struct TestCli {
    #[command(flatten)]
    args: CacheArgs,
}

fn type_in(line: &str) -> Result<String, CommandError> {
    let cli = TestCli::try_parse_from(["cache"].into_iter().chain(line.split_whitespace())).unwrap();
    cache(&cli.args, Style::Plain)
}

fn figures(line: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&type_in(&format!("{line} --json")).unwrap()).unwrap()
}

/// A file of links: 30 sites of 8 pages, all of a site linked with each other, and to the first of the next.
fn links(directory: &Path) -> String {
    let path = directory.join("links.tsv");
    let mut text = "# a made-up web\n".to_owned();
    for page in 0..240 {
        (0..8).for_each(|other| text += &format!("{page}\t{}\n", page / 8 * 8 + other));
        text += &format!("{page}\t{}\n", (page / 8 * 8 + 8) % 240);
    }
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_help_teaches_and_its_examples_can_be_typed() {
    TestCli::command().debug_assert();
    let help = super::EXAMPLES.replace(" \\\n    ", " ");
    let examples = help.lines().filter_map(|line| line.strip_prefix("  nearcrawl lab cache "));
    for example in examples.clone() {
        TestCli::try_parse_from(["cache"].into_iter().chain(example.split_whitespace())).unwrap();
    }
    assert!(examples.count() >= 4);
    for name in choice::ALL.split(',').chain(["static-charged", "What is not", "zstd or gzip"]) {
        assert!(super::EXAMPLES.contains(name), "{name}");
    }
}

#[test]
fn sizes_are_numbers_and_powers_of_two() {
    assert_eq!(choice::sizes("1..33554432").unwrap().0, (0..=25).map(|exponent| 1 << exponent).collect::<Vec<usize>>());
    assert_eq!(choice::sizes("100, 3..16,7,8").unwrap().0, [4, 7, 8, 16, 100]);
    for wrong in ["", "0", "x", "5..7", "16..4", "1..", "2000000000", "-1"] {
        assert!(choice::sizes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn policies_are_chosen_by_name_and_static_has_both_accounts() {
    assert_eq!(choice::policies("clock, static,static-charged").unwrap(), [Policy::Clock, Policy::Static, Policy::StaticCharged]);
    assert_eq!(choice::policies(choice::ALL).unwrap(), Policy::ALL);
    for (text, told) in [("clok", "do you mean clock?"), ("zzz", "there are infinite"), ("", "no policy is named")] {
        let failure = choice::policies(text).unwrap_err();
        assert!(failure.exit == Exit::Usage && failure.to_string().contains(told), "{failure}");
    }
}

#[test]
fn json_has_the_promised_keys_and_equal_seeds_give_equal_rows() {
    let line = "--synthetic --threads 20 --sizes 64,4096 --seed 3";
    let rows = figures(line);
    assert_eq!(rows.len(), 2 * Policy::ALL.len());
    for row in &rows {
        for key in ["policy", "size", "requests", "miss_rate", "vs_min"] {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
        assert_eq!(row.as_object().unwrap().len(), 5);
    }
    assert_eq!(rows, figures(line));
    assert_ne!(rows, figures("--synthetic --threads 20 --sizes 64,4096 --seed 4"));
}

#[test]
fn the_made_up_web_has_the_papers_knee() {
    let rows = figures("--synthetic --threads 50 --sizes 256,12800,65536 --policies lru,clock");
    let miss = |row: usize| rows[row]["miss_rate"].as_f64().unwrap();
    assert!(miss(0) > 0.4 && miss(3) > 0.4, "5 entries a thread are too few: {rows:?}");
    assert!(miss(4) < 0.2 && miss(4) - miss(5) < 0.1, "256 entries a thread are enough: {rows:?}");
    assert!((miss(4) / miss(1) - 1.0).abs() < 0.03, "CLOCK is as good as LRU: {rows:?}");
}

#[test]
fn files_are_read_packed_or_not_and_with_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let plain = links(dir.path());
    let packed = dir.path().join("packed").display().to_string();
    fs::write(&packed, zstd::bulk::compress(&fs::read(&plain).unwrap(), 1).unwrap()).unwrap();
    let hosts = dir.path().join("hosts.tsv").display().to_string();
    fs::write(&hosts, (0..240).map(|page| format!("{page}\thost{}.example\n", page / 8)).collect::<String>()).unwrap();
    let rest = "--threads 3 --sizes 1..64";
    let rows = figures(&format!("--trace {plain} --block 8 {rest}"));
    assert_eq!(rows[0]["requests"], 240 * 9);
    assert_eq!(rows, figures(&format!("--trace {packed} --block 8 {rest}")));
    assert_eq!(rows, figures(&format!("--trace {plain} --hosts {hosts} {rest}")));
    let named = dir.path().join("named.jsonl").display().to_string();
    let line = |(from, to): (u32, u32)| {
        let url = |page: u32| format!("http://host{0}.example/{page}\",\"HOST\":\"host{0}.example\"", page / 8);
        let (from, to) = (url(from).replace("HOST", "host"), url(to).replace("HOST", "to_host"));
        format!("{{\"url\":\"{from},\"to_url\":\"{to},\"run\":1}}\n")
    };
    let text = fs::read_to_string(&plain).unwrap();
    let pair = |line: &str| line.split_once('\t').map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()));
    fs::write(&named, text.lines().filter_map(pair).map(line).collect::<String>()).unwrap();
    let of_named = figures(&format!("--trace {named} {rest}"));
    let requests = |rows: &[serde_json::Value]| rows.iter().map(|row| row["requests"].clone()).collect::<Vec<_>>();
    assert_eq!(requests(&rows), requests(&of_named), "pages have other numbers, so the order of the crawl is another");
    let cross = figures(&format!("--trace {plain} --block 8 {rest} --stream cross --processes 2"));
    let requests = cross[0]["requests"].as_u64().unwrap();
    assert!(requests > 0 && requests <= 240 && requests.is_multiple_of(8), "only links to the next site leave: {requests}");
    assert!(figures(&format!("--trace {plain} --per-thread {rest}")).len() < rows.len(), "below 3 entries not each thread has one");
}

#[test]
fn people_see_sizes_a_thread_and_the_paper_and_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("plot.svg");
    let line = format!("--trace {} --block 8 --threads 4 --sizes 8,1024 --plot {}", links(dir.path()), plot.display());
    let text = type_in(&line).unwrap();
    for part in ["240 pages of 30 sites, 2160 links; 4 sites", "2160 times, 240 different", "256.0", "11.11 %", "The paper", "plot.svg"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let svg = fs::read_to_string(plot).unwrap();
    for name in choice::ALL.split(',').chain(["static-charged", "share of look-ups", "MIN"]) {
        assert!(svg.contains(name), "{name} is missing in\n{svg}");
    }
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf,"), "{svg}");
    assert_eq!(svg.matches("<polyline").count(), 2 * Policy::ALL.len() - 1, "static misses nothing of 1,024 entries: one point is no line");
}

#[test]
fn what_cannot_be_done_ends_with_its_exit_code_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let good = links(dir.path());
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (empty, words, three) = (file("empty", "# nothing\n"), file("words", "0\t1\nhome\t1\n"), file("three", "0\t1\t2\n"));
    let json = file("json", "{\"url\":\"http://a/\",\"host\":\"a\",\"to_url\":null,\"to_host\":\"b\"}\n{\"url\":1}\n");
    let (huge, few) = (file("huge", "0\t4000000000\n"), file("few", "0\ta.example\n"));
    for (line, exit, told) in [
        ("--trace /no/such.tsv".to_owned(), Exit::NoInput, "/no/such.tsv"),
        (format!("--trace {empty}"), Exit::Data, "holds no link"),
        (format!("--trace {words}"), Exit::Data, "words, line 2"),
        (format!("--trace {three}"), Exit::Data, "this has 3 cells"),
        (format!("--trace {huge}"), Exit::Data, "no number of a page"),
        (format!("--trace {good} --hosts {few}"), Exit::Data, "page 1 has links"),
        (format!("--trace {json} --hosts {few}"), Exit::Usage, "name the hosts themselves"),
        (format!("--trace {json}"), Exit::Data, "json, line 2: no link"),
        (format!("--trace {good} --policies fifo"), Exit::Usage, "no policy \"fifo\""),
        (format!("--trace {good} --per-thread --sizes 1..64"), Exit::Usage, "no size is left"),
        (format!("--trace {good} --stream cross --block 1000"), Exit::Usage, "no link is of the kind"),
        (format!("--trace {good} --sizes 4 --plot /no/such/directory/p.svg"), Exit::InUse, "/no/such/directory"),
    ] {
        let failure = type_in(&line).unwrap_err();
        assert_eq!(failure.exit, exit, "{line}: {failure}");
        assert!(failure.to_string().contains(told), "{failure}");
    }
    for wrong in ["", "--trace x --synthetic", "--trace x --hosts y --block 3", "--synthetic --threads 0", "--synthetic --sizes 0"] {
        assert!(TestCli::try_parse_from(["cache"].into_iter().chain(wrong.split_whitespace())).is_err(), "{wrong}");
    }
}
