//! `results --run`: what one run of the servers came to, summed over the histories that their owners keep.

use super::{
    client::ApiArgs,
    error::{CommandError, Exit},
    json,
    owners::Source,
    survey::SurveyFilter,
    table::{Style, Table, as_csv, bytes, paragraph},
    walk::{each_row, not_whole},
};
use nearcrawl_model::{
    run_totals::{RUN_SPLITS, RunCell, RunCounts, RunTotals},
    server_rows::{HistoryRow, RowsOf},
    split::Split,
    summary::Dimension,
    survey::SurveyRef,
    view::counted,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The number of the run.
    pub run: u32,
    /// Only servers of this survey.
    pub survey: Option<&'a SurveyRef>,
    /// Only this split, or how these two go together; all splits, one by one, if there is none.
    pub by: &'a [Split],
    /// Who is asked.
    pub member: Option<&'a str>,
    pub api: &'a ApiArgs,
    pub csv: bool,
}

#[derive(Serialize)]
struct Told<'a> {
    survey: Option<String>,
    /// Whether every owner answered.
    all_owners_answered: bool,
    missing_text: &'a [String],
    #[serde(flatten)]
    totals: &'a RunTotals,
}

/// Asks all owners for the runs of their servers, and sums up one of them. What is missing is an error, behind what is there.
pub async fn run_results(question: &Question<'_>, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    check(question)?;
    let (mut totals, missing) = gather(question).await?;
    if totals.total.servers == 0 {
        // Those that are missing may have it.
        not_whole(&missing).map_or(Ok(()), Err)?;
        let of = question.survey.map_or_else(String::new, |survey| format!(" of survey {survey}"));
        return Err(CommandError::new(Exit::Data, format!("no server{of} has a run {} on record", question.run))
            .hint("`nearcrawl export history` has the runs of every server"));
    }
    if let [by] = *question.by {
        totals.by.retain(|split, _| Split::By(*split) == by);
        if by != Split::Label {
            totals.labels.clear();
        }
    }
    if question.by.len() > 1 {
        (totals.by, totals.labels) = (BTreeMap::new(), BTreeMap::new());
    }
    let told = if question.api.json {
        let survey = question.survey.map(ToString::to_string);
        json(&Told { survey, all_owners_answered: missing.is_empty(), missing_text: &missing, totals: &totals })?
    } else if question.csv {
        csv(&totals, &missing)?
    } else {
        text(&totals, question.survey, style)
    };
    Ok((told, not_whole(&missing)))
}

fn check(question: &Question<'_>) -> Result<(), CommandError> {
    let is_kept = |split: &Split| match split {
        Split::By(split) => RUN_SPLITS.contains(split),
        Split::Label => true,
        Split::Rule => false,
    };
    let Some(split) = question.by.iter().find(|split| !is_kept(split)) else { return Ok(()) };
    let splits = RUN_SPLITS.map(Dimension::name).join(", ");
    Err(CommandError::new(Exit::Usage, format!("a run keeps no {} of a server", split.name()))
        .hint(format!("--run goes with --by {splits}, and label with --survey")))
}

async fn gather(question: &Question<'_>) -> Result<(RunTotals, Vec<String>), CommandError> {
    let mut source = Source::of(question.member, question.api.api.as_deref()).await?;
    let mut totals = RunTotals::new(question.run).crossed(question.by);
    let mut filter = SurveyFilter::new(question.survey);
    let enter = |_, row: &str| {
        let Ok(row) = serde_json::from_str::<HistoryRow>(row) else { return false };
        let mark = filter.find(&row.surveys);
        if question.survey.is_none() || mark.is_some() {
            totals.enter(&row, mark.iter().flat_map(|mark| mark.label_texts()));
        }
        true
    };
    let missing = each_row(&mut source, RowsOf::History, enter).await?;
    filter.finish()?;
    Ok((totals, missing))
}

