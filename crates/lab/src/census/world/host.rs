//! A made-up host: everything that is true of it and of its pages, in each run.

use std::net::Ipv4Addr;

/// From which run on something lasts, and from which on not any more (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) until: u32,
}

impl Span {
    /// In all runs.
    pub(crate) const ALWAYS: Span = Span { from: 1, until: u32::MAX };

    pub(crate) fn has(self, run: u32) -> bool {
        (self.from..self.until).contains(&run)
    }
}

/// What kind of server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nature {
    /// One with pages.
    Plain,
    /// One that names more hosts than may be led to.
    Portal,
    /// A subdomain that only its parent names: a part of that one's tree.
    Part,
    /// One that only a portal names, beyond the limit.
    Hidden,
    /// 403 for all pages.
    Forbids,
    /// Its front page is no HTML.
    NoPages,
    /// robots.txt bars everything.
    BarsAll,
    /// robots.txt answers 500.
    RobotsFail,
    /// Its front page never comes.
    Silent,
    /// Its certificate has expired, is another host's, or an unknown authority signed it.
    Expired,
    ForOther,
    Stranger,
    /// Nothing listens.
    Refuses,
}

/// The version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    V12,
    V13,
}

/// How it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// By http alone.
    Http,
    /// By https alone.
    Https(Tls),
    /// By http it redirects to https.
    Redirects(Tls),
}

impl Door {
    pub(crate) fn tls(self) -> Option<Tls> {
        match self {
            Door::Http => None,
            Door::Https(tls) | Door::Redirects(tls) => Some(tls),
        }
    }
}

/// What its robots.txt says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Robots {
    Absent,
    AllowsAll,
    /// Not below `/private/`.
    BarsSome,
    /// The same, with a wish and a pause of half a second.
    BarsSomeAndWishes,
    BarsAll,
    /// 500.
    Fails,
}

/// A language with its script (ISO 15924) and a text in it, without a letter of another script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Voice {
    /// The tag as it is declared, and the split's value; none declares nothing.
    pub(crate) tag: Option<(&'static str, &'static str)>,
    /// Whether the header declares it, and not the page.
    pub(crate) by_header: bool,
    /// Whether the tag is one that exists.
    pub(crate) is_valid: bool,
    pub(crate) script: Option<&'static str>,
    pub(crate) text: &'static str,
    pub(crate) word: &'static str,
}

/// An accessibility failure: the rule's id, and the markup that fails it once and no other rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) rule: &'static str,
    pub(crate) markup: &'static str,
    pub(crate) in_head: bool,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A page of a host, by their numbers.
    Page(usize, usize),
    /// The front door of a host.
    Home(usize),
    /// Somewhere else, a whole URL or a path.
    Text(String),
}

/// A link in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) to: Target,
    pub(crate) span: Span,
    /// No crawler asks for it: its name says that it is no page.
    pub(crate) media: bool,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Html,
    Pdf,
    Moved(Target),
    Status(u16),
    /// No answer in time.
    Silence,
    /// An encoding that nobody knows.
    BadEncoding,
    /// A redirect without a target.
    BadRedirect,
}

/// One page of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) content: Content,
    pub(crate) links: Vec<Link>,
    pub(crate) flaws: Vec<Flaw>,
    /// When it is there; else 404.
    pub(crate) span: Span,
    /// In which runs it says something new.
    pub(crate) edits: Vec<u32>,
    pub(crate) no_follow: bool,
    pub(crate) no_index: bool,
    pub(crate) titled: bool,
}

impl Page {
    /// An HTML page without links.
    pub(crate) fn new(path: impl Into<String>) -> Page {
        Page {
            path: path.into(),
            content: Content::Html,
            links: Vec::new(),
            flaws: Vec::new(),
            span: Span::ALWAYS,
            edits: Vec::new(),
            no_follow: false,
            no_index: false,
            titled: true,
        }
    }

    /// Adds a link that is always there.
    pub(crate) fn link(&mut self, to: Target) {
        self.link_in(to, Span::ALWAYS);
    }

    pub(crate) fn link_in(&mut self, to: Target, span: Span) {
        self.links.push(Link { to, span, media: false });
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Its registrable domain, and the name of its tree.
    pub(crate) domain: String,
    pub(crate) tree: String,
    pub(crate) address: Ipv4Addr,
    /// The number of its subnet.
    pub(crate) land: usize,
    pub(crate) nature: Nature,
    pub(crate) door: Door,
    pub(crate) robots: Robots,
    /// When its server listens.
    pub(crate) listens: Span,
    /// The first run in which anything names it.
    pub(crate) born: u32,
    /// Whether a portal alone names it.
    pub(crate) of_portal: bool,
    pub(crate) voice: Voice,
    /// The voice from another run on.
    pub(crate) later_voice: Option<(u32, Voice)>,
    pub(crate) software: Option<&'static str>,
    pub(crate) later_software: Option<(u32, Option<&'static str>)>,
    pub(crate) generator: Option<&'static str>,
    pub(crate) latin1: bool,
    pub(crate) http10: bool,
    pub(crate) etags: bool,
    pub(crate) alt_svc: Option<(&'static str, &'static [&'static str])>,
    pub(crate) hsts: Option<u64>,
    pub(crate) guarded: bool,
    pub(crate) content_usage: Option<&'static str>,
    pub(crate) tdm_header: Option<bool>,
    pub(crate) tdm_meta: Option<bool>,
    pub(crate) pages: Vec<Page>,
}

impl Host {
    pub(crate) fn voice(&self, run: u32) -> Voice {
        self.later_voice.filter(|(from, _)| *from <= run).map_or(self.voice, |(_, voice)| voice)
    }

    pub(crate) fn software(&self, run: u32) -> Option<&'static str> {
        self.later_software.filter(|(from, _)| *from <= run).map_or(self.software, |(_, software)| software)
    }

    /// The software that an answer with this status names: LiteSpeed leaves its name out of a 304.
    pub(crate) fn software_named(&self, run: u32, status: u16) -> Option<&'static str> {
        self.software(run).filter(|software| status != 304 || !software.starts_with("LiteSpeed"))
    }

    /// The origin of its pages.
    pub(crate) fn origin(&self) -> String {
        match self.door {
            Door::Http => format!("http://{}:8080", self.name),
            Door::Https(_) | Door::Redirects(_) => format!("https://{}:8443", self.name),
        }
    }

    /// The URL by which other hosts name it.
    pub(crate) fn home(&self) -> String {
        match self.door {
            Door::Http | Door::Redirects(_) => format!("http://{}:8080/", self.name),
            Door::Https(_) => format!("https://{}:8443/", self.name),
        }
    }

    /// The page at this path in this run.
    pub(crate) fn page(&self, path: &str, run: u32) -> Option<&Page> {
        self.pages.iter().find(|page| page.path == path && page.span.has(run))
    }
}
