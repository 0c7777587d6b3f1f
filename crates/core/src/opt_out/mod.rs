//! Opt-outs of servers that want no requests.
//!
//! Every member keeps what each member says of an opt-out; what it has seen itself counts more than what others say.
//!
//! * [`machine`]: opt-outs are taken in, heard, stored, told and compared
//! * [`register`]: whose statements are kept, and within which limits
//! * [`looks`]: which proofs are to be looked for, and when
//! * [`in_force`]: whether a server may be asked

pub(crate) mod in_force;
pub(crate) mod looks;
pub(crate) mod machine;
pub(crate) mod register;
#[cfg(test)]
mod tests;

pub use crate::statements::PAGES;
pub(crate) use machine::OptOuts;
