//! `crawl`: crawls a few sites in this process, without a swarm, until everything is done; prints totals and writes records.

use super::{
    error::{CommandError, Exit},
    evaluate,
    run::{ConfigArgs, of_node},
    table::{Style, Table, bytes, paragraph},
};
use crate::node::{
    config::{Config, CrawlRule, ScopeConfig},
    standalone::{self, Findings},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ipnetwork::IpNetwork;
use nearcrawl_core::{crawl::site::yields::Price, report::View};
use nearcrawl_model::{
    fetch::ResolveError,
    record::{ServerRecord, ServerStatus},
    summary::Summary,
    url::{Host, PageUrl},
    view::counted,
};
use serde::Serialize;
use std::{
    borrow::Borrow,
    collections::BTreeMap,
    fs,
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

/// Shown under `crawl --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl crawl https://museum.or.ke/ --contact you@example.org\n  \
    nearcrawl crawl https://a.ac.ke/ --follow tld:ke --depth 3 --out ke.jsonl\n  \
    nearcrawl crawl https://a.ac.ke/ --follow host:hosts.txt --json\n  \
    nearcrawl crawl https://a.ac.ke/ --out ke.jsonl --state ke.state\n\n\
    In a laboratory of your own:\n  \
    nearcrawl crawl http://site.test:8080/ --min-delay 50ms \\\n    \
    --allow-range 127.0.0.0/8 --dns 127.0.0.53:5353\n\n\
    robots.txt is obeyed. One request at a time goes to a server, and the pause before the next one is at least ten times as long as the last \
    response took.";

/// The arguments of `crawl`.
#[derive(Args, Clone, Debug)]
pub struct CrawlArgs {
    /// URLs to start from
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// The deepest level that is fetched; the URLs given are level 0
    #[arg(long, value_name = "LEVELS")]
    depth: Option<u8>,
    /// Leave out pages expected to name fewer new external hosts than this, like 0.004 [default: 0, none]
    #[arg(long, value_name = "HOSTS", value_parser = price)]
    yield_price: Option<Price>,
    /// Write one record per server to this file, as JSON lines; while it crawls, every few seconds
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    /// Keep the crawl in this directory: interrupted, the same command goes on there
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
    /// Other sites to follow links to: all, tld:NAME, host:NAME or host:FILE (one host per line)
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    follow: Vec<String>,
    /// A private or special address range that may be contacted, like 127.0.0.0/8 (for laboratories)
    #[arg(long, value_name = "RANGE")]
    allow_range: Vec<IpNetwork>,
    /// A name server to use instead of the system's, like 192.0.2.53 or 127.0.0.1:5353
    #[arg(long, value_name = "ADDRESS")]
    dns: Vec<String>,
    /// The minimum pause between two requests to a server, like 500ms or 2s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    min_delay: Option<Duration>,
    /// Where operators of web servers can reach you: an email address or a web page
    #[arg(long, value_name = "CONTACT")]
    contact: Option<String>,
    /// Check each page for accessibility failures
    #[arg(long)]
    evaluate: bool,
    /// Print the totals as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// What is crawled, and with which configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlOrder {
    /// The configuration, with the command line's options in it. The API is off.
    pub config: Config,
    /// Where to start; never empty.
    pub urls: Vec<PageUrl>,
    /// Where records go.
    pub out: Option<PathBuf>,
    /// Where the crawl is kept.
    pub state: Option<PathBuf>,
    /// Whether the totals are wanted as JSON.
    pub json: bool,
}

/// Crawls, and gives back the totals.
pub async fn crawl(args: CrawlArgs) -> Result<String, CommandError> {
    let order = order(args)?;
    let mut records = order.out.map(RecordsFile::create).transpose()?;
    super::logging::begin(&order.config.log)?;
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let found = standalone::crawl(order.config, order.urls, order.state, |view| {
        let progress = view.progress();
        bar.set_message(format!(
            "{} from {}, {} waiting, {} under way, {}",
            counted(progress.pages, "page"),
            counted(progress.servers, "server"),
            counted(progress.waiting, "URL"),
            counted(progress.busy, "request"),
            bytes(progress.bytes)
        ));
        bar.tick();
        if let Some(records) = &mut records {
            records.write_if_due(&view);
        }
    })
    .await
    .map_err(of_node)?;
    bar.finish_and_clear();
    if let Some(records) = &mut records {
        records.write(found.servers.iter()).map_err(|why| CommandError::creating(&records.path, &why))?;
    }
    if order.json { super::json(&CrawlView::from(&found)) } else { Ok(told(&found)) }
}

/// The output of `crawl --json`.
#[derive(Serialize)]
pub(super) struct CrawlView<'a> {
    exact: bool,
    external_hosts: u64,
    external_urls: u64,
    external_domains: u64,
    beyond_scope: u64,
    nowhere: u64,
    unresolved: &'a BTreeMap<ResolveError, u64>,
    summary: &'a Summary,
}

impl<'a> From<&'a Findings> for CrawlView<'a> {
    fn from(found: &'a Findings) -> Self {
        CrawlView {
            exact: found.exact,
            external_hosts: found.external_hosts,
            external_urls: found.external_urls,
            external_domains: found.external_domains,
            beyond_scope: found.beyond_scope,
            nowhere: found.nowhere,
            unresolved: &found.unresolved,
            summary: &found.summary,
        }
    }
}

