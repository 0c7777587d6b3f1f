//! The operator's limits: reads the clock and the meter, tells the crawler, and keeps what was used.

pub(super) mod disk_limit;
pub(crate) mod memory_limit;
pub(crate) mod metered_line;
pub(super) mod usage_marks;

use crate::io::{fetcher::Wire, resolver::Resolver, swarm::SwarmMeter};
use crate::node::{
    allowance::{
        disk_limit::{DiskLimit, MIN_FREE},
        memory_limit::MemoryLimit,
        metered_line::MeteredLine,
    },
    config::{Config, TellAllowance},
    query::{PauseReply, Reply},
};
use jiff::{Timestamp, tz::TimeZone};
use nearcrawl_core::{
    allowance::{AllKept, Allowance, Kept, Limits, LocalTime, Outlook},
    event::{DiskRoom, Event},
};
use nearcrawl_model::{
    allowance::{AllowanceView, Reserve, Rest},
    profile::{AllowanceState, ByteLimit, MemberName, Profile, ToldAllowance, UsedShare},
    time::{Millis, WallTime},
    view::counted,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How often clock and meter are read. Bytes that run out tell so by themselves.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is under way when a pause begins, or the hours end, may take so long.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// After so long what could not be stored is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Programs that are no members get one byte in so many of those that are for members.
const SHARE_OF_READERS: u64 = 4;

/// Whoever stays near its limit of memory, or on a metered line, gives away what has work within so many milliseconds.
const RELIEVED_FOR: Millis = 3_600_000;

/// Replies to operators that wait for the disk.
const MAX_REPLIES: usize = 64;

/// The allowance of a running daemon.
pub struct OperatorAllowance {
    allowance: Allowance,
    zone: TimeZone,
    wire: Arc<Wire>,
    /// What the meter showed at last.
    seen: u64,
    /// What the crawler was told at last.
    told: Option<Rest>,
    outlook: Outlook,
    swarm: SwarmAllowance,
    memory: MemoryLimit,
    disk: DiskLimit,
    line: MeteredLine,
    /// Whether subnets are given away before a long rest, or in one that was not known in advance.
    departs: bool,
    rate: Option<u64>,
    telling: Telling,
    /// Whether no bytes were left.
    is_spent: bool,
    resting: Resting,
    /// When its hours end, if that is within a minute.
    ends: Option<Instant>,
    /// Whether something is being stored, and when what could not be stored is tried again.
    keeping: bool,
    again: Option<Instant>,
    replies: Vec<Reply<PauseReply>>,
}

/// What follows from a look.
#[derive(Debug, Default)]
pub struct Look {
    /// For the crawler: what has changed.
    pub events: Vec<Event>,
    /// Requests under way are to be cancelled.
    pub stop: bool,
    /// To be stored.
    pub keep: Option<AllKept>,
}

/// The bytes among members. They are counted, and never waited for: leases and votes go on. What strangers move counts among them up to
/// their share, and no further: they alone cannot spend what is for members.
struct SwarmAllowance {
    allowance: Allowance,
    /// Of programs that are no members, and of peers of which that is not known.
    readers: Allowance,
    readers_limit: Option<u64>,
    /// None in a process that is no member.
    meter: Option<Arc<SwarmMeter>>,
    /// What the meter showed at last: all bytes, and those of strangers.
    seen: (u64, u64),
    limit: Option<u64>,
}

impl SwarmAllowance {
    fn new(limit: Option<u64>, (kept, kept_of_readers): (Option<Kept>, Option<Kept>), meter: Option<Arc<SwarmMeter>>) -> SwarmAllowance {
        let readers_limit = limit.map(|limit| limit / SHARE_OF_READERS);
        let of = |per_day, kept| Allowance::new(Limits { per_day, ..Limits::default() }, kept);
        SwarmAllowance {
            allowance: of(limit, kept),
            readers: of(readers_limit, kept_of_readers),
            readers_limit,
            meter,
            seen: (0, 0),
            limit,
        }
    }

    fn look(&mut self, clock: LocalTime) {
        // Strangers' first: they are counted after they were counted among all.
        let of_strangers = self.meter.as_ref().map_or(0, |meter| meter.of_strangers());
        let all = self.meter.as_ref().map_or(0, |meter| meter.moved());
        let (new, new_of_strangers) = (all.saturating_sub(self.seen.0), of_strangers.saturating_sub(self.seen.1));
        self.seen = (all, of_strangers);
        self.readers.moved(0, clock);
        let before = self.of_readers();
        self.readers.moved(new_of_strangers, clock);
        let within_share = self.of_readers().saturating_sub(before);
        self.allowance.moved(new.saturating_sub(new_of_strangers).saturating_add(within_share), clock);
        let (is_spent, readers_spent) = (self.is_spent(), self.readers_spent());
        if let Some(meter) = &self.meter {
            meter.spend(is_spent);
            meter.spend_readers(readers_spent);
        }
    }

    /// Bytes of strangers today that count among all.
    fn of_readers(&self) -> u64 {
        self.readers.view().day_bytes.min(self.readers_limit.unwrap_or(u64::MAX))
    }

    fn readers_spent(&self) -> bool {
        self.readers.left() == 0
    }

    fn is_spent(&self) -> bool {
        self.allowance.left() == 0
    }
}

/// What other members are told, as far as the operator chose so.
struct Telling {
    name: Option<MemberName>,
    allowance: TellAllowance,
    /// What the crawler was told at last.
    told: Profile,
}

impl Telling {
    fn new(config: &Config) -> Telling {
        Telling { name: config.swarm.name.clone(), allowance: config.swarm.tell_allowance, told: Profile::default() }
    }

    /// What is to be told now, if it is not what was told.
    fn next(&mut self, rest: Option<&Rest>, swarm_spent: bool, view: &AllowanceView) -> Option<Profile> {
        let state = match rest {
            // A state of its own would be a value that members of today cannot read.
            Some(Rest::Paused { .. } | Rest::Metered { .. }) => AllowanceState::Paused,
            Some(Rest::OutsideHours { .. }) => AllowanceState::OutsideHours,
            Some(Rest::DaySpent { .. }) => AllowanceState::DaySpent,
            Some(Rest::MonthSpent { .. }) => AllowanceState::MonthSpent,
            Some(Rest::MemoryFull { .. }) => AllowanceState::MemoryFull,
            None if swarm_spent => AllowanceState::SwarmSpent,
            None => AllowanceState::WithinLimits,
        };
        let used = || {
            let limits = [
                UsedShare::new(ByteLimit::CrawlDay, view.day_bytes, view.day_limit_bytes),
                UsedShare::new(ByteLimit::CrawlMonth, view.month_bytes, view.month_limit_bytes),
                UsedShare::new(ByteLimit::SwarmDay, view.swarm_day_bytes, view.swarm_day_limit_bytes),
            ];
            limits.into_iter().flatten().collect()
        };
        let allowance = match self.allowance {
            TellAllowance::Nothing => None,
            TellAllowance::State => Some(ToldAllowance { state, used: Vec::new() }),
            TellAllowance::Shares => Some(ToldAllowance { state, used: used() }),
        };
        let profile = Profile { name: self.name.clone(), allowance };
        let is_new = profile != self.told;
        self.told.clone_from(&profile);
        is_new.then_some(profile)
    }
}

/// Since when nothing is to be asked, by the operator's order or the hours.
#[derive(Debug, Default)]
struct Resting {
    since: Option<Instant>,
    stopped: bool,
}

impl Resting {
    /// Whether what is still under way is to be called off now: said once for each rest. On a line whose bytes cost money that is at once, in a
    /// pause, too.
    fn is_over(&mut self, rest: Option<&Rest>, is_metered: bool, now: Instant) -> bool {
        let within = match rest {
            Some(Rest::Paused { .. } | Rest::OutsideHours { .. } | Rest::Metered { .. }) if is_metered => Duration::ZERO,
            Some(Rest::Paused { .. } | Rest::OutsideHours { .. }) => ENDS_WITHIN,
            _ => {
                *self = Resting::default();
                return false;
            }
        };
        let since = *self.since.get_or_insert(now);
        let is_over = !self.stopped && now.saturating_duration_since(since) >= within;
        self.stopped |= is_over;
        is_over
    }
}

impl OperatorAllowance {
    /// With what was kept at the last stop.
    pub fn new(config: &Config, kept: AllKept, wire: Arc<Wire>, meter: Option<Arc<SwarmMeter>>) -> OperatorAllowance {
        let given = &config.allowance;
        let limits = Limits {
            per_day: given.crawl_per_day,
            per_month: given.crawl_per_month,
            hours: given.hours.clone(),
            departs_before: u16::try_from(given.hand_over_before.as_secs() / 60).unwrap_or(u16::MAX),
        };
        let swarm = SwarmAllowance::new(given.swarm_per_day, (kept.swarm, kept.readers), meter);
        let zone = given.time_zone.clone().unwrap_or_else(TimeZone::system);
        let allowance = Allowance::new(limits, kept.crawl);
        let (outlook, rate) = (Outlook::default(), given.crawl_rate);
        OperatorAllowance {
            allowance,
            zone,
            wire,
            seen: 0,
            told: None,
            outlook,
            swarm,
            memory: MemoryLimit::new(given.memory),
            disk: DiskLimit::new(given.disk),
            line: MeteredLine::new(given.metered_interfaces.clone()),
            departs: !given.hand_over_before.is_zero(),
            rate,
            telling: Telling::new(config),
            is_spent: false,
            resting: Resting::default(),
            ends: None,
            keeping: false,
            again: None,
            replies: Vec::new(),
        }
    }

    /// Connections are counted by another meter from now on, and the crawler is a new one.
    pub fn begin_anew(&mut self, wire: Arc<Wire>) {
        (self.wire, self.seen, self.told, self.outlook) = (wire, 0, None, Outlook::default());
        self.telling.told = Profile::default();
    }

    /// Returns when the bytes that may be moved run out: the meter is to be read at once.
    pub fn running_out(&self) -> impl Future<Output = ()> + use<> {
        let wire = Arc::clone(&self.wire);
        async move { wire.running_out().await }
    }

    /// When its hours end, if that is within a minute: the clock is to be read just then.
    pub fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// Reads the clock and the meter.
    pub fn look(&mut self, wall: WallTime, now: Instant) -> Look {
        self.memory.look(now);
        let full = self.memory.full().map(|limit| Rest::MemoryFull { limit });
        // Before a pause, hours and bytes: only whoever rests because of its memory takes no URLs in, and gives subnets away.
        self.line.look(now);
        let by_order = self.read(wall);
        let rest = full.or_else(|| by_order.clone());
        let may_keep = !self.keeping && self.again.is_none_or(|again| again <= now);
        let due = |allowance: &mut Allowance| if may_keep { allowance.due() } else { None };
        let (swarm, readers) = (due(&mut self.swarm.allowance), due(&mut self.swarm.readers));
        let keep = AllKept { crawl: due(&mut self.allowance), swarm, readers }.any();
        self.keeping |= keep.is_some();
        self.wire.allow(self.allowance.granted());
        // Whatever else it rests for: what is under way waits for bytes that do not come.
        let is_spent = self.allowance.left() == 0;
        self.wire.close(is_spent);
        // What is under way when a pause or the night begins may end; what is slow, or waits for the rate, is asked for again afterwards.
        let stop = (is_spent && !self.is_spent) || self.resting.is_over(by_order.as_ref(), self.line.interface().is_some(), now);
        self.is_spent = is_spent;
        // What the crawler has ordered by then may still wait for its turn.
        let end = if rest.is_some() { Some(WallTime(0)) } else { self.allowance.ends_at(wall) };
        self.wire.begin_until(end);
        self.ends = end.filter(|end| *end > wall).map(|end| now + Duration::from_millis(end.0 - wall.0));
        let mut events = Vec::new();
        // While it rests there is nothing to foretell.
        let foretold = if rest.is_none() { self.allowance.back_at(wall) } else { None };
        // Whoever stays near its limit of memory or of the disk has too much work, and gives some away; whoever stays on a metered line can do none.
        let is_paused = matches!(rest, Some(Rest::Paused { .. }));
        let has_much = self.memory.stays_nearly_full(now) || self.disk.stays_near(now);
        let stays = has_much || (self.departs && !is_paused && self.line.stays(now));
        let stays_near = stays.then_some(WallTime(wall.0.saturating_add(RELIEVED_FOR)));
        let back_at = foretold.or_else(|| self.outlook.back_at.filter(|back| stays_near.is_some() && *back > wall)).or(stays_near);
        let (memory_nearly_full, disk_nearly_full) = (self.memory.nearly_full().is_some(), self.disk.nearly_reached().is_some());
        let outlook = Outlook { back_at, swarm_spent: self.swarm.is_spent(), memory_nearly_full, disk_nearly_full };
        if rest != self.told {
            events.push(Event::Rest(rest.clone()));
        }
        if outlook != self.outlook {
            events.push(Event::Outlook(outlook));
        }
        (self.told, self.outlook) = (rest, outlook);
        let view = self.view();
        let profile = self.telling.next(self.told.as_ref(), outlook.swarm_spent, &view);
        events.extend(profile.map(Event::Profile));
        Look { events, stop, keep }
    }

    /// Reads the meters and the clock. Why nothing may be asked, if so.
    fn read(&mut self, wall: WallTime) -> Option<Rest> {
        let (moved, clock) = (self.wire.moved(), local(&self.zone, wall));
        self.allowance.moved(moved.saturating_sub(self.seen), clock);
        self.seen = moved;
        self.swarm.look(clock);
        let rest = self.allowance.rest(wall);
        // An operator's pause is told first: only its end is up to the operator.
        let metered = self.line.interface().filter(|_| !matches!(rest, Some(Rest::Paused { .. })));
        metered.map(|interface| Rest::Metered { interface: interface.to_owned() }).or(rest)
    }

    /// The operator pauses it for so long, or until it is resumed. The reply follows when that is stored.
    pub fn pause(&mut self, wall: WallTime, length: Option<Millis>, reply: Reply<PauseReply>) {
        self.allowance.pause(length.map(|length| WallTime(wall.0.saturating_add(length))));
        self.reply(reply);
    }

    /// The operator has it go on.
    pub fn resume(&mut self, reply: Reply<PauseReply>) {
        self.allowance.resume();
        self.reply(reply);
    }

    fn reply(&mut self, reply: Reply<PauseReply>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push(reply);
        } else {
            let _ = reply.send(Err("the daemon is busy: say it again".to_owned()));
        }
    }

    /// What was to be kept is, or is not; or it could not be tried. Then it is tried again after a while.
    pub fn kept(&mut self, result: Result<(), String>, now: Instant) {
        self.keeping = false;
        let failed_before = self.again.is_some();
        self.again = result.is_err().then(|| now + TRY_AGAIN);
        match &result {
            Ok(()) => {
                self.allowance.has_kept();
                self.swarm.allowance.has_kept();
                self.swarm.readers.has_kept();
            }
            Err(why) => {
                self.allowance.has_not_kept();
                self.swarm.allowance.has_not_kept();
                self.swarm.readers.has_not_kept();
                if !failed_before {
                    tracing::warn!("how much of the allowance is used could not be stored, and is tried again every few seconds: {why}");
                }
            }
        }
        if result.is_ok() && self.allowance.has_unkept_pause() {
            // It was said while something older was being stored.
            return;
        }
        self.answer(&result);
    }

    /// Whether a reply waits and nothing is being stored: the same was said before.
    pub fn answer_repeated(&mut self) {
        if !self.keeping && !self.allowance.has_unkept_pause() {
            self.answer(&Ok(()));
        }
    }

    fn answer(&mut self, result: &Result<(), String>) {
        let view = self.view();
        for reply in self.replies.drain(..) {
            // A caller that has stopped waiting is no error.
            let _ = reply.send(result.clone().map(|()| view.clone()));
        }
    }

    /// At the end: nothing is moved any more. What is to be stored.
    pub fn end(&mut self, wall: WallTime) -> Option<AllKept> {
        self.wire.allow(0);
        self.read(wall);
        let (swarm, readers) = (self.swarm.allowance.at_the_end(), self.swarm.readers.at_the_end());
        let kept = AllKept { crawl: self.allowance.at_the_end(), swarm, readers }.any();
        self.keeping |= kept.is_some();
        kept
    }

    /// The state directory takes so many bytes, and so many are free on its disk. Whether there is room for more.
    pub fn disk_measured(&mut self, used: u64, free: u64, now: Instant) -> DiskRoom {
        self.disk.measured(used, now);
        match self.disk.reached() {
            _ if free < MIN_FREE => DiskRoom::LittleFree,
            Some(limit) => DiskRoom::LimitReached(limit),
            None => DiskRoom::Enough,
        }
    }

    /// Whether nothing may be asked of anybody now, as the crawler was told.
    pub fn is_resting(&self) -> bool {
        self.told.is_some()
    }

    /// Whether something is being stored.
    pub fn is_keeping(&self) -> bool {
        self.keeping
    }

    /// What people are told of it.
    pub fn view(&self) -> AllowanceView {
        let swarm = self.swarm.allowance.view();
        let ((memory_bytes, memory_limit_bytes), (disk_bytes, disk_limit_bytes)) = (self.memory.view(), self.disk.view());
        AllowanceView {
            memory_bytes,
            memory_limit_bytes,
            disk_bytes,
            disk_limit_bytes,
            metered_interface: self.line.interface().map(str::to_owned),
            rate_limit_bytes: self.rate,
            swarm_day_bytes: swarm.day_bytes,
            swarm_day_limit_bytes: swarm.day_limit_bytes,
            swarm_month_bytes: swarm.month_bytes,
            readers_day_bytes: self.swarm.readers.view().day_bytes,
            readers_day_limit_bytes: self.swarm.readers_limit,
            ..self.allowance.view()
        }
    }

    /// The same, with what name servers were asked, what the limits keep it from, and how many transfers are under way although it rests.
    pub fn whole_view(&self, resolver: &Resolver, wall: WallTime, transfers: u64) -> AllowanceView {
        let (dns_questions, dns_questions_delayed) = resolver.questions();
        let spent = self.swarm.limit.filter(|_| self.outlook.swarm_spent).map(|limit| Reserve::SwarmSpent { limit });
        let of_readers = self.swarm.readers_limit.filter(|_| self.swarm.readers_spent()).map(|limit| Reserve::ReadersSpent { limit });
        let memory = self.memory.nearly_full().map(|limit| Reserve::MemoryNearlyFull { limit });
        let disk = self.disk.nearly_reached().map(|limit| Reserve::DiskNearlyFull { limit });
        let foretold = self.outlook.back_at.filter(|_| memory.is_none() && disk.is_none());
        let departing = foretold.map(|back| match self.line.interface() {
            Some(_) => Reserve::GivesAway,
            None => Reserve::Departing { back_in: back.0.saturating_sub(wall.0) },
        });
        let still = self.resting.since.filter(|_| transfers > 0).map(|_| {
            let (is, within) = (if transfers == 1 { "is" } else { "are" }, ENDS_WITHIN.as_secs());
            format!(
                "{} {is} still under way: what has not ended {within} s after the rest began is called off, and asked for again",
                counted(transfers, "transfer")
            )
        });
        let notes_text = still
            .into_iter()
            .chain(spent.into_iter().chain(of_readers).chain(memory).chain(disk).chain(departing).map(|reserve| reserve.to_string()))
            .collect();
        AllowanceView { dns_questions, dns_questions_delayed, notes_text, ..self.view() }
    }
}

