//! State machine of migration: judges our subnets, hands them over, takes over those of others, and knows who had them.

use super::{
    OwnershipHistories,
    departure::Departure,
    handover::{Immovable, Incoming, MAX_OUTGOING, Offer, Outgoing, Proposal, Stage, Step, Surroundings},
    judge::{Judge, Load},
};
use crate::{context::Context, crawl::Crawl, signal::Signal};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    fetch::FetchReport,
    ids::Ticket,
    journal::JournalEntry,
    message::Response,
    ownership_history::{Holding, OwnershipHistory},
    subnet::Subnet,
    time::WallTime,
    url::Host,
};
use std::collections::BTreeSet;

/// Subnets that move, those that should, and who had them.
#[derive(Default)]
pub(crate) struct Migration {
    outgoing: Outgoing,
    incoming: Incoming,
    departure: Departure,
    judge: Judge,
    load: Load,
    history: OwnershipHistories,
    /// Subnets that stay here, whoever is nearer or less busy; as many as the operator named.
    pinned: BTreeSet<Subnet>,
}

/// What is judged.
impl Migration {
    /// A request to a server of ours ended: if that completes an access of its subnet, it is judged.
    pub(crate) fn time_access(&mut self, cx: &mut Context, around: &Surroundings<'_>, subnet: Subnet, report: &FetchReport) {
        let proposal = self.judge.time_access(cx, around, self.load.price(), subnet, report);
        self.propose(cx, around, proposal);
    }

    /// A tree of a subnet of ours is done for this time: its access is judged as it is.
    pub(crate) fn end_access(&mut self, cx: &mut Context, around: &Surroundings<'_>, subnet: Subnet) {
        let proposal = self.judge.end_access(cx, around, self.load.price(), subnet);
        self.propose(cx, around, proposal);
    }

    /// Counts what is under way; now and then looks whether we are too busy and gives subnets away.
    pub(crate) fn tick_load(&mut self, cx: &mut Context, around: &Surroundings<'_>) {
        if let Some(loads) = self.load.tick(cx, around) {
            let mut candidates = self.judge.shed_candidates(&loads);
            candidates.retain(|candidate| !self.pinned.contains(&candidate.unit));
            let proposals = loads.shed(cx, candidates);
            self.propose(cx, around, proposals);
        }
    }

    /// A subnet is not ours any more.
    pub(crate) fn forget_accesses(&mut self, subnet: &Subnet) {
        self.judge.forget(subnet);
    }

    /// How a subnet of ours was judged last, in a sentence.
    pub(crate) fn last_judgement(&self, cx: &Context, subnet: &Subnet) -> Option<String> {
        self.judge.last_judgement(cx, subnet)
    }

    /// Our load and our price in thousandths, as they are told.
    pub(crate) fn load_told(&self) -> (u32, u32) {
        self.load.told()
    }
}

/// What is handed over.
impl Migration {
    /// Begins to hand subnets of ours over, as far as that can be done now.
    pub(crate) fn propose(&mut self, cx: &mut Context, around: &Surroundings<'_>, proposals: impl IntoIterator<Item = Proposal>) {
        for proposal in proposals.into_iter().filter(|proposal| !self.pinned.contains(&proposal.subnet)) {
            self.outgoing.offer(cx, around, proposal);
        }
    }

    /// The operator keeps these subnets here from now on, and no others.
    pub(crate) fn pin(&mut self, subnets: BTreeSet<Subnet>) {
        self.pinned = subnets;
    }

    /// This access point will ask nothing until then: subnets that have work meanwhile go, as many at a time as may.
    pub(crate) fn depart(&mut self, cx: &mut Context, around: &Surroundings<'_>, back_at: WallTime) {
        let room = MAX_OUTGOING.saturating_sub(self.outgoing.len());
        let proposals = self.departure.next(cx, around, back_at, room, &self.pinned);
        self.propose(cx, around, proposals);
    }

    /// It goes on asking.
    pub(crate) fn stays(&mut self) {
        self.departure.forget();
    }

    /// Whether a subnet can be handed over to another member now; the epoch of our claim to it.
    pub(crate) fn may_move(&self, cx: &Context, around: &Surroundings<'_>, subnet: &Subnet, to: &AccessPoint) -> Result<u64, Immovable> {
        self.outgoing.may_move(cx, around, subnet, to)
    }

    /// The member that we offered a subnet to answered, or did not.
    pub(crate) fn offer_answered(&mut self, cx: &mut Context, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        if self.outgoing.answered(cx, subnet, from, answer) {
            self.call_off(cx, subnet);
        }
    }

    /// The subnets of ours on their way to others, in address order.
    pub(crate) fn outgoing(&self) -> Vec<Subnet> {
        self.outgoing.subnets()
    }

    /// Takes a hand-over one step further, if it is time.
    pub(crate) fn step(&mut self, cx: &mut Context, around: &Surroundings<'_>, subnet: Subnet) {
        let is_released = self.outgoing.stage_of(&subnet) == Some(Stage::Releasing);
        if self.pinned.contains(&subnet) && !is_released {
            return self.call_off(cx, subnet);
        }
        match self.outgoing.next_step(cx, around, &subnet) {
            Step::Wait => {}
            Step::CallOff => self.call_off(cx, subnet),
            Step::Stop => self.outgoing.enter_stage(cx, &subnet, Stage::Stopping),
            Step::Close => {
                let row = self.last_row(around.crawl, subnet);
                cx.signal(Signal::HandOverCloses(row.map(Box::new)));
                self.outgoing.enter_stage(cx, &subnet, Stage::Closing);
            }
            Step::Release => self.outgoing.release(cx, around, &subnet),
        }
    }

