//! `crawl`: crawls a few sites in this process, without a swarm, until everything is done.
//!
//! It writes what it finds as it comes, and prints totals.

mod outputs;
mod progress;
mod records;
mod rows;
mod seeds;
mod watch;

pub(super) use records::last_of_each;

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
use clap::{ArgGroup, Args};
use ipnetwork::IpNetwork;
use nearcrawl_core::crawl::site::yields::Price;
use nearcrawl_model::{
    fetch::ResolveError,
    record::{ServerRecord, ServerStatus},
    summary::Summary,
    url::Host,
    view::{RefusedSeed, counted},
};
use outputs::{Sink, is_same_file};
use progress::Progress;
use records::Records;
use seeds::{Fates, Seed};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};
use watch::{Lines, Outputs, Watch};

/// Shown under `crawl --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl crawl https://museum.or.ke/ --contact you@example.org\n  \
    nearcrawl crawl https://a.ac.ke/ --follow tld:ke --depth 3 --out ke.jsonl\n  \
    nearcrawl crawl --seeds hosts.txt --state ke.state --pages pages.jsonl\n  \
    nearcrawl crawl a.ac.ke --links - | cut -c 1-100\n  \
    nearcrawl crawl https://a.ac.ke/ --follow host:hosts.txt --json\n\n\
    In a laboratory of your own:\n  \
    nearcrawl crawl http://site.test:8080/ --min-delay 50ms \\\n    \
    --allow-range 127.0.0.0/8 --dns 127.0.0.53:5353\n\n\
    robots.txt is obeyed. One request at a time goes to a server, and the pause before the next one is at least ten times as long as the last \
    response took. A host without https:// or http:// is asked over https, and over http if nothing answers there.\n\n\
    With --state the same command goes on after Ctrl-C, SIGTERM or a kill: in the files of --pages and --links each page is once then, \
    and of --out the last line of a server counts until the end. Standard output and pipes get everything again: rows are the same if \
    host, run and row are.\n\n\
    Exit codes:\n  \
    0 done, or standard output was closed; 65 lines of --seeds were refused, the\n  \
    others crawled; 69 nothing could be fetched, with the reason for each starting\n  \
    URL; 73 the state is in use; 74 a file cannot be written; 78 no contact, or\n  \
    wrong configuration; 130 ended by Ctrl-C and 143 by SIGTERM, with all that\n  \
    was fetched until then";

/// The arguments of `crawl`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("start").args(["urls", "seeds"]).required(true).multiple(true))]
pub struct CrawlArgs {
    /// URLs or hosts to start from
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// A file with one URL or host a line to start from, and # comments; - is standard input
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    /// The deepest level that is fetched; the URLs given are level 0
    #[arg(long, value_name = "LEVELS")]
    depth: Option<u8>,
    /// Leave out pages expected to name fewer new external hosts than this, like 0.004 [default: 0, none]
    #[arg(long, value_name = "HOSTS", value_parser = price)]
    yield_price: Option<Price>,
    /// Write one record per server to this file, as JSON lines, when it has finished; - is standard output
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    /// Write a line for each URL that was asked for to this file, as JSON lines; - is standard output
    #[arg(long, value_name = "FILE.jsonl")]
    pages: Option<PathBuf>,
    /// Write a line for each link of a page to this file, as JSON lines; - is standard output
    #[arg(long, value_name = "FILE.jsonl")]
    links: Option<PathBuf>,
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
    /// Show neither progress nor totals
    #[arg(long)]
    quiet: bool,
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
    pub seeds: Vec<Seed>,
    /// Lines of the file of seeds that were refused, with their numbers and why.
    pub wrong: Vec<String>,
    /// Where records go.
    pub out: Option<PathBuf>,
    /// Where pages go.
    pub pages: Option<PathBuf>,
    /// Where links go.
    pub links: Option<PathBuf>,
    /// Where the crawl is kept.
    pub state: Option<PathBuf>,
    /// Whether neither progress nor totals are wanted.
    pub quiet: bool,
    /// Whether the totals are wanted as JSON.
    pub json: bool,
}

impl CrawlOrder {
    /// Whether standard output is for rows.
    fn is_piped(&self) -> bool {
        [&self.out, &self.pages, &self.links].into_iter().flatten().any(|path| path == Path::new("-"))
    }

    fn outputs(&self) -> Result<Outputs, CommandError> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
        Ok(Outputs {
            pages: open(&self.pages)?.map(Lines::new),
            links: open(&self.links)?.map(Lines::new),
            records: open(&self.out)?.map(Records::new),
        })
    }
}

