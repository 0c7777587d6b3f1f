//! State machine for certificates and expulsions: takes them in, stores them, tells them and compares them with other members'.
//!
//! What holds here:
//!
//! What holds here:
//!
//! * what is signed by the root key of the configuration, or by an inviter that it certified, counts, whoever passes it on; nothing else
//!   does;
//! * an expulsion takes effect when it is stored: the access point that it is about is told, then its connections are closed, and the
//!   members go on as if it had died. It hears why, and asks no server any more;
//! * a certificate that ends has the same effect at that moment, by the clock of each member;
//! * a member whose certificate is not known here is judged where it connects, by what it shows; it tells all of what it has shown.
//!
//! Without a root key in the configuration nothing is kept. Who has no statements asks nobody for any: those who have some tell.

use super::room::{self, NotKeptError};
use crate::{
    context::{Context, MAX_TOLD_DIRECTLY},
    event::{Command, PeerCommand, StoreCommand},
    membership::Membership,
    pending::Pending,
    signal::Signal,
    statements::{Book, Comparing, Kept, Outcomes, Telling},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{
        Admission, AdmissionMode, AdmissionView, Certificate, CertificateView, Expulsion, ExpulsionView, Gate, Issuer, KnownExpulsion,
        MAX_TOLD, NotAdmitted, SignedAdmission,
    },
    ids::{Ticket, WriteId},
    message::{Gossip, Request, Response},
    opt_out::{StatementHead, StatementId, StatementsDigest},
    time::{Millis, Moment, WallTime},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How often is looked for certificates that ended long ago. One is dropped if it had ended long ago at the time before, too: a clock that runs
/// ahead for a while costs none.
const TIDY_EVERY: Millis = 3_600_000;

/// A wall clock that is so much behind what it showed before was set back: what ended by it is judged anew.
const SET_BACK: Millis = 60_000;

/// The certificate that people gave this access point in its configuration.
#[derive(Debug, Default)]
struct Own {
    signed: Option<SignedAdmission>,
    /// What is wrong with it.
    wrong: Option<String>,
}

/// All certificates and expulsions that this access point knows of.
#[derive(Debug, Default)]
pub(crate) struct Admissions {
    book: Book<Admission, SignedAdmission>,
    telling: Telling,
    comparing: Comparing,
    outcomes: Outcomes<AccessPoint>,
    /// Those that came to this access point before any other, so that it tells them.
    first_here: BTreeSet<StatementId>,
    /// Who is let in.
    gate: Arc<Gate>,
    /// When the next certificate ends.
    next_end: Option<WallTime>,
    tidy_at: Moment,
    /// Certificates that had ended long ago when it was last looked for them.
    over: BTreeSet<StatementId>,
    /// The latest that the wall clock has shown since it was last set back.
    latest: WallTime,
    own: Own,
}

/// At the start, and as time passes.
impl Admissions {
    /// Those that were stored by a previous process, and the certificate that people gave this access point.
    pub(crate) fn wake(&mut self, cx: &mut Context, pages: &[Vec<u8>], own: Option<SignedAdmission>) {
        let Some(root) = cx.settings.admission.swarm else { return self.take_effect(cx, &[]) };
        for signed in pages.iter().filter_map(|page| postcard::from_bytes::<Vec<SignedAdmission>>(page).ok()).flatten() {
            // The operator may have named another root key since.
            if let Ok(statement) = signed.read().map_err(drop).and_then(|one| if one.swarm() == root { Ok(one) } else { Err(()) }) {
                let head = signed.head(&statement);
                self.book.keep(Arc::new(Kept { statement, signed, head }), true);
            }
        }
        self.latest = cx.now.wall;
        self.own.signed = own;
        self.hear_own(cx);
        self.store(cx);
        self.take_effect(cx, &[]);
    }

    fn hear_own(&mut self, cx: &mut Context) {
        if let Some(own) = self.own.signed.clone() {
            self.own.wrong = match self.hear_one(cx, own) {
                Ok((_, member)) if member != cx.me => Some(format!("it is made out to {member}")),
                Ok(_) => self.own.signed.as_ref().and_then(|own| self.is_replaced(own)),
                Err(why) => Some(why),
            };
        }
    }

    /// Once a second: what was not acknowledged is told again, certificates end, and it may be time to compare.
    pub(crate) fn tick(&mut self, cx: &mut Context, members: &Membership) {
        if cx.now.wall.0.saturating_add(SET_BACK) < self.latest.0 {
            self.clock_was_set_back(cx, members);
        }
        self.latest = self.latest.max(cx.now.wall);
        if self.next_end.is_some_and(|end| end <= cx.now.wall) {
            self.take_effect(cx, members.live());
        }
        if cx.now.moment >= self.tidy_at {
            self.tidy(cx);
        }
        if let Some(next) = self.comparing.next(cx.now.moment, cx.me, &self.book, members.live()) {
            self.compare_with(cx, next);
        }
        self.tell(cx, members);
    }

    /// What had ended by a clock that ran ahead may hold still, and what was refused for that may be asked for again.
    fn clock_was_set_back(&mut self, cx: &mut Context, members: &Membership) {
        self.latest = cx.now.wall;
        self.over.clear();
        self.book.forget_refused();
        self.hear_own(cx);
        self.store(cx);
        self.take_effect(cx, members.live());
    }

    /// Certificates that ended long ago are dropped, but for those of this access point: its operator wants to read what is wrong.
    fn tidy(&mut self, cx: &mut Context) {
        self.tidy_at = cx.now.moment.after(TIDY_EVERY);
        let over = self.book.all().filter(|one| room::is_over(&one.statement, cx.now.wall) && one.statement.member() != cx.me);
        let over: BTreeSet<StatementId> = over.map(|one| one.head.id).collect();
        let before = std::mem::replace(&mut self.over, over);
        for id in self.over.intersection(&before) {
            self.book.drop_one(id);
        }
        self.store(cx);
    }
}

/// What the statements come to.
impl Admissions {
    /// From now on what is said holds. Who is a member no more is told before the gate is shut.
    fn take_effect(&mut self, cx: &mut Context, live: &[AccessPoint]) {
        let before = Arc::clone(&self.gate);
        let gate = Gate { rule: cx.settings.admission.clone(), expelled: self.expelled(), no_inviters: self.no_inviters() };
        if gate != *before {
            self.gate = Arc::new(gate);
        }
        let excluded = self.excluded(cx);
        let new: Vec<AccessPoint> = excluded.keys().filter(|who| !cx.excluded.contains_key(who) && **who != cx.me).copied().collect();
        for who in new.iter().filter(|who| live.contains(who)) {
            let proof = excluded.get(who).and_then(|why| self.gate.proof_of(who, why));
            if let Some(proof) = proof {
                cx.ask(*who, Pending::Told, Request::Tell(Box::new(Gossip::Admissions(vec![proof.clone()]))));
            }
        }
        let back: Vec<AccessPoint> = cx.excluded.keys().filter(|who| !excluded.contains_key(who) && **who != cx.me).copied().collect();
        cx.excluded = excluded;
        if !Arc::ptr_eq(&before, &self.gate) {
            cx.commands.push_back(Command::Peers(PeerCommand::Guard(Arc::clone(&self.gate))));
        }
        new.into_iter().chain(back).for_each(|who| cx.signal(Signal::AdmissionChanged(who)));
        let ends = self.certificates().map(|one| one.expires).filter(|end| *end > cx.now.wall);
        self.next_end = ends.min();
    }

    fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        self.book.all().filter_map(|kept| match &kept.statement {
            Admission::Certificate(one) => Some(one),
            Admission::Expulsion(_) => None,
        })
    }

    fn expulsions(&self) -> impl Iterator<Item = (&Expulsion, &Arc<Kept<Admission, SignedAdmission>>)> {
        self.book.all().filter_map(|kept| match &kept.statement {
            Admission::Certificate(_) => None,
            Admission::Expulsion(one) => Some((one, kept)),
        })
    }

    /// The expulsions that are stored.
    fn expelled(&self) -> nearcrawl_model::admission::Expelled {
        let mut expelled = nearcrawl_model::admission::Expelled::new();
        for (one, kept) in self.expulsions().filter(|(_, kept)| self.book.is_stored(&kept.head.id)) {
            let known = KnownExpulsion { reason: one.reason.clone(), signed: kept.signed.clone() };
            expelled.entry(one.member).or_default().insert(one.issuer, Arc::new(known));
        }
        expelled
    }

    /// Whom the root made a member without the right to invite, in the newest certificate that it signed for it, and when. These are most of
    /// all members; only to one that was an inviter before it makes a difference.
    fn no_inviters(&self) -> BTreeMap<AccessPoint, WallTime> {
        let stored = self.book.all().filter(|kept| self.book.is_stored(&kept.head.id));
        let by_root = stored.filter_map(|kept| match &kept.statement {
            Admission::Certificate(one) if one.issuer == Issuer::Root && !one.may_invite => Some((one.member, one.issued)),
            _ => None,
        });
        by_root.collect()
    }

    /// Who is known to be no member, this access point included, and why. Who is not known to have a certificate may yet show one.
    fn excluded(&self, cx: &Context) -> BTreeMap<AccessPoint, NotAdmitted> {
        let mut certified: BTreeMap<AccessPoint, Vec<&Certificate>> = BTreeMap::new();
        self.certificates().for_each(|one| certified.entry(one.member).or_default().push(one));
        let rule = &self.gate.rule;
        let by_root_alone = self.gate.expelled.keys().filter(|who| !certified.contains_key(who));
        let mut others: BTreeSet<AccessPoint> = by_root_alone.chain(certified.keys()).copied().collect();
        others.remove(&cx.me);
        let mut excluded = BTreeMap::new();
        for who in others {
            let why = match certified.get(&who) {
                Some(certificates) => self.judge(cx, &who, certificates),
                None => self.gate.judge(&who, None, cx.now.wall).err().filter(NotAdmitted::is_expelled),
            };
            excluded.extend(why.map(|why| (who, why)));
        }
        // Its own operator need not name this access point on the list.
        let own = self.judge(cx, &cx.me, certified.get(&cx.me).map_or(&[], Vec::as_slice)).map(|why| match (why, &self.own.wrong) {
            (NotAdmitted::NoCertificate | NotAdmitted::Ended(_), Some(wrong)) => NotAdmitted::BadCertificate(wrong.clone()),
            (why, _) => why,
        });
        excluded.extend(own.filter(|why| rule.mode != AdmissionMode::Closed || why.is_expelled()).map(|why| (cx.me, why)));
        excluded
    }

    /// Why none of these certificates lets an access point in.
    fn judge(&self, cx: &Context, who: &AccessPoint, certificates: &[&Certificate]) -> Option<NotAdmitted> {
        let judged = || certificates.iter().map(|one| self.gate.judge(who, Some(one), cx.now.wall));
        if judged().any(|judged| judged.is_ok()) {
            return None;
        }
        // An expulsion says more than that a certificate has ended.
        let refused = judged().filter_map(Result::err).max_by_key(NotAdmitted::is_expelled);
        refused.or_else(|| self.gate.judge(who, None, cx.now.wall).err())
    }
}

