//! State machine for the edition of the hierarchy that is used here.
//!
//! What members vouch for is told and heard; what most vouch for is used, as soon as it is at hand.
//!
//! The rules are in [`crate::hierarchy_version::editions`]; here they meet the members, the gossip and the process.

use crate::hierarchy_version::editions::{Editions, Found, Wish};
use crate::{
    context::{Context, TELL_AGAIN},
    event::{Command, HierarchyCommand, PeerCommand},
    membership::Membership,
    signal::Signal,
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    edition::{Edition, Endorsement},
    message::Gossip,
    time::Moment,
};
use std::{collections::BTreeMap, sync::Arc};

/// Hierarchies at hand besides the one in use: the one before, the one vouched for, and one or two that most may vouch for.
const MAX_OPENED: usize = 4;

/// Which edition of the hierarchy is used and vouched for; nothing if the process did not say what it has.
#[derive(Default)]
pub(crate) struct HierarchyVersion {
    snapshots: Option<Snapshots>,
}

/// The hierarchies at hand, and what is known of others.
#[derive(Debug)]
struct Snapshots {
    editions: Editions,
    opened: BTreeMap<[u8; 32], Arc<Hierarchy>>,
    /// What was used before.
    before: Option<Edition>,
    tell_due: Moment,
    version: u64,
}

/// What the process has at hand when it starts.
#[derive(Clone, Debug)]
pub struct AtHand {
    /// The edition of the hierarchy that the crawler was given.
    pub uses: Edition,
    /// What the operator gives, if that is not the same.
    pub given: Option<(Edition, Arc<Hierarchy>)>,
    /// Whether the operator wants it to stay.
    pub pinned: bool,
}

impl HierarchyVersion {
    /// The process says what it has. Without that, nothing is told of editions, and the hierarchy stays what it is.
    pub(crate) fn at_hand(&mut self, cx: &Context, at_hand: AtHand) {
        let AtHand { uses, given, pinned } = at_hand;
        // Of what was adopted once and what the operator gives, the newer one is vouched for.
        let newer = given.filter(|(edition, _)| pinned || edition.age_order(&uses).is_gt());
        let endorses = newer.as_ref().map_or(uses, |(edition, _)| *edition);
        let opened = newer.map(|(edition, hierarchy)| (edition.hash, hierarchy)).into_iter().collect();
        let editions = Editions::new(cx.me, uses, endorses, pinned);
        self.snapshots = Some(Snapshots { editions, opened, before: None, tell_due: cx.now.moment, version: 0 });
    }

    /// The operator gives another edition while we run.
    pub(crate) fn given(&mut self, cx: &mut Context, edition: Edition, hierarchy: Arc<Hierarchy>) {
        let Some(snapshots) = &mut self.snapshots else { return };
        snapshots.editions.propose(edition);
        let in_use = snapshots.editions.uses() == edition;
        snapshots.put(edition, hierarchy.clone());
        snapshots.tell_due = cx.now.moment;
        if in_use {
            // Pinned: what the operator says is done.
            cx.signal(Signal::HierarchyChanged(hierarchy));
        }
        self.keep(cx);
    }

    /// The process looked at an edition.
    pub(crate) fn found(&mut self, cx: &mut Context, edition: Edition, found: Found, hierarchy: Option<Arc<Hierarchy>>, wrong: u64) {
        let now = cx.now;
        if wrong > 0 {
            *cx.counters.refused.entry("invalid manifests or chunks of hierarchies").or_default() += wrong;
        }
        let Some(snapshots) = &mut self.snapshots else { return };
        let found = if hierarchy.is_some() { found } else { Found::Unusable };
        let endorsed = snapshots.editions.found(edition, found, now);
        if let Some(hierarchy) = hierarchy {
            snapshots.put(edition, hierarchy);
        }
        if endorsed {
            snapshots.tell_due = now.moment;
        }
        match found {
            Found::Unusable => cx.refuse("hierarchies that could not be fetched or are damaged"),
            Found::Doubtful => cx.refuse("hierarchies that differ too much from the one in use"),
            Found::Plausible => {}
        }
        if found != Found::Unusable {
            self.keep(cx);
        }
    }

