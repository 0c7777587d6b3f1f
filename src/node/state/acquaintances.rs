//! The members of the last month: until when each was here, and how it parted.
//!
//! They are listed for people, who see for a day who left and who died, and for owners of servers who ask about a request: a member that
//! cannot be asked any more may have made it.
//!
//! It is stored, so that it is known across restarts. Times are of the wall clock, as those that are asked about.

use crate::node::state::write_behind::WriteBehind;
use nearcrawl_core::membership::Parting;
use nearcrawl_model::{
    access_point::AccessPoint,
    ownership_history::Holding,
    profile::Profile,
    requests_made::{LATEST_END, RequestsQuery},
    time::{Millis, Moment, Now, WallTime},
    view::{Liveness, MemberView},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// For how long a member is remembered: as long as requests are.
const REMEMBERED: Millis = 30 * 86_400_000;

/// For how long it is listed after it parted.
const LISTED: Millis = 86_400_000;

/// Members that are remembered; beyond it the one that was seen longest ago is forgotten.
const MAX_KNOWN: usize = 4_096;

/// What changes all the time, when the others were seen last, is stored so often.
const STORE_EVERY: Millis = 600_000;

/// After a failure it is stored again so much later.
const TRY_AGAIN: Millis = 60_000;

/// How often is looked whom to forget.
const TIDY_EVERY: Millis = 3_600_000;

/// What is known of a member.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    /// When something was heard of it last.
    seen_at: WallTime,
    /// When it parted, and whether for good by its own word or the swarm's; none if it is a member.
    parted: Option<(WallTime, bool)>,
    /// As it was listed last.
    #[serde(skip)]
    listed: Option<(Vec<String>, Option<String>)>,
}

/// The members of the last month.
#[derive(Debug, Default)]
pub struct Acquaintances {
    known: BTreeMap<AccessPoint, Known>,
    changed: bool,
    writes: WriteBehind<Vec<u8>>,
    /// When it may be stored again, and when it is at the latest: by the clock that never jumps.
    store: (Moment, Moment),
    /// When is looked next whom to forget, and who was to be forgotten at the last look: the wall clock may have been wrong then.
    tidy_at: Moment,
    over: BTreeSet<AccessPoint>,
}

impl Acquaintances {
    /// At a start, with what is stored. What cannot be read counts as absent.
    pub fn begin(stored: Option<&[u8]>) -> Acquaintances {
        let known = stored.and_then(|bytes| serde_json::from_slice::<Vec<(AccessPoint, Known)>>(bytes).ok());
        Acquaintances { known: known.into_iter().flatten().take(MAX_KNOWN).collect(), ..Acquaintances::default() }
    }

