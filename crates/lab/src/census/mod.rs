//! Census: tests reports against a made-up web with known facts.
//!
//! Real daemons crawl the web several times, while some are killed and others join; then every report is compared with what the web's
//! generator says, and every request of the servers' logs with what it must be.
//!
//! What is true is decided by [`world`] and [`reference`]; neither calls what adds reports up. A further report is a row of
//! [`reports::CHECKS`].

mod certificates;
mod compare;
mod course;
mod error;
mod outcome;
mod parquet;
mod plan;
mod reference;
mod reports;
mod requests;
mod servers;
mod swarm;
mod told;
mod watch;
mod world;

pub use certificates::CertificateError;
pub use error::CensusError;
pub use outcome::Outcome;
pub use plan::{CensusPlan, HOSTS, MAX_DAEMONS, MAX_RUNS};

use crate::{
    demo::{asking::Asker, daemons::Common},
    web::dns::{DnsServer, Zone},
};
use certificates::Certificates;
use course::Course;
use nearcrawl_model::view::counted;
use reference::Reference;
use servers::Servers;
use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use swarm::Swarm;
use watch::Watch;
use world::World;

/// Second octets of the ranges of loopback addresses that censuses live in: as many go on at once on a machine.
const NETS: std::ops::RangeInclusive<u8> = 90..=97;

/// A range that is this census's until dropped, also among processes: the kernel gives a port to one only.
struct Ground {
    net: u8,
    _mark: UdpSocket,
}

impl Ground {
    fn claim() -> Result<Ground, CensusError> {
        let free = |net| UdpSocket::bind((Ipv4Addr::new(127, net, 251, 1), 4799)).ok().map(|mark| Ground { net, _mark: mark });
        NETS.into_iter().find_map(free).ok_or(CensusError::NoRange(NETS.len()))
    }
}

/// A directory that is removed at the end, unless it is needed to find out what went wrong.
struct Workplace {
    path: PathBuf,
    keep: bool,
}

impl Workplace {
    fn new() -> Result<Workplace, CensusError> {
        let path = std::env::temp_dir().join(format!("nearcrawl-census-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|source| CensusError::Directory { path: path.clone(), source })?;
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

/// Carries out a census with the daemons of this program, asking them by means of such clients. None if it was interrupted.
pub async fn run(plan: CensusPlan, client: impl Fn() -> reqwest::ClientBuilder) -> Result<Option<Outcome>, CensusError> {
    let program = std::env::current_exe().map_err(|source| CensusError::Directory { path: "this program".into(), source })?;
    run_program(plan, program, client).await
}

/// The same with the daemons of another build of this program.
pub async fn run_program(
    plan: CensusPlan,
    program: PathBuf,
    client: impl Fn() -> reqwest::ClientBuilder,
) -> Result<Option<Outcome>, CensusError> {
    let most = plan.daemons.saturating_sub(3);
    if plan.kills > most {
        return Err(CensusError::Kills { kills: plan.kills, daemons: plan.daemons, most });
    }
    let ground = Ground::claim()?;
    let world = Arc::new(World::new(plan, ground.net));
    let reference = Reference::of(&world);
    let certificates = Certificates::of(&world)?;
    let mut workplace = Workplace::new()?;
    let servers = Servers::new(&world, &certificates)?;
    let dns = SocketAddr::from(([127, ground.net, 250, 53], 0));
    let dns = DnsServer::start(dns, Zone::new(world.names())).await.map_err(CensusError::Dns)?;
    let common = Common {
        directory: workplace.path.clone(),
        registries: Vec::new(),
        name_server: dns.address(),
        range: format!("127.{}.0.0/16", ground.net),
        program,
    };
    let pages: usize = reference.run(1).servers.values().map(|server| server.pages.len()).sum();
    let subnets = counted(world.places.lands.len() as u64, "subnet");
    eprintln!(
        "{} and {} pages to be found in {subnets}; files are in {}",
        counted(plan.hosts as u64, "host"),
        pages,
        workplace.path.display()
    );
    let swarm = Swarm::prepare(&world, common, &certificates.trusted, servers.log().clone()).await?;
    let failed = |why: reqwest::Error| CensusError::Client(why.to_string());
    let asking = client().no_proxy().timeout(Duration::from_secs(3)).build().map_err(failed)?;
    let watch = Watch::begin(asking, swarm.common.clone(), servers.log().clone(), Instant::now());
    let mut course = Course::new(world, reference, servers, swarm, watch, Asker::new(client())?);
    let outcome = tokio::select! {
        outcome = course.run() => outcome.map(Some),
        _ = tokio::signal::ctrl_c() => Ok(None),
    };
    course.end().await;
    workplace.keep = !outcome.as_ref().is_ok_and(|outcome| outcome.as_ref().is_none_or(Outcome::holds));
    if workplace.keep {
        eprintln!("what the daemons said is in {}", workplace.path.display());
    }
    outcome
}
