//! What every machine is given: time, identity, settings, counters, and where its commands go.

use crate::{
    allowance::Outlook,
    event::{Command, PeerCommand},
    named_trees::NamedTrees,
    opt_out::in_force::OptedOut,
    pending::Pending,
    report::{Counters, events::Events},
    settings::Settings,
    signal::Signal,
    wishes::{InEffect, KeptSurvey, SiteWishes},
};
use ed25519_dalek::SigningKey;
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::NotAdmitted,
    allowance::Rest,
    fingerprint::FingerprintKey,
    ids::{QuestionId, Ticket},
    message::{Gossip, Request, Response},
    replica::StoreId,
    subnet::Subnet,
    survey::Place,
    time::{Millis, Moment, Now},
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

/// So few others are told directly what all are told.
pub(crate) const MAX_TOLD_DIRECTLY: usize = 24;

/// For each member there is this much time between two tellings of one, in milliseconds: what every member hears stays the same in a growing
/// swarm.
pub(crate) const PAUSE_A_MEMBER: Millis = 300;

/// What has not changed is told all others this often again, in milliseconds, for those who missed it.
pub(crate) const TELL_AGAIN: Millis = 600_000;

/// What every machine is given.
pub(crate) struct Context {
    pub(crate) me: AccessPoint,
    /// The database that our state is in.
    pub(crate) store: StoreId,
    pub(crate) key: SigningKey,
    pub(crate) secret: FingerprintKey,
    pub(crate) settings: Settings,
    /// What surveys wish for besides.
    pub(crate) wishes: InEffect,
    /// Whom nobody may ask anything.
    pub(crate) opted_out: OptedOut,
    /// Who is known to be no member, this access point included, and why.
    pub(crate) excluded: BTreeMap<AccessPoint, NotAdmitted>,
    pub(crate) hierarchy: Arc<Hierarchy>,
    pub(crate) started: Moment,
    pub(crate) now: Now,
    pub(crate) counters: Counters,
    pub(crate) events: Events,
    pub(crate) commands: VecDeque<Command>,
    /// What machines want of each other and is not carried out yet.
    pub(crate) signals: VecDeque<Signal>,
    pub(crate) pending: BTreeMap<QuestionId, Pending>,
    pub(crate) next_number: u64,
    pub(crate) rounds: u64,
    pub(crate) tick_due: Moment,
    /// Why the operator lets nothing be asked of any server now, if so.
    pub(crate) rest: Option<Rest>,
    /// What keeps it from taking more subnets.
    pub(crate) outlook: Outlook,
    /// The trees that people named here since the start.
    pub(crate) named: NamedTrees,
}

impl Context {
    /// At the start of an access point with this key, whose state is in this database.
    pub(crate) fn new(
        (me, key, store): (AccessPoint, SigningKey, StoreId),
        secret: FingerprintKey,
        hierarchy: Arc<Hierarchy>,
        settings: Settings,
        now: Now,
    ) -> Context {
        Context {
            me,
            store,
            key,
            secret,
            wishes: InEffect::default(),
            opted_out: OptedOut::default(),
            excluded: BTreeMap::new(),
            hierarchy,
            started: now.moment,
            now,
            counters: Counters::default(),
            events: Events::default(),
            commands: VecDeque::new(),
            signals: VecDeque::new(),
            pending: BTreeMap::new(),
            next_number: 1,
            rounds: 0,
            tick_due: now.moment,
            rest: None,
            outlook: Outlook::default(),
            named: NamedTrees::default(),
            settings,
        }
    }

    /// What is delegated around an address without an owner, if this access point decides it.
    pub(crate) fn unit_of(&self, address: IpAddr) -> Subnet {
        self.settings.policy.delegates(&self.hierarchy, address)
    }

    /// Whether anything may be asked of servers and name servers now: its operator lets it, and this access point may be a member.
    pub(crate) fn may_ask_servers(&self) -> bool {
        self.rest.is_none() && !self.is_excluded()
    }

    /// Whether it may be given subnets: it can look after them for a while.
    pub(crate) fn takes_subnets(&self) -> bool {
        self.outlook == Outlook::default()
    }

    /// Whether this access point may be no member.
    pub(crate) fn is_excluded(&self) -> bool {
        self.excluded.contains_key(&self.me)
    }

    /// Asks a member; the answer comes back with what is pending.
    pub(crate) fn ask(&mut self, to: AccessPoint, pending: Pending, request: Request) {
        let question = self.number();
        self.pending.insert(question, pending);
        self.commands.push_back(Command::Peers(PeerCommand::Ask { to, question, request }));
    }

    /// Tells these other members something: each directly if they are few, for by gossip it comes to each several times.
    pub(crate) fn tell_all(&mut self, others: &[AccessPoint], gossip: Gossip) {
        if others.is_empty() || others.len() > MAX_TOLD_DIRECTLY {
            return self.commands.push_back(Command::Peers(PeerCommand::Publish(gossip)));
        }
        for to in others {
            self.ask(*to, Pending::Told, Request::Tell(Box::new(gossip.clone())));
        }
    }

