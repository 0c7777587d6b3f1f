//! Do the commands keep their promises, against a served API and without one?

use super::{Cli, Exit, Failure, Style, perform};
use crate::node::api::fake::FakeNode;
use clap::{CommandFactory, Parser};

async fn type_in(line: &str) -> Result<String, Failure> {
    let cli = Cli::try_parse_from(["nearcrawl"].into_iter().chain(line.split_whitespace())).unwrap();
    perform(cli.command, Style::Plain).await
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_teaches_by_examples() {
    fn look(command: &clap::Command, path: &str) {
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(examples.contains("Examples:") && examples.contains("nearcrawl"), "{path} --help has no examples");
        for inner in command.get_subcommands() {
            look(inner, &format!("{path} {}", inner.get_name()));
        }
    }
    look(&Cli::command(), "nearcrawl");
}

#[test]
fn every_example_can_be_typed() {
    fn collect(command: &clap::Command, lines: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        lines.extend(help.lines().filter_map(|line| line.strip_prefix("  nearcrawl ")).map(str::to_owned));
        command.get_subcommands().for_each(|inner| collect(inner, lines));
    }
    let mut lines = Vec::new();
    collect(&Cli::command(), &mut lines);
    assert!(lines.len() > 20, "{lines:?}");
    for line in lines {
        // The command ends where three spaces, a pipe, a redirection or another command begin.
        let end = ["   ", " | ", " > ", " && ", " \\"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
        let words = line[..end].split_whitespace();
        assert!(Cli::try_parse_from(["nearcrawl"].into_iter().chain(words)).is_ok(), "nearcrawl {line}");
    }
}

#[tokio::test]
async fn without_a_daemon_every_reading_command_says_so_and_ends_with_69() {
    // A port that was free a moment ago, and that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for line in ["status", "peers", "results", "why a.test", "leave", "seed add http://a.test/"] {
        let failure = type_in(&format!("{line} --api http://{free}")).await.unwrap_err();
        assert_eq!(failure.exit, Exit::Unavailable, "{line}");
        assert!(failure.message.contains("no daemon answers"), "{failure}");
        assert!(failure.hint.unwrap().contains("nearcrawl run"), "{line}");
    }
    assert_eq!(type_in("status --api ftp://x").await.unwrap_err().exit, Exit::Usage);
    assert_eq!(type_in("status --api 127.0.0.1:4880").await.unwrap_err().exit, Exit::Usage);
}

#[tokio::test]
async fn something_else_on_the_port_is_not_taken_for_a_daemon() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let router = axum::Router::new().fallback(|| async { "<html>a printer</html>" });
        tokio::select! { _ = axum::serve(listener, router) => {}, () = futures::future::pending() => {} }
    });
    let failure = type_in(&format!("status --api http://{address}")).await.unwrap_err();
    assert!(failure.exit == Exit::Unavailable && failure.message.contains("does not answer like a nearcrawl"), "{failure}");
    serving.abort();
    let _ = serving.await;
}

#[tokio::test]
async fn status_peers_and_why_read_well() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let status = type_in(&format!("status {api}")).await.unwrap();
    assert!(status.starts_with("fetching from 3 servers\n"), "{status}");
    assert!(status.contains("14 of 55 claimed subnets") && status.contains("4 alive, 0 silent, 1 dead"), "{status}");

    let peers = type_in(&format!("peers {api}")).await.unwrap();
    let lines: Vec<_> = peers.lines().collect();
    assert_eq!(lines.len(), 6, "{peers}");
    assert!(lines[1].contains(" me ") && lines[5].contains("dead") && lines[5].contains("none yet"), "{peers}");

    let why = type_in(&format!("why https://museum.ke.test/a {api}")).await.unwrap();
    for part in ["https://museum.ke.test/a", "country KE › Kenya Education Network", "(me), alive", "the owner before it died", "in 1.4 s"]
    {
        assert!(why.contains(part), "{part} is missing in\n{why}");
    }
    let failure = type_in(&format!("why http:// {api}")).await.unwrap_err();
    assert!(failure.exit == Exit::Data && failure.hint.is_some(), "{failure}");
    assert!(type_in(&format!("leave {api}")).await.unwrap().contains("14 subnets"));
    node.end().await;
}

#[tokio::test]
async fn json_is_what_the_api_says() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--json --api {}", node.url("/"));
    for (line, key) in [("status", "/sentence"), ("peers", "/0/access_point"), ("results", "/summary/total"), ("why a.test", "/path/0")] {
        let text = type_in(&format!("{line} {api}")).await.unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value.pointer(key).is_some(), "{line}: {text}");
    }
    node.end().await;
}

