//! The role of a voter: whose lease is renewed, and which claims are accepted.

use crate::{
    ownership::register::Register,
    voting::{
        Times,
        handed_over::{self, MAX_DECIDED_BYTES},
        lease::MAX_TERMS_SKIPPED,
        records::{self, StoredRow, VotingRecord},
        rows::{MAX_ROWS, Row, Rows},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, MAX_EPOCH},
    subnet::Subnet,
    time::{Millis, Moment},
    vote::{AcceptedRow, Grant, HandedOver, MAX_BEFORE, MAX_REPORTED, Renewal, Renewed, SetNumber, SignedPart, SignedReplicas},
};
use std::collections::{BTreeMap, BTreeSet};

/// Owners whose renewals are remembered: as many as a swarm may have members.
pub(crate) const MAX_HEARD: usize = 16_384;

/// For how long an accepted claim is kept at least: by then it was published and every member has heard of it.
pub(super) const KEPT_FOR: Millis = 600_000;

/// After which time without publication the owner is asked whether it still means to publish.
const REPORTED_AFTER: Millis = 20_000;

/// How far ahead of the last known epoch a claim may be: attempts of members that a voter has not heard of.
pub(super) const MAX_SKIPPED: u64 = 1_024;

/// Owners whose last ended term is kept. They take less than half of what is handed to the next list.
pub(crate) const MAX_ENDED: usize = 8_192;

/// The ended term of an owner that owns nothing is forgotten when it has been silent for a day.
const ENDED_KEPT_FOR: Millis = 86_400_000;

/// The key of no member. The ended term that is kept for it is the last one of those that were forgotten: up to that one whoever owns
/// nothing and has not been heard begins a later one. So an owner that comes back is told that its term ended, though nobody remembers it.
pub(super) const FORGOTTEN: AccessPoint = AccessPoint([0; 32]);

/// Terms after this one are not forgotten: whoever begins anew must be able to begin the one after it.
pub(super) const MAX_FORGOTTEN_TERM: u64 = MAX_TERMS_SKIPPED / 2;

/// The last forgotten term that others are believed: whoever begins the one after it must be forgotten, too, when it is gone.
pub(super) const MAX_FORGOTTEN_TERM_TOLD: u64 = MAX_FORGOTTEN_TERM / 2;

/// Ended terms that are kept beside those of owners of something, as others tell them. The rest is for what is decided here.
pub(super) const MAX_ENDED_TOLD: usize = MAX_ENDED / 2;

/// What is known of an owner's lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(super) term: u64,
    incarnation: u64,
    /// Which process renewed it last.
    process: u64,
    /// Since when it has renewed without a longer break.
    pub(crate) since: Moment,
    /// When it last did.
    pub(crate) last: Moment,
    /// The number of the last list by which it can vote.
    pub(crate) installed: u64,
    /// Whether it leaves for good.
    pub(crate) leaving: bool,
}

/// A claim that an owner asks this voter to accept.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) claim: &'a Claim,
    /// What the owner of a larger subnet around it says.
    pub(crate) part: Option<&'a SignedPart>,
    /// The term of its lease.
    pub(crate) term: u64,
    /// The owner's process.
    pub(crate) process: u64,
}

/// Why a claim is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Owned,
    Epoch(u64),
    Invalid,
    /// Its owner has too many that are not published, or all have.
    Full,
}

/// The voter's memory.
#[derive(Debug)]
pub(crate) struct Voter {
    times: Times,
    /// Since when this access point has voted by the present list in this process: what happened before is not known.
    since: Moment,
    /// Since when it has noted every renewal that it granted by a list whose leases may last: an owner that is not heard from is silent from
    /// then on.
    watches_since: Moment,
    /// Since when it has been in touch with other voters, whenever it was looked, and so has heard of what is published.
    attends_since: Option<Moment>,
    heard: BTreeMap<AccessPoint, Heard>,
    /// The last ended terms of owners, and of those that were forgotten: at most [`MAX_ENDED`].
    pub(super) ended: BTreeMap<AccessPoint, u64>,
    /// Accepted claims.
    pub(super) rows: Rows,
    /// The last set of replicas of each owner, and which of its sets is on disk; at most [`MAX_HEARD`].
    replicas: BTreeMap<AccessPoint, (SignedReplicas, SetNumber)>,
}

impl Voter {
    pub(crate) fn new(times: Times, now: Moment, rows: BTreeMap<Subnet, StoredRow>, ended: BTreeMap<AccessPoint, u64>) -> Voter {
        let (attends_since, heard, replicas) = Default::default();
        Voter { times, since: now, watches_since: now, attends_since, heard, ended, rows: Rows::restored(now, rows), replicas }
    }

    /// With the sets of replicas that were stored before.
    pub(crate) fn with_replicas(mut self, stored: Vec<SignedReplicas>) -> Voter {
        self.replicas = stored.into_iter().map(|set| (set.replicas.owner, (set.clone(), set.number()))).collect();
        self
    }

    /// From now on another list is voted by: every lease of before is given its full time. That counts from this moment on, at which none
    /// of them could be renewed any more; or from when its owner was heard last, if none is given, as this voter knows the leases of
    /// before: then each quorum of such voters shares one with each that renewed a lease.
    pub(crate) fn list_changed(&mut self, now: Moment, watches_from: Option<Moment>) {
        self.since = now;
        self.watches_since = watches_from.map_or(self.watches_since, |from| from.max(self.watches_since));
    }

