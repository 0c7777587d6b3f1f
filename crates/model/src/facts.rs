//! Facts about a server from its answers, besides their pages.
//!
//! Each [`Fact`] is read off answers that are requested anyway.
//!
//! Most facts are written down once a run, when they are met for the first time; a journal has a few hundred bytes of them.

use super::{
    time::{Millis, WallTime},
    view::Span,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// The longest title or declared wish, in bytes.
pub const MAX_TITLE: usize = 120;

/// The longest of the other texts of a fact, in bytes.
pub const MAX_WORD: usize = 64;

/// How many protocols of one server are told.
pub const MAX_OFFERS: usize = 4;

/// The longest time that a distance may have, in microseconds: a minute.
const MAX_DISTANCE_US: u32 = 60_000_000;

/// A server's text on one line: without control characters, blanks in a row as one, cut at so many bytes; none if nothing is left.
pub fn cleaned(text: &str, most: usize) -> Option<String> {
    let mut clean = String::new();
    // Ten times as many characters are looked at, at most: a title may be all blanks.
    for c in text.chars().take(10 * most).map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| is_shown(*c)) {
        if clean.len() + c.len_utf8() > most {
            break;
        }
        if c != ' ' || !(clean.is_empty() || clean.ends_with(' ')) {
            clean.push(c);
        }
    }
    clean.truncate(clean.trim_end().len());
    (!clean.is_empty()).then_some(clean)
}

/// No control character, and none that changes the direction of what stands around it.
fn is_shown(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether a text is as [`cleaned`] leaves it, by length and characters.
fn is_clean(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && text.chars().all(is_shown)
}

/// The HTTP version of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3.
    #[serde(rename = "3")]
    Http3,
}

impl HttpVersion {
    /// As people write it, behind `HTTP/`.
    pub const fn name(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "1.0",
            HttpVersion::Http11 => "1.1",
            HttpVersion::Http2 => "2",
            HttpVersion::Http3 => "3",
        }
    }
}

/// The version of TLS that a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// As people write it, behind `TLS `.
    pub const fn name(self) -> &'static str {
        match self {
            TlsVersion::Tls12 => "1.2",
            TlsVersion::Tls13 => "1.3",
        }
    }
}

/// A server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Certificate {
    /// The organisation that issued it, or else the issuer's common name.
    pub issuer: String,
    /// It is valid from then on.
    #[schema(value_type = String, format = DateTime)]
    pub not_before_at: WallTime,
    /// It is valid until then.
    #[schema(value_type = String, format = DateTime)]
    pub not_after_at: WallTime,
}

/// From where a distance was measured: as far as the hierarchy knows, never an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Vantage {
    /// ISO 3166 code of the country; none if it is not known.
    pub country: Option<String>,
    /// The number of the autonomous system; none if it is not known.
    pub asn: Option<u32>,
}

/// Who makes the guard in front of a server, by the marks that it leaves on answers, whether it lets requests through or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Cloudflare.
    Cloudflare,
    /// The web application firewall of AWS.
    AwsWaf,
    /// Vercel's firewall.
    Vercel,
    /// DataDome.
    DataDome,
    /// Sucuri.
    Sucuri,
    /// DDoS-Guard.
    DdosGuard,
    /// Imperva, once Incapsula.
    Imperva,
    /// Akamai.
    Akamai,
    /// Anubis, which asks for a proof of work.
    Anubis,
}

impl Guard {
    /// Its name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Guard::Cloudflare => "Cloudflare",
            Guard::AwsWaf => "AWS WAF",
            Guard::Vercel => "Vercel",
            Guard::DataDome => "DataDome",
            Guard::Sucuri => "Sucuri",
            Guard::DdosGuard => "DDoS-Guard",
            Guard::Imperva => "Imperva",
            Guard::Akamai => "Akamai",
            Guard::Anubis => "Anubis",
        }
    }
}

