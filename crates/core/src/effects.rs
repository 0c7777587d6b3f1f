//! What several machines do about one fact, in order. Each machine is called once for it and decides for itself; nothing is decided here.
//!
//! One section for each subject: gossip and claims, owners for subnets, the sites of our own, journals, URLs on their way, hand-overs.

use crate::{
    context::Context,
    crawl::{self, Crawl, fetch_cycle::Turn},
    crawler::Crawler,
    delegation::{self, Delegation, prober::ProbeOrder},
    event::{Command, CopyAnswer, PeerCommand},
    membership::shutdown::Unfinished,
    migration::{
        Migration,
        handover::{Offer, Proposal, Surroundings},
    },
    ownership::{
        claims::{Checked, JournalsAt},
        comparison::Heard,
    },
    pending::{MapQuestion, Pending},
    replication::{Keepers, Replication, loading::JournalCopy},
    report::BesidesSums,
    routing::{
        acknowledgements::Reply,
        arrival::{Bound, Place},
        outbox::Item,
    },
    signal::Signal,
    voting::{self, Voting, lease::NoLease, machine::Asker},
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    fetch::{FetchReport, LocatedHost, ProbeTarget, ResolveError},
    ids::{QuestionId, Ticket, WriteId},
    journal::{JournalEntry, JournalKey},
    message::{Gossip, HandOff, Request, Response},
    previous_run::PreviousVersion,
    subnet::Subnet,
    summary::RollUp,
    url::{Host, PageUrl},
};
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// Members come and go, and so does this one.
impl Crawler {
    pub(crate) fn tick_members(&mut self) {
        self.membership.tick(&mut self.context);
        self.settle_signals();
        if self.membership.is_long_alone(&self.context) {
            self.ownership.sync(&mut self.context);
        }
    }

    /// Editions of the hierarchy are announced and adopted, once our claims are compared and as long as we stay.
    pub(crate) fn tick_hierarchy(&mut self) {
        if self.ownership.is_synced() && !self.shutdown.is_stopping() {
            self.hierarchy_version.tick(&mut self.context, &self.membership);
            self.settle_signals();
        }
    }

    pub(crate) fn tick_shutdown(&mut self) {
        if !self.shutdown.is_waiting() {
            return;
        }
        self.replication.flush(&mut self.context);
        let unfinished = Unfinished {
            fetching: self.crawl.fetches().is_busy() || self.crawl.is_asking(),
            journals: self.replication.is_recording(),
            outgoing: !self.routing.outbox().is_empty(),
            voter: self.voting.is_needed(self.context.me, &self.membership),
        };
        self.shutdown.tick(&mut self.context, unfinished, &self.ownership, &self.membership);
        self.settle_signals();
    }
}

/// Gossip: what every member tells every other.
impl Crawler {
    /// A member told every member something.
    pub(crate) fn gossiped(&mut self, author: AccessPoint, gossip: Gossip) {
        match gossip {
            Gossip::Claims(proofs) => self.hear_claims(proofs),
            Gossip::RollUp(roll_up) if roll_up.owner != author => self.context.refuse("totals in the name of another member"),
            Gossip::RollUp(roll_up) if roll_up.owner == self.context.me => {}
            Gossip::RollUp(roll_up) => self.report.hear(&mut self.context, *roll_up),
            Gossip::Endorsement(endorsement) if endorsement.by != author => {
                self.context.refuse("endorsements in the name of another member")
            }
            Gossip::Endorsement(endorsement) => self.hierarchy_version.endorsed(&mut self.context, endorsement),
            Gossip::Distances(told) if told.from != author => self.context.refuse("distances in the name of another member"),
            Gossip::Distances(told) => self.delegation.distances_told(&mut self.context, &self.membership, told),
        }
    }

    /// Tells every member what is new, and repairs what was lost on the way.
    pub(crate) fn tick_gossip(&mut self) {
        let now = self.context.now.moment;
        self.ownership.tell_claims(&mut self.context);
        self.delegation.tick_distances(&mut self.context, &self.membership);
        self.report.count_members(self.membership.settled(now).len());
        let whole = self.ownership.tick_comparison(&mut self.context, &self.membership);
        // Another process with our key tells its own.
        let ours = self.membership.no_lease(now) != Some(NoLease::KeyInUse);
        let due = self.report.is_due(now);
        if ours && (due || self.report.is_stale(&self.context)) {
            let roll_up = Box::new(self.roll_up());
            if due {
                self.report.told(now);
                self.context.commands.push_back(Command::Peers(PeerCommand::Publish(Gossip::RollUp(roll_up))));
            }
        }
        self.report.ask_silent(&mut self.context, &self.membership);
        if whole {
            self.routing.wake_all();
            self.route();
        }
    }

