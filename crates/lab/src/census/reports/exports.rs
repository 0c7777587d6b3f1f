//! Checks of exported rows of servers and runs, as lines of JSON and as CSV, and of what is computed of them.

use super::{asking::Asking, totals::csv_rows};
use crate::{
    census::{
        certificates::proven,
        compare::Compared,
        reference::{self, Expected},
    },
    demo::daemons::DaemonError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Of the pages of a site that fail a rule so many are named.
const MAX_FAILING: usize = 20;

fn text<'v>(row: &'v Value, name: &str) -> &'v str {
    row[name].as_str().unwrap_or_default()
}

/// What is on record of a server, measured things and certificates included.
fn server(asking: &Asking<'_>, compared: &mut Compared, member: &str, expected: &Expected, row: &Value) {
    let found = row.as_object().cloned().unwrap_or_default();
    compared.row(member, &expected.host, &expected.server_row(), &found);
    let Some(host) = asking.world.host(&expected.host) else { return };
    let facts = &row["facts"];
    let (issuer, from, until) = proven(host);
    let has_tls = expected.facts.as_ref().is_some_and(|facts| !facts["tls_version"].is_null());
    let certificate = if has_tls { json!({"issuer": issuer, "not_before_at": from, "not_after_at": until}) } else { Value::Null };
    compared.value(member, &format!("{} certificate", expected.host), &certificate, &facts["certificate"], false);
    // A distance is known of whoever answered, and was measured from where a daemon is; but of hosts that share an address only of one with
    // which a connection began.
    let answered = expected.facts.as_ref().is_some_and(|facts| !facts["http_version"].is_null());
    let shares = asking.world.hosts.iter().filter(|other| other.address == host.address).count() > 1;
    let measured = facts["rtt_ms"].as_f64().is_some_and(|rtt| (0.0..10_000.0).contains(&rtt));
    if !shares || measured {
        compared.value(member, &format!("{} rtt_ms is measured", expected.host), &json!(answered), &json!(measured), false);
        let country = facts["vantage"]["country"].as_str();
        let is_ours = asking.world.places.daemons.iter().any(|(_, ours)| Some(*ours) == country);
        compared.value(member, &format!("{} vantage is a daemon's", expected.host), &json!(answered), &json!(is_ours), false);
    }
    let producer = asking.swarm.daemons.iter().any(|daemon| daemon.access_point == text(row, "access_point"));
    compared.value(member, &format!("{} access_point is a member", expected.host), &json!(true), &json!(producer), false);
}

/// Rows by the name of their hosts. A host that comes twice is wrong.
fn by_host(compared: &mut Compared, member: &str, rows: Vec<Value>) -> BTreeMap<String, Value> {
    let mut by_host = BTreeMap::new();
    for row in rows {
        let host = text(&row, "host").to_owned();
        if by_host.insert(host.clone(), row).is_some() {
            compared.wrong(member, host, "one row", "two");
        }
    }
    by_host
}

/// `export servers`.
pub(super) async fn servers(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(2));
    let member = asking.name(number);
    let rows = asking.swarm.lines(number, &["export", "servers"]).await?;
    let mut found = by_host(&mut compared, &member, rows);
    for expected in asking.reference.run(asking.run).servers.values() {
        match found.remove(&expected.host) {
            Some(row) => server(&asking, &mut compared, &member, expected, &row),
            None => compared.wrong(&member, expected.host.clone(), "a row", "none"),
        }
    }
    found.keys().for_each(|host| compared.wrong(&member, host.clone(), "no such server", "a row"));
    Ok(compared)
}

/// `export servers` while servers are visited again: what is not whole in this run is as the last whole one left it. Also says whether all have
/// begun this run.
pub(crate) async fn during_a_revisit(asking: Asking<'_>, number: usize) -> Result<(Compared, bool), DaemonError> {
    let mut compared = Compared::default();
    let member = asking.name(number);
    let rows = asking.swarm.lines(number, &["export", "servers"]).await?;
    let found = by_host(&mut compared, &member, rows);
    let (before, now) = (asking.reference.run(asking.run - 1), asking.reference.run(asking.run));
    for (host, row) in &found {
        let run = row["run"].as_u64().unwrap_or(0);
        let is_of = |server: &&Expected| u64::from(server.run) == run;
        match (before.servers.get(host).filter(is_of), now.servers.get(host).filter(is_of)) {
            (Some(expected), _) => server(&asking, &mut compared, &member, expected, row),
            // More may come of this run: what it is worth is seen at its end.
            (None, Some(_)) => compared.rows += 1,
            (None, None) => compared.wrong(&member, format!("{host} run"), format!("{} or the one before", asking.run), run),
        }
    }
    let present = |row: &Value| row["next_run"]["run"].as_u64().or(row["run"].as_u64()).unwrap_or(0);
    let has_begun = |host: &String, server: &Expected| found.get(host).map_or(0, present) >= u64::from(server.run);
    // A part of a tree begins when another host of it leads there.
    let is_led_to = |server: &Expected| server.run == 1 || server.tree != server.host.trim_start_matches("www.");
    let begun = now.servers.iter().all(|(host, server)| is_led_to(server) || has_begun(host, server));
    Ok((compared, begun))
}

