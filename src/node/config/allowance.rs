//! `[allowance]`: what the daemon may use of its operator's line, and when.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use jiff::tz::TimeZone;
use nearcrawl_core::allowance::{WEEK, Window};
use std::time::Duration;
use toml::de::DeValue;

/// `[allowance]`: bytes and hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowanceConfig {
    /// Bytes to and from web servers a day; none without a limit.
    pub crawl_per_day: Option<u64>,
    /// The same a month.
    pub crawl_per_month: Option<u64>,
    /// Bytes to and from web servers a second; none without a limit.
    pub crawl_rate: Option<u64>,
    /// Bytes to and from members a day; none without a limit.
    pub swarm_per_day: Option<u64>,
    /// Memory of the process in bytes; no more than the system's limits leave.
    pub memory: Option<u64>,
    /// Bytes of the files in the state directory; none without a limit.
    pub disk: Option<u64>,
    /// So long before it may ask nothing for long, subnets with work are given to other members; zero keeps them.
    pub hand_over_before: Duration,
    /// When it may ask servers; always, if empty.
    pub hours: Vec<Window>,
    /// Interfaces whose bytes cost money; a name may end in `*`. While the default route goes over one, no server is asked.
    pub metered_interfaces: Vec<String>,
    /// The time zone of hours, days and months: that of the machine, if none is named.
    pub time_zone: Option<TimeZone>,
}

impl Default for AllowanceConfig {
    fn default() -> Self {
        AllowanceConfig {
            crawl_per_day: None,
            crawl_per_month: None,
            crawl_rate: None,
            swarm_per_day: None,
            memory: None,
            disk: None,
            hand_over_before: Duration::from_secs(600),
            hours: Vec::new(),
            metered_interfaces: Vec::new(),
            time_zone: None,
        }
    }
}

/// The least and the most bytes of a limit: with less, not one page may fit.
const MIN_BYTES: u64 = 16 << 20;
const MAX_BYTES: u64 = 1 << 50;

/// The least and the most bytes a second: with less a long page would keep its server for minutes.
const MIN_RATE: u64 = 16 << 10;
const MAX_RATE: u64 = 1 << 40;

/// The least and the most memory: no daemon starts with less.
const MIN_MEMORY: u64 = 4 << 20;
const MAX_MEMORY: u64 = 1 << 44;

/// The least and the most of the disk: with less the store has no room to put its files in order.
const MIN_DISK: u64 = 64 << 20;
const MAX_DISK: u64 = 1 << 50;

/// When a limit is reached nothing more is read, but what has come by then was on the line: at all connections together at most one byte in so
/// many of the limit, as long as each may hold the least.
const SHARE_UNREAD: u64 = 200;
const MIN_UNREAD: u64 = 16 << 10;
const MAX_UNREAD: u64 = 1 << 20;

/// If each holds the least, there are so few connections that they hold one byte in so many of the limit at most: it is exceeded by no more.
const SHARE_EXCEEDED: u64 = 100;

// With the lowest limit there is at least one.
const _: () = assert!(MIN_BYTES / SHARE_EXCEEDED >= MIN_UNREAD);

/// More windows than that are a mistake.
const MAX_WINDOWS: usize = 100;

/// More names of interfaces than that are a mistake.
const MAX_INTERFACES: usize = 32;

/// The longest name of an interface, in bytes (IFNAMSIZ).
const MAX_INTERFACE: usize = 15;

impl AllowanceConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> AllowanceConfig {
        let size = |value: &DeValue<'_>| values::size(MIN_BYTES..=MAX_BYTES)(value).map(Some);
        let rate = |value: &DeValue<'_>| values::size(MIN_RATE..=MAX_RATE)(value).map(Some);
        let ahead = values::duration(Duration::ZERO..=Duration::from_secs(7_200));
        let config = AllowanceConfig {
            crawl_per_day: section.take("crawl_per_day", None, size),
            crawl_per_month: section.take("crawl_per_month", None, size),
            crawl_rate: section.take("crawl_rate", None, rate),
            swarm_per_day: section.take("swarm_per_day", None, size),
            memory: section.take("memory", None, |value| values::size(MIN_MEMORY..=MAX_MEMORY)(value).map(Some)),
            disk: section.take("disk", None, |value| values::size(MIN_DISK..=MAX_DISK)(value).map(Some)),
            hand_over_before: section.take("hand_over_before", Duration::from_secs(600), ahead),
            hours: section.list("hours", Vec::new(), windows).into_iter().flatten().collect(),
            metered_interfaces: section.list("metered_interfaces", Vec::new(), interface),
            time_zone: section.take("time_zone", None, time_zone),
        };
        if let (Some(day), Some(month)) = (config.crawl_per_day, config.crawl_per_month)
            && day > month
        {
            section.contradicts(&["crawl_per_day"], "a day's limit is above the month's".to_owned());
        }
        if config.hours.len() > MAX_WINDOWS {
            section.contradicts(&["hours"], format!("at most {MAX_WINDOWS} windows"));
        }
        if config.metered_interfaces.len() > MAX_INTERFACES {
            section.contradicts(&["metered_interfaces"], format!("at most {MAX_INTERFACES} names"));
        }
        config
    }

    /// The lower one of the limits on bytes to and from web servers.
    fn limit(&self) -> Option<u64> {
        self.crawl_per_day.into_iter().chain(self.crawl_per_month).min()
    }

    /// How many connections there may be at most, so that a limit is exceeded by a hundredth at most; none without a limit.
    pub(super) fn most_parallel(&self) -> Option<u32> {
        let connections = self.limit()? / SHARE_EXCEEDED / MIN_UNREAD;
        Some(u32::try_from(connections.max(1)).unwrap_or(u32::MAX))
    }

    /// How many bytes may have come at each of so many connections that are not read, so that a limit holds on the line, too; none without one.
    pub fn unread_at_each(&self, connections: u32) -> Option<u32> {
        let each = self.limit()? / SHARE_UNREAD / u64::from(connections.max(1));
        u32::try_from(each.clamp(MIN_UNREAD, MAX_UNREAD)).ok()
    }
}

