//! Settlement of a subnet without an owner: its steward runs the search, one probe after another, and awards it.
//!
//! While a subnet has no owner its steward holds its politeness: one contact at a time, a rest after each, and the rest that
//! is left over is told to the new owner with the award.

use crate::{
    context::Context,
    delegation::{
        Delegation, Step, Verdict,
        address_assignment::{address_steward_of, may_settle, standing_around},
        prober::{ProbeOrder, open_chain},
        procedure::{Procedure, State},
        reads::DelegationReads,
        search::Surroundings,
    },
    ownership::register::claimable,
    pending::Pending,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    fetch::{ProbeReport, ProbeTarget},
    message::{Request, Response},
    receipt::SignedReceipt,
    subnet::Subnet,
    time::Millis,
    vote::{AwardedPart, SignedPart},
};

/// How long a probe by another member may take, its queue included.
const PROBE_TIMEOUT: Millis = 25_000;

/// For so long after the living changed a steward may be a new one.
const NEW_DUTY: Millis = 10_000;

/// What a probe by a steward before us may have taken.
const LONG_PROBE: Millis = 100;

/// How long an awarded claim may take to be heard of.
const AWARD_TIMEOUT: Millis = 10_000;

/// Under which class subnets are counted that find no place in the queue. They are asked for again while URLs wait for their owner.
const QUEUE_FULL: &str = "subnets waiting for a delegation round beyond the limit";

/// How long the chosen one is left in peace before it is reminded.
const AWARD_AGAIN: Millis = 1_000;

/// Addresses without an owner, and who settles their subnets.
impl Delegation {
    /// An address has no owner: its steward sees to it that it gets one.
    pub(super) fn find_owner(&mut self, cx: &mut Context, others: DelegationReads<'_>, target: ProbeTarget) {
        let steward = address_steward_of(cx.me, others.members, target.address.ip());
        if steward == cx.me {
            return self.reserve(cx, others, target);
        }
        let subnet = cx.unit_of(target.address.ip());
        if self.reservations.should_ask(subnet, cx.now.moment) {
            cx.ask(steward, Pending::FindOwner, Request::FindOwner(subnet, target));
        }
    }

    /// A member asks us, the steward of an address, to see to it that it gets an owner. Which subnet is settled is ours to say.
    /// Returns the claim that says whose it is, if it is any member's.
    #[must_use]
    pub(crate) fn find_owner_for(&mut self, cx: &mut Context, others: DelegationReads<'_>, target: ProbeTarget) -> Option<SignedClaim> {
        let standing = standing_around(others.ownership, target.address.ip());
        if standing.is_none() {
            self.reserve(cx, others, target);
        }
        standing
    }

    /// The steward of an address reserved it for us, the steward of the subnet that is to be settled.
    #[must_use]
    pub(crate) fn settle_reserved(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        subnet: Subnet,
        target: ProbeTarget,
    ) -> Response {
        if !subnet.contains(target.address.ip()) || !claimable(&subnet) {
            cx.refuse("invalid delegation requests");
            return Response::Refused("the address is not in the subnet, or the subnet cannot be owned".to_owned());
        }
        let standing = standing_around(others.ownership, target.address.ip());
        if standing.is_none() {
            self.settle(cx, others, subnet, target);
        }
        Response::FindingOwner(standing)
    }

    /// As steward of an address without an owner: reserve it for the steward of its subnet. The subnet stays the same for as long as
    /// any member wants an owner, whatever hierarchy we may change to meanwhile.
    fn reserve(&mut self, cx: &mut Context, others: DelegationReads<'_>, target: ProbeTarget) {
        let (address, now) = (target.address.ip(), cx.now.moment);
        if !others.ownership.is_synced() || others.ownership.register().around(address).is_some() {
            return;
        }
        let Some(subnet) = self.reservations.reserve(address, cx.unit_of(address), now) else {
            return cx.refuse("address reservations beyond the limit");
        };
        let steward = others.members.stewards_of(&subnet).first().copied().unwrap_or(cx.me);
        if steward == cx.me {
            self.settle(cx, others, subnet, target);
        } else if self.reservations.should_tell(address, now) {
            cx.ask(steward, Pending::FindOwner, Request::Reserve(subnet, target));
        }
    }

