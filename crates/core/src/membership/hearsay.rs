//! Filters what members say of each other.
//!
//! In SWIM everybody passes on what was heard of everybody, and nothing of it is signed.
//!
//! * The start number of a member that answers is changed by nothing but its own datagram: whoever hears of a later one asks that member.
//!   So nobody makes others ignore a member by claiming that it has started once more, at another address.
//! * What was believed of a member that had not been heard (it was down, or never met) is replaced by its own statement, also to a lower
//!   number.
//! * Only members that are known are probed for others, at the addresses that are known of them.
//! * Whose name is new is asked first. It counts as a member without having been heard, because not everybody reaches everybody, only when
//!   two others name it, or one does for a while; and there are few of those at a time. So names that never existed neither slow down the
//!   search for members that fail nor become stewards of much.

use super::member::Member;
use foca::{Codec, Foca, Header, Message, NoCustomBroadcast, PostcardCodec, State};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use rand::rngs::StdRng;
use std::{cmp::Ordering, collections::BTreeMap};

/// The protocol with our types.
pub(super) type Protocol = Foca<Member, PostcardCodec, StdRng, NoCustomBroadcast>;

/// What a datagram says of one member.
pub(super) type Update = foca::Member<Member>;

/// How often one member is asked whether what others say of it is so, and how many are at a time.
const ASK_AGAIN: Millis = 1_000;
const MAX_ASKED: usize = 64;

/// Renewals of ourselves that others may cause: so many at once (whoever lost its disk needs 80), then one in this time.
const MAX_RENEWALS: u64 = 96;
const RENEWAL_EVERY: Millis = 250;

/// New names that are asked at the addresses that others told: so many at once, then one in this time.
const MAX_NEW_ASKED: u64 = 32;
const NEW_ASKED_EVERY: Millis = 1_000;

/// Members that were never heard themselves and have not failed yet: so many, and one more for each four that were heard.
const MAX_UNHEARD: usize = 8;
const HEARD_PER_UNHEARD: usize = 4;

/// The part of the room for members that those take which were never heard, with those that have failed.
const UNHEARD_PART: usize = 4;

/// New names that are remembered with who told them, after which time without being told again they are forgotten (members are asked for all
/// that they know once a minute), and after which time one that tells it again and again is enough.
const MAX_TOLD: usize = 1_024;
const TOLD_FOR: Millis = 300_000;
const TOLD_LONG: Millis = 30_000;

/// Start numbers need fewer bits than this. Those above tell how often a member's own statement overruled what others had said of it.
const NUMBER_BITS: u32 = 48;

/// Why a datagram was not believed. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwimError {
    /// It cannot be decoded, or is larger than allowed.
    #[error("the membership datagram cannot be decoded")]
    Malformed,
    /// It says that it comes from another member than its sender.
    #[error("the membership datagram names another sender than the one who sent it")]
    NotTheSender,
    /// It names more members than are remembered.
    #[error("the membership datagram would make more members than are remembered")]
    TooManyMembers,
}

/// How late in the succession of processes of a member this one is, without what only this access point knows.
fn number(member: &Member) -> (u64, u32) {
    (member.incarnation & ((1 << NUMBER_BITS) - 1), member.renewal)
}

/// The member as others know it.
fn outside(member: &Member) -> Member {
    Member { incarnation: number(member).0, ..member.clone() }
}

fn with_identity(update: &Update, member: Member) -> Update {
    Update::new(member, update.incarnation(), update.state())
}

/// A datagram, read.
pub(super) struct Datagram {
    pub(super) header: Header<Member>,
    pub(super) updates: Option<Vec<Update>>,
}

impl Datagram {
    fn read(mut bytes: &[u8]) -> Result<Datagram, SwimError> {
        let mut codec = PostcardCodec;
        let header = codec.decode_header(&mut bytes).map_err(|_| SwimError::Malformed)?;
        if bytes.is_empty() {
            return Ok(Datagram { header, updates: None });
        }
        let ([high, low], mut rest) = bytes.split_first_chunk().ok_or(SwimError::Malformed)?;
        let count = u16::from_be_bytes([*high, *low]);
        let updates: Result<Vec<Update>, _> = (0..count).map(|_| codec.decode_member(&mut rest)).collect();
        let updates = updates.map_err(|_| SwimError::Malformed)?;
        if rest.is_empty() { Ok(Datagram { header, updates: Some(updates) }) } else { Err(SwimError::Malformed) }
    }

