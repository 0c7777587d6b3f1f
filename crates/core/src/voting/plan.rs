//! Plans the next list of voters: one that would bear the loss of more voters, or is larger and bears as many.

use crate::voting::networks::Networks;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::Millis,
    vote::{VoterList, quorum_of},
};
use std::collections::BTreeSet;

/// So many voters at most: each owner renews its lease with all of them.
pub(crate) const MAX_CHOSEN_VOTERS: usize = 7;

/// Below this size a newcomer becomes a voter sooner, so that those let in can stop the swarm.
pub(crate) const FEW: usize = 5;

/// A list of so many that loses one stays one of so many: of one less, all would be needed.
pub(crate) const MIN_VOTERS: usize = 3;

/// Voters that count no more.
#[derive(Clone, Copy)]
pub(crate) struct Gone<'a> {
    /// Those that do not count at present.
    pub(crate) now: &'a BTreeSet<AccessPoint>,
    /// Those of them that never come back.
    pub(crate) for_good: &'a BTreeSet<AccessPoint>,
}

/// For how long an access point must have held leases before it becomes a voter, at most; below [`FEW`] voters what replaces a silent one.
const MAX_TENURE: Millis = 86_400_000;

/// Half of the swarm's own age, so that those who begin it together vote soon, and those who come for a day do not.
pub(crate) fn tenure_needed(age: Millis, voters: usize, least: Millis, few: Millis) -> Millis {
    let most = if voters < FEW { few } else { MAX_TENURE };
    (age / 2).clamp(least, most.max(least))
}

/// So many newcomers may join so many voters that are there: these decide without them, so that a list goes on when all that joined it vanish
/// together. One that is alone needs others in any case.
pub(crate) fn most_newcomers(there: usize) -> usize {
    let room = FEW.saturating_sub(there);
    let bears = |newcomers: &usize| there < 2 || quorum_of(there + newcomers) <= there;
    (0..=room).rev().find(bears).unwrap_or(0)
}

/// What a list would bear: the number of voters that may be lost beyond those that are gone, then its size.
fn worth(voters: usize, there: usize) -> (isize, usize) {
    (there as isize - quorum_of(voters) as isize, voters)
}

/// Whether another list bears no less, as far as `gone` tells. Those who are new to it are taken to be there.
pub(crate) fn is_no_worse(list: &VoterList, gone: &BTreeSet<AccessPoint>, next: &[AccessPoint]) -> bool {
    let there = |voters: &[AccessPoint]| voters.iter().filter(|voter| !gone.contains(voter)).count();
    worth(next.len(), there(next)) >= worth(list.voters.len(), there(&list.voters))
}

/// Whether a list of which one more loss cannot be borne gets rid of voters that never come back, by one that bears no less. Of three of which one
/// left both others would be needed for ever; of one of these two it is one, and the other may be lost.
pub(crate) fn is_rid_of(for_good: &BTreeSet<AccessPoint>, list: &VoterList, gone: &BTreeSet<AccessPoint>, next: &[AccessPoint]) -> bool {
    let borne = |voters: &[AccessPoint]| worth(voters.len(), voters.iter().filter(|voter| !gone.contains(voter)).count()).0;
    let rid = list.voters.iter().any(|voter| for_good.contains(voter)) && !next.iter().any(|voter| for_good.contains(voter));
    rid && borne(&list.voters) <= 0 && borne(next) >= borne(&list.voters)
}

