//! Checks of the totals with all their splits, as each member tells them, and of two splits at once.

use super::asking::Asking;
use crate::{
    census::{
        compare::Compared,
        reference::{self, Expected, sums},
        swarm::parsed,
    },
    demo::daemons::DaemonError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// All splits, as `--by` takes them.
pub(super) const SPLITS: [&str; 12] =
    ["country", "tld", "registry", "organisation", "software", "status", "language", "script", "http", "tls", "family", "rule-set"];

/// A table has so many cells at most, those of the other servers added up among them.
const MAX_CELLS: usize = 256;

fn servers<'a>(asking: &Asking<'a>) -> impl Iterator<Item = &'a Expected> + use<'a> {
    asking.reference.run(asking.run).servers.values()
}

/// The sums by the values of a split.
fn split(asking: &Asking<'_>, by: &str) -> Map<String, Value> {
    by_split(&servers(asking).collect::<Vec<_>>(), by)
}

/// The same of some servers.
pub(super) fn by_split(servers: &[&Expected], by: &str) -> Map<String, Value> {
    let mut groups: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    servers.iter().for_each(|server| groups.entry(server.value(by)).or_default().push(server));
    groups.into_iter().map(|(value, servers)| (value, json!(sums(servers.into_iter())))).collect()
}

/// What each level of all sites together cost and brought.
fn levels(servers: &[&Expected]) -> Value {
    let mut levels: Vec<BTreeMap<&'static str, u64>> = Vec::new();
    for (depth, counts) in servers.iter().flat_map(|server| server.level_counts().enumerate()) {
        if levels.len() <= depth {
            levels.resize(depth + 1, BTreeMap::new());
        }
        counts.into_iter().for_each(|(name, count)| *levels[depth].entry(name).or_default() += count);
    }
    json!(levels)
}

fn evaluation(servers: &[&Expected]) -> Value {
    let mut failures: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut pages, mut failing) = (0, 0);
    for server in servers {
        pages += server.counts()["evaluated"];
        failing += server.failing();
        server.failures().into_iter().for_each(|(rule, count)| *failures.entry(rule).or_default() += count);
    }
    json!({"pages": pages, "failing": failing, "failures": failures, "refused": {}})
}

/// Everything that `results --json` says.
fn compare(asking: &Asking<'_>, member: &str, told: &Value) -> Compared {
    let mut compared = Compared::default();
    compared.value(member, "exact", &json!(true), &told["exact"], false);
    compare_summary(&mut compared, member, &servers(asking).collect::<Vec<_>>(), &told["summary"]);
    compared
}

/// The totals of some servers with all their splits, levels and failures.
pub(super) fn compare_summary(compared: &mut Compared, member: &str, servers: &[&Expected], summary: &Value) {
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let total = object(&json!(sums(servers.iter().copied())));
    compared.row(member, "total", &total, &object(&summary["total"]));
    compared.value(member, "levels", &levels(servers), &summary["levels"], false);
    compared.value(member, "evaluation", &evaluation(servers), &summary["evaluation"], false);
    for by in SPLITS {
        let found = object(&summary["by"][by]);
        compared.rows(member, by, &by_split(servers, by), &found);
        // What is measured is not known here, but adds up.
        let busy: u64 = found.values().filter_map(|counts| counts["busy_ms"].as_u64()).sum();
        compared.value(member, &format!("{by} busy_ms, summed"), &summary["total"]["busy_ms"], &json!(busy), false);
    }
    let more = object(&summary["by"]);
    let more = more.keys().filter(|by| !SPLITS.contains(&by.as_str()));
    more.for_each(|by| compared.wrong(member, by, "a split that the reference knows", "another one"));
}

/// `results` at every member.
pub(super) async fn by_every_member(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for member in asking.swarm.running() {
        let told = asking.swarm.json(member, &["results"]).await?;
        compared.add(compare(&asking, &asking.name(member), &told));
    }
    Ok(compared)
}

/// `results --member`: as somebody is told who is no member.
pub(super) async fn by_a_stranger(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let member = asking.member(usize::MAX - 1);
    let arguments = ["results", "--member", &asking.swarm.daemons[member].multiaddress(), "--json"];
    let told = parsed("results --member", &asking.swarm.common.ask(&arguments).await?)?;
    Ok(compare(&asking, &asking.name(member), &told))
}

