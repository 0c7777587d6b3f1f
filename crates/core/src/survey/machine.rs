//! State machine of surveys: makes them, takes them in, stores them and tells them.
//!
//! What is stored is told, never the other way round; members that came late, or heard nothing of a gossip, compare digests with another
//! member and ask for what they lack.

use super::{
    placing::Placing,
    probing::{ProbeStep, Probing, ToProbe},
    register::{NotKeptError, Register, Room},
};
use crate::{
    context::Context,
    event::{Command, StoreCommand},
    membership::Membership,
    pending::Pending,
    routing::locator::Lookup,
    wishes::{InEffect, KeptSurvey},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{ProbeReport, ProbeTarget},
    ids::{QuestionId, Ticket, WriteId},
    message::{Gossip, MAX_MESSAGE, Request, Response},
    survey::{MAX_OF_CREATOR, MAX_SURVEYS, SignedSurvey, Survey, SurveyHead, SurveyId, SurveyPlan, SurveyState, SurveysDigest, survey_id},
    time::{Millis, Moment, WallTime},
    url::{Host, PageUrl},
};
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// After how long surveys are compared with another member.
const COMPARE_EVERY: Millis = 60_000;

/// What is counted of a survey that its creator did not sign.
const UNSIGNED: &str = "surveys that their creators did not sign";

/// What is counted of surveys that are dropped for others.
const MADE_ROOM: &str = "ended surveys that made room for others";

/// Bytes of surveys in one answer, unless one has more.
const MAX_BYTES: usize = MAX_MESSAGE - (64 << 10);

/// All surveys that this access point knows of.
#[derive(Debug, Default)]
pub(crate) struct Surveys {
    register: Register,
    /// Those that are being stored.
    storing: BTreeMap<WriteId, Arc<KeptSurvey>>,
    placing: Placing,
    probing: Probing,
    compare_at: Moment,
    compared_with: Option<AccessPoint>,
    /// When the next one ends.
    next_end: Option<WallTime>,
}

/// At the start, and as time passes.
impl Surveys {
    /// Those that were stored by a previous process, and what had been probed for them.
    pub(crate) fn wake(&mut self, cx: &mut Context, stored: &[Vec<u8>], probes: &[Vec<u8>]) {
        for bytes in stored {
            let signed = postcard::from_bytes::<(u16, SignedSurvey)>(bytes);
            if let Ok((slot, signed)) = signed
                && let Ok(survey) = signed.read()
            {
                self.register.stored(Arc::new(KeptSurvey::new(survey, signed, slot)));
            }
        }
        self.take_effect(cx);
        self.probing.recall(probes);
    }

    /// What the surveys wish for is another from now on.
    fn take_effect(&mut self, cx: &mut Context) {
        let now = cx.now.wall;
        cx.wishes = InEffect::at(now, self.register.all());
        self.placing.living(cx.wishes.living(), cx.now.moment);
        self.probing.keep(self.register.all(), &cx.me);
        let ends = self.register.all().filter_map(|kept| kept.survey.plan.ends_at);
        self.next_end = ends.filter(|end| *end > now).min();
    }

    /// Once a second: a survey may have ended, and it may be time to compare. Whether other wishes hold than before.
    pub(crate) fn tick(&mut self, cx: &mut Context, members: &Membership) -> bool {
        if cx.now.moment >= self.compare_at {
            self.compare(cx, members);
        }
        let over = self.next_end.is_some_and(|end| end <= cx.now.wall);
        if over {
            self.take_effect(cx);
        }
        over
    }

    /// The starting URLs that are to be named here now.
    pub(crate) fn next_to_place(&mut self, cx: &Context, members: &Membership) -> Vec<PageUrl> {
        self.placing.next(members.live(), &cx.me, cx.now.moment, |host| members.steward_of_host(host))
    }
}

/// Surveys of our own.
impl Surveys {
    /// What a plan of our own comes to, if it may be made.
    ///
    /// # Errors
    ///
    /// Why not, as a sentence.
    pub(crate) fn drafted(&self, cx: &Context, plan: SurveyPlan) -> Result<SignedSurvey, String> {
        if let Some(known) = self.register.get(&survey_id(&cx.me, &plan.name)) {
            let state = known.survey.state_at(cx.now.wall);
            return Err(format!("this access point has a survey {} ({state}) already: choose another name", plan.name));
        }
        if plan.ends_at.is_some_and(|end| end <= cx.now.wall) {
            return Err("the end of the survey is in the past".to_owned());
        }
        let now = cx.now.wall;
        // Of so many some may have been dropped, and others may know one of this name: minutes are more than any revision by then.
        let revision = if self.register.count_of(&cx.me) < MAX_OF_CREATOR { 1 } else { (now.0 / 60_000).max(1) };
        self.fitting(cx, Survey { creator: cx.me, revision, state: SurveyState::Running, created_at: now, changed_at: now, plan })
    }

