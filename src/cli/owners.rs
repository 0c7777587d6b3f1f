//! Gathers the rows that each owner has on record.
//!
//! Owners are asked one after the other, through the daemon on this machine or through any member.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
};
use crate::{
    io::swarm::{Reader, ReaderConfig},
    node::remote_results::{MEMBER_TIMEOUT, NoResults, no_answer, refused},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    distinct::DistinctView,
    exported::{ExportOf, ExportPlace, ExportQuery, ExportedRows},
    message::{PublicRequest, PublicResponse},
    server_rows::{RowsOf, ServerOwner, ServerRows},
    summary::SwarmResults,
    url::Host,
};
use std::time::{Duration, Instant};

/// How often an owner that does not answer is asked, with pauses that double.
const TRIES: u32 = 4;

const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How long the members may take to tell their distinct sets.
const DISTINCT_TIMEOUT: Duration = Duration::from_secs(3);

/// The owner and the host of the last row that is there.
pub type Place = Option<(AccessPoint, Host)>;

/// What is asked of owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A row for each server.
    Servers(RowsOf),
    /// Rows from journals.
    Export(ExportOf),
}

/// Who is asked.
pub enum Source {
    Daemon(ApiClient),
    Member(Box<Reader>, String),
}

impl Source {
    /// A member over the network, or the daemon with this API.
    pub async fn of(member: Option<&str>, api: Option<&str>) -> Result<Source, CommandError> {
        let Some(member) = member else {
            return Ok(Source::Daemon(ApiClient::new(&ApiArgs { api: api.map(str::to_owned), json: false })?));
        };
        let reader = Reader::connect(&ReaderConfig::default(), member.trim(), MEMBER_TIMEOUT).await;
        let reader = reader.map_err(|why| unavailable(&no_answer(member, &why)))?;
        Ok(Source::Member(Box::new(reader), member.to_owned()))
    }

    /// The members that have servers on record.
    pub async fn owners(&mut self) -> Result<Vec<ServerOwner>, CommandError> {
        match self {
            Source::Daemon(api) => api.get("/api/servers/owners", &[]).await,
            Source::Member(reader, address) => match reader.ask(PublicRequest::Owners).await {
                Ok(PublicResponse::Owners(owners)) => Ok(owners),
                Ok(other) => Err(unavailable(&refused(address, other))),
                Err(why) => Err(unavailable(&no_answer(address, &why))),
            },
        }
    }

    /// The totals of the swarm.
    pub async fn totals(&mut self) -> Result<SwarmResults, CommandError> {
        match self {
            Source::Daemon(api) => api.get("/api/results", &[]).await,
            Source::Member(reader, address) => match reader.ask(PublicRequest::Results).await {
                Ok(PublicResponse::Results(results)) => Ok(*results),
                Ok(other) => Err(unavailable(&refused(address, other))),
                Err(why) => Err(unavailable(&no_answer(address, &why))),
            },
        }
    }

    /// How many servers the last consistent totals have, and why the newest do not answer; none if they do, or nobody tells.
    pub async fn in_transition(&mut self) -> Option<(u64, String)> {
        let SwarmResults { consistent_age_ms, in_transition_text, summary, .. } = self.totals().await.ok()?;
        let why = in_transition_text.unwrap_or_else(|| "subnets change hands".to_owned());
        consistent_age_ms.map(|_| (summary.total.servers, why))
    }

