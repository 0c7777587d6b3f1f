//! Checks of surveys: their totals with labels, the rows of their servers, how far they are, and a report of one.

use super::{
    asking::Asking,
    studies,
    totals::{by_split, compare_summary, csv_rows, numbers},
};
use crate::{
    census::{
        compare::Compared,
        reference::{self, Expected, Run, sums},
        world::Study,
    },
    demo::daemons::DaemonError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn labels(study: &Study, run: &Run) -> Map<String, Value> {
    let labels = reference::by_label(study, run).into_iter();
    labels.map(|(label, servers)| (label, json!(sums(servers.into_iter())))).collect()
}

/// `results --survey`, as JSON and as CSV.
pub(super) async fn results(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, run) = (Compared::default(), asking.reference.run(asking.run));
    for (number, study) in asking.world.studies().iter().enumerate() {
        let (number, name) = (asking.member(number + 1), study.name);
        let member = asking.name(number);
        let told = asking.swarm.json(number, &["results", "--survey", name]).await?;
        let servers: Vec<&Expected> = reference::members(study, run);
        let owned: u64 = object(&told["owners"]).values().filter_map(Value::as_u64).sum();
        compared.value(&member, &format!("{name} of all owners"), &json!(servers.len()), &json!(owned), false);
        let head =
            json!({"survey": name, "all_owners_answered": true, "missing_text": [], "creator": asking.swarm.daemons[0].access_point});
        compared.row(&member, name, &object(&head), &object(&told));
        compare_summary(&mut compared, &member, &servers, &told["summary"]);
        compared.rows(&member, &format!("{name} label"), &labels(study, run), &object(&told["labels"]));
        let mut rows: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for row in csv_rows(&asking.swarm.ask(number, &["results", "--survey", name, "--csv"]).await?) {
            rows.entry(row["dimension"].clone()).or_default().insert(row["value"].clone(), Value::Object(numbers(&row)));
        }
        compared.rows(&member, &format!("{name} label (CSV)"), &labels(study, run), &rows.remove("label").unwrap_or_default());
        for (by, rows) in rows {
            compared.rows(&member, &format!("{name} {by} (CSV)"), &by_split(&servers, &by), &rows);
        }
    }
    Ok(compared)
}

/// `survey show` at every member.
pub(super) async fn show(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for study in asking.world.studies() {
        let expected = reference::shown(&study, asking.reference.run(asking.run));
        for number in asking.swarm.running() {
            let told = asking.swarm.json(number, &["survey", "show", study.name]).await?;
            compared.row(&asking.name(number), study.name, &object(&expected), &object(&told));
            let creator = json!({"is_mine": number == 0, "creator": asking.swarm.daemons[0].access_point});
            compared.row(&asking.name(number), study.name, &object(&creator), &object(&told["survey"]));
        }
    }
    Ok(compared)
}

/// What rows say of the surveys of their servers.
fn marks(row: &Value) -> Map<String, Value> {
    let marks = row["surveys"].as_array().into_iter().flatten();
    marks.map(|mark| (mark["name"].as_str().unwrap_or_default().to_owned(), mark["labels"].clone())).collect()
}

/// `export servers --survey`: which servers belong to a survey, and with what labels; and the surveys of each server among all.
pub(super) async fn export(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, run, studies) = (Compared::default(), asking.reference.run(asking.run), asking.world.studies());
    for (number, study) in studies.iter().enumerate() {
        let number = asking.member(number);
        let member = asking.name(number);
        let rows = asking.swarm.lines(number, &["export", "servers", "--survey", study.name]).await?;
        let found = rows.into_iter().map(|row| (row["host"].as_str().unwrap_or_default().to_owned(), row)).collect();
        let expected = |server: &&Expected| {
            let mut row = server.server_row();
            row.insert("labels".to_owned(), json!(reference::labels(study, server)));
            (server.host.clone(), Value::Object(row))
        };
        let servers = reference::members(study, run);
        compared.rows(&member, study.name, &servers.iter().map(expected).collect(), &found);
    }
    let number = asking.member(2);
    for row in asking.swarm.lines(number, &["export", "servers"]).await? {
        let Some(server) = row["host"].as_str().and_then(|host| run.servers.get(host)) else { continue };
        compared.rows += 1;
        let cell = format!("{} surveys", server.host);
        compared.value(&asking.name(number), &cell, &json!(reference::marks(&studies, server)), &Value::Object(marks(&row)), true);
    }
    Ok(compared)
}

/// `report reachability --survey`.
pub(super) async fn report(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, run) = (Compared::default(), asking.reference.run(asking.run));
    for (number, study) in asking.world.studies().iter().enumerate() {
        let part = reference::part(study, run);
        let mut expected = reference::reachability(&part, "tld");
        let others = run.servers.len() - part.servers.len();
        expected["data"]["survey"] = json!(study.name);
        expected["data"]["servers_told"] = json!(run.servers.len());
        expected["data"]["servers_not_in_survey"] = json!(others);
        let arguments = ["reachability", "--by", "tld", "--survey", study.name];
        compared.add(studies::report(&asking, number, &arguments, &["tld"], &expected).await?);
    }
    Ok(compared)
}
