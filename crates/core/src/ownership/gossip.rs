//! What does every member know? Claims and roll-ups are gossiped; what gossip lost is found by comparing maps.

use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::Membership,
    ownership::{Ownership, comparison::Heard},
    pending::MapQuestion,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    ids::Ticket,
    message::{Gossip, Response},
    ownership_map::{ComparedPart, MapDigest, MapPart, WantedPart},
    time::Millis,
};

/// Claims are told at most this often, many at a time.
const NEWS_EVERY: Millis = 1_000;

/// Claims in one gossip message: about 250 bytes each.
const MAX_NEWS: usize = 900;

impl Ownership {
    /// Tells claims that are new, if the last telling is long enough ago.
    pub(crate) fn tell_claims(&mut self, cx: &mut Context) {
        if self.pending_claims.is_empty() || cx.now.moment < self.gossip_due {
            return;
        }
        self.gossip_due = cx.now.moment.after(NEWS_EVERY);
        let mut proofs = Vec::new();
        while proofs.len() < MAX_NEWS
            && let Some((_, proof)) = self.pending_claims.pop_first()
        {
            proofs.push(proof);
        }
        cx.commands.push_back(Command::Peers(PeerCommand::Publish(Gossip::Claims(proofs))));
    }

    /// A member connected: the map is compared with it as soon as none is being compared with.
    pub(crate) fn compare_with(&mut self, cx: &mut Context, members: &Membership, peer: AccessPoint) {
        self.comparison.soon(cx.now.moment, peer);
        self.compare(cx, members);
    }

    fn compare(&mut self, cx: &mut Context, members: &Membership) {
        let known = |member: &AccessPoint| members.standings().contains_key(member);
        self.comparison.tick(cx, &mut self.register, &others(cx, members), known, self.synced);
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
        let alone = others(cx, members).is_empty();
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
    members.live().into_iter().filter(|peer| *peer != cx.me).collect()
}
