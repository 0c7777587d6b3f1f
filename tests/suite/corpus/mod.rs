//! The real web that the swarm is tested on.
//!
//! Three packages of Debian's documentation are split by directory over many hosts on loopback.
//!
//! ```text
//! let corpus = Arc::new(Corpus::open(CorpusPlan::default())?);
//! let web = WebServers::start(corpus.web_servers(), corpus.clone()).await?;      // the log: web.log()
//! let dns = DnsServer::start(corpus.name_server(), Zone::new(corpus.names())).await?;
//! corpus.places.registry_files(), corpus.places.access_points                     // for the daemons' configurations
//! corpus.seeds() → POST /api/seeds, scope: tlds = ["test"], depth = DEPTH, ports = [8080]
//! corpus.expected()                                                               // what the log must show, each URL once
//! ```
//!
//! Pages keep their paths; a link into another host's directory is made absolute as the page is served. Links into directories
//! that are left out lead to a host out of scope. `/` of each host redirects to its first page. One host's robots.txt closes a
//! part of it, and a synthetic site is deeper than the crawl may go.

mod links;
mod tests;

use nearcrawl_lab::demo::world::Places;
use nearcrawl_lab::oracle;
use nearcrawl_lab::oracle::Expected;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_lab::web::{Answer, Web};
use nearcrawl_model::{
    subnet::Subnet,
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

/// How deep site trees are crawled.
pub const DEPTH: u8 = 8;

/// The port of all servers.
pub const PORT: u16 = 8080;

/// How many pages the synthetic chain has.
pub const CHAIN: u32 = 12;

/// The packages, as scripts/corpus.sh unpacks them: one directory for each.
const PACKAGES: [&str; 3] = ["cppreference-doc-en-html", "apache2-doc", "postgresql-doc-15"];

/// A directory with fewer or more pages is left out, and at most so many hosts serve one package.
const MIN_PAGES: usize = 8;
const MAX_PAGES: usize = 66;
const MAX_HOSTS: usize = 12;

const TLD: &str = "test";
const CHAIN_HOST: &str = "chain.deep.test";
const LEFT_OUT: &str = "http://left-out.example";

/// Which part of the corpus, and where.
#[derive(Clone, Copy, Debug)]
pub struct CorpusPlan {
    /// All addresses lie in `127.net.0.0/16`.
    pub net: u8,
    /// At most so many pages of each package; whole directories are left out, the smallest first.
    pub most_pages: usize,
    /// How much of the made-up round trips the servers wait, in per cent; 0 answers at once.
    pub delay_percent: u32,
}

impl Default for CorpusPlan {
    fn default() -> Self {
        CorpusPlan { net: 40, most_pages: 350, delay_percent: 0 }
    }
}

/// The corpus is not on this machine, or not usable.
#[derive(Debug)]
pub struct CorpusMissing(pub PathBuf, pub String);

impl std::fmt::Display for CorpusMissing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; get it with scripts/corpus.sh, or name its directory in NEARCRAWL_CORPUS", self.0.display(), self.1)
    }
}

/// One host with the directory that it serves.
#[derive(Clone, Debug)]
pub struct CorpusHost {
    /// Its name.
    pub name: Host,
    /// Where it is.
    pub address: Ipv4Addr,
    /// Which package it serves, by its number.
    package: usize,
    /// Where its `/` redirects to.
    pub first_page: String,
    /// How many HTML files it has.
    pub pages: usize,
}

/// The corpus, ready to be served and to be compared with.
#[derive(Debug)]
pub struct Corpus {
    plan: CorpusPlan,
    /// Where the pages of each package begin.
    roots: Vec<PathBuf>,
    /// Registrations, access points and distances.
    pub places: Places,
    /// The hosts; the synthetic one is the last.
    pub hosts: Vec<CorpusHost>,
    index: BTreeMap<String, usize>,
    /// Which host serves a file, by its package and its path from there; none if its directory was left out.
    served_by: BTreeMap<(usize, String), Option<usize>>,
    robots: (usize, String),
}