/// What the clock on the wall shows in a time zone.
fn local(zone: &TimeZone, wall: WallTime) -> LocalTime {
    let timestamp = i64::try_from(wall.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    let shown = timestamp.to_zoned(zone.clone());
    let seconds = timestamp.as_second() + i64::from(shown.offset().seconds());
    let day = seconds.div_euclid(86_400);
    // The first of January 1970 was a Thursday.
    let weekday = (day + 3).rem_euclid(7);
    let minute = weekday * 1_440 + seconds.rem_euclid(86_400) / 60;
    let month = i64::from(shown.year()) * 12 + i64::from(shown.month());
    LocalTime { day, month, minute: u16::try_from(minute).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(zone: &str, text: &str) -> LocalTime {
        let timestamp: Timestamp = text.parse().unwrap();
        local(&TimeZone::get(zone).unwrap(), WallTime(timestamp.as_millisecond() as u64))
    }

    /// A start with 16 MiB a day for the swarm.
    fn begin(kept: AllKept) -> (OperatorAllowance, Arc<SwarmMeter>) {
        let text = "[allowance]\nswarm_per_day = \"16MiB\"\ntime_zone = \"UTC\"";
        let config = Config::parse(text, std::path::Path::new("node.toml")).unwrap();
        let meter: Arc<SwarmMeter> = Arc::default();
        (OperatorAllowance::new(&config, kept, Arc::default(), Some(Arc::clone(&meter))), meter)
    }

    #[test]
    fn bytes_among_members_are_spent_once_a_day_across_starts_and_the_crawler_and_the_swarm_hear_of_it() {
        let (mut allowance, meter) = begin(AllKept::default());
        let (wall, now) = (WallTime(1_780_000_000_000), Instant::now());
        let told = |events: &[Event]| {
            events.iter().rev().find_map(|event| if let Event::Outlook(outlook) = event { Some(outlook.swarm_spent) } else { None })
        };
        let mut disk = allowance.look(wall, now).keep.unwrap();
        allowance.kept(Ok(()), now);
        meter.add(10 << 20, true);
        let look = allowance.look(wall, now);
        assert_eq!((told(&look.events), meter.is_spent()), (None, false));
        disk.swarm = look.keep.unwrap().swarm;
        allowance.kept(Ok(()), now);
        assert!((10 << 20..12 << 20).contains(&allowance.view().swarm_day_bytes));
        // Killed, and started again.
        let (mut allowance, meter) = begin(disk);
        allowance.look(wall, now);
        assert!(allowance.view().swarm_day_bytes >= 10 << 20);
        meter.add(7 << 20, true);
        let look = allowance.look(wall, now);
        assert_eq!((told(&look.events), meter.is_spent(), look.stop), (Some(true), true, false), "the crawl goes on");
        assert_eq!(told(&allowance.look(wall, now).events), None, "it is told once");
        let look = allowance.look(WallTime(wall.0 + 86_400_000), now);
        assert_eq!((told(&look.events), meter.is_spent()), (Some(false), false), "another day");
    }

    /// What a start with this section tells, and what after it was paused and moved bytes among members.
    fn profiles(section: &str) -> Vec<Profile> {
        let text = format!("{section}\n[allowance]\nswarm_per_day = \"16MiB\"\ntime_zone = \"UTC\"");
        let config = Config::parse(&text, std::path::Path::new("node.toml")).unwrap();
        let meter: Arc<SwarmMeter> = Arc::default();
        let mut allowance = OperatorAllowance::new(&config, AllKept::default(), Arc::default(), Some(Arc::clone(&meter)));
        let (wall, now) = (WallTime(1_780_000_000_000), Instant::now());
        let mut events = allowance.look(wall, now).events;
        meter.add(5 << 20, true);
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.pause(wall, None, reply);
        events.extend(allowance.look(wall, now).events);
        events.extend(allowance.look(wall, now).events);
        events.into_iter().filter_map(|event| if let Event::Profile(profile) = event { Some(profile) } else { None }).collect()
    }

    #[test]
    fn other_members_are_told_what_the_operator_chose_and_once() {
        let texts = |section| {
            let all = profiles(section).into_iter();
            let text = |told: Profile| {
                (told.name.map_or(String::new(), String::from), told.allowance.map_or(String::new(), |told| told.to_string()))
            };
            all.map(text).collect::<Vec<_>>()
        };
        let pair = |name: &str, told: &str| (name.to_owned(), told.to_owned());
        assert_eq!(texts(""), []);
        assert_eq!(texts("[swarm]\nname = \"Museum\""), [pair("Museum", "")]);
        assert_eq!(texts("[swarm]\ntell_allowance = \"state\""), [pair("", "within limits"), pair("", "paused")]);
        let shares = [pair("", "within limits (day among members 0 %)"), pair("", "paused (day among members 30 %)")];
        assert_eq!(texts("[swarm]\ntell_allowance = \"shares\""), shares);
    }

    /// Only who rests because of its memory takes in no URLs, and gives subnets away.
    #[test]
    fn a_pause_does_not_hide_that_the_memory_is_full() {
        let (mut allowance, _meter) = begin(AllKept::default());
        allowance.memory = MemoryLimit::new(Some(1 << 20));
        let (wall, mut now) = (WallTime(1_780_000_000_000), Instant::now());
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.pause(wall, None, reply);
        let mut rests = Vec::new();
        for _ in 0..1_000 {
            now += Duration::from_secs(1);
            rests.extend(
                allowance.look(wall, now).events.into_iter().filter_map(|event| if let Event::Rest(rest) = event { rest } else { None }),
            );
            if matches!(rests.last(), Some(Rest::MemoryFull { .. })) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it rests because of {rests:?}");
    }

    /// Strangers may ask for what they like, and connect as often as they like: a member still takes subnets.
    #[test]
    fn readers_have_a_share_of_their_own_and_spend_nothing_of_members() {
        let (mut allowance, meter) = begin(AllKept::default());
        let (wall, now) = (WallTime(1_780_000_000_000), Instant::now());
        meter.add(3 << 20, false);
        allowance.look(wall, now);
        assert!(!meter.readers_spent());
        meter.add(100 << 20, false);
        allowance.look(wall, now);
        assert!(meter.readers_spent() && !meter.is_spent(), "they are refused, and members are not");
        assert!(!allowance.outlook.swarm_spent, "it takes subnets");
        let view = allowance.view();
        assert!(view.readers_day_bytes >= 103 << 20 && view.readers_day_limit_bytes == Some(4 << 20), "{view:?}");
        assert_eq!(view.swarm_day_bytes, 4 << 20, "what counts against members' is their share at most");
        meter.add(11 << 20, true);
        allowance.look(wall, now);
        assert!(!meter.is_spent());
        // A start gives them nothing.
        allowance.kept(Ok(()), now);
        let kept = allowance.end(wall).unwrap();
        let (mut allowance, meter) = begin(kept);
        allowance.look(wall, now);
        assert!(meter.readers_spent() && !meter.is_spent());
        meter.add(3 << 20, true);
        allowance.look(wall, now);
        assert!(meter.is_spent(), "together it is the whole limit");
        allowance.look(WallTime(wall.0 + 86_400_000), now);
        assert!(!meter.readers_spent() && !meter.is_spent(), "another day");
    }

    #[test]
    fn on_a_metered_line_nothing_is_asked_at_once_and_after_some_seconds_what_has_work_goes() {
        for (ahead, goes) in [("10m", true), ("0s", false)] {
            let text = format!("[swarm]\ntell_allowance = \"state\"\n[allowance]\nhand_over_before = \"{ahead}\"\ntime_zone = \"UTC\"");
            let config = Config::parse(&text, std::path::Path::new("node.toml")).unwrap();
            let wire: Arc<Wire> = Arc::default();
            let mut allowance = OperatorAllowance::new(&config, AllKept::default(), Arc::clone(&wire), None);
            let (wall, now) = (WallTime(1_780_000_000_000), Instant::now());
            let at = |seconds| now + Duration::from_secs(seconds);
            allowance.look(wall, now);
            assert!(wire.may_begin());
            allowance.line = MeteredLine::reading(vec!["wwan*".to_owned()], || vec!["eth0".to_owned(), "wwan0".to_owned()]);
            let look = allowance.look(wall, at(1));
            let rest = Rest::Metered { interface: "wwan0".to_owned() };
            assert!(look.events.iter().any(|event| matches!(event, Event::Rest(Some(told)) if *told == rest)), "{:?}", look.events);
            let told =
                look.events.iter().find_map(|event| if let Event::Profile(profile) = event { profile.allowance.clone() } else { None });
            assert_eq!((told.map(|told| told.state), look.stop, wire.may_begin()), (Some(AllowanceState::Paused), true, false));
            let looks = [5, 12, 40].map(|seconds| allowance.look(wall, at(seconds)));
            assert!(looks.iter().all(|look| !look.stop), "once");
            let outlook =
                |look: &Look| look.events.iter().any(|event| matches!(event, Event::Outlook(outlook) if outlook.back_at.is_some()));
            assert_eq!(looks.each_ref().map(outlook), [false, goes, false]);
            assert_eq!(allowance.view().metered_interface.as_deref(), Some("wwan0"));
            // An operator's own pause is told before it.
            let (reply, _answer) = tokio::sync::oneshot::channel();
            allowance.pause(wall, None, reply);
            allowance.look(wall, at(41));
            assert!(matches!(allowance.told, Some(Rest::Paused { .. })));
            let (reply, _answer) = tokio::sync::oneshot::channel();
            allowance.resume(reply);
            allowance.line = MeteredLine::reading(vec!["wwan*".to_owned()], || vec!["eth0".to_owned()]);
            allowance.look(wall, at(50));
            assert!(allowance.told.is_none() && allowance.outlook == Outlook::default() && wire.may_begin(), "the line is back");
        }
    }

    /// A slow transfer, or one that waits for `crawl_rate`, would outlast any pause.
    #[test]
    fn what_is_under_way_half_a_minute_after_a_pause_began_is_called_off_once() {
        let (mut allowance, _meter) = begin(AllKept::default());
        let (wall, now) = (WallTime(1_780_000_000_000), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(!allowance.look(wall, now).stop);
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.pause(wall, None, reply);
        let stops: Vec<bool> = [1, 29, 31, 40, 90].iter().map(|seconds| allowance.look(wall, at(*seconds)).stop).collect();
        assert_eq!(stops, [false, false, true, false, false]);
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.resume(reply);
        assert!(!allowance.look(wall, at(100)).stop);
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.pause(wall, None, reply);
        assert!(!allowance.look(wall, at(101)).stop && allowance.look(wall, at(131)).stop, "the next pause, too");
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.resume(reply);
        assert!(!allowance.look(wall, at(200)).stop);
        let (reply, _answer) = tokio::sync::oneshot::channel();
        allowance.pause(wall, None, reply);
        allowance.line = MeteredLine::reading(vec!["wwan0".to_owned()], || vec!["wwan0".to_owned()]);
        assert!(allowance.look(wall, at(201)).stop, "on a metered line at once");
        assert!(!allowance.look(wall, at(230)).stop && allowance.outlook.back_at.is_none(), "nothing moves in a pause");
    }

    #[test]
    fn the_clock_is_read_just_when_the_hours_end_and_no_request_begins_from_then_on() {
        let text = "[allowance]\nhours = [\"mon 00:00-10:00\"]\ntime_zone = \"UTC\"";
        let config = Config::parse(text, std::path::Path::new("node.toml")).unwrap();
        let wire: Arc<Wire> = Arc::default();
        let mut allowance = OperatorAllowance::new(&config, AllKept::default(), Arc::clone(&wire), None);
        let monday = WallTime("2026-11-30T10:00:00Z".parse::<Timestamp>().unwrap().as_millisecond() as u64);
        let now = Instant::now();
        allowance.look(WallTime(monday.0 - 60_001), now);
        assert_eq!(allowance.ends(), None);
        allowance.look(WallTime(monday.0 - 700), now);
        assert_eq!(allowance.ends(), Some(now + Duration::from_millis(700)));
        let look = allowance.look(monday, now);
        assert!(look.events.iter().any(|event| matches!(event, Event::Rest(Some(Rest::OutsideHours { .. })))) && !wire.may_begin());
        assert_eq!(allowance.ends(), None);
        allowance.look(WallTime(monday.0 + 7 * 86_400_000 - 3_600_000), now);
        assert!(wire.may_begin(), "a week later");
    }

    #[test]
    fn days_and_hours_are_those_of_the_place_in_summer_and_in_winter() {
        // A Sunday evening in Berlin: in summer it is Monday there at 22:00 UTC, in winter at 23:00.
        assert_eq!(at("UTC", "2026-07-05T22:30:00Z").minute, 6 * 1_440 + 22 * 60 + 30);
        assert_eq!(at("Europe/Berlin", "2026-07-05T22:30:00Z").minute, 30);
        assert_eq!(at("Europe/Berlin", "2026-12-06T22:30:00Z").minute, 6 * 1_440 + 23 * 60 + 30);
        let (before, after) = (at("Africa/Nairobi", "2026-11-30T20:59:59Z"), at("Africa/Nairobi", "2026-11-30T21:00:00Z"));
        assert_eq!((after.day - before.day, after.month - before.month, after.minute), (1, 1, 1_440));
    }

    /// The nights in which the clocks of Berlin are set back, and forward.
    #[test]
    fn hours_are_those_that_the_wall_clock_shows_in_nights_in_which_it_is_changed() {
        let text = "[allowance]\nhours = [\"sun 01:00-04:00\"]\ntime_zone = \"Europe/Berlin\"";
        let config = Config::parse(text, std::path::Path::new("node.toml")).unwrap();
        for (begin, changes) in [
            ("2026-10-24T22:00:00Z", ["2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z"]),
            ("2027-03-27T22:00:00Z", ["2027-03-28T00:00:00Z", "2027-03-28T02:00:00Z"]),
        ] {
            let wire: Arc<Wire> = Arc::default();
            let mut allowance = OperatorAllowance::new(&config, AllKept::default(), Arc::clone(&wire), None);
            let begin = begin.parse::<Timestamp>().unwrap().as_millisecond() as u64;
            let (now, mut was_open, mut seen) = (Instant::now(), false, Vec::new());
            for minute in 0..8 * 60 {
                let wall = WallTime(begin + minute * 60_000);
                allowance.look(wall, now);
                if allowance.is_resting() == was_open {
                    was_open = !was_open;
                    seen.push(Timestamp::from_millisecond(wall.0 as i64).unwrap().to_string());
                }
            }
            assert_eq!(seen, changes);
        }
    }
}
