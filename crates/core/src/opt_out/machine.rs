//! State machine of opt-outs: takes them in, stores them, tells them and compares them with other members'.
//!
//! A member speaks for itself only: "I saw the proof", "I looked for it in vain", "my operator orders it". What holds here:
//!
//! * an operator's order holds as long as that member does not withdraw it, unless the configuration ignores its orders;
//! * of a proof that this access point looked for itself, what it saw counts, whatever others say. It looks for those of sites of its own,
//!   and again when a member says the opposite. One that it sees is there; one is not there if it finds none three times in eleven minutes,
//!   or, if it never saw it, cannot find out for six hours. Until then nothing is asked. What it looked for in vain and a member repeats
//!   it looks for again, but has requests wait for that once a day only for each that says so, and three times in all;
//! * people's withdrawal is told at once if the proof is not there at that moment, and holds here when two further looks agree;
//! * of another proof that a member saw nothing is asked here, and if this access point comes to own such a server, it looks first. Its
//!   URLs are not dropped for it: they go to the owner, who looks. As many who looked in vain as saw it make it one that is not in force.
//!
//! So neither a member that makes opt-outs up nor one that withdraws what is not its own changes for long what an owner asks, and a
//! withdrawal reaches all that saw the proof before. A member whose opt-outs were looked for in vain here a few times is not believed any
//! more where its statement costs the server requests: of files. A look at a TXT record costs a server nothing. Orders count of members
//! only. Who has no statements asks nobody for any: those who have some tell.