    /// We are to find an owner for a subnet that has none: begin, or queue.
    pub(crate) fn settle(&mut self, cx: &mut Context, others: DelegationReads<'_>, subnet: Subnet, target: ProbeTarget) {
        let DelegationReads { members, ownership, .. } = others;
        if !may_settle(cx.me, ownership, &subnet, target.address.ip()) || self.rounds.is_running(&subnet) || !ownership.is_synced() {
            return;
        }
        if !members.may_claim(cx.now.moment) {
            return;
        }
        if !ownership.register().has_room_for(&subnet) {
            return cx.refuse("delegations beyond the limit of claims");
        }
        if self.rounds.running() >= cx.settings.max_parallel_rounds {
            if !self.rounds.enqueue(subnet, target) {
                cx.refuse(QUEUE_FULL);
            }
            return;
        }
        // The steward before us may have had the address probed a moment ago, and cannot always tell.
        let new_duty = members.changed_at().is_some_and(|at| cx.now.moment.since(at) < NEW_DUTY);
        let rest = if new_duty { cx.settings.politeness.rest_after(LONG_PROBE, None) } else { 0 };
        // What a steward of this subnet before us found out, if it asked us too.
        let known = self.prober.known_of(cx, &target);
        self.rounds.begin(subnet, Procedure::new(cx.settings.policy, subnet, target, cx.now, cx.now.moment.after(rest)));
        self.learn_of_probes(cx, others, subnet, known);
        self.advance(cx, others, subnet);
    }

    /// The subnets whose procedures are to go on now.
    pub(crate) fn due(&self, cx: &Context) -> Vec<Subnet> {
        self.rounds.due(cx.now.moment)
    }

    /// Goes on with a procedure that is due.
    pub(crate) fn go_on(&mut self, cx: &mut Context, others: DelegationReads<'_>, subnet: Subnet) {
        match self.rounds.get(&subnet).map(|procedure| procedure.state().clone()) {
            Some(State::Resting(_)) => self.advance(cx, others, subnet),
            Some(State::Probing(asked, _)) => self.probe_answered(cx, others, subnet, asked, None),
            Some(State::Awarded(_)) => self.award_failed(cx, others, subnet),
            Some(State::Awarding(verdict, _)) => self.award(cx, others, subnet, verdict, 0),
            None => {}
        }
    }

    /// The next subnet that waited for a procedure and need not wait any more.
    pub(crate) fn next_queued(&mut self, cx: &Context) -> Option<(Subnet, ProbeTarget)> {
        self.rounds.next_queued(cx.settings.max_parallel_rounds)
    }
}

/// The steps of a procedure.
impl Delegation {
    /// The procedure's next step, if its address has rested.
    fn advance(&mut self, cx: &mut Context, others: DelegationReads<'_>, subnet: Subnet) {
        if !self.rounds.get(&subnet).is_some_and(|procedure| procedure.is_rested(cx.now.moment)) {
            return;
        }
        match self.step_of(cx, others, subnet, Procedure::next_step) {
            Some(Step::Ask(prober)) => self.ask_to_probe(cx, others, subnet, prober),
            Some(Step::Settle(verdict)) => self.award(cx, others, subnet, verdict, 0),
            None => {}
        }
    }

