//! Tests of the laboratory's commands.

use super::{LabCommand, Style, choice, lab};
use crate::cli::{CommandError, Exit};
use clap::{CommandFactory, Parser};
use nearcrawl_hierarchy::{Builder, FurtherPrefix, pack};
use nearcrawl_lab::delegation::policies::Policy;
use std::{fs, io::Write, path::Path};

#[derive(Debug, Parser)]
struct TestCli {
    #[command(subcommand)]
    command: LabCommand,
}

const ATLAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/latency/atlas-excerpt");

async fn type_in(line: &str) -> Result<String, CommandError> {
    let cli = TestCli::try_parse_from(["lab", "delegation"].into_iter().chain(line.split_whitespace())).unwrap();
    lab(cli.command, Style::Plain).await
}

/// What JSON says, without the only thing that differs from run to run.
async fn figures(line: &str) -> Vec<serde_json::Value> {
    let mut rows: Vec<serde_json::Value> = serde_json::from_str(&type_in(&format!("{line} --json")).await.unwrap()).unwrap();
    for row in &mut rows {
        assert!(row.as_object_mut().unwrap().remove("seconds").unwrap().as_f64().unwrap() >= 0.0);
    }
    rows
}

/// The arguments for a hierarchy of a few subnets: the world's takes long to load.
fn few_subnets(directory: &Path) -> String {
    let path = directory.join("few.snapshot.zst");
    let mut builder = Builder::new();
    for prefix in ["10.0.0.0/20", "10.0.16.0/20", "80.0.0.0/8"] {
        let further =
            FurtherPrefix { prefix: prefix.parse().unwrap(), registry: "lab".into(), country: "KE".into(), organisation: prefix.into() };
        builder.add_prefix(&further).unwrap();
    }
    fs::write(&path, pack(&builder.finish().unwrap())).unwrap();
    format!("--hierarchy {}", path.display())
}

/// Arguments for a small world on a plane.
fn places(directory: &Path) -> String {
    let path = directory.join("places.csv");
    let lines = (0..40).map(|node| format!("{node},10.0.{node}.1,{},{}\n", node * 7 % 41, node * 11 % 43));
    fs::write(&path, format!("id,ipv4,x_ms,y_ms\n{}", lines.collect::<String>())).unwrap();
    format!("--nodes {} --coordinates", path.display())
}

#[test]
fn the_help_teaches_and_its_examples_can_be_typed() {
    let mut command = TestCli::command();
    command.clone().debug_assert();
    let help = command.find_subcommand_mut("delegation").unwrap().render_long_help().to_string();
    for word in ["What is simulated", "What is not", "random-delegation", "--placement", "zstd or gzip"] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
    let help = super::DELEGATION_EXAMPLES.replace(" \\\n    ", " ");
    let examples = help.lines().filter_map(|line| line.strip_prefix("  nearcrawl lab "));
    for example in examples.clone() {
        TestCli::try_parse_from(["lab"].into_iter().chain(example.split_whitespace())).unwrap();
    }
    assert!(examples.count() >= 4);
}

#[test]
fn policies_are_chosen_by_name_number_and_price() {
    let list = |text: &str, prices: &[f64]| choice::policies(text, 50.0, prices);
    assert_eq!(list("ipmicra, ipmicra@20", &[]).unwrap(), [Policy::IpMicra(50.0), Policy::IpMicra(20.0)]);
    let prices = list("nearcrawl@0.25,nearcrawl", &[0.25, 3.0]).unwrap();
    assert_eq!(prices, [Policy::Nearcrawl(0.25), Policy::Nearcrawl(3.0)], "no point twice");
    assert!(list(choice::ALL, &[]).unwrap().len() > 10, "nearcrawl comes at several prices");
    for (text, told) in [
        ("ipmicro", "do you mean ipmicra?"),
        ("zzz", "there are ipmicra"),
        ("", "no policy is named"),
        ("nearcrawl@cheap", "milliseconds"),
        ("brute-force@3", "neither"),
        ("nearcrawl@-1", "milliseconds"),
    ] {
        let failure = list(text, &[]).unwrap_err();
        assert!(failure.exit == Exit::Usage && failure.to_string().contains(told), "{failure}");
    }
}

