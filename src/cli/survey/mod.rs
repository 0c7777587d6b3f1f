//! `survey`: makes, lists, shows, pauses, resumes and ends studies; and selects from any rows those that belong to one.

mod list;
pub mod probes;
mod results;
mod rows;

pub use results::{OffRecord, results};
pub use rows::{SurveyFilter, one_of};

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json,
    last_whole::{OfRows, last_whole},
    owners::Source,
    table::{Style, Table, facts, paragraph},
    walk::not_whole,
};
use crate::node::api::StateBody;
use clap::{Args, Subcommand};
use nearcrawl_model::{
    survey::{MAX_DEPTH, MAX_PROBED, SurveyPlan, SurveyRef, SurveyScope, SurveyState, SurveyView, Wishes},
    time::{Millis, WallTime},
    view::{Span, counted},
};
use serde::Serialize;
use std::path::PathBuf;

/// Shown under `survey --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl survey create universities --list unis.csv --depth 4\n  \
    nearcrawl survey create kenya --tld ke --every 30d --until 2027-06-30\n  \
    nearcrawl survey list\n  \
    nearcrawl survey show universities\n  \
    nearcrawl survey end universities\n\n\
    Results of one: `nearcrawl results --survey universities --by label`, and `nearcrawl export servers --survey universities`.";

/// Shown under `survey create --help`.
const CREATE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl survey create universities --list unis.csv --depth 4 --evaluate\n  \
    nearcrawl survey create kenya --tld ke --country KE --every 30d\n  \
    nearcrawl survey create near --list unis.csv --probe 100\n  \
    grep -v test urls.txt | nearcrawl survey create mine --list -\n\n\
    A list has one URL or host a line, each with labels if you like:\n  \
    https://www.uonbi.ac.ke/ sector=university city=Nairobi\n  \
    museums.or.ke sector=museum\n\
    or it is CSV with a header: a column `url` (or `host`), and one for each label. A host without a scheme is asked by https. # begins a comment.\n\n\
    All members crawl what is in a survey, by its rules: a host in several by the deepest and politest of them, and once. No member crawls what its own configuration denies. Only the member that made a survey can change it.\n\n\
    With --probe every member also measures its way to a sample of the list's hosts, drawn at random and the same for all: each once, by the probe of \
    delegation and within its budget of contacts. `nearcrawl export placement` has the times.";

/// Shown under `survey list --help`.
const LIST_EXAMPLES: &str = "Examples:\n  \
    nearcrawl survey list\n  \
    nearcrawl survey list --json | jq -r .[].name";

/// Shown under `survey show --help`.
const SHOW_EXAMPLES: &str = "Examples:\n  \
    nearcrawl survey show universities\n  \
    nearcrawl survey show universities@3kjLcUyQ --json | jq .hosts\n\n\
    If an owner does not answer, what was counted when all did is shown for ten minutes, with its age; without that the hosts of the others are \
    counted, and the exit code is 69.";

/// Shown under the help of what changes a survey.
const CHANGE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl survey pause universities\n  \
    nearcrawl survey resume universities\n  \
    nearcrawl survey end universities";

/// The commands about surveys.
#[derive(Subcommand, Clone, Debug)]
pub enum SurveyCommand {
    /// Make a survey of the hosts of a list, of a scope, or of both
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Box<CreateArgs>),
    /// List the surveys of the swarm
    #[command(after_help = LIST_EXAMPLES)]
    List(ApiArgs),
    /// Show a survey, and how far the crawl of its hosts is
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Ask the hosts of a survey nothing more until it is resumed
    #[command(after_help = CHANGE_EXAMPLES)]
    Pause(NameArgs),
    /// Go on with a survey that is paused
    #[command(after_help = CHANGE_EXAMPLES)]
    Resume(NameArgs),
    /// End a survey for good; its results stay
    #[command(after_help = CHANGE_EXAMPLES)]
    End(NameArgs),
}

