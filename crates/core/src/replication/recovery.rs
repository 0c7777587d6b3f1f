//! Recovery of the journals of a subnet that became ours.
//!
//! They are fetched from all members that have some and read from our own store, before its sites go on from there.

use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::{Membership, Parting},
    ownership::claims::JournalsAt,
    pending::Pending,
    replication::{
        Replication,
        awaited_replicas::{AwaitedReplicas, Chance},
        load_queue::MAX_LOADS,
        loading::{Found, JournalCopy, Loading, MAX_DOUBT, Overdue},
    },
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::Ticket,
    journal::{JournalEntry, JournalKey},
    message::{Request, Response},
    replica::NamedReplica,
    subnet::Subnet,
    time::Moment,
    vote::InheritedReplicas,
};
use std::collections::BTreeSet;

/// Living members that are asked. The replicas are among them if they live, whoever joined since; in swarms of more, those that are
/// named as replicas are asked besides.
const MAX_MEMBERS_ASKED: usize = 64;

impl Replication {
    /// A subnet became ours, or was ours at the last stop: its history first, from our own store and from the members that kept it. It is
    /// asked for at once, or in its turn if [`MAX_LOADS`] subnets are being loaded. `awaited` have all that was recorded of it: without one
    /// of each set it does not begin before their time is over.
    pub(crate) fn load(&mut self, cx: &mut Context, members: &Membership, subnet: Subnet, from: JournalsAt, mut awaited: AwaitedReplicas) {
        // Whom it waited for before is still waited for.
        let before = self.load_queue.remove(&subnet).into_iter().chain(self.take_loading(&subnet).map(Loading::into_awaited));
        before.for_each(|before| awaited.join(before));
        self.expected.remove(&subnet);
        // Our own store is read in any case.
        awaited.heard(cx.me, cx.store);
        self.lacks_replicas |= awaited.is_unknown();
        self.load_queue.push(subnet, from, awaited);
        self.begin_loads(cx, members);
    }

    /// A claim of ours to this subnet was accepted: these have what its former owners recorded.
    pub(crate) fn insert_expected(&mut self, subnet: Subnet, awaited: AwaitedReplicas) {
        self.expected.insert(subnet, awaited);
    }

    /// Who has what the former owners of a subnet recorded, if a claim of ours to it has been accepted of late.
    pub(crate) fn expected(&self, subnet: &Subnet) -> Option<&AwaitedReplicas> {
        self.expected.get(subnet)
    }

    /// A claim is not acted on, or needs no journals.
    pub(crate) fn expects_nothing(&mut self, subnet: &Subnet) {
        self.expected.remove(subnet);
    }

    /// The voters told who has what was taken over in a life before.
    pub(crate) fn learn_replicas(&mut self, cx: &Context, sets: &[InheritedReplicas]) {
        let own = NamedReplica { member: cx.me, store: cx.store };
        self.load_queue.learn(own, sets);
        self.loading.values_mut().for_each(|loading| loading.learn(own, sets));
        self.lacks_replicas = false;
    }

    /// Whether subnets wait for what the voters tell of their replicas.
    pub(crate) fn lacks_replicas(&self) -> bool {
        self.lacks_replicas
    }

    /// Whether all that was taken over is at all that have what we recorded.
    pub(crate) fn has_copied_all(&self) -> bool {
        let loads = self.expected.len() + self.loading.len() + self.load_queue.len();
        loads == 0
            && !self.queue.is_adopting()
            && self.placement.named().is_some_and(|mut named| named.all(|name| self.replicas.is_whole(&name)))
    }

    /// Begins as many of the queued loads as may be under way, oldest first. Whom to ask is decided only now: members may have come and
    /// gone while the subnet waited.
    pub(crate) fn begin_loads(&mut self, cx: &mut Context, members: &Membership) {
        while self.loads_under_way() < MAX_LOADS
            && let Some((subnet, from, awaited)) = self.load_queue.pop()
        {
            let asked = match from {
                JournalsAt::Here | JournalsAt::HereIfBegun(_) => BTreeSet::new(),
                JournalsAt::Replicas => may_have_rows(cx, members, &subnet),
            };
            self.begin_load(cx, subnet, asked, awaited);
            if let (JournalsAt::HereIfBegun(epoch), Some(loading)) = (from, self.loading.get_mut(&subnet)) {
                loading.doubt_before(epoch);
            }
        }
    }

    pub(super) fn begin_load(&mut self, cx: &mut Context, subnet: Subnet, asked: BTreeSet<AccessPoint>, awaited: AwaitedReplicas) {
        asked.iter().for_each(|member| self.holders.want(*member, subnet));
        cx.commands.push_back(Command::Store(StoreCommand::Load(subnet)));
        self.loading.insert(subnet, Loading::new(cx.now.moment, asked, awaited));
    }

    /// Asks members of which subnets they have rows.
    pub(crate) fn ask_what_is_there(&mut self, cx: &mut Context) {
        if self.loading.is_empty() {
            self.holders.end();
        }
        for (member, subnets) in self.holders.next(|subnet| !self.loading.contains_key(subnet)) {
            cx.ask(member, Pending::Holds(subnets.clone()), Request::Holds(subnets));
        }
    }

    /// A member asks of which subnets we have rows.
    pub(crate) fn asked_what_is_here(&self, cx: &mut Context, ticket: Ticket, mut subnets: Vec<Subnet>) {
        subnets.retain(|subnet| self.kept.has(subnet));
        cx.answer(ticket, Response::Held { store: cx.store, subnets });
    }