/// The voters of a better list; none if the present one is the best. `gone` are voters that count no more, `candidates` those who may
/// become voters, the best first. As good, and better, is a list with fewer that are gone, or with fewer in one network.
pub(crate) fn better(list: &VoterList, gone: Gone<'_>, candidates: &[AccessPoint], networks: &Networks) -> Option<Vec<AccessPoint>> {
    let Gone { now: gone, for_good } = gone;
    let there: Vec<_> = list.voters.iter().copied().filter(|voter| !gone.contains(voter)).collect();
    let surplus = networks.surplus(&there, list.voters.len());
    let sizes = (1..=(there.len() + candidates.len()).min(MAX_CHOSEN_VOTERS)).filter(|size| size % 2 == 1);
    let lists = sizes.filter_map(|size| of_size(size, &there, candidates, networks));
    let best = lists.filter(|voters| networks.surplus(voters, voters.len()) <= surplus).max_by_key(|voters| voters.len())?;
    let surplus_then = networks.surplus(&best, best.len());
    let mut voters: BTreeSet<_> = best.into_iter().collect();
    // A list of three that loses one for good stays one of three: of two, both would be needed. Who is there must be able to decide: of
    // three of whom an operator declared two lost, one is left.
    let least = list.voters.len().min(MIN_VOTERS);
    let least = if voters.len() >= quorum_of(least) { least } else { 0 };
    for silent in list.voters.iter().filter(|voter| gone.contains(voter) && !for_good.contains(voter)) {
        if voters.len() < least {
            voters.insert(*silent);
        }
    }
    let there_then = voters.iter().filter(|voter| !gone.contains(voter)).count();
    let (now, then) = (worth(list.voters.len(), there.len()), worth(voters.len(), there_then));
    let gone_now = list.voters.len() - there.len();
    let fewer = (voters.len() - there_then, surplus_then) < (gone_now, surplus);
    let same = voters.iter().eq(&list.voters);
    let better = then > now || (then == now && fewer);
    let voters: Vec<_> = voters.into_iter().collect();
    let better = better || is_rid_of(for_good, list, gone, &voters);
    (better && !same).then_some(voters)
}

/// The last plan, with all that it was made from: it is asked for with every tick, while members seldom come, go or move.
#[derive(Debug, Default)]
pub(crate) struct LastPlan {
    made_from: Option<MadeFrom>,
    better: Option<Vec<AccessPoint>>,
}

/// All that decides what [`better`] returns.
#[derive(Debug)]
struct MadeFrom {
    voters: Vec<AccessPoint>,
    gone: BTreeSet<AccessPoint>,
    for_good: BTreeSet<AccessPoint>,
    candidates: Vec<AccessPoint>,
    networks: u64,
}

impl LastPlan {
    /// The same as [`better`], which is only called if something is other than at the last time.
    pub(crate) fn better(
        &mut self,
        list: &VoterList,
        gone: Gone<'_>,
        candidates: &[AccessPoint],
        networks: &Networks,
    ) -> Option<Vec<AccessPoint>> {
        let holds = self.made_from.as_ref().is_some_and(|made| {
            let same_members = made.voters == list.voters && made.candidates == candidates;
            same_members && made.gone == *gone.now && made.for_good == *gone.for_good && made.networks == networks.version()
        });
        if !holds {
            self.better = better(list, gone, candidates, networks);
            self.made_from = Some(MadeFrom {
                voters: list.voters.clone(),
                gone: gone.now.clone(),
                for_good: gone.for_good.clone(),
                candidates: candidates.to_vec(),
                networks: networks.version(),
            });
        }
        self.better.clone()
    }
}

