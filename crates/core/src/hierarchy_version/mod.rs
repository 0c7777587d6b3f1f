//! Agreement of the swarm on an edition of the hierarchy.
//!
//! * [`editions`]: the rule: what most members vouch for
//! * [`machine`]: what members say of it is told and heard

pub mod editions;
pub mod machine;

pub(crate) use machine::HierarchyVersion;
