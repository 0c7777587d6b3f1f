//! SWIM with suspicion (Das, Gupta, Motivala 2002) as a machine without clock and sockets.
//!
//! The protocol itself is the `foca` crate. This wraps it: its timers are kept here in order and fired by
//! [`Swim::tick`], what it wants to send and what it found out is drained as [`Output`]. What foca does not do is
//! added: a datagram must come from whom it says, what it says of others is sifted (`hearsay`), the number of members is bounded, and an
//! access point that hears no member goes on calling those it has known. Who has been heard lately is not pinged: whatever else it said
//! shows as well as an answer to a ping that it is alive. And who leaves a question unanswered is probed at once (`contacts`).

use super::{
    contacts::{Contacts, Steps},
    hearsay::{Hearsay, Limits, Protocol, Sifted, SwimError, Update},
    member::Member,
    swim_config::SwimConfig,
};
use foca::{AccumulatingRuntime, Codec, Foca, Header, Identity, Message, OwnedNotification, PostcardCodec, State, Timer};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use rand::{SeedableRng, rngs::StdRng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many of those whom we asked to let us in are remembered.
const MAX_DOORS: usize = 16;

/// How many absent members are called at once.
const RECALLED_AT_ONCE: usize = 1;

/// A member that was heard within this many probe periods is not pinged. With three, nine of ten take-overs in random courses of twelve members
/// took 67 s in place of 60: a member that died was found out when its lease was nearly over.
const HEARD_LATELY: u64 = 2;

/// When a member that is down and talks to us is asked again to let us in, in milliseconds.
const ASK_ABSENT_AGAIN: Millis = 1_000;

/// What the machine wants done, or has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram.
    Send {
        /// To whom.
        to: AccessPoint,
        /// Where it can be reached, as far as is known.
        addresses: Vec<String>,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// This member is alive; said again when it comes with a new process or new addresses.
    Up(Member),
    /// This member does not answer, or said that it goes.
    Down(AccessPoint),
    /// The others had given this access point up, wrongly; it goes on as this member.
    Renewed(Member),
}

/// SWIM as a pure machine.
pub struct Swim {
    foca: Protocol,
    hearsay: Hearsay,
    config: SwimConfig,
    runtime: AccumulatingRuntime<Member>,
    timers: BTreeMap<(Moment, u64), Timer<Member>>,
    next_timer: u64,
    outputs: VecDeque<Output>,
    next_recall: Option<Moment>,
    /// Whom we asked to let us in, the latest last: asked again as long as we are alone.
    doors: VecDeque<Member>,
    contacts: Contacts,
    /// Members that are down, and when they were last asked to let us in because they talk to us.
    absent: BTreeMap<AccessPoint, Moment>,
    refused: u64,
    left: bool,
}

impl Swim {
    /// The machine of the member `me`. Equal seeds and equal inputs give equal outputs.
    pub fn new(me: Member, config: SwimConfig, seed: u64) -> Swim {
        let foca = Foca::new(me, config.foca(), StdRng::seed_from_u64(seed), PostcardCodec);
        Swim {
            foca,
            hearsay: Hearsay::default(),
            config,
            runtime: AccumulatingRuntime::new(),
            timers: BTreeMap::new(),
            next_timer: 0,
            outputs: VecDeque::new(),
            next_recall: None,
            doors: VecDeque::new(),
            contacts: Contacts::default(),
            absent: BTreeMap::new(),
            refused: 0,
            left: false,
        }
    }

    /// As what this access point is known now.
    pub fn me(&self) -> &Member {
        self.foca.identity()
    }

    /// Asks this member to let us in, again and again until one does; harmless if it already has.
    pub fn join(&mut self, now: Moment, member: Member) {
        if member.access_point == self.me().access_point || self.left {
            return;
        }
        self.doors.retain(|door| door.access_point != member.access_point);
        self.doors.push_back(member.clone());
        if self.doors.len() > MAX_DOORS {
            self.doors.pop_front();
        }
        self.next_recall.get_or_insert(now.after(self.lonely_recall()));
        // Sending cannot fail: an identity always fits into a datagram.
        let _ = self.foca.announce(member, &mut self.runtime);
        self.collect(now);
    }

    /// Whether this member answers, as far as is known here.
    pub fn is_up(&self, who: &AccessPoint) -> bool {
        self.contacts.is_up(who)
    }

    /// This member said something itself; `answered` is whether that is the answer to a question of ours. One that is down for us, and talks
    /// to us, is asked at once, so that it hears so: its own pings are not what tells it, as it hears us.
    pub fn heard(&mut self, now: Moment, who: AccessPoint, answered: bool) {
        self.contacts.heard(now, &who, answered);
        if let Some(asked) = self.absent.get_mut(&who).filter(|asked| now.since(**asked) >= ASK_ABSENT_AGAIN) {
            *asked = now;
            let member = self.foca.iter_membership_state().find(|member| member.id().access_point == who).map(|member| member.id().clone());
            if let Some(member) = member {
                let _ = self.foca.announce(member, &mut self.runtime);
                self.collect(now);
            }
        }
    }

    /// This member did not answer: it is probed at once. (Not where names are believed: there only the protocol's own probes count.)
    pub fn unanswered(&mut self, now: Moment, who: &AccessPoint) {
        if !self.left && !self.config.believes_names {
            self.contacts.unanswered(now, who);
        }
    }

    /// A datagram came; `from` is who sent it, as the transport proved it.
    pub fn receive(&mut self, now: Moment, from: AccessPoint, bytes: &[u8]) -> Result<(), SwimError> {
        if self.left {
            return Ok(());
        }
        let header = match self.examine(from, bytes) {
            Ok(header) => header,
            Err(refusal) => {
                self.refused += 1;
                return Err(refusal);
            }
        };
        let limits =
            Limits { members: self.config.max_members, bytes: self.config.largest_datagram, believes_names: self.config.believes_names };
        let Sifted { bytes, ask } = match self.hearsay.sift(now, from, bytes, &self.foca, limits) {
            Ok(sifted) => sifted,
            Err(refusal) => {
                self.refused += 1;
                return Err(refusal);
            }
        };
        for (member, addresses) in ask {
            let bytes = Hearsay::question(self.foca.identity(), &member);
            self.outputs.push_back(Output::Send { to: member.access_point, addresses, bytes });
        }
        self.heard(now, from, false);
        match header.message {
            Message::Ack(_) => self.contacts.acknowledged(&from, &from),
            Message::ForwardedAck { origin, .. } => self.contacts.acknowledged(&from, &origin.access_point),
            _ => {}
        }
        let outcome = self.foca.handle_data(&bytes, &mut self.runtime);
        self.collect(now);
        outcome.map_err(|_| {
            self.refused += 1;
            SwimError::Malformed
        })
    }

    /// Fires what is due.
    pub fn tick(&mut self, now: Moment) {
        // Those that are due now, not those that they set: these are for the next tick.
        let mut due = Vec::new();
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            due.push(first.remove());
        }
        for timer in due {
            // Errors here mean that time jumped over a whole probe cycle (a laptop slept); foca recovers by itself.
            let _ = self.foca.handle_timer(timer, &mut self.runtime);
            self.collect(now);
        }
        self.probe(now);
        self.recall(now);
    }

    /// Takes those one step further that left a question unanswered.
    fn probe(&mut self, now: Moment) {
        let Steps { ping, ask, suspect, down } = self.contacts.steps(now, &self.config);
        for who in suspect {
            self.believe(now, who, State::Alive, State::Suspect);
        }
        for who in ping {
            // A suspect is told that it is one: its answer says that it is not.
            let Some(known) = self.alive(&who) else { continue };
            let member = known.id().clone();
            let news = Some(known).filter(|known| known.state() == State::Suspect);
            self.send(&member, Message::Ping(0), news.into_iter().collect());
        }
        for (who, helpers) in ask {
            let Some(target) = self.alive(&who).map(|known| known.id().clone()) else { continue };
            let helpers: Vec<_> = helpers.iter().filter_map(|helper| Some(self.alive(helper)?.id().clone())).collect();
            for helper in helpers {
                self.send(&helper, Message::PingReq { target: target.clone(), probe_number: 0 }, Vec::new());
            }
        }
        for who in down {
            self.believe(now, who, State::Suspect, State::Down);
        }
    }

    /// What is known of a member that is not down.
    fn alive(&self, who: &AccessPoint) -> Option<Update> {
        self.foca.iter_members().find(|member| member.id().access_point == *who).cloned()
    }

    /// A member that was in one state is in the next, and the others hear of it. Who objected to being a suspect is none any more.
    fn believe(&mut self, now: Moment, who: AccessPoint, before: State, after: State) {
        if let Some(known) = self.alive(&who).filter(|known| known.state() == before) {
            let update = Update::new(known.id().clone(), known.incarnation(), after);
            // Nothing is encoded but what is known already.
            let _ = self.foca.apply_many(std::iter::once(update), true, &mut self.runtime);
            self.collect(now);
        }
    }

    /// A datagram of our own making.
    fn send(&mut self, to: &Member, message: Message<Member>, updates: Vec<Update>) {
        let bytes = Hearsay::datagram(self.foca.identity(), to, message, updates);
        let bytes = self.hearsay.outgoing(bytes);
        self.outputs.push_back(Output::Send { to: to.access_point, addresses: to.addresses.clone(), bytes });
    }

    /// This access point can be reached at other addresses from now on.
    pub fn readdress(&mut self, now: Moment, addresses: Vec<String>) {
        let mut member = self.me().clone();
        let addresses = Member::new(member.access_point, member.incarnation, addresses).addresses;
        if member.addresses != addresses && !self.left {
            member.addresses = addresses;
            if let Some(renewed) = member.renew() {
                let _ = self.foca.change_identity(renewed, &mut self.runtime);
                self.collect(now);
            }
        }
    }

    /// Tells the others that this access point goes. Nothing is received or sent afterwards.
    pub fn leave(&mut self, now: Moment) {
        if !self.left {
            let _ = self.foca.leave_cluster(&mut self.runtime);
            self.collect(now);
            self.left = true;
            self.timers.clear();
            self.next_recall = None;
        }
    }

    /// What is to be done or known, in order; to be drained after every input.
    pub fn drain(&mut self) -> impl Iterator<Item = Output> + '_ {
        self.outputs.drain(..)
    }

    /// The members that answer, without this one.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.foca.iter_members().map(|member| member.id())
    }

    /// How many statements about others were left aside so far, because only those themselves could make them.
    pub(crate) fn left_aside(&self) -> u64 {
        self.hearsay.left
    }

    /// How many datagrams were refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Reads the datagram without believing it.
    fn examine(&self, from: AccessPoint, mut bytes: &[u8]) -> Result<Header<Member>, SwimError> {
        if bytes.len() > self.config.largest_datagram {
            return Err(SwimError::Malformed);
        }
        let mut codec = PostcardCodec;
        let header: Header<Member> = codec.decode_header(&mut bytes).map_err(|_| SwimError::Malformed)?;
        if header.src.access_point != from {
            return Err(SwimError::NotTheSender);
        }
        let known = self.foca.iter_membership_state().len();
        let named = match bytes {
            [high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
            _ => 0,
        };
        // Counting all as new is pessimistic only near the limit.
        let room = self.config.max_members.saturating_sub(known);
        if named + 1 > room {
            let is_known = |member: &Member| self.foca.iter_membership_state().any(|state| state.id().access_point == member.access_point);
            let mut rest = bytes.get(2..).unwrap_or_default();
            let mut new = usize::from(!is_known(&header.src));
            for _ in 0..named {
                let member: foca::Member<Member> = codec.decode_member(&mut rest).map_err(|_| SwimError::Malformed)?;
                new += usize::from(!is_known(member.id()));
            }
            if new > room {
                return Err(SwimError::TooManyMembers);
            }
        }
        Ok(header)
    }

    /// Calls a few of those that are down: after a partition one side must begin to talk. When alone, also those whom we
    /// asked to let us in: the question may have been lost.
    fn recall(&mut self, now: Moment) {
        if self.next_recall.is_none_or(|moment| now < moment) {
            return;
        }
        let lonely = self.foca.num_members() == 0;
        let down = self.foca.iter_membership_state().filter(|member| member.state() == State::Down).map(|member| member.id());
        let mut absent: BTreeMap<AccessPoint, Member> = down.map(|member| (member.access_point, member.clone())).collect();
        if lonely {
            for door in &self.doors {
                absent.entry(door.access_point).or_insert_with(|| door.clone());
            }
        }
        if absent.is_empty() {
            self.next_recall = None;
            return;
        }
        let every = if lonely { self.lonely_recall() } else { self.config.recall_every };
        // Round the ring, so that every member's turn comes.
        let turn = usize::try_from(now.0 / every.max(1)).unwrap_or(0);
        let first = turn.wrapping_mul(RECALLED_AT_ONCE) % absent.len();
        let count = absent.len().min(RECALLED_AT_ONCE);
        for member in absent.values().cycle().skip(first).take(count) {
            let _ = self.foca.announce(member.clone(), &mut self.runtime);
        }
        self.next_recall = Some(now.after(every));
        self.collect(now);
    }

    /// How often a member that is alone calls, in milliseconds.
    fn lonely_recall(&self) -> Millis {
        self.config.recall_every.min(2 * self.config.probe_every)
    }

    fn heard_lately(&self) -> Millis {
        HEARD_LATELY * self.config.probe_every
    }

    /// The answer to this datagram of ours, if it is a ping that has nothing to tell to a member that was heard lately.
    fn answer_for(&self, now: Moment, to: &Member, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_heard = self.contacts.is_heard_within(now, &to.access_point, self.heard_lately());
        if !is_heard || self.foca.updates_backlog() > 0 {
            return None;
        }
        let known = self.foca.iter_members().find(|member| member.id() == to)?;
        (known.state() == State::Alive).then(|| Hearsay::answer(bytes, known)).flatten()
    }

    /// Moves what foca has accumulated to the timers and the outputs.
    fn collect(&mut self, now: Moment) {
        let mut sent = Vec::new();
        while let Some((member, bytes)) = self.runtime.to_send() {
            match self.answer_for(now, &member, &bytes) {
                // An answer of a member that is known, to a ping of ours, is well formed.
                Some(answer) => drop(self.foca.handle_data(&answer, &mut self.runtime)),
                None => sent.push((member, bytes)),
            }
        }
        while let Some((after, timer)) = self.runtime.to_schedule() {
            let after = Millis::try_from(after.as_millis()).unwrap_or(Millis::MAX);
            self.timers.insert((now.after(after), self.next_timer), timer);
            self.next_timer += 1;
        }
        while let Some(notification) = self.runtime.to_notify() {
            match notification {
                OwnedNotification::MemberUp(member) => {
                    self.contacts.up(member.access_point);
                    self.absent.remove(&member.access_point);
                    self.outputs.push_back(Output::Up(member));
                }
                OwnedNotification::MemberDown(member) => {
                    self.contacts.down(&member.access_point);
                    self.absent.insert(member.access_point, now);
                    if self.absent.len() > self.config.max_members {
                        let known: BTreeSet<_> = self.foca.iter_membership_state().map(|state| state.id().access_point).collect();
                        self.absent.retain(|who, _| known.contains(who));
                    }
                    self.next_recall.get_or_insert(now.after(self.config.recall_every));
                    self.outputs.push_back(Output::Down(member.access_point));
                }
                // A new process of a member whose last one ended unnoticed; if it is down, there is nothing to say.
                OwnedNotification::Rename(_, member) if self.foca.iter_members().any(|alive| *alive.id() == member) => {
                    self.outputs.push_back(Output::Up(member));
                }
                OwnedNotification::Rejoin(member) => self.outputs.push_back(Output::Renewed(member)),
                _ => {}
            }
        }
        for (member, bytes) in sent {
            let bytes = self.hearsay.outgoing(bytes.to_vec());
            self.outputs.push_back(Output::Send { to: member.access_point, addresses: member.addresses, bytes });
        }
    }
}
