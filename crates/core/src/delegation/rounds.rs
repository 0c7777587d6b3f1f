//! Nobody's subnet: who shall have it? The subnet's steward runs the search, one probe after another, and awards it.
//!
//! While a subnet has no owner its steward holds its politeness: one contact at a time, a rest after each, and the rest that
//! is left over is told to the new owner with the award.

use crate::delegation::{Step, Verdict};
use crate::{
    crawler::{Crawler, Pending, Procedure, ProcedureState},
    delegation::search::{Search, Surroundings},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Answer, Claim, ClaimReason, MAX_ANSWERS},
    fetch::{ProbeReport, ProbeTarget},
    message::{Award, Request},
    receipt::SignedReceipt,
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::collections::BTreeSet;

/// How long a probe by another member may take, its queue included.
const PROBE_PATIENCE: Millis = 25_000;

/// For so long after the living changed a steward may be a new one.
const NEW_DUTY: Millis = 10_000;

/// What a probe by a steward before us may have taken.
const LONG_PROBE: Millis = 100;

/// How long an awarded claim may take to be heard of.
const AWARD_PATIENCE: Millis = 10_000;

/// How long the chosen one is left in peace before it is reminded, and how often it is chosen before the search begins anew.
const AWARD_AGAIN: Millis = 1_000;
const MAX_AWARDS: u32 = 4;

/// The longest rest that a subnet is given: that of an answer that took as long as any may.
const MAX_REST: Millis = 600_000;

/// How many subnets may wait for a procedure.
pub(crate) const MAX_QUEUED: usize = 100_000;

impl Crawler {
    /// We are to find an owner for a subnet that nobody holds: begin, or queue.
    pub(crate) fn settle(&mut self, subnet: Subnet, target: ProbeTarget) {
        if !self.may_settle(&subnet, target.address.ip()) || self.delegation.rounds.contains_key(&subnet) || !self.ownership.is_synced() {
            return;
        }
        if !self.membership.may_claim(self.context.now.moment) {
            return;
        }
        if !self.ownership.register.has_room_for(&subnet) {
            return self.refuse("delegations beyond the limit of claims");
        }
        if self.delegation.rounds.len() >= self.context.settings.max_parallel_rounds {
            if self.delegation.queue.len() < MAX_QUEUED && !self.delegation.queue.iter().any(|(queued, _)| *queued == subnet) {
                self.delegation.queue.push_back((subnet, target));
            }
            return;
        }
        let search = Search::new(self.context.settings.policy, subnet);
        // The steward before us may have had the address probed a moment ago, and cannot always tell.
        let new_duty = self.membership.changed_at().is_some_and(|at| self.context.now.moment.since(at) < NEW_DUTY);
        let rest = if new_duty { self.crawl.scheduler.politeness().rest_after(LONG_PROBE, None) } else { 0 };
        let state = ProcedureState::Resting(self.context.now.moment.after(rest));
        self.delegation
            .rounds
            .insert(subnet, Procedure { search, target, state, awards: 0, unwilling: BTreeSet::new(), contacts: 0, chain: Vec::new() });
        self.recall_probes(subnet);
        self.advance(subnet);
    }

    pub(crate) fn tick_settlement(&mut self) {
        self.tick_watched();
        let now = self.context.now.moment;
        let due: Vec<_> = self.delegation.rounds.iter().filter(|(_, p)| p.due(now)).map(|(subnet, _)| *subnet).collect();
        for subnet in due {
            let timed_out = match self.delegation.rounds.get(&subnet).map(|procedure| &procedure.state) {
                Some(ProcedureState::Probing(asked, _)) => Some(*asked),
                Some(ProcedureState::Awarded(_)) => {
                    self.award_failed(subnet);
                    None
                }
                Some(ProcedureState::Awarding(verdict, _)) => {
                    let verdict = verdict.clone();
                    self.award(subnet, verdict, 0);
                    continue;
                }
                Some(ProcedureState::Resting(_)) | None => None,
            };
            match timed_out {
                Some(asked) => self.probe_answered(subnet, asked, None),
                None => self.advance(subnet),
            }
        }
        while self.delegation.rounds.len() < self.context.settings.max_parallel_rounds {
            let Some((subnet, target)) = self.delegation.queue.pop_front() else { break };
            self.settle(subnet, target);
        }
        if self.delegation.asked.len() > MAX_QUEUED {
            self.delegation.asked.clear();
        }
    }

