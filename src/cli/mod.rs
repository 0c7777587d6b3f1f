//! The command line: its commands, what they print, and the exit codes of the process.

mod bot_site;
mod chart;
mod client;
mod crawl;
mod doctor;
mod error;
mod evaluate;
mod export;
pub mod hierarchy;
mod in_part;
mod init;
mod json;
mod kept_files;
pub mod lab;
mod last_whole;
mod log;
mod logging;
mod look;
mod manual;
mod measure;
mod opt_out;
mod owners;
mod pause;
mod plan;
mod report;
mod results;
mod row_table;
mod run;
mod run_results;
mod seed;
mod servers;
mod survey;
mod swarm;
mod table;
#[cfg(test)]
mod tests;
mod trend;
mod walk;

pub use client::{ApiArgs, ApiClient};
pub use crawl::{CrawlArgs, CrawlOrder};
pub use error::{CommandError, Exit};
pub use evaluate::told as detected;
pub use init::{InitArgs, InitView};
pub use run::{CheckArgs, RunArgs};
pub use table::{Style, Table};

use crate::io::memory;
use clap::{CommandFactory, Parser, Subcommand, error::ErrorKind};
use json::json;
use nearcrawl_lab::demo::Ending;
use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// A peer-to-peer, self-organising, polite web crawler.
#[derive(Parser, Debug)]
#[command(
    name = "nearcrawl",
    version,
    long_about = "A peer-to-peer, self-organising, polite web crawler.\n\n\
        Volunteers run it as a daemon. The daemons measure which of them is nearest to each web server, and the nearest one crawls it: one \
        request at a time, obeying robots.txt, each page once. Any of them answers what the whole swarm has found.",
    after_help = "Examples:\n  \
        nearcrawl demo                      a whole swarm on this machine\n  \
        nearcrawl crawl https://museum.or.ke/ --contact me@museum.or.ke\n  \
        nearcrawl run --config node.toml    run a member of a swarm\n  \
        nearcrawl status                    what the daemon is doing, and why\n  \
        nearcrawl results --by country      what the swarm has found\n\n\
        Exit codes:\n  \
        0 done, 64 wrong command line, 65 input not understood or refused,\n  \
        66 no such file, 69 daemon not running, or nothing could be fetched or\n  \
        was measured, 70 a bug of nearcrawl, 73 in use or cannot be created,\n  \
        74 disk, 75 disk full, 77 not permitted, 78 wrong configuration,\n  \
        130 ended by Ctrl-C, 143 by SIGTERM\n\n\
        With --json an error is JSON, too: the last line of standard error has error, hint and exit_code.",
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// The command to carry out.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write a configuration, and create this access point's key and state directory
    #[command(after_help = init::INIT_EXAMPLES)]
    Init(InitArgs),
    /// Run the daemon
    #[command(after_help = run::RUN_EXAMPLES)]
    Run(RunArgs),
    /// Crawl some sites once, without a swarm
    #[command(after_help = crawl::EXAMPLES)]
    Crawl(Box<CrawlArgs>),
    /// Check HTML files for accessibility failures
    #[command(after_help = evaluate::EXAMPLES)]
    Evaluate(evaluate::EvaluateArgs),
    /// Add starting URLs to the crawl
    #[command(subcommand, after_help = seed::EXAMPLES)]
    Seed(seed::SeedCommand),
    /// Have no member ask a server anything: with a DNS record, a file or an order
    #[command(subcommand, after_help = opt_out::EXAMPLES)]
    OptOut(opt_out::OptOutCommand),
    /// Make, list, show, pause and end surveys: studies that all members crawl
    #[command(subcommand, after_help = survey::EXAMPLES)]
    Survey(survey::SurveyCommand),
    /// Admit members by invitation, and expel them
    #[command(subcommand, after_help = swarm::EXAMPLES)]
    Swarm(swarm::SwarmCommand),
    /// Show what the daemon is doing, and why
    #[command(after_help = look::STATUS_EXAMPLES)]
    Status(ApiArgs),
    /// Show the totals of the whole swarm
    #[command(after_help = results::EXAMPLES)]
    Results(results::ResultsArgs),
    /// List the servers that the swarm has on record
    #[command(after_help = servers::EXAMPLES)]
    Servers(servers::ServersArgs),
    /// Write what the whole swarm has on record, row by row
    #[command(subcommand, after_help = export::EXAMPLES)]
    Export(export::ExportCommand),
    /// Make a report of the whole swarm's servers: figures, table and method
    #[command(subcommand, after_help = report::EXAMPLES)]
    Report(report::ReportCommand),
    /// Compare two runs, server by server
    #[command(after_help = trend::EXAMPLES)]
    Trend(trend::TrendArgs),
    /// Estimate what a crawl will cost and find
    #[command(after_help = plan::EXAMPLES)]
    Plan(plan::PlanArgs),
    /// Explain who crawls a URL, host, address or subnet, and why
    #[command(after_help = look::WHY_EXAMPLES)]
    Why(look::WhyArgs),
    /// Show whom this access point asked, when and why: every request
    #[command(after_help = log::EXAMPLES)]
    Log(log::LogArgs),
    /// Say whether any member asked an address at a certain time, and why
    #[command(after_help = log::VERIFY_EXAMPLES)]
    Verify(log::VerifyArgs),
    /// List the members of the swarm
    #[command(after_help = look::MEMBERS_EXAMPLES)]
    Members(ApiArgs),
    /// Measure how many bytes a second come from a member, and by which way
    #[command(after_help = measure::EXAMPLES)]
    Measure(measure::MeasureArgs),
    /// Hand a subnet of this access point over to another member, or pin it here
    #[command(after_help = look::MOVE_EXAMPLES)]
    Move(look::MoveArgs),
    /// Ask no server anything for a while; the daemon stays a member
    #[command(after_help = pause::PAUSE_EXAMPLES)]
    Pause(pause::PauseArgs),
    /// Go on after a pause
    #[command(after_help = pause::RESUME_EXAMPLES)]
    Resume(ApiArgs),
    /// Leave the swarm for good: release all subnets, then end
    #[command(after_help = look::LEAVE_EXAMPLES)]
    Leave(ApiArgs),
    /// Say that members will not come back, so that the voters that remain can go on without them
    #[command(after_help = look::DECLARE_LOST_EXAMPLES)]
    DeclareLost(look::DeclareLostArgs),
    /// Fetch, build, show and compare hierarchies of subnets
    #[command(subcommand, after_help = hierarchy::EXAMPLES)]
    Hierarchy(hierarchy::HierarchyCommand),
    /// Measure the daemon's decisions in simulations
    #[command(subcommand, after_help = lab::EXAMPLES)]
    Lab(lab::LabCommand),
    /// Check a configuration without starting anything
    #[command(after_help = run::CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Say what the daemon will do here, and check DNS, clock, ports, members, disk and limits
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Write a page for owners of web sites: who asks, how often at most, and how to say no
    #[command(after_help = bot_site::EXAMPLES)]
    BotSite(bot_site::BotSiteArgs),
    /// Run a whole swarm on this machine and check it
    #[command(after_help = nearcrawl_lab::demo::EXAMPLES)]
    Demo(nearcrawl_lab::demo::DemoArgs),
    /// Print or write the manual pages
    #[command(after_help = manual::MAN_EXAMPLES)]
    Man(manual::ManArgs),
    /// Print completions for a shell
    #[command(after_help = manual::COMPLETIONS_EXAMPLES)]
    Completions(manual::CompletionsArgs),
}

