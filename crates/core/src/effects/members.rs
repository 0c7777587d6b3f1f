//! Effects of members that come, go and tell each other something, and of this one's own leaving.

use super::EXCLUDED;
use crate::{crawler::Crawler, membership::shutdown::Unfinished};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, message::Gossip};
use std::{net::IpAddr, sync::Arc};

/// Connections and addresses.
impl Crawler {
    /// The address at the other end of a member's own connection.
    pub(crate) fn seen_at(&mut self, who: AccessPoint, remote: Option<IpAddr>) {
        if let Some(remote) = remote {
            self.voting.saw(&mut self.context, who, remote);
        }
    }

    /// Others reach this access point there.
    pub(crate) fn reached_at(&mut self, addresses: Vec<String>) {
        // An address through a third member is that one's.
        for address in addresses.iter().filter(|address| !address.contains("/p2p-circuit")) {
            if let Some(own) = address.split('/').find_map(|part| part.parse::<IpAddr>().ok()).filter(|own| !own.is_unspecified()) {
                self.voting.have(&self.context, own);
            }
        }
        self.membership.reached_at(self.context.now.moment, addresses);
    }
}

/// Members come and go, and so does this one.
impl Crawler {
    pub(crate) fn tick_members(&mut self) {
        self.membership.tick(&mut self.context);
        self.settle_signals();
        if self.membership.is_long_alone(&self.context) {
            self.ownership.sync(&mut self.context);
        }
    }

    /// Other members than before: replicas are chosen anew, and what waits for owners is looked at again.
    pub(crate) fn members_changed(&mut self) {
        self.review_replicas();
        self.routing.members_changed(&self.context, &self.membership);
        self.note_owners();
        self.report.members_changed(&self.context, &self.membership, &self.ownership);
    }

    /// There is a connection to a member: what it may not have heard is compared with it.
    pub(crate) fn member_connected(&mut self, who: AccessPoint) {
        self.opt_outs.compare_with(&mut self.context, who);
        self.admissions.compare_with(&mut self.context, who);
        self.voting.connected(&mut self.context, who);
        self.replication.connected(&mut self.context, who);
        self.ownership.compare_with(&mut self.context, &self.membership, who);
        self.hierarchy_version.tell_soon(&self.context);
        self.report.mark_changed();
    }

    /// The roster gave a member up.
    pub(crate) fn dead(&mut self, gone: AccessPoint) {
        self.delegation.member_died(&self.context, gone);
        self.ownership.dead(self.context.now.moment, gone);
        self.tick_recovery();
        self.tick_take_over();
    }

    /// An operator says that these members will not come back: neither their votes nor their journals are waited for.
    pub(crate) fn declare_lost(&mut self, lost: Vec<AccessPoint>) {
        for subnet in self.replication.declare_lost(&lost) {
            self.begin_if_known(subnet);
        }
        self.voting.declare_lost(&mut self.context, lost);
    }

    pub(crate) fn tick_shutdown(&mut self) {
        if !self.shutdown.is_waiting() {
            return;
        }
        self.replication.flush(&mut self.context);
        let unfinished = Unfinished {
            fetching: self.crawl.fetches().is_busy() || self.crawl.is_asking() || self.surveys.probing().is_busy(),
            journals: self.replication.is_recording(),
            naming: self.replication.is_naming(),
            outgoing: !self.routing.outbox().is_empty(),
            voter: self.voting.is_listed(self.context.me, &self.membership),
            needed: self.voting.is_needed(&self.context, &self.membership),
            copy: self.voting.may_be_a_copy(self.context.now.moment),
        };
        self.shutdown.tick(&mut self.context, unfinished, &self.ownership, &self.membership);
        self.settle_signals();
    }
}

/// What every member tells every other.
impl Crawler {
    /// A member told every member something.
    pub(crate) fn gossiped(&mut self, author: AccessPoint, gossip: Gossip) {
        if self.context.excluded.contains_key(&author) {
            return self.context.refuse(EXCLUDED);
        }
        match gossip {
            Gossip::Claims(proofs) => self.hear_claims(proofs),
            Gossip::RollUp(roll_up) if roll_up.owner != author => self.context.refuse("totals in the name of another member"),
            Gossip::RollUp(roll_up) if roll_up.owner == self.context.me => {}
            Gossip::RollUp(roll_up) => self.report.hear(&mut self.context, &self.membership, &self.ownership, *roll_up),
            Gossip::Endorsement(endorsement) if endorsement.by != author => {
                self.context.refuse("endorsements in the name of another member")
            }
            Gossip::Endorsement(endorsement) => self.hierarchy_version.endorsed(&mut self.context, endorsement),
            Gossip::Distances(told) if told.from != author => self.context.refuse("distances in the name of another member"),
            Gossip::Distances(told) => self.delegation.distances_told(&mut self.context, &self.membership, told),
            Gossip::Surveys(heads) => self.surveys.told(&mut self.context, author, &heads),
            Gossip::OptOuts(signed) => self.hear_opt_outs(signed),
            Gossip::Admissions(signed) => self.admissions.hear(&mut self.context, signed),
            Gossip::Profile(told) if told.from != author => self.context.refuse("profiles in the name of another member"),
            Gossip::Profile(told) => self.membership.profile_told(&mut self.context, told),
            Gossip::Leaving => {
                // What is here may have copies there only.
                if self.membership.says_that_it_leaves(self.context.now.moment, author) {
                    self.review_replicas();
                }
            }
        }
    }
}

/// Editions of the hierarchy.
impl Crawler {
    /// Editions of the hierarchy are announced and adopted, once our claims are compared and as long as we stay.
    pub(crate) fn tick_hierarchy(&mut self) {
        if self.ownership.is_synced() && !self.shutdown.is_stopping() {
            self.hierarchy_version.tick(&mut self.context, &self.membership);
            self.settle_signals();
        }
    }

    /// From now on this hierarchy is used. Claims, journals and everything under way stay as they are: whose an address is does not
    /// depend on it.
    pub(crate) fn change_hierarchy(&mut self, hierarchy: Arc<Hierarchy>) {
        self.context.hierarchy = hierarchy;
        self.delegation.relocate(&self.context, &self.ownership);
        // Which country and organisation a site counts for may be another now.
        self.crawl.sites().hosts().for_each(|host| self.report.site_changed(host.clone()));
        self.routing.wake_all();
        self.route();
    }
}