    /// An owner asks for its lease to be renewed. `votes` is whether renewing is ours to do; the owner is noted in any case.
    pub(crate) fn renew(&mut self, now: Moment, from: AccessPoint, renewal: &Renewal, register: &Register) -> Renewed {
        if let Some(term) = self.ended.get(&from).filter(|term| **term >= renewal.term) {
            return Renewed::Ended(*term);
        }
        // A later term has begun, as the owner does not know any more that lost its disk.
        if let Some(later) = self.replicas_of(&from).map(|set| set.number().term).filter(|later| *later > renewal.term) {
            return Renewed::Ended(later - 1);
        }
        let patience = self.times.patience();
        let known = self.heard.get(&from).copied();
        let forgotten = self.ended.get(&FORGOTTEN).copied().filter(|last| *last >= renewal.term);
        if let Some(last) = forgotten.filter(|_| known.is_none() && register.count(&from) == 0) {
            return Renewed::Ended(last);
        }
        let (since, last) = match known {
            // Another process with its key holds the lease, or may do so, unless it is one that surely has ended. Who takes its place later must
            // know of it.
            Some(heard)
                if heard.process != renewal.process
                    && !renewal.ended.contains(&heard.process)
                    && (renewal.sole || now.since(heard.last) < patience) =>
            {
                let later = heard.incarnation > renewal.incarnation;
                return if later { Renewed::Superseded(heard.incarnation) } else { Renewed::Held };
            }
            Some(heard) if heard.term > renewal.term => return Renewed::Ended(heard.term - 1),
            Some(heard) if now.since(heard.last) < patience => (heard.since, now),
            Some(_) => (now, now),
            // Another process with its key may have been heard before our time.
            None if !renewal.sole && now.since(self.since) < patience => return Renewed::Held,
            None if self.heard.len() >= MAX_HEARD && !self.forget_longest_silent(now) => return Renewed::Changing,
            None => (now, now),
        };
        let Renewal { term, incarnation, process, installed, .. } = *renewal;
        // Who leaves does so until its process ends: owners choose other replicas, and voters another list, at its word.
        let leaving = renewal.leaving || known.is_some_and(|heard| heard.leaving && heard.process == process);
        self.heard.insert(from, Heard { term, incarnation, process, since, last, installed, leaving });
        Renewed::Granted(Box::new(Grant { unpublished: self.unpublished(now, from, register), ..Grant::default() }))
    }

    /// Forgets one owner that has been silent for long enough to be taken over.
    fn forget_longest_silent(&mut self, now: Moment) -> bool {
        let silent =
            self.heard.iter().min_by_key(|(_, heard)| heard.last).filter(|(_, heard)| now.since(heard.last) > self.times.patience());
        silent.map(|(who, _)| *who).is_some_and(|who| self.heard.remove(&who).is_some())
    }

    fn unpublished(&self, now: Moment, owner: AccessPoint, register: &Register) -> Vec<(Subnet, u64)> {
        let open = self.rows.of_owner(owner).filter(|row| !row.stored.withdrawn);
        let late = open.filter(|row| now.since(row.at) >= REPORTED_AFTER && !is_published(register, &row.stored.row));
        late.take(MAX_REPORTED).map(|row| (row.stored.row.subnet, row.stored.row.epoch)).collect()
    }

    /// Notes the set of replicas in a renewal that is granted, if it is a later one than is known here. Whether that is to be stored first.
    pub(crate) fn note_replicas(&mut self, from: AccessPoint, renewal: &Renewal, records: &mut Vec<VotingRecord>) -> bool {
        let Some(set) = renewal.replicas.as_deref() else { return false };
        let fits = set.replicas.owner == from && set.number().term == renewal.term;
        fits && self.note(set, records)
    }

    pub(super) fn note(&mut self, set: &SignedReplicas, records: &mut Vec<VotingRecord>) -> bool {
        let owner = set.replicas.owner;
        let known = self.replicas.get(&owner);
        if known.is_some_and(|(known, stored)| known == set && *stored < set.number()) {
            // It may have come with what the voters before had decided, or is on its way to the disk.
            records.push(records::replicas(set));
            return true;
        }
        let room = known.is_some() || self.replicas.len() < MAX_HEARD;
        if !room || known.is_some_and(|(known, _)| known.number() >= set.number()) || !set.holds() {
            return false;
        }
        let stored = known.map_or_else(SetNumber::default, |(_, stored)| *stored);
        records.push(records::replicas(set));
        self.replicas.insert(owner, (set.clone(), stored));
        true
    }

    /// A set of replicas is on disk.
    pub(crate) fn replicas_stored(&mut self, owner: AccessPoint, number: SetNumber) {
        if let Some((_, stored)) = self.replicas.get_mut(&owner) {
            *stored = number.max(*stored);
        }
    }

    /// The last set of replicas of an owner.
    pub(crate) fn replicas_of(&self, owner: &AccessPoint) -> Option<&SignedReplicas> {
        self.replicas.get(owner).map(|(set, _)| set)
    }