    /// What we hold and know, as of now.
    fn roll_up(&mut self) -> RollUp {
        // Without a lease, or before what was owned in an earlier term is claimed again, others may have gone on with it.
        let ours = self.membership.may_claim(self.context.now.moment) && !self.ownership.is_doubtful();
        let more = BesidesSums {
            load: self.migration.load_told(),
            complete: ours && self.replication.subnets_loading() == 0,
            replicas: self.replication.names(&self.context),
        };
        self.report.roll_up(&mut self.context, &self.membership, &self.ownership, &self.crawl, more)
    }

    /// A member asks for our totals, because it did not hear of them for a while.
    pub(crate) fn tell_totals(&mut self, ticket: Ticket) {
        let recent = self.report.recent(&self.context);
        let totals = recent.unwrap_or_else(|| self.roll_up());
        self.answer(ticket, Response::Totals(Box::new(totals)));
    }

    /// A member answered a question of a comparison, or did not. What it knows that we did not is entered; once the map is whole we act on it.
    pub(crate) fn compare_answered(&mut self, question: MapQuestion, answer: Option<Response>) {
        let claims = self.ownership.comparison_answered(&mut self.context, question, answer);
        let heard = self.enter_heard(claims);
        if self.ownership.go_on_comparing(&mut self.context, &self.membership, heard) {
            self.routing.wake_all();
            self.route();
        }
    }
}

/// Claims are heard, stored, proven or doubtful.
impl Crawler {
    /// Claims came from elsewhere: believe those that their owners signed and that are stronger than what we know.
    pub(crate) fn hear_claims(&mut self, proofs: Vec<SignedClaim>) {
        let mut claims = Vec::with_capacity(proofs.len());
        for proof in proofs {
            match proof.read() {
                Ok(claim) => claims.push((claim, proof)),
                Err(_) => self.context.refuse("claims with a bad signature"),
            }
        }
        self.enter_heard(claims);
    }

    /// The same for claims that are decoded.
    fn enter_heard(&mut self, claims: Vec<(Claim, SignedClaim)>) -> Heard {
        let (mut new, mut forged, mut ours) = (Vec::new(), 0, Vec::new());
        for (claim, proof) in claims {
            self.compare_votes(&claim, &proof);
            let own = (claim.owner == self.context.me && !claim.released).then_some(claim.subnet);
            match self.ownership.check(&mut self.context, &claim, &proof) {
                Checked::New if self.is_proven(&claim, &proof) && self.hold(claim.clone(), proof.clone()) => {
                    self.doubt_if_over(&claim, &proof);
                    new.push(proof);
                    ours.extend(own);
                }
                Checked::Forged => forged += 1,
                Checked::New | Checked::Known | Checked::Refused => {}
            }
        }
        // Our own store did not know that it is ours: it was lost or is an old copy, and so may be the journals. Others have them.
        for subnet in ours {
            self.claim_doubtful(subnet);
        }
        let heard = Heard { held: new.len(), forged };
        if !new.is_empty() {
            self.ownership.store_heard(&mut self.context, new);
            self.routing.wake_all();
            self.route();
        }
        heard
    }

    /// If another claim to this subnet was accepted at the same epoch, some voter accepted both.
    fn compare_votes(&mut self, claim: &Claim, proof: &SignedClaim) {
        let others = voting::machine::Others { members: &self.membership, register: self.ownership.register() };
        let Some(held) = others.register.latest(&claim.subnet).filter(|held| held.claim.epoch == claim.epoch) else { return };
        if let (Some(known), Some(votes)) = (held.votes(), &proof.votes)
            && held.claim.owner != claim.owner
        {
            let at = (claim.subnet, claim.epoch);
            self.voting.compare_votes(&mut self.context, others, at, (held.claim.owner, known), (claim.owner, votes));
        }
    }

    /// Claims of ours are durable: they hold, are told, and bring their history.
    pub(crate) fn claims_stored(&mut self, write: WriteId) {
        let Some(proofs) = self.ownership.stored(write) else { return };
        for proof in proofs {
            let Ok(claim) = proof.read() else { continue };
            self.ownership.end_claim(claim.subnet, claim.epoch);
            let keepers = self.keepers(&claim.subnet);
            if self.hold(claim.clone(), proof.clone()) {
                self.own_claim_holds(&claim, proof.clone(), keepers);
                self.doubt_if_over(&claim, &proof);
            }
        }
        self.ownership.tell_claims(&mut self.context);
        self.routing.wake_all();
        self.route();
    }

