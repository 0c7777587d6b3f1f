//! Placement of copies of our journals: which members keep them, and which of these must have what is recorded.
//!
//! Two others, the same for all our journals: the first of a hash order over the living, and from then on as long as they last, whoever
//! joins. Members that came of late may go again, all at once, and some have said that they leave: both keep copies only as long as there are
//! too few others. So whoever leaves together with its replicas has its journals copied to one that stays first.
//!
//! Who came of late, and may go, does not count either among those that have what is recorded: two others have, as long as there are two. So
//! what a newcomer asked for, and what is copied to newcomers, is not lost if these vanish and one more dies.
//!
//! One that has had all that was stored when it was chosen must have each further row before that is recorded; once it has all that is
//! recorded, it is named to the voters. One that takes nothing is replaced after the time of a lease and named no more. It is needed until
//! the voters know that: an owner on the smaller side of a cut records nothing without those on the other side.

use crate::{context::Context, membership::Membership};
use nearcrawl_model::{
    access_point::AccessPoint,
    replica::{NamedReplica, StoreId},
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// How many copies are aimed at besides the owner's.
const REPLICAS: usize = 2;

/// So many of those that have what is recorded, the owner included, are no guests, if there are as many.
const LASTING: usize = 2;

/// Whoever has been here for so long, as far as we know, is no guest.
const GUEST: Millis = 600_000;

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
    whole: bool,
    /// Whether it did not store what was sent last.
    refused: bool,
    /// Since when it is silent or stores nothing.
    failing_since: Option<Moment>,
    /// Whether it is not to be one any more: it was silent for long, has no room, or left.
    over: bool,
    /// Whether it came of late, as far as we know, or is about to leave.
    guest: bool,
}

/// The replicas of all our journals.
#[derive(Debug, Default)]
pub(super) struct Placement {
    replicas: BTreeMap<AccessPoint, Replica>,
    avoided: BTreeMap<AccessPoint, Moment>,
    /// Who has all that we recorded, ourselves included, as it is to be told to the voters.
    names: Vec<NamedReplica>,
    /// Who is needed, as the voters may know; none if nothing is recorded at the moment.
    told: Option<Vec<NamedReplica>>,
    /// Whether there is no other member that could keep copies, as of the last look.
    alone: bool,
    /// Whether anything that decides who is needed may have changed since that was asked last.
    changed: bool,
}

/// What others say of members.
pub(crate) struct Reputation<V, L> {
    /// Whether a member has been here for long.
    pub(crate) vouched: V,
    /// Whether it has said that it leaves for good.
    pub(crate) leaves: L,
}

/// What changed.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Members that keep copies from now on, none of which they have.
    pub(super) chosen: Vec<AccessPoint>,
    /// Members that do not any more.
    pub(super) dropped: Vec<AccessPoint>,
}

impl Placement {
    /// Looks at who lives and who takes what is sent; `is_whole` is whether a replica has all that was stored when it was chosen,
    /// `has_recorded` whether it has all that is recorded, `others` what others say of members.
    pub(super) fn review(
        &mut self,
        cx: &Context,
        members: &Membership,
        others: Reputation<impl Fn(&AccessPoint) -> bool, impl Fn(&AccessPoint) -> bool>,
        is_whole: impl Fn(&AccessPoint) -> bool,
        has_recorded: impl Fn(&AccessPoint) -> bool,
    ) -> Changed {
        self.changed = true;
        let (now, lease) = (cx.now.moment, cx.settings.roster.lease);
        let leased = members.may_claim(now);
        self.avoided.retain(|_, until| *until > now);
        let known_for = |member: &AccessPoint| members.standings().get(member).map_or(0, |standing| now.since(standing.member_since));
        let is_guest = |member: &AccessPoint| (others.leaves)(member) || known_for(member) < GUEST && !(others.vouched)(member);
        for (member, replica) in &mut self.replicas {
            let silent = members.standings().get(member).is_none_or(|standing| standing.silent_since.is_some());
            let failing = silent || replica.refused;
            // Without a lease it may be us whom nobody hears.
            replica.failing_since = failing.then(|| replica.failing_since.filter(|_| leased).unwrap_or(now));
            replica.over = replica.over && failing || replica.failing_since.is_some_and(|since| now.since(since) >= lease);
            replica.over |= self.avoided.contains_key(member);
            replica.whole |= !failing && replica.store.is_some() && is_whole(member);
            replica.guest = is_guest(member);
        }
        let wanted = self.wanted();
        self.alone = self.is_alone(members);
        let is_lasting = (others.vouched)(&cx.me) || now.since(cx.started) >= GUEST;
        let can_be_named = |member: &AccessPoint| !is_guest(member) && !self.avoided.contains_key(member) && !self.is_failing(member);
        let answers = members.standings().iter().filter(|(_, standing)| standing.silent_since.is_none());
        let lasting = usize::from(is_lasting) + answers.filter(|(member, _)| can_be_named(member)).count();
        self.name(cx, &wanted, has_recorded, (is_lasting, lasting.min(LASTING)));
        let dropped = self.drop_unneeded(now, &wanted);
        // Without a lease nothing is recorded, and soon another may go on with what we own: copies that we made now would be of pages
        // that it asks for again.
        let chosen = if leased { self.choose(cx, members, is_guest) } else { Vec::new() };
        Changed { chosen, dropped }
    }

