//! Our own lease: no request leaves without it.

use crate::voting::Times;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
    vote::{Renewed, VoterList},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Renewals whose answers may still come.
const MAX_UNDER_WAY: usize = 16;

/// How often a lease that has run out is asked for, as a share of the usual time.
const SOONER: Millis = 5;

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLease {
    /// No list of voters is known yet.
    NoVoters,
    /// Fewer voters have renewed it than are needed.
    FewVoters {
        /// Those who did at the last attempt.
        renewed: usize,
        /// The number needed.
        needed: usize,
    },
    /// Another process with our key holds it.
    KeyInUse,
    /// What was owned is others' by now: a new term begins.
    Ended,
}

impl fmt::Display for NoLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoLease::NoVoters => f.write_str("no member has said yet who votes in this swarm"),
            NoLease::FewVoters { renewed, needed } => write!(
                f,
                "only {renewed} of the {needed} voters needed renew its lease, so others may be taking over; check this machine's network"
            ),
            NoLease::KeyInUse => {
                f.write_str("another process uses this access point's key: stop one of them, and give a copy a key of its own")
            }
            NoLease::Ended => f.write_str("it was silent for so long that others may own its subnets; it begins anew"),
        }
    }
}

/// A renewal on its way.
#[derive(Debug)]
struct Sent {
    at: Moment,
    list: u64,
    renewed: BTreeSet<AccessPoint>,
}

/// The lease.
#[derive(Debug)]
pub(crate) struct Lease {
    times: Times,
    term: u64,
    until: Option<Moment>,
    /// Since when this term has been asked for.
    began: Moment,
    due: Moment,
    count: u64,
    under_way: BTreeMap<u64, Sent>,
    /// What each voter said last, if it did not renew.
    refused: BTreeMap<AccessPoint, Renewed>,
    /// Voters that answered in this life.
    answered: BTreeSet<AccessPoint>,
}

/// What an answer to a renewal leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// This term was ended by so many voters that it cannot be renewed: the next one begins.
    NextTerm(u64),
    /// A voter goes by this list.
    OtherList(u64),
}

impl Lease {
    pub(crate) fn new(times: Times, now: Moment, term: u64) -> Lease {
        Lease {
            times,
            term: term.max(1),
            until: None,
            began: now,
            due: now,
            count: 0,
            under_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            answered: BTreeSet::new(),
        }
    }

    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Until when it lasts; none if it has never been renewed in this life.
    pub(crate) fn until(&self) -> Option<Moment> {
        self.until
    }

    pub(crate) fn holds(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Another term begins: nothing that was renewed before counts.
    pub(crate) fn begin_term(&mut self, now: Moment, term: u64) {
        self.term = term;
        (self.until, self.began) = (None, now);
        self.under_way.clear();
        self.refused.clear();
        self.due = now;
    }

    /// It is renewed at once, by a new list.
    pub(crate) fn list_changed(&mut self, now: Moment, list: &VoterList) {
        self.refused.clear();
        self.answered.retain(|voter| list.contains(voter));
        self.due = now;
    }

    /// Whether a voter answered in this life.
    pub(crate) fn was_answered_by(&self, voter: &AccessPoint) -> bool {
        self.answered.contains(voter)
    }

    /// Whether a voter knows of another process with our key.
    pub(crate) fn is_in_use(&self) -> bool {
        self.refused.values().any(|answer| matches!(answer, Renewed::Held | Renewed::Superseded(_)))
    }

    /// The number of a renewal that is due now, if one is.
    pub(crate) fn next_renewal(&mut self, now: Moment, list: u64) -> Option<u64> {
        if now < self.due {
            return None;
        }
        let every = if self.holds(now) { self.times.renew_every } else { (self.times.renew_every / SOONER).max(1) };
        self.due = now.after(every);
        self.count += 1;
        self.under_way.insert(self.count, Sent { at: now, list, renewed: BTreeSet::new() });
        while self.under_way.len() > MAX_UNDER_WAY {
            self.under_way.pop_first();
        }
        Some(self.count)
    }

    /// A voter of the present list answered.
    pub(crate) fn answered(&mut self, now: Moment, number: u64, list: &VoterList, from: AccessPoint, answer: &Renewed) -> Step {
        if !list.contains(&from) {
            return Step::Nothing;
        }
        self.answered.insert(from);
        if !matches!(answer, Renewed::Granted(_)) {
            self.refused.insert(from, answer.clone());
        }
        match answer {
            Renewed::Granted(_) => {
                self.refused.remove(&from);
                let Some(sent) = self.under_way.get_mut(&number).filter(|sent| sent.list == list.number) else { return Step::Nothing };
                sent.renewed.insert(from);
                if sent.renewed.len() >= list.quorum() {
                    self.until = self.until.max(Some(sent.at.after(self.times.lease)));
                }
                Step::Nothing
            }
            Renewed::OtherList(number) if *number > list.number => Step::OtherList(*number),
            Renewed::Ended(_) => {
                let ended = self.refused.iter().filter(|(who, _)| list.contains(who));
                let terms: Vec<u64> =
                    ended.filter_map(|(_, said)| if let Renewed::Ended(term) = said { Some(*term) } else { None }).collect();
                // Those that do not answer may never do: then it cannot be renewed either.
                let without = now.since(self.until.unwrap_or(self.began)) >= self.times.patience();
                let lost = list.voters.len() - terms.len() < list.quorum() || without;
                if lost { Step::NextTerm(terms.into_iter().max().unwrap_or(0).max(self.term) + 1) } else { Step::Nothing }
            }
            Renewed::Held | Renewed::Superseded(_) | Renewed::Changing | Renewed::OtherList(_) => Step::Nothing,
        }
    }

    /// Why it is not held, if it is not.
    pub(crate) fn why_not(&self, list: Option<&VoterList>) -> NoLease {
        let Some(list) = list else { return NoLease::NoVoters };
        let said = |what: fn(&Renewed) -> bool| self.refused.values().any(what);
        if self.is_in_use() {
            NoLease::KeyInUse
        } else if said(|answer| matches!(answer, Renewed::Ended(_))) {
            NoLease::Ended
        } else {
            let renewed = self.under_way.values().map(|sent| sent.renewed.len()).next_back().unwrap_or(0);
            NoLease::FewVoters { renewed, needed: list.quorum() }
        }
    }
}
