//! Demonstration of the crawler's main job on one machine: five daemons, a made-up web, and a table of the results.
//!
//! The daemons are separate processes on loopback addresses of their own; the web answers the slower the farther away the asker
//! is, by nothing but the asker's address. So everything the table says was measured by the servers or asked of the daemons as
//! anybody can ask them.

mod args;
pub mod asking;
mod course;
pub mod daemons;
mod error;
mod show;
pub mod verdict;
pub mod world;

pub use args::{DemoArgs, EXAMPLES};
pub use error::DemoError;

use asking::Asker;
use course::Course;
use daemons::{Common, Daemon};

use crate::web::{
    dns::{self, DnsServer},
    server::WebServers,
};
use nearcrawl_model::view::counted;
use show::Show;
use std::{path::PathBuf, sync::Arc};
use world::World;

/// A directory that is removed at the end, unless it is needed to find out what went wrong.
#[derive(Debug)]
struct Workplace {
    path: PathBuf,
    keep: bool,
}

impl Workplace {
    fn new() -> Result<Workplace, DemoError> {
        let path = std::env::temp_dir().join(format!("nearcrawl-demo-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|source| DemoError::Directory { path: path.clone(), source })?;
        // Kept until it is known that nothing went wrong.
        Ok(Workplace { path, keep: true })
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// How the demonstration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every row of the table holds.
    Holds,
    /// A row does not hold.
    Broken,
    /// It was interrupted before there was a table.
    Interrupted,
}

/// Runs the demonstration with this program's daemons, asking them by means of `client`. It draws its own progress and prints its table.
pub async fn run(args: DemoArgs, client: reqwest::ClientBuilder) -> Result<Ending, DemoError> {
    let program = std::env::current_exe().map_err(|source| DemoError::Directory { path: "this program".into(), source })?;
    run_program(args, program, client).await
}

/// Runs the demonstration with the daemons of another build of this program: for tests, whose own program is no daemon.
pub(crate) async fn run_program(args: DemoArgs, program: PathBuf, client: reqwest::ClientBuilder) -> Result<Ending, DemoError> {
    let show = Show::new();
    let world = Arc::new(World::new(args.plan()));
    let mut workplace = Workplace::new()?;
    let web = WebServers::start(world.web_servers(), world.clone()).await?;
    // Each access point has a web server beside it, so that the others can tell how far it is; what these see is not counted.
    let _homes = WebServers::start(world.homes(), world.clone()).await?;
    let dns = DnsServer::start(world.name_server(), dns::Zone::new(world.names())).await.map_err(DemoError::Dns)?;
    show.event(&format!(
        "a web of {} at {} in {}; files are in {}",
        counted(world.hosts.len(), "host"),
        counted(world.servers.len(), "address"),
        counted(world.inhabited().len(), "subnet"),
        workplace.path.display()
    ));
    let (common, daemons) = prepare(&world, &workplace, &dns, program).await?;
    let mut course = Course::new(&args, &world, web.log().clone(), common, daemons, Asker::new(client)?, show);
    let outcome = tokio::select! {
        outcome = course.run() => outcome.map(Some),
        _ = tokio::signal::ctrl_c() => Ok(None),
    };
    let rows = match outcome {
        Ok(rows) => rows,
        Err(why) => {
            course.end().await;
            return Err(why);
        }
    };
    let ending = match rows {
        None => Ending::Interrupted,
        Some(rows) => {
            let holds = rows.iter().all(|row| row.holds);
            print_rows(&rows, args.json);
            workplace.keep = !holds;
            if !holds {
                eprintln!("{}", show::folded("", &format!("what the daemons said is in {}", workplace.path.display())));
            }
            if args.keep {
                let pages = course.pages().join(" ");
                eprintln!("{}", show::folded("", &format!("the swarm goes on; look at {pages} and end it with Ctrl-C")));
                let _ = tokio::signal::ctrl_c().await;
            }
            if holds { Ending::Holds } else { Ending::Broken }
        }
    };
    course.end().await;
    web.stop().await;
    Ok(ending)
}

/// Writes the registry files and makes a key and a configuration for each daemon; all but the first know the first.
async fn prepare(world: &World, workplace: &Workplace, dns: &DnsServer, program: PathBuf) -> Result<(Common, Vec<Daemon>), DemoError> {
    let mut common = Common {
        directory: workplace.path.clone(),
        registries: Vec::new(),
        name_server: dns.address(),
        range: format!("127.{}.0.0/16", world.plan().net),
        program,
    };
    for (name, text) in world.places.registry_files() {
        common.registries.push(common.write(&name, &text)?);
    }
    let mut daemons: Vec<Daemon> = Vec::new();
    for address in world.access_points() {
        let first = daemons.first().map(Daemon::multiaddress);
        daemons.push(common.prepare(address, first.as_deref()).await?);
    }
    Ok((common, daemons))
}

/// The table on standard output.
fn print_rows(rows: &[verdict::Row], json: bool) {
    if json {
        println!("{}", serde_json::to_string_pretty(rows).unwrap_or_default());
    } else {
        println!("{}", show::table(rows));
    }
}