    /// A claim of ours that was accepted in an earlier term of our lease is made anew before it is acted on: it was being stored when the
    /// term ended, or on disk when we stopped then.
    pub(crate) fn doubt_if_over(&mut self, claim: &Claim, proof: &SignedClaim) {
        let earlier = proof.votes.as_ref().is_some_and(|votes| votes.term < self.voting.term());
        if earlier && claim.owner == self.context.me && !claim.released {
            self.ownership.doubt(claim);
        }
    }

    /// Who has all that the owner of a subnet recorded, as far as it told: itself and its replicas.
    fn keepers(&self, subnet: &Subnet) -> Keepers {
        let owner = self.ownership.register().latest(subnet).map(|held| held.claim.owner).filter(|owner| *owner != self.context.me);
        let told = owner.and_then(|owner| Some((self.report.roll_up_of(&owner)?.0, self.report.told_for(&owner))));
        let running = self.context.now.moment.since(self.context.started);
        told.map_or_else(Keepers::default, |(roll_up, lived)| Keepers::new(roll_up.replicas.clone(), lived, running))
    }

    fn own_claim_holds(&mut self, claim: &Claim, proof: SignedClaim, keepers: Keepers) {
        if claim.released {
            self.migration.release_stored(&mut self.context, claim.subnet, proof.clone());
        }
        if let Some(at) = self.ownership.own_claim_holds(&mut self.context, &self.membership, claim, proof) {
            // Who was handed a subnet has all of it: nobody is waited for.
            let keepers = if at == JournalsAt::Here { Keepers::default() } else { keepers };
            self.replication.load(&mut self.context, &self.membership, claim.subnet, at, keepers);
        }
    }

    /// Enters a claim whose signature was checked; has all machines do what follows if it holds. Returns whether it does.
    pub(crate) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let Some(holding) = self.ownership.merge(claim, proof) else { return false };
        let claim = &holding.claim;
        self.migration.claim_holds(&self.context, claim);
        self.replication.claim_holds(claim);
        self.context.signal(Signal::RollUpChanged);
        self.settle_signals();
        let (delegation, context, others) = self.delegating();
        delegation.claim_holds(context, others, claim, holding.before.as_ref());
        if claim.owner != self.context.me {
            self.yield_to(claim.subnet);
        }
        if holding.ends_claim_of(self.context.me) {
            self.give_up(claim.subnet);
        }
        if claim.released {
            self.ownership.freed(self.context.now.moment, claim);
        }
        true
    }

    /// No member disputed a claim of ours: it is acted on.
    pub(crate) fn claim_proven(&mut self, subnet: Subnet) {
        self.crawl.resume_subnet(&self.context, &subnet);
    }

    /// Whether a member disputes a claim of ours could not be heard for a while: it begins anew, with what others may know.
    pub(crate) fn claim_doubtful(&mut self, subnet: Subnet) {
        self.dissolve(subnet, true);
        self.replication.load(&mut self.context, &self.membership, subnet, JournalsAt::Replicas, Keepers::default());
    }

    /// Takes over what is ours to take over, and looks for the history of what already is.
    pub(crate) fn tick_take_over(&mut self) {
        if !self.shutdown.is_stopping() {
            let handed = |subnet: &Subnet, epoch| self.migration.was_handed(subnet, epoch);
            self.ownership.take_over(&mut self.context, &self.membership, self.delegation.knowledge(), handed);
        }
    }

    /// The roster gave a member up.
    pub(crate) fn dead(&mut self, gone: AccessPoint) {
        self.ownership.dead(self.context.now.moment, gone);
        self.tick_recovery();
        self.tick_take_over();
    }
}

/// Voters decide: leases are renewed, claims accepted.
impl Crawler {
    /// Voting, with what it reads and where its commands go.
    fn voting(&mut self) -> (&mut Voting, &mut Context, voting::machine::Others<'_>) {
        let others = voting::machine::Others { members: &self.membership, register: self.ownership.register() };
        (&mut self.voting, &mut self.context, others)
    }

    /// At the start: a swarm begins here unless there is one to join.
    pub(crate) fn wake_votes(&mut self) {
        if self.context.settings.founds {
            self.voting.found(&mut self.context);
        }
        self.lease_changed();
    }

    /// Has the fence know what the voters said.
    fn lease_changed(&mut self) {
        let (until, why_not) = self.voting.lease();
        self.membership.leased(until, why_not);
        self.settle_signals();
    }

    pub(crate) fn tick_voting(&mut self) {
        if self.shutdown.is_leaving() {
            self.voting.leave();
        }
        let (voting, cx, others) = self.voting();
        voting.tick(cx, others);
        self.lease_changed();
        self.ownership.claim_again(&mut self.context, &self.membership);
        self.settle_signals();
    }