/// Statements are heard and stored.
impl Admissions {
    /// People gave this access point an expulsion or a certificate, to be told to all.
    pub(crate) fn given(&mut self, cx: &mut Context, number: u64, signed: SignedAdmission) {
        let outcome = match self.has_no_effect(cx, &signed) {
            Some(why) => Err(why),
            None => self.hear_one(cx, signed),
        };
        if let Ok((id, _)) = &outcome {
            self.first_here.insert(*id);
        }
        self.outcomes.note(number, outcome);
        self.store(cx);
    }

    /// Why a certificate or an expulsion says nothing beside another one that is known here: of two by one issuer about one member the one
    /// that was signed later counts, also if it ends sooner.
    pub(crate) fn is_replaced(&self, signed: &SignedAdmission) -> Option<String> {
        let head = signed.head(&signed.read().ok()?);
        let known = self.book.get(&head.id).filter(|known| known.head > head)?;
        Some(match &known.statement {
            Admission::Certificate(one) => {
                format!(
                    "another certificate for this member by {} counts, which was signed later, {}, and ends {}",
                    one.issuer, one.issued, one.expires
                )
            }
            Admission::Expulsion(one) => {
                format!("another expulsion of this member by {} counts, which was signed later, {}", one.issuer, one.at)
            }
        })
    }