#[tokio::test]
async fn results_come_as_table_and_as_csv() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let text = type_in(&format!("results --by country {api}")).await.unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("52 servers (46 up), "), "{text}");
    assert!(lines[1].starts_with("exact; 4 access points, oldest numbers 1.9 s old"), "{text}");
    assert_eq!(lines[2], "260 external URLs named, of 156 hosts in 104 domains, counted once a server");
    assert!(lines[4].starts_with("country  servers  up  pages"), "{text}");
    assert!(lines[5].starts_with("KE            21  19"), "{text}");
    assert_eq!(lines.len(), 5 + 5, "{text}");

    let text = type_in(&format!("results --csv {api}")).await.unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let (width, urls) = (headers.len(), headers.iter().position(|name| name == "external_urls").unwrap());
    let (mut by_country, mut by_country_urls) = (0, 0);
    for row in reader.records() {
        let row = row.unwrap();
        assert_eq!(row.len(), width);
        if &row[0] == "country" {
            by_country += row[2].parse::<u64>().unwrap();
            by_country_urls += row[urls].parse::<u64>().unwrap();
        }
    }
    assert_eq!((by_country, by_country_urls), (52, 260), "the values of a split add up to the total");
    assert!(text.contains("\"A very long organisation name that has to be cut somewhere, Limited"), "{text}");
    node.end().await;
}

#[tokio::test]
async fn seeds_come_from_files_in_batches() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("seeds.txt");
    let urls: String = (0..1_201).map(|i| format!("http://s{i}.test/\n")).collect();
    std::fs::write(&file, format!("# seeds\n\n{urls}http://b.invalid/\n")).unwrap();
    let text = type_in(&format!("seed add http://a.test/ -f {} {api}", file.display())).await.unwrap();
    assert!(text.starts_with("1202 accepted, 1 refused\n  http://b.invalid/: out of scope"), "{text}");

    assert_eq!(type_in(&format!("seed add nonsense {api}")).await.unwrap_err().exit, Exit::Data);
    assert_eq!(type_in(&format!("seed add -f {}/none {api}", directory.path().display())).await.unwrap_err().exit, Exit::NoInput);
    node.end().await;
}

#[tokio::test]
async fn a_wrong_configuration_is_explained_and_ends_with_78() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("node.toml");
    std::fs::write(&file, "[crawl]\ndeph = 8\n").unwrap();
    for line in ["check", "init", "run", "crawl http://a.test/"] {
        let failure = type_in(&format!("{line} --config {}", file.display())).await.unwrap_err();
        assert_eq!(failure.exit, Exit::Config, "{line}");
        assert!(failure.message.contains("deph") && failure.message.contains('2'), "{failure}");
    }
    std::fs::write(&file, "contact = \"you@example.org\"\n").unwrap();
    let text = type_in(&format!("check --config {}", file.display())).await.unwrap();
    assert!(text.ends_with("node.toml: no mistakes\n"), "{text}");
    assert_eq!(type_in("run --config /nowhere.toml").await.unwrap_err().exit, Exit::Config);
}

#[tokio::test]
async fn manual_pages_and_completions_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    type_in(&format!("man {}", directory.path().display())).await.unwrap();
    let page = std::fs::read_to_string(directory.path().join("nearcrawl-crawl.1")).unwrap();
    assert!(page.contains("Examples") && page.contains("follow"), "{page}");
    assert!(directory.path().join("nearcrawl.1").exists() && directory.path().join("nearcrawl-seed-add.1").exists());
    assert!(type_in("man").await.unwrap().contains(".TH nearcrawl 1"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(type_in(&format!("completions {shell}")).await.unwrap().contains("results"), "{shell}");
    }
}

#[test]
fn the_process_ends_with_the_codes_that_the_help_promises() {
    let ends = |line: &str| format!("{:?}", super::main(line.split_whitespace().map(Into::into)));
    let code = |code: u8| format!("{:?}", std::process::ExitCode::from(code));
    let cases = [
        ("nearcrawl --version", 0),
        ("nearcrawl results --help", 0),
        ("nearcrawl completions bash", 0),
        ("nearcrawl", 64),
        ("nearcrawl fly", 64),
        ("nearcrawl results --by planet", 64),
        ("nearcrawl crawl nonsense", 65),
        ("nearcrawl seed add -f /nowhere/seeds.txt", 66),
        ("nearcrawl status --api http://127.0.0.1:1", 69),
        ("nearcrawl check --config /nowhere/node.toml", 78),
    ];
    for (line, expected) in cases {
        assert_eq!(ends(line), code(expected), "{line}");
    }
}