impl Corpus {
    /// Opens the corpus of this machine.
    pub fn open(plan: CorpusPlan) -> Result<Corpus, CorpusMissing> {
        let directory = directory();
        let missing = |why: String| CorpusMissing(directory.clone(), why);
        let mut roots = Vec::new();
        let mut chosen: Vec<(usize, String, Vec<String>)> = Vec::new();
        let mut served_by = BTreeMap::new();
        for (package, name) in PACKAGES.into_iter().enumerate() {
            let mut files = Vec::new();
            collect(&directory.join(name), &mut files).map_err(|why| missing(format!("{name}: {why}")))?;
            let root = common_root(&files).ok_or_else(|| missing(format!("{name} has no HTML files")))?;
            let paths = files.iter().filter_map(|file| Some(file.strip_prefix(&root).ok()?.to_str()?.to_owned()));
            let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for path in paths {
                groups.entry(group_of(&path, &root, name)).or_default().push(path);
            }
            let mut by_size: Vec<(String, Vec<String>)> = groups.into_iter().collect();
            by_size.sort_by(|a, b| (b.1.len(), &b.0).cmp(&(a.1.len(), &a.0)));
            let (mut pages, mut hosts) = (plan.most_pages, MAX_HOSTS);
            for (group, paths) in by_size {
                let fits = (MIN_PAGES..=MAX_PAGES.min(pages)).contains(&paths.len());
                if !fits || hosts == 0 {
                    served_by.extend(paths.into_iter().map(|path| ((package, path), None)));
                } else {
                    pages -= paths.len();
                    hosts -= 1;
                    chosen.push((package, group, paths));
                }
            }
            roots.push(root);
        }
        let places = Places::new(plan.net, chosen.len() + 1, 1);
        let mut corpus = Corpus { plan, roots, places, hosts: Vec::new(), index: BTreeMap::new(), served_by, robots: (0, String::new()) };
        for (package, group, mut paths) in chosen {
            paths.sort_by_key(|path| (path.matches('/').count(), !path.ends_with("index.html"), path.clone()));
            let first_page = format!("/{}", paths[0]);
            // The last page in order is kept from the crawler at the last host.
            corpus.robots = (corpus.hosts.len(), paths.last().map(|path| format!("/{path}")).unwrap_or_default());
            corpus.add(&group, package, first_page, paths.len());
            let host = corpus.hosts.len() - 1;
            corpus.served_by.extend(paths.into_iter().map(|path| ((package, path), Some(host))));
        }
        corpus.add(CHAIN_HOST, PACKAGES.len(), "/1.html".to_owned(), CHAIN as usize);
        Ok(corpus)
    }

    fn add(&mut self, name: &str, package: usize, first_page: String, pages: usize) {
        let land = &self.places.lands[self.hosts.len()];
        let IpAddr::V4(first) = land.subnet.first() else { unreachable!("places are IPv4") };
        let address = Ipv4Addr::from_bits(first.to_bits() + 9);
        let name: Host = name.parse().expect("names are made of directory names");
        self.index.insert(name.to_string(), self.hosts.len());
        self.hosts.push(CorpusHost { name, address, package, first_page, pages });
    }

    /// Where the web servers listen.
    pub fn web_servers(&self) -> Vec<SocketAddr> {
        self.hosts.iter().map(|host| SocketAddr::from((host.address, PORT))).collect()
    }

    /// Where the name server listens.
    pub fn name_server(&self) -> SocketAddr {
        SocketAddr::from(([127, self.plan.net, 250, 53], 0))
    }

    /// All names with their addresses.
    pub fn names(&self) -> Vec<(Host, IpAddr)> {
        self.hosts.iter().map(|host| (host.name.clone(), host.address.into())).collect()
    }

    /// The subnets that the hosts live in.
    pub fn subnets(&self) -> BTreeSet<Subnet> {
        let lands = self.hosts.iter().filter_map(|host| self.places.land_of(IpAddr::V4(host.address)));
        lands.map(|land| self.places.lands[land].subnet).collect()
    }

    /// From where the crawl starts: every host's first page. Where the hosts of a package hang together is theirs to say.
    pub fn seeds(&self) -> Vec<PageUrl> {
        self.hosts.iter().map(|host| PageUrl::parse(&format!("http://{}:{PORT}/", host.name)).expect("a host's root")).collect()
    }

    /// What a crawl must come to, by another parser than the crawler's.
    pub fn expected(&self) -> Expected {
        oracle::traverse(self, &self.seeds(), DEPTH)
    }

    /// The host whose robots.txt closes something, and what.
    pub fn closed(&self) -> (&CorpusHost, &str) {
        (&self.hosts[self.robots.0], &self.robots.1)
    }

    /// The body of a page, with links to other hosts made absolute; none if there is no such file.
    fn body(&self, host: usize, path: &str) -> Option<Vec<u8>> {
        let file = decoded(path.split('?').next()?)?;
        let package = self.hosts[host].package;
        if self.served_by.get(&(package, file.clone())).copied().flatten() != Some(host) {
            return None;
        }
        let bytes = fs::read(self.roots[package].join(&file)).ok()?;
        let base = url::Url::parse(&format!("http://{}:{PORT}{path}", self.hosts[host].name)).ok()?;
        Some(links::rewrite(&bytes, |href| self.moved(host, &base, href)))
    }

