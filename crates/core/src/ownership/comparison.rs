//! Which claims does another member have that we have not? One pass at a time, with one member at a time.
//!
//! A pass compares the digest of the whole map; of parts that differ it compares their parts, and of those in which we have few claims it
//! asks for the claims that we lack. Up to [`WINDOW`] questions are under way. The asked member keeps nothing between them. A pass ends when
//! nothing that differed is left, or fails: no answer, one that does not belong to its question, a claim with a bad signature, more claims
//! than there may be, or too slow. Then other members are asked before this one.
//!
//! A map that was not compared yet is *whole*, and may be acted on, after passes with two members that say that theirs are whole; or after
//! every other living member was asked and at least one pass came to its end, be it that there is only one, or that all have just started.
//! So one member that has nothing, lies or stalls neither makes a newcomer whole nor holds it up; two that lie alike can.

use super::register::{MAX_CLAIMS, Register};
use crate::{context::Context, pending::Pending};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    message::{Request, Response},
    ownership_map::{ComparedPart, MAX_COMPARED, MAX_LISTED, MAX_WANTED, MapDigest, MapPart, PARTS, WantedPart, place},
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// The map is compared with one member this often, in milliseconds.
pub(super) const COMPARE_EVERY: Millis = 5_000;

/// Questions of a pass that are under way at a time: a newcomer's map must not wait for the way of each answer, and what else comes
/// meanwhile waits behind so many answers at most.
const WINDOW: usize = 4;

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

/// What a member was asked in a pass.
#[derive(Debug)]
pub(crate) struct MapQuestion {
    pass: u64,
    asked: Asked,
}

#[derive(Debug)]
enum Asked {
    /// How these parts compare.
    Compared(Vec<MapPart>),
    /// The claims of these parts, each behind that to a subnet.
    Claims(Vec<(MapPart, Option<Subnet>)>),
}

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

#[derive(Debug)]
struct Pass {
    number: u64,
    with: AccessPoint,
    begun: Moment,
    /// Parts in which the maps differ, or may, and in which we have many claims. No more than are divided here.
    to_compare: Vec<MapPart>,
    /// Parts that differ, in which we have few claims, and behind which subnet to go on. At most as many as the parts of those divided.
    to_fetch: Vec<(MapPart, Option<Subnet>)>,
    under_way: usize,
    /// Claims that it brought.
    claims: u64,
    held: usize,
    /// Whether the member says that its own map is whole.
    whole: bool,
}

/// How a pass ended.
enum Failure {
    /// No answer, or too late.
    Silent,
    /// An answer that no member gives that keeps to the protocol; its class.
    Wrong(&'static str),
}

/// Comparing the map with other members.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// When the next member is due.
    due: Moment,
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

    /// Whether the period is over, which begins anew.
    pub(super) fn is_due(&mut self, now: Moment) -> bool {
        let due = now >= self.due;
        if due {
            self.due = now.after(COMPARE_EVERY);
        }
        due
    }