use super::{
    in_force::{InForce, OptedOut},
    looks::{Look, Looks, SERIES},
    register::{KeptStatement, NotKeptError, Register, Signer},
};
use crate::{
    context::{Context, MAX_TOLD_DIRECTLY},
    event::{Command, StoreCommand, WebCommand},
    membership::Membership,
    pending::Pending,
    statements::{Comparing, Outcomes, Telling},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::Claim,
    ids::{QuestionId, Ticket, WriteId},
    message::{Gossip, Request, Response},
    opt_out::{
        MAX_TOLD, OptOutKey, OptOutProof, OptOutSubject, OptOutView, ProofLook, SignedStatement, Statement, StatementHead, StatementId,
        StatementsDigest,
    },
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

/// A member whose proofs were looked for here in vain so often, and more often than one of them was seen, is not believed any more.
pub(crate) const MAX_REFUTED: usize = 5;

/// Why an order of one who is no member is not taken.
const NO_OPERATOR: &str = "an order is given by the operator of a member at its machine: publish a proof (txt or file), then say so again";

/// What the configuration denies is not asked for a proof, either.
const NEVER_ASKS: &str = "its operator has it ask nothing there (deny lists); say so to another member";

/// All opt-outs that this access point knows of.
#[derive(Debug, Default)]
pub(crate) struct OptOuts {
    register: Register,
    looks: Looks,
    telling: Telling,
    outcomes: Outcomes<OptOutKey>,
    /// Members that are not believed.
    distrusted: BTreeSet<AccessPoint>,
    comparing: Comparing,
    /// Whether others are in force since it was last asked.
    has_changed: bool,
}

/// Whether what is said of a proof is not believed, because of who says it: only where looking for it would be a request to the server.
fn is_disbelieved(distrusted: &BTreeSet<AccessPoint>, statement: &Statement) -> bool {
    statement.key.proof == OptOutProof::File && distrusted.contains(&statement.by)
}

/// Whether this access point asks a server at this address for a file because a program says so that is no member; else why not.
fn may_ask(cx: &Context, members: &Membership, key: &OptOutKey, address: IpAddr, claim: Option<&Claim>) -> Result<(), String> {
    let is_denied = match &key.subject {
        OptOutSubject::Host(host) => cx.is_denied(host, Some(address)),
        _ => cx.denies_at(address),
    };
    if is_denied {
        return Err(NEVER_ASKS.to_owned());
    }
    if !cx.may_ask_servers() {
        return Err("it may ask nothing now; say so to another member".to_owned());
    }
    let whose = match claim {
        Some(claim) if claim.released => None,
        Some(claim) => Some(claim.owner),
        None => members.stewards_of(&cx.unit_of(address)).first().copied(),
    };
    match whose {
        Some(whose) if whose == cx.me => Ok(()),
        Some(whose) => {
            let addresses = members.addresses_of(&whose);
            let direct = addresses.iter().find(|address| !address.contains("/p2p-circuit")).or(addresses.first());
            let at = direct.map_or_else(|| whose.to_string(), |address| format!("--member {address}"));
            Err(format!("a file at {address} is looked for by {} only: say so there ({at}), or publish a TXT record", whose.short()))
        }
        None => Err(format!("nobody looks after {address} for the moment: ask again in a minute, or publish a TXT record")),
    }
}

/// Whose a statement by this one is. Who fell silent is a member still.
fn signer(cx: &Context, members: &Membership, by: &AccessPoint) -> Signer {
    if *by == cx.me {
        Signer::Me
    } else if members.knows(by) || members.standings().contains_key(by) {
        Signer::Member
    } else {
        Signer::Stranger
    }
}

/// At the start, and as time passes.
impl OptOuts {
    /// Those that were stored by a previous process. Where another member says the opposite of ours, it is looked once more.
    pub(crate) fn wake(&mut self, cx: &mut Context, pages: &[Vec<u8>]) {
        for signed in pages.iter().filter_map(|page| postcard::from_bytes::<Vec<SignedStatement>>(page).ok()).flatten() {
            if let Ok(statement) = signed.read() {
                let head = signed.head(&statement);
                self.register.keep(Arc::new(KeptStatement { statement, signed, head }), &cx.me, true);
            }
        }
        let all = self.register.all().filter(|(key, _)| key.proof != OptOutProof::Order);
        for (key, said) in all {
            let Some(mine) = said.iter().map(|kept| &kept.statement).find(|one| one.by == cx.me) else { continue };
            let is_disputed = said.iter().any(|kept| kept.statement.stops != mine.stops);
            if !mine.stops && mine.revision > 1 && cx.now.wall.0.saturating_sub(mine.at.0) < SERIES {
                // It may have been taken back by people, and been looked for just once since.
                self.looks.take_back(key, cx.now.moment, false);
            } else if is_disputed && mine.stops {
                self.looks.want(key, cx.now.moment);
            } else if is_disputed {
                self.looks.want_once(key, cx.now.moment);
            }
        }
        self.take_effect(cx);
    }

    /// Once a second: what was not acknowledged is told again, proofs are looked for, and it may be time to compare.
    pub(crate) fn tick(&mut self, cx: &mut Context, members: &Membership) {
        if let Some(next) = self.comparing.next(cx.now.moment, cx.me, self.register.book(), members.live()) {
            self.compare_with(cx, next);
        }
        self.tell(cx, members);
        // While nothing may be asked, nothing is looked for but what people ask for.
        let may_ask = cx.may_ask_servers();
        while let Some(key) = self.looks.next(cx.now.moment).filter(|_| may_ask) {
            self.look(cx, Look { key, asked: None });
        }
    }

    fn look(&mut self, cx: &mut Context, look: Look) {
        let question: QuestionId = cx.number();
        cx.commands.push_back(Command::Web(WebCommand::LookForProof { question, key: look.key.clone(), at: None }));
        self.looks.begin(question, look);
    }

    /// These are sites of ours: what covers them and was not looked for yet is looked for.
    pub(crate) fn look_for<'a>(&mut self, cx: &Context, sites: impl Iterator<Item = (&'a Host, IpAddr)>) {
        for (host, address) in sites {
            let covering = cx.opted_out.covering(Some(host), Some(address)).filter(|one| !one.is_certain);
            if let Some(one) = covering.filter(|one| self.register.said_by(&cx.me, &one.key).is_none()) {
                self.looks.want_said(&one.key, cx.now.moment, one.by, false);
            }
        }
    }

    /// Whether others are in force since this was last asked.
    pub(crate) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}

/// What the statements come to.
impl OptOuts {
    /// From now on what is said holds.
    fn take_effect(&mut self, cx: &mut Context) {
        self.distrusted = self.distrusted(cx);
        let (register, distrusted) = (&self.register, &self.distrusted);
        let believed = |kept: &&Arc<KeptStatement>| kept.statement.stops && !is_disbelieved(distrusted, &kept.statement);
        self.looks.retain(|key| register.knows(key), |key| register.about(key).iter().any(believed));
        cx.opted_out = OptedOut::of(self.register.all().filter_map(|(key, said)| self.judge(cx, key, &said)));
        self.has_changed = true;
    }