    /// Looks who is there, and how those parted who are not. What is to be stored now, if anything is.
    pub fn look(&mut self, members: &[MemberView], parted: &BTreeMap<AccessPoint, (Parting, Moment)>, now: Now) -> Option<Vec<u8>> {
        let wall = now.wall;
        let here = |member: &&MemberView| !member.is_me && matches!(member.liveness, Liveness::Alive | Liveness::Silent);
        let mut present = BTreeSet::new();
        for member in members.iter().filter(here) {
            let silent = if member.liveness == Liveness::Silent { member.liveness_for_ms } else { 0 };
            let seen_at = WallTime(wall.0.saturating_sub(silent));
            let known = self.known.entry(member.access_point).or_insert_with(|| {
                self.changed = true;
                Known { seen_at, parted: None, listed: None }
            });
            // A clock that was ahead has left a time that has not come yet.
            known.seen_at = known.seen_at.max(seen_at).min(wall);
            self.changed |= known.parted.take().is_some();
            known.listed = Some((member.addresses.clone(), member.country.clone()));
            present.insert(member.access_point);
        }
        for (member, known) in self.known.iter_mut().filter(|(member, known)| known.parted.is_none() && !present.contains(member)) {
            known.parted = Some(match parted.get(member) {
                Some((how, since)) => (WallTime(wall.0.saturating_sub(now.moment.since(*since))), *how != Parting::Dead),
                None => (known.seen_at, false),
            });
            self.changed = true;
        }
        if now.moment >= self.tidy_at {
            self.tidy(now);
        }
        while self.known.len() > MAX_KNOWN {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.seen_at).map(|(member, _)| *member);
            oldest.and_then(|oldest| self.known.remove(&oldest));
        }
        self.due(now.moment)
    }

    /// Forgets who was seen too long ago at two looks in a row.
    fn tidy(&mut self, now: Now) {
        self.tidy_at = now.moment.after(TIDY_EVERY);
        let over = self.known.iter().filter(|(_, known)| now.wall.0.saturating_sub(known.seen_at.0) >= REMEMBERED);
        let over = over.map(|(member, _)| *member).collect();
        let before = std::mem::replace(&mut self.over, over);
        for member in self.over.intersection(&before) {
            self.known.remove(member);
        }
    }

    fn due(&mut self, now: Moment) -> Option<Vec<u8>> {
        let (not_before, at_the_latest) = self.store;
        let is_due = (self.changed && now >= not_before) || (now >= at_the_latest && !self.known.is_empty());
        if self.writes.is_storing() || !is_due {
            return None;
        }
        self.changed = false;
        self.store = (now, now.after(STORE_EVERY));
        self.writes.put(serde_json::to_vec(&self.known.iter().collect::<Vec<_>>()).ok()?);
        self.writes.next()
    }

    /// It was stored, or could not be and is tried again later.
    pub fn has_stored(&mut self, is_stored: bool, now: Moment) {
        self.writes.has_stored(is_stored);
        if !is_stored {
            self.changed = true;
            self.store.0 = now.after(TRY_AGAIN);
        }
    }

    /// The members as people see them: with those that parted within the last day, and how.
    pub fn with_parted(&self, mut members: Vec<MemberView>, wall: WallTime) -> Vec<MemberView> {
        for member in members.iter_mut().filter(|member| member.liveness == Liveness::Dead) {
            if self.known.get(&member.access_point).and_then(|known| known.parted).is_some_and(|(_, left)| left) {
                member.liveness = Liveness::Left;
            }
        }
        let told: BTreeSet<AccessPoint> = members.iter().map(|member| member.access_point).collect();
        let parted = self.known.iter().filter(|(member, _)| !told.contains(member));
        members.extend(parted.filter_map(|(member, known)| known.as_parted(*member, wall)));
        members
    }

    /// Who cannot be asked and may have made a request that is asked about: members that parted and were seen after it could have begun, and
    /// owners of the server's subnet then of whom nothing else is known.
    pub fn absent(&self, query: &RequestsQuery, members: &[MemberView], owners: &[Holding]) -> BTreeSet<AccessPoint> {
        let present = |member: &AccessPoint| {
            members.iter().any(|here| here.access_point == *member && matches!(here.liveness, Liveness::Alive | Liveness::Silent))
        };
        let parted =
            self.known.iter().filter(|(_, known)| known.seen_at.0.saturating_add(LATEST_END) >= query.from.0).map(|(member, _)| *member);
        let until = |place: usize| owners.get(place + 1).map_or(u64::MAX, |next| next.claimed_at.0.saturating_add(LATEST_END));
        let held = owners.iter().enumerate().filter(|(place, holding)| holding.claimed_at <= query.until && until(*place) >= query.from.0);
        parted.chain(held.map(|(_, holding)| holding.owner)).filter(|member| !present(member)).collect()
    }

    /// When a member parted that is none any more.
    pub fn parted_at(&self, member: &AccessPoint) -> Option<WallTime> {
        self.known.get(member)?.parted.map(|(at, _)| at)
    }

    /// Whether a member parted before a request that is asked about could have begun.
    pub fn parted_before(&self, member: &AccessPoint, query: &RequestsQuery) -> bool {
        self.known.get(member).is_some_and(|known| known.parted.is_some() && known.seen_at.0.saturating_add(LATEST_END) < query.from.0)
    }
}

