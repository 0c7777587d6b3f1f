//! State machine of the relay: each question and answer between members goes directly, or through a third member.

use super::{
    passing::{Passed, Passing},
    taken::{Taken, Verdict},
    ways::Ways,
};
use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::Membership,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    forwarded::{ForwardedAnswer, ForwardedQuestion, MAX_FORWARDED, NotForwarded, SealedAnswer, SealedQuestion},
    ids::{QuestionId, Ticket},
    message::{Request, Response},
    time::{Millis, Moment, Now},
};
use std::collections::BTreeMap;

/// Questions of ours that are under way through third members, and what they take in bytes: each is kept until it is answered, so that the
/// next third member can be taken.
pub(crate) const MAX_FORWARDING: usize = 512;
const MAX_FORWARDING_BYTES: usize = 16 << 20;

/// Third members that are taken for one question, and for how long after its begin another one is.
const MAX_THIRDS: usize = 6;
const NEXT_THIRD_WITHIN: Millis = 8_000;

/// Questions that came through others and are not answered yet, and for how long their answers make sense.
pub(super) const MAX_OPENED: usize = 1_024;
const OPENED_FOR: Millis = 30_000;

/// What the relay reads of others.
#[derive(Clone, Copy)]
pub(crate) struct RelayReads<'a> {
    pub(crate) members: &'a Membership,
    /// The present voters: most members reach them.
    pub(crate) voters: &'a [AccessPoint],
}

/// A question of ours on its way through a third member.
#[derive(Debug)]
struct Forwarding {
    /// What the machine that asks calls it.
    question: QuestionId,
    to: AccessPoint,
    request: Vec<u8>,
    begun: Moment,
    /// Third members that were taken, the present one last.
    tried: Vec<AccessPoint>,
    /// Whether it was sealed once more because its token was over.
    again: bool,
    digest: [u8; 32],
}

/// A question of another that came through a third member.
#[derive(Debug)]
struct Opened {
    /// Whom the answer is given to.
    ticket: Ticket,
    digest: [u8; 32],
    since: Moment,
}

/// The relay.
#[derive(Debug)]
pub(crate) struct Relay {
    process: u64,
    ways: Ways,
    passing: Passing,
    taken: Taken,
    /// When each question was asked that is under way directly. The transport answers every one.
    direct: BTreeMap<QuestionId, Moment>,
    /// Members that are asked directly once more.
    trying: BTreeMap<QuestionId, AccessPoint>,
    forwarding: BTreeMap<QuestionId, Forwarding>,
    /// What the requests of these take.
    bytes: usize,
    opened: BTreeMap<Ticket, Opened>,
}

/// What may be sent through a third member: what decides who owns what and keeps it, but neither what SWIM sends (it asks around by
/// itself) nor files.
fn is_forwarded(request: &Request) -> bool {
    match request {
        Request::Locate(_)
        | Request::FindOwner(..)
        | Request::Probe(..)
        | Request::Award { .. }
        | Request::HandOff(_)
        | Request::Keep(_)
        | Request::Recall(..)
        | Request::CompareClaims(_)
        | Request::Reserve(..)
        | Request::Offer { .. }
        | Request::TakeOver(_)
        | Request::Renew(_)
        | Request::Propose(_)
        | Request::Withdraw { .. }
        | Request::Ballot(_)
        | Request::VoterLists(_)
        | Request::SendClaims(_)
        | Request::Totals
        | Request::DoubleVote(_)
        | Request::TellClaims(_)
        | Request::CompareTotals { .. }
        | Request::Confirm(..)
        | Request::HostMoved(_)
        | Request::TakeHost { .. }
        | Request::Pinned(_)
        | Request::Tell(_)
        | Request::CompareRows(_)
        | Request::ExchangeTotals(..)
        | Request::ServerRows(_)
        | Request::HistoryRows(_)
        | Request::ExportRows(_)
        | Request::CrossTotals(..)
        | Request::CompareSurveys(_)
        | Request::SendSurveys(_)
        | Request::CompareOptOuts(_)
        | Request::SendOptOuts(_)
        | Request::CompareAdmissions(_)
        | Request::SendAdmissions(_)
        | Request::Distinct(_)
        | Request::SurveyProbes(_)
        | Request::ProbeTurn(_)
        | Request::RequestsMade(_)
        | Request::Why(_)
        | Request::KeepRecord(_)
        | Request::Records(_)
        | Request::CompareRecord(_)
        | Request::Holds(_) => true,
        Request::Swim(_) | Request::Farewell(_) | Request::HierarchyManifest(_) | Request::HierarchyChunk { .. } | Request::Forward(_) => {
            false
        }
    }
}

