//! `bot-site`: writes a page for the owners of web sites, as files for any web host: who asks, how often at most, and how to say no.

use super::{
    chart::escaped,
    error::{CommandError, Exit},
    json,
    report::page_head,
    run::ConfigArgs,
};
use crate::{
    io::snapshot,
    node::{clock, config::Config, visits::Visits},
};
use clap::Args;
use ipnetwork::IpNetwork;
use nearcrawl_core::{
    crawl::site::robots::PROGRAM_TOKEN,
    delegation::contacts::{MAX_IN_BLOCK, WINDOW},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    opt_out::{PROOF_PATH, PROOF_WORD, TXT_LABEL},
    time::WallTime,
};
use serde::Serialize;
use std::path::PathBuf;

/// Shown under `bot-site --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl bot-site --out public/crawler\n  \
    nearcrawl bot-site --out public/crawler --project https://example.org/code\n  \
    nearcrawl bot-site --out public/crawler --range 192.0.2.7/32 \\\n    \
    --member 12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ\n\n\
    It writes index.html, and crawler.json for programs, and asks nobody. Name the ranges only of members whose volunteers want theirs to be \
    known. Where the page is, say in `page` of the configuration: that stands in the User-Agent header, before `contact`.";

/// The arguments of `bot-site`.
#[derive(Args, Clone, Debug)]
pub struct BotSiteArgs {
    /// The directory for the files; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A range from which members ask, to be published (repeatable)
    #[arg(long, value_name = "RANGE")]
    range: Vec<IpNetwork>,
    /// The peer id of a member, to be published (repeatable)
    #[arg(long, value_name = "PEER_ID")]
    member: Vec<AccessPoint>,
    /// Where the program and its source are, to be linked
    #[arg(long, value_name = "URL")]
    project: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

impl BotSiteArgs {
    /// The project's page: the one named, else the one that the program was built with.
    fn project(&self) -> Option<String> {
        let built_with = [env!("CARGO_PKG_HOMEPAGE"), env!("CARGO_PKG_REPOSITORY")].into_iter().find(|page| !page.is_empty());
        self.project.clone().or_else(|| built_with.map(str::to_owned))
    }
}

/// `crawler.json`: for programs of site owners. Ranges are as search engines publish theirs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    creation_time: String,
    prefixes: Vec<Prefix>,
    product_token: String,
    user_agent: String,
    page: Option<String>,
    contact: Option<String>,
    project: Option<String>,
    opt_out: HowToOptOut,
    min_delay_seconds: f64,
    delay_factor: u32,
    max_depth: u8,
    max_pages_per_run: Option<u64>,
    revisit_seconds: u64,
    max_page_bytes: u64,
    max_request_seconds: f64,
    max_servers_per_block: u32,
    max_measurements_per_subnet: u32,
    max_measurements_per_block: usize,
    measurement_window_seconds: u64,
    members: Vec<String>,
}

/// How a site owner says no to the whole swarm.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HowToOptOut {
    robots_txt: String,
    txt_record: String,
    txt_value: &'static str,
    file: &'static str,
    file_first_line: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Prefix {
    Ipv4Prefix(String),
    Ipv6Prefix(String),
}

/// Writes the files.
pub fn bot_site(args: &BotSiteArgs) -> Result<String, CommandError> {
    let config = args.config.load()?;
    let now = clock::now().wall;
    std::fs::create_dir_all(&args.out).map_err(|why| CommandError::creating(&args.out, &why))?;
    let files = [("index.html", page(&config, args, now)), ("crawler.json", json(&published(&config, args, now))?)];
    for (name, text) in files {
        let path = args.out.join(name);
        snapshot::write(&path, text.as_bytes()).map_err(|why| CommandError::new(Exit::InUse, why.to_string()))?;
    }
    let mut said = format!("wrote index.html and crawler.json in {}\n", args.out.display());
    if config.contact.is_none() {
        said += "the configuration has no contact: the page names none\n";
    } else if config.contact.as_ref().is_some_and(|contact| contact.contains("://")) {
        said += "the contact of the configuration is a web page: this page has no email address for site owners\n";
    }
    Ok(said)
}