/// The records are written anew so often.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// Of the time, at most one part of so many goes into writing them.
const WRITING_SHARE: u32 = 20;

/// The file of records, one a line. It is replaced as a whole while the crawl goes on: a reader finds one record a server at any time, and
/// a process that is killed leaves those of a few seconds ago.
struct RecordsFile {
    path: PathBuf,
    /// Where the next version is written; none for what cannot be replaced, like a pipe, which gets the records at the end.
    part: Option<PathBuf>,
    due: Instant,
}

impl RecordsFile {
    /// Nothing of a file that is there is lost before there are records.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    fn create(path: PathBuf) -> Result<RecordsFile, CommandError> {
        let replaceable = fs::metadata(&path).map_or(true, |found| found.is_file());
        let part = replaceable.then(|| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".part");
            path.with_file_name(name)
        });
        let mut options = fs::OpenOptions::new();
        let opened = options.write(true).create(replaceable).truncate(false).open(&path);
        opened.map_err(|why| CommandError::creating(&path, &why))?;
        Ok(RecordsFile { path, part, due: Instant::now() + WRITE_EVERY })
    }

    /// What cannot be written now may be later; at the end it is an error.
    fn write_if_due(&mut self, view: &View<'_>) {
        let begin = Instant::now();
        if self.part.is_none() || begin < self.due {
            return;
        }
        if let Err(why) = self.write(standalone::servers(view)) {
            tracing::warn!("{} is not written for now: {why}", self.path.display());
        }
        self.due = Instant::now() + WRITE_EVERY.max(begin.elapsed() * WRITING_SHARE);
    }

    fn write(&self, records: impl Iterator<Item = impl Borrow<ServerRecord>>) -> io::Result<()> {
        let mut out = io::BufWriter::new(fs::File::create(self.part.as_ref().unwrap_or(&self.path))?);
        for record in records {
            serde_json::to_writer(&mut out, record.borrow())?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        self.part.as_ref().map_or(Ok(()), |part| fs::rename(part, &self.path))
    }
}

/// A table of the servers with the most pages, and the totals.
fn told(found: &Findings) -> String {
    const SHOWN: usize = 20;
    let headings = ["server", ">pages", ">requests", ">bytes", ">known", ">robots", ">failed", ">cut", "state", "status"];
    let mut table = Table::new(&headings);
    let mut ranked: Vec<_> = found.servers.iter().collect();
    ranked.sort_by(|a, b| b.pages.cmp(&a.pages).then(a.host.cmp(&b.host)));
    for record in ranked.iter().take(SHOWN) {
        table.row(vec![
            record.host.to_string(),
            record.pages.to_string(),
            record.requests.to_string(),
            bytes(record.bytes),
            record.known.to_string(),
            record.refused_by_robots.to_string(),
            record.unanswered.to_string(),
            (record.cut_by_depth + record.cut_by_script + record.cut_by_yield).to_string(),
            word(&record.state),
            status_words(record),
        ]);
    }
    let mut text = table.text(Style::of_stdout());
    if ranked.len() > SHOWN {
        text += &format!("… and {} (--out FILE.jsonl lists all)\n", counted((ranked.len() - SHOWN) as u64, "more server"));
    }
    let total = &found.summary.total;
    let (pages, servers) = (counted(total.pages, "page"), counted(total.servers, "server"));
    let interrupted = if found.exact { "" } else { "interrupted: " };
    let moved = if total.page_bytes == total.bytes { String::new() } else { format!(" of pages, {} moved", bytes(total.bytes)) };
    text += &format!("{interrupted}{pages} from {servers} in {}, {}{moved}\n", counted(total.requests, "request"), bytes(total.page_bytes));
    text += &paragraph(&format!("{}; {} out of scope", total.external(), counted(found.beyond_scope, "link")));
    if let Some(held_back) = total.held_back() {
        text += &paragraph(&format!("{held_back}; the same command with --state DIRECTORY goes on there on another day"));
    }
    text + &evaluate::told(&found.summary.evaluation, Style::of_stdout())
}