    /// Which of an owner's sets of replicas is on disk.
    pub(crate) fn stored_number(&self, owner: &AccessPoint) -> SetNumber {
        self.replicas.get(owner).map_or_else(SetNumber::default, |(_, stored)| *stored)
    }

    /// The last sets of replicas of those who owned a subnet before this claim to it, which was accepted here; its owner may be among them.
    pub(crate) fn replicas_before(&self, claim: &Claim, register: &Register) -> Vec<SignedReplicas> {
        let published = register.latest(&claim.subnet).map(|held| held.claim.owner);
        let rows = self.rows.of(&claim.subnet).iter();
        let before = at_most_before(published.into_iter().chain(rows.flat_map(|row| row.stored.before.iter().copied())));
        before.iter().filter_map(|owner| self.replicas_of(owner).cloned()).collect()
    }

    /// Whether this owner holds a lease of this term, as far as this voter knows.
    pub(crate) fn holds_lease(&self, now: Moment, who: &AccessPoint, term: u64, process: u64) -> bool {
        let holds = |heard: &Heard| heard.term == term && heard.process == process && now.since(heard.last) < self.times.patience();
        self.heard.get(who).is_some_and(holds) && self.ended.get(who).is_none_or(|ended| *ended < term)
    }

    /// What is known of an owner's lease.
    pub(crate) fn heard(&self) -> impl Iterator<Item = (&AccessPoint, &Heard)> {
        self.heard.iter()
    }

    /// Whether a term of its lease was ended here: it owned something once.
    pub(crate) fn has_ended(&self, who: &AccessPoint) -> bool {
        self.ended.contains_key(who)
    }

    /// What is known of one owner's lease.
    pub(crate) fn heard_of(&self, who: &AccessPoint) -> Option<&Heard> {
        self.heard.get(who)
    }

    /// For how long this access point has not renewed its lease here; counted at most from when we began to note renewals.
    pub(crate) fn silent_for(&self, now: Moment, who: &AccessPoint) -> Millis {
        now.since(self.heard.get(who).map_or(self.watches_since, |heard| heard.last.max(self.watches_since)))
    }

    /// Whether what was owned in this term may be claimed by others. A term that one voter ended may have gone on with the leases of the
    /// others, and the next list is told of it: what a lease of the list before allows is over when it has run out.
    fn is_over(&self, now: Moment, owner: &AccessPoint, term: u64) -> bool {
        let ended = self.ended.get(owner).is_some_and(|ended| *ended >= term);
        (ended && now.since(self.since) >= self.times.patience())
            || self.heard.get(owner).is_some_and(|heard| heard.term > term)
            || self.silent_for(now, owner) >= self.times.patience()
    }

    /// Judges a claim of an owner that holds a lease of this term. Accepted: the row to be stored before that is told, and terms that end.
    pub(crate) fn judge(
        &mut self,
        now: Moment,
        asked: Asked<'_>,
        register: &Register,
        records: &mut Vec<VotingRecord>,
    ) -> Result<(), Refusal> {
        let Asked { claim, part, term, process } = asked;
        if claim.released || claim.epoch > MAX_EPOCH || claim.epoch == 0 {
            return Err(Refusal::Invalid);
        }
        let subnet = claim.subnet;
        let row = AcceptedRow { subnet, epoch: claim.epoch, owner: claim.owner, term };
        let standing = self.standing(&subnet, register);
        let last = standing.iter().map(|before| before.row.epoch).max().unwrap_or(0);
        // Voters of the list before may have accepted another's claim at this epoch: of these none is accepted, or both would be.
        let rival = standing.iter().any(|before| before.row.epoch == claim.epoch && before.row != row);
        let again = claim.epoch == last && !rival && standing.iter().any(|before| before.row == row && !before.released);
        if again && !self.is_hearsay(&row, register) {
            self.proposed_again(&row, process, records);
            return Ok(());
        }
        if claim.epoch <= last && !again {
            return Err(Refusal::Epoch(last));
        }
        if claim.epoch > last.saturating_add(MAX_SKIPPED) {
            return Err(Refusal::Invalid);
        }
        let owners = self.owners_before(&subnet, &standing);
        let of_others: Vec<_> = standing.into_iter().filter(|before| !before.released && before.row.owner != claim.owner).collect();
        if of_others.iter().any(|before| !self.is_over(now, &before.row.owner, before.row.term)) {
            return Err(Refusal::Owned);
        }
        // What was claimed before, as a quorum proved, is no part of the larger subnet any more.
        if register.latest(&subnet).is_none()
            && let Some(around) = register.covering(&subnet).filter(|around| around.owner != claim.owner && !around.released)
            && part.is_none_or(|part| !part.allows(claim, around))
        {
            let term = register.latest(&around.subnet).map_or(0, |held| held.term());
            if !self.is_over(now, &around.owner, term) {
                return Err(Refusal::Owned);
            }
        }
        let new_ended = of_others.iter().filter(|before| !self.ended.contains_key(&before.row.owner)).count();
        let room = self.rows.has_room(now, &row, |row| is_published(register, row));
        if !room || new_ended > 0 && self.ended.len() + new_ended > MAX_ENDED {
            return Err(Refusal::Full);
        }
        for before in of_others {
            self.end(before.row.owner, before.row.term, records);
        }
        let stored = StoredRow { row, process, withdrawn: false, before: owners };
        records.push(records::row(&stored));
        self.rows.replace(subnet, Row { stored, at: now });
        Ok(())
    }