/// The arguments of `survey create`.
#[derive(Args, Clone, Debug)]
pub struct CreateArgs {
    /// What it is called: letters, digits, '-', '_' and '.'
    #[arg(value_name = "NAME")]
    name: String,
    /// A file with its URLs or hosts; - is standard input
    #[arg(short, long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// All hosts of these top-level domains that links lead to
    #[arg(long, value_delimiter = ',', value_name = "TLD")]
    tld: Vec<String>,
    /// All hosts with addresses in these countries, like KE
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    country: Vec<String>,
    /// All hosts with addresses of this organisation, as the hierarchy calls it
    #[arg(long, value_name = "NAME")]
    organisation: Vec<String>,
    /// All hosts with addresses of these autonomous systems, like 36914
    #[arg(long, value_delimiter = ',', value_name = "NUMBER")]
    asn: Vec<u32>,
    /// The deepest level that is fetched [default: as each member is configured]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=i64::from(MAX_DEPTH)))]
    depth: Option<u8>,
    /// The least rest between two requests to an address, like 10s
    #[arg(long, value_name = "DURATION", value_parser = millis)]
    delay: Option<Millis>,
    /// How many times as long as its last answer took an address rests
    #[arg(long, value_name = "TIMES")]
    delay_factor: Option<u64>,
    /// Evaluate pages for accessibility failures
    #[arg(long)]
    evaluate: bool,
    /// Visit the hosts again after so long, like 30d; an hour at least
    #[arg(long, value_name = "DURATION", value_parser = millis)]
    every: Option<Millis>,
    /// Have every member probe so many hosts of the list once
    #[arg(long, value_name = "HOSTS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PROBED)))]
    probe: Option<u32>,
    /// When it ends, like 2027-06-30 (the day's end, UTC)
    #[arg(long, value_name = "DATE", value_parser = end)]
    until: Option<WallTime>,
    /// The licence of its results, like CC-BY-4.0
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    licence: String,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    description: String,
    /// Who answers for it: an address or a web page
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    contact: String,
    #[command(flatten)]
    api: ApiArgs,
}

/// The arguments of `survey show`.
#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    /// Its name; NAME@END with the end of its creator's peer id if several have it
    #[arg(value_name = "NAME")]
    survey: SurveyRef,
    #[command(flatten)]
    api: ApiArgs,
    /// Where counts of hosts for which all rows were there are kept, if they are.
    #[arg(skip)]
    pub kept: Option<PathBuf>,
}

/// The arguments of what changes a survey.
#[derive(Args, Clone, Debug)]
pub struct NameArgs {
    /// Its name; the daemon that is asked must have made it
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    api: ApiArgs,
}

/// A duration like `10s`, `12h` or `30d`.
pub(super) fn millis(text: &str) -> Result<Millis, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let millis = factor.and_then(|factor: u64| number.parse::<u64>().ok()?.checked_mul(factor));
    millis.ok_or_else(|| "write a whole number and its unit (ms, s, m, h or d), like 10s or 30d".to_owned())
}

/// A day, up to its end, or a moment.
fn end(text: &str) -> Result<WallTime, String> {
    let moment = text.parse::<WallTime>().ok().or_else(|| format!("{text}T23:59:59.999Z").parse().ok());
    moment.ok_or_else(|| "write a day like 2027-06-30, or a moment like 2027-06-30T12:00:00Z".to_owned())
}

/// Carries a command about surveys out. Hosts that are missing from what is shown are an error, behind what is there.
pub async fn survey(command: SurveyCommand, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let told = match command {
        SurveyCommand::Create(args) => create(*args).await?,
        SurveyCommand::List(api) => {
            let surveys: Vec<SurveyView> = ApiClient::new(&api)?.get("/api/surveys", &[]).await?;
            if api.json { json(&surveys)? } else { listed(&surveys, style) }
        }
        SurveyCommand::Show(args) => return show(&args, style).await,
        SurveyCommand::Pause(args) => change(args, SurveyState::Paused).await?,
        SurveyCommand::Resume(args) => change(args, SurveyState::Running).await?,
        SurveyCommand::End(args) => change(args, SurveyState::Ended).await?,
    };
    Ok((told, None))
}

