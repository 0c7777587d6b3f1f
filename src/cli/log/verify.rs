//! `verify`: says whether the swarm made a request to an address at a certain time, and by which rule.

use super::{WhichLog, moment, unreadable};
use crate::{
    cli::{
        client::{ApiArgs, ApiClient},
        error::{CommandError, Exit},
        json,
        survey::millis,
    },
    io::{
        request_log::{Found, RequestLine, Writing, search},
        swarm::ask_public,
    },
    node::{
        clock,
        remote_results::{MEMBER_TIMEOUT, NoResults, no_answer, refused},
    },
};
use clap::Args;
use nearcrawl_model::{
    message::{PublicRequest, PublicResponse},
    requests_made::{MemberRequests, RequestsQuery, RequestsView, Uncovered, Verdict},
    time::WallTime,
    view::counted,
};
use serde::Serialize;
use std::net::IpAddr;

/// Shown under `verify --help`.
pub const EXAMPLES: &str = "Examples:
  nearcrawl verify 192.0.2.1 2026-11-26T08:15:00Z
  nearcrawl verify 192.0.2.1 2026-11-26T08:15:00Z --within 1h --json
  nearcrawl verify 192.0.2.1 2026-11-26T08:15:00Z --local
  nearcrawl verify 192.0.2.1 2h --member /ip4/192.0.2.7/tcp/4817

For a site owner who asks whether a request in their log was yours: IP is the address of their server, TIME the moment in UTC. \
The daemon here asks all members what their logs of requests say (`nearcrawl log`): time, rule and host of each request, and who made \
it. Who was a member within 30 days and cannot be asked is named. With --local, or --state, only the log of this access point is read, with all that it has. A request is logged when it has ended: before ten minutes have gone by since TIME and --within nobody says no.

Exit codes: 0 yes, 1 no, 66 there is no log, 69 it cannot be known: it is too early, there is no daemon, a member did not answer or is none any more, a log does not go back so far, lines are missing, or a daemon was killed about then.";

/// The arguments of `verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The address of the server
    #[arg(value_name = "IP")]
    address: IpAddr,
    /// When: a moment in UTC
    #[arg(value_name = "TIME", value_parser = moment)]
    time: WallTime,
    /// How much earlier or later it may have been, for clocks differ
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = millis)]
    within: u64,
    /// Only by the log of this access point
    #[arg(long, conflicts_with = "member")]
    local: bool,
    /// Have this member ask all, instead of the daemon here
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichLog,
}

#[derive(Debug, Serialize)]
struct VerifyView {
    verdict: Verdict,
    address: IpAddr,
    from_at: WallTime,
    until_at: WallTime,
    /// Since when all lines of the log are there.
    log_begins_at: Option<WallTime>,
    /// Requests in that time.
    requests: u64,
    /// The first of them.
    lines: Vec<RequestLine>,
    /// Lines that are missing at that time.
    lines_missing: u64,
    /// Whether the daemon was killed about then, so that what was under way is missing.
    killed: bool,
    /// Why there may have been others than are found; none if the log covers that time.
    uncovered: Option<Uncovered>,
}

/// Says whether a request was made: by all members, or by the log of this access point alone.
pub async fn verify(args: &VerifyArgs) -> Result<(String, Option<CommandError>), CommandError> {
    let (from, until) = (WallTime(args.time.0.saturating_sub(args.within)), WallTime(args.time.0.saturating_add(args.within)));
    let query = RequestsQuery { address: args.address.to_canonical(), from, until };
    if args.local || args.which.is_named() {
        return of_log(args, &query);
    }
    if !query.is_fair() {
        return Err(CommandError::new(Exit::Usage, "--within is a day at most where other members are asked")
            .hint("with --local only this access point's log is read"));
    }
    let view = match &args.member {
        Some(member) => asked(member, query).await?,
        None => {
            let (address, from, until) = (query.address.to_string(), query.from.to_string(), query.until.to_string());
            let parameters = [("address", address.as_str()), ("from", &from), ("until", &until)];
            let api = ApiClient::new(&ApiArgs { api: args.which.api(args.api.as_deref())?, json: args.json })?;
            api.get("/api/verify", &parameters).await.map_err(|why| match why.exit {
                Exit::Unavailable => why.hint("--member names one elsewhere; with --local only the log of this access point is read"),
                _ => why,
            })?
        }
    };
    let text = if args.json { json(&view)? } else { told_by_all(&view) };
    let failure = match view.verdict {
        Verdict::Yes => None,
        Verdict::No => Some(CommandError::new(Exit::Broken, "no member made such a request")),
        Verdict::Unknown => {
            let silent = view.silent().count();
            let lacks = |member: &MemberRequests| member.uncovered.is_some_and(|why| why != Uncovered::TooRecent);
            let why = if silent > 0 {
                format!("{} did not answer, or cannot be asked any more", counted(silent, "member"))
            } else if view.members.iter().any(lacks) {
                "the logs do not cover that time".to_owned()
            } else {
                again(&query, clock::now().wall)
            };
            Some(CommandError::new(Exit::Unavailable, format!("it cannot be known whether a member made such a request: {why}")))
        }
    };
    Ok((text, failure))
}

/// Has a member ask all.
async fn asked(member: &str, query: RequestsQuery) -> Result<RequestsView, CommandError> {
    let unavailable = |why: NoResults| {
        CommandError::new(Exit::Unavailable, why.to_string()).hint("`nearcrawl members` shows where members can be reached")
    };
    match ask_public(member.trim(), PublicRequest::RequestsMade(query), MEMBER_TIMEOUT).await {
        Ok(PublicResponse::RequestsMade(view)) => Ok(*view),
        Ok(other) => Err(unavailable(refused(member, other))),
        Err(why) => Err(unavailable(no_answer(member, &why))),
    }
}

