//! Digest of a run of a scenario: two runs that do the same have the same.

use super::verdict::Verdict;
use crate::swarm::{
    Played,
    ledger::{Contact, Purpose},
};
use sha2::{Digest, Sha256};

/// One hash over what servers saw, what is stored, and the figures.
pub(super) fn digest(world: &Played, verdict: &Verdict) -> String {
    let mut hash = Sha256::new();
    for contact in &world.ledger.contacts {
        let Contact { address, begin, end, purpose, .. } = contact;
        let purpose = match purpose {
            Purpose::Probe => "probe".to_owned(),
            Purpose::Robots(url) => format!("robots {url}"),
            Purpose::Page(url) => format!("page {url}"),
        };
        hash.update(format!("{} {} {address} {:?} {purpose}\n", begin.0, end.0, world.number_of_process(&contact.by)));
    }
    for (number, process) in world.running_processes() {
        let Some(disk) = world.disk_of(&process) else { continue };
        for (subnet, proof) in &disk.claims {
            hash.update(format!("claim {number} {subnet}\n"));
            hash.update(&proof.bytes);
        }
        for (key, journal) in &disk.journals {
            hash.update(format!("journal {number} {} {} {}\n", key.subnet, key.host, key.run));
            journal.values().for_each(|entry| hash.update(entry));
        }
    }
    // Numbers and texts always encode.
    hash.update(serde_json::to_string(verdict).unwrap_or_default());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
