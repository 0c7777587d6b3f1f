//! How does a subnet get from its owner to a better one, so that nothing is lost, asked twice, or left alone?
//!
//! Nothing travels that does not travel anyway. The next owner first becomes a replica: the journals come to it row by row while the
//! present owner goes on crawling. When little is lacking the present owner stops asking these servers, lets what is under way come to its
//! end, and has the last rows copied. Then it gives the subnet up by a release that names the next owner as the first heir, and tells it
//! so. The next owner claims it at the following epoch and begins where the journals end.
//!
//! The one point at which the owner changes is the claim. Before the release is durable everything can be called off; after it the
//! swarm's rule for released subnets holds, whoever dies: the heirs take over in their turns, and the former owner is one of them.

use crate::ownership::register::claimable;
use crate::{
    crawler::{Crawler, Pending},
    event::{Command, PeerCommand},
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    chronicle::{Chronicle, Holding},
    claim::{Answer, Claim, ClaimReason, MAX_ANSWERS, SignedClaim},
    journal::JournalEntry,
    message::{Request, Response, Unwilling},
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Subnets on their way out at a time, and on their way in.
pub(crate) const MAX_GOING: usize = 2;
pub(crate) const MAX_COMING: usize = 4;

/// How long the journals may take to be copied while the crawl goes on.
const COPY_PATIENCE: Millis = 300_000;

/// Rows that may still be lacking when the crawl stops: they take less than a second.
const MAX_ROWS_LACKING: u64 = 500;

/// How long what is under way may take to end, and the last rows to be copied, before the crawl goes on and the move is called off.
const STOP_PATIENCE: Millis = 15_000;

/// Subnets whose owners are remembered; beyond them those with the smallest addresses are forgotten.
pub(crate) const MAX_CHRONICLES: usize = 65_536;

/// Everything that moves, or moved.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    going: BTreeMap<Subnet, Going>,
    /// Subnets that we released for somebody, and the epoch of the release, until somebody claims them.
    given: BTreeMap<Subnet, u64>,
    /// Subnets that we said yes to, at which epoch, and until when we wait for them.
    coming: BTreeMap<Subnet, (u64, Moment)>,
    /// Subnets that were handed to us with everything, and the epoch of the release.
    handed: BTreeMap<Subnet, u64>,
    /// Who had which subnet, as far as was heard.
    pub(crate) chronicles: BTreeMap<Subnet, Chronicle>,
}

/// A subnet of ours on its way to another one.
#[derive(Debug)]
struct Going {
    to: AccessPoint,
    /// Of our claim.
    epoch: u64,
    why: String,
    stage: Stage,
    until: Moment,
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The next owner was asked whether it would.
    Offered,
    /// It would: the journals are being copied, the crawl goes on.
    Copying,
    /// Nothing new is asked.
    Stopping,
    /// Nothing is under way any more; the last row is written.
    Closing,
    /// The release is being stored.
    Releasing,
    /// It is released; the next owner has not been heard to claim it.
    Given,
    /// Seen from the next owner: it said yes.
    Coming,
    /// Seen from the next owner: it has everything, and the release.
    Handed,
}

/// Why a subnet cannot be handed over now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Immovable {
    /// It is another's, or nobody's.
    #[error("this access point does not own it; `nearcrawl why` names the owner, which can hand it over")]
    NotOurs,
    /// One's own network is one's own (IPMicra §4.1).
    #[error("this access point's own address is in it")]
    OwnNetwork,
    /// The one who should have it is not alive, or it is ourselves.
    #[error("the receiver is not another member that is alive; `nearcrawl members` lists them")]
    NobodyThere,
    /// Its history is being read, its claim is being watched, or nothing is fetched at the moment.
    #[error("its journal is being read, its claim is new, or nothing is fetched at the moment; try again in half a minute")]
    Unsettled,
    /// It moves already, or as many as may.
    #[error("its hand-over has begun already, or the limit of concurrent hand-overs is reached")]
    Busy,
}

impl Moves {
    /// To whom a subnet of ours is on its way and copied.
    pub(crate) fn next_owner(&self, subnet: &Subnet) -> Option<AccessPoint> {
        self.going.get(subnet).filter(|going| going.stage != Stage::Offered).map(|going| going.to)
    }

    /// Whether nothing may be asked in a subnet of ours, because it is about to go.
    pub(crate) fn stopped(&self, subnet: &Subnet) -> bool {
        self.going.get(subnet).is_some_and(|going| going.stage >= Stage::Stopping)
    }

    /// Whether a subnet of ours is on its way to somebody.
    pub(crate) fn is_going(&self, subnet: &Subnet) -> bool {
        self.going.contains_key(subnet)
    }