/// What a server's robots.txt comes to for this crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RobotsSummary {
    /// There is none.
    Absent,
    /// It allows everything.
    AllowsAll,
    /// It bars some paths.
    BarsSome,
    /// It bars this crawler from everything.
    BarsAll,
    /// It could not be had, which counts as a refusal of everything.
    Unavailable,
}

impl RobotsSummary {
    /// As a few words.
    pub const fn words(self) -> &'static str {
        match self {
            RobotsSummary::Absent => "there is none",
            RobotsSummary::AllowsAll => "allows everything",
            RobotsSummary::BarsSome => "bars some paths",
            RobotsSummary::BarsAll => "bars this crawler from everything",
            RobotsSummary::Unavailable => "could not be had",
        }
    }
}

/// What a page says of itself: the server's front page, or its first one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrontPage {
    /// The language that it declares, as a tag (`pt-BR`).
    pub language: Option<String>,
    /// The script of most of its letters (ISO 15924 code).
    pub script: Option<String>,
    /// The character encoding that it is read by.
    pub charset: Option<String>,
    /// The program that made it, as the page declares.
    pub generator: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// `tdm-reservation` of a meta element.
    pub tdm_reserved: Option<bool>,
}

impl FrontPage {
    fn is_plausible(&self) -> bool {
        let words = [&self.language, &self.script, &self.charset, &self.generator];
        words.into_iter().flatten().all(|word| is_clean(word, MAX_WORD))
            && self.title.as_ref().is_none_or(|title| is_clean(title, MAX_TITLE))
    }
}

/// One thing that an answer says of its server. Journals name them by their place: new ones come at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fact {
    /// How long a TCP connect took, in microseconds, and from where.
    Distance {
        /// In microseconds.
        rtt_us: u32,
        /// From where.
        vantage: Vantage,
    },
    /// The version that it answers in.
    Http(HttpVersion),
    /// The protocols that it offers besides, by their identifiers (`Alt-Svc`).
    AltSvc(Vec<String>),
    /// The version of TLS.
    Tls(TlsVersion),
    /// Its certificate.
    Certificate(Certificate),
    /// For how many seconds it wants to be asked by https only (`Strict-Transport-Security`).
    Hsts(u64),
    /// It redirects from http to https.
    RedirectsToHttps,
    /// The guard in front of it.
    Guard(Guard),
    /// How it wants its content to be used (`Content-Usage`).
    ContentUsage(String),
    /// Whether it reserves text and data mining (`tdm-reservation`).
    TdmReservation(bool),
    /// What its front page says of itself, in place of what a page said before.
    FrontPage(FrontPage),
}

impl Fact {
    /// Whether an honest owner can have written this.
    pub fn is_plausible(&self) -> bool {
        match self {
            Fact::Distance { rtt_us, vantage } => {
                let is_code = |code: &String| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
                *rtt_us <= MAX_DISTANCE_US && vantage.country.as_ref().is_none_or(is_code)
            }
            Fact::AltSvc(offers) => offers.len() <= MAX_OFFERS && offers.iter().all(|offer| is_clean(offer, MAX_WORD)),
            Fact::Certificate(certificate) => is_clean(&certificate.issuer, MAX_WORD),
            Fact::ContentUsage(usage) => is_clean(usage, MAX_TITLE),
            Fact::FrontPage(page) => page.is_plausible(),
            Fact::Http(_) | Fact::Tls(_) | Fact::Hsts(_) | Fact::RedirectsToHttps | Fact::Guard(_) | Fact::TdmReservation(_) => true,
        }
    }
}

