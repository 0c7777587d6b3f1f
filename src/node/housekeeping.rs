//! Work of the loop on the disk beside the crawler's commands, without ever waiting for it.
//!
//! It is about what is kept for the next start, and how large the disk's part is.
//!
//! Chores are done one after another by a task of its own; what came of each comes back as a [`Done`].

use crate::node::{
    error::NodeError,
    setup::{self, WebClients},
    state::persisted_state::{self, StatePart, StatePartKind},
};
use crate::{
    io::{
        store::{Store, StoreError},
        swarm::SwarmSecrets,
        tasks::{self, TaskKind},
    },
    node::config::Config,
};
use nearcrawl_model::{access_point::AccessPoint, claim::SignedClaim, url::PageUrl};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Chores that may wait; one more is refused, and asked for again later.
const MAX_CHORES: usize = 16;

/// A task for the housekeeping thread: disk access that the loop must not wait for.
#[derive(Clone, Debug)]
pub enum Chore {
    /// Measure free and used bytes on the disk, and look whether somebody came across damage in the state database.
    Measure,
    /// Store the members that count now, and their addresses.
    Members {
        /// The members that count.
        members: BTreeSet<AccessPoint>,
        /// Their multiaddrs.
        addresses: Vec<String>,
    },
    /// Store the secrets of the swarm that accepted this access point, and open what depends on them.
    Secrets(SwarmSecrets),
    /// Store a part of the state that has changed.
    Keep(StatePart),
    /// Store these starting points in place of all that were stored before.
    Seeds {
        /// To be named when it is done.
        number: u64,
        /// All of them.
        seeds: Vec<PageUrl>,
    },
}

/// The result of a chore.
pub enum Done {
    /// Bytes on the disk; none of a number that could not be measured.
    Measured {
        /// Free bytes on the file system.
        free: Option<u64>,
        /// Bytes of the state database.
        state: u64,
        /// Bytes of both databases.
        all: u64,
        /// Damage of the state database that was found since the start: the daemon cannot go on.
        damage: Option<StoreError>,
    },
    /// The members were stored, or an error as text.
    Members(Result<(BTreeSet<AccessPoint>, Vec<String>), String>),
    /// A part of the state was stored, or an error as text.
    Kept(StatePartKind, Result<(), String>),
    /// The secrets are kept.
    Admitted(Box<Result<Admitted, NodeError>>),
    /// The starting points were stored, or an error as text.
    Seeds {
        /// Of which [`Chore::Seeds`].
        number: u64,
        /// Whether it is so.
        result: Result<(), String>,
    },
}

/// What a node needs that was let into a swarm.
pub struct Admitted {
    /// The swarm's secrets, stored.
    pub secrets: SwarmSecrets,
    /// Clients that use the swarm's fingerprint key.
    pub web: WebClients,
    /// The claims in the store.
    pub claims: Vec<SignedClaim>,
    /// The pages of statements about opt-outs, with those that people gave here before.
    pub opt_outs: Vec<Vec<u8>>,
    /// The pages of certificates and expulsions, also those of before.
    pub admissions: Vec<Vec<u8>>,
}

/// Where chores are given.
pub struct Housekeeping(mpsc::Sender<Chore>);

impl Housekeeping {
    /// Begins its task, which ends with this value.
    pub fn start(store: Store, config: Config) -> (Housekeeping, mpsc::Receiver<Done>) {
        let (chores, waiting) = mpsc::channel(MAX_CHORES);
        // One more than can wait, so that a finished chore never waits for the loop.
        let (done, told) = mpsc::channel(MAX_CHORES + 1);
        // After a panic nobody tells of chores any more: the loop sees that housekeeping has ended.
        tokio::spawn(tasks::run(TaskKind::Housekeeping, serve(store, config, waiting, done)));
        (Housekeeping(chores), told)
    }

    /// Gives a chore; false if too many wait.
    pub fn give(&self, chore: Chore) -> bool {
        self.0.try_send(chore).is_ok()
    }
}

async fn serve(store: Store, config: Config, mut chores: mpsc::Receiver<Chore>, done: mpsc::Sender<Done>) {
    while let Some(chore) = chores.recv().await {
        let failed = failure_of(&chore);
        let kind = if matches!(chore, Chore::Measure) { TaskKind::DiskUsage } else { TaskKind::PersistedState };
        let told = tasks::run(kind, carry_out(&store, &config, chore)).await;
        if done.send(told.unwrap_or(failed)).await.is_err() {
            return;
        }
    }
}

/// The outcome of a chore whose task panicked.
fn failure_of(chore: &Chore) -> Done {
    let why = "nearcrawl itself failed while it wrote".to_owned();
    match chore {
        Chore::Measure => Done::Measured { free: None, state: 0, all: 0, damage: None },
        Chore::Members { .. } => Done::Members(Err(why)),
        Chore::Secrets(_) => Done::Admitted(Box::new(Err(NodeError::Ended("storing the swarm's secrets")))),
        Chore::Keep(part) => Done::Kept(part.kind(), Err(why)),
        Chore::Seeds { number, .. } => Done::Seeds { number: *number, result: Err(why) },
    }
}

async fn carry_out(store: &Store, config: &Config, chore: Chore) -> Done {
    match chore {
        Chore::Measure => {
            // What the loop entered in the seen set is in its log within the time from one measurement to the next.
            store.settle();
            let (state, all) = (store.state_usage().await.unwrap_or(0), store.disk_usage().await.unwrap_or(0));
            Done::Measured { free: store.free_space().await.ok(), state, all, damage: store.state_damage().await }
        }
        Chore::Members { members, addresses } => {
            let kept = persisted_state::keep_members(store, &members, &addresses).await;
            Done::Members(kept.map(|()| (members, addresses)).map_err(|why| why.to_string()))
        }
        Chore::Keep(part) => Done::Kept(part.kind(), persisted_state::keep(store, part).await.map_err(|why| why.to_string())),
        Chore::Secrets(secrets) => Done::Admitted(Box::new(admitted(store, config, secrets).await)),
        Chore::Seeds { number, seeds } => {
            let result = persisted_state::keep_seeds(store, &seeds).await.map_err(|why| why.to_string());
            Done::Seeds { number, result }
        }
    }
}

async fn admitted(store: &Store, config: &Config, secrets: SwarmSecrets) -> Result<Admitted, NodeError> {
    persisted_state::keep_secrets(store, &secrets).await?;
    let claims = store.claims_all().await?;
    let (opt_outs, admissions) = persisted_state::statements(store).await?;
    let config = config.clone();
    // It reads the system's name servers and the authorities' certificates from files, and this task runs on the loop's thread.
    let opening = tokio::task::spawn_blocking(move || setup::web_clients(&config, secrets.fingerprint_key));
    let web = opening.await.map_err(|_| NodeError::Ended("opening the web clients"))??;
    Ok(Admitted { secrets, web, claims, opt_outs, admissions })
}
