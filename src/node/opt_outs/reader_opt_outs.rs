//! Opt-outs from programs that are not members, since owners of web sites run no daemon.
//!
//! Only what has a proof is taken, few proofs are looked for at a time, and none again soon, so that nobody has members send requests to a
//! server by it. Each network has a share of that.

use nearcrawl_core::report::View;
use nearcrawl_model::{
    message::PublicResponse,
    opt_out::{OptOutKey, OptOutProof},
    subnet::Subnet,
    view::Span,
};
use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of the opt-outs that are known here a program is told so many at a time, the members named with them counted, too: some hundred kilobytes.
const MAX_LISTED: usize = 1_000;

/// Proofs that are looked for at a time: of one network, and of all.
const AT_ONCE: usize = 2;
const AT_ONCE_OF_ALL: usize = 8;

/// For one network so many after a rest, and one more each so often: a record costs its server nothing, a file up to two requests.
const BURST: u32 = 4;
const RECORDS_EACH: Duration = Duration::from_secs(5);
const FILES_EACH: Duration = Duration::from_secs(60);

/// For all networks together so many after a rest, and so many times as many.
const BURST_OF_ALL: u32 = 16;
const AS_MANY: u32 = 4;

/// The same proof is looked for again after so long.
const RECORD_RESTS: Duration = Duration::from_secs(30);
const FILE_RESTS: Duration = Duration::from_secs(300);

/// How many proofs may be looked for, and are being looked for.
#[derive(Debug)]
struct Bucket {
    at_once: Arc<Semaphore>,
    most_at_once: usize,
    /// When as many as after a rest may be looked for again: records, and files.
    rested_at: [Instant; 2],
}

impl Bucket {
    /// After a rest.
    fn new(most_at_once: usize, now: Instant) -> Bucket {
        Bucket { at_once: Arc::new(Semaphore::new(most_at_once)), most_at_once, rested_at: [now; 2] }
    }

    /// When it has rested again if one more is looked for; none if that is too many.
    fn after_one(&self, kind: usize, each: Duration, burst: u32, now: Instant) -> Option<Instant> {
        let rested_at = self.rested_at[kind].max(now) + each;
        (rested_at <= now + each * burst).then_some(rested_at)
    }

    fn is_as_new(&self, now: Instant) -> bool {
        self.rested_at.iter().all(|rested_at| *rested_at <= now) && self.at_once.available_permits() == self.most_at_once
    }
}

/// The turn of a proof, to be held until it was looked for.
#[derive(Debug)]
pub struct ProofTurn {
    _of_all: OwnedSemaphorePermit,
    _of_network: OwnedSemaphorePermit,
}

/// How many may be looked for.
#[derive(Debug)]
pub struct ReaderOptOuts {
    all: Bucket,
    /// Of each network that has not rested: a /24, or a /48 of IPv6; none for programs that come through a third member.
    networks: BTreeMap<Option<Subnet>, Bucket>,
    /// Until when those that were looked for rest.
    rests: BTreeMap<OptOutKey, Instant>,
}

/// What counts as one network.
fn network(from: Option<IpAddr>) -> Option<Subnet> {
    let from = from?.to_canonical();
    Some(Subnet::around(from, if from.is_ipv4() { 24 } else { 48 }))
}

impl ReaderOptOuts {
    /// After a rest.
    pub fn new(now: Instant) -> ReaderOptOuts {
        ReaderOptOuts { all: Bucket::new(AT_ONCE_OF_ALL, now), networks: BTreeMap::new(), rests: BTreeMap::new() }
    }

    /// The turn of a proof (no order) that a program at this address wants to be looked for. One that is refused costs nobody a turn.
    ///
    /// # Errors
    /// Why it is not looked for, as a sentence.
    pub fn take(&mut self, from: Option<IpAddr>, key: &OptOutKey, now: Instant) -> Result<ProofTurn, String> {
        let (kind, each, rest) = match key.proof {
            OptOutProof::File => (1, FILES_EACH, FILE_RESTS),
            OptOutProof::Txt | OptOutProof::Order => (0, RECORDS_EACH, RECORD_RESTS),
        };
        let later = |until: Instant| {
            let rest = Span(u64::try_from(until.saturating_duration_since(now).as_millis()).unwrap_or(u64::MAX));
            format!("ask again in {rest}, or another member")
        };
        // Not more than so many entries of each: every one took a turn of all, and rests for a while only.
        self.rests.retain(|_, until| *until > now);
        self.networks.retain(|_, bucket| !bucket.is_as_new(now));
        if let Some(until) = self.rests.get(key) {
            return Err(format!("this proof was looked for here a moment ago: {}", later(*until)));
        }
        let bucket = self.networks.entry(network(from)).or_insert_with(|| Bucket::new(AT_ONCE, now));
        let times = bucket.after_one(kind, each, BURST, now).zip(self.all.after_one(kind, each / AS_MANY, BURST_OF_ALL, now));
        let turn = times.and_then(|times| {
            let of_network = Arc::clone(&bucket.at_once).try_acquire_owned().ok()?;
            let of_all = Arc::clone(&self.all.at_once).try_acquire_owned().ok()?;
            Some((times, ProofTurn { _of_all: of_all, _of_network: of_network }))
        });
        let Some(((of_network, of_all), turn)) = turn else {
            return Err(format!("too many proofs are looked for here: {}", later(now + each)));
        };
        (bucket.rested_at[kind], self.all.rested_at[kind]) = (of_network, of_all);
        self.rests.insert(key.clone(), now + rest);
        Ok(turn)
    }
}