    /// Whether only others said that this claim was accepted, and no quorum proved it: then it is judged as if it were new, for one voter
    /// that lies may have invented it. If it was accepted, the lease before it ran out, or does so soon.
    fn is_hearsay(&self, row: &AcceptedRow, register: &Register) -> bool {
        let published = register.latest(&row.subnet).is_some_and(|held| held.claim.epoch >= row.epoch);
        let told = |known: &Row| known.stored.row == *row && known.stored.process == 0;
        !published && self.rows.of(&row.subnet).iter().any(told)
    }

    /// A later process proposes what was accepted: from now on only its own word withdraws it.
    fn proposed_again(&mut self, row: &AcceptedRow, process: u64, records: &mut Vec<VotingRecord>) {
        for known in self.rows.of_mut(&row.subnet).iter_mut().filter(|known| known.stored.row == *row && known.stored.process != process) {
            known.stored.process = process;
            records.push(records::row(&known.stored));
        }
    }

    /// What stands in the way of a claim to a subnet: the published claim, and those accepted here at later epochs.
    fn standing(&self, subnet: &Subnet, register: &Register) -> Vec<Standing> {
        let published = register.latest(subnet).map(|held| Standing {
            row: AcceptedRow { subnet: *subnet, epoch: held.claim.epoch, owner: held.claim.owner, term: held.term() },
            released: held.claim.released,
            unpublished: false,
        });
        let epoch = published.map_or(0, |published| published.row.epoch);
        let later = self.rows.of(subnet).iter().filter(|row| row.stored.row.epoch > epoch);
        later.map(|row| Standing { row: row.stored.row, released: row.stored.withdrawn, unpublished: true }).chain(published).collect()
    }

    /// Who owned a subnet, or may have, as those before the next owner of whom these are the last claims. A claim that was accepted may have
    /// been published without being known here, and one after it may have been withdrawn: who is before a claim that is not published is before the next, too.
    fn owners_before(&self, subnet: &Subnet, standing: &[Standing]) -> Vec<AccessPoint> {
        let published = standing.last().filter(|last| !last.unpublished).map_or(0, |last| last.row.epoch);
        let later = self.rows.of(subnet).iter().filter(|row| row.stored.row.epoch > published);
        let last = standing.iter().filter(|last| !(last.unpublished && last.released)).map(|last| last.row.owner);
        at_most_before(last.chain(later.flat_map(|row| row.stored.before.iter().copied())))
    }

    /// No lease of this term is renewed any more.
    pub(super) fn end(&mut self, owner: AccessPoint, term: u64, records: &mut Vec<VotingRecord>) {
        let ended = self.ended.entry(owner).or_default();
        if *ended < term {
            *ended = term;
            records.push(records::ended(owner, term));
        }
    }

    /// An owner will never publish these claims. Their epochs stay used up: this voter never accepts two claims at one epoch. What another
    /// process of the owner proposed is withdrawn only by the one that holds the lease; it may have been published by the other one.
    pub(crate) fn withdraw(&mut self, from: AccessPoint, process: u64, claims: &[(Subnet, u64)], records: &mut Vec<VotingRecord>) {
        let holds = self.heard.get(&from).is_some_and(|heard| heard.process == process);
        for (subnet, epoch) in claims {
            for Row { stored, .. } in
                self.rows.of_mut(subnet).iter_mut().filter(|row| row.stored.row.owner == from && row.stored.row.epoch == *epoch)
            {
                if !stored.withdrawn && (holds || stored.process == process) {
                    withdraw(stored, stored.process != process);
                    records.push(records::row(stored));
                }
            }
        }
    }

    /// Forgets rows that were published long ago, and epochs that were used up by votes of a list before. `attends` is whether this access
    /// point votes and is in touch with others.
    pub(crate) fn tidy(&mut self, now: Moment, attends: bool, register: &Register, records: &mut Vec<VotingRecord>) {
        let since = self.since;
        self.attends_since = attends.then(|| self.attends_since.unwrap_or(now));
        self.withdraw_unpublished(now, register, records);
        self.rows.note_published(|row| is_published(register, row));
        self.tidy_replicas(now, register, records);
        self.tidy_ended(now, register, records);
        // What may have been published stays for the sake of what a successor is told, but not where that takes the room of all.
        let roomy = self.rows.len() < MAX_ROWS / 2;
        self.rows.retain(|subnet, rows| {
            let published = register.latest(subnet).map_or(0, |held| held.claim.epoch);
            // Of those before it one may have owned the subnet without being known here.
            let owner = register.latest(subnet).map(|held| held.claim.owner);
            let tells = |row: &Row| row.stored.before.iter().any(|before| Some(*before) != owner);
            let needed = |row: &Row| published < row.stored.row.epoch && (!(row.stored.withdrawn && row.at < since) || roomy && tells(row));
            let keep = rows.iter().any(|row| needed(row) || now.since(row.at) < KEPT_FOR);
            if !keep {
                records.push(records::no_row(*subnet));
            }
            keep
        });
    }

