//! Gossip of claims and roll-ups to every member; what gossip lost is found by comparing maps.

use crate::{
    context::{Context, MAX_TOLD_DIRECTLY},
    event::{Command, PeerCommand},
    membership::Membership,
    ownership::{Ownership, comparison::Heard},
    pending::MapQuestion,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    ids::{QuestionId, Ticket},
    message::{Gossip, MAX_GOSSIP, Request, Response},
    ownership_map::{ComparedPart, MapDigest, MapPart, WantedPart},
    time::Millis,
};

/// Claims are told at most this often, many at a time.
const NEWS_EVERY: Millis = 1_000;

/// To few other members so few claims are sent directly: once, where gossip comes several times. Whom they do not reach finds them when it
/// compares its map.
const MAX_SENT_DIRECTLY: usize = 64;

/// Bytes of claims in one gossip message; the rest is for what is around them. A claim with the votes of five takes some 700.
const MAX_NEWS: usize = MAX_GOSSIP - 4_096;

/// At least what a claim takes in a message: its bytes and signatures, each with its length.
fn size_of(proof: &SignedClaim) -> usize {
    let votes = proof.votes.as_ref().map_or(0, |votes| 24 + 100 * votes.voters.len());
    proof.bytes.len() + proof.signature.len() + votes + 8
}

impl Ownership {
    /// Tells claims that are new, if the last telling is long enough ago.
    pub(crate) fn tell_claims(&mut self, cx: &mut Context, members: &Membership) {
        if self.pending_claims.is_empty() || cx.now.moment < self.gossip_due {
            return;
        }
        self.gossip_due = cx.now.moment.after(NEWS_EVERY);
        let (mut proofs, mut room) = (Vec::new(), MAX_NEWS);
        while let Some(next) = self.pending_claims.first_entry()
            && size_of(next.get()) <= room
        {
            room -= size_of(next.get());
            proofs.push(next.remove());
        }
        let others = others(cx, members);
        if others.is_empty() || others.len() > MAX_TOLD_DIRECTLY || proofs.len() > MAX_SENT_DIRECTLY {
            return cx.commands.push_back(Command::Peers(PeerCommand::Publish(Gossip::Claims(proofs))));
        }
        for to in others {
            let (question, request) = (QuestionId::NO_ANSWER, Request::TellClaims(proofs.clone()));
            cx.commands.push_back(Command::Peers(PeerCommand::Ask { to, question, request }));
        }
    }

    /// A member connected: the map is compared with it as soon as none is being compared with.
    pub(crate) fn compare_with(&mut self, cx: &mut Context, members: &Membership, peer: AccessPoint) {
        self.comparison.soon(cx.now.moment, peer);
        self.compare(cx, members);
    }

    fn compare(&mut self, cx: &mut Context, members: &Membership) {
        let known = |member: &AccessPoint| members.standings().contains_key(member);
        self.comparison.tick(cx, &mut self.register, members.live(), known, self.synced);
    }

    /// Many claims were entered: the digests of the map are computed now, and not when a member waits for them.
    pub(crate) fn refresh_map(&mut self) {
        self.register.refresh();
    }

    /// A member compares its map with ours.
    pub(crate) fn compared(&mut self, cx: &mut Context, ticket: Ticket, parts: &[(MapPart, MapDigest)]) {
        self.register.refresh();
        let mut answer = Vec::with_capacity(parts.len());
        for (part, theirs) in parts {
            answer.push(if self.register.digest(*part) == *theirs {
                ComparedPart::Equal
            } else {
                ComparedPart::Differs(part.parts().map(|inner| self.register.digest(inner)).collect())
            });
        }
        if answer.iter().any(|part| *part != ComparedPart::Equal) {
            self.comparison.changed();
        }
        cx.answer(ticket, Response::Compared { whole: self.synced, parts: answer });
    }

    /// A member wants claims that it lacks.
    pub(crate) fn claims_wanted(&self, cx: &mut Context, ticket: Ticket, wanted: &[WantedPart]) {
        let (proofs, more) = self.register.wanted(wanted);
        cx.answer(ticket, Response::Claims(proofs, more));
    }

    /// Compares the map with one member after the other; who is alone looks after its own subnets instead. Whether the map is acted on from
    /// now on, and was not before.
    pub(crate) fn tick_comparison(&mut self, cx: &mut Context, members: &Membership) -> bool {
        let alone = members.live().len() == 1;
        if alone && self.comparison.is_due(cx.now.moment) && !cx.settings.joins && self.synced {
            self.claim_own_subnets(cx);
        }
        if !alone {
            self.compare(cx, members);
        }
        self.sync_if_whole(cx, members)
    }

    /// A member answered a question of a comparison, or did not. Returns the claims that it sent, which are not checked yet.
    pub(crate) fn comparison_answered(
        &mut self,
        cx: &mut Context,
        question: MapQuestion,
        answer: Option<Response>,
    ) -> Vec<(Claim, SignedClaim)> {
        self.comparison.answered(cx, &self.register, question, answer, self.synced)
    }

    /// The claims that a member sent in a comparison are entered: asks for the rest, or begins the next comparison while the map is not
    /// whole. Whether the map is acted on from now on, and was not before.
    pub(crate) fn go_on_comparing(&mut self, cx: &mut Context, members: &Membership, heard: Heard) -> bool {
        self.comparison.go_on(cx, &self.register, heard, self.synced);
        let first = self.sync_if_whole(cx, members);
        if !self.synced {
            self.compare(cx, members);
        }
        first
    }

    fn sync_if_whole(&mut self, cx: &mut Context, members: &Membership) -> bool {
        !self.synced && self.comparison.is_whole(cx.now.moment, &others(cx, members)) && self.sync(cx)
    }

    /// Whether the map is whole, or there is no member: only then is it acted on.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    /// From now on the map is acted on, and our own subnets are claimed. Whether it was not before.
    pub(crate) fn sync(&mut self, cx: &mut Context) -> bool {
        let first = !std::mem::replace(&mut self.synced, true);
        if first {
            self.claim_own_subnets(cx);
        }
        first
    }
}

/// The other living members.
fn others(cx: &Context, members: &Membership) -> Vec<AccessPoint> {
    members.live().iter().copied().filter(|peer| *peer != cx.me).collect()
}