impl Known {
    fn as_parted(&self, access_point: AccessPoint, wall: WallTime) -> Option<MemberView> {
        let (at, left) = self.parted?;
        let liveness_for_ms = wall.0.saturating_sub(at.0);
        let (addresses, country) = self.listed.clone().unwrap_or_default();
        (liveness_for_ms < LISTED).then_some(MemberView {
            access_point,
            is_me: false,
            address: None,
            is_relayed: MemberView::relayed(&addresses),
            addresses,
            profile: Profile::default(),
            liveness: if left { Liveness::Left } else { Liveness::Dead },
            liveness_for_ms,
            country,
            rtt_ms: None,
            subnets: 0,
            servers: 0,
            pages: 0,
            roll_up_age_ms: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Millis = 86_400_000;
    const BEGIN: u64 = 1_790_000_000_000;

    fn ap(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    fn at(ms: Millis) -> Now {
        Now { moment: Moment(1_000_000 + ms), wall: WallTime(BEGIN + ms) }
    }

    fn member(number: u8, liveness: Liveness) -> MemberView {
        let known = Known { seen_at: WallTime(BEGIN), parted: Some((WallTime(BEGIN), false)), listed: None };
        MemberView { liveness, is_me: number == 0, ..known.as_parted(ap(number), WallTime(BEGIN)).unwrap() }
    }

    fn query(from: u64) -> RequestsQuery {
        RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(from), until: WallTime(from + 1) }
    }

    /// Three members, of which one leaves and one dies after an hour; what was stored then.
    fn parted() -> (Acquaintances, Vec<MemberView>, Vec<u8>) {
        let mut known = Acquaintances::default();
        let all: Vec<_> = (0..4).map(|number| member(number, Liveness::Alive)).collect();
        assert!(known.look(&all, &BTreeMap::new(), at(0)).is_some(), "it is stored at once");
        known.has_stored(true, at(0).moment);
        assert!(known.look(&all, &BTreeMap::new(), at(3_600_000)).is_some(), "and from time to time");
        known.has_stored(true, at(0).moment);
        let left = all[..2].to_vec();
        let how = [(ap(2), (Parting::Left, at(3_600_000).moment)), (ap(3), (Parting::Dead, at(3_600_000).moment))].into();
        let stored = known.look(&left, &how, at(3_700_000)).unwrap();
        (known, left, stored)
    }

    #[test]
    fn who_left_and_who_died_is_listed_for_a_day_across_restarts() {
        let (known, left, stored) = parted();
        for known in [known, Acquaintances::begin(Some(&stored))] {
            let listed = |ms| known.with_parted(left.clone(), at(ms).wall).into_iter().map(|member| member.liveness).collect::<Vec<_>>();
            assert_eq!(listed(3_700_000), [Liveness::Alive, Liveness::Alive, Liveness::Left, Liveness::Dead]);
            let shown = known.with_parted(left.clone(), at(7_200_000).wall);
            assert_eq!((shown[2].access_point, shown[2].liveness_for_ms), (ap(2), 3_600_000));
            assert_eq!(listed(3_600_000 + DAY).len(), 2, "the next day");
        }
    }

    #[test]
    fn one_that_is_back_is_a_member_as_before() {
        let (mut known, mut here, _) = parted();
        here.push(member(3, Liveness::Alive));
        known.has_stored(true, at(0).moment);
        assert!(known.look(&here, &BTreeMap::new(), at(3_800_000)).is_some());
        assert_eq!(
            known.with_parted(here.clone(), at(3_800_000).wall).iter().filter(|member| member.liveness == Liveness::Dead).count(),
            0
        );
    }

    #[test]
    fn who_parted_before_a_request_did_not_make_it_and_who_was_there_may_have() {
        let (known, here, _) = parted();
        let absent = |from| known.absent(&query(from), &here, &[]);
        assert_eq!(absent(BEGIN + 1_800_000), [ap(2), ap(3)].into());
        assert!(absent(BEGIN + 3_600_000 + LATEST_END + 1).is_empty() && known.parted_before(&ap(2), &query(BEGIN + DAY)));
        let holding = |number, claimed_at| Holding {
            owner: ap(number),
            epoch: 1,
            reason: nearcrawl_model::claim::ClaimReason::Awarded,
            claimed_at: WallTime(claimed_at),
            released_text: None,
        };
        let owners = [holding(9, BEGIN - 20 * DAY), holding(8, BEGIN - 10 * DAY), holding(1, BEGIN - DAY)];
        let before = known.absent(&query(BEGIN - 15 * DAY), &here, &owners);
        assert!(before.contains(&ap(9)) && !before.contains(&ap(8)), "{before:?}");
    }

    #[test]
    fn a_month_is_remembered_and_not_more_members_than_fit() {
        let (mut known, here, _) = parted();
        known.look(&here, &BTreeMap::new(), at(31 * DAY));
        assert_eq!(known.absent(&query(0), &here, &[]).len(), 2, "a clock may be wrong once");
        known.look(&here, &BTreeMap::new(), at(31 * DAY + TIDY_EVERY - 1));
        assert_eq!(known.absent(&query(0), &here, &[]).len(), 2);
        known.look(&here, &BTreeMap::new(), at(31 * DAY + TIDY_EVERY));
        assert!(known.absent(&query(0), &here, &[]).is_empty());
        let many: Vec<_> = (0..MAX_KNOWN + 9)
            .map(|number| {
                let mut key = [7; 32];
                key[..8].copy_from_slice(&number.to_be_bytes());
                MemberView { access_point: AccessPoint(key), ..member(1, Liveness::Alive) }
            })
            .collect();
        known.look(&many, &BTreeMap::new(), at(32 * DAY));
        assert_eq!(known.known.len(), MAX_KNOWN);
    }

    #[test]
    fn a_clock_that_was_ahead_neither_has_anybody_forgotten_nor_stops_storing() {
        let (mut known, here, _) = parted();
        known.has_stored(true, at(0).moment);
        // For a minute it is two months ahead.
        let ahead = |ms| Now { wall: WallTime(BEGIN + ms + 60 * DAY), ..at(ms) };
        assert!(known.look(&here[..1], &BTreeMap::new(), ahead(8_000_000)).is_some(), "another one parted");
        known.has_stored(false, ahead(8_000_000).moment);
        assert!(known.look(&here, &BTreeMap::new(), at(8_060_000)).is_some(), "what failed is stored again a minute later");
        known.has_stored(true, at(8_060_000).moment);
        assert!(known.look(&here, &BTreeMap::new(), at(8_660_000)).is_some(), "and what changes from time to time");
        known.look(&here, &BTreeMap::new(), at(20_000_000));
        assert_eq!(known.known.len(), 3);
    }
}