/// The best list of this size: of the voters that are there first one of each network, then candidates of other networks, and of what is
/// left of the voters as many as are missing.
fn of_size(size: usize, there: &[AccessPoint], candidates: &[AccessPoint], networks: &Networks) -> Option<Vec<AccessPoint>> {
    let (mut voters, left) = networks.split(there, size);
    voters.truncate(size);
    for candidate in candidates {
        let excluded = || voters.iter().chain(&left).any(|voter| networks.excludes(candidate, voter));
        if voters.len() < size && !excluded() && !networks.is_crowded(candidate, size, &voters) {
            voters.push(*candidate);
        }
    }
    voters.extend(left.iter().take(size - voters.len()));
    (voters.len() == size).then_some(voters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;

    static NONE: BTreeSet<AccessPoint> = BTreeSet::new();
    const NOBODY: Gone<'_> = Gone { now: &NONE, for_good: &NONE };

    fn ap(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    fn change_in(networks: &[(u8, &str)], voters: &[u8], gone: &[u8], candidates: &[u8]) -> Option<Vec<u8>> {
        let list = VoterList { number: 1, voters: voters.iter().map(|n| ap(*n)).collect(), age: 0 };
        let gone = gone.iter().map(|n| ap(*n)).collect();
        let candidates: Vec<_> = candidates.iter().map(|n| ap(*n)).collect();
        let gone = Gone { now: &gone, for_good: &BTreeSet::new() };
        better(&list, gone, &candidates, &seen(networks)).map(|voters| voters.iter().map(|who| who.0[0]).collect())
    }

    /// All of 1 to 20 have been seen, in networks of their own or in these.
    fn seen(networks: &[(u8, &str)]) -> Networks {
        let mut cx = Context::of_test(99);
        let mut seen = Networks::new(cx.me, vec!["10.0.0.0/8".parse().unwrap()]);
        for number in 1..=20 {
            let address = networks.iter().find(|(who, _)| *who == number).map(|(_, address)| address.parse().unwrap());
            let address = address.unwrap_or(std::net::IpAddr::from([198, 18, number, 1]));
            seen.saw(&mut cx, ap(number), address, None);
        }
        seen
    }

    fn change(voters: &[u8], gone: &[u8], candidates: &[u8]) -> Option<Vec<u8>> {
        change_in(&[], voters, gone, candidates)
    }

    #[test]
    fn a_list_grows_to_odd_sizes() {
        assert_eq!(change(&[1], &[], &[]), None);
        assert_eq!(change(&[1], &[], &[2]), None, "of two, both would be needed");
        assert_eq!(change(&[1], &[], &[3, 2]), Some(vec![1, 2, 3]));
        assert_eq!(change(&[1], &[], &[2, 3, 4, 5]), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(change(&[1, 2, 3], &[], &[4]), None);
        assert_eq!(change(&[1, 2, 3, 4, 5], &[], &[6, 7]), Some(vec![1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(change(&[1, 2, 3, 4, 5, 6, 7], &[], &[8, 9, 10]), None);
    }

    #[test]
    fn a_voter_that_is_gone_is_replaced_or_the_list_shrinks_where_that_helps() {
        assert_eq!(change(&[1, 2, 3], &[3], &[4]), Some(vec![1, 2, 4]));
        assert_eq!(change(&[1, 2, 3], &[3], &[]), None, "two of three go on, and a third may come");
        assert_eq!(change(&[1, 2, 3, 4, 5], &[5], &[]), None);
        assert_eq!(change(&[1, 2, 3, 4, 5], &[4, 5], &[]), Some(vec![1, 2, 3]));
        assert_eq!(change(&[1, 2, 3, 4, 5, 6, 7], &[7], &[]), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(change(&[1], &[1], &[2]), Some(vec![2]), "a founder that leaves");
        assert_eq!(change(&[1, 2, 3], &[2, 3], &[]), Some(vec![1]), "more than half are declared lost");
        assert_eq!(change(&[1, 2, 3, 4, 5], &[3, 4, 5], &[]), Some(vec![1]));
    }

    #[test]
    fn who_left_for_good_is_no_voter_in_place_of_another() {
        let (list, left) = (VoterList { number: 1, voters: vec![ap(1), ap(2), ap(3)], age: 0 }, BTreeSet::from([ap(2), ap(3)]));
        let gone = Gone { now: &left, for_good: &left };
        assert_eq!(better(&list, gone, &[], &seen(&[])), Some(vec![ap(1)]), "two of three leave");
        let one = BTreeSet::from([ap(1)]);
        let gone = Gone { now: &one, for_good: &one };
        assert_eq!(better(&list, gone, &[], &seen(&[])), Some(vec![ap(2)]), "of two that are left one decides: both would be needed");
        assert_eq!(better(&list, gone, &[ap(4)], &seen(&[])), Some(vec![ap(2), ap(3), ap(4)]));
        let five = VoterList { number: 1, voters: (1..=5).map(ap).collect(), age: 0 };
        assert_eq!(better(&five, gone, &[], &seen(&[])), None, "another one may be lost of five still");
        let silent = BTreeSet::from([ap(3)]);
        assert_eq!(better(&list, Gone { now: &silent, for_good: &NONE }, &[], &seen(&[])), None, "two of three go on");
    }

    #[test]
    fn two_hundred_keys_in_one_network_gain_one_vote() {
        let crowd: Vec<(u8, String)> = (10..=20).map(|number| (number, format!("192.0.2.{number}"))).collect();
        let crowd: Vec<(u8, &str)> = crowd.iter().map(|(number, address)| (*number, address.as_str())).collect();
        let all: Vec<u8> = (10..=20).collect();
        assert_eq!(change_in(&crowd, &[1], &[], &all), None, "of two, both would be needed");
        assert_eq!(change_in(&crowd, &[1, 2, 3], &[], &all), None);
        assert_eq!(change_in(&crowd, &[1, 2, 3], &[], &[10, 11, 12, 4]), Some(vec![1, 2, 3, 4, 10]));
        assert_eq!(change_in(&crowd, &[1, 2, 3, 4, 10], &[], &all), None);
        assert_eq!(change_in(&crowd, &[1, 2, 3, 4, 10], &[10], &all[1..]), Some(vec![1, 2, 3, 4, 11]), "for one that is gone another");
        let laboratory: Vec<(u8, String)> = (1..=20).map(|number| (number, format!("10.0.0.{number}"))).collect();
        let laboratory: Vec<(u8, &str)> = laboratory.iter().map(|(number, address)| (*number, address.as_str())).collect();
        assert_eq!(change_in(&laboratory, &[1], &[], &[2, 3, 4]), Some(vec![1, 2, 3]), "in a laboratory's range each counts");
    }

    #[test]
    fn voters_that_come_to_share_a_network_make_room_for_others_and_for_nobody_else() {
        let shared = [(2, "192.0.2.2"), (3, "192.0.2.3")];
        assert_eq!(change_in(&shared, &[1, 2, 3], &[], &[]), None, "better two of one network than one voter less");
        assert_eq!(change_in(&shared, &[1, 2, 3], &[], &[4]), Some(vec![1, 2, 4]));
        assert_eq!(change_in(&shared, &[1, 2, 3], &[], &[4, 5]), Some(vec![1, 2, 3, 4, 5]), "a larger list comes first");
        assert_eq!(change_in(&shared, &[1, 2, 3, 4, 5], &[], &[6]), Some(vec![1, 2, 4, 5, 6]));
        assert_eq!(change_in(&shared, &[1, 2, 3], &[1], &[4]), Some(vec![2, 3, 4]));
        assert_eq!(change_in(&shared, &[1, 2, 3, 4, 5, 6, 7], &[7], &[]), Some(vec![1, 2, 4, 5, 6]), "who shares goes first");
    }

    #[test]
    fn whoever_moves_to_make_room_for_another_key_needs_a_network_for_each_vote() {
        let mut cx = Context::of_test(99);
        let mut networks = seen(&[(4, "192.0.2.1"), (5, "192.0.2.2")]);
        networks.saw(&mut cx, ap(4), "203.0.113.1".parse().unwrap(), None);
        let list = VoterList { number: 1, voters: vec![ap(1), ap(2), ap(4)], age: 0 };
        assert_eq!(better(&list, NOBODY, &[ap(5), ap(6)], &networks), None, "where 5 is, 4 was");
        let voters = better(&list, NOBODY, &[ap(5), ap(6), ap(7)], &networks);
        assert_eq!(voters, Some(vec![ap(1), ap(2), ap(4), ap(6), ap(7)]));
    }

    #[test]
    fn who_was_never_seen_counts_as_one_network() {
        let list = VoterList { number: 1, voters: vec![ap(1)], age: 0 };
        let unseen = [ap(100), ap(101), ap(102)];
        assert_eq!(better(&list, NOBODY, &unseen, &seen(&[])), None);
        let voters = better(&list, NOBODY, &[ap(100), ap(101), ap(2)], &seen(&[]));
        assert_eq!(voters, Some(vec![ap(1), ap(2), ap(100)]));
    }

    #[test]
    fn those_who_come_together_do_not_stop_a_list_when_they_vanish_together() {
        assert_eq!((0..=6).map(most_newcomers).collect::<Vec<_>>(), [5, 4, 1, 2, 1, 0, 0]);
        for there in 2..=MAX_CHOSEN_VOTERS {
            assert!(quorum_of(there + most_newcomers(there)) <= there);
        }
    }

    #[test]
    fn who_begins_a_swarm_votes_soon_and_who_comes_for_a_day_does_not() {
        let day = 86_400_000;
        assert_eq!(tenure_needed(0, 1, 30_000, 600_000), 30_000);
        assert_eq!(tenure_needed(600_000, 5, 30_000, 600_000), 300_000);
        assert_eq!(tenure_needed(30 * day, 3, 30_000, 600_000), 600_000);
        assert_eq!(tenure_needed(30 * day, 5, 30_000, 600_000), day);
    }
}