    /// What a survey of our own comes to in another state.
    ///
    /// # Errors
    ///
    /// Why it may not be changed, as a sentence.
    pub(crate) fn changed(&self, cx: &Context, name: &str, state: SurveyState) -> Result<SignedSurvey, String> {
        let Some(known) = self.register.get(&survey_id(&cx.me, name)) else {
            let is_of_others = self.register.all().any(|known| known.survey.plan.name == name);
            return Err(if is_of_others {
                format!("this access point has made no survey {name}: only the member that made one can change it")
            } else {
                format!("there is no survey {name}")
            });
        };
        let survey = &known.survey;
        match (survey.state_at(cx.now.wall), state) {
            (SurveyState::Ended, _) => return Err(format!("the survey {name} has ended: make another one")),
            (before, after) if before == after => return Err(format!("the survey {name} is {after} already")),
            _ => {}
        }
        self.fitting(cx, Survey { revision: survey.revision.saturating_add(1), state, changed_at: cx.now.wall, ..survey.clone() })
    }

    /// Signs a survey of ours if there is room for it.
    fn fitting(&self, cx: &Context, survey: Survey) -> Result<SignedSurvey, String> {
        let signed = SignedSurvey::sign(&survey, &cx.key).map_err(|why| why.to_string())?;
        let room = self.register.room_for(&cx.me, &survey, &signed.head(&survey), signed.bytes.len(), cx.now.wall);
        room.map(|_| signed).map_err(|why| why.to_string())
    }

    /// Makes a survey of ours known as soon as it is stored.
    pub(crate) fn make(&mut self, cx: &mut Context, signed: SignedSurvey) {
        self.hear(cx, signed);
    }
}

/// Surveys are heard and stored.
impl Surveys {
    /// A survey came, from its creator or another member: what its creator signed, and is newer than what is known, is stored.
    pub(crate) fn hear(&mut self, cx: &mut Context, signed: SignedSurvey) {
        let Ok(survey) = signed.read() else { return cx.refuse("surveys that cannot be read or are too large") };
        let head = signed.head(&survey);
        let Room { slot, dropped } = match self.register.room_for(&cx.me, &survey, &head, signed.bytes.len(), cx.now.wall) {
            Ok(room) => room,
            Err(NotKeptError::Known) => return self.compare_contents(cx, &head),
            Err(_) if signed.open().is_err() => return cx.refuse(UNSIGNED),
            Err(why) => {
                self.register.refuse(head);
                return cx.refuse(why.class());
            }
        };
        if signed.open().is_err() {
            return cx.refuse(UNSIGNED);
        }
        self.compare_contents(cx, &head);
        for id in &dropped {
            self.register.drop_ended(id);
            cx.refuse(MADE_ROOM);
        }
        #[expect(clippy::expect_used, reason = "postcard writes any signed survey into a growing vector")]
        let bytes = postcard::to_stdvec(&(slot, &signed)).expect("a survey always encodes");
        let kept = Arc::new(KeptSurvey::new(survey, signed, slot));
        let write: WriteId = cx.number();
        self.register.comes(Arc::clone(&kept));
        self.storing.insert(write, kept);
        cx.commands.push_back(Command::Store(StoreCommand::StoreSurvey { write, slot, bytes }));
    }

    /// A creator signed two contents with one number.
    fn compare_contents(&self, cx: &mut Context, head: &SurveyHead) {
        let known = self.register.get(&head.id).map(|known| known.head);
        if known.is_some_and(|known| known.revision == head.revision && known.digest != head.digest) {
            cx.refuse("surveys with two contents at one revision");
        }
    }

    /// A survey is durable: it holds from now on, and if it is ours, all others hear of it. Whether it was waited for.
    pub(crate) fn stored(&mut self, cx: &mut Context, members: &Membership, write: WriteId) -> bool {
        let Some(kept) = self.storing.remove(&write) else { return false };
        let (head, ours) = (kept.head, kept.survey.creator == cx.me);
        self.register.stored(kept);
        self.take_effect(cx);
        if ours {
            let others: Vec<_> = members.live().iter().copied().filter(|member| *member != cx.me).collect();
            if !others.is_empty() {
                cx.tell_all(&others, Gossip::Surveys(vec![head]));
            }
        }
        true
    }
}