/// Parses the command line, runs the command, and returns the exit code of the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    memory::share_heaps();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&arguments, &as_typed(Cli::command(), &arguments, error)),
    };
    if let Some(kept) = cli.command.keeps_sums() {
        *kept = last_whole::of_user();
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return fail(&arguments, &CommandError::new(Exit::Internal, format!("cannot start: {why}"))),
    };
    // As a task like all others: a wake-up of what `block_on` itself polls costs a look at the sockets each time.
    let performed = runtime.block_on(async { tokio::spawn(perform(cli.command, Style::of_stdout())).await });
    match performed.unwrap_or_else(|ended| Err(CommandError::new(Exit::Internal, ended.to_string()))) {
        Ok(text) => print(&text),
        Err(failure) => fail(&arguments, &failure),
    }
}

impl Command {
    /// Where sums over rows are kept, of a command that makes any.
    fn keeps_sums(&mut self) -> Option<&mut Option<PathBuf>> {
        match self {
            Command::Results(args) => Some(&mut args.kept),
            Command::Trend(args) => Some(&mut args.kept),
            Command::Survey(survey::SurveyCommand::Show(args)) => Some(&mut args.kept),
            _ => None,
        }
    }
}

/// Runs a command and returns what is to be printed.
pub async fn perform(command: Command, style: Style) -> Result<String, CommandError> {
    match command {
        Command::Init(args) => init::init(&args),
        Command::Run(args) => run::run(args).await.map(|()| String::new()),
        Command::Crawl(args) => as_far_as_it_goes(crawl::crawl(*args).await?),
        Command::Evaluate(args) => {
            // What the other files came to is printed, too.
            as_far_as_it_goes(evaluate::evaluate(&args, style)?)
        }
        Command::Seed(command) => seed::seed(command).await,
        Command::OptOut(command) => opt_out::opt_out(command, style).await,
        Command::Survey(command) => as_far_as_it_goes(survey::survey(command, style).await?),
        Command::Swarm(command) => swarm::swarm(command, style).await,
        Command::Status(args) => look::status(&args, style).await,
        Command::Results(args) => as_far_as_it_goes(results::results(&args, style).await?),
        Command::Servers(args) => as_far_as_it_goes(servers::servers(&args, style).await?),
        Command::Export(command) => export::export(&command).await,
        Command::Report(command) => as_far_as_it_goes(report::report(&command, style).await?),
        Command::Trend(args) => as_far_as_it_goes(trend::trend(&args, style).await?),
        Command::Plan(args) => as_far_as_it_goes(plan::plan(&args, style).await?),
        Command::Why(args) => look::why(&args, style).await,
        Command::Log(args) => log::log(&args).await,
        Command::Verify(args) => as_far_as_it_goes(log::verify(&args).await?),
        Command::Members(args) => look::members(&args, style).await,
        Command::Measure(args) => measure::measure(&args).await,
        Command::Move(args) => look::hand_over(&args).await,
        Command::Pause(args) => pause::pause(&args).await,
        Command::Resume(args) => pause::resume(&args).await,
        Command::Leave(args) => look::leave(&args).await,
        Command::DeclareLost(args) => look::declare_lost(&args).await,
        Command::Hierarchy(command) => {
            let mut out = Vec::new();
            let done = hierarchy::run(command, &mut out).await;
            if done.is_err() {
                // What was done before the failure is printed, too.
                print(&String::from_utf8_lossy(&out));
            }
            done.map_err(|why| CommandError::new(Exit::of(why.exit_code()), why.to_string()))?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        }
        Command::Lab(command) => lab::lab(command, style).await,
        Command::Check(args) => run::check(&args),
        Command::Doctor(args) => as_far_as_it_goes(doctor::doctor(&args, style).await?),
        Command::BotSite(args) => bot_site::bot_site(&args),
        Command::Demo(args) => demo(args).await,
        Command::Man(args) => manual::man(&args, Cli::command()),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
    }
}

