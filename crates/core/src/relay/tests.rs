//! Tests of relays: some members that do not all reach each other, with their relays and nothing else.

use super::{
    machine::{Relay, RelayReads},
    passing::{MAX_BYTES, MAX_QUESTIONS},
    taken::{MAX_TAKEN_OF_ONE, TOKEN_EVERY},
};
use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::{Member, Membership, Roster, Swim},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    forwarded::{ForwardedAnswer, ForwardedQuestion, NotForwarded, SealedAnswer, SealedQuestion, Token},
    ids::{QuestionId, Ticket},
    message::{Request, Response},
    time::{Millis, Moment, Now, WallTime},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

struct Side {
    cx: Context,
    relay: Relay,
    members: Membership,
    /// What it was asked: by whom, what.
    asked: Vec<(AccessPoint, Request)>,
    /// What its machines heard: of whom, what.
    heard: Vec<(AccessPoint, Option<Response>)>,
}

/// What a third member does with what goes through it.
type Meddling = fn(Response) -> Option<Response>;

struct World {
    sides: Vec<Side>,
    /// Pairs without messages from the first to the second, by number.
    cut: BTreeSet<(usize, usize)>,
    voters: Vec<AccessPoint>,
    meddling: BTreeMap<usize, Meddling>,
    /// Forwarded questions that were sent: from, to, what.
    forwarded: Vec<(usize, usize, SealedQuestion)>,
    /// How many plain questions were sent from the first to the second.
    plain: BTreeMap<(usize, usize), u32>,
}

static NAMES: LazyLock<Vec<AccessPoint>> = LazyLock::new(|| (1..10).map(|number| Context::of_test(number).me).collect());

fn name(number: usize) -> AccessPoint {
    NAMES[number]
}

impl World {
    fn new(count: usize) -> World {
        let sides = (0..count).map(|number| {
            let cx = Context::of_test(number as u8 + 1);
            let now = Now { moment: Moment(100_000), wall: WallTime(1_000_000 + number as u64) };
            let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
            let mut members = Membership::with_lease(swim, Roster::new(cx.me, cx.settings.roster.clone(), now.moment, &BTreeSet::new()));
            for other in (0..count).filter(|other| *other != number).map(name) {
                members.meet(now.moment, other);
            }
            Side { relay: Relay::new(now), cx: Context { now, ..cx }, members, asked: Vec::new(), heard: Vec::new() }
        });
        let sides = sides.collect();
        World { sides, cut: BTreeSet::new(), voters: Vec::new(), meddling: BTreeMap::new(), forwarded: Vec::new(), plain: BTreeMap::new() }
    }