    /// How many are on their way out, and on their way in.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        (self.going.len(), self.coming.len())
    }

    /// Whether one more subnet may go.
    pub(crate) fn may_go(&self) -> bool {
        self.going.len() < MAX_GOING
    }

    /// Who had a subnet, as far as is known here.
    pub(crate) fn history_of(&self, subnet: &Subnet) -> Option<Vec<Holding>> {
        self.chronicles.get(subnet).map(|chronicle| chronicle.holdings.clone())
    }

    /// Whether a subnet was handed to us with all its journals by the owner who released it at this epoch.
    pub(crate) fn was_handed(&self, subnet: &Subnet, released_at: u64) -> bool {
        self.handed.get(subnet) == Some(&released_at)
    }

    /// Notes something of who has, or had, a subnet.
    fn chronicle(&mut self, subnet: Subnet, note: impl FnOnce(&mut Chronicle)) {
        note(self.chronicles.entry(subnet).or_default());
        if self.chronicles.len() > MAX_CHRONICLES {
            self.chronicles.pop_first();
        }
    }
}

impl Crawler {
    /// How far everything is that moves here.
    pub fn stages(&self) -> impl Iterator<Item = Stage> + '_ {
        let going = self.migration.moves.going.values().map(|going| going.stage);
        let given = self.migration.moves.given.keys().map(|_| Stage::Given);
        going
            .chain(given)
            .chain(self.migration.moves.coming.keys().map(|_| Stage::Coming))
            .chain(self.migration.moves.handed.keys().map(|_| Stage::Handed))
    }

    /// How far a subnet is on its way from here to another owner, or from another owner to us.
    pub fn moving(&self, subnet: &Subnet) -> Option<Stage> {
        let going = self.migration.moves.going.get(subnet).map(|going| going.stage);
        let coming = || self.migration.moves.coming.contains_key(subnet).then_some(Stage::Coming);
        let handed = || self.migration.moves.handed.contains_key(subnet).then_some(Stage::Handed);
        let given = || self.migration.moves.given.contains_key(subnet).then_some(Stage::Given);
        going.or_else(given).or_else(coming).or_else(handed)
    }

    /// Whether a subnet can be handed over to somebody now; the epoch of our claim to it.
    pub fn may_move(&self, subnet: &Subnet, to: &AccessPoint) -> Result<u64, Immovable> {
        let claim = self.ownership.register.claim(subnet).filter(|claim| claim.owner == self.context.me).ok_or(Immovable::NotOurs)?;
        if claim.reason == ClaimReason::OwnSubnet {
            return Err(Immovable::OwnNetwork);
        }
        if *to == self.context.me || !self.live().contains(to) {
            return Err(Immovable::NobodyThere);
        }
        let epoch = self.epoch_if_movable(subnet).ok_or(Immovable::Unsettled)?;
        if !self.migration.moves.may_go() || self.migration.moves.is_going(subnet) {
            return Err(Immovable::Busy);
        }
        Ok(epoch)
    }

    /// Begins to hand a subnet of ours over, if that can be done now.
    pub(crate) fn hand_over(&mut self, subnet: Subnet, to: AccessPoint, why: String) {
        let Ok(epoch) = self.may_move(&subnet, &to) else { return };
        self.context.counters.moves_offered += 1;
        let until = self.context.now.moment.after(STOP_PATIENCE);
        self.migration.moves.going.insert(subnet, Going { to, epoch, why, stage: Stage::Offered, until });
        self.ask(to, Pending::Offer { subnet }, Request::Offer { subnet, epoch });
    }

    /// The epoch of our claim to a subnet, if it may change hands now.
    pub(crate) fn epoch_if_movable(&self, subnet: &Subnet) -> Option<u64> {
        let claim = self.ownership.register.claim(subnet).filter(|claim| claim.owner == self.context.me)?;
        let settled = !self.replication.is_loading(subnet) && !self.ownership.is_watched(subnet);
        // One's own network is one's own (IPMicra §4.1).
        let movable = claim.reason != ClaimReason::OwnSubnet && settled && self.held_back().is_none();
        (movable && self.membership.may_claim(self.context.now.moment)).then_some(claim.epoch)
    }

    /// An owner offers us a subnet.
    pub(crate) fn offered(&mut self, from: AccessPoint, ticket: u64, subnet: Subnet, epoch: u64) {
        self.migration.moves.coming.retain(|_, (_, until)| *until > self.context.now.moment);
        let theirs = self.ownership.register.claim(&subnet).is_some_and(|claim| (claim.owner, claim.epoch) == (from, epoch));
        let unwilling = if !theirs || !claimable(&subnet) {
            Some(Unwilling::NotYours)
        } else if self.held_back().is_some() || !self.membership.may_claim(self.context.now.moment) {
            Some(Unwilling::HeldBack)
        } else if self.crawl.waiting >= self.context.settings.max_waiting {
            Some(Unwilling::Full)
        } else if self.migration.moves.coming.len() >= MAX_COMING && !self.migration.moves.coming.contains_key(&subnet) {
            Some(Unwilling::Busy)
        } else {
            None
        };
        if unwilling.is_none() {
            self.migration.moves.coming.insert(subnet, (epoch, self.context.now.moment.after(COPY_PATIENCE + STOP_PATIENCE)));
        }
        self.answer(ticket, Response::Offered(unwilling));
    }

    /// Whoever we offered a subnet to answered, or did not.
    pub(crate) fn offer_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        let until = self.context.now.moment.after(COPY_PATIENCE);
        let Some(going) = self.migration.moves.going.get_mut(&subnet).filter(|going| going.to == from && going.stage == Stage::Offered)
        else {
            return;
        };
        match answer {
            Some(Response::Offered(None)) => {
                (going.stage, going.until) = (Stage::Copying, until);
                self.copy_to_next_owner(subnet);
            }
            Some(Response::Offered(Some(why))) => {
                *self.context.counters.moves_refused.entry(why).or_default() += 1;
                self.call_off(subnet);
            }
            _ => self.call_off(subnet),
        }
    }

    pub(crate) fn copy_to_next_owner(&mut self, subnet: Subnet) {
        self.replication.assign_subnet(&self.context, &self.membership, &self.migration, &subnet);
    }

    /// The subnet stays, and its crawl goes on.
    pub(crate) fn call_off(&mut self, subnet: Subnet) {
        let Some(going) = self.migration.moves.going.remove(&subnet) else { return };
        self.context.counters.moves_called_off += 1;
        self.move_failed(subnet, going.to);
        self.copy_to_next_owner(subnet);
        for host in self.crawl.by_subnet.get(&subnet).cloned().unwrap_or_default() {
            self.want(&host);
        }
        self.route();
    }

    /// Takes every move one step further, if it is time.
    pub(crate) fn tick_moves(&mut self) {
        let now = self.context.now.moment;
        let going: Vec<(Subnet, AccessPoint, u64, Stage, bool)> =
            self.migration.moves.going.iter().map(|(s, g)| (*s, g.to, g.epoch, g.stage, g.until <= now)).collect();
        if going.is_empty() {
            return;
        }
        let live = self.live();
        for (subnet, to, epoch, stage, late) in going {
            if stage == Stage::Releasing {
                continue;
            }
            if late || !live.contains(&to) || self.epoch_if_movable(&subnet) != Some(epoch) {
                self.call_off(subnet);
                continue;
            }
            let lacking = self.replication.lacking(to, &subnet);
            match stage {
                Stage::Copying if lacking.is_some_and(|rows| rows <= MAX_ROWS_LACKING) => {
                    self.enter_stage(subnet, Stage::Stopping, now.after(STOP_PATIENCE));
                }
                Stage::Stopping if self.is_quiet(&subnet) => {
                    self.write_chronicle(subnet);
                    self.replication.flush(&mut self.context);
                    self.enter_stage(subnet, Stage::Closing, now.after(STOP_PATIENCE));
                }
                Stage::Closing if lacking == Some(0) && self.replication.all_is_stored(&subnet) && self.is_quiet(&subnet) => {
                    self.release_to(subnet, to)
                }
                _ => {}
            }
        }
    }

    pub(crate) fn enter_stage(&mut self, subnet: Subnet, stage: Stage, until: Moment) {
        if let Some(going) = self.migration.moves.going.get_mut(&subnet) {
            (going.stage, going.until) = (stage, until);
        }
    }

    /// Whether nothing of a subnet's sites is under way: no request, no question to the seen set.
    pub(crate) fn is_quiet(&self, subnet: &Subnet) -> bool {
        let Some(hosts) = self.crawl.by_subnet.get(subnet) else { return true };
        let busy = |host: &Host| self.crawl.sites.get(host).is_some_and(|site| site.is_busy() || self.asleep(site));
        !hosts.iter().any(busy) && !self.crawl.seen_pending.values().any(|purpose| purpose.concerns(hosts))
    }

    /// The last row: what the next owner should know of the subnet as a whole.
    pub(crate) fn write_chronicle(&mut self, subnet: Subnet) {
        let Some(host) = self.crawl.by_subnet.get(&subnet).and_then(|hosts| hosts.first().cloned()) else { return };
        let why = self.migration.moves.going.get(&subnet).map(|going| going.why.clone()).unwrap_or_default();
        let mut chronicle = self.migration.moves.chronicles.get(&subnet).cloned().unwrap_or_default();
        chronicle.leave(&why);
        chronicle.learnt = self.learnt_of(&subnet);
        self.migration.moves.chronicles.insert(subnet, chronicle.clone());
        self.journal(&host, JournalEntry::Chronicled(chronicle));
    }

    /// In a journal that begins, or begins again with us, stands what is known of the owners before, if it is the subnet's first.
    pub(crate) fn carry_chronicle(&mut self, subnet: Subnet, host: &Host) {
        let first = self.crawl.by_subnet.get(&subnet).and_then(|hosts| hosts.first());
        if first == Some(host)
            && let Some(chronicle) = self.migration.moves.chronicles.get(&subnet).cloned()
        {
            self.journal(host, JournalEntry::Chronicled(Chronicle { learnt: self.learnt_of(&subnet), ..chronicle }));
        }
    }

    /// Gives the subnet up, with the next owner as the first heir and ourselves among those after it.
    pub(crate) fn release_to(&mut self, subnet: Subnet, to: AccessPoint) {
        let Some(claim) = self.ownership.register.claim(&subnet).cloned() else { return };
        self.enter_stage(subnet, Stage::Releasing, self.context.now.moment);
        // How far it is by now, not how far it was when it was claimed.
        let measured = self.delegation.measured_by(self.context.me, &subnet);
        let mine = measured.or(claim.rtt_us).map(|rtt_us| Answer { rtt_us, prober: self.context.me.into() });
        let others = claim.answers.iter().copied().filter(|answer| answer.prober != ShortId::from(self.context.me));
        let mut answers: Vec<_> = others.chain(mine).collect();
        answers.sort_unstable();
        answers.truncate(MAX_ANSWERS);
        self.make_claims(vec![Claim { released: true, runner_up: Some(to), answers, ..claim }]);
    }

    /// The release of a subnet of ours is durable and holds: whoever it is for is told at once.
    pub(crate) fn released_for_good(&mut self, subnet: Subnet, proof: SignedClaim) {
        if let Some(Going { to, epoch, .. }) = self.migration.moves.going.remove(&subnet) {
            self.context.counters.moves_made += 1;
            self.migration.moves.given.insert(subnet, epoch);
            self.context.commands.push_back(Command::Peers(PeerCommand::Ask { to, question: 0, request: Request::TakeOver(proof) }));
        }
    }

    /// An owner hands us a subnet whose journals are all here.
    pub(crate) fn take_over(&mut self, from: AccessPoint, ticket: u64, proof: SignedClaim) {
        let Some(claim) =
            proof.open().ok().filter(|claim| claim.owner == from && claim.released && claim.runner_up == Some(self.context.me))
        else {
            self.refuse("invalid hand-overs");
            return self
                .answer(ticket, Response::Refused("this is not the sender's release, or it does not name this access point".to_owned()));
        };
        if self.migration.moves.coming.remove(&claim.subnet).is_some_and(|(epoch, _)| epoch == claim.epoch) {
            self.migration.moves.handed.insert(claim.subnet, claim.epoch);
        }
        self.hear_claims(vec![proof]);
        self.tick_succession();
        self.answer(ticket, Response::Noted);
    }

    /// A subnet has an owner: that is remembered. What was handed to us under an earlier epoch is of no use any more.
    pub(crate) fn chronicle(&mut self, claim: &Claim) {
        if claim.released {
            return;
        }
        let Claim { subnet, epoch, owner, reason, .. } = *claim;
        if self.migration.moves.handed.get(&subnet).is_some_and(|released_at| *released_at < epoch) {
            self.migration.moves.handed.remove(&subnet);
        }
        if self.migration.moves.given.get(&subnet).is_some_and(|released_at| *released_at < epoch) {
            self.migration.moves.given.remove(&subnet);
        }
        let holding = Holding { owner, epoch, reason, claimed_at: self.context.now.wall, released_text: None };
        self.migration.moves.chronicle(subnet, |chronicle| chronicle.enter(holding));
    }

    /// What the owners before us wrote down, each its own: all know who had it, the latest one what is to be learnt of it.
    pub(crate) fn read_chronicles(&mut self, subnet: Subnet, told: Vec<Chronicle>) {
        let learnt = told.iter().filter(|chronicle| !chronicle.learnt.is_empty());
        if let Some(latest) = learnt.max_by_key(|chronicle| chronicle.holdings.last().map(|last| last.epoch)) {
            self.learn_from_chronicle(subnet, latest);
        }
        for chronicle in told {
            self.migration.moves.chronicle(subnet, |known| known.merge(chronicle));
        }
    }
}
