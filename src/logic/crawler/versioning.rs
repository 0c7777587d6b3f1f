//! Which hierarchy is used here? What members vouch for is told and heard; what most vouch for is used, as soon as it is at hand.
//!
//! The rules are in [`crate::logic::editions`]; here they meet the members, the gossip and the hands.

use super::{Command, Crawler};
use crate::{
    logic::{
        editions::{Editions, Found, Wish},
        hierarchy::Hierarchy,
    },
    model::{
        edition::{Edition, Endorsement},
        message::Gossip,
        time::{Millis, Moment},
    },
};
use std::{collections::BTreeMap, sync::Arc};

/// What this member vouches for is told this often again.
const TELL_AGAIN: Millis = 60_000;

/// Hierarchies at hand besides the one in use: the one before, the one vouched for, and one or two that most may vouch for.
const MOST_OPENED: usize = 4;

/// The hierarchies at hand, and what is known of others.
#[derive(Debug)]
pub(super) struct Shelf {
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
    /// The edition of the hierarchy that the mind was given.
    pub uses: Edition,
    /// What the operator gives, if that is not the same.
    pub given: Option<(Edition, Arc<Hierarchy>)>,
    /// Whether the operator wants it to stay.
    pub pinned: bool,
}

impl Crawler {
    /// The process says what it has. Without that, nothing is told of editions, and the hierarchy stays what it is.
    pub(super) fn at_hand(&mut self, at_hand: AtHand) {
        let AtHand { uses, given, pinned } = at_hand;
        // Of what was adopted once and what the operator gives, the newer one is vouched for.
        let newer = given.filter(|(edition, _)| pinned || edition.age_order(&uses).is_gt());
        let endorses = newer.as_ref().map_or(uses, |(edition, _)| *edition);
        let opened = newer.map(|(edition, hierarchy)| (edition.hash, hierarchy)).into_iter().collect();
        let editions = Editions::new(self.me, uses, endorses, pinned);
        self.shelf = Some(Shelf { editions, opened, before: None, tell_due: self.now.moment, version: 0 });
    }

    /// The operator gives another edition while we run.
    pub(super) fn given(&mut self, edition: Edition, hierarchy: Arc<Hierarchy>) {
        let Some(shelf) = &mut self.shelf else { return };
        shelf.editions.propose(edition);
        let in_use = shelf.editions.uses() == edition;
        shelf.put(edition, hierarchy.clone());
        shelf.tell_due = self.now.moment;
        if in_use {
            // Pinned: what the operator says is done.
            self.change_hierarchy(hierarchy);
        }
        self.keep_editions();
    }

    /// The hands looked at an edition.
    pub(super) fn edition_found(&mut self, edition: Edition, found: Found, hierarchy: Option<Arc<Hierarchy>>, wrong: u64) {
        let now = self.now;
        if wrong > 0 {
            *self.counters.refused.entry("wrong manifests or pieces of hierarchies").or_default() += wrong;
        }
        let Some(shelf) = &mut self.shelf else { return };
        let found = if hierarchy.is_some() { found } else { Found::Unusable };
        let endorsed = shelf.editions.found(edition, found, now);
        if let Some(hierarchy) = hierarchy {
            shelf.put(edition, hierarchy);
        }
        if endorsed {
            shelf.tell_due = now.moment;
        }
        match found {
            Found::Unusable => self.refuse("hierarchies that could not be had or are broken"),
            Found::Doubtful => self.refuse("hierarchies that change more than time explains"),
            Found::Plausible => {}
        }
        if found != Found::Unusable {
            self.keep_editions();
        }
    }

    /// A member says what it uses and what it vouches for.
    pub(super) fn endorsed(&mut self, endorsement: Endorsement) {
        if let Some(shelf) = &mut self.shelf {
            shelf.editions.hear(endorsement);
        }
    }

    /// A new member shall hear soon what we vouch for.
    pub(super) fn tell_edition_soon(&mut self) {
        if let Some(shelf) = &mut self.shelf {
            shelf.tell_due = self.now.moment;
        }
    }

    pub(super) fn tick_editions(&mut self) {
        // Who has just started does not know yet how many the others are.
        let early = self.now.moment.since(self.started) < self.settings.roster.stable_after;
        if !self.rounds.is_multiple_of(10) || !self.synced || self.draining || self.leaving {
            return;
        }
        let (now, live, settled) = (self.now, self.live(), self.roster.settled(self.now.moment));
        let ours = Arc::clone(&self.hierarchy);
        let Some(shelf) = &mut self.shelf else { return };
        shelf.editions.retain(|member| live.contains(member) || settled.contains(member));
        let mut change = None;
        for _ in 0..MOST_OPENED {
            let before = shelf.editions.uses();
            match if early { None } else { shelf.editions.next(&settled, &live, now) } {
                None => break,
                Some(Wish::Gather { edition, from }) => {
                    self.commands.push_back(Command::GatherHierarchy { edition, from, ours: Arc::clone(&ours) });
                }
                Some(Wish::Use(edition)) => {
                    let Some(hierarchy) = shelf.opened.get(&edition.hash).cloned() else {
                        // It made room for others meanwhile: once more.
                        shelf.editions.lost(edition, before);
                        continue;
                    };
                    shelf.before = Some(before);
                    shelf.put(before, Arc::clone(&ours));
                    shelf.tell_due = now.moment;
                    change = Some(hierarchy);
                    break;
                }
            }
        }
        if now.moment >= shelf.tell_due {
            shelf.tell_due = now.moment.after(TELL_AGAIN);
            shelf.version = (shelf.version + 1).max(now.wall.0);
            let (uses, endorses) = (shelf.editions.uses(), shelf.editions.endorses());
            let endorsement = Endorsement { by: self.me, version: shelf.version, uses, endorses };
            self.commands.push_back(Command::Publish(Gossip::Endorsement(endorsement)));
        }
        if let Some(hierarchy) = change {
            self.counters.editions += 1;
            self.change_hierarchy(hierarchy);
            self.keep_editions();
        }
    }

    /// Has the hands remember what is used, and forget what is not needed any more.
    fn keep_editions(&mut self) {
        let Some(shelf) = &self.shelf else { return };
        let uses = shelf.editions.uses();
        let others = shelf.opened.keys().copied().filter(|hash| *hash != uses.hash).collect();
        self.commands.push_back(Command::KeepHierarchies { uses, others });
    }

    /// The edition in use and the one that we vouch for; none if the process did not say what it has.
    pub fn editions(&self) -> Option<(Edition, Edition)> {
        self.shelf.as_ref().map(|shelf| (shelf.editions.uses(), shelf.editions.endorses()))
    }
}

impl Shelf {
    /// Keeps a hierarchy at hand. What is neither vouched for nor was used last makes room.
    fn put(&mut self, edition: Edition, hierarchy: Arc<Hierarchy>) {
        self.opened.insert(edition.hash, hierarchy);
        while self.opened.len() > MOST_OPENED {
            let needed = [edition.hash, self.editions.endorses().hash, self.before.map_or([0; 32], |before| before.hash)];
            let Some(spare) = self.opened.keys().find(|hash| !needed.contains(hash)).copied() else { return };
            self.opened.remove(&spare);
            self.editions.forget(&spare);
        }
    }
}