    /// Answers what a member asked.
    pub(crate) fn answer(&mut self, ticket: Ticket, response: Response) {
        self.commands.push_back(Command::Peers(PeerCommand::Answer { ticket, response }));
    }

    /// A number that nothing else has had since the start: for questions, writes and tickets.
    pub(crate) fn number<Id: From<u64>>(&mut self) -> Id {
        self.next_number += 1;
        Id::from(self.next_number)
    }

    /// Counts something that was refused.
    pub(crate) fn refuse(&mut self, class: &'static str) {
        *self.counters.refused.entry(class).or_default() += 1;
    }

    /// Tells another machine; it hears of it as soon as this one has returned.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.signals.push_back(signal);
    }
}

/// Which hosts are in scope, and how they are crawled.
impl Context {
    /// Whether nothing is asked of a server of this name or at this address: the configuration denies it, or it is opted out. Page requests,
    /// requests for robots.txt and probes are all held against this.
    pub(crate) fn denies(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.is_denied(host, address) || self.opted_out.covers(host, address)
    }

    /// Whether the configuration denies a server of this name, or at this address.
    pub(crate) fn is_denied(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.settings.scope.denies(host) || address.is_some_and(|address| self.denies_at(address))
    }

    /// Whether the configuration denies this address: its range, or its autonomous system.
    pub(crate) fn denies_at(&self, address: IpAddr) -> bool {
        self.settings.scope.denies_at(address, || self.hierarchy.asn_of(address))
    }

    /// Whether the configuration's scope has every host at this address.
    fn scope_covers(&self, address: IpAddr) -> bool {
        self.settings.scope.covers(address, || self.hierarchy.asn_of(address))
    }

    /// Whether URLs of this host are not even kept, and as what they are counted.
    pub(crate) fn drops(&self, host: &Host) -> Option<&'static str> {
        let opted_out = || self.opted_out.surely_covers(host, None).then_some("hosts that are opted out");
        self.settings.scope.denies(host).then_some("hosts on the deny list").or_else(opted_out)
    }

    /// Where an address is by the hierarchy.
    pub(crate) fn place_of(&self, address: IpAddr) -> Place<'_> {
        let Some(position) = self.hierarchy.locate(address) else {
            return Place { country: "ZZ", organisation: "unregistered", asn: None };
        };
        let organisation = self.hierarchy.organisation(position);
        Place {
            country: self.hierarchy.country(position),
            organisation: self.hierarchy.organisation_name(organisation),
            asn: self.hierarchy.asn_of(address),
        }
    }

    /// Whether a link to this host may make it a starting host: the configuration's scope or a living survey's has it, or may have it
    /// once its address is known.
    pub(crate) fn may_admit(&self, host: &Host) -> bool {
        self.settings.scope.admits(host)
            || (!self.settings.scope.denies(host) && self.settings.scope.is_of_places())
            || (!self.settings.scope.denies(host)
                && self.wishes.living().any(|kept| kept.survey.plan.scope.is_of_places() || kept.survey.plan.scope.names(host)))
    }

    /// The same of a host whose address is known.
    pub(crate) fn admits_at(&self, host: &Host, address: IpAddr) -> bool {
        if self.is_denied(host, Some(address)) {
            return false;
        }
        if self.settings.scope.admits(host) || self.scope_covers(address) {
            return true;
        }
        let place = self.place_of(address);
        self.wishes.living().any(|kept| kept.survey.plan.scope.names(host) || kept.survey.plan.scope.covers(&place))
    }

    /// People named starting points. Whether one of them is wanted now that was not.
    pub(crate) fn name(&mut self, urls: &[PageUrl]) -> bool {
        let mut is_new = false;
        for url in urls {
            let named = self.named.name(url.host().without_www());
            is_new |= named.is_new;
            if named.has_dropped {
                self.refuse("trees named by people that were forgotten for later ones");
            }
        }
        is_new && !self.settings.scope.ever.is_empty()
    }

    /// Whether the operator took a host out of the scope that it was in, and neither people here nor a living survey named it.
    pub(crate) fn has_taken_out(&self, host: &Host, tree: &Host, address: IpAddr) -> bool {
        if self.settings.scope.ever.is_empty() || self.named.contains(tree) {
            return false;
        }
        self.settings.scope.has_taken_out(host, address, || self.hierarchy.asn_of(address))
            && !self.wishes.living().any(|kept| kept.has(host, tree, &self.place_of(address)))
    }

    /// What is wished for a host in this tree at this address, which `starts` lead to.
    pub(crate) fn wishes_for<'a>(
        &self,
        host: &Host,
        tree: &Host,
        address: IpAddr,
        starts: impl Iterator<Item = &'a PageUrl>,
    ) -> SiteWishes {
        let wishes = self.surveys_wishes_for(host, tree, address, starts);
        let is_unwanted = wishes.is_unwanted || self.opted_out.covers(host, Some(address)) || self.has_taken_out(host, tree, address);
        SiteWishes { is_unwanted, ..wishes }
    }

    fn surveys_wishes_for<'a>(
        &self,
        host: &Host,
        tree: &Host,
        address: IpAddr,
        mut starts: impl Iterator<Item = &'a PageUrl>,
    ) -> SiteWishes {
        let InEffect { living, resting } = &self.wishes;
        if living.is_empty() && resting.is_empty() {
            return SiteWishes::default();
        }
        let place = self.place_of(address);
        let wants: Vec<_> = living.iter().filter(|kept| kept.has(host, tree, &place)).collect();
        let rests: Vec<_> = resting.iter().filter(|kept| kept.has(host, tree, &place)).collect();
        if wants.is_empty() && rests.is_empty() {
            return SiteWishes::default();
        }
        let of_scope = |kept: &&Arc<KeptSurvey>| kept.survey.plan.scope.names(host) || kept.survey.plan.scope.covers(&place);
        let only_lists = !wants.iter().copied().chain(rests.iter().copied()).any(|kept| of_scope(&kept));
        // What no list names, people did, or the configuration's scope led to.
        let named_elsewhere = only_lists && starts.any(|url| !living.iter().chain(resting).any(|kept| kept.lists(url)));
        let by_configuration = self.settings.scope.admits(host) || self.scope_covers(address) || named_elsewhere;
        let ours = |wanted: bool| wanted.then_some(self.settings.rules.depth);
        let depth_of = |kept: &&Arc<KeptSurvey>| kept.survey.plan.wishes.depth.unwrap_or(self.settings.rules.depth);
        let depths = wants.iter().map(depth_of);
        let intervals = wants.iter().filter_map(|kept| kept.survey.plan.wishes.interval_ms);
        let wishes = || wants.iter().map(|kept| kept.survey.plan.wishes);
        SiteWishes {
            // What is not asked any more stays as deep as it was.
            depth: depths.chain(ours(by_configuration)).max().or_else(|| rests.iter().map(depth_of).max()),
            min_delay: wishes().filter_map(|wishes| wishes.min_delay_ms).max().unwrap_or(0),
            delay_factor: wishes().filter_map(|wishes| wishes.delay_factor).max().unwrap_or(0),
            evaluation: wishes().any(|wishes| wishes.evaluation),
            interval: intervals.chain(by_configuration.then_some(self.settings.revisit)).min(),
            is_unwanted: wants.is_empty() && !by_configuration,
        }
    }
}

