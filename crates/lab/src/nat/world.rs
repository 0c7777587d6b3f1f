//! The network of the trial: some members with addresses of their own, and any number behind routers.

use super::Kind;
use crate::demo::daemons::{API_PORT, Common, Daemon, DaemonError, SWARM_PORT};
use nearcrawl_netlab::{Lab, NetlabError, Node, Plan, Router};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

/// Everybody's addresses are in here; nothing public could be reached by mistake.
const RANGE: &str = "10.65.0.0/16";

/// Blocks beside those of the daemons, with holders whose names do not compress: the hierarchy's file has several pieces, as a real one.
const FURTHER_BLOCKS: u32 = 20_000;

/// A registry's file: the daemons' range in two countries, and further blocks of private addresses.
fn registry() -> String {
    let mut text = format!(
        "2|afrinic|20260505|{all}|00000000|20260505|00000\nafrinic|*|ipv4|*|{all}|summary\n\
         afrinic|KE|ipv4|10.65.0.0|32768|20070917|allocated|A\nafrinic|NG|ipv4|10.65.128.0|32768|20070917|allocated|B\n",
        all = FURTHER_BLOCKS + 2
    );
    for block in 0..FURTHER_BLOCKS {
        let holder = u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(block) << 40);
        let (second, third) = (128 + (block >> 8), block & 255);
        text += &format!("afrinic|KE|ipv4|10.{second}.{third}.0|256|20070917|allocated|{holder:x}{:x}\n", holder.rotate_left(21));
    }
    text
}

/// How often it is looked whether something has come.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Why the network or a daemon in it could not be run.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// There is no virtual network here.
    #[error(transparent)]
    Network(#[from] NetlabError),
    /// A daemon could not be run.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// There is no room for files.
    #[error("cannot write to {path}: {source}")]
    Directory {
        /// Where.
        path: PathBuf,
        /// The error that the system reports.
        source: std::io::Error,
    },
    /// A daemon did not answer as it must.
    #[error("{0}")]
    Silent(String),
}

/// Where a daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of its node.
    pub name: String,
    /// What is between it and the others.
    pub kind: Kind,
}

impl Place {
    /// The address at which the others see what is at the place with this number.
    pub fn address(number: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 65, u8::try_from(number).unwrap_or(u8::MAX).saturating_add(1), 1)
    }
}

/// What else there is in the network.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Further nodes with addresses of their own.
    pub nodes: Vec<Node>,
    /// Round trips between two addresses; there is no delay between others.
    pub round_trips: BTreeMap<(Ipv4Addr, Ipv4Addr), Duration>,
    /// What is added to the configuration of each daemon.
    pub configuration: String,
}

/// A daemon at its place.
#[derive(Debug)]
pub struct NatDaemon {
    /// Where it is.
    pub place: Place,
    /// Its process.
    pub daemon: Daemon,
    started: Instant,
}

/// The network and the daemons in it, which end with it.
pub struct NatWorld {
    /// The daemons by the names of their places.
    pub daemons: BTreeMap<String, NatDaemon>,
    lab: Arc<Lab>,
    common: Common,
    addresses: BTreeMap<String, Ipv4Addr>,
    bootstrap: Option<String>,
    extra: String,
}

impl NatWorld {
    /// A network with these places. `common`: program, directory and name server of the daemons.
    ///
    /// # Errors
    /// There is no virtual network here.
    pub fn start(mut common: Common, places: &[Place], around: Around) -> Result<NatWorld, NatError> {
        RANGE.clone_into(&mut common.range);
        common.registries = vec![common.write("registry", &registry())?];
        let Around { nodes, round_trips, configuration: extra } = around;
        let (mut plan, mut addresses) = (Plan { nodes, round_trips, seed: 1, ..Plan::default() }, BTreeMap::new());
        for (number, place) in places.iter().enumerate() {
            let address = Place::address(number);
            addresses.insert(place.name.clone(), address);
            plan.nodes.push(Node { name: place.name.clone(), addresses: vec![address] });
            let router = match place.kind {
                Kind::Open => continue,
                Kind::FullCone => Router::FullCone,
                Kind::PortRestricted => Router::PortRestricted,
                Kind::Symmetric => Router::Symmetric,
                Kind::NoUdp => Router::NoUdp,
            };
            plan.routers.insert(place.name.clone(), router);
        }
        let lab = Arc::new(Lab::start(&plan)?);
        Ok(NatWorld { daemons: BTreeMap::new(), lab, common, addresses, bootstrap: None, extra })
    }

    /// The network itself.
    pub fn lab(&self) -> &Arc<Lab> {
        &self.lab
    }

    /// The address of a place, as the others see it.
    pub fn address(&self, name: &str) -> Option<Ipv4Addr> {
        self.addresses.get(name).copied()
    }

