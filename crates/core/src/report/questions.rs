//! What the process may ask of an access point: each question is answered by a [`View`] or by the machine that knows.

use super::{Counters, Outside, View};
use crate::{crawler::Crawler, membership::machine::HeldBack, migration::handover::Surroundings};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::Claim,
    subnet::Subnet,
    summary::{Summary, SwarmResults},
    url::Host,
    view::{Activity, MemberView, OwnershipView, ProgressView, ServersPage, StatusView, Subject, WhyView},
};
use std::{collections::BTreeSet, net::IpAddr};

impl Crawler {
    /// All machines, to be read.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            context: &self.context,
            membership: &self.membership,
            shutdown: &self.shutdown,
            ownership: &self.ownership,
            delegation: &self.delegation,
            routing: &self.routing,
            crawl: &self.crawl,
            replication: &self.replication,
            migration: &self.migration,
            report: &self.report,
        }
    }

    /// The claim that holds for exactly this subnet, as far as we know.
    pub fn claim_of(&self, subnet: &Subnet) -> Option<&Claim> {
        self.ownership.register.claim(subnet)
    }

    /// The claim that says whose an address is, as far as we know; a released one says that it is nobody's for the moment.
    pub fn claim_around(&self, address: IpAddr) -> Option<&Claim> {
        self.ownership.register.around(address)
    }

    /// Why nothing may be fetched now, if so.
    pub fn held_back(&self) -> Option<HeldBack> {
        self.view().held_back()
    }

    /// What it is doing; in words by its `Display`.
    pub fn activity(&self) -> Activity {
        self.view().activity()
    }

    /// Whether anything is left to do here before the next run: something waits, is under way, or is not stored and copied yet.
    /// What a spent page budget holds back does not count.
    pub fn has_work(&self) -> bool {
        self.view().has_work()
    }

    /// Whether everything that was named is done and stored.
    pub fn all_done(&self) -> bool {
        !self.has_work()
    }

    /// Everything about itself, in numbers and one sentence.
    pub fn status(&self, outside: Outside) -> StatusView {
        self.view().status(outside)
    }

    /// Why this is crawled by whom, and when. What is not known here is left out.
    pub fn why(&self, subject: &Subject) -> WhyView {
        self.view().why(subject)
    }

    /// The host of a subject whose place is to be asked for before anything can be said of it.
    pub fn unlocated(&self, subject: &Subject) -> Option<Host> {
        self.view().unlocated(subject)
    }

    /// The members: itself first, then the others in order, then those that were given up and still own something.
    pub fn members(&self) -> Vec<MemberView> {
        self.view().members()
    }

    /// Whose the subnets after `after` are, in address order, at most `most` of them.
    pub fn ownership(&self, after: Option<Subnet>, most: usize) -> Vec<OwnershipView> {
        self.view().ownership(after, most)
    }

    /// The records of its own servers after `after`, in the order of their names, at most `most` of them (at least one).
    pub fn servers(&self, after: Option<&Host>, most: usize) -> ServersPage {
        self.view().servers(after, most)
    }

    /// How far it is.
    pub fn progress(&self) -> ProgressView {
        self.view().progress()
    }

    /// The members that count, to be remembered for the next start.
    pub fn settled_members(&self) -> BTreeSet<AccessPoint> {
        self.membership.settled(self.context.now.moment)
    }

    /// Where other members can be reached, as complete multiaddrs.
    pub fn member_addresses(&self) -> Vec<String> {
        self.membership.all_addresses().cloned().collect()
    }

    /// How many subnets this access point holds.
    pub fn subnets_held(&self) -> usize {
        self.ownership.register.count(&self.context.me)
    }

    /// What it did and refused since it started.
    pub fn counters(&self) -> &Counters {
        &self.context.counters
    }

    /// The sums over its own sites as they are now.
    pub fn own_summary(&mut self) -> Summary {
        self.report.own_summary(&self.context, &self.crawl)
    }

    /// What the swarm knows so far, as far as this access point knows.
    pub fn results(&self) -> SwarmResults {
        self.report.results(&self.context, &self.membership, &self.ownership)
    }
}

impl<'a> View<'a> {
    /// What migration reads.
    pub(crate) fn surroundings(&self) -> Surroundings<'a> {
        Surroundings {
            membership: self.membership,
            ownership: self.ownership,
            crawl: self.crawl,
            replication: self.replication,
            delegation: self.delegation,
            report: self.report,
            held_back: self.held_back().is_some(),
        }
    }
}