    /// Why it would change nothing if this were kept, for whoever means it to.
    fn has_no_effect(&self, cx: &Context, signed: &SignedAdmission) -> Option<String> {
        let statement = signed.read().ok()?;
        let issuer = statement.issuer();
        if statement.expels() && issuer != Issuer::Root {
            let mode = cx.settings.admission.mode;
            if mode != AdmissionMode::Invite {
                return Some(format!("who is a member does not depend on certificates here (mode {mode}): only the root key expels"));
            }
            let member = statement.member();
            if !self.certificates().any(|one| one.issuer == issuer && one.member == member) {
                return Some(format!("no certificate for {member} by {issuer} is known here: the root key expels it, or its inviter does"));
            }
        }
        self.is_replaced(signed)
    }

    /// What came of it; none if that is not known yet.
    pub(crate) fn outcome(&self, number: u64) -> Option<Result<AccessPoint, String>> {
        self.outcomes.of(number, |id| self.book.is_stored(id))
    }

    /// A member showed this certificate when it connected, and it was let in: if it is new here, it may be so to others.
    pub(crate) fn shown(&mut self, cx: &mut Context, signed: SignedAdmission) {
        let is_new = signed.read().is_ok_and(|statement| self.book.lacks(&signed.head(&statement)));
        if let Ok((id, _)) = self.hear_one(cx, signed)
            && is_new
        {
            self.first_here.insert(id);
        }
        self.store(cx);
    }

