//! Runs a swarm of real daemons for a test, and surely ends it, on a loopback range that nobody else uses meanwhile.

mod atlas;
pub mod browser;
pub mod disk;
mod far;
mod judge;
pub mod raw_peer;
mod web;

pub use atlas::RealPlaces;
pub use far::{FAR_TIMERS, RELAY_PORT, Relay};
pub use judge::{Judge, Kill};
pub use web::SmallWeb;

use nearcrawl::io::client::client;
use nearcrawl_lab::demo::asking::{Asker, Told};
use nearcrawl_lab::demo::daemons::{API_PORT, Common, Daemon, SWARM_PORT};
use nearcrawl_lab::web::dns::{DnsServer, Zone};
use nearcrawl_lab::web::server::{HttpSite, Log, WebServers};
use nearcrawl_model::{
    record::ServerRecord,
    subnet::Subnet,
    url::Host,
    view::{OwnershipView, ServersPage},
};
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The second octets of the ranges that swarms of tests live in. Their number is how many swarms there are at once on a machine.
const NETS: [u8; 5] = [70, 71, 72, 73, 74];

/// The same for the larger ranges of swarms with hundreds of servers. Four second octets each.
const WIDE_NETS: [u8; 1] = [76];

/// A range is in use while this UDP port is bound at one of its addresses.
const MARK_PORT: u16 = 4799;

/// How long a test waits for a range; longer than all the others take together.
const TURN: Duration = Duration::from_secs(1800);

/// A test that waited so long for its turn says so: it takes as much longer.
const LONG_TURN: Duration = Duration::from_secs(5);

/// How often is looked whether what a test waits for has come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A range `127.net.0.0` that is this test's until dropped, also among processes: the kernel gives a port to one only.
pub struct Ground {
    pub net: u8,
    bits: u8,
    _mark: Option<UdpSocket>,
}

impl Ground {
    /// Waits for a free /16.
    pub fn claim() -> Ground {
        Ground::claim_one(&NETS, 16)
    }

    /// Waits for a free range for hundreds of servers.
    pub fn claim_wide() -> Ground {
        Ground::claim_one(&WIDE_NETS, atlas::RANGE_BITS)
    }

    /// One for calculating only.
    pub fn pretend(net: u8) -> Ground {
        Ground { net, bits: atlas::RANGE_BITS, _mark: None }
    }

    fn claim_one(nets: &[u8], bits: u8) -> Ground {
        let begun = Instant::now();
        loop {
            for net in nets {
                // The test before gives it back a moment before its sockets are closed.
                if let Ok(mark) = UdpSocket::bind((Ipv4Addr::new(127, *net, 251, 1), MARK_PORT))
                    && !has_sockets(*net, bits)
                {
                    if begun.elapsed() >= LONG_TURN {
                        println!("waited {:.0} s of this test's time for a range that other tests had", begun.elapsed().as_secs_f64());
                    }
                    return Ground { net: *net, bits, _mark: Some(mark) };
                }
            }
            assert!(begun.elapsed() < TURN, "all of 127.{nets:?}.0.0/{bits} are in use by other tests");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The first address.
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, self.net, 0, 0)
    }

    /// The range, as configurations name it.
    pub fn range(&self) -> String {
        format!("{}/{}", self.first(), self.bits)
    }
}

/// Whether anything listens in this range of loopback addresses, but for the mark that it is in use.
fn has_sockets(net: u8, bits: u8) -> bool {
    const LISTENS: &str = "0A";
    let nets = net..=net + ((1 << (16 - bits)) - 1);
    let is_here = |line: &str, any: bool| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next()?, words.nth(1)?);
        let (address, port) = local.split_once(':')?;
        let [first, second, ..] = u32::from_str_radix(address, 16).ok()?.to_ne_bytes();
        let is_mark = u16::from_str_radix(port, 16).ok()? == MARK_PORT;
        Some(first == 127 && nets.contains(&second) && !is_mark && (any || state == LISTENS))
    };
    let has = |table: &str, any: bool| {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        text.lines().skip(1).any(|line| is_here(line, any).unwrap_or(false))
    };
    has("/proc/net/tcp", false) || has("/proc/net/udp", true)
}

