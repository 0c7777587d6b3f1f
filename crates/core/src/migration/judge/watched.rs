//! One watched subnet of ours: how it is crawled from here, and how it would be from elsewhere.

use super::Access;
use crate::{
    context::Context,
    migration::{Answer, Automaton, Candidate, Case, Judgement, LoadPrice, Prior, Scale, Verdict, handover::Surroundings},
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{FetchReport, ProbeKind},
    subnet::Subnet,
    summary::RollUp,
    time::{Millis, Moment, Now},
    view::{EventOutcome, Span},
};
use rand::rngs::StdRng;
use std::fmt::Write as _;

/// Access points that are thought of beside the present one: the nearest, as far as is known.
const MAX_CANDIDATES: usize = 8;

/// What the latest access took here may be off by so much, as a share.
const ERROR_HERE: f64 = 0.1;

/// A way that is so much longer or shorter than was known is another one: as a share, and in microseconds.
const NEWS_OF_THE_WAY: f64 = 0.25;
const MIN_NEWS_US: f64 = 2_000.0;

/// A member that is nearer by no more than this is equally near: as a share of the way from here, and in microseconds. No subnet moves there
/// for that.
const EQUALLY_NEAR: f64 = 0.1;
const EQUALLY_NEAR_US: f64 = 5_000.0;

/// After so many moves in vain since the network last changed, to owners slower than one before, a subnet stays for a while where it is.
/// Each move is told to every member, and its journals are compared or copied: that costs the more the more members there are, and a wrong
/// prediction is not to be paid for every few accesses. What was measured needs no rest: it goes back at once to an owner that was quicker.
/// Nor does work wait that goes to a member with less load.
const MOVES_IN_VAIN: f32 = 2.0;

/// It stays so long, and twice as long after each further move in vain.
const REST: Millis = 120_000;

/// It stays no longer than this.
const MAX_REST: Millis = 86_400_000;

/// One subnet of ours.
#[derive(Debug)]
pub(crate) struct Watched {
    case: Case<AccessPoint>,
    /// The paper's automaton, which knows nothing of cases.
    automaton: Automaton,
    access: Access,
    /// What servers here need beside the way, in microseconds: the least that was seen.
    service_us: Option<f64>,
    /// What connecting took the last time, in microseconds.
    connected_us: Option<f64>,
    /// How long the way from here is, as of the last access, in microseconds.
    way_us: f64,
    /// How the last access was judged.
    judged: Option<Judgement<AccessPoint>>,
    /// The same by either rule, with whom it was compared.
    outcome: (EventOutcome, Option<AccessPoint>),
    /// The same in a sentence.
    said: String,
    /// How long requests took since the load was looked at, in microseconds.
    spent_us: f64,
    /// Since when it is watched here: since it became ours, or since the start.
    since: Moment,
}

impl Watched {
    /// Nothing is known yet, or what a previous owner learnt.
    pub(super) fn new(now: Moment, states: u8, learnt: Option<Case<AccessPoint>>) -> Watched {
        Watched {
            case: learnt.unwrap_or_else(|| Case::new(states)),
            automaton: Automaton::new(states),
            access: Access::default(),
            service_us: None,
            connected_us: None,
            way_us: 0.0,
            judged: None,
            outcome: (EventOutcome::Undecided, None),
            said: String::new(),
            spent_us: 0.0,
            since: now,
        }
    }

    /// How much longer it stays because it moved in vain before; 0 if it may move again.
    fn rests(&self, now: Moment) -> Millis {
        let further = f64::from(self.case.vain_moves().round() - MOVES_IN_VAIN);
        let rest = if further < 0.0 { 0.0 } else { REST as f64 * further.min(16.0).exp2() };
        (rest as Millis).min(MAX_REST).saturating_sub(now.since(self.since))
    }

    /// A request ended. Returns how many there were in this access.
    pub(super) fn add(&mut self, now: Now, report: &FetchReport) -> u32 {
        self.spent_us += self.access.add(now, report);
        self.connected_us = report.connect_us.map(f64::from).or(self.connected_us);
        self.access.requests
    }

    /// How many requests there were in this access.
    pub(super) fn requests(&self) -> u32 {
        self.access.requests
    }

