//! Probes of a survey's sample from here: which server is next, and what came of those that were probed.
//!
//! Every member probes each server of a sample once: that a probe begins is stored before it goes out, and what came of it before it is
//! told. A process that ends in between leaves a probe that began and did not end: it counts as interrupted, and is not made again.
//!
//! One probe is under way at a time. Each member has an order of its own, so that a server is not probed by all at once.

use crate::{
    context::Context,
    event::{Command, StoreCommand, WebCommand},
    routing::locator::Lookup,
    wishes::{InEffect, KeptSurvey},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{ProbeReason, ProbeReport, ProbeTarget},
    ids::{QuestionId, WriteId},
    survey::{MAX_PROBED, MAX_SURVEYS, SurveyHead, SurveyId},
    survey_probes::{ProbeOutcome, ProbedServer},
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use siphasher::sip::SipHasher13;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// Servers of which it may be kept what their probes came to, of all surveys together.
pub(crate) const MAX_KEPT: usize = MAX_SURVEYS * MAX_PROBED as usize;

/// So long a member may take to begin a probe when its turn has come: whose turn it is is looked at once a second, and that a probe begins is
/// stored first.
pub(crate) const TURN: Millis = 3_000;

/// An owner that cannot say when its server may be probed is asked again after so long.
const ASK_AGAIN: Millis = 2_000;

/// The same if it does not answer, or does not own the address.
const ASK_LATER: Millis = 10_000;

/// After so long a server that may not be probed is looked at again.
const PROBE_LATER: Millis = 600_000;

/// The same if its address is being looked up, or has no owner yet.
const PROBE_SOON: Millis = 2_000;

/// A turn that is further away is not waited for.
const MAX_WAIT: Millis = 600_000;

/// Why a server is not probed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The configuration denies it.
    Denied,
    /// Its subnet, or the block of addresses around it, has had as many contacts as it may.
    Budget,
    /// Its address has no owner yet, or its owner cannot say when it may be probed.
    Turn,
    /// Its address is not known.
    Address,
}

/// A server whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToProbe {
    survey: SurveyId,
    /// Its place in our order.
    place: u32,
    /// Where it is to be asked.
    url: PageUrl,
}

/// What others have to do for the server whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeStep {
    /// Nothing: no server is due, or it is settled what becomes of the one that was.
    Nothing,
    /// The contact with this server is to be counted; whether it may be made is told to [`Probing::contact`].
    Contact(ToProbe, ProbeTarget),
    /// The address of this host is to be looked up.
    Find(Host),
    /// This member, the owner of the address, is to say when it may be probed.
    AskTurn(AccessPoint, IpAddr),
}

/// A survey's sample, as it is probed here.
#[derive(Debug)]
struct Sample {
    head: SurveyHead,
    slot: u16,
    /// In our order.
    servers: Vec<PageUrl>,
    /// Which of them are to be probed, and from when on.
    due: BTreeSet<(Moment, u32)>,
    waits: BTreeMap<u32, Wait>,
    rows: BTreeMap<Host, ProbedServer>,
}

/// A server whose owner was asked when it may be probed.
#[derive(Debug)]
struct Turn {
    server: ToProbe,
    target: ProbeTarget,
    /// When, once its owner has said so.
    at: Option<Moment>,
}

/// The probe that is under way.
#[derive(Debug)]
struct Current {
    survey: SurveyId,
    row: ProbedServer,
    stage: Stage,
}

/// How far it is.
#[derive(Debug)]
enum Stage {
    /// That it begins is being stored.
    Begins(WriteId, ProbeTarget),
    /// It went out.
    Runs(QuestionId),
    /// What came of it is being stored.
    Ends(WriteId),
}

/// What is to be told of a sample.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) servers: u32,
    pub(crate) denied: u32,
    pub(crate) waiting_for_budget: u32,
    pub(crate) waiting_for_address: u32,
    pub(crate) waiting_for_turn: u32,
    pub(crate) rows: Vec<ProbedServer>,
}

/// The samples of all surveys that are kept.
#[derive(Debug, Default)]
pub(crate) struct Probing {
    samples: BTreeMap<SurveyId, Sample>,
    turn: Option<Turn>,
    current: Option<Current>,
}

