//! The totals of a survey: over the rows of its servers, asked of all owners as an export does, and summed as each owner sums its own.

use super::SurveyFilter;
use crate::cli::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    in_part::InPartCounts,
    last_whole::{Standing, Sums},
    owners::Source,
    walk::{each_row, not_whole},
};
use futures::{StreamExt, stream};
use nearcrawl_core::report::{RowTally, SplitEstimates};
use nearcrawl_model::{
    access_point::AccessPoint,
    record::{RunState, ServerRecord, ServerStatus},
    server_rows::{RowsOf, ServerRow},
    summary::{Counts, Summary},
    survey::{SurveyMark, SurveyRef, SurveyState, SurveyView},
    url::Host,
    view::{WhyView, counted},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The totals of a survey.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SurveyResults {
    /// What it is called.
    pub survey: String,
    /// The member that made it; none if no server belongs to it.
    pub creator: Option<AccessPoint>,
    /// Whether every owner answered. Whether something waits is another question: `servers_waiting`.
    pub all_owners_answered: bool,
    /// Whose rows are missing, and why.
    pub missing_text: Vec<String>,
    /// Servers where something waits: URLs, because the run goes on, a page budget is used up, or the survey rests; or new hosts, for a limit.
    pub servers_waiting: u64,
    /// How much of the hosts of crowded addresses was visited: what a visit shows is summed over these only.
    pub sample: InPartCounts,
    /// How many of its servers each owner has.
    pub owners: BTreeMap<String, u64>,
    /// The sums for each label, as in `sector=university`: a server with two values of a label counts for both.
    pub labels: BTreeMap<String, Counts>,
    /// The sums, with estimates of what they come to with the hosts of crowded addresses that were not visited.
    pub summary: Summary,
    /// The same by split and value, labels among them: of the values of which not all is counted.
    pub estimates_by: SplitEstimates,
    /// Whether these are the newest sums.
    #[serde(flatten)]
    pub standing: Standing,
}

impl Sums for SurveyResults {
    fn missing(&self) -> &[String] {
        &self.missing_text
    }

    fn is_less_than(&self, than: &SurveyResults) -> bool {
        self.summary.total.is_less_than(&than.summary.total)
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

/// What is read of all owners.
struct Walked {
    rows: RowTally,
    creator: Option<AccessPoint>,
    owners: BTreeMap<String, u64>,
    missing: Vec<String>,
}

/// Asks all owners for the rows of a survey's servers; `each` is shown each.
async fn walk(
    (member, api): (Option<&str>, Option<&str>),
    survey: &SurveyRef,
    mut each: impl FnMut(&ServerRow),
) -> Result<Walked, CommandError> {
    let mut source = Source::of(member, api).await?;
    let mut filter = SurveyFilter::new(Some(survey));
    let mut walked = Walked { rows: RowTally::default(), creator: None, owners: BTreeMap::new(), missing: Vec::new() };
    let enter = |owner: AccessPoint, row: &str| {
        let Some(row) = ServerRow::read(row) else { return false };
        if let Some(SurveyMark { creator, labels, .. }) = filter.find(&row.surveys) {
            walked.creator = Some(creator);
            *walked.owners.entry(owner.to_string()).or_default() += 1;
            walked.rows.enter(&row, &labels);
            each(&row);
        }
        true
    };
    walked.missing = each_row(&mut source, RowsOf::Servers, enter).await?;
    filter.finish()?;
    Ok(walked)
}

/// The totals of a survey.
pub async fn results(member: Option<&str>, api: &ApiArgs, survey: &SurveyRef) -> Result<SurveyResults, CommandError> {
    let mut waiting = BTreeSet::new();
    let see = |row: &ServerRow| {
        let ServerRecord { host, waiting: urls, held_back, .. } = &row.record;
        let waits = *urls > 0 || held_back.is_any();
        // Of two rows of one server the later one counts, as in the sums.
        if waits {
            waiting.insert(host.clone())
        } else {
            waiting.remove(host)
        };
    };
    let Walked { rows, creator, owners, missing } = walk((member, api.api.as_deref()), survey, see).await?;
    if creator.is_none() && member.is_none() {
        // Whether there is such a survey at all.
        let _: SurveyView = ApiClient::new(api)?.get("/api/survey", &[("name", &survey.to_string())]).await?;
    } else if creator.is_none() {
        // Those that are missing may belong to it.
        not_whole(&missing).map_or(Ok(()), Err)?;
        return Err(CommandError::new(Exit::Data, format!("no server on record belongs to a survey {survey}"))
            .hint("`nearcrawl survey list` shows the surveys that a daemon knows of"));
    }
    let (summary, estimates_by) = rows.summary();
    Ok(SurveyResults {
        survey: survey.to_string(),
        creator,
        all_owners_answered: missing.is_empty(),
        missing_text: missing,
        servers_waiting: waiting.len() as u64,
        sample: InPartCounts::from(&summary.estimates),
        owners,
        labels: rows.labels(),
        summary,
        estimates_by,
        standing: Standing::default(),
    })
}

impl SurveyResults {
    /// Whether these are the newest sums, who answered, what is of first runs, and what waits; in words.
    pub fn freshness(&self) -> String {
        let total = &self.summary.total;
        let told = if self.all_owners_answered {
            format!("as {} told", counted(self.owners.len() as u64, "owner"))
        } else {
            format!("servers are missing: {}", self.missing_text.join("; "))
        };
        let servers = counted(self.servers_waiting, "server");
        let waiting = (self.servers_waiting > 0).then(|| match total.waiting_urls {
            0 => format!("new hosts wait at {servers}"),
            1 => format!("1 URL waits at {servers}"),
            urls => format!("{urls} URLs wait at {servers}"),
        });
        [self.standing.sentence(), Some(told), total.first_runs(), waiting].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// How far the hosts of a survey are, and of which that is not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CountedHosts {
    /// How far they are.
    pub hosts: HostCounts,
    /// Whether these are the newest counts.
    #[serde(flatten)]
    pub standing: Standing,
    /// Whether every owner answered.
    pub all_owners_answered: bool,
    /// Rows that are missing, and why.
    pub missing_text: Vec<String>,
}

impl Sums for CountedHosts {
    fn missing(&self) -> &[String] {
        &self.missing_text
    }

    fn is_less_than(&self, than: &CountedHosts) -> bool {
        self.hosts.known < than.hosts.known
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

/// How far the hosts of a survey are; each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounts {
    /// Hosts on record.
    pub known: u64,
    /// Of these, the ones of which all was asked that its wishes allow.
    pub crawled: u64,
    /// Of these, the ones that are being asked.
    pub running: u64,
    /// Of these, the ones where something waits: for a page budget, a limit, or because the survey is paused or has ended.
    pub held_back: u64,
    /// Of these, the ones that do not answer.
    pub failed: u64,
    /// Hosts of the list that have no address, so that nobody crawls them.
    pub without_address: u64,
    /// Other hosts of the list that are not on record yet.
    pub not_known: u64,
}

/// How many hosts of a list are asked about at once.
const ASKED_AT_ONCE: usize = 8;

/// For how long it is asked about hosts of a list that are not on record. What is not answered by then is not known.
const ASKING: Duration = Duration::from_secs(10);

/// The hosts of a list that are not on record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffRecord {
    /// How many have no address.
    pub without_address: u64,
    /// How many others there are.
    pub not_known: u64,
}

/// Whether it is known that a host has no address.
async fn is_nowhere(api: &ApiClient, host: Host) -> bool {
    let said: Result<WhyView, CommandError> = api.get("/api/why", &[("q", host.as_str())]).await;
    said.is_ok_and(|said| said.no_address_reason.is_some())
}

impl OffRecord {
    /// What there is of a survey's list besides the site trees on record. Who looked a name up is asked by the daemon, host by host, as `why`
    /// does.
    pub async fn of(api: &ApiClient, survey: &SurveyView, trees: &BTreeSet<Host>) -> OffRecord {
        let listed: BTreeSet<Host> = survey.entries.iter().map(|entry| entry.url.host().without_www()).collect();
        let off: Vec<Host> = listed.difference(trees).cloned().collect();
        let (all, mut without_address) = (off.len() as u64, 0);
        let until = Instant::now() + ASKING;
        let mut answers = stream::iter(off).map(|host| is_nowhere(api, host)).buffer_unordered(ASKED_AT_ONCE);
        while let Ok(Some(nowhere)) = timeout_at(until, answers.next()).await {
            without_address += u64::from(nowhere);
        }
        OffRecord { without_address, not_known: all - without_address }
    }

    /// In words; nothing if all of the list is on record.
    pub fn sentence(&self) -> Option<String> {
        let OffRecord { without_address, not_known } = *self;
        let nowhere = (without_address > 0).then(|| {
            let verb = if without_address == 1 { "has" } else { "have" };
            format!("{} of the list {verb} no address", counted(without_address, "host"))
        });
        let not_known = (not_known > 0).then(|| format!("of {} of the list nothing is known yet", counted(not_known, "host")));
        let parts: Vec<_> = nowhere.into_iter().chain(not_known).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Counts the hosts of a survey, with what is missing.
pub(super) async fn count_hosts(api: &ApiArgs, survey: &SurveyView) -> Result<CountedHosts, CommandError> {
    let which = SurveyRef { name: survey.name.clone(), creator: Some(survey.creator.to_string()) };
    let (mut hosts, mut trees) = (BTreeMap::<Host, (u32, ServerStatus, RunState, bool)>::new(), BTreeSet::new());
    let see = |row: &ServerRow| {
        let record = &row.record;
        trees.extend([record.tree.clone(), record.host.without_www()]);
        let seen = (record.run, record.status, record.state, record.held_back.is_any());
        let known = hosts.entry(record.host.clone()).or_insert(seen);
        if known.0 < seen.0 {
            *known = seen;
        }
    };
    let walked = walk((None, api.api.as_deref()), &which, see).await?;
    let rests = survey.state != SurveyState::Running;
    let mut counts = HostCounts { known: hosts.len() as u64, ..HostCounts::default() };
    for (_, status, state, is_held_back) in hosts.into_values() {
        let place = match (status, state) {
            (ServerStatus::Down, _) => &mut counts.failed,
            (_, RunState::Running) if !rests => &mut counts.running,
            (_, RunState::Running | RunState::PausedByBudget | RunState::HeldBack) => &mut counts.held_back,
            _ if is_held_back => &mut counts.held_back,
            _ => &mut counts.crawled,
        };
        *place += 1;
    }
    let OffRecord { without_address, not_known } = OffRecord::of(&ApiClient::new(api)?, survey, &trees).await;
    (counts.without_address, counts.not_known) = (without_address, not_known);
    let (all_owners_answered, missing_text) = (walked.missing.is_empty(), walked.missing);
    Ok(CountedHosts { hosts: counts, standing: Standing::default(), all_owners_answered, missing_text })
}
