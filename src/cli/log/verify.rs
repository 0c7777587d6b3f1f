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
    request_record::{MAX_OWNERS, RecordGap, RecordMissing, RecordTold, RecordedHour, RequestsAnswer, UnknownMember, recorded_at},
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
  nearcrawl verify 192.0.2.1 2026-11-26T11:15:00+03:00 --local
  nearcrawl verify 192.0.2.1 2h --member /ip4/192.0.2.7/tcp/4817

For a site owner who asks whether a request in their log was yours: IP is the address of their server, TIME the moment with its time \
zone: as RFC 3339 writes it, or in quotes like the log of a web server (\"26/Nov/2026:11:15:00 +0300\"). \
The daemon here asks all members what their logs of requests say (`nearcrawl log`): time, rule and host of each request, and who made \
it. Where a log does not say, and of a member that is gone, its record tells: of each server and hour how often it was asked, when first and \
last, by which rules and for which hosts. It is kept for 30 days, by the member and by its replicas, which are named. \
Who was a member within 30 days and cannot be asked is named, and so is who was not asked for a record, with the reason, and who did not answer. With --local, or --state, only the log of this access point is read, with all that it has. A request is logged when it has ended: before ten minutes have gone by since TIME and --within nobody says no.

Exit codes: 0 yes, 1 no, 66 there is no log, 69 not known: it is too early, there is no daemon, a member that may have a record did not answer, or of a member that may have asked no record of that hour is kept (it was killed about then, was lost soon after, at most an hour and a half, before its last requests were copied, or log.requests is false).";

/// The arguments of `verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The address of the server
    #[arg(value_name = "IP")]
    address: IpAddr,
    /// When: a moment with its time zone, a date, or so long ago
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
    let answer: RequestsAnswer = match &args.member {
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
    let text = if args.json { json(&answer)? } else { told_by_all(&answer) };
    let view = &answer.view;
    let failure = match view.verdict {
        Verdict::Yes => None,
        Verdict::No => Some(CommandError::new(Exit::Broken, "no member made such a request")),
        Verdict::Unknown => Some(CommandError::new(Exit::Unavailable, not_known(&answer, &query))),
    };
    Ok((text, failure))
}

/// Has a member ask all.
async fn asked(member: &str, query: RequestsQuery) -> Result<RequestsAnswer, CommandError> {
    let unavailable = |why: NoResults| {
        CommandError::new(Exit::Unavailable, why.to_string()).hint("`nearcrawl members` shows where members can be reached")
    };
    let member = member.trim();
    match ask_public(member, PublicRequest::RequestsMade(query), MEMBER_TIMEOUT).await {
        Ok(PublicResponse::RequestsMade(view, records, missing)) => Ok(RequestsAnswer { view: *view, records, missing: *missing }),
        Ok(other) => Err(unavailable(refused(member, other))),
        Err(why) => Err(unavailable(no_answer(member, &why))),
    }
}

/// Why it is not known.
fn not_known(answer: &RequestsAnswer, query: &RequestsQuery) -> String {
    let unknown: Vec<_> = answer.view.members.iter().filter(|member| member.verdict == Verdict::Unknown).collect();
    let of = |missing: RecordMissing| {
        unknown.iter().filter(|member| answer.missing_of(&member.access_point).is_some_and(|of| of.record == missing)).count()
    };
    let gap_of = |member: &MemberRequests| answer.record_of(&member.access_point).and_then(|told| told.gap);
    let nearby = unknown.iter().filter(|member| gap_of(member) == Some(RecordGap::Nearby)).count();
    // Who answers for all may leave out what is missing of a member.
    let is_unsaid = |member: &&&MemberRequests| {
        let is_early = member.uncovered == Some(Uncovered::TooRecent) || gap_of(member) == Some(RecordGap::TooRecent);
        answer.missing_of(&member.access_point).is_none() && !is_early && gap_of(member) != Some(RecordGap::Nearby)
    };
    let (unsaid, not_kept) = (unknown.iter().filter(is_unsaid).count(), of(RecordMissing::NotKept));
    let (no_answer, too_many) = (of(RecordMissing::NoAnswer), of(RecordMissing::TooMany));
    let mut why = Vec::new();
    if not_kept > 0 {
        why.push(format!("no record of that hour is kept of {}", counted(not_kept, "member")));
    }
    if unsaid > 0 {
        why.push(format!("no record of that hour was told of {}", counted(unsaid, "member")));
    }
    if no_answer > 0 {
        let silent = counted(answer.missing.unanswered.len(), "member");
        why.push(format!("{silent} that may have a record of {} did not answer: ask again in a while", counted(no_answer, "member")));
    }
    if too_many > 0 {
        why.push(format!("the records of {} were not asked for", counted(too_many, "member")));
    }
    if why.is_empty() {
        why.push(match nearby {
            0 => too_early(query, clock::now().wall),
            _ => "records tell five minutes, and in those around that time there was a request; ask with a longer --within".to_owned(),
        });
    }
    format!("not known whether a member made such a request: {}", why.join("; "))
}

/// Why the log of a member does not say whether it made such a request; none if it does.
fn lack_of_log(member: &MemberRequests, missing: Option<&UnknownMember>) -> Option<String> {
    let lack = match (member.uncovered, missing) {
        (_, Some(UnknownMember { was_asked: false, gone_at: Some(at), .. })) => {
            return Some(format!("was not asked, for it is gone since {at}"));
        }
        (_, Some(UnknownMember { was_asked: false, gone_at: None, .. })) => "was not asked, for it is not there now",
        (_, Some(_)) if !member.answered => "did not answer",
        _ if !member.answered => "did not answer, or is no member any more",
        (Some(Uncovered::NoLog), _) => "keeps no log of requests",
        (Some(Uncovered::BeginsLater), _) => "has a log that begins later",
        (Some(Uncovered::LinesMissing), _) => "has a log in which lines are missing then",
        (Some(Uncovered::Killed), _) => "was killed about then, and what was under way is missing",
        (Some(Uncovered::TooRecent), _) => "may have requests of that time under way",
        (None, _) => return None,
    };
    Some(lack.to_owned())
}

/// Why no record says it either.
fn lack_of_record(member: &MemberRequests, missing: Option<&UnknownMember>) -> String {
    match missing.map(|missing| missing.record) {
        Some(RecordMissing::NotKept) => ": no record of that hour is kept".to_owned(),
        Some(RecordMissing::NotNeeded) => "; nobody was asked for its record, for another member made such a request".to_owned(),
        Some(RecordMissing::TooMany) => format!("; nobody was asked for its record, for only those of {MAX_OWNERS} members are asked for"),
        Some(RecordMissing::NoAnswer) => {
            "; whether a record of that hour is kept is not known, for not all answered who may have it".to_owned()
        }
        Some(RecordMissing::TooRecent) => String::new(),
        None if member.verdict == Verdict::Yes || member.uncovered == Some(Uncovered::TooRecent) => String::new(),
        None => ": no record of that hour was told".to_owned(),
    }
}

/// What the record of a member says, and who has it.
fn told_by_record(told: &RecordTold) -> String {
    let RecordTold { access_point: owner, answered_by, gone_at, hours, gap, .. } = told;
    let gone = gone_at.map_or_else(|| "does not answer".to_owned(), |at| format!("is gone since {at}"));
    let source = if answered_by == owner {
        format!("by the record of {owner}")
    } else {
        format!("told by {answered_by}, which says that it keeps the record of {owner}, which {gone}")
    };
    let mut text = String::new();
    for RecordedHour { first_at, last_at, requests, reasons, hosts, all_hosts, .. } in hours {
        let mut named: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        if !all_hosts {
            named.push("…".to_owned());
        }
        // Members wrote them: what is no word is not shown.
        let is_word =
            |reason: &&String| reason.len() <= 32 && reason.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_ ".contains(letter));
        let words: Vec<&str> = reasons.iter().filter(is_word).map(String::as_str).collect();
        let (named, reasons) = (named.join(", "), words.join(", "));
        text += &format!("{} between {first_at} and {last_at}: {named} ({reasons}), {source}\n", counted(*requests as usize, "request"));
    }
    match gap {
        None if hours.is_empty() => text += &format!("no request, {source}\n"),
        None => {}
        Some(RecordGap::NoRecord) => text += &format!("not known: no record of that hour is kept, {source}\n"),
        Some(RecordGap::Nearby) => text += &format!("not known whether within that time, {source}\n"),
        Some(RecordGap::TooRecent) => {
            text += &format!("not known yet: requests get on record when they have ended, and to replicas some minutes later, {source}\n")
        }
    }
    text
}

/// What each member says.
fn told_by_all(answer: &RequestsAnswer) -> String {
    let RequestsView { verdict, address, from_at, until_at, members } = &answer.view;
    let (when, all) = (format!("between {from_at} and {until_at}"), counted(members.len(), "member"));
    let mut text = match verdict {
        Verdict::Yes => {
            let on_record = |told: &RecordTold| told.hours.iter().map(|hour| hour.requests).fold(0, u64::saturating_add);
            let requests_of = |member: &MemberRequests| match answer.record_of(&member.access_point) {
                Some(told) if member.requests == 0 && told.verdict == Verdict::Yes => on_record(told),
                _ => member.requests,
            };
            let requests = members.iter().map(requests_of).fold(0, u64::saturating_add);
            let makers = members.iter().filter(|member| member.verdict == Verdict::Yes).count();
            // Records count whole hours.
            let is_recorded = |told: &RecordTold| told.verdict == Verdict::Yes;
            let by_hours =
                members.iter().any(|member| member.requests == 0 && answer.record_of(&member.access_point).is_some_and(is_recorded));
            let counted = counted(requests, "request");
            let what = if by_hours {
                format!("requests to {address} {when}, {counted} in the hours around it")
            } else {
                format!("{counted} to {address} {when}")
            };
            format!("yes: {what}, by {makers} of {all}\n")
        }
        Verdict::No => format!("no: none of {all} made a request to {address} {when}\n"),
        Verdict::Unknown => {
            let unsure = members.iter().filter(|member| member.verdict == Verdict::Unknown).count();
            format!("not known: no request to {address} {when} is on record, but the records of {unsure} of {all} do not say\n")
        }
    };
    for member in members {
        let id = member.access_point;
        for line in &member.lines {
            let host = line.host.as_ref().map_or_else(|| "no host".to_owned(), ToString::to_string);
            text += &format!("{} {host} ({}) by {id}\n", line.asked_at, line.reason);
        }
        let missing = answer.missing_of(&id);
        if let Some(told) = answer.record_of(&id) {
            text += &told_by_record(told);
            if missing.is_some_and(|missing| missing.record == RecordMissing::NoAnswer) {
                text += &format!("another copy of the record of {id} may tell more: not all answered who may have one\n");
            }
        } else if let Some(lack) = lack_of_log(member, missing) {
            text += &format!("{id} {lack}{}\n", lack_of_record(member, missing));
        }
    }
    for id in &answer.missing.unanswered {
        text += &format!("{id} was asked for records, and did not answer\n");
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

/// When to ask again about a time that is too early for a log, or of which a record may still get more.
fn too_early(query: &RequestsQuery, now: WallTime) -> String {
    let final_at = recorded_at(query);
    if now < query.known_at() {
        again(query, now)
    } else if now < final_at {
        format!("records of that time are final at {final_at}, and get to replicas some minutes later: ask again then")
    } else {
        "by the clock of a member it is too early: ask again in some minutes".to_owned()
    }
}

/// When to ask again about a time of which requests may be under way, or that lies ahead.
fn again(query: &RequestsQuery, now: WallTime) -> String {
    if query.from > now {
        let known_at = query.known_at();
        return format!("that time is in the future, it is {now} now: check the date and the time zone, or ask again after {known_at}");
    }
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
    use nearcrawl_model::{
        access_point::AccessPoint,
        request_record::{RecordsAsked, RequestsMissing},
        requests_made::RequestsMade,
    };

    fn query() -> RequestsQuery {
        RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(0), until: WallTime(1) }
    }

    #[test]
    fn a_member_that_tells_of_more_requests_than_there_can_be_ends_nothing() {
        let made = |requests| Some(RequestsMade { requests, lines: Vec::new(), uncovered: None });
        let members = [(1, u64::MAX), (2, 1)].map(|(number, requests)| MemberRequests::of(AccessPoint([number; 32]), made(requests)));
        let text =
            told_by_all(&RequestsAnswer::new(&query(), RequestsView::new(&query(), members.into()), Vec::new(), &RecordsAsked::default()));
        assert!(text.contains("by 2 of 2 members"), "{text}");
    }

    #[test]
    fn to_ask_again_in_seconds_is_said_only_while_a_log_will_tell_then() {
        let (minute, query) = (60_000, query());
        assert!(too_early(&query, WallTime(9 * minute)).ends_with("ask again in 61 s"), "{}", too_early(&query, WallTime(9 * minute)));
        let final_at = "records of that time are final at 1970-01-01T01:15:00.000Z";
        for minutes in [11, 74] {
            let text = too_early(&query, WallTime(minutes * minute));
            assert!(text.starts_with(final_at) && !text.contains("ask again in"), "{text}");
        }
        let late = too_early(&query, WallTime(75 * minute));
        assert!(late.contains("the clock of a member"), "{late}");
    }

    #[test]
    fn no_record_is_told_apart_from_no_and_a_replica_is_named() {
        let (gone, replica) = (AccessPoint([7; 32]), AccessPoint([8; 32]));
        let answer = |verdict, gap, hours| {
            let view = RequestsView::new(&query(), vec![MemberRequests::of(gone, None)]);
            let told = RecordTold { access_point: gone, answered_by: replica, gone_at: Some(WallTime(9_000)), verdict, hours, gap };
            let asked = RecordsAsked { owners: [gone].into(), absent: [(gone, Some(WallTime(9_000)))].into(), ..RecordsAsked::default() };
            RequestsAnswer::new(&query(), view, vec![told], &asked)
        };
        let no = told_by_all(&answer(Verdict::No, None, Vec::new()));
        let from =
            format!("told by {replica}, which says that it keeps the record of {gone}, which is gone since 1970-01-01T00:00:09.000Z");
        assert!(no.starts_with("no: ") && no.contains(&format!("no request, {from}")), "{no}");
        let unknown = answer(Verdict::Unknown, Some(RecordGap::NoRecord), Vec::new());
        let text = told_by_all(&unknown);
        assert!(text.starts_with("not known: ") && text.contains(&format!("not known: no record of that hour is kept, {from}")), "{text}");
        assert!(text.contains(" is on record, but the records of 1 of 1 member do not say\n"), "{text}");
        assert!(not_known(&unknown, &query()).ends_with("no record of that hour is kept of 1 member"));
        let hour = RecordedHour {
            first_at: WallTime(0),
            last_at: WallTime(1_999),
            requests: 2,
            bytes: 1_024,
            reasons: vec!["robots".to_owned(), "link".to_owned()],
            hosts: vec!["a.ke".parse().unwrap()],
            all_hosts: false,
        };
        let yes = told_by_all(&answer(Verdict::Yes, None, vec![hour]));
        assert!(
            yes.starts_with("yes: requests to 192.0.2.1 ") && yes.contains(", 2 requests in the hours around it, by 1 of 1 member"),
            "{yes}"
        );
        let mark = "\u{1b}[2J".to_owned();
        let hour = RecordedHour {
            first_at: WallTime(0),
            last_at: WallTime(1),
            requests: 1,
            bytes: 0,
            reasons: vec![mark],
            hosts: vec![],
            all_hosts: true,
        };
        assert!(!told_by_all(&answer(Verdict::Yes, None, vec![hour])).contains('\u{1b}'));
        assert!(yes.contains(&format!("1970-01-01T00:00:01.999Z: a.ke, … (robots, link), {from}")), "{yes}");
    }

    #[test]
    fn no_record_not_asked_and_no_answer_are_said_apart() {
        let [gone, away, mute] = [7, 8, 9].map(|number| AccessPoint([number; 32]));
        let answer = |asked: RecordsAsked| {
            let members = vec![MemberRequests::of(gone, None), MemberRequests::of(away, None)];
            RequestsAnswer::new(&query(), RequestsView::new(&query(), members), Vec::new(), &asked)
        };
        let absent = || [(gone, Some(WallTime(9_000))), (away, None)].into();
        let all = RecordsAsked { absent: absent(), owners: [gone, away].into(), ..RecordsAsked::default() };
        let kept = answer(all.clone());
        let text = told_by_all(&kept);
        let since = "is gone since 1970-01-01T00:00:09.000Z: no record of that hour is kept";
        assert!(text.contains(&format!("{gone} was not asked, for it {since}\n")), "{text}");
        assert!(text.contains(&format!("{away} was not asked, for it is not there now: no record of that hour is kept\n")), "{text}");
        assert!(not_known(&kept, &query()).ends_with(": no record of that hour is kept of 2 members"));

        let silent = answer(RecordsAsked { unanswered: [mute].into(), ..all });
        let text = told_by_all(&silent);
        assert!(!text.contains("no record of that hour is kept") && text.contains("not all answered who may have it"), "{text}");
        assert!(text.contains(&format!("{mute} was asked for records, and did not answer\n")), "{text}");
        let why = not_known(&silent, &query());
        assert!(why.contains("1 member that may have a record of 2 members did not answer") && !why.contains("is kept"), "{why}");

        let few = answer(RecordsAsked { absent: absent(), owners: [gone].into(), ..RecordsAsked::default() });
        assert!(told_by_all(&few).contains("nobody was asked for its record, for only those of 64 members are asked for"));
        let why = not_known(&few, &query());
        assert!(why.ends_with("is kept of 1 member; the records of 1 member were not asked for"), "{why}");
        // Who answers for all may leave that out.
        let view = RequestsView::new(&query(), vec![MemberRequests::of(gone, None)]);
        let unsaid = RequestsAnswer { view, records: Vec::new(), missing: RequestsMissing::default() };
        assert!(told_by_all(&unsaid).contains("did not answer, or is no member any more: no record of that hour was told"));
        assert!(not_known(&unsaid, &query()).ends_with("no record of that hour was told of 1 member"));
    }

    #[test]
    fn a_yes_does_not_say_that_no_record_is_kept_of_those_that_were_not_asked() {
        let made = Some(RequestsMade { requests: 1, lines: Vec::new(), uncovered: None });
        let [maker, gone] = [1, 7].map(|number| AccessPoint([number; 32]));
        let members = vec![MemberRequests::of(maker, made), MemberRequests::of(gone, None)];
        let asked = RecordsAsked { absent: [(gone, Some(WallTime(9_000)))].into(), ..RecordsAsked::default() };
        let text = told_by_all(&RequestsAnswer::new(&query(), RequestsView::new(&query(), members), Vec::new(), &asked));
        assert!(text.starts_with("yes: ") && !text.contains("no record"), "{text}");
        assert!(text.contains("nobody was asked for its record, for another member made such a request"), "{text}");
    }
}
