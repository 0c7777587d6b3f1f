//! Tests of what is said while a member that owns servers does not answer, and when others have taken over what it had.

use crate::{
    cli::{Cli, Command, CommandError, Exit, Style, results, servers, tests::type_in, trend},
    node::api::{
        ErrorView,
        fake::{access_point, server_rows},
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
use nearcrawl_model::server_rows::{RowsOf, ServerOwner};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, task::JoinHandle};

/// Servers of both members, and of the one that answers.
const ALL: u64 = 25;
const OF_ONE: u64 = 13;

/// A daemon that asks two members, of which the second one is dead. Whether the first one takes over what it had, once the owners were asked for.
struct Daemon {
    takes_over: bool,
    owners_asked: AtomicUsize,
}

type Answer = Result<Json<Value>, (StatusCode, Json<ErrorView>)>;

impl Daemon {
    async fn start(takes_over: bool) -> (String, JoinHandle<()>) {
        let daemon = Arc::new(Daemon { takes_over, owners_asked: AtomicUsize::new(0) });
        let router = Router::new()
            .route("/api/servers/owners", get(async |State(daemon): State<Arc<Daemon>>| daemon.owners()))
            .route("/api/{what}/{rows}", get(Daemon::rows))
            .with_state(daemon);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("--api http://{}", listener.local_addr().unwrap());
        (api, tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }))
    }

    fn owners(&self) -> Json<Vec<ServerOwner>> {
        let asked = self.owners_asked.fetch_add(1, Ordering::Relaxed);
        let one = |number, servers| ServerOwner { access_point: access_point(number), servers };
        let all = [one(1, OF_ONE), one(0, ALL - OF_ONE)];
        Json(if self.takes_over && asked > 0 { vec![one(1, ALL)] } else { all.to_vec() })
    }

    async fn rows(
        State(daemon): State<Arc<Daemon>>,
        Path((what, rows)): Path<(String, String)>,
        Query(query): Query<BTreeMap<String, String>>,
    ) -> Answer {
        let of = query["of"].parse().unwrap();
        if of != access_point(1) {
            let error = ErrorView { error: "it does not answer".to_owned(), hint: String::new() };
            return Err((StatusCode::SERVICE_UNAVAILABLE, Json(error)));
        }
        let has_all = daemon.takes_over && daemon.owners_asked.load(Ordering::Relaxed) > 1;
        let kind = if rows == "history" { RowsOf::History } else { RowsOf::Servers };
        let after = query.get("after").map(|after| after.parse().unwrap());
        let told = server_rows(kind, of, after.as_ref());
        let host = |row: &str| serde_json::from_str::<Value>(row).unwrap()["host"].as_str().unwrap().to_owned();
        // One that has not taken over has each second one.
        let has = |row: &&String| has_all || host(row).as_bytes()[2] % 2 == 0;
        let rows: Vec<String> = told.rows.iter().filter(has).cloned().collect();
        let rows = if what == "export" { rows.iter().map(|row| host(row)).collect() } else { rows };
        Ok(Json(json!({"rows": rows, "next": null})))
    }
}

/// What a command prints, and the error behind it.
async fn told(line: &str) -> (String, Option<CommandError>) {
    let told = match Cli::try_parse_from(["nearcrawl"].into_iter().chain(line.split_whitespace())).unwrap().command {
        Command::Results(args) => results::results(&args, Style::Plain).await,
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
    let (api, serving) = Daemon::start(false).await;
    for (place, form, text, failure) in all_told(&api).await {
        let failure = failure.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(failure.exit, Exit::Unavailable, "{failure}");
        assert!(failure.message.starts_with("servers are missing: ") && failure.message.contains("it does not answer"), "{failure}");
        match form {
            "--json" => {
                let told: Value = serde_json::from_str(&text).unwrap();
                assert_eq!((told.pointer(place), &told["all_owners_answered"]), (Some(&OF_ONE.into()), &Value::Bool(false)), "{told}");
                assert_eq!(told["missing_text"].as_array().map(Vec::len), Some(1), "{told}");
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
async fn what_others_have_taken_over_meanwhile_is_not_missing() {
    for (line, place) in LINES {
        let (api, serving) = Daemon::start(true).await;
        let (text, failure) = told(&format!("{line} --json {api}")).await;
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((told.pointer(place), failure), (Some(&ALL.into()), None), "{line}: {told}");
        assert_eq!(told["missing_text"], json!([]), "{line}");
        serving.abort();
    }
    let (api, serving) = Daemon::start(true).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("servers.jsonl");
    type_in(&format!("export servers --out {} {api}", file.display())).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count() as u64, ALL);
    serving.abort();
}