    /// Writes it; what is beyond `most` bytes is left out.
    pub(super) fn write(&self, most: usize) -> Vec<u8> {
        let (mut codec, mut bytes) = (PostcardCodec, Vec::new());
        // Writing into a vector cannot fail.
        let _ = codec.encode_header(&self.header, &mut bytes);
        let Some(updates) = &self.updates else { return bytes };
        let (place, mut count) = (bytes.len(), 0_u16);
        bytes.extend([0, 0]);
        for update in updates {
            let before = bytes.len();
            let _ = codec.encode_member(update, &mut bytes);
            if bytes.len() > most {
                bytes.truncate(before);
                break;
            }
            count += 1;
        }
        bytes[place..place + 2].copy_from_slice(&count.to_be_bytes());
        bytes
    }

    /// Changes each member that it names.
    fn each(&mut self, change: impl Fn(&mut Member)) {
        change(&mut self.header.src);
        change(&mut self.header.dst);
        match &mut self.header.message {
            Message::PingReq { target, .. } | Message::IndirectAck { target, .. } => change(target),
            Message::IndirectPing { origin, .. } | Message::ForwardedAck { origin, .. } => change(origin),
            _ => {}
        }
        for update in self.updates.iter_mut().flatten() {
            let mut member = update.id().clone();
            change(&mut member);
            *update = with_identity(update, member);
        }
    }
}

/// What is done with a statement about a member.
enum Verdict {
    Believed,
    /// The same of this identity.
    BelievedOf(Member),
    Left,
    /// It is left aside, or not, and the member itself is asked.
    Asked {
        believed: bool,
    },
}

/// How many members are remembered, and how large a datagram may be.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) members: usize,
    pub(super) bytes: usize,
    /// Whether names count that nobody has heard of but by others.
    pub(super) believes_names: bool,
}

/// What came through, and whom to ask whether they are as others say.
pub(super) struct Sifted {
    pub(super) bytes: Vec<u8>,
    /// As they are said to be, and where they can be reached.
    pub(super) ask: Vec<(Member, Vec<String>)>,
}

/// So many at once, then one in a time.
#[derive(Debug)]
struct Bucket {
    most: u64,
    every: Millis,
    used: u64,
    since: Moment,
}

impl Bucket {
    fn new(most: u64, every: Millis) -> Bucket {
        Bucket { most, every, used: 0, since: Moment(0) }
    }

    fn take(&mut self, now: Moment) -> bool {
        let back = now.since(self.since) / self.every;
        self.used = self.used.saturating_sub(back);
        self.since = if self.used == 0 { now } else { self.since.after(back * self.every) };
        let may = self.used < self.most;
        self.used += u64::from(may);
        may
    }
}

/// Who told a new name.
#[derive(Debug)]
struct Told {
    first: Moment,
    last: Moment,
    by: AccessPoint,
    /// Whether another one did, too.
    twice: bool,
}

/// What members said of themselves.
#[derive(Debug)]
pub(super) struct Hearsay {
    /// The last number that a member gave of itself; of members that the protocol knows.
    words: BTreeMap<AccessPoint, (u64, u32)>,
    /// How often a member's own statement was lower than what others had said of it.
    overruled: BTreeMap<AccessPoint, u16>,
    asked: BTreeMap<AccessPoint, Moment>,
    told: BTreeMap<AccessPoint, Told>,
    renewals: Bucket,
    strangers: Bucket,
    /// Statements that were left aside.
    pub(super) left: u64,
}

impl Default for Hearsay {
    fn default() -> Hearsay {
        let (words, overruled, asked, told) = Default::default();
        let renewals = Bucket::new(MAX_RENEWALS, RENEWAL_EVERY);
        let strangers = Bucket::new(MAX_NEW_ASKED, NEW_ASKED_EVERY);
        Hearsay { words, overruled, asked, told, renewals, strangers, left: 0 }
    }
}

