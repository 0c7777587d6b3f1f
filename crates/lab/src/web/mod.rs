//! Made-up webs: a page is a function of its URL.
//!
//! The same web can be crawled in memory, be served over HTTP ([`server`]), and be walked by the oracle ([`crate::oracle`]), which says
//! what a crawl must come to.
//!
//! [`endless`] is the web of `nearcrawl lab depth` and `lab serve`, [`table`] that of the simulated swarm; the demonstration and the tests
//! with real daemons have webs of their own that implement [`Web`] and [`server::HttpSite`].

pub mod dns;
pub mod endless;
pub mod server;
pub mod table;

use nearcrawl_model::url::{Host, PageUrl};

/// What a web answers when a URL is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An HTML page with these links, in document order.
    Page(Vec<PageUrl>),
    /// A redirect to there.
    Redirect(PageUrl),
    /// Something that is not HTML.
    NotHtml,
    /// Another status, without a page.
    Status(u16),
    /// Nothing that can be used.
    Broken,
}

/// A made-up web, as the oracle sees it.
pub trait Web {
    /// What comes when this URL is asked for.
    fn answer(&self, url: &PageUrl) -> Answer;
    /// Whether the host's robots.txt lets the crawler ask.
    fn allowed(&self, url: &PageUrl) -> bool;
    /// Whether the host may become a starting host.
    fn in_scope(&self, host: &Host) -> bool;
}
