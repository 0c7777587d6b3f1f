//! The daemon: one loop joins the crawler's decisions (`nearcrawl-core`) with everything that touches the world (`crate::io`).
//!
//! * [`run`]: the loop of a daemon: one event at a time to the crawler, its commands to the executor;
//! * [`standalone`]: the same loop without a swarm, until everything is done;
//! * `start_checks`: what must hold before a daemon starts, for `run` and `check` alike; `setup`: from a configuration and a state directory to a
//!   crawler and its clients; `reload`: what SIGHUP has read again;
//! * [`config`]: the configuration, section by section;
//! * `executor`: carries each command out, with `revisit` (a request with the validators of the run before);
//! * [`transfers`]: exchanges with a member that take several messages, and how much memory and time these may take;
//! * [`state`]: what is kept across starts: the key, the crawler's state, totals that were told, members of before, pins, certificates;
//! * [`hierarchy`]: the hierarchy's snapshots, on disk and mapped, and how old they are;
//! * `allowance`: what the operator lets it do: pauses, hours, bytes, memory, disk, metered lines;
//! * `requests`: the log of requests, the compact record of them with copies at replicas, and whether the swarm made a request;
//! * `opt_outs`: how a proof is looked for, and opt-outs that readers bring;
//! * `housekeeping`: what the loop has done on the disk beside the crawler's commands;
//! * `own_addresses`: where this access point is besides what its configuration says, for no server is asked there;
//! * `readers`: questions of programs that are no members, and of people about other members: which are refused, and how each is answered;
//! * `changes`: lines for the log about members, subnets and what it is doing; [`recent_events`]: the newest messages of the log, for the page;
//! * [`visits`]: what owners of web sites are told of its limits;
//! * `fault_injection`: where a daemon under test is to fail;
//! * [`query`]: what people can ask, typed, with the handle to ask by and the handler that answers;
//! * [`api`], [`metrics`]: the same over HTTP;
//! * [`remote_results`]: the results of a swarm, without a daemon of one's own.

pub(crate) mod allowance;
pub mod api;
mod changes;
pub(crate) mod clock;
pub mod config;
mod error;
mod executor;
mod fault_injection;
pub mod hierarchy;
mod housekeeping;
pub mod metrics;
mod opt_outs;
mod own_addresses;
pub mod query;
mod readers;
pub mod recent_events;
mod reload;
pub mod remote_results;
mod requests;
mod revisit;
pub mod run;
mod setup;
pub mod standalone;
mod start_checks;
pub mod state;
pub mod transfers;
pub mod visits;

pub use error::NodeError;
pub use hierarchy::data_age::DataAge;
pub use reload::Reloads;
pub use start_checks::StartChecks;
pub use state::keyfile::{NodeIdentity, init};