/// Members tell and compare.
impl Surveys {
    /// A member has these: those that are missing here are asked for.
    pub(crate) fn told(&self, cx: &mut Context, from: AccessPoint, heads: &[SurveyHead]) {
        let lacking: Vec<SurveyId> = heads.iter().filter(|head| self.register.lacks(head)).map(|head| head.id).collect();
        if !lacking.is_empty() && from != cx.me {
            cx.ask(from, Pending::Surveys, Request::SendSurveys(lacking));
        }
    }

    /// Asks one of the others, each in turn, whether it has others than we.
    fn compare(&mut self, cx: &mut Context, members: &Membership) {
        let live = members.live();
        let others = || live.iter().filter(|member| **member != cx.me);
        let next = others().find(|member| self.compared_with.is_none_or(|before| **member > before)).or_else(|| others().next());
        let Some(next) = next.copied() else { return };
        self.compared_with = Some(next);
        self.compare_at = cx.now.moment.after(COMPARE_EVERY);
        cx.ask(next, Pending::SurveyHeads, Request::CompareSurveys(self.register.digest()));
    }

    /// A member compares its surveys with ours.
    pub(crate) fn compared(&self, cx: &mut Context, ticket: Ticket, theirs: SurveysDigest) {
        let differs = self.register.digest() != theirs;
        cx.answer(ticket, Response::SurveyHeads(differs.then(|| self.register.heads())));
    }

    /// A member has others than we: we ask for what we lack, and it hears what it lacks.
    pub(crate) fn heads_came(&self, cx: &mut Context, from: AccessPoint, theirs: &[SurveyHead]) {
        self.told(cx, from, theirs);
        let known: BTreeMap<SurveyId, &SurveyHead> = theirs.iter().map(|head| (head.id, head)).collect();
        let ours = self.register.heads();
        let missing: Vec<_> = ours.into_iter().filter(|head| known.get(&head.id).is_none_or(|known| **known < *head)).collect();
        if !missing.is_empty() {
            cx.ask(from, Pending::Told, Request::Tell(Box::new(Gossip::Surveys(missing))));
        }
    }

    /// A member wants these.
    pub(crate) fn wanted(&self, cx: &mut Context, ticket: Ticket, ids: &[SurveyId]) {
        let signed = self.register.signed(ids, MAX_BYTES);
        cx.answer(ticket, Response::Surveys(signed));
    }

    /// Surveys came that were asked for. If not all did, the rest is asked for when surveys are compared again, which is soon.
    pub(crate) fn came(&mut self, cx: &mut Context, signed: Vec<SignedSurvey>) {
        if !signed.is_empty() {
            self.compare_at = self.compare_at.min(cx.now.moment.after(1_000));
        }
        signed.into_iter().for_each(|signed| self.hear(cx, signed));
    }
}

/// Servers of samples are probed.
impl Surveys {
    /// Goes on with the next server of a sample: see [`Probing::next_step`].
    pub(crate) fn next_step(
        &mut self,
        cx: &mut Context,
        lookup: impl FnOnce(&Host) -> Lookup,
        owner_of: impl FnOnce(IpAddr) -> Option<AccessPoint>,
    ) -> ProbeStep {
        self.probing.next_step(cx, lookup, owner_of)
    }

    /// Whether the contact with a server whose turn has come may be made.
    pub(crate) fn contact(&mut self, cx: &mut Context, server: &ToProbe, target: ProbeTarget, may: bool) {
        self.probing.contact(cx, server, target, may);
    }

    /// The owner of the server that is waited for says after how many milliseconds it may be probed, or cannot say; none if it does not answer.
    pub(crate) fn turn_told(&mut self, cx: &Context, told: Option<Option<Millis>>) {
        self.probing.turn_told(cx, told);
    }

    /// What was probed is durable.
    pub(crate) fn probes_stored(&mut self, cx: &mut Context, write: WriteId) {
        self.probing.stored(cx, write);
    }

    /// A probe ended. If it was one of these, returns which address was contacted.
    pub(crate) fn probed(&mut self, cx: &mut Context, question: QuestionId, report: &ProbeReport) -> Option<IpAddr> {
        self.probing.ended(cx, question, report)
    }
}

/// What others read.
impl Surveys {
    /// What came of probes.
    pub(crate) fn probing(&self) -> &Probing {
        &self.probing
    }

    /// Those that are kept.
    pub(crate) fn register(&self) -> &Register {
        &self.register
    }

    /// How many are kept or being stored, and how many may be.
    pub(crate) fn room(&self) -> (usize, usize) {
        (self.register.len(), MAX_SURVEYS)
    }
}