/// What is seen of it.
impl Relay {
    /// At the start of a process.
    pub(crate) fn new(start: Now) -> Relay {
        // The instant of its start, by both clocks, tells it apart from any other process.
        let process = (start.wall.0 << 24 ^ start.moment.0).max(1);
        Relay {
            process,
            ways: Ways::default(),
            passing: Passing::default(),
            taken: Taken::new(process),
            direct: BTreeMap::new(),
            trying: BTreeMap::new(),
            forwarding: BTreeMap::new(),
            bytes: 0,
            opened: BTreeMap::new(),
        }
    }

    /// Members that do not answer directly.
    pub(crate) fn ways(&self) -> usize {
        self.ways.len()
    }

    /// Questions of ours, and of others, that are under way through third members.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        (self.forwarding.len(), self.passing.len())
    }

    /// Questions of others that are remembered.
    pub(crate) fn taken(&self) -> usize {
        self.taken.len()
    }
}

/// What members ask.
impl Relay {
    /// A member said something directly.
    pub(crate) fn heard(&mut self, cx: &Context, who: AccessPoint) {
        self.ways.heard(cx.now.moment, who);
    }

    /// A connection to a member was made.
    pub(crate) fn connected(&mut self, cx: &Context, who: AccessPoint) {
        self.ways.answered(cx.now.moment, who);
    }

    /// A sealed question came: for us, or to be passed on. Returned is what we are asked, and by whom.
    pub(crate) fn asked(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        from: AccessPoint,
        ticket: Ticket,
        sealed: SealedQuestion,
    ) -> Option<(AccessPoint, Ticket, Request)> {
        let taken = match sealed.read() {
            Ok(question) if question.to == cx.me => self.take(cx, members, ticket, &sealed, question),
            Ok(question) => self.pass_on(cx, members, (from, ticket), sealed, &question).map(|()| None),
            Err(_) => Err(refused(cx, "forwarded questions that cannot be read")),
        };
        taken.unwrap_or_else(|why| {
            cx.answer(ticket, Response::Forwarded(Err(why)));
            None
        })
    }

    /// A question for us.
    fn take(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        ticket: Ticket,
        sealed: &SealedQuestion,
        question: ForwardedQuestion,
    ) -> Result<Option<(AccessPoint, Ticket, Request)>, NotForwarded> {
        let now = cx.now.moment;
        if question.from == cx.me
            || cx.excluded.contains_key(&question.from)
            || !members.knows(&question.from)
            || !sealed.is_sealed_by(&question.from)
        {
            return Err(refused(cx, "forwarded questions that no member sealed"));
        }
        let request = postcard::from_bytes::<Request>(&question.request).ok().filter(is_forwarded);
        let Some(request) = request else { return Err(refused(cx, "forwarded questions that are not to be forwarded")) };
        if self.opened.len() >= MAX_OPENED {
            cx.refuse("forwarded questions beyond the limit of those being answered");
            return Err(NotForwarded::Busy);
        }
        match self.taken.judge(now, &question) {
            Verdict::Take => {}
            Verdict::Old => {
                let answer = ForwardedAnswer { question: sealed.digest(), token: self.taken.token(now), response: None };
                cx.answer(ticket, Response::Forwarded(Ok(Box::new(SealedAnswer::seal(&answer, &cx.key)))));
                return Ok(None);
            }
            Verdict::Again => return Err(refused(cx, "forwarded questions that came before")),
            Verdict::TooMany => {
                cx.refuse("forwarded questions beyond the limit of those remembered");
                return Err(NotForwarded::Busy);
            }
        }
        let opened = Ticket::sealed(cx.number());
        self.opened.insert(opened, Opened { ticket, digest: sealed.digest(), since: now });
        Ok(Some((question.from, opened, request)))
    }

    /// A question for another: who asks us must be its author, so it goes no further than one step.
    fn pass_on(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        (from, ticket): (AccessPoint, Ticket),
        sealed: SealedQuestion,
        question: &ForwardedQuestion,
    ) -> Result<(), NotForwarded> {
        let (now, to) = (cx.now.moment, question.to);
        if question.from != from || to == from {
            return Err(refused(cx, "forwarded questions that are to go on for another"));
        }
        if !members.knows(&to) || self.ways.is_forwarded(now, &to) {
            return Err(NotForwarded::Unreachable);
        }
        let bytes = sealed.bytes.len();
        if !self.passing.may(now, from, bytes) {
            cx.refuse("questions that were not passed on for others beyond the limit");
            return Err(NotForwarded::Busy);
        }
        let number = cx.number();
        self.passing.begin(now, number, ticket, from, bytes);
        ask(cx, to, number, Request::Forward(Box::new(sealed)));
        Ok(())
    }
}

