//! Is a subnet of ours crawled quickly enough to keep it? Its accesses are timed, and judged by the rule of migration.
//!
//! An access is some requests to the subnet's servers, download and evaluation together; the automaton's time counts accesses, not
//! seconds. What an access took here is measured; what it would take elsewhere is what is known of the ways, for all but the way is the
//! server's and the page's.

use crate::context::Context;
use crate::crawler::{Crawler, TICK};
use crate::migration::{
    Answer, Automaton, Candidate, Case, Families, Judgement, LoadPrice, Prior, ShedCandidate, Verdict, shed_load, twoma,
};
use nearcrawl_hierarchy::OrganisationId;
use nearcrawl_model::{
    access_point::AccessPoint,
    chronicle::Chronicle,
    fetch::{FetchError, FetchOutcome, FetchReport, ProbeKind},
    subnet::Subnet,
    summary::RollUp,
    time::Millis,
    view::Span,
};
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

/// Access points that are thought of beside the present one: the nearest, as far as is known.
const MAX_CANDIDATES: usize = 8;

/// What the latest access took here may be off by so much, as a share.
const ERROR_HERE: f64 = 0.1;

/// A way that is so much longer or shorter than was known is another one: as a share, and in microseconds.
const NEWS_OF_THE_WAY: f64 = 0.25;
const MIN_NEWS_US: f64 = 2_000.0;

/// How often an access point's load is looked at, in ticks: once a minute.
const LOAD_EVERY: u64 = 600;

/// Whoever is busy for less than this share of its time is not loaded at all: then only nearness counts.
const UNLOADED: f64 = 0.5;

/// By which rule subnets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// They stay where they are.
    None,
    /// The paper's (TWOMA §3).
    Twoma,
    /// Ours: [`Case`].
    Nearcrawl,
}

impl Rule {
    /// Its name in configurations and views.
    pub fn name(self) -> &'static str {
        match self {
            Rule::None => "none",
            Rule::Twoma => "twoma",
            Rule::Nearcrawl => "nearcrawl",
        }
    }
}

/// How subnets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// By which rule.
    pub rule: Rule,
    /// States of an arm, the paper's N.
    pub states: u8,
    /// Requests that make an access.
    pub requests_per_access: u32,
}

impl Default for Migration {
    fn default() -> Migration {
        Migration { rule: Rule::Nearcrawl, states: crate::migration::STATES, requests_per_access: 16 }
    }
}

/// Whose relatives a subnet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Holder(OrganisationId),
    Country([u8; 2]),
}

/// What is known of the speed of our subnets, and of our load.
#[derive(Debug, Default)]
pub(crate) struct Migrating {
    watched: BTreeMap<Subnet, Watched>,
    families: Families<Family>,
    arm: twoma::Arm<Subnet>,
    /// Requests under way, added up over so many ticks.
    under_way: u64,
    busy: f64,
    price: LoadPrice,
}

/// One subnet of ours.
#[derive(Debug)]
struct Watched {
    case: Case<AccessPoint>,
    /// The paper's automaton, which knows nothing of cases.
    automaton: Automaton,
    access: Access,
    /// What servers here need beside the way, in microseconds: the least that was seen.
    service_us: Option<f64>,
    /// What connecting took the last time, in microseconds.
    connected_us: Option<f64>,
    /// How the last access was judged.
    judged: Option<Judgement<AccessPoint>>,
    /// The same in a sentence.
    said: String,
    /// How long requests took since the load was looked at, in microseconds.
    spent_us: f64,
}

/// An access that is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    requests: u32,
    took_us: f64,
    least_first_byte_us: Option<f64>,
}

impl Crawler {
    /// A request to a server of ours ended: it counts towards the subnet's present access.
    pub(crate) fn time_access(&mut self, subnet: Subnet, report: &FetchReport) {
        let Migration { rule, states, requests_per_access } = self.context.settings.migration;
        if rule == Rule::None || self.membership.standings().is_empty() {
            return;
        }
        let watched = self.migration.judge.watched.entry(subnet).or_insert_with(|| Watched::new(states));
        watched.spent_us += watched.access.add(report);
        watched.connected_us = report.connect_us.map(f64::from).or(watched.connected_us);
        if watched.access.requests >= requests_per_access {
            self.judge_access(subnet);
        }
    }

    /// A tree of a subnet of ours is done for this time: what was measured until now is an access, unless it is next to nothing.
    pub(crate) fn end_access(&mut self, subnet: Subnet) {
        let measured = self.migration.judge.watched.get(&subnet).map_or(0, |watched| watched.access.requests);
        if measured >= self.context.settings.migration.requests_per_access.div_ceil(4) {
            self.judge_access(subnet);
        }
    }