    /// What an owner that renews its lease has neither published nor withdrawn, although it was asked again and again, counts as withdrawn:
    /// nobody keeps a subnet from all. So does what an owner has that is silent and could be taken over from; as with a claim in its place,
    /// the term of its lease ends with that, so it owns nothing by such a claim when it comes back. A voter that was itself cut off, or
    /// stood still, may not have heard what was published, and of whom: it waits until it has been in touch for as long as rows are kept.
    fn withdraw_unpublished(&mut self, now: Moment, register: &Register, records: &mut Vec<VotingRecord>) {
        let (patience, watches_since) = (self.times.patience(), self.watches_since);
        let attends = self.attends_since.is_some_and(|since| now.since(since) >= KEPT_FOR);
        let here = |heard: &Heard| now.since(heard.since) >= KEPT_FOR && now.since(heard.last) < patience;
        let silent_for = |heard: Option<&Heard>| now.since(heard.map_or(watches_since, |heard| heard.last.max(watches_since)));
        let mut over = BTreeMap::new();
        for row in self.rows.all_mut().filter(|row| !row.stored.withdrawn && now.since(row.at) >= KEPT_FOR) {
            let AcceptedRow { owner, term, .. } = row.stored.row;
            let heard = self.heard.get(&owner);
            let room = self.ended.contains_key(&owner) || self.ended.len() + over.len() < MAX_ENDED;
            let gone = attends && room && silent_for(heard) >= patience + self.times.margin;
            if (gone || heard.is_some_and(here)) && !is_published(register, &row.stored.row) {
                withdraw(&mut row.stored, true);
                records.push(records::row(&row.stored));
                if gone {
                    let last = over.entry(owner).or_insert(term);
                    *last = term.max(*last);
                }
            }
        }
        over.into_iter().for_each(|(owner, term)| self.end(owner, term, records));
    }

    /// Forgets the sets of replicas of those that have been silent for long and own nothing any more, by any claim that is known.
    fn tidy_replicas(&mut self, now: Moment, register: &Register, records: &mut Vec<VotingRecord>) {
        let heard = |owner: &AccessPoint| now.since(self.heard.get(owner).map_or(self.since, |heard| heard.last)) < KEPT_FOR;
        let over: BTreeSet<_> = self.replicas.keys().filter(|owner| register.count(owner) == 0 && !heard(owner)).copied().collect();
        if over.is_empty() {
            return;
        }
        let released = register.all().map(|held| held.claim.owner);
        let rows = self.rows.all().flat_map(|row| row.stored.before.iter().copied().chain([row.stored.row.owner]));
        let needed: BTreeSet<_> = released.chain(rows).collect();
        for owner in over.difference(&needed).copied() {
            self.replicas.remove(&owner);
            records.push(records::no_replicas(owner));
        }
    }

    /// Forgets ended terms of owners of which nothing is owned, or voted on, and that have been silent for a day; and, of those that own
    /// something or if there are many, terms that a later one followed by the owner's own signature. Only the last of them is kept.
    fn tidy_ended(&mut self, now: Moment, register: &Register, records: &mut Vec<VotingRecord>) {
        let many = self.ended.len() > MAX_ENDED / 2;
        let is_over = |owner: &AccessPoint, term: u64| {
            let owns = register.count(owner) > 0;
            let later = self.stored_number(owner).term > term && (owns || many);
            later || !owns && self.rows.of_owner(*owner).next().is_none() && self.silent_for(now, owner) >= ENDED_KEPT_FOR
        };
        let kept = |owner: &AccessPoint, term: u64| *owner == FORGOTTEN || term > MAX_FORGOTTEN_TERM || !is_over(owner, term);
        let over: Vec<_> = self.ended.iter().filter(|(owner, term)| !kept(owner, **term)).map(|(owner, term)| (*owner, *term)).collect();
        let Some(last) = over.iter().map(|(_, term)| *term).max() else { return };
        self.end(FORGOTTEN, last, records);
        for (owner, _) in over {
            self.ended.remove(&owner);
            // Who was heard in that term would be granted it once more.
            if self.silent_for(now, &owner) >= ENDED_KEPT_FOR {
                self.heard.remove(&owner);
            }
            records.push(records::no_ended(owner));
        }
    }

    /// Owners whose last ended term is kept.
    pub(crate) fn ended_terms(&self) -> usize {
        self.ended.len()
    }

    /// What the voters of the next list have to know, as far as it fits into a message: what was decided
    /// ([`Voter::can_hand_over`]), who has what was recorded, first of those that own something, and, if `abandoned`, claims of owners that
    /// have been silent and whose terms ended, which their next lease does without.
    pub(crate) fn hand_over(&self, abandoned: bool, register: &Register) -> HandedOver {
        let ended = self.ended.iter().map(|(who, term)| (*who, *term)).collect();
        let mut before = HandedOver { rows: self.open_rows().copied().collect(), ended, replicas: Vec::new() };
        let (owners, others): (Vec<_>, Vec<_>) = self.replicas.values().partition(|(set, _)| register.count(&set.replicas.owner) > 0);
        handed_over::add_replicas(&mut before, owners.into_iter().chain(others).map(|(set, _)| set.clone()));
        if abandoned {
            let is_over = |row: &AcceptedRow| self.ended.get(&row.owner).is_some_and(|ended| *ended >= row.term);
            let may_be_published = |stored: &StoredRow| stored.withdrawn && stored.before.contains(&stored.row.owner);
            let rows = self.rows.all().map(|row| &row.stored).filter(|stored| may_be_published(stored) && is_over(&stored.row));
            handed_over::add_rows(&mut before, rows.map(|stored| stored.row));
        }
        before
    }