    /// Statements came from a member: what was signed by who may, and is newer than what is known, is kept.
    pub(crate) fn hear(&mut self, cx: &mut Context, all: Vec<SignedAdmission>) {
        for signed in all {
            // What is refused is counted there.
            let _ = self.hear_one(cx, signed);
        }
        self.store(cx);
    }

    fn hear_one(&mut self, cx: &mut Context, signed: SignedAdmission) -> Result<(StatementId, AccessPoint), String> {
        let refuse = |cx: &mut Context, class, why: String| {
            cx.refuse(class);
            Err(why)
        };
        let Some(root) = cx.settings.admission.swarm else {
            let why = "no root key is configured here (admission.swarm)".to_owned();
            return refuse(cx, "certificates and expulsions while no root key is configured", why);
        };
        let statement = match signed.read() {
            Ok(statement) => statement,
            Err(why) => return refuse(cx, "certificates and expulsions that cannot be read", why.to_string()),
        };
        let (head, member) = (signed.head(&statement), statement.member());
        if self.book.get(&head.id).is_some_and(|known| known.head >= head) {
            return Ok((head.id, member));
        }
        if let Err(why) = signed.open(&root) {
            return refuse(cx, "certificates and expulsions that nobody who may signed", why.to_string());
        }
        match room::room_for(&self.book, &statement, cx.now.wall) {
            Ok(evicted) => {
                self.book.keep(Arc::new(Kept { statement, signed, head }), false);
                evicted.map(|evicted| self.book.drop_one(&evicted));
                Ok((head.id, member))
            }
            Err(why) => {
                self.book.refuse(head);
                refuse(cx, NotKeptError::class(why), why.to_string())
            }
        }
    }

    /// Has the pages that changed stored.
    fn store(&mut self, cx: &mut Context) {
        for page in self.book.take_changed_pages() {
            let write: WriteId = cx.number();
            let statements = self.book.page(page, write);
            #[expect(clippy::expect_used, reason = "postcard writes any statements into a growing vector")]
            let bytes = postcard::to_stdvec(&statements).expect("statements always encode");
            cx.commands.push_back(Command::Store(StoreCommand::KeepAdmissions { write, page, bytes }));
        }
    }

    /// Statements are durable: they hold, and others hear of those that came here first.
    pub(crate) fn stored(&mut self, cx: &mut Context, members: &Membership, write: WriteId) {
        let stored: Vec<StatementId> = self.book.stored(write).iter().map(|kept| kept.head.id).collect();
        if stored.is_empty() {
            return;
        }
        let live = members.live();
        let others: Vec<_> = live.iter().filter(|member| **member != cx.me).copied().collect();
        let ours: Vec<StatementId> = stored.into_iter().filter(|id| self.first_here.remove(id)).collect();
        if others.len() <= MAX_TOLD_DIRECTLY && !ours.is_empty() {
            self.telling.begin(&others, &ours);
            self.tell(cx, members);
        } else {
            for part in ours.chunks(MAX_TOLD) {
                cx.tell_all(&others, Gossip::Admissions(self.book.signed(part)));
            }
        }
        self.take_effect(cx, live);
    }
}