/// The cells of a CSV's row beside the same names of JSON.
pub(super) fn plain(compared: &mut Compared, member: &str, cell: &str, expected: &Map<String, Value>, row: &BTreeMap<String, String>) {
    compared.rows += 1;
    for (name, value) in expected.iter().filter(|(name, _)| row.contains_key(*name)) {
        let expected = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if expected != row[name] {
            compared.wrong(member, format!("{cell} {name}"), expected, &row[name]);
        }
    }
}

/// `export servers --format csv`.
pub(super) async fn servers_as_csv(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(3));
    let member = asking.name(number);
    let said = asking.swarm.ask(number, &["export", "servers", "--format", "csv"]).await?;
    let rows: BTreeMap<String, _> = csv_rows(&said).into_iter().map(|row| (row["host"].clone(), row)).collect();
    for expected in asking.reference.run(asking.run).servers.values() {
        match rows.get(&expected.host) {
            Some(row) => plain(&mut compared, &member, &expected.host, &expected.server_cells(), row),
            None => compared.wrong(&member, expected.host.clone(), "a row", "none"),
        }
    }
    Ok(compared)
}

/// The pages that fail a rule, with the line of the first element that does: a sample where there are many.
pub(super) fn compare_failing(compared: &mut Compared, member: &str, expected: &Expected, found: &Value) {
    let wanted = expected.failing_pages();
    for (rule, pages) in &wanted {
        let named = found[*rule].as_array().cloned().unwrap_or_default();
        let cell = format!("{} {rule}", expected.host);
        compared.rows += 1;
        compared.value(member, &format!("{cell} pages"), &json!(pages.len().min(MAX_FAILING)), &json!(named.len()), false);
        for page in &named {
            let line = pages.get(text(page, "url"));
            compared.value(member, &format!("{cell} {}", text(page, "url")), &json!(line), &page["line"], false);
        }
    }
    let more = found.as_object().into_iter().flatten().filter(|(rule, _)| !wanted.contains_key(rule.as_str()));
    more.for_each(|(rule, pages)| compared.wrong(member, format!("{} {rule}", expected.host), "no page", pages));
}

/// The pages that fail a rule, of all servers.
pub(super) async fn failing_pages(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(0));
    let member = asking.name(number);
    for row in asking.swarm.lines(number, &["export", "servers"]).await? {
        let Some(expected) = asking.reference.run(asking.run).servers.get(text(&row, "host")) else { continue };
        compare_failing(&mut compared, &member, expected, &row["failing_pages"]);
    }
    Ok(compared)
}

/// Every run of every server up to now, by host and number.
pub(super) fn runs<'a>(asking: &Asking<'a>) -> BTreeMap<(String, u64), &'a Expected> {
    let runs = asking.reference.runs.iter().take(asking.run as usize).flat_map(|run| run.servers.values());
    runs.map(|server| ((server.host.clone(), u64::from(server.run)), server)).collect()
}

/// `export history`.
pub(super) async fn history(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(4));
    let member = asking.name(number);
    let mut wanted = runs(&asking);
    for row in asking.swarm.lines(number, &["export", "history"]).await? {
        let key = (text(&row, "host").to_owned(), row["run"].as_u64().unwrap_or(0));
        let (cell, found) = (format!("{} run {}", key.0, key.1), row.as_object().cloned().unwrap_or_default());
        match wanted.remove(&key) {
            Some(expected) => compared.row(&member, &cell, &expected.history_row(), &found),
            None => compared.wrong(&member, cell, "no such run, or it once", "a row"),
        }
    }
    wanted.keys().for_each(|(host, run)| compared.wrong(&member, format!("{host} run {run}"), "a row", "none"));
    Ok(compared)
}

/// `export history --format csv`.
pub(super) async fn history_as_csv(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(0));
    let member = asking.name(number);
    let said = asking.swarm.ask(number, &["export", "history", "--format", "csv"]).await?;
    let mut rows: BTreeMap<(String, u64), _> =
        csv_rows(&said).into_iter().map(|row| ((row["host"].clone(), row["run"].parse().unwrap_or(0)), row)).collect();
    for (key, expected) in runs(&asking) {
        let cell = format!("{} run {}", key.0, key.1);
        match rows.remove(&key) {
            Some(row) => plain(&mut compared, &member, &cell, &expected.history_row(), &row),
            None => compared.wrong(&member, cell, "a row", "none"),
        }
    }
    Ok(compared)
}

/// `trend` from the first run to the last, by each of its splits.
pub(super) async fn trends(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for (number, by) in ["country", "software", "tld"].into_iter().enumerate() {
        let (from, to, number) = (1, asking.run, asking.member(number));
        let (member, arguments) = (asking.name(number), ["--from".to_owned(), from.to_string(), "--to".to_owned(), to.to_string()]);
        let arguments: Vec<&str> = ["trend", "--by", by].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let told = asking.swarm.json(number, &arguments).await?;
        let expected = reference::trend(asking.reference, asking.run, from, to, by);
        for part in ["total", "left_out", "from_run", "to_run"] {
            compared.rows += 1;
            compared.value(&member, part, &expected[part], &told[part], false);
        }
        let object = |value: &Value| value["by"][by].as_object().cloned().unwrap_or_default();
        compared.rows(&member, by, &object(&expected), &object(&told));
    }
    Ok(compared)
}