    /// Claims of ours are voted on.
    pub(crate) fn propose(&mut self, claims: Vec<SignedClaim>) {
        let (voting, cx, others) = self.voting();
        voting.propose(cx, others, claims);
        voting.settle(cx, others);
    }

    pub(crate) fn tidy_votes(&mut self) {
        let (voting, cx, others) = self.voting();
        voting.tidy(cx, others);
    }

    /// A member asks for a vote, or for what was voted on.
    pub(crate) fn asked_to_vote(&mut self, from: AccessPoint, ticket: Ticket, mut request: Request) {
        if let Request::Propose(proposal) = &mut request {
            // What the claims follow must be known here.
            let releases = std::mem::take(&mut proposal.releases);
            self.hear_claims(releases);
        }
        let (voting, cx, others) = self.voting();
        voting.asked(cx, others, Asker::Member(from, ticket), request);
        voting.settle(cx, others);
        self.lease_changed();
    }

    /// A voter answered, or did not.
    pub(crate) fn vote_answered(&mut self, from: AccessPoint, pending: Pending, answer: Option<Response>) {
        let (voting, cx, others) = self.voting();
        voting.answered(cx, others, from, pending, answer);
        voting.settle(cx, others);
        self.lease_changed();
    }

    /// What concerns votes is durable.
    pub(crate) fn voting_stored(&mut self, write: WriteId) {
        let (voting, cx, others) = self.voting();
        voting.stored(cx, write);
        voting.settle(cx, others);
        self.lease_changed();
    }

    /// Whether voters accepted a claim that came from elsewhere.
    fn is_proven(&mut self, claim: &Claim, proof: &SignedClaim) -> bool {
        match self.voting.proves(claim, proof) {
            Some(true) => true,
            Some(false) => {
                self.context.refuse("claims without enough votes");
                false
            }
            None => {
                let me = self.context.me;
                if let Some(member) = self.membership.live().into_iter().find(|member| *member != me) {
                    self.voting.list_missing(&mut self.context, member);
                }
                false
            }
        }
    }
}

/// Subnets without an owner get owners.
impl Crawler {
    /// Delegation, with what it reads and where its commands go.
    pub(crate) fn delegating(&mut self) -> (&mut Delegation, &mut Context, delegation::Others<'_>) {
        let others = delegation::Others { members: &self.membership, ownership: &self.ownership, shutdown: &self.shutdown };
        (&mut self.delegation, &mut self.context, others)
    }

    /// Who crawls this host, if that is decided and they can be reached; if not, sees to it that it gets decided.
    pub(crate) fn owner_for(&mut self, located: &LocatedHost) -> Option<AccessPoint> {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, routing, replication, migration, .. } = self;
        let first = routing.first_for(&located.host);
        let changing = |subnet: &Subnet| replication.is_loading(subnet) || migration.has_stopped(subnet);
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = delegation::Others { members, ownership, shutdown };
        let owner = delegation.owner_for(context, others, located, first, changing, crawls);
        self.settle_signals();
        owner
    }

    /// Whether a host in a claimed subnet of ours is crawled as part of it; if not, it waits until a smaller subnet is settled.
    pub(crate) fn belongs_here(&mut self, subnet: Subnet, located: &LocatedHost, url: &PageUrl) -> bool {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, .. } = self;
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = delegation::Others { members, ownership, shutdown };
        let here = delegation.belongs_here(context, others, subnet, located, url, crawls);
        self.settle_signals();
        here
    }

    /// A member asks us, the coordinator of an address, to see to it that it gets an owner.
    pub(crate) fn find_owner_for(&mut self, ticket: Ticket, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let standing = delegation.find_owner_for(context, others, target);
        self.settle_signals();
        self.answer(ticket, Response::FindingOwner(standing));
    }

    /// The coordinator of an address reserved it for us, the steward of the subnet that is to be settled.
    pub(crate) fn settle_reserved(&mut self, ticket: Ticket, subnet: Subnet, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let answer = delegation.settle_reserved(context, others, subnet, target);
        self.settle_signals();
        self.answer(ticket, answer);
    }

    /// A subnet's steward asks us to probe.
    pub(crate) fn probe_for(&mut self, steward: (AccessPoint, Ticket), order: ProbeOrder) {
        let held_back = self.view().held_back().is_some();
        let (delegation, context, others) = self.delegating();
        delegation.probe_for(context, others, steward, order, held_back);
    }

    /// Claims are watched, procedures go on.
    pub(crate) fn tick_settlement(&mut self) {
        self.ownership.tick_watched(&mut self.context, &self.membership);
        self.settle_signals();
        for subnet in self.delegation.due(&self.context) {
            let (delegation, context, others) = self.delegating();
            delegation.go_on(context, others, subnet);
            self.settle_signals();
        }
        while let Some((subnet, target)) = self.delegation.next_queued(&self.context) {
            let (delegation, context, others) = self.delegating();
            delegation.settle(context, others, subnet, target);
            self.settle_signals();
        }
        self.delegation.limit_asked();
    }
}