fn published(config: &Config, args: &BotSiteArgs, now: WallTime) -> Published {
    let prefix = |range: &IpNetwork| match range {
        IpNetwork::V4(_) => Prefix::Ipv4Prefix(range.to_string()),
        IpNetwork::V6(_) => Prefix::Ipv6Prefix(range.to_string()),
    };
    let crawl = &config.crawl;
    Published {
        creation_time: now.to_string(),
        prefixes: args.range.iter().map(prefix).collect(),
        product_token: PROGRAM_TOKEN.to_owned(),
        user_agent: config.user_agent(),
        page: config.page.clone(),
        contact: config.contact.clone(),
        project: args.project(),
        opt_out: HowToOptOut {
            robots_txt: format!("User-agent: {PROGRAM_TOKEN}\nDisallow: /"),
            txt_record: format!("{TXT_LABEL}.HOST"),
            txt_value: PROOF_WORD,
            file: PROOF_PATH,
            file_first_line: PROOF_WORD,
        },
        min_delay_seconds: crawl.min_delay.as_secs_f64(),
        delay_factor: crawl.delay_factor,
        max_depth: crawl.depth,
        max_pages_per_run: crawl.max_pages_per_run,
        revisit_seconds: crawl.revisit.as_secs(),
        max_page_bytes: config.fetch.max_body_size,
        max_request_seconds: config.fetch.total_timeout.as_secs_f64(),
        max_servers_per_block: crawl.max_parallel_per_subnet,
        max_measurements_per_subnet: config.delegation.max_contacts_per_subnet,
        max_measurements_per_block: MAX_IN_BLOCK,
        measurement_window_seconds: WINDOW / 1_000,
        members: args.member.iter().map(ToString::to_string).collect(),
    }
}

/// One section of the page: its heading, and its lines as they are.
fn section(title: &str, lines: &[String]) -> String {
    format!("<h2>{}</h2>\n<ul>\n{}</ul>\n", escaped(title), lines.iter().map(|line| format!("<li>{line}</li>\n")).collect::<String>())
}

fn page(config: &Config, args: &BotSiteArgs, now: WallTime) -> String {
    let visits = Visits::by(config);
    let lines = |lines: &[String]| lines.iter().map(|line| marked_up(line)).collect::<Vec<_>>();
    let mut who = lines(&visits.who);
    who.push(match args.project() {
        Some(project) => format!("The program and its source: {}", linked(&project)),
        None => format!("The program: {PROGRAM_TOKEN} {}, open source.", env!("CARGO_PKG_VERSION")),
    });
    who.extend(args.range.iter().map(|range| format!("It may ask from <code>{range}</code>.")));
    who.extend(args.member.iter().map(|member| format!("Member of the swarm: <code>{member}</code>")));
    format!(
        "{}<main>\n<h1>{PROGRAM_TOKEN}, a web crawler run by volunteers</h1>\n<p>It counts and describes public web servers for research. This page is for \
         the people whose servers it visits.</p>\n{}{}{}<p>For programs: <a href=\"crawler.json\">crawler.json</a>. As of {}.</p>\n</main>\n</body>\n</html>\n",
        page_head(&format!("{PROGRAM_TOKEN}: for owners of web sites")),
        section("What it does at your server", &lines(&visits.done)),
        section("How to say no", &lines(&visits.kept_away)),
        section("Who it is", &who),
        escaped(&now.to_string()),
    )
}