#[tokio::test]
async fn json_has_the_promised_keys_and_equal_seeds_give_equal_rows() {
    let dir = tempfile::tempdir().unwrap();
    let hierarchy = few_subnets(dir.path());
    let line = format!("--nodes {ATLAS}/nodes.csv --rtt {ATLAS}/rtt.csv {hierarchy} --crawlers 6 --rounds 2 --prices 1 --seed 3");
    let rows = figures(&line).await;
    let keys = [
        "policy",
        "price",
        "crawlers",
        "sites",
        "probes_per_site",
        "probes_last_50",
        "optimal",
        "within_10pct_or_2ms",
        "mean_extra_ms",
        "mean_extra_when_wrong_ms",
        "p90_extra_ms",
        "probes_first_300",
        "download_time_vs_random",
        "probes_per_site_se",
        "optimal_se",
        "probes_per_site_training",
    ];
    for row in &rows {
        assert!(keys.iter().all(|key| row.get(key).is_some()), "{row}");
    }
    let names: Vec<_> = rows.iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(names, choice::ALL.split(',').collect::<Vec<_>>());
    assert_eq!((&rows[1]["price"], &rows[4]["probes_per_site"], &rows[4]["optimal"]), (&1.0.into(), &6.0.into(), &1.0.into()));
    assert_eq!(rows, figures(&line).await);
}

#[tokio::test]
async fn people_see_the_papers_figures_beside_and_what_moves_them() {
    let line = format!(
        "--nodes {ATLAS}/nodes.csv --rtt {ATLAS}/rtt.csv --crawlers 5 --placement random --rounds 2 --policy ipmicra,brute-force-subnet"
    );
    let text = type_in(&line).await.unwrap();
    for part in ["5 crawlers", "placed at random", "ipmicra@50", "2.99", "74.6 %", "same placement"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?} columns:\n{text}");
}

