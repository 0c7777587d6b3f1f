//! Confirms that the list that was known at the start is still in force.
//!
//! While this access point was away, an operator may have declared its voters lost, and the others go by a list that none of those had to
//! agree on.
//!
//! A process that begins with a list, or whose lease has run out, decides nothing by it until another voter, which does not either until
//! then, has renewed its lease, or all members that it remembers have answered that they know of no later list, or it has asked for long
//! enough. If that list was replaced without its voters, it goes by the next one then. One that holds a lease has recorded what may be
//! nowhere else, and stops instead.

use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
    vote::{SignedList, VoterList},
};
use std::collections::BTreeSet;

/// Lists that were chosen without our voters, of which the one that is rightly so is told apart. Each takes a forger.
const MAX_NEXT: usize = 16;

/// A list that may have replaced ours, and the members that go by it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Next {
    signed: SignedList,
    of: BTreeSet<AccessPoint>,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Members are asked; these know of no later list, or of one that was chosen without our voters.
    Asked {
        since: Moment,
        answered: BTreeSet<AccessPoint>,
        next: Vec<Next>,
    },
    Confirmed,
    /// This member goes by a list that was chosen without our voters, and this process held a lease by ours.
    Replaced {
        by: AccessPoint,
    },
}

impl State {
    fn asked(now: Moment) -> State {
        State::Asked { since: now, answered: BTreeSet::new(), next: Vec::new() }
    }
}

/// Whether the list is known to be in force.
#[derive(Debug)]
pub(super) struct Confirmation {
    state: State,
    /// Whether this process held a lease when it was looked at last: what it records may be nowhere else.
    leased: bool,
}

/// What is known here of members, by which a list that was chosen without our voters is judged.
pub(super) struct Witnesses<'a> {
    /// How many members own something.
    pub(super) owners: usize,
    /// Whether a member owns something, or has by a list that is known here.
    pub(super) has_owned: &'a dyn Fn(&AccessPoint) -> bool,
    /// Lists of fewer voters can be stopped by those that were let in.
    pub(super) few: usize,
}

impl Confirmation {
    /// Of a process that begins, with a list or without.
    pub(super) fn new(now: Moment, with_list: bool) -> Confirmation {
        let state = if with_list { State::asked(now) } else { State::Confirmed };
        Confirmation { state, leased: false }
    }

    /// Whether nothing has contradicted the list for long enough.
    pub(super) fn is_given(&self) -> bool {
        self.state == State::Confirmed
    }

    /// Whether members are still asked.
    pub(super) fn is_asked_for(&self) -> bool {
        matches!(self.state, State::Asked { .. })
    }

    /// Who goes by another list, if this access point must decide nothing because of that.
    pub(super) fn replaced_by(&self) -> Option<AccessPoint> {
        if let State::Replaced { by } = self.state { Some(by) } else { None }
    }

    /// Whether this process holds a lease. One that held one, and holds none any more, was cut off or stood still, and asks anew: whether it
    /// begins to.
    pub(super) fn leased(&mut self, now: Moment, holds: bool) -> bool {
        let lapsed = self.leased && !holds && self.state == State::Confirmed;
        if lapsed {
            self.state = State::asked(now);
        }
        self.leased = holds;
        lapsed
    }

    /// It has asked long enough, or all have answered. `remembered` are the other members of whom this access point knew at its start or has
    /// heard since. If our list, `list`, was replaced without its voters: by which, which of them count as lost, and a member that goes by it.
    pub(super) fn conclude(
        &mut self,
        (now, patience): (Moment, Millis),
        list: &VoterList,
        mut remembered: impl Iterator<Item = AccessPoint>,
        witnesses: &Witnesses<'_>,
    ) -> Option<(SignedList, BTreeSet<AccessPoint>, AccessPoint)> {
        let State::Asked { since, answered, next } = &mut self.state else { return None };
        if now.since(*since) < patience && !remembered.all(|member| answered.contains(&member)) {
            return None;
        }
        let next = std::mem::take(next);
        self.state = State::Confirmed;
        next.into_iter().find_map(|Next { signed, of }| {
            let lost = lost_for(list, &signed, witnesses).or_else(|| {
                let owners = of.iter().filter(|member| (witnesses.has_owned)(member)).count();
                let by_many = owners > witnesses.owners / 3 && !signed.accepted_by(list).is_empty();
                by_many.then(|| rejected_by(list, &signed))
            })?;
            let from = *of.first()?;
            Some((signed, lost, from))
        })
    }

    /// A member knows of no later list.
    pub(super) fn answered(&mut self, from: AccessPoint) {
        if let State::Asked { answered, .. } = &mut self.state {
            answered.insert(from);
        }
    }

    /// Another voter, which has had its list confirmed, renewed our lease.
    pub(super) fn confirm(&mut self) {
        if self.is_asked_for() {
            self.state = State::Confirmed;
        }
    }

