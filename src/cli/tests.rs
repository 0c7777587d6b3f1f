//! Tests of the commands, against a served API and without one.

use super::{Cli, CommandError, Exit, Style, perform};
use crate::node::api::fake::FakeNode;
use clap::{CommandFactory, Parser};

mod check;
mod json;
mod missing_rows;

pub(in crate::cli) async fn type_in(line: &str) -> Result<String, CommandError> {
    let cli = Cli::try_parse_from(["nearcrawl"].into_iter().chain(line.split_whitespace())).unwrap();
    // A test that types many commands has all their futures on its stack, which is 2 MiB: each is as large as the largest command's.
    Box::pin(perform(cli.command, Style::Plain)).await
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
fn a_usage_line_has_no_option_that_only_the_environment_gives() {
    // A variable that is set wherever cargo runs tests, in the place of NEARCRAWL_API.
    let api = || clap::Arg::new("api").long("api").value_name("URL").env("CARGO_MANIFEST_DIR");
    let asked = || clap::Command::new("why").arg(api()).arg(clap::Arg::new("host").value_name("HOST").required(true));
    let command = || clap::Command::new("nearcrawl").subcommand(asked());
    let usage = |typed: &[&str]| {
        let typed: Vec<std::ffi::OsString> = typed.iter().map(Into::into).collect();
        let error = command().try_get_matches_from(&typed).unwrap_err();
        super::as_typed(command(), &typed, error).to_string()
    };
    let lacking = usage(&["nearcrawl", "why"]);
    assert!(lacking.contains("<HOST>") && !lacking.contains("--api"), "{lacking}");
    let typed = usage(&["nearcrawl", "why", "--api", "http://127.0.0.1:1"]);
    assert!(typed.contains("--api <URL>"), "{typed}");
    assert!(usage(&["nearcrawl", "why", "--help"]).contains("[env: CARGO_MANIFEST_DIR="), "help names the variable");
}

#[test]
fn every_example_can_be_typed() {
    fn collect(command: &clap::Command, lines: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace(" \\\n    ", " ");
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
    for line in ["status", "members", "results", "why a.test", "leave", "seed add http://a.test/"] {
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
    assert!(failure.exit == Exit::Unavailable && failure.message.contains("is not a nearcrawl daemon"), "{failure}");
    serving.abort();
    let _ = serving.await;
}

#[tokio::test]
async fn status_members_and_why_read_well() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let status = type_in(&format!("status {api}")).await.unwrap();
    assert!(status.starts_with("fetching from 3 servers\n"), "{status}");
    assert!(status.contains("14 of 55 claimed subnets") && status.contains("4 alive, 0 silent, 1 dead"), "{status}");
    assert!(status.contains("/ip4/127.10.0.1/tcp/4817/p2p/"), "what others join by is missing in\n{status}");
    assert!(!status.contains("\ntask "), "tasks without a fault are for --json:\n{status}");

    let members = type_in(&format!("members {api}")).await.unwrap();
    let lines: Vec<_> = members.lines().collect();
    assert_eq!(lines.iter().position(|line| line.is_empty()), Some(6), "{members}");
    let told = members.split_once("What members tell of themselves:\n").unwrap().1;
    assert!(
        told.lines().count() == 3 && told.contains("<b>x</b> & <img src=x>") && told.contains("outside its hours (day 40 %)"),
        "{members}"
    );
    assert!(lines[4].contains("unknown, through a relay") && !lines[4].contains("127.11"), "not at its relay's address: {members}");
    assert!(lines[1].contains(" me ") && lines[5].contains("dead") && lines[5].contains("none yet"), "{members}");

    let why = type_in(&format!("why https://museum.ke.test/a {api}")).await.unwrap();
    for part in ["https://museum.ke.test/a", "country KE › Kenya Education Network", "(me), alive", "the previous owner died", "in 1.4 s"]
    {
        assert!(why.contains(part), "{part} is missing in\n{why}");
    }
    let flat = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("failing 23a2a8 Image has non-empty accessible name: https://museum.ke.test/"), "{why}");
    assert!(flat.contains(" line 12, ") && flat.contains("and 2 more (--json)"), "{why}");
    for wrong in ["http://", "nonsense!"] {
        let failure = type_in(&format!("why {wrong} {api}")).await.unwrap_err();
        assert!(failure.exit == Exit::Data && failure.hint.as_ref().unwrap().contains("nearcrawl why museum.or.ke"), "{failure}");
    }
    assert!(type_in(&format!("leave {api}")).await.unwrap().contains("14 subnets"));
    node.end().await;
}

/// The widest line in columns.
fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[tokio::test]
async fn no_table_is_wider_than_100_columns_in_a_pipe() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    for line in [
        "status",
        "members",
        "results",
        "results --by organisation",
        "why https://museum.ke.test/a",
        "plan --coverage 0.9 --assumed",
        "servers",
        "swarm members",
    ] {
        let text = type_in(&format!("{line} {api}")).await.unwrap();
        assert!(widest(&text) <= 100, "{line} has {} columns:\n{text}", widest(&text));
    }
    node.end().await;
}

