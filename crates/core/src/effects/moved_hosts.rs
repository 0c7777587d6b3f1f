//! Effects of hosts having other addresses: they are looked up, leave, or come.

use crate::{
    crawl::moved_hosts::Coming,
    crawler::Crawler,
    event::{Command, StoreCommand},
    pending::Pending,
    replication::loading::JournalCopy,
    routing::stewardship::Owners,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ResolveError},
    ids::Ticket,
    journal::{JournalEntry, JournalKey},
    message::{Request, Response},
    subnet::Subnet,
    time::Millis,
    url::{Host, PageUrl},
};
use std::{collections::BTreeSet, net::IpAddr};

/// After so long an owner may tell a steward again where its hosts are; it does as soon as their turn comes.
const TELL_AGAIN: Millis = 1_000;

/// Hosts are looked up.
impl Crawler {
    /// Has hosts looked up whose runs come, and takes those that moved a step further.
    pub(crate) fn tick_moved_hosts(&mut self) {
        self.crawl.expire_hosts(&self.context);
        for (host, address) in self.crawl.next_to_confirm(&self.context) {
            if let Some(answer) = self.routing.confirm(&mut self.context, &self.membership, &host, address) {
                self.crawl.confirmed(&self.context, &host, &answer);
            }
        }
        for host in self.crawl.next_steps() {
            self.move_host(&host);
        }
        self.settle_signals();
    }

    /// Tells stewards where our hosts are, if other members were their stewards before: else they would look them up as if nobody had them.
    pub(crate) fn tick_stewards(&mut self) {
        self.note_owners();
        let (members, me) = (&self.membership, self.context.me);
        let untold = self.crawl.untold_stewards(members.live().len(), |host| members.steward_of_host(host));
        for (steward, hosts) in untold {
            let names: Vec<_> = hosts.iter().map(|(host, _)| host.clone()).collect();
            if steward == me {
                let told = self.note_pins(me, hosts);
                self.crawl.stewards_heard(&names, told);
            } else {
                self.context.ask(steward, Pending::Pinned(names), Request::Pinned(hosts));
            }
        }
    }

    /// What our map says of owners, for the stewards' duty.
    pub(super) fn note_owners(&mut self) {
        let (live, me) = (self.membership.live(), self.context.me);
        let live: BTreeSet<_> = live.iter().copied().collect();
        let mut owners = Owners { whole: self.ownership.is_synced(), ..Owners::default() };
        for owner in self.ownership.register().owners().filter(|owner| *owner != me) {
            (owners.others, owners.silent) = (true, owners.silent || !live.contains(&owner));
        }
        self.routing.note_owners(&self.context, owners);
    }

    /// A member says which hosts it has at addresses of its own, and that we are their steward now. What we cannot check yet, or know
    /// otherwise, it says again.
    pub(crate) fn told_pins(&mut self, from: AccessPoint, ticket: Ticket, mut hosts: Vec<(Host, IpAddr)>) {
        let (register, told) = (self.ownership.register(), hosts.len());
        hosts.retain(|(_, address)| register.around(*address).is_some_and(|claim| claim.owner == from));
        let are_its_own = hosts.len() == told;
        let agreed = self.note_pins(from, hosts) && are_its_own && self.ownership.is_synced();
        self.answer(ticket, if agreed { Response::Noted } else { Response::Busy(TELL_AGAIN) });
    }

    /// Where we know better, their owner is told. Whether that is nowhere.
    fn note_pins(&mut self, from: AccessPoint, hosts: Vec<(Host, IpAddr)>) -> bool {
        let known_elsewhere = self.routing.pinned(&mut self.context, hosts);
        let agreed = known_elsewhere.is_empty();
        for elsewhere in known_elsewhere {
            if from == self.context.me {
                self.crawl.may_have_moved(&self.context, &elsewhere);
            } else {
                self.context.ask(from, Pending::HostMoved(elsewhere.clone()), Request::HostMoved(elsewhere));
            }
        }
        agreed
    }

    /// The steward of a host said where it is.
    pub(crate) fn confirmed(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        let transient = answer.as_ref().is_err_and(|failure| failure.is_transient());
        if transient || self.routing.located(&mut self.context, host, answer.clone()) {
            self.crawl.confirmed(&self.context, host, &answer);
            self.route();
        }
    }

    /// The steward of a host found that its name leads elsewhere.
    pub(crate) fn told_host_moved(&mut self, ticket: Ticket, located: &LocatedHost) {
        let seen_to = self.crawl.may_have_moved(&self.context, located);
        let answer = if seen_to { Response::Noted } else { Response::Refused("the host is not crawled here".to_owned()) };
        self.answer(ticket, answer);
    }
}

/// Hosts of ours leave.
impl Crawler {
    /// Takes a host of ours that has moved a step further.
    fn move_host(&mut self, host: &Host) {
        let Some(located) = self.crawl.moved().destination(host).cloned() else { return };
        let Some(site) = self.crawl.site(host) else { return };
        let (key, went_to, first) = (site.key.clone(), site.went_to(), site.starts.first().cloned());
        let (next, start) = (site.next_sequence(), first.or_else(|| PageUrl::parse(&format!("http://{host}/")).ok()));
        if self.replication.is_loading(&key.subnet) || self.migration.has_stopped(&key.subnet) || self.view().held_back().is_some() {
            return;
        }
        let Some(owner) = self.owner_for(&located, start.as_ref()) else { return };
        let Some(to) = self.ownership.register().around(located.address).map(|claim| claim.subnet) else { return };
        if went_to != Some((to, located.address)) {
            if self.crawl.stop_host(host) {
                self.crawl.note_moved(&mut self.context, &mut self.replication, &located, to);
                self.report.mark_changed();
                if self.crawl.site(host).is_some_and(|site| site.has_ended()) {
                    self.report.forget_site(host);
                }
            }
        } else if self.replication.is_recorded(&key, next) {
            if owner == self.context.me { self.go_on_here(&key, to) } else { self.offer_host(owner, located, key, next) }
        }
    }

