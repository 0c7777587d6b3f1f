//! What can somebody type? The commands, what they answer, and the exit codes they end with.

mod client;
mod crawl;
mod evaluate;
mod failure;
pub mod hierarchy;
pub mod lab;
mod logging;
mod look;
mod paperwork;
mod plan;
mod results;
mod run;
mod seed;
mod table;
#[cfg(test)]
mod tests;

pub use client::{ApiArgs, ApiClient};
pub use crawl::{CrawlArgs, CrawlOrder};
pub use evaluate::told as detected;
pub use failure::{Exit, Failure};
pub use run::{CheckArgs, InitArgs, InitView, RunArgs};
pub use table::{Style, Table};

use crate::io::memory;
use clap::{Parser, Subcommand, error::ErrorKind};
use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

/// A peer-to-peer, self-organising, polite web crawler.
#[derive(Parser, Debug)]
#[command(
    name = "nearcrawl",
    version,
    long_about = "A peer-to-peer, self-organising, polite web crawler.\n\n\
        Volunteers run it as a daemon. Together the daemons find out which of them is nearest to each web server, and the nearest \
        one visits it, politely and once. Anybody can ask any of them what the whole swarm found.",
    after_help = "Examples:\n  \
        nearcrawl demo                    a whole swarm on this machine\n  \
        nearcrawl crawl https://museum.or.ke/ --contact you@example.org\n  \
        nearcrawl init && nearcrawl run   become a member\n  \
        nearcrawl status                  what is the daemon doing, and why\n  \
        nearcrawl results --by country    what does the swarm know\n\n\
        Exit codes:\n  \
        0 done, 64 wrong command line, 65 input not understood,\n  \
        66 no such file, 69 daemon not running, 70 a fault of nearcrawl,\n  \
        73 in use or not writable, 74 disk, 77 not permitted,\n  \
        78 wrong configuration",
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make this access point's key and state directory
    #[command(after_help = run::INIT_EXAMPLES)]
    Init(InitArgs),
    /// Run the daemon
    #[command(after_help = run::RUN_EXAMPLES)]
    Run(RunArgs),
    /// Crawl some sites once, without a swarm, and end
    #[command(after_help = crawl::EXAMPLES)]
    Crawl(Box<CrawlArgs>),
    /// Look for accessibility failures in HTML files
    #[command(after_help = evaluate::EXAMPLES)]
    Evaluate(evaluate::EvaluateArgs),
    /// Give the daemon starting points
    #[command(subcommand, after_help = seed::EXAMPLES)]
    Seed(seed::SeedCommand),
    /// Tell what the daemon is doing, and why
    #[command(after_help = look::STATUS_EXAMPLES)]
    Status(ApiArgs),
    /// Tell what the whole swarm knows so far
    #[command(after_help = results::EXAMPLES)]
    Results(results::ResultsArgs),
    /// Tell what a crawl will cost and find, before anything is fetched
    #[command(after_help = plan::EXAMPLES)]
    Plan(plan::PlanArgs),
    /// Explain why a URL, a host, an address or a subnet is crawled by whom, and when
    #[command(after_help = look::WHY_EXAMPLES)]
    Why(look::WhyArgs),
    /// List the members of the swarm
    #[command(after_help = look::PEERS_EXAMPLES)]
    Peers(ApiArgs),
    /// Hand a subnet that this access point owns over to another member, with its history
    #[command(after_help = look::MOVE_EXAMPLES)]
    Move(look::MoveArgs),
    /// Leave the swarm for good: give everything back, then end
    #[command(after_help = look::LEAVE_EXAMPLES)]
    Leave(ApiArgs),
    /// Fetch, build, look at and compare hierarchies of subnets
    #[command(subcommand, after_help = hierarchy::EXAMPLES)]
    Hierarchy(hierarchy::HierarchyCommand),
    /// Measure the daemon's decisions in simulated worlds
    #[command(subcommand, after_help = lab::EXAMPLES)]
    Lab(lab::LabCommand),
    /// Check a configuration without starting anything
    #[command(after_help = run::CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Show a whole swarm at work on this machine
    Demo(crate::demo::DemoArgs),
    /// Write the manual pages
    #[command(after_help = paperwork::MAN_EXAMPLES)]
    Man(paperwork::ManArgs),
    /// Print completions for a shell
    #[command(after_help = paperwork::COMPLETIONS_EXAMPLES)]
    Completions(paperwork::CompletionsArgs),
}

/// Does what the command line says; the process ends with the code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    memory::share_heaps();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return fail(&Failure::new(Exit::Internal, format!("cannot start: {why}"))),
    };
    if let Command::Demo(args) = cli.command {
        // The demonstration draws its own progress and table, and its exit code is its verdict.
        return runtime.block_on(crate::demo::run(args)).unwrap_or_else(|why| fail(&Failure::new(Exit::Internal, why.to_string())));
    }
    // As a task like all others: a wake-up of what `block_on` itself polls costs a look at the sockets each time.
    let performed = runtime.block_on(async { tokio::spawn(perform(cli.command, Style::of_stdout())).await });
    match performed.unwrap_or_else(|ended| Err(Failure::new(Exit::Internal, ended.to_string()))) {
        Ok(text) => print(&text),
        Err(failure) => fail(&failure),
    }
}

/// Does it, and gives back what is to be printed.
pub async fn perform(command: Command, style: Style) -> Result<String, Failure> {
    match command {
        Command::Init(args) => run::init(&args).await,
        Command::Run(args) => run::run(args).await.map(|()| String::new()),
        Command::Crawl(args) => crawl::crawl(*args).await,
        Command::Evaluate(args) => evaluate::evaluate(&args, style),
        Command::Seed(command) => seed::seed(command).await,
        Command::Status(args) => look::status(&args, style).await,
        Command::Results(args) => results::results(&args, style).await,
        Command::Plan(args) => plan::plan(&args, style).await,
        Command::Why(args) => look::why(&args, style).await,
        Command::Peers(args) => look::peers(&args, style).await,
        Command::Move(args) => look::hand_over(&args).await,
        Command::Leave(args) => look::leave(&args).await,
        Command::Hierarchy(command) => {
            let mut out = Vec::new();
            let done = hierarchy::run(command, &mut out).await;
            if done.is_err() {
                // What could be done is told, too.
                print(&String::from_utf8_lossy(&out));
            }
            done.map_err(|why| Failure::new(Exit::of(why.exit_code()), why.to_string()))?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        }
        Command::Lab(command) => lab::lab(command, style).await,
        Command::Check(args) => run::check(&args),
        Command::Demo(_) => Ok(String::new()),
        Command::Man(args) => paperwork::man(&args),
        Command::Completions(args) => paperwork::completions(&args),
    }
}

/// A value as JSON for people and programs: indented, with a line end.
fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|why| Failure::new(Exit::Internal, format!("the answer cannot be written as JSON: {why}")))
}

/// clap ends with 2 on its own; sysexits says 64. Help and version are no failures.
fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to tell if this cannot be printed.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(Exit::Usage as u8),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    let _ = writeln!(io::stderr(), "{failure}");
    failure.code()
}

fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read us has seen enough (`| head`).
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(why) => fail(&Failure::new(Exit::Storage, format!("standard output: {why}"))),
    }
}
