//! Nobody's subnet: who shall have it? The subnet's steward runs the search, one probe after another, and awards it.
//!
//! While a subnet has no owner its steward holds its politeness: one contact at a time, a rest after each, and the rest that
//! is left over is told to the new owner with the award.

use super::{
    Crawler, Pending, Procedure, ProcedureState,
    search::{Search, Surroundings},
};
use crate::{
    logic::delegation::{Step, Verdict},
    model::{
        access_point::AccessPoint,
        claim::{Answer, Claim, ClaimReason, MOST_ANSWERS},
        fetch::{ProbeReport, ProbeTarget},
        message::{Award, Request},
        receipt::SignedReceipt,
        subnet::Subnet,
        time::{Millis, Moment},
    },
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
const MOST_AWARDS: u32 = 4;

/// The longest rest that a subnet is given: that of an answer that took as long as any may.
const LONGEST_REST: Millis = 600_000;

/// How many subnets may wait for a procedure.
pub(super) const MOST_QUEUED: usize = 100_000;

impl Crawler {
    /// We are to find an owner for a subnet that nobody holds: begin, or queue.
    pub(super) fn settle(&mut self, subnet: Subnet, target: ProbeTarget) {
        if !self.may_settle(&subnet, target.address.ip()) || self.procedures.contains_key(&subnet) || !self.synced {
            return;
        }
        if !self.roster.may_claim(self.now.moment) {
            return;
        }
        if !self.ownership.has_room_for(&subnet) {
            return self.refuse("subnets without an owner beyond the claims that are kept");
        }
        if self.procedures.len() >= self.settings.settle_at_once {
            if self.settle_queue.len() < MOST_QUEUED && !self.settle_queue.iter().any(|(queued, _)| *queued == subnet) {
                self.settle_queue.push_back((subnet, target));
            }
            return;
        }
        let search = Search::new(self.settings.policy, subnet);
        // The steward before us may have had the address probed a moment ago, and cannot always tell.
        let new_duty = self.members_changed_at.is_some_and(|at| self.now.moment.since(at) < NEW_DUTY);
        let rest = if new_duty { self.front.politeness().rest_after(LONG_PROBE, None) } else { 0 };
        let state = ProcedureState::Resting(self.now.moment.after(rest));
        self.procedures
            .insert(subnet, Procedure { search, target, state, awards: 0, unwilling: BTreeSet::new(), contacts: 0, chain: Vec::new() });
        self.recall_probes(subnet);
        self.advance(subnet);
    }

    pub(super) fn tick_settlement(&mut self) {
        self.tick_watched();
        let now = self.now.moment;
        let due: Vec<_> = self.procedures.iter().filter(|(_, p)| p.due(now)).map(|(subnet, _)| *subnet).collect();
        for subnet in due {
            let timed_out = match self.procedures.get(&subnet).map(|procedure| &procedure.state) {
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
        while self.procedures.len() < self.settings.settle_at_once {
            let Some((subnet, target)) = self.settle_queue.pop_front() else { break };
            self.settle(subnet, target);
        }
        if self.settle_asked.len() > MOST_QUEUED {
            self.settle_asked.clear();
        }
    }

    /// The procedure's next step, if its address has rested.
    fn advance(&mut self, subnet: Subnet) {
        let now = self.now.moment;
        let rested = |procedure: &Procedure| matches!(procedure.state, ProcedureState::Resting(until) if until <= now);
        if !self.procedures.get(&subnet).is_some_and(rested) {
            return;
        }
        match self.next_step(subnet) {
            Some(Step::Ask(prober)) => self.ask_to_probe(subnet, prober),
            Some(Step::Settle(verdict)) => self.award(subnet, verdict, 0),
            None => {}
        }
    }

    /// What the search wants next; once the subnet has had all its contacts, the best that is known.
    fn next_step(&mut self, subnet: Subnet) -> Option<Step> {
        let live = self.candidates(subnet);
        let spent = self.procedures.get(&subnet)?.chain.len() >= self.settings.contacts_per_subnet as usize;
        let procedure = self.procedures.get_mut(&subnet)?;
        let held: usize = live.iter().map(|member| self.ownership.count(member)).sum();
        let mean = held as f64 / live.len() as f64;
        let ownership = &self.ownership;
        let load = |who| if held == 0 { 1.0 } else { ownership.count(&who) as f64 / mean };
        let around =
            Surroundings { hierarchy: &self.hierarchy, delegated: &self.delegated, knowledge: &self.knowledge, live: &live, load: &load };
        match procedure.search.next(&around) {
            Step::Ask(_) if spent => procedure.search.settle_now(&live).map(Step::Settle),
            step => Some(step),
        }
    }

    /// The living who would take a subnet, as far as is known; all of them if none would.
    fn candidates(&self, subnet: Subnet) -> Vec<AccessPoint> {
        let unwilling = self.procedures.get(&subnet).map(|procedure| &procedure.unwilling);
        let goes = |who: &AccessPoint| self.leaving && *who == self.me || unwilling.is_some_and(|unwilling| unwilling.contains(who));
        let (live, stay) = (self.live(), self.live().into_iter().filter(|who| !goes(who)).collect::<Vec<_>>());
        if stay.is_empty() { live } else { stay }
    }

    /// The next step without a trace: the search goes on as if it had not been asked.
    fn peek(&mut self, subnet: Subnet) -> Option<Step> {
        let search = self.procedures.get(&subnet)?.search.clone();
        let step = self.next_step(subnet);
        if let Some(procedure) = self.procedures.get_mut(&subnet) {
            procedure.search = search;
        }
        step
    }

    fn ask_to_probe(&mut self, subnet: Subnet, prober: AccessPoint) {
        let Some(procedure) = self.procedures.get_mut(&subnet) else { return };
        procedure.state = ProcedureState::Probing(prober, self.now.moment.after(PROBE_PATIENCE));
        let (target, before) = (procedure.target.clone(), procedure.chain.clone());
        if prober != self.me {
            self.ask(prober, Pending::Probe { subnet }, Request::Probe(subnet, target, before));
        } else if let Err(why) = self.probe_myself(subnet, target, before) {
            *self.counters.declined.entry(why).or_default() += 1;
            self.probe_answered(subnet, prober, None);
        }
    }

    /// A prober answered; the address rests before anything else happens to it.
    pub(super) fn probe_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<(ProbeReport, SignedReceipt)>) {
        let asked = |procedure: &Procedure| matches!(procedure.state, ProcedureState::Probing(asked, _) if asked == from);
        if !self.procedures.get(&subnet).is_some_and(asked) {
            return;
        }
        let report = answer.as_ref().map(|(report, _)| *report);
        let rest = self.front.politeness().rest_after(report.map_or(0, |report| report.took), None);
        if let Some((_, receipt)) = answer {
            self.note_receipt(subnet, receipt);
        }
        let Some(procedure) = self.procedures.get_mut(&subnet) else { return };
        procedure.search.answer(from, report.and_then(|report| report.rtt_us.ok()));
        procedure.state = ProcedureState::Resting(self.now.moment.after(rest));
        // If that decides it there is no need to wait: the new owner is told how long the address rests.
        if let Some(Step::Settle(verdict)) = self.peek(subnet) {
            self.award(subnet, verdict, rest);
        }
    }

    fn award(&mut self, subnet: Subnet, verdict: Verdict, rest: Millis) {
        let epoch = self.ownership.next_epoch(&subnet);
        if let Some(procedure) = self.procedures.get_mut(&subnet) {
            procedure.state = ProcedureState::Awarded(self.now.moment.after(AWARD_PATIENCE));
            procedure.awards += 1;
        }
        let Some(procedure) = self.procedures.get(&subnet) else { return };
        let Verdict { owner, rtt_us, runner_up, .. } = verdict;
        let probes = procedure.contacts;
        let others = procedure.search.measured().into_iter().filter(|(_, who)| *who != owner).take(MOST_ANSWERS);
        let answers = others.map(|(rtt_us, who)| Answer { rtt_us, prober: who.into() }).collect();
        let award = Award { subnet, epoch, rtt_us, runner_up, probes, answers };
        if owner == self.me {
            self.front_rest_subnet(subnet, rest);
            self.awarded(award);
        } else {
            self.ask(owner, Pending::Award { subnet }, Request::Award { award, rest });
        }
    }

    /// The chosen one is about to leave: the others are looked at again, once the address has rested.
    pub(super) fn award_declined(&mut self, subnet: Subnet, by: AccessPoint) {
        let rest = self.front.politeness().rest_after(LONG_PROBE, None);
        if let Some(procedure) = self.procedures.get_mut(&subnet) {
            procedure.unwilling.insert(by);
            procedure.state = ProcedureState::Resting(self.now.moment.after(rest));
        }
    }

    /// The chosen one did not answer or did not claim. If it is there it is reminded, for it may have claimed unheard of; another
    /// one would make two owners. If not, the search begins anew, with who is alive now.
    pub(super) fn award_failed(&mut self, subnet: Subnet) {
        let again = self.procedures.get(&subnet).is_some_and(|procedure| procedure.awards < MOST_AWARDS);
        if again
            && self.ownership.claim(&subnet).is_none()
            && let Some(Step::Settle(verdict)) = self.peek(subnet)
            && self.live().contains(&verdict.owner)
            && let Some(procedure) = self.procedures.get_mut(&subnet)
        {
            procedure.state = ProcedureState::Awarding(verdict, self.now.moment.after(AWARD_AGAIN));
            return;
        }
        let Some(procedure) = self.procedures.remove(&subnet) else { return };
        if self.ownership.claim(&subnet).is_none() {
            self.settle_queue.push_back((subnet, procedure.target));
        }
    }

    /// A steward chose us: claim it. Persist before we speak: the claim counts once it is stored.
    pub(super) fn awarded(&mut self, award: Award) {
        let Award { subnet, epoch, rtt_us, runner_up, probes, mut answers } = award;
        let free = self.ownership.claim(&subnet).is_none() && epoch == self.ownership.next_epoch(&subnet);
        if free && !self.leaving && self.roster.may_claim(self.now.moment) && self.inheriting.insert((subnet, epoch)) {
            let owner = self.me;
            let reason = ClaimReason::Awarded;
            answers.truncate(MOST_ANSWERS);
            self.make_claims(vec![Claim { subnet, epoch, owner, rtt_us, runner_up, probes, reason, released: false, answers }]);
        }
    }

    /// Leave every address of this subnet alone for so long, but not for ever: a member may have said it.
    pub(super) fn front_rest_subnet(&mut self, subnet: Subnet, rest: Millis) {
        let until = self.now.moment.after(rest.min(LONGEST_REST));
        self.rests.insert(subnet, until);
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