/// What belongs to this access point changes.
impl Crawler {
    /// Gives up the sites of a subnet of ours that lie in smaller claimed ones by now.
    pub(crate) fn yield_to_smaller(&mut self, subnet: Subnet) {
        let lost = self.crawl.sites().lost_within(self.context.me, self.ownership.register(), &subnet);
        if !lost.is_empty() {
            self.dissolve_hosts(subnet, lost, true);
            self.report.mark_changed();
        }
    }

    /// Another member's claim holds: what we crawled in its subnet as part of a larger one is its owner's now.
    pub(crate) fn yield_to(&mut self, claimed: Subnet) {
        for ours in self.crawl.sites().larger_than(&claimed) {
            self.yield_to_smaller(ours);
        }
    }

    /// From now on this hierarchy is used. Claims, journals and everything under way stay as they are: whose an address is does not
    /// depend on it.
    pub(crate) fn change_hierarchy(&mut self, hierarchy: Arc<Hierarchy>) {
        self.context.hierarchy = hierarchy;
        self.delegation.relocate(&self.context, &self.ownership);
        // Which country and organisation a site counts for may be another now.
        self.crawl.sites().hosts().for_each(|host| self.report.site_changed(self.context.now.moment, host.clone()));
        self.routing.wake_all();
        self.route();
    }
}

/// Our own sites are asked for pages, and their URLs taken in.
impl Crawler {
    /// The crawl, with what it changes and reads besides.
    pub(super) fn crawling(&mut self) -> (&mut Crawl, &mut Context, &mut Replication, crawl::Others<'_>) {
        let Crawler { ownership, delegation, migration, routing, .. } = self;
        let others = crawl::Others { ownership, delegation, migration, routing };
        (&mut self.crawl, &mut self.context, &mut self.replication, others)
    }

    /// A member hands URLs to us. All hosts of one message are answered together.
    pub(crate) fn take_in(&mut self, from: AccessPoint, ticket: Ticket, hand_offs: Vec<HandOff>) {
        let changing = self.crawl.is_too_busy(&self.context, &self.replication, &self.ownership, &self.migration, &hand_offs);
        if changing || self.shutdown.is_stopping() || !self.ownership.is_synced() {
            return self.answer(ticket, Response::Busy(1_000));
        }
        if !self.routing.has_room_for_hand_offs() {
            self.context.refuse("hand-offs beyond the limit of those being recorded");
            return self.answer(ticket, Response::Busy(1_000));
        }
        let (mut ours, mut not_mine) = (Vec::new(), Vec::new());
        for HandOff { host, arrivals } in hand_offs {
            let mine = self.ownership.own_subnet_around(self.context.me, host.address);
            let fits = arrivals.iter().all(|arrival| arrival.url.host() == host.host);
            let first = arrivals.first().filter(|_| fits).map(|arrival| &arrival.url);
            if let (Some(subnet), Some(url)) = (mine, first)
                && self.belongs_here(subnet, &host, url)
                && self.is_at(from, &host)
            {
                ours.push((host, arrivals));
            } else {
                not_mine.push(host.host);
            }
        }
        let (crawl, cx, replication, others) = self.crawling();
        crawl.admit(cx, replication, others, ours, Reply::Member { ticket, not_mine });
    }

    /// Whether a host that a member hands over has this address: it is ours already, or its steward says so.
    fn is_at(&mut self, from: AccessPoint, located: &LocatedHost) -> bool {
        let open = self.crawl.site(&located.host).is_some_and(|site| site.address == located.address);
        open || self.routing.confirms(&mut self.context, &self.membership, from, located)
    }

    /// URLs turned out to be for ourselves.
    pub(super) fn admit_own(&mut self, located: LocatedHost, items: Vec<Item>) {
        let arrivals = items.iter().map(|item| item.arrival.clone()).collect();
        let (crawl, cx, replication, others) = self.crawling();
        crawl.admit(cx, replication, others, vec![(located, arrivals)], Reply::Own(items));
    }

    /// Sends what may be sent now.
    pub(crate) fn visit(&mut self) {
        if self.view().held_back().is_some() {
            return;
        }
        while let Some((address, host)) = self.crawl.next_turn(&self.context) {
            let mut turn = Turn::Again;
            while turn == Turn::Again {
                let (crawl, cx, replication, others) = self.crawling();
                turn = crawl.take_turn(cx, replication, others, address, &host);
                self.settle_signals();
            }
        }
    }