/// The place of a server in a member's own order.
fn order(me: &AccessPoint, url: &PageUrl) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&me.0);
    hasher.write(url.host_str().as_bytes());
    hasher.finish()
}

impl Sample {
    fn of(kept: &KeptSurvey, me: &AccessPoint) -> Sample {
        let mut servers: Vec<PageUrl> = kept.survey.sample().into_iter().map(|(_, url)| url.clone()).collect();
        servers.sort_by_key(|url| order(me, url));
        let due = (0..servers.len() as u32).map(|place| (Moment(0), place)).collect();
        Sample { head: kept.head, slot: kept.slot, servers, due, waits: BTreeMap::new(), rows: BTreeMap::new() }
    }

    /// Takes in what was probed; what is not in the sample is forgotten.
    fn know(&mut self, rows: impl IntoIterator<Item = ProbedServer>) {
        let places: BTreeMap<Host, u32> = (0..).zip(&self.servers).map(|(place, url)| (url.host(), place)).collect();
        for row in rows {
            if let Some(place) = places.get(&row.host) {
                self.due.retain(|(_, due)| due != place);
                self.rows.insert(row.host.clone(), row);
            }
        }
    }

    fn look_again(&mut self, place: u32, at: Option<Moment>) {
        self.due.retain(|(_, due)| *due != place);
        self.due.extend(at.map(|at| (at, place)));
    }

    fn waiting(&self, why: Wait) -> u32 {
        self.waits.values().filter(|wait| **wait == why).count() as u32
    }
}

/// Which surveys there are.
impl Probing {
    /// These are kept, running or not.
    pub(super) fn keep<'a>(&mut self, surveys: impl Iterator<Item = &'a Arc<KeptSurvey>>, me: &AccessPoint) {
        let mut before = std::mem::take(&mut self.samples);
        for kept in surveys.filter(|kept| kept.survey.plan.probe.is_some()) {
            let sample = match before.remove(&kept.head.id) {
                Some(known) if known.head == kept.head => known,
                known => {
                    let mut sample = Sample::of(kept, me);
                    sample.know(known.into_iter().flat_map(|known| known.rows.into_values()));
                    sample
                }
            };
            self.samples.insert(kept.head.id, sample);
        }
    }

    /// What was stored by a previous process: probes that had begun then are not made again.
    pub(super) fn recall(&mut self, stored: &[Vec<u8>]) {
        for bytes in stored {
            let Ok((survey, rows)) = postcard::from_bytes::<(SurveyId, Vec<ProbedServer>)>(bytes) else { continue };
            let interrupted = |row: ProbedServer| match row.outcome {
                ProbeOutcome::UnderWay => ProbedServer { outcome: ProbeOutcome::Interrupted, ..row },
                _ => row,
            };
            if let Some(sample) = self.samples.get_mut(&survey) {
                sample.know(rows.into_iter().map(interrupted));
            }
        }
    }

    /// The server of a running survey whose turn it is, unless a probe is under way.
    fn next(&self, surveys: &InEffect, now: Moment) -> Option<ToProbe> {
        if self.turn.is_some() || self.current.is_some() {
            return None;
        }
        let first = |kept: &Arc<KeptSurvey>| {
            let sample = self.samples.get(&kept.head.id)?;
            let (due, place) = sample.due.first().filter(|(due, _)| *due <= now)?;
            Some((*due, *place, kept.head.id, sample.servers.get(*place as usize)?))
        };
        let next = surveys.living().filter_map(first).min();
        next.map(|(_, place, survey, url)| ToProbe { survey, place, url: url.clone() })
    }

    /// It cannot be probed now.
    fn later(&mut self, cx: &Context, server: &ToProbe, why: Wait, pause: Millis) {
        if let Some(sample) = self.samples.get_mut(&server.survey) {
            sample.look_again(server.place, Some(cx.now.moment.after(pause)));
            sample.waits.insert(server.place, why);
        }
    }
}

