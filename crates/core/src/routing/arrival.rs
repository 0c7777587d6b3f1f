//! Routes a named URL: host → address (its steward) → subnet (hierarchy) → owner (claims) → there.

use super::{
    Routing,
    acknowledgements::{Acknowledgement, MAX_ACKNOWLEDGEMENTS, Settled},
    locator::{Locator, LookedUp, Lookup},
    outbox::{Item, LOOK_AGAIN, Outbox},
    stewardship::Owners,
};
use crate::{
    context::Context,
    event::{Command, PeerCommand, WebCommand},
    membership::Membership,
    pending::Pending,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ResolveError},
    ids::{QuestionId, Ticket},
    journal::{Arrival, JournalKey},
    message::{Request, Response},
    time::Millis,
    url::{Host, PageUrl},
};
use std::{collections::BTreeMap, net::IpAddr};

/// How long a steward may take to answer before it is asked again.
const STEWARD_TIMEOUT: Millis = 15_000;

/// After so long an owner that did not know of a host is sent its URLs again.
const OWNER_LEARNS: Millis = 300;

/// URLs for sites of ours are taken in at most once in so long: an address with very many hosts of ours would keep the store busy with each.
const TOGETHER: Millis = 20;

/// The pause after which a member is to ask again if too many wait for look-ups of ours.
const LOOK_UP_LATER: Millis = 1_000;

/// Where the URLs of a host may go now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To the member that owns this address.
    At(LocatedHost),
    /// Nowhere, for the host has no usable address: these URLs lead nowhere.
    Nowhere(Vec<Item>),
    /// It is being found out.
    Unknown,
}

/// What came of a look-up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where its name leads.
    pub(crate) answer: Result<LocatedHost, ResolveError>,
    /// Where its name leads, and the owner of the address before, who is to be told first.
    pub(crate) to_tell: Option<(AccessPoint, LocatedHost)>,
}

/// Hosts whose URLs are to be sent, by owner.
pub(crate) type Bound = BTreeMap<AccessPoint, Vec<LocatedHost>>;

/// On the way out.
impl Routing {
    /// People named starting points: external links that no page named.
    pub(crate) fn seeds(&mut self, cx: &mut Context, urls: Vec<PageUrl>) {
        cx.counters.seeds += urls.len() as u64;
        for url in urls {
            if let Some(class) = cx.drops(&url.host()) {
                cx.refuse(class);
            } else {
                self.outbox.put(Item { arrival: Arrival { url, place: None, run: 1 }, origin: None });
            }
        }
    }

    /// Puts URLs in that are for others, or for sites of ours that are not open.
    pub(crate) fn put(&mut self, items: impl IntoIterator<Item = Item>) {
        items.into_iter().for_each(|item| self.outbox.put(item));
    }

    /// The ownership map or the living changed: everything may be routable now.
    pub(crate) fn wake_all(&mut self) {
        self.outbox.wake_all();
    }

    /// Hosts whose URLs may have become routable, in order.
    pub(crate) fn due(&mut self, cx: &Context) -> Vec<Host> {
        self.outbox.due(cx.now.moment)
    }

    /// Where a host's URLs go; if that is not known, sees to it that it becomes known.
    pub(crate) fn place(&mut self, cx: &mut Context, members: &Membership, host: &Host) -> Place {
        let now = cx.now.moment;
        if cx.opted_out.surely_covers(host, None) {
            // Not even its name is looked up.
            return self.leads_nowhere(cx, host);
        }
        if members.steward_of_host(host).is_none_or(|steward| steward == cx.me) {
            self.outdate_others(cx, host);
        }
        match self.locator.lookup(host, now) {
            Lookup::At(located) if cx.opted_out.surely_covers(host, Some(located.address)) => self.leads_nowhere(cx, host),
            Lookup::At(located) => Place::At(located),
            Lookup::Later(_, at) if self.outbox.await_lookup(host, at) => Place::Unknown,
            failed @ (Lookup::Later(..) | Lookup::Nowhere(_)) => {
                if matches!(failed, Lookup::Later(..)) {
                    cx.refuse("hosts whose DNS look-up would be repeated, beyond the limit of waiting URLs");
                }
                self.leads_nowhere(cx, host)
            }
            Lookup::Unknown => {
                self.find(cx, members, host);
                self.outbox.later(host, now);
                Place::Unknown
            }
        }
    }