    /// An answer came, or none: it says something of the way, and is read.
    pub(crate) fn fetched(&mut self, address: IpAddr, mut report: Box<FetchReport>, previous: Option<Box<PreviousVersion>>) {
        let Some(answered) = self.crawl.answer_came(&mut self.context, address, &mut report) else { return };
        if let Some(subnet) = answered.subnet {
            if let Some(rtt_us) = answered.rtt_us {
                self.delegation.timed(&mut self.context, subnet, rtt_us);
            }
            self.time_access(subnet, &report);
        }
        self.crawl.read_answer(&mut self.context, &mut self.replication, address, answered, *report, previous.map(|previous| *previous));
    }

    /// Trees whose time has come are visited again.
    pub(crate) fn tick_runs(&mut self) {
        if self.view().held_back().is_none() {
            let (crawl, cx, replication, others) = self.crawling();
            crawl.tick_runs(cx, replication, others);
        }
        self.settle_signals();
    }
}

/// Rows of journals are written, stored and copied.
impl Crawler {
    /// Enters what happened into a site's journal.
    pub(crate) fn journal(&mut self, host: &Host, entry: JournalEntry) {
        self.crawl.journal(&mut self.context, &mut self.replication, host, entry);
    }

    /// Rows are durable: what they name goes on its way, and who waited for them is answered.
    pub(crate) fn rows_stored(&mut self, write: WriteId, growth: BTreeMap<Subnet, i64>) {
        self.replication.resized(&self.context, &self.ownership, None, growth);
        let Some(outgoing) = self.replication.stored(write) else { return };
        self.send_out(outgoing);
        self.acknowledge();
    }

    /// URLs named by stored rows go on their way.
    pub(crate) fn send_out(&mut self, items: Vec<Item>) {
        if items.is_empty() {
            return;
        }
        self.replication.forward(&items);
        self.routing.put(items);
        self.route();
    }

    /// Rows are stored and copied, and what is of no use any more is dropped.
    pub(crate) fn tick_copies(&mut self) {
        self.replication.tick(&mut self.context);
    }

    /// Journals say how far the URLs that they name have arrived; those of earlier runs go when the newer one is whole.
    pub(crate) fn tick_journals(&mut self) {
        for (key, before) in self.replication.newly_forwarded() {
            // Rows are numbered anew in each run: a mark of the run before would hide URLs of this one that are still under way.
            if self.crawl.site(&key.host).is_some_and(|site| site.key == key) {
                self.journal(&key.host, JournalEntry::Forwarded { before });
            }
        }
        self.crawl.drop_superseded(&mut self.context, &mut self.replication);
    }

    /// A replica answered a copy, or did not.
    pub(crate) fn copied(&mut self, to: AccessPoint, sent: &BTreeMap<JournalKey, u64>, answer: CopyAnswer) {
        if self.replication.copied(&mut self.context, to, sent, answer) {
            self.review_replicas();
        }
        self.acknowledge();
        self.replication.send_copies(&mut self.context);
    }

    /// Looks at who keeps copies of our journals: the living may be others, or one has caught up.
    pub(crate) fn review_replicas(&mut self) {
        let next_owner = |subnet: &Subnet| self.migration.next_owner(subnet);
        if self.replication.review_replicas(&mut self.context, &self.membership, next_owner) {
            self.report.mark_changed();
        }
        self.acknowledge();
    }

    /// Asks new replicas for what is not known of them yet.
    pub(crate) fn tick_replicas(&mut self) {
        self.review_replicas();
        self.replication.ask_for_stores(&mut self.context);
    }

    /// A member left for good: what it kept is gone.
    pub(crate) fn replica_left(&mut self, member: AccessPoint) {
        let next_owner = |subnet: &Subnet| self.migration.next_owner(subnet);
        self.replication.member_left(member, next_owner);
    }
}

/// A subnet became ours, or is ours no more.
impl Crawler {
    /// A replica sent all it had of a subnet, or nothing came of asking it.
    pub(crate) fn recovered(
        &mut self,
        subnet: Subnet,
        from: AccessPoint,
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
        bytes: usize,
    ) {
        self.replication.recovered(&self.context, subnet, from, journals, bytes);
        self.begin_if_known(subnet);
    }