    /// The access that ends here; none if nothing was measured.
    pub(super) fn end_access(&mut self) -> Option<Access> {
        Some(std::mem::take(&mut self.access)).filter(|access| !access.is_empty())
    }

    /// By the paper's rule: rewarded or penalised for what its access took, where accesses take `average_us`. Whether it goes, and why.
    pub(super) fn judge_by_the_paper(&mut self, answer: Answer, took_us: f64, average_us: f64) -> Option<String> {
        let leaves = self.automaton.answer(answer);
        let compared = format!("{} against {} on average here", per_request(took_us), per_request(average_us));
        self.said = match answer {
            Answer::Reward => format!("rewarded: its access took {compared}"),
            Answer::Penalty => format!("penalised: its access took {compared}"),
            Answer::Neither => format!("neither rewarded nor penalised: its access took {compared}"),
        };
        let outcome = match answer {
            _ if leaves => EventOutcome::ToMove,
            Answer::Reward => EventOutcome::Rewarded,
            Answer::Penalty => EventOutcome::Penalised,
            Answer::Neither => EventOutcome::Undecided,
        };
        self.outcome = (outcome, None);
        leaves.then(|| self.said.clone())
    }

    /// By our rule: against what it would take at the candidates. Where to it goes, and why. If it moved in vain it stays for a while.
    pub(super) fn judge_by_case(
        &mut self,
        (now, me): (Moment, AccessPoint),
        access: &Access,
        candidates: &[Candidate<AccessPoint>],
        scale: &Scale,
        chance: &mut StdRng,
    ) -> Option<(AccessPoint, String)> {
        let changed = self.case.accessed(me, access.us_per_request() / 1e6, f64::from(access.requests), scale);
        let least_gain = (self.way_us * EQUALLY_NEAR).max(EQUALLY_NEAR_US) / 1e6;
        let mut judgement = self.case.judge(me, candidates, least_gain, scale, chance);
        let rest = self.rests(now);
        let price_of = |arm| candidates.iter().find(|candidate| candidate.arm == arm).map_or(1.0, |candidate| candidate.price.factor());
        // Who is busier than the other gives work away at once.
        let is_predicted = |to| price_of(to) >= price_of(me) && !self.case.was_quicker(to, me);
        let waits = rest > 0 && matches!(judgement.verdict, Verdict::Move(to) if is_predicted(to));
        if waits {
            judgement.verdict = Verdict::Penalty;
        }
        self.judged = Some(judgement);
        self.said = sentence(&judgement, changed);
        if waits {
            let _ = write!(self.said, "; it has moved in vain and stays for {}", Span(rest));
        }
        let outcome = match judgement.verdict {
            Verdict::Reward => EventOutcome::Rewarded,
            Verdict::Penalty => EventOutcome::Penalised,
            Verdict::Move(_) => EventOutcome::ToMove,
            Verdict::Neither => EventOutcome::Undecided,
        };
        self.outcome = (outcome, judgement.rival.map(|rival| rival.arm));
        match judgement.verdict {
            Verdict::Move(to) => Some((to, self.said.clone())),
            Verdict::Reward | Verdict::Penalty | Verdict::Neither => None,
        }
    }

    /// By how much it is off from what was foretold, and by how much its accesses scatter, for its relatives to know.
    pub(super) fn level_and_noise(&self, candidates: &[Candidate<AccessPoint>], scale: &Scale) -> Option<(f64, f64)> {
        self.case.level_and_noise(candidates, scale)
    }

    /// The present owner and the few who are nearest, with what is foretold of them: all that the way does not change is as it is here.
    /// `price` is our own.
    pub(super) fn candidates(
        &mut self,
        cx: &mut Context,
        around: &Surroundings<'_>,
        price: LoadPrice,
        subnet: Subnet,
        access: &Access,
    ) -> Vec<Candidate<AccessPoint>> {
        let foretold = around.delegation.knowledge().foretell(&cx.hierarchy, subnet, around.membership.live());
        let beside_the_way = self.beside_the_way(cx, around, subnet, access);
        let at = |arm: AccessPoint, us: f64, error: f64, price: LoadPrice| Candidate {
            arm,
            prior: Some(Prior { seconds: us / 1e6, error }),
            price,
        };
        let price_of = |who| around.report.roll_up_of(who).map(|(told, _)| price_told(told)).unwrap_or_default();
        let others = foretold.iter().filter(|known| known.access_point != cx.me).take(MAX_CANDIDATES);
        let others = others.map(|known| at(known.access_point, beside_the_way + known.rtt_us, known.error, price_of(&known.access_point)));
        std::iter::once(at(cx.me, access.us_per_request(), ERROR_HERE, price)).chain(others).collect()
    }