/// Which server is probed next, and what is lacking for that?
impl Probing {
    /// Goes on with the next server: one whose turn has come, or else one that is due and may be asked for at its address. `lookup` is what is
    /// known of a host's address now, `owner_of` who owns an address and has not released it.
    pub(super) fn next_step(
        &mut self,
        cx: &mut Context,
        lookup: impl FnOnce(&Host) -> Lookup,
        owner_of: impl FnOnce(IpAddr) -> Option<AccessPoint>,
    ) -> ProbeStep {
        if let Some((server, target)) = self.turn_came(cx) {
            // It may have been opted out since its turn was asked for.
            if cx.denies(&target.host, Some(target.address.ip())) {
                return self.wait(cx, &server, Wait::Denied, PROBE_LATER);
            }
            return ProbeStep::Contact(server, target);
        }
        let Some(server) = self.next(&cx.wishes, cx.now.moment) else { return ProbeStep::Nothing };
        let host = server.url.host();
        if cx.denies(&host, None) {
            return self.wait(cx, &server, Wait::Denied, PROBE_LATER);
        }
        match lookup(&host) {
            Lookup::At(located) if cx.denies(&host, Some(located.address)) => self.wait(cx, &server, Wait::Denied, PROBE_LATER),
            Lookup::At(located) => match owner_of(located.address) {
                Some(owner) => {
                    let address = SocketAddr::new(located.address, server.url.port());
                    let target = ProbeTarget { address, host, secure: server.url.is_secure() };
                    self.wants_turn(server, target);
                    ProbeStep::AskTurn(owner, located.address)
                }
                // What has no owner yet is being probed by those who look for one.
                None => self.wait(cx, &server, Wait::Turn, PROBE_SOON),
            },
            Lookup::Nowhere(failure) if !failure.is_transient() => {
                self.begin(cx, &server, None);
                ProbeStep::Nothing
            }
            Lookup::Nowhere(_) => self.wait(cx, &server, Wait::Address, PROBE_LATER),
            Lookup::Later(_, at) => self.wait(cx, &server, Wait::Address, at.since(cx.now.moment).max(PROBE_SOON)),
            Lookup::Unknown => {
                self.later(cx, &server, Wait::Address, PROBE_SOON);
                ProbeStep::Find(host)
            }
        }
    }

    fn wait(&mut self, cx: &Context, server: &ToProbe, why: Wait, pause: Millis) -> ProbeStep {
        self.later(cx, server, why, pause);
        ProbeStep::Nothing
    }

    /// Whether the contact with a server may be made: its turn has come, so it is probed now or waits for its subnet's budget.
    pub(super) fn contact(&mut self, cx: &mut Context, server: &ToProbe, target: ProbeTarget, may: bool) {
        if may {
            self.begin(cx, server, Some(target));
        } else {
            self.later(cx, server, Wait::Budget, PROBE_LATER);
        }
    }
}

/// When may it be probed?
impl Probing {
    /// The owner of its address is asked.
    fn wants_turn(&mut self, server: ToProbe, target: ProbeTarget) {
        self.turn = Some(Turn { server, target, at: None });
    }

    /// The owner says after how many milliseconds, or that it cannot say; none if it does not answer that. Then it is asked again.
    pub(super) fn turn_told(&mut self, cx: &Context, told: Option<Option<Millis>>) {
        let Some(mut turn) = self.turn.take() else { return };
        match told.map(|after| after.filter(|after| *after <= MAX_WAIT)) {
            Some(Some(after)) => {
                turn.at = Some(cx.now.moment.after(after));
                self.turn = Some(turn);
            }
            Some(None) => self.later(cx, &turn.server, Wait::Turn, ASK_AGAIN),
            None => self.later(cx, &turn.server, Wait::Turn, ASK_LATER),
        }
    }

    /// The server that may be probed now. Whose survey does not run any more is not, nor one whose turn has passed.
    fn turn_came(&mut self, cx: &Context) -> Option<(ToProbe, ProbeTarget)> {
        let Turn { server, target, at } = self.turn.take_if(|turn| turn.at.is_some_and(|at| at <= cx.now.moment))?;
        let is_late = at.is_none_or(|at| cx.now.moment.since(at) >= TURN);
        let runs = cx.wishes.living().any(|kept| kept.head.id == server.survey);
        if is_late || !runs {
            self.later(cx, &server, Wait::Turn, ASK_AGAIN);
            return None;
        }
        Some((server, target))
    }
}

