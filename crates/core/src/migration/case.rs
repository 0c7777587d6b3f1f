//! The default rule of migration: compares what the subnet takes here with what it would take elsewhere.
//!
//! The paper compares a site with its arm mates, and so takes the big for the badly placed. Here a subnet is compared with itself: the
//! seconds that a unit of its work takes, against those that it would take at a few other access points, as far as probes predicted it,
//! relatives suggest it, and its own time there once showed it. Where a move is expected to bring more than it costs, the access is
//! penalised, otherwise rewarded. What was learnt travels with the subnet; when a change of the network is detected, its variance grows.

use super::{
    Answer, Automaton, LoadPrice, Scale,
    autocorrelation::Autocorrelation,
    change_detection::{Change, ChangeDetector},
    estimate::{Evidence, Level, worth},
    experience::Experience,
};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// For [`Case::judge`]: no gain is too small.
pub const ANY_GAIN: f64 = f64::NEG_INFINITY;

/// How many tried arms a subnet remembers; the one it was in longest ago goes first.
pub(crate) const MAX_ARMS: usize = 12;

/// How many accesses a move has to pay off.
const HORIZON: f64 = 100.0;

/// How much of what is unknown of the arms is drawn from when one is chosen: all is Thompson's rule, nothing takes whatever is expected to be
/// nearest. With half, few are far off where much is predicted, and they still do not all go the same way where little is.
const BOLDNESS: f64 = 0.5;

/// What a move costs, in accesses: the hand-over, and what no member foresees. With the horizon it makes the dead band: 1.5 %.
const COST: f64 = 1.5;

/// After so many moves without a change of the network a further one must bring twice as much: nothing oscillates for ever.
const MOVES_THAT_DOUBLE: f64 = 12.0;

/// How much of the moves made still counts an access later.
const MOVES_KEPT: f32 = 0.99;

/// The same of those in vain: they tell that predictions are wrong here, which lasts.
const VAIN_MOVES_KEPT: f32 = 0.998;

/// By how much an arm may be off of which nothing was predicted, as a variance: nearly a factor of two up or down.
const UNFORETOLD: f64 = 0.35;

/// By how much what is remembered may be off when the network changed, as a variance: next to nothing of it is left.
const DOUBTED: f64 = 20.0;

/// The least error that is believed of a prior.
const MIN_ERROR: f64 = 0.02;

/// For so many accesses an arm is not asked again that refused.
const REFUSED_FOR: u32 = 2;

/// How many refusals are remembered.
const MAX_REFUSALS: usize = 4;

/// What relatives tell of the scatter of accesses counts like so many of a subnet's own.
const NOISE_FROM_RELATIVES: f64 = 4.0;

/// The scatter is never believed to be less than this: a twentieth up or down.
const MIN_NOISE: f64 = 0.0025;

/// Of so many accesses the scatter is that of; what lies further back counts less and less.
const MAX_NOISE_COUNT: f32 = 100.0;

/// What is predicted of an arm, before or besides trying it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Seconds that a unit of work should take there. Only the proportions between arms count once something was measured.
    pub seconds: f64,
    /// By how much that may be off, as a share: 0.2 for a fifth.
    pub error: f64,
}

/// An access point that a subnet may be at: where it is, or where it could move to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<A> {
    /// Which.
    pub arm: A,
    /// What probes and the tree foretell of it, if anything.
    pub prior: Option<Prior>,
    /// By how much its load raises its price.
    pub price: LoadPrice,
}

/// How an access was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<A> {
    /// The subnet is well where it is: one state inward.
    Reward,
    /// A move would pay: one state towards the boundary.
    Penalty,
    /// A move would pay, and the subnet stands at the boundary: offer it to this arm.
    Move(A),
    /// Nothing was measured here yet, or there is nowhere to go.
    Neither,
}

/// What could be done instead of staying: the arm to move to, or the best of those that were thought of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rival<A> {
    /// Which arm.
    pub arm: A,
    /// Seconds for a unit of work that are expected there.
    pub seconds: f64,
    /// Whether it was tried before.
    pub tried: bool,
    /// What the move should bring, in accesses of the present length, its cost taken off; positive if it pays.
    pub worth: f64,
}

/// How an access was answered, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement<A> {
    /// The answer.
    pub verdict: Verdict<A>,
    /// The state after it, 0 being the boundary.
    pub state: u8,
    /// Seconds that a unit of work is expected to take here.
    pub seconds: f64,
    /// What it was compared with; none if there was nothing.
    pub rival: Option<Rival<A>>,
}

