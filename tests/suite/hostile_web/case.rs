//! A case of the hostile web: what a server does, what the fetcher must make of it, and what a crawl must write down.

pub use nearcrawl_model::fetch::FetchError;
use nearcrawl_model::fetch::{FetchOutcome, FetchReport};
pub use nearcrawl_test_servers::web::{Asked, Step, answer, html, pack, send};
use std::{fmt::Write, sync::Arc, time::Duration};

/// How long scaled-down servers hesitate between two bytes.
pub const SLOWLY: Duration = Duration::from_millis(50);

/// What a server does when it is asked for something else than robots.txt.
pub type Script = Arc<dyn Fn(&Asked) -> Vec<Step> + Send + Sync>;

/// How a server behaves at its endpoint.
#[derive(Clone)]
pub enum Endpoint {
    /// It waits for a request.
    Asked(Script),
    /// It does this as soon as somebody connects.
    Unasked(Vec<Step>),
    /// It speaks TLS with this certificate, and then says hello.
    Secure(&'static str),
    /// Nobody listens.
    Closed,
}

/// What the fetcher must make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A page with so many links.
    Page(usize),
    /// Something else than HTML.
    NotHtml(u16),
    /// A redirect that leads to a URL.
    Redirect(u16),
    /// Another status.
    Status(u16),
    /// A robots.txt of so many bytes.
    Robots(u16, usize),
    /// No usable answer.
    Fails(FetchError),
}
use Want::{Fails, NotHtml, Page, Redirect, Robots, Status};

/// What the record of a crawl must say: the server's status, and what is counted there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The server in one word.
    pub status: &'static str,
    /// An answer that must be counted.
    pub code: Option<u16>,
    /// A failure that must be counted.
    pub failure: Option<FetchError>,
    /// The most pages that may have been fetched.
    pub most_pages: u64,
}

/// One hostile or broken server.
#[derive(Clone)]
pub struct Case {
    /// Its host's first label.
    pub name: &'static str,
    /// The class of the threat.
    pub class: &'static str,
    pub endpoint: Endpoint,
    /// robots.txt; 404 if none is said.
    pub robots: Option<Vec<Step>>,
    /// What the fetcher must make of `/`, or of `/robots.txt` if that is [`Want::Robots`].
    pub want: Want,
    pub written: Written,
    /// Whether the crawl test includes it. Some ask for pauses of minutes.
    pub is_crawled: bool,
}

impl Case {
    fn new(class: &'static str, name: &'static str, endpoint: Endpoint, want: Want) -> Case {
        let written = match want {
            Page(_) => Written::status("up").code(200),
            NotHtml(code) | Redirect(code) => Written::status("no-pages").code(code),
            Status(code @ (401 | 403 | 429 | 451)) => Written::status("refused").code(code),
            Status(code) => Written::status("no-pages").code(code),
            Robots(200..500, _) => Written::status("up").code(200),
            Robots(..) => Written::status("robots-unavailable"),
            Fails(failure @ FetchError::Challenged) => Written::status("refused").failure(failure),
            Fails(failure) => Written::status("down").failure(failure),
        };
        Case { name, class, endpoint, robots: None, want, written, is_crawled: true }
    }

    /// Its robots.txt.
    pub fn robots(self, steps: Vec<Step>) -> Case {
        Case { robots: Some(steps), ..self }
    }

    /// What the record says where it is not what follows from the first answer.
    pub fn writes(self, written: Written) -> Case {
        Case { written, ..self }
    }

    /// Only the fetcher is tested against it.
    pub fn not_crawled(self) -> Case {
        Case { is_crawled: false, ..self }
    }

