//! Comparison of the ownership map with other members', to find the claims that we lack.
//!
//! There is one pass at a time, with one member at a time.
//!
//! A pass compares the digest of the whole map; of parts that differ it compares their parts, and of those in which we have few claims it
//! asks for the claims that we lack. Up to four questions are under way. The asked member keeps nothing between them. A pass ends when
//! nothing that differed is left, or fails: no answer, one that does not belong to its question, a claim with a bad signature, more claims
//! than there may be, or too slow. Then other members are asked before this one.
//!
//! A map that was not compared yet is *whole*, and may be acted on, after passes with two members that say that theirs are whole; or after
//! every other living member was asked and at least one pass came to its end, be it that there is only one, or that all have just started.
//! So one member that has nothing, lies or stalls neither makes a newcomer whole nor holds it up; two that lie alike can.

use super::{
    pass::{Failure, Pass},
    register::Register,
};
use crate::{
    context::Context,
    pending::{Asked, MapQuestion},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    ids::WriteId,
    message::Response,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// The map is compared with one member this often, in milliseconds.
pub(super) const COMPARE_EVERY: Millis = 15_000;

/// The same at most, after many that found no difference while nothing changed here; so many of them double the time.
const MAX_COMPARE_EVERY: Millis = 60_000;
const DOUBLED_AFTER: u32 = 4;

/// A pass may take so long, and a millisecond more for each claim that it brought.
const MAX_PASS: Millis = 60_000;

/// A member with which passes bring nothing is not compared with for so long at most, in milliseconds.
const MAX_PAUSE: Millis = 600_000;

/// The pause after a pass without an answer while our map is not whole, in milliseconds.
const TRY_AGAIN: Millis = 1_000;

/// After so many passes without an answer a member is not waited for.
const MAX_SILENT: u32 = 2;

/// While there are fewer than two whole members, those that are yet to be heard of are waited for so long after the first one.
const MEET_WITHIN: Millis = 2_000;

/// Members with whom the map is to be compared next, at most.
const MAX_NEXT: usize = 128;

/// What was to be thought of claims that a member sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// How many of them hold now.
    pub(crate) held: usize,
    /// How many were not signed by their owners.
    pub(crate) forged: usize,
}

/// What came of comparing with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// A pass came to its end, and the member's map is whole.
    Whole,
    /// A pass came to its end, but the member's own map is not whole yet.
    Partial,
    /// It does not answer, or lies.
    Failed,
}

#[derive(Debug, Default)]
struct Tried {
    outcome: Option<Outcome>,
    /// Passes without an answer, one after another.
    silent: u32,
    /// Passes that brought claims of which none held, one after another.
    useless: u32,
    /// When it may be asked again.
    again: Moment,
}

/// Comparing the map with other members.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// When the present period began.
    since: Option<Moment>,
    /// Passes that found no difference, one after another, since our map changed.
    equal: u32,
    pass: Option<Pass>,
    /// Members that connected since: they are next.
    next: BTreeSet<AccessPoint>,
    tried: BTreeMap<AccessPoint, Tried>,
    /// Since when there has been another member.
    met: Option<Moment>,
}

impl Comparison {
    /// A member connected: it is compared with next, unless what it sent before was of no use.
    pub(super) fn soon(&mut self, now: Moment, member: AccessPoint) {
        if self.next.len() < MAX_NEXT {
            self.next.insert(member);
        }
        if let Some(tried) = self.tried.get_mut(&member).filter(|tried| tried.useless == 0) {
            tried.again = now;
        }
    }

    /// Our map changed, or another one differs: others may not have heard either.
    pub(super) fn changed(&mut self) {
        self.equal = 0;
    }

    /// Whether the period is over, which begins anew.
    pub(super) fn is_due(&mut self, now: Moment) -> bool {
        let period = (COMPARE_EVERY << (self.equal / DOUBLED_AFTER).min(10)).min(MAX_COMPARE_EVERY);
        let due = self.since.is_none_or(|since| now.since(since) >= period);
        if due {
            self.since = Some(now);
        }
        due
    }

    /// Gives up a pass that takes too long, and begins the next one if it is time. `live` are the living members, `known` tells who is a
    /// member at all, `synced` whether our map is whole.
    pub(super) fn tick(
        &mut self,
        cx: &mut Context,
        register: &mut Register,
        live: &[AccessPoint],
        known: impl Fn(&AccessPoint) -> bool,
        synced: bool,
    ) {
        let (now, me) = (cx.now.moment, cx.me);
        let others = || live.iter().filter(|member| **member != me).copied();
        self.met = self.met.or_else(|| others().next().map(|_| now));
        self.tried.retain(|member, _| known(member));
        if self.pass.as_ref().is_some_and(|pass| now.since(pass.begun) > MAX_PASS + pass.claims) {
            self.fail(cx, synced, Failure::Silent);
        }
        let due = self.is_due(now);
        if self.pass.is_some() {
            return;
        }
        let rested = |member: &AccessPoint| self.tried.get(member).is_none_or(|tried| now >= tried.again);
        let next = self.next.iter().find(|member| rested(member)).copied();
        let rounds = cx.rounds as usize / 7;
        let in_turn = || {
            let count = others().count();
            others().cycle().skip(rounds.checked_rem(count).unwrap_or(0)).take(count)
        };
        let outcome = |member: &AccessPoint| self.tried.get(member).and_then(|tried| tried.outcome);
        let peer = match next {
            Some(next) => Some(next),
            None if !synced => {
                // Those that were never asked come first.
                let untried = in_turn().find(|member| outcome(member).is_none() && rested(member));
                untried.or_else(|| in_turn().find(|member| outcome(member) != Some(Outcome::Whole) && rested(member)))
            }
            None if due => in_turn().next().filter(rested),
            None => None,
        };
        if let Some(peer) = peer {
            self.next.remove(&peer);
            register.refresh();
            let number = cx.number::<WriteId>().0;
            self.pass = Some(Pass::new(number, peer, now));
            self.ask(cx, register);
        }
    }