    /// What waits for a host that is never asked is dropped.
    fn leads_nowhere(&mut self, cx: &mut Context, host: &Host) -> Place {
        let items = self.outbox.take(host);
        cx.counters.nowhere += items.len() as u64;
        Place::Nowhere(items)
    }

    /// A host turned out to be where no scope reaches. Returns what waited for it.
    pub(crate) fn not_in_scope(&mut self, cx: &mut Context, host: &Host) -> Vec<Item> {
        cx.counters.beyond_scope += 1;
        self.outbox.take(host)
    }

    /// Notes who owns a host's address, if that is decided. Returns the host's URLs if it is this access point and takes some in now.
    pub(crate) fn bind(
        &mut self,
        cx: &Context,
        bound: &mut Bound,
        located: LocatedHost,
        owner: Option<AccessPoint>,
    ) -> Option<(LocatedHost, Vec<Item>)> {
        match owner {
            Some(owner) if owner == cx.me => {
                // Those that come within a moment are taken in together, at one cost in the store.
                if cx.now.moment < self.own_due {
                    self.outbox.look_at(&located.host, self.own_due);
                    return None;
                }
                let items = self.outbox.take(&located.host);
                return Some((located, items));
            }
            Some(owner) => bound.entry(owner).or_default().push(located),
            None => self.outbox.later(&located.host, cx.now.moment),
        }
        None
    }

    /// URLs for sites of ours are being taken in: the next ones are in a moment.
    pub(crate) fn takes_own(&mut self, cx: &Context) {
        self.own_due = cx.now.moment.after(TOGETHER);
    }

    /// Sends each owner the next message with what is for it.
    pub(crate) fn send(&mut self, cx: &mut Context, bound: Bound) {
        let now = cx.now.moment;
        for (owner, hosts) in bound {
            let hosts = self.outbox.choose(owner, hosts, now);
            if hosts.is_empty() {
                continue;
            }
            let question = cx.number();
            let hand_offs = self.outbox.pack(question, owner, &hosts, now);
            if !hand_offs.is_empty() {
                cx.pending.insert(question, Pending::HandOff);
                let request = Request::HandOff(hand_offs);
                cx.commands.push_back(Command::Peers(PeerCommand::Ask { to: owner, question, request }));
            }
        }
    }

    /// An owner answered a hand-off. Returns the URLs that were taken in.
    pub(crate) fn handed_off(&mut self, cx: &Context, question: QuestionId, answer: Option<Response>) -> Vec<Item> {
        let now = cx.now.moment;
        match answer {
            Some(Response::HandedOff { not_mine }) => {
                let done = self.outbox.acked(question, &not_mine);
                for host in &not_mine {
                    // The first time its owner has begun to ask the host's steward, and knows when that has answered.
                    let pause = if self.locator.doubt(host) { OWNER_LEARNS } else { LOOK_AGAIN };
                    self.outbox.look_at(host, now.after(pause));
                }
                return done;
            }
            Some(Response::Busy(pause)) => self.outbox.nacked(question, now, pause.clamp(100, 30_000)),
            Some(_) | None => self.outbox.nacked(question, now, 1_000),
        }
        Vec::new()
    }
}

/// Which address has a host?
impl Routing {
    /// Sees to it that this host's address becomes known. If a look-up failed a moment ago, it is not repeated yet.
    pub(crate) fn find(&mut self, cx: &mut Context, members: &Membership, host: &Host) {
        if matches!(self.locator.lookup(host, cx.now.moment), Lookup::Later(..)) {
            return;
        }
        let steward = members.steward_of_host(host).unwrap_or(cx.me);
        if steward == cx.me || host.address().is_some() {
            if !self.awaits_owners(cx, host) {
                self.locator.resolve(host, None);
                self.look_up(cx);
            }
        } else if self.locator.should_ask(host, cx.now.moment, STEWARD_TIMEOUT) {
            cx.ask(steward, Pending::Locate(host.clone()), Request::Locate(host.clone()));
        }
    }

