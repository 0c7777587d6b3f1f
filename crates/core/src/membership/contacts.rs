//! Tells when each living member was heard last, and probes those that left a question unanswered, many at a time.
//!
//! SWIM probes one member in a period, whoever it is, and sends its news to a few of those that it takes to be alive. Where many vanish at about
//! the same time, it needs as many periods to find them out, and most news of them goes to others that vanished as well; meanwhile they
//! count as successors and stewards. So whoever leaves a question unanswered is probed at once, as SWIM does it: directly, through others,
//! then it is suspected and told so, and has time to object. Nobody is probed so who answers what it is asked.

use super::swim_config::SwimConfig;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// Members that are probed at a time, besides the one that SWIM probes; others are when they leave the next question unanswered.
const MAX_PROBED: usize = 64;

/// How many others are asked to probe a member that does not answer.
const HELPERS: usize = 3;

/// Who answered through others is not probed again for so many probe periods: it may be reached in no other way.
const RESTS: u64 = 6;

/// What is to be done about members that are probed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// These are pinged.
    pub(super) ping: Vec<AccessPoint>,
    /// Others are asked to ping one.
    pub(super) ask: Vec<(AccessPoint, Vec<AccessPoint>)>,
    /// These are suspects from now on.
    pub(super) suspect: Vec<AccessPoint>,
    /// These have not answered in time, and are down if they have not objected.
    pub(super) down: Vec<AccessPoint>,
}

/// A member that is probed.
#[derive(Debug)]
struct Probe {
    since: Moment,
    next_ping: Moment,
    /// Who was asked to ping it.
    helpers: BTreeSet<AccessPoint>,
    suspected: bool,
    /// Whether others reach it; then the probe is over, and remembered for a while.
    reached: bool,
}

/// When members were heard, and those that are probed.
#[derive(Debug, Default)]
pub(super) struct Contacts {
    /// When each member was heard last that is alive; none of one that left a question unanswered and has answered none since.
    heard: BTreeMap<AccessPoint, Option<Moment>>,
    probes: BTreeMap<AccessPoint, Probe>,
}

impl Contacts {
    /// A member is alive, as far as is known.
    pub(super) fn up(&mut self, who: AccessPoint) {
        self.heard.entry(who).or_default();
    }

    /// A member is down.
    pub(super) fn down(&mut self, who: &AccessPoint) {
        self.heard.remove(who);
        self.probes.remove(who);
    }

    /// Whether this member is alive, as far as is known.
    pub(super) fn is_up(&self, who: &AccessPoint) -> bool {
        self.heard.contains_key(who)
    }

    /// This member said something itself; `answered` is whether that is the answer to a question of ours.
    pub(super) fn heard(&mut self, now: Moment, who: &AccessPoint, answered: bool) {
        if let Some(heard) = self.heard.get_mut(who) {
            *heard = (answered || heard.is_some()).then_some(now);
        }
        if answered {
            self.probes.remove(who);
        }
    }

    /// This member answered a ping, directly or through one of those that were asked to ping it.
    pub(super) fn acknowledged(&mut self, by: &AccessPoint, of: &AccessPoint) {
        if by == of {
            self.probes.remove(of);
        } else if let Some(probe) = self.probes.get_mut(of).filter(|probe| probe.helpers.contains(by)) {
            probe.reached = true;
        }
    }

    /// This member did not answer a question.
    pub(super) fn unanswered(&mut self, now: Moment, who: &AccessPoint) {
        let Some(heard) = self.heard.get_mut(who) else { return };
        *heard = None;
        if self.probes.len() < MAX_PROBED {
            let new = Probe { since: now, next_ping: now, helpers: BTreeSet::new(), suspected: false, reached: false };
            self.probes.entry(*who).or_insert(new);
        }
    }

    /// What is to be done now.
    pub(super) fn steps(&mut self, now: Moment, config: &SwimConfig) -> Steps {
        let mut steps = Steps::default();
        if self.probes.is_empty() {
            return steps;
        }
        self.probes.retain(|_, probe| !(probe.reached && now.since(probe.since) >= RESTS * config.probe_every));
        let mut helpers: Vec<_> = self.heard.iter().filter_map(|(who, heard)| Some(((*heard)?, *who))).collect();
        helpers.sort_unstable_by(|one, other| other.cmp(one));
        let helpers: BTreeSet<_> = helpers.into_iter().take(HELPERS).map(|(_, who)| who).collect();
        for (who, probe) in self.probes.iter_mut().filter(|(_, probe)| !probe.reached) {
            let waited = now.since(probe.since);
            if waited >= config.unheard() {
                steps.down.push(*who);
                continue;
            }
            if waited >= config.probe_rtt && probe.helpers.is_empty() && !helpers.is_empty() {
                probe.helpers.clone_from(&helpers);
                steps.ask.push((*who, helpers.iter().copied().collect()));
            }
            if waited >= config.probe_every && !probe.suspected {
                // It is told at once.
                (probe.suspected, probe.next_ping) = (true, now);
                steps.suspect.push(*who);
            }
            if now >= probe.next_ping {
                probe.next_ping = now.after(config.probe_rtt);
                steps.ping.push(*who);
            }
        }
        steps.down.iter().for_each(|who| drop(self.probes.remove(who)));
        steps
    }

    /// Whether a member was heard within this time, and has not left a question unanswered since.
    pub(super) fn is_heard_within(&self, now: Moment, who: &AccessPoint, lately: Millis) -> bool {
        self.heard.get(who).copied().flatten().is_some_and(|heard| now.since(heard) < lately)
    }
}