    /// Who named so many proofs that are not there.
    fn distrusted(&self, cx: &Context) -> BTreeSet<AccessPoint> {
        let mut counts: BTreeMap<AccessPoint, (usize, usize)> = BTreeMap::new();
        for (key, said) in self.register.all().filter(|(key, _)| key.proof != OptOutProof::Order) {
            let Some(mine) = self.register.said_by(&cx.me, key).map(|kept| &kept.statement) else { continue };
            for other in said.iter().map(|kept| &kept.statement).filter(|other| other.stops && other.by != cx.me) {
                let (seen, refuted) = counts.entry(other.by).or_default();
                *seen += usize::from(mine.stops);
                // What was seen here once may have been taken away since.
                *refuted += usize::from(!mine.stops && mine.revision == 1);
            }
        }
        counts.into_iter().filter(|(_, (seen, refuted))| *refuted >= MAX_REFUTED && refuted > seen).map(|(by, _)| by).collect()
    }

    fn is_ignored(&self, cx: &Context, statement: &Statement) -> bool {
        match statement.key.proof {
            OptOutProof::Order => statement.by != cx.me && cx.settings.ignore_orders_of.contains(&statement.by),
            OptOutProof::Txt | OptOutProof::File => is_disbelieved(&self.distrusted, statement),
        }
    }

    /// Whether what is said of one is in force here.
    fn judge(&self, cx: &Context, key: &OptOutKey, said: &[&Arc<KeptStatement>]) -> Option<InForce> {
        let statements = || said.iter().map(|kept| &kept.statement);
        let stopping: Vec<&Statement> = statements().filter(|one| one.stops && !self.is_ignored(cx, one)).collect();
        let mine = statements().find(|one| one.by == cx.me);
        let taken_back = mine.filter(|_| self.looks.is_taken_back(key));
        let first = stopping.iter().copied().min_by_key(|one| (one.at, one.by)).or(taken_back)?;
        let is_certain = key.proof == OptOutProof::Order || mine.is_some_and(|mine| mine.stops);
        let in_vain = statements().filter(|one| !one.stops).count();
        let is_held = self.looks.holds(key);
        // What was not looked for here is not asked here, either.
        let holds = is_certain || is_held || mine.is_none();
        let is_disputed = !is_certain && !is_held && stopping.len() <= in_vain;
        holds.then(|| InForce { key: key.clone(), by: first.by, at: first.at, is_certain, is_disputed })
    }
}

/// What people ask for.
impl OptOuts {
    /// Somebody wants nothing to be asked there, or that it may be asked again: the proof is looked for now. An order of our operator needs
    /// none.
    pub(crate) fn asked(&mut self, cx: &mut Context, number: u64, key: OptOutKey, stops: bool) {
        if let Err(why) = key.check() {
            return self.refuse(number, why.to_string());
        }
        if key.proof == OptOutProof::Order {
            let ordered = self.register.said_by(&cx.me, &key).is_some_and(|kept| kept.statement.stops);
            if stops || ordered {
                return self.speak(cx, number, &key, stops);
            }
            return self.refuse(number, self.no_order(cx, &key));
        }
        if let Some(why) = self.unknown(&key, stops) {
            return self.refuse(number, why);
        }
        self.look(cx, Look { key, asked: Some((number, stops)) });
    }

    /// Why an opt-out cannot be taken back: nobody says that there is one.
    fn unknown(&self, key: &OptOutKey, stops: bool) -> Option<String> {
        let is_known = stops || self.looks.is_taken_back(key) || self.register.about(key).iter().any(|kept| kept.statement.stops);
        (!is_known).then(|| format!("no opt-out of {} by a {} proof is known here", key.subject, key.proof))
    }

    /// Why nothing is looked for because a program asks that is no member.
    pub(crate) fn refuses_reader(&self, cx: &Context, key: &OptOutKey, stops: bool) -> Option<String> {
        if let Err(why) = key.check() {
            return Some(why.to_string());
        }
        if key.proof == OptOutProof::Order {
            return Some(NO_OPERATOR.to_owned());
        }
        if cx.is_excluded() {
            return Some("the swarm does not have this access point for a member; say so to one that is".to_owned());
        }
        let denied = match &key.subject {
            OptOutSubject::Host(name) | OptOutSubject::Domain(name) => cx.settings.scope.denies(name),
            OptOutSubject::Range(_) => false,
        };
        denied.then(|| NEVER_ASKS.to_owned()).or_else(|| self.unknown(key, stops))
    }

