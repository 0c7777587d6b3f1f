//! What does everybody know? Claims and roll-ups are gossiped; what gossip lost is repaired by comparing digests.

use super::{Command, Crawler, Pending};
use crate::{
    logic::tally::Whereabouts,
    model::{
        access_point::AccessPoint,
        claim::{Claim, SignedClaim},
        message::{CLAIM_BUCKETS, Gossip, Request, Response},
        subnet::Subnet,
        summary::{RollUp, SwarmResults},
        time::Millis,
        url::Host,
    },
};
use std::net::IpAddr;

/// Claims are told at most this often, many at a time.
const NEWS_EVERY: Millis = 1_000;

/// Claims in one gossip message: about 250 bytes each.
const MOST_NEWS: usize = 900;

/// Claims in one answer to a comparison.
const MOST_COMPARED: usize = 2_500;

/// The ownership map is compared with one member this often.
const COMPARE_EVERY: Millis = 5_000;

/// A changed roll-up is told at most this often, an unchanged one this often again.
const ROLL_UP_EVERY: Millis = 1_000;
const ROLL_UP_AGAIN: Millis = 10_000;

impl Crawler {
    pub(super) fn gossiped(&mut self, gossip: Gossip) {
        self.roster.heard(self.now.moment);
        match gossip {
            Gossip::Claims(proofs) => self.hear_claims(proofs),
            Gossip::RollUp(roll_up) if roll_up.owner != self.me => {
                self.roster.told(roll_up.owner, roll_up.sure_of as usize);
                self.roll_ups.hear(*roll_up, self.now.moment);
            }
            Gossip::RollUp(_) => {}
            // What an endorsement says of its author was checked by whoever heard it from the network.
            Gossip::Endorsement(endorsement) => self.endorsed(endorsement),
            Gossip::Distances(told) => self.distances_told(told),
        }
    }

    pub(super) fn tick_spread(&mut self) {
        let now = self.now.moment;
        self.tell_news();
        self.tick_distances();
        let sure_of = self.roster.settled(now).len();
        self.roll_up_changed |= sure_of != std::mem::replace(&mut self.sure_of, sure_of);
        if now >= self.compare_due {
            self.compare_due = now.after(COMPARE_EVERY);
            let others: Vec<_> = self.live().into_iter().filter(|peer| *peer != self.me).collect();
            match others.get(self.rounds as usize / 7 % others.len().max(1)) {
                Some(peer) => self.compare_with(*peer),
                None if !self.settings.joins && self.synced => self.claim_own_subnets(),
                None => {}
            }
        }
        if (self.roll_up_changed || !self.dirty.is_empty()) && now >= self.roll_up_due || now >= self.roll_up_due.after(ROLL_UP_AGAIN) {
            self.tell_roll_up();
        }
    }

    /// Tells claims that are new, if the last telling is long enough ago.
    pub(super) fn tell_news(&mut self) {
        if self.news.is_empty() || self.now.moment < self.news_due {
            return;
        }
        self.news_due = self.now.moment.after(NEWS_EVERY);
        let mut proofs = Vec::new();
        while proofs.len() < MOST_NEWS
            && let Some((_, proof)) = self.news.pop_first()
        {
            proofs.push(proof);
        }
        self.commands.push_back(Command::Publish(Gossip::Claims(proofs)));
    }

    pub(super) fn compare_with(&mut self, peer: AccessPoint) {
        let buckets = self.ownership.buckets().to_vec();
        self.ask(peer, Pending::Compare, Request::CompareClaims(buckets));
    }

    /// A member compares its map with ours.
    pub(super) fn compared(&mut self, ticket: u64, buckets: &[u64]) {
        let answer = if buckets.len() == CLAIM_BUCKETS {
            let (proofs, more) = self.ownership.differing(buckets, MOST_COMPARED);
            Response::Claims(proofs, more)
        } else {
            self.refuse("comparisons of another size");
            Response::Refused(format!("an ownership map is compared in {CLAIM_BUCKETS} buckets"))
        };
        self.answer(ticket, answer);
    }

    /// What a member knows that we did not. After the first whole comparison we may act on the map.
    pub(super) fn compare_answered(&mut self, from: AccessPoint, proofs: Vec<SignedClaim>, more: bool) {
        let before = self.ownership.buckets().to_vec();
        self.hear_claims(proofs);
        if more && self.ownership.buckets() != before {
            self.compare_with(from);
        } else if !self.synced {
            self.synced = true;
            self.claim_own_subnets();
            self.outbox.wake_all();
            self.route();
        }
    }

    /// Brings the tally up to date and tells everybody what we hold and know.
    fn tell_roll_up(&mut self) {
        self.enter_dirty();
        self.roll_up_changed = false;
        self.roll_up_due = self.now.moment.after(ROLL_UP_EVERY);
        // Wall time keeps versions growing across restarts; the clock jumping back only costs the difference in silence.
        self.roll_up_version = (self.roll_up_version + 1).max(self.now.wall.0);
        // While the history of something that we hold is still being read, the sums lack it: nobody may take them for exact.
        let digest = self.ownership.digest_of(&self.me);
        let claims_digest = if self.loading.is_empty() { digest } else { !digest };
        let (busy_permille, price_permille) = self.load_told();
        let roll_up = RollUp {
            owner: self.me,
            version: self.roll_up_version,
            claims_digest,
            subnets: self.ownership.count(&self.me) as u64,
            sure_of: self.sure_of as u32,
            busy_permille,
            price_permille,
            summary: self.tally.small_summary(),
        };
        self.roll_ups.hear(roll_up.clone(), self.now.moment);
        let live = self.live();
        let ownership = &self.ownership;
        self.roll_ups.retain(|owner| live.contains(owner) || ownership.count(owner) > 0);
        self.commands.push_back(Command::Publish(Gossip::RollUp(Box::new(roll_up))));
    }

    /// Enters the sites that changed into the tally.
    pub(super) fn enter_dirty(&mut self) {
        for host in std::mem::take(&mut self.dirty) {
            if let Some(site) = self.sites.get(&host) {
                let whereabouts = self.whereabouts(&host);
                self.tally.enter(&site.record, whereabouts);
            }
        }
    }

    fn whereabouts(&self, host: &Host) -> Whereabouts {
        let position = self.sites.get(host).and_then(|site| self.hierarchy.locate(site.address));
        let Some(position) = position else {
            return Whereabouts { country: "ZZ".into(), registry: "unregistered".into(), organisation: "unregistered".into() };
        };
        let organisation = self.hierarchy.organisation(position);
        Whereabouts {
            country: self.hierarchy.country(position).to_owned(),
            registry: self.hierarchy.registry(position).to_owned(),
            organisation: self.hierarchy.organisation_name(organisation).to_owned(),
        }
    }

    /// The claim that holds for exactly this subnet, as far as we know.
    pub fn claim_of(&self, subnet: &Subnet) -> Option<&Claim> {
        self.ownership.claim(subnet)
    }

    /// The claim that says whose an address is, as far as we know; a released one says that it is nobody's for the moment.
    pub fn claim_around(&self, address: IpAddr) -> Option<&Claim> {
        self.ownership.around(address)
    }

    /// What the swarm knows so far, as far as we know.
    pub fn results(&self) -> SwarmResults {
        let owners = self.ownership.owners().map(|owner| (owner, self.ownership.digest_of(&owner))).collect();
        let mut results = self.roll_ups.results(self.me, &owners, &self.live(), self.now.moment);
        if !self.dirty.is_empty() && results.exact {
            results.exact = false;
            results.in_transition = Some("our own numbers are changing".to_owned());
        }
        results
    }
}