    /// A member says what it uses and what it vouches for.
    pub(crate) fn endorsed(&mut self, cx: &mut Context, endorsement: Endorsement) {
        if let Some(snapshots) = &mut self.snapshots
            && !snapshots.editions.hear(endorsement)
        {
            cx.refuse("endorsements of hierarchies beyond the limit of members");
        }
    }

    /// A new member shall hear soon what we vouch for.
    pub(crate) fn tell_soon(&mut self, cx: &Context) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.tell_due = cx.now.moment;
        }
    }

    /// Once a second while this access point is one of a swarm: uses what most vouch for, fetches what may be better, tells what we vouch for.
    pub(crate) fn tick(&mut self, cx: &mut Context, members: &Membership) {
        // Who has just started does not know yet how many the others are.
        let early = cx.now.moment.since(cx.started) < cx.settings.roster.vote_after;
        let (now, live, settled) = (cx.now, members.live(), members.settled(cx.now.moment));
        let ours = Arc::clone(&cx.hierarchy);
        let Some(snapshots) = &mut self.snapshots else { return };
        snapshots.editions.retain(|member| live.contains(member) || settled.contains(member));
        let mut change = None;
        for _ in 0..MAX_OPENED {
            let before = snapshots.editions.uses();
            match if early { None } else { snapshots.editions.next(&settled, live, now) } {
                None => break,
                Some(Wish::Gather { edition, from }) => {
                    cx.commands.push_back(Command::Hierarchy(HierarchyCommand::Gather { edition, from, ours: Arc::clone(&ours) }));
                }
                Some(Wish::Use(edition)) => {
                    let Some(hierarchy) = snapshots.opened.get(&edition.hash).cloned() else {
                        // It made room for others meanwhile: once more.
                        snapshots.editions.lost(edition, before);
                        continue;
                    };
                    snapshots.before = Some(before);
                    snapshots.put(before, Arc::clone(&ours));
                    snapshots.tell_due = now.moment;
                    change = Some(hierarchy);
                    break;
                }
            }
        }
        if now.moment >= snapshots.tell_due {
            snapshots.tell_due = now.moment.after(TELL_AGAIN);
            snapshots.version = (snapshots.version + 1).max(now.wall.0);
            let (uses, endorses) = (snapshots.editions.uses(), snapshots.editions.endorses());
            let endorsement = Endorsement { by: cx.me, version: snapshots.version, uses, endorses };
            cx.commands.push_back(Command::Peers(PeerCommand::Publish(Gossip::Endorsement(endorsement))));
        }
        if let Some(hierarchy) = change {
            cx.counters.editions += 1;
            cx.signal(Signal::HierarchyChanged(hierarchy));
            self.keep(cx);
        }
    }

    /// Has the process remember what is used, and forget what is not needed any more.
    fn keep(&self, cx: &mut Context) {
        let Some(snapshots) = &self.snapshots else { return };
        let uses = snapshots.editions.uses();
        let others = snapshots.opened.keys().copied().filter(|hash| *hash != uses.hash).collect();
        cx.commands.push_back(Command::Hierarchy(HierarchyCommand::Keep { uses, others }));
    }

    /// The edition in use and the one that we vouch for; none if the process did not say what it has.
    pub(crate) fn editions(&self) -> Option<(Edition, Edition)> {
        self.snapshots.as_ref().map(|snapshots| (snapshots.editions.uses(), snapshots.editions.endorses()))
    }
}

impl Snapshots {
    /// Keeps a hierarchy at hand. What is neither vouched for nor was used last makes room.
    fn put(&mut self, edition: Edition, hierarchy: Arc<Hierarchy>) {
        self.opened.insert(edition.hash, hierarchy);
        while self.opened.len() > MAX_OPENED {
            let needed = [edition.hash, self.editions.endorses().hash, self.before.map_or([0; 32], |before| before.hash)];
            let Some(spare) = self.opened.keys().find(|hash| !needed.contains(hash)).copied() else { return };
            self.opened.remove(&spare);
            self.editions.forget(&spare);
        }
    }
}
