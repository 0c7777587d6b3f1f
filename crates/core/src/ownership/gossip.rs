//! What does every member know? Claims and roll-ups are gossiped; what gossip lost is repaired by comparing digests.

use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::Membership,
    ownership::Ownership,
    pending::Pending,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::Ticket,
    message::{CLAIM_BUCKETS, Gossip, Request, Response},
    time::Millis,
};

/// Claims are told at most this often, many at a time.
const NEWS_EVERY: Millis = 1_000;

/// Claims in one gossip message: about 250 bytes each.
const MAX_NEWS: usize = 900;

/// Claims in one answer to a comparison.
const MAX_COMPARED: usize = 2_500;

/// The ownership map is compared with one member this often.
const COMPARE_EVERY: Millis = 5_000;

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

    /// Asks a member for the claims that we lack.
    pub(crate) fn compare_with(&self, cx: &mut Context, peer: AccessPoint) {
        let buckets = self.register.buckets().to_vec();
        cx.ask(peer, Pending::Compare, Request::CompareClaims(buckets));
    }

    /// A member compares its map with ours.
    pub(crate) fn compared(&self, cx: &mut Context, ticket: Ticket, buckets: &[u64]) {
        let answer = if buckets.len() == CLAIM_BUCKETS {
            let (proofs, more) = self.register.differing(buckets, MAX_COMPARED);
            Response::Claims(proofs, more)
        } else {
            cx.refuse("ownership map comparisons with another number of buckets");
            Response::Refused(format!("an ownership map is compared in {CLAIM_BUCKETS} buckets"))
        };
        cx.answer(ticket, answer);
    }

    /// Compares the map with one member after the other; who is alone looks after its own subnets instead.
    pub(crate) fn tick_comparison(&mut self, cx: &mut Context, members: &Membership) {
        let now = cx.now.moment;
        if now < self.compare_due {
            return;
        }
        self.compare_due = now.after(COMPARE_EVERY);
        let others: Vec<_> = members.live().into_iter().filter(|peer| *peer != cx.me).collect();
        match others.get(cx.rounds as usize / 7 % others.len().max(1)) {
            Some(peer) => self.compare_with(cx, *peer),
            None if !cx.settings.joins && self.synced => self.claim_own_subnets(cx),
            None => {}
        }
    }

    /// A member sent the claims that we lacked; `before` is what we had. Asks for the rest, or the map is acted on from now on. Whether it is
    /// for the first time.
    pub(crate) fn comparison_answered(&mut self, cx: &mut Context, from: AccessPoint, more: bool, before: &[u64]) -> bool {
        if more && self.register.buckets() != before {
            self.compare_with(cx, from);
            return false;
        }
        self.sync(cx)
    }

    /// Whether the map was compared with a member, or there is no member: only then is it acted on.
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
