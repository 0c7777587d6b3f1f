//! `results --run`: what one run of the servers came to, summed over the histories that their owners keep.

use super::{
    client::ApiArgs,
    error::{CommandError, Exit},
    in_part::{InPartCounts, estimate_cells, estimate_columns},
    json,
    last_whole::{OfRows, Standing, Sums, last_whole},
    owners::Source,
    survey::SurveyFilter,
    table::{Style, Table, as_csv, bytes, paragraph},
    walk::{each_row, not_whole},
};
use nearcrawl_core::report::{RunRows, RunSplitEstimates, RunSums};
use nearcrawl_model::{
    estimates::Estimate,
    run_totals::{RUN_SPLITS, RunCell, RunCounts, RunEstimates, RunTotals},
    server_rows::{HistoryRow, RowsOf},
    split::Split,
    summary::Dimension,
    survey::SurveyRef,
    view::counted,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};

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
    /// Where sums are kept that are whole.
    pub kept: Option<&'a Path>,
}

/// What one run came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunResults {
    survey: Option<String>,
    /// Whether every owner answered.
    all_owners_answered: bool,
    missing_text: Vec<String>,
    /// Whether these are the newest sums.
    #[serde(flatten)]
    standing: Standing,
    /// How much of the hosts of crowded addresses was visited in the run: the sums are of these only.
    sample: InPartCounts,
    /// What the sums over all servers come to with the hosts there that were not; none if all is counted.
    estimates: Option<RunEstimates>,
    /// The same by split and value, labels among them: of the values of which not all is counted.
    estimates_by: RunSplitEstimates,
    #[serde(flatten)]
    totals: RunTotals,
}

impl Sums for RunResults {
    fn missing(&self) -> &[String] {
        &self.missing_text
    }