    fn open_rows(&self) -> impl Iterator<Item = &AcceptedRow> {
        self.rows.all().filter(|row| !row.stored.withdrawn).map(|row| &row.stored.row)
    }

    /// The bytes of what must be handed to the next list; if it is more than may be, not how much more.
    pub(crate) fn decided_bytes(&self) -> usize {
        handed_over::decided_bytes(self.open_rows(), &self.ended)
    }

    /// Of how many owners something was decided that is handed over.
    pub(crate) fn owners_decided(&self) -> usize {
        self.open_rows().map(|row| &row.owner).chain(self.ended.keys()).collect::<BTreeSet<_>>().len()
    }

    /// Whether what was decided fits into the message that hands it over.
    pub(crate) fn can_hand_over(&self) -> bool {
        self.decided_bytes() <= MAX_DECIDED_BYTES
    }

    /// Whether a voter of the list with this number has nothing to vote by, although it has had time to be given it: its disk was lost.
    pub(crate) fn is_empty_handed(&self, now: Moment, who: &AccessPoint, number: u64) -> bool {
        let heard = self.heard.get(who).is_some_and(|heard| heard.installed < number);
        heard && now.since(self.since) >= 2 * self.times.patience()
    }

    /// Of how many owners it is known who has what they recorded.
    pub(crate) fn replica_sets(&self) -> usize {
        self.replicas.len()
    }

    /// How many accepted claims are kept.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many of them that are not known to be published are of one owner at most.
    pub(crate) fn most_rows_of_one(&self) -> usize {
        self.rows.most_of_one()
    }
}

/// The last claim to a subnet.
#[derive(Clone, Copy)]
struct Standing {
    row: AcceptedRow,
    /// It was released, or withdrawn if it is not published.
    released: bool,
    unpublished: bool,
}

/// Whether a claim, or a later one to the same subnet, is known.
pub(super) fn is_published(register: &Register, row: &AcceptedRow) -> bool {
    register.latest(&row.subnet).is_some_and(|held| held.claim.epoch >= row.epoch)
}

/// A claim will not be published, but may have been before: then its owner stays one of those before the next.
fn withdraw(stored: &mut StoredRow, may_have_been_published: bool) {
    stored.withdrawn = true;
    if may_have_been_published {
        let owner = stored.row.owner;
        stored.before = at_most_before(std::iter::once(owner).chain(stored.before.iter().copied()));
    }
}