/// Crawls, and gives back the totals; behind them, why it did not come to a good end.
pub async fn crawl(args: CrawlArgs) -> Result<(String, Option<CommandError>), CommandError> {
    let order = order(args)?;
    if !order.wrong.is_empty() {
        note(&format!("{} refused:\n  {}", counted(order.wrong.len() as u64, "line"), seeds::shortened(&order.wrong)));
    }
    let (fates, urls) = Fates::of(&order.seeds, &order.config);
    let outputs = order.outputs()?;
    super::logging::begin(&order.config.log)?;
    let mut watch = Watch::new(outputs, fates, Progress::new(order.quiet));
    let found = standalone::crawl(order.config.clone(), urls, order.state.clone(), &mut watch).await;
    if found.is_err() {
        watch.progress.finish();
    }
    let found = found.map_err(of_node)?;
    let without = watch.fates.without_page(&found);
    let is_closed = standalone::Watcher::has_enough(&watch);
    watch.finish(&found.servers).map_err(of_node)?;
    if is_closed {
        return Ok((String::new(), None));
    }
    let text = if order.json { super::json(&CrawlView::of(&found, &without))? } else { told(&found, Style::of_stdout()) };
    let failure = ended(&order, &found, &without).err();
    let text = if order.quiet && !order.json { String::new() } else { text };
    if order.is_piped() {
        if !text.is_empty() {
            note(text.trim_end());
        }
        return Ok((String::new(), failure));
    }
    Ok((text, failure))
}

/// How it ended, for the exit code.
fn ended(order: &CrawlOrder, found: &Findings, without: &[RefusedSeed]) -> Result<(), CommandError> {
    if let Some(signal) = found.signal {
        let (exit, name) = if signal == libc::SIGINT { (Exit::Interrupted, "Ctrl-C") } else { (Exit::Terminated, "SIGTERM") };
        let hint = match &order.state {
            Some(_) => "the same command goes on",
            None => "with --state DIRECTORY the same command would go on",
        };
        return Err(CommandError::new(exit, format!("ended by {name}")).hint(hint));
    }
    if found.summary.total.pages == 0 {
        return Err(CommandError::new(Exit::Unavailable, format!("nothing was fetched: {}", seeds::told(without))));
    }
    if !without.is_empty() && !order.quiet {
        note(&seeds::told(without));
    }
    match &order.wrong[..] {
        [] => Ok(()),
        wrong => {
            let what = format!("{} of --seeds refused, the others crawled: {}", counted(wrong.len() as u64, "line"), wrong[0]);
            Err(CommandError::new(Exit::Data, what).hint("write one URL or host a line, like https://example.org/ or example.org"))
        }
    }
}

/// Says something on standard error; whoever closed it does not want to know.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
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
    seeds_without_page: &'a [RefusedSeed],
    summary: &'a Summary,
}

impl<'a> CrawlView<'a> {
    pub(super) fn of(found: &'a Findings, seeds_without_page: &'a [RefusedSeed]) -> Self {
        CrawlView {
            exact: found.exact,
            external_hosts: found.external_hosts,
            external_urls: found.external_urls,
            external_domains: found.external_domains,
            beyond_scope: found.beyond_scope,
            nowhere: found.nowhere,
            unresolved: &found.unresolved,
            seeds_without_page,
            summary: &found.summary,
        }
    }
}

/// A table of the servers with the most pages, and the totals.
fn told(found: &Findings, style: Style) -> String {
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
            record.refused_by_robots.saturating_sub(record.refused_by_robots_unavailable).to_string(),
            record.unanswered.to_string(),
            (record.cut_by_depth + record.cut_by_script + record.cut_by_yield).to_string(),
            word(&record.state),
            status_words(record),
        ]);
    }
    let mut text = table.text(style);
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
    let kept_result = |record: &ServerRecord| record.changes.as_ref().is_some_and(|changes| changes.not_modified > 0);
    text + &evaluate::told(&found.summary.evaluation, !found.servers.iter().any(kept_result), style)
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

/// The starting URLs of the command line and of the file, and the lines of it that were refused.
fn seeds_of(args: &CrawlArgs) -> Result<(Vec<Seed>, Vec<String>), CommandError> {
    let read = |text: &String| {
        seeds::read(text).map_err(|why| {
            CommandError::new(Exit::Data, format!("{text}: {why}"))
                .hint("write a URL in full, like https://example.org/, or the name of a host")
        })
    };
    let mut seeds = args.urls.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (more, wrong) = args.seeds.as_deref().map_or(Ok((Vec::new(), Vec::new())), seeds::read_file)?;
    seeds.extend(more);
    if seeds.is_empty() {
        let what = format!("no line of --seeds can be used:\n  {}", seeds::shortened(&wrong));
        return Err(CommandError::new(Exit::Data, what).hint("write one URL or host a line, like https://example.org/ or example.org"));
    }
    Ok((seeds, wrong))
}

/// Whether each output goes somewhere else, and not over what is read.
fn outputs_differ(args: &CrawlArgs) -> Result<(), CommandError> {
    let outputs = [("--out", &args.out), ("--pages", &args.pages), ("--links", &args.links)];
    let named: Vec<_> =
        outputs.into_iter().chain([("--seeds", &args.seeds)]).filter_map(|(name, path)| Some((name, path.as_deref()?))).collect();
    for (place, (name, path)) in named.iter().enumerate() {
        for (other, its_path) in &named[..place] {
            let (is_input, dash) = (*name == "--seeds", Path::new("-"));
            let are_both_dashes = *path == dash && *its_path == dash && !is_input;
            if are_both_dashes || (*path != dash && *its_path != dash && is_same_file(path, its_path)) {
                return Err(CommandError::new(Exit::Usage, format!("{other} and {name} are both {}", path.display()))
                    .hint("give each a file of its own; one of them may be -, standard output"));
            }
        }
    }
    Ok(())
}