fn refused(cx: &mut Context, class: &'static str) -> NotForwarded {
    cx.refuse(class);
    NotForwarded::Refused
}

fn ask(cx: &mut Context, to: AccessPoint, question: QuestionId, request: Request) {
    cx.commands.push_back(Command::Peers(PeerCommand::Ask { to, question, request }));
}

/// What goes out.
impl Relay {
    /// A message is to go out: this one is sent in its place; none if nothing is.
    pub(crate) fn sent(&mut self, cx: &mut Context, others: RelayReads<'_>, command: PeerCommand) -> Option<PeerCommand> {
        match command {
            PeerCommand::Ask { to, question, request } => Some(self.way_of(cx, others, to, question, request)),
            PeerCommand::Answer { ticket, response } if ticket.is_sealed() => self.sealed(cx, ticket, &response),
            command => Some(command),
        }
    }

    /// A question as it is sent: directly, or sealed to a third member.
    fn way_of(&mut self, cx: &mut Context, others: RelayReads<'_>, to: AccessPoint, question: QuestionId, request: Request) -> PeerCommand {
        let now = cx.now.moment;
        let goes_around =
            is_forwarded(&request) && self.ways.is_forwarded(now, &to) && others.members.knows(&to) && !self.trying.contains_key(&question);
        let forwarding = if goes_around { self.begin(cx, question, to, &request) } else { None };
        if let Some(command) = forwarding.and_then(|forwarding| self.forward(cx, others, forwarding).ok()) {
            return command;
        }
        if question != QuestionId::NO_ANSWER {
            self.direct.insert(question, now);
        }
        PeerCommand::Ask { to, question, request }
    }

    fn begin(&self, cx: &mut Context, question: QuestionId, to: AccessPoint, request: &Request) -> Option<Forwarding> {
        let request = postcard::to_stdvec(request).ok().filter(|bytes| bytes.len() <= MAX_FORWARDED)?;
        if self.forwarding.len() >= MAX_FORWARDING || self.bytes + request.len() > MAX_FORWARDING_BYTES {
            cx.refuse("questions of ours that were not sent through a third member beyond the limit");
            return None;
        }
        Some(Forwarding { question, to, request, begun: cx.now.moment, tried: Vec::new(), again: false, digest: [0; 32] })
    }

    /// Seals a question and gives it to the next third member; it is returned if there is none.
    #[expect(clippy::result_large_err, reason = "what cannot be forwarded is handed back whole, and used at once")]
    fn forward(&mut self, cx: &mut Context, others: RelayReads<'_>, mut forwarding: Forwarding) -> Result<PeerCommand, Forwarding> {
        let (now, to, me) = (cx.now.moment, forwarding.to, cx.me);
        let live = others.members.live().iter().copied().filter(|who| *who != me);
        let Some(via) = self.ways.third(now, to, &forwarding.tried, others.voters, live) else {
            self.ways.give_up(now, &to);
            return Err(forwarding);
        };
        forwarding.tried.push(via);
        Ok(self.seal_for(cx, via, forwarding))
    }

    /// Seals a question for this third member.
    fn seal_for(&mut self, cx: &mut Context, via: AccessPoint, mut forwarding: Forwarding) -> PeerCommand {
        let number: QuestionId = cx.number();
        let question = ForwardedQuestion {
            from: cx.me,
            to: forwarding.to,
            process: self.process,
            number: number.0,
            token: self.ways.token(&forwarding.to),
            request: std::mem::take(&mut forwarding.request),
        };
        let sealed = SealedQuestion::seal(&question, &cx.key);
        (forwarding.digest, forwarding.request) = (sealed.digest(), question.request);
        self.bytes += forwarding.request.len();
        self.forwarding.insert(number, forwarding);
        self.direct.insert(number, cx.now.moment);
        PeerCommand::Ask { to: via, question: number, request: Request::Forward(Box::new(sealed)) }
    }

    /// The answer to a question that came sealed.
    fn sealed(&mut self, cx: &Context, ticket: Ticket, response: &Response) -> Option<PeerCommand> {
        let Opened { ticket, digest, .. } = self.opened.remove(&ticket)?;
        let response = Some(postcard::to_stdvec(response).ok()?);
        let answer = ForwardedAnswer { question: digest, token: self.taken.token(cx.now.moment), response };
        let response = Response::Forwarded(Ok(Box::new(SealedAnswer::seal(&answer, &cx.key))));
        Some(PeerCommand::Answer { ticket, response })
    }
}

