//! Test of twelve daemons in a network of their own, as far apart as twelve real places.
//!
//! The network is parted for five minutes, heals, and then loses 30 % of all packets. Each daemon is in a network namespace; the verdict
//! comes from the servers' log.

use crate::support::{Habits, RealPlaces, Surroundings, Swarm};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_lab::web::dns::{DnsServer, Zone};
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite, RequestSeen, WebServers};
use nearcrawl_model::{
    subnet::Subnet,
    view::{State, StatusView},
};
use nearcrawl_netlab::{Lab, Node, Plan};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

/// Where daemons and servers are, and where the test itself and the name server are: near everybody, and never parted from anybody.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
const RANGE: &str = "10.64.0.0/13";
const OBSERVER: Ipv4Addr = Ipv4Addr::new(10, 71, 0, 1);
const NAMES: Ipv4Addr = Ipv4Addr::new(10, 71, 0, 53);

/// Sites that are crawled from the beginning, and those that are added while packets are lost.
const SITES: usize = 30;
const LATE: usize = 6;

/// Pages of a site, and the pause between two of them in milliseconds.
const PAGES: usize = 50;
const PAUSE_MS: u64 = 1_000;

/// How long the network is parted.
const PARTED: Duration = Duration::from_secs(300);

/// How long after that every subnet has one owner, the same for all, and all tell exact totals.
const HEALED_WITHIN: Duration = Duration::from_secs(120);

/// How long the crawl of what is left may take.
const CRAWLED_WITHIN: Duration = Duration::from_secs(240);

/// The share of packets that is lost then, and for how long.
const LOSS: f64 = 0.3;
const LOSSY: Duration = Duration::from_secs(60);

/// Twelve real places for daemons and some for servers, moved into a private range: nothing public could be reached by mistake.
struct World {
    places: RealPlaces,
}

impl World {
    fn new() -> World {
        let mut places = RealPlaces::from(FIRST, 1.0);
        places.sites.truncate(SITES + LATE);
        World { places }
    }

    fn points(&self) -> Vec<Ipv4Addr> {
        self.places.points.iter().map(|point| point.address).collect()
    }

    fn round_trip(&self, one: Ipv4Addr, other: Ipv4Addr) -> Option<Duration> {
        let ms = self.places.ms(one, other).or_else(|| self.places.ms(other, one));
        ms.map(|ms| Duration::from_secs_f64(ms / 1000.0))
    }

    /// With so many daemons.
    fn of(points: usize) -> World {
        let mut world = World::new();
        world.places.points.truncate(points);
        world
    }

    fn plan(&self) -> Plan {
        let (points, sites) = (self.points(), self.places.sites.iter().map(|site| site.address));
        let mut round_trips = BTreeMap::new();
        for other in points.iter().copied().chain(sites.clone()) {
            for point in points.iter().filter(|point| **point != other) {
                round_trips.extend(self.round_trip(*point, other).map(|time| ((*point, other), time)));
            }
        }
        let node = |name: String, addresses| Node { name, addresses };
        let mut nodes: Vec<Node> = points.iter().enumerate().map(|(number, point)| node(name(number), vec![*point])).collect();
        nodes.push(node("web".to_owned(), sites.chain([NAMES]).collect()));
        nodes.push(node("observer".to_owned(), vec![OBSERVER]));
        Plan { nodes, round_trips, seed: 1, ..Plan::default() }
    }

    fn seeds(&self, sites: std::ops::Range<usize>) -> Vec<String> {
        self.places.sites[sites].iter().map(|site| format!("http://{}:8080/", site.host)).collect()
    }
}

/// The node of a daemon.
fn name(daemon: usize) -> String {
    format!("d{daemon}")
}

/// Each host is a tree of pages.
struct Trees;