    /// How it is spoken to.
    pub fn scheme(&self) -> &'static str {
        if self.class == "W11" { "https" } else { "http" }
    }

    /// What it does when asked.
    pub fn script(&self, asked: &Asked) -> Vec<Step> {
        match &self.endpoint {
            _ if asked.path() == "/robots.txt" => self.robots.clone().unwrap_or_else(|| vec![answer("404 Not Found", "", b"")]),
            Endpoint::Asked(script) => script(asked),
            Endpoint::Unasked(steps) => steps.clone(),
            Endpoint::Secure(_) | Endpoint::Closed => Vec::new(),
        }
    }

    /// Whether `report` is what is wanted; if not, what it is.
    pub fn judge(&self, report: &FetchReport) -> Result<(), String> {
        let found = match &report.outcome {
            FetchOutcome::Page { page, .. } => Page(page.links.len()),
            FetchOutcome::NotHtml { status, .. } => NotHtml(*status),
            FetchOutcome::Redirect { status, .. } => Redirect(*status),
            FetchOutcome::Status(status) => Status(*status),
            FetchOutcome::NotModified { .. } => Status(304),
            FetchOutcome::Robots { status, body } => Robots(*status, body.len()),
            FetchOutcome::Failed(failure) => Fails(*failure),
        };
        if found == self.want { Ok(()) } else { Err(format!("{} {}: {found:?} instead of {:?}", self.class, self.name, self.want)) }
    }
}

impl Written {
    /// Only the status.
    pub fn status(status: &'static str) -> Written {
        Written { status, code: None, failure: None, most_pages: 12 }
    }

    /// With an answer of this code.
    pub fn code(self, code: u16) -> Written {
        Written { code: Some(code), ..self }
    }

    /// With this failure.
    pub fn failure(self, failure: FetchError) -> Written {
        Written { failure: Some(failure), ..self }
    }

    /// Whether a record says so; if not, what it says.
    pub fn judge(&self, record: &serde_json::Value) -> Result<(), String> {
        let code = self.code.is_none_or(|code| record["by_status"][code.to_string()].as_u64() >= Some(1));
        let failure = self.failure.is_none_or(|failure| {
            let name = serde_json::to_value(failure).unwrap();
            record["by_failure"][name.as_str().unwrap()].as_u64() >= Some(1)
        });
        let pages = record["pages"].as_u64().is_some_and(|pages| pages <= self.most_pages && (pages > 0) == (self.status == "up"));
        if record["status"] == self.status && code && failure && pages { Ok(()) } else { Err(format!("{self:?} but {record}")) }
    }
}

/// A server that always does the same.
pub fn case(class: &'static str, name: &'static str, steps: Vec<Step>, want: Want) -> Case {
    Case::new(class, name, Endpoint::Asked(Arc::new(move |_| steps.clone())), want)
}

/// A server whose answer depends on what is asked.
pub fn depends(class: &'static str, name: &'static str, script: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static, want: Want) -> Case {
    Case::new(class, name, Endpoint::Asked(Arc::new(script)), want)
}

/// A server that does not wait to be asked.
pub fn unasked(class: &'static str, name: &'static str, steps: Vec<Step>, want: Want) -> Case {
    Case::new(class, name, Endpoint::Unasked(steps), want)
}

/// A server with this certificate. A crawl trusts the web's authorities only: there nobody has signed what is good here.
pub fn secure(name: &'static str, certificate: &'static str, want: Want) -> Case {
    let secure = Case::new("W11", name, Endpoint::Secure(certificate), want);
    match want {
        Page(_) | Fails(FetchError::CertificateForOther) => secure.writes(Written::status("down").failure(FetchError::UnknownIssuer)),
        _ => secure,
    }
}

/// A port where nobody listens.
pub fn closed(class: &'static str, name: &'static str) -> Case {
    Case::new(class, name, Endpoint::Closed, Fails(FetchError::ConnectionRefused))
}

/// A header line of HTML.
pub const HTML: &str = "Content-Type: text/html\r\n";

/// The head of a 200 of HTML with these further lines, each with CRLF.
pub fn head(lines: &str) -> Step {
    send(format!("HTTP/1.1 200 OK\r\n{HTML}{lines}\r\n"))
}

/// The head of HTML in chunks.
pub fn chunked() -> Step {
    head("Transfer-Encoding: chunked\r\n")
}

/// An answer of HTML with these further header lines.
pub fn page_with(lines: &str, body: &[u8]) -> Vec<Step> {
    vec![answer("200 OK", &format!("{HTML}{lines}"), body)]
}

/// So many header lines.
pub fn headers(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = write!(text, "X-{n}: y\r\n");
        text
    })
}

/// The same piece again and again.
pub fn endless(piece: impl AsRef<[u8]>) -> Step {
    let piece = piece.as_ref();
    Step::Endless(piece.repeat((64 << 10) / piece.len() + 1).into())
}