    /// Those that have what we had when they were chosen: the first ones, guests last, if there are more than are needed.
    fn wanted(&self) -> BTreeSet<AccessPoint> {
        let whole = self.replicas.iter().filter(|(_, replica)| replica.whole && !replica.over);
        let mut whole: Vec<_> = whole.map(|(member, replica)| (replica.guest, replica.chosen, *member)).collect();
        whole.sort_unstable();
        whole.into_iter().take(REPLICAS).map(|(.., member)| member).collect()
    }

    /// Who is told to the voters. Nobody new if nobody else has what we recorded who should, or fewer than this that are no guests; with it
    /// is told whether we are none.
    fn name(
        &mut self,
        cx: &Context,
        wanted: &BTreeSet<AccessPoint>,
        has_recorded: impl Fn(&AccessPoint) -> bool,
        (is_lasting, least): (bool, usize),
    ) {
        let name = |member: &AccessPoint| Some(NamedReplica { member: *member, store: self.replicas.get(member)?.store? });
        let named = wanted.iter().filter_map(name).filter(|name| self.names.contains(name) || has_recorded(&name.member));
        let names: Vec<_> = std::iter::once(NamedReplica { member: cx.me, store: cx.store }).chain(named).collect();
        let is_guest = |name: &NamedReplica| self.replicas.get(&name.member).map_or(!is_lasting, |replica| replica.guest);
        let lasting = names.iter().filter(|name| !is_guest(name)).count();
        if names.len() > 1 && lasting >= least || self.alone {
            self.names = names;
        }
    }

    /// Whether there is no other member that could keep copies.
    fn is_alone(&self, members: &Membership) -> bool {
        let is_over = |member: &AccessPoint| self.replicas.get(member).is_some_and(|replica| replica.over);
        self.replicas.keys().all(is_over) && members.standings().keys().all(|member| is_over(member) || self.avoided.contains_key(member))
    }

    fn drop_unneeded(&mut self, now: Moment, wanted: &BTreeSet<AccessPoint>) -> Vec<AccessPoint> {
        let named: BTreeSet<_> = self.names.iter().chain(self.told.iter().flatten()).map(|name| name.member).collect();
        let enough = wanted.len() >= REPLICAS;
        let drops =
            |member: &AccessPoint, replica: &Replica| !named.contains(member) && (replica.over || enough && !wanted.contains(member));
        let dropped: Vec<_> = self.replicas.extract_if(.., |member, replica| drops(member, replica)).collect();
        for (member, _) in dropped.iter().filter(|(_, replica)| replica.over) {
            self.avoided.entry(*member).or_insert(now.after(AVOID));
        }
        dropped.into_iter().map(|(member, _)| member).collect()
    }