impl HttpSite for Trees {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        let page = match path {
            "/" => Some(0),
            _ => path.strip_prefix("/p").and_then(|number| number.parse::<usize>().ok()),
        };
        let Some(page) = page.filter(|page| *page < PAGES) else { return HttpAnswer::status(404) };
        let below = [2 * page + 1, 2 * page + 2].into_iter().filter(|page| *page < PAGES);
        HttpAnswer::html(below.map(|page| format!("<a href=\"/p{page}\">on</a>\n")).collect::<String>())
    }
}

/// Serves the web and its names from their node, on a thread that stays there.
fn serve(lab: &Arc<Lab>, world: &World) -> Surroundings {
    let (told, served) = mpsc::sync_channel(1);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let addresses: Vec<SocketAddr> = world.places.sites.iter().map(|site| SocketAddr::new(site.address.into(), 8080)).collect();
    let (names, listen) = (world.places.names(), SocketAddr::new(NAMES.into(), 53));
    let there = lab.clone();
    std::thread::spawn(move || {
        there.enter("web").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let web = WebServers::start(addresses, Arc::new(Trees)).await.unwrap();
            let dns = DnsServer::start(listen, Zone::new(names)).await.unwrap();
            told.send((web, dns)).ok();
            let _ = stopped.await;
        });
    });
    let (web, dns) = served.recv().expect("the web is served");
    Surroundings { web, dns, name_server: listen, range: RANGE.to_owned(), held: Box::new(stop) }
}

/// Two groups such that the first can go on: it has a quorum of the voters, and half of all members or one more.
fn halves(swarm: &Swarm, status: &serde_json::Value) -> (Vec<usize>, Vec<usize>) {
    let voters: Vec<&str> = status["voters"]["voters"].as_array().unwrap().iter().filter_map(|voter| voter.as_str()).collect();
    let quorum = status["voters"]["quorum"].as_u64().unwrap() as usize;
    let all = 0..swarm.daemons.len();
    let (voting, others): (Vec<usize>, Vec<usize>) = all.partition(|index| voters.contains(&&*swarm.daemons[*index].access_point));
    let mut first: Vec<usize> = voting.iter().copied().take(quorum).collect();
    first.extend(others.iter().copied().take(swarm.daemons.len() / 2 - first.len().min(swarm.daemons.len() / 2)));
    let second = (0..swarm.daemons.len()).filter(|index| !first.contains(index)).collect();
    (first, second)
}

/// No server is asked by two daemons at once: who takes over does so when the other has stopped, with a pause between.
fn judge(requests: &[RequestSeen], changes: usize) -> usize {
    let mut by_server: BTreeMap<IpAddr, Vec<&RequestSeen>> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.method == "GET") {
        by_server.entry(request.server).or_default().push(request);
    }
    let mut taken_over = 0;
    for (server, mut requests) in by_server {
        requests.sort_by_key(|request| request.start);
        let turns: Vec<_> = requests.windows(2).filter(|pair| pair[0].peer != pair[1].peer).collect();
        for pair in &turns {
            let pause = pair[1].start.saturating_sub(pair[0].end.unwrap_or(pair[0].start));
            assert!(pause >= Duration::from_millis(PAUSE_MS / 2), "{server} is asked by two at once: {pair:?}");
        }
        assert!(turns.len() <= changes, "{server} goes to and fro: {turns:?}");
        taken_over += turns.len();
    }
    taken_over
}

struct Course {
    lab: Arc<Lab>,
    world: World,
    swarm: Swarm,
}

impl Course {
    async fn start(lab: Arc<Lab>, world: World) -> Course {
        Course::start_with(lab, world, "").await
    }

    /// With these lines in each configuration besides.
    async fn start_with(lab: Arc<Lab>, world: World, timers: &'static str) -> Course {
        let around = serve(&lab, &world);
        let points = world.points();
        let habits = Habits { min_delay_ms: PAUSE_MS, delay_factor: 0, timers, ..Habits::default() };
        let mut swarm = Swarm::within(around, world.places.registry_files(), &points, habits).await;
        for index in 0..points.len() {
            let common = swarm.common.clone();
            let daemon = &mut swarm.daemons[index];
            lab.run_at(&name(index), || daemon.start(&common)).unwrap().unwrap_or_else(|why| panic!("{why}"));
        }
        swarm.together().await;
        Course { lab, world, swarm }
    }

