//! Tests of what is said while a member that owns servers does not answer, and when others have taken over what it had.

use crate::{
    cli::{Cli, Command, CommandError, Exit, Style, results as results_of, servers, tests::type_in, trend},
    node::api::{
        ErrorView, SumsBody,
        fake::{access_point, cross_table, results, server_rows, survey},
    },
};
use axum::{
    Json, Router,
    extract::{Path, Query, State},
    http::StatusCode,
    routing::get,
};
use clap::Parser;
use futures::future::join_all;
use nearcrawl_model::{
    server_rows::{RowsOf, ServerOwner},
    summary::Dimension,
    survey::SurveyView,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, task::JoinHandle};

/// Servers of both members, and of the one that answers.
const ALL: u64 = 25;
const OF_ONE: u64 = 13;

/// What becomes of the second of two members, and of what it had.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    /// It is dead.
    Dead,
    /// The first one takes over what it had, once the owners were asked for.
    TakenOver,
    /// It is an owner no more, and nobody takes over what it had.
    Gone,
    /// It tells three rows and the names of all its hosts, and nothing more.
    Stops,
    /// It tells no row, and of its hosts always the same.
    Stutters,
    /// It released what it had, and nobody has claimed it: the one owner answers, and the last consistent totals have all servers.
    Released,
}

/// A daemon that asks two members.
struct Daemon {
    second: Second,
    owners_asked: AtomicUsize,
    /// How often the second one was asked.
    second_asked: AtomicUsize,
    /// What commands gave it to keep, by question.
    kept: Kept,
    /// The revision of its survey.
    revision: u64,
}

type Kept = Arc<Mutex<BTreeMap<String, Value>>>;

type Answer = Result<Json<Value>, (StatusCode, Json<ErrorView>)>;

impl Daemon {
    async fn start(second: Second) -> (String, JoinHandle<()>) {
        Daemon::serve(Arc::new(Daemon::of(second, Kept::default()))).await
    }

    /// One that has been given these sums before.
    fn of(second: Second, kept: Kept) -> Daemon {
        Daemon { second, owners_asked: AtomicUsize::new(0), second_asked: AtomicUsize::new(0), kept, revision: 1 }
    }

    /// The one survey that it knows.
    fn survey(&self) -> Json<SurveyView> {
        Json(SurveyView { revision: self.revision, ..survey() })
    }