/// What is known of a server besides its pages: read off answers that were asked for anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ServerFacts {
    /// Its distance, as its owner measured it: how long a TCP connect took, in microseconds (in JSON milliseconds).
    #[serde(rename = "rtt_ms", with = "as_ms")]
    #[schema(value_type = Option<f64>)]
    pub rtt_us: Option<u32>,
    /// The shortest time from a request to the first byte of its answer, from the same place, in microseconds (in JSON milliseconds).
    #[serde(rename = "first_byte_ms", with = "as_ms")]
    #[schema(value_type = Option<f64>)]
    pub first_byte_us: Option<u32>,
    /// From where both were measured.
    pub vantage: Option<Vantage>,
    /// The HTTP version that it answers in.
    pub http_version: Option<HttpVersion>,
    /// The protocols that it offers besides (`Alt-Svc`), at most 4.
    pub alt_svc: Vec<String>,
    /// The version of TLS; none if it was not asked by https, or has none.
    pub tls_version: Option<TlsVersion>,
    /// Its certificate.
    pub certificate: Option<Certificate>,
    /// For how long it wants to be asked by https only (`Strict-Transport-Security`), in milliseconds.
    pub hsts_ms: Option<Millis>,
    /// Whether it redirects from http to https.
    pub redirects_to_https: bool,
    /// Who makes the guard in front of it, let through or not.
    pub guard: Option<Guard>,
    /// The language that its front page declares.
    pub language: Option<String>,
    /// The script of most letters of its front page (ISO 15924 code).
    pub script: Option<String>,
    /// The character encoding of its front page, as detected.
    pub charset: Option<String>,
    /// The program that made its front page, as the page declares.
    pub generator: Option<String>,
    /// The title of its front page.
    pub title: Option<String>,
    /// What its robots.txt comes to for this crawler.
    pub robots: Option<RobotsSummary>,
    /// How it wants its content to be used, by the header `Content-Usage`.
    pub content_usage: Option<String>,
    /// The same by the first such line of its robots.txt that holds for this crawler.
    pub robots_content_usage: Option<String>,
    /// Whether it reserves text and data mining (`tdm-reservation`), by a header or else a meta element.
    pub tdm_reserved: Option<bool>,
}

impl ServerFacts {
    /// The HTTP version that it answers in, and the best it offers besides, as one of few values.
    pub fn http_word(&self) -> String {
        let Some(version) = self.http_version else { return "unknown".to_owned() };
        let best =
            ["h3", "h2"].into_iter().find(|best| self.alt_svc.iter().any(|offer| offer == best || offer.starts_with(&format!("{best}-"))));
        best.map_or_else(|| version.name().to_owned(), |best| format!("{}, offers {best}", version.name()))
    }

    /// The version of TLS as one of few values.
    pub fn tls_word(&self) -> &'static str {
        match self.tls_version {
            Some(version) => version.name(),
            None if self.http_version.is_some() => "none",
            None => "unknown",
        }
    }

    /// The script as one of few values.
    pub fn script_word(&self) -> &str {
        self.script.as_deref().filter(|code| code.len() == 4).unwrap_or("unknown")
    }
}

/// Microseconds as JSON has them: milliseconds, with a fraction.
mod as_ms {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(us: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        us.map(|us| f64::from(us) / 1_000.0).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        let millis = Option::<f64>::deserialize(deserializer)?;
        Ok(millis.map(|millis| (millis * 1_000.0).round() as u32))
    }
}

/// `Apache/2.4.57 (Debian)` → `Apache`: the name of a server's software alone, so that values stay few; `unknown` if it has none.
pub fn software_word(software: Option<&str>) -> String {
    let name = software.and_then(|software| software.split(['/', ' ', '(']).next()).filter(|name| !name.is_empty());
    name.unwrap_or("unknown").chars().take(40).collect()
}

/// `pt-BR` → `pt`: a language tag without region or script, as one of few values; `undeclared` if pages have none, `unknown` if there is no
/// page that could have one.
pub fn language_word(tag: Option<&str>, pages: u64) -> String {
    let primary = tag.and_then(|tag| tag.split('-').next()).unwrap_or_default();
    let is_code = (2..=3).contains(&primary.len()) && primary.bytes().all(|byte| byte.is_ascii_alphabetic());
    match tag {
        _ if is_code => primary.to_ascii_lowercase(),
        None if pages == 0 => "unknown".to_owned(),
        _ => "undeclared".to_owned(),
    }
}