impl Hearsay {
    /// Takes out of a datagram what only the members that it speaks of could say.
    pub(super) fn sift(
        &mut self,
        now: Moment,
        from: AccessPoint,
        bytes: &[u8],
        protocol: &Protocol,
        limits: Limits,
    ) -> Result<Sifted, SwimError> {
        let mut datagram = Datagram::read(bytes)?;
        if datagram.header.src.access_point != from {
            return Err(SwimError::NotTheSender);
        }
        if datagram.header.src.incarnation >> NUMBER_BITS != 0 {
            return Err(SwimError::Malformed);
        }
        self.hear(from, number(&datagram.header.src), protocol, limits.members);
        let left = self.left;
        self.sift_message(now, &mut datagram.header, protocol);
        let mut sifted = Sifted { bytes: Vec::new(), ask: Vec::new() };
        let mut changed = self.left != left;
        if let Some(updates) = datagram.updates.take() {
            // A room without end believes every name at once.
            let mut room = if limits.believes_names { usize::MAX } else { self.room(&updates, protocol, limits.members) };
            let mut kept = Vec::with_capacity(updates.len());
            for update in updates {
                match self.judge(now, from, &update, protocol, &mut room) {
                    Verdict::Believed => kept.push(update),
                    Verdict::BelievedOf(member) => {
                        changed = true;
                        kept.push(with_identity(&update, member));
                    }
                    Verdict::Left => changed = true,
                    Verdict::Asked { believed } => {
                        sifted.ask.extend(self.next_to_ask(now, update.id(), protocol));
                        changed |= !believed;
                        kept.extend(believed.then_some(update));
                    }
                }
            }
            datagram.updates = Some(kept);
        }
        if !self.overruled.is_empty() {
            changed = true;
            datagram.each(|member| {
                let overruled = self.overruled.get(&member.access_point).copied().unwrap_or(0);
                member.incarnation |= u64::from(overruled) << NUMBER_BITS;
            });
        }
        sifted.bytes = if changed { datagram.write(limits.bytes) } else { bytes.to_vec() };
        Ok(sifted)
    }

    /// A datagram of ours as others understand it.
    pub(super) fn outgoing(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.overruled.is_empty() {
            return bytes;
        }
        let Ok(mut datagram) = Datagram::read(&bytes) else { return bytes };
        datagram.each(|member| *member = outside(member));
        datagram.write(usize::MAX)
    }

    /// A question to a member whether it is as others say: who is somebody else by now leaves it aside.
    pub(super) fn question(me: &Member, member: &Member) -> Vec<u8> {
        Hearsay::datagram(me, member, Message::Ping(0), Vec::new())
    }

    /// A datagram of our own making.
    pub(super) fn datagram(me: &Member, to: &Member, message: Message<Member>, updates: Vec<Update>) -> Vec<u8> {
        let header = Header { src: me.clone(), src_incarnation: 0, dst: to.clone(), message };
        Datagram { header, updates: Some(updates) }.write(usize::MAX)
    }

    /// What `known` would answer to this datagram of ours, if it is a ping that tells nothing new.
    pub(super) fn answer(ping: &[u8], known: &Update) -> Option<Vec<u8>> {
        let Datagram { header, updates } = Datagram::read(ping).ok()?;
        let Header { src, dst, message: Message::Ping(number), .. } = header else { return None };
        if updates.is_some_and(|updates| !updates.is_empty()) {
            return None;
        }
        let header = Header { src: dst, src_incarnation: known.incarnation(), dst: src, message: Message::Ack(number) };
        Some(Datagram { header, updates: Some(Vec::new()) }.write(usize::MAX))
    }

    /// A member speaks for itself.
    fn hear(&mut self, from: AccessPoint, own: (u64, u32), protocol: &Protocol, most: usize) {
        let known = state_of(protocol, &from).map(|known| number(known.id()));
        if known.is_some_and(|known| own < known) {
            // What it said itself before was later: it lost its disk, and is told so.
            if self.words.get(&from) == known.as_ref() {
                return;
            }
            self.left += 1;
            let overruled = self.overruled.entry(from).or_default();
            *overruled = overruled.saturating_add(1);
        }
        self.words.insert(from, own);
        if self.words.len() > 2 * most {
            let known: BTreeMap<_, _> = protocol.iter_membership_state().map(|state| (state.id().access_point, ())).collect();
            self.words.retain(|who, _| known.contains_key(who));
            self.overruled.retain(|who, _| known.contains_key(who));
        }
    }

    /// What the sender wants us to do: to ask only members that we know, and to renew ourselves not too often.
    fn sift_message(&mut self, now: Moment, header: &mut Header<Member>, protocol: &Protocol) {
        let me = protocol.identity();
        let done = match &mut header.message {
            Message::PingReq { target, .. } | Message::IndirectAck { target, .. } if target.access_point != me.access_point => {
                let known = state_of(protocol, &target.access_point).map(|known| outside(known.id()));
                match known.filter(|known| number(known) == number(target)) {
                    Some(known) => {
                        self.left += u64::from(known != *target);
                        *target = known;
                        true
                    }
                    None => false,
                }
            }
            Message::TurnUndead => header.dst != *me || self.renewals.take(now),
            _ => true,
        };
        if !done {
            self.left += 1;
            header.message = Message::Gossip;
        }
    }