    /// Whether a host that a member names is at the address that it says. Any member could say so of any name; its steward's answer counts,
    /// and if the steward says so itself, only of a name that exists. What is not known here is asked for, and the member tries again.
    pub(crate) fn confirms(&mut self, cx: &mut Context, members: &Membership, from: AccessPoint, located: &LocatedHost) -> bool {
        let LocatedHost { host, address, .. } = located;
        if host.address() == Some(*address) {
            return true;
        }
        let by_steward = members.steward_of_host(host) == Some(from);
        match self.locator.lookup(host, cx.now.moment) {
            Lookup::At(known) if known.address == *address => return true,
            Lookup::At(_) if by_steward => {
                self.locator.learn(host, Ok(located.clone()), cx.now.moment, cx.settings.max_lookups);
                return true;
            }
            Lookup::Unknown if by_steward => {
                self.locator.resolve(host, None);
                self.look_up(cx);
            }
            Lookup::Unknown => self.find(cx, members, host),
            Lookup::At(_) | Lookup::Nowhere(_) | Lookup::Later(..) => cx.refuse("hosts handed over at an address that is not theirs"),
        }
        false
    }

    /// Whether what is known of a host's address is recent enough to begin a site there: it may have moved since. If not, it is found out.
    pub(crate) fn is_recent(&mut self, cx: &mut Context, members: &Membership, host: &Host) -> bool {
        let recent = host.address().is_some() || self.locator.is_recent(host, cx.now.moment);
        if !recent {
            self.locator.outdate(host, cx.now.moment);
            self.find(cx, members, host);
        }
        recent
    }

    /// Whether a host whose journals its owner hands over is at the address that it says: our own steward says so. None while that is being
    /// found out; what was known here may be what it was before the host moved.
    pub(crate) fn confirms_move(&mut self, cx: &mut Context, members: &Membership, located: &LocatedHost) -> Option<bool> {
        let LocatedHost { host, address, .. } = located;
        let is_steward = members.steward_of_host(host).is_none_or(|steward| steward == cx.me);
        let is_there = match self.locator.lookup(host, cx.now.moment) {
            Lookup::At(known) if known.address == *address => true,
            Lookup::At(_) | Lookup::Nowhere(_) if !is_steward && self.locator.is_fresh(host, cx.now.moment) => false,
            _ => match self.confirm(cx, members, host, *address)? {
                Ok(known) => known.address == *address,
                Err(failure) if failure.is_transient() => return None,
                Err(_) => false,
            },
        };
        if !is_there {
            cx.refuse("hosts handed over at an address that is not theirs");
        }
        Some(is_there)
    }

    /// Asks the host's steward whether it is still at this address of ours. What we know ourselves, as its steward, is returned.
    pub(crate) fn confirm(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        host: &Host,
        address: IpAddr,
    ) -> Option<Result<LocatedHost, ResolveError>> {
        let steward = members.steward_of_host(host).unwrap_or(cx.me);
        if steward == cx.me {
            return self.confirm_for(cx, None, host, address);
        }
        cx.ask(steward, Pending::Confirm(host.clone()), Request::Confirm(host.clone(), address));
        None
    }

    /// The same question comes to us, the host's steward: from a member, or from ourselves, to whom the answer is returned if it is known.
    pub(crate) fn confirm_for(
        &mut self,
        cx: &mut Context,
        ticket: Option<Ticket>,
        host: &Host,
        address: IpAddr,
    ) -> Option<Result<LocatedHost, ResolveError>> {
        if let Some(answer) = self.locator.confirmed(host, cx.now.moment) {
            let Some(ticket) = ticket else { return Some(answer) };
            cx.answer(ticket, Response::Located(answer));
        } else if self.locator.confirm(host, address, ticket) {
            self.look_up(cx);
        } else if let Some(ticket) = ticket {
            cx.refuse("DNS look-ups for members beyond the limit of those that wait");
            cx.answer(ticket, Response::Busy(LOOK_UP_LATER));
        }
        None
    }