/// What was found is printed, also if something is missing.
fn as_far_as_it_goes((text, failure): (String, Option<CommandError>)) -> Result<String, CommandError> {
    let Some(failure) = failure else { return Ok(text) };
    print(&text);
    Err(failure)
}

/// The demonstration prints its table itself; its verdict is the exit code.
async fn demo(args: nearcrawl_lab::demo::DemoArgs) -> Result<String, CommandError> {
    match nearcrawl_lab::demo::run(args, crate::io::client::client()).await {
        Ok(Ending::Holds) => Ok(String::new()),
        Ok(Ending::Broken) => Err(CommandError::new(Exit::Broken, "a row of the table does not hold")),
        Ok(Ending::Interrupted) => Err(CommandError::new(Exit::Interrupted, "it was interrupted, and its daemons are stopped")),
        Err(why) => Err(CommandError::new(Exit::Internal, why.to_string())),
    }
}

/// The same error with a usage line of what was typed. Of an option whose value is in the environment, clap writes it as if it were required.
fn as_typed(command: clap::Command, arguments: &[OsString], error: clap::Error) -> clap::Error {
    fn bare(command: clap::Command) -> clap::Command {
        command.mut_args(|arg| arg.env(None::<&'static str>)).mut_subcommands(bare)
    }
    let has_usage = error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !has_usage {
        return error;
    }
    match bare(command).try_get_matches_from(arguments) {
        Err(typed) if typed.kind() == error.kind() => typed,
        // The error is that of a value in the environment.
        _ => error,
    }
}

/// clap ends with 2 on its own; sysexits says 64. Help and version are no failures.
fn usage(arguments: &[OsString], error: &clap::Error) -> ExitCode {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_help && wants_json(arguments) {
        let message = error.to_string();
        let mut paragraphs = message.trim_start_matches("error: ").trim_end().splitn(2, "\n\n");
        let failure = CommandError::new(Exit::Usage, paragraphs.next().unwrap_or_default());
        return fail(arguments, &paragraphs.next().into_iter().fold(failure, CommandError::hint));
    }
    // If this cannot be printed, there is nowhere left to report it.
    let _ = error.print();
    if is_help { ExitCode::SUCCESS } else { ExitCode::from(Exit::Usage as u8) }
}

/// Whether answers are wanted as JSON, and so the error.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

fn fail(arguments: &[OsString], failure: &CommandError) -> ExitCode {
    let _ = if wants_json(arguments) { writeln!(io::stderr(), "{}", failure.as_json()) } else { writeln!(io::stderr(), "{failure}") };
    failure.code()
}

fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe (`| head`): no failure.
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(why) => fail(&[], &CommandError::new(Exit::Storage, format!("standard output: {why}"))),
    }
}
