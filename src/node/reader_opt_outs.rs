//! Opt-outs from programs that are not members, since owners of web sites run no daemon.
//!
//! Only what has a proof is taken, few proofs are looked for at a time, and none again soon, so that nobody has members send requests to a
//! server by it.

use crate::io::swarm::{SwarmCommand, SwarmHandle};
use nearcrawl_model::{
    ids::Ticket,
    message::PublicResponse,
    opt_out::{OptOutKey, OptOutProof, OptOutView},
    view::Span,
};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Proofs that are looked for at a time.
const AT_ONCE: usize = 2;

/// So many after a rest, and one more each so often: a record costs its server nothing, a file up to two requests.
const BURST: u32 = 4;
const RECORDS_EACH: Duration = Duration::from_secs(5);
const FILES_EACH: Duration = Duration::from_secs(60);

/// The same proof is looked for again after so long.
const RECORD_RESTS: Duration = Duration::from_secs(30);
const FILE_RESTS: Duration = Duration::from_secs(300);

/// Why an order is not taken.
const NO_OPERATOR: &str = "an order is given by the operator of a member at its machine: publish a proof (txt or file), then say so again";

/// How many may be looked for.
#[derive(Debug)]
pub struct ReaderOptOuts {
    at_once: Arc<Semaphore>,
    /// When as many as after a rest may be looked for again: records, and files.
    rested_at: [Instant; 2],
    /// Until when those that were looked for rest.
    rests: BTreeMap<OptOutKey, Instant>,
}

impl ReaderOptOuts {
    /// After a rest.
    pub fn new(now: Instant) -> ReaderOptOuts {
        ReaderOptOuts { at_once: Arc::new(Semaphore::new(AT_ONCE)), rested_at: [now; 2], rests: BTreeMap::new() }
    }

    /// The turn of a proof, to be held until it was looked for.
    ///
    /// # Errors
    /// Why it is not looked for, as a sentence.
    pub fn take(&mut self, key: &OptOutKey, now: Instant) -> Result<OwnedSemaphorePermit, String> {
        key.check().map_err(|why| why.to_string())?;
        let (kind, each, rest) = match key.proof {
            OptOutProof::Txt => (0, RECORDS_EACH, RECORD_RESTS),
            OptOutProof::File => (1, FILES_EACH, FILE_RESTS),
            OptOutProof::Order => return Err(NO_OPERATOR.to_owned()),
        };
        let later = |until: Instant| {
            let rest = Span(u64::try_from(until.saturating_duration_since(now).as_millis()).unwrap_or(u64::MAX));
            format!("ask again in {rest}, or another member")
        };
        // Not more than so many entries: each took a turn, and rests for a while only.
        self.rests.retain(|_, until| *until > now);
        if let Some(until) = self.rests.get(key) {
            return Err(format!("this proof was looked for here a moment ago: {}", later(*until)));
        }
        let rested_at = self.rested_at[kind].max(now) + each;
        let turn = if rested_at <= now + each * BURST { Arc::clone(&self.at_once).try_acquire_owned().ok() } else { None };
        let turn = turn.ok_or_else(|| format!("too many proofs are looked for here: {}", later(now + each)))?;
        self.rested_at[kind] = rested_at;
        self.rests.insert(key.clone(), now + rest);
        Ok(turn)
    }
}

/// Gives an answer to the program that asked.
pub fn answer(swarm: Option<&SwarmHandle>, ticket: Ticket, said: Result<OptOutView, String>) {
    let written = said.and_then(|view| serde_json::to_string(&view).map_err(|why| why.to_string()));
    let response = written.map_or_else(PublicResponse::Refused, PublicResponse::OptOut);
    let told = swarm.is_some_and(|swarm| swarm.tell(SwarmCommand::AnswerPublic { ticket, response }).is_ok());
    if !told {
        tracing::debug!("a reader was not answered, because the swarm task is busy or has ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::opt_out::OptOutSubject;

    fn key(host: usize, proof: OptOutProof) -> OptOutKey {
        OptOutKey { subject: OptOutSubject::Host(format!("h{host}.ke").parse().unwrap()), proof }
    }

    /// How many of a proof for each of many hosts are looked for in so many seconds.
    fn taken(proof: OptOutProof, seconds: u64) -> usize {
        let begin = Instant::now();
        let mut proofs = ReaderOptOuts::new(begin);
        (0..seconds * 10)
            .filter(|tenth| proofs.take(&key(*tenth as usize, proof), begin + Duration::from_millis(tenth * 100)).is_ok())
            .count()
    }

    #[test]
    fn few_proofs_are_looked_for_and_the_same_one_not_again_soon() {
        assert_eq!((taken(OptOutProof::File, 3_600), taken(OptOutProof::Txt, 600)), (63, 123));
        let now = Instant::now();
        let mut proofs = ReaderOptOuts::new(now);
        let turn = proofs.take(&key(1, OptOutProof::File), now).unwrap();
        let refused = proofs.take(&key(1, OptOutProof::File), now + Duration::from_secs(100)).unwrap_err();
        assert!(refused.contains("a moment ago: ask again in 3 min"), "{refused}");
        assert!(proofs.take(&key(1, OptOutProof::File), now + Duration::from_secs(301)).is_ok());
        let other = proofs.take(&key(2, OptOutProof::Txt), now).unwrap();
        assert!(proofs.take(&key(3, OptOutProof::Txt), now).is_err(), "two are looked for already");
        drop((turn, other));
        assert!(proofs.take(&key(3, OptOutProof::Txt), now).is_ok());
        assert!(proofs.take(&key(4, OptOutProof::Order), now).unwrap_err().contains("operator"));
    }
}