/// One subnet's automaton and all it learnt, to travel with it: less than 1 KiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case<A> {
    automaton: Automaton,
    /// The tried arms, by name.
    tried: Vec<Experience<A>>,
    /// Who refused, and at which access.
    refusals: Vec<(A, u32)>,
    accesses: u32,
    /// Since it came where it is.
    accesses_here: u32,
    /// Since the last change of the network; those long ago count less.
    moves: f32,
    /// Those of them to an arm that turned out to be slower than one that was tried before.
    vain_moves: f32,
    /// Units of work of a usual access.
    usual_units: f32,
    /// The variance of single accesses, and of how many.
    noise: (f32, f32),
    change_detector: ChangeDetector,
    autocorrelation: Autocorrelation,
    /// Whether the network changed since all was predicted.
    outdated: bool,
}

impl<A: Ord + Copy> Case<A> {
    /// Nothing is known; at the boundary of an arm with so many states.
    pub fn new(states: u8) -> Case<A> {
        Case {
            automaton: Automaton::new(states),
            tried: Vec::new(),
            refusals: Vec::new(),
            accesses: 0,
            accesses_here: 0,
            moves: 0.0,
            vain_moves: 0.0,
            usual_units: 0.0,
            noise: (0.0, 0.0),
            change_detector: ChangeDetector::default(),
            autocorrelation: Autocorrelation::default(),
            outdated: false,
        }
    }

    /// The same for a site that turned out not to be of its subnet's kind: what was predicted of the subnet does not hold for it.
    pub fn of_stray(states: u8) -> Case<A> {
        Case { outdated: true, ..Case::new(states) }
    }

    /// Where it stands.
    pub fn automaton(&self) -> Automaton {
        self.automaton
    }

    /// How many accesses were measured, wherever: the subnet's own time (TWOMA's t).
    pub(crate) fn accesses(&self) -> u32 {
        self.accesses
    }

    /// How many moves it made lately, since the network last changed.
    pub fn moves(&self) -> f32 {
        self.moves
    }

    /// How many of them led to an arm that was slower than one tried before.
    pub fn vain_moves(&self) -> f32 {
        self.vain_moves
    }

    /// Whether an arm was quicker than another, as measured at both since the network last changed.
    pub fn was_quicker(&self, arm: A, than: A) -> bool {
        let measured = |arm| self.experience(arm).filter(|tried| tried.doubt <= 0.0).map(|tried| tried.mean);
        measured(arm).zip(measured(than)).is_some_and(|(arm, than)| arm < than)
    }

    /// Seconds that a unit of work took in that arm, as far as it is remembered.
    pub fn seconds(&self, arm: A) -> Option<f64> {
        self.experience(arm).map(|tried| f64::from(tried.mean).exp())
    }