    async fn serve(daemon: Arc<Daemon>) -> (String, JoinHandle<()>) {
        let router = Router::new()
            .route("/api/cross-table", get(async || Json(cross_table((Dimension::Country, Dimension::Tld)))))
            .route("/api/results", get(async |State(daemon): State<Arc<Daemon>>| daemon.totals()))
            .route("/api/servers/owners", get(async |State(daemon): State<Arc<Daemon>>| daemon.owners()))
            .route("/api/survey", get(async |State(daemon): State<Arc<Daemon>>| daemon.survey()))
            .route("/api/sums", get(Daemon::sums).post(Daemon::keep))
            .route("/api/status", get(async || Json(json!({"swarm": "a1", "access_point": access_point(1)}))))
            .route("/api/{what}/{rows}", get(Daemon::rows))
            .with_state(daemon);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("--api http://{}", listener.local_addr().unwrap());
        (api, tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }))
    }

    /// Those of the fake node, of so many servers, and with an address of which only a part of the hosts was visited.
    fn totals(&self) -> Json<Value> {
        let mut totals = serde_json::to_value(results(0)).unwrap();
        totals["summary"]["total"]["servers"] = ALL.into();
        for (what, hosts) in [("addresses", 1), ("hosts", 100_000), ("sampled", 2_345)] {
            totals["summary"]["estimates"][what] = hosts.into();
        }
        if self.second == Second::Released {
            totals["consistent_age_ms"] = 1_200.into();
            totals["in_transition_text"] = "2 subnets change hands".into();
        }
        Json(totals)
    }

    fn owners(&self) -> Json<Vec<ServerOwner>> {
        let asked = self.owners_asked.fetch_add(1, Ordering::Relaxed);
        let one = |number, servers| ServerOwner { access_point: access_point(number), servers };
        let all = [one(1, OF_ONE), one(0, ALL - OF_ONE)];
        Json(match self.second {
            Second::TakenOver if asked > 0 => vec![one(1, ALL)],
            Second::Gone if asked > 0 => vec![one(1, OF_ONE)],
            Second::Released => vec![one(1, OF_ONE)],
            _ => all.to_vec(),
        })
    }

    async fn sums(State(daemon): State<Arc<Daemon>>, Query(query): Query<BTreeMap<String, String>>) -> Json<Value> {
        let kept = daemon.kept.lock().unwrap().get(&query["question"]).cloned();
        Json(kept.map_or(json!({"age_ms": null, "sums": null}), |sums| json!({"age_ms": 5_000, "sums": sums})))
    }

    async fn keep(State(daemon): State<Arc<Daemon>>, Json(body): Json<SumsBody>) -> Json<Value> {
        daemon.kept.lock().unwrap().insert(body.question, body.sums);
        Json(json!([]))
    }

    async fn rows(
        State(daemon): State<Arc<Daemon>>,
        Path((what, rows)): Path<(String, String)>,
        Query(query): Query<BTreeMap<String, String>>,
    ) -> Answer {
        let of = query["of"].parse().unwrap();
        let is_second = of != access_point(1);
        daemon.second_asked.fetch_add(usize::from(is_second), Ordering::Relaxed);
        match daemon.second {
            Second::Stops if is_second && (what == "export" || !query.contains_key("after")) => {}
            Second::Stutters if is_second && what == "export" => return Ok(Json(json!({"rows": [], "next": {"host": "a.ke"}}))),
            _ if is_second => {
                let error = ErrorView { error: "it does not answer".to_owned(), hint: String::new() };
                return Err((StatusCode::SERVICE_UNAVAILABLE, Json(error)));
            }
            _ => {}
        }
        let has_all = daemon.second == Second::TakenOver && daemon.owners_asked.load(Ordering::Relaxed) > 1;
        let kind = if rows == "history" { RowsOf::History } else { RowsOf::Servers };
        let after = query.get("after").map(|after| after.parse().unwrap());
        let told = server_rows(kind, of, after.as_ref());
        let host = |row: &str| serde_json::from_str::<Value>(row).unwrap()["host"].as_str().unwrap().to_owned();
        // One that has not taken over has each second one.
        let has = |row: &&String| has_all || (host(row).as_bytes()[2] % 2 == 0) != is_second;
        let rows: Vec<String> = told.rows.iter().filter(has).cloned().collect();
        if what == "export" {
            return Ok(Json(json!({"rows": rows.iter().map(|row| host(row)).collect::<Vec<_>>(), "next": null})));
        }
        let rows = if is_second { rows[..3].to_vec() } else { rows };
        let next = rows.last().filter(|_| is_second).map(|row| host(row));
        Ok(Json(json!({"rows": rows, "next": next})))
    }
}

/// What a command prints, and the error behind it.
async fn told(line: &str) -> (String, Option<CommandError>) {
    let told = match Cli::try_parse_from(["nearcrawl"].into_iter().chain(line.split_whitespace())).unwrap().command {
        Command::Results(args) => results_of::results(&args, Style::Plain).await,
        Command::Servers(args) => servers::servers(&args, Style::Plain).await,
        Command::Trend(args) => trend::trend(&args, Style::Plain).await,
        other => panic!("{other:?}"),
    };
    told.unwrap_or_else(|why| panic!("{line}: {why}"))
}

/// What is asked, and where its JSON has the number of servers.
const LINES: [(&str, &str); 4] = [
    ("results --survey universities", "/summary/total/servers"),
    ("results --survey universities --by label,rule", "/servers"),
    ("results --run 2", "/total/servers"),
    ("trend --from 1 --to 2", "/total/servers"),
];

/// Asks each as JSON, as text and, where there is one, as CSV, all at once.
async fn all_told(api: &str) -> Vec<(&'static str, &'static str, String, Option<CommandError>)> {
    let forms = LINES.iter().flat_map(|(line, place)| ["--json", "", "--csv"].map(|form| (*line, *place, form)));
    let forms = forms.filter(|(line, _, form)| !line.starts_with("trend") || *form != "--csv");
    join_all(forms.map(async |(line, place, form)| {
        let (text, failure) = told(&format!("{line} {form} {api}")).await;
        (if form == "--json" { place } else { "" }, form, text, failure)
    }))
    .await
}

