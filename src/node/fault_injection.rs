//! Fault injection: builds for testing can be made to exit or freeze at a given step of a hand-over.
//!
//! `NEARCRAWL_DIE_AT` names the step as [`Stage`] has it, in lower case: `offered`, `copying`, `handed` … There the process ends as by
//! kill -9. At `NEARCRAWL_FREEZE_AT` it stops once, as by SIGSTOP, until it is sent SIGCONT: so that the other one can be killed at that
//! very step. Builds without debug assertions know nothing of either.

use crate::io::tasks::{self, TaskKind};
use nearcrawl_core::{crawler::Crawler, migration::handover::Stage};
use serde::{
    Deserialize,
    de::{IntoDeserializer, value::Error},
};

/// The steps, if there are any.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultInjection {
    die_at: Option<Stage>,
    freeze_at: Option<Stage>,
}

impl FaultInjection {
    /// As the environment says.
    pub fn of_environment() -> FaultInjection {
        FaultInjection { die_at: named("NEARCRAWL_DIE_AT"), freeze_at: named("NEARCRAWL_FREEZE_AT") }
    }

    /// Ends the process at once if a move has come to that step, or stops it.
    pub fn strike(&mut self, crawler: &Crawler) {
        let at = |step: Option<Stage>| step.is_some_and(|step| crawler.view().stages().any(|stage| stage == step));
        if at(self.die_at) {
            std::process::abort();
        }
        if at(self.freeze_at) {
            self.freeze_at = None;
            // SAFETY: plain system call without pointers.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
    }
}

/// Before any task is started: panics are counted from now on, and those made that the environment asks for.
pub fn watch_tasks() {
    tasks::watch_panics();
    panic_in_tasks();
}

/// `NEARCRAWL_PANIC_IN` names kinds of tasks and how many of each are to panic, as in `fetch=2,page reading=1`.
fn panic_in_tasks() {
    let asked = std::env::var("NEARCRAWL_PANIC_IN").ok().filter(|_| cfg!(debug_assertions)).unwrap_or_default();
    for (name, times) in asked.split(',').filter_map(|part| part.split_once('=')) {
        if let (Some(kind), Ok(times)) = (TaskKind::named(name), times.parse()) {
            tasks::inject_panics(kind, times);
        }
    }
}

fn named(variable: &str) -> Option<Stage> {
    let name = std::env::var(variable).ok().filter(|_| cfg!(debug_assertions))?;
    Stage::deserialize(IntoDeserializer::<Error>::into_deserializer(name.as_str())).ok()
}
