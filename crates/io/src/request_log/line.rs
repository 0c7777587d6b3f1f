//! One line of the log of requests: who was asked for what, why, and what came of it.

use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, WallTime},
};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr};

/// What a line is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// A page was asked for.
    #[default]
    Page,
    /// robots.txt was asked for.
    Robots,
    /// A server's distance was measured.
    Probe,
    /// A name server was asked for a host's address.
    Dns,
    /// Lines are missing here: they could not be written.
    Gap,
    /// A daemon began to write.
    Begin,
    /// It ended cleanly. Where this is missing before a beginning it was killed, and what was under way then has no line.
    End,
}

impl RequestKind {
    /// Whether a web server was contacted.
    pub fn is_contact(self) -> bool {
        matches!(self, RequestKind::Page | RequestKind::Robots | RequestKind::Probe)
    }
}

/// One request, or what there is to say of the log itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestLine {
    /// When it was begun.
    pub asked_at: WallTime,
    /// What it was.
    pub kind: RequestKind,
    /// By which rule it was made, one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whom it was for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Where that is; of a look-up what it brought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port that was contacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Path and query; none if they are longer than is logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The SHA-256 of path and query where they are too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_sha256: Option<String>,
    /// Links from a starting URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// The host that the site tree is named after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Which run of the site, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Surveys that the host belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surveys: Vec<String>,
    /// The member for whom it was made, if not for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_point: Option<AccessPoint>,
    /// The status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_status: Option<u16>,
    /// Why there was none, one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Bytes of the body over the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// From sending the request to the last byte, or what a probe took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<Millis>,
    /// How many lines are missing in a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

impl RequestLine {
    /// A daemon begins, or ends, now.
    pub fn mark(now: WallTime, kind: RequestKind) -> RequestLine {
        RequestLine { asked_at: now, kind, ..RequestLine::default() }
    }

    /// A gap of so many lines that ends now.
    pub fn gap(now: WallTime, lines: u64) -> RequestLine {
        RequestLine { asked_at: now, kind: RequestKind::Gap, lines: Some(lines), ..RequestLine::default() }
    }

    /// Why it was made, in words.
    fn why(&self) -> String {
        let level = || self.level.unwrap_or(0);
        let mut why = match self.reason.as_str() {
            "robots" => "before anything else is asked there".to_owned(),
            "start" => "a starting URL".to_owned(),
            "link" => format!("a link, {} from a starting URL", level()),
            "redirect" => format!("a redirect, {} links from a starting URL", level()),
            "second-try" => "once more, after a failure that may have been of the moment".to_owned(),
            "delegation" => "to find the nearest owner of its subnet".to_owned(),
            "home" => "to measure the way to a member".to_owned(),
            "survey" => "once for a survey's sample".to_owned(),
            "opt-out" => "to look for the proof of an opt-out".to_owned(),
            "lookup" => "to find its address".to_owned(),
            other => other.to_owned(),
        };
        if let Some(tree) = self.tree.as_ref().filter(|tree| **tree != self.host) {
            why += &format!(", of the tree of {tree}");
        }
        match self.run {
            None | Some(0) => {}
            Some(1) => why += ", first run",
            Some(run) => why += &format!(", run {run}"),
        }
        if !self.surveys.is_empty() {
            why += &format!(", survey {}", self.surveys.join(", "));
        }
        if let Some(member) = self.access_point {
            why += &format!(", for member {member}");
        }
        why
    }
}

/// As people read it.
impl fmt::Display for RequestLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestLine { asked_at, kind, host, .. } = self;
        let kind = match kind {
            RequestKind::Page => "page",
            RequestKind::Robots => "robots",
            RequestKind::Probe => "probe",
            RequestKind::Dns => "dns",
            RequestKind::Gap => return write!(f, "{asked_at} gap    {} lines could not be written before this", self.lines.unwrap_or(0)),
            RequestKind::Begin => return write!(f, "{asked_at} begin  a daemon was started"),
            RequestKind::End => return write!(f, "{asked_at} end    it was stopped"),
        };
        write!(f, "{asked_at} {kind:<6} {host}")?;
        match (&self.path, &self.path_sha256) {
            (Some(path), _) => write!(f, "{path}")?,
            (None, Some(hash)) => write!(f, "/… (SHA-256 {hash})")?,
            (None, None) => {}
        }
        match (self.address, self.port) {
            (Some(address), Some(port)) => write!(f, " at {}", std::net::SocketAddr::new(address, port))?,
            (Some(address), None) => write!(f, " at {address}")?,
            _ => {}
        }
        write!(f, ": {};", self.why())?;
        match (self.fetch_status, &self.failure) {
            (Some(status), _) => write!(f, " {status}")?,
            (None, Some(failure)) => write!(f, " {failure}")?,
            (None, None) => write!(f, " done")?,
        }
        self.bytes.iter().try_for_each(|bytes| write!(f, ", {bytes} bytes"))?;
        self.took_ms.iter().try_for_each(|took| write!(f, ", {took} ms"))
    }
}
