//! Who is here? Feeds SWIM, follows the roster, and answers what other members ask.

use super::{Command, Crawler, Pending};
use crate::{
    logic::membership::{FenceReason, Member, Output, Verdict, rendezvous},
    model::{
        access_point::AccessPoint,
        message::{Request, Response},
        subnet::Subnet,
        time::Millis,
        url::Host,
    },
};

/// How long a newly started member waits for its swarm before it goes on alone with what it owns (it is one of two then).
const LONELY_AFTER: Millis = 60_000;

impl Crawler {
    pub(super) fn listening(&mut self, address: String) {
        let mut addresses = self.membership.me().addresses.clone();
        if !addresses.contains(&address) {
            addresses.push(address);
            self.membership.readdress(self.now.moment, addresses);
        }
    }

    pub(super) fn met(&mut self, access_point: AccessPoint, incarnation: u64, addresses: Vec<String>) {
        self.roster.heard(self.now.moment);
        self.membership.join(self.now.moment, Member::new(access_point, incarnation, addresses));
        self.members_said();
        self.compare_with(access_point);
        self.tell_edition_soon();
        self.roll_up_changed = true;
    }

    pub(super) fn tick_members(&mut self) {
        self.membership.tick(self.now.moment);
        self.members_said();
        for Verdict::Dead(gone) in self.roster.tick(self.now.moment) {
            self.members_changed();
            self.forget_distances(gone);
            self.dead(gone);
        }
        let alone_long = self.settings.member && self.now.moment.since(self.started) >= LONELY_AFTER && self.roster.standings().len() < 2;
        if !self.synced && alone_long {
            self.synced = true;
            self.claim_own_subnets();
        }
    }

    /// Carries out what SWIM wants and notes what it found out.
    fn members_said(&mut self) {
        let outputs: Vec<_> = self.membership.drain().collect();
        for output in outputs {
            match output {
                Output::Send { to, addresses, bytes } => {
                    self.know(to, addresses);
                    self.commands.push_back(Command::Ask { to, question: 0, request: Request::Swim(bytes) });
                }
                Output::Up(member) => {
                    let (who, incarnation) = (member.access_point, member.incarnation);
                    self.know(who, member.addresses);
                    if let Some((known, _)) = self.incarnations.get_mut(&who) {
                        *known = incarnation;
                    }
                    if !self.roster.standings().contains_key(&who) {
                        self.newcomer(who);
                    }
                    self.roster.up(self.now.moment, who);
                    self.members_changed();
                }
                Output::Down(who) => {
                    self.roster.down(self.now.moment, who);
                    self.members_changed();
                }
                Output::Renewed(_) => {}
            }
        }
    }

    fn know(&mut self, access_point: AccessPoint, addresses: Vec<String>) {
        let known = self.incarnations.entry(access_point).or_default();
        if !addresses.is_empty() && known.1 != addresses {
            known.1.clone_from(&addresses);
            self.commands.push_back(Command::Know { access_point, addresses });
        }
    }

    /// The living are others than before: keepers and stewards may have changed.
    fn members_changed(&mut self) {
        self.members_changed_at = Some(self.now.moment);
        self.assign_keepers();
        self.outbox.wake_all();
        self.roll_up_changed = true;
    }

