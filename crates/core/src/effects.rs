//! Effects of one fact on several machines, in order.
//!
//! Each machine is called once for it and decides for itself; nothing is decided here.
//!
//! One section for each subject: gossip and claims, owners for subnets, the sites of our own, journals, URLs on their way, hand-overs.

use crate::{
    context::Context,
    crawl::{
        self, Crawl,
        fetch_cycle::Turn,
        moved_hosts::{Coming, MAX_COMING},
        scope::Scope,
    },
    crawler::{Crawler, MAX_OUTGOING},
    delegation::{self, Delegation, prober::ProbeOrder},
    event::{AdmissionEvent, Command, CopyAnswer, OptOutEvent, PeerCommand, StoreCommand, SurveyEvent},
    membership::{machine::HeldBack, shutdown::Unfinished},
    migration::{
        Migration,
        handover::{Offer, Proposal, Surroundings},
    },
    ownership::{
        claims::{Checked, JournalsAt},
        comparison::Heard,
    },
    pending::{MapQuestion, Pending},
    replication::{AwaitedReplicas, Lived, Replication, Reputation, handed_on, loading::JournalCopy},
    report::{self, BesidesSums},
    routing::{
        acknowledgements::Reply,
        arrival::{Bound, Place},
        locator::Lookup,
        outbox::{Item, MAX_IN_BATCH},
    },
    signal::Signal,
    survey::probing::{TURN, ToProbe, Wait},
    voting::{self, Voting, asker::Asker, lease::NoLease, plan::MAX_CHOSEN_VOTERS, proposals::Accepted},
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::Rest,
    claim::{Claim, ClaimReason, MAX_EPOCH, SignedClaim},
    cross_table::{CrossTable, Pair},
    distinct::DistinctSets,
    fetch::{FetchReport, LocatedHost, ProbeReport, ProbeTarget, ResolveError},
    ids::{QuestionId, Ticket, WriteId},
    journal::{Arrival, JournalEntry, JournalKey},
    message::{Gossip, HandOff, Request, Response},
    opt_out::SignedStatement,
    previous_run::PreviousVersion,
    replica::NamedReplica,
    server_rows::RowsOf,
    subnet::Subnet,
    summary::{RollUp, Summary},
    time::{Millis, Moment},
    url::{Host, PageUrl},
    vote::{ReplicaSet, SignedPart},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// What those say is counted who are known to be no members.
pub(crate) const EXCLUDED: &str = "messages of those who were expelled or whose certificates ended";

/// So many URLs are taken of one hand-off: a member sends 256 at most, and each costs the loop time.
const MAX_HANDED_OVER: usize = 1_024;

/// In a swarm of at most so many members voters are preferred as replicas: so few can keep the copies of all.
const SMALL: usize = 2 * MAX_CHOSEN_VOTERS;

/// After so long a server of a survey's sample that may not be probed is looked at again.
const PROBE_LATER: Millis = 600_000;

/// The same if its address is being looked up, or its owner cannot say yet when it may be probed.
const PROBE_SOON: Millis = 2_000;

/// What three connects to a server far away take.
const USUAL_PROBE: Millis = 1_000;

/// What was known when the process ended.
impl Crawler {
    /// Claims of a life before hold; what is ours by them is loaded.
    pub(crate) fn wake_claims(&mut self, claims: Vec<SignedClaim>) {
        for proof in claims {
            // A store may hold claims that an earlier version accepted and this one refuses.
            if let Ok(claim) = proof.read()
                && claim.epoch <= MAX_EPOCH
            {
                self.hold(claim.clone(), proof.clone());
                self.doubt_if_over(&claim, &proof);
            }
        }
        self.ownership.refresh_map();
        let mine: Vec<_> = self.ownership.register().held_by(&self.context.me).collect();
        for subnet in mine {
            let Some(claim) = self.ownership.register().claim(&subnet) else { continue };
            // What was begun here is here. If nothing was, it may be that we lost our disk before, heard from others what is ours, and ended
            // before replicas had sent it.
            let begun = match claim.reason {
                ClaimReason::OwnerDead | ClaimReason::Released | ClaimReason::Moved => claim.epoch,
                ClaimReason::Awarded | ClaimReason::OwnSubnet => 0,
            };
            // Who has what was recorded in a life before is told by the voters. Who is alone, and was, has nobody to ask.
            let alone = !self.context.settings.joins && self.membership.standings().is_empty();
            let (at, awaited) = if alone {
                (JournalsAt::Here, AwaitedReplicas::default())
            } else {
                (JournalsAt::HereIfBegun(begun), AwaitedReplicas::unknown())
            };
            self.replication.load(&mut self.context, &self.membership, subnet, at, awaited);
        }
    }

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

/// Gossip: what every member tells every other.
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

    /// Tells every member what is new, and repairs what was lost on the way.
    pub(crate) fn tick_gossip(&mut self) {
        let now = self.context.now.moment;
        self.ownership.tell_claims(&mut self.context, &self.membership);
        self.delegation.tick_distances(&mut self.context, &self.membership);
        self.report.count_members(self.membership.count_settled(now));
        let whole = self.ownership.tick_comparison(&mut self.context, &self.membership);
        // Another process with our key tells its own.
        let ours = self.membership.no_lease(now) != Some(NoLease::KeyInUse);
        let due = self.report.is_due(now);
        if ours && (due || self.report.is_stale(&self.context)) {
            let roll_up = Box::new(self.roll_up());
            if due && self.report.tells(now) {
                let others: Vec<_> = self.membership.live().iter().copied().filter(|member| *member != self.context.me).collect();
                // Who comes later is told when our sums have settled, or asks.
                if !others.is_empty() {
                    self.context.tell_all(&others, Gossip::RollUp(roll_up));
                }
            }
        }
        let overdue = self.report.overdue(&self.context, &self.membership, &self.ownership);
        self.compare_totals(overdue);
        if whole {
            self.routing.wake_all();
            self.route();
        }
    }

    /// These are asked to renew our lease, each with a packet that has room for more.
    pub(crate) fn compare_totals_along(&mut self, voters: Vec<AccessPoint>) {
        let asked = self.report.asked_along(&self.context, &self.membership, voters);
        self.compare_totals(asked);
    }

    fn compare_totals(&mut self, members: Vec<AccessPoint>) {
        if !members.is_empty() {
            // Another process with our key tells its own.
            let ours = self.membership.no_lease(self.context.now.moment) != Some(NoLease::KeyInUse);
            let mine = ours.then(|| self.roll_up());
            self.report.ask_whether_they_hold(&mut self.context, members, mine.as_ref());
        }
    }

    /// What we hold and know, as of now.
    fn roll_up(&mut self) -> RollUp {
        // Without a lease, or before what was owned in an earlier term is claimed again, others may have gone on with it.
        let ours = self.membership.may_claim(self.context.now.moment) && !self.ownership.is_doubtful();
        // A host on its way may be in nobody's sums, or in those of two whose last ones are of different moments.
        let settling = report::oldest_told(self.membership.count_settled(self.context.now.moment) + 1);
        let more = BesidesSums {
            load: self.migration.load_told(),
            complete: ours && self.replication.subnets_loading() == 0 && !self.crawl.hosts_are_settling(&self.context, settling),
        };
        self.report.roll_up(&mut self.context, &self.membership, &self.ownership, &self.crawl, more)
    }

    /// The sums over its own sites as they are now; sites that changed since the last time are summed anew.
    pub fn own_summary(&mut self) -> Summary {
        self.report.own_summary(&self.context, &self.crawl)
    }

    /// Brings its own sums up to date, with the estimates that rows of servers speak of: to be done before rows are answered.
    pub fn prepare_rows(&mut self) {
        self.report.enter_dirty(&self.context, &self.crawl);
    }

    /// A member says that its totals of this version hold, and asks whether ours do of that version.
    pub(crate) fn totals_compared(&mut self, from: AccessPoint, ticket: Ticket, theirs: u64, ours: u64) {
        self.report.holds(&self.context, from, theirs);
        self.report.knows(from, ours);
        self.tell_totals(from, ticket, Some(ours));
    }

    /// A member tells its totals and asks whether ours of this version hold.
    pub(crate) fn totals_exchanged(&mut self, from: AccessPoint, ticket: Ticket, totals: RollUp, ours: u64) {
        if totals.owner != from {
            self.context.refuse("totals in the name of another member");
            return self.answer(ticket, Response::Refused("these are not the sender's totals".to_owned()));
        }
        let version = totals.version;
        self.report.hear(&mut self.context, &self.membership, &self.ownership, totals);
        self.totals_compared(from, ticket, version, ours);
    }

    /// A member asks for our totals, unless they still are those of the version that it knows.
    pub(crate) fn tell_totals(&mut self, to: AccessPoint, ticket: Ticket, known: Option<u64>) {
        // Who holds no lease may be the one that told them.
        if let Some(known) = known.filter(|_| self.membership.may_claim(self.context.now.moment)) {
            self.report.is_known_as(known);
        }
        let recent = self.report.recent(&self.context).filter(|totals| known.is_none_or(|known| known <= totals.version));
        let totals = recent.unwrap_or_else(|| self.roll_up());
        let hold = known == Some(totals.version);
        self.report.knows(to, totals.version);
        self.answer(ticket, if hold { Response::TotalsHold } else { Response::Totals(Box::new(totals)) });
    }

    /// People want the sums of the swarm by two dimensions: all members are asked for theirs.
    pub(crate) fn cross_table_wanted(&mut self, by: Pair) {
        let own = self.report.own_table(&self.context, &self.crawl, by);
        self.report.gather(&mut self.context, &self.membership, own);
        if !self.report.cross_table(by).1 {
            self.compare_table(by);
        }
    }

    /// A member told its sums by two dimensions, or did not.
    pub(crate) fn cross_totals_came(&mut self, from: AccessPoint, by: Pair, table: Option<CrossTable>) {
        if self.report.cross_totals_came(from, by, table) {
            self.compare_table(by);
        }
    }

    fn compare_table(&mut self, by: Pair) {
        let results = self.report.results(&self.context, &self.membership, &self.ownership);
        self.report.compare_table(by, &results);
    }

    /// A member asks for our sums by two dimensions.
    pub(crate) fn cross_totals_asked(&mut self, ticket: Ticket, by: Pair) {
        let answer = if self.report.may_make_table(self.context.now.moment) {
            Response::CrossTotals(Box::new(self.report.own_table(&self.context, &self.crawl, by)))
        } else {
            self.context.refuse("questions for tables beyond the limit");
            Response::Refused("it is asked for tables too often".to_owned())
        };
        self.answer(ticket, answer);
    }

    /// Other members than before: replicas are chosen anew, and what waits for owners is looked at again.
    pub(crate) fn members_changed(&mut self) {
        self.review_replicas();
        self.routing.wake_all();
        self.report.members_changed(&self.context, &self.membership, &self.ownership);
    }

    /// A member asks for rows of our servers on behalf of a reader.
    pub(crate) fn rows_wanted(&mut self, ticket: Ticket, of: RowsOf, after: Option<&Host>) {
        self.prepare_rows();
        let rows = self.view().rows(of, after);
        self.answer(ticket, rows.map_or_else(Response::Refused, Response::ServerRows));
    }

    /// People want to know how many different ones there are: all members are asked for their sets.
    pub(crate) fn distinct_wanted(&mut self) {
        self.report.gather_sets(&mut self.context, &self.membership, &self.crawl);
        if self.report.has_all_sets() {
            self.compare_sets();
        }
    }

    /// A member told its distinct sets, said that they are still the same, or did not answer.
    pub(crate) fn sets_came(&mut self, from: AccessPoint, answer: Option<Option<DistinctSets>>) {
        if self.report.sets_came(from, answer) {
            self.compare_sets();
        }
    }

    fn compare_sets(&mut self) {
        let results = self.report.results(&self.context, &self.membership, &self.ownership);
        self.report.compare_sets(&self.context, &results);
    }

    /// A member asks for our distinct sets; it knows those with this digest.
    pub(crate) fn sets_asked(&mut self, ticket: Ticket, known: u64) {
        let (sets, digest) = self.report.own_sets(&self.context, &self.crawl);
        let news = (digest != known).then(|| Box::new((*sets).clone()));
        self.answer(ticket, Response::Distinct(news));
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
            self.ownership.end_claims_upto(claim.subnet, claim.epoch);
            let had_owner = self.ownership.register().latest(&claim.subnet).is_some();
            if self.hold(claim.clone(), proof.clone()) {
                self.own_claim_holds(&claim, proof.clone(), had_owner);
                self.doubt_if_over(&claim, &proof);
            } else {
                self.replication.expects_nothing(&claim.subnet);
            }
        }
        self.ownership.tell_claims(&mut self.context, &self.membership);
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

    /// Who has what a subnet's former owners recorded: as voters told when our claim was accepted; if that was in a life before, what they
    /// tell of all that we took over.
    fn awaited_replicas(&self, subnet: &Subnet) -> AwaitedReplicas {
        if let Some(expected) = self.replication.expected(subnet) {
            return expected.clone();
        }
        self.voting.inherited_replicas().map_or_else(AwaitedReplicas::unknown, AwaitedReplicas::new)
    }

    fn own_claim_holds(&mut self, claim: &Claim, proof: SignedClaim, had_owner: bool) {
        if claim.released {
            self.migration.release_stored(&mut self.context, claim.subnet, proof.clone());
        }
        let again = self.ownership.is_watched(&claim.subnet);
        match self.ownership.own_claim_holds(&mut self.context, &self.membership, claim, proof, had_owner) {
            Some(JournalsAt::Replicas) => {
                let awaited = self.awaited_replicas(&claim.subnet);
                self.replication.load(&mut self.context, &self.membership, claim.subnet, JournalsAt::Replicas, awaited);
            }
            // Who was handed a subnet has all of it: nobody is waited for.
            Some(at) => self.replication.load(&mut self.context, &self.membership, claim.subnet, at, AwaitedReplicas::default()),
            // What is claimed anew may have to begin anew.
            None if again => {}
            None => self.replication.expects_nothing(&claim.subnet),
        }
    }

    /// Enters a claim whose signature was checked; has all machines do what follows if it holds. Returns whether it does.
    pub(crate) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let Some(holding) = self.ownership.merge(claim, proof) else { return false };
        if holding.forgets_epochs() {
            self.context.refuse("claims of which the voters of a later list did not know");
        }
        let claim = &holding.claim;
        self.migration.claim_holds(&self.context, claim);
        self.replication.claim_holds(claim);
        self.report.claim_holds(&self.context, &self.membership, &self.ownership, claim, holding.before.as_ref());
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
        self.replication.expects_nothing(&subnet);
        self.crawl.resume_subnet(&self.context, &subnet);
    }

    /// Whether a member disputes a claim of ours could not be heard for a while: it begins anew, with what others may know.
    pub(crate) fn claim_doubtful(&mut self, subnet: Subnet) {
        self.dissolve(subnet, true);
        let awaited = self.awaited_replicas(&subnet);
        self.replication.load(&mut self.context, &self.membership, subnet, JournalsAt::Replicas, awaited);
    }

    /// Takes over what is ours to take over, and looks for the history of what already is. Whoever has no room for a claim, or may be no
    /// member, leaves it to others: once it is accepted nobody else may have the subnet, and it is not told before it is stored.
    pub(crate) fn tick_take_over(&mut self) {
        if !self.shutdown.is_stopping() && self.crawl.has_disk_space() && !self.context.is_excluded() {
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
        for address in self.context.settings.own_addresses.clone() {
            self.voting.have(&self.context, address);
        }
    }

    /// A boot clock that stood still does not tell how old the lease is.
    pub(crate) fn compare_clocks(&mut self) {
        if self.voting.compare_clocks(self.context.now) {
            self.lease_changed();
        }
    }

    /// Has the fence know what the voters said, and replication what they know.
    fn lease_changed(&mut self) {
        let (until, why_not) = self.voting.lease(self.context.me);
        self.membership.leased(until, why_not);
        self.take_over_accepted();
        // What was owned in a term before and is not claimed anew yet may be another's by now, who does not have what is written to it here.
        let needed = self.voting.needed_replicas(self.context.now.moment).filter(|_| !self.ownership.is_doubtful());
        self.replication.voters_know(&self.context, needed);
        if self.replication.lacks_replicas()
            && let Some(inherited) = self.voting.inherited_replicas()
        {
            self.replication.learn_replicas(&self.context, &inherited);
        }
        self.settle_signals();
    }

    /// Claims of ours were accepted: a successor of ours must hear who has what their former owners recorded before we act on them.
    fn take_over_accepted(&mut self) {
        let running = self.context.now.moment.since(self.context.started);
        let mut claims = Vec::new();
        let own = NamedReplica { member: self.context.me, store: self.context.store };
        for Accepted { proof, before } in self.voting.take_accepted() {
            // What we recorded in a database that is lost does not come back.
            let lived = |member: &AccessPoint| match self.report.told_for(member) {
                _ if *member == own.member => Some(Lived { told: 0, of: running }),
                told => told.map(|(told, last)| Lived { told, of: last.since(self.context.started) }),
            };
            let handed = |mut set: ReplicaSet| {
                // What we recorded ourselves is here, if our disk was not lost.
                if set.owner == own.member && set.members.contains(&own) {
                    set.members.clear();
                }
                handed_on(set, lived, running)
            };
            let is_here = before.iter().any(|set| set.replicas.owner == own.member && set.replicas.members.contains(&own));
            let before: Vec<_> = before.into_iter().flat_map(|set| handed(set.replicas)).collect();
            if let Ok(claim) = proof.read() {
                let awaited = AwaitedReplicas::new(before.clone());
                self.replication.insert_expected(claim.subnet, if is_here { awaited.and_of(own) } else { awaited });
            }
            claims.push((proof, before));
        }
        if !claims.is_empty() {
            self.voting.take_over(&mut self.context, claims);
        }
    }

    /// As a voter, this access point accepts second claims at an epoch, too, or does so no more: a laboratory's liar.
    pub fn accept_twice(&mut self, twice: bool) {
        self.voting.accept_twice(twice);
    }

    pub(crate) fn tick_voting(&mut self) {
        if self.shutdown.is_leaving() {
            self.voting.leave(self.context.now.moment);
        }
        let (fetches, lease) = (self.crawl.fetches(), self.context.settings.roster.lease);
        let is_due = |due: Moment| due <= self.context.now.moment.after(lease);
        let is_idle = fetches.in_flight() == 0 && !fetches.scheduler().next_due().is_some_and(is_due);
        let (voting, cx, others) = self.voting();
        voting.tick(cx, others, is_idle);
        self.lease_changed();
        self.ownership.claim_again(&mut self.context, &self.membership);
        self.settle_signals();
    }

    /// Claims of ours are voted on.
    pub(crate) fn propose(&mut self, claims: Vec<SignedClaim>, part: Option<Box<SignedPart>>) {
        let (voting, cx, others) = self.voting();
        voting.propose(cx, others, claims, part);
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
                if let Some(member) = self.membership.live().iter().copied().find(|member| *member != me) {
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

    /// A member asks us, the steward of an address, to see to it that it gets an owner.
    pub(crate) fn find_owner_for(&mut self, ticket: Ticket, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let standing = delegation.find_owner_for(context, others, target);
        self.settle_signals();
        self.answer(ticket, Response::FindingOwner(standing));
    }

    /// The steward of an address reserved it for us, the steward of the subnet that is to be settled.
    pub(crate) fn settle_reserved(&mut self, ticket: Ticket, subnet: Subnet, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let answer = delegation.settle_reserved(context, others, subnet, target);
        self.settle_signals();
        self.answer(ticket, answer);
    }

    /// A subnet's steward asks us to probe.
    pub(crate) fn probe_for(&mut self, steward: (AccessPoint, Ticket), order: ProbeOrder) {
        let held_back = self.view().held_back().is_some() || !self.context.takes_subnets();
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
        self.crawl.sites().hosts().for_each(|host| self.report.site_changed(host.clone()));
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
        let is_full = matches!(self.context.rest, Some(Rest::MemoryFull { .. }));
        if changing || is_full || self.shutdown.is_stopping() || !self.ownership.is_synced() {
            return self.answer(ticket, Response::Busy(1_000));
        }
        if hand_offs.iter().map(|hand_off| hand_off.arrivals.len()).sum::<usize>() > MAX_HANDED_OVER {
            self.context.refuse("hand-offs of more URLs than a member sends");
            return self.answer(ticket, Response::Refused("more URLs than a member hands over at once".to_owned()));
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
                && !self.crawl.holds_back(&self.context, &host.host, newest_run(&arrivals))
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
        let routing = &mut self.routing;
        open || (routing.confirms(&mut self.context, &self.membership, from, located)
            && routing.is_recent(&mut self.context, &self.membership, &located.host))
    }

    /// URLs turned out to be for ourselves. As many hosts as a member hands over at once are taken in together.
    pub(super) fn admit_own(&mut self, hosts: Vec<(LocatedHost, Vec<Item>)>) {
        if !hosts.is_empty() {
            self.routing.takes_own(&self.context);
        }
        for hosts in hosts.chunks(MAX_IN_BATCH) {
            let arrivals = |items: &[Item]| items.iter().map(|item| item.arrival.clone()).collect();
            let hand_offs = hosts.iter().map(|(located, items)| (located.clone(), arrivals(items))).collect();
            let items = hosts.iter().flat_map(|(_, items)| items).cloned().collect();
            let (crawl, cx, replication, others) = self.crawling();
            crawl.admit(cx, replication, others, hand_offs, Reply::Own(items));
        }
    }

    /// Sends what may be sent now.
    pub(crate) fn visit(&mut self) {
        if self.view().held_back().is_some() {
            return;
        }
        while let Some((address, host)) = self.crawl.next_turn(&self.context) {
            for again in 0.. {
                let (crawl, cx, replication, others) = self.crawling();
                let turn = crawl.take_turn(cx, replication, others, (address, &host), again);
                self.settle_signals();
                if turn != Turn::Again {
                    break;
                }
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

/// Limits.
impl Crawler {
    /// Limits let go on what they have held back for long enough.
    pub(crate) fn tick_limits(&mut self) {
        if self.view().held_back().is_none() {
            let (crawl, cx, replication, others) = self.crawling();
            crawl.release(cx, replication, others);
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

    /// Rows of another owner are durable: it hears how far we have them.
    pub(crate) fn rows_kept(&mut self, ticket: Ticket, heads: Vec<(JournalKey, u64)>, growth: BTreeMap<Subnet, i64>) {
        self.replication.resized(&self.context, &self.ownership, Some(ticket), growth);
        self.answer(ticket, Response::Kept(heads));
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
        let now = self.context.now.moment;
        // A voter has held leases for long.
        let list = self.voting.list().filter(|_| self.membership.live().len() <= SMALL);
        let vouched = |member: &AccessPoint| list.is_some_and(|list| list.contains(member));
        let says_so = |member: &AccessPoint| self.membership.is_about_to_leave(now, member);
        let others = Reputation { vouched, leaves: |member: &AccessPoint| says_so(member) || self.voting.is_about_to_leave(now, member) };
        self.replication.review_replicas(&mut self.context, &self.membership, others, next_owner);
        let released = self.ownership.has_released(&self.context.me);
        self.voting.name_replicas(&self.context, self.replication.names().to_vec(), released);
        if !released && self.replication.has_copied_all() {
            self.voting.has_copied_all(&self.context);
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
        self.replication.member_left(&self.context, member);
        self.review_replicas();
    }
}

/// A subnet became ours, or is ours no more.
impl Crawler {
    /// A member sent all it had of a subnet, or of one host in it, or nothing came of asking it.
    pub(crate) fn recovered(
        &mut self,
        subnet: Subnet,
        host: Option<Host>,
        from: AccessPoint,
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
        bytes: usize,
    ) {
        if let Some(host) = host {
            return self.host_arrived(&host, from, subnet, journals.unwrap_or_default());
        }
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
        for (key, entries) in self.crawl.read_here(&journals) {
            self.carry_here(key, entries);
        }
        self.replication.loaded(self.context.now.moment, subnet, journals);
        self.begin_if_known(subnet);
    }

    /// Replicas that did not answer are asked again, or not waited for.
    pub(crate) fn tick_recovery(&mut self) {
        let (begin, unheard) = self.replication.ask_again(&self.context, &self.membership);
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
        let epoch = self.ownership.register().claim(&subnet).map_or(0, |claim| claim.epoch);
        let Some(found) = self.replication.take_found(&subnet, epoch) else { return };
        (0..found.refused()).for_each(|_| self.context.refuse("journals of epochs that their subnet has not come to"));
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

/// Hosts have other addresses.
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
        let (members, me) = (&self.membership, self.context.me);
        let untold = self.crawl.untold_stewards(members.live().len(), |host| members.steward_of_host(host));
        for (steward, hosts) in untold {
            if steward == me {
                self.note_pins(me, hosts);
            } else {
                let names = hosts.iter().map(|(host, _)| host.clone()).collect();
                self.context.ask(steward, Pending::Pinned(names), Request::Pinned(hosts));
            }
        }
    }

    /// A member says which hosts it has at addresses of its own, and that we are their steward now.
    pub(crate) fn told_pins(&mut self, from: AccessPoint, ticket: Ticket, mut hosts: Vec<(Host, IpAddr)>) {
        let register = self.ownership.register();
        hosts.retain(|(_, address)| register.around(*address).is_some_and(|claim| claim.owner == from));
        self.note_pins(from, hosts);
        self.answer(ticket, Response::Noted);
    }

    /// Where we know better, their owner is told.
    fn note_pins(&mut self, from: AccessPoint, hosts: Vec<(Host, IpAddr)>) {
        for elsewhere in self.routing.pinned(&self.context, hosts) {
            if from == self.context.me {
                self.crawl.may_have_moved(&self.context, &elsewhere);
            } else {
                self.context.ask(from, Pending::HostMoved(elsewhere.clone()), Request::HostMoved(elsewhere));
            }
        }
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

    /// Takes a host of ours that has moved a step further.
    fn move_host(&mut self, host: &Host) {
        let Some(located) = self.crawl.moved().destination(host).cloned() else { return };
        let Some(site) = self.crawl.site(host) else { return };
        let (key, went_to, first) = (site.key.clone(), site.went_to(), site.starts.first().cloned());
        let (next, start) = (site.next_sequence(), first.or_else(|| PageUrl::parse(&format!("http://{host}/")).ok()));
        if self.replication.is_loading(&key.subnet) || self.migration.has_stopped(&key.subnet) || self.view().held_back().is_some() {
            return;
        }
        let Some(owner) = self.owner_at(&located, start.as_ref()) else { return };
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

    /// Who owns the new address of a host; if that is not decided, sees to it that it gets decided.
    fn owner_at(&mut self, located: &LocatedHost, start: Option<&PageUrl>) -> Option<AccessPoint> {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, replication, migration, .. } = self;
        let changing = |subnet: &Subnet| replication.is_loading(subnet) || migration.has_stopped(subnet);
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = delegation::Others { members, ownership, shutdown };
        let owner = delegation.owner_for(context, others, located, start, changing, crawls);
        self.settle_signals();
        owner
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

    /// The journal of a host that goes on in another subnet of ours was read: it is recorded there.
    fn carry_here(&mut self, key: JournalKey, entries: Vec<JournalEntry>) {
        let went_to = self.crawl.site(&key.host).and_then(|site| site.went_to());
        let Some((to, _)) = went_to.filter(|(to, _)| self.owns(to)) else { return };
        let there = JournalKey { subnet: to, ..key };
        self.replication.adopt(&mut self.context, self.migration.next_owner(&to), &there, &entries);
        if let Some(leaving) = self.crawl.leaving_mut(&there.host) {
            leaving.own_copy = Some((there, entries));
        }
    }

    /// Whether a subnet is ours by our newest claim.
    fn owns(&self, subnet: &Subnet) -> bool {
        self.ownership.register().claim(subnet).is_some_and(|claim| claim.owner == self.context.me && !claim.released)
    }

    /// The owner of the address that a host had says that it has one of ours, and wants us to take its journals.
    pub(crate) fn take_host(&mut self, from: AccessPoint, ticket: Ticket, located: LocatedHost, journal: JournalKey, rows: u64) {
        let answer = self.judge_coming(from, located, journal, rows);
        self.answer(ticket, answer);
    }

    fn judge_coming(&mut self, from: AccessPoint, located: LocatedHost, journal: JournalKey, rows: u64) -> Response {
        let refused = |why: &str| Response::Refused(why.to_owned());
        let latest = self.ownership.register().latest(&journal.subnet);
        if !latest.is_some_and(|held| held.claim.owner == from && !held.claim.released) || journal.host != located.host {
            self.context.refuse("hosts handed over by others than their owners");
            return refused("the sender does not own the journal's subnet");
        }
        let Some(subnet) = self.ownership.own_subnet_around(self.context.me, located.address) else {
            return refused("another member owns the address");
        };
        let changing = self.replication.is_loading(&subnet) || self.migration.has_stopped(&subnet);
        if changing || self.shutdown.is_stopping() || self.view().held_back().is_some() || !journal.is_plausible() {
            return Response::Busy(1_000);
        }
        match self.routing.confirms_move(&mut self.context, &self.membership, &located) {
            None => return Response::Busy(1_000),
            Some(false) => return refused("the host's steward says otherwise"),
            Some(true) => {}
        }
        if let Some(site) = self.crawl.site(&located.host).filter(|site| !site.has_ended()) {
            let is_it = site.key.subnet == subnet && site.key.run == journal.run && site.came_from(&journal.subnet);
            if is_it || (site.key.run, site.next_sequence()) >= (journal.run, rows) {
                let key = site.key.clone();
                // Rows that its owner wrote since then say nothing that is needed here.
                let upto = if is_it { rows.min(site.next_sequence()) } else { 1 };
                return if self.replication.is_recorded(&key, upto) { Response::Noted } else { Response::Busy(1_000) };
            }
        }
        if !self.crawl.moved().is_coming(&located.host) && self.crawl.moved().coming() < MAX_COMING {
            let (filed, host, since) = (journal.subnet, Some(located.host.clone()), self.context.now.moment);
            self.crawl.expect_host(Coming { from, located, journal, rows, since });
            self.context.commands.push_back(Command::Peers(PeerCommand::Recover { subnet: filed, host, from }));
            self.report.mark_changed();
        }
        Response::Busy(1_000)
    }

    /// The journals of a host that has an address of ours now came, or did not: then its owner asks again.
    fn host_arrived(&mut self, host: &Host, from: AccessPoint, filed: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        let Some(Coming { located, journal, rows, .. }) = self.crawl.host_arrived(host, from, &filed) else { return };
        let Some(subnet) = self.ownership.own_subnet_around(self.context.me, located.address) else { return };
        if self.replication.is_loading(&subnet) || self.migration.has_stopped(&subnet) {
            return;
        }
        let of_run = |run: u32| {
            let found = journals.iter().find(|(key, _)| key.subnet == filed && key.host == *host && key.run == run);
            found.map(|(_, entries)| {
                let plausible: Vec<_> = entries.iter().take_while(|entry| entry.is_plausible()).cloned().collect();
                JournalCopy::new(JournalKey { subnet, host: host.clone(), run }, plausible, false)
            })
        };
        let Some(copy) = of_run(journal.run).filter(|copy| copy.entries.len() as u64 >= rows) else { return };
        let goes_on_here =
            |entry: &JournalEntry| matches!(entry, JournalEntry::Moved { to, address, .. } if (*to, *address) == (subnet, located.address));
        if copy.entries.iter().rfind(|entry| matches!(entry, JournalEntry::Moved { .. })).is_none_or(|entry| !goes_on_here(entry)) {
            return self.context.refuse("journals of hosts that did not move here");
        }
        let older = journals.iter().filter(|(key, _)| key.subnet == filed && key.host == *host && copy.follows(key.run));
        let previous = older.map(|(key, _)| key.run).max().and_then(of_run);
        if let Some(other) = self.crawl.site(host).map(|site| site.key.subnet) {
            self.dissolve_hosts(other, vec![host.clone()], true);
        }
        let epoch = self.ownership.register().claim(&subnet).map_or(0, |claim| claim.epoch);
        let outgoing = self.begin_from(copy, previous, epoch);
        self.crawl.has_come(&self.context);
        self.report.mark_changed();
        self.replication.flush(&mut self.context);
        self.send_out(outgoing);
    }
}

/// Surveys: what they wish for holds for every site.
impl Crawler {
    /// A survey of our own is made or changed, or one is durable.
    pub(crate) fn survey(&mut self, event: SurveyEvent) {
        match event {
            SurveyEvent::Made(signed) => self.surveys.make(&mut self.context, signed),
            SurveyEvent::Stored { write } => {
                if self.surveys.stored(&mut self.context, &self.membership, write) {
                    self.crawl.wishes_changed(&mut self.context);
                }
            }
            SurveyEvent::ProbesStored { write } => self.surveys.probes_stored(&mut self.context, write),
        }
    }

    /// A probe of ours ended: a survey's, or one that delegation wanted.
    pub(crate) fn probed(&mut self, question: QuestionId, report: ProbeReport) {
        if let Some(address) = self.surveys.probed(&mut self.context, question, &report) {
            let subnet = self.context.hierarchy.unit_of(address);
            let rest = self.context.settings.politeness.rest_after(report.took, None);
            return self.delegation.rest_subnet(&self.context, subnet, rest);
        }
        let (delegation, context, others) = self.delegating();
        delegation.probed(context, others, question, report)
    }

    /// The next server of a survey's sample is probed, if it may be: its owner says when, so that the rests of its address are kept.
    fn probe_for_surveys(&mut self) {
        if self.view().held_back().is_some() {
            return;
        }
        if let Some((server, target)) = self.surveys.turn_came(&self.context) {
            // It may have been opted out since its turn was asked for.
            if self.context.denies(&target.host, Some(target.address.ip())) {
                return self.surveys.probe_later(&self.context, &server, Wait::Denied, PROBE_LATER);
            }
            return match self.delegation.contact_for_survey(&mut self.context, &target) {
                Ok(()) => self.surveys.probe(&mut self.context, &server, Some(target)),
                Err(_) => self.surveys.probe_later(&self.context, &server, Wait::Budget, PROBE_LATER),
            };
        }
        let Some(server) = self.surveys.next_to_probe(&self.context) else { return };
        let host = server.url.host();
        if self.context.denies(&host, None) {
            return self.surveys.probe_later(&self.context, &server, Wait::Denied, PROBE_LATER);
        }
        let now = self.context.now.moment;
        match self.routing.locator().lookup(&host, now) {
            Lookup::At(located) if self.context.denies(&host, Some(located.address)) => {
                self.surveys.probe_later(&self.context, &server, Wait::Denied, PROBE_LATER);
            }
            Lookup::At(located) => {
                let address = SocketAddr::new(located.address, server.url.port());
                let target = ProbeTarget { address, host, secure: server.url.is_secure() };
                self.ask_for_turn(server, target);
            }
            Lookup::Nowhere(failure) if !failure.is_transient() => self.surveys.probe(&mut self.context, &server, None),
            Lookup::Nowhere(_) => self.surveys.probe_later(&self.context, &server, Wait::Address, PROBE_LATER),
            Lookup::Later(_, at) => self.surveys.probe_later(&self.context, &server, Wait::Address, at.since(now).max(PROBE_SOON)),
            Lookup::Unknown => {
                self.routing.find(&mut self.context, &self.membership, &host);
                self.surveys.probe_later(&self.context, &server, Wait::Address, PROBE_SOON);
            }
        }
    }

    /// Asks the owner of a server's address when it may be probed. What has no owner yet is being probed by those who look for one.
    fn ask_for_turn(&mut self, server: ToProbe, target: ProbeTarget) {
        let address = target.address.ip();
        let owner = self.ownership.register().around(address).filter(|claim| !claim.released).map(|claim| claim.owner);
        let Some(owner) = owner else { return self.surveys.probe_later(&self.context, &server, Wait::Turn, PROBE_SOON) };
        self.surveys.wants_turn(server, target);
        if owner == self.context.me {
            let after = self.lend_turn(address);
            self.surveys.turn_told(&self.context, Some(after));
        } else {
            self.context.ask(owner, Pending::ProbeTurn, Request::ProbeTurn(address));
        }
    }

    /// A member wants to probe an address of ours for a survey. It may although we ask nothing ourselves, as long as the address surely is ours.
    pub(crate) fn probe_turn_wanted(&mut self, ticket: Ticket, address: IpAddr) {
        let is_ours = self.ownership.register().around(address).is_some_and(|claim| claim.owner == self.context.me && !claim.released);
        let is_sure = self.membership.no_lease(self.context.now.moment).is_none() && self.ownership.is_synced();
        let answer = match is_ours && is_sure {
            true => Response::ProbeTurn(self.lend_turn(address)),
            false => Response::Refused("it does not own the address, or is not sure of it at the moment".to_owned()),
        };
        self.answer(ticket, answer);
    }

    /// Leaves an address of ours, and what is around it, to somebody else for one probe: after how many milliseconds; none if that cannot be
    /// said now.
    fn lend_turn(&mut self, address: IpAddr) -> Option<Millis> {
        let (now, subnet) = (self.context.now.moment, self.context.hierarchy.unit_of(address));
        if self.delegation.rests_until(&subnet).is_some_and(|until| until > now) {
            return None;
        }
        let length = TURN + self.context.settings.politeness.rest_after(USUAL_PROBE, None);
        let asks = self.view().held_back().is_none();
        let after = self.crawl.lend(&self.context, address, length, asks)?.since(now);
        self.delegation.rest_subnet_as_told(&mut self.context, subnet, after + length);
        Some(after)
    }

    /// Surveys end, are compared with those of other members, and the starting URLs that are for us to name are named.
    pub(crate) fn tick_surveys(&mut self) {
        if self.surveys.tick(&mut self.context, &self.membership) {
            self.crawl.wishes_changed(&mut self.context);
        }
        if !self.ownership.is_synced() || self.shutdown.is_stopping() || self.routing.outbox().len() >= MAX_OUTGOING / 2 {
            return;
        }
        self.probe_for_surveys();
        let urls = self.surveys.next_to_place(&self.context, &self.membership);
        if !urls.is_empty() {
            self.routing.put(urls.into_iter().map(|url| Item { arrival: Arrival { url, place: None, run: 1 }, origin: None }));
            self.route();
        }
    }

    /// The operator changed which hosts are in scope and which are denied: that holds for every site from now on. What waits at a site that is
    /// denied now is set aside at its next turn; one that was taken out of the scope is asked nothing, and goes on when it is in scope again.
    pub(crate) fn change_scope(&mut self, scope: Scope) {
        self.context.settings.scope = scope;
        self.crawl.wishes_changed(&mut self.context);
    }

    /// Whether nothing but links that a survey's countries or organisations might have wanted lead to a host, which is elsewhere.
    fn is_out_of_scope(&self, located: &LocatedHost) -> bool {
        self.routing.outbox().has_links_alone(&located.host) && !self.context.admits_at(&located.host, located.address)
    }
}

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

/// Opt-outs hold for every site, probe and URL on its way.
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
}

/// URLs on their way to their owners.
impl Crawler {
    /// People named starting points.
    pub(crate) fn seeds(&mut self, urls: Vec<PageUrl>) {
        if self.context.name(&urls) {
            self.crawl.wishes_changed(&mut self.context);
        }
        self.routing.seeds(&mut self.context, urls);
        self.route();
    }

    /// Others take the place of starting points.
    pub(crate) fn superseded(&mut self, urls: Vec<PageUrl>) {
        for url in urls {
            self.crawl.supersede(&mut self.context, &mut self.replication, url);
        }
    }

    /// The DNS answered.
    pub(crate) fn resolved(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        let owner_of = |address| self.ownership.register().around(address).map(|claim| claim.owner);
        let found = self.routing.resolved(&mut self.context, host, answer, owner_of);
        match found.to_tell {
            Some((owner, elsewhere)) if owner == self.context.me => {
                if !self.crawl.may_have_moved(&self.context, &elsewhere) {
                    self.routing.has_moved(&mut self.context, elsewhere);
                }
            }
            Some((owner, elsewhere)) => {
                self.context.ask(owner, Pending::HostMoved(elsewhere.clone()), Request::HostMoved(elsewhere));
            }
            None => self.crawl.confirmed(&self.context, host, &found.answer),
        }
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
        let (mut bound, mut own) = (Bound::new(), Vec::new());
        for host in self.routing.due(&self.context) {
            match self.routing.place(&mut self.context, &self.membership, &host) {
                Place::At(located) if self.is_out_of_scope(&located) => {
                    let items = self.routing.not_in_scope(&mut self.context, &host);
                    self.replication.delivered(&items);
                }
                Place::At(located) => {
                    let owner = self.owner_for(&located);
                    if self.holds_back(&located, owner == Some(self.context.me)) {
                        self.routing.hold_back(&self.context, &host);
                        continue;
                    }
                    own.extend(self.routing.bind(&self.context, &mut bound, located, owner));
                }
                Place::Nowhere(items) => self.replication.delivered(&items),
                Place::Unknown => {}
            }
        }
        self.admit_own(own);
        self.routing.send(&mut self.context, bound);
    }

    /// Whether a host's URLs wait here because it moves, or is being looked up. `begins` says whether it would be crawled here from now on.
    fn holds_back(&mut self, located: &LocatedHost, begins: bool) -> bool {
        let ours = self.crawl.site(&located.host).is_some();
        if ours && self.crawl.may_have_moved(&self.context, located) {
            return true;
        }
        if !ours && begins && !self.routing.is_recent(&mut self.context, &self.membership, &located.host) {
            return true;
        }
        let run = if ours { self.routing.newest_run_for(&located.host) } else { 0 };
        self.crawl.holds_back(&self.context, &located.host, run)
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
        // Whoever rests because of its memory gives subnets away: otherwise it would never use less. So does, after a while, one whose line has
        // become metered: nobody foretells that.
        let departs = self.context.outlook.back_at.is_some();
        let gives = |why: HeldBack| match why {
            HeldBack::Resting(Rest::MemoryFull { .. }) => true,
            HeldBack::Resting(Rest::Metered { .. }) => departs,
            _ => false,
        };
        let held_back = self.view().held_back().is_some_and(|why| !gives(why));
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

    /// Gives away what has work while we may ask nothing.
    pub(crate) fn tick_departure(&mut self) {
        match self.context.outlook.back_at {
            Some(back_at) => self.migrate(|migration, cx, around| migration.depart(cx, around, back_at)),
            None => self.migration.stays(),
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

/// The latest run in which one of these was named; 0 if none was named at a page of its tree.
fn newest_run(arrivals: &[Arrival]) -> u32 {
    arrivals.iter().filter(|arrival| arrival.place.is_some()).map(|arrival| arrival.run).max().unwrap_or(0)
}