#[test]
fn help_is_wrapped_evenly_at_80_and_100_columns() {
    fn look(command: &clap::Command, path: &str, wrong: &mut Vec<String>) {
        for columns in [80, 100] {
            let text = command.clone().term_width(columns).render_long_help().to_string();
            if widest(&text) > columns {
                wrong.push(format!("{path} --help has {} columns at {columns}", widest(&text)));
            }
        }
        // Examples must not be broken: whoever wraps them cannot paste them.
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            if line.chars().count() > 80 {
                wrong.push(format!("{path} --help: {} columns: {line}", line.chars().count()));
            }
        }
        // Paragraphs are single lines, so that they fill whatever width there is.
        for pair in help.lines().collect::<Vec<_>>().windows(2) {
            let broken = pair.iter().all(|line| !line.is_empty() && !line.starts_with(' ')) && !pair[0].ends_with(':');
            if broken {
                wrong.push(format!("{path} --help breaks a paragraph by hand: {pair:?}"));
            }
        }
        command.get_subcommands().for_each(|inner| look(inner, &format!("{path} {}", inner.get_name()), wrong));
    }
    let mut command = Cli::command();
    command.build();
    let mut wrong = Vec::new();
    look(&command, "nearcrawl", &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_subnet_is_moved_to_a_member_named_by_the_end_of_its_peer_id() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let members: Vec<nearcrawl_model::view::MemberView> =
        serde_json::from_str(&type_in(&format!("members --json {api}")).await.unwrap()).unwrap();
    let short = members[1].access_point.short();
    let said = type_in(&format!("move 192.0.2.0/24 {short} {api}")).await.unwrap();
    assert!(said.starts_with(&format!("handing 192.0.2.0/24 over to {short}")), "{said}");
    let failure = type_in(&format!("move 192.0.2.0/24 00000000 {api}")).await.unwrap_err();
    assert!(failure.exit == Exit::Data && failure.message.contains("no member"), "{failure}");
    node.end().await;
}

#[tokio::test]
async fn servers_are_listed_as_they_are_wanted() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let all = type_in(&format!("servers {api}")).await.unwrap();
    let on_record = all.lines().filter(|line| line.contains(".ke.test")).count();
    assert!(on_record > 1 && all.ends_with(&format!("{on_record} servers on record\n")), "{all}");
    assert!(widest(&all) <= 100 && all.starts_with("host"), "{all}");
    let one = type_in(&format!("servers --tld test --status up --software NGINX --sort pages --limit 1 {api}")).await.unwrap();
    assert!(one.contains(&format!("{on_record} servers on record, 1 shown (--limit 0 shows all)")), "{one}");
    assert_eq!(one.lines().filter(|line| line.contains(".ke.test")).count(), 1, "{one}");
    let none = type_in(&format!("servers --status down {api}")).await.unwrap();
    assert_eq!(none, format!("0 of {on_record} servers on record\n"));
    let reversed: serde_json::Value = serde_json::from_str(&type_in(&format!("servers --reverse --json {api}")).await.unwrap()).unwrap();
    let names: Vec<_> = reversed.as_array().unwrap().iter().map(|server| server["host"].as_str().unwrap()).collect();
    assert!(names.len() == on_record && names.is_sorted_by(|one, other| one > other), "{names:?}");
    assert!(Cli::try_parse_from(["nearcrawl", "servers", "--status", "broken"]).is_err());
    node.end().await;
}

