//! One pass of comparing maps with a member: what is left to be asked, and whether an answer belongs to it.
//!
//! The parts of a pass are taken from the end, and claims before comparisons, so that what some parts divide into is done before the next
//! ones: what is left stays small.

use super::register::{MAX_CLAIMS, Register};
use crate::{
    context::Context,
    pending::{Asked, MapQuestion, Pending},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    message::Request,
    ownership_map::{ComparedPart, MAX_COMPARED, MAX_LISTED, MAX_WANTED, MapDigest, MapPart, PARTS, WantedPart, place},
    subnet::Subnet,
    time::Moment,
};

/// Questions of a pass that are under way at a time: a newcomer's map must not wait for the way of each answer, and what else comes
/// meanwhile waits behind so many answers at most.
const WINDOW: usize = 4;

#[derive(Debug)]
pub(super) struct Pass {
    pub(super) number: u64,
    pub(super) with: AccessPoint,
    pub(super) begun: Moment,
    /// Parts in which the maps differ, or may, and in which we have many claims. No more than are divided here.
    to_compare: Vec<MapPart>,
    /// Parts that differ, in which we have few claims, and behind which subnet to go on. At most as many as the parts of those divided.
    to_fetch: Vec<(MapPart, Option<Subnet>)>,
    pub(super) under_way: usize,
    /// Claims that it brought.
    pub(super) claims: u64,
    pub(super) held: usize,
    /// Whether the member says that its own map is whole.
    pub(super) whole: bool,
    /// Whether the maps differed.
    pub(super) differs: bool,
}

/// How a pass ended.
pub(super) enum Failure {
    /// No answer, or too late.
    Silent,
    /// An answer that no member gives that keeps to the protocol; its class.
    Wrong(&'static str),
}

impl Pass {
    /// A pass with this member, which has asked nothing yet.
    pub(super) fn new(number: u64, with: AccessPoint, begun: Moment) -> Pass {
        let to_compare = vec![MapPart::WHOLE];
        Pass { number, with, begun, to_compare, to_fetch: Vec::new(), under_way: 0, claims: 0, held: 0, whole: false, differs: false }
    }

    /// Asks as much as may be under way.
    pub(super) fn ask(&mut self, cx: &mut Context, register: &Register) {
        while self.under_way < WINDOW {
            let free = WINDOW - self.under_way;
            let (asked, request) = if self.to_fetch.is_empty() {
                let parts = last(&mut self.to_compare, free, MAX_COMPARED);
                let digests = parts.iter().map(|part| (*part, register.digest(*part))).collect();
                (Asked::Compared(parts), Request::CompareClaims(digests))
            } else {
                let parts = last(&mut self.to_fetch, free, MAX_WANTED);
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
            self.under_way += 1;
            cx.ask(self.with, Pending::Compare(MapQuestion { pass: self.number, asked }), request);
        }
    }

    /// Nothing more is asked.
    pub(super) fn skip_rest(&mut self) {
        self.to_compare.clear();
        self.to_fetch.clear();
    }

    /// Of parts that were compared, notes what is to be compared or fetched of them.
    pub(super) fn compared(&mut self, register: &Register, asked: &[MapPart], parts: &[ComparedPart]) -> Result<(), Failure> {
        let wrong = Err(Failure::Wrong("comparisons of other parts of the ownership map than asked for"));
        if asked.len() != parts.len() {
            return wrong;
        }
        for (part, compared) in asked.iter().zip(parts) {
            let ComparedPart::Differs(theirs) = compared else { continue };
            self.differs = true;
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
    pub(super) fn sent(
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