async fn create(args: CreateArgs) -> Result<String, CommandError> {
    let entries = args.list.as_deref().map(list::read).transpose()?.unwrap_or_default();
    let plan = SurveyPlan {
        name: args.name,
        ends_at: args.until,
        wishes: Wishes {
            depth: args.depth,
            min_delay_ms: args.delay,
            delay_factor: args.delay_factor,
            evaluation: args.evaluate,
            interval_ms: args.every,
        },
        scope: SurveyScope {
            tlds: args.tld.iter().map(|tld| tld.trim_start_matches('.').to_lowercase()).collect(),
            countries: args.country.iter().map(|code| code.to_uppercase()).collect(),
            organisations: args.organisation.into_iter().collect(),
            asns: args.asn.into_iter().collect(),
        },
        licence: args.licence,
        description: args.description,
        contact: args.contact,
        entries,
        probe: args.probe,
    };
    plan.check().map_err(|why| {
        let why = CommandError::new(Exit::Data, why.to_string());
        let is_of_nothing = plan.entries.is_empty() && (plan.scope.is_empty() || plan.probe.is_some());
        if is_of_nothing { why.hint("name hosts with --list FILE, or a scope with --tld, --country, --organisation or --asn") } else { why }
    })?;
    let view: SurveyView = ApiClient::new(&args.api)?.post("/api/surveys", &plan).await?;
    if args.api.json {
        return json(&view);
    }
    let of = if view.urls > 0 { format!(" of {} at {}", counted(view.urls, "URL"), counted(view.hosts, "host")) } else { String::new() };
    let sample = view.probe.map(|probe| format!("; every member probes up to {} of the list once", counted(probe, "host")));
    Ok(format!("survey {} is made{of}{}; all members hear of it now\n", view.name, sample.unwrap_or_default()))
}

async fn change(args: NameArgs, state: SurveyState) -> Result<String, CommandError> {
    let body = StateBody { name: args.name, state };
    let view: SurveyView = ApiClient::new(&args.api)?.post("/api/survey/state", &body).await?;
    if args.api.json { json(&view) } else { Ok(format!("survey {} is {} now; all members hear of it\n", view.name, view.state)) }
}

fn listed(surveys: &[SurveyView], style: Style) -> String {
    if surveys.is_empty() {
        return "no survey is known here; `nearcrawl survey create --help` says how one is made\n".to_owned();
    }
    let mut table = Table::new(&["survey", "of", "state", ">urls", ">hosts", "scope", "until"]);
    for survey in surveys {
        let until = survey.ends_at.map_or("-".to_owned(), |end| end.to_string().chars().take(10).collect());
        let of = if survey.is_mine { "me".to_owned() } else { survey.creator.short() };
        let scope: String = scope_text(&survey.scope).chars().take(24).collect();
        let numbers = [survey.urls.to_string(), survey.hosts.to_string()];
        let row = [survey.name.clone(), of, survey.state.to_string()].into_iter().chain(numbers);
        table.row(row.chain([if scope.is_empty() { "-".to_owned() } else { scope }, until]).collect());
    }
    table.text(style)
}

fn scope_text(scope: &SurveyScope) -> String {
    let tlds = scope.tlds.iter().map(|tld| format!(".{tld}"));
    let asns = scope.asns.iter().map(|asn| format!("AS{asn}"));
    tlds.chain(scope.countries.iter().cloned()).chain(asns).chain(scope.organisations.iter().cloned()).collect::<Vec<_>>().join(" ")
}

/// How far a survey is.
#[derive(Clone, Debug, Serialize)]
struct Shown {
    survey: SurveyView,
    #[serde(flatten)]
    counted: results::CountedHosts,
    /// How far the probes of its sample are; none if it has none.
    placement: Option<probes::Placement>,
}

async fn show(args: &ShowArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let name = args.survey.to_string();
    let survey: SurveyView = ApiClient::new(&args.api)?.get("/api/survey", &[("name", &name)]).await?;
    let what = format!("hosts of survey {}@{}, revision {}", survey.name, survey.creator, survey.revision);
    let question = OfRows { directory: args.kept.as_deref(), what, survey: None, member: None, api: &args.api };
    let counted = last_whole(question, results::count_hosts(&args.api, &survey).await).await?;
    let placement = probes::placement(&mut Source::Daemon(ApiClient::new(&args.api)?), &survey).await?;
    let shown = Shown { survey, counted, placement };
    let told = if args.api.json { json(&shown)? } else { shown_text(&shown, style) };
    Ok((told, not_whole(&shown.counted.missing_text)))
}

