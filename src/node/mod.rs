//! The daemon: one loop joins the crawler's decisions (`nearcrawl-core`) with everything that touches the world (`crate::io`).
//!
//! * [`run`]: the loop of a daemon: one event at a time to the crawler, its commands to the executor;
//! * [`standalone`]: the same loop without a swarm, until everything is done;
//! * `start_checks`: what must hold before a daemon starts, for `run` and `check` alike;
//! * [`admission_files`]: the swarm's root key and certificates, as files;
//! * `setup`, `keyfile`, `persisted_state`: from a configuration and a state directory to a crawler and its clients;
//! * `executor`: carries each command out, with `store_queue` (the store, in the order of the commands), `peer_transfers` (exchanges with a
//!   member that take several messages), [`exports`] (pages and links for readers), `recovery_budget` (how much memory these may take) and
//!   `revisit` (a request with the validators of the run before);
//! * `acquaintances`: the members of the last month, and how they parted;
//! * `allowance`: what the operator lets it do: pauses, hours, bytes;
//! * `measured_transfer`: how many bytes a second come from a member;
//! * `memory_limit`: is more memory used than may be; `metered_line`: does the default route go over a line whose bytes cost money;
//! * `reload`: what SIGHUP has read again;
//! * [`recent_events`]: the newest messages of the log, for the page;
//! * `pins`: the subnets that the operator keeps here;
//! * [`visits`]: what owners of web sites are told of its limits;
//! * `told_totals`: totals that were told before a restart, which answer after it until as much is known again;
//! * `changes`: lines for the log about members, subnets and what it is doing;
//! * `request_notes`: what goes into the log of requests; `requests_made`: whether the swarm made a request, by the logs of all members;
//! * `housekeeping`: what the loop has done on the disk beside the crawler's commands;
//! * [`images`]: the hierarchy, mapped from a file instead of unpacked at each start;
//! * `snapshot_store`, `snapshot_transfer`, `data_age`: snapshots of the hierarchy, on disk and between members, and how old they are;
//! * `fault_injection`: where a daemon under test is to fail;
//! * [`query`]: what people can ask, typed, with the handle to ask by and the handler that answers;
//! * [`api`], [`metrics`]: the same over HTTP;
//! * [`remote_results`]: the results of a swarm, without a daemon of one's own.

mod acquaintances;
pub mod admission_files;
mod allowance;
pub mod api;
mod changes;
pub(crate) mod clock;
pub mod config;
mod data_age;
mod disk_limit;
mod error;
mod executor;
pub mod exports;
mod fault_injection;
mod housekeeping;
pub mod images;
mod keyfile;
mod measured_transfer;
pub(crate) mod memory_limit;
pub(crate) mod metered_line;
pub mod metrics;
mod opt_out_proofs;
mod peer_transfers;
mod persisted_state;
mod pins;
mod probes_told;
pub mod query;
mod reader_opt_outs;
pub mod recent_events;
mod recovery_budget;
mod reload;
pub mod remote_results;
mod request_notes;
mod requests_made;
mod revisit;
pub mod run;
mod scope_keeping;
mod setup;
mod snapshot_store;
mod snapshot_transfer;
pub mod standalone;
mod start_checks;
mod store_queue;
mod told_totals;
pub mod visits;

pub use data_age::DataAge;
pub use error::NodeError;
pub use keyfile::{NodeIdentity, init};
pub use reload::Reloads;
pub use start_checks::StartChecks;