    /// The way from one daemon to another takes as long as in the world.
    fn check_the_distance(&self) {
        let (from, to) = (self.world.points()[0], self.world.points()[1]);
        let round_trip = self.world.round_trip(from, to).unwrap();
        let connect = || {
            let began = Instant::now();
            TcpStream::connect((to, API_PORT)).unwrap();
            began.elapsed()
        };
        let took = (0..5).map(|_| self.lab.run_at(&name(0), connect).unwrap()).min().unwrap();
        println!("from {from} to {to}: {took:?}, in the world {round_trip:?}");
        assert!(took >= round_trip && took < round_trip + Duration::from_millis(50), "{took:?} for {round_trip:?}");
    }

    async fn seed(&self, sites: std::ops::Range<usize>) {
        for (number, url) in self.world.seeds(sites).into_iter().enumerate() {
            self.swarm.seed(number % self.swarm.daemons.len(), &[url]).await;
        }
    }

    async fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.swarm.cli(0, &["status", "--json"]).await).unwrap()
    }

    /// The subnets that are claimed at all.
    async fn subnets(&self) -> BTreeSet<Subnet> {
        self.swarm.owners(0).await.into_keys().collect()
    }

    async fn part_and_heal(&mut self) {
        let (first, second) = halves(&self.swarm, &self.status().await);
        println!("{:6.1} s: parted into {first:?} and {second:?}", self.swarm.age());
        let parted_at = self.swarm.log().len();
        let names = |indices: &[usize]| indices.iter().map(|index| name(*index)).collect::<Vec<_>>();
        let (these, those) = (names(&first), names(&second));
        let these: Vec<&str> = these.iter().map(String::as_str).collect();
        let those: Vec<&str> = those.iter().map(String::as_str).collect();
        self.lab.part(&these, &those).unwrap();
        tokio::time::sleep(PARTED).await;
        let taken_over = judge(&self.swarm.log().since(parted_at), 1);
        let asked = self.swarm.log().since(parted_at).len();
        println!("{:6.1} s: {asked} requests while parted, {taken_over} sites taken over", self.swarm.age());
        let cut_off: BTreeSet<IpAddr> = second.iter().map(|index| self.swarm.daemons[*index].address.into()).collect();
        assert!(asked > 0, "the larger part went on");
        let late = self.swarm.log().since(parted_at).into_iter().rev().take(20).find(|request| cut_off.contains(&request.peer));
        assert!(late.is_none(), "who has no quorum asks nothing: {late:?}");
        self.lab.heal();
        let healed = Instant::now();
        let subnets = self.subnets().await;
        self.swarm.owned_by_the_living(&subnets, HEALED_WITHIN).await;
        self.all_exact(HEALED_WITHIN.saturating_sub(healed.elapsed())).await;
        println!("{:6.1} s: healed within {:.1} s", self.swarm.age(), healed.elapsed().as_secs_f64());
        // What was left to crawl takes its time; then the totals are the same, too.
        self.swarm.agree((SITES * PAGES) as u64, CRAWLED_WITHIN).await;
        judge(&self.swarm.log().since(parted_at), 2);
    }

    /// Waits until all daemons tell exact totals at the same time.
    async fn all_exact(&mut self, limit: Duration) {
        let (asker, points) = (self.swarm.asker.clone(), self.world.points());
        let exact = async || {
            let mut inexact = Vec::new();
            for point in &points {
                match asker.results(*point).await {
                    Ok(told) if told.exact => {}
                    told => inexact.push(format!("{point}: {:?}", told.map(|told| told.exact))),
                }
            }
            if inexact.is_empty() { Ok(()) } else { Err(inexact.join("; ")) }
        };
        self.swarm.until("all tell exact totals", limit, exact).await;
    }

    async fn lose_packets(&mut self) {
        let begun = self.swarm.log().len();
        let nodes: Vec<String> = (0..self.swarm.daemons.len()).map(name).chain(["web".to_owned()]).collect();
        self.lab.lose(LOSS, &nodes.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        self.seed(SITES..SITES + LATE).await;
        tokio::time::sleep(LOSSY).await;
        let asked = self.swarm.log().since(begun).len();
        println!("{:6.1} s: {asked} requests while 30 % was lost; dropped {:?}", self.swarm.age(), self.lab.dropped());
        self.lab.lose(0.0, &[]).unwrap();
        self.swarm.agree(((SITES + LATE) * PAGES) as u64, CRAWLED_WITHIN).await;
        judge(&self.swarm.log().since(begun), 2);
    }
}

