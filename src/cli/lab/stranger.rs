//! `nearcrawl lab stranger`: from the package to the purge, as a volunteer does it, in namespaces.

use crate::cli::{
    error::{CommandError, Exit},
    print,
};
use clap::Args;
use nearcrawl_lab::stranger::{self, StrangerError, StrangerPlan};
use std::path::PathBuf;

/// Shown under `lab stranger --help`.
pub const EXAMPLES: &str = "\
A machine is made of namespaces: a Debian tree of its own (what changes in it is kept in memory), its own processes, and a network behind a router \
that lets in answers only. Around it are three members of a swarm, five web servers and a name server, at public addresses; no packet leaves the \
machine that this runs on. Then, step by step, with a stopwatch:

    dpkg --install            nothing is started by it
    nearcrawl init            contact and bootstrap, into the package's file
    nearcrawl check           ready to run
    nearcrawl doctor          no check fails
    member behind a NAT       the daemon, as its unit starts it, has a lease
    first server crawled      each page once, as the server saw it
    totals at another member  exact, and naming the new owner
    opt-out in force          a TXT record, told to another member: no request
                              after ten seconds
    budget held               allowance.crawl_per_day, as the kernel counts
    dpkg --purge              no file, user or process is left

The exit status is 0 only if every step holds; the first that does not ends it. Needs root, overlayfs, /dev/net/tun, `ip`, `nft`, `nsenter` and \
`unshare`. `make stranger` makes the tree and the package.

Examples:
  nearcrawl lab stranger --package nearcrawl_0.1.0-1_amd64.deb --tree bookworm
  nearcrawl lab stranger --package nearcrawl_0.1.0-1_amd64.deb --json";

/// Arguments of `lab stranger`.
#[derive(Args, Debug)]
pub struct StrangerArgs {
    /// The package
    #[arg(long, value_name = "FILE.deb")]
    package: PathBuf,
    /// A Debian tree, as debootstrap makes it, which stays as it is; `/`: that of this machine
    #[arg(long, value_name = "DIRECTORY", default_value = "/")]
    tree: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Goes through it. What came of it is printed, too, if a step does not hold.
pub async fn stranger(args: &StrangerArgs) -> Result<String, CommandError> {
    let failed = |exit: Exit, why: &dyn std::fmt::Display| CommandError::new(exit, why.to_string());
    let whole = |path: &PathBuf| path.canonicalize().map_err(|why| failed(Exit::NoInput, &format!("{}: {why}", path.display())));
    let program = std::env::current_exe().map_err(|why| failed(Exit::Internal, &why))?;
    let plan = StrangerPlan { package: whole(&args.package)?, tree: whole(&args.tree)?, program };
    let told = |step: &stranger::Step| {
        if !args.json {
            eprintln!("{}", step.line());
        }
    };
    let exit = |why: &StrangerError| match why {
        StrangerError::Network(_) | StrangerError::Machine { .. } | StrangerError::Program { .. } => Exit::Unavailable,
        StrangerError::Files { .. } => Exit::Storage,
        _ => Exit::Broken,
    };
    let outcome = tokio::select! {
        outcome = stranger::stranger(&plan, told) => outcome.map_err(|why| failed(exit(&why), &why))?,
        () = stopped() => return Err(CommandError::new(Exit::Interrupted, "it was stopped; nothing of it is left")),
    };
    let text = if args.json { outcome.json() } else { outcome.text() };
    if outcome.holds() {
        return Ok(text);
    }
    print(&text);
    Err(CommandError::new(Exit::Broken, "a step does not hold"))
}

/// Ctrl-C, or SIGTERM.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut ended) => tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = ended.recv() => {}
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