    /// A program that is no member says that nothing is to be asked there, or takes that back. Whoever has names led to a server could have all
    /// members ask it for a file: the address decides which one does.
    pub(crate) fn asked_by_reader(&mut self, cx: &mut Context, number: u64, key: OptOutKey, stops: bool) {
        if let Some(why) = self.refuses_reader(cx, &key, stops) {
            return self.refuse(number, why);
        }
        match &key.subject {
            OptOutSubject::Host(host) if key.proof == OptOutProof::File => {
                let (question, host): (QuestionId, Host) = (cx.number(), host.clone());
                cx.commands.push_back(Command::Web(WebCommand::LocateProof { question, host }));
                self.looks.begin(question, Look { key, asked: Some((number, stops)) });
            }
            _ => self.look(cx, Look { key, asked: Some((number, stops)) }),
        }
    }

    /// The host that is looked up for a question.
    pub(crate) fn host_of(&self, question: QuestionId) -> Option<&Host> {
        match &self.looks.running(question)?.key.subject {
            OptOutSubject::Host(host) => Some(host),
            _ => None,
        }
    }

    /// The host of a file is at this address, and this one may ask it: of members the one who owns the subnet around it, or else its first
    /// steward.
    pub(crate) fn located(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        question: QuestionId,
        address: Result<IpAddr, String>,
        claim: Option<&Claim>,
    ) {
        let Some(Look { key, asked: Some((number, _)) }) = self.looks.running(question).cloned() else { return };
        let may = match address {
            Err(why) => Err(format!("the proof could not be looked for: {why}; nothing has changed, try again")),
            Ok(address) => may_ask(cx, members, &key, address, claim).map(|()| address),
        };
        match may {
            Ok(address) => cx.commands.push_back(Command::Web(WebCommand::LookForProof { question, key, at: Some(address) })),
            Err(why) => {
                self.looks.cancel(question);
                self.refuse(number, why);
            }
        }
    }

    fn no_order(&self, cx: &Context, key: &OptOutKey) -> String {
        let others = self.register.about(key).into_iter().filter(|kept| kept.statement.stops && kept.statement.by != cx.me);
        let others: Vec<String> = others.map(|kept| kept.statement.by.to_string()).collect();
        if others.is_empty() {
            return format!("the operator of this access point has ordered no opt-out of {}", key.subject);
        }
        format!("{} was ordered by the operator of {}: only there it can be withdrawn", key.subject, others.join(", "))
    }

    fn refuse(&mut self, number: u64, why: String) {
        self.outcomes.note(number, Err(why));
    }

    fn speak(&mut self, cx: &mut Context, number: u64, key: &OptOutKey, stops: bool) {
        let said = self.say(cx, key, stops);
        self.outcomes.note(number, said.map(|id| (id, key.clone())).map_err(|why| why.to_string()));
    }

    /// A proof was looked for.
    pub(crate) fn looked(&mut self, cx: &mut Context, question: QuestionId, found: ProofLook) {
        let (register, me) = (&self.register, cx.me);
        let said = |key: &OptOutKey| register.said_by(&me, key).map(|kept| kept.statement.stops);
        let taken_back = self.looks.running(question).is_some_and(|look| self.looks.is_taken_back(&look.key));
        let Some((Look { key, asked }, is_clear)) = self.looks.end(question, cx.now.moment, &found, said) else { return };
        let mine = said(&key);
        let publish = || key.proof.published_at(&key.subject);
        match (asked, found) {
            (Some((number, stops @ true)), ProofLook::Stands) | (Some((number, stops @ false)), ProofLook::Gone(_)) => {
                self.speak(cx, number, &key, stops);
            }
            (Some((number, true)), ProofLook::Gone(found)) => {
                self.refuse(number, format!("{found}; publish {}, then say so again", publish()))
            }
            (Some((number, false)), ProofLook::Stands) => {
                if mine == Some(false) {
                    self.say_or_count(cx, &key, true);
                }
                self.refuse(number, format!("the proof is still there; take {} away, then say so again", publish()));
            }
            (Some((number, _)), ProofLook::Unclear(why)) => {
                self.refuse(number, format!("the proof could not be looked for: {why}; nothing has changed, try again"));
            }
            (None, _) if !is_clear => {}
            (None, found) => {
                let stops = found == ProofLook::Stands;
                // What was seen here, or taken back here, is withdrawn and was not made up.
                if !stops && mine != Some(true) && !taken_back {
                    cx.refuse("opt-outs whose proof was looked for in vain");
                }
                self.say_or_count(cx, &key, stops);
            }
        }
        self.take_effect(cx);
    }

