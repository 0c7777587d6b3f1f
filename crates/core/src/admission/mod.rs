//! Who may be a member? Every member keeps the certificates and expulsions that the swarm's root key, and the inviters that it named, have
//! signed.
//!
//! * [`machine`]: they are heard, stored, told and compared; what do they come to?
//! * [`room`]: which ones are kept, and within which limits?

pub(crate) mod machine;
pub(crate) mod room;
#[cfg(test)]
mod tests;

pub use crate::statements::PAGES;
pub(crate) use machine::Admissions;
