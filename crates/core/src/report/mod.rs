//! Reports for people: the state of an access point as plain values.
//!
//! They say what it is doing, whom it knows, what is whose, and why.
//!
//! [`Report`] is the machine: the sums over our sites, and the roll-ups of others. [`View`] answers questions and changes nothing:
//!
//! * `view`: members, claims, servers, surveys; how far a crawl is
//! * `activity`: what it is doing, why it is not doing more, and whether anything is left to do
//! * `status`: the numbers; `counters`: what was done since the start; `events`: which delegations and hand-overs ended lately
//! * `journal_rows`: visits and links, as readers are told them
//! * [`RowTally`]: what rows of servers come to, whoever owns them; [`RowTable`]: the same by one or two splits; [`RunRows`]: what one run
//!   of them comes to; `crowds`: what those say of hosts that were not visited
//! * `why`: why something is crawled, by whom and when; `never_contacted`: why it is by no member
//! * `cross_tables`: sums by two dimensions, which members are asked for
//! * [`tally`]: the sums over our sites, and those that others tell; `consistent`: which of these answer while subnets change hands;
//!   `stays`: for how long others were here; `strata`: what the visited hosts of an address say of the others

mod activity;
mod consistent;
mod contribution;
pub(crate) mod counters;
mod cross_tables;
mod crowds;
mod distinct;
pub(crate) mod events;
pub mod journal_rows;
mod machine;
mod never_contacted;
mod reason;
mod row_table;
mod rows;
mod run_rows;
mod status;
mod stays;
mod strata;
pub(crate) mod tally;
#[cfg(test)]
mod tests;
mod view;
mod why;

pub use consistent::KEPT;
pub use counters::Counters;
pub(crate) use machine::{BesidesSums, Report};
pub use row_table::RowTable;
pub use rows::{RowEstimates, RowTally, SplitEstimates};
pub use run_rows::{RunRows, RunSplitEstimates, RunSums};
pub use status::Outside;
pub(crate) use tally::oldest_told;
pub use view::View;