/// The family of an address in a word.
pub fn family_word(address: Option<IpAddr>) -> &'static str {
    match address {
        Some(address) if address.to_canonical().is_ipv4() => "ipv4",
        Some(_) => "ipv6",
        None => "unknown",
    }
}

/// The version of the rule set by which pages were evaluated, in a word.
pub fn rule_set_word(version: Option<u32>) -> String {
    version.map_or_else(|| "none".to_owned(), |version| version.to_string())
}

impl ServerFacts {
    /// What is known, for people: names and values.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
        say("answers in", self.answers_in());
        say("http", self.http_version.map(|version| self.http_line(version)));
        say("tls", self.tls_version.map(|version| self.tls_line(version)));
        say("guard", self.guard.map(|guard| guard.name().to_owned()));
        say("title", self.title.clone());
        let page = [&self.language, &self.script, &self.charset].into_iter().flatten().cloned().collect::<Vec<_>>();
        say("language", (!page.is_empty()).then(|| page.join(", ")));
        say("made by", self.generator.clone());
        say("wishes", self.wishes());
        lines
    }

    fn answers_in(&self) -> Option<String> {
        let rtt = self.rtt_us.map(|us| format!("{} away", span(us)));
        let first = self.first_byte_us.map(|us| format!("first byte after {}", span(us)));
        let told: Vec<_> = rtt.into_iter().chain(first).collect();
        let vantage = self.vantage.as_ref().filter(|vantage| **vantage != Vantage::default());
        let from = vantage.map_or_else(String::new, |vantage| {
            let asn = vantage.asn.map(|asn| format!("AS{asn}"));
            let parts: Vec<_> = vantage.country.iter().cloned().chain(asn).collect();
            format!(" (from {})", parts.join(", "))
        });
        (!told.is_empty()).then(|| format!("{}{from}", told.join(", ")))
    }

    fn http_line(&self, version: HttpVersion) -> String {
        let offers = if self.alt_svc.is_empty() { String::new() } else { format!(", offers {}", self.alt_svc.join(", ")) };
        let moves = if self.redirects_to_https { ", redirects to https" } else { "" };
        let hsts = self.hsts_ms.map_or_else(String::new, |hsts| format!(", https only for {}", Span(hsts)));
        format!("HTTP/{}{offers}{moves}{hsts}", version.name())
    }

    fn tls_line(&self, version: TlsVersion) -> String {
        let certificate = self.certificate.as_ref().map_or_else(String::new, |certificate| {
            let day = |at: WallTime| at.to_string().chars().take(10).collect::<String>();
            let (from, until) = (day(certificate.not_before_at), day(certificate.not_after_at));
            format!(", certificate of {}, {from} to {until}", certificate.issuer)
        });
        format!("TLS {}{certificate}", version.name())
    }

    fn wishes(&self) -> Option<String> {
        let header = self.content_usage.as_ref().map(|usage| format!("Content-Usage: {usage}"));
        let robots = self.robots_content_usage.as_ref().map(|usage| format!("Content-Usage in robots.txt: {usage}"));
        let tdm = self.tdm_reserved.map(|reserved| format!("text and data mining {}", if reserved { "reserved" } else { "not reserved" }));
        let told: Vec<_> = header.into_iter().chain(robots).chain(tdm).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn span(us: u32) -> String {
    let millis = f64::from(us) / 1_000.0;
    if us < 10_000 { format!("{millis:.1} ms") } else { format!("{} ms", millis.round() as Millis) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_servers_are_one_short_line() {
        assert_eq!(cleaned(" a\n\t b\u{202e}\x1b[2J ", 20).as_deref(), Some("a b[2J"));
        assert_eq!(cleaned("ééé", 5).as_deref(), Some("éé"), "no letter is cut in two");
        assert_eq!(cleaned(" \n\u{feff}", 5), None);
        assert_eq!(cleaned(&" x".repeat(1_000), 4).as_deref(), Some("x x"));
        assert!(!Fact::ContentUsage("a\nb".to_owned()).is_plausible() && !Fact::ContentUsage("x".repeat(MAX_TITLE + 1)).is_plausible());
        let far = |country: &str| Fact::Distance { rtt_us: 1, vantage: Vantage { country: Some(country.to_owned()), asn: None } };
        assert!(far("KE").is_plausible() && !far("Kenya").is_plausible());
    }

    #[test]
    fn few_values_for_the_splits() {
        let mut known = ServerFacts { script: Some("Latn".to_owned()), ..ServerFacts::default() };
        assert_eq!((known.script_word(), known.tls_word()), ("Latn", "unknown"));
        known.http_version = Some(HttpVersion::Http11);
        assert_eq!((known.tls_word(), known.http_word().as_str()), ("none", "1.1"));
        let languages = [(Some("pt-BR"), 1), (Some("SW"), 0), (Some("english"), 1), (None, 1), (None, 0)];
        let words = languages.map(|(tag, pages)| language_word(tag, pages));
        assert_eq!(
            words,
            ["pt", "sw", "undeclared", "undeclared", "unknown"],
            "a server without a page declares no language and leaves none out"
        );
        assert_eq!(
            [None, Some("::ffff:9.0.0.1"), Some("2001:db8::1")].map(|text| family_word(text.map(|text| text.parse().unwrap()))),
            ["unknown", "ipv4", "ipv6"]
        );
    }

    #[test]
    fn json_has_milliseconds_and_comes_back() {
        let known = ServerFacts { rtt_us: Some(8_250), hsts_ms: Some(300_000), ..ServerFacts::default() };
        let json = serde_json::to_value(&known).unwrap();
        assert_eq!((&json["rtt_ms"], &json["hsts_ms"], &json["first_byte_ms"]), (&8.25.into(), &300_000.into(), &serde_json::Value::Null));
        assert_eq!(serde_json::from_value::<ServerFacts>(json).unwrap(), known);
        assert_eq!(serde_json::from_str::<ServerFacts>("{}").unwrap(), ServerFacts::default(), "of an earlier version");
        for us in [0, 1, 999, 1_001, 59_999_999, u32::MAX] {
            let json = serde_json::to_string(&ServerFacts { rtt_us: Some(us), ..ServerFacts::default() }).unwrap();
            assert_eq!(serde_json::from_str::<ServerFacts>(&json).unwrap().rtt_us, Some(us));
        }
    }

    #[test]
    fn a_server_s_facts_are_few_bytes() {
        let title = |letter: &str| FrontPage { title: Some(letter.repeat(MAX_TITLE / letter.len())), ..FrontPage::default() };
        let certificate =
            Certificate { issuer: "Let's Encrypt".to_owned(), not_before_at: WallTime(1 << 40), not_after_at: WallTime(1 << 40) };
        let page = FrontPage {
            language: Some("en-GB".to_owned()),
            script: Some("Latn".to_owned()),
            charset: Some("UTF-8".to_owned()),
            generator: Some("WordPress 6.8.1".to_owned()),
            title: Some("The Museum of the Old Town – Home".to_owned()),
            tdm_reserved: None,
        };
        let usual = [
            Fact::Distance { rtt_us: 21_000, vantage: Vantage { country: Some("KE".to_owned()), asn: Some(64_512) } },
            Fact::Http(HttpVersion::Http11),
            Fact::AltSvc(vec!["h3".to_owned()]),
            Fact::Tls(TlsVersion::Tls13),
            Fact::Certificate(certificate),
            Fact::Hsts(31_536_000),
            Fact::Guard(Guard::Cloudflare),
            Fact::FrontPage(page),
        ];
        let size = |facts: &[Fact]| postcard::to_stdvec(facts).unwrap().len();
        assert!(size(&usual) < 160, "{} bytes", size(&usual));
        assert!([title("x"), title("é"), title("東")].map(|page| size(&[Fact::FrontPage(page)])).iter().all(|size| *size < 140));
    }
}