    /// What a link must be replaced by, if it leaves the host.
    fn moved(&self, host: usize, base: &url::Url, href: &str) -> Option<String> {
        let local = !href.starts_with(['#', '/', '?']) && url::Url::parse(href).is_err();
        let target = base.join(href).ok().filter(|_| local)?;
        match self.served_by.get(&(self.hosts[host].package, decoded(target.path())?))? {
            None => Some(format!("{LEFT_OUT}{}", target.path())),
            Some(other) if *other == host => None,
            Some(other) => Some(format!("http://{}:{PORT}{}", self.hosts[*other].name, &target[url::Position::BeforePath..])),
        }
    }
}

/// Where the corpus is expected.
fn directory() -> PathBuf {
    let cache = || {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
        std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("nearcrawl/corpus")
    };
    std::env::var_os("NEARCRAWL_CORPUS").map_or_else(cache, PathBuf::from)
}

/// All HTML files beneath a directory, in a fixed order.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    for entry in entries {
        let kind = entry.symlink_metadata()?;
        if kind.is_dir() {
            collect(&entry, files)?;
        } else if kind.is_file() && entry.extension().is_some_and(|extension| extension == "html") {
            files.push(entry);
        }
    }
    Ok(())
}

/// The deepest directory that all files are in.
fn common_root(files: &[PathBuf]) -> Option<PathBuf> {
    let mut root = files.first()?.parent()?.to_owned();
    while !files.iter().all(|file| file.starts_with(&root)) {
        root = root.parent()?.to_owned();
    }
    Some(root)
}

/// The host name of a file: its first two directories, where a page `x.html` beside a directory `x` belongs to it.
fn group_of(path: &str, root: &Path, package: &str) -> String {
    let stem = path.strip_suffix(".html").unwrap_or(path);
    let is_directory = stem != path && stem.matches('/').count() == 1 && root.join(stem).is_dir();
    let parts: Vec<&str> = if is_directory { stem.split('/').chain([""]).collect() } else { path.split('/').collect() };
    let label = |part: &str| part.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let directory = match parts.as_slice() {
        [first, second, _, ..] => format!("{}.{}", label(second), label(first)),
        [first, _] => format!("main.{}", label(first)),
        // A package without directories is split by the first word of its files' names.
        _ => stem.split_once('-').map_or("main.top".to_owned(), |(word, _)| format!("{}.top", label(word))),
    };
    format!("{directory}.{}.{TLD}", label(package))
}

/// The file that a URL path names, from the root.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.strip_prefix('/')?.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = |range| u8::from_str_radix(std::str::from_utf8(tail.get(range)?).ok()?, 16).ok();
        match hex(0..2).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// The synthetic chain: page n links to page n + 1 only.
fn chain_page(path: &str) -> Option<String> {
    let number: u32 = path.strip_prefix('/')?.strip_suffix(".html")?.parse().ok()?;
    (1..=CHAIN).contains(&number).then(|| format!("<html><body><a href=\"{}.html\">deeper</a></body></html>", number + 1))
}

impl HttpSite for Corpus {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        let Some(index) = self.index.get(host).copied() else { return HttpAnswer::status(404) };
        if path == "/" {
            return HttpAnswer::redirect(302, &self.hosts[index].first_page);
        }
        if path == "/robots.txt" && index == self.robots.0 {
            return HttpAnswer::ok("text/plain", format!("User-agent: *\nDisallow: {}\n", self.robots.1));
        }
        let body = if host == CHAIN_HOST { chain_page(path).map(String::into_bytes) } else { self.body(index, path) };
        body.map_or_else(|| HttpAnswer::status(404), |body| HttpAnswer::ok("text/html", body))
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        let land = self.places.land_of(server).map(|land| &self.places.lands[land]);
        let point = self.places.access_points.iter().position(|point| IpAddr::V4(*point) == peer);
        let ms = land.zip(point).map_or(0, |(land, point)| land.delays[point]);
        Duration::from_micros(u64::from(ms * self.plan.delay_percent) * 10)
    }
}

impl Web for Corpus {
    fn answer(&self, url: &PageUrl) -> Answer {
        let answer = self.respond(url.host().as_str(), url.path_and_query());
        match (answer.status, answer.location) {
            (200, _) => Answer::Page(links::of(&answer.body, url)),
            (302, Some(to)) => url.join(&to).map_or(Answer::Status(302), Answer::Redirect),
            (status, _) => Answer::Status(status),
        }
    }

    fn allowed(&self, url: &PageUrl) -> bool {
        let (host, closed) = self.closed();
        url.host() != host.name || !url.path().starts_with(closed)
    }

    fn in_scope(&self, host: &Host) -> bool {
        host.tld() == Some(TLD)
    }
}