    /// A later list is adopted, in whatever way.
    pub(super) fn adopted(&mut self) {
        self.state = State::Confirmed;
    }

    /// A member goes by this list, chosen without voters of `list`, ours, but for those that `accepted` it. Whether this access point must
    /// stop at once; none if the list does not count, or is not well signed.
    pub(super) fn contradicted(
        &mut self,
        from: AccessPoint,
        list: &VoterList,
        (signed, accepted): (&SignedList, &BTreeSet<AccessPoint>),
        witnesses: &Witnesses<'_>,
    ) -> Option<bool> {
        let sure = is_sure(list, signed, accepted, witnesses);
        let counts = signed.check_form(Some(list)).is_ok() && (sure || !accepted.is_empty());
        if !counts || !signed.is_chosen_by(accepted, list, &others_than(list, accepted)) || signed.check_installed().is_err() {
            return None;
        }
        if let State::Asked { next, .. } = &mut self.state {
            match next.iter().position(|known| known.signed.list == signed.list) {
                Some(at) => drop(next[at].of.insert(from)),
                None if next.len() < MAX_NEXT => next.push(Next { signed: signed.clone(), of: BTreeSet::from([from]) }),
                None => {}
            }
            return Some(false);
        }
        let replaced = self.leased && sure;
        if replaced {
            self.state = State::Replaced { by: from };
        }
        Some(replaced)
    }
}

/// The voters that did not accept this list.
fn rejected_by(list: &VoterList, next: &SignedList) -> BTreeSet<AccessPoint> {
    others_than(list, &next.accepted_by(list))
}

/// The voters of a list but these.
fn others_than(list: &VoterList, accepted: &BTreeSet<AccessPoint>) -> BTreeSet<AccessPoint> {
    list.voters.iter().filter(|voter| !accepted.contains(voter)).copied().collect()
}

/// The voters of `list` that count as lost if `next` was rightly chosen without them; none if that is not sure.
fn lost_for(list: &VoterList, next: &SignedList, witnesses: &Witnesses<'_>) -> Option<BTreeSet<AccessPoint>> {
    let accepted = next.accepted_by(list);
    is_sure(list, next, &accepted, witnesses).then(|| others_than(list, &accepted))
}

