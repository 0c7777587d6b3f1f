//! Which members keep copies of our journals, and which of them count?
//!
//! Two others, the same for all our journals: the first of a hash order over the living, and from then on as long as they last, whoever
//! joins. One counts from when it has all that was stored when it was chosen; what is recorded is at all that count. So each of those that
//! are told to others has all that is recorded.
//!
//! One that takes nothing is replaced after the time of a lease and counts for twice that, during which we must hold our lease: an owner on
//! the smaller side of a cut loses its lease before, so it never records anything without those on the other side. In between others hear
//! who takes its place.

use crate::{context::Context, membership::Membership};
use nearcrawl_model::{
    access_point::AccessPoint,
    replica::{NamedReplica, StoreId},
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// How many copies are aimed at besides the owner's.
const REPLICAS: usize = 2;

/// A member that could not be used is not chosen again for so long, if there are others.
const AVOID: Millis = 60_000;

/// The same for one that has no room for more rows of ours.
const AVOID_FULL: Millis = 600_000;

/// How a replica stands.
#[derive(Clone, Copy, Debug)]
struct Replica {
    chosen: Moment,
    /// The database in which it keeps our rows, once it has said so.
    store: Option<StoreId>,
    /// Whether it has had all that was stored when it was chosen.
    counts: bool,
    /// Whether it did not store what was sent last.
    refused: bool,
    /// Since when it is silent or stores nothing.
    failing_since: Option<Moment>,
    /// Since when it is one more than are needed.
    surplus_since: Option<Moment>,
}

impl Replica {
    fn has_failed(&self, now: Moment, lasts: Millis) -> bool {
        self.failing_since.is_some_and(|since| now.since(since) >= lasts)
    }
}

/// The replicas of all our journals.
#[derive(Debug, Default)]
pub(super) struct Placement {
    replicas: BTreeMap<AccessPoint, Replica>,
    avoided: BTreeMap<AccessPoint, Moment>,
    /// Since when we have held our lease without a break.
    leased_since: Option<Moment>,
    /// Whether there is no other member that could be one, as of the last look.
    alone: bool,
}

/// What changed.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Members that keep copies from now on, none of which they have.
    pub(super) chosen: Vec<AccessPoint>,
    /// Members that do not any more.
    pub(super) dropped: Vec<AccessPoint>,
    /// Whether others are to be told.
    pub(super) names: bool,
}

impl Placement {
    /// Looks at who lives and who takes what is sent; `is_whole` is whether a replica has all that was stored when it was chosen.
    pub(super) fn review(&mut self, cx: &Context, members: &Membership, is_whole: impl Fn(&AccessPoint) -> bool) -> Changed {
        let (now, lease) = (cx.now.moment, cx.settings.roster.lease);
        let before = self.names(cx);
        self.leased_since = members.may_claim(now).then(|| self.leased_since.unwrap_or(now));
        self.avoided.retain(|_, until| *until > now);
        for (member, replica) in &mut self.replicas {
            let silent = members.standings().get(member).is_none_or(|standing| standing.silent_since.is_some());
            let failing = silent || replica.refused;
            replica.failing_since = failing.then(|| replica.failing_since.unwrap_or(now));
            replica.counts |= !failing && replica.store.is_some() && is_whole(member);
        }
        let dropped = self.drop_failed(now, lease);
        self.note_surplus(now, lease);
        // Without a lease nothing counts as recorded, and soon another may go on with what we own: copies that we made now would be of pages
        // that it asks for again.
        let chosen = if self.leased_since.is_some() { self.choose(cx, members) } else { Vec::new() };
        self.alone = self.replicas.is_empty() && members.standings().keys().all(|member| self.avoided.contains_key(member));
        Changed { names: self.names(cx) != before, chosen, dropped }
    }

    fn drop_failed(&mut self, now: Moment, lease: Millis) -> Vec<AccessPoint> {
        let leased_for = |since: Moment, lasts: Millis| self.leased_since.is_some_and(|leased| now.since(leased.max(since)) >= lasts);
        let is_over = |replica: &Replica| match replica {
            Replica { counts: false, .. } => replica.has_failed(now, lease),
            Replica { failing_since: Some(since), .. } => leased_for(*since, 2 * lease),
            Replica { surplus_since: Some(since), .. } => leased_for(*since, lease),
            _ => false,
        };
        let over: Vec<_> = self.replicas.iter().filter(|(_, replica)| is_over(replica)).map(|(member, _)| *member).collect();
        for member in &over {
            if self.replicas.remove(member).is_some_and(|replica| replica.failing_since.is_some()) {
                self.avoided.entry(*member).or_insert(now.after(AVOID));
            }
        }
        over
    }

    /// Of more replicas that count than are needed the last ones go.
    fn note_surplus(&mut self, now: Moment, lease: Millis) {
        let avoided = &self.avoided;
        let counts = |(member, replica): &(&AccessPoint, &mut Replica)| {
            replica.counts && !replica.has_failed(now, lease) && !avoided.contains_key(*member)
        };
        let mut counting: Vec<_> = self.replicas.iter_mut().filter(counts).collect();
        counting.sort_by_key(|(member, replica)| (replica.chosen, **member));
        for (place, (_, replica)) in counting.into_iter().enumerate() {
            replica.surplus_since = (place >= REPLICAS).then(|| replica.surplus_since.unwrap_or(now));
        }
    }