/// Why a proof of this kind is not looked for now because of what the operator of this daemon lets it move. A record is looked up always:
/// that is some 200 bytes to a name server, and a no is to be heard by any member. A file is up to two requests to a server.
pub fn refuses(proof: OptOutProof, is_resting: bool, spent: Option<&'static str>) -> Option<&'static str> {
    match proof {
        OptOutProof::Txt | OptOutProof::Order => None,
        OptOutProof::File if is_resting => Some("its operator lets it ask nothing now; say so to another member, or publish a TXT record"),
        OptOutProof::File => spent,
    }
}

/// A part of the opt-outs that are known here: those behind one.
pub fn list(view: &View<'_>, after: Option<&OptOutKey>) -> PublicResponse {
    let (views, next) = view.opt_outs_after(after, MAX_LISTED);
    let written = serde_json::to_string(&views).map_err(|why| why.to_string());
    written.map_or_else(PublicResponse::Refused, |views| PublicResponse::OptOuts { views, next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::opt_out::OptOutSubject;

    fn key(host: usize, proof: OptOutProof) -> OptOutKey {
        OptOutKey { subject: OptOutSubject::Host(format!("h{host}.ke").parse().unwrap()), proof }
    }

    fn at(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    /// How many of a proof for each of many hosts are looked for in so many seconds, if programs at so many networks ask all the time.
    fn taken(proof: OptOutProof, seconds: u64, networks: u64) -> usize {
        let begin = Instant::now();
        let mut proofs = ReaderOptOuts::new(begin);
        let asks = (0..seconds * 10).flat_map(|tenth| (0..networks).map(move |network| (tenth, network)));
        let taken = asks.filter(|(tenth, network)| {
            let from = at(&format!("192.0.{network}.{}", tenth % 250));
            proofs.take(from, &key((tenth * networks + network) as usize, proof), begin + Duration::from_millis(tenth * 100)).is_ok()
        });
        taken.count()
    }

    #[test]
    fn a_record_is_looked_up_in_a_pause_and_when_the_bytes_for_readers_are_spent_and_a_file_is_not() {
        for (is_resting, spent) in [(false, None), (true, None), (false, Some("spent")), (true, Some("spent"))] {
            assert_eq!(refuses(OptOutProof::Txt, is_resting, spent), None, "{is_resting}, {spent:?}");
            let file = refuses(OptOutProof::File, is_resting, spent);
            assert_eq!(file.is_some(), is_resting || spent.is_some(), "{file:?}");
            assert!(!is_resting || file.is_some_and(|why| why.contains("say so to another member")), "{file:?}");
        }
    }

    #[test]
    fn few_proofs_are_looked_for_and_the_same_one_not_again_soon() {
        assert_eq!((taken(OptOutProof::File, 3_600, 1), taken(OptOutProof::Txt, 600, 1)), (63, 123));
        assert_eq!((taken(OptOutProof::File, 3_600, 20), taken(OptOutProof::Txt, 600, 20)), (16 + 239, 16 + 479), "of all networks");
        let now = Instant::now();
        let mut proofs = ReaderOptOuts::new(now);
        let from = at("192.0.2.1");
        let turn = proofs.take(from, &key(1, OptOutProof::File), now).unwrap();
        let refused = proofs.take(from, &key(1, OptOutProof::File), now + Duration::from_secs(100)).unwrap_err();
        assert!(refused.contains("a moment ago: ask again in 3 min"), "{refused}");
        assert!(proofs.take(from, &key(1, OptOutProof::File), now + Duration::from_secs(301)).is_ok());
        let other = proofs.take(from, &key(2, OptOutProof::Txt), now).unwrap();
        assert!(proofs.take(from, &key(3, OptOutProof::Txt), now).is_err(), "two are looked for already");
        drop((turn, other));
        assert!(proofs.take(from, &key(3, OptOutProof::Txt), now).is_ok());
    }

    #[test]
    fn a_stranger_that_asks_all_the_time_keeps_nobody_of_another_network_out() {
        let now = Instant::now();
        let mut proofs = ReaderOptOuts::new(now);
        let mut turns = Vec::new();
        for host in 0..100 {
            turns.extend(proofs.take(at("192.0.2.1"), &key(host, OptOutProof::File), now));
            turns.extend(proofs.take(at("::ffff:192.0.2.77"), &key(100 + host, OptOutProof::Txt), now));
        }
        assert_eq!(turns.len(), AT_ONCE, "they are one network");
        for (host, from) in [(201, at("192.0.3.1")), (202, at("2001:db8:1::1")), (203, None)] {
            assert!(proofs.take(from, &key(host, OptOutProof::File), now).is_ok(), "{from:?}");
        }
        assert!(proofs.take(at("2001:db8:1:9::7"), &key(204, OptOutProof::File), now).is_ok(), "a second one of a /48");
        let later = now + Duration::from_secs(3_600);
        drop(turns);
        assert!(proofs.take(None, &key(300, OptOutProof::Txt), later).is_ok());
        assert_eq!(proofs.networks.len(), 1, "those that rested are forgotten");
    }
}