/// Each of these once, in their order, and no more than a vote may tell.
fn at_most_before(owners: impl Iterator<Item = AccessPoint>) -> Vec<AccessPoint> {
    let mut before = Vec::new();
    for owner in owners {
        if before.len() < MAX_BEFORE && !before.contains(&owner) {
            before.push(owner);
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::RosterConfig;
    use nearcrawl_model::{
        claim::{ClaimReason, SignedClaim},
        vote::{AwardedPart, ReplicaSet, Votes},
    };

    const OWNER: AccessPoint = AccessPoint([1; 32]);
    const OTHER: AccessPoint = AccessPoint([2; 32]);

    fn claim(owner: AccessPoint, epoch: u64) -> Claim {
        let subnet = "20.0.1.0/24".parse().unwrap();
        let reason = ClaimReason::OwnerDead;
        Claim { subnet, epoch, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() }
    }

    #[test]
    fn of_two_claims_that_voters_of_the_list_before_accepted_at_one_epoch_none_is_accepted_again() {
        let times = Times::of(&RosterConfig::default());
        let mut voter = Voter::new(times, Moment(0), BTreeMap::new(), BTreeMap::new());
        let row = |owner| AcceptedRow { subnet: claim(owner, 3).subnet, epoch: 3, owner, term: 1 };
        let before = HandedOver { rows: vec![row(OWNER), row(OTHER)], ..HandedOver::default() };
        voter.take_in(Moment(0), &before, &Register::default(), &mut Vec::new());
        for owner in [OWNER, OTHER] {
            let claim = claim(owner, 3);
            let asked = Asked { claim: &claim, part: None, term: 1, process: 1 };
            assert_eq!(voter.judge(Moment(1), asked, &Register::default(), &mut Vec::new()), Err(Refusal::Epoch(3)));
        }
    }

    fn renewal(term: u64) -> Renewal {
        Renewal {
            list: 1,
            term,
            incarnation: 1,
            process: 1,
            ended: [0, 0],
            sole: true,
            installed: 1,
            leaving: false,
            known: SetNumber::default(),
            replicas: None,
        }
    }

    fn judge(voter: &mut Voter, now: Moment, claim: &Claim) -> Result<(), Refusal> {
        voter.judge(now, Asked { claim, part: None, term: 1, process: 1 }, &Register::default(), &mut Vec::new())
    }

    #[test]
    fn a_successor_hears_of_who_may_have_published_a_claim_though_one_after_it_was_withdrawn_and_not_of_who_withdrew() {
        let key = |number| ed25519_dalek::SigningKey::from_bytes(&[number; 32]);
        let point = |number| AccessPoint(key(number).verifying_key().to_bytes());
        let set = |number: u8| {
            let number_of = SetNumber { term: 1, version: 1 };
            SignedReplicas::sign(
                ReplicaSet { owner: point(number), number: number_of, members: Vec::new(), inherited: Vec::new() },
                &key(number),
            )
        };
        let mut voter = Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new())
            .with_replicas((1..=5).map(set).collect());
        let (mut register, mut records) = (Register::default(), Vec::new());
        let votes = Some(Box::new(Votes { list: 1, term: 1, voters: Vec::new() }));
        register.merge(claim(point(1), 1), &SignedClaim { votes, ..SignedClaim::sign(&claim(point(1), 1), &key(1)) });
        let mut judge = |voter: &mut Voter, number, epoch| {
            let claim = claim(point(number), epoch);
            let asked = Asked { claim: &claim, part: None, term: 1, process: 1 };
            assert_eq!(voter.judge(Moment(epoch * 1_000_000), asked, &register, &mut records), Ok(()));
            let before = voter.replicas_before(&claim, &register);
            (1..=5).filter(|number| before.iter().any(|set| set.replicas.owner == point(*number))).collect::<Vec<_>>()
        };
        assert_eq!(judge(&mut voter, 2, 2), [1]);
        // The second may have published its claim and gone on, on the other side of a cut.
        assert_eq!(judge(&mut voter, 3, 3), [1, 2]);
        let subnet = claim(point(3), 3).subnet;
        voter.withdraw(point(3), 1, &[(subnet, 3)], &mut Vec::new());
        assert_eq!(judge(&mut voter, 4, 4), [1, 2]);
        // Another process of the fourth does not know what the one before published.
        voter.renew(Moment(4_000_000), point(4), &Renewal { process: 2, ..renewal(1) }, &register);
        voter.withdraw(point(4), 2, &[(subnet, 4)], &mut Vec::new());
        voter.list_changed(Moment(4_000_001), Some(Moment(4_000_001)));
        voter.tidy(Moment(4_900_000), true, &register, &mut Vec::new());
        assert_eq!(judge(&mut voter, 5, 5), [1, 2, 4]);
    }

    #[test]
    fn what_was_only_said_to_be_accepted_is_not_accepted_as_long_as_the_owner_before_holds_its_lease() {
        let mut voter = Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new());
        let mut register = Register::default();
        let key = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
        let owner = AccessPoint(key.verifying_key().to_bytes());
        let votes = Some(Box::new(Votes { list: 1, term: 1, voters: Vec::new() }));
        register.merge(claim(owner, 1), &SignedClaim { votes, ..SignedClaim::sign(&claim(owner, 1), &key) });
        let invented = claim(OTHER, 2);
        let row = AcceptedRow { subnet: invented.subnet, epoch: 2, owner: OTHER, term: 1 };
        voter.take_in(Moment(0), &HandedOver { rows: vec![row], ..HandedOver::default() }, &register, &mut Vec::new());
        voter.renew(Moment(50_000), owner, &renewal(1), &register);
        let mut judge =
            |now| voter.judge(Moment(now), Asked { claim: &invented, part: None, term: 1, process: 1 }, &register, &mut Vec::new());
        assert_eq!(judge(60_000), Err(Refusal::Owned));
        assert_eq!(judge(96_000), Ok(()), "the lease before is over");
        assert_eq!(judge(96_001), Ok(()), "it was accepted here");
    }

    #[test]
    fn who_says_that_it_leaves_does_so_until_another_process_takes_its_place() {
        let (mut voter, register) =
            (Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new()), Register::default());
        let mut leaves = |now, renewal: Renewal| {
            assert!(matches!(voter.renew(Moment(now), OWNER, &renewal, &register), Renewed::Granted(_)));
            voter.heard_of(&OWNER).unwrap().leaving
        };
        assert!(!leaves(0, renewal(1)));
        assert!(leaves(13_000, Renewal { leaving: true, ..renewal(1) }));
        assert!(leaves(26_000, renewal(1)), "it is the same process");
        assert!(leaves(500_000, renewal(1)));
        assert!(!leaves(501_000, Renewal { process: 2, incarnation: 2, ended: [1, 0], ..renewal(1) }));
    }

    #[test]
    fn a_part_of_anothers_subnet_is_claimed_only_with_its_word_while_it_holds_its_lease() {
        let mut voter = Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new());
        let mut register = Register::default();
        let key = |number| ed25519_dalek::SigningKey::from_bytes(&[number; 32]);
        let owner = AccessPoint(key(1).verifying_key().to_bytes());
        let around = Claim { subnet: "20.0.0.0/16".parse().unwrap(), ..claim(owner, 4) };
        let votes = Some(Box::new(Votes { list: 1, term: 1, voters: Vec::new() }));
        register.merge(around.clone(), &SignedClaim { votes: votes.clone(), ..SignedClaim::sign(&around, &key(1)) });
        voter.renew(Moment(50_000), owner, &renewal(1), &register);
        let part = Claim { reason: ClaimReason::Awarded, ..claim(OTHER, 1) };
        let says = |by, to, epoch| {
            let awarded = AwardedPart { part: part.subnet, to, within: (around.subnet, epoch) };
            SignedPart::sign(awarded, &key(by))
        };
        let mut judge = |register: &Register, now, claim: &Claim, part: Option<SignedPart>| {
            let asked = Asked { claim, part: part.as_ref(), term: 1, process: 1 };
            voter.judge(Moment(now), asked, register, &mut Vec::new())
        };
        for said in [None, Some(says(2, OTHER, 4)), Some(says(1, OWNER, 4)), Some(says(1, OTHER, 3))] {
            assert_eq!(judge(&register, 60_000, &part, said.clone()), Err(Refusal::Owned), "{said:?}");
        }
        let mut forged = says(1, OTHER, 4);
        forged.by.signature[0] ^= 1;
        assert_eq!(judge(&register, 60_000, &part, Some(forged)), Err(Refusal::Owned));
        assert_eq!(judge(&register, 60_000, &part, Some(says(1, OTHER, 4))), Ok(()));
        // Once it is proven to be another's, its own history decides.
        register.merge(part.clone(), &SignedClaim { votes, ..SignedClaim::sign(&part, &key(2)) });
        let next = Claim { epoch: 2, ..claim(OWNER, 2) };
        assert_eq!(judge(&register, 94_000, &next, None), Ok(()), "its owner has never held a lease here, the other one does");
    }

    #[test]
    fn who_has_a_claim_accepted_and_never_publishes_it_keeps_nobody_from_the_subnet_for_ever() {
        let mut voter = Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new());
        let (register, mut records) = (Register::default(), Vec::new());
        for second in (0..=700).step_by(10) {
            let now = Moment(second * 1_000);
            for who in [OWNER, OTHER] {
                voter.renew(now, who, &renewal(1), &register);
            }
            if second == 20 {
                assert_eq!(judge(&mut voter, now, &claim(OWNER, 1)), Ok(()));
            }
            voter.tidy(now, true, &register, &mut records);
            if second == 600 {
                assert_eq!(judge(&mut voter, now, &claim(OTHER, 2)), Err(Refusal::Owned));
            }
        }
        assert_eq!(judge(&mut voter, Moment(700_000), &claim(OTHER, 1)), Err(Refusal::Epoch(1)), "the epoch is used up");
        assert_eq!(judge(&mut voter, Moment(700_000), &claim(OTHER, 2)), Ok(()));
    }

    #[test]
    fn a_voter_that_knows_the_leases_of_the_list_before_counts_an_owners_silence_from_when_it_was_heard() {
        for (knows, since) in [(true, 0), (false, 30_000)] {
            let mut voter = Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new());
            let (register, mut records) = (Register::default(), Vec::new());
            voter.renew(Moment(0), OWNER, &renewal(1), &register);
            assert_eq!(judge(&mut voter, Moment(0), &claim(OWNER, 1)), Ok(()));
            voter.list_changed(Moment(30_000), (!knows).then_some(Moment(30_000)));
            // What another voter says to have ended counts from the change in any case.
            voter.take_in(Moment(30_000), &HandedOver { ended: vec![(OWNER, 1)], ..HandedOver::default() }, &register, &mut records);
            let over = Moment(since).after(voter.times.patience());
            assert_eq!(judge(&mut voter, Moment(over.0 - 1), &claim(OTHER, 2)), Err(Refusal::Owned), "{knows}");
            assert_eq!(judge(&mut voter, over, &claim(OTHER, 2)), Ok(()), "{knows}");
        }
    }

    #[test]
    fn a_term_that_a_voter_of_the_list_before_ended_is_over_when_the_leases_of_that_list_have_run_out() {
        let times = Times::of(&RosterConfig::default());
        let mut voter = Voter::new(times, Moment(0), BTreeMap::new(), BTreeMap::new());
        let (register, mut records) = (Register::default(), Vec::new());
        let judge = |voter: &mut Voter, now, claim: &Claim| {
            voter.judge(now, Asked { claim, part: None, term: 1, process: 1 }, &Register::default(), &mut Vec::new())
        };
        assert_eq!(judge(&mut voter, Moment(0), &claim(OWNER, 1)), Ok(()));
        // One voter was cut off for long and ended the owner's term, which the others renewed until now.
        let changed = Moment(1_000_000);
        voter.list_changed(changed, Some(changed));
        voter.take_in(changed, &HandedOver { ended: vec![(OWNER, 1)], ..HandedOver::default() }, &register, &mut records);
        let (known, replicas) = Default::default();
        let renewal = Renewal {
            list: 2,
            term: 1,
            incarnation: 1,
            process: 1,
            ended: [0, 0],
            sole: true,
            installed: 1,
            leaving: false,
            known,
            replicas,
        };
        assert_eq!(voter.renew(changed, OWNER, &renewal, &register), Renewed::Ended(1), "nobody renews it any more");
        let last = changed.after(times.patience() - 1);
        assert_eq!(judge(&mut voter, last, &claim(OTHER, 2)), Err(Refusal::Owned));
        assert_eq!(judge(&mut voter, last.after(1), &claim(OTHER, 2)), Ok(()));
    }
}