#[tokio::test]
async fn numbers_without_the_rows_of_a_member_say_so_and_end_with_69() {
    let (api, serving) = Daemon::start(Second::Dead).await;
    for (place, form, text, failure) in all_told(&api).await {
        let failure = failure.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(failure.exit, Exit::Unavailable, "{failure}");
        assert!(failure.message.starts_with("servers are missing: ") && failure.message.contains("it does not answer"), "{failure}");
        match form {
            "--json" => {
                let told: Value = serde_json::from_str(&text).unwrap();
                assert_eq!((told.pointer(place), &told["all_owners_answered"]), (Some(&OF_ONE.into()), &Value::Bool(false)), "{told}");
                let missing = told["missing_text"].as_array().unwrap();
                let of = format!("rows of {} of the swarm's {ALL} servers, of 1 owner", ALL - OF_ONE);
                assert_eq!((missing.len(), &missing[0]), (2, &Value::from(of)), "{told}");
            }
            "--csv" => assert!(text.contains(",false,") && text.contains("it does not answer"), "{text}"),
            _ => assert!(text.contains(&format!("{OF_ONE} server")), "{text}"),
        }
    }
    // Whether those that are missing have such a run is not known.
    let unknown = type_in(&format!("results --run 7 {api}")).await.unwrap_err();
    assert_eq!(unknown.exit, Exit::Unavailable, "{unknown}");
    serving.abort();
}

#[tokio::test]
async fn a_table_of_all_servers_without_the_rows_for_its_estimates_says_so_and_ends_with_69() {
    let line = "results --by country,tld";
    let (api, serving) = Daemon::start(Second::Dead).await;
    for form in ["--json", "", "--csv"] {
        let (text, failure) = told(&format!("{line} {form} {api}")).await;
        let failure = failure.unwrap_or_else(|| panic!("{text}"));
        assert!(failure.exit == Exit::Unavailable && failure.message.contains("is not estimated: servers are missing: "), "{failure}");
        match form {
            "--json" => {
                let told: Value = serde_json::from_str(&text).unwrap();
                assert_eq!((&told["estimates"], &told["all_owners_answered"]), (&Value::Null, &Value::Bool(false)), "{told}");
                assert_eq!((&told["sample"]["hosts"], &told["cells"][0]["counts"]["servers"]), (&100_000.into(), &20.into()), "{told}");
            }
            "--csv" => {
                let rows =
                    csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect::<Vec<BTreeMap<String, String>>>();
                assert_eq!((rows.len(), rows[0]["servers"].as_str()), (3, "20"), "what was counted is there: {text}");
                for row in rows {
                    assert_eq!((row["all_owners_answered"].as_str(), row["exact"].as_str()), ("false", "true"), "{text}");
                    assert!(row["missing_text"].contains("it does not answer"), "{text}");
                    let empty =
                        row.iter().filter(|(name, cell)| (name.ends_with("_estimated") || name.ends_with("_margin")) && cell.is_empty());
                    assert_eq!(empty.count(), 12, "{text}");
                }
            }
            _ => {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains("is not estimated") && words.contains("it does not answer"), "{text}");
            }
        }
    }
    serving.abort();
    // With all rows it is estimated: here they say that every host was visited.
    let (api, serving) = Daemon::start(Second::TakenOver).await;
    let (text, failure) = told(&format!("{line} --json {api}")).await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((failure, &told["estimates"]["addresses"], &told["sample"]["addresses"]), (None, &0.into(), &0.into()), "{told}");
    serving.abort();
}

/// What a command prints, with sums kept in this directory.
async fn told_keeping(directory: &std::path::Path, line: &str) -> (String, Option<CommandError>) {
    let mut command = Cli::try_parse_from(["nearcrawl"].into_iter().chain(line.split_whitespace())).unwrap().command;
    *command.keeps_sums().unwrap_or_else(|| panic!("{line}")) = Some(directory.to_owned());
    let told = match command {
        Command::Results(args) => results_of::results(&args, Style::Plain).await,
        Command::Trend(args) => trend::trend(&args, Style::Plain).await,
        other => panic!("{other:?}"),
    };
    told.unwrap_or_else(|why| panic!("{line}: {why}"))
}