/// A probe.
impl Probing {
    /// It is to be probed at this address, or has none: that is stored first.
    fn begin(&mut self, cx: &mut Context, server: &ToProbe, target: Option<ProbeTarget>) {
        let Some(sample) = self.samples.get_mut(&server.survey) else { return };
        sample.look_again(server.place, None);
        sample.waits.remove(&server.place);
        let address = target.as_ref().map(|target| target.address.ip());
        let outcome = if target.is_some() { ProbeOutcome::UnderWay } else { ProbeOutcome::NoAddress };
        let row = ProbedServer { host: server.url.host(), address, at: cx.now.wall, outcome, rtt_us: None };
        let write = self.store(cx, server.survey, &row);
        let stage = target.map_or(Stage::Ends(write), |target| Stage::Begins(write, target));
        self.current = Some(Current { survey: server.survey, row, stage });
    }

    /// Has the rows of a sample stored, with this one.
    fn store(&self, cx: &mut Context, survey: SurveyId, row: &ProbedServer) -> WriteId {
        let write = cx.number();
        if let Some(sample) = self.samples.get(&survey) {
            let others = sample.rows.values().filter(|other| other.host != row.host);
            let rows: Vec<&ProbedServer> = others.chain([row]).collect();
            #[expect(clippy::expect_used, reason = "postcard writes any rows into a growing vector")]
            let bytes = postcard::to_stdvec(&(survey, rows)).expect("rows always encode");
            cx.commands.push_back(Command::Store(StoreCommand::StoreSurveyProbes { write, slot: sample.slot, bytes }));
        }
        write
    }

    /// Rows are durable: the probe goes out, unless nobody may ask there by now or its survey does not run any more, or what came of it can be
    /// told.
    pub(super) fn stored(&mut self, cx: &mut Context, write: WriteId) {
        let Some(current) = &mut self.current else { return };
        let runs = cx.wishes.living().any(|kept| kept.head.id == current.survey);
        let mut cut_off = None;
        match &current.stage {
            Stage::Begins(begins, target)
                if *begins == write && (!runs || cx.is_excluded() || cx.denies(&target.host, Some(target.address.ip()))) =>
            {
                cut_off = Some(ProbedServer { outcome: ProbeOutcome::Interrupted, ..current.row.clone() });
            }
            Stage::Begins(begins, target) if *begins == write => {
                let question = cx.number();
                cx.counters.probes += 1;
                cx.commands.push_back(Command::Web(WebCommand::Probe { question, target: target.clone(), reason: ProbeReason::Survey }));
                current.stage = Stage::Runs(question);
            }
            Stage::Ends(ends) if *ends == write => {}
            _ => return,
        }
        if let Some(sample) = self.samples.get_mut(&current.survey) {
            sample.know([current.row.clone()]);
        }
        if matches!(current.stage, Stage::Ends(_)) {
            self.current = None;
        }
        if let Some((row, current)) = cut_off.and_then(|row| Some((row, self.current.take()?))) {
            self.end(cx, Current { row, ..current });
        }
    }

    /// What came of a probe is to be stored. What is not kept any more is not waited for.
    fn end(&mut self, cx: &mut Context, current: Current) {
        if self.samples.contains_key(&current.survey) {
            let write = self.store(cx, current.survey, &current.row);
            self.current = Some(Current { stage: Stage::Ends(write), ..current });
        }
    }

    /// A probe ended. If it is that of a sample's server, returns which address was contacted.
    pub(super) fn ended(&mut self, cx: &mut Context, question: QuestionId, report: &ProbeReport) -> Option<IpAddr> {
        let is_ours = |current: &mut Current| matches!(&current.stage, Stage::Runs(runs) if *runs == question);
        let mut current = self.current.take_if(is_ours)?;
        let address = current.row.address;
        let outcome = if report.rtt_us.is_ok() { ProbeOutcome::Answered } else { ProbeOutcome::NoAnswer };
        current.row = ProbedServer { outcome, rtt_us: report.rtt_us.ok(), ..current.row };
        self.end(cx, current);
        address
    }
}

