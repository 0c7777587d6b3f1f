//! The network around the volunteer's machine.
//!
//! It has three members of a swarm with addresses of their own, and some web servers, which are far from these and near to the volunteer.
//! The addresses are public ones, so that nothing needs to be allowed that an operator would not allow; the network is made of namespaces,
//! and no packet leaves it.

use super::error::StrangerError;
use crate::{
    demo::daemons::{Common, Daemon, SWARM_PORT},
    web::{
        dns::{DnsServer, Zone},
        server::{HttpAnswer, HttpSite, Log, WebServers},
    },
};
use nearcrawl_netlab::{Lab, Node, Plan, Router};
use serde_json::Value;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

/// The three members, each in a network of its own: each may vote.
const MEMBERS: [Ipv4Addr; 3] = [Ipv4Addr::new(196, 25, 1, 5), Ipv4Addr::new(197, 210, 2, 5), Ipv4Addr::new(41, 130, 3, 5)];

/// The volunteer's router, as the others see it.
pub(super) const HOME: Ipv4Addr = Ipv4Addr::new(105, 160, 7, 1);

/// The name of the volunteer's machine in the network.
pub(super) const MACHINE: &str = "home";

/// The name server of all.
pub(super) const NAMES: Ipv4Addr = Ipv4Addr::new(197, 248, 0, 53);

/// The web servers, in the volunteer's own network.
pub(super) const SERVERS: [Ipv4Addr; 5] = [
    Ipv4Addr::new(105, 160, 10, 9),
    Ipv4Addr::new(105, 160, 11, 9),
    Ipv4Addr::new(105, 160, 12, 9),
    Ipv4Addr::new(105, 160, 13, 9),
    Ipv4Addr::new(105, 160, 14, 9),
];

/// A server with some pages, two with more than are crawled here, and two with long ones.
pub(super) const FEW: &str = "few.test";
pub(super) const MANY: [&str; 2] = ["many.test", "more.test"];
pub(super) const LONG: [&str; 2] = ["long.test", "longer.test"];

/// How many pages the first one has, the one where it starts included.
pub(super) const FEW_PAGES: usize = 4;

/// A long page, in bytes.
const LONG_PAGE: usize = 1 << 20;

/// The round trip between members and servers.
const FAR: Duration = Duration::from_millis(60);

/// What the hosts answer.
struct Pages {
    long: String,
}

impl HttpSite for Pages {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        let links = |pages: usize| (1..=pages).map(|page| format!("<a href=/{page}>{page}</a> ")).collect::<String>();
        let last = if host == FEW { FEW_PAGES - 1 } else { 300 };
        match path.strip_prefix('/').map(|page| (page.is_empty(), page.parse::<usize>())) {
            Some((true, _)) => HttpAnswer::html(links(last)),
            Some((false, Ok(page))) if (1..=last).contains(&page) && LONG.contains(&host) => HttpAnswer::html(self.long.clone()),
            Some((false, Ok(page))) if (1..=last).contains(&page) => HttpAnswer::html(format!("<p>page {page}</p>")),
            _ => HttpAnswer::status(404),
        }
    }
}

/// The web and its names, served from a thread at their node until this is dropped.
struct Web {
    log: Arc<Log>,
    dns: DnsServer,
    _stop: tokio::sync::oneshot::Sender<()>,
}

/// All of it; it ends with this.
pub(super) struct World {
    pub(super) lab: Arc<Lab>,
    members: Vec<Daemon>,
    common: Common,
    web: Web,
}

fn hosts() -> impl Iterator<Item = (&'static str, Ipv4Addr)> {
    [FEW].into_iter().chain(MANY).chain(LONG).zip(SERVERS)
}

fn serve(lab: &Arc<Lab>) -> Result<Web, StrangerError> {
    let (told, served) = mpsc::sync_channel(1);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let there = lab.clone();
    std::thread::spawn(move || {
        let start = async {
            let site = Arc::new(Pages { long: "<p>Masks, drums and stools.</p>\n".repeat(LONG_PAGE / 32) });
            let web = WebServers::start(SERVERS.map(|server| SocketAddr::from((server, 80))), site).await?;
            let names = hosts().filter_map(|(host, server)| Some((host.parse().ok()?, IpAddr::V4(server))));
            let dns = DnsServer::start(SocketAddr::from((NAMES, 53)), Zone::new(names)).await;
            let dns = dns.map_err(|source| StrangerError::Program { program: "the name server", source })?;
            Ok::<_, StrangerError>((web, dns))
        };
        let entered = there.enter("web").map_err(StrangerError::from).and_then(|()| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(|source| StrangerError::Program { program: "the web", source })
        });
        let runtime = match entered {
            Ok(runtime) => runtime,
            Err(why) => return drop(told.send(Err(why))),
        };
        runtime.block_on(async {
            match start.await {
                Err(why) => drop(told.send(Err(why))),
                Ok((web, dns)) => {
                    let _ = told.send(Ok((web.log().clone(), dns)));
                    let _ = stopped.await;
                }
            }
        });
    });
    let served = served.recv().unwrap_or_else(|_| Err(StrangerError::NotSo("the thread of the web ended".to_owned())));
    served.map(|(log, dns)| Web { log, dns, _stop: stop })
}