#[tokio::test]
async fn while_a_dead_member_is_replaced_the_last_whole_sums_answer_with_their_age() {
    let directory = tempfile::tempdir().unwrap();
    for (line, _) in LINES {
        let (api, serving) = Daemon::start(Second::TakenOver).await;
        let (text, failure) = told_keeping(directory.path(), &format!("{line} --json {api}")).await;
        let told: Value = serde_json::from_str(&text).unwrap();
        assert!(failure.is_none() && told["consistent_age_ms"].is_null() && told["in_transition_text"].is_null(), "{line}: {told}");
        serving.abort();
    }
    let (api, serving) = Daemon::start(Second::Dead).await;
    let asked = LINES.into_iter().flat_map(|(line, place)| ["--json", "", "--csv"].map(|form| (line, place, form)));
    let asked = asked.filter(|(line, _, form)| !line.starts_with("trend") || *form != "--csv");
    let all = join_all(asked.map(async |(line, place, form)| {
        let (text, failure) = told_keeping(directory.path(), &format!("{line} {form} {api}")).await;
        (place, form, text, failure)
    }));
    for (place, form, text, failure) in all.await {
        assert_eq!(failure, None, "{text}");
        match form {
            "--json" => {
                let told: Value = serde_json::from_str(&text).unwrap();
                assert_eq!((told.pointer(place), &told["all_owners_answered"]), (Some(&ALL.into()), &Value::Bool(true)), "{told}");
                assert!(told["consistent_age_ms"].as_u64().is_some_and(|age| age <= 60_000), "{told}");
                assert!(told["in_transition_text"].as_str().unwrap().contains("it does not answer"), "{told}");
            }
            "--csv" => {
                let mut reader = csv::Reader::from_reader(text.as_bytes());
                let at = reader.headers().unwrap().iter().position(|name| name == "consistent_age_ms").unwrap();
                assert!(reader.records().all(|row| row.unwrap()[at].parse::<u64>().is_ok()), "{text}");
                assert!(text.contains("it does not answer") && text.contains(",true,"), "{text}");
            }
            _ => {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains(&format!("{ALL} servers")), "{text}");
                assert!(words.contains("in transition: last consistent totals, as they were "), "{text}");
            }
        }
    }
    // Another question was not asked while all rows were there.
    let (_, failure) = told_keeping(directory.path(), &format!("results --survey universities --by tld,rule {api}")).await;
    assert_eq!(failure.map(|why| why.exit), Some(Exit::Unavailable));
    serving.abort();
}

#[tokio::test]
async fn whoever_asks_first_is_told_the_whole_sums_that_the_daemon_was_given_by_others() {
    let kept = Kept::default();
    for (line, _) in LINES {
        let (api, serving) = Daemon::serve(Arc::new(Daemon::of(Second::TakenOver, Arc::clone(&kept)))).await;
        told(&format!("{line} --json {api}")).await;
        serving.abort();
    }
    assert_eq!(kept.lock().unwrap().len(), LINES.len(), "each is a question of its own");
    for second in [Second::Dead, Second::Released] {
        let (api, serving) = Daemon::serve(Arc::new(Daemon::of(second, Arc::clone(&kept)))).await;
        for (place, form, text, failure) in all_told(&api).await {
            assert_eq!(failure, None, "{text}");
            if form == "--json" {
                let told: Value = serde_json::from_str(&text).unwrap();
                assert_eq!((told.pointer(place), &told["consistent_age_ms"]), (Some(&ALL.into()), &5_000.into()), "{told}");
                let why = told["in_transition_text"].as_str().unwrap();
                assert!(why.contains("servers are missing") && why.ends_with("as another command gave them to the daemon"), "{told}");
            }
        }
        serving.abort();
    }
}

#[tokio::test]
async fn sums_of_a_survey_before_it_was_changed_do_not_answer() {
    let kept = Kept::default();
    let lines: Vec<&str> = LINES[..2].iter().map(|(line, _)| *line).chain(["results --run 2 --survey universities"]).collect();
    for line in &lines {
        let (api, serving) = Daemon::serve(Arc::new(Daemon::of(Second::TakenOver, Arc::clone(&kept)))).await;
        told(&format!("{line} --json {api}")).await;
        serving.abort();
    }
    for (revision, failure) in [(1, None), (2, Some(Exit::Unavailable))] {
        let daemon = Daemon { revision, ..Daemon::of(Second::Dead, Arc::clone(&kept)) };
        let (api, serving) = Daemon::serve(Arc::new(daemon)).await;
        let all = join_all(lines.iter().map(async |line| told(&format!("{line} --json {api}")).await.1.map(|why| why.exit)));
        assert!(all.await.iter().all(|exit| *exit == failure), "revision {revision}");
        serving.abort();
    }
}