#[tokio::test]
async fn packed_files_read_like_plain_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (plain, hierarchy) = (places(dir.path()), few_subnets(dir.path()));
    let text = fs::read(path("places.csv")).unwrap();
    fs::write(path("a"), zstd::bulk::compress(&text, 1).unwrap()).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(fs::File::create(path("b")).unwrap(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    gzip.finish().unwrap();
    let rest = format!("{hierarchy} --crawlers 4 --rounds 1 --policy ipmicra,nearcrawl@1 --sites 20");
    let expected = figures(&format!("{plain} {rest}")).await;
    assert_eq!(expected[0]["sites"], 20);
    for packed in [path("a"), path("b")] {
        assert_eq!(expected, figures(&format!("--nodes {packed} --coordinates {rest}")).await, "{packed}");
    }
}

#[tokio::test]
async fn the_plot_names_every_policy_and_the_paper() {
    let dir = tempfile::tempdir().unwrap();
    let (places, hierarchy, plot) = (places(dir.path()), few_subnets(dir.path()), dir.path().join("plot.svg"));
    let line = format!("{places} {hierarchy} --crawlers 12 --rounds 2 --prices 0.5,5 --plot {}", plot.display());
    assert!(type_in(&line).await.unwrap().contains("plot.svg"));
    let svg = fs::read_to_string(plot).unwrap();
    for name in choice::ALL.split(',').chain(["IPMicra's paper: 2.99", "probes a site", "price of a"]) {
        assert!(svg.contains(name), "{name} is missing in\n{svg}");
    }
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
    assert!(svg.contains(">100 %<") && svg.contains(">0 %<"), "the axis holds all shares");
}

#[tokio::test]
async fn what_cannot_be_done_ends_with_its_exit_code_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (places, hierarchy) = (places(dir.path()), few_subnets(dir.path()));
    let small = format!("{places} {hierarchy}");
    let bad = dir.path().join("bad.csv").display().to_string();
    fs::write(&bad, "id,ipv4\n1,nowhere\n").unwrap();
    for (line, exit, told) in [
        ("--nodes /no/such.csv --coordinates".to_owned(), Exit::NoInput, "/no/such.csv"),
        (format!("--nodes {bad} --rtt {ATLAS}/rtt.csv"), Exit::Data, "bad.csv, line 2"),
        (format!("--nodes {bad} --coordinates"), Exit::Data, "no column x_ms"),
        (format!("--nodes {ATLAS}/nodes.csv --rtt {bad}"), Exit::Data, "no column ms"),
        (format!("{places} --hierarchy {bad}"), Exit::Data, "bad.csv"),
        (format!("{small} --crawlers 41"), Exit::Usage, "only 40 nodes"),
        (format!("{small} --crawlers 40"), Exit::Usage, "none is left"),
        (format!("{small} --policy nearest"), Exit::Usage, "no policy \"nearest\""),
        (format!("{small} --rounds 1 --plot /no/such/directory/p.svg"), Exit::InUse, "/no/such/directory"),
    ] {
        let failure = type_in(&line).await.unwrap_err();
        assert_eq!(failure.exit, exit, "{line}: {failure}");
        assert!(failure.to_string().contains(told), "{failure}");
    }
    for wrong in ["--nodes x", "--nodes x --rtt y --coordinates", "--nodes x --rtt y --train 1", "--nodes x --rtt y --crawlers 0"] {
        assert!(TestCli::try_parse_from(["lab", "delegation"].into_iter().chain(wrong.split_whitespace())).is_err(), "{wrong}");
    }
}

/// What comes of a scenario: its figures, or exit status and message.
async fn play(directory: &Path, text: &str) -> Result<serde_json::Value, (Exit, String)> {
    let path = directory.join("scenario.toml");
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let cli = TestCli::try_parse_from(["lab", "swarm", "--scenario", path.as_str(), "--seed", "2", "--json"]).unwrap();
    let told = lab(cli.command, Style::Plain).await.map_err(|why| (why.exit, why.message))?;
    Ok(serde_json::from_str(&told).unwrap())
}

#[tokio::test]
async fn the_exit_status_of_a_scenario_says_whether_it_held_or_in_which_line_it_is_wrong() {
    const HEAD: &str = "members = 2\nsubnets = 1\nhosts = 1\nminutes = 1\n";
    let directory = tempfile::tempdir().unwrap();
    let figures = play(directory.path(), HEAD).await.unwrap();
    assert_eq!((&figures["seed"], &figures["first_violation"]), (&2.into(), &serde_json::Value::Null));
    fs::write(directory.path().join("rtt.csv"), "0,20\n20,0\n").unwrap();
    assert!(play(directory.path(), &format!("{HEAD}latency = \"rtt.csv\"\n")).await.is_ok(), "a matrix beside the scenario");
    for (more, exit, says) in [
        ("colour = 1", Exit::Data, "line 5: there is no key \"colour\""),
        ("latency = \"sprad\"", Exit::Data, "line 5: latency"),
        ("rule = \"no-hallo\"", Exit::Data, "line 5: rule"),
        ("[[at]]\nt = \"1s\"\ndo = \"explode\"", Exit::Data, "line 7: do: nothing is called \"explode\""),
        ("[[at]]\nt = \"10s\"\ndo = \"kill\"\nwho = [0, 1]", Exit::Broken, "no member runs"),
    ] {
        let (status, message) = play(directory.path(), &format!("{HEAD}{more}\n")).await.unwrap_err();
        assert_eq!(status, exit, "{more}: {message}");
        assert!(message.contains(says), "{more}: {message}");
    }
}