    fn judge(&mut self, now: Moment, from: AccessPoint, update: &Update, protocol: &Protocol, room: &mut usize) -> Verdict {
        let (who, said, me) = (update.id().access_point, number(update.id()), protocol.identity());
        if who == me.access_point {
            let refutable = update.state() == State::Alive || update.state() == State::Suspect && update.incarnation() < u16::MAX;
            let so = said < number(me) || update.id() == me && (refutable || self.renewals.take(now));
            return if so { Verdict::Believed } else { self.leave() };
        }
        if who == from {
            return Verdict::Believed;
        }
        if update.id().incarnation >> NUMBER_BITS != 0 {
            return self.leave();
        }
        let Some(known) = state_of(protocol, &who) else {
            if update.state() == State::Down {
                return self.leave();
            }
            let believed = *room == usize::MAX || self.is_told_enough(now, from, who, protocol) && *room > 0;
            *room -= usize::from(believed && *room < usize::MAX);
            return if believed { Verdict::Believed } else { Verdict::Asked { believed } };
        };
        let heard = self.words.get(&who) == Some(&number(known.id()));
        match said.cmp(&number(known.id())) {
            Ordering::Equal if *update.id() == outside(known.id()) => Verdict::Believed,
            Ordering::Equal => {
                self.left += 1;
                Verdict::BelievedOf(outside(known.id()))
            }
            Ordering::Less if heard => Verdict::Believed,
            Ordering::Less => Verdict::Asked { believed: true },
            Ordering::Greater if known.state() == State::Down => Verdict::Asked { believed: true },
            Ordering::Greater if update.state() == State::Down => self.leave(),
            Ordering::Greater => {
                self.left += 1;
                Verdict::Asked { believed: false }
            }
        }
    }

    fn leave(&mut self) -> Verdict {
        self.left += 1;
        Verdict::Left
    }

    /// The member as it is said to be, if it is to be asked now. One that was heard itself is asked where it was.
    fn next_to_ask(&mut self, now: Moment, said: &Member, protocol: &Protocol) -> Option<(Member, Vec<String>)> {
        self.asked.retain(|_, at| now.since(*at) < ASK_AGAIN);
        let known = state_of(protocol, &said.access_point);
        let full = self.asked.len() >= MAX_ASKED || self.asked.contains_key(&said.access_point);
        if full || known.is_none() && !self.strangers.take(now) {
            return None;
        }
        self.asked.insert(said.access_point, now);
        let heard = known.filter(|_| self.words.contains_key(&said.access_point));
        let addresses = heard.map_or(&said.addresses, |known| &known.id().addresses);
        Some((said.clone(), addresses.clone()))
    }

    /// Whether a new name was told by two, or by one for long enough, or by the only one that there is.
    fn is_told_enough(&mut self, now: Moment, from: AccessPoint, who: AccessPoint, protocol: &Protocol) -> bool {
        if self.told.len() >= MAX_TOLD && !self.told.contains_key(&who) {
            self.told.retain(|_, told| now.since(told.last) < TOLD_FOR);
            if self.told.len() >= MAX_TOLD {
                self.left += 1;
                return false;
            }
        }
        let new = || Told { first: now, last: now, by: from, twice: false };
        let told = self.told.entry(who).or_insert_with(new);
        if now.since(told.last) >= TOLD_FOR {
            *told = new();
        }
        told.last = now;
        told.twice |= told.by != from;
        let enough = told.twice || now.since(told.first) >= TOLD_LONG;
        enough || protocol.iter_members().filter(|member| self.words.contains_key(&member.id().access_point)).count() <= 1
    }

    /// How many more members may be remembered that were never heard, if these statements name any.
    fn room(&self, updates: &[Update], protocol: &Protocol, most: usize) -> usize {
        if updates.iter().all(|update| state_of(protocol, &update.id().access_point).is_some()) {
            return 0;
        }
        let heard = |state: &&Update| self.words.contains_key(&state.id().access_point);
        let all_heard = protocol.iter_membership_state().filter(heard).count();
        let living_heard = protocol.iter_members().filter(heard).count();
        let unheard = protocol.num_members() - living_heard;
        let of_living = (MAX_UNHEARD + living_heard / HEARD_PER_UNHEARD).saturating_sub(unheard);
        of_living.min((most / UNHEARD_PART).saturating_sub(protocol.iter_membership_state().len() - all_heard))
    }
}

fn state_of<'a>(protocol: &'a Protocol, who: &AccessPoint) -> Option<&'a Update> {
    protocol.iter_membership_state().find(|state| state.id().access_point == *who)
}