fn order(args: CrawlArgs) -> Result<CrawlOrder, CommandError> {
    let mut config = args.config.load()?;
    outputs_differ(&args)?;
    if let Some(state) = args.state.as_deref().filter(|state| state.exists() && !state.is_dir()) {
        let what = format!("--state {} is not a directory", state.display());
        return Err(CommandError::new(Exit::InUse, what).hint("name a directory; it is made if it is not there"));
    }
    let (seeds, wrong) = seeds_of(&args)?;
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
        && seeds
            .iter()
            .all(|seed| seed.url.host().address().is_some_and(|ip| config.crawl.allow_ranges.iter().any(|range| range.contains(ip))));
    if config.contact.is_none() && !laboratory && !addresses_only {
        return Err(CommandError::new(Exit::Config, "operators of web servers must be able to reach you")
            .hint("give your address: --contact NAME@DOMAIN or a web page, or set contact in the configuration"));
    }
    let CrawlArgs { out, pages, links, state, quiet, json, .. } = args;
    Ok(CrawlOrder { config, seeds, wrong, out, pages, links, state, quiet, json })
}

fn scope(follow: &[String]) -> Result<ScopeConfig, CommandError> {
    let mut scope = ScopeConfig::default();
    for what in follow {
        match what.split_once(':') {
            None if what == "all" => scope.open = true,
            Some(("tld", tld)) if !tld.is_empty() => scope.tlds.push(tld.trim_start_matches('.').to_ascii_lowercase()),
            Some(("host", name)) if !name.is_empty() => {
                let file = PathBuf::from(name);
                // A name of a host has no slash, and a file that is meant may be missing.
                let is_host = !name.contains('/') && name.parse::<Host>().is_ok();
                let looks_like_a_file = name.contains('/') || [".txt", ".csv", ".lst", ".list"].iter().any(|end| name.ends_with(end));
                if file.is_file() || (looks_like_a_file && !file.is_dir()) || !is_host {
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
    fn the_usage_names_both_ways_to_say_where_to_start() {
        let usage = TestCli::try_parse_from(["crawl"]).err().unwrap().to_string();
        assert!(usage.contains("<URL|--seeds <FILE>>"), "{usage}");
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
        assert_eq!(order.seeds, [seeds::read("http://a.test:8080/").unwrap()]);
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
    fn hosts_and_urls_stand_in_a_file_and_its_mistakes_have_lines() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("seeds.txt");
        fs::write(&file, "\u{feff}# ours\r\na.test\r\n\nhttp://b.test/x#part  # more\nhttps://\n192.0.2.7\nno\n").unwrap();
        let order = read(&format!("c.test --contact a@b.c --seeds {}", file.display())).unwrap();
        let urls: Vec<_> = order.seeds.iter().map(|seed| (seed.url.as_str(), seed.plain.is_some())).collect();
        let wanted = [("https://c.test/", true), ("https://a.test/", true), ("http://b.test/x", false), ("https://192.0.2.7/", true)];
        assert_eq!(urls, wanted);
        assert!(order.wrong.len() == 2 && order.wrong[0].contains("line 5: https://: "), "{:?}", order.wrong);
        assert!(order.wrong[1].ends_with("line 7: no: neither a URL nor a host"), "{:?}", order.wrong);
        fs::write(&file, "\n# nothing\n").unwrap();
        assert_eq!(read(&format!("--contact a@b.c --seeds {}", file.display())).unwrap_err().exit, Exit::Data);
    }

    #[test]
    fn outputs_go_to_different_places() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name).display().to_string();
        let (one, other) = (place("one"), place("other"));
        for line in [format!("--out {one} --pages {one}"), "--links - --pages -".to_owned(), format!("--out {one} --seeds {one}")] {
            assert_eq!(read(&format!("http://a.test/ --contact a@b.c {line}")).unwrap_err().exit, Exit::Usage, "{line}");
        }
        assert!(read(&format!("http://a.test/ --contact a@b.c --out {one} --pages {other} --links -")).unwrap().is_piped());
        fs::write(&one, "").unwrap();
        let failure = read(&format!("http://a.test/ --contact a@b.c --state {one}")).unwrap_err();
        assert!(failure.exit == Exit::InUse && failure.message.contains("is not a directory"), "{failure}");
    }

    #[test]
    fn a_file_of_hosts_that_is_missing_is_no_host() {
        for name in ["missing.txt", "./missing", "/nowhere/hosts"] {
            let failure = read(&format!("http://a.test/ --contact a@b.c --follow host:{name}")).unwrap_err();
            assert!(failure.exit == Exit::NoInput && failure.message.contains(name), "{name}: {failure}");
        }
        assert!(read("http://a.test/ --contact a@b.c --follow host:b.test").is_ok());
    }

    #[test]
    fn mistakes_are_told_with_the_way_to_write_it() {
        for (line, exit, hint) in [
            ("a/test --contact x@y.z", Exit::Data, "https://example.org/"),
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
