//! Who wants no requests? Every member keeps what each member says of an opt-out; what it has seen itself counts more than what others say.
//!
//! * [`machine`]: opt-outs are taken in, heard, stored, told and compared
//! * [`register`]: whose statements are kept, and within which limits?
//! * [`looks`]: which proofs are to be looked for, and when?
//! * [`telling`]: who has not acknowledged what we said?
//! * [`in_force`]: may this server be asked?

pub(crate) mod in_force;
pub(crate) mod looks;
pub(crate) mod machine;
pub(crate) mod register;
pub(crate) mod telling;
#[cfg(test)]
mod tests;

pub(crate) use machine::OptOuts;
pub use machine::PAGES;
