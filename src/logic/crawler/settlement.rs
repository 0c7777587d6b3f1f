//! Nobody's subnet: who shall have it? The subnet's steward runs IPMicra's procedure, one probe after another, and awards it.
//!
//! While a subnet has no owner its steward holds its politeness: one contact at a time, a rest after each, and the rest that
//! is left over is told to the new owner with the award.

use super::{Command, Crawler, Pending, Procedure, ProcedureState};
use crate::{
    logic::{
        delegation::{Step, Verdict, ipmicra::IpMicra},
        ownership::Merged,
    },
    model::{
        access_point::AccessPoint,
        claim::{Claim, ClaimReason, SignedClaim},
        fetch::{ProbeReport, ProbeTarget},
        message::{Request, Response},
        subnet::Subnet,
        time::{Millis, Moment},
        url::Host,
    },
};

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
    /// We are the steward of a subnet that nobody holds: begin, or queue.
    pub(super) fn settle(&mut self, subnet: Subnet, target: ProbeTarget) {
        if self.ownership.claim(&subnet).is_some() || self.procedures.contains_key(&subnet) || !self.synced {
            return;
        }
        if !self.roster.may_claim(self.now.moment) {
            return;
        }
        if self.procedures.len() >= self.settings.settle_at_once {
            if self.settle_queue.len() < MOST_QUEUED && !self.settle_queue.iter().any(|(queued, _)| *queued == subnet) {
                self.settle_queue.push_back((subnet, target));
            }
            return;
        }
        let search = IpMicra::new(subnet, self.settings.threshold_us);
        // The steward before us may have had the address probed a moment ago, and cannot always tell.
        let new_duty = self.members_changed_at.is_some_and(|at| self.now.moment.since(at) < NEW_DUTY);
        let rest = if new_duty { self.front.politeness().rest_after(LONG_PROBE, None) } else { 0 };
        let state = ProcedureState::Resting(self.now.moment.after(rest));
        self.procedures.insert(subnet, Procedure { search, target, state, awards: 0 });
        self.advance(subnet);
    }

    /// A member asks us to settle a subnet.
    pub(super) fn settle_for(&mut self, ticket: u64, subnet: Subnet, target: ProbeTarget) {
        let fits = self.hierarchy.subnet_of(target.address.ip()) == subnet;
        if !fits {
            self.refuse("settlement requests");
            return self.answer(ticket, Response::Refused("that address does not lie in that subnet".to_owned()));
        }
        let standing = self.ownership.latest(&subnet).filter(|held| !held.claim.released).map(|held| held.proof.clone());
        if standing.is_none() {
            self.settle(subnet, target);
        }
        self.answer(ticket, Response::Settling(standing));
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
        let live = self.live();
        let Some(procedure) = self.procedures.get_mut(&subnet) else { return };
        if !matches!(procedure.state, ProcedureState::Resting(until) if until <= now) {
            return;
        }
        match procedure.search.next(&self.hierarchy, &self.delegated, &live) {
            Step::Ask(prober) => {
                procedure.state = ProcedureState::Probing(prober, now.after(PROBE_PATIENCE));
                let target = procedure.target.clone();
                if prober == self.me {
                    if !self.may_contact(subnet, &target.host) {
                        return self.probe_answered(subnet, prober, None);
                    }
                    let question = self.number();
                    self.pending.insert(question, Pending::Probe { subnet });
                    self.counters.probes += 1;
                    self.commands.push_back(Command::Probe { question, target });
                } else {
                    self.ask(prober, Pending::Probe { subnet }, Request::Probe(subnet, target));
                }
            }
            Step::Settle(verdict) => self.award(subnet, verdict, 0),
        }
    }

    /// A prober answered; the address rests before anything else happens to it.
    pub(super) fn probe_answered(&mut self, subnet: Subnet, from: AccessPoint, report: Option<ProbeReport>) {
        let rest = self.front.politeness().rest_after(report.map_or(0, |report| report.took), None);
        let now = self.now.moment;
        let live = self.live();
        let Some(procedure) = self.procedures.get_mut(&subnet) else { return };
        if !matches!(procedure.state, ProcedureState::Probing(asked, _) if asked == from) {
            return;
        }
        procedure.search.answer(from, report.and_then(|report| report.rtt_us.ok()));
        // If that decides it there is no need to wait: the new owner is told how long the address rests.
        procedure.state = ProcedureState::Resting(now.after(rest));
        let mut peeked = procedure.search.clone();
        if let Step::Settle(verdict) = peeked.next(&self.hierarchy, &self.delegated, &live) {
            self.award(subnet, verdict, rest);
        }
    }

    fn award(&mut self, subnet: Subnet, verdict: Verdict, rest: Millis) {
        let epoch = self.ownership.next_epoch(&subnet);
        if let Some(procedure) = self.procedures.get_mut(&subnet) {
            procedure.state = ProcedureState::Awarded(self.now.moment.after(AWARD_PATIENCE));
            procedure.awards += 1;
        }
        let Verdict { owner, rtt_us, runner_up, probes, .. } = verdict;
        if owner == self.me {
            self.front_rest_subnet(subnet, rest);
            self.awarded(subnet, epoch, rtt_us, runner_up, probes);
        } else {
            let request = Request::Award { subnet, epoch, rtt_us, runner_up, probes, rest };
            self.ask(owner, Pending::Award { subnet }, request);
        }
    }

    /// The chosen one did not answer or did not claim. If it is there it is reminded, for it may have claimed unheard of; another
    /// one would make two owners. If not, the search begins anew, with who is alive now.
    pub(super) fn award_failed(&mut self, subnet: Subnet) {
        let live = self.live();
        let now = self.now.moment;
        if let Some(procedure) = self.procedures.get_mut(&subnet)
            && procedure.awards < MOST_AWARDS
            && self.ownership.claim(&subnet).is_none()
        {
            let mut again = procedure.search.clone();
            if let Step::Settle(verdict) = again.next(&self.hierarchy, &self.delegated, &live)
                && live.contains(&verdict.owner)
            {
                procedure.state = ProcedureState::Awarding(verdict, now.after(AWARD_AGAIN));
                return;
            }
        }
        let Some(procedure) = self.procedures.remove(&subnet) else { return };
        if self.ownership.claim(&subnet).is_none() {
            self.settle_queue.push_back((subnet, procedure.target));
        }
    }

    /// A steward chose us: claim it. Persist before we speak: the claim counts once it is stored.
    pub(super) fn awarded(&mut self, subnet: Subnet, epoch: u64, rtt_us: Option<u32>, runner_up: Option<AccessPoint>, probes: u16) {
        let free = self.ownership.claim(&subnet).is_none() && epoch == self.ownership.next_epoch(&subnet);
        if free && !self.leaving && self.roster.may_claim(self.now.moment) && self.inheriting.insert((subnet, epoch)) {
            let owner = self.me;
            let reason = ClaimReason::Awarded;
            self.make_claims(vec![Claim { subnet, epoch, owner, rtt_us, runner_up, probes, reason, released: false }]);
        }
    }

    /// Our own subnets are ours from the start (IPMicra §4.1), if they are nobody's.
    pub(super) fn claim_own_subnets(&mut self) {
        let mut claims = Vec::new();
        for address in self.settings.own_addresses.clone() {
            let subnet = self.hierarchy.subnet_of(address);
            let free = self.ownership.claim(&subnet).is_none();
            if free && !address.is_unspecified() && !claims.iter().any(|claim: &Claim| claim.subnet == subnet) {
                let epoch = self.ownership.next_epoch(&subnet);
                let reason = ClaimReason::OwnSubnet;
                let owner = self.me;
                claims.push(Claim { subnet, epoch, owner, rtt_us: Some(0), runner_up: None, probes: 0, reason, released: false });
            }
        }
        self.make_claims(claims);
    }

    /// Signs and stores claims of ours; they hold and are told when they are durable.
    pub(super) fn make_claims(&mut self, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        let receipt = self.number();
        let proofs: Vec<_> = claims.iter().map(|claim| SignedClaim::sign(claim, &self.key)).collect();
        self.unstored_claims.insert(receipt, proofs.clone());
        self.commands.push_back(Command::StoreClaims { receipt, claims: proofs });
    }

    /// A new claim of ours is acted on only after a while in which a quorum answered and nobody turned out to have claimed the same:
    /// two stewards may have had different ideas of who is alive, or the network may just have split.
    pub(super) fn watch_claim(&mut self, subnet: Subnet) {
        if !self.roster.standings().is_empty() {
            self.watched.insert(subnet, Watched { since: self.now.moment, interrupted: false });
        }
    }

    fn tick_watched(&mut self) {
        let now = self.now.moment;
        let whole = self.roster.may_claim(now);
        let watch = self.roster.watch();
        let mut proven = Vec::new();
        for (subnet, watched) in &mut self.watched {
            if !whole {
                *watched = Watched { since: now, interrupted: true };
            } else if now.since(watched.since) >= watch {
                proven.push((*subnet, watched.interrupted));
            }
        }
        for (subnet, interrupted) in proven {
            self.watched.remove(&subnet);
            if interrupted {
                // While we were cut off somebody else may have claimed it at the same epoch, and gone on.
                self.dissolve(subnet, true);
                self.load_from_keepers(subnet);
                continue;
            }
            for host in self.by_subnet.get(&subnet).cloned().unwrap_or_default() {
                self.want(&host);
            }
        }
    }

    /// Claims came from elsewhere: believe those that their owners signed and that are stronger than what we know.
    pub(super) fn hear_claims(&mut self, proofs: Vec<SignedClaim>) {
        let mut new = Vec::new();
        for proof in proofs {
            let known = proof.read().ok().and_then(|claim| self.ownership.latest(&claim.subnet).map(|held| held.proof == proof));
            if known == Some(true) {
                continue;
            }
            match proof.open() {
                Ok(claim) => {
                    if self.hold(claim, proof.clone()) {
                        new.push(proof);
                    }
                }
                Err(_) => self.refuse("claims with a bad signature"),
            }
        }
        if !new.is_empty() {
            self.commands.push_back(Command::StoreClaims { receipt: 0, claims: new });
            self.outbox.wake_all();
            self.route();
        }
    }

    /// Enters a claim whose signature was checked; does what follows if it holds. Returns whether it does.
    pub(super) fn hold(&mut self, claim: Claim, proof: SignedClaim) -> bool {
        let (subnet, owner, released) = (claim.subnet, claim.owner, claim.released);
        let Merged::Holds { before } = self.ownership.merge(claim.clone(), proof) else { return false };
        if let Some(position) = self.hierarchy.position(subnet) {
            self.delegated.set(position.0, (!released).then_some(owner));
        }
        self.roll_up_changed = true;
        self.settle_asked.remove(&subnet);
        self.procedures.remove(&subnet);
        let was_mine = before.is_some_and(|before| before.owner == self.me && !before.released);
        if was_mine && (owner != self.me || released) {
            self.give_up(subnet);
        }
        if released && owner != self.me {
            self.freed(&claim);
        }
        true
    }

    /// Leave every address of this subnet alone for so long, but not for ever: a member may have said it.
    pub(super) fn front_rest_subnet(&mut self, subnet: Subnet, rest: Millis) {
        let until = self.now.moment.after(rest.min(LONGEST_REST));
        self.rests.insert(subnet, until);
    }

    /// A subnet's steward asks us to probe. Not obeyed blindly: the address must lie there, be allowed and within budget.
    pub(super) fn probe_for(&mut self, ticket: u64, subnet: Subnet, target: ProbeTarget) {
        let fits = self.hierarchy.subnet_of(target.address.ip()) == subnet;
        if !fits || self.held_back().is_some() || !self.may_contact(subnet, &target.host) {
            self.refuse("probes asked of us");
            return self.answer(ticket, Response::ProbeDeclined("outside the subnet, denied, over budget, or not fetching".to_owned()));
        }
        let question = self.number();
        self.probing_for.insert(question, ticket);
        self.counters.probes += 1;
        self.commands.push_back(Command::Probe { question, target });
    }

    /// Whether one more probe of ours may go to this subnet; if so it counts.
    fn may_contact(&mut self, subnet: Subnet, host: &Host) -> bool {
        let contacts = self.contacts.get(&subnet).map_or(0, |(contacts, _)| *contacts);
        let may = contacts < self.settings.contacts_per_subnet && !self.settings.scope.denies(host);
        if may {
            self.contacts.insert(subnet, (contacts + 1, self.now.moment));
        }
        may
    }

    /// Our own prober came back: for ourselves as steward, or for the steward who asked.
    pub(super) fn probed_here(&mut self, question: u64, report: ProbeReport) {
        if let Some(ticket) = self.probing_for.remove(&question) {
            return self.answer(ticket, Response::Probed(report));
        }
        if let Some(Pending::Probe { subnet }) = self.pending.remove(&question) {
            self.probe_answered(subnet, self.me, Some(report));
        }
    }
}

/// A new claim that is not acted on yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    /// Since when a quorum has answered.
    since: Moment,
    /// Whether there was none for a while.
    interrupted: bool,
}

impl Procedure {
    fn due(&self, now: Moment) -> bool {
        match self.state {
            ProcedureState::Resting(until) | ProcedureState::Probing(_, until) | ProcedureState::Awarded(until) => until <= now,
            ProcedureState::Awarding(_, until) => until <= now,
        }
    }
}