fn shown_text(shown: &Shown, style: Style) -> String {
    let Shown { survey, counted: results::CountedHosts { hosts, standing, missing_text, .. }, placement } = shown;
    let wishes = &survey.wishes;
    let or_configured = |text: Option<String>| text.unwrap_or_else(|| "as configured".to_owned());
    let rest = match (wishes.min_delay_ms, wishes.delay_factor) {
        (None, None) => None,
        (delay, factor) => {
            let delay = delay.map(|delay| format!("at least {}", Span(delay)));
            let factor = factor.map(|factor| format!("{factor} times as long as an answer took"));
            Some(delay.into_iter().chain(factor).collect::<Vec<_>>().join(", "))
        }
    };
    let mut lines = vec![
        ("creator", format!("{}{}", survey.creator, if survey.is_mine { " (me)" } else { "" })),
        ("state", format!("{}, revision {}", survey.state, survey.revision)),
        ("age", format!("{} (made {})", Span(survey.age_ms), survey.created_at)),
        ("ends", survey.ends_at.map_or("never".to_owned(), |end| end.to_string())),
        ("list", format!("{} at {}", counted(survey.urls, "URL"), counted(survey.hosts, "host"))),
        ("scope", Some(scope_text(&survey.scope)).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())),
        ("labels", Some(survey.labels.iter().cloned().collect::<Vec<_>>().join(", ")).filter(|t| !t.is_empty()).unwrap_or("-".to_owned())),
        ("depth", or_configured(wishes.depth.map(|depth| depth.to_string()))),
        ("rest", or_configured(rest)),
        ("again after", or_configured(wishes.interval_ms.map(|interval| Span(interval).to_string()))),
        ("evaluation", if wishes.evaluation { "on".to_owned() } else { "as configured".to_owned() }),
    ];
    let texts = [("licence", &survey.licence), ("description", &survey.description), ("contact", &survey.contact)];
    lines.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.clone())));
    let mut text = format!("{}\n{}", style.heading(&format!("survey {}", survey.name)), facts(style, &lines));
    let off_record = OffRecord { without_address: hosts.without_address, not_known: hosts.not_known };
    text += &paragraph(&format!(
        "{} known: {} crawled, {} running, {} held back, {} failed{}",
        counted(hosts.known, "host"),
        hosts.crawled,
        hosts.running,
        hosts.held_back,
        hosts.failed,
        off_record.sentence().map_or_else(String::new, |sentence| format!("; {sentence}"))
    ));
    text += &placement.as_ref().map(|placement| paragraph(&placement.text())).unwrap_or_default();
    if !missing_text.is_empty() {
        text += &paragraph(&format!("hosts are missing: {}", missing_text.join("; ")));
    }
    text += &standing.sentence().map(|sentence| paragraph(&sentence)).unwrap_or_default();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct TestCli {
        #[command(flatten)]
        args: CreateArgs,
    }

    #[tokio::test]
    async fn only_a_survey_of_nothing_is_told_how_to_name_hosts() {
        use clap::Parser;
        for (line, says, is_of_nothing) in [
            (vec!["bad name", "--tld", "ke"], "cannot be the name of a survey", false),
            (vec!["often", "--tld", "ke", "--every", "1s"], "an hour to ten years", false),
            (vec!["nothing"], "a list of URLs or a scope", true),
            (vec!["sample", "--tld", "ke", "--probe", "3"], "drawn from a list", true),
        ] {
            let args = TestCli::try_parse_from(["create"].into_iter().chain(line.iter().copied())).unwrap().args;
            let failure = create(args).await.unwrap_err();
            assert!(failure.exit == Exit::Data && failure.message.contains(says), "{line:?}: {failure}");
            assert_eq!(failure.hint.is_some_and(|hint| hint.contains("--list")), is_of_nothing, "{line:?}");
        }
    }

    #[test]
    fn durations_and_ends_are_written_as_people_do() {
        assert_eq!([millis("10s"), millis("30d"), millis("250ms")], [Ok(10_000), Ok(30 * 86_400_000), Ok(250)]);
        assert!(millis("10").is_err() && millis("d").is_err() && millis("1y").unwrap_err().contains("like 10s"));
        assert_eq!(end("2027-06-30").unwrap().to_string(), "2027-06-30T23:59:59.999Z");
        assert_eq!(end("2027-06-30T12:00:00Z").unwrap().to_string(), "2027-06-30T12:00:00.000Z");
        assert!(end("30.6.2027").is_err());
    }
}
