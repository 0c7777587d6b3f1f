//! `verify`: did this access point make a request to that address at that time, and why?

use super::{WhichLog, moment, unreadable};
use crate::{
    cli::{
        error::{CommandError, Exit},
        json,
        survey::millis,
    },
    io::request_log::{Reader, RequestKind, RequestLine},
};
use clap::Args;
use nearcrawl_model::{time::WallTime, view::counted};
use serde::Serialize;
use std::{net::IpAddr, ops::ControlFlow};

/// So many requests are listed; all are counted.
const MAX_LISTED: usize = 1_000;

/// A request may end, and be written, so long after it began.
const LATEST_END: u64 = 600_000;

const DAY: u64 = 86_400_000;

/// Shown under `verify --help`.
pub const EXAMPLES: &str = "Examples:
  nearcrawl verify 192.0.2.1 2026-11-26T08:15:00Z
  nearcrawl verify 192.0.2.1 2026-11-26T08:15:00Z --within 1h --json

For a site owner who asks whether a request in their log was yours: IP is the address of their server, TIME the moment in UTC. \
It reads the log of requests of this access point (`nearcrawl log`) and knows nothing of other members: ask those that owned the \
subnet at that time (`nearcrawl why IP`).

Exit codes: 0 yes, 1 no, 66 there is no log, 69 it cannot be known: the log does not go back so far, lines are missing, or the daemon was killed about then.";

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
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichLog,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Yes,
    No,
    Unknown,
}

#[derive(Debug, Serialize)]
struct VerifyView {
    verdict: Verdict,
    address: IpAddr,
    from_at: WallTime,
    until_at: WallTime,
    /// The first day of the log.
    log_begins_at: Option<WallTime>,
    /// Requests in that time.
    requests: u64,
    /// The first of them.
    lines: Vec<RequestLine>,
    /// Lines that are missing at that time.
    lines_missing: u64,
    /// Whether the daemon was killed about then, so that what was under way is missing.
    killed: bool,
}

/// What was read of the log so far.
struct Scan {
    view: VerifyView,
    /// The last line of a daemon that has not ended in good order.
    running: Option<WallTime>,
    /// Whether the last line was of a time before the end of what is looked for.
    in_time: bool,
}

impl Scan {
    fn line(&mut self, line: &RequestLine) {
        let view = &mut self.view;
        match line.kind {
            // A gap is told by the first line behind it.
            RequestKind::Gap => view.lines_missing += if self.in_time { line.lines.unwrap_or(0) } else { 0 },
            RequestKind::Begin => {
                let killed = self.running.map(|last| (last.0.saturating_sub(LATEST_END), line.asked_at.0));
                view.killed |= killed.is_some_and(|(from, until)| from <= view.until_at.0 && until >= view.from_at.0);
            }
            kind if kind.is_contact() && line.address == Some(view.address) && (view.from_at..=view.until_at).contains(&line.asked_at) => {
                view.requests += 1;
                if view.lines.len() < MAX_LISTED {
                    view.lines.push(line.clone());
                }
            }
            _ => {}
        }
        self.in_time = line.asked_at <= view.until_at;
        self.running = (line.kind != RequestKind::End).then_some(line.asked_at);
    }
}

/// Says whether a request was made.
pub fn verify(args: &VerifyArgs) -> Result<(String, Option<CommandError>), CommandError> {
    let directory = args.which.directory()?;
    let begins = Reader::oldest(&directory).map_err(|why| unreadable(&directory, &why))?;
    let (from_at, until_at) = (WallTime(args.time.0.saturating_sub(args.within)), WallTime(args.time.0.saturating_add(args.within)));
    let view = VerifyView {
        verdict: Verdict::No,
        address: args.address.to_canonical(),
        from_at,
        until_at,
        log_begins_at: begins,
        requests: 0,
        lines: Vec::new(),
        lines_missing: 0,
        killed: false,
    };
    // What came before says whether a daemon that begins had ended in good order.
    let earlier = WallTime(from_at.0.saturating_sub(DAY));
    let running = begins.filter(|begins| *begins < earlier);
    let mut scan = Scan { view, running, in_time: true };
    let mut reader = Reader::new(&directory, earlier);
    let read = reader.read(&mut |line| {
        let over = line.asked_at.0 > until_at.0.saturating_add(DAY);
        scan.line(&line);
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.map_err(|why| unreadable(&directory, &why))?;
    let mut view = scan.view;
    let is_covered = view.log_begins_at.is_some_and(|begins| begins <= from_at) && view.lines_missing == 0 && !view.killed;
    view.verdict = match (view.requests, is_covered) {
        (1.., _) => Verdict::Yes,
        (0, true) => Verdict::No,
        (0, false) => Verdict::Unknown,
    };
    let text = if args.json { json(&view)? } else { told(&view) };
    let failure = match view.verdict {
        Verdict::Yes => None,
        Verdict::No => Some(CommandError::new(Exit::Broken, "no such request is in the log of this access point")),
        Verdict::Unknown => Some(CommandError::new(Exit::Unavailable, "the log of this access point does not cover that time")),
    };
    Ok((text, failure))
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