fn text(totals: &RunTotals, survey: Option<&SurveyRef>, style: Style) -> String {
    let RunTotals { run, total, by, labels, servers_without, cells, .. } = totals;
    let of = survey.map_or_else(String::new, |survey| format!(" of survey {survey}"));
    let servers = format!("{} ({} up)", counted(total.servers, "server"), total.up);
    let (pages, requests) = (counted(total.pages, "page"), counted(total.requests, "request"));
    let sizes = format!("{} of pages, {} moved", bytes(total.page_bytes), bytes(total.bytes));
    let mut text = style.heading(&format!("run {run}{of}: {servers}, {pages}, {requests}, {sizes}")) + "\n";
    let mut apart = Vec::new();
    if total.unfinished > 0 {
        apart.push(format!("the run is not over at {}", counted(total.unfinished, "server")));
    }
    if total.held_back > 0 {
        apart.push(format!("limits hold URLs or new hosts back at {}", counted(total.held_back, "server")));
    }
    if *servers_without > 0 {
        apart.push(format!("{} on record without this run", counted(*servers_without, "server")));
    }
    if total.evaluated > 0 {
        apart.push(format!("{} evaluated, {} with failures", counted(total.evaluated, "page"), total.failing));
    }
    if !apart.is_empty() {
        text += &paragraph(&apart.join("; "));
    }
    if !cells.is_empty() {
        text += &format!("\n{}", cells_text(totals, style));
    }
    for (split, values) in by {
        text += &format!("\n{}", breakdown(split.name(), values, style));
    }
    if !labels.is_empty() {
        text += &format!("\n{}", breakdown("label", labels, style));
    }
    text
}

/// What tables have of sums.
const NUMBERS: [&str; 10] =
    [">servers", ">up", ">pages", ">requests", ">size", ">moved", ">failed", ">evaluated", ">failing", ">unfinished"];

fn numbers(counts: &RunCounts) -> [String; 10] {
    [
        counts.servers.to_string(),
        counts.up.to_string(),
        counts.pages.to_string(),
        counts.requests.to_string(),
        bytes(counts.page_bytes),
        bytes(counts.bytes),
        counts.failed.to_string(),
        counts.evaluated.to_string(),
        counts.failing.to_string(),
        counts.unfinished.to_string(),
    ]
}

fn breakdown(name: &str, values: &BTreeMap<String, RunCounts>, style: Style) -> String {
    let mut rows: Vec<_> = values.iter().collect();
    rows.sort_by(|a, b| b.1.servers.cmp(&a.1.servers).then(a.0.cmp(b.0)));
    let mut table = Table::new(&[name].into_iter().chain(NUMBERS).collect::<Vec<_>>());
    for (value, counts) in rows {
        table.row([value.clone()].into_iter().chain(numbers(counts)).collect());
    }
    table.text(style)
}

fn cells_text(totals: &RunTotals, style: Style) -> String {
    let mut cells: Vec<_> = totals.cells.iter().collect();
    cells.sort_by(|a, b| b.counts.servers.cmp(&a.counts.servers).then_with(|| a.values.cmp(&b.values)));
    let mut table = Table::new(&totals.crossed_by.iter().copied().chain(NUMBERS).collect::<Vec<_>>());
    for RunCell { values, counts } in cells {
        table.row(values.iter().cloned().chain(numbers(counts)).collect());
    }
    table.text(style)
}

/// One row for each value of each breakdown, or for each cell of two; the rows of one breakdown, but for the labels, add up to the total. Behind
/// the numbers: whose servers are missing.
fn csv(totals: &RunTotals, missing: &[String]) -> Result<String, CommandError> {
    let [one, other] = totals.crossed_by.first_chunk().copied().unwrap_or(["dimension", "value"]);
    let head: Vec<&str> = ["run", one, other].into_iter().chain(RunCounts::NAMES).chain(["all_owners_answered", "missing_text"]).collect();
    let row = |names: Vec<String>, counts: &RunCounts| {
        let numbers = counts.numbers().map(|number| number.to_string());
        let about = [missing.is_empty().to_string(), missing.join("; ")];
        [totals.run.to_string()].into_iter().chain(names).chain(numbers).chain(about).collect::<Vec<_>>()
    };
    let by = totals.by.iter().flat_map(|(split, values)| values.iter().map(|(value, counts)| (split.name(), value, counts)));
    let by = by.chain(totals.labels.iter().map(|(label, counts)| ("label", label, counts)));
    let cells = totals.cells.iter().map(|RunCell { values, counts }| row(values.to_vec(), counts));
    as_csv(&head, cells.chain(by.map(|(split, value, counts)| row(vec![split.to_owned(), value.clone()], counts))))
}