/// What is seen of it.
impl Probing {
    /// What can be told of a survey's sample; none if it has none.
    pub(crate) fn told(&self, survey: &SurveyId) -> Option<Told> {
        let sample = self.samples.get(survey)?;
        Some(Told {
            servers: sample.servers.len() as u32,
            denied: sample.waiting(Wait::Denied),
            waiting_for_budget: sample.waiting(Wait::Budget),
            waiting_for_address: sample.waiting(Wait::Address),
            waiting_for_turn: sample.waiting(Wait::Turn),
            rows: sample.rows.values().cloned().collect(),
        })
    }

    /// Whether a probe is under way, or what came of one is being stored.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Of how many servers it is kept what their probes came to.
    pub(crate) fn kept(&self) -> usize {
        self.samples.values().map(|sample| sample.rows.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use nearcrawl_model::{
        admission::NotAdmitted,
        fetch::{FetchError, LocatedHost, ResolveError},
        survey::{SignedSurvey, Survey, SurveyEntry, SurveyPlan, SurveyState},
        time::WallTime,
    };

    fn kept(state: SurveyState, hosts: usize, probe: u32) -> Arc<KeptSurvey> {
        let key = SigningKey::from_bytes(&[9; 32]);
        let entry = |number| SurveyEntry { url: PageUrl::parse(&format!("https://h{number}.ke/")).unwrap(), labels: Vec::new() };
        let plan =
            SurveyPlan { name: "near".to_owned(), entries: (0..hosts).map(entry).collect(), probe: Some(probe), ..SurveyPlan::default() };
        let creator = AccessPoint(key.verifying_key().to_bytes());
        let revision = if state == SurveyState::Running { 1 } else { 2 };
        let survey = Survey { creator, revision, state, created_at: WallTime(0), changed_at: WallTime(0), plan };
        let signed = SignedSurvey::sign(&survey, &key).unwrap();
        Arc::new(KeptSurvey::new(survey, signed, 3))
    }

    /// A member with a survey and a disk.
    struct Member {
        cx: Context,
        probing: Probing,
        survey: Arc<KeptSurvey>,
        disk: BTreeMap<u16, Vec<u8>>,
    }

    impl Member {
        fn new(number: u8, survey: &Arc<KeptSurvey>) -> Member {
            Member::restarted(number, survey, BTreeMap::new())
        }

        fn restarted(number: u8, survey: &Arc<KeptSurvey>, disk: BTreeMap<u16, Vec<u8>>) -> Member {
            let mut cx = Context::of_test(number);
            cx.wishes = InEffect::at(cx.now.wall, [survey].into_iter());
            let mut probing = Probing::default();
            probing.keep([survey].into_iter(), &cx.me);
            probing.recall(&disk.values().cloned().chain([b"damaged".to_vec()]).collect::<Vec<_>>());
            Member { cx, probing, survey: Arc::clone(survey), disk }
        }

        fn next(&self) -> Option<ToProbe> {
            self.probing.next(&self.cx.wishes, self.cx.now.moment)
        }

        fn begin(&mut self, server: &ToProbe) {
            let target = ProbeTarget { address: "192.0.2.7:443".parse().unwrap(), host: server.url.host(), secure: true };
            self.probing.begin(&mut self.cx, server, Some(target));
        }

        /// The disk stores what it is given; returns the probes that go out.
        fn store(&mut self) -> Vec<(QuestionId, Host)> {
            let mut sent = Vec::new();
            loop {
                let commands = self.cx.take_commands();
                if commands.is_empty() {
                    return sent;
                }
                for command in commands {
                    match command {
                        Command::Store(StoreCommand::StoreSurveyProbes { write, slot, bytes }) => {
                            self.disk.insert(slot, bytes);
                            self.probing.stored(&mut self.cx, write);
                        }
                        Command::Web(WebCommand::Probe { question, target, .. }) => sent.push((question, target.host)),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }

        fn ended(&mut self, question: QuestionId, rtt_us: Result<u32, FetchError>) {
            let address = self.probing.ended(&mut self.cx, question, &ProbeReport { rtt_us, took: 30 });
            assert_eq!(address, Some("192.0.2.7".parse().unwrap()));
        }

        /// Probes the next server; its name.
        fn probe(&mut self) -> Option<Host> {
            let server = self.next()?;
            self.begin(&server);
            let [(question, host)] = &self.store()[..] else { panic!("one probe goes out") };
            self.ended(*question, Ok(9_000));
            self.store();
            Some(host.clone())
        }

        fn told(&self) -> Vec<(Host, ProbeOutcome)> {
            let rows = self.probing.told(&self.survey.head.id).unwrap().rows;
            rows.into_iter().map(|row| (row.host, row.outcome)).collect()
        }
    }

    #[test]
    fn the_next_step_of_a_server_depends_on_what_is_known_of_its_address_and_owner() {
        let owner = AccessPoint([7; 32]);
        let at = |host: &Host| LocatedHost { host: host.clone(), address: "192.0.2.7".parse().unwrap(), valid_for: 1 };
        type Known = fn(LocatedHost) -> Lookup;
        let step = |lookup: Known, owner: Option<AccessPoint>| {
            let mut member = Member::new(1, &kept(SurveyState::Running, 1, 1));
            let host = member.next().unwrap().url.host();
            let step = member.probing.next_step(&mut member.cx, |asked| lookup(at(asked)), |_| owner);
            let sample = member.probing.samples.first_key_value().unwrap().1;
            let due = sample.due.first().map(|(due, _)| due.since(member.cx.now.moment));
            (step, due, sample.waits.get(&0).copied(), host)
        };
        let (found, due, wait, host) = step(|_| Lookup::Unknown, None);
        assert_eq!((found, due, wait), (ProbeStep::Find(host), Some(PROBE_SOON), Some(Wait::Address)));
        let nothing = |lookup: Known, owner| {
            let (step, due, wait, _) = step(lookup, owner);
            assert_eq!(step, ProbeStep::Nothing);
            (due, wait)
        };
        assert_eq!(nothing(|_| Lookup::Nowhere(ResolveError::TimedOut), None), (Some(PROBE_LATER), Some(Wait::Address)));
        assert_eq!(nothing(|_| Lookup::Later(ResolveError::TimedOut, Moment(1 << 40)), None).1, Some(Wait::Address));
        assert_eq!(nothing(|_| Lookup::Nowhere(ResolveError::NoSuchName), None), (None, None), "that is told of it");
        assert_eq!(nothing(Lookup::At, None), (Some(PROBE_SOON), Some(Wait::Turn)));
        let (asked, ..) = step(Lookup::At, Some(owner));
        assert_eq!(asked, ProbeStep::AskTurn(owner, "192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn a_server_whose_turn_has_come_is_probed_or_waits_for_its_budget() {
        for may in [true, false] {
            let mut member = Member::new(1, &kept(SurveyState::Running, 1, 1));
            let server = member.next().unwrap();
            let target = ProbeTarget { address: "192.0.2.7:443".parse().unwrap(), host: server.url.host(), secure: true };
            member.probing.wants_turn(server.clone(), target.clone());
            member.probing.turn_told(&member.cx, Some(Some(0)));
            let step = member.probing.next_step(&mut member.cx, |_| panic!("its address is known"), |_| None);
            assert_eq!(step, ProbeStep::Contact(server.clone(), target.clone()));
            member.probing.contact(&mut member.cx, &server, target, may);
            assert_eq!(member.store().len(), usize::from(may), "probes that go out");
            assert_eq!(member.probing.told(&member.survey.head.id).unwrap().waiting_for_budget, u32::from(!may));
        }
    }

    #[test]
    fn all_members_probe_the_same_servers_each_once_and_each_in_its_own_order() {
        let survey = kept(SurveyState::Running, 40, 12);
        let orders: Vec<Vec<Host>> = (1..=3)
            .map(|number| {
                let mut member = Member::new(number, &survey);
                std::iter::from_fn(|| member.probe()).collect()
            })
            .collect();
        let sets: Vec<BTreeSet<&Host>> = orders.iter().map(|order| order.iter().collect()).collect();
        assert!(sets.iter().all(|set| set.len() == 12 && *set == sets[0]), "{orders:?}");
        assert!(orders.iter().all(|order| order.len() == 12));
        assert_ne!(orders[0], orders[1]);
    }

    #[test]
    fn a_probe_goes_out_when_it_is_stored_that_it_begins_and_is_told_when_its_result_is_stored() {
        let mut member = Member::new(1, &kept(SurveyState::Running, 3, 3));
        let server = member.next().unwrap();
        member.begin(&server);
        let commands = member.cx.take_commands();
        let [Command::Store(StoreCommand::StoreSurveyProbes { write, slot: 3, .. })] = &commands[..] else { panic!("{commands:?}") };
        assert!(member.next().is_none(), "one at a time");
        assert!(member.told().is_empty());
        member.probing.stored(&mut member.cx, *write);
        let [(question, host)] = &member.store()[..] else { panic!("it goes out") };
        assert_eq!(member.told(), [(host.clone(), ProbeOutcome::UnderWay)]);
        assert_eq!(member.probing.ended(&mut member.cx, QuestionId(999), &ProbeReport { rtt_us: Ok(1), took: 1 }), None, "another's");
        member.ended(*question, Err(FetchError::ConnectTimeout));
        assert_eq!(member.told(), [(host.clone(), ProbeOutcome::UnderWay)], "what came of it is not durable yet");
        assert!(member.next().is_none());
        member.store();
        assert_eq!(member.told(), [(host.clone(), ProbeOutcome::NoAnswer)]);
    }

    #[test]
    fn a_start_probes_nothing_again_not_even_what_was_under_way() {
        let survey = kept(SurveyState::Running, 4, 4);
        let mut member = Member::new(1, &survey);
        let first = member.probe().unwrap();
        let server = member.next().unwrap();
        member.begin(&server);
        assert_eq!(member.store().len(), 1, "it goes out, and the process ends before its answer");
        let mut again = Member::restarted(1, &survey, member.disk);
        let told: BTreeMap<Host, ProbeOutcome> = again.told().into_iter().collect();
        let expected = [(first.clone(), ProbeOutcome::Answered), (server.url.host(), ProbeOutcome::Interrupted)];
        assert_eq!(told, expected.into());
        let rest: BTreeSet<Host> = std::iter::from_fn(|| again.probe()).collect();
        assert!(rest.len() == 2 && !rest.contains(&first) && !rest.contains(&server.url.host()), "{rest:?}");
        assert_eq!(again.probing.kept(), 4);
        assert!(Member::restarted(1, &survey, again.disk).next().is_none());
    }

    #[test]
    fn what_may_not_be_probed_now_waits_and_comes_later_and_others_come_meanwhile() {
        let mut member = Member::new(1, &kept(SurveyState::Running, 2, 2));
        let server = member.next().unwrap();
        member.probing.later(&member.cx, &server, Wait::Budget, 60_000);
        let other = member.probe().unwrap();
        assert_ne!(other, server.url.host());
        assert!(member.next().is_none());
        let told = member.probing.told(&member.survey.head.id).unwrap();
        assert_eq!((told.servers, told.waiting_for_budget, told.denied), (2, 1, 0));
        member.cx.now.moment = Moment(60_000);
        assert_eq!(member.next(), Some(server.clone()));
        member.probing.later(&member.cx, &server, Wait::Denied, 60_000);
        let told = member.probing.told(&member.survey.head.id).unwrap();
        assert_eq!((told.waiting_for_budget, told.denied), (0, 1));
        member.cx.now.moment = Moment(120_000);
        assert_eq!(member.probe(), Some(server.url.host()));
        assert_eq!(member.probing.told(&member.survey.head.id).unwrap().denied, 0);
    }

    #[test]
    fn the_owner_says_when_a_server_may_be_probed_and_is_asked_again_if_it_cannot_or_that_has_passed() {
        let survey = kept(SurveyState::Running, 1, 1);
        let mut member = Member::new(1, &survey);
        let server = member.next().unwrap();
        let target = || ProbeTarget { address: "192.0.2.7:443".parse().unwrap(), host: server.url.host(), secure: true };
        let mut now = 0;
        let cases = [
            (None, ASK_LATER),
            (Some(None), ASK_AGAIN),
            (Some(Some(MAX_WAIT + 1)), ASK_AGAIN),
            (Some(Some(9_000)), 9_000 + TURN + ASK_AGAIN),
        ];
        for (after, waits) in cases {
            member.probing.wants_turn(server.clone(), target());
            assert!(member.next().is_none() && member.probing.turn_came(&member.cx).is_none(), "it was not told yet");
            member.probing.turn_told(&member.cx, after);
            if after == Some(Some(9_000)) {
                // Nothing is looked at before the turn has passed: the machine slept.
                member.cx.now.moment = Moment(now + 9_000 + TURN);
                assert!(member.probing.turn_came(&member.cx).is_none());
            }
            now += waits;
            member.cx.now.moment = Moment(now - 1);
            assert!(member.next().is_none(), "{after:?}");
            member.cx.now.moment = Moment(now);
            assert_eq!(member.next(), Some(server.clone()), "{after:?}");
        }
        member.probing.wants_turn(server.clone(), target());
        member.probing.turn_told(&member.cx, Some(Some(500)));
        assert!(member.probing.turn_came(&member.cx).is_none());
        member.cx.now.moment = Moment(now + 500);
        assert_eq!(member.probing.turn_came(&member.cx), Some((server.clone(), target())));
        // Its survey is paused before its turn comes.
        member.probing.wants_turn(server.clone(), target());
        member.probing.turn_told(&member.cx, Some(Some(0)));
        member.cx.wishes = InEffect::at(member.cx.now.wall, [&kept(SurveyState::Paused, 1, 1)].into_iter());
        assert!(member.probing.turn_came(&member.cx).is_none());
    }

    #[test]
    fn a_server_without_an_address_is_done_and_nothing_goes_out() {
        let mut member = Member::new(1, &kept(SurveyState::Running, 1, 1));
        let server = member.next().unwrap();
        member.probing.begin(&mut member.cx, &server, None);
        assert!(member.store().is_empty());
        assert_eq!(member.told(), [(server.url.host(), ProbeOutcome::NoAddress)]);
        assert!(member.next().is_none());
    }

    #[test]
    fn a_probe_that_may_not_go_out_any_more_when_its_beginning_is_stored_is_cut_off() {
        for why in ["denied", "paused", "expelled"] {
            let mut member = Member::new(1, &kept(SurveyState::Running, 2, 2));
            let server = member.next().unwrap();
            member.begin(&server);
            match why {
                "denied" => drop(member.cx.settings.scope.denied.insert(server.url.host())),
                "paused" => member.cx.wishes = InEffect::at(member.cx.now.wall, [&kept(SurveyState::Paused, 2, 2)].into_iter()),
                _ => drop(member.cx.excluded.insert(member.cx.me, NotAdmitted::NoCertificate)),
            }
            assert!(member.store().is_empty(), "nothing goes out: {why}");
            assert_eq!(member.told(), [(server.url.host(), ProbeOutcome::Interrupted)]);
            assert!(!member.probing.is_busy());
        }
    }

    #[test]
    fn a_survey_that_is_paused_or_has_ended_probes_no_more_and_what_was_probed_stays() {
        for state in [SurveyState::Paused, SurveyState::Ended] {
            let mut member = Member::new(1, &kept(SurveyState::Running, 5, 5));
            member.probe().unwrap();
            let server = member.next().unwrap();
            member.begin(&server);
            let [(question, _)] = &member.store()[..] else { panic!("it goes out") };
            let changed = kept(state, 5, 5);
            member.cx.wishes = InEffect::at(member.cx.now.wall, [&changed].into_iter());
            member.probing.keep([&changed].into_iter(), &member.cx.me);
            // What is under way comes to its end.
            member.ended(*question, Ok(7));
            member.store();
            assert_eq!((member.next(), member.told().len()), (None, 2), "{state}");
            let resumed = kept(SurveyState::Running, 5, 5);
            member.cx.wishes = InEffect::at(member.cx.now.wall, [&resumed].into_iter());
            member.probing.keep([&resumed].into_iter(), &member.cx.me);
            assert_eq!(std::iter::from_fn(|| member.probe()).count(), 3, "{state}: the others, once");
        }
    }
}