    /// Configures and starts a daemon at a place. The first one, which must be open, begins the swarm.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn join(&mut self, place: &Place) -> Result<(), NatError> {
        let address = self.addresses.get(&place.name).copied().unwrap_or(Ipv4Addr::LOCALHOST);
        let text = self.configuration(place, address);
        let daemon = self.common.prepare_as(&place.name, address, &text).await?;
        self.bootstrap.get_or_insert_with(|| daemon.multiaddress());
        self.daemons.insert(place.name.clone(), NatDaemon { place: place.clone(), daemon, started: Instant::now() });
        self.begin(&place.name)
    }

    /// Starts the process of a daemon that is configured.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn begin(&mut self, name: &str) -> Result<(), NatError> {
        let (lab, common) = (&self.lab, &self.common);
        let Some(at) = self.daemons.get_mut(name) else { return Err(NatError::Silent(format!("there is no daemon {name}"))) };
        lab.run_at(name, || at.daemon.start(common))??;
        at.started = Instant::now();
        Ok(())
    }

    /// Behind a router the daemon waits at all addresses of its machine, of which the others know none.
    fn configuration(&self, place: &Place, address: Ipv4Addr) -> String {
        let listen = if place.kind == Kind::Open { address } else { Ipv4Addr::UNSPECIFIED };
        let quoted = |path: &std::path::Path| format!("{:?}", path.display().to_string());
        let bootstrap = self.bootstrap.as_ref().map(|address| format!("{address:?}")).unwrap_or_default();
        let registries: Vec<String> = self.common.registries.iter().map(|path| quoted(path)).collect();
        format!(
            "state_dir = {state}\ncontact = \"nobody@lab.test\"\n\n\
             [swarm]\nlisten = [\"/ip4/{listen}/tcp/{SWARM_PORT}\", \"/ip4/{listen}/udp/{SWARM_PORT}/quic-v1\"]\nbootstrap = [{bootstrap}]\n\n\
             [crawl]\nmin_delay = \"200ms\"\nallow_ranges = [\"{RANGE}\"]\n\n\
             [dns]\nservers = [\"{dns}\"]\n\n\
             [hierarchy]\ndelegated = [{registries}]\n\n\
             [api]\nlisten = \"127.0.0.1:{API_PORT}\"\n\n{extra}",
            state = quoted(&self.common.directory.join(&place.name)),
            dns = self.common.name_server,
            registries = registries.join(", "),
            extra = self.extra,
        )
    }

    /// What a command of the program prints at a daemon, as JSON.
    ///
    /// # Errors
    /// It fails, or prints something else.
    pub fn ask(&self, name: &str, arguments: &[&str]) -> Result<Value, NatError> {
        let api = format!("http://{}", SocketAddr::from((Ipv4Addr::LOCALHOST, API_PORT)));
        let mut command = Command::new(&self.common.program);
        command.args(arguments).args(["--json", "--api", &api]).stdin(Stdio::null());
        let output = self.lab.run_at(name, || command.output())?;
        let silent = |why: String| NatError::Silent(format!("{name} does not answer {arguments:?}: {why}"));
        let output = output.map_err(|why| silent(why.to_string()))?;
        if !output.status.success() {
            return Err(silent(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|why| silent(why.to_string()))
    }

    /// Waits until `status` of a daemon is as wanted; returns how long after its start that was.
    ///
    /// # Errors
    /// It is not in this time.
    pub async fn until(&self, name: &str, within: Duration, wanted: impl Fn(&Value) -> bool) -> Result<Duration, NatError> {
        let (began, mut last) = (Instant::now(), Value::Null);
        loop {
            if let Ok(status) = self.ask(name, &["status"]) {
                if wanted(&status) {
                    let started = self.daemons.get(name).map(|at| at.started);
                    return Ok(started.unwrap_or(began).elapsed());
                }
                last = status;
            }
            if began.elapsed() >= within {
                let said = [&last["members"], &last["voters"]["lease_ms"], &last["reachability"], &last["connection_errors_text"]];
                return Err(NatError::Silent(format!("{name} is not as wanted after {within:?}: {said:?}")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether a daemon is a full member of so many, by its `status`: it knows all, has a lease, and knows how others get to it.
    pub fn is_full(kind: Kind, members: usize) -> impl Fn(&Value) -> bool {
        move |status| {
            let reach = &status["reachability"];
            let reached = match kind {
                Kind::Open | Kind::FullCone => reach["state"] == "public",
                _ => reach["state"] == "behind-nat" && reach["relays"].as_array().is_some_and(|relays| !relays.is_empty()),
            };
            reached && status["members"]["alive"] == members && status["voters"]["lease_ms"].as_u64().is_some_and(|left| left > 0)
        }
    }

    /// Whether a daemon is connected directly to all of so many others, by its `status`.
    pub fn is_direct(others: usize) -> impl Fn(&Value) -> bool {
        move |status| {
            let reach = &status["reachability"];
            reach["members_connected"] == others && reach["members_relayed"].as_array().is_some_and(Vec::is_empty)
        }
    }

    /// Ends all daemons.
    pub async fn stop(mut self) {
        for at in self.daemons.values_mut() {
            at.daemon.kill().await;
        }
    }
}