    /// What a request takes that is not the way, in microseconds. If the way is another one than was known, that is told.
    fn beside_the_way(&mut self, cx: &mut Context, around: &Surroundings<'_>, subnet: Subnet, access: &Access) -> f64 {
        let least = access.least_us();
        let known = around.delegation.measured_by(cx.me, &subnet).map(f64::from);
        // A probe by `http-head` waits for the server, as any request does; one by `tcp` is what connecting takes.
        let way = match cx.settings.probe {
            ProbeKind::HttpHead => Some((least, 0.0)),
            ProbeKind::Tcp => self.connected_us.or(known).map(|way| (way, (least - way).max(0.0))),
        };
        if let Some((way, service)) = way {
            let service = self.service_us.map_or(service, |known| known.min(service));
            self.service_us = Some(service);
            // The ways change: what the others hear of this one must be what it is now.
            let way_now = way.max(least - service);
            self.way_us = way_now;
            if known.is_none_or(|known| (way_now - known).abs() > NEWS_OF_THE_WAY * known + MIN_NEWS_US) {
                cx.signal(Signal::WayMeasured { subnet, rtt_us: way_now as u32 });
            }
        }
        (access.us_per_request() - least).max(0.0) + self.service_us.unwrap_or(0.0)
    }

    /// The member that we wanted to have it would not, or could not.
    pub(super) fn refused_by(&mut self, who: AccessPoint) {
        self.case.refused(who);
    }

    /// What was learnt of it, to travel with it; empty if nothing.
    pub(super) fn learnt(&self) -> Vec<u8> {
        if self.case.accesses() == 0 {
            return Vec::new();
        }
        postcard::to_stdvec(&self.case).unwrap_or_default()
    }

    /// How long its requests took since this was asked before, in microseconds, and how it was judged.
    pub(super) fn take_spent(&mut self) -> (f64, Option<Judgement<AccessPoint>>) {
        (std::mem::take(&mut self.spent_us), self.judged)
    }

    /// How it was judged last, and with whom it was compared.
    pub(super) fn outcome(&self) -> (EventOutcome, Option<AccessPoint>) {
        self.outcome
    }

    /// How it was judged last, in a sentence; none if it was not.
    pub(super) fn last_judgement(&self, by_the_paper: bool) -> Option<String> {
        let automaton = if by_the_paper { self.automaton } else { self.case.automaton() };
        let said = format!("{} (state {} of {})", self.said, automaton.state() + 1, automaton.states());
        (!self.said.is_empty()).then_some(said)
    }
}

fn price_told(told: &RollUp) -> LoadPrice {
    LoadPrice::of(f64::from(told.price_permille) / 1000.0)
}

fn per_request(us: f64) -> String {
    Span((us / 1000.0).round() as Millis).to_string()
}