/// What is different from the demonstration's configuration: `key = value` lines, by the key.
#[derive(Clone, Debug)]
pub struct Habits {
    /// By which procedure subnets are given away.
    pub policy: &'static str,
    /// How near is near enough, in milliseconds.
    pub threshold_ms: u32,
    /// The least pause between two requests, in milliseconds.
    pub min_delay_ms: u64,
    /// A server rests so many times as long as its last answer took.
    pub delay_factor: u32,
    /// Members dial each other at this port instead of the daemons' own.
    pub advertised_port: u16,
    /// `[timers]` without the patience of a swarm of two.
    pub timers: &'static str,
    /// How patient a swarm of two is, in seconds.
    pub replace_voter_after_s: u32,
    /// How long after its beginning a run is followed by the next one.
    pub revisit: &'static str,
    /// The top-level domains in scope.
    pub tlds: &'static str,
    /// Further lines for the section `[crawl]`.
    pub crawl: String,
    /// Further lines for the section `[delegation]`.
    pub delegation: String,
}

impl Default for Habits {
    fn default() -> Self {
        Habits {
            policy: "ipmicra",
            threshold_ms: 40,
            min_delay_ms: 100,
            delay_factor: 10,
            advertised_port: SWARM_PORT,
            timers: QUICK_TIMERS,
            replace_voter_after_s: 600,
            revisit: "1h",
            tlds: "[\"test\"]",
            crawl: String::new(),
            // Subnets stay with whom they were given to, unless a test is about that.
            delegation: "migration = \"none\"\n".to_owned(),
        }
    }
}

/// After so long a silence others take over: the timers are a fifth of the default ones.
pub const DEAD_AFTER: Duration = Duration::from_secs(9);

/// A lease lasts so long from when its renewal was sent.
pub const LEASE: Duration = Duration::from_secs(6);

/// A fifth of the default timers.
pub const QUICK_TIMERS: &str = "dead_after = \"9s\"\nlease = \"6s\"\nvote_after = \"6s\"\n\
     ping_interval = \"400ms\"\nping_timeout = \"300ms\"\nsuspicion_timeout = \"2s\"\n";

impl Habits {
    fn applied_to(&self, configuration: &str) -> String {
        let mut text = String::new();
        for line in configuration.lines() {
            let line = match line.split_once(" = ").map(|(key, _)| key) {
                Some("listen") if line.contains("/tcp/") && self.advertised_port != SWARM_PORT => {
                    format!("{line}\n{}", self.advertised(&line.replace("listen", "advertise")))
                }
                Some("bootstrap") => self.advertised(line),
                Some("policy") => format!("policy = \"{}\"\n{}", self.policy, self.delegation),
                // Nobody serves the web there, but for a test that says so itself.
                Some("home_port") => String::new(),
                Some("delay_factor") => format!("delay_factor = {}", self.delay_factor),
                Some("threshold") => format!("threshold = \"{}ms\"", self.threshold_ms),
                Some("tlds") => format!("tlds = {}", self.tlds),
                Some("revisit") => format!("revisit = \"{}\"", self.revisit),
                Some("min_delay") => format!("min_delay = \"{}ms\"\n{}", self.min_delay_ms, self.crawl),
                _ => line.to_owned(),
            };
            text += &line;
            text.push('\n');
        }
        text + &format!("\n[timers]\nreplace_voter_after = \"{}s\"\n{}", self.replace_voter_after_s, self.timers)
    }

    /// The line with the port that members shall dial.
    fn advertised(&self, line: &str) -> String {
        line.replace(&format!("/tcp/{SWARM_PORT}"), &format!("/tcp/{}", self.advertised_port))
    }
}

/// A made-up internet with daemons in it.
pub struct Swarm {
    pub daemons: Vec<Daemon>,
    pub asker: Asker,
    pub web: WebServers,
    pub common: Common,
    habits: Habits,
    client: reqwest::Client,
    began: Instant,
    pub dns: DnsServer,
    _directory: TempDir,
    /// What lasts as long as the swarm, like its ground.
    _held: Box<dyn Any + Send>,
}

/// What a swarm is put into.
pub struct Surroundings {
    pub web: WebServers,
    pub dns: DnsServer,
    pub name_server: SocketAddr,
    /// The special addresses that daemons may contact.
    pub range: String,
    /// What is to last as long as the swarm.
    pub held: Box<dyn Any + Send>,
}