#[test]
fn twelve_daemons_survive_a_parted_and_then_a_lossy_network() {
    let world = World::new();
    assert_eq!((world.places.points.len(), world.places.sites.len()), (12, SITES + LATE));
    let lab = Arc::new(Lab::start(&world.plan()).unwrap_or_else(|why| panic!("{why}")));
    // Threads that are started from now on are there, too.
    lab.enter("observer").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut course = Course::start(lab, world).await;
        course.check_the_distance();
        course.swarm.vote(3, Duration::from_secs(90)).await;
        course.seed(0..SITES).await;
        let log = course.swarm.log().clone();
        let under_way = async || if log.len() > SITES * 8 { Ok(()) } else { Err(format!("{} requests", log.len())) };
        course.swarm.until("the crawl is under way", Duration::from_secs(90), under_way).await;
        course.part_and_heal().await;
        course.lose_packets().await;
        assert!(course.swarm.stop().await);
    });
}

/// Sites of a crawl by two daemons, one of which comes on a metered line.
const METERED_SITES: usize = 16;

/// How soon a daemon sees which line it is on.
const SEES_ITS_LINE: Duration = Duration::from_secs(8);

/// For how long a request that had begun before may be on its way to a server's log, on a machine with much else to do.
const ON_THE_WAY: Duration = Duration::from_millis(1500);

impl Course {
    /// Sends what no other route takes over another interface of the daemon's node. What goes to members and servers takes the old way still, or
    /// nobody could say whether the daemon holds back by itself.
    fn default_route(&self, daemon: usize, interface: &str) {
        let script = format!("route replace default dev {interface} src {}\n", self.world.points()[daemon]);
        self.ip(daemon, &script);
    }

    fn ip(&self, daemon: usize, script: &str) {
        let run = || {
            let mut child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            child.wait().unwrap()
        };
        assert!(self.lab.run_at(&name(daemon), run).unwrap().success(), "{script}");
    }

    /// What a daemon answers at a path of its API.
    async fn answer(&self, daemon: usize, path: &str) -> Result<String, String> {
        let url = format!("http://{}:{API_PORT}{path}", self.world.points()[daemon]);
        let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
        client.get(url).send().await.map_err(|why| why.to_string())?.text().await.map_err(|why| why.to_string())
    }

    async fn status_of(&self, daemon: usize) -> Result<StatusView, String> {
        serde_json::from_str(&self.answer(daemon, "/api/status").await?).map_err(|why| why.to_string())
    }

