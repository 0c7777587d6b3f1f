//! The totals with all their splits, as each member tells them, and two splits at once.

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

/// A member adds up small cells beyond so many.
const MAX_CELLS: usize = 256;

fn servers<'a>(asking: &Asking<'a>) -> impl Iterator<Item = &'a Expected> + use<'a> {
    asking.reference.run(asking.run).servers.values()
}

/// The sums by the values of a split.
fn split(asking: &Asking<'_>, by: &str) -> Map<String, Value> {
    let mut groups: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    servers(asking).for_each(|server| groups.entry(server.value(by)).or_default().push(server));
    groups.into_iter().map(|(value, servers)| (value, json!(sums(servers.into_iter())))).collect()
}

/// What each level of all sites together cost and brought.
fn levels(asking: &Asking<'_>) -> Value {
    let mut levels: Vec<BTreeMap<&'static str, u64>> = Vec::new();
    for (depth, counts) in servers(asking).flat_map(|server| server.level_counts().enumerate()) {
        if levels.len() <= depth {
            levels.resize(depth + 1, BTreeMap::new());
        }
        counts.into_iter().for_each(|(name, count)| *levels[depth].entry(name).or_default() += count);
    }
    json!(levels)
}

fn evaluation(asking: &Asking<'_>) -> Value {
    let mut failures: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut pages, mut failing) = (0, 0);
    for server in servers(asking) {
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
    let summary = &told["summary"];
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let total = object(&json!(sums(servers(asking))));
    compared.row(member, "total", &total, &object(&summary["total"]));
    compared.value(member, "levels", &levels(asking), &summary["levels"], false);
    compared.value(member, "evaluation", &evaluation(asking), &summary["evaluation"], false);
    for by in SPLITS {
        let found = object(&summary["by"][by]);
        compared.rows(member, by, &split(asking, by), &found);
        // What is measured is not known here, but adds up.
        let busy: u64 = found.values().filter_map(|counts| counts["busy_ms"].as_u64()).sum();
        compared.value(member, &format!("{by} busy_ms, summed"), &summary["total"]["busy_ms"], &json!(busy), false);
    }
    let more = object(&summary["by"]);
    let more = more.keys().filter(|by| !SPLITS.contains(&by.as_str()));
    more.for_each(|by| compared.wrong(member, by, "a split that the reference knows", "another one"));
    compared
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
fn numbers(row: &BTreeMap<String, String>) -> Map<String, Value> {
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
        for part in ["run", "all_owners_answered", "total", "servers_without"] {
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
    let mut number = 0;
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
            compared.add(cells(&asking, &asking.name(member), (*one, *other), &told));
        }
    }
    Ok(compared)
}

fn cells(asking: &Asking<'_>, member: &str, (one, other): (&str, &str), told: &Value) -> Compared {
    let mut compared = Compared::default();
    compared.value(member, &format!("{one},{other} exact"), &json!(true), &told["exact"], false);
    let mut groups: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    servers(asking).for_each(|server| groups.entry(format!("{} × {}", server.value(one), server.value(other))).or_default().push(server));
    let cells = told["cells"].as_array().cloned().unwrap_or_default();
    let name = |cell: &Value| format!("{} × {}", cell["values"][0].as_str().unwrap_or("?"), cell["values"][1].as_str().unwrap_or("?"));
    let found: Map<String, Value> = cells.iter().map(|cell| (name(cell), cell["counts"].clone())).collect();
    if groups.len() > MAX_CELLS {
        // Small cells are added up: what is left is that nothing is lost.
        let sum = |figure: &str| found.values().filter_map(|counts| counts[figure].as_u64()).sum::<u64>();
        let summed: Map<String, Value> = sums(servers(asking)).into_keys().map(|name| (name.to_owned(), json!(sum(name)))).collect();
        let expected = json!(sums(servers(asking))).as_object().cloned().unwrap_or_default();
        compared.row(member, &format!("{one},{other} summed"), &expected, &summed);
    } else {
        let expected: Map<String, Value> = groups.into_iter().map(|(value, servers)| (value, json!(sums(servers.into_iter())))).collect();
        compared.rows(member, &format!("{one},{other}"), &expected, &found);
    }
    compared
}