    /// As many as are lacking; beside guests, as many others, if there are any.
    fn choose(&mut self, cx: &Context, members: &Membership, is_guest: impl Fn(&AccessPoint) -> bool) -> Vec<AccessPoint> {
        let lasting = self.replicas.values().filter(|replica| !replica.over);
        let guests = lasting.clone().filter(|replica| replica.guest).count();
        let others = lasting.count() - guests;
        if others >= REPLICAS {
            return Vec::new();
        }
        let free = |member: &AccessPoint| *member != cx.me && !self.replicas.contains_key(member) && !self.avoided.contains_key(member);
        let order = members.replicas_of(&cx.me).into_iter().filter(free);
        let (mut chosen, further): (Vec<_>, Vec<_>) = order.partition(|member| !is_guest(member));
        chosen.truncate(REPLICAS - others);
        let lacking = REPLICAS.saturating_sub(others + guests + chosen.len());
        chosen.extend(further.into_iter().take(lacking));
        for member in &chosen {
            let chosen = Replica {
                chosen: cx.now.moment,
                store: None,
                whole: false,
                refused: false,
                failing_since: None,
                over: false,
                guest: is_guest(member),
            };
            self.replicas.insert(*member, chosen);
        }
        chosen
    }

    /// Who is needed, as the voters may know; none if nothing is recorded at the moment.
    pub(super) fn told(&mut self, needed: Option<Vec<NamedReplica>>) {
        self.changed |= self.told != needed;
        self.told = needed;
    }

    /// Who must have a row before it is recorded, if they may be others than at the last time: the voters say with every tick whom they know.
    pub(super) fn needed_now(&mut self, me: AccessPoint) -> Option<Option<BTreeSet<AccessPoint>>> {
        std::mem::take(&mut self.changed).then(|| self.needed(me))
    }

    /// Who must have a row before it is recorded: whom voters may tell, and whom they are about to be told of. One that uses another database
    /// than the one that was told cannot be taken for one that has all.
    pub(super) fn needed(&self, me: AccessPoint) -> Option<BTreeSet<AccessPoint>> {
        let store_of = |member: &AccessPoint| self.replicas.get(member).and_then(|replica| replica.store);
        // What only we have is recorded only as long as nobody else could have it.
        let told = self
            .told
            .as_ref()
            .filter(|told| self.alone || told.iter().any(|name| name.member != me))?
            .iter()
            .filter(|name| store_of(&name.member).is_none_or(|store| store == name.store));
        Some(told.map(|name| name.member).chain(self.wanted()).filter(|member| *member != me).collect())
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
        self.changed = true;
        let other = replica.store.is_some_and(|before| before != store);
        replica.store = Some(store);
        replica.whole &= !other;
        other
    }

    /// A member left for good, as it said itself.
    pub(super) fn left(&mut self, now: Moment, member: &AccessPoint) {
        if let Some(replica) = self.replicas.get_mut(member) {
            (replica.over, replica.failing_since) = (true, Some(now));
            self.changed = true;
        }
    }

    /// The replicas, those included that are not whole yet.
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

    /// Who has all that we recorded, ourselves first; empty if nobody else has yet who should.
    pub(super) fn names(&self) -> &[NamedReplica] {
        &self.names
    }

    /// Whether somebody who has all that we recorded is not known to the voters yet: a successor would not ask that one.
    pub(super) fn is_to_be_told(&self) -> bool {
        self.names.iter().any(|name| self.told.as_ref().is_none_or(|told| !told.contains(name)))
    }

    /// The replicas that have all that we recorded; none if nobody else has yet who should.
    pub(super) fn named(&self) -> Option<impl Iterator<Item = AccessPoint>> {
        (!self.names.is_empty()).then(|| self.names.iter().skip(1).map(|name| name.member))
    }
}

#[cfg(test)]
impl Placement {
    /// These have been replicas for a while, and the voters know it.
    pub(super) fn of(me: AccessPoint, members: &[AccessPoint]) -> Placement {
        let store = StoreId(1);
        let replica =
            Replica { chosen: Moment(0), store: Some(store), whole: true, refused: false, failing_since: None, over: false, guest: false };
        let names: Vec<_> = [me].iter().chain(members).map(|member| NamedReplica { member: *member, store }).collect();
        let replicas = members.iter().map(|member| (*member, replica)).collect();
        Placement { replicas, told: Some(names.clone()), names, changed: true, ..Placement::default() }
    }
}

#[cfg(test)]
mod tests;
