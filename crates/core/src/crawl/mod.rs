//! Crawling of our own servers: the order of URLs and servers, the requests, and their results.
//!
//! * [`site`]: one host's tree: frontier, robots.txt, record, the fold of its journal
//! * [`machine`]: beginning, resuming and ending sites; [`sites`]: the open ones; [`revisits`]: what the run before knew
//! * [`moved_hosts`]: hosts that have another address, and go to its owner
//! * [`admission`]: URLs that arrive, or come nearer; [`seen_questions`]: open questions to the seen set
//! * [`fetch_cycle`]: request, answer, links; [`fetches`]: requests under way; [`robots`], [`digest`]: their results
//! * [`scheduler`]: the order of visits, with politeness by address
//! * [`link_filter`]: which links the seen set is asked about; [`new_host_quota`]: a limit for domains that name hosts without end
//! * [`release`]: what limits held back and let go of by now
//! * [`scope`]: whether a host is crawled at all

pub(crate) mod admission;
mod digest;
pub(crate) mod fetch_cycle;
pub(crate) mod fetches;
pub(crate) mod link_filter;
pub(crate) mod machine;
pub(crate) mod moved_hosts;
pub(crate) mod new_host_quota;
pub mod politeness;
pub(crate) mod reads;
mod release;
pub(crate) mod revisits;
mod robots;
pub mod scheduler;
pub mod scope;
pub(crate) mod seen_questions;
pub mod site;
pub(crate) mod sites;
#[cfg(test)]
mod tests;

use crate::event::DiskRoom;
use fetches::Fetches;
use link_filter::LinkFilter;
use moved_hosts::MovedHosts;
pub(crate) use reads::CrawlReads;
use revisits::Runs;
use seen_questions::SeenQuestions;
use sites::Sites;

/// The sites of our subnets, and what is under way at them.
#[derive(Debug)]
pub(crate) struct Crawl {
    sites: Sites,
    fetches: Fetches,
    questions: SeenQuestions,
    links: LinkFilter,
    runs: Runs,
    moved: MovedHosts,
    disk: DiskRoom,
    /// Whether it was not looked yet on what limits let go at sites that go on here.
    to_release: bool,
}