    /// What the search wants next, or would want.
    fn step_of(
        &mut self,
        cx: &Context,
        others: DelegationReads<'_>,
        subnet: Subnet,
        of: impl Fn(&mut Procedure, &Surroundings<'_>, u32) -> Option<Step>,
    ) -> Option<Step> {
        let procedure = self.rounds.get_mut(&subnet)?;
        let live = procedure.candidates(cx.me, others);
        let register = others.ownership.register();
        let held: usize = live.iter().map(|member| register.count(member)).sum();
        let mean = held as f64 / live.len() as f64;
        let load = |who| if held == 0 { 1.0 } else { register.count(&who) as f64 / mean };
        let (hierarchy, delegated, knowledge) = (&cx.hierarchy, &self.delegated, &self.knowledge);
        let around = Surroundings { hierarchy, delegated, knowledge, live: &live, load: &load };
        of(procedure, &around, cx.settings.contacts_per_subnet)
    }

    fn ask_to_probe(&mut self, cx: &mut Context, others: DelegationReads<'_>, subnet: Subnet, prober: AccessPoint) {
        let Some(procedure) = self.rounds.get_mut(&subnet) else { return };
        let (target, before) = procedure.ask(prober, cx.now.moment.after(PROBE_TIMEOUT));
        if prober != cx.me {
            cx.ask(prober, Pending::Probe { subnet }, Request::Probe(subnet, target, before));
        } else if let Err(why) = self.prober.probe_myself(cx, others.members, ProbeOrder { subnet, target, before }) {
            *cx.counters.declined.entry(why).or_default() += 1;
            self.probe_answered(cx, others, subnet, prober, None);
        }
    }

    /// A prober answered us, the steward.
    pub(crate) fn prober_answered(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        subnet: Subnet,
        from: AccessPoint,
        answer: Option<Response>,
    ) {
        match answer {
            Some(Response::Probed(report, receipt)) => {
                let chain = self.rounds.get(&subnet).map(|procedure| [procedure.chain(), std::slice::from_ref(&receipt)].concat());
                let follows = chain.is_some_and(|chain| open_chain(cx, others.members, subnet, &chain).is_some());
                let fits = follows && receipt.open().is_ok_and(|opened| opened.prober == from && opened.rtt_us == report.rtt_us.ok());
                if !fits {
                    cx.refuse("receipts that do not match the probe's answer");
                }
                self.probe_answered(cx, others, subnet, from, fits.then_some((report, receipt)));
            }
            Some(Response::ProbeDeclined(why, known)) => {
                *cx.counters.declined_by_others.entry(why).or_default() += 1;
                self.learn_of_probes(cx, others, subnet, known);
                self.probe_answered(cx, others, subnet, from, None);
            }
            Some(_) | None => self.probe_answered(cx, others, subnet, from, None),
        }
    }

    /// A prober answered; the address rests before anything else happens to it.
    pub(super) fn probe_answered(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        subnet: Subnet,
        from: AccessPoint,
        answer: Option<(ProbeReport, SignedReceipt)>,
    ) {
        let Some(procedure) = self.rounds.get_mut(&subnet).filter(|procedure| procedure.waits_for(from)) else { return };
        let report = answer.as_ref().map(|(report, _)| *report);
        let rest = cx.settings.politeness.rest_after(report.map_or(0, |report| report.took), None);
        // The receipt goes on to the member that is asked next. What was measured is for the search to remember, and for others to learn
        // from the claim: known twice, an answer would look more certain than it is.
        if let Some((_, receipt)) = answer {
            let chain = procedure.add(receipt);
            self.prober.note(cx, others.members, subnet, procedure.target(), chain);
        }
        procedure.answered(from, report.and_then(|report| report.rtt_us.ok()), cx.now.moment.after(rest));
        // If that decides it there is no need to wait: the new owner is told how long the address rests.
        if let Some(Step::Settle(verdict)) = self.step_of(cx, others, subnet, Procedure::peek) {
            self.award(cx, others, subnet, verdict, rest);
        }
    }

    /// Probes of a subnet that a member made before us, for a steward before us.
    fn learn_of_probes(&mut self, cx: &Context, others: DelegationReads<'_>, subnet: Subnet, known: Vec<SignedReceipt>) {
        let Some(chain) = open_chain(cx, others.members, subnet, &known).filter(|chain| !chain.is_empty()) else { return };
        if let Some(procedure) = self.rounds.get_mut(&subnet) {
            procedure.learn(&chain, known);
        }
    }
}

/// The end of a procedure.
impl Delegation {
    /// It is decided who gets the subnet, whose address rests for so long.
    fn award(&mut self, cx: &mut Context, others: DelegationReads<'_>, subnet: Subnet, verdict: Verdict, rest: Millis) {
        let epoch = others.ownership.register().next_epoch(&subnet);
        let Some(procedure) = self.rounds.get_mut(&subnet) else { return };
        let mut award = procedure.award(subnet, epoch, &verdict, cx.now.moment.after(AWARD_TIMEOUT));
        let around = others.ownership.register().covering(&subnet).filter(|around| around.owner == cx.me && !around.released);
        award.part = around.map(|around| {
            let within = (around.subnet, around.epoch);
            Box::new(SignedPart::sign(AwardedPart { part: subnet, to: verdict.owner, within }, &cx.key))
        });
        if verdict.owner == cx.me {
            self.rest_subnet(cx, subnet, rest);
            cx.signal(Signal::Awarded(award));
        } else {
            cx.ask(verdict.owner, Pending::Award { subnet }, Request::Award { award, rest });
        }
    }

    /// The chosen one is about to leave.
    pub(crate) fn award_declined(&mut self, cx: &Context, subnet: Subnet, by: AccessPoint) {
        let rest = cx.settings.politeness.rest_after(LONG_PROBE, None);
        if let Some(procedure) = self.rounds.get_mut(&subnet) {
            procedure.declined(by, cx.now.moment.after(rest));
        }
    }

    /// The chosen one did not answer or did not claim. If it is there it is reminded, for it may have claimed unheard of; another
    /// one would make two owners. If not, the search begins anew, with who is alive now.
    pub(crate) fn award_failed(&mut self, cx: &mut Context, others: DelegationReads<'_>, subnet: Subnet) {
        let unclaimed = others.ownership.register().claim(&subnet).is_none();
        let again = self.rounds.get(&subnet).is_some_and(Procedure::may_award_again);
        if again
            && unclaimed
            && let Some(Step::Settle(verdict)) = self.step_of(cx, others, subnet, Procedure::peek)
            && others.members.live().contains(&verdict.owner)
            && let Some(procedure) = self.rounds.get_mut(&subnet)
        {
            return procedure.award_again(verdict, cx.now.moment.after(AWARD_AGAIN));
        }
        if !self.rounds.fail(&subnet, unclaimed) {
            cx.refuse(QUEUE_FULL);
        }
    }
}