    pub(crate) fn judge_access(&mut self, subnet: Subnet) {
        let Some(watched) = self.migration.judge.watched.get_mut(&subnet) else { return };
        let access = std::mem::take(&mut watched.access);
        if access.requests == 0 || access.took_us <= 0.0 {
            return;
        }
        self.context.counters.accesses_judged += 1;
        match self.context.settings.migration.rule {
            Rule::None => {}
            Rule::Twoma => self.judge_by_the_paper(subnet, &access),
            Rule::Nearcrawl => self.judge_by_case(subnet, &access),
        }
    }

    /// The paper's rule: against the average of what is ours, and from the boundary to anybody (TW-10..TW-14).
    pub(crate) fn judge_by_the_paper(&mut self, subnet: Subnet, access: &Access) {
        let mut chance = self.chance_of(&subnet);
        let live = self.live();
        self.migration.judge.arm.note(subnet, access.took_us);
        let (answer, average) = (self.migration.judge.arm.answer(&subnet), self.migration.judge.arm.average().unwrap_or(access.took_us));
        let Some(watched) = self.migration.judge.watched.get_mut(&subnet) else { return };
        let leaves = watched.automaton.answer(answer);
        let compared = format!("{} against {} on average here", per_request(access.took_us), per_request(average));
        watched.said = match answer {
            Answer::Reward => format!("rewarded: its access took {compared}"),
            Answer::Penalty => format!("penalised: its access took {compared}"),
            Answer::Neither => format!("neither rewarded nor penalised: its access took {compared}"),
        };
        let why = watched.said.clone();
        if leaves && let Some(to) = twoma::elsewhere(self.context.me, &live, &mut chance) {
            self.hand_over(subnet, to, why);
        }
    }

    /// Ours: against what the subnet would take at the nearest others.
    pub(crate) fn judge_by_case(&mut self, subnet: Subnet, access: &Access) {
        let family = self.family_of(&subnet);
        let scale = self.migration.judge.families.expect(&family);
        let candidates = self.candidates_for(subnet, access);
        let mut chance = self.chance_of(&subnet);
        let requests = f64::from(access.requests);
        let me = self.context.me;
        let Some(watched) = self.migration.judge.watched.get_mut(&subnet) else { return };
        let changed = watched.case.accessed(me, access.took_us / requests / 1e6, requests, &scale);
        let judgement = watched.case.judge(me, &candidates, &scale, &mut chance);
        watched.judged = Some(judgement);
        watched.said = sentence(&judgement, changed);
        let why = watched.said.clone();
        if let Some((level, noise)) = watched.case.level_and_noise(&candidates, &scale) {
            self.migration.judge.families.tell(&family, level, noise);
        }
        if let Verdict::Move(to) = judgement.verdict {
            self.hand_over(subnet, to, why);
        }
    }

    /// The present owner and the few who are nearest, with what is foretold of them: all that the way does not change is as it is here.
    pub(crate) fn candidates_for(&mut self, subnet: Subnet, access: &Access) -> Vec<Candidate<AccessPoint>> {
        let live = self.live();
        let foretold = self.delegation.knowledge().foretell(&self.context.hierarchy, subnet, &live);
        let requests = f64::from(access.requests);
        let here = access.took_us / requests;
        let least = access.least_first_byte_us.unwrap_or(here);
        let known = self.delegation.measured_by(self.context.me, &subnet).map(f64::from);
        let Some(watched) = self.migration.judge.watched.get_mut(&subnet) else { return Vec::new() };
        // A probe by `http-head` waits for the server, as any request does; one by `tcp` is what connecting takes.
        let way = match self.context.settings.probe {
            ProbeKind::HttpHead => Some((least, 0.0)),
            ProbeKind::Tcp => watched.connected_us.or(known).map(|way| (way, (least - way).max(0.0))),
        };
        if let Some((way, service)) = way {
            let service = watched.service_us.map_or(service, |known| known.min(service));
            watched.service_us = Some(service);
            // The ways change: what the others hear of this one must be what it is now.
            let way_now = way.max(least - service);
            if known.is_none_or(|known| (way_now - known).abs() > NEWS_OF_THE_WAY * known + MIN_NEWS_US) {
                self.delegation.way_changed(&self.context, subnet, way_now as u32);
            }
        }
        let beside_the_way = (here - least).max(0.0) + watched.service_us.unwrap_or(0.0);
        let price = |who: &AccessPoint| {
            if *who == self.context.me {
                self.migration.judge.price
            } else {
                self.report.roll_up_of(who).map(|(told, _)| price_told(told)).unwrap_or_default()
            }
        };
        let at = |who: AccessPoint, us: f64, error: f64| Candidate {
            arm: who,
            prior: Some(Prior { seconds: us / 1e6, error }),
            price: price(&who),
        };
        let others = foretold.iter().filter(|known| known.access_point != self.context.me).take(MAX_CANDIDATES);
        let others = others.map(|known| at(known.access_point, beside_the_way + known.rtt_us, known.error));
        std::iter::once(at(self.context.me, here, ERROR_HERE)).chain(others).collect()
    }

