//! `log` and `verify`: show whom this access point asked, when and why, and whether it asked a certain address at a certain time.

#[cfg(test)]
mod tests;
mod verify;

pub use verify::{EXAMPLES as VERIFY_EXAMPLES, VerifyArgs, verify};

use super::{
    error::{CommandError, Exit},
    run::ConfigArgs,
    survey::millis,
};
use crate::{
    io::request_log::{Reader, RequestKind, RequestLine},
    node::clock,
};
use clap::Args;
use jiff::{Timestamp, fmt::strtime};
use nearcrawl_model::{time::WallTime, url::Host, view::counted};
use std::{
    io::{self, Write},
    ops::ControlFlow,
    path::PathBuf,
    time::Duration,
};

/// How often it is looked for new lines.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Shown under `log --help`.
pub const EXAMPLES: &str = "Examples:
  nearcrawl log                                every request that is kept
  nearcrawl log --host museum.or.ke --since 2d
  nearcrawl log --since 2026-11-26T08:00:00Z --json
  nearcrawl log --follow                       goes on until Ctrl-C
  nearcrawl log --state /var/lib/nearcrawl

A line for each page, robots.txt, probe and look-up in the DNS that this access point asked for: when, of whom, by which rule, and \
what came of it; the newest last, in the order in which they ended. Lines `begin` and `end` say when the daemon was started and stopped. It is read from the state directory, whether a daemon runs or not; \
that of the service can be read by root.

Without --json: moment, kind, host and path, address; reason; status or failure, bytes of the body, time. What is under way when the \
daemon is killed is missing, and where the disk took no lines a line says how many are.

The keys `requests`, `max_requests_age` and `max_requests_bytes` under [log] in the configuration say whether, and how long it is kept.

Exit codes: 66 there is no log, 77 it cannot be read by this user.";

/// Where a log is.
#[derive(Args, Clone, Debug)]
pub struct WhichLog {
    #[command(flatten)]
    config: ConfigArgs,
    /// The state directory [default: that of the configuration]
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
}

impl WhichLog {
    /// Whether a state directory was named.
    fn is_named(&self) -> bool {
        self.state.is_some()
    }

    /// The API of the daemon with this configuration; none for that of the default one.
    fn api(&self, named: Option<&str>) -> Result<Option<String>, CommandError> {
        if named.is_some() || self.config.config.is_none() {
            return Ok(named.map(str::to_owned));
        }
        Ok(self.config.load()?.api.listen.map(|listen| format!("http://{listen}")))
    }

    /// The directory of its files. There must be one.
    fn directory(&self) -> Result<PathBuf, CommandError> {
        let mut config = self.config.load()?;
        if let Some(state) = &self.state {
            config.state_dir.clone_from(state);
        }
        let directory = config.requests_directory();
        match std::fs::read_dir(&directory) {
            Ok(_) => Ok(directory),
            Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                let hint = "the state of the service can be read by root: sudo nearcrawl log";
                Err(CommandError::of_file(&directory, &why).hint(hint))
            }
            Err(why) => {
                let hint = "a daemon makes it when it starts, if `requests` under [log] is true; --state names another state directory";
                Err(CommandError::of_file(&directory, &why).hint(hint))
            }
        }
    }
}

/// The arguments of `log`.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Only requests to this host
    #[arg(long, value_name = "HOST")]
    host: Option<Host>,
    /// Only requests since then: a moment, a date, or so long ago (`90m`, `2d`)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<WallTime>,
    /// Go on with what comes
    #[arg(long, short)]
    follow: bool,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichLog,
}

/// Prints what is in the log, and what comes.
pub async fn log(args: &LogArgs) -> Result<String, CommandError> {
    let directory = args.which.directory()?;
    let mut reader = Reader::new(&directory, args.since.unwrap_or_default());
    let mut out = io::stdout();
    loop {
        let printed = print(&mut reader, args, &mut out.lock()).and_then(|()| out.flush());
        match printed {
            Ok(()) => {}
            // The reader closed the pipe (`| head`): no failure.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => return Ok(String::new()),
            Err(why) => return Err(CommandError::of_file(&directory, &why)),
        }
        if !args.follow {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    if reader.bad() > 0 {
        let bad = counted(reader.bad(), "line");
        let _ = writeln!(io::stderr(), "warning: {bad} could not be read: of a daemon that was killed while it wrote, or damaged");
    }
    Ok(String::new())
}

fn print(reader: &mut Reader, args: &LogArgs, out: &mut dyn Write) -> io::Result<()> {
    let host = args.host.as_ref().map(Host::to_string);
    let mut printed = Ok(());
    let mut visit = |line: RequestLine| {
        // A gap may be one of any host's.
        if host.as_ref().is_some_and(|host| *host != line.host && line.kind != RequestKind::Gap) {
            return ControlFlow::Continue(());
        }
        printed = if args.json {
            serde_json::to_writer(&mut *out, &line).map_err(io::Error::from).and_then(|()| writeln!(out))
        } else {
            writeln!(out, "{line}")
        };
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    reader.read(&mut visit)?;
    printed
}

/// A moment with its time zone, as RFC 3339 or the log of a web server writes it; a date, in UTC; or how long ago.
fn moment(text: &str) -> Result<WallTime, String> {
    let date = || format!("{text}T00:00:00Z").parse().ok();
    let ago = || millis(text).ok().map(|ago| WallTime(clock::now().wall.0.saturating_sub(ago)));
    let of_server = || strtime::parse("%d/%b/%Y:%H:%M:%S %z", text.trim_matches(['[', ']'])).ok()?.to_timestamp().ok();
    let zoned = || {
        let at = text.parse::<Timestamp>().ok().or_else(of_server)?;
        u64::try_from(at.as_millisecond()).ok().map(WallTime)
    };
    text.parse().ok().or_else(date).or_else(ago).or_else(zoned).ok_or_else(|| {
        "write it like 2026-11-26T08:00:00Z, 2026-11-26T11:00:00+03:00, \"26/Nov/2026:11:00:00 +0300\", 2026-11-26, 90m or 2d".to_owned()
    })
}

/// A log that cannot be read.
fn unreadable(directory: &std::path::Path, why: &io::Error) -> CommandError {
    CommandError { exit: Exit::Storage, ..CommandError::of_file(directory, why) }
}