/// The status, with the main failure of a server that is down.
fn status_words(record: &ServerRecord) -> String {
    match record.main_failure().filter(|_| record.status == ServerStatus::Down) {
        Some(failure) => format!("down: {}", failure.word()),
        None => word(&record.status),
    }
}

fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn order(args: CrawlArgs) -> Result<CrawlOrder, CommandError> {
    let mut config = args.config.load()?;
    let mut urls = Vec::new();
    for text in &args.urls {
        urls.push(PageUrl::parse(text).map_err(|why| {
            CommandError::new(Exit::Data, format!("{text}: {why}")).hint("write the URL in full, like https://example.org/")
        })?);
    }
    if let Some(depth) = args.depth {
        config.crawl.depth = depth;
    }
    if let Some(delay) = args.min_delay {
        config.crawl.min_delay = delay;
    }
    config.crawl.evaluation |= args.evaluate;
    // A crawl in the foreground has no page budget: it runs to its end.
    config.crawl.max_pages_per_run = None;
    config.crawl.rule = if args.yield_price.is_some() { CrawlRule::Yield } else { CrawlRule::Depth };
    config.crawl.yield_price = args.yield_price.unwrap_or_default();
    if args.contact.is_some() {
        config.contact = args.contact;
    }
    config.crawl.allow_ranges.extend(args.allow_range);
    if !args.dns.is_empty() {
        config.dns.servers = args.dns.iter().map(|text| name_server(text)).collect::<Result<_, _>>()?;
    }
    config.scope = scope(&args.follow)?;
    config.source_is_here().map_err(|why| CommandError::new(Exit::Config, why.to_string()))?;
    config.api.listen = None;
    config.swarm.bootstrap.clear();
    let laboratory = !config.crawl.allow_ranges.is_empty() && !config.dns.servers.is_empty();
    let addresses_only = config.scope == ScopeConfig::default()
        && urls.iter().all(|url| url.host().address().is_some_and(|ip| config.crawl.allow_ranges.iter().any(|range| range.contains(ip))));
    if config.contact.is_none() && !laboratory && !addresses_only {
        return Err(CommandError::new(Exit::Config, "operators of web servers must be able to reach you")
            .hint("give your address: --contact NAME@DOMAIN or a web page, or set contact in the configuration"));
    }
    Ok(CrawlOrder { config, urls, out: args.out, state: args.state, json: args.json })
}

fn scope(follow: &[String]) -> Result<ScopeConfig, CommandError> {
    let mut scope = ScopeConfig::default();
    for what in follow {
        match what.split_once(':') {
            None if what == "all" => scope.open = true,
            Some(("tld", tld)) if !tld.is_empty() => scope.tlds.push(tld.trim_start_matches('.').to_ascii_lowercase()),
            Some(("host", name)) if !name.is_empty() => {
                let file = PathBuf::from(name);
                if file.is_file() {
                    let text = fs::read_to_string(&file).map_err(|why| CommandError::of_file(&file, &why))?;
                    for (number, line) in text.lines().enumerate() {
                        let line = line.trim();
                        if !line.is_empty() && !line.starts_with('#') {
                            scope.hosts.push(host(line, &format!("{name}, line {}", number + 1))?);
                        }
                    }
                } else {
                    scope.hosts.push(host(name, "--follow")?);
                }
            }
            _ => {
                return Err(CommandError::new(Exit::Usage, format!("--follow {what} is not understood"))
                    .hint("write tld:ke, host:museum.or.ke, host:FILE, all, or several of them with commas"));
            }
        }
    }
    Ok(scope)
}

fn host(text: &str, place: &str) -> Result<Host, CommandError> {
    text.parse().map_err(|_| CommandError::new(Exit::Data, format!("{place}: {text} is neither a host nor a file")))
}

