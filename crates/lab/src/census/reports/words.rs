//! Checks of text for people: the totals, and why a host or a URL is as it is.

use super::{
    asking::Asking,
    exports::compare_failing,
    totals::{SPLITS, owners},
};
use crate::{
    census::{
        compare::Compared,
        reference::{Counts, Expected, distinct, sums},
    },
    demo::daemons::DaemonError,
};
use nearcrawl_model::view::counted;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many hosts are asked about.
const HOSTS: usize = 24;

/// Text without the breaks that make it fit a terminal, and without the spaces around them.
pub(super) fn unbroken(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Bytes as people say them.
pub(super) fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let mut value = count as f64 / 1_000.0;
    let mut unit = 0;
    while value >= 999.5 {
        (value, unit) = (value / 1_000.0, unit + 1);
    }
    if count < 1_000 { format!("{count} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// Where the columns of a table are: between what is blank in all lines, two wide at least.
fn columns(lines: &[Vec<char>]) -> Vec<std::ops::Range<usize>> {
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    let is_blank = |at: usize| lines.iter().all(|line| line.get(at).is_none_or(|c| *c == ' '));
    let (mut columns, mut start) = (Vec::new(), 0);
    for at in 0..width {
        if is_blank(at) && is_blank(at + 1) {
            columns.push(start..at);
            start = at + 1;
        }
    }
    columns.push(start..width);
    columns.retain(|column| column.clone().any(|at| !is_blank(at)));
    columns
}

/// The rows of the table under a line that begins with this name: cells by the first of them. What is broken is put together again: a line goes on
/// with a row if its first cell or its last one is empty.
pub(super) fn table(text: &str, name: &str) -> Rows {
    // Between columns there are two spaces; a sentence that begins with the same word has one.
    let is_head = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with("  ") && !rest.trim().is_empty());
    let lines = text.lines().skip_while(|line| !is_head(line)).take_while(|line| !line.is_empty() && !line.contains(" on record"));
    let lines: Vec<Vec<char>> = lines.map(|line| line.chars().collect()).collect();
    let columns = columns(&lines);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in &lines {
        let cell = |column: &std::ops::Range<usize>| unbroken(&line.iter().take(column.end).skip(column.start).collect::<String>());
        let cells: Vec<String> = columns.iter().map(cell).collect();
        match rows.last_mut() {
            Some(last) if cells.first().is_some_and(String::is_empty) || cells.last().is_some_and(String::is_empty) => {
                last.iter_mut().zip(&cells).for_each(|(last, cell)| last.push_str(cell));
            }
            _ => rows.push(cells),
        }
    }
    rows.into_iter().filter(|row| !row.is_empty()).map(|mut row| (row.remove(0), row)).collect()
}

/// The sentences of `results` for people.
fn sentences(asking: &Asking<'_>) -> Vec<String> {
    let run = asking.reference.run(asking.run);
    let total = sums(run.servers.values());
    let count = |figure: &str, noun| counted(total[figure], noun);
    let distinct: BTreeMap<&str, u64> = distinct(run);
    let of = |name: &str, noun| counted(distinct[name], noun);
    let mut sentences = vec![
        format!(
            "{} ({} up), {}, {}, {} of pages, {} moved",
            count("servers", "server"),
            total["up"],
            count("pages", "page"),
            count("requests", "request"),
            bytes(total["page_bytes"]),
            bytes(total["bytes"])
        ),
        "exact; totals of ".to_owned(),
        format!(
            "external links, summed over servers (not distinct): {}, {}, {}",
            count("external_urls", "URL"),
            count("external_hosts", "host"),
            count("external_domains", "domain")
        ),
        format!("distinct servers: {} at {} in {}", of("servers", "host"), of("addresses", "address"), of("domains", "domain")),
    ];
    let held = total["hosts_held_by_site_limit"];
    sentences.extend((held > 0).then(|| format!("held back until later: {} by the limit for a site and day", counted(held, "new host"))));
    let failing: u64 = run.servers.values().map(Expected::failing).sum();
    let failures = count("detected_failures", "accessibility failure");
    let evaluated = format!("{failures} detected in {failing} of {} evaluated", count("evaluated", "page"));
    sentences.extend((total["evaluated"] > 0).then_some(evaluated));
    sentences
}

/// The rows of a split in the text: the sums of each value, as people read them.
fn in_words(sums: &Counts) -> Vec<String> {
    let number = |name: &str| sums[name].to_string();
    let mut row: Vec<String> = ["servers", "up", "pages", "requests"].map(number).into();
    row.extend([bytes(sums["page_bytes"]), bytes(sums["bytes"])]);
    row.extend(["cut_by_depth", "refused_by_robots", "failed", "unfinished"].map(number));
    row
}

/// Everything that `results` says to people: its sentences, the tables of all splits and that of the rules.
pub(super) async fn results(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let (mut compared, number) = (Compared::default(), asking.member(1));
    let (member, said) = (asking.name(number), asking.swarm.ask(number, &["results"]).await?);
    let whole = unbroken(&said);
    for sentence in sentences(&asking) {
        compared.rows += 1;
        if !whole.contains(&unbroken(&sentence)) {
            let start: String = said.lines().take(12).collect::<Vec<_>>().join(" / ");
            compared.wrong(&member, "a sentence", sentence, start);
        }
    }
    let servers = || asking.reference.run(asking.run).servers.values();
    for by in SPLITS {
        let mut wanted: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
        servers().for_each(|server| wanted.entry(unbroken(&server.value(by))).or_default().push(server));
        if by == "rule-set" && servers().all(|server| server.value(by) == "none") {
            // Where nothing was evaluated there is nothing to tell apart.
            compare_table(&mut compared, &member, by, Rows::new(), table(&said, by));
            continue;
        }
        let head = ["servers", "up", "pages", "requests", "size", "moved", "cut", "robots", "failed", "unfinished"].map(str::to_owned);
        let rows = wanted.into_iter().map(|(value, servers)| (value, in_words(&sums(servers.into_iter()))));
        compare_table(&mut compared, &member, by, rows.chain([(by.to_owned(), head.into())]).collect(), table(&said, by));
    }
    let mut rules: BTreeMap<&str, u64> = BTreeMap::new();
    servers().flat_map(Expected::failures).for_each(|(rule, count)| *rules.entry(rule).or_default() += count);
    let found = table(&said, "rule").into_iter().map(|(rule, mut row)| (rule, row.drain(..1).collect()));
    let head = (!rules.is_empty()).then(|| ("rule".to_owned(), vec!["failures".to_owned()]));
    let rules = rules.into_iter().map(|(rule, count)| (rule.to_owned(), vec![count.to_string()])).chain(head);
    compare_table(&mut compared, &member, "rule", rules.collect(), found.collect());
    Ok(compared)
}

pub(super) type Rows = BTreeMap<String, Vec<String>>;

/// The cells of a table for people.
pub(super) fn compare_table(compared: &mut Compared, member: &str, name: &str, expected: Rows, found: Rows) {
    let cells = |row: Vec<String>| row.iter().map(|cell| unbroken(cell)).collect::<Vec<_>>();
    let json = |rows: Rows| rows.into_iter().map(|(value, row)| (value, json!({"cells": cells(row)}))).collect();
    compared.rows(member, &format!("{name} (text)"), &json(expected), &json(found));
}

/// `why HOST` and `why URL`, asked of the owners.
pub(super) async fn why(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    let owners = owners(&asking).await?;
    let servers = &asking.reference.run(asking.run).servers;
    for expected in servers.values().step_by(servers.len().div_ceil(HOSTS).max(1)) {
        let is_owner = |member: &usize| owners.get(&expected.host) == Some(&asking.swarm.daemons[*member].access_point);
        let Some(owner) = asking.swarm.running().into_iter().find(is_owner) else { continue };
        let (member, told) = (asking.name(owner), asking.swarm.json(owner, &["why", &expected.host]).await?);
        let wanted = json!({"host": expected.host, "address": expected.address, "tree": expected.tree, "owner_is_me": true,
                            "state": expected.state, "facts": expected.facts});
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        compared.row(&member, &expected.host, &object(&wanted), &object(&told));
        compare_failing(&mut compared, &member, expected, &told["failing_pages"]);
        let Some(host) = asking.world.host(&expected.host) else { continue };
        let asked_for = if expected.status == "up" { "not-waiting" } else { continue };
        let told = asking.swarm.json(owner, &["why", &host.home()]).await?;
        compared.row(&member, &host.home(), &object(&json!({"state": asked_for})), &object(&told));
        let private = format!("{}/private/x.html", host.origin());
        if host.page("/private/x.html", asking.run).is_some() && expected.refused_by_robots > 0 {
            let told = asking.swarm.json(owner, &["why", &private]).await?;
            compared.row(&member, &private, &object(&json!({"state": "refused-by-robots"})), &object(&told));
        }
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_with_what_is_broken_in_them() {
        let text = "host            status           size  owner\n\
                    museum0.xn--    robots-unavai    13 B  3kjLcUyQ\n\
                    0zwm56d         lable\n\
                    forum1.test     up             1.2 kB  7xTuZe2a\n2 servers on record\n";
        let rows = table(text, "host");
        assert_eq!(rows["museum0.xn--0zwm56d"], ["robots-unavailable", "13B", "3kjLcUyQ"], "{rows:?}");
        assert_eq!((rows["forum1.test"][1].as_str(), rows.len()), ("1.2kB", 3));
        let text = "country  servers  up\nKE            21   3\ndown:          7   1\nrefused\n\ntld  servers\n";
        let rows = table(text, "country");
        assert_eq!(
            rows,
            [("KE", ["21", "3"]), ("country", ["servers", "up"]), ("down:refused", ["7", "1"])]
                .map(|(a, b)| (a.to_owned(), b.map(str::to_owned).to_vec()))
                .into()
        );
    }
}