    /// A member said of which of these subnets it has rows, or did not answer.
    pub(crate) fn told_what_is_there(&mut self, from: AccessPoint, subnets: &[Subnet], answer: Option<Response>) {
        for subnet in self.replication.told_what_is_there(&mut self.context, from, subnets, answer) {
            self.begin_if_known(subnet);
        }
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(crate) fn loaded(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        self.replication.loaded(self.context.now.moment, subnet, journals);
        self.begin_if_known(subnet);
    }

    /// Replicas that did not answer are asked again, or not waited for.
    pub(crate) fn tick_recovery(&mut self) {
        let (begin, unheard) = self.replication.ask_again(&self.context);
        for subnet in begin {
            self.begin_if_known(subnet);
        }
        for subnet in unheard {
            self.replication.ask_others(&self.context, &self.membership, subnet);
            self.begin_if_known(subnet);
        }
        self.replication.begin_loads(&mut self.context, &self.membership);
        self.replication.ask_what_is_there(&mut self.context);
    }

    /// An operator says that these members will not come back: neither their votes nor their journals are waited for.
    pub(crate) fn declare_lost(&mut self, lost: Vec<AccessPoint>) {
        for subnet in self.replication.declare_lost(&lost) {
            self.begin_if_known(subnet);
        }
        self.voting.declare_lost(&mut self.context, lost);
    }

    /// When all that can be had of a subnet's history is here, its sites stand where their previous owner stood.
    fn begin_if_known(&mut self, subnet: Subnet) {
        let Some(found) = self.replication.take_found(&subnet) else { return };
        self.replication.begin_loads(&mut self.context, &self.membership);
        self.report.mark_changed();
        let claim = self.ownership.register().claim(&subnet).filter(|claim| claim.owner == self.context.me);
        let Some((reason, epoch)) = claim.map(|claim| (claim.reason, claim.epoch)) else { return };
        if let Some(rest) = found.rest_after(reason) {
            self.delegation.rest_subnet(&self.context, subnet, rest);
        }
        self.migration.read_history(&self.context, subnet, found.ownership_histories());
        let mut outgoing = Vec::new();
        for (copy, previous) in found.into_journals() {
            outgoing.extend(self.begin_from(copy, previous, epoch));
        }
        // Not before all stand: what leads from one to another must not open it anew.
        self.send_out(outgoing);
        self.yield_to_smaller(subnet);
        self.routing.wake_all();
    }

    /// A site begins where another's journal ends. Returns what that named for others, if it may go on its way at once.
    fn begin_from(&mut self, copy: JournalCopy, previous: Option<JournalCopy>, epoch: u64) -> Vec<Item> {
        let (crawl, cx, replication, others) = self.crawling();
        crawl.begin_from(cx, replication, others, copy, previous, epoch)
    }

    /// A subnet is not ours any more: nothing of it is asked, counted or sent from here. If another one has it, it is handed what
    /// its sites began with and what waits here: its claim may be as old as ours, or our replicas could not tell it.
    pub(crate) fn give_up(&mut self, subnet: Subnet) {
        let reroute = self.ownership.register().claim(&subnet).is_some();
        self.replication.stop_loading(&subnet);
        self.ownership.unwatch(&subnet);
        self.migration.forget_accesses(&subnet);
        self.dissolve(subnet, reroute);
        self.report.mark_changed();
    }

    /// Forgets a subnet's sites. With `reroute` their waiting URLs go on their way again.
    pub(crate) fn dissolve(&mut self, subnet: Subnet, reroute: bool) {
        let hosts = self.crawl.sites().within(&subnet).cloned().collect();
        self.dissolve_hosts(subnet, hosts, reroute);
    }

    /// The same for some of a subnet's sites.
    pub(crate) fn dissolve_hosts(&mut self, subnet: Subnet, hosts: Vec<Host>, reroute: bool) {
        let items = self.crawl.dissolve(&mut self.context, &mut self.replication, &subnet, &hosts, reroute);
        self.routing.put(items);
        hosts.iter().for_each(|host| self.report.forget_site(host));
        // The member that handed us URLs of these sites that were not recorded yet hears that they are not here.
        self.acknowledge();
    }
}

/// URLs on their way to their owners.
impl Crawler {
    /// People named starting points.
    pub(crate) fn seeds(&mut self, urls: Vec<PageUrl>) {
        self.routing.seeds(&mut self.context, urls);
        self.route();
    }

    /// The DNS answered.
    pub(crate) fn resolved(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        self.routing.resolved(&mut self.context, host, answer);
        self.route();
    }

    /// The host's steward answered.
    pub(crate) fn located(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        if self.routing.located(&mut self.context, host, answer) {
            self.route();
        }
    }

    /// An owner answered a hand-off.
    pub(crate) fn handed_off(&mut self, question: QuestionId, answer: Option<Response>) {
        let done = self.routing.handed_off(&self.context, question, answer);
        self.replication.delivered(&done);
        self.route();
    }

