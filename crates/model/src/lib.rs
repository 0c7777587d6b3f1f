//! Plain values that all other crates use: URLs, hosts, subnets, claims, journals, messages, views.
//!
//! No decisions, no input or output.

#![warn(unreachable_pub)]

pub mod access_point;
pub mod account;
pub mod address;
pub mod admission;
pub mod allowance;
pub mod claim;
pub mod crawled_by;
pub mod cross_table;
pub mod distances;
pub mod distinct;
pub mod edition;
pub mod estimates;
pub mod evaluation;
pub mod exported;
pub mod facts;
pub mod failing_pages;
pub mod fetch;
pub mod fingerprint;
pub mod forwarded;
mod half_digest;
pub mod ids;
pub mod journal;
pub mod links;
pub mod message;
mod message_kind;
pub mod opt_out;
pub mod ownership_history;
pub mod ownership_map;
pub mod packed;
pub mod packed_stream;
pub mod plan;
pub mod previous_run;
pub mod profile;
pub mod receipt;
pub mod record;
pub mod replica;
pub mod request_hour;
pub mod request_record;
pub mod requests_made;
pub mod revisit;
pub mod rows_digest;
pub mod run_history;
pub mod run_totals;
pub mod seen;
pub mod server_rows;
pub mod sketch;
pub mod spans;
pub mod split;
pub mod subnet;
pub mod summary;
pub mod survey;
pub mod survey_probes;
pub mod time;
pub mod trend;
pub mod url;
pub mod view;
pub mod vote;
