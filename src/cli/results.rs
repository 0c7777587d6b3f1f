//! `results`: the totals of the swarm and their breakdowns, as tables, JSON or CSV.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    evaluate,
    in_part::{InPartCounts, estimate_cells, estimate_columns},
    json,
    last_whole::{OfRows, Standing, last_whole},
    owners::Source,
    row_table::{CrossTableTold, RowCell, RowTableView, row_table},
    run::results_of_member,
    run_results::{Question, run_results},
    survey,
    table::{Style, Table, as_csv, bytes, paragraph},
    walk::not_whole,
};
use clap::{Args, ValueEnum, builder::PossibleValue};
use nearcrawl_model::{
    cross_table::{CrossTableView, Pair},
    distinct::{DistinctCount, DistinctView},
    estimates::{CellEstimates, Estimate, Estimates},
    split::Split,
    summary::{Counts, Dimension, Summary, SwarmResults},
    survey::SurveyRef,
    view::{Age, ResultsView, counted},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    path::PathBuf,
};

/// Shown under `results --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl results\n  \
    nearcrawl results --by tld --csv > tlds.csv\n  \
    nearcrawl results --by country,tls\n  \
    nearcrawl results --survey universities --by label\n  \
    nearcrawl results --survey universities --by label,rule\n  \
    nearcrawl results --by rule,country --csv > rules.csv\n  \
    nearcrawl results --run 2 --survey universities --by country\n  \
    nearcrawl results --json | jq .exact\n  \
    nearcrawl results --distinct --csv\n  \
    nearcrawl results --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    --by with two breakdowns asks all members, which takes up to 3 s. By rule, or two breakdowns of a survey or with --member, the rows of all servers \
    are read from their owners and summed here. --member asks a member of any swarm over the network, without joining it. \
    --run sums up one run from the histories that the owners keep: a server counts where it was and with what it answered then, and for the surveys \
    that it belongs to today. If an owner does not answer, or subnets change hands, the sums for which all rows were there \
    answer, if this user was told them or the daemon was given them within ten minutes, with their age; without such, what there is is printed, and the \
    exit code is 69.";

/// A split as `--by` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct By(Split);

/// [`Split::ALL`] with [`By`] around each: what clap needs to borrow.
const ALL: [By; Split::ALL.len()] = {
    let mut all = [By(Split::Label); Split::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = By(Split::ALL[at]);
        at += 1;
    }
    all
};

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [By] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.meaning()))
    }
}

/// The arguments of `results`.
#[derive(Args, Clone, Debug)]
pub struct ResultsArgs {
    /// Show only this breakdown; of two, as in country,tls, how they go together
    #[arg(long, value_enum, value_delimiter = ',', value_name = "BY[,BY]")]
    by: Vec<By>,
    /// Only servers that belong to this survey
    #[arg(long, value_name = "NAME")]
    survey: Option<SurveyRef>,
    /// Show what this run of each server came to, instead of the last whole one
    #[arg(long, value_name = "RUN", conflicts_with = "distinct", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// Show only how many different hosts, domains and addresses there are; all members are asked, which takes up to 3 s
    #[arg(long, conflicts_with_all = ["by", "survey"])]
    distinct: bool,
    /// Print the breakdowns as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
    /// Where sums over rows are kept that are whole, if they are.
    #[arg(skip)]
    pub kept: Option<PathBuf>,
}

impl ResultsArgs {
    /// A question that is asked for sums over rows.
    fn question(&self, what: String) -> OfRows<'_> {
        let (directory, survey) = (self.kept.as_deref(), self.survey.as_ref());
        OfRows { directory, what, survey, member: self.member.as_deref(), api: &self.api }
    }
}

/// Asks a daemon for the totals, or all owners for their rows, and formats them. Rows that are missing are an error, behind what is there.
pub async fn results(args: &ResultsArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let by: Vec<Split> = args.by.iter().map(|by| by.0).collect();
    check(&by, args.survey.is_some())?;
    let (survey, member) = (args.survey.as_ref(), args.member.as_deref());
    if let Some(run) = args.run {
        let kept = args.kept.as_deref();
        return run_results(&Question { run, survey, by: &by, member, api: &args.api, csv: args.csv, kept }, style).await;
    }
    // Owners sum by one split, and by two for a daemon that asks them; what else there is the reader sums.
    let rows_are_summed_here = by.contains(&Split::Rule) || (by.len() == 2 && (survey.is_some() || member.is_some()));
    if rows_are_summed_here {
        let names: Vec<&str> = by.iter().map(|split| split.name()).collect();
        let question = args.question(format!("by {}", names.join(",")));
        let view = last_whole(question, row_table(&by, survey, member, args.api.api.as_deref()).await).await?;
        return Ok((summed_here(&view, args, style)?, not_whole(&view.missing_text)));
    }
    if let Some(survey) = survey {
        return of_survey(args, survey, style).await;
    }
    let told = match by[..] {
        [Split::By(one), Split::By(other)] => return cross_table((one, other), args, style).await,
        _ if args.distinct => distinct_only(&distinct(args).await?, args, style)?,
        _ => of_all(args, style).await?,
    };
    Ok((told, None))
}