impl Swarm {
    /// Serves the web and its names, and makes ready a daemon for each of `points`; none is started. All but the first know the
    /// first.
    pub async fn prepare<S: HttpSite>(
        ground: Ground,
        site: Arc<S>,
        registry_files: Vec<(String, String)>,
        names: Vec<(Host, IpAddr)>,
        points: &[Ipv4Addr],
        habits: Habits,
    ) -> Swarm {
        let addresses: BTreeSet<SocketAddr> = names.iter().map(|(_, address)| SocketAddr::new(*address, 8080)).collect();
        let web = WebServers::start(addresses, site).await.expect("the web is served");
        let name_server = SocketAddr::from(([127, ground.net, 250, 53], 0));
        let dns = DnsServer::start(name_server, Zone::new(names)).await.expect("names are served");
        let around = Surroundings { web, name_server: dns.address(), dns, range: ground.range(), held: Box::new(ground) };
        Swarm::within(around, registry_files, points, habits).await
    }

    /// The same in a web that is served already.
    pub async fn within(around: Surroundings, registry_files: Vec<(String, String)>, points: &[Ipv4Addr], habits: Habits) -> Swarm {
        let Surroundings { web, dns, name_server, range, held } = around;
        let directory = tempfile::tempdir().expect("a directory");
        let mut common = Common {
            directory: directory.path().to_owned(),
            registries: Vec::new(),
            name_server,
            range,
            program: env!("CARGO_BIN_EXE_nearcrawl").into(),
        };
        for (name, text) in registry_files {
            common.registries.push(common.write(&name, &text).expect("a registry's file"));
        }
        let asker = Asker::new(nearcrawl::io::client::client()).expect("a client");
        let client = client().no_proxy().timeout(Duration::from_secs(5)).build().expect("a client");
        let began = Instant::now();
        let mut swarm = Swarm { daemons: Vec::new(), asker, web, common, habits, client, began, dns, _directory: directory, _held: held };
        for point in points {
            swarm.add(*point).await;
        }
        swarm
    }

    /// Makes ready one more daemon, which knows the first; its index.
    pub async fn add(&mut self, point: Ipv4Addr) -> usize {
        let first = self.daemons.first().map(Daemon::multiaddress);
        let daemon = self.common.prepare(point, first.as_deref()).await.unwrap_or_else(|why| panic!("{why}"));
        let text = self.habits.applied_to(&self.common.configuration(point, first.as_deref()));
        self.common.write(&format!("{point}.toml"), &text).expect("a configuration");
        self.daemons.push(daemon);
        self.daemons.len() - 1
    }

    /// From its next start on, a daemon's next runs follow after so long.
    pub fn revisit_after(&mut self, daemon: usize, revisit: &'static str) {
        self.habits.revisit = revisit;
        let (first, point) = (self.daemons.first().map(Daemon::multiaddress).filter(|_| daemon > 0), self.daemons[daemon].address);
        let text = self.habits.applied_to(&self.common.configuration(point, first.as_deref()));
        self.common.write(&format!("{point}.toml"), &text).expect("a configuration");
    }

    /// What the configurations that are written from now on say of the crawl.
    pub fn crawl_with(&mut self, crawl: &str) {
        crawl.clone_into(&mut self.habits.crawl);
    }

    /// The records of a daemon's own servers.
    pub async fn records(&self, daemon: usize) -> Result<Vec<ServerRecord>, String> {
        let url = format!("http://{}:{API_PORT}/api/servers", self.daemons[daemon].address);
        let answer = self.client.get(url).send().await.map_err(|why| why.to_string())?;
        answer.json::<ServersPage>().await.map(|page| page.servers).map_err(|why| why.to_string())
    }

    /// Starts some of the daemons and waits until every one that runs knows all that run.
    pub async fn start(&mut self, which: impl IntoIterator<Item = usize>) {
        for index in which {
            self.daemons[index].start(&self.common).unwrap_or_else(|why| panic!("{why}"));
        }
        self.together().await;
    }

    /// Waits until every daemon that runs knows all that run.
    pub async fn together(&mut self) {
        let running = self.running();
        let limit = Duration::from_secs(40);
        let asker = self.asker.clone();
        let points: Vec<Ipv4Addr> = running.iter().map(|index| self.daemons[*index].address).collect();
        self.until("the daemons know each other", limit, async || {
            let answers = futures::future::join_all(points.iter().map(|point| asker.alive(*point))).await;
            let known: Vec<u64> = answers.into_iter().map(|answer| answer.unwrap_or(0)).collect();
            known.iter().all(|known| *known == points.len() as u64).then_some(()).ok_or(format!("{known:?}"))
        })
        .await;
    }