#[test]
fn errors_are_json_where_answers_are() {
    let words = |line: &str| line.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>();
    assert!(super::wants_json(&words("nearcrawl status --json")) && !super::wants_json(&words("nearcrawl evaluate -- --json")));
    let error = CommandError::new(Exit::Unavailable, "no daemon").hint("start it").as_json();
    assert_eq!(error, serde_json::json!({ "error": "no daemon", "hint": "start it", "exit_code": 69 }));
}

#[tokio::test]
async fn json_is_what_the_api_says() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--json --api {}", node.url("/"));
    for (line, key) in
        [("status", "/state_text"), ("members", "/0/access_point"), ("results", "/summary/total"), ("why a.test", "/path_text/0")]
    {
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
    assert!(lines[0].contains(" MB of pages, ") && lines[0].ends_with(" MB moved"), "{text}");
    let freshness = "in transition: 10 servers are in their first run and counted with what they have so far; totals of 4 members, \
                     each confirmed in the last";
    assert!(lines[1..3].join(" ").starts_with(freshness), "{text}");
    let lines = &lines[1..];
    assert_eq!(lines[2], "distinct servers: 52 hosts at 40 addresses in 47 domains; distinct external: ≈ 1990 hosts ± 2 % in");
    assert_eq!(lines[3], "191 domains");
    assert_eq!(lines[4], "external links, summed over servers (not distinct): 260 URLs, 156 hosts, 104 domains");
    let held_back = "held back until later: 26 URLs by the page budget, 5 URLs not queued because too many waited, 13 new hosts by the \
                     limit for a site and day, 7 new hosts by the limit for a domain and day";
    assert_eq!(lines[5..7].join(" "), held_back, "{text}");
    assert!(lines[7].starts_with("evaluated by several rule sets, whose failures do not compare: rule set 1: "), "{text}");
    let lines = &lines[3..];
    assert!(lines[8].starts_with("country  servers  up  pages  requests"), "{text}");
    assert!(lines[8].contains("      size     moved  cut"), "{text}");
    assert!(lines[9].starts_with("KE            21  19"), "{text}");
    assert_eq!(lines.len(), 9 + 5, "{text}");

    let text = type_in(&format!("results --csv {api}")).await.unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let width = headers.len();
    let sums = ["servers", "external_urls", "page_bytes", "bytes", "waiting_urls", "hosts_held_by_site_limit"];
    let sums = sums.map(|name| headers.iter().position(|head| head == name).unwrap());
    let mut by_country = [0; 6];
    for row in reader.records() {
        let row = row.unwrap();
        assert_eq!(row.len(), width);
        if &row[0] == "country" {
            sums.iter().zip(&mut by_country).for_each(|(column, sum)| *sum += row[*column].parse::<u64>().unwrap());
        }
    }
    let [servers, external_urls, page_bytes, bytes, waiting_urls, held] = by_country;
    assert_eq!((servers, external_urls, waiting_urls, held), (52, 260, 104, 5 + 3 + 2 + 1), "the values of a split add up to the total");
    assert_eq!(page_bytes - bytes, 52 * 7 * 35_211, "both sizes are told");
    assert!(text.contains("\"A very long organisation name that has to be cut somewhere, Limited"), "{text}");
    node.end().await;
}