    /// The owner of the address that a host was pinned to does not have it: it is pinned to the new one.
    pub(crate) fn has_moved(&mut self, cx: &mut Context, located: LocatedHost) {
        let host = located.host.clone();
        self.locator.learn(&host, Ok(located), cx.now.moment, cx.settings.max_lookups);
        self.outbox.wake(&host);
    }

    /// The owner of these addresses says that it has these hosts there. Returns those that are elsewhere by what we know as their steward;
    /// these are looked up, as it may be what we know that is wrong.
    pub(crate) fn pinned(&mut self, cx: &mut Context, hosts: Vec<(Host, IpAddr)>) -> Vec<LocatedHost> {
        let mut elsewhere = Vec::new();
        for (host, address) in hosts {
            let was_others = |learnt| self.stewardship.was_others(cx.me, &host, learnt);
            if let Some(known) = self.locator.hint(&host, address, cx.now.moment, was_others) {
                self.locator.resolve(&host, None);
                elsewhere.push(known);
            }
        }
        self.look_up(cx);
        elsewhere
    }

    /// Others live than before.
    pub(crate) fn members_changed(&mut self, cx: &Context, members: &Membership) {
        self.stewardship.members_changed(members.live(), cx.now.moment);
        self.outbox.wake_all();
    }

    /// A term of our lease began: others may have taken us for dead before.
    pub(crate) fn was_away(&mut self, cx: &Context) {
        self.stewardship.was_away(cx.now.moment);
    }

    /// What the ownership map says of owners now.
    pub(crate) fn note_owners(&mut self, cx: &Context, owners: Owners) {
        self.stewardship.owners(owners, cx.now.moment);
    }

    /// Whether we know nothing of a host, as its steward, of which its owner may not have had the time to tell us.
    fn awaits_owners(&self, cx: &Context, host: &Host) -> bool {
        let is_new = self.stewardship.was_others(cx.me, host, self.locator.learnt(host));
        is_new && host.address().is_none() && self.stewardship.awaits_owners(cx.me, host, cx.now.moment)
    }

    /// What we, as a host's steward, learnt before another member was its steward is looked up again.
    fn outdate_others(&mut self, cx: &Context, host: &Host) {
        if self.stewardship.was_others(cx.me, host, self.locator.learnt(host)) {
            self.locator.outdate(host, cx.now.moment);
        }
    }

    /// A member asks us, the host's steward, for its address.
    pub(crate) fn locate_for(&mut self, cx: &mut Context, ticket: Ticket, host: Host) {
        self.outdate_others(cx, &host);
        match self.locator.lookup(&host, cx.now.moment) {
            Lookup::Unknown if self.awaits_owners(cx, &host) => cx.answer(ticket, Response::Busy(LOOK_UP_LATER)),
            Lookup::At(located) => cx.answer(ticket, Response::Located(Ok(located))),
            Lookup::Nowhere(failure) | Lookup::Later(failure, _) => cx.answer(ticket, Response::Located(Err(failure))),
            Lookup::Unknown if self.locator.resolve(&host, Some(ticket)) => self.look_up(cx),
            Lookup::Unknown => {
                cx.refuse("DNS look-ups for members beyond the limit of those that wait");
                cx.answer(ticket, Response::Busy(LOOK_UP_LATER));
            }
        }
    }

    /// Looks up what waits, unless this access point may be no member: then it waits on.
    pub(crate) fn look_up(&mut self, cx: &mut Context) {
        if cx.is_excluded() {
            return;
        }
        while let Some((host, pinned)) = self.locator.next_lookup() {
            cx.counters.lookups += 1;
            cx.commands.push_back(Command::Web(WebCommand::Resolve { host, pinned }));
        }
    }