    /// The procedure's next step, if its address has rested.
    pub(crate) fn advance(&mut self, subnet: Subnet) {
        let now = self.context.now.moment;
        let rested = |procedure: &Procedure| matches!(procedure.state, ProcedureState::Resting(until) if until <= now);
        if !self.delegation.rounds.get(&subnet).is_some_and(rested) {
            return;
        }
        match self.next_step(subnet) {
            Some(Step::Ask(prober)) => self.ask_to_probe(subnet, prober),
            Some(Step::Settle(verdict)) => self.award(subnet, verdict, 0),
            None => {}
        }
    }

    /// What the search wants next; once the subnet has had all its contacts, the best that is known.
    pub(crate) fn next_step(&mut self, subnet: Subnet) -> Option<Step> {
        let live = self.candidates(subnet);
        let spent = self.delegation.rounds.get(&subnet)?.chain.len() >= self.context.settings.contacts_per_subnet as usize;
        let procedure = self.delegation.rounds.get_mut(&subnet)?;
        let held: usize = live.iter().map(|member| self.ownership.register.count(member)).sum();
        let mean = held as f64 / live.len() as f64;
        let ownership = &self.ownership.register;
        let load = |who| if held == 0 { 1.0 } else { ownership.count(&who) as f64 / mean };
        let around = Surroundings {
            hierarchy: &self.context.hierarchy,
            delegated: &self.delegation.delegated,
            knowledge: &self.delegation.knowledge,
            live: &live,
            load: &load,
        };
        match procedure.search.next(&around) {
            Step::Ask(_) if spent => procedure.search.settle_now(&live).map(Step::Settle),
            step => Some(step),
        }
    }

    /// The living who would take a subnet, as far as is known; all of them if none would.
    pub(crate) fn candidates(&self, subnet: Subnet) -> Vec<AccessPoint> {
        let unwilling = self.delegation.rounds.get(&subnet).map(|procedure| &procedure.unwilling);
        let goes = |who: &AccessPoint| {
            self.shutdown.is_leaving() && *who == self.context.me || unwilling.is_some_and(|unwilling| unwilling.contains(who))
        };
        let (live, stay) = (self.live(), self.live().into_iter().filter(|who| !goes(who)).collect::<Vec<_>>());
        if stay.is_empty() { live } else { stay }
    }

    /// The next step without a trace: the search goes on as if it had not been asked.
    pub(crate) fn peek(&mut self, subnet: Subnet) -> Option<Step> {
        let search = self.delegation.rounds.get(&subnet)?.search.clone();
        let step = self.next_step(subnet);
        if let Some(procedure) = self.delegation.rounds.get_mut(&subnet) {
            procedure.search = search;
        }
        step
    }

    pub(crate) fn ask_to_probe(&mut self, subnet: Subnet, prober: AccessPoint) {
        let Some(procedure) = self.delegation.rounds.get_mut(&subnet) else { return };
        procedure.state = ProcedureState::Probing(prober, self.context.now.moment.after(PROBE_PATIENCE));
        let (target, before) = (procedure.target.clone(), procedure.chain.clone());
        if prober != self.context.me {
            self.ask(prober, Pending::Probe { subnet }, Request::Probe(subnet, target, before));
        } else if let Err(why) = self.probe_myself(subnet, target, before) {
            *self.context.counters.declined.entry(why).or_default() += 1;
            self.probe_answered(subnet, prober, None);
        }
    }