    /// What came of a question of people; none if that is not known yet.
    pub(crate) fn outcome(&self, number: u64) -> Option<Result<OptOutKey, String>> {
        self.outcomes.of(number, |id| self.register.book().is_stored(id))
    }
}

/// Statements are made, heard and stored.
impl OptOuts {
    /// This access point says so from now on, if it does not yet.
    fn say(&mut self, cx: &mut Context, key: &OptOutKey, stops: bool) -> Result<StatementId, NotKeptError> {
        let before = self.register.said_by(&cx.me, key);
        if let Some(before) = before.filter(|before| before.statement.stops == stops) {
            return Ok(before.head.id);
        }
        let revision = before.map_or(1, |before| before.statement.revision.saturating_add(1));
        let statement = Statement { by: cx.me, key: key.clone(), revision, stops, at: cx.now.wall };
        // The key was checked, and no revision comes near the greatest one.
        let Ok(signed) = SignedStatement::sign(&statement, &cx.key) else { return Err(NotKeptError::Known) };
        let head = signed.head(&statement);
        let evicted = self.register.room_for(&statement, &head, &cx.me, |_| Signer::Me)?;
        self.keep(cx, KeptStatement { statement, signed, head }, evicted);
        self.store(cx);
        self.take_effect(cx);
        Ok(head.id)
    }

    /// The same; it is counted if there is no room for it.
    fn say_or_count(&mut self, cx: &mut Context, key: &OptOutKey, stops: bool) {
        if let Err(why) = self.say(cx, key, stops) {
            cx.refuse(why.class());
        }
    }

    /// Keeps a statement; it holds as soon as [`OptOuts::store`] was called.
    fn keep(&mut self, cx: &mut Context, kept: KeptStatement, evicted: Option<StatementId>) {
        self.register.keep(Arc::new(kept), &cx.me, false);
        if let Some(evicted) = evicted {
            self.register.drop_one(&evicted);
            cx.refuse("opt-outs dropped for those of members with fewer");
        }
    }

    /// Has the pages that changed stored.
    fn store(&mut self, cx: &mut Context) {
        let book = self.register.book_mut();
        for page in book.take_changed_pages() {
            let write: WriteId = cx.number();
            let statements = book.page(page, write);
            #[expect(clippy::expect_used, reason = "postcard writes any statements into a growing vector")]
            let bytes = postcard::to_stdvec(&statements).expect("statements always encode");
            cx.commands.push_back(Command::Store(StoreCommand::KeepOptOuts { write, page, bytes }));
        }
    }

    /// Statements came, from whom they are or another member: what was signed, and is newer than what is known, is kept.
    pub(crate) fn hear(&mut self, cx: &mut Context, members: &Membership, all: Vec<SignedStatement>) {
        for signed in all {
            self.hear_one(cx, members, signed);
        }
        if self.register.book().has_changed() {
            self.store(cx);
            self.take_effect(cx);
        }
    }

    fn hear_one(&mut self, cx: &mut Context, members: &Membership, signed: SignedStatement) {
        let Ok(statement) = signed.read() else { return cx.refuse("opt-outs that cannot be read or are out of range") };
        let head = signed.head(&statement);
        let signer_of = |by: &AccessPoint| signer(cx, members, by);
        let (signer, room) = (signer_of(&statement.by), self.register.room_for(&statement, &head, &cx.me, signer_of));
        if room == Err(NotKeptError::Known) {
            return;
        }
        if signed.open().is_err() {
            return cx.refuse("opt-outs that the members they name did not sign");
        }
        let evicted = match room {
            Ok(evicted) => evicted,
            Err(why) => {
                // Who is no member now may be one later.
                if signer != Signer::Stranger {
                    self.register.book_mut().refuse(head);
                }
                return cx.refuse(why.class());
            }
        };
        let Statement { by, key, stops, .. } = statement.clone();
        let mine = self.register.said_by(&cx.me, &key).map(|kept| kept.statement.stops);
        self.keep(cx, KeptStatement { statement: statement.clone(), signed, head }, evicted);
        if mine.is_none_or(|mine| mine == stops) {
            return;
        }
        if by == cx.me {
            // A later statement of ours, from before our state was lost; what was said since holds.
            self.say_or_count(cx, &key, !stops);
        } else if key.proof != OptOutProof::Order && !self.is_ignored(cx, &statement) {
            if stops {
                self.looks.want_said(&key, cx.now.moment, by, true);
            } else {
                self.looks.want(&key, cx.now.moment);
            }
        }
    }