    fn is_less_than(&self, than: &RunResults) -> bool {
        self.totals.total.is_less_than(&than.totals.total)
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

/// Asks all owners for the runs of their servers, and sums up one of them. What is missing is an error, behind what is there, unless the last
/// whole sums answer.
pub async fn run_results(question: &Question<'_>, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    check(question)?;
    let Question { run, survey, by, member, api, kept, .. } = *question;
    // One split is cut out of all of them; of two the cells are summed.
    let crossed: Vec<&str> = if by.len() > 1 { by.iter().map(|split| split.name()).collect() } else { Vec::new() };
    let what = format!("run {run} by {}", crossed.join(","));
    let mut results = last_whole(OfRows { directory: kept, what, survey, member, api }, gather(question).await).await?;
    let RunResults { totals, estimates_by, .. } = &mut results;
    if let [by] = *by {
        totals.by.retain(|split, _| Split::By(*split) == by);
        estimates_by.retain(|split, _| *split == by.name());
        if by != Split::Label {
            totals.labels.clear();
        }
    }
    if by.len() > 1 {
        (totals.by, totals.labels) = (BTreeMap::new(), BTreeMap::new());
    }
    let told = if api.json {
        json(&results)?
    } else if question.csv {
        csv(&results)?
    } else {
        text(&results, style)
    };
    Ok((told, not_whole(&results.missing_text)))
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

async fn gather(question: &Question<'_>) -> Result<RunResults, CommandError> {
    let mut source = Source::of(question.member, question.api.api.as_deref()).await?;
    let mut rows = RunRows::new(question.run, question.by);
    let mut filter = SurveyFilter::new(question.survey);
    let enter = |_, row: &str| {
        let Ok(row) = serde_json::from_str::<HistoryRow>(row) else { return false };
        let mark = filter.find(&row.surveys);
        if question.survey.is_none() || mark.is_some() {
            rows.enter(&row, mark.iter().flat_map(|mark| mark.label_texts()));
        }
        true
    };
    let missing = each_row(&mut source, RowsOf::History, enter).await?;
    filter.finish()?;
    let results = of_rows(rows, question.survey, missing);
    if results.totals.total.servers == 0 {
        // Those that are missing may have it.
        not_whole(&results.missing_text).map_or(Ok(()), Err)?;
        let of = question.survey.map_or_else(String::new, |survey| format!(" of survey {survey}"));
        return Err(CommandError::new(Exit::Data, format!("no server{of} has a run {} on record", question.run))
            .hint("`nearcrawl export history` has the runs of every server"));
    }
    Ok(results)
}

fn of_rows(rows: RunRows, survey: Option<&SurveyRef>, missing: Vec<String>) -> RunResults {
    let RunSums { totals, sample, estimates, estimates_by } = rows.sums();
    RunResults {
        survey: survey.map(ToString::to_string),
        all_owners_answered: missing.is_empty(),
        missing_text: missing,
        standing: Standing::default(),
        sample: InPartCounts::from(&sample),
        estimates,
        estimates_by,
        totals,
    }
}

/// What is estimated, and from how much, in words; none if all is counted.
fn estimated(results: &RunResults) -> Option<String> {
    let RunEstimates { servers, up, pages, page_bytes, not_estimated, .. } = results.estimates.as_ref()?;
    let told = [(servers, "servers"), (up, "up"), (pages, "pages"), (page_bytes, "bytes of pages")];
    let told = told.map(|(estimate, what)| format!("{} {what}", estimate.told(*not_estimated))).join(", ");
    results.sample.sentence().map(|sample| format!("estimated: {told}; {sample}"))
}

fn text(results: &RunResults, style: Style) -> String {
    let RunTotals { run, total, by, labels, servers_without, cells, .. } = &results.totals;
    let of = results.survey.as_ref().map_or_else(String::new, |survey| format!(" of survey {survey}"));
    let servers = format!("{} ({} up)", counted(total.servers, "server"), total.up);
    let (pages, requests) = (counted(total.pages, "page"), counted(total.requests, "request"));
    let sizes = format!("{} of pages, {} moved", bytes(total.page_bytes), bytes(total.bytes));
    let mut text = style.heading(&format!("run {run}{of}: {servers}, {pages}, {requests}, {sizes}")) + "\n";
    let missing = (!results.all_owners_answered).then(|| format!("servers are missing: {}", results.missing_text.join("; ")));
    let said = [results.standing.sentence(), missing, estimated(results)];
    text = said.into_iter().flatten().fold(text, |text, said| text + &paragraph(&said));
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
        text += &format!("\n{}", cells_text(&results.totals, style));
    }
    let estimates = |split: &str| results.estimates_by.get(split);
    for (split, values) in by {
        text += &format!("\n{}", breakdown(split.name(), values, estimates(split.name()), style));
    }
    if !labels.is_empty() {
        text += &format!("\n{}", breakdown("label", labels, estimates("label"), style));
    }
    text
}

/// The name of a column, and what is in it.
type EstimateColumn = (&'static str, fn(&RunEstimates) -> Estimate);

/// What tables have of estimates, if there are any.
const ESTIMATED: [EstimateColumn; 3] =
    [(">estimated", |told| told.servers), (">estimated up", |told| told.up), (">estimated pages", |told| told.pages)];

/// A table of sums by the values of these splits.
fn table<'a>(
    splits: &[&str],
    rows: impl Iterator<Item = (Vec<String>, &'a RunCounts, Option<&'a RunEstimates>)> + Clone,
    style: Style,
) -> String {
    let is_estimated = rows.clone().any(|(.., estimates)| estimates.is_some());
    let columns = ESTIMATED.iter().filter(|_| is_estimated);
    let mut table = Table::new(&splits.iter().copied().chain(NUMBERS).chain(columns.clone().map(|(name, _)| *name)).collect::<Vec<_>>());
    for (values, counts, estimates) in rows {
        let told = estimates.copied().unwrap_or_else(|| RunEstimates::counted(counts));
        let estimated = columns.clone().map(|(_, of)| told.told(*of));
        table.row(values.into_iter().chain(numbers(counts)).chain(estimated).collect());
    }
    table.text(style)
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

fn breakdown(name: &str, values: &BTreeMap<String, RunCounts>, estimates: Option<&BTreeMap<String, RunEstimates>>, style: Style) -> String {
    let mut rows: Vec<_> = values.iter().collect();
    rows.sort_by(|a, b| b.1.servers.cmp(&a.1.servers).then(a.0.cmp(b.0)));
    let rows = rows.iter().map(|(value, counts)| (vec![(*value).clone()], *counts, estimates.and_then(|estimates| estimates.get(*value))));
    table(&[name], rows, style)
}

fn cells_text(totals: &RunTotals, style: Style) -> String {
    let mut cells: Vec<_> = totals.cells.iter().collect();
    cells.sort_by(|a, b| b.counts.servers.cmp(&a.counts.servers).then_with(|| a.values.cmp(&b.values)));
    let splits: Vec<&str> = totals.crossed_by.iter().map(String::as_str).collect();
    table(&splits, cells.iter().map(|cell| (cell.values.to_vec(), &cell.counts, cell.estimates.as_ref())), style)
}

/// What rows of a CSV say of all sums together.
const ABOUT: [&str; 5] = ["all_owners_answered", "missing_text", "sample_text", "consistent_age_ms", "in_transition_text"];

/// What a row says in the columns of estimates.
fn cells_of(counts: &RunCounts, estimates: Option<&RunEstimates>) -> impl Iterator<Item = String> + use<> {
    let RunEstimates { servers, up, pages, page_bytes, failing, not_estimated } =
        estimates.copied().unwrap_or_else(|| RunEstimates::counted(counts));
    estimate_cells([servers, up, pages, page_bytes, failing].map(Some), Some(not_estimated))
}

/// One row for each value of each breakdown, or for each cell of two; the rows of one breakdown, but for the labels, add up to the total. Behind
/// the numbers: what they come to, whose servers are missing, and how old they are.
fn csv(results: &RunResults) -> Result<String, CommandError> {
    let RunResults { totals, all_owners_answered, missing_text, .. } = results;
    let [one, other] =
        totals.crossed_by.first_chunk().map_or(["dimension", "value"], |pair: &[String; 2]| pair.each_ref().map(String::as_str));
    let of_estimates = estimate_columns("failing");
    let of_estimates = of_estimates.iter().map(String::as_str);
    let head = ["run", one, other].into_iter().chain(RunCounts::NAMES).chain(of_estimates).chain(ABOUT).collect::<Vec<_>>();
    let about = [all_owners_answered.to_string(), missing_text.join("; "), estimated(results).unwrap_or_default()];
    let about: Vec<String> = about.into_iter().chain(results.standing.columns()).collect();
    let row = |names: Vec<String>, counts: &RunCounts, estimates: Option<&RunEstimates>| {
        let numbers = counts.numbers().map(|number| number.to_string()).into_iter().chain(cells_of(counts, estimates));
        [totals.run.to_string()].into_iter().chain(names).chain(numbers).chain(about.clone()).collect::<Vec<_>>()
    };
    let by = totals.by.iter().flat_map(|(split, values)| values.iter().map(|(value, counts)| (split.name(), value, counts)));
    let by = by.chain(totals.labels.iter().map(|(label, counts)| ("label", label, counts)));
    let by = by.map(|(split, value, counts)| {
        let estimates = results.estimates_by.get(split).and_then(|values| values.get(value));
        row(vec![split.to_owned(), value.clone()], counts, estimates)
    });
    let cells = totals.cells.iter().map(|RunCell { values, counts, estimates }| row(values.to_vec(), counts, estimates.as_ref()));
    as_csv(&head, cells.chain(by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        record::{RunState, ServerStatus},
        run_history::RunSummary,
        server_rows::{RunRow, Today},
    };

    /// A run that 40 of 100 hosts of one address have, half of them up with ten pages each.
    fn results(by: &[Split]) -> RunResults {
        let mut rows = RunRows::new(2, by);
        for number in 0..100 {
            let (place, address) = (["KE", "afrinic", "Museum"].map(str::to_owned), "192.0.2.1".parse().ok());
            let status = if number % 2 == 0 { ServerStatus::Up } else { ServerStatus::Down };
            let pages = if number % 2 == 0 { 10 } else { 0 };
            let summary = RunSummary { run: 2, address, status, pages, known: 1, state: RunState::Complete, ..RunSummary::default() };
            let [country, registry, organisation] = place.clone();
            let run = RunRow { country, registry, organisation, summary };
            let [country, registry, organisation] = place;
            let inclusion_probability = (number < 40).then_some(0.4);
            let today = Some(Today { address, country, registry, organisation, inclusion_probability });
            let (access_point, host) = (AccessPoint([7; 32]), format!("h{number}.ke").parse().unwrap());
            let (tree, surveys, runs) = ("h.ke".parse().unwrap(), Vec::new(), if number < 40 { vec![run] } else { Vec::new() });
            rows.enter(&HistoryRow { access_point, host, tree, surveys, runs_left_out: 0, today, runs }, []);
        }
        of_rows(rows, None, Vec::new())
    }

    #[test]
    fn a_run_says_what_it_comes_to_with_the_hosts_of_an_address_that_do_not_have_it() {
        let (all, crossed) = (results(&[]), results(&[Split::By(Dimension::Country), Split::By(Dimension::Status)]));
        let told = serde_json::to_value(&all).unwrap();
        assert_eq!((&told["total"]["servers"], &told["total"]["pages"], &told["servers_without"]), (&40.into(), &200.into(), &60.into()));
        let estimated = |name: &str| [&told["estimates"][name]["estimated"], &told["estimates"][name]["margin"]].map(|told| told.as_u64());
        assert_eq!((estimated("servers"), estimated("up")[0], estimated("pages")[0]), ([Some(100), Some(0)], Some(50), Some(500)));
        assert!(estimated("pages")[1].is_some_and(|margin| (50..200).contains(&margin)), "{told}");
        assert_eq!(told["estimates_by"]["status"]["up"]["servers"]["estimated"], 50, "{told}");
        assert_eq!(told["sample"], serde_json::json!({"addresses": 1, "hosts": 100, "sampled": 40, "not_estimated": 0}));
        // As it is kept for later.
        let read: RunResults = serde_json::from_value(told.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), told);
        let words = text(&all, Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("estimated: 100 servers, 50 ± ") && words.contains("40 of 100 hosts at 1 address"), "{words}");
        for (results, names, value) in [(&all, ["dimension", "value"], "up"), (&crossed, ["country", "status"], "up")] {
            let text = csv(results).unwrap();
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let head = reader.headers().unwrap().clone();
            let at = |name: &str| head.iter().position(|column| column == name).unwrap();
            let row = reader.records().map(Result::unwrap).find(|row| &row[at(names[1])] == value).unwrap();
            let cells = ["servers", "servers_estimated", "pages", "pages_estimated", "hosts_not_estimated"].map(|name| &row[at(name)]);
            assert_eq!(cells, ["20", "50", "200", "500", "0"], "{text}");
        }
    }
}
