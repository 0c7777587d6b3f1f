//! Procedure for one subnet's owner: probe, rest, probe again, award; the address is never asked while it rests.

use crate::delegation::{
    Step, Verdict,
    contacts::chain::Chain,
    reads::DelegationReads,
    search::{Policy, Search, Surroundings},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Answer, MAX_ANSWERS},
    fetch::ProbeTarget,
    message::Award,
    receipt::SignedReceipt,
    subnet::Subnet,
    time::{Moment, Now},
    view::{EventKind, EventOutcome, EventView},
};
use std::collections::BTreeSet;

/// How often a subnet is awarded before the search begins anew.
const MAX_AWARDS: u32 = 4;

/// A delegation procedure that we run as the subnet's steward.
#[derive(Debug)]
pub(crate) struct Procedure {
    policy: Policy,
    begun: Now,
    search: Search,
    target: ProbeTarget,
    state: State,
    /// How often it was awarded.
    awards: u32,
    /// Who was chosen and declined: they are about to leave.
    unwilling: BTreeSet<AccessPoint>,
    /// Probes that it took.
    probes: u16,
    /// Their receipts, after those of a procedure before this one.
    chain: Vec<SignedReceipt>,
}

/// What a procedure waits for, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The address rests until then; afterwards the next step.
    Resting(Moment),
    /// This access point probes.
    Probing(AccessPoint, Moment),
    /// Awarded; if no claim is seen by then, the chosen one is reminded.
    Awarded(Moment),
    /// To be awarded to the same one again then.
    Awarding(Verdict, Moment),
}

impl Procedure {
    /// Begins now; the first step is taken once the address has rested.
    pub(super) fn new(policy: Policy, subnet: Subnet, target: ProbeTarget, begun: Now, rests_until: Moment) -> Procedure {
        let (search, state) = (Search::new(policy, subnet), State::Resting(rests_until));
        Procedure { policy, begun, search, target, state, awards: 0, unwilling: BTreeSet::new(), probes: 0, chain: Vec::new() }
    }

    pub(super) fn target(&self) -> &ProbeTarget {
        &self.target
    }

    pub(super) fn into_target(self) -> ProbeTarget {
        self.target
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The receipts of the probes so far, to be shown to the next prober.
    pub(super) fn chain(&self) -> &[SignedReceipt] {
        &self.chain
    }

    /// How many probes it took.
    pub(super) fn probes(&self) -> u16 {
        self.probes
    }

    /// What is told of it once a claim to the subnet by this owner holds.
    pub(super) fn ended(&self, now: Now, subnet: Subnet, owner: AccessPoint) -> EventView {
        EventView {
            kind: EventKind::Delegation,
            begun_at: self.begun.wall,
            duration_ms: now.moment.since(self.begun.moment),
            subnet,
            outcome: EventOutcome::Owned,
            from: None,
            to: owner,
            probes: Some(self.probes),
            policy: Some(self.policy.name().to_owned()),
            reason_text: None,
            requests: None,
            took_ms: None,
        }
    }

    /// Whether what it waits for came, or should have come by now.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        match self.state {
            State::Resting(until) | State::Probing(_, until) | State::Awarded(until) | State::Awarding(_, until) => until <= now,
        }
    }

    /// Whether the next step may be taken: nothing is waited for but rest, and that is over.
    pub(super) fn is_rested(&self, now: Moment) -> bool {
        matches!(self.state, State::Resting(until) if until <= now)
    }

    /// Whether this member was asked to probe and has not answered.
    pub(super) fn waits_for(&self, prober: AccessPoint) -> bool {
        matches!(self.state, State::Probing(asked, _) if asked == prober)
    }

    /// Whether it is decided and only the claim is missing.
    pub(super) fn is_awarded(&self) -> bool {
        matches!(self.state, State::Awarded(_) | State::Awarding(..))
    }

    /// The living who may be asked, and may get the subnet.
    pub(super) fn candidates(&self, me: AccessPoint, others: DelegationReads<'_>) -> Vec<AccessPoint> {
        others.willing(me, |who| self.unwilling.contains(who))
    }

    /// What the search wants next; once the subnet has had all its contacts, the best that is known.
    pub(super) fn next_step(&mut self, around: &Surroundings<'_>, contacts_per_subnet: u32) -> Option<Step> {
        let spent = self.chain.len() >= contacts_per_subnet as usize;
        match self.search.next(around) {
            Step::Ask(_) if spent => self.search.settle_now(around.live).map(Step::Settle),
            step => Some(step),
        }
    }

    /// The next step without a trace: the search goes on as if it had not been asked.
    pub(super) fn peek(&mut self, around: &Surroundings<'_>, contacts_per_subnet: u32) -> Option<Step> {
        let search = self.search.clone();
        let step = self.next_step(around, contacts_per_subnet);
        self.search = search;
        step
    }

    /// A member is asked to probe. Returns whom to probe, with the receipts to show.
    pub(super) fn ask(&mut self, prober: AccessPoint, until: Moment) -> (ProbeTarget, Vec<SignedReceipt>) {
        self.state = State::Probing(prober, until);
        (self.target.clone(), self.chain.clone())
    }

    /// What a probe measured, in microseconds; none if it failed, was declined, or was not answered. Now the address rests.
    pub(super) fn answered(&mut self, from: AccessPoint, rtt_us: Option<u32>, rests_until: Moment) {
        self.search.answer(from, rtt_us);
        self.state = State::Resting(rests_until);
    }

    /// One more probe was made. Returns all receipts.
    pub(super) fn add(&mut self, receipt: SignedReceipt) -> Vec<SignedReceipt> {
        self.probes += 1;
        self.chain.push(receipt);
        self.chain.clone()
    }

    /// Probes that a member made before us, for a steward before us: their answers need not be asked for again.
    pub(super) fn learn(&mut self, chain: &Chain, known: Vec<SignedReceipt>) {
        for receipt in chain.receipts() {
            self.search.answer(receipt.prober, receipt.rtt_us);
        }
        // From now on theirs is shown, if it goes on where ours ends.
        if known.len() > self.chain.len() && known.starts_with(&self.chain) {
            self.chain = known;
        }
    }

    /// The subnet is awarded: what its new owner is told, and what it shall claim.
    pub(super) fn award(&mut self, subnet: Subnet, epoch: u64, verdict: &Verdict, until: Moment) -> Award {
        self.state = State::Awarded(until);
        self.awards += 1;
        let Verdict { owner, rtt_us, runner_up, .. } = *verdict;
        let others = self.search.measured().into_iter().filter(|(_, who)| *who != owner).take(MAX_ANSWERS);
        let answers = others.map(|(rtt_us, who)| Answer { rtt_us, prober: who.into() }).collect();
        Award { subnet, epoch, rtt_us, runner_up, probes: self.probes, answers, part: None }
    }

    /// Whether the chosen one may be reminded once more.
    pub(super) fn may_award_again(&self) -> bool {
        self.awards < MAX_AWARDS
    }

    /// The chosen one is left in peace until then, and then reminded.
    pub(super) fn award_again(&mut self, verdict: Verdict, at: Moment) {
        self.state = State::Awarding(verdict, at);
    }

    /// The chosen one is about to leave: the others are looked at again, once the address has rested.
    pub(super) fn declined(&mut self, by: AccessPoint, rests_until: Moment) {
        self.unwilling.insert(by);
        self.state = State::Resting(rests_until);
    }
}