/// The totals as the member tells them: while some are missing, the last consistent ones.
async fn of_all(args: &ResultsArgs, style: Style) -> Result<String, CommandError> {
    let (results, distinct) = tokio::join!(totals(args), distinct(args));
    let mut results = results?;
    let rule_sets = results.summary.rule_sets();
    if let [by] = args.by[..] {
        results.summary.by.retain(|dimension, _| Split::By(*dimension) == by.0);
    }
    match (args.api.json, args.csv) {
        (true, _) => json(&Told { results: results.into(), distinct: distinct.ok() }),
        (_, true) => {
            // The rows say it, too, in columns of their own behind the numbers.
            if let Some(warning) = warning(&results) {
                let _ = writeln!(io::stderr(), "{warning}");
            }
            csv(&results, args.by.len() == 1)
        }
        _ => Ok(text(&results, rule_sets.as_deref(), distinct, style)),
    }
}

/// Whether these splits can be shown.
fn check(by: &[Split], of_survey: bool) -> Result<(), CommandError> {
    let wrong = |why: &str| Err(CommandError::new(Exit::Usage, why.to_owned()));
    match by {
        [_, _, _, ..] => {
            wrong("--by takes one or two breakdowns").map_err(|error: CommandError| error.hint("write them like --by country,tls"))
        }
        [one, other] if one == other => {
            wrong("--by names one breakdown twice").map_err(|error: CommandError| error.hint("write two like --by country,tls"))
        }
        _ if by.contains(&Split::Label) && !of_survey => wrong("--by label needs --survey: labels are what a survey says of its hosts"),
        _ => Ok(()),
    }
}

/// What pages with failures are called in sums.
const FAILURES: &str = "detected_failures";

/// What a CSV of sums over rows says in each row: whether all rows were there, what is estimated, and whether the sums are the newest.
const ABOUT_ROWS: [&str; 5] = ["all_owners_answered", "missing_text", "sample_text", "consistent_age_ms", "in_transition_text"];

/// What a CSV of two splits of all servers says in each row: whether the counts are exact, and what the estimates beside them rest on.
const ABOUT_CELLS: [&str; 7] = [
    "exact",
    "in_transition_text",
    "all_owners_answered",
    "missing_text",
    "sample_text",
    "estimates_age_ms",
    "estimates_in_transition_text",
];

/// The totals of a survey.
async fn of_survey(args: &ResultsArgs, survey: &SurveyRef, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let newest = survey::results(args.member.as_deref(), &args.api, survey).await;
    let mut results = last_whole(args.question("totals".to_owned()), newest).await?;
    let rule_sets = results.summary.rule_sets();
    if let [by] = args.by[..] {
        results.summary.by.retain(|dimension, _| Split::By(*dimension) == by.0);
        results.estimates_by.retain(|split, _| *split == by.0.name());
        if by.0 != Split::Label {
            results.labels.clear();
        }
    }
    let told = match (args.api.json, args.csv) {
        (true, _) => json(&results)?,
        (_, true) => {
            let by = results.summary.by.iter().flat_map(|(by, values)| values.iter().map(|(value, sums)| ([by.name(), value], sums)));
            let labels = results.labels.iter().map(|(label, sums)| ([Split::Label.name(), label.as_str()], sums));
            let sample = results.summary.estimates.sentence().unwrap_or_default();
            let about = [results.all_owners_answered.to_string(), results.missing_text.join("; "), sample];
            let about: Vec<String> = about.into_iter().chain(results.standing.columns()).collect();
            let sums: Vec<([&str; 2], &Counts)> = by.chain(labels).collect();
            let rows = sums.into_iter().map(|(names, sums)| {
                let estimates = results.estimates_by.get(names[0]).and_then(|values| values.get(names[1]));
                (names, sums, cells_of(sums, estimates).chain(about.clone()).collect())
            });
            rows_csv(["dimension", "value"], &row_columns(), rows)?
        }
        _ => {
            let mut text = style.heading(&format!("survey {}: {}", results.survey, first_line(&results.summary.total))) + "\n";
            text += &paragraph(&results.freshness());
            text += &parts(&results.summary, rule_sets.as_deref(), style);
            if !results.labels.is_empty() {
                let of_labels = results.estimates_by.get(Split::Label.name());
                let column = |of: fn(&CellEstimates) -> Estimate| {
                    of_labels.into_iter().flatten().map(|(label, told)| (label.clone(), told.told(of))).collect()
                };
                let estimated = [(">estimated up", column(|told| told.up)), (">estimated pages", column(|told| told.pages))];
                let estimated = if of_labels.is_some() { &estimated[..] } else { &[] };
                text += &format!("\n{}", breakdown(Split::Label.name(), &results.labels, estimated, style));
            }
            text
        }
    };
    Ok((told, not_whole(&results.missing_text)))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    results: ResultsView,
    /// None if it is not told.
    distinct: Option<DistinctView>,
}