/// The rows of a CSV, each by its column's names.
pub(super) fn csv_rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let Ok(head) = reader.headers().cloned() else { return Vec::new() };
    let row = |row: csv::StringRecord| head.iter().zip(&row).map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect();
    reader.records().filter_map(Result::ok).map(row).collect()
}

/// Cells as numbers, where they are.
pub(super) fn numbers(row: &BTreeMap<String, String>) -> Map<String, Value> {
    row.iter().filter_map(|(name, cell)| Some((name.clone(), json!(cell.parse::<u64>().ok()?)))).collect()
}

/// `results --run` of each run so far, each asked of another member, as JSON and as CSV.
pub(super) async fn of_each_run(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for run in 1..=asking.run {
        let (number, run_text) = (asking.member(run as usize), run.to_string());
        let member = asking.name(number);
        let expected = reference::run_totals(asking.reference, run, asking.run);
        let told = asking.swarm.json(number, &["results", "--run", &run_text]).await?;
        for part in ["run", "all_owners_answered", "missing_text", "consistent_age_ms", "total", "servers_without"] {
            compared.rows += 1;
            compared.value(&member, &format!("run {run} {part}"), &expected[part], &told[part], false);
        }
        let rows = csv_rows(&asking.swarm.ask(number, &["results", "--run", &run_text, "--csv"]).await?);
        for split in reference::SPLITS {
            let object = |value: &Value| value["by"][split].as_object().cloned().unwrap_or_default();
            compared.rows(&member, &format!("run {run} {split}"), &object(&expected), &object(&told));
            let rows = rows.iter().filter(|row| row["dimension"] == split && row["run"] == run_text);
            let in_csv = rows.map(|row| (row["value"].clone(), Value::Object(numbers(row)))).collect();
            compared.rows(&member, &format!("run {run} {split} (CSV)"), &object(&expected), &in_csv);
        }
    }
    Ok(compared)
}

/// `results --csv`.
pub(super) async fn as_csv(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let member = asking.member(1);
    let said = asking.swarm.ask(member, &["results", "--csv"]).await?;
    let mut found: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for row in csv_rows(&said) {
        found.entry(row["dimension"].clone()).or_default().insert(row["value"].clone(), Value::Object(numbers(&row)));
    }
    let mut compared = Compared::default();
    for by in SPLITS {
        compared.rows(&asking.name(member), by, &split(&asking, by), found.get(by).unwrap_or(&Map::new()));
    }
    Ok(compared)
}

/// How often a table that is not exact is asked for again, and after which pause.
const TRIES: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1_100);

/// `results --by A,B` of any two splits, each asked of another member.
pub(super) async fn crossed(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    let (owners, mut number) = (owners(&asking).await?, 0);
    for (place, one) in SPLITS.iter().enumerate() {
        for other in &SPLITS[place + 1..] {
            number += 1;
            let (member, by) = (asking.member(number), format!("{one},{other}"));
            let mut told = asking.swarm.json(member, &["results", "--by", &by]).await?;
            // A member makes no more than so many tables a second for others, and refuses then: the answer says that it is not exact.
            for _ in 0..TRIES {
                if told["exact"] == true {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
                told = asking.swarm.json(member, &["results", "--by", &by]).await?;
            }
            compared.add(cells(&asking, &asking.name(member), (one, other), &owners, &told));
        }
    }
    Ok(compared)
}

type Cells<'a> = BTreeMap<(String, String), Vec<&'a Expected>>;

/// What a table of so many cells keeps: those with the most servers, and the others together.
fn cut(cells: Cells<'_>) -> Cells<'_> {
    if cells.len() <= MAX_CELLS {
        return cells;
    }
    let mut ranked: Vec<_> = cells.into_iter().collect();
    ranked.sort_by_key(|(_, servers)| std::cmp::Reverse(servers.len()));
    let small = ranked.split_off(MAX_CELLS - 1).into_iter().flat_map(|(_, servers)| servers).collect();
    ranked.into_iter().chain([(("(other)".to_owned(), "(other)".to_owned()), small)]).collect()
}

/// The cells of all servers: each owner tells no more than so many, and no more are told of all together.
fn expected_cells<'a>(asking: &Asking<'a>, (one, other): (&str, &str), owners: &BTreeMap<String, String>) -> Cells<'a> {
    let mut parts: BTreeMap<Option<&String>, Cells<'a>> = BTreeMap::new();
    for server in servers(asking) {
        let cell = (server.value(one), server.value(other));
        parts.entry(owners.get(&server.host)).or_default().entry(cell).or_default().push(server);
    }
    let mut all = Cells::new();
    for (cell, servers) in parts.into_values().flat_map(cut) {
        all.entry(cell).or_default().extend(servers);
    }
    cut(all)
}

