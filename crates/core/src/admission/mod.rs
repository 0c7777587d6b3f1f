//! Admission of members: the certificates and expulsions that the swarm's root key, and the inviters that it named, have signed.
//!
//! Every member keeps all of them.
//!
//! * [`machine`]: takes them in, stores them, tells them and compares them
//! * [`room`]: which ones are kept, and within which limits

pub(crate) mod machine;
pub(crate) mod room;
#[cfg(test)]
mod tests;

pub use crate::statements::PAGES;
pub(crate) use machine::Admissions;
