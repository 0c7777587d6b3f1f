//! Who should vote? A list is changed when another one would bear the loss of more voters, or is larger and bears as many.

use nearcrawl_model::{
    access_point::AccessPoint,
    time::Millis,
    vote::{VoterList, quorum_of},
};
use std::collections::BTreeSet;

/// So many voters at most: each owner renews its lease with all of them.
pub(crate) const MOST_VOTERS: usize = 7;

/// Below this size a newcomer becomes a voter sooner.
const FEW: usize = 5;

/// For how long an access point must have held leases before it becomes a voter, at most; below [`FEW`] voters what replaces a silent one.
const LONGEST_TENURE: Millis = 86_400_000;

/// Half of the swarm's own age, so that those who begin it together vote soon, and those who come for a day do not.
pub(crate) fn tenure_needed(age: Millis, voters: usize, least: Millis, few: Millis) -> Millis {
    let most = if voters < FEW { few } else { LONGEST_TENURE };
    (age / 2).clamp(least, most.max(least))
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

/// The voters of a better list; none if the present one is the best. `gone` are voters that count no more, `candidates` those who may
/// become voters, the best first.
pub(crate) fn better(list: &VoterList, gone: &BTreeSet<AccessPoint>, candidates: &[AccessPoint]) -> Option<Vec<AccessPoint>> {
    let there: Vec<_> = list.voters.iter().copied().filter(|voter| !gone.contains(voter)).collect();
    let in_order: Vec<_> = there.iter().chain(candidates).copied().collect();
    let sizes = (1..=in_order.len().min(MOST_VOTERS)).filter(|size| size % 2 == 1);
    let best = sizes.max_by_key(|size| worth(*size, *size))?;
    let mut voters: BTreeSet<_> = in_order[..best].iter().copied().collect();
    // A list of three that loses one for good stays one of three: of two, both would be needed.
    let least = list.voters.len().min(3);
    for silent in list.voters.iter().filter(|voter| gone.contains(voter)) {
        if voters.len() < least {
            voters.insert(*silent);
        }
    }
    let there_then = voters.iter().filter(|voter| !gone.contains(voter)).count();
    let (now, then) = (worth(list.voters.len(), there.len()), worth(voters.len(), there_then));
    let fewer_gone = list.voters.len() - there.len() > voters.len() - there_then;
    let same = voters.iter().eq(&list.voters);
    let better = then > now || (then == now && fewer_gone);
    (better && !same).then(|| voters.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ap(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    fn change(voters: &[u8], gone: &[u8], candidates: &[u8]) -> Option<Vec<u8>> {
        let list = VoterList { number: 1, voters: voters.iter().map(|n| ap(*n)).collect(), age: 0 };
        let gone = gone.iter().map(|n| ap(*n)).collect();
        let candidates: Vec<_> = candidates.iter().map(|n| ap(*n)).collect();
        better(&list, &gone, &candidates).map(|voters| voters.iter().map(|who| who.0[0]).collect())
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