#[cfg(test)]
impl Context {
    /// The context of access point `number` at the beginning, for tests of one machine by itself.
    pub(crate) fn of_test(number: u8) -> Context {
        use crate::{crawl::scope::Scope, delegation::search::Policy, membership};
        use nearcrawl_model::{fetch::ProbeKind, time::WallTime};
        let key = SigningKey::from_bytes(&[number; 32]);
        let now = Now { moment: Moment(0), wall: WallTime(1_000_000) };
        let hierarchy = Arc::new(nearcrawl_hierarchy::Builder::new().finish().unwrap());
        let settings = Settings {
            rules: crate::crawl::site::SiteRules {
                depth: 3,
                price: Default::default(),
                pages_per_run: 0,
                product_token: "nearcrawl".to_owned(),
            },
            scope: Scope { open: true, ..Scope::default() },
            politeness: crate::crawl::politeness::Politeness { min_delay: 1_000, factor: 10, parallel: 8, per_block: 4 },
            policy: Policy::Nearcrawl { price_us: 5_000 },
            migration: Default::default(),
            probe: ProbeKind::Tcp,
            home_port: None,
            max_parallel_rounds: 4,
            contacts_per_subnet: 15,
            ignore_orders_of: Default::default(),
            admission: Default::default(),
            max_lookups: crate::routing::locator::MAX_LOOKUPS,
            revisit: 7 * 86_400_000,
            new_hosts: Default::default(),
            max_waiting: 1_000_000,
            max_in_memory: 1_000,
            cache_entries: 1_000,
            max_kept_per_owner: 1 << 30,
            own_addresses: Vec::new(),
            joins: false,
            founds: true,
            member: true,
            membership: membership::SwimConfig::default(),
            roster: membership::RosterConfig::default(),
        };
        let me = AccessPoint(key.verifying_key().to_bytes());
        Context::new((me, key, StoreId(1)), FingerprintKey([5; 16]), hierarchy, settings, now)
    }

    /// What a machine wants done, oldest first; none of it is wanted any more.
    pub(crate) fn take_commands(&mut self) -> Vec<Command> {
        self.commands.drain(..).collect()
    }
}