/// What comes back.
impl Relay {
    /// A question was answered, or was not. Returned is what the machine that asked hears of it, if anything.
    pub(crate) fn answered(
        &mut self,
        cx: &mut Context,
        others: RelayReads<'_>,
        question: QuestionId,
        from: AccessPoint,
        answer: Option<Response>,
    ) -> Option<(QuestionId, AccessPoint, Option<Response>)> {
        let now = cx.now.moment;
        if let Some(asked) = self.direct.remove(&question) {
            self.note(cx, others, from, asked, answer.is_some());
        }
        if let Some(to) = self.trying.remove(&question) {
            self.ways.still_fails(now, &to);
            return None;
        }
        let length = if let Some(Response::Forwarded(Ok(sealed))) = &answer { sealed.bytes.len() } else { 0 };
        if let Some(passed) = self.passing.end(question, length) {
            pass_back(cx, &passed, answer);
            return None;
        }
        let Some(forwarding) = self.forwarding.remove(&question) else { return Some((question, from, answer)) };
        self.bytes = self.bytes.saturating_sub(forwarding.request.len());
        let (question, to) = (forwarding.question, forwarding.to);
        let answer = self.came_back(cx, others, forwarding, answer)?;
        (question != QuestionId::NO_ANSWER).then_some((question, to, answer))
    }

    /// Whether a member answered directly what was asked at that time.
    fn note(&mut self, cx: &mut Context, others: RelayReads<'_>, who: AccessPoint, asked: Moment, answered: bool) {
        let now = cx.now.moment;
        if answered {
            self.ways.answered(now, who);
        } else if others.members.knows(&who) && !self.ways.failed(now, who, asked) {
            cx.refuse("members that do not answer directly beyond the limit");
        }
    }

    /// What came of a question through a third member; none if it is still under way.
    fn came_back(
        &mut self,
        cx: &mut Context,
        others: RelayReads<'_>,
        mut forwarding: Forwarding,
        answer: Option<Response>,
    ) -> Option<Option<Response>> {
        let (now, to) = (cx.now.moment, forwarding.to);
        let Some(via) = forwarding.tried.last().copied() else { return Some(None) };
        let may_go_on = now.since(forwarding.begun) < NEXT_THIRD_WITHIN && forwarding.tried.len() < MAX_THIRDS;
        if let Some(answer) = opened(cx, &forwarding, answer) {
            self.ways.worked(&to, via, answer.token);
            return match answer.response {
                Some(bytes) => Some(postcard::from_bytes(&bytes).ok()),
                None if forwarding.again => Some(None),
                None => {
                    forwarding.again = true;
                    let command = self.seal_for(cx, via, forwarding);
                    cx.commands.push_back(Command::Peers(command));
                    None
                }
            };
        }
        self.ways.did_not_work(now, &to, via);
        if !may_go_on {
            self.ways.unanswered(now, &to);
            return Some(None);
        }
        match self.forward(cx, others, forwarding) {
            Ok(command) => {
                cx.commands.push_back(Command::Peers(command));
                None
            }
            Err(_) => Some(None),
        }
    }

    /// Does not wait any more for what should have come long ago; asks members directly once more.
    pub(crate) fn tick(&mut self, cx: &mut Context, members: &Membership) {
        let now = cx.now.moment;
        for passed in self.passing.overdue(now) {
            pass_back(cx, &passed, None);
        }
        self.opened.retain(|_, opened| now.since(opened.since) < OPENED_FOR);
        for to in self.ways.due(now, |who| members.knows(who)) {
            let question = cx.number();
            self.trying.insert(question, to);
            ask(cx, to, question, Request::Holds(Vec::new()));
        }
    }
}

/// The answer that a third member brought, if its author sealed it for this very question.
fn opened(cx: &mut Context, forwarding: &Forwarding, answer: Option<Response>) -> Option<ForwardedAnswer> {
    let Some(Response::Forwarded(Ok(sealed))) = answer else { return None };
    let answer = sealed.open(&forwarding.to).ok().filter(|answer| answer.question == forwarding.digest);
    if answer.is_none() {
        cx.refuse("answers through a third member that their author did not seal");
    }
    answer
}

/// Gives the asker what came of a question that was passed on for it.
fn pass_back(cx: &mut Context, passed: &Passed, answer: Option<Response>) {
    let told = match answer {
        Some(Response::Forwarded(told)) => told,
        Some(Response::Busy(_)) => Err(NotForwarded::Busy),
        Some(_) => Err(NotForwarded::Refused),
        None => Err(NotForwarded::Unreachable),
    };
    cx.answer(passed.ticket, Response::Forwarded(told));
}
