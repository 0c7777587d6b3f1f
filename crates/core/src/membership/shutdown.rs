//! Orderly shutdown: finish what is under way, see it stored and copied, release what is held, say good-bye.

use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::Membership,
    ownership::Ownership,
    signal::Signal,
};
use nearcrawl_model::{
    claim::Claim,
    ids::QuestionId,
    message::Request,
    time::{Millis, Moment},
};

/// How long a daemon that stops waits for its replicas, and one that leaves for what else is unfinished.
const PARTING_TIMEOUT: Millis = 15_000;

/// How long a leaver keeps what is its own, so that those that leave at the same time hear of one another: a replica that leaves, too, is
/// replaced before what it has copies of is released.
const HEARS_OTHERS: Millis = 3_000;

/// How long a leaver waits until its replicas have its journals, which may have to be copied anew because others leave, too; and a voter until
/// the others have agreed on a list without it: else they would need it.
const LEAVING_TIMEOUT: Millis = 120_000;

/// How far this access point is on its way out.
#[derive(Default)]
pub(crate) struct Shutdown {
    since: Option<Moment>,
    releasing: bool,
    draining: bool,
    leaving: bool,
    finished: bool,
}

/// What the other machines have not finished yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    /// Fetches, bodies, or questions to the seen set.
    pub(crate) fetching: bool,
    /// Journal rows that are not stored, or that replicas lack.
    pub(crate) journals: bool,
    /// URLs whose owners have not taken them in.
    pub(crate) outgoing: bool,
    /// Whether this access point is on the list of voters, and others remain that may be on it.
    pub(crate) voter: bool,
    /// Whether the others need its vote for the list that is better without it.
    pub(crate) needed: bool,
    /// Whether another process with this key may go on, in whose name a farewell would be said.
    pub(crate) copy: bool,
}

impl Shutdown {
    /// The daemon stops, to come back.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// People want us to go for good.
    pub(crate) fn leave(&mut self, now: Moment) {
        if !self.leaving {
            self.leaving = true;
            self.since = Some(now);
        }
    }

    /// Whether this access point is about to go, for good or not.
    pub(crate) fn is_stopping(&self) -> bool {
        self.draining || self.leaving
    }

    /// Whether it goes for good.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Whether it goes to come back.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether nothing is sent to owners any more: what is ours is being released, or all is done.
    pub(crate) fn is_over(&self) -> bool {
        self.releasing || self.finished
    }

    /// Whether it still has something to wait for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_stopping() && !self.finished
    }

    /// On the way out: waits for what is unfinished, has what is held released, says good-bye.
    pub(crate) fn tick(&mut self, cx: &mut Context, unfinished: Unfinished, ownership: &Ownership, members: &Membership) {
        if !self.is_waiting() {
            return;
        }
        let now = cx.now.moment;
        let waited = now.since(*self.since.get_or_insert(now));
        let patient = waited < PARTING_TIMEOUT;
        let alone = members.live().iter().all(|member| *member == cx.me);
        if self.leaving && !alone && waited < HEARS_OTHERS {
            return;
        }
        let copying = unfinished.journals && waited < if self.leaving { LEAVING_TIMEOUT } else { PARTING_TIMEOUT };
        if copying || patient && (unfinished.fetching || self.leaving && unfinished.outgoing) {
            return;
        }
        if self.leaving {
            let held = ownership.register().held_by(&cx.me).filter_map(|subnet| ownership.register().claim(&subnet).cloned());
            let held: Vec<_> = held.map(|claim| Claim { released: true, ..claim }).collect();
            // Without a lease, what we held may be another's by now, be it another process with our key.
            if !held.is_empty() && !self.releasing && members.may_claim(now) {
                self.releasing = true;
                cx.signal(Signal::Claim(held));
                return;
            }
            // Others that leave, too, have to be heard of before it is known what list would be better.
            let needed = unfinished.needed && waited < LEAVING_TIMEOUT;
            if needed || patient && (ownership.is_telling() || unfinished.voter) {
                return;
            }
        }
        for peer in members.live().iter().copied().filter(|peer| *peer != cx.me && !unfinished.copy) {
            cx.commands.push_back(Command::Peers(PeerCommand::Ask {
                to: peer,
                question: QuestionId::NO_ANSWER,
                request: Request::Farewell(self.leaving),
            }));
        }
        self.finished = true;
        cx.commands.push_back(Command::Finished);
    }
}
