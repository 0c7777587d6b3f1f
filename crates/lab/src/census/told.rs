//! Reads totals in each form in which people and programs read them.

use super::reference::Counts;
use crate::demo::daemons::{API_PORT, Common};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, net::Ipv4Addr};

/// The figures that are watched: all that only grow within a run.
pub(crate) const FIGURES: [&str; 11] = [
    "servers",
    "up",
    "pages",
    "requests",
    "bytes",
    "page_bytes",
    "external_hosts",
    "external_urls",
    "external_domains",
    "evaluated",
    "detected_failures",
];

/// A form in which totals are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// The API's answer to programs.
    Json,
    /// The API's answer to the page for browsers.
    Page,
    /// What `results` prints.
    Text,
    /// What `results --csv` prints.
    Csv,
}

/// What a member told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The figures that this form has.
    pub(crate) figures: Counts,
    /// How many servers each member has whose totals are in it, by the end of its name.
    pub(crate) covers: BTreeMap<String, u64>,
    /// What the answer says of itself.
    pub(crate) note: String,
}

#[derive(Deserialize)]
struct Answer {
    exact: bool,
    in_transition_text: Option<String>,
    covers: Vec<Covered>,
    summary: Value,
}

/// A member whose totals are in an answer.
#[derive(Deserialize)]
struct Covered {
    access_point: String,
    servers: u64,
}

/// The sums of a split of the API's answer, which are those of all servers.
fn summed(values: &Value) -> Counts {
    let sum = |figure: &str| values.as_object().into_iter().flatten().filter_map(|(_, counts)| counts[figure].as_u64()).sum();
    FIGURES.map(|figure| (figure, sum(figure))).into()
}

fn of_answer(body: &[u8], form: Form) -> Option<Told> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let total = FIGURES.map(|figure| (figure, answer.summary["total"][figure].as_u64().unwrap_or(0))).into();
    let short = |member: &str| member.chars().skip(member.len().saturating_sub(8)).collect::<String>();
    Some(Told {
        // The page shows the rows of a split.
        figures: if form == Form::Page { summed(&answer.summary["by"]["country"]) } else { total },
        covers: answer.covers.iter().map(|covered| (short(&covered.access_point), covered.servers)).collect(),
        note: [Some(if answer.exact { "exact" } else { "in transition" }.to_owned()), answer.in_transition_text]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; "),
    })
}

/// The numbers in a text, in their order.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

fn of_text(text: &str) -> Told {
    let first = text.lines().next().unwrap_or_default();
    let mut figures: Counts = ["servers", "up", "pages", "requests"].into_iter().zip(numbers(first)).collect();
    // The sentences are broken into lines; the tables follow an empty line.
    let sentences = text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let external = sentences.split_once("(not distinct): ").map_or("", |(_, external)| external);
    figures.extend(["external_urls", "external_hosts", "external_domains"].into_iter().zip(numbers(external)));
    if let Some((before, after)) = sentences.split_once(" accessibility failures detected in ") {
        let failures = before.rsplit(' ').next().and_then(|number| number.parse().ok());
        figures.extend(failures.map(|failures| ("detected_failures", failures)));
        figures.extend(numbers(after).nth(1).map(|pages| ("evaluated", pages)));
    }
    Told { figures, covers: BTreeMap::new(), note: text.lines().nth(1).unwrap_or_default().to_owned() }
}

fn of_csv(text: &str) -> Told {
    let mut figures: Counts = FIGURES.map(|figure| (figure, 0)).into();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().cloned().unwrap_or_default();
    for row in reader.records().filter_map(Result::ok) {
        for (name, cell) in head.iter().zip(&row) {
            if let Some(sum) = FIGURES.into_iter().find(|figure| *figure == name).and_then(|figure| figures.get_mut(figure)) {
                *sum += cell.parse().unwrap_or(0);
            }
        }
    }
    Told { figures, ..Told::default() }
}

/// Asks a member for its totals in this form; none if there is no answer.
pub(crate) async fn ask(client: &reqwest::Client, common: &Common, who: Ipv4Addr, form: Form) -> Option<Told> {
    let api = format!("http://{who}:{API_PORT}");
    let url = |path: &str| format!("{api}{path}");
    match form {
        Form::Json => of_answer(&client.get(url("/api/results")).send().await.ok()?.bytes().await.ok()?, form),
        Form::Page => of_answer(&client.get(url("/api/results?by=country")).send().await.ok()?.bytes().await.ok()?, form),
        Form::Text => Some(of_text(&common.ask(&["results", "--api", &api]).await.ok()?)),
        Form::Csv => Some(of_csv(&common.ask(&["results", "--by", "status", "--csv", "--api", &api]).await.ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_say_the_same() {
        let answer = br#"{"exact": false, "in_transition_text": "one is silent", "covers": [{"access_point": "12D3KooWabcdefgh", "servers": 3}],
            "summary": {"total": {"servers": 3, "up": 2, "pages": 30}, "by": {"country": {"KE": {"servers": 2, "up": 2}, "ZA": {"servers": 1, "pages": 30}}}}}"#;
        let [json, page] = [Form::Json, Form::Page].map(|form| of_answer(answer, form).unwrap());
        assert_eq!((&json, json.note.as_str()), (&page, "in transition; one is silent"));
        assert_eq!((json.figures["up"], json.figures["pages"], json.covers["abcdefgh"]), (2, 30, 3));
        let text = "3 servers (2 up), 30 pages, 41 requests, 12.5 kB of pages, 9 B moved\nexact; totals of 2 members\nexternal links, summed over servers \
                    (not distinct): 7 URLs, 6\nhosts, 5 domains\n8 accessibility failures detected in 4 of 30 pages evaluated, 12 µs a page\n\ncountry  servers\nKE  99\n";
        let csv = "dimension,value,servers,up,pages,requests\nstatus,up,2,2,30,38\nstatus,down,1,0,0,3\n";
        let (text, csv) = (of_text(text).figures, of_csv(csv).figures);
        for (figure, value) in [("servers", 3), ("up", 2), ("pages", 30), ("requests", 41)] {
            assert_eq!((text[figure], csv[figure]), (value, value), "{figure}");
        }
        let more = [("external_urls", 7), ("external_hosts", 6), ("external_domains", 5), ("detected_failures", 8), ("evaluated", 30)];
        assert!(more.iter().all(|(figure, value)| text[figure] == *value), "{text:?}");
    }
}
