//! Checks of `nearcrawl report`: every cell as JSON and as CSV, the order of the rows, and what is said of the data.

use super::{asking::Asking, totals::csv_rows};
use crate::{
    census::{
        compare::Compared,
        reference::{self, REPORT_SPLITS},
    },
    demo::daemons::DaemonError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Shares are told in millionths, distances in thousandths of a millisecond: as far as this a value may be from what it stands for.
const SHARE_ERROR: f64 = 0.51e-6;
const MS_ERROR: f64 = 0.51e-3;

/// What tells the rows of a report apart: the columns, of which the first one is that by which rows are in order.
type Keys<'a> = &'a [&'a str];

fn key(row: &Map<String, Value>, keys: Keys<'_>) -> String {
    keys.iter().map(|name| row.get(*name).map_or(String::new(), plain)).collect::<Vec<_>>().join(" ")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn objects(rows: &Value) -> Vec<Map<String, Value>> {
    rows.as_array().into_iter().flatten().filter_map(|row| row.as_object().cloned()).collect()
}

/// A row as it is expected, with those values as they are told that are as near as they can be told.
fn as_told(expected: &Map<String, Value>, found: &Map<String, Value>) -> Map<String, Value> {
    let value = |(name, value): (&String, &Value)| {
        let error = if name.ends_with("_ms") { MS_ERROR } else { SHARE_ERROR };
        let told = found.get(name).filter(|told| {
            let both = value.as_f64().filter(|_| value.is_f64()).zip(told.as_f64());
            both.is_some_and(|(expected, told)| (expected - told).abs() <= error)
        });
        (name.clone(), told.unwrap_or(value).clone())
    };
    expected.iter().map(value).collect()
}

/// All rows, and their order.
fn rows(compared: &mut Compared, (member, cell): (&str, &str), keys: Keys<'_>, expected: &Value, found: &[Map<String, Value>]) {
    let expected = objects(expected);
    let order = |rows: &[Map<String, Value>]| {
        let mut names: Vec<String> = rows.iter().map(|row| key(row, &keys[..1])).collect();
        names.dedup();
        json!(names)
    };
    compared.value(member, &format!("{cell} order"), &order(&expected), &order(found), false);
    compared.value(member, &format!("{cell} rows"), &json!(expected.len()), &json!(found.len()), false);
    let by_key: BTreeMap<String, &Map<String, Value>> = found.iter().map(|row| (key(row, keys), row)).collect();
    let told = |row: &Map<String, Value>| by_key.get(&key(row, keys)).map(|found| as_told(row, found));
    let wanted = expected.iter().map(|row| (key(row, keys), Value::Object(told(row).unwrap_or_else(|| row.clone())))).collect();
    let found = by_key.into_iter().map(|(key, row)| (key, Value::Object(row.clone()))).collect();
    compared.rows(member, cell, &wanted, &found);
}

/// The cells of a CSV as JSON has them: numbers where numbers are expected, nothing where they are empty and nothing is.
fn typed(expected: &Value, row: BTreeMap<String, String>) -> Map<String, Value> {
    let is_text = |name: &str| expected[0].get(name).is_some_and(Value::is_string);
    let value = |(name, cell): (String, String)| {
        let value = match cell.parse::<u64>() {
            _ if is_text(&name) => json!(cell),
            Ok(number) => json!(number),
            Err(_) if cell.is_empty() => Value::Null,
            Err(_) => cell.parse::<f64>().map_or(json!(cell), |number| json!(number)),
        };
        (name, value)
    };
    row.into_iter().map(value).collect()
}

/// One report as JSON and CSV, against what it must say.
pub(super) async fn report(
    asking: &Asking<'_>,
    number: usize,
    arguments: &[&str],
    keys: Keys<'_>,
    expected: &Value,
) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(number));
    let (member, cell) = (asking.name(number), arguments.join(" "));
    let ask = |format| [&["report"], arguments, &["--format", format]].concat();
    let told = crate::census::swarm::parsed(&cell, &asking.swarm.ask(number, &ask("json")).await?)?;
    rows(&mut compared, (&member, &cell), keys, &expected["rows"], &objects(&told["rows"]));
    compared.value(&member, &format!("{cell} data"), &expected["data"], &told["data"], false);
    for part in ["down_by_failure", "rule_sets"] {
        compared.value(&member, &format!("{cell} {part}"), &expected["data"][part], &told["data"][part], true);
    }
    compared.value(&member, &format!("{cell} name"), &json!(arguments[0]), &told["report"], false);
    let in_csv = csv_rows(&asking.swarm.ask(number, &ask("csv")).await?);
    let in_csv: Vec<_> = in_csv.into_iter().map(|row| typed(&expected["rows"], row)).collect();
    rows(&mut compared, (&member, &format!("{cell} (CSV)")), keys, &expected["rows"], &in_csv);
    compared.rows += 1;
    Ok(compared)
}

/// `report offshore`.
pub(super) async fn offshore(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    report(&asking, 0, &["offshore"], &["tld"], &reference::offshore(asking.reference.run(asking.run))).await
}

/// `report reachability` by each of its splits.
pub(super) async fn reachability(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for (number, by) in REPORT_SPLITS.into_iter().enumerate() {
        let expected = reference::reachability(asking.reference.run(asking.run), by);
        compared.add(report(&asking, number, &["reachability", "--by", by], &[by], &expected).await?);
    }
    Ok(compared)
}

/// `report accessibility` by each of its splits.
pub(super) async fn accessibility(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for (number, by) in REPORT_SPLITS.into_iter().enumerate() {
        let expected = reference::accessibility(asking.reference.run(asking.run), by);
        compared.add(report(&asking, number + 1, &["accessibility", "--by", by], &[by, "rule"], &expected).await?);
    }
    Ok(compared)
}

/// `report nearness` by each of its splits, of the distances that `export servers` tells: nobody but their owners has measured them.
pub(super) async fn nearness(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    let rows = asking.swarm.lines(asking.member(1), &["export", "servers"]).await?;
    let distance = |row: Value| Some((row["host"].as_str()?.to_owned(), row["facts"]["rtt_ms"].as_f64()?));
    let distances: BTreeMap<String, f64> = rows.into_iter().filter_map(distance).collect();
    for (number, by) in REPORT_SPLITS.into_iter().enumerate() {
        let expected = reference::nearness(asking.reference.run(asking.run), by, &distances);
        compared.add(report(&asking, number + 2, &["nearness", "--by", by], &[by], &expected).await?);
    }
    Ok(compared)
}

/// `report load`.
pub(super) async fn load(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    report(&asking, 1, &["load"], &["level"], &reference::load(asking.reference.run(asking.run))).await
}