async fn totals(args: &ResultsArgs) -> Result<SwarmResults, CommandError> {
    let results: SwarmResults = match &args.member {
        Some(member) => results_of_member(member).await?,
        None => ApiClient::new(&args.api)?.get("/api/results", &[]).await?,
    };
    Ok(results.for_readers())
}

async fn distinct(args: &ResultsArgs) -> Result<DistinctView, CommandError> {
    Source::of(args.member.as_deref(), args.api.api.as_deref()).await?.distinct().await
}

/// How many different ones there are, and nothing else. Each with the servers of which it is not known what they add to it.
fn distinct_only(view: &DistinctView, args: &ResultsArgs, style: Style) -> Result<String, CommandError> {
    let unknown = view.servers_not_counted;
    let counts = [
        ("servers", DistinctCount { count: view.servers, error_ratio: 0.0 }, 0),
        ("addresses", view.addresses, 0),
        ("domains", view.domains, 0),
        ("external_hosts", view.external_hosts, unknown),
        ("external_domains", view.external_domains, unknown),
    ];
    if args.api.json {
        return json(view);
    }
    if args.csv {
        let rows = counts.iter().map(|(name, count, not_counted)| {
            let why = view.in_transition_text.clone().unwrap_or_default();
            vec![(*name).to_owned(), count.count.to_string(), count.error_ratio.to_string(), why, not_counted.to_string()]
        });
        return as_csv(&["distinct", "count", "error_ratio", "in_transition_text", "servers_not_counted"], rows);
    }
    let mut table = Table::new(&["distinct", ">count", ">standard error"]);
    for (name, count, not_counted) in counts {
        let is_whole = view.in_transition_text.is_none() && not_counted == 0;
        let error = match (count.error_ratio == 0.0, is_whole) {
            (true, true) => "exact".to_owned(),
            (true, false) => "counted so far".to_owned(),
            (false, true) => format!("{:.1} %", count.error_ratio * 100.0),
            (false, false) => format!("{:.1} % of those counted so far", count.error_ratio * 100.0),
        };
        table.row(vec![name.replace('_', " "), count.count.to_string(), error]);
    }
    Ok(table.text(style) + &paragraph(&distinct_freshness(view)))
}

fn distinct_freshness(view: &DistinctView) -> String {
    let why = view.in_transition_text.as_ref().map_or_else(String::new, |why| format!("; {why}"));
    let left_out = match view.servers_not_counted {
        0 => String::new(),
        some => format!("; without what {} named before the last upgrade", counted(some, "server")),
    };
    format!("sets of {}, answered by {}{left_out}{why}", counted(view.members, "member"), view.answered_by.short())
}

/// The sums by two dimensions at once. Members tell what was counted; what it comes to where only a part of the hosts of an address was visited
/// is said by the rows of all servers, which are asked for only then. If they are missing, that is an error behind what was counted.
async fn cross_table((one, other): Pair, args: &ResultsArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let by = format!("{},{}", one.name(), other.name());
    let api = ApiClient::new(&args.api)?;
    let view: CrossTableView = api.get("/api/cross-table", &[("by", &by)]).await?;
    let totals: SwarmResults = api.get("/api/results", &[("by", one.name())]).await?;
    let mut rows = None;
    if totals.summary.estimates.is_any() {
        let newest = row_table(&[Split::By(one), Split::By(other)], None, None, args.api.api.as_deref()).await;
        rows = Some(last_whole(args.question(format!("by {by}")), newest).await);
    }
    let table = CrossTableTold::of(view, InPartCounts::from(&totals.summary.estimates), rows);
    let warning = table.in_transition_text.as_ref().map(|why| format!("in transition: {why}"));
    let told = match (args.api.json, args.csv) {
        (true, _) => json(&table)?,
        (_, true) => {
            warning.iter().for_each(|warning| drop(writeln!(io::stderr(), "warning: {warning}")));
            table_csv(&table)?
        }
        _ => {
            let mut total = Counts::default();
            table.cells.iter().for_each(|cell| total.add(&cell.counts));
            let first_runs = total.first_runs().filter(|text| table.in_transition_text.as_ref() != Some(text));
            let freshness = [Some(warning.unwrap_or_else(|| "exact".to_owned())), first_runs];
            let freshness = freshness.into_iter().flatten().collect::<Vec<_>>().join("; ");
            let estimated = table.estimated().map(|estimated| paragraph(&estimated)).unwrap_or_default();
            paragraph(&freshness) + &estimated + "\n" + &table_text(&table, style)
        }
    };
    Ok((told, table.failure()))
}