    /// How many different hosts, domains and addresses the swarm has: asked until the members have told what they have now, or some
    /// seconds have passed.
    pub async fn distinct(&mut self) -> Result<DistinctView, CommandError> {
        let (reader, address) = match self {
            Source::Daemon(api) => return api.get("/api/distinct", &[]).await,
            Source::Member(reader, address) => (reader, address),
        };
        let until = Instant::now() + DISTINCT_TIMEOUT;
        loop {
            match reader.ask(PublicRequest::Distinct).await {
                Ok(PublicResponse::Distinct(view)) if !view.is_awaited() || Instant::now() >= until => return Ok(*view),
                Ok(PublicResponse::Distinct(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(other) => return Err(unavailable(&refused(address, other))),
                Err(why) => return Err(unavailable(&no_answer(address, &why))),
            }
        }
    }

    /// The rows of an owner behind a host; why there are none, as the end of a sentence.
    async fn rows(&mut self, kind: RowsOf, of: AccessPoint, after: Option<&Host>) -> Result<ServerRows, String> {
        let mut pause = FIRST_PAUSE;
        for tried in 1.. {
            match self.rows_once(kind, of, after).await {
                Ok(rows) => return Ok(rows),
                Err(why) if tried >= TRIES => return Err(why),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        Err("no answer".to_owned())
    }

    /// The rows of an owner from a place on; why there are none, as the end of a sentence.
    pub async fn piece(&mut self, what: Asked, of: AccessPoint, from: Option<&ExportPlace>) -> Result<ExportedRows, String> {
        let of_export = match what {
            Asked::Export(of_export) => of_export,
            Asked::Servers(kind) => {
                let ServerRows { rows, next } = self.rows(kind, of, from.map(|place| &place.host)).await?;
                return Ok(ExportedRows { rows, next: next.map(|host| ExportPlace { host, within: None }) });
            }
        };
        let query = ExportQuery { of: of_export, from: from.cloned() };
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            if let Ok(rows) = self.exported_once(of, query.clone()).await {
                return Ok(rows);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.exported_once(of, query).await
    }

    async fn exported_once(&mut self, of: AccessPoint, query: ExportQuery) -> Result<ExportedRows, String> {
        match self {
            Source::Daemon(api) => {
                let kind = match query.of {
                    ExportOf::Hosts => "hosts",
                    ExportOf::Pages => "pages",
                    ExportOf::HostLinks => "host-links",
                    ExportOf::PageLinks => "page-links",
                    ExportOf::Events => "events",
                };
                let mut parameters = vec![("of", of.to_string()), ("rows", kind.to_owned())];
                if let Some(ExportPlace { host, within }) = query.from {
                    parameters.push(("after", host.to_string()));
                    parameters.extend(within.map(|within| ("run", within.run.to_string())));
                    parameters.extend(within.map(|within| ("sequence", within.sequence.to_string())));
                    parameters.extend(within.map(|within| ("part", within.part.to_string())));
                }
                let parameters: Vec<_> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
                api.get("/api/export/rows", &parameters).await.map_err(|why| why.message)
            }
            Source::Member(..) => match self.ask_member(PublicRequest::ExportRows { of, query }).await? {
                PublicResponse::ExportedRows(rows) => Ok(rows),
                other => Err(self.refused(other)),
            },
        }
    }

    /// Asks the member over the network; why there is no answer, as the end of a sentence.
    pub async fn ask_member(&mut self, request: PublicRequest) -> Result<PublicResponse, String> {
        let Source::Member(reader, address) = self else { return Err("no member was named".to_owned()) };
        match reader.ask(request).await {
            Ok(response) => Ok(response),
            Err(why) => {
                // The connection may be gone: the next question goes over another one.
                if let Ok(again) = Reader::connect(&ReaderConfig::default(), address.trim(), MEMBER_TIMEOUT).await {
                    **reader = again;
                }
                Err(no_answer(address, &why).to_string())
            }
        }
    }

    /// What is wrong with an answer of the member.
    pub fn refused(&self, response: PublicResponse) -> String {
        let address = if let Source::Member(_, address) = self { address } else { "" };
        refused(address, response).to_string()
    }

    async fn rows_once(&mut self, kind: RowsOf, of: AccessPoint, after: Option<&Host>) -> Result<ServerRows, String> {
        match self {
            Source::Daemon(api) => {
                let (of, after) = (of.to_string(), after.map(Host::to_string));
                let mut parameters = vec![("of", of.as_str())];
                parameters.extend(after.as_deref().map(|after| ("after", after)));
                let path = match kind {
                    RowsOf::Servers => "/api/servers/rows",
                    RowsOf::History => "/api/servers/history",
                };
                api.get(path, &parameters).await.map_err(|why| why.message)
            }
            Source::Member(..) => {
                let after = after.cloned();
                let request = match kind {
                    RowsOf::Servers => PublicRequest::ServerRows { of, after },
                    RowsOf::History => PublicRequest::HistoryRows { of, after },
                };
                match self.ask_member(request).await? {
                    PublicResponse::ServerRows(rows) => Ok(rows),
                    other => Err(self.refused(other)),
                }
            }
        }
    }
}

fn unavailable(why: &NoResults) -> CommandError {
    CommandError::new(Exit::Unavailable, why.to_string()).hint("`nearcrawl members` shows where members can be reached")
}