    /// Statements are durable: others hear of those that are ours.
    pub(crate) fn stored(&mut self, cx: &mut Context, members: &Membership, write: WriteId) {
        let ours = self.register.book_mut().stored(write).into_iter().filter(|kept| kept.statement.by == cx.me);
        let ours: Vec<StatementId> = ours.map(|kept| kept.head.id).collect();
        let others: Vec<_> = members.live().iter().copied().filter(|member| *member != cx.me).collect();
        if ours.is_empty() {
            return;
        }
        if others.len() <= MAX_TOLD_DIRECTLY {
            self.telling.begin(&others, &ours);
            return self.tell(cx, members);
        }
        for part in ours.chunks(MAX_TOLD) {
            cx.tell_all(&others, Gossip::OptOuts(self.register.book().signed(part)));
        }
    }
}

/// Members tell and compare.
impl OptOuts {
    /// Tells what is not acknowledged.
    fn tell(&mut self, cx: &mut Context, members: &Membership) {
        let live = members.live();
        for (to, ids) in self.telling.now(|other| live.contains(other)) {
            for part in ids.chunks(MAX_TOLD) {
                let gossip = Box::new(Gossip::OptOuts(self.register.book().signed(part)));
                cx.ask(to, Pending::OptOutsTold(part.to_vec()), Request::Tell(gossip));
            }
        }
    }

    /// A member has heard these.
    pub(crate) fn acknowledged(&mut self, from: AccessPoint, ids: &[StatementId]) {
        self.telling.acknowledged(from, ids);
    }

    /// Asks a member that has come whether it has others than we.
    pub(crate) fn compare_with(&self, cx: &mut Context, member: AccessPoint) {
        if self.register.book().len() > 0 {
            cx.ask(member, Pending::OptOutHeads, Request::CompareOptOuts(self.register.book().digest()));
        }
    }

    /// A member compares its statements with ours.
    pub(crate) fn compared(&self, cx: &mut Context, ticket: Ticket, theirs: StatementsDigest) {
        cx.answer(ticket, Response::OptOutHeads(self.register.book().compared(theirs)));
    }

    /// A member has the same as we, or others (`theirs`): we ask for what we lack, and it hears what it lacks.
    pub(crate) fn heads_came(&mut self, cx: &mut Context, from: AccessPoint, theirs: Option<&[StatementHead]>) {
        let Some(theirs) = theirs else { return self.comparing.was_equal() };
        self.comparing.differed(cx.now.moment);
        let (lacking, missing) = self.register.book().differences(theirs);
        for part in lacking.chunks(MAX_TOLD) {
            cx.ask(from, Pending::OptOuts, Request::SendOptOuts(part.to_vec()));
        }
        for part in missing.chunks(MAX_TOLD) {
            cx.ask(from, Pending::Told, Request::Tell(Box::new(Gossip::OptOuts(self.register.book().signed(part)))));
        }
    }

    /// A member wants these.
    pub(crate) fn wanted(&self, cx: &mut Context, ticket: Ticket, ids: &[StatementId]) {
        cx.answer(ticket, Response::OptOuts(self.register.book().signed(ids)));
    }
}

/// What others read.
impl OptOuts {
    /// Those that somebody says of, as people see them; those in force first.
    pub(crate) fn views(&self, cx: &Context) -> Vec<OptOutView> {
        let all = self.register.all().filter_map(|(key, said)| self.shown(cx, key, &said));
        let mut views: Vec<_> = all.collect();
        views.sort_by(|one, other| (!one.in_force, &one.subject, one.proof).cmp(&(!other.in_force, &other.subject, other.proof)));
        views
    }