fn table_text(view: &CrossTableTold, style: Style) -> String {
    let cells = view.cells.iter().map(|cell| (cell.values.as_slice(), &cell.counts, cell.estimates.as_ref()));
    cells_text(&view.by.map(Dimension::name), cells.collect(), style)
}

/// A cell: its values, the sums, and what they come to if that is estimated.
type Shown<'a> = (&'a [String], &'a Counts, Option<&'a CellEstimates>);

/// The name of a column, and what is in it.
type EstimateColumn = (&'static str, fn(&CellEstimates) -> Estimate);

/// What is estimated of a cell.
const ESTIMATED: [EstimateColumn; 3] =
    [(">estimated", |told| told.servers), (">estimated up", |told| told.up), (">estimated pages", |told| told.pages)];

/// The same of rules.
const FAILURES_ESTIMATED: EstimateColumn = (">estimated failures", |told| told.detected_failures);

fn cells_text(by: &[&str], cells: Vec<Shown<'_>>, style: Style) -> String {
    let mut names = by.to_vec();
    names.extend([">servers", ">up", ">pages", ">requests", ">size", ">moved", ">failed"]);
    let has_rules = by.contains(&Split::Rule.name());
    names.extend(has_rules.then_some(">failures"));
    let is_estimated = cells.iter().any(|(.., estimates)| estimates.is_some());
    let of_rules = has_rules.then_some(FAILURES_ESTIMATED);
    let estimated: Vec<_> = ESTIMATED.into_iter().chain(of_rules).filter(|_| is_estimated).collect();
    names.extend(estimated.iter().map(|(name, _)| *name));
    let mut table = Table::new(&names);
    for (values, counts, estimates) in cells {
        let mut row = values.to_vec();
        row.extend([counts.servers, counts.up, counts.pages, counts.requests].map(|number| number.to_string()));
        row.extend([bytes(counts.page_bytes), bytes(counts.bytes), counts.failed.to_string()]);
        row.extend(has_rules.then(|| counts.detected_failures.to_string()));
        let told = estimates.copied().unwrap_or_else(|| CellEstimates::counted(counts));
        row.extend(estimated.iter().map(|(_, of)| told.told(*of)));
        table.row(row);
    }
    table.text(style)
}

/// The sums that were made of rows.
fn summed_here(view: &RowTableView, args: &ResultsArgs, style: Style) -> Result<String, CommandError> {
    match (args.api.json, args.csv) {
        (true, _) => json(view),
        (_, true) => row_table_csv(view),
        _ => {
            let missing = (!view.all_owners_answered).then(|| format!("servers are missing: {}", view.missing_text.join("; ")));
            let of = view.survey.as_ref().map_or_else(String::new, |survey| format!(" of survey {survey}"));
            let text = style.heading(&format!("{}{of}", counted(view.servers, "server"))) + "\n";
            let cells = view.cells.iter().map(|cell| (cell.values.as_slice(), &cell.counts, cell.estimates.as_ref()));
            let by: Vec<&str> = view.by.iter().map(String::as_str).collect();
            let several = by.iter().any(|by| [Split::Rule.name(), Split::Label.name()].contains(by));
            let adds_up = several.then(|| paragraph("A server with several labels, or that fails several rules, counts for each."));
            let said = [view.standing.sentence(), missing, view.estimates.sentence()].into_iter().flatten().map(|said| paragraph(&said));
            Ok(said.chain(adds_up).fold(text, |text, line| text + &line) + "\n" + &cells_text(&by, cells.collect(), style))
        }
    }
}

/// One row for each cell.
fn row_table_csv(view: &RowTableView) -> Result<String, CommandError> {
    let sample = view.estimates.sentence().unwrap_or_default();
    let about = [view.all_owners_answered.to_string(), view.missing_text.join("; "), sample];
    let about: Vec<String> = about.into_iter().chain(view.standing.columns()).collect();
    let further = |cell: &RowCell| cells_of(&cell.counts, cell.estimates.as_ref()).chain(about.clone()).collect();
    if let [one, other] = &view.by[..] {
        let cells = view.cells.iter().filter_map(|cell| Some((cell.values.first_chunk()?, cell)));
        let cells = cells.map(|(values, cell)| (values.each_ref().map(String::as_str), &cell.counts, further(cell)));
        return rows_csv([one, other], &row_columns(), cells);
    }
    let name = view.by.first().map_or("", String::as_str);
    let rows = view.cells.iter().flat_map(|cell| cell.values.iter().map(move |value| ([name, value.as_str()], cell)));
    rows_csv(["dimension", "value"], &row_columns(), rows.map(|(names, cell)| (names, &cell.counts, further(cell))))
}

/// The columns of a CSV of sums over rows behind the sums.
fn row_columns() -> Vec<String> {
    estimate_columns(FAILURES).into_iter().chain(ABOUT_ROWS.map(str::to_owned)).collect()
}

/// What a cell says in the columns of estimates.
fn cells_of(counts: &Counts, estimates: Option<&CellEstimates>) -> impl Iterator<Item = String> + use<> {
    let CellEstimates { servers, up, pages, page_bytes, detected_failures, not_estimated } =
        estimates.copied().unwrap_or_else(|| CellEstimates::counted(counts));
    estimate_cells([servers, up, pages, page_bytes, detected_failures].map(Some), Some(not_estimated))
}

/// One row for each cell; all add up to the total. Where something would have to be estimated and rows are missing for it, the columns of
/// estimates are empty.
fn table_csv(view: &CrossTableTold) -> Result<String, CommandError> {
    let standing = Standing { consistent_age_ms: view.estimates_age_ms, in_transition_text: view.estimates_in_transition_text.clone() };
    let counts = [view.exact.to_string(), view.in_transition_text.clone().unwrap_or_default()];
    let rows = [view.all_owners_answered.to_string(), view.missing_text.join("; "), view.estimated().unwrap_or_default()];
    let about: Vec<String> = counts.into_iter().chain(rows).chain(standing.columns()).collect();
    let cells = view.cells.iter().filter_map(|cell| Some((cell.values.first_chunk::<2>()?, cell)));
    let rows = cells.map(|(values, cell)| {
        let mut further: Vec<String> = match &view.estimates {
            Some(_) => cells_of(&cell.counts, cell.estimates.as_ref()).collect(),
            None => estimate_cells([None; 5], None).collect(),
        };
        further.extend_from_slice(&about);
        (values.each_ref().map(String::as_str), &cell.counts, further)
    });
    let further: Vec<String> = estimate_columns(FAILURES).into_iter().chain(ABOUT_CELLS.map(str::to_owned)).collect();
    rows_csv(view.by.map(Dimension::name), &further, rows)
}

/// Whether the totals are exact, and if not, of when they are; whose they are, and how long ago a member last said that its part holds.
fn freshness(results: &SwarmResults) -> String {
    let freshness = results.freshness();
    let members = counted(results.covers.len() as u64, "member");
    format!(
        "{freshness}; totals of {members}, each confirmed in the last {}; answered by {}",
        Age(results.oldest_roll_up_age_ms),
        results.answered_by.short()
    )
}

/// Said beside the rows of a CSV: that they will still change.
fn warning(results: &SwarmResults) -> Option<String> {
    (!results.exact).then(|| format!("warning: {}", freshness(results)))
}

fn first_line(total: &Counts) -> String {
    let servers = format!("{} ({} up)", counted(total.servers, "server"), total.up);
    let (pages, requests) = (counted(total.pages, "page"), counted(total.requests, "request"));
    let sizes = format!("{} of pages, {} moved", bytes(total.page_bytes), bytes(total.bytes));
    format!("{servers}, {pages}, {requests}, {sizes}")
}

fn text(results: &SwarmResults, rule_sets: Option<&str>, distinct: Result<DistinctView, CommandError>, style: Style) -> String {
    let mut text = format!("{}\n", style.heading(&first_line(&results.summary.total)));
    text += &paragraph(&freshness(results));
    text += &paragraph(&match distinct {
        Ok(view) => view.told(),
        Err(why) => format!("distinct hosts, domains and addresses are not told: {}", why.message),
    });
    text + &parts(&results.summary, rule_sets, style)
}

/// What sums come to, beside their first line.
fn parts(summary: &Summary, rule_sets: Option<&str>, style: Style) -> String {
    let total = &summary.total;
    let mut text = paragraph(&total.external());
    text += &total.held_back().map(|held_back| paragraph(&held_back)).unwrap_or_default();
    let estimates = &summary.estimates;
    text += &estimates.sentence().map(|estimated| paragraph(&estimated)).unwrap_or_default();
    text += &rule_sets.map(paragraph).unwrap_or_default();
    text += &evaluate::told(&summary.evaluation, false, style);
    // Where nothing was evaluated there is nothing to tell apart by rule set.
    let is_told = |dimension: &Dimension| *dimension != Dimension::RuleSet || rule_sets.is_some() || summary.by.len() == 1;
    for (dimension, values) in summary.by.iter().filter(|(dimension, _)| is_told(dimension)) {
        let estimate = |(value, counts): (&String, &Counts)| {
            let counted = CellEstimates::counted(counts).servers;
            (value.clone(), estimates.servers(*dimension, value).unwrap_or(&counted).told(estimates.not_estimated))
        };
        let estimated = estimates.by.contains_key(dimension).then(|| (">estimated", values.iter().map(estimate).collect()));
        text += &format!("\n{}", breakdown(dimension.name(), values, estimated.as_slice(), style));
    }
    text
}

/// A column of estimates: its name, and by value.
type Column = (&'static str, BTreeMap<String, String>);

fn breakdown(name: &str, values: &BTreeMap<String, Counts>, estimated: &[Column], style: Style) -> String {
    let mut rows: Vec<_> = values.iter().collect();
    rows.sort_by(|a, b| b.1.servers.cmp(&a.1.servers).then(a.0.cmp(b.0)));
    let names = [">servers", ">up", ">pages", ">requests", ">size", ">moved", ">cut", ">robots", ">failed", ">unfinished"];
    let names: Vec<&str> = [name].into_iter().chain(estimated.iter().map(|(name, _)| *name)).chain(names).collect();
    let mut table = Table::new(&names);
    for (value, counts) in rows {
        let estimated = estimated.iter().map(|(_, of)| of.get(value).cloned().unwrap_or_default());
        let numbers = [
            counts.servers.to_string(),
            counts.up.to_string(),
            counts.pages.to_string(),
            counts.requests.to_string(),
            bytes(counts.page_bytes),
            bytes(counts.bytes),
            counts.cut_by_depth.to_string(),
            counts.refused_by_robots.to_string(),
            counts.failed.to_string(),
            counts.unfinished.to_string(),
        ];
        table.row([value.clone()].into_iter().chain(estimated).chain(numbers).collect());
    }
    table.text(style)
}

/// One row for each value of each breakdown; the rows of one breakdown add up to the total, which is the first row unless only one breakdown is
/// shown. Members tell estimates of servers by value, and of what else there is those of the total alone: other cells are empty where
/// something is estimated. No owner was asked for rows.
fn csv(results: &SwarmResults, is_one_shown: bool) -> Result<String, CommandError> {
    let Summary { by, estimates, total, .. } = &results.summary;
    let [age, why] =
        Standing { consistent_age_ms: results.consistent_age_ms, in_transition_text: results.in_transition_text.clone() }.columns();
    let sample = estimates.sentence().unwrap_or_default();
    let about = [String::new(), String::new(), sample, age, why, results.exact.to_string()];
    let counted = CellEstimates::counted(total);
    let Estimates { up, pages, page_bytes, not_estimated, .. } = estimates;
    let (up, pages, page_bytes, not_estimated) = (*up, *pages, *page_bytes, *not_estimated);
    let of_total = if estimates.is_any() { CellEstimates { up, pages, page_bytes, not_estimated, ..counted } } else { counted };
    let of_total = (["total", "all"], total, of_total, true);
    let values = by.iter().flat_map(|(dimension, values)| {
        values.iter().map(|(value, counts)| {
            let counted = CellEstimates::counted(counts);
            let servers = estimates.servers(*dimension, value).copied().unwrap_or(counted.servers);
            let told = CellEstimates { servers, not_estimated: estimates.not_estimated, ..counted };
            ([dimension.name(), value.as_str()], counts, told, false)
        })
    });
    let rows = (!is_one_shown).then_some(of_total).into_iter().chain(values).map(|(names, counts, told, is_total)| {
        let CellEstimates { servers, up, pages, page_bytes, detected_failures, not_estimated } = told;
        let all = |told: Estimate| (is_total || !estimates.is_any()).then_some(told);
        let failures = Some(detected_failures).filter(|_| !estimates.is_any());
        let figures = [Some(servers), all(up), all(pages), all(page_bytes), failures];
        let not_estimated = Some(not_estimated).filter(|hosts| is_total || *hosts == 0);
        (names, counts, estimate_cells(figures, not_estimated).chain(about.iter().cloned()).collect())
    });
    let further: Vec<String> = row_columns().into_iter().chain(["exact".to_owned()]).collect();
    rows_csv(["dimension", "value"], &further, rows)
}

/// Two columns of these names, then the sums, then what else there is.
fn rows_csv<'a>(
    names: [&str; 2],
    further: &[impl AsRef<str>],
    rows: impl Iterator<Item = ([&'a str; 2], &'a Counts, Vec<String>)>,
) -> Result<String, CommandError> {
    let head = [
        names[0],
        names[1],
        "servers",
        "up",
        "pages",
        "requests",
        "bytes",
        "busy_ms",
        "external_hosts",
        "external_urls",
        "external_domains",
        "cut_by_depth",
        "refused_by_robots",
        "failed",
        "unfinished",
        "evaluated",
        "detected_failures",
        "page_bytes",
        "waiting_urls",
        "waiting_urls_by_budget",
        "urls_not_queued",
        "hosts_held_by_site_limit",
        "hosts_held_by_domain_limit",
    ];
    let head: Vec<&str> = head.into_iter().chain(further.iter().map(AsRef::as_ref)).collect();
    let row = |(values, counts, more): ([&str; 2], &Counts, Vec<String>)| {
        let numbers = columns(counts).map(|number| number.to_string());
        values.map(str::to_owned).into_iter().chain(numbers).chain(more).collect()
    };
    as_csv(&head, rows.map(row))
}

fn columns(counts: &Counts) -> [u64; 21] {
    [
        counts.servers,
        counts.up,
        counts.pages,
        counts.requests,
        counts.bytes,
        counts.busy_ms,
        counts.external_hosts,
        counts.external_urls,
        counts.external_domains,
        counts.cut_by_depth,
        counts.refused_by_robots,
        counts.failed,
        counts.unfinished,
        counts.evaluated,
        counts.detected_failures,
        counts.page_bytes,
        counts.waiting_urls,
        counts.waiting_urls_by_budget,
        counts.urls_not_queued,
        counts.hosts_held_by_site_limit,
        counts.hosts_held_by_domain_limit,
    ]
}

#[cfg(test)]
mod tests {
    use super::{
        BTreeMap, CommandError, Counts, Dimension, DistinctCount, DistinctView, Estimate, Estimates, Exit, ResultsView, Style, Summary,
        SwarmResults, csv, text, warning,
    };
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use nearcrawl_model::{access_point::AccessPoint, distinct::DistinctSets};

    /// The arguments of a command with this line.
    fn arguments(line: &str) -> super::ResultsArgs {
        match Cli::try_parse_from(["nearcrawl", "results"].into_iter().chain(line.split_whitespace())).unwrap().command {
            Command::Results(args) => args,
            other => panic!("{other:?}"),
        }
    }

    /// The rows of a CSV, each with its cells by column.
    fn rows_of(text: &str) -> Vec<BTreeMap<String, String>> {
        csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect()
    }

    #[test]
    fn sets_that_are_not_whole_are_not_called_exact() {
        let own = || DistinctView::new(AccessPoint([1; 32]), &DistinctSets::default(), 2);
        let table = |view: &DistinctView, line: &str| super::distinct_only(view, &arguments(line), Style::Plain).unwrap();
        let said = |view: &DistinctView| {
            let text = table(view, "--distinct");
            ["exact", "counted so far", "% of those counted so far"]
                .map(|words| text.lines().filter(|line| line.trim().ends_with(words)).count())
        };
        assert_eq!(said(&own()), [5, 0, 0]);
        let earlier = DistinctView { servers_not_counted: 1, ..own() };
        assert_eq!(said(&earlier), [3, 2, 0], "only what the servers named is not whole: {}", table(&earlier, "--distinct"));
        let estimate = DistinctCount { count: 9_000, error_ratio: 0.016 };
        let silent = DistinctView { in_transition_text: Some("x did not tell".to_owned()), external_hosts: estimate, ..own() };
        assert_eq!(said(&silent), [0, 5, 1], "{}", table(&silent, "--distinct"));
        assert!(table(&silent, "--distinct").contains("1.6 % of those counted so far"));
        let rows = rows_of(&table(&DistinctView { servers_not_counted: 3, ..silent }, "--distinct --csv"));
        let not_counted: Vec<_> = rows.iter().map(|row| (row["distinct"].as_str(), row["servers_not_counted"].as_str())).collect();
        assert_eq!(not_counted[2..], [("domains", "0"), ("external_hosts", "3"), ("external_domains", "3")]);
        assert!(rows.iter().all(|row| row["in_transition_text"] == "x did not tell"), "{rows:?}");
    }

    #[test]
    fn rows_of_all_servers_have_the_estimates_of_the_totals_and_say_nothing_of_what_is_not_told() {
        let mut results = results(true);
        let (kenya, up) =
            (Counts { servers: 100_000, up: 1_800, pages: 7_000, ..Counts::default() }, Counts { servers: 1_800, ..Counts::default() });
        results.summary.total = kenya;
        results.summary.by.insert(Dimension::Country, [("KE".to_owned(), kenya)].into());
        results.summary.by.insert(Dimension::Status, [("up".to_owned(), up)].into());
        let counted = rows_of(&csv(&results, false).unwrap());
        let cells = |row: &BTreeMap<String, String>, names: [&str; 4]| names.map(|name| row[name].clone());
        let pages = ["servers_estimated", "pages_estimated", "pages_margin", "hosts_not_estimated"];
        assert_eq!(counted.iter().map(|row| row["dimension"].as_str()).collect::<Vec<_>>(), ["total", "country", "status"]);
        assert_eq!(cells(&counted[1], pages), ["100000", "7000", "0", "0"], "where all is counted that is what it comes to");
        assert!(counted.iter().all(|row| row["sample_text"].is_empty()));

        let estimates = &mut results.summary.estimates;
        *estimates = Estimates { addresses: 1, hosts: 100_000, sampled: 2_345, ..Estimates::default() };
        (estimates.up.more, estimates.pages.more, estimates.pages.variance) = (69_000.0, 290_000.0, 1e6);
        let status = Estimate { more: 69_000.0, ..Estimate::default() };
        estimates.by.insert(Dimension::Status, [("up".to_owned(), status)].into());
        estimates.settle(&kenya, &results.summary.by);
        let rows = rows_of(&csv(&results, false).unwrap());
        assert_eq!(cells(&rows[0], pages), ["100000", "297000", "1960", "0"]);
        assert_eq!(cells(&rows[0], ["up_estimated", "up_margin", "detected_failures_estimated", "exact"]), ["70800", "0", "", "true"]);
        assert_eq!(cells(&rows[1], pages), ["100000", "", "", "0"], "members do not tell how many pages a country has");
        assert_eq!(cells(&rows[2], pages), ["70800", "", "", "0"]);
        assert!(rows.iter().all(|row| row["sample_text"].contains("2345 of 100000 hosts at 1 address with many were visited so far")));
        let of_rows = super::row_columns();
        assert!(of_rows.iter().all(|column| rows[0].contains_key(column)), "they have the columns of sums over rows");
        assert_eq!(rows_of(&csv(&results, true).unwrap()).len(), 2, "the rows of one breakdown add up to the total");
    }

    fn results(exact: bool) -> SwarmResults {
        SwarmResults {
            answered_by: "12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ".parse().unwrap(),
            exact,
            in_transition_text: (!exact).then(|| "3kjLcUyQ is silent".to_owned()),
            oldest_roll_up_age_ms: 26_000,
            covers: Vec::new(),
            summary: Summary::default(),
            consistent_age_ms: (!exact).then_some(12_000),
        }
    }

    #[test]
    fn totals_with_first_runs_are_not_exact_and_say_of_how_many_servers() {
        let mut results = results(true);
        results.summary.total = Counts { servers: 3, up: 3, pages: 6, requests: 9, unfinished: 1, ..Counts::default() };
        let said = |results: &SwarmResults| {
            let text = text(&results.clone().for_readers(), None, Err(CommandError::new(Exit::Data, "none".to_owned())), Style::Plain);
            (text.split_whitespace().collect::<Vec<_>>().join(" "), serde_json::to_value(ResultsView::from(results.clone())).unwrap())
        };
        let (text, json) = said(&results);
        assert!(text.contains("6 pages"), "{text}");
        let why = "1 server is in its first run and counted with what it has so far";
        assert!(text.contains(&format!("in transition: {why}; totals of")) && !text.contains("exact"), "{text}");
        assert_eq!((&json["exact"], &json["whole_runs"], &json["in_transition_text"]), (&false.into(), &false.into(), &why.into()));
        // Why it is in transition besides is said, too.
        let change = SwarmResults { exact: false, in_transition_text: Some("3kjLcUyQ is silent".to_owned()), ..results.clone() };
        assert!(said(&change).0.contains(&format!("in transition: 3kjLcUyQ is silent; {why}; totals of")));
        results.summary.total.unfinished = 0;
        let (text, json) = said(&results);
        assert!(text.contains("exact; totals of") && !text.contains("first run"), "{text}");
        assert_eq!((&json["exact"], &json["whole_runs"]), (&true.into(), &true.into()));
    }

    #[test]
    fn tables_of_two_breakdowns_have_both_sizes() {
        let (values, counts) = (["KE".to_owned(), "ke".to_owned()], Counts { page_bytes: 7_000, bytes: 9_000, ..Counts::default() });
        let text = super::cells_text(&["country", "tld"], vec![(values.as_slice(), &counts, None)], Style::Plain);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0][6..9], ["size", "moved", "failed"], "{text}");
        assert_eq!(words[1][6..10], ["7.0", "kB", "9.0", "kB"], "{text}");
    }

    #[test]
    fn rows_that_are_not_exact_come_with_a_warning() {
        let said = warning(&results(false)).unwrap();
        assert!(
            said.starts_with(
                "warning: in transition: last consistent totals, as they were 12 s ago: 3kjLcUyQ is silent; \
                 totals of 0 members, each confirmed in the last 26 s; answered by "
            ),
            "{said}"
        );
        assert_eq!(warning(&results(true)), None);
        // The rows say it themselves: files are read by those who did not see the warning.
        for exact in [true, false] {
            let mut results = results(exact);
            let country = BTreeMap::from([("KE".to_owned(), Counts { servers: 7, ..Counts::default() })]);
            results.summary.by.insert(Dimension::Country, country);
            let text = csv(&results, true).unwrap();
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let head = reader.headers().unwrap().clone();
            let row = reader.records().next().unwrap().unwrap();
            let cell = |name: &str| &row[head.iter().position(|column| column == name).unwrap()];
            let wanted = if exact { ["7", "true", "", ""] } else { ["7", "false", "12000", "3kjLcUyQ is silent"] };
            assert_eq!(["servers", "exact", "consistent_age_ms", "in_transition_text"].map(cell), wanted, "{text}");
        }
    }
}
