//! Trial of a volunteer's way who has nothing but the Debian package, from its installation to its purge.
//!
//! The volunteer's machine is behind a home router, made of namespaces, with a Debian tree of its own, in a network with a swarm of three
//! members, a few web servers and a name server. On it only what the documentation says is typed: install, init, doctor, start; then the
//! volunteer's daemon is a member, crawls, and stops when a site owner or its budget says so; at the end the package is purged.
//!
//! * `world`: the network, the three members, the web
//! * `machine`: the volunteer's machine
//! * `steps`: what is done on it, and what must hold then
//! * `outcome`: how long each step took

mod error;
mod machine;
mod outcome;
mod steps;
mod world;

pub use error::StrangerError;
pub use outcome::{Outcome, Step};

use std::{path::PathBuf, time::Instant};

/// What is tried.
#[derive(Clone, Debug)]
pub struct StrangerPlan {
    /// The package.
    pub package: PathBuf,
    /// A directory with a Debian of this machine's release, which stays as it is; `/` is that of this machine.
    pub tree: PathBuf,
    /// The program of the three members that are there before.
    pub program: PathBuf,
}

/// A directory that is removed at the end.
struct Workplace(PathBuf);

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Goes through all steps, up to the first that does not hold; `told` gets each as it ends. Whatever the end is, nothing of it is left.
///
/// # Errors
/// There are no namespaces here, or the three members do not run.
pub async fn stranger(plan: &StrangerPlan, told: impl Fn(&Step)) -> Result<Outcome, StrangerError> {
    let path = std::env::temp_dir().join(format!("nearcrawl-stranger-{}", std::process::id()));
    let workplace = Workplace(path);
    let made = std::fs::create_dir_all(workplace.0.join("machine"));
    made.map_err(|source| StrangerError::Files { path: workplace.0.clone(), source })?;
    let world = world::World::start(&workplace.0, &plan.program).await?;
    let machine = machine::Machine::start(&world, &plan.tree, &workplace.0)?;
    let mut volunteer = steps::Volunteer::new(world, machine, plan.package.clone());
    let mut outcome = Outcome::default();
    for (name, step) in steps::STEPS {
        let began = Instant::now();
        let ended = volunteer.take(step).await;
        let seconds = (began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
        let (held, detail_text) = match ended {
            Ok(detail) => (true, detail),
            Err(why) => (false, why.to_string()),
        };
        let step = Step { step: name, held, seconds, detail_text };
        told(&step);
        outcome.steps.push(step);
        if !held {
            break;
        }
    }
    outcome.all_taken = outcome.steps.len() == steps::STEPS.len();
    volunteer.end().await;
    Ok(outcome)
}