    /// Waits until it rests because of its line, or does no longer. What it says then.
    async fn until_metered(&self, daemon: usize, is_metered: bool) -> StatusView {
        let begun = Instant::now();
        loop {
            let status = self.status_of(daemon).await.unwrap();
            if (status.allowance.metered_interface.is_some() && status.state == State::Paused) == is_metered {
                println!("{:6.1} s: after {:?}: {}", self.swarm.age(), begun.elapsed(), status.state_text);
                return status;
            }
            assert!(begun.elapsed() < SEES_ITS_LINE, "{}", status.state_text);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How often a daemon asked since then, and how often others did.
    fn asked_since(&self, position: usize, daemon: usize) -> (usize, usize) {
        let by = IpAddr::from(self.world.points()[daemon]);
        let asked = self.swarm.log().since(position);
        let own = asked.iter().filter(|request| request.peer == by).count();
        (own, asked.len() - own)
    }

    /// A daemon says why it rests, everywhere, and asks nothing.
    async fn rests_on_its_line(&self, daemon: usize) {
        let status = self.until_metered(daemon, true).await;
        assert!(
            status.state_text.starts_with("paused: the line is metered (wwan0; allowance.metered_interfaces)"),
            "{}",
            status.state_text
        );
        let metrics = self.answer(daemon, "/metrics").await.unwrap();
        assert!(metrics.contains("nearcrawl_metered_line{interface=\"wwan0\"} 1"), "{metrics}");
        assert!(metrics.contains("nearcrawl_state{state=\"paused\"} 1"), "{metrics}");
        // What had begun may still be on its way to a server that is late to read it.
        tokio::time::sleep(ON_THE_WAY).await;
        let position = self.swarm.log().len();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let (own, of_others) = self.asked_since(position, daemon);
        assert!(own == 0 && of_others > 0, "it asked {own} times, the other one {of_others} times");
    }
}

#[test]
fn a_daemon_on_a_metered_line_asks_nothing_and_others_get_its_work() {
    let world = World::of(2);
    let lab = Arc::new(Lab::start(&world.plan()).unwrap_or_else(|why| panic!("{why}")));
    lab.enter("observer").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut course = Course::start_with(lab, world, "[allowance]\nmetered_interfaces = [\"usb0\", \"wwan*\"]\n").await;
        let own = course.world.points()[0];
        course.ip(
            0,
            &format!(
                "link add wwan0 type veth peer name modem\nlink set wwan0 up\nlink set modem up\nroute add {RANGE} dev tun0 src {own}\n"
            ),
        );
        course.seed(0..METERED_SITES).await;
        let log = course.swarm.log().clone();
        let both_ask = async || {
            let position = log.len().saturating_sub(10);
            let requests = log.since(position);
            let peers: BTreeSet<IpAddr> = requests.iter().map(|request| request.peer).collect();
            if peers.len() == 2 { Ok(()) } else { Err(format!("{peers:?} of {} ask", log.len())) }
        };
        course.swarm.until("both ask", Duration::from_secs(60), both_ask).await;
        // Back before anything has moved: it goes on with what it has.
        course.default_route(0, "wwan0");
        course.rests_on_its_line(0).await;
        course.default_route(0, "tun0");
        course.until_metered(0, false).await;
        assert!(!course.answer(0, "/metrics").await.unwrap().contains("nearcrawl_metered_line{"));
        let position = log.len();
        let goes_on =
            async || if log.since(position).iter().any(|request| request.peer == own) { Ok(()) } else { Err("nothing".to_owned()) };
        course.swarm.until("it asks again", Duration::from_secs(10), goes_on).await;
        // For longer: others get what has work.
        course.default_route(0, "wwan0");
        course.rests_on_its_line(0).await;
        let (owned, position) = (course.status_of(0).await.unwrap().subnets_owned, log.len());
        let (address, client) = (own, nearcrawl::io::client::client().no_proxy().build().unwrap());
        let gives_away = async || {
            let url = format!("http://{address}:{API_PORT}/api/status");
            let answer = client.get(url).send().await.map_err(|why| why.to_string())?;
            let status: StatusView = answer.json().await.map_err(|why| why.to_string())?;
            let is_told = status.allowance.notes_text.iter().any(|note| note.contains("while the line is metered, subnets with work go"));
            if is_told && status.subnets_owned < owned { Ok(()) } else { Err(format!("{} of {owned}", status.subnets_owned)) }
        };
        course.swarm.until("it gives subnets away", Duration::from_secs(60), gives_away).await;
        course.swarm.agree((METERED_SITES * PAGES) as u64, CRAWLED_WITHIN).await;
        assert_eq!(course.asked_since(position, 0).0, 0, "it asked on its metered line");
        course.default_route(0, "tun0");
        course.until_metered(0, false).await;
        judge(&log.requests(), 2);
        assert!(course.swarm.stop().await);
    });
}