fn time_zone(value: &DeValue<'_>) -> Parsed<Option<TimeZone>> {
    let name = values::text(value)?;
    TimeZone::get(&name).map(Some).map_err(|_| "this machine knows no such time zone; write it like \"Africa/Nairobi\"".to_owned())
}

/// `usb0`, or `wwan*` for all whose names begin so.
fn interface(value: &DeValue<'_>) -> Parsed<String> {
    let text = values::any_text(value)?;
    let name = text.strip_suffix('*').unwrap_or(text);
    let fits = (1..=MAX_INTERFACE).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/*:".contains(&byte));
    fits.then(|| text.to_string())
        .ok_or_else(|| "write the name of an interface, like \"usb0\", or how names begin, like \"wwan*\"".to_owned())
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Minutes in a day.
const DAY: u16 = 24 * 60;

/// `mon-fri 18:00-08:00`, `sat,sun 00:00-24:00`, `22:00-06:00` (every day): one window for each day.
fn windows(value: &DeValue<'_>) -> Parsed<Vec<Window>> {
    let wanted =
        || "write days and times, like \"mon-fri 18:00-08:00\", \"sat,sun 00:00-24:00\" or \"22:00-06:00\" for every day".to_owned();
    let text = values::any_text(value)?.trim().to_ascii_lowercase();
    let (days, times) = text.split_once(' ').map_or((None, text.as_str()), |(days, times)| (Some(days), times.trim()));
    let days = days.map_or(Some((0..7).collect()), days_of).ok_or_else(wanted)?;
    let (from, until) = times.split_once('-').and_then(|(from, until)| Some((minute(from)?, minute(until)?))).ok_or_else(wanted)?;
    let minutes = if until > from { until - from } else { until + DAY - from };
    if from == DAY || minutes == 0 || from == until {
        return Err(format!("this is no length of time; {}", wanted()));
    }
    Ok(days.into_iter().map(|day| Window { from: (day * DAY + from) % WEEK, minutes }).collect())
}

fn days_of(text: &str) -> Option<Vec<u16>> {
    let day = |name: &str| DAYS.iter().position(|day| *day == name).map(|day| day as u16);
    let mut days = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (day(first)?, day(last)?);
                days.extend((0..=(last + 7 - first) % 7).map(|more| (first + more) % 7));
            }
            None => days.push(day(part)?),
        }
    }
    days.sort_unstable();
    days.dedup();
    Some(days)
}

/// `18:00` as minutes since midnight; `24:00` is the day's end.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number =
        |digits: &str| digits.parse::<u16>().ok().filter(|_| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60 && hours * 60 + minutes <= DAY).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::Config;
    use std::path::Path;

    fn read(text: &str) -> Result<AllowanceConfig, String> {
        let parsed = Config::parse(&format!("[allowance]\n{text}\n"), Path::new("node.toml"));
        parsed.map(|config| config.allowance).map_err(|why| why.to_string())
    }

    fn hours(text: &str) -> Vec<(u16, u16)> {
        read(&format!("hours = [{text}]")).unwrap().hours.into_iter().map(|window| (window.from, window.minutes)).collect()
    }

    #[test]
    fn with_a_limit_little_may_have_come_that_is_not_read() {
        let unread = |text: &str, connections| read(text).unwrap().unread_at_each(connections);
        assert_eq!(unread("crawl_rate = \"500KiB\"\nswarm_per_day = \"1GiB\"", 64), None);
        let at_all = unread("crawl_per_day = \"1GiB\"\ncrawl_per_month = \"20GiB\"", 64).unwrap() * 64;
        assert!(((1 << 30) / 250..=(1 << 30) / 200).contains(&at_all), "{at_all}");
        assert_eq!(unread("crawl_per_month = \"16MiB\"", 64), Some(16 << 10));
        assert_eq!(unread("crawl_per_day = \"10240GiB\"", 1), Some(1 << 20));
    }

    #[test]
    fn with_a_low_limit_so_few_servers_are_asked_at_once_that_it_is_exceeded_by_a_hundredth_at_most() {
        let config = |text: &str| Config::parse(text, Path::new("node.toml")).unwrap();
        for (limit, bytes) in [("16MiB", 16 << 20), ("50MiB", 50 << 20), ("100MiB", 100 << 20), ("2GiB", 2u64 << 30)] {
            for text in [format!("[allowance]\ncrawl_per_day = \"{limit}\""), format!("[allowance]\ncrawl_per_month = \"{limit}\"")] {
                let config = config(&text);
                let unread = config.allowance.unread_at_each(config.max_parallel()).unwrap();
                assert!(u64::from(unread) * u64::from(config.max_parallel()) <= bytes / 100, "{text}");
                assert_eq!(config.pace().max_parallel, u64::from(config.max_parallel()), "plans go by it");
            }
        }
        let low = "[allowance]\ncrawl_per_day = \"16MiB\"";
        assert_eq!(config(low).max_parallel(), 10);
        assert_eq!(config(&format!("{low}\n[crawl]\nmax_parallel = 3")).max_parallel(), 3);
        assert_eq!(config("[allowance]\ncrawl_per_day = \"1GiB\"").max_parallel(), 64);
        assert_eq!(config("").max_parallel(), 64);
    }

    #[test]
    fn hours_are_written_as_people_do() {
        assert_eq!(hours("\"mon,wed 18:00-08:00\""), [(1_080, 840), (2 * 1_440 + 1_080, 840)]);
        assert_eq!(hours("\"sat-sun 00:00-24:00\""), [(5 * 1_440, 1_440), (6 * 1_440, 1_440)]);
        assert_eq!(hours("\"22:00-06:00\"").len(), 7);
        assert_eq!(hours("\"Sun-Mon 01:00-02:00\""), [(60, 60), (6 * 1_440 + 60, 60)]);
        assert_eq!(hours(""), []);
        for wrong in
            ["18-8", "mon 18:00", "mon 25:00-26:00", "monday 18:00-19:00", "18:60-19:00", "18:00-18:00", "24:00-06:00", "", "+1:00-02:00"]
        {
            let said = read(&format!("hours = [\"{wrong}\"]")).unwrap_err();
            assert!(said.contains("mon-fri 18:00-08:00"), "{wrong}: {said}");
        }
    }

    #[test]
    fn interfaces_have_names_and_a_star_at_the_end_at_most() {
        assert_eq!(read("metered_interfaces = [\"wwan*\", \"usb0\"]").unwrap().metered_interfaces, ["wwan*", "usb0"]);
        assert!(read("").unwrap().metered_interfaces.is_empty());
        for wrong in ["*", "", "ww*n0", "usb 0", "a/b", "longer-than-interfaces"] {
            let said = read(&format!("metered_interfaces = [\"{wrong}\"]")).unwrap_err();
            assert!(said.contains("allowance.metered_interfaces") && said.contains("wwan*"), "{wrong}: {said}");
        }
    }

    #[test]
    fn rates_and_times_have_units() {
        let config = read("crawl_rate = \"500KiB\"\nswarm_per_day = \"1GiB\"\nhand_over_before = \"20m\"").unwrap();
        assert_eq!((config.crawl_rate, config.swarm_per_day), (Some(500 << 10), Some(1 << 30)));
        assert_eq!(config.hand_over_before, Duration::from_secs(1_200));
        assert_eq!(read("hand_over_before = \"0s\"").unwrap().hand_over_before, Duration::ZERO);
        for wrong in
            ["crawl_rate = \"1KiB\"", "swarm_per_day = \"1MiB\"", "memory = \"3MiB\"", "disk = \"63MiB\"", "hand_over_before = \"1d\""]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_sizes_and_zones_are_known() {
        let config = read("crawl_per_day = \"2GiB\"\ncrawl_per_month = \"30GiB\"\ntime_zone = \"UTC\"").unwrap();
        assert_eq!((config.crawl_per_day, config.crawl_per_month), (Some(2 << 30), Some(30 << 30)));
        assert!(config.time_zone.is_some());
        for wrong in [
            "crawl_per_day = \"2KiB\"",
            "crawl_per_day = 5",
            "time_zone = \"Mars/Olympus\"",
            "crawl_per_day = \"2GiB\"\ncrawl_per_month = \"1GiB\"",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
