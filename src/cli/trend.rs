//! `trend`: shows what changed from one run to another, summed over the servers that were measured in both.

use super::{
    client::ApiArgs,
    error::{CommandError, Exit},
    json,
    last_whole::{OfRows, Standing, Sums, last_whole},
    owners::Source,
    survey::SurveyFilter,
    table::{Style, Table, bytes, paragraph},
    walk::{each_row, not_whole},
};
use clap::{Args, ValueEnum, builder::PossibleValue};
use nearcrawl_model::{
    server_rows::{HistoryRow, RowsOf},
    survey::SurveyRef,
    trend::{Compared, Figure, LeftOut, Trend, TrendBy},
    view::counted,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Shown under `trend --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl trend --from 1 --to 2\n  \
    nearcrawl trend --from 1 --to 12 --by country\n  \
    nearcrawl trend --from 11 --to 12 --by software --json\n\n\
    Only servers that were measured in both runs are compared: those that answered, with pages or without, whose runs are over, and whose \
    pages were chosen by the same depth, crawl.rule and yield price. A server that is down in one of them, or was crawled deeper in one of them because a \
    survey wished for it, changes no figure; such servers are counted apart.\n\n\
    With --by, a server counts where it was in the first run, so that both runs sum up the same servers. `nearcrawl export history` has the \
    same figures server by server. Of a server with more than 240 runs every other one of the older ones is dropped, and it is not compared where \
    one of the two was: at an interval of an hour that begins after 10 days, at one of a week after four years. \
    If an owner does not answer, what was compared when all did answers for ten minutes, with its age; without that what the others told is \
    compared, and the exit code is 69.";

/// A split as `--by` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct By(TrendBy);

const ALL: [By; 3] = [By(TrendBy::ALL[0]), By(TrendBy::ALL[1]), By(TrendBy::ALL[2])];

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [By] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// The arguments of `trend`.
#[derive(Args, Clone, Debug)]
pub struct TrendArgs {
    /// The number of the first run
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u32).range(1..))]
    from: u32,
    /// The number of the second run
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(u32).range(1..))]
    to: u32,
    /// Show the same for each country, each software or each top-level domain
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Only servers that belong to this survey
    #[arg(long, value_name = "NAME")]
    survey: Option<SurveyRef>,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
    /// Where what all owners told is kept, if it is.
    #[arg(skip)]
    pub kept: Option<PathBuf>,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrendTold {
    /// Whether every owner answered.
    all_owners_answered: bool,
    missing_text: Vec<String>,
    /// Whether these are the newest sums.
    #[serde(flatten)]
    standing: Standing,
    #[serde(flatten)]
    trend: Trend,
}

impl Sums for TrendTold {
    fn missing(&self) -> &[String] {
        &self.missing_text
    }

    fn is_less_than(&self, than: &TrendTold) -> bool {
        self.trend.is_less_than(&than.trend)
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

/// Compares two runs of each server. What is missing is an error, behind what is there, unless the last whole sums answer.
pub async fn trend(args: &TrendArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    if args.from >= args.to {
        return Err(CommandError::new(Exit::Usage, "--from is not before --to".to_owned()).hint("write it like --from 1 --to 2"));
    }
    let TrendArgs { from, to, by, survey, member, api, kept } = args;
    let what = format!("trend from {from} to {to} by {:?}", by.map(|by| by.0));
    let question = OfRows { directory: kept.as_deref(), what, survey: survey.as_ref(), member: member.as_deref(), api };
    let told = last_whole(question, gather(args).await).await?;
    let text = if api.json { json(&told)? } else { text(&told, style) };
    Ok((text, not_whole(&told.missing_text)))
}

/// Asks all owners for the runs of their servers, and compares two of them.
async fn gather(args: &TrendArgs) -> Result<TrendTold, CommandError> {
    let mut source = Source::of(args.member.as_deref(), args.api.api.as_deref()).await?;
    let mut trend = Trend::new(args.from, args.to, args.by.map(|by| by.0));
    let mut filter = SurveyFilter::new(args.survey.as_ref());
    let enter = |_, row: &str| {
        let Ok(row) = serde_json::from_str::<HistoryRow>(row) else { return false };
        if filter.passes(&row.surveys) {
            trend.enter(&row);
        }
        true
    };
    let missing = each_row(&mut source, RowsOf::History, enter).await?;
    filter.finish()?;
    if let Some(run) = trend.run_without_servers() {
        // Those that are missing may have it.
        not_whole(&missing).map_or(Ok(()), Err)?;
        let of = args.survey.as_ref().map_or_else(String::new, |survey| format!(" of survey {survey}"));
        return Err(CommandError::new(Exit::Data, format!("no server{of} has a run {run} on record"))
            .hint("`nearcrawl export history` has the runs of every server"));
    }
    Ok(TrendTold { all_owners_answered: missing.is_empty(), missing_text: missing, standing: Standing::default(), trend })
}

fn text(told: &TrendTold, style: Style) -> String {
    let Trend { from_run, to_run, total, by, left_out, .. } = &told.trend;
    let mut text =
        format!("{}\n", style.heading(&format!("run {from_run} to run {to_run}: {} compared", counted(total.servers, "server"))));
    let missing = (!told.all_owners_answered).then(|| format!("servers are missing: {}", told.missing_text.join("; ")));
    let said = [told.standing.sentence(), missing, Some(apart(left_out)), unknown_rules(total)];
    text = said.into_iter().flatten().fold(text, |text, said| text + &paragraph(&said));
    let figures = [
        ("pages", total.pages, false),
        ("size of pages", total.page_bytes, true),
        ("requests", total.requests, false),
        ("failed requests", total.failed, false),
        ("external host mentions*", total.external_hosts, false),
        ("evaluated pages", total.evaluated, false),
        ("pages with failures", total.failing, false),
    ];
    let mut table = Table::new(&["", &format!(">run {from_run}"), &format!(">run {to_run}"), ">difference", ">rate"]);
    for (name, figure, is_size) in figures {
        let number = |number: u64| if is_size { bytes(number) } else { number.to_string() };
        let sign = if figure.difference < 0 { "-" } else { "+" };
        let difference = format!("{sign}{}", number(figure.difference.unsigned_abs()));
        table.row(vec![name.to_owned(), number(figure.from), number(figure.to), difference, percent(figure.rate, true)]);
    }
    text += &table.text(style);
    text += &paragraph("* one for each server that names a host, summed over servers: not distinct hosts");
    text += &paragraph(&format!("failures: {} evaluated by the same rules in both runs", counted(total.servers_evaluated, "server")));
    text += &paragraph(&changes(total));
    for (by, values) in by {
        let mut rows: Vec<_> = values.iter().collect();
        rows.sort_by(|a, b| b.1.servers.cmp(&a.1.servers).then(a.0.cmp(b.0)));
        let mut table = Table::new(&[
            by.name(),
            ">servers",
            ">elsewhere now",
            ">pages",
            ">rate",
            ">size rate",
            ">failing",
            ">rate",
            ">changed or gone",
        ]);
        for (value, compared) in rows {
            table.row(vec![
                value.clone(),
                compared.servers.to_string(),
                compared.servers_elsewhere.to_string(),
                both(compared.pages),
                percent(compared.pages.rate, true),
                percent(compared.page_bytes.rate, true),
                both(compared.failing),
                percent(compared.failing.rate, true),
                percent(compared.change_rate, false),
            ]);
        }
        text += &format!("\n{}", table.text(style));
    }
    text
}

fn both(figure: Figure) -> String {
    format!("{} → {}", figure.from, figure.to)
}

fn percent(rate: Option<f64>, signed: bool) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if signed => format!("{:+.1} %", 100.0 * rate),
        Some(rate) => format!("{:.1} %", 100.0 * rate),
    }
}

/// What the second run says of its pages, in a sentence.
fn changes(total: &Compared) -> String {
    let Compared { servers_with_changes, pages_before, new_pages, changed_pages, gone_pages, change_rate, .. } = total;
    format!(
        "since the run before: {new_pages} new, {changed_pages} changed, {gone_pages} gone of {} at {} ({})",
        counted(*pages_before, "page"),
        counted(*servers_with_changes, "server"),
        percent(*change_rate, false)
    )
}

/// The servers that are compared although their runs may have been by different rules, in a sentence; none if there are none.
fn unknown_rules(total: &Compared) -> Option<String> {
    let unknown = total.servers_of_unknown_rules;
    let of = counted(unknown, "server");
    (unknown > 0).then(|| format!("compared although an earlier version did not record the depth and rule of one of the runs: {of}"))
}

/// The servers that are not compared, in a sentence.
fn apart(left_out: &LeftOut) -> String {
    let parts = [
        (left_out.only_in_from, "only in the first run"),
        (left_out.only_in_to, "only in the second run"),
        (left_out.unfinished, "not over"),
        (left_out.not_measured_in_from, "not measured in the first run"),
        (left_out.not_measured_in_to, "not measured in the second run"),
        (left_out.not_measured_in_both, "measured in neither"),
        (left_out.crawled_otherwise, "crawled by another depth, rule or yield price in the second run"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    if parts.is_empty() { "not compared: none".to_owned() } else { format!("not compared: {}", parts.join(", ")) }
}