    /// A part of them: those behind one, in the order of their keys, until these and the statements about them are so many. The last one that was
    /// looked at, if there are more.
    pub(crate) fn views_after(&self, cx: &Context, after: Option<&OptOutKey>, most: usize) -> (Vec<OptOutView>, Option<OptOutKey>) {
        let (mut views, mut named) = (Vec::new(), 0);
        let mut behind = self.register.all().skip_while(|(key, _)| after.is_some_and(|after| *key <= after)).peekable();
        while let Some((key, said)) = behind.next() {
            views.extend(self.shown(cx, key, &said));
            named += said.len() + 1;
            if named >= most && behind.peek().is_some() {
                return (views, Some(key.clone()));
            }
        }
        (views, None)
    }

    /// One of them, whether somebody still says so or not.
    pub(crate) fn view(&self, cx: &Context, key: &OptOutKey) -> OptOutView {
        let said = self.register.about(key);
        self.shown(cx, key, &said).unwrap_or_else(|| self.withdrawn(key, &said))
    }

    fn withdrawn(&self, key: &OptOutKey, said: &[&Arc<KeptStatement>]) -> OptOutView {
        let (subject, kind) = named(&key.subject);
        let denied: Vec<_> = said.iter().map(|kept| &kept.statement).collect();
        OptOutView {
            subject,
            kind,
            proof: key.proof,
            in_force: false,
            opted_out_at: denied.iter().map(|one| one.at).max().unwrap_or_default(),
            said_by: Vec::new(),
            denied_by: denied.iter().map(|one| one.by).collect(),
            revision: denied.iter().map(|one| one.revision).max().unwrap_or(0),
            state_text: "withdrawn".to_owned(),
        }
    }

    fn shown(&self, cx: &Context, key: &OptOutKey, said: &[&Arc<KeptStatement>]) -> Option<OptOutView> {
        let statements = || said.iter().map(|kept| &kept.statement);
        let mut stopping: Vec<&Statement> = statements().filter(|one| one.stops).collect();
        stopping.sort_by_key(|one| (one.at, one.by));
        let mine = statements().find(|one| one.by == cx.me);
        let is_taken_back = self.looks.is_taken_back(key);
        let first = stopping.first().copied().or(mine.filter(|_| is_taken_back))?;
        let in_force = self.judge(cx, key, said).filter(|one| !one.is_disputed);
        let state_text = match &in_force {
            Some(_) if key.proof == OptOutProof::Order => "in force by an operator's order",
            Some(one) if one.is_certain && self.looks.is_doubtful(key) => {
                "in force: the proof was seen here, though not at the last look; it is looked for again"
            }
            Some(one) if one.is_certain => "in force: the proof was seen here",
            Some(_) if is_taken_back => "taken back here; in force until the proof was looked for in vain three times in eleven minutes",
            Some(_) if self.looks.holds(key) => "in force until the proof was looked for here",
            Some(_) => "in force on the word of who took it in",
            None if stopping.iter().all(|one| self.is_ignored(cx, one)) => "not in force: who says so is ignored here",
            None if mine.is_some() => "not in force: the proof was looked for here in vain",
            None => "not in force: as many members looked for the proof in vain as saw it",
        };
        let (subject, kind) = named(&key.subject);
        Some(OptOutView {
            subject,
            kind,
            proof: key.proof,
            in_force: in_force.is_some(),
            opted_out_at: first.at,
            said_by: stopping.iter().map(|one| one.by).collect(),
            denied_by: statements().filter(|one| !one.stops).map(|one| one.by).collect(),
            revision: statements().map(|one| one.revision).max().unwrap_or(0),
            state_text: state_text.to_owned(),
        })
    }

    /// How many statements are kept, and how many of the member that has most.
    pub(crate) fn room(&self) -> (usize, usize) {
        (self.register.book().len(), self.register.most_of_one())
    }
}

/// A subject as it is written, and what kind of thing it is.
fn named(subject: &OptOutSubject) -> (String, String) {
    let (name, kind) = match subject {
        OptOutSubject::Host(name) => (name.to_string(), "host"),
        OptOutSubject::Domain(name) => (name.to_string(), "domain"),
        OptOutSubject::Range(range) => (range.to_string(), "range"),
    };
    (name, kind.to_owned())
}