    /// The daemons that run, by index.
    pub fn running(&self) -> Vec<usize> {
        (0..self.daemons.len()).filter(|index| self.daemons[*index].process().is_some()).collect()
    }

    /// What the web servers saw.
    pub fn log(&self) -> &Arc<Log> {
        self.web.log()
    }

    /// Waits for something; `look` says what it sees while it is not there. No daemon may end meanwhile.
    pub async fn until<T>(&mut self, what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(why) = self.daemons.iter_mut().find_map(Daemon::ended) {
                panic!("while waiting until {what}: {why}");
            }
            match look().await {
                Ok(seen) => {
                    println!("{:6.1} s: {what} (took {:.1} s)", self.began.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64());
                    return seen;
                }
                Err(seen) => assert!(begun.elapsed() < limit, "not within {limit:?}: {what}; last seen: {seen}"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Names URLs to one daemon.
    pub async fn seed(&self, daemon: usize, urls: &[String]) {
        let accepted = self.asker.seed(self.daemons[daemon].address, urls).await.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(accepted, urls.len() as u64, "{urls:?}");
    }

    /// By which changes are allowed at one daemon.
    pub fn token(&self, daemon: usize) -> String {
        let file = self.common.directory.join(self.daemons[daemon].address.to_string()).join("api.token");
        std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display())).trim().to_owned()
    }

    /// Runs a command of the program against one daemon's API.
    pub async fn cli(&self, daemon: usize, arguments: &[&str]) -> String {
        let api = format!("http://{}:{API_PORT}", self.daemons[daemon].address);
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--api", &api]).collect();
        self.common.ask(&arguments).await.unwrap_or_else(|why| panic!("{why}"))
    }

    /// What somebody who is no member is told by a daemon over the swarm's own protocol.
    pub async fn told_to_a_stranger(&self, daemon: usize) -> Result<Told, String> {
        told_to_a_stranger(&self.common, &self.daemons[daemon].multiaddress()).await
    }

    /// Who holds what, as one daemon knows it. What was given up is held by nobody.
    pub async fn ownership(&self, says: usize) -> Vec<OwnershipView> {
        let url = format!("http://{}:{API_PORT}/api/ownership?limit=10000", self.daemons[says].address);
        let answer = self.client.get(&url).send().await.unwrap_or_else(|why| panic!("{url}: {why}"));
        let views: Vec<OwnershipView> = answer.json().await.unwrap_or_else(|why| panic!("{url}: {why}"));
        views.into_iter().filter(|view| !view.released).collect()
    }

    /// The sum of a metric without labels over all who run.
    pub async fn metrics(&self, name: &str) -> f64 {
        let mut sum = 0.0;
        for index in self.running() {
            let url = format!("http://{}:{API_PORT}/metrics", self.daemons[index].address);
            let answer = self.client.get(&url).send().await.unwrap_or_else(|why| panic!("{url}: {why}"));
            let text = answer.text().await.unwrap_or_else(|why| panic!("{url}: {why}"));
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            sum += line.unwrap_or_else(|| panic!("no {name} in {text}")).parse::<f64>().expect("a number");
        }
        sum
    }

    /// Who holds what in short: peer id and epoch, by subnet.
    pub async fn owners(&self, says: usize) -> BTreeMap<Subnet, (String, u64)> {
        let mut owners = BTreeMap::new();
        for view in self.ownership(says).await {
            let twice = owners.insert(view.subnet, (view.owner.to_string(), view.epoch));
            assert!(twice.is_none(), "{} has two owners", view.subnet);
        }
        owners
    }

    /// What one daemon holds, as another knows it.
    pub async fn held_by(&self, daemon: usize, says: usize) -> BTreeSet<Subnet> {
        let peer = &self.daemons[daemon].access_point;
        self.owners(says).await.into_iter().filter(|(_, (owner, _))| owner == peer).map(|(subnet, _)| subnet).collect()
    }

    /// Waits until all who run tell the same of every subnet, and each of these subnets has an owner who runs.
    /// Waits until so many vote: from then on the swarm survives the loss of one.
    pub async fn vote(&mut self, voters: usize, limit: Duration) {
        let first = self.running()[0];
        let listed = async |swarm: &Swarm| {
            let status: serde_json::Value = serde_json::from_str(&swarm.cli(first, &["status", "--json"]).await).unwrap_or_default();
            status["voters"]["voters"].as_array().map_or(0, Vec::len)
        };
        let begun = Instant::now();
        while listed(self).await < voters {
            assert!(begun.elapsed() < limit, "{voters} should vote by now");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        println!("{:6.1} s: {voters} vote (took {:.1} s)", self.began.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64());
    }

    pub async fn owned_by_the_living(&mut self, subnets: &BTreeSet<Subnet>, limit: Duration) {
        let running = self.running();
        let living: BTreeSet<String> = running.iter().map(|index| self.daemons[*index].access_point.clone()).collect();
        let begun = Instant::now();
        loop {
            let mut maps = Vec::new();
            for index in &running {
                maps.push(self.owners(*index).await);
            }
            let orphans: Vec<_> = maps[0].iter().filter(|(_, (owner, _))| !living.contains(owner)).collect();
            let unknown: Vec<_> = subnets.iter().filter(|subnet| !maps[0].contains_key(subnet)).collect();
            let alike = maps.iter().all(|map| *map == maps[0]);
            if alike && orphans.is_empty() && unknown.is_empty() {
                println!("{:6.1} s: every subnet has one living owner (took {:.1} s)", self.age(), begun.elapsed().as_secs_f64());
                return;
            }
            assert!(begun.elapsed() < limit, "alike: {alike}, dead owners: {orphans:?}, no owners: {unknown:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// How long ago all this began, in seconds.
    pub fn age(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Waits until every running daemon and a stranger tell the same exact totals with so many pages.
    pub async fn agree(&mut self, pages: u64, limit: Duration) -> Told {
        let running = self.running();
        let points: Vec<Ipv4Addr> = running.iter().map(|index| self.daemons[*index].address).collect();
        let asker = self.asker.clone();
        let what = format!("all tell exactly {pages} pages");
        let (common, address) = (self.common.clone(), self.daemons[*running.last().expect("somebody runs")].multiaddress());
        self.until(&what, limit, async || {
            let mut all = Vec::new();
            for point in &points {
                all.push(asker.results(*point).await.map_err(|why| why.to_string())?);
            }
            let right = all.iter().all(|told| told.exact && told.summary.total.pages == pages && *told == all[0]);
            let seen = || all.iter().map(|told| (told.exact, told.summary.total)).map(|seen| format!("{seen:?}")).collect::<Vec<_>>();
            if !right {
                return Err(seen().join("; "));
            }
            // What ends a run is stored a moment after its last page, and until then totals are not exact once more.
            let told = told_to_a_stranger(&common, &address).await?;
            if told == all[0] { Ok(told) } else { Err(format!("a stranger is told {told:?}, and members {:?}", all[0])) }
        })
        .await
    }

    /// Stops all daemons that run, each politely, and says whether all ended by themselves.
    pub async fn stop(&mut self) -> bool {
        let stopped = futures::future::join_all(self.daemons.iter_mut().map(Daemon::stop)).await;
        stopped.into_iter().all(|in_time| in_time)
    }
}

/// What somebody who is no member is told at this address over the swarm's own protocol.
async fn told_to_a_stranger(common: &Common, address: &str) -> Result<Told, String> {
    let said = common.ask(&["results", "--member", address, "--json"]).await.map_err(|why| why.to_string())?;
    serde_json::from_str(&said).map_err(|why| format!("{why}: {said}"))
}

impl Drop for Swarm {
    /// A failed test shows what its daemons said last.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for daemon in &self.daemons {
            let log = self.common.directory.join(format!("{}.log", daemon.address));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            println!("--- {} ({}) said last:", daemon.address, daemon.access_point);
            for line in &lines[lines.len().saturating_sub(25)..] {
                println!("{line}");
            }
        }
    }
}

/// How a command of the program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub said: String,
    pub complained: String,
}

/// A command of the program, run to its end: for those that are expected to fail.
pub async fn nearcrawl(arguments: &[&str]) -> Ended {
    nearcrawl_within(arguments, Duration::from_secs(60)).await
}

/// The same for one that takes longer.
pub async fn nearcrawl_within(arguments: &[&str], limit: Duration) -> Ended {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_nearcrawl"));
    for name in ["STATE_DIRECTORY", "NOTIFY_SOCKET", "JOURNAL_STREAM", "NEARCRAWL_API", "NEARCRAWL_CONFIG"] {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(limit, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("{arguments:?} does not end")).expect("the program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), said: text(&output.stdout), complained: text(&output.stderr) }
}
