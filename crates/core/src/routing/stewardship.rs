//! Whether this access point, as a host's steward now, may know less of the host than another member that was its steward before.
//!
//! Stewards change when members come and go. Owners tell a new steward where their hosts are ([`Request::Pinned`]), and what an owner tells
//! takes the place of an address that was learnt before another member was the steward. A host of which the steward knows nothing is not
//! looked up before owners had the time to tell: if it has moved meanwhile it would be taken in at its new address while the owner of the
//! one before still crawls it.
//!
//! [`Request::Pinned`]: nearcrawl_model::message::Request::Pinned

use crate::membership::rendezvous;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// Within this time after a change of stewards owners have told the new ones of their hosts.
const OWNERS_TELL: Millis = 10_000;

/// The same if an owner is silent: until somebody has taken its subnets over, and the time to tell of that.
const SUCCESSORS_TELL: Millis = 120_000;

/// Members that live no more are remembered up to this number, those that went last.
const MAX_GONE: usize = 1_024;

/// What is known of who was the steward of hosts before.
#[derive(Debug, Default)]
pub(crate) struct Stewardship {
    /// Who lived when that changed last.
    live: BTreeSet<AccessPoint>,
    /// Members that lived and do not, and when that was found: at most [`MAX_GONE`].
    gone: BTreeMap<AccessPoint, Moment>,
    /// When it was found last that others may have taken us for dead.
    was_away: Option<Moment>,
    /// Whether other members own subnets.
    others_own: bool,
    /// When an owner was silent last.
    owner_silent: Option<Moment>,
    /// Whether our ownership map lacks nothing.
    lacks_claims: bool,
}

/// What the ownership map says of owners.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owners {
    /// Whether the map is whole.
    pub(crate) whole: bool,
    /// Whether other members own subnets.
    pub(crate) others: bool,
    /// Whether one of them is silent.
    pub(crate) silent: bool,
}

impl Stewardship {
    /// These live now. If half of all that were known were gone and some of them are back, it may be us who was away.
    pub(crate) fn members_changed(&mut self, live: &[AccessPoint], now: Moment) {
        let live: BTreeSet<_> = live.iter().copied().collect();
        let had_gone = self.gone.len();
        for member in self.live.difference(&live) {
            self.gone.insert(*member, now);
        }
        self.gone.retain(|member, _| !live.contains(member));
        if self.gone.len() < had_gone && had_gone >= self.live.len() {
            self.was_away = Some(now);
        }
        while self.gone.len() > MAX_GONE {
            let first = self.gone.iter().min_by_key(|(member, at)| (**at, **member)).map(|(member, _)| *member);
            first.and_then(|member| self.gone.remove(&member));
        }
        self.live = live;
    }

    /// We held no lease, so others may have taken us for dead.
    pub(crate) fn was_away(&mut self, now: Moment) {
        self.was_away = Some(now);
    }

    /// What the ownership map says now.
    pub(crate) fn owners(&mut self, owners: Owners, now: Moment) {
        if owners.whole && self.lacks_claims {
            self.was_away = Some(now);
        }
        self.lacks_claims = !owners.whole;
        self.others_own = owners.others;
        if owners.silent {
            self.owner_silent = Some(now);
        }
    }

    /// Whether another member may have been the steward of this host since then.
    pub(crate) fn was_others(&self, me: AccessPoint, host: &Host, since: Moment) -> bool {
        self.was_away.is_some_and(|at| since <= at) || self.any_gone(me, host, |at| since <= at)
    }

    /// Whether owners may not have had the time yet to tell us of this host.
    pub(crate) fn awaits_owners(&self, me: AccessPoint, host: &Host, now: Moment) -> bool {
        if !self.others_own {
            return false;
        }
        if self.lacks_claims || self.was_away.is_some_and(|at| now.since(at) < OWNERS_TELL) {
            return true;
        }
        let silent = self.owner_silent.is_some_and(|at| now.since(at) < OWNERS_TELL);
        let patience = if silent { SUCCESSORS_TELL } else { OWNERS_TELL };
        self.any_gone(me, host, |at| now.since(at) < patience)
    }

    /// Whether a member that went then was the host's steward rather than we.
    fn any_gone(&self, me: AccessPoint, host: &Host, then: impl Fn(Moment) -> bool) -> bool {
        let mut gone = self.gone.iter().filter(|(_, at)| then(**at)).map(|(member, _)| *member);
        let key = rendezvous::key_hash(host.as_str());
        gone.any(|member| rendezvous::steward(key, &[me, member]) == Some(member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    /// A host that has the first of these as its steward, without it the second.
    fn host_of(first: u8, second: u8) -> Host {
        let all: Vec<_> = (1..=5).map(member).collect();
        let order = |host: &Host| rendezvous::order(rendezvous::key_hash(host.as_str()), &all);
        let is_it = |host: &Host| order(host).starts_with(&[member(first), member(second)]);
        (0..).map(|number| format!("a{number}.ke").parse().unwrap()).find(is_it).unwrap()
    }

    /// Five members, of which others own subnets.
    fn stewardship() -> Stewardship {
        let mut stewardship = Stewardship::default();
        stewardship.members_changed(&(1..=5).map(member).collect::<Vec<_>>(), Moment(1_000));
        stewardship.owners(Owners { whole: true, others: true, silent: false }, Moment(1_000));
        stewardship
    }

    #[test]
    fn hosts_of_a_steward_that_died_wait_for_their_owners_and_no_others() {
        let (mut stewardship, me, theirs, ours) = (stewardship(), member(1), host_of(5, 1), host_of(1, 5));
        assert!(!stewardship.awaits_owners(me, &theirs, Moment(2_000)));
        stewardship.members_changed(&(1..=4).map(member).collect::<Vec<_>>(), Moment(50_000));
        assert!(stewardship.awaits_owners(me, &theirs, Moment(59_999)) && !stewardship.awaits_owners(me, &theirs, Moment(60_000)));
        assert!(!stewardship.awaits_owners(me, &ours, Moment(50_000)));
        assert!(stewardship.was_others(me, &theirs, Moment(49_000)) && !stewardship.was_others(me, &theirs, Moment(50_001)));
        assert!(!stewardship.was_others(me, &ours, Moment(0)));
        stewardship.owners(Owners { whole: true, others: true, silent: true }, Moment(60_000));
        assert!(stewardship.awaits_owners(me, &theirs, Moment(69_000)), "nobody has told of the dead owner's hosts");
        assert!(!stewardship.awaits_owners(me, &theirs, Moment(70_000)), "its successor has");
    }

    #[test]
    fn a_steward_that_was_cut_off_or_has_just_joined_knows_less_than_owners() {
        let (mut stewardship, me, host) = (stewardship(), member(1), host_of(1, 5));
        stewardship.members_changed(&[me], Moment(50_000));
        assert!(!stewardship.was_others(me, &host, Moment(40_000)), "it is not known yet that it was away");
        stewardship.members_changed(&[me, member(2)], Moment(90_000));
        assert!(stewardship.was_others(me, &host, Moment(89_000)) && stewardship.awaits_owners(me, &host, Moment(99_999)));
        assert!(!stewardship.awaits_owners(me, &host, Moment(100_000)));
        stewardship.owners(Owners { whole: false, others: true, silent: false }, Moment(200_000));
        assert!(stewardship.awaits_owners(me, &host, Moment(300_000)));
        stewardship.owners(Owners { whole: false, others: false, silent: false }, Moment(300_000));
        assert!(!stewardship.awaits_owners(me, &host, Moment(300_000)), "nobody has hosts");
    }
}