/// Daemons that have nothing to do, how long they are left to settle, and how long what they send is counted. A minute after its start each
/// compares its record of requests with its replicas, once a day: a minute that holds that is no measure of a day.
const IDLE: usize = 12;
const SETTLED: Duration = Duration::from_secs(75);
const COUNTED: Duration = Duration::from_secs(60);

/// What the network adds in that time that is no member's: it asks each neighbour for its address, and is asked, in 42 bytes each way.
const ADDRESSES_ASKED: u64 = IDLE as u64 * 4 * 42;

/// What an idle member may move in a day below 50 members, in bytes: the mean of voters, which hear all leases, and the others.
const MAX_IDLE_DAY: f64 = 60e6;

/// The bytes and packets that have passed the interfaces of this thread's network namespace, both ways; loopback is left out.
fn passed() -> (u64, u64) {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let lines = table.lines().filter_map(|line| line.trim().split_once(':')).filter(|(device, _)| *device != "lo");
    lines.fold((0, 0), |(bytes, packets), (_, numbers)| {
        let numbers: Vec<u64> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        (bytes + numbers[0] + numbers[8], packets + numbers[1] + numbers[9])
    })
}

/// What a daemon says that it has moved for the swarm, and how many messages of each kind it has sent; what had passed its interface before it
/// was asked, and when it had answered.
struct Moved {
    counted: u64,
    sent: BTreeMap<String, u64>,
    before: (u64, u64),
    after: (u64, u64),
}

impl Course {
    async fn moved(&self) -> Vec<Moved> {
        let mut moved = Vec::new();
        for index in 0..self.swarm.daemons.len() {
            let before = self.lab.run_at(&name(index), passed).unwrap();
            let status: StatusView = serde_json::from_str(&self.swarm.cli(index, &["status", "--json"]).await).unwrap();
            let sent = status.messages.into_iter().map(|messages| (messages.kind, messages.sent)).collect();
            let after = self.lab.run_at(&name(index), passed).unwrap();
            moved.push(Moved { counted: status.allowance.swarm_day_bytes, sent, before, after });
        }
        moved
    }
}

#[test]
fn idle_daemons_count_what_their_interfaces_count_and_that_is_little() {
    const ETHERNET: u64 = 14;
    let world = World::of(IDLE);
    let lab = Arc::new(Lab::start(&world.plan()).unwrap_or_else(|why| panic!("{why}")));
    lab.enter("observer").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut course = Course::start(lab, world).await;
        course.swarm.vote(3, Duration::from_secs(90)).await;
        tokio::time::sleep(SETTLED).await;
        let before = course.moved().await;
        tokio::time::sleep(COUNTED).await;
        let mut all = 0.0;
        for (daemon, (then, now)) in before.iter().zip(course.moved().await).enumerate() {
            let (counted, packets) = (now.counted - then.counted, now.before.1 - then.after.1);
            let wire = now.before.0 - then.after.0 + ETHERNET * packets;
            let day = counted as f64 * 86_400.0 / COUNTED.as_secs_f64();
            println!("daemon {daemon}: counted {counted}, {wire} on its interface in {packets} packets; {:.1} MB a day", day / 1e6);
            let sent = |kind: &String| now.sent[kind] - then.sent.get(kind).copied().unwrap_or(0);
            let sent: BTreeMap<_, _> = now.sent.keys().map(|kind| (kind, sent(kind))).filter(|(_, count)| *count > 0).collect();
            println!("  messages sent: {sent:?}");
            assert!(counted.abs_diff(wire) <= wire / 20 + ADDRESSES_ASKED, "daemon {daemon}: {counted} of {wire}");
            all += day;
        }
        assert!(all / IDLE as f64 <= MAX_IDLE_DAY, "{:.1} MB a member and day", all / IDLE as f64 / 1e6);
        assert!(course.swarm.stop().await);
    });
}
