//! `bot-site` writes a page for the owners of web sites, as files for any web host: who asks, how often at most, and how to say no.

use super::{
    chart::escaped,
    error::{CommandError, Exit},
    json,
    report::page_head,
    run::ConfigArgs,
};
use crate::{
    io::snapshot,
    node::{clock, config::Config},
};
use clap::Args;
use ipnetwork::IpNetwork;
use nearcrawl_core::crawl::site::robots::PROGRAM_TOKEN;
use nearcrawl_model::{
    access_point::AccessPoint,
    opt_out::{DOMAIN_WORD, PROOF_PATH, PROOF_WORD, TXT_LABEL},
    time::WallTime,
    view::{Span, counted},
};
use serde::Serialize;
use std::path::PathBuf;

/// Shown under `bot-site --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl bot-site --out public/crawler\n  \
    nearcrawl bot-site --out public/crawler --range 192.0.2.7/32 \\\n    \
    --member 12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ\n\n\
    It writes index.html, and crawler.json for programs, and asks nobody. Name the ranges only of members whose volunteers want theirs to be \
    known. Where the page is, say in `contact`: that stands in the User-Agent header.";

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
    #[command(flatten)]
    config: ConfigArgs,
}

/// `crawler.json`: for programs of site owners. Ranges are as search engines publish theirs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    creation_time: String,
    prefixes: Vec<Prefix>,
    product_token: String,
    user_agent: String,
    contact: Option<String>,
    min_delay_seconds: f64,
    delay_factor: u32,
    members: Vec<String>,
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
    }
    Ok(said)
}

fn published(config: &Config, args: &BotSiteArgs, now: WallTime) -> Published {
    let prefix = |range: &IpNetwork| match range {
        IpNetwork::V4(_) => Prefix::Ipv4Prefix(range.to_string()),
        IpNetwork::V6(_) => Prefix::Ipv6Prefix(range.to_string()),
    };
    Published {
        creation_time: now.to_string(),
        prefixes: args.range.iter().map(prefix).collect(),
        product_token: PROGRAM_TOKEN.to_owned(),
        user_agent: config.user_agent(),
        contact: config.contact.clone(),
        min_delay_seconds: config.crawl.min_delay.as_secs_f64(),
        delay_factor: config.crawl.delay_factor,
        members: args.member.iter().map(ToString::to_string).collect(),
    }
}

/// One section of the page: its heading, and its lines as they are.
fn section(title: &str, lines: &[String]) -> String {
    format!("<h2>{}</h2>\n<ul>\n{}</ul>\n", escaped(title), lines.iter().map(|line| format!("<li>{line}</li>\n")).collect::<String>())
}

fn page(config: &Config, args: &BotSiteArgs, now: WallTime) -> String {
    let (crawl, pace) = (&config.crawl, config.pace());
    let pages = match crawl.max_pages_per_run {
        None => "as many pages as it leads to".to_owned(),
        Some(most) => format!("at most {} and then a pause of a day", counted(most, "page")),
    };
    let what = [
        "One request at a time, from the whole swarm: the access point nearest to your server asks, and no other.".to_owned(),
        format!(
            "After each answer a pause: at least {}, at least {} times as long as the answer took, and as long as your <code>Crawl-delay</code> \
             (beyond 300 s nothing is asked) or <code>Retry-After</code> says.",
            escaped(&Span(pace.min_delay_ms).to_string()),
            pace.delay_factor
        ),
        format!("HTML pages up to {} links away from where it starts, one URL of each script with a query, {pages}.", crawl.depth),
        format!(
            "A visit again after {}, asking only for what has changed where your server says so.",
            escaped(&Span(millis(crawl.revisit)).to_string())
        ),
        "Counts are kept (pages, sizes, times, status codes, links to other hosts, failures of accessibility rules), not your pages."
            .to_owned(),
    ];
    let no = [
        format!(
            "<code>robots.txt</code> is read before anything else and again after a day, and obeyed (RFC 9309). This keeps every access point \
             out:<pre>User-agent: {PROGRAM_TOKEN}\nDisallow: /</pre>"
        ),
        "Links of a page with <code>nofollow</code>, in the page or by <code>X-Robots-Tag</code>, are not followed. Pages with \
         <code>noindex</code> are counted as such; no page is shown or put into an index."
            .to_owned(),
        "429 and 503 make it wait, longer each time.".to_owned(),
        format!(
            "To have no request and no probe at all, of no access point: publish a TXT record at <code>{TXT_LABEL}.HOST</code> that says \
             <code>{PROOF_WORD}</code> (with <code>{PROOF_WORD} {DOMAIN_WORD}</code> for all hosts below that name), or for one host the file \
             <code>{PROOF_PATH}</code> whose first line is <code>{PROOF_WORD}</code>. Then tell any access point, at the contact below: it enters \
             <code>nearcrawl opt-out add HOST</code>, and all of them have stopped within seconds. It is taken back when the record or file is gone \
             and you say so."
        ),
    ];
    let contact = config.contact.as_deref().map_or_else(|| "The volunteer who runs it left no address.".to_owned(), linked);
    let mut who = vec![
        format!("It introduces itself as <code>{}</code>.", escaped(&config.user_agent())),
        format!("Questions and complaints: {contact}"),
    ];
    who.extend(args.range.iter().map(|range| format!("It may ask from <code>{range}</code>.")));
    who.extend(args.member.iter().map(|member| format!("Member of the swarm: <code>{member}</code>")));
    format!(
        "{}<main>\n<h1>{PROGRAM_TOKEN}, a web crawler run by volunteers</h1>\n<p>It counts and describes public web servers for research. This page is for \
         the people whose servers it visits.</p>\n{}{}{}<p>For programs: <a href=\"crawler.json\">crawler.json</a>. As of {}.</p>\n</main>\n</body>\n</html>\n",
        page_head(&format!("{PROGRAM_TOKEN}: for owners of web sites")),
        section("What it does at your server", &what),
        section("How to say no", &no),
        section("Who it is", &who),
        escaped(&now.to_string()),
    )
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
        assert!(!page.contains("http://") && !page.contains("https://"), "no outside resource");
    }

    #[test]
    fn what_the_configuration_says_cannot_become_markup() {
        let (page, _) = written("contact = \"https://museum.or.ke/<script>x</script>\"\n");
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
    }
}
