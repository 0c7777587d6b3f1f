//! Judges whether a subnet of ours is crawled quickly enough to keep it: its accesses are timed, and judged by the rule of migration.
//!
//! An access is some requests to the subnet's servers, download and evaluation together; the automaton's time counts accesses, not
//! seconds. What an access took here is measured; what it would take elsewhere is what is known of the ways, for all but the way is the
//! server's and the page's.
//!
//! * `rule`: by which rule subnets move
//! * `machine`: which subnets are watched, and what their relatives tell
//! * `watched`: one subnet; `access`: one access to it
//! * `load`: how busy this access point is, and which subnets it gives away for that

mod access;
mod load;
mod machine;
mod rule;
mod watched;

pub(crate) use access::Access;
pub(crate) use load::Load;
pub(crate) use machine::Judge;
pub use rule::{MigrationSettings, Rule};
pub(crate) use watched::Watched;