    /// The arms that it was in, with the seconds that a unit of work took there.
    pub fn tried(&self) -> impl Iterator<Item = (A, f64)> + '_ {
        self.tried.iter().map(|tried| (tried.arm, f64::from(tried.mean).exp()))
    }

    /// One access was made from here (a crawl of what is due in the subnet, download and evaluation together): so many seconds for each unit of work, and so many
    /// units. Says whether the network changed, so that what was known before is in doubt now.
    ///
    /// Hand in one access for each judgement; what did no work or took no time is passed over. `family` is what relatives tell.
    pub fn accessed(&mut self, here: A, seconds_per_unit: f64, units: f64, family: &Scale) -> bool {
        if !(seconds_per_unit.is_finite() && seconds_per_unit > 0.0 && units.is_finite() && units > 0.0) {
            return false;
        }
        let log = seconds_per_unit.ln();
        let weight = self.weight(units);
        self.accesses = self.accesses.saturating_add(1);
        self.moves *= MOVES_KEPT;
        self.vain_moves *= VAIN_MOVES_KEPT;
        self.accesses_here = self.accesses_here.saturating_add(1);
        let (noise, accesses) = (self.noise(family), self.accesses);
        let at = match self.tried.binary_search_by_key(&here, |tried| tried.arm) {
            Ok(at) => at,
            Err(at) => {
                self.tried.insert(at, Experience::first(here, log, weight, accesses));
                self.forget_the_oldest(here);
                self.count_vain_move(here);
                return false;
            }
        };
        let known = &mut self.tried[at];
        let (off, uncertain) = (log - f64::from(known.mean), known.variance(noise, accesses));
        let deviation = off * weight.sqrt() / (noise + uncertain).sqrt();
        let change = self.change_detector.add(deviation, self.autocorrelation.repetition());
        if known.latest + 1 == accesses {
            self.autocorrelation.add(f64::from(known.residual) / noise.sqrt(), off / noise.sqrt());
        }
        known.add(log, weight, noise, accesses);
        self.count_vain_move(here);
        // An outlier says nothing of the usual scatter.
        let scatter = (off * off * weight * noise / (noise + uncertain)).min(9.0 * noise);
        let count = (self.noise.1 + 1.0).min(MAX_NOISE_COUNT);
        self.noise = (self.noise.0 + (scatter as f32 - self.noise.0) / count, count);
        match change {
            Change::None => false,
            Change::Faster => {
                self.tried[at] = Experience::first(here, log, weight, accesses);
                false
            }
            Change::Slower => {
                self.reopen();
                if let Ok(at) = self.tried.binary_search_by_key(&here, |tried| tried.arm) {
                    self.tried[at] = Experience::first(here, log, weight, accesses);
                }
                true
            }
        }
    }

    /// Judges the latest access, made from `here`. The candidates are a few arms that are near by the tree and probes, `here` among them; in
    /// whatever order. At the boundary, which of the moves that pay is made is drawn as likely as it is the best (Thompson). An arm that is
    /// not cheaper for its load must save more than `least_gain` seconds for a unit of work, as far as it may (by one standard deviation):
    /// else subnets would go back and forth among arms that are equally near.
    pub fn judge(&mut self, here: A, candidates: &[Candidate<A>], least_gain: f64, family: &Scale, chance: &mut impl Rng) -> Judgement<A> {
        let nothing = |automaton: Automaton| Judgement { verdict: Verdict::Neither, state: automaton.state(), seconds: 0.0, rival: None };
        if self.accesses_here == 0 {
            return nothing(self.automaton);
        }
        let noise = self.noise(family);
        let level = self.level(candidates, family, noise);
        let foretold = mean_prior(candidates);
        let believed = |candidate: &Candidate<A>| level.belief(&self.evidence(candidate, foretold, noise));
        let at_home = candidates.iter().find(|candidate| candidate.arm == here);
        let at_home = at_home.copied().unwrap_or(Candidate { arm: here, prior: None, price: LoadPrice::default() });
        let (home, price) = (believed(&at_home), at_home.price.factor().ln());
        let cost = COST * (1.0 + f64::from(self.moves) / MOVES_THAT_DOUBLE);
        let mut best: Option<Rival<A>> = None;
        let mut target: Option<(f64, Rival<A>)> = None;
        let mut transient_pays = false;
        for candidate in candidates.iter().filter(|candidate| candidate.arm != here && !self.refused_lately(candidate.arm)) {
            let there = believed(candidate);
            let longer = there.mean - home.mean + candidate.price.factor().ln() - price;
            let unknown = (there.variance + there.tied * there.tied * level.variance).sqrt();
            let gain = home.mean.exp() - (there.mean - unknown).exp();
            let matters = candidate.price.factor().ln() < price || gain > least_gain;
            let transient = self.autocorrelation.saves(self.residual(here), self.residual(candidate.arm), longer) - cost;
            transient_pays |= matters && transient > 0.0;
            let worth = worth(longer, level.apart(&there, &home), noise, HORIZON) + transient;
            let tried = self.experience(candidate.arm).is_some();
            let rival = Rival { arm: candidate.arm, seconds: there.mean.exp(), tried, worth };
            if best.is_none_or(|best| worth > best.worth) {
                best = Some(rival);
            }
            if worth > 0.0 && matters {
                let drawn = longer + BOLDNESS * unknown * standard_normal(chance);
                if target.is_none_or(|(least, _)| drawn < least) {
                    target = Some((drawn, rival));
                }
            }
        }
        let answer = match (best, target) {
            (None, _) => Answer::Neither,
            (_, None) => Answer::Reward,
            (_, Some(_)) => Answer::Penalty,
        };
        if transient_pays {
            // The present deviation alone pays for the move, and will have decayed before the boundary is reached step by step.
            self.automaton.to_boundary();
        }
        let leaves = self.automaton.answer(answer);
        let (verdict, rival) = match (answer, target) {
            (Answer::Penalty, Some((_, target))) if leaves => (Verdict::Move(target.arm), Some(target)),
            (Answer::Penalty, _) => (Verdict::Penalty, best),
            (Answer::Reward, _) => (Verdict::Reward, best),
            (Answer::Neither, _) => (Verdict::Neither, best),
        };
        Judgement { verdict, state: self.automaton.state(), seconds: home.mean.exp(), rival }
    }

    /// What the subnet adds to what its relatives know: its level (see [`Scale`]), and the scatter of its accesses. None before anything was measured.
    pub fn level_and_noise(&self, candidates: &[Candidate<A>], family: &Scale) -> Option<(f64, f64)> {
        if self.tried.is_empty() {
            return None;
        }
        let noise = self.noise(family);
        // As if no member had told it anything: what relatives told must not come back to them as new.
        let alone = Scale { variance: 1e6, ..*family };
        Some((self.level(candidates, &alone, noise).mean, noise))
    }

    /// The arm did not accept it: busy, its window closed, its cap reached.
    pub fn refused(&mut self, arm: A) {
        self.refusals.retain(|(other, _)| *other != arm);
        if self.refusals.len() >= MAX_REFUSALS {
            self.refusals.remove(0);
        }
        self.refusals.push((arm, self.accesses));
    }

    /// It has moved: to be called by its present owner, before the first access there.
    pub fn moved(&mut self) {
        self.automaton.to_boundary();
        self.accesses_here = 0;
        self.moves += 1.0;
        self.change_detector.restart();
    }

    /// The network changed: what is remembered may be off by as much as if nothing were known, and what was predicted is passed over
    /// until [`Self::foretold`]. (Kept as a proportion, it would tell of a server that became slow, not of a way.)
    pub fn reopen(&mut self) {
        self.automaton.to_boundary();
        self.change_detector.restart();
        (self.moves, self.vain_moves) = (0.0, 0.0);
        self.outdated = true;
        // The deviations that the change caused were no autocorrelation.
        self.autocorrelation = Autocorrelation::default();
        for tried in &mut self.tried {
            tried.doubt = DOUBTED as f32;
        }
    }

    /// After the first access since a move: it was in vain if an arm tried before was quicker.
    fn count_vain_move(&mut self, here: A) {
        if self.accesses_here == 1 && self.moves > 0.0 && self.tried.iter().any(|tried| self.was_quicker(tried.arm, here)) {
            self.vain_moves += 1.0;
        }
    }

    fn weight(&mut self, units: f64) -> f64 {
        let usual = f64::from(self.usual_units);
        self.usual_units = if usual > 0.0 { usual + 0.1 * (units - usual) } else { units } as f32;
        // An access that did little says little; one that did much suffers from all that disturbs any.
        (units / f64::from(self.usual_units)).clamp(0.01, 1.0)
    }

    fn forget_the_oldest(&mut self, here: A) {
        if self.tried.len() > MAX_ARMS {
            let others = self.tried.iter().enumerate().filter(|(_, tried)| tried.arm != here);
            if let Some((oldest, _)) = others.min_by_key(|(_, tried)| tried.latest) {
                self.tried.remove(oldest);
            }
        }
    }

    fn refused_lately(&self, arm: A) -> bool {
        self.refusals.iter().any(|(other, at)| *other == arm && self.accesses.saturating_sub(*at) < REFUSED_FOR)
    }

    /// By how much the next access is expected to take longer in that arm than usually, because the last one did: a logarithm.
    fn residual(&self, arm: A) -> f64 {
        let left =
            |tried: &Experience<A>| self.autocorrelation.decayed(f64::from(tried.residual), self.accesses.saturating_sub(tried.latest));
        self.experience(arm).map_or(0.0, left)
    }

    fn experience(&self, arm: A) -> Option<&Experience<A>> {
        self.tried.binary_search_by_key(&arm, |tried| tried.arm).ok().map(|at| &self.tried[at])
    }

    /// The scatter of single accesses: its own, as far as it is known, otherwise its relatives'.
    fn noise(&self, family: &Scale) -> f64 {
        let (own, count) = (f64::from(self.noise.0), f64::from(self.noise.1));
        ((own * count + family.noise * NOISE_FROM_RELATIVES) / (count + NOISE_FROM_RELATIVES)).max(MIN_NOISE)
    }

    fn level(&self, candidates: &[Candidate<A>], family: &Scale, noise: f64) -> Level {
        let foretold = mean_prior(candidates);
        Level::of(family.level, family.variance, candidates.iter().map(|candidate| self.evidence(candidate, foretold, noise)))
    }

    fn evidence(&self, candidate: &Candidate<A>, foretold: f64, noise: f64) -> Evidence {
        let (prior, prior_variance) = match candidate.prior {
            Some(prior) if prior.seconds > 0.0 && !self.outdated => (prior.seconds.ln(), prior.error.max(MIN_ERROR).powi(2)),
            _ => (foretold, UNFORETOLD),
        };
        let measured = self.experience(candidate.arm).map(|tried| (f64::from(tried.mean), tried.variance(noise, self.accesses)));
        Evidence { prior, prior_variance, measured }
    }
}

/// What stands for the prior of an arm of which nothing was predicted: what the others have on average.
fn mean_prior<A>(candidates: &[Candidate<A>]) -> f64 {
    let logs =
        || candidates.iter().filter_map(|candidate| candidate.prior).filter(|prior| prior.seconds > 0.0).map(|prior| prior.seconds.ln());
    match logs().count() {
        0 => 0.0,
        count => logs().sum::<f64>() / count as f64,
    }
}

/// A draw from the normal distribution (Box and Muller).
fn standard_normal(chance: &mut impl Rng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - chance.random::<f64>(), chance.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