    /// A member said of which of these subnets it has rows, which it is asked for now, or did not answer. Returns those about which it has
    /// said all.
    pub(crate) fn told_what_is_there(
        &mut self,
        cx: &mut Context,
        from: AccessPoint,
        asked: &[Subnet],
        answer: Option<Response>,
    ) -> Vec<Subnet> {
        let (store, held) = match answer {
            Some(Response::Held { store, subnets }) => (Some(store), Some(subnets.into_iter().collect::<BTreeSet<_>>())),
            Some(_) | None => (None, None),
        };
        self.holders.answered(from, store);
        let mut told = Vec::new();
        for subnet in asked {
            let Some(loading) = self.loading.get_mut(subnet) else { continue };
            match &held {
                Some(held) if held.contains(subnet) => {
                    if loading.is_asking(&from) {
                        cx.commands.push_back(Command::Peers(PeerCommand::Recover { subnet: *subnet, host: None, from }));
                    }
                }
                Some(_) => {
                    loading.answered(cx.now.moment, *subnet, (from, store), Some(Vec::new()), 0);
                    told.push(*subnet);
                }
                None => drop(loading.answered(cx.now.moment, *subnet, (from, None), None, 0)),
            }
        }
        told
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
        let store = self.holders.store_of(&from);
        if let Some(loading) = self.loading.get_mut(&subnet)
            && loading.answered(cx.now.moment, subnet, (from, store), journals, bytes)
        {
            self.recovered_bytes += bytes;
        }
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(crate) fn loaded(&mut self, now: Moment, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        if let Some(loading) = self.loading.get_mut(&subnet) {
            loading.read(now, subnet, journals);
        }
    }

    /// Asks replicas again that failed to answer. Returns the subnets whose replicas had time enough: those that begin with what was found,
    /// and those for which others are to be asked.
    pub(crate) fn ask_again(&mut self, cx: &Context, members: &Membership) -> (Vec<Subnet>, Vec<Subnet>) {
        let now = cx.now.moment;
        let (mut begin, mut unheard) = (Vec::new(), Vec::new());
        self.parked = self.loading.values().filter(|loading| loading.is_parked()).count();
        for (subnet, loading) in &mut self.loading {
            loading.look(now, |member| chance_of(now, members, member));
            for member in loading.ask_again(now) {
                self.holders.want(member, *subnet);
            }
            match loading.overdue(now) {
                Some(Overdue::Begin) => begin.push(*subnet),
                Some(Overdue::AskOthers) => unheard.push(*subnet),
                None => {}
            }
        }
        (begin, unheard)
    }

    /// No replica of a subnet answered: asks the members that should have it by now.
    pub(crate) fn ask_others(&mut self, cx: &Context, members: &Membership, subnet: Subnet) {
        let Some(loading) = self.loading.get_mut(&subnet) else { return };
        let others = may_have_rows(cx, members, &subnet);
        if members.standings().is_empty() {
            loading.is_alone();
        }
        for member in loading.ask_instead(cx.now.moment, others) {
            self.holders.want(member, subnet);
        }
    }

    /// All that can be had of the journals of a subnet that is ours since this epoch; none as long as a member is waited for. They are not
    /// being loaded any more then.
    pub(crate) fn take_found(&mut self, subnet: &Subnet, epoch: u64) -> Option<Found> {
        let complete = self.loading.get(subnet).is_some_and(Loading::is_complete);
        complete.then(|| self.take_loading(subnet)).flatten().map(|loading| loading.into_found(epoch))
    }

    /// A site goes on from this journal: it is ours from now on. Returns which of the URLs that it names go on their way now; if others kept
    /// it, they go when it is stored here.
    pub(crate) fn take_over(&mut self, cx: &mut Context, copy: JournalCopy, outgoing: Vec<Item>) -> Vec<Item> {
        if copy.own {
            let upto = copy.entries.len() as u64;
            self.replicas.stored(&copy.key, upto);
            self.replicas.join(&copy.key, upto);
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
        self.expected.remove(subnet);
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

    /// Subnets whose journals are being fetched or read now, at most [`MAX_LOADS`]; those not counted that wait for a member to come back.
    pub(crate) fn loads_under_way(&self) -> usize {
        self.loading.len().saturating_sub(self.parked)
    }

    /// Subnets that wait for one of those members that have their journals.
    pub(crate) fn loads_parked(&self) -> usize {
        self.parked
    }

    /// The members one of which has to come back before a subnet begins; none if it does not wait for that.
    pub(crate) fn awaited(&self, subnet: &Subnet) -> Option<Vec<AccessPoint>> {
        self.loading.get(subnet).filter(|loading| loading.is_parked()).map(Loading::awaited)
    }

    /// These members will not come back: no subnet waits for them. Returns those that waited for nothing else.
    pub(crate) fn declare_lost(&mut self, lost: &[AccessPoint]) -> Vec<Subnet> {
        self.load_queue.declare_lost(lost);
        self.loading.values_mut().for_each(|loading| loading.declare_lost(lost));
        self.loading.iter().filter(|(_, loading)| loading.is_complete()).map(|(subnet, _)| *subnet).collect()
    }
}

/// Whether a member that was named and has not answered may answer yet.
fn chance_of(now: Moment, members: &Membership, who: &AccessPoint) -> Chance {
    match (members.standings().get(who), members.parted().get(who)) {
        (Some(standing), _) if standing.silent_since.is_some() => Chance::Soon,
        (Some(_), _) => Chance::Alive,
        (None, Some((Parting::Dead, since))) if now.since(*since) < MAX_DOUBT => Chance::Perhaps,
        (None, _) => Chance::Never,
    }
}

/// Members that may have rows of a subnet: all the living, as long as they are not too many.
fn may_have_rows(cx: &Context, members: &Membership, subnet: &Subnet) -> BTreeSet<AccessPoint> {
    members.stewards_of(subnet).into_iter().filter(|steward| *steward != cx.me).take(MAX_MEMBERS_ASKED).collect()
}