    /// A prober answered; the address rests before anything else happens to it.
    pub(crate) fn probe_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<(ProbeReport, SignedReceipt)>) {
        let asked = |procedure: &Procedure| matches!(procedure.state, ProcedureState::Probing(asked, _) if asked == from);
        if !self.delegation.rounds.get(&subnet).is_some_and(asked) {
            return;
        }
        let report = answer.as_ref().map(|(report, _)| *report);
        let rest = self.crawl.scheduler.politeness().rest_after(report.map_or(0, |report| report.took), None);
        if let Some((_, receipt)) = answer {
            self.note_receipt(subnet, receipt);
        }
        let Some(procedure) = self.delegation.rounds.get_mut(&subnet) else { return };
        procedure.search.answer(from, report.and_then(|report| report.rtt_us.ok()));
        procedure.state = ProcedureState::Resting(self.context.now.moment.after(rest));
        // If that decides it there is no need to wait: the new owner is told how long the address rests.
        if let Some(Step::Settle(verdict)) = self.peek(subnet) {
            self.award(subnet, verdict, rest);
        }
    }

    pub(crate) fn award(&mut self, subnet: Subnet, verdict: Verdict, rest: Millis) {
        let epoch = self.ownership.register.next_epoch(&subnet);
        if let Some(procedure) = self.delegation.rounds.get_mut(&subnet) {
            procedure.state = ProcedureState::Awarded(self.context.now.moment.after(AWARD_PATIENCE));
            procedure.awards += 1;
        }
        let Some(procedure) = self.delegation.rounds.get(&subnet) else { return };
        let Verdict { owner, rtt_us, runner_up, .. } = verdict;
        let probes = procedure.contacts;
        let others = procedure.search.measured().into_iter().filter(|(_, who)| *who != owner).take(MAX_ANSWERS);
        let answers = others.map(|(rtt_us, who)| Answer { rtt_us, prober: who.into() }).collect();
        let award = Award { subnet, epoch, rtt_us, runner_up, probes, answers };
        if owner == self.context.me {
            self.front_rest_subnet(subnet, rest);
            self.awarded(award);
        } else {
            self.ask(owner, Pending::Award { subnet }, Request::Award { award, rest });
        }
    }

    /// The chosen one is about to leave: the others are looked at again, once the address has rested.
    pub(crate) fn award_declined(&mut self, subnet: Subnet, by: AccessPoint) {
        let rest = self.crawl.scheduler.politeness().rest_after(LONG_PROBE, None);
        if let Some(procedure) = self.delegation.rounds.get_mut(&subnet) {
            procedure.unwilling.insert(by);
            procedure.state = ProcedureState::Resting(self.context.now.moment.after(rest));
        }
    }

    /// The chosen one did not answer or did not claim. If it is there it is reminded, for it may have claimed unheard of; another
    /// one would make two owners. If not, the search begins anew, with who is alive now.
    pub(crate) fn award_failed(&mut self, subnet: Subnet) {
        let again = self.delegation.rounds.get(&subnet).is_some_and(|procedure| procedure.awards < MAX_AWARDS);
        if again
            && self.ownership.register.claim(&subnet).is_none()
            && let Some(Step::Settle(verdict)) = self.peek(subnet)
            && self.live().contains(&verdict.owner)
            && let Some(procedure) = self.delegation.rounds.get_mut(&subnet)
        {
            procedure.state = ProcedureState::Awarding(verdict, self.context.now.moment.after(AWARD_AGAIN));
            return;
        }
        let Some(procedure) = self.delegation.rounds.remove(&subnet) else { return };
        if self.ownership.register.claim(&subnet).is_none() {
            self.delegation.queue.push_back((subnet, procedure.target));
        }
    }

    /// A steward chose us: claim it. Persist before we speak: the claim counts once it is stored.
    pub(crate) fn awarded(&mut self, award: Award) {
        let Award { subnet, epoch, rtt_us, runner_up, probes, mut answers } = award;
        let free = self.ownership.register.claim(&subnet).is_none() && epoch == self.ownership.register.next_epoch(&subnet);
        if free
            && !self.shutdown.is_leaving()
            && self.membership.may_claim(self.context.now.moment)
            && self.ownership.begin_claim(subnet, epoch)
        {
            let owner = self.context.me;
            let reason = ClaimReason::Awarded;
            answers.truncate(MAX_ANSWERS);
            self.make_claims(vec![Claim { subnet, epoch, owner, rtt_us, runner_up, probes, reason, released: false, answers }]);
        }
    }

    /// Leave every address of this subnet alone for so long, but not for ever: a member may have said it.
    pub(crate) fn front_rest_subnet(&mut self, subnet: Subnet, rest: Millis) {
        let until = self.context.now.moment.after(rest.min(MAX_REST));
        self.delegation.rests.insert(subnet, until);
    }
}

impl Procedure {
    fn due(&self, now: Moment) -> bool {
        match self.state {
            ProcedureState::Resting(until) | ProcedureState::Probing(_, until) | ProcedureState::Awarded(until) => until <= now,
            ProcedureState::Awarding(_, until) => until <= now,
        }
    }
}