    /// Sends every URL on its way that may have become routable: to its owner, or into a site of ours.
    pub(crate) fn route(&mut self) {
        if self.shutdown.is_over() || (self.shutdown.is_draining() && self.routing.outbox().is_empty()) {
            return;
        }
        let mut bound = Bound::new();
        for host in self.routing.due(&self.context) {
            match self.routing.place(&mut self.context, &self.membership, &host) {
                Place::At(located) => {
                    let owner = self.owner_for(&located);
                    if let Some((located, items)) = self.routing.bind(&self.context, &mut bound, located, owner) {
                        self.admit_own(located, items);
                    }
                }
                Place::Nowhere(items) => self.replication.delivered(&items),
                Place::Unknown => {}
            }
        }
        self.routing.send(&mut self.context, bound);
    }

    /// Answers every member whose arrivals are recorded by now.
    pub(crate) fn acknowledge(&mut self) {
        let recorded = |key: &_, upto| self.replication.is_recorded(key, upto);
        let delivered = self.routing.acknowledge(&mut self.context, recorded, |key| self.crawl.sites().owns(key));
        self.replication.delivered(&delivered);
    }
}

/// Hand-overs and the judgements before them.
impl Crawler {
    /// Has migration do something, with all that it reads; then what it wants of others is done.
    fn migrate<T>(&mut self, act: impl FnOnce(&mut Migration, &mut Context, &Surroundings<'_>) -> T) -> T {
        let held_back = self.view().held_back().is_some();
        let around = Surroundings {
            membership: &self.membership,
            ownership: &self.ownership,
            crawl: &self.crawl,
            replication: &self.replication,
            delegation: &self.delegation,
            report: &self.report,
            held_back,
        };
        let done = act(&mut self.migration, &mut self.context, &around);
        self.settle_signals();
        done
    }

    /// A subnet of ours should have another owner.
    pub(crate) fn hand_over(&mut self, subnet: Subnet, to: AccessPoint, why: String) {
        self.migrate(|migration, cx, around| migration.propose(cx, around, [Proposal { subnet, to, why }]));
    }

    /// An owner offers us a subnet.
    pub(crate) fn offered(&mut self, ticket: Ticket, offer: Offer) {
        self.migrate(|migration, cx, around| migration.offered(cx, around, ticket, offer));
    }

    /// An owner hands us a subnet whose journals are all here.
    pub(crate) fn take_over(&mut self, from: AccessPoint, ticket: Ticket, release: SignedClaim) {
        if self.migration.handed_over(&mut self.context, from, ticket, &release) {
            self.hear_claims(vec![release]);
            self.tick_recovery();
            self.tick_take_over();
            self.answer(ticket, Response::Noted);
        }
    }

    /// The member that we offered a subnet to answered, or did not.
    pub(crate) fn offer_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        self.migration.offer_answered(&mut self.context, subnet, from, answer);
        self.settle_signals();
    }

    /// Takes every hand-over one step further, if it is time; does not wait any more for those that should have come long ago.
    pub(crate) fn tick_moves(&mut self) {
        self.migration.expire_incoming(&self.context);
        for subnet in self.migration.outgoing() {
            self.migrate(|migration, cx, around| migration.step(cx, around, subnet));
        }
    }

    /// Looks at how busy we are.
    pub(crate) fn tick_load(&mut self) {
        self.migrate(|migration, cx, around| migration.tick_load(cx, around));
    }

    /// A request to a server of ours ended.
    pub(crate) fn time_access(&mut self, subnet: Subnet, report: &FetchReport) {
        // Nothing is judged while there is no other member: no page need pay for gathering what a judgement reads.
        if self.membership.standings().is_empty() {
            return;
        }
        self.migrate(|migration, cx, around| migration.time_access(cx, around, subnet, report));
    }

    /// A tree of a subnet of ours is done for this time.
    pub(crate) fn end_access(&mut self, subnet: Subnet) {
        self.migrate(|migration, cx, around| migration.end_access(cx, around, subnet));
    }

    /// The next owner of a subnet is known, or there is none any more: who has copies of its journals is another now.
    pub(crate) fn next_owner_changed(&mut self, subnet: Subnet) {
        self.replication.assign_subnet(self.migration.next_owner(&subnet), &subnet);
    }

    /// A subnet stays: its crawl goes on.
    pub(crate) fn hand_over_called_off(&mut self, subnet: Subnet) {
        self.next_owner_changed(subnet);
        self.crawl.resume_subnet(&self.context, &subnet);
        self.route();
    }

    /// Nothing of a subnet is under way any more: its last row, if it has a journal, is stored with all before it.
    pub(crate) fn hand_over_closes(&mut self, last_row: Option<(Host, JournalEntry)>) {
        if let Some((host, entry)) = last_row {
            self.journal(&host, entry);
        }
        self.replication.flush(&mut self.context);
    }
}