/// What each member says.
fn told_by_all(view: &RequestsView) -> String {
    let RequestsView { verdict, address, from_at, until_at, members } = view;
    let (when, all) = (format!("between {from_at} and {until_at}"), counted(members.len(), "member"));
    let mut text = match verdict {
        Verdict::Yes => {
            let requests = members.iter().map(|member| member.requests).fold(0, u64::saturating_add);
            let makers = members.iter().filter(|member| member.requests > 0).count();
            format!("yes: {} to {address} {when}, by {makers} of {all}\n", counted(requests, "request"))
        }
        Verdict::No => format!("no: none of {all} made a request to {address} {when}\n"),
        Verdict::Unknown => format!("unknown: no request to {address} {when} is known, but not of all of {all}\n"),
    };
    for member in members {
        let id = member.access_point;
        for line in &member.lines {
            let host = line.host.as_ref().map_or_else(|| "no host".to_owned(), ToString::to_string);
            text += &format!("{} {host} ({}) by {id}\n", line.asked_at, line.reason);
        }
        let lacks = match member.uncovered {
            _ if !member.answered => "did not answer, or is no member any more",
            Some(Uncovered::NoLog) => "keeps no log of requests",
            Some(Uncovered::BeginsLater) => "has a log that begins later",
            Some(Uncovered::LinesMissing) => "has a log in which lines are missing then",
            Some(Uncovered::Killed) => "was killed about then, and what was under way is missing",
            Some(Uncovered::TooRecent) => "may have requests of that time under way",
            None => continue,
        };
        text += &format!("{id} {lacks}\n");
    }
    text
}

/// By the log of this access point.
fn of_log(args: &VerifyArgs, query: &RequestsQuery) -> Result<(String, Option<CommandError>), CommandError> {
    let directory = args.which.directory()?;
    let writing = Writing { now: clock::now().wall, unwritten: 0 };
    let found = search(&directory, query, &writing).map_err(|why| unreadable(&directory, &why))?;
    let verdict = match (found.requests, found.uncovered) {
        (1.., _) => Verdict::Yes,
        (0, None) => Verdict::No,
        (0, Some(_)) => Verdict::Unknown,
    };
    let Found { log_begins_at, requests, lines, lines_missing, killed, uncovered } = found;
    let RequestsQuery { address, from: from_at, until: until_at } = *query;
    let view = VerifyView { verdict, address, from_at, until_at, log_begins_at, requests, lines, lines_missing, killed, uncovered };
    let text = if args.json { json(&view)? } else { told(&view) };
    let failure = match view.verdict {
        Verdict::Yes => None,
        Verdict::No => Some(
            CommandError::new(Exit::Broken, "no such request is in the log of this access point")
                .hint("lines that a full disk did not take are known to the running daemon only: ask it, without --local"),
        ),
        Verdict::Unknown if view.uncovered == Some(Uncovered::TooRecent) => {
            Some(CommandError::new(Exit::Unavailable, format!("it cannot be known yet: {}", again(query, writing.now))))
        }
        Verdict::Unknown => Some(CommandError::new(Exit::Unavailable, "the log of this access point does not cover that time")),
    };
    Ok((text, failure))
}

/// When to ask again about a time of which requests may be under way.
fn again(query: &RequestsQuery, now: WallTime) -> String {
    let waits = query.known_at().0.saturating_sub(now.0).div_ceil(1_000).max(1);
    format!("requests of that time may be under way, and are logged when they end; ask again in {waits} s")
}

fn told(view: &VerifyView) -> String {
    let VerifyView { address, from_at, until_at, .. } = view;
    let when = format!("between {from_at} and {until_at}");
    let mut text = match view.verdict {
        Verdict::Yes => format!("yes: {} to {address} {when}\n", counted(view.requests, "request")),
        Verdict::No => format!("no: no request to {address} {when}\n"),
        Verdict::Unknown if view.lines_missing > 0 => {
            format!("unknown: no request to {address} {when} is in the log, but {} missing\n", counted(view.lines_missing, "line"))
        }
        Verdict::Unknown if view.killed => {
            format!("unknown: no request to {address} {when} is in the log, but the daemon was killed about then\n")
        }
        Verdict::Unknown if view.uncovered == Some(Uncovered::TooRecent) => {
            format!("unknown: no request to {address} {when} is in the log, but some may be under way\n")
        }
        Verdict::Unknown => match view.log_begins_at {
            Some(begins) => format!("unknown: the log begins at {begins}\n"),
            None => "unknown: there is nothing in the log yet\n".to_owned(),
        },
    };
    for line in &view.lines {
        text += &format!("{line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{access_point::AccessPoint, requests_made::RequestsMade};

    #[test]
    fn a_member_that_tells_of_more_requests_than_there_can_be_ends_nothing() {
        let query = RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(0), until: WallTime(1) };
        let made = |requests| Some(RequestsMade { requests, lines: Vec::new(), uncovered: None });
        let members = [(1, u64::MAX), (2, 1)].map(|(number, requests)| MemberRequests::of(AccessPoint([number; 32]), made(requests)));
        let text = told_by_all(&RequestsView::new(&query, members.into()));
        assert!(text.contains("by 2 of 2 members"), "{text}");
    }
}
