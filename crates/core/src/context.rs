//! What every machine is given: time, identity, settings, counters, and where its commands go.

use crate::{
    crawler::{Pending, Settings},
    event::{Command, PeerCommand},
    report::Counters,
    signal::Signal,
};
use ed25519_dalek::SigningKey;
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    fingerprint::FingerprintKey,
    message::{Request, Response},
    subnet::Subnet,
    time::{Moment, Now},
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

/// What every machine is given.
pub(crate) struct Context {
    pub(crate) me: AccessPoint,
    pub(crate) key: SigningKey,
    pub(crate) secret: FingerprintKey,
    pub(crate) settings: Settings,
    pub(crate) hierarchy: Arc<Hierarchy>,
    pub(crate) started: Moment,
    pub(crate) now: Now,
    pub(crate) counters: Counters,
    pub(crate) commands: VecDeque<Command>,
    /// What machines want of each other and is not carried out yet.
    pub(crate) signals: VecDeque<Signal>,
    pub(crate) pending: BTreeMap<u64, Pending>,
    pub(crate) next_number: u64,
    pub(crate) rounds: u64,
    pub(crate) tick_due: Moment,
}

impl Context {
    /// What is delegated around an address that nobody owns, if this access point decides it.
    pub(crate) fn unit_of(&self, address: IpAddr) -> Subnet {
        self.settings.policy.delegates(&self.hierarchy, address)
    }

    /// Asks a member; the answer comes back with what is pending.
    pub(crate) fn ask(&mut self, to: AccessPoint, pending: Pending, request: Request) {
        let question = self.number();
        self.pending.insert(question, pending);
        self.commands.push_back(Command::Peers(PeerCommand::Ask { to, question, request }));
    }

    /// Answers what a member asked.
    pub(crate) fn answer(&mut self, ticket: u64, response: Response) {
        self.commands.push_back(Command::Peers(PeerCommand::Answer { ticket, response }));
    }

    /// A number that nothing else has had since the start: for questions, receipts and tickets.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Counts something that was refused.
    pub(crate) fn refuse(&mut self, class: &'static str) {
        *self.counters.refused.entry(class).or_default() += 1;
    }

    /// Tells another machine; it hears of it as soon as this one has returned.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.signals.push_back(signal);
    }
}