/// A judgement as people read it.
fn sentence(judgement: &Judgement<AccessPoint>, changed: bool) -> String {
    let here = per_request(judgement.seconds * 1e6);
    let news = if changed { "the network changed; " } else { "" };
    match (judgement.verdict, judgement.rival) {
        (Verdict::Neither, _) | (_, None) => format!("{news}a request takes {here} here, and there is nothing to compare it with"),
        (verdict, Some(rival)) => {
            let there = per_request(rival.seconds * 1e6);
            let known = if rival.tried { "as it did before" } else { "as far as is predicted" };
            let said = if verdict == Verdict::Reward { "rewarded" } else { "penalised" };
            format!("{news}{said}: a request takes {here} here and would take {there} at {}, {known}", rival.arm.short())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    const QUICKEST: AccessPoint = AccessPoint([3; 32]);

    /// A subnet that was at the quickest first, and moved to `to` in vain so many times.
    fn moved_in_vain(times: u32, to: AccessPoint) -> Case<AccessPoint> {
        let mut case = Case::new(1);
        case.accessed(QUICKEST, 0.01, 16.0, &Scale::default());
        for _ in 0..times {
            case.moved();
            case.accessed(to, 0.2, 16.0, &Scale::default());
        }
        case
    }

    #[test]
    fn a_subnet_that_has_moved_in_vain_stays_for_a_while_and_twice_as_long_each_time() {
        let (me, other) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
        let at = |arm, seconds| Candidate { arm, prior: Some(Prior { seconds, error: 0.05 }), price: LoadPrice::default() };
        let access = Access::of(16, 16.0 * 200_000.0);
        let judge_among = |candidates: &[Candidate<AccessPoint>], watched: &mut Watched, now| {
            let chance = &mut StdRng::seed_from_u64(1);
            watched.judge_by_case((Moment(now), me), &access, candidates, &Scale::default(), chance).map(|(to, _)| to)
        };
        let judge = |watched: &mut Watched, now| judge_among(&[at(me, 0.2), at(other, 0.02)], watched, now);
        for times in [0, 1] {
            let mut watched = Watched::new(Moment(0), 1, Some(moved_in_vain(times, me)));
            assert_eq!(judge(&mut watched, 0), Some(other), "the first moves are not waited for");
        }
        for (times, minutes) in [(2, 2), (3, 4), (4, 8), (40, 24 * 60)] {
            let mut watched = Watched::new(Moment(0), 1, Some(moved_in_vain(times, me)));
            assert_eq!(judge(&mut watched, minutes * 60_000 - 60_000), None);
            assert_eq!(watched.outcome, (EventOutcome::Penalised, Some(other)), "people see that it is not well placed");
            let said = watched.last_judgement(false).unwrap();
            assert!(said.contains("it has moved in vain and stays for 1 min 0 s"), "{said}");
            assert_eq!(judge(&mut watched, minutes * 60_000), Some(other));
        }
        let mut watched = Watched::new(Moment(0), 1, Some(moved_in_vain(4, me)));
        let back = judge_among(&[at(me, 0.2), at(QUICKEST, 0.01)], &mut watched, 1);
        assert_eq!(back, Some(QUICKEST), "it goes back at once to whom it was quicker with");
    }

    #[test]
    fn a_subnet_that_each_move_made_quicker_does_not_stay() {
        let (me, other) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
        let mut case = Case::new(1);
        for (number, seconds) in [1.6, 0.8, 0.4, 0.2].into_iter().enumerate() {
            case.accessed(if number == 3 { me } else { AccessPoint([10 + number as u8; 32]) }, seconds, 16.0, &Scale::default());
            if number < 3 {
                case.moved();
            }
        }
        let at = |arm, seconds| Candidate { arm, prior: Some(Prior { seconds, error: 0.05 }), price: LoadPrice::default() };
        let mut watched = Watched::new(Moment(0), 1, Some(case));
        let chance = &mut StdRng::seed_from_u64(1);
        let (access, candidates) = (Access::of(16, 16.0 * 200_000.0), [at(me, 0.2), at(other, 0.02)]);
        let to = watched.judge_by_case((Moment(1), me), &access, &candidates, &Scale::default(), chance).map(|(to, _)| to);
        assert_eq!(to, Some(other));
    }

    #[test]
    fn work_of_a_busy_member_does_not_wait() {
        let (me, other) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
        let at = |arm, seconds, price| Candidate { arm, prior: Some(Prior { seconds, error: 0.05 }), price: LoadPrice::of(price) };
        let mut watched = Watched::new(Moment(0), 1, Some(moved_in_vain(5, me)));
        let candidates = [at(me, 0.1, 4.0), at(other, 0.12, 1.0)];
        let chance = &mut StdRng::seed_from_u64(1);
        let moves = watched.judge_by_case((Moment(1), me), &Access::of(16, 16.0 * 100_000.0), &candidates, &Scale::default(), chance);
        assert_eq!(moves.map(|(to, _)| to), Some(other));
    }
}
