//! What a server is to expect of this daemon and its swarm, for owners of web sites.
//!
//! These are all limits in numbers, from the configuration and the constants that hold them: the page of `bot-site` and `/bot` of the API
//! say the same. What stands in backquotes is to be taken literally.

use crate::io::{fetcher::MAX_RETRY_AFTER, prober::CONNECTS};
use crate::node::{
    clock::millis,
    config::{Config, DelegationPolicy},
};
use nearcrawl_core::{
    crawl::{
        politeness::{FIRST_BACK_OFF, MAX_BACK_OFF, MAX_CRAWL_DELAY},
        site::robots::PROGRAM_TOKEN,
    },
    delegation::contacts::{MAX_IN_BLOCK, WINDOW},
};
use nearcrawl_model::{
    fetch::ProbeKind,
    opt_out::{DOMAIN_WORD, PROOF_PATH, PROOF_WORD, TXT_LABEL},
    time::Millis,
    view::{Span, counted},
};

/// What owners of web sites are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// What is done at a server.
    pub done: Vec<String>,
    /// How requests are kept away.
    pub kept_away: Vec<String>,
    /// Whom to ask.
    pub who: Vec<String>,
}

impl Visits {
    /// By this configuration.
    pub fn by(config: &Config) -> Visits {
        let mut done = paces(config);
        done.extend([sizes(config), reach(config), again(config)]);
        done.extend(probes(config));
        done.push(
            "Counts are kept (pages, sizes, times, status codes, links to other hosts, failures of accessibility rules), not your pages."
                .to_owned(),
        );
        Visits { done, kept_away: kept_away(), who: who(config) }
    }
}

/// A time in few words: days, hours or minutes without a rest of nothing.
fn time(length: Millis) -> String {
    match length {
        whole if whole > 0 && whole.is_multiple_of(86_400_000) => counted(whole / 86_400_000, "day"),
        whole if whole > 0 && whole.is_multiple_of(3_600_000) => counted(whole / 3_600_000, "hour"),
        other => Span(other).to_string(),
    }
}

fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn paces(config: &Config) -> Vec<String> {
    let (pace, crawl) = (config.pace(), &config.crawl);
    vec![
        "Pages and robots.txt are asked for by one access point of the swarm at a time, that which the swarm has chosen for your server's network, \
         over one connection and one request after the other."
            .to_owned(),
        format!(
            "After each answer a pause: at least {}, at least {} times as long as the answer took, and as long as your `Crawl-delay` says (beyond \
             {} s nothing is asked).",
            time(pace.min_delay_ms),
            pace.delay_factor,
            MAX_CRAWL_DELAY / 1_000
        ),
        format!(
            "429 and 503 make it wait {}, after each further one twice as long, up to {}; a `Retry-After` is kept to up to {}.",
            time(FIRST_BACK_OFF),
            time(MAX_BACK_OFF),
            time(MAX_RETRY_AFTER)
        ),
        format!(
            "Of one /24 (/48 of IPv6) this access point visits at most {} at once.",
            counted(u64::from(crawl.max_parallel_per_subnet), "server")
        ),
    ]
}

fn sizes(config: &Config) -> String {
    let fetch = &config.fetch;
    format!(
        "Of an answer at most {} are read, for at most {}; the connection is closed after {} without a request.",
        size(fetch.max_body_size),
        time(millis(fetch.total_timeout)),
        time(millis(fetch.keep_alive))
    )
}

fn reach(config: &Config) -> String {
    let crawl = &config.crawl;
    let pages = match crawl.max_pages_per_run {
        None => "as many pages as it leads to".to_owned(),
        Some(most) => format!("at most {} and then a pause of a day", counted(most, "page")),
    };
    format!("HTML pages up to {} links away from where it starts, one URL of each script with a query, {pages}.", crawl.depth)
}

fn again(config: &Config) -> String {
    format!("A visit again after {}, asking only for what has changed where your server says so.", time(millis(config.crawl.revisit)))
}