    fn choose(&mut self, cx: &Context, members: &Membership) -> Vec<AccessPoint> {
        let (now, lease) = (cx.now.moment, cx.settings.roster.lease);
        let usable = |(member, replica): &(&AccessPoint, &Replica)| !replica.has_failed(now, lease) && !self.avoided.contains_key(*member);
        let lacking = REPLICAS.saturating_sub(self.replicas.iter().filter(usable).count());
        if lacking == 0 {
            return Vec::new();
        }
        let free = |member: &AccessPoint| *member != cx.me && !self.replicas.contains_key(member) && !self.avoided.contains_key(member);
        let chosen: Vec<_> = members.replicas_of(&cx.me).into_iter().filter(free).take(lacking).collect();
        for member in &chosen {
            let replica = Replica { chosen: now, store: None, counts: false, refused: false, failing_since: None, surplus_since: None };
            self.replicas.insert(*member, replica);
        }
        chosen
    }

    /// A replica stored what was sent, or did not.
    pub(super) fn answered(&mut self, member: &AccessPoint, stored: bool) {
        if let Some(replica) = self.replicas.get_mut(member) {
            replica.refused = !stored;
        }
    }

    /// A member has no room for more rows of ours. Whether that is new.
    pub(super) fn is_full(&mut self, now: Moment, member: AccessPoint) -> bool {
        self.answered(&member, false);
        self.avoided.insert(member, now.after(AVOID_FULL)).is_none_or(|until| until <= now)
    }

    /// A replica said which database it uses. Whether it is another one than before: then it has nothing.
    pub(super) fn uses(&mut self, member: &AccessPoint, store: StoreId) -> bool {
        let Some(replica) = self.replicas.get_mut(member) else { return false };
        let other = replica.store.is_some_and(|before| before != store);
        replica.store = Some(store);
        replica.counts &= !other;
        other
    }

    /// A member left for good, as it said itself. Whether it was a replica.
    pub(super) fn left(&mut self, member: &AccessPoint) -> bool {
        self.replicas.remove(member).is_some()
    }

    /// The replicas, those included that do not count yet.
    pub(super) fn all(&self) -> impl Iterator<Item = AccessPoint> {
        self.replicas.keys().copied()
    }

    /// Whether a member is one.
    pub(super) fn contains(&self, member: &AccessPoint) -> bool {
        self.replicas.contains_key(member)
    }

    /// Whether a replica is silent or stores nothing.
    pub(super) fn is_failing(&self, member: &AccessPoint) -> bool {
        self.replicas.get(member).is_some_and(|replica| replica.failing_since.is_some())
    }

    /// Replicas that have not said yet which database they use.
    pub(super) fn unknown(&self) -> impl Iterator<Item = AccessPoint> {
        self.replicas.iter().filter(|(_, replica)| replica.store.is_none()).map(|(member, _)| *member)
    }

    /// The replicas that must have what is recorded; none if there is nobody else who could be one.
    pub(super) fn counting(&self) -> Option<impl Iterator<Item = AccessPoint>> {
        let counting = self.replicas.iter().filter(|(_, replica)| replica.counts).map(|(member, _)| *member);
        (!self.alone).then_some(counting)
    }

    /// Who has all that we recorded, ourselves first; empty if nobody else has yet who should.
    pub(super) fn names(&self, cx: &Context) -> Vec<NamedReplica> {
        let (now, lease) = (cx.now.moment, cx.settings.roster.lease);
        let counting: Vec<_> = self.replicas.iter().filter(|(_, replica)| replica.counts).collect();
        if counting.is_empty() && !self.alone {
            return Vec::new();
        }
        let lasts = |replica: &Replica| replica.surplus_since.is_none() && !replica.has_failed(now, lease);
        let all_fail = !counting.iter().any(|(_, replica)| lasts(replica));
        let named = counting.into_iter().filter(|(_, replica)| all_fail || lasts(replica));
        let named = named.filter_map(|(member, replica)| Some(NamedReplica { member: *member, store: replica.store? }));
        std::iter::once(NamedReplica { member: cx.me, store: cx.store }).chain(named).collect()
    }
}

#[cfg(test)]
impl Placement {
    /// These have been replicas for a while, and count.
    pub(super) fn counting_on(members: &[AccessPoint]) -> Placement {
        let store = Some(StoreId(1));
        let replica = Replica { chosen: Moment(0), store, counts: true, refused: false, failing_since: None, surplus_since: None };
        Placement { replicas: members.iter().map(|member| (*member, replica)).collect(), ..Placement::default() }
    }

    /// There is no other member.
    pub(super) fn alone() -> Placement {
        Placement { alone: true, ..Placement::default() }
    }
}

#[cfg(test)]
mod tests;
