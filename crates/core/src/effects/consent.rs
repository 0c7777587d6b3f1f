//! Effects of who may be a member, and of who wants no requests.

use crate::{
    crawl::scope::Scope,
    crawler::Crawler,
    event::{AdmissionEvent, OptOutEvent},
};
use nearcrawl_model::{access_point::AccessPoint, opt_out::SignedStatement};

/// Certificates and expulsions say who is a member.
impl Crawler {
    /// People gave one, a member showed one, or some are durable.
    pub(crate) fn admission(&mut self, event: AdmissionEvent) {
        match event {
            AdmissionEvent::Given { number, signed } => self.admissions.given(&mut self.context, number, *signed),
            AdmissionEvent::Shown(signed) => self.admissions.shown(&mut self.context, *signed),
            AdmissionEvent::Stored { write } => self.admissions.stored(&mut self.context, &self.membership, write),
        }
    }

    /// One may be a member no more: its vote and its copies are replaced, and its subnets are taken over as after its death. Or it may be one
    /// again.
    pub(crate) fn admission_changed(&mut self, who: AccessPoint) {
        if !self.context.excluded.contains_key(&who) {
            self.voting.member_is_back(&who);
            return self.membership.readmit(&mut self.context, who);
        }
        self.voting.member_left(who);
        self.replica_left(who);
        self.membership.exclude(&mut self.context, who);
    }

    /// Certificates end, statements are compared, and names are looked up if this access point was not admitted before.
    pub(crate) fn tick_admissions(&mut self) {
        self.admissions.tick(&mut self.context, &self.membership);
        // Names that waited until this access point was admitted.
        self.routing.look_up(&mut self.context);
    }
}

/// Opt-outs and the scope hold for every site, probe and URL on its way.
impl Crawler {
    /// People ask for one, its proof was looked for, or what is said of one is durable.
    pub(crate) fn opt_out(&mut self, event: OptOutEvent) {
        match event {
            OptOutEvent::Asked { number, key, stops } => self.opt_outs.asked(&mut self.context, number, key, stops),
            OptOutEvent::AskedByReader { number, key, stops } => self.opt_outs.asked_by_reader(&mut self.context, number, key, stops),
            OptOutEvent::Located { question, address } => {
                // Name servers may tell members different addresses: a site of ours is where its owner, this one, asks it.
                let site = self.opt_outs.host_of(question).and_then(|host| self.crawl.site(host)).filter(|site| !site.has_ended());
                let address = site.map_or(address, |site| Ok(site.address));
                let claim = address.as_ref().ok().and_then(|address| self.ownership.register().around(*address));
                self.opt_outs.located(&mut self.context, &self.membership, question, address.clone(), claim);
            }
            OptOutEvent::Looked { question, found } => self.opt_outs.looked(&mut self.context, question, found),
            OptOutEvent::Stored { write } => self.opt_outs.stored(&mut self.context, &self.membership, write),
        }
        self.opt_outs_changed();
    }

    /// Members said something of them.
    pub(crate) fn hear_opt_outs(&mut self, signed: Vec<SignedStatement>) {
        self.opt_outs.hear(&mut self.context, &self.membership, signed);
        self.opt_outs_changed();
    }

    /// Others may be in force than before: that holds for every site from now on.
    fn opt_outs_changed(&mut self) {
        if self.opt_outs.has_changed() {
            self.crawl.wishes_changed(&mut self.context);
            self.crawl.break_off(&mut self.context);
            self.look_for_proofs();
        }
    }

    /// Proofs of opt-outs of sites of ours are looked for, if they were not yet.
    pub(crate) fn look_for_proofs(&mut self) {
        if !self.context.opted_out.is_empty() {
            let sites = self.crawl.sites().all().map(|site| (&site.key.host, site.address));
            self.opt_outs.look_for(&self.context, sites);
        }
    }

    /// Proofs are looked for, statements compared.
    pub(crate) fn tick_opt_outs(&mut self) {
        self.opt_outs.tick(&mut self.context, &self.membership);
        self.opt_outs_changed();
    }

    /// The operator changed which hosts are in scope and which are denied: that holds for every site from now on. What waits at a site that is
    /// denied now is set aside at its next turn; one that was taken out of the scope is asked nothing, and goes on when it is in scope again.
    pub(crate) fn change_scope(&mut self, scope: Scope) {
        self.context.settings.scope = scope;
        self.crawl.wishes_changed(&mut self.context);
    }
}