    /// Asks the owner of a host's new address to take its journals.
    fn offer_host(&mut self, owner: AccessPoint, located: LocatedHost, journal: JournalKey, rows: u64) {
        if self.crawl.should_offer(&self.context, &journal.host) {
            let request = Request::TakeHost { host: located.clone(), journal, rows };
            self.context.ask(owner, Pending::TakeHost(located), request);
        }
    }

    /// The owner of a host's new address answered.
    pub(crate) fn host_taken(&mut self, located: &LocatedHost, answer: Option<Response>) {
        let there = self.crawl.moved().destination(&located.host).map(|there| there.address);
        match answer {
            Some(Response::Noted) if there == Some(located.address) => {
                self.host_left(&located.host);
                self.routing.has_moved(&mut self.context, located.clone());
                self.route();
            }
            Some(Response::Refused(_)) => self.crawl.not_taken(&self.context, located),
            _ => {}
        }
    }

    /// A host's journals are recorded where it goes on.
    fn host_left(&mut self, host: &Host) {
        let Some(site) = self.crawl.site(host).filter(|site| site.has_ended()) else { return };
        let subnet = site.key.subnet;
        self.crawl.has_left(&mut self.context, host);
        self.dissolve_hosts(subnet, vec![host.clone()], true);
        self.report.mark_changed();
    }

    /// A host goes on in another subnet of ours: its journal is read, recorded there, and followed from there on.
    fn go_on_here(&mut self, key: &JournalKey, to: Subnet) {
        let Some(leaving) = self.crawl.leaving_mut(&key.host) else { return };
        let Some((there, entries)) = leaving.own_copy.take() else {
            if self.crawl.should_offer(&self.context, &key.host) {
                self.context.commands.push_back(Command::Store(StoreCommand::Load(key.subnet)));
            }
            return;
        };
        if there.subnet != to || !self.replication.is_recorded(&there, entries.len() as u64) {
            leaving.own_copy = Some((there, entries)).filter(|(there, _)| there.subnet == to);
            return;
        }
        self.host_left(&key.host);
        let epoch = self.ownership.register().claim(&to).map_or(0, |claim| claim.epoch);
        let outgoing = self.begin_from(JournalCopy::new(there, entries, true), None, epoch);
        self.send_out(outgoing);
    }

    /// Our own store's journals of a subnet of ours were read. Those of hosts that go on in another subnet of ours are recorded there.
    pub(crate) fn carry_here(&mut self, journals: &[(JournalKey, Vec<JournalEntry>)]) {
        for (key, entries) in self.crawl.read_here(journals) {
            let went_to = self.crawl.site(&key.host).and_then(|site| site.went_to());
            let Some((to, _)) = went_to.filter(|(to, _)| self.owns(to)) else { continue };
            let there = JournalKey { subnet: to, ..key };
            self.replication.adopt(&mut self.context, self.migration.next_owner(&to), &there, &entries);
            if let Some(leaving) = self.crawl.leaving_mut(&there.host) {
                leaving.own_copy = Some((there, entries));
            }
        }
    }

    /// Whether a subnet is ours by our newest claim.
    fn owns(&self, subnet: &Subnet) -> bool {
        self.ownership.register().claim(subnet).is_some_and(|claim| claim.owner == self.context.me && !claim.released)
    }
}

/// Hosts of others come.
impl Crawler {
    /// The owner of the address that a host had says that it has one of ours, and wants us to take its journals.
    pub(crate) fn take_host(&mut self, from: AccessPoint, ticket: Ticket, located: LocatedHost, journal: JournalKey, rows: u64) {
        let is_resting = self.shutdown.is_stopping() || self.view().held_back().is_some();
        let coming = Coming { from, located, journal, rows, since: self.context.now.moment };
        let (crawl, cx, replication, others) = self.crawling();
        let answer = match crawl.may_come(cx, replication, others, &coming, is_resting) {
            Ok(subnet) => {
                let is_there = self.routing.confirms_move(&mut self.context, &self.membership, &coming.located);
                self.crawl.comes(&mut self.context, &self.replication, subnet, coming, is_there)
            }
            Err(answer) => answer,
        };
        self.answer(ticket, answer);
    }

    /// The journals of a host that has an address of ours now came, or did not.
    pub(crate) fn host_arrived(
        &mut self,
        host: &Host,
        from: AccessPoint,
        filed: Subnet,
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
    ) {
        let (crawl, cx, replication, others) = self.crawling();
        let arrived = crawl.host_arrived(cx, replication, others, host, (from, filed), &journals.unwrap_or_default());
        let Some((copy, previous)) = arrived else { return };
        if let Some(other) = self.crawl.site(host).map(|site| site.key.subnet) {
            self.dissolve_hosts(other, vec![host.clone()], true);
        }
        let epoch = self.ownership.register().claim(&copy.key.subnet).map_or(0, |claim| claim.epoch);
        let outgoing = self.begin_from(copy, previous, epoch);
        self.crawl.has_come(&self.context);
        self.report.mark_changed();
        self.replication.flush(&mut self.context);
        self.send_out(outgoing);
    }
}