/// What other access points do at a server whose pages they do not ask for.
fn probes(config: &Config) -> Vec<String> {
    let delegation = &config.delegation;
    let surveyed = "A survey of distances may have each access point of the swarm measure your server, once.".to_owned();
    if delegation.policy == DelegationPolicy::Random {
        return vec![surveyed];
    }
    let what = match delegation.probe {
        ProbeKind::Tcp => format!("{CONNECTS} TCP connections to your server, one after the other, each closed at once without a word"),
        ProbeKind::HttpHead => "one connection to your server with one question, `HEAD /robots.txt`".to_owned(),
    };
    let days = WINDOW / 86_400_000;
    vec![
        format!(
            "Other access points measure how far away your server is, to find the nearest: a measurement is {what}. A network gets at most {} of them by the \
             whole swarm in {days} days, a /24 (/48 of IPv6) at most {MAX_IN_BLOCK}, and no access point measures a network twice in that time.",
            delegation.max_contacts_per_subnet
        ),
        surveyed,
    ]
}

fn kept_away() -> Vec<String> {
    vec![
        format!(
            "`robots.txt` is read before any page and again after a day, and obeyed (RFC 9309). This keeps every access point from your pages:\n\
             User-agent: {PROGRAM_TOKEN}\nDisallow: /"
        ),
        "Links of a page with `nofollow`, in the page or by `X-Robots-Tag`, are not followed. Pages with `noindex` are counted as such; no page is \
         shown or put into an index."
            .to_owned(),
        format!(
            "To have no request and no measurement at all, of no access point: publish a TXT record at `{TXT_LABEL}.HOST` that says `{PROOF_WORD}` (with \
             `{PROOF_WORD} {DOMAIN_WORD}` for all hosts below that name), or for one host the file `{PROOF_PATH}` whose first line is `{PROOF_WORD}`. \
             Then tell any access point, at the contact below: it enters `nearcrawl opt-out add HOST`, and all of them have stopped within seconds. \
             It is taken back when the record or file is gone and you say so."
        ),
    ]
}

fn who(config: &Config) -> Vec<String> {
    let whom = match &config.contact {
        None => "The volunteer who runs it left no address.".to_owned(),
        Some(page) if page.contains("://") => format!("The volunteer who runs it left no address to write to, but this page: {page}"),
        Some(contact) => format!("Questions and complaints: {contact}"),
    };
    let page = config.page.as_ref().map(|page| format!("What it does: {page}"));
    [format!("It introduces itself as `{}`.", config.user_agent()), whom].into_iter().chain(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let visits = Visits::by(&Config::parse(text, std::path::Path::new("node.toml")).unwrap());
        [visits.done, visits.kept_away, visits.who].concat().join("\n")
    }

    #[test]
    fn measurements_by_others_are_told_with_their_limits() {
        let usual = said("contact = \"me@museum.or.ke\"");
        for part in [
            "3 TCP connections",
            "at most 15 of them by the whole swarm in 30 days, a /24 (/48 of IPv6) at most 30",
            "make it wait 30 s, after each further one twice as long, up to 1 hour",
            "kept to up to 1 day",
            "at most 8 MiB are read, for at most 1 min 0 s",
            "at most 4 servers at once",
            "beyond 300 s",
            "Questions and complaints: me@museum.or.ke",
        ] {
            assert!(usual.contains(part), "{part}: {usual}");
        }
        assert!(!usual.contains("no other"), "{usual}");
        let other = said("[delegation]\nprobe = \"http-head\"\nmax_contacts_per_subnet = 7\n[fetch]\nmax_body_size = \"64KiB\"");
        assert!(
            other.contains("HEAD /robots.txt") && other.contains("at most 7 of them") && other.contains("at most 64 KiB are read"),
            "{other}"
        );
    }

    #[test]
    fn a_page_is_no_address_for_complaints() {
        let said = said("contact = \"https://museum.or.ke/bot\"");
        assert!(
            !said.contains("complaints: ") && said.contains("no address to write to, but this page: https://museum.or.ke/bot"),
            "{said}"
        );
    }
}