    /// Forgets subnets that were offered to us and have taken too long.
    pub(crate) fn expire_incoming(&mut self, cx: &Context) {
        self.incoming.expire(cx.now.moment);
    }

    fn call_off(&mut self, cx: &mut Context, subnet: Subnet) {
        if let Some(to) = self.outgoing.call_off(cx, subnet) {
            self.judge.refused(&subnet, to);
            self.departure.refused(cx, subnet, to);
        }
    }

    /// The release of a subnet of ours is durable and holds. Whether it is for a member that was told.
    pub(crate) fn release_stored(&mut self, cx: &mut Context, subnet: Subnet, release: SignedClaim) -> bool {
        self.outgoing.release_stored(cx, subnet, release)
    }

    /// An owner offers us a subnet.
    pub(crate) fn offered(&mut self, cx: &mut Context, around: &Surroundings<'_>, ticket: Ticket, offer: Offer) {
        self.incoming.offered(cx, around, ticket, offer);
    }

    /// An owner hands us a subnet whose journals are all here. Whether that is so; otherwise it is refused.
    #[must_use]
    pub(crate) fn handed_over(&mut self, cx: &mut Context, from: AccessPoint, ticket: Ticket, release: &SignedClaim) -> bool {
        self.incoming.handed_over(cx, from, ticket, release)
    }
}

/// What others ask of hand-overs.
impl Migration {
    /// How far everything is that moves here.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        self.outgoing.stages().chain(self.incoming.stages())
    }

    /// How far a subnet is on its way from here to another owner, or from another owner to us.
    pub(crate) fn stage_of(&self, subnet: &Subnet) -> Option<Stage> {
        self.outgoing.stage_of(subnet).or_else(|| self.incoming.stage_of(subnet))
    }

    /// How many subnets are on their way out, and on their way in.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        (self.outgoing.len(), self.incoming.len())
    }

    /// How many subnets were handed to us and are not claimed yet.
    pub(crate) fn handed(&self) -> usize {
        self.incoming.handed()
    }

    /// To whom a subnet of ours is on its way and copied.
    pub(crate) fn next_owner(&self, subnet: &Subnet) -> Option<AccessPoint> {
        self.outgoing.next_owner(subnet)
    }

    /// Whether nothing may be asked in a subnet of ours, because it is about to go.
    pub(crate) fn has_stopped(&self, subnet: &Subnet) -> bool {
        self.outgoing.has_stopped(subnet)
    }

    /// Whether a subnet was handed to us with all its journals by the owner who released it at this epoch.
    pub(crate) fn was_handed(&self, subnet: &Subnet, released_at: u64) -> bool {
        self.incoming.was_handed(subnet, released_at)
    }
}

/// What is remembered of owners.
impl Migration {
    /// A claim holds: its owner is entered. What moved under an earlier epoch has arrived.
    pub(crate) fn claim_holds(&mut self, cx: &Context, claim: &Claim) {
        if claim.released {
            return;
        }
        let Claim { subnet, epoch, owner, reason, .. } = *claim;
        self.incoming.claimed(&subnet, epoch);
        self.outgoing.claimed(&subnet, epoch);
        self.history.enter(subnet, Holding { owner, epoch, reason, claimed_at: cx.now.wall, released_text: None });
    }

    /// What the owners before us wrote down, each its own: all know who had it, the latest one what is to be learnt of it.
    pub(crate) fn read_history(&mut self, cx: &Context, subnet: Subnet, told: Vec<OwnershipHistory>) {
        let learnt = told.iter().filter(|history| !history.learnt.is_empty());
        if let Some(latest) = learnt.max_by_key(|history| history.holdings.last().map(|last| last.epoch)) {
            self.judge.learn(cx, subnet, latest);
        }
        for history in told {
            self.history.merge(subnet, history);
        }
    }

    /// The last row: what the next owner should know of the subnet as a whole; none if the subnet has no journal.
    fn last_row(&mut self, crawl: &Crawl, subnet: Subnet) -> Option<(Host, JournalEntry)> {
        let host = crawl.sites().within(&subnet).next().cloned()?;
        let history = self.history.leave(subnet, &self.outgoing.reason(&subnet), self.judge.learnt_of(&subnet));
        Some((host, JournalEntry::OwnershipHistory(history)))
    }

    /// In a journal that begins, or begins again with us, stands what is known of the owners before, if it is the subnet's first.
    pub(crate) fn first_row(&self, crawl: &Crawl, subnet: &Subnet, host: &Host) -> Option<JournalEntry> {
        let first = crawl.sites().within(subnet).next();
        let history = self.history.of(subnet).filter(|_| first == Some(host))?;
        Some(JournalEntry::OwnershipHistory(OwnershipHistory { learnt: self.judge.learnt_of(subnet), holdings: history.holdings.clone() }))
    }

    /// Who had a subnet, as far as is known here.
    pub(crate) fn history_of(&self, subnet: &Subnet) -> Option<Vec<Holding>> {
        self.history.of(subnet).map(|history| history.holdings.clone())
    }

    /// Of how many subnets the previous owners are known.
    pub(crate) fn histories(&self) -> usize {
        self.history.len()
    }
}
