//! Where shall this process die? In builds for testing it can be told to: at a step of a hand-over, as by kill -9 at the worst moment.
//!
//! `NEARCRAWL_DIE_AT` names the step as [`Stage`] has it, in lower case: `offered`, `copying`, `handed` … Builds without debug
//! assertions know nothing of it.

use crate::logic::crawler::{Crawler, moving::Stage};
use serde::{
    Deserialize,
    de::{IntoDeserializer, value::Error},
};

/// The step, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fault(Option<Stage>);

impl Fault {
    /// As the environment says.
    pub fn of_environment() -> Fault {
        let named = std::env::var("NEARCRAWL_DIE_AT").ok().filter(|_| cfg!(debug_assertions));
        let stage = named.and_then(|name| Stage::deserialize(IntoDeserializer::<Error>::into_deserializer(name.as_str())).ok());
        Fault(stage)
    }

    /// Ends the process without a word if a move has come to that step.
    pub fn strike(self, mind: &Crawler) {
        if self.0.is_some_and(|step| mind.stages().any(|stage| stage == step)) {
            std::process::abort();
        }
    }
}
