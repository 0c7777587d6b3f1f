//! Whether the default route goes over a line whose bytes cost money, by the names of interfaces.

use crate::io::default_route;
use std::time::{Duration, Instant};

/// Two small files are read so often.
const READ_EVERY: Duration = Duration::from_secs(2);

/// After so long on such a line, what has work goes to other members: a line that is back at once moves nothing.
const GIVES_AFTER: Duration = Duration::from_secs(10);

/// The line of this machine.
#[derive(Debug)]
pub struct MeteredLine {
    patterns: Vec<String>,
    /// Tells the interfaces of the default routes.
    read: fn() -> Vec<String>,
    read_at: Option<Instant>,
    /// The interface of the default route that is metered, and since when one is.
    metered: Option<(String, Instant)>,
}

impl MeteredLine {
    /// With names of interfaces, which may end in `*`. Without any nothing is read.
    pub fn new(patterns: Vec<String>) -> MeteredLine {
        MeteredLine::reading(patterns, default_route::interfaces)
    }

    /// The same, with another way to read the routes.
    pub fn reading(patterns: Vec<String>, read: fn() -> Vec<String>) -> MeteredLine {
        MeteredLine { patterns, read, read_at: None, metered: None }
    }

    /// Reads the routes, if that is due.
    pub fn look(&mut self, now: Instant) {
        let is_due = self.read_at.is_none_or(|read| now.saturating_duration_since(read) >= READ_EVERY);
        if !self.patterns.is_empty() && is_due {
            self.read_at = Some(now);
            self.routes_are(&(self.read)(), now);
        }
    }

    fn routes_are(&mut self, interfaces: &[String], now: Instant) {
        // Without a default route there is no line at all. A phone that is out of reach for a moment is the same line afterwards.
        if interfaces.is_empty() {
            return;
        }
        let since = self.metered.take().map_or(now, |(_, since)| since);
        self.metered = among(&self.patterns, interfaces).map(|interface| (interface, since));
    }

    /// The interface, if the line is metered.
    pub fn interface(&self) -> Option<&str> {
        self.metered.as_ref().map(|(interface, _)| interface.as_str())
    }

    /// Whether it has been for some seconds.
    pub fn stays(&self, now: Instant) -> bool {
        self.metered.as_ref().is_some_and(|(_, since)| now.saturating_duration_since(*since) >= GIVES_AFTER)
    }
}

/// The interfaces of the default routes now, and which of them is metered by these names.
pub fn present(patterns: &[String]) -> (Vec<String>, Option<String>) {
    let interfaces = default_route::interfaces();
    let metered = among(patterns, &interfaces);
    (interfaces, metered)
}

/// What `check`, `doctor` and the log say of a line that is metered now.
pub fn sentence(interface: &str) -> String {
    format!("the line is metered ({interface}): nothing is asked of servers until the default route goes over another interface")
}

/// The first of these interfaces that has one of these names.
fn among(patterns: &[String], interfaces: &[String]) -> Option<String> {
    let is_named = |interface: &&String| {
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(begin) => interface.starts_with(begin),
            None => *interface == pattern,
        })
    };
    interfaces.iter().find(is_named).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_the_rest_of_a_name_and_one_metered_route_is_enough() {
        let of = |interfaces: &[&str]| {
            let patterns = ["wwan*".to_owned(), "usb0".to_owned()];
            among(&patterns, &interfaces.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["eth0", "wwan12"]).as_deref(), Some("wwan12"));
        assert_eq!(of(&["usb0"]).as_deref(), Some("usb0"));
        assert_eq!([of(&["usb01"]), of(&["wlan0", "wwa"]), of(&[])], [None, None, None]);
    }

    #[test]
    fn subnets_go_when_the_line_has_been_metered_for_some_seconds_and_not_before() {
        let mut line = MeteredLine::new(vec!["wwan*".to_owned()]);
        let (now, wwan, eth) = (Instant::now(), ["wwan0".to_owned()], ["eth0".to_owned()]);
        let at = |seconds| now + Duration::from_secs(seconds);
        line.routes_are(&wwan, now);
        assert_eq!((line.interface(), line.stays(at(9)), line.stays(at(10))), (Some("wwan0"), false, true));
        line.routes_are(&["wwan1".to_owned()], at(8));
        assert_eq!((line.interface(), line.stays(at(10))), (Some("wwan1"), true), "another one is as dear");
        line.routes_are(&[], at(10));
        assert!(line.stays(at(10)), "without a route it is the line that it was");
        line.routes_are(&eth, at(11));
        assert_eq!((line.interface(), line.stays(at(60))), (None, false));
        line.routes_are(&wwan, at(60));
        assert!(!line.stays(at(61)));
    }
}
