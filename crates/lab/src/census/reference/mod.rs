//! Expected reports, computed from what was made up: never from what the program prints, and by none of the code that adds it up.
//!
//! Which URLs a crawl must ask for is computed by the oracle ([`crate::oracle`]); what an answer is worth follows from the made-up web
//! itself.

mod load;
mod pages;
mod record;
mod rows;
mod run_totals;
mod runs;
mod shares;
mod surveys;
#[cfg(test)]
mod tests;
mod trend;
mod visit;
mod visits;

pub(crate) use load::{load, nearness};
pub(crate) use record::Expected;
pub(crate) use rows::{Counts, distinct, sums};
pub(crate) use run_totals::{SPLITS, run_totals};
pub(crate) use runs::{Reference, Run};
pub(crate) use shares::{REPORT_SPLITS, accessibility, offshore, reachability};
pub(crate) use surveys::{by_label, labels, marks, members, part, shown};
pub(crate) use trend::trend;
pub(crate) use visits::Asked;