    pub(crate) fn family_of(&self, subnet: &Subnet) -> Vec<Family> {
        let Some(position) = self.context.hierarchy.locate(subnet.first()) else { return Vec::new() };
        let country = self.context.hierarchy.country(position).as_bytes().try_into().ok().map(Family::Country);
        std::iter::once(Family::Holder(self.context.hierarchy.organisation(position))).chain(country).collect()
    }

    /// Chance that is the same whenever the same happens.
    pub(crate) fn chance_of(&self, subnet: &Subnet) -> StdRng {
        let text = format!("{subnet} {} {}", self.context.me, self.context.counters.requests);
        StdRng::seed_from_u64(self.context.secret.of(&text).0)
    }

    /// What a subnet of ours learnt, to travel with it.
    pub(crate) fn learnt_of(&self, subnet: &Subnet) -> Vec<u8> {
        let watched = self.migration.judge.watched.get(subnet).filter(|watched| watched.case.accesses() > 0);
        watched.and_then(|watched| postcard::to_stdvec(&watched.case).ok()).unwrap_or_default()
    }

    /// What was learnt of a subnet that has just become ours, or is ours again after a restart.
    pub(crate) fn learn_from_chronicle(&mut self, subnet: Subnet, chronicle: &Chronicle) {
        if let Ok(mut case) = postcard::from_bytes::<Case<AccessPoint>>(&chronicle.learnt) {
            if chronicle.holdings.last().is_none_or(|last| last.owner != self.context.me) {
                case.moved();
            }
            let states = self.context.settings.migration.states;
            self.migration.judge.watched.insert(subnet, Watched { case, ..Watched::new(states) });
        }
    }

    /// Whoever we wanted to have a subnet would not, or could not.
    pub(crate) fn move_failed(&mut self, subnet: Subnet, to: AccessPoint) {
        if let Some(watched) = self.migration.judge.watched.get_mut(&subnet) {
            watched.case.refused(to);
        }
    }

    /// A subnet is not ours any more.
    pub(crate) fn forget_accesses(&mut self, subnet: &Subnet) {
        self.migration.judge.watched.remove(subnet);
        self.migration.judge.arm.forget(subnet);
    }

    /// Looks at how busy we are, and what a second of our time is worth therefore.
    pub(crate) fn tick_load(&mut self) {
        self.migration.judge.under_way += self.crawl.scheduler.busy() as u64;
        if !self.context.rounds.is_multiple_of(LOAD_EVERY) {
            return;
        }
        let most = self.crawl.scheduler.politeness().parallel.max(1) as f64;
        let busy = std::mem::take(&mut self.migration.judge.under_way) as f64 / LOAD_EVERY as f64 / most;
        let others = self.live().into_iter().filter(|who| *who != self.context.me);
        let told = others.filter_map(|who| self.report.roll_up_of(&who).map(|(told, _)| (who, f64::from(told.busy_permille) / 1000.0)));
        let told: BTreeMap<AccessPoint, f64> = told.collect();
        let all = told.values().map(|share| share.clamp(UNLOADED, 1.0)).sum::<f64>() + busy.max(UNLOADED);
        let average = all / (told.len() + 1) as f64;
        self.migration.judge.busy = busy;
        self.migration.judge.price = match busy < UNLOADED {
            true => self.migration.judge.price.relaxed(),
            false => self.migration.judge.price.after(busy, average),
        };
        self.report.mark_changed();
        self.shed_excess_load(busy, average, told);
    }