/// A sentence as markup: literal words in it, lines after the first as they are to be copied, and an address at its end as a link.
fn marked_up(line: &str) -> String {
    let (sentence, copied) = line.split_once('\n').map_or((line, None), |(sentence, copied)| (sentence, Some(copied)));
    let (text, address) = match sentence.rsplit_once(": ") {
        Some((text, address)) if !address.contains(' ') && (address.contains("://") || address.contains('@')) => {
            (format!("{text}: "), linked(address))
        }
        _ => (sentence.to_owned(), String::new()),
    };
    let words = text
        .split('`')
        .enumerate()
        .map(|(place, word)| if place % 2 == 1 { format!("<code>{}</code>", escaped(word)) } else { escaped(word) });
    let copied =
        copied.map_or_else(String::new, |copied| format!("<pre>{}</pre>", copied.lines().map(escaped).collect::<Vec<_>>().join("\n")));
    format!("{}{address}{copied}", words.collect::<String>())
}

/// A contact as a link: an address to write to, or a page.
fn linked(contact: &str) -> String {
    let target = if contact.contains("://") || contact.starts_with("mailto:") { contact.to_owned() } else { format!("mailto:{contact}") };
    format!("<a href=\"{}\">{}</a>", escaped(&target), escaped(contact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn written(text: &str) -> (String, serde_json::Value) {
        let directory = tempfile::tempdir().unwrap();
        let (config, out) = (directory.path().join("node.toml"), directory.path().join("public/crawler"));
        std::fs::write(&config, text).unwrap();
        let args = BotSiteArgs {
            out: out.clone(),
            range: vec!["192.0.2.7/32".parse().unwrap(), "2001:db8::/48".parse().unwrap()],
            member: vec!["12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ".parse().unwrap()],
            project: Some("https://museum.or.ke/nearcrawl".to_owned()),
            config: ConfigArgs { config: Some(config) },
        };
        let said = bot_site(&args).unwrap();
        assert!(said.contains("wrote index.html and crawler.json"), "{said}");
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        assert_no_failures(&out.join("index.html"));
        (read("index.html"), serde_json::from_str(&read("crawler.json")).unwrap())
    }

    /// Our own accessibility rules find nothing.
    fn assert_no_failures(page: &Path) {
        let html = std::fs::read_to_string(page).unwrap();
        let found =
            nearcrawl_page::evaluation::evaluate(&html, &nearcrawl_page::evaluation::Limits::default(), &|| std::time::Duration::ZERO);
        assert_eq!((found.total(), found.gate), (0, None), "{found:?}");
    }

    #[test]
    fn the_page_has_all_limits_in_numbers_and_how_to_say_no() {
        let (page, published) =
            written("contact = \"me@museum.or.ke\"\n[crawl]\ndepth = 5\nmin_delay = \"3s\"\ndelay_factor = 12\nmax_pages_per_run = 70\n");
        for said in [
            "at least 3.0 s, at least 12 times",
            "make it wait 30 s",
            "at most 15 of them by the whole swarm in 30 days",
            "<a href=\"https://museum.or.ke/nearcrawl\">",
            "up to 5 links away",
            "at most 70 pages",
            "User-agent: nearcrawl\nDisallow: /",
            "<code>nofollow</code>",
            "again after a day",
            "mailto:me@museum.or.ke",
            "2001:db8::/48",
            "12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        assert_eq!(published["prefixes"], serde_json::json!([{"ipv4Prefix": "192.0.2.7/32"}, {"ipv6Prefix": "2001:db8::/48"}]));
        assert_eq!((published["productToken"].as_str(), published["delayFactor"].as_u64()), (Some("nearcrawl"), Some(12)));
        assert_eq!((published["maxDepth"].as_u64(), published["maxPagesPerRun"].as_u64()), (Some(5), Some(70)));
        assert_eq!(published["optOut"]["txtRecord"], "_nearcrawl.HOST");
        assert!(!page.contains(" src=") && !page.contains("<link"), "no outside resource");
    }

    #[test]
    fn what_the_configuration_says_cannot_become_markup() {
        let (page, _) = written("contact = \"https://museum.or.ke/<script>x</script>\"\n");
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
    }
}