    /// The DNS answered. `owner_of` says who may have the journals of hosts at an address.
    pub(crate) fn resolved(
        &mut self,
        cx: &mut Context,
        host: &Host,
        answer: Result<LocatedHost, ResolveError>,
        owner_of: impl Fn(IpAddr) -> Option<AccessPoint>,
    ) -> Found {
        if answer == Err(ResolveError::ForbiddenAddress) {
            cx.refuse("addresses that may not be contacted");
        }
        let has_owner = |address| owner_of(address).is_some();
        let looked_up = self.locator.resolved(host, answer, cx.now.moment, cx.settings.max_lookups, has_owner);
        let LookedUp { tickets: waiting, answer, confirming, confirmed, stands, elsewhere } = looked_up;
        match &answer {
            Err(failure) if stands => *cx.counters.unresolved.entry(*failure).or_default() += 1,
            Err(_) => cx.counters.lookups_repeated += 1,
            Ok(_) => {}
        }
        for ticket in waiting {
            cx.answer(ticket, Response::Located(answer.clone()));
        }
        for ticket in confirming {
            cx.answer(ticket, Response::Located(confirmed.clone()));
        }
        self.look_up(cx);
        self.outbox.wake(host);
        Found { answer: confirmed, to_tell: elsewhere.and_then(|(before, elsewhere)| Some((owner_of(before)?, elsewhere))) }
    }

    /// The host's steward answered. Returns whether the answer is about this host.
    pub(crate) fn located(&mut self, cx: &mut Context, host: &Host, answer: Result<LocatedHost, ResolveError>) -> bool {
        let fits = answer.as_ref().map_or(true, |located| located.host == *host);
        if fits {
            self.locator.learn(host, answer, cx.now.moment, cx.settings.max_lookups);
            self.outbox.wake(host);
        } else {
            cx.refuse("answers that do not match the request");
        }
        fits
    }

    /// The host's steward did not answer: it may be asked again at once.
    pub(crate) fn not_located(&mut self, host: &Host) {
        self.locator.unasked(host);
    }
}

/// What came in, and what others read.
impl Routing {
    /// Whether one more member may wait until what it hands over is recorded.
    pub(crate) fn has_room_for_hand_offs(&self) -> bool {
        self.acknowledgements.members() < MAX_ACKNOWLEDGEMENTS
    }

    /// Members that wait until what they handed over is recorded: at most [`MAX_ACKNOWLEDGEMENTS`].
    pub(crate) fn hand_offs(&self) -> usize {
        self.acknowledgements.members()
    }

    /// URLs that were handed to us are being recorded: the member that waits for that is answered then.
    pub(crate) fn await_recording(&mut self, acknowledgement: Acknowledgement) {
        self.acknowledgements.push(acknowledgement);
    }

    /// Answers every member whose arrivals are recorded by now; what was lost instead goes on its way again. `recorded` says whether
    /// a journal is, up to a row (exclusive), `owns` whether it is still ours. Returns our own URLs that are recorded.
    pub(crate) fn acknowledge(
        &mut self,
        cx: &mut Context,
        recorded: impl Fn(&JournalKey, u64) -> bool,
        owns: impl Fn(&JournalKey) -> bool,
    ) -> Vec<Item> {
        let Settled { delivered, lost } = self.acknowledgements.settle(cx, recorded, owns);
        self.put(lost);
        delivered
    }

    /// The latest run in which a URL was named that waits for this host.
    pub(crate) fn newest_run_for(&self, host: &Host) -> u32 {
        self.outbox.newest_run(host)
    }

    /// This host's URLs cannot go anywhere yet.
    pub(crate) fn hold_back(&mut self, cx: &Context, host: &Host) {
        self.outbox.later(host, cx.now.moment);
    }

    /// Whether no sender waits for what it handed over to be recorded.
    pub(crate) fn all_acknowledged(&self) -> bool {
        self.acknowledgements.is_empty()
    }

    /// The first URL that waits for this host.
    pub(crate) fn first_for(&self, host: &Host) -> Option<&PageUrl> {
        self.outbox.peek(host).map(|item| &item.arrival.url)
    }

    /// The pinned addresses, to be read.
    pub(crate) fn locator(&self) -> &Locator {
        &self.locator
    }

    /// The URLs that wait for their owners, to be read.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}
