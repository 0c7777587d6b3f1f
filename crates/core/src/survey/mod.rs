//! Surveys.
//!
//! Every member keeps a copy of each, signed by its creator; nothing else is believed.
//!
//! * [`machine`]: surveys are made, heard, stored and told; members compare what they have
//! * [`register`]: which are kept, and within which limits
//! * [`placing`]: whose turn it is to name the starting URLs of a list
//! * [`probing`]: which servers of a sample are probed from here, each once

pub(crate) mod machine;
pub(crate) mod placing;
pub(crate) mod probing;
pub(crate) mod register;
#[cfg(test)]
mod tests;

pub(crate) use machine::Surveys;