#[tokio::test]
async fn rows_that_nobody_has_while_owners_change_are_missing_though_every_owner_answers() {
    let (api, serving) = Daemon::start(Second::Released).await;
    for (place, form, text, failure) in all_told(&api).await {
        let failure = failure.unwrap_or_else(|| panic!("{text}"));
        let of = format!("rows of {} of the swarm's {ALL} servers, while owners change: 2 subnets change hands", ALL - OF_ONE);
        assert!(failure.exit == Exit::Unavailable && failure.message.contains(&of), "{failure}");
        if form == "--json" {
            let told: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((told.pointer(place), &told["all_owners_answered"]), (Some(&OF_ONE.into()), &Value::Bool(false)), "{told}");
            assert_eq!(told["missing_text"], json!([of]), "{told}");
        }
    }
    // A report says so in its text, an export and a list of servers by their exit codes.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.jsonl");
    for line in [format!("export history --out {}", file.display()), "servers".to_owned()] {
        let failure = type_in(&format!("{line} {api}")).await.unwrap_err();
        assert!(failure.exit == Exit::Unavailable && failure.message.contains("while owners change"), "{line}: {failure}");
    }
    serving.abort();
}

#[tokio::test]
async fn what_others_have_taken_over_meanwhile_is_not_missing() {
    for (line, place) in LINES {
        let (api, serving) = Daemon::start(Second::TakenOver).await;
        let (text, failure) = told(&format!("{line} --json {api}")).await;
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((told.pointer(place), failure), (Some(&ALL.into()), None), "{line}: {told}");
        assert_eq!(told["missing_text"], json!([]), "{line}");
        serving.abort();
    }
    let (api, serving) = Daemon::start(Second::TakenOver).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("servers.jsonl");
    type_in(&format!("export servers --out {} {api}", file.display())).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count() as u64, ALL);
    serving.abort();
}

/// The servers of a survey that are told, and what is said to be missing.
async fn told_and_missing(second: Second) -> (u64, String, usize) {
    let daemon = Arc::new(Daemon::of(second, Kept::default()));
    let (api, serving) = Daemon::serve(Arc::clone(&daemon)).await;
    let (line, place) = LINES[0];
    let (text, failure) = told(&format!("{line} --json {api}")).await;
    serving.abort();
    let told: Value = serde_json::from_str(&text).unwrap();
    let failure = failure.unwrap_or_else(|| panic!("nothing is said to be missing: {told}"));
    assert_eq!((failure.exit, &told["all_owners_answered"]), (Exit::Unavailable, &Value::Bool(false)), "{failure}");
    (told.pointer(place).unwrap().as_u64().unwrap(), failure.message, daemon.second_asked.load(Ordering::Relaxed))
}

#[tokio::test]
async fn what_nobody_has_taken_over_is_missing_although_its_owner_is_none_any_more() {
    let (servers, missing, _) = told_and_missing(Second::Gone).await;
    assert!(servers == OF_ONE && missing.contains("it does not answer"), "{servers}: {missing}");
}

#[tokio::test]
async fn a_list_of_hosts_that_comes_to_no_end_shows_nothing_to_be_there() {
    let (servers, missing, _) = told_and_missing(Second::Stutters).await;
    assert!(servers == OF_ONE && missing.contains("do not advance"), "{servers}: {missing}");
}

#[tokio::test]
async fn an_owner_that_stops_answering_is_not_asked_for_each_of_its_hosts() {
    let (servers, missing, asked) = told_and_missing(Second::Stops).await;
    assert!(servers == OF_ONE + 3 && missing.contains("it does not answer"), "{servers}: {missing}");
    // One answer, four tries for the next, and in each of three rounds the list and four tries.
    assert!(asked <= 20, "it was asked {asked} times");
}
