//! A subnet became ours: its journals are fetched from replicas and read from our own store, before its sites go on from there.

use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::Membership,
    ownership::claims::JournalsAt,
    replication::{
        Replication,
        load_queue::MAX_LOADS,
        loading::{Found, JournalCopy, Loading, Overdue},
    },
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey},
    subnet::Subnet,
};
use std::collections::BTreeSet;

/// Replicas that are asked: the two there should be, and one more in case the living changed meanwhile.
const REPLICAS_ASKED: usize = 3;

impl Replication {
    /// A subnet became ours, or was ours at the last stop: its history first, from our own store and from the members that kept it. It is
    /// asked for at once, or in its turn if [`MAX_LOADS`] subnets are being loaded.
    pub(crate) fn load(&mut self, cx: &mut Context, members: &Membership, subnet: Subnet, from: JournalsAt) {
        self.stop_loading(&subnet);
        self.load_queue.push(subnet, from);
        self.begin_loads(cx, members);
    }

    /// Begins as many of the queued loads as may be under way, oldest first. Whom to ask is decided only now: members may have come and
    /// gone while the subnet waited.
    pub(crate) fn begin_loads(&mut self, cx: &mut Context, members: &Membership) {
        while self.loading.len() < MAX_LOADS
            && let Some((subnet, from)) = self.load_queue.pop()
        {
            let asked = match from {
                JournalsAt::Here => BTreeSet::new(),
                JournalsAt::Replicas => likely_replicas(cx, members, &subnet),
            };
            self.begin_load(cx, subnet, asked);
        }
    }

    pub(super) fn begin_load(&mut self, cx: &mut Context, subnet: Subnet, asked: BTreeSet<AccessPoint>) {
        recover(cx, subnet, &asked);
        cx.commands.push_back(Command::Store(StoreCommand::Load(subnet)));
        self.loading.insert(subnet, Loading::new(cx.now.moment, asked));
    }

    /// A replica sent all it had, or nothing came of asking it.
    pub(crate) fn recovered(
        &mut self,
        cx: &Context,
        subnet: Subnet,
        from: AccessPoint,
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
        bytes: usize,
    ) {
        if let Some(loading) = self.loading.get_mut(&subnet)
            && loading.answered(cx.now.moment, subnet, from, journals, bytes)
        {
            self.recovered_bytes += bytes;
        }
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(crate) fn loaded(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        if let Some(loading) = self.loading.get_mut(&subnet) {
            loading.read(subnet, journals);
        }
    }

    /// Asks replicas again that failed to answer. Returns the subnets whose replicas had time enough: those that begin with what was found,
    /// and those for which others are to be asked.
    pub(crate) fn ask_again(&mut self, cx: &mut Context) -> (Vec<Subnet>, Vec<Subnet>) {
        let now = cx.now.moment;
        let (mut begin, mut unheard) = (Vec::new(), Vec::new());
        for (subnet, loading) in &mut self.loading {
            recover(cx, *subnet, &loading.ask_again(now));
            match loading.overdue(now) {
                Some(Overdue::Begin) => begin.push(*subnet),
                Some(Overdue::AskOthers) => unheard.push(*subnet),
                None => {}
            }
        }
        (begin, unheard)
    }

    /// No replica of a subnet answered: asks the members that should have it by now.
    pub(crate) fn ask_others(&mut self, cx: &mut Context, members: &Membership, subnet: Subnet) {
        let Some(loading) = self.loading.get_mut(&subnet) else { return };
        let others = likely_replicas(cx, members, &subnet);
        loading.ask_instead(cx.now.moment, &others);
        recover(cx, subnet, &others);
    }

    /// All that can be had of a subnet's journals; none as long as a member is waited for. They are not being loaded any more then.
    pub(crate) fn take_found(&mut self, subnet: &Subnet) -> Option<Found> {
        let complete = self.loading.get(subnet).is_some_and(Loading::is_complete);
        complete.then(|| self.take_loading(subnet)).flatten().map(Loading::into_found)
    }

    /// A site goes on from this journal: it is ours from now on. Returns which of the URLs that it names go on their way now; if others kept
    /// it, they go when it is stored here.
    pub(crate) fn take_over(&mut self, cx: &mut Context, copy: JournalCopy, outgoing: Vec<Item>) -> Vec<Item> {
        if copy.own {
            self.replicas.stored(&copy.key, copy.entries.len() as u64);
            return outgoing;
        }
        self.queue.adopt(cx, copy.key, &copy.entries, outgoing);
        Vec::new()
    }

    /// The journal of an earlier run that others kept: it is ours when it is stored here.
    pub(crate) fn take_over_previous_run(&mut self, cx: &mut Context, previous: JournalCopy) {
        self.queue.adopt(cx, previous.key, &previous.entries, Vec::new());
    }

    /// A subnet is not ours any more: what others kept of it is of no use.
    pub(crate) fn stop_loading(&mut self, subnet: &Subnet) {
        self.load_queue.remove(subnet);
        self.take_loading(subnet);
    }

    fn take_loading(&mut self, subnet: &Subnet) -> Option<Loading> {
        let loading = self.loading.remove(subnet)?;
        self.recovered_bytes -= loading.bytes();
        Some(loading)
    }

    /// How many bytes other members have sent of journals that are still being fetched or read.
    pub(crate) fn recovered_bytes(&self) -> usize {
        self.recovered_bytes
    }

    /// Whether the journals of a subnet are being fetched or read, or wait for that.
    pub(crate) fn is_loading(&self, subnet: &Subnet) -> bool {
        self.loading.contains_key(subnet) || self.load_queue.contains(subnet)
    }

    /// Subnets whose journals are being fetched or read, or wait for that.
    pub(crate) fn subnets_loading(&self) -> usize {
        self.loading.len() + self.load_queue.len()
    }

    /// Subnets whose journals are being fetched or read now, at most [`MAX_LOADS`].
    pub(crate) fn loads_under_way(&self) -> usize {
        self.loading.len()
    }
}

fn recover<'a>(cx: &mut Context, subnet: Subnet, replicas: impl IntoIterator<Item = &'a AccessPoint>) {
    cx.commands.extend(replicas.into_iter().map(|from| Command::Peers(PeerCommand::Recover { subnet, from: *from })));
}

fn likely_replicas(cx: &Context, members: &Membership, subnet: &Subnet) -> BTreeSet<AccessPoint> {
    members.stewards_of(subnet).into_iter().filter(|steward| *steward != cx.me).take(REPLICAS_ASKED).collect()
}
