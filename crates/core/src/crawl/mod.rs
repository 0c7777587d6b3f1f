//! Our servers: which URL next, which server now, what came of it.
//!
//! * [`site`]: one host's tree: frontier, robots.txt, record, the fold of its journal
//! * [`machine`]: sites begin, go on and end; [`sites`]: which are open? [`revisits`]: what did the run before know?
//! * [`moved_hosts`]: which hosts have another address, and go to its owner?
//! * [`admission`]: a URL arrives, or comes nearer: was it seen? [`seen_questions`]: what was the seen set asked?
//! * [`fetch_cycle`]: request, answer, links; [`fetches`]: what is under way? [`robots`], [`digest`]: what came of it?
//! * [`scheduler`]: whose turn is it? Politeness by address
//! * [`link_filter`]: which links are asked about? [`new_host_quota`]: does a domain name hosts without end?
//! * [`release`]: on what do limits let go by now?
//! * [`scope`]: is a host crawled at all?

pub(crate) mod admission;
mod digest;
pub(crate) mod fetch_cycle;
pub(crate) mod fetches;
pub(crate) mod link_filter;
pub(crate) mod machine;
pub(crate) mod moved_hosts;
pub(crate) mod new_host_quota;
pub(crate) mod others;
pub mod politeness;
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

use fetches::Fetches;
use link_filter::LinkFilter;
use moved_hosts::MovedHosts;
pub(crate) use others::Others;
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
    disk_has_space: bool,
    /// Whether it was not looked yet on what limits let go at sites that go on here.
    to_release: bool,
}