/// Whether `next`, which these voters of `list` accepted, was rightly chosen without the others. It was if more accepted it than may lie.
/// If an operator declared all voters lost, none could: then the word of its own voters has to do, if there were few, and these are members
/// that owned something.
fn is_sure(list: &VoterList, next: &SignedList, accepted: &BTreeSet<AccessPoint>, witnesses: &Witnesses<'_>) -> bool {
    let may_lie = (list.voters.len().max(1) - 1) / 3;
    let few = || list.voters.len() < witnesses.few && next.list.voters.iter().all(witnesses.has_owned);
    accepted.len() > may_lie || accepted.is_empty() && few()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use nearcrawl_model::vote::{Ballot, sign_accepted, sign_installed};

    const TIMEOUT: Millis = 10_000;

    fn key(number: u8) -> SigningKey {
        SigningKey::from_bytes(&[number; 32])
    }

    fn ap(number: u8) -> AccessPoint {
        AccessPoint(key(number).verifying_key().to_bytes())
    }

    fn list(number: u64, voters: &[u8]) -> VoterList {
        let mut voters: Vec<_> = voters.iter().map(|voter| ap(*voter)).collect();
        voters.sort();
        VoterList { number, voters, age: 0 }
    }

    /// List 2 of this one voter, which these voters of list 1 accepted.
    fn chosen(voter: u8, accepted: &[u8]) -> SignedList {
        let (list, ballot) = (list(2, &[voter]), Ballot { round: 1, proposer: ap(voter) });
        let accepted = accepted.iter().map(|by| sign_accepted(&list, ballot, &key(*by))).collect();
        let installed = vec![sign_installed(&list, &key(voter))];
        SignedList { list, ballot, accepted, installed }
    }

    fn is_contradicted(confirmation: &mut Confirmation, by: u8, ours: &VoterList, next: &SignedList, witnesses: &Witnesses<'_>) -> bool {
        let accepted = next.accepted_by(ours);
        confirmation.contradicted(ap(by), ours, (next, &accepted), witnesses) == Some(true)
    }

    /// Whether a process that begins with list 1 of `voters` goes by `next` when it has asked long enough and these members go by it, where
    /// members 1 to `owners` own something; `holding` one stops instead.
    fn goes_by(voters: &[u8], next: &SignedList, told_by: &[u8], owners: u8, holding: bool) -> bool {
        let (ours, has_owned) = (list(1, voters), |member: &AccessPoint| (1..=owners).any(|number| ap(number) == *member));
        let witnesses = Witnesses { owners: owners as usize, has_owned: &has_owned, few: 5 };
        let mut confirmation = Confirmation::new(Moment(0), true);
        if holding {
            confirmation.confirm();
            confirmation.leased(Moment(0), true);
        }
        let stops = told_by.iter().any(|member| is_contradicted(&mut confirmation, *member, &ours, next, &witnesses));
        assert!(!stops || holding && !confirmation.is_given());
        let remembered = || (1..=owners).map(ap);
        assert_eq!(confirmation.conclude((Moment(TIMEOUT - 1), TIMEOUT), &ours, remembered(), &witnesses), None);
        let next = confirmation.conclude((Moment(TIMEOUT), TIMEOUT), &ours, remembered(), &witnesses);
        assert!(next.is_none() || confirmation.is_given());
        if holding { stops } else { next.is_some() }
    }

    #[test]
    fn who_was_declared_lost_goes_by_the_list_of_those_that_remained_or_stops_if_it_holds_a_lease() {
        for holding in [false, true] {
            assert!(goes_by(&[1], &chosen(2, &[]), &[2], 2, holding), "the founder of two");
            assert!(goes_by(&[1, 2, 3], &chosen(3, &[3]), &[3], 3, holding), "two of three");
            assert!(goes_by(&[1, 2, 3, 4, 5], &chosen(4, &[4, 5]), &[4], 5, holding), "three of five");
            assert!(goes_by(&[1, 2, 3, 4, 5, 6, 7], &chosen(5, &[5, 6, 7]), &[5], 7, holding), "four of seven");
        }
        let six_of_seven = goes_by(&[1, 2, 3, 4, 5, 6, 7], &chosen(7, &[7]), &[7, 8, 9, 10, 11], 12, false);
        assert!(six_of_seven, "more than a third of all owners go by it");
    }

    #[test]
    fn nobody_replaces_a_list_who_is_no_member_nor_a_voter_that_lies_alone() {
        for holding in [false, true] {
            assert!(!goes_by(&[1], &chosen(9, &[]), &[9], 2, holding), "who owned nothing");
            assert!(!goes_by(&[1, 2, 3, 4, 5], &chosen(5, &[5]), &[5], 5, holding), "one voter of five");
            assert!(!goes_by(&[1, 2, 3, 4, 5, 6, 7], &chosen(7, &[6, 7]), &[6, 7], 7, holding), "two of seven");
            assert!(!goes_by(&[1, 2, 3, 4, 5], &chosen(6, &[]), &[6, 7, 8, 9, 10, 11, 12], 12, holding), "no voter at all");
        }
        let mut forged = chosen(3, &[3]);
        forged.installed.clear();
        assert!(!goes_by(&[1, 2, 3], &forged, &[3], 3, false), "its own voters did not sign");
        let mut other = chosen(3, &[3]);
        other.list.number = 3;
        assert!(!goes_by(&[1, 2, 3], &other, &[3], 3, true), "it does not follow");
    }

    #[test]
    fn another_voter_or_the_answer_of_all_confirms_at_once_and_a_lease_that_ran_out_asks_anew() {
        let (ours, nobody) = (list(1, &[1]), |_: &AccessPoint| false);
        let witnesses = Witnesses { owners: 0, has_owned: &nobody, few: 5 };
        let mut confirmation = Confirmation::new(Moment(0), true);
        let conclude = |confirmation: &mut Confirmation| {
            confirmation.conclude((Moment(1), TIMEOUT), &ours, [ap(2), ap(3)].into_iter(), &witnesses);
            confirmation.is_given()
        };
        confirmation.answered(ap(2));
        assert!(!conclude(&mut confirmation));
        confirmation.answered(ap(3));
        assert!(conclude(&mut confirmation));
        assert!(!confirmation.leased(Moment(2), true) && confirmation.leased(Moment(3), false));
        assert!(!conclude(&mut confirmation), "who answered before is asked again");
        confirmation.confirm();
        assert!(conclude(&mut confirmation));
        assert!(Confirmation::new(Moment(0), false).is_given(), "who has no list waits for one in any case");
    }

    #[test]
    fn forged_lists_fill_no_memory() {
        let ours = list(1, &[1, 2, 3, 4, 5]);
        let owned = |_: &AccessPoint| true;
        let witnesses = Witnesses { owners: 5, has_owned: &owned, few: 5 };
        let mut confirmation = Confirmation::new(Moment(0), true);
        for forger in 10..60 {
            assert!(!is_contradicted(&mut confirmation, forger, &ours, &chosen(forger, &[]), &witnesses));
        }
        let State::Asked { next, .. } = &confirmation.state else { panic!("{confirmation:?}") };
        assert!(next.is_empty(), "none of the five signed, and not all of few were lost: {}", next.len());
    }
}
