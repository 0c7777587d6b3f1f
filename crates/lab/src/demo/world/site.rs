//! Contents of the made-up pages: a pure function of host and path; the web server and the reference both use it.

use super::{WEB_PORT, World};
use crate::web::server::{HttpAnswer, HttpSite};
use crate::web::{Answer, Web};
use nearcrawl_model::url::{Host, PageUrl};
use std::{fmt::Write, net::IpAddr, time::Duration};

/// How long the chain of pages is that leads deeper than the crawl may go.
pub const CHAIN: u32 = 11;

/// How many query URLs the scripts have.
pub const ITEMS: u32 = 4;

/// What kinds of things a host has besides its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// A robots.txt that closes `/private/`, and a link into it.
    pub private: bool,
    /// A link to nothing.
    pub broken_link: bool,
    /// A redirect to another of its pages.
    pub moved_within: bool,
    /// A redirect to this other host (an index).
    pub moved_away: Option<usize>,
    /// A script with several ids.
    pub script: bool,
    /// A link to something that is not HTML.
    pub document: bool,
    /// A chain of [`CHAIN`] pages.
    pub chain: bool,
    /// A link to a host out of scope.
    pub outside: bool,
}

/// One host of the made-up web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// The host name.
    pub name: Host,
    /// The server it is at (an index).
    pub server: usize,
    /// Pages that hang together as a binary tree, the root page among them.
    pub pages: usize,
    /// On which page, which other host's page is linked to: (page here, host, page there).
    pub links: Vec<(usize, usize, usize)>,
    /// What else it has.
    pub oddities: Oddities,
}

/// What comes of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Look {
    Page(Vec<String>),
    Redirect(String),
    Document,
    Robots(&'static str),
    Nothing,
}

/// The path of a page by its number.
fn page_path(number: usize) -> String {
    if number == 0 { "/".to_owned() } else { format!("/p{number}.html") }
}

impl World {
    /// The URL of a host's page by their numbers.
    pub(crate) fn page_url(&self, host: usize, page: usize) -> String {
        format!("http://{}:{WEB_PORT}{}", self.hosts[host].name, page_path(page))
    }

    fn look(&self, host: &str, path: &str) -> Look {
        let Some(plan) = self.index.get(host).map(|index| &self.hosts[*index]) else { return Look::Nothing };
        let odd = plan.oddities;
        match path {
            "/" => self.tree_page(plan, 0),
            "/robots.txt" if odd.private => Look::Robots("User-agent: *\nDisallow: /private/\n"),
            "/list.html" if odd.script => Look::Page((1..=ITEMS).map(|id| format!("/item?id={id}")).collect()),
            "/paper" if odd.document => Look::Document,
            "/old.html" if odd.moved_within => Look::Redirect(page_path(1)),
            "/private/a.html" if odd.private => Look::Page(vec!["/private/b.html".to_owned()]),
            "/moved.html" => odd.moved_away.map_or(Look::Nothing, |to| Look::Redirect(self.page_url(to, 2))),
            _ => self.numbered(plan, path),
        }
    }

    /// Paths with a number in them.
    fn numbered(&self, plan: &HostPlan, path: &str) -> Look {
        let between = |head: &str, tail: &str| path.strip_prefix(head)?.strip_suffix(tail)?.parse::<u32>().ok().filter(|n| *n > 0);
        if let Some(page) = between("/p", ".html").filter(|page| (*page as usize) < plan.pages) {
            return self.tree_page(plan, page as usize);
        }
        if let Some(link) = between("/deep/", ".html").filter(|link| plan.oddities.chain && *link <= CHAIN) {
            let next = (link < CHAIN).then(|| format!("{}.html", link + 1));
            return Look::Page(next.into_iter().collect());
        }
        match between("/item?id=", "") {
            Some(id) if plan.oddities.script && id <= ITEMS => Look::Page(vec!["/".to_owned()]),
            _ => Look::Nothing,
        }
    }

    /// A page of the tree: down to its children, home, and away to other hosts.
    fn tree_page(&self, plan: &HostPlan, page: usize) -> Look {
        let children = [2 * page + 1, 2 * page + 2].into_iter().filter(|child| *child < plan.pages);
        let mut links: Vec<String> = children.map(page_path).collect();
        if page > 0 {
            links.push("/".to_owned());
        }
        for (_, host, there) in plan.links.iter().filter(|(here, ..)| *here == page) {
            links.push(self.page_url(*host, *there));
        }
        let odd = plan.oddities;
        let extras: [(usize, bool, &str); 8] = [
            (0, odd.chain, "/deep/1.html"),
            (0, odd.script, "list.html"),
            (0, odd.private, "/private/a.html"),
            (1, odd.broken_link, "missing.html"),
            (1, odd.moved_within, "/old.html"),
            (2, odd.moved_away.is_some(), "moved.html"),
            (1, odd.document, "./paper"),
            (2, odd.outside, "http://outside.example/"),
        ];
        links.extend(extras.into_iter().filter(|(on, there, _)| *on == page && *there).map(|(.., link)| link.to_owned()));
        Look::Page(links)
    }
}

/// A page with these links, and some text to carry.
fn render(host: &str, path: &str, links: &[String]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{host}{path}</title></head><body>\n<h1>{host}</h1>\n"
    );
    for link in links {
        // Writing to a string cannot fail.
        let _ = writeln!(html, "<p>Made up for a demonstration; see <a href=\"{link}\">what is said here</a>, and go on.</p>");
    }
    html.push_str("<p>Nobody lives here.</p>\n");
    html.push_str("</body></html>\n");
    html
}

impl HttpSite for World {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        match self.look(host, path) {
            Look::Page(links) => HttpAnswer::html(render(host, path, &links)),
            Look::Redirect(to) => HttpAnswer::redirect(302, to),
            Look::Document => HttpAnswer::ok("application/pdf", "%PDF-1.4 (not really)"),
            Look::Robots(text) => HttpAnswer::ok("text/plain", text),
            Look::Nothing => HttpAnswer::status(404),
        }
    }

    fn delay(&self, server: IpAddr, peer: IpAddr) -> Duration {
        Duration::from_millis(u64::from(self.delay_ms(server, peer)))
    }
}

impl Web for World {
    fn answer(&self, url: &PageUrl) -> Answer {
        let join = |link: &String| url.join(link).ok();
        match self.look(url.host().as_str(), url.path_and_query()) {
            Look::Page(links) => Answer::Page(links.iter().filter_map(join).collect()),
            Look::Redirect(to) => join(&to).map_or(Answer::Status(302), Answer::Redirect),
            Look::Document | Look::Robots(_) => Answer::NotHtml,
            Look::Nothing => Answer::Status(404),
        }
    }

    fn allowed(&self, url: &PageUrl) -> bool {
        !url.path().starts_with("/private/")
    }

    fn in_scope(&self, host: &Host) -> bool {
        host.tld() == Some(super::TLD)
    }
}