    fn apart(mut self, pairs: &[(usize, usize)]) -> World {
        self.cut.extend(pairs.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]));
        self
    }

    fn pass(&mut self, millis: Millis) {
        for _ in 0..millis / 1_000 {
            for side in &mut self.sides {
                side.cx.now.moment = side.cx.now.moment.after(1_000);
                side.relay.tick(&mut side.cx, &side.members);
            }
            self.settle();
        }
    }

    fn ask(&mut self, from: usize, to: usize, request: Request) {
        let side = &mut self.sides[from];
        let question = side.cx.number();
        side.cx.commands.push_back(Command::Peers(PeerCommand::Ask { to: name(to), question, request }));
        self.settle();
    }

    /// The last answer that the machines of a member heard.
    fn answer(&mut self, of: usize) -> Option<Option<Response>> {
        self.sides[of].heard.pop().map(|(_, answer)| answer)
    }

    fn next(&mut self, number: usize) -> Option<PeerCommand> {
        let Side { cx, relay, members, .. } = &mut self.sides[number];
        loop {
            let Command::Peers(command) = cx.commands.pop_front()? else { continue };
            if let Some(command) = relay.sent(cx, RelayReads { members, voters: &self.voters }, command) {
                return Some(command);
            }
        }
    }

    /// Delivers everything until nothing is under way.
    fn settle(&mut self) {
        let mut tickets: BTreeMap<Ticket, (usize, QuestionId)> = BTreeMap::new();
        while let Some((from, command)) = (0..self.sides.len()).find_map(|number| Some((number, self.next(number)?))) {
            match command {
                PeerCommand::Ask { to, question, request } => {
                    let to = (0..self.sides.len()).find(|number| name(*number) == to).unwrap();
                    let ticket = Ticket(1 + tickets.len() as u64);
                    tickets.insert(ticket, (from, question));
                    match &request {
                        Request::Forward(sealed) => self.forwarded.push((from, to, (**sealed).clone())),
                        _ => *self.plain.entry((from, to)).or_default() += 1,
                    }
                    if self.cut.contains(&(from, to)) {
                        self.answered(from, question, to, None);
                    } else {
                        self.arrived(to, from, ticket, request);
                    }
                }
                PeerCommand::Answer { ticket, response } => {
                    let (asker, question) = tickets[&ticket];
                    let response = self.meddling.get(&from).map_or(Some(response.clone()), |meddle| meddle(response));
                    let response = response.filter(|_| !self.cut.contains(&(from, asker)));
                    self.answered(asker, question, from, response);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn arrived(&mut self, who: usize, from: usize, ticket: Ticket, request: Request) {
        let side = &mut self.sides[who];
        side.relay.heard(&side.cx, name(from));
        let asked = match request {
            Request::Forward(sealed) => side.relay.asked(&mut side.cx, &side.members, name(from), ticket, *sealed),
            request => Some((name(from), ticket, request)),
        };
        if let Some((from, ticket, request)) = asked {
            side.asked.push((from, request));
            side.cx.answer(ticket, Response::Noted);
        }
    }

    fn answered(&mut self, who: usize, question: QuestionId, from: usize, answer: Option<Response>) {
        if question == QuestionId::NO_ANSWER {
            return;
        }
        let Side { cx, relay, members, heard, .. } = &mut self.sides[who];
        let told = relay.answered(cx, RelayReads { members, voters: &self.voters }, question, name(from), answer);
        heard.extend(told.map(|(_, from, answer)| (from, answer)));
    }

    fn refused(&self, who: usize, class: &str) -> u64 {
        self.sides[who].cx.counters.refused.get(class).copied().unwrap_or(0)
    }
}

const TOTALS: Request = Request::Totals;

#[test]
fn a_question_goes_through_a_third_member_and_is_answered_as_if_asked_directly() {
    let mut world = World::new(3).apart(&[(0, 2)]);
    world.ask(0, 2, TOTALS);
    assert_eq!((world.answer(0), world.forwarded.len()), (Some(None), 0), "that it is not reached is seen by asking");
    world.ask(0, 2, Request::VoterLists(7));
    assert_eq!(world.answer(0), Some(Some(Response::Noted)));
    assert_eq!(world.sides[2].asked, [(name(0), Request::VoterLists(7))], "the asker is who sealed it, not who brought it");
    assert!(world.sides[1].asked.is_empty());
    let before = world.plain[&(0, 2)];
    world.ask(0, 2, TOTALS);
    assert_eq!((world.answer(0), world.plain[&(0, 2)]), (Some(Some(Response::Noted)), before));
}

#[test]
fn what_is_answered_directly_is_never_forwarded_and_a_way_that_opens_is_taken() {
    let mut world = World::new(3);
    for _ in 0..5 {
        world.ask(0, 2, TOTALS);
        assert_eq!(world.answer(0), Some(Some(Response::Noted)));
        world.pass(10_000);
    }
    assert_eq!(world.forwarded.len(), 0);
    world = world.apart(&[(0, 2)]);
    world.ask(0, 2, TOTALS);
    world.ask(0, 2, TOTALS);
    let through_others = world.forwarded.len();
    assert!(through_others > 0);
    world.cut.clear();
    world.pass(5_000);
    world.ask(0, 2, TOTALS);
    assert_eq!((world.answer(0), world.forwarded.len()), (Some(Some(Response::Noted)), through_others));
}

#[test]
fn the_next_third_member_is_taken_at_once_and_the_one_that_worked_is_remembered() {
    let mut world = World::new(6).apart(&[(0, 5), (1, 5), (2, 5), (3, 5)]);
    world.ask(0, 5, TOTALS);
    world.answer(0);
    world.ask(0, 5, TOTALS);
    assert_eq!(world.answer(0), Some(Some(Response::Noted)), "four reaches it");
    let tried = world.forwarded.len();
    for _ in 0..20 {
        world.pass(3_000);
        world.ask(0, 5, TOTALS);
        assert_eq!(world.answer(0), Some(Some(Response::Noted)));
    }
    let to: BTreeSet<usize> = world.forwarded[tried..].iter().filter(|(from, ..)| *from == 0).map(|(_, to, _)| *to).collect();
    assert_eq!(to, [4].into());
}

#[test]
fn third_members_that_are_not_reached_either_are_passed_over_within_the_same_question() {
    let mut world = World::new(6).apart(&[(0, 5), (0, 1), (0, 2), (0, 3)]);
    world.ask(0, 5, TOTALS);
    world.answer(0);
    world.ask(0, 5, TOTALS);
    assert_eq!(world.answer(0), Some(Some(Response::Noted)), "through the fourth");
}

#[test]
fn voters_that_are_in_touch_are_taken_first() {
    for voter in 1..5 {
        let mut world = World::new(6).apart(&[(0, 5)]);
        world.voters = vec![name(voter)];
        for other in 1..5 {
            world.ask(other, 0, TOTALS);
        }
        world.ask(0, 5, TOTALS);
        world.ask(0, 5, TOTALS);
        assert_eq!(world.forwarded[0].1, voter);
    }
}

#[test]
fn a_third_member_that_is_silent_or_changes_what_it_brings_costs_one_question_only() {
    let drops: Meddling = |response| (!matches!(response, Response::Forwarded(_))).then_some(response);
    let changes: Meddling = |response| match response {
        Response::Forwarded(Ok(mut sealed)) => {
            *sealed.bytes.last_mut().unwrap() ^= 1;
            Some(Response::Forwarded(Ok(sealed)))
        }
        other => Some(other),
    };
    for (meddling, counted) in [(drops, 0), (changes, 1)] {
        let mut world = World::new(4).apart(&[(0, 3)]);
        world.voters = vec![name(1)];
        world.meddling.insert(1, meddling);
        world.ask(1, 0, TOTALS);
        world.ask(0, 3, TOTALS);
        for _ in 0..2 {
            world.ask(0, 3, TOTALS);
        }
        assert_eq!(world.answer(0), Some(Some(Response::Noted)));
        assert_eq!(world.refused(0, "answers through a third member that their author did not seal"), counted);
        let silent = world.forwarded.iter().filter(|(from, to, _)| (*from, *to) == (0, 1)).count();
        assert_eq!(silent, 1);
    }
}

#[test]
fn an_answer_belongs_to_its_question() {
    // The third member answers each question with the answer to the first one.
    let mut world = World::new(3).apart(&[(0, 2)]);
    world.ask(0, 2, TOTALS);
    world.ask(0, 2, TOTALS);
    let (_, _, sealed) = world.forwarded.iter().rfind(|(from, ..)| *from == 0).cloned().unwrap();
    let kept = ForwardedAnswer {
        question: sealed.digest(),
        token: Token::default(),
        response: Some(postcard::to_stdvec(&Response::Busy(1)).unwrap()),
    };
    let kept = SealedAnswer::seal(&kept, &world.sides[2].cx.key);
    world.sides[0].heard.clear();
    let Side { cx, relay, members, .. } = &mut world.sides[0];
    let others = RelayReads { members, voters: &[] };
    let ask = PeerCommand::Ask { to: name(2), question: QuestionId(900), request: TOTALS };
    let Some(PeerCommand::Ask { question, request: Request::Forward(_), .. }) = relay.sent(cx, others, ask) else { panic!("forwarded") };
    let told = relay.answered(cx, others, question, name(1), Some(Response::Forwarded(Ok(Box::new(kept)))));
    assert_eq!(told, Some((QuestionId(900), name(2), None)), "nobody else is left to ask");
    assert_eq!(world.refused(0, "answers through a third member that their author did not seal"), 1);
}

/// What a member says to a sealed question.
fn said(world: &mut World, who: usize, from: usize, sealed: &SealedQuestion) -> Response {
    let side = &mut world.sides[who];
    if let Some((from, ticket, request)) = side.relay.asked(&mut side.cx, &side.members, name(from), Ticket(77), sealed.clone()) {
        side.asked.push((from, request));
        side.cx.answer(ticket, Response::Noted);
    }
    match world.next(who) {
        Some(PeerCommand::Answer { ticket: Ticket(77), response }) => response,
        other => panic!("{other:?}"),
    }
}

const REFUSED: Response = Response::Forwarded(Err(NotForwarded::Refused));

#[test]
fn a_question_is_taken_once_and_only_as_long_as_it_is_recent() {
    let mut world = World::new(3).apart(&[(0, 2)]);
    world.ask(0, 2, TOTALS);
    world.ask(0, 2, TOTALS);
    let (_, _, taken) = world.forwarded.last().cloned().unwrap();
    assert_eq!(said(&mut world, 2, 1, &taken), REFUSED, "it was answered before");
    assert_eq!(world.refused(2, "forwarded questions that came before"), 1);
    // One that the third member kept.
    let question = ForwardedQuestion { number: 5_000, ..taken.read().unwrap() };
    let kept = SealedQuestion::seal(&question, &world.sides[0].cx.key);
    world.pass(3 * TOKEN_EVERY);
    let (before, answer) = (world.sides[2].asked.len(), said(&mut world, 2, 1, &kept));
    assert_eq!(world.sides[2].asked.len(), before, "nothing is done");
    let Response::Forwarded(Ok(answer)) = answer else { panic!("{answer:?}") };
    let answer = answer.open(&name(2)).unwrap();
    assert_eq!(answer.response, None);
    let fresh = SealedQuestion::seal(&ForwardedQuestion { token: answer.token, ..question.clone() }, &world.sides[0].cx.key);
    assert!(matches!(said(&mut world, 2, 1, &fresh), Response::Forwarded(Ok(_))));
    assert_eq!(world.sides[2].asked.len(), before + 1);
    assert_eq!(said(&mut world, 2, 1, &fresh), REFUSED);
    world.pass(TOKEN_EVERY);
    assert_eq!(said(&mut world, 2, 1, &fresh), REFUSED, "as long as its token holds it is remembered");
    // Another process of the asked member knows of none of them, and takes none of them.
    let now = Now { moment: world.sides[2].cx.now.moment, wall: WallTime(9_000_000) };
    world.sides[2].relay = Relay::new(now);
    assert!(matches!(said(&mut world, 2, 1, &fresh), Response::Forwarded(Ok(answer)) if answer.open(&name(2)).unwrap().response.is_none()));
}

#[test]
fn what_no_member_sealed_or_what_is_not_to_be_forwarded_is_refused() {
    let mut world = World::new(3);
    let token = world_token(&world);
    let question = |from: usize, to: usize, request: &Request| ForwardedQuestion {
        from: name(from),
        to: name(to),
        process: 1,
        number: 1,
        token,
        request: postcard::to_stdvec(request).unwrap(),
    };
    let [mine, other] = [0, 1].map(|number| world.sides[number].cx.key.clone());
    let stranger = Context::of_test(99);
    let mut refused = |sealed: SealedQuestion| {
        assert_eq!(said(&mut world, 2, 1, &sealed), REFUSED);
        assert!(world.sides[2].asked.is_empty());
    };
    refused(SealedQuestion::seal(&question(0, 2, &TOTALS), &other));
    refused(SealedQuestion::seal(&ForwardedQuestion { from: stranger.me, ..question(0, 2, &TOTALS) }, &stranger.key));
    for request in [Request::Swim(vec![1]), Request::Farewell(true), Request::HierarchyManifest([1; 32])] {
        refused(SealedQuestion::seal(&question(0, 2, &request), &mine));
    }
    let nested = SealedQuestion::seal(&question(0, 2, &TOTALS), &mine);
    refused(SealedQuestion::seal(&question(0, 2, &Request::Forward(Box::new(nested))), &mine));
    refused(SealedQuestion { bytes: vec![1, 2, 3], signature: vec![0; 64] });
}

/// The token that the third member of a world gives out.
fn world_token(world: &World) -> Token {
    Token { process: ((1_000_000 + 2) << 24) ^ 100_000u64, period: world.sides[2].cx.now.moment.0 / TOKEN_EVERY }
}

#[test]
fn a_question_goes_one_step_and_no_further() {
    let mut world = World::new(4);
    let question = ForwardedQuestion { from: name(0), to: name(3), process: 1, number: 1, token: Token::default(), request: vec![21] };
    let sealed = SealedQuestion::seal(&question, &world.sides[0].cx.key);
    assert_eq!(said(&mut world, 2, 1, &sealed), REFUSED, "one did not seal it");
    // Who does not reach the asked member directly says so.
    let mut world = World::new(4).apart(&[(0, 3), (2, 3)]);
    world.ask(2, 3, TOTALS);
    assert_eq!(said(&mut world, 2, 0, &sealed), Response::Forwarded(Err(NotForwarded::Unreachable)));
    assert!(world.forwarded.is_empty());
}

#[test]
fn a_member_passes_on_so_much_for_one_asker_in_a_time() {
    let mut world = World::new(4);
    let sealed = |number: u64, length: usize, world: &World| {
        let question =
            ForwardedQuestion { from: name(0), to: name(3), process: 1, number, token: Token::default(), request: vec![0; length] };
        SealedQuestion::seal(&question, &world.sides[0].cx.key)
    };
    let passes = |world: &mut World, number: u64, length: usize| {
        let question = sealed(number, length, world);
        world.arrived(1, 0, Ticket(1), Request::Forward(Box::new(question)));
        let passed = world.next(1);
        let Some(PeerCommand::Ask { question, .. }) = passed else { return false };
        world.answered(1, question, 3, Some(REFUSED));
        world.next(1);
        true
    };
    let many = (0..2 * u64::from(MAX_QUESTIONS)).filter(|number| passes(&mut world, *number, 1)).count();
    assert_eq!(many, MAX_QUESTIONS as usize);
    let class = "questions that were not passed on for others beyond the limit";
    assert_eq!(world.refused(1, class), u64::from(MAX_QUESTIONS));
    world.sides[1].cx.now.moment = world.sides[1].cx.now.moment.after(10_000);
    let big = (0..12).filter(|number| passes(&mut world, *number, (1 << 20) - 4_096)).count();
    assert_eq!(big, MAX_BYTES >> 20, "with what is wrapped around them");
    // What is under way has a limit, too, and ends when no answer comes.
    world.sides[1].cx.now.moment = world.sides[1].cx.now.moment.after(10_000);
    let mut waiting = 0;
    for number in 0..200 {
        let question = sealed(number, 1, &world);
        world.arrived(1, 0, Ticket(number), Request::Forward(Box::new(question)));
        waiting += usize::from(matches!(world.next(1), Some(PeerCommand::Ask { .. })));
    }
    assert_eq!((waiting, world.sides[1].relay.under_way()), (64, (0, 64)));
    let side = &mut world.sides[1];
    side.cx.now.moment = side.cx.now.moment.after(8_000);
    side.relay.tick(&mut side.cx, &side.members);
    assert_eq!(side.relay.under_way(), (0, 0));
    let told = std::iter::from_fn(|| world.next(1))
        .filter(|command| matches!(command, PeerCommand::Answer { response: Response::Forwarded(Err(NotForwarded::Unreachable)), .. }));
    assert_eq!(told.count(), 64, "the asker takes another way");
}

#[test]
fn one_asker_fills_only_its_own_part_of_what_is_remembered() {
    let mut world = World::new(3);
    let token = world_token(&world);
    let question = |from: usize, number: u64| ForwardedQuestion {
        from: name(from),
        to: name(2),
        process: 1,
        number,
        token,
        request: postcard::to_stdvec(&TOTALS).unwrap(),
    };
    let mut taken = 0;
    for number in 0..2 * MAX_TAKEN_OF_ONE as u64 {
        let sealed = SealedQuestion::seal(&question(0, number), &world.sides[0].cx.key);
        taken += usize::from(matches!(said(&mut world, 2, 1, &sealed), Response::Forwarded(Ok(_))));
    }
    assert_eq!(taken, MAX_TAKEN_OF_ONE);
    assert_eq!(world.refused(2, "forwarded questions beyond the limit of those remembered"), MAX_TAKEN_OF_ONE as u64);
    let sealed = SealedQuestion::seal(&question(1, 1), &world.sides[1].cx.key);
    assert!(matches!(said(&mut world, 2, 0, &sealed), Response::Forwarded(Ok(_))));
}

#[test]
fn who_is_reached_by_nobody_is_asked_directly_and_costs_few_questions() {
    let mut world = World::new(5).apart(&[(0, 4), (1, 4), (2, 4), (3, 4)]);
    for _ in 0..60 {
        world.ask(0, 4, TOTALS);
        assert_eq!(world.answer(0), Some(None));
        world.pass(1_000);
    }
    let sent = world.forwarded.iter().filter(|(from, ..)| *from == 0).count();
    assert!(sent < 40, "{sent} in a minute");
}
