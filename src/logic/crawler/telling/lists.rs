//! Who is there, what is whose, and which servers are on record? In order, page by page.

use super::super::Crawler;
use crate::model::{
    access_point::AccessPoint,
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
    view::{Liveness, OwnershipView, PeerView, ServersPage},
};
use std::ops::Bound;

impl Crawler {
    /// The members: itself first, then the others in order, then those that were given up and still own something.
    pub fn peers(&self) -> Vec<PeerView> {
        let now = self.now.moment;
        let me = self.peer(self.me, Liveness::Alive, now.since(self.started));
        let others = self.roster.standings().iter().map(|(peer, standing)| match standing.silent_since {
            Some(since) => self.peer(*peer, Liveness::Silent, now.since(since)),
            // A short silence that ended is forgotten: it is alive for as long as it is a member.
            None => self.peer(*peer, Liveness::Alive, now.since(standing.member_since)),
        });
        let dead = self.given_up().map(|(peer, since)| self.peer(peer, Liveness::Dead, now.since(since)));
        std::iter::once(me).chain(others).chain(dead).collect()
    }

    /// Owners that are no members any more, and since when.
    pub(super) fn given_up(&self) -> impl Iterator<Item = (AccessPoint, Moment)> {
        // Owners that were never met are entered with the moment at which they will be given up.
        let over = self.dead_since.iter().filter(|(peer, since)| **since <= self.now.moment && !self.roster.standings().contains_key(peer));
        over.map(|(peer, since)| (*peer, *since))
    }

    /// How alive a member is; none if it was never met.
    pub(super) fn liveness(&self, peer: AccessPoint) -> Option<Liveness> {
        if peer == self.me {
            return Some(Liveness::Alive);
        }
        match self.roster.standings().get(&peer) {
            Some(standing) if standing.silent_since.is_some() => Some(Liveness::Silent),
            Some(_) => Some(Liveness::Alive),
            None => self.given_up().any(|(gone, _)| gone == peer).then_some(Liveness::Dead),
        }
    }

    fn peer(&self, access_point: AccessPoint, liveness: Liveness, since_ms: Millis) -> PeerView {
        let is_me = access_point == self.me;
        let addresses = if is_me {
            self.membership.me().addresses.clone()
        } else {
            self.incarnations.get(&access_point).map(|(_, addresses)| addresses.clone()).unwrap_or_default()
        };
        let roll_up = self.roll_ups.of(&access_point);
        let total = roll_up.map(|(roll_up, _)| roll_up.summary.total).unwrap_or_default();
        PeerView {
            access_point,
            is_me,
            addresses,
            liveness,
            since_ms,
            subnets: self.ownership.count(&access_point) as u64,
            servers: total.servers,
            pages: total.pages,
            roll_up_age_ms: roll_up.map(|(_, at)| self.now.moment.since(at)),
        }
    }

    /// Whose the subnets after `after` are, in address order, at most `most` of them.
    pub fn ownership(&self, after: Option<Subnet>, most: usize) -> Vec<OwnershipView> {
        self.ownership.after(after).take(most).map(OwnershipView::from).collect()
    }

    /// The records of its own servers after `after`, in the order of their names, at most `most` of them (at least one).
    pub fn servers(&self, after: Option<&Host>, most: usize) -> ServersPage {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut sites = self.sites.range::<Host, _>((from, Bound::Unbounded)).peekable();
        let servers: Vec<_> = sites.by_ref().take(most.max(1)).map(|(_, site)| site.record.clone()).collect();
        let next = sites.peek().and_then(|_| servers.last()).map(|record| record.host.clone());
        ServersPage { servers, next }
    }
}