    /// Gives up a pass that takes too long, and begins the next one if it is time. `others` are the other living members, `known` tells
    /// who is a member at all, `synced` whether our map is whole.
    pub(super) fn tick(
        &mut self,
        cx: &mut Context,
        register: &mut Register,
        others: &[AccessPoint],
        known: impl Fn(&AccessPoint) -> bool,
        synced: bool,
    ) {
        let now = cx.now.moment;
        self.met = self.met.or((!others.is_empty()).then_some(now));
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
        let first = (cx.rounds as usize / 7).checked_rem(others.len()).unwrap_or(0);
        let in_turn = || others.iter().cycle().skip(first).take(others.len()).copied();
        let outcome = |member: &AccessPoint| self.tried.get(member).and_then(|tried| tried.outcome);
        let peer = match next {
            Some(next) => Some(next),
            None if !synced => {
                // Those that were never asked come first.
                let untried = in_turn().find(|member| outcome(member).is_none() && rested(member));
                untried.or_else(|| in_turn().find(|member| outcome(member) != Some(Outcome::Whole) && rested(member)))
            }
            None => in_turn().next().filter(|member| due && rested(member)),
        };
        if let Some(peer) = peer {
            self.next.remove(&peer);
            register.refresh();
            let number = cx.number::<nearcrawl_model::ids::WriteId>().0;
            let (with, to_compare) = (peer, vec![MapPart::WHOLE]);
            self.pass =
                Some(Pass { number, with, begun: now, to_compare, to_fetch: Vec::new(), under_way: 0, claims: 0, held: 0, whole: false });
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
                    pass.to_compare.clear();
                    pass.to_fetch.clear();
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

    /// Asks as much as may be under way.
    fn ask(&mut self, cx: &mut Context, register: &Register) {
        let Some(pass) = &mut self.pass else { return };
        while pass.under_way < WINDOW {
            let free = WINDOW - pass.under_way;
            let (asked, request) = if pass.to_fetch.is_empty() {
                let parts = last(&mut pass.to_compare, free, MAX_COMPARED);
                let digests = parts.iter().map(|part| (*part, register.digest(*part))).collect();
                (Asked::Compared(parts), Request::CompareClaims(digests))
            } else {
                let parts = last(&mut pass.to_fetch, free, MAX_WANTED);
                let wanted = |(part, after): &(MapPart, Option<Subnet>)| WantedPart {
                    part: *part,
                    after: *after,
                    has: register.digests_in(*part, *after, MAX_LISTED).unwrap_or_default(),
                };
                let wanted = parts.iter().map(wanted).collect();
                (Asked::Claims(parts), Request::SendClaims(wanted))
            };
            if matches!(&asked, Asked::Compared(parts) if parts.is_empty()) {
                return;
            }
            pass.under_way += 1;
            cx.ask(pass.with, Pending::Compare(MapQuestion { pass: pass.number, asked }), request);
        }
    }
}

impl Pass {
    /// Of parts that were compared, notes what is to be compared or fetched of them.
    fn compared(&mut self, register: &Register, asked: &[MapPart], parts: &[ComparedPart]) -> Result<(), Failure> {
        let wrong = Err(Failure::Wrong("comparisons of other parts of the ownership map than asked for"));
        if asked.len() != parts.len() {
            return wrong;
        }
        for (part, compared) in asked.iter().zip(parts) {
            let ComparedPart::Differs(theirs) = compared else { continue };
            // A part that cannot be divided is never compared.
            if theirs.len() != PARTS {
                return wrong;
            }
            for (inner, theirs) in part.parts().zip(theirs) {
                if *theirs == MapDigest::EMPTY || *theirs == register.digest(inner) {
                    continue;
                }
                if register.parts().is_listed(inner) {
                    self.to_fetch.push((inner, None));
                } else {
                    self.to_compare.push(inner);
                }
            }
        }
        Ok(())
    }

    /// Decodes claims that were sent, and notes what is left. Each must lie in a part that was asked for, behind the one before it: so an
    /// answer can neither repeat itself nor go on for ever.
    fn sent(
        &mut self,
        asked: Vec<(MapPart, Option<Subnet>)>,
        proofs: Vec<SignedClaim>,
        more: bool,
    ) -> Result<Vec<(Claim, SignedClaim)>, Failure> {
        self.claims += proofs.len() as u64;
        if self.claims > MAX_CLAIMS as u64 {
            return Err(Failure::Wrong("comparisons of ownership maps with more claims than a map holds"));
        }
        let mut left = asked.into_iter().map(|(part, after)| (part, after.map(|after| (place(&after), after)))).peekable();
        let mut claims = Vec::with_capacity(proofs.len());
        for proof in proofs {
            let claim = proof.read().map_err(|_| Failure::Wrong("comparisons of ownership maps with claims that cannot be decoded"))?;
            let at = (place(&claim.subnet), claim.subnet);
            while left.next_if(|(part, _)| !part.contains(at.0)).is_some() {}
            match left.peek_mut() {
                Some((_, after)) if after.is_none_or(|after| after < at) => *after = Some(at),
                _ => return Err(Failure::Wrong("comparisons of ownership maps with claims that were not asked for")),
            }
            claims.push((claim, proof));
        }
        if more && claims.is_empty() {
            return Err(Failure::Wrong("comparisons of ownership maps that go on without claims"));
        }
        if more {
            self.to_fetch.extend(left.map(|(part, after)| (part, after.map(|(_, after)| after))));
        }
        Ok(claims)
    }
}

/// Takes the last of them out: so many that each of `free` questions gets its share, at most `most`.
fn last<T>(all: &mut Vec<T>, free: usize, most: usize) -> Vec<T> {
    all.split_off(all.len() - all.len().div_ceil(free).min(most))
}

/// How long a member is left alone after so many passes that came to nothing.
fn pause(passes: u32) -> Millis {
    (COMPARE_EVERY << passes.min(10)).min(MAX_PAUSE)
}