    /// Takes in a question of a member.
    pub(super) fn asked(&mut self, from: AccessPoint, ticket: u64, request: Request) {
        self.roster.heard(self.now.moment);
        match request {
            Request::Swim(bytes) => {
                if self.membership.receive(self.now.moment, from, &bytes).is_err() {
                    self.refuse("membership datagrams");
                }
                self.members_said();
                self.answer(ticket, Response::Noted);
            }
            Request::Locate(host) => self.locate_for(ticket, host),
            Request::Settle(_, target) => self.settle_for(ticket, target),
            Request::Lend(subnet, target) => self.lent_for(ticket, subnet, target),
            Request::Probe(subnet, target, before) => self.probe_for(from, ticket, subnet, target, before),
            Request::Award { .. } if self.leaving => self.answer(ticket, Response::Refused("it leaves the swarm".to_owned())),
            Request::Award { award, rest } => {
                let subnet = award.subnet;
                if self.ownership.claim(&subnet).is_none() {
                    self.front_rest_subnet(subnet, rest);
                }
                let may = self.may_award(from, &subnet);
                if may {
                    self.awarded(award);
                }
                // Whose it is already, the steward has not heard yet.
                let covering = self.ownership.covering(&subnet).map(|claim| claim.subnet).filter(|_| !may);
                let standing = self.ownership.latest(&covering.unwrap_or(subnet)).filter(|held| !held.claim.released);
                let standing = standing.map(|held| held.proof.clone());
                self.answer(ticket, Response::Settling(standing));
            }
            Request::Offer { subnet, epoch } => self.offered(from, ticket, subnet, epoch),
            Request::TakeOver(release) => self.take_over(from, ticket, release),
            Request::HandOff(parcels) => self.take_in(ticket, parcels),
            Request::Keep(rows) => self.keep(from, ticket, rows),
            Request::Recall(subnet, cursor) => self.commands.push_back(Command::RecallRows { ticket, subnet, from: cursor }),
            Request::CompareClaims(buckets) => self.compared(ticket, &buckets),
            Request::HierarchyManifest(hash) => self.commands.push_back(Command::TellManifest { ticket, hash }),
            Request::HierarchyChunk { manifest, index } => self.commands.push_back(Command::TellChunk { ticket, manifest, index }),
            Request::Farewell(leaving) => {
                self.roster.farewell(self.now.moment, from, leaving);
                self.members_changed();
                self.answer(ticket, Response::Noted);
            }
        }
    }

    /// Takes in an answer to a question of ours.
    pub(super) fn answered(&mut self, question: u64, from: AccessPoint, answer: Option<Response>) {
        if answer.is_some() {
            self.roster.heard(self.now.moment);
        }
        let Some(pending) = self.pending.remove(&question) else { return };
        match (pending, answer) {
            (Pending::Locate(host), Some(Response::Located(located))) => self.located(&host, located),
            (Pending::Locate(host), _) => self.locator.unasked(&host),
            (Pending::Settle | Pending::Award { .. }, Some(Response::Settling(Some(proof)))) => self.hear_claims(vec![proof]),
            (Pending::Award { subnet }, Some(Response::Refused(_))) => self.award_declined(subnet, from),
            (Pending::Settle | Pending::Award { .. }, Some(_)) => {}
            (Pending::Settle, None) => {}
            (Pending::Award { subnet }, None) => self.award_failed(subnet),
            (Pending::Probe { subnet }, answer) => self.prober_answered(subnet, from, answer),
            (Pending::Offer { subnet }, answer) => self.offer_answered(subnet, from, answer),
            (Pending::HandOff, answer) => self.handed_off(question, answer),
            (Pending::Compare, Some(Response::Claims(proofs, more))) => self.compare_answered(from, proofs, more),
            (Pending::Compare, _) => {}
        }
    }

    pub(super) fn answer(&mut self, ticket: u64, response: Response) {
        self.commands.push_back(Command::Answer { ticket, response });
    }

    /// Why nothing may be fetched now, if so.
    pub fn held_back(&self) -> Option<HeldBack> {
        if self.draining || self.leaving {
            Some(HeldBack::Stopping)
        } else if let Some(reason) = self.roster.fenced(self.now.moment) {
            Some(HeldBack::Fenced(reason))
        } else if !self.synced {
            Some(HeldBack::NotJoined)
        } else if self.outbox.len() > super::MOST_OUTGOING {
            Some(HeldBack::OutboxFull)
        } else if !self.room {
            Some(HeldBack::DiskFull)
        } else {
            None
        }
    }

    pub(super) fn steward_of_host(&self, host: &Host) -> AccessPoint {
        rendezvous::steward(rendezvous::key_hash(host.as_str()), &self.live()).unwrap_or(self.me)
    }

    /// The living, in the order in which they serve a subnet.
    pub(super) fn stewards_of(&self, subnet: &Subnet) -> Vec<AccessPoint> {
        rendezvous::order(rendezvous::key_hash(&subnet.to_string()), &self.live())
    }
}

/// Why nothing is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// On the way out.
    Stopping,
    /// Cut off.
    Fenced(FenceReason),
    /// The ownership map has not been compared with anybody yet.
    NotJoined,
    /// Too many URLs wait for their owners.
    OutboxFull,
    /// The disk has no room.
    DiskFull,
}