/// Every cell of a table, and the order of their numbers of servers.
fn cells(asking: &Asking<'_>, member: &str, by: (&str, &str), owners: &BTreeMap<String, String>, told: &Value) -> Compared {
    let (mut compared, split) = (Compared::default(), format!("{},{}", by.0, by.1));
    compared.value(member, &format!("{split} exact"), &json!(true), &told["exact"], false);
    let cells = told["cells"].as_array().cloned().unwrap_or_default();
    let name = |cell: &Value| format!("{} × {}", cell["values"][0].as_str().unwrap_or("?"), cell["values"][1].as_str().unwrap_or("?"));
    let found: Map<String, Value> = cells.iter().map(|cell| (name(cell), cell["counts"].clone())).collect();
    let numbers: Vec<u64> = cells.iter().filter_map(|cell| cell["counts"]["servers"].as_u64()).collect();
    compared.value(member, &format!("{split} in order"), &json!(true), &json!(numbers.is_sorted_by(|a, b| a >= b)), false);
    let expected = expected_cells(asking, by, owners);
    let expected = expected.into_iter().map(|((one, other), servers)| (format!("{one} × {other}"), json!(sums(servers.into_iter()))));
    compared.rows(member, &split, &expected.collect(), &found);
    compared
}

/// Who owns each host, as `export servers` tells it.
pub(super) async fn owners(asking: &Asking<'_>) -> Result<BTreeMap<String, String>, DaemonError> {
    let rows = asking.swarm.lines(asking.member(0), &["export", "servers"]).await?;
    let owner = |row: &Value| Some((row["host"].as_str()?.to_owned(), row["access_point"].as_str()?.to_owned()));
    Ok(rows.iter().filter_map(owner).collect())
}

/// `results --distinct` at every member, as JSON and as CSV. What is an estimate may be four of its standard errors away.
pub(super) async fn distinct(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    const DEVIATIONS: f64 = 4.0;
    let (mut compared, expected) = (Compared::default(), reference::distinct(asking.reference.run(asking.run)));
    for number in asking.swarm.running() {
        let member = asking.name(number);
        let told = asking.swarm.json(number, &["results", "--distinct"]).await?;
        compared.value(&member, "in_transition_text", &Value::Null, &told["in_transition_text"], false);
        compared.value(&member, "servers_not_counted", &json!(0), &told["servers_not_counted"], false);
        let rows = csv_rows(&asking.swarm.ask(number, &["results", "--distinct", "--csv"]).await?);
        let in_csv: BTreeMap<&str, &str> = rows.iter().map(|row| (row["distinct"].as_str(), row["count"].as_str())).collect();
        compared.value(&member, "rows (CSV)", &json!(expected.len()), &json!(in_csv.len()), false);
        for (name, expected) in &expected {
            compared.rows += 1;
            // Servers are counted, and not estimated.
            let count = if *name == "servers" { &told[*name] } else { &told[*name]["count"] };
            let error = DEVIATIONS * told[*name]["error_ratio"].as_f64().unwrap_or(0.0) * *expected as f64;
            let is_near = count.as_f64().is_some_and(|count| (count - *expected as f64).abs() <= error);
            if !is_near {
                compared.wrong(&member, *name, expected, count);
            }
            let text = count.to_string();
            compared.value(&member, &format!("{name} (CSV)"), &json!(text), &json!(in_csv.get(name)), false);
        }
    }
    Ok(compared)
}
