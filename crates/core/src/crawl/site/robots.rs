//! Rules of robots.txt by RFC 9309, matched in time linear in the path whatever the file contains.

mod matcher;
mod parser;
#[cfg(test)]
mod tests;

use matcher::{Literals, Wildcards};
use nearcrawl_model::{
    facts::{MAX_TITLE, RobotsSummary, cleaned},
    fetch::FetchError,
    time::Millis,
};
use std::borrow::Cow;

/// The product token of the program, whatever an access point calls itself.
pub const PROGRAM_TOKEN: &str = "nearcrawl";

/// The rules of one robots.txt for one crawler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    /// Allows hold for the path as it is written.
    allow: Literals,
    /// Disallows hold for every spelling of the path.
    disallow: Literals,
    wildcards: Wildcards,
    crawl_delay: Option<Millis>,
    content_usage: Option<String>,
    simplified: usize,
}

/// What the answer to a request for robots.txt means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsVerdict {
    /// These rules hold; all is allowed if the server has no robots.txt.
    Rules(Robots),
    /// The server cannot say now, so nothing may be fetched until it can (RFC 9309 §2.3.1.4).
    Unavailable,
}

impl RobotsVerdict {
    /// Whether a page may be fetched.
    pub fn allows(&self, path_and_query: &str) -> bool {
        match self {
            RobotsVerdict::Rules(rules) => rules.allows(path_and_query),
            RobotsVerdict::Unavailable => false,
        }
    }

    #[cfg(test)]
    /// The rules to apply: everything is disallowed while robots.txt is unavailable.
    pub(crate) fn into_rules(self) -> Robots {
        match self {
            RobotsVerdict::Rules(rules) => rules,
            RobotsVerdict::Unavailable => Robots::disallow_all(),
        }
    }
}

/// Reads the answer to a request for robots.txt: status and body, or why there is none. Redirects have been followed before;
/// one that could not be followed is a file that is not there (RFC 9309 §2.3.1.2).
pub fn verdict(answer: Result<(u16, &[u8]), FetchError>, product_token: &str) -> RobotsVerdict {
    match answer {
        Ok((200..=299, body)) => RobotsVerdict::Rules(Robots::parse(body, product_token)),
        // A server that asks for patience is not one without rules.
        Ok((429, _)) => RobotsVerdict::Unavailable,
        Ok((300..=499, _)) => RobotsVerdict::Rules(Robots::allow_all()),
        Ok(_) | Err(_) => RobotsVerdict::Unavailable,
    }
}

impl Robots {
    /// Reads the rules of a robots.txt that apply to the crawler with this product token: those of all groups that name it,
    /// or else those of all groups for `*`. Never fails: what is not a rule is skipped.
    ///
    /// What is said to [`PROGRAM_TOKEN`] holds for every access point, whatever its operator calls it: of the groups that name the own
    /// token only the Disallows are added to it.
    pub fn parse(body: &[u8], product_token: &str) -> Robots {
        let mut group = parser::parse(body, product_token);
        if !product_token.eq_ignore_ascii_case(PROGRAM_TOKEN) {
            let program = parser::parse(body, PROGRAM_TOKEN);
            if program.named {
                let own = std::mem::replace(&mut group, program);
                if own.named {
                    group.rules.extend(own.rules.into_iter().filter(|rule| !rule.allow));
                    group.crawl_delay = group.crawl_delay.max(own.crawl_delay);
                    group.content_usage = group.content_usage.or(own.content_usage);
                }
            }
        }
        let mut robots = Robots::allow_all();
        robots.crawl_delay = group.crawl_delay;
        robots.content_usage = group.content_usage.and_then(|usage| cleaned(&String::from_utf8_lossy(usage), MAX_TITLE));
        let (mut allow, mut disallow) = (Vec::new(), Vec::new());
        for rule in group.rules {
            let written = matcher::normal_pattern(rule.pattern);
            let pattern = if rule.allow { Cow::Borrowed(written.as_slice()) } else { matcher::decode_unreserved(&written) };
            let plain = if rule.allow { &mut allow } else { &mut disallow };
            if rule.allow
                && let Some(folder) = pattern.strip_suffix(b"index.html")
                && folder.ends_with(b"/")
            {
                // Who allows the index page means the folder too, as Google reads it.
                robots.simplified += usize::from(!robots.wildcards.push(&[folder, b"$"].concat(), true));
            }
            match memchr::memchr2(b'*', b'$', &pattern) {
                None => plain.push(pattern.into_owned()),
                Some(first) => {
                    if !robots.wildcards.push(&pattern, rule.allow) {
                        robots.simplified += 1;
                        if !rule.allow {
                            plain.push(pattern[..first].to_vec());
                        }
                    }
                }
            }
        }
        robots.allow = Literals::new(allow);
        robots.disallow = Literals::new(disallow);
        robots.wildcards.sort();
        robots
    }

    /// No rules: everything may be fetched.
    pub(crate) fn allow_all() -> Robots {
        Robots {
            allow: Literals::default(),
            disallow: Literals::default(),
            wildcards: Wildcards::default(),
            crawl_delay: None,
            content_usage: None,
            simplified: 0,
        }
    }

    #[cfg(test)]
    /// Nothing may be fetched, except robots.txt itself.
    pub(crate) fn disallow_all() -> Robots {
        Robots { disallow: Literals::new(vec![b"/".to_vec()]), ..Robots::allow_all() }
    }

    /// Whether a page may be fetched, by its path and query as they stand in the request. The longest rule that matches
    /// decides, an Allow where two are equally long; `/robots.txt` may always be fetched.
    pub fn allows(&self, path_and_query: &str) -> bool {
        path_and_query == "/robots.txt" || self.decide(path_and_query, &mut 0)
    }

    /// How long the server wants to be left alone between two requests, if it says so.
    pub(crate) fn crawl_delay(&self) -> Option<Millis> {
        self.crawl_delay
    }

    /// How the server wants its content to be used (`Content-Usage`), if it says so.
    pub(crate) fn content_usage(&self) -> Option<&str> {
        self.content_usage.as_deref()
    }

    /// What the rules come to.
    pub(crate) fn summary(&self) -> RobotsSummary {
        let bars = !self.disallow.is_empty() || self.wildcards.has(false);
        let opens = !self.allow.is_empty() || self.wildcards.has(true);
        if !bars {
            RobotsSummary::AllowsAll
        } else if !opens && ["/", "/any/page"].iter().all(|path| !self.decide(path, &mut 0)) {
            RobotsSummary::BarsAll
        } else {
            RobotsSummary::BarsSome
        }
    }

    #[cfg(test)]
    /// How many rules were simplified because there were more than [`MAX_WILDCARD_RULES`].
    pub(crate) fn simplified(&self) -> usize {
        self.simplified
    }

    /// Decides by the rules alone, and counts what it cost: patterns looked at and bytes walked over.
    fn decide(&self, path_and_query: &str, steps: &mut usize) -> bool {
        // The path of a URL is never empty.
        let path = if path_and_query.is_empty() { "/" } else { path_and_query };
        let written = matcher::upper_case_escapes(path);
        let encoded = matcher::encode(&written);
        let decoded = matcher::decode_unreserved(&encoded);
        let allow = self.allow.longest_match(&written, steps).unwrap_or(0);
        let disallow = self.disallow.longest_match(&decoded, steps).unwrap_or(0);
        let literal = if disallow > allow { (disallow, false) } else { (allow, true) };
        self.wildcards.decide(&written, &decoded, literal, steps)
    }
}