    /// Takes an answer in, and returns the claims in it; [`Comparison::go_on`] follows when they are entered.
    pub(super) fn answered(
        &mut self,
        cx: &mut Context,
        register: &Register,
        question: MapQuestion,
        answer: Option<Response>,
        synced: bool,
    ) -> Vec<(Claim, SignedClaim)> {
        let Some(pass) = self.pass.as_mut().filter(|pass| pass.number == question.pass) else { return Vec::new() };
        pass.under_way = pass.under_way.saturating_sub(1);
        let taken = match (question.asked, answer) {
            (Asked::Compared(asked), Some(Response::Compared { whole, parts })) => {
                // What a member lacks that has just started is no difference of ours: it is about to get it.
                let compared = pass.compared(register, &asked, &parts);
                pass.whole = whole;
                if synced && !whole {
                    pass.skip_rest();
                }
                compared.map(|()| Vec::new())
            }
            (Asked::Claims(asked), Some(Response::Claims(proofs, more))) => pass.sent(asked, proofs, more),
            (_, None | Some(Response::Refused(_) | Response::Busy(_))) => Err(Failure::Silent),
            (_, Some(_)) => Err(Failure::Wrong("answers of another kind to a comparison of ownership maps")),
        };
        taken.unwrap_or_else(|failure| {
            self.fail(cx, synced, failure);
            Vec::new()
        })
    }

    /// The claims of the last answer are entered: asks for what is left, or ends the pass.
    pub(super) fn go_on(&mut self, cx: &mut Context, register: &Register, heard: Heard, synced: bool) {
        let Some(pass) = &mut self.pass else { return };
        pass.held += heard.held;
        if heard.forged > 0 {
            return self.fail(cx, synced, Failure::Wrong("comparisons of ownership maps with forged claims"));
        }
        self.ask(cx, register);
        let Some(pass) = self.pass.take_if(|pass| pass.under_way == 0) else { return };
        let tried = self.tried.entry(pass.with).or_default();
        tried.outcome = Some(if pass.whole { Outcome::Whole } else { Outcome::Partial });
        tried.silent = 0;
        self.equal = if pass.whole && !pass.differs { self.equal.saturating_add(1) } else { 0 };
        tried.useless = if pass.claims > 0 && pass.held == 0 { tried.useless + 1 } else { 0 };
        tried.again = cx.now.moment.after(if tried.useless > 0 { pause(tried.useless) } else { TRY_AGAIN });
    }

    /// Whether the map is whole, with these other living members.
    pub(super) fn is_whole(&self, now: Moment, others: &[AccessPoint]) -> bool {
        let outcome = |member: &AccessPoint| self.tried.get(member).and_then(|tried| tried.outcome);
        if self.tried.values().filter(|tried| tried.outcome == Some(Outcome::Whole)).count() >= 2 {
            return true;
        }
        let met = self.met.is_some_and(|met| now.since(met) >= MEET_WITHIN);
        met && others.iter().all(|member| outcome(member).is_some())
            && others.iter().any(|member| matches!(outcome(member), Some(Outcome::Whole | Outcome::Partial)))
    }

    fn fail(&mut self, cx: &mut Context, synced: bool, failure: Failure) {
        let Some(pass) = self.pass.take() else { return };
        self.equal = 0;
        let tried = self.tried.entry(pass.with).or_default();
        let pause = match failure {
            Failure::Silent => {
                tried.silent = tried.silent.saturating_add(1);
                if tried.silent >= MAX_SILENT && tried.outcome.is_none() {
                    tried.outcome = Some(Outcome::Failed);
                }
                if synced { pause(tried.silent) } else { TRY_AGAIN * u64::from(tried.silent.min(60)) }
            }
            Failure::Wrong(class) => {
                cx.refuse(class);
                tried.outcome = Some(Outcome::Failed);
                tried.useless = tried.useless.saturating_add(1);
                MAX_PAUSE
            }
        };
        tried.again = cx.now.moment.after(pause);
    }

    fn ask(&mut self, cx: &mut Context, register: &Register) {
        if let Some(pass) = &mut self.pass {
            pass.ask(cx, register);
        }
    }
}

/// How long a member is left alone after so many passes that came to nothing.
fn pause(passes: u32) -> Millis {
    (COMPARE_EVERY << passes.min(10)).min(MAX_PAUSE)
}