fn name_server(text: &str) -> Result<SocketAddr, CommandError> {
    let whole = text.parse::<SocketAddr>();
    whole.or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53))).map_err(|_| {
        CommandError::new(Exit::Usage, format!("--dns {text} is no address"))
            .hint("write it like 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53")
    })
}

fn price(text: &str) -> Result<Price, String> {
    text.parse().ok().and_then(Price::of).ok_or_else(|| "write a number from 0 to 1000, like 0.004".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let millis = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        _ => return Err("write a number with ms, s or min, like 500ms or 2s".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "write a number with ms, s or min, like 500ms or 2s".to_owned())?;
    number.checked_mul(millis).filter(|ms| *ms <= 3_600_000).map(Duration::from_millis).ok_or_else(|| "at most an hour".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct TestCli {
        #[command(flatten)]
        args: CrawlArgs,
    }

    fn read(line: &str) -> Result<CrawlOrder, CommandError> {
        order(TestCli::try_parse_from(["crawl"].into_iter().chain(line.split_whitespace())).unwrap().args)
    }

    #[test]
    fn options_reach_the_configuration() {
        assert_eq!(read("http://a.test/ --contact a@b.c").unwrap().config.crawl.rule, CrawlRule::Depth, "to its end");
        assert_eq!(read("http://a.test/ --contact a@b.c --yield-price 0.01").unwrap().config.crawl.yield_price.hosts(), 0.01);
        let order = read(
            "http://a.test:8080/ --depth 3 --follow tld:.KE,host:b.test,all --allow-range 127.0.0.0/8 --dns 127.0.0.53:5353 --min-delay 50ms",
        )
        .unwrap();
        assert_eq!(order.config.crawl.depth, 3);
        assert_eq!(order.config.crawl.min_delay, Duration::from_millis(50));
        assert_eq!(order.config.crawl.allow_ranges, ["127.0.0.0/8".parse().unwrap()]);
        assert_eq!(order.config.dns.servers, ["127.0.0.53:5353".parse().unwrap()]);
        assert_eq!(order.config.scope.tlds, ["ke"]);
        assert_eq!(order.config.scope.hosts, ["b.test".parse().unwrap()]);
        assert!(order.config.scope.open && order.config.api.listen.is_none());
        assert_eq!(order.urls, [PageUrl::parse("http://a.test:8080/").unwrap()]);
    }

    #[test]
    fn hosts_to_follow_may_stand_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hosts.txt");
        fs::write(&file, "# ours\na.test\n\n  b.test \n").unwrap();
        let order = read(&format!("http://a.test/ --contact a@b.c --follow host:{}", file.display())).unwrap();
        assert_eq!(order.config.scope.hosts.len(), 2);
        fs::write(&file, "a.test\nnot a host\n").unwrap();
        let failure = read(&format!("http://a.test/ --contact a@b.c --follow host:{}", file.display())).unwrap_err();
        assert!(failure.exit == Exit::Data && failure.message.contains("line 2"), "{failure}");
    }

    #[test]
    fn nobody_crawls_the_public_web_without_an_address_to_write_to() {
        assert_eq!(read("https://a.test/").unwrap_err().exit, Exit::Config);
        assert!(read("https://a.test/ --contact me@a.test").is_ok());
        assert!(read("http://127.0.0.1:8080/ --allow-range 127.0.0.0/8").is_ok());
        assert_eq!(read("http://127.0.0.1:8080/ --allow-range 127.0.0.0/8 --follow all").unwrap_err().exit, Exit::Config);
    }

    #[test]
    fn mistakes_are_told_with_the_way_to_write_it() {
        for (line, exit, hint) in [
            ("a.test --contact x@y.z", Exit::Data, "https://example.org/"),
            ("http://a.test/ --contact x@y.z --follow ke", Exit::Usage, "tld:ke"),
            ("http://a.test/ --contact x@y.z --dns name.test", Exit::Usage, "192.0.2.53"),
        ] {
            let failure = read(line).unwrap_err();
            assert!(failure.exit == exit && failure.hint.as_ref().unwrap().contains(hint), "{line}: {failure}");
        }
        for (text, millis) in
            [("500ms", Some(500)), ("2s", Some(2_000)), ("1min", Some(60_000)), ("2", None), ("s", None), ("9999999s", None)]
        {
            assert_eq!(duration(text).ok(), millis.map(Duration::from_millis), "{text}");
        }
    }
}