#[tokio::test]
async fn two_breakdowns_go_together_in_one_table() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let text = type_in(&format!("results --by country,tld {api}")).await.unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "exact", "{text}");
    assert!(lines[2].starts_with("country  tld  servers  up") && lines[3].starts_with("KE       ke        20  20"), "{text}");
    let text = type_in(&format!("results --by country,tld --csv {api}")).await.unwrap();
    assert!(text.starts_with("country,tld,servers,up,pages,") && text.contains("\nTZ,tz,14,14,"), "{text}");
    for (wrong, says) in [
        ("country,country", "twice"),
        ("country,tld,http", "one or two"),
        ("label,country", "needs --survey"),
        ("rule,country --run 1", "no rule"),
    ] {
        let failure = type_in(&format!("results --by {wrong} {api}")).await.unwrap_err();
        assert!(failure.exit == Exit::Usage && failure.message.contains(says), "{wrong}: {failure}");
    }
    node.end().await;
}

#[tokio::test]
async fn a_trend_compares_two_runs_of_the_same_servers() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let api = format!("--api {}", node.url("/"));
    let text = type_in(&format!("trend --from 1 --to 2 --by country {api}")).await.unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["run 1 to run 2: 25 servers compared", "not compared: none"], "{text}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(lines.iter().any(|line| words(line) == ["pages", "225", "250", "+25", "+11.1", "%"]), "{text}");
    assert!(lines.iter().any(|line| words(line).starts_with(&words("KE 25 0 225 → 250 +11.1 %"))), "{text}");
    assert!(widest(&text) <= 100, "{text}");
    for form in ["", "--json"] {
        let failure = type_in(&format!("trend --from 1 --to 3 {form} {api}")).await.unwrap_err();
        assert!(failure.exit == Exit::Data && failure.message == "no server has a run 3 on record", "{failure}");
    }
    let failure = type_in(&format!("trend --from 2 --to 2 {api}")).await.unwrap_err();
    assert!(failure.exit == Exit::Usage && failure.message.contains("before"), "{failure}");
    node.end().await;
}

#[tokio::test]
async fn why_shows_what_a_server_s_answers_say_of_it() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let text = type_in(&format!("why museum.ke.test --api {}", node.url("/"))).await.unwrap();
    for line in [
        "8.2 ms away, first byte after 21 ms (from KE, AS64512)",
        "HTTP/1.1, offers h3, redirects to https, https only for 365 d 0 h",
        "TLS 1.3, certificate of An Authority of Certificates, Inc., 2026-09-21 to 2026-09-21",
        "Content-Usage: train-ai=n, search=y, more=n; text and data mining reserved",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
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
    std::fs::write(&file, "[crawl]\ndepth 8\n").unwrap();
    let failure = type_in(&format!("check --config {}", file.display())).await.unwrap_err();
    assert!(failure.message.contains("line 2: depth 8: the line cannot be read as TOML"), "{failure}");
    std::fs::write(&file, "").unwrap();
    for line in ["check", "run", "check --json"] {
        let failure = type_in(&format!("{line} --config {}", file.display())).await.unwrap_err();
        assert!(failure.exit == Exit::Config && failure.message.contains("contact is not set"), "{line}: {failure}");
    }
    std::fs::write(&file, "contact = \"crawl@museum.or.ke\"\n").unwrap();
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
    assert!(page.contains("\\-\\-min\\-delay\\fR \\fI<DURATION>"), "the synopsis names values: {page}");
    type_in(&format!("man --section 5 {}", directory.path().display())).await.unwrap();
    assert!(std::fs::read_to_string(directory.path().join("nearcrawl.toml.5")).unwrap().contains(".SH [CRAWL]"));
    std::fs::write(directory.path().join("file"), "").unwrap();
    let failure = type_in(&format!("man {}/file", directory.path().display())).await.unwrap_err();
    assert!(failure.exit == Exit::InUse && failure.hint.unwrap().contains("in the way"), "a file is where the directory should be");
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