impl World {
    /// The network, the web, and the swarm of three.
    pub(super) async fn start(directory: &Path, program: &Path) -> Result<World, StrangerError> {
        let node = |name: String, addresses: Vec<Ipv4Addr>| Node { name, addresses };
        let mut nodes: Vec<Node> = MEMBERS.iter().enumerate().map(|(number, at)| node(format!("member{number}"), vec![*at])).collect();
        nodes.push(node(MACHINE.to_owned(), vec![HOME]));
        nodes.push(node("web".to_owned(), SERVERS.into_iter().chain([NAMES]).collect()));
        let round_trips = MEMBERS.into_iter().flat_map(|member| SERVERS.map(|server| ((member, server), FAR))).collect();
        let routers = [(MACHINE.to_owned(), Router::PortRestricted)].into();
        let lab = Arc::new(Lab::start(&Plan { nodes, round_trips, seed: 1, routers })?);
        let web = serve(&lab)?;
        let common = Common {
            directory: directory.to_owned(),
            registries: Vec::new(),
            name_server: SocketAddr::from((NAMES, 53)),
            range: String::new(),
            program: program.to_owned(),
        };
        let mut world = World { lab, members: Vec::new(), common, web };
        for number in 0..MEMBERS.len() {
            world.begin(number).await?;
        }
        Ok(world)
    }

    async fn begin(&mut self, number: usize) -> Result<(), StrangerError> {
        let (name, address) = (format!("member{number}"), MEMBERS[number]);
        let bootstrap = self.members.first().map(|_| format!("{:?}", self.bootstrap())).unwrap_or_default();
        let text = format!(
            "state_dir = {state:?}\ncontact = \"members@museum.or.ke\"\n\n[swarm]\n\
             listen = [\"/ip4/{address}/tcp/{SWARM_PORT}\", \"/ip4/{address}/udp/{SWARM_PORT}/quic-v1\"]\nbootstrap = [{bootstrap}]\n\n\
             [dns]\nservers = [\"{NAMES}\"]\n",
            state = self.common.directory.join(&name).display().to_string(),
        );
        let mut member = self.common.prepare_as(&name, address, &text).await?;
        self.lab.run_at(&name, || member.start(&self.common))??;
        self.members.push(member);
        Ok(())
    }

    /// How many members there are without the volunteer.
    pub(super) fn members(&self) -> usize {
        self.members.len()
    }

    /// What the volunteer is told to join by.
    pub(super) fn bootstrap(&self) -> String {
        format!("/ip4/{}/tcp/{SWARM_PORT}", MEMBERS[0])
    }

    /// What a command prints at one of the three members, as JSON.
    pub(super) fn ask(&self, member: usize, arguments: &[&str]) -> Result<Value, StrangerError> {
        let mut command = Command::new(&self.common.program);
        command.args(arguments).arg("--json").env_remove("NEARCRAWL_API").stdin(Stdio::null());
        let output = self.lab.run_at(&format!("member{member}"), || command.output())?;
        let output = output.map_err(|source| StrangerError::Program { program: "nearcrawl", source })?;
        if output.status.success() {
            return Ok(serde_json::from_slice(&output.stdout).unwrap_or_default());
        }
        let (typed, said) = (format!("nearcrawl {}", arguments.join(" ")), String::from_utf8_lossy(&output.stderr).into_owned());
        Err(StrangerError::Typed { typed, code: output.status.code().unwrap_or(128), said })
    }

    /// What the web servers saw.
    pub(super) fn log(&self) -> &Log {
        &self.web.log
    }

    /// What the name server answers.
    pub(super) fn zone(&self) -> &Zone {
        self.web.dns.zone()
    }

    /// Ends the three members.
    pub(super) async fn stop(mut self) {
        for member in &mut self.members {
            member.kill().await;
        }
    }
}