/// Members tell and compare.
impl Admissions {
    /// Tells what is not acknowledged.
    fn tell(&mut self, cx: &mut Context, members: &Membership) {
        let live = members.live();
        for (to, ids) in self.telling.now(|other| live.contains(other)) {
            for part in ids.chunks(MAX_TOLD) {
                let gossip = Box::new(Gossip::Admissions(self.book.signed(part)));
                cx.ask(to, Pending::AdmissionsTold(part.to_vec()), Request::Tell(gossip));
            }
        }
    }

    /// A member has heard these.
    pub(crate) fn acknowledged(&mut self, from: AccessPoint, ids: &[StatementId]) {
        self.telling.acknowledged(from, ids);
    }

    /// Asks a member, one that has come or whose turn it is, whether it has others than we.
    pub(crate) fn compare_with(&self, cx: &mut Context, member: AccessPoint) {
        if self.book.len() > 0 {
            cx.ask(member, Pending::AdmissionHeads, Request::CompareAdmissions(self.book.digest()));
        }
    }

    /// A member compares its statements with ours. Without a root key we want none of them.
    pub(crate) fn compared(&self, cx: &mut Context, ticket: Ticket, theirs: StatementsDigest) {
        let heads = cx.settings.admission.swarm.and_then(|_| self.book.compared(theirs));
        cx.answer(ticket, Response::AdmissionHeads(heads));
    }

    /// A member has the same as we, or others (`theirs`): we ask for what we lack, and it hears what it lacks.
    pub(crate) fn heads_came(&mut self, cx: &mut Context, from: AccessPoint, theirs: Option<&[StatementHead]>) {
        let Some(theirs) = theirs else { return self.comparing.was_equal() };
        self.comparing.differed(cx.now.moment);
        let (lacking, missing) = self.book.differences(theirs);
        for part in lacking.chunks(MAX_TOLD) {
            cx.ask(from, Pending::Admissions, Request::SendAdmissions(part.to_vec()));
        }
        for part in missing.chunks(MAX_TOLD) {
            cx.ask(from, Pending::Told, Request::Tell(Box::new(Gossip::Admissions(self.book.signed(part)))));
        }
    }

    /// A member wants these.
    pub(crate) fn wanted(&self, cx: &mut Context, ticket: Ticket, ids: &[StatementId]) {
        cx.answer(ticket, Response::Admissions(self.book.signed(ids)));
    }
}

/// What others read.
impl Admissions {
    /// All of them, as people see them.
    pub(crate) fn view(&self, cx: &Context, members: &Membership) -> AdmissionView {
        let live = members.live();
        let certificate = |one: &Certificate| CertificateView {
            access_point: one.member,
            label: one.label.clone(),
            may_invite: one.may_invite,
            invited_by: one.issuer.inviter(),
            issued_at: one.issued,
            expires_at: one.expires,
            alive: live.contains(&one.member),
            refused_text: self.gate.judge(&one.member, Some(one), cx.now.wall).err().map(|why| why.to_string()),
        };
        let expulsion = |one: &Expulsion| ExpulsionView {
            access_point: one.member,
            expelled_by: one.issuer.inviter(),
            expelled_at: one.at,
            reason_text: one.reason.clone(),
        };
        let mut certificates: Vec<_> = self.certificates().map(certificate).collect();
        certificates.sort_by_key(|one| (one.access_point, one.invited_by));
        let mut expulsions: Vec<_> = self.expulsions().map(|(one, _)| expulsion(one)).collect();
        expulsions.sort_by_key(|one| (one.access_point, one.expelled_by));
        AdmissionView {
            mode: cx.settings.admission.mode,
            swarm: cx.settings.admission.swarm,
            refused_text: cx.excluded.get(&cx.me).map(|why| why.to_string()),
            certificates,
            expulsions,
        }
    }

    /// How many certificates and how many expulsions are kept.
    pub(crate) fn room(&self) -> (usize, usize) {
        let certificates = self.certificates().count();
        (certificates, self.book.len() - certificates)
    }
}