    /// If we are too busy, some subnets go to others who are not, as far as they told.
    pub(crate) fn shed_excess_load(&mut self, busy: f64, average: f64, mut told: BTreeMap<AccessPoint, f64>) {
        let slots_us = (LOAD_EVERY * TICK) as f64 * 1000.0 * self.crawl.scheduler.politeness().parallel.max(1) as f64;
        let spent = self
            .migration
            .judge
            .watched
            .iter_mut()
            .map(|(subnet, watched)| (*subnet, std::mem::take(&mut watched.spent_us), watched.judged));
        let candidates = spent.filter_map(|(subnet, spent_us, judged)| {
            let Judgement { seconds, rival: Some(rival), .. } = judged? else { return None };
            let here = spent_us / slots_us;
            Some(ShedCandidate { unit: subnet, arm: rival.arm, here, there: here * rival.seconds / seconds, worth: rival.worth })
        });
        let candidates: Vec<_> = candidates.collect();
        if self.context.settings.migration.rule != Rule::Nearcrawl || busy < UNLOADED {
            return;
        }
        let leaving = shed_load(busy, average, candidates, |to, there| {
            let Some(share) = told.get_mut(to) else { return false };
            let room = *share + there <= average;
            *share += if room { there } else { 0.0 };
            room
        });
        for (subnet, to) in leaving {
            let why =
                format!("{} is too busy: {:.0} % of its time, the swarm {:.0} %", self.context.me.short(), busy * 100.0, average * 100.0);
            self.hand_over(subnet, to, why);
        }
    }
}

impl Migrating {
    /// How a subnet of ours was judged last, in a sentence.
    pub(crate) fn last_judgement(&self, cx: &Context, subnet: &Subnet) -> Option<String> {
        let watched = self.watched.get(subnet).filter(|watched| !watched.said.is_empty())?;
        let automaton = if cx.settings.migration.rule == Rule::Twoma { watched.automaton } else { watched.case.automaton() };
        Some(format!("{} (state {} of {})", watched.said, automaton.state() + 1, automaton.states()))
    }

    /// Our load and our price in thousandths, as they are told.
    pub(crate) fn load_told(&self) -> (u32, u32) {
        let permille = |share: f64| (share * 1000.0).round() as u32;
        (permille(self.busy), permille(self.price.factor()))
    }
}

fn price_told(told: &RollUp) -> LoadPrice {
    LoadPrice::of(f64::from(told.price_permille) / 1000.0)
}

fn per_request(us: f64) -> String {
    Span((us / 1000.0).round() as Millis).to_string()
}

/// A judgement as people read it.
fn sentence(judgement: &Judgement<AccessPoint>, changed: bool) -> String {
    let here = per_request(judgement.seconds * 1e6);
    let news = if changed { "the network changed; " } else { "" };
    match (judgement.verdict, judgement.rival) {
        (Verdict::Neither, _) | (_, None) => format!("{news}a request takes {here} here, and there is nothing to compare it with"),
        (verdict, Some(rival)) => {
            let there = per_request(rival.seconds * 1e6);
            let known = if rival.tried { "as it did before" } else { "as far as is foretold" };
            let said = if verdict == Verdict::Reward { "rewarded" } else { "penalised" };
            format!("{news}{said}: a request takes {here} here and would take {there} at {}, {known}", rival.arm.short())
        }
    }
}

impl Watched {
    fn new(states: u8) -> Watched {
        Watched {
            case: Case::new(states),
            automaton: Automaton::new(states),
            access: Access::default(),
            service_us: None,
            connected_us: None,
            judged: None,
            said: String::new(),
            spent_us: 0.0,
        }
    }
}

/// Whether a failure says that the way, or the server, is slow.
fn is_slowness(failure: FetchError) -> bool {
    use FetchError::{BodyTimeout, ConnectTimeout, HeadTimeout, TlsTimeout};
    matches!(failure, ConnectTimeout | TlsTimeout | HeadTimeout | BodyTimeout)
}

impl Access {
    /// Counts a request, if it says something of how quick the subnet is: that nobody listens there does not, that nobody answers does.
    /// Returns for how many microseconds it counts.
    fn add(&mut self, report: &FetchReport) -> f64 {
        if let FetchOutcome::Failed(failure) = &report.outcome
            && !is_slowness(*failure)
        {
            return 0.0;
        }
        let first_byte = report.first_byte_us.map(f64::from);
        let took = (report.access() as f64 * 1000.0).max(first_byte.unwrap_or(0.0));
        self.requests += 1;
        self.took_us += took;
        if let Some(first_byte) = first_byte {
            self.least_first_byte_us = Some(self.least_first_byte_us.map_or(first_byte, |least| least.min(first_byte)));
        }
        took
    }
}
