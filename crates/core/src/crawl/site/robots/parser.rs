//! Parses robots.txt and keeps the groups that name our product token, else those for all crawlers.
//!
//! Accepts the mistakes that Google accepts: misspelt directives, a missing colon, a damaged byte order mark.

use nearcrawl_model::time::Millis;

/// How much of a robots.txt is read, in bytes (RFC 9309 §2.5); what stands behind is not looked at.
pub(crate) const MAX_ROBOTS: usize = 500 * 1024;

/// One Allow or Disallow line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule<'a> {
    /// Allow, or else Disallow.
    pub allow: bool,
    /// As written; not empty.
    pub pattern: &'a [u8],
}

/// All lines that hold for one crawler.
#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    /// In the order of the file.
    pub rules: Vec<Rule<'a>>,
    /// The longest that was asked for.
    pub crawl_delay: Option<Millis>,
    /// The first wish for the use of content.
    pub content_usage: Option<&'a [u8]>,
    /// Whether a group names this crawler.
    pub named: bool,
}

impl Group<'_> {
    fn delay(&mut self, delay: Millis) {
        self.crawl_delay = Some(self.crawl_delay.map_or(delay, |known| known.max(delay)));
    }
}

/// What a line says.
enum Line<'a> {
    UserAgent(&'a [u8]),
    Rule(Rule<'a>),
    /// An Allow or Disallow of nothing: no rule, but it ends the list of user agents.
    EmptyRule,
    CrawlDelay(Millis),
    ContentUsage(&'a [u8]),
    Other,
}

/// Reads the file's lines and keeps those for `product_token`.
pub(super) fn parse<'a>(body: &'a [u8], product_token: &str) -> Group<'a> {
    let (mut ours, mut everybodys) = (Group::default(), Group::default());
    // Whom the group being read is for, and whether its list of user agents may still grow.
    let (mut for_us, mut for_all, mut listing) = (false, false, false);
    for line in lines(body) {
        match read_line(line) {
            Line::UserAgent(agent) => {
                if !listing {
                    (for_us, for_all, listing) = (false, false, true);
                }
                if is_everybody(agent) {
                    for_all = true;
                } else if is_token(agent, product_token) {
                    for_us = true;
                    ours.named = true;
                }
            }
            Line::Rule(rule) => {
                listing = false;
                if for_us {
                    ours.rules.push(rule);
                }
                if for_all {
                    everybodys.rules.push(rule);
                }
            }
            Line::EmptyRule => listing = false,
            // Not one of the RFC's own lines, so it must not end a group (§2.2.4).
            Line::CrawlDelay(delay) => {
                if for_us {
                    ours.delay(delay);
                }
                if for_all {
                    everybodys.delay(delay);
                }
            }
            Line::ContentUsage(usage) => {
                if for_us {
                    ours.content_usage.get_or_insert(usage);
                }
                if for_all {
                    everybodys.content_usage.get_or_insert(usage);
                }
            }
            Line::Other => {}
        }
    }
    if ours.named { ours } else { everybodys }
}

/// The lines of the file, however they end; at most [`MAX_ROBOTS`] bytes of it.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = match body.get(..MAX_ROBOTS) {
        // A line that was cut in two would be another rule: half of `Disallow: /private` closes the site.
        Some(head) if body.len() > MAX_ROBOTS => &head[..memchr::memrchr2(b'\n', b'\r', head).unwrap_or(0)],
        _ => body,
    };
    // As much of a byte order mark as there is.
    let mark = body.iter().zip(b"\xEF\xBB\xBF").take_while(|(byte, mark)| byte == mark).count();
    body[mark..].split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty())
}

fn read_line(line: &[u8]) -> Line<'_> {
    let Some((key, value)) = key_and_value(line) else { return Line::Other };
    let is = |names: &[&str]| names.iter().any(|name| key.len() >= name.len() && key[..name.len()].eq_ignore_ascii_case(name.as_bytes()));
    let rule = |allow| if value.is_empty() { Line::EmptyRule } else { Line::Rule(Rule { allow, pattern: value }) };
    if is(&["user-agent", "useragent", "user agent"]) {
        Line::UserAgent(value)
    } else if is(&["allow"]) {
        rule(true)
    } else if is(&["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"]) {
        rule(false)
    } else if is(&["crawl-delay", "crawldelay", "crawl delay"]) {
        delay(value).map_or(Line::Other, Line::CrawlDelay)
    } else if is(&["content-usage"]) && !value.is_empty() {
        Line::ContentUsage(value)
    } else {
        Line::Other
    }
}

/// `key: value # comment`; also `key value`, if there is nothing more on the line.
fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = &line[..memchr::memchr(b'#', line).unwrap_or(line.len())];
    let line = line.trim_ascii();
    let (key, value) = match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => {
            let gap = memchr::memchr2(b' ', b'\t', line)?;
            let value = line[gap..].trim_ascii();
            if memchr::memchr2(b' ', b'\t', value).is_some() {
                return None;
            }
            (&line[..gap], value)
        }
    };
    let key = key.trim_ascii();
    if key.is_empty() { None } else { Some((key, value.trim_ascii())) }
}

/// `*`, alone or followed by a blank and anything.
fn is_everybody(agent: &[u8]) -> bool {
    agent.first() == Some(&b'*') && agent.get(1).is_none_or(u8::is_ascii_whitespace)
}

/// The letters, `-` and `_` that an agent begins with are its product token.
fn is_token(agent: &[u8], product_token: &str) -> bool {
    let end = agent.iter().position(|byte| !(byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))).unwrap_or(agent.len());
    end > 0 && agent[..end].eq_ignore_ascii_case(product_token.as_bytes())
}

/// Seconds, maybe with a fraction, in milliseconds.
fn delay(value: &[u8]) -> Option<Millis> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    // The conversion saturates: for ever is as long as a number can say.
    if seconds >= 0.0 { Some((seconds * 1000.0).ceil() as Millis) } else { None }
}
