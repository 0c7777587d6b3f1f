//! Tests that what a limit holds back waits, comes later, and stands on the record until then.

use super::*;
use crate::{crawl::site::held_back::DAY, event::PreviousRunRead, replication::loading::JournalCopy, settings::NewHostLimits};
use nearcrawl_model::{
    ids::SiteNumber,
    journal::{HostLimit, JournalEntry, JournalKey, JournalRow},
    record::{HeldBack, RunState, ServerRecord},
    seen::PageState,
};

impl Played {
    /// A site in a web of which .ke is in scope.
    fn in_kenya(limits: NewHostLimits) -> Played {
        let mut played = Played::allowed();
        played.cx.settings.scope.tlds = ["ke".to_owned()].into();
        played.cx.settings.new_hosts = limits;
        played
    }

    /// The next page of the site is asked for and names these; all of them are new.
    pub(super) fn visit(&mut self, links: &[String]) {
        let mut order = self.turn().expect("a page waits");
        if order.purpose == FetchPurpose::Robots {
            self.answers(&order, FetchOutcome::Status(404));
            self.wait(60_000);
            order = self.turn().expect("a page waits");
        }
        let links: Vec<_> = links.iter().map(String::as_str).collect();
        self.answers(&order, page(&links));
        self.all_is_new();
        self.wait(60_000);
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.cx.now.moment = self.cx.now.moment.after(millis);
        self.cx.now.wall.0 += millis;
    }

    /// Limits let go.
    fn release(&mut self) {
        let (crawl, cx, replication, others) = self.others();
        crawl.count_waiting();
        crawl.release(cx, replication, others);
    }

    /// Another access point that has read these rows of the site's journal an hour later, and the number of the site there.
    pub(super) fn successor(&self, rows: Vec<JournalEntry>) -> (Played, SiteNumber) {
        self.successor_with(rows, None)
    }

    /// The same, with the rows of the run before.
    pub(super) fn successor_with(&self, rows: Vec<JournalEntry>, before: Option<Vec<JournalEntry>>) -> (Played, SiteNumber) {
        let key = self.crawl.site(&host("a.ke")).unwrap().key.clone();
        let previous = before.map(|rows| JournalCopy::new(JournalKey { run: key.run - 1, ..key.clone() }, rows, false));
        let mut successor = Played::new();
        successor.cx.settings = self.cx.settings.clone();
        successor.cx.now = self.cx.now;
        successor.wait(3_600_000);
        let (crawl, cx, replication, others) = successor.others();
        crawl.begin_from(cx, replication, others, JournalCopy::new(key, rows, false), previous, 1);
        let number = successor.crawl.site(&host("a.ke")).unwrap().number;
        (successor, number)
    }

    /// The next run of the site begins here, of so many pages before and with these rows of the run before, and another owner goes on with it.
    pub(super) fn successor_in_next_run(&mut self, pages: u64, before: Vec<JournalEntry>) -> Played {
        self.next_run();
        self.run_before_is_read(Some(PreviousRunRead { pages, rows: before.len() as u64 }));
        let rows = self.rows();
        let (mut successor, number) = self.successor_with(rows, Some(before));
        successor.crawl.awake(&mut successor.cx, number);
        // Pages are asked for as if they were new.
        successor.run_before_is_read(None);
        successor.rows();
        successor.wait(60_000);
        successor
    }

    /// The next run of the site begins, half a day after the last one: it was asked where the host is before.
    pub(super) fn next_run(&mut self) {
        self.cx.settings.revisit = DAY / 2;
        self.wait(DAY / 2 + 60_000);
        let (crawl, cx, replication, others) = self.others();
        crawl.tick_runs(cx, replication, others);
        let confirmed = Ok(LocatedHost { host: host("a.ke"), address: address(), valid_for: 60_000 });
        self.crawl.confirmed(&self.cx, &host("a.ke"), &confirmed);
        let (crawl, cx, replication, others) = self.others();
        crawl.tick_runs(cx, replication, others);
    }

    /// What is known of the run before was read, or is not there.
    pub(super) fn run_before_is_read(&mut self, read: Option<PreviousRunRead>) {
        let (crawl, cx, replication) = (&mut self.crawl, &mut self.cx, &mut self.replication);
        let site = crawl.site(&host("a.ke")).unwrap();
        let (number, before) = (site.number, JournalKey { run: site.key.run - 1, ..site.key.clone() });
        crawl.previous_run_loaded(cx, replication, number, &before, read);
    }

    pub(super) fn record(&self) -> ServerRecord {
        self.crawl.site(&host("a.ke")).unwrap().published()
    }

    /// The rows of the journal that were not stored yet.
    pub(super) fn rows(&mut self) -> Vec<JournalEntry> {
        self.replication.flush(&mut self.cx);
        let stored = self.cx.take_commands().into_iter().filter_map(|command| match command {
            Command::Store(StoreCommand::Append { rows, .. }) => Some(rows),
            _ => None,
        });
        stored.flatten().map(|JournalRow { entry, .. }| postcard::from_bytes(&entry).unwrap()).collect()
    }
}

/// Hosts of one domain, or of as many domains if `of` is a top-level domain.
fn hosts(of: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("http://h{number}.{of}/")).collect()
}

/// What these rows hand on, in order.
fn handed_on(rows: &[JournalEntry]) -> Vec<String> {
    let named = rows.iter().flat_map(|row| match row {
        JournalEntry::Visited { outgoing, .. } | JournalEntry::Released { outgoing, .. } => outgoing.clone(),
        _ => Vec::new(),
    });
    named.map(|arrival| arrival.url.to_string()).collect()
}

fn held(hosts_by_site_limit: u64, hosts_by_domain_limit: u64) -> HeldBack {
    HeldBack { hosts_by_site_limit, hosts_by_domain_limit, host_urls: hosts_by_site_limit + hosts_by_domain_limit, ..HeldBack::default() }
}

#[test]
fn a_portal_leads_to_its_hosts_in_scope_however_many_it_names_out_of_scope() {
    let mut played = Played::in_kenya(NewHostLimits::default());
    played.visit(&[hosts("com", 0..520), hosts("ke", 0..180)].concat());
    assert_eq!(handed_on(&played.rows()).len(), 180);
    let record = played.record();
    assert_eq!((record.external_hosts, record.held_back, record.state), (700, HeldBack::default(), RunState::Complete));
}

#[test]
fn what_the_limit_of_a_site_holds_back_waits_for_the_next_day_and_until_then_the_run_is_not_complete() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 5, per_domain: 50 });
    played.visit(&[hosts("ke", 0..8), vec!["http://a.ke/more".to_owned()]].concat());
    assert_eq!(handed_on(&played.rows()), hosts("ke", 0..5));
    // What waits is counted once, and a known host is no new one.
    let again = ["http://h6.ke/", "http://h6.ke/deep", "http://h2.ke/deep"].map(str::to_owned);
    played.visit(&again);
    assert_eq!(handed_on(&played.rows()), ["http://h2.ke/deep"]);
    let record = played.record();
    assert_eq!((record.held_back, record.state), (HeldBack { host_urls: 4, ..held(3, 0) }, RunState::HeldBack));
    assert!(record.completeness().ends_with("Held back: 3 new hosts by the limit for a site and day."), "{}", record.completeness());

    played.release();
    assert_eq!(handed_on(&played.rows()), Vec::<String>::new(), "the day is not over");
    played.wait(DAY);
    assert!(played.crawl.has_to_release(&played.cx));
    played.release();
    assert_eq!(handed_on(&played.rows()), ["http://h5.ke/", "http://h6.ke/", "http://h6.ke/deep", "http://h7.ke/"]);
    let record = played.record();
    assert_eq!((record.held_back, record.state), (HeldBack::default(), RunState::Complete));
    assert!(!played.crawl.has_to_release(&played.cx));
}

#[test]
fn hosts_that_wait_come_before_those_that_are_named_later() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 2, per_domain: 50 });
    played.visit(&[hosts("ke", 0..4), vec!["http://a.ke/more".to_owned()]].concat());
    played.rows();
    played.wait(DAY);
    played.visit(&hosts("ke", 4..5));
    played.release();
    assert_eq!(handed_on(&played.rows()), hosts("ke", 2..4));
    assert_eq!(played.record().held_back, held(1, 0));
}

#[test]
fn what_the_limit_of_a_domain_holds_back_comes_the_next_day_too() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 0, per_domain: 3 });
    played.visit(&hosts("blogs.ke", 0..8));
    assert_eq!((played.record().held_back, played.record().state), (held(0, 5), RunState::HeldBack));
    for (waits, day) in [(2, 1), (0, 2)] {
        played.wait(DAY);
        played.release();
        assert_eq!(played.record().held_back, held(0, waits), "day {day}");
    }
    let mut handed_on = handed_on(&played.rows());
    handed_on.sort();
    assert_eq!((handed_on, played.record().state), (hosts("blogs.ke", 0..8), RunState::Complete));
}

#[test]
fn the_day_of_a_domain_goes_on_after_a_restart_and_at_a_successor() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 0, per_domain: 3 });
    played.visit(&[hosts("blogs.ke", 0..2), vec!["http://a.ke/more".to_owned()]].concat());
    let rows = played.rows();
    let (mut successor, number) = played.successor(rows);
    successor.crawl.awake(&mut successor.cx, number);
    successor.rows();
    successor.wait(60_000);
    successor.visit(&hosts("blogs.ke", 0..8));
    assert_eq!(successor.record().held_back, held(0, 5), "one of three was left");
    successor.wait(DAY - 3_600_000);
    successor.release();
    assert_eq!(successor.record().held_back, held(0, 3), "the day of the first two is over");
    successor.wait(3_600_000);
    successor.release();
    assert_eq!(successor.record().held_back, held(0, 2), "and that of the third");
}

#[test]
fn the_day_of_a_domain_goes_on_in_the_next_run_of_the_day_also_at_a_successor() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 0, per_domain: 3 });
    played.visit(&hosts("blogs.ke", 0..3));
    let before = played.rows();
    let mut successor = played.successor_in_next_run(1, before);
    successor.visit(&hosts("blogs.ke", 3..7));
    let site = successor.crawl.site(&host("a.ke")).unwrap();
    assert_eq!((site.key.run, site.record.held_back), (2, held(0, 4)), "the first run of the day led to as many as may be");
    successor.wait(DAY / 2);
    successor.release();
    assert_eq!(handed_on(&successor.rows()), hosts("blogs.ke", 3..6), "their day comes");
}

#[test]
fn hosts_that_both_limits_hold_back_wait_for_the_second_when_the_first_lets_go() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 2, per_domain: 3 });
    played.visit(&hosts("blogs.ke", 0..6));
    assert_eq!(played.record().held_back, held(4, 0));
    played.cx.settings.new_hosts.per_site = 0;
    played.release();
    assert_eq!(played.record().held_back, held(0, 3));
}

#[test]
fn a_successor_has_the_same_wait_and_lets_it_go_when_its_day_comes() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 5, per_domain: 50 });
    // From the first row on: robots.txt and the start page.
    played.visit(&hosts("ke", 0..8));
    let rows = played.rows();
    assert!(matches!(rows.first(), Some(JournalEntry::Opened { .. })));
    let (mut successor, number) = played.successor(rows);
    successor.release();
    assert!(successor.crawl.has_to_release(&successor.cx), "it does not know yet what it has seen");
    successor.crawl.awake(&mut successor.cx, number);
    assert_eq!((successor.record().held_back, successor.record().state), (held(3, 0), RunState::HeldBack));
    assert!(successor.crawl.has_to_release(&successor.cx), "it is looked at once");
    successor.release();
    assert_eq!((successor.record().held_back, successor.crawl.has_to_release(&successor.cx)), (held(3, 0), false));
    successor.wait(DAY);
    successor.cx.take_commands();
    successor.release();
    assert_eq!(handed_on(&successor.rows()), hosts("ke", 5..8));
    assert_eq!(successor.record().state, RunState::Complete);
}

#[test]
fn what_waits_goes_on_waiting_in_the_next_run_in_which_no_known_host_is_new() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 5, per_domain: 50 });
    played.visit(&hosts("ke", 0..8));
    played.rows();
    assert_eq!((played.record().run, played.record().held_back), (1, held(3, 0)));
    played.next_run();
    let site = played.crawl.site(&host("a.ke")).unwrap();
    assert_eq!((site.key.run, site.record.held_back), (2, held(3, 0)));
    let whole = played.record();
    assert_eq!((whole.run, whole.held_back, whole.state), (1, held(3, 0), RunState::HeldBack), "the last whole run is on record");
    played.run_before_is_read(Some(PreviousRunRead { pages: 1, rows: 3 }));
    let rows = played.rows();
    assert!(
        rows.iter().any(|row| matches!(row, JournalEntry::HeldBack { by: HostLimit::Site, urls } if urls.len() == 3 && urls[0].run == 2))
    );
    // Half a day later those that waited come, though they were named again in between.
    played.wait(DAY / 2);
    played.release();
    assert_eq!(handed_on(&played.rows()), hosts("ke", 5..8));
    let whole = played.record();
    assert_eq!((whole.run, whole.held_back, whole.state), (1, HeldBack::default(), RunState::Complete), "nothing waits any more");
    let site = played.crawl.site(&host("a.ke")).unwrap();
    assert!((0..8).all(|number| site.held.has_followed(played.cx.secret.of(&format!("h{number}.ke")))));
}

#[test]
fn hosts_that_are_out_of_scope_by_now_are_not_led_to() {
    let mut played = Played::in_kenya(NewHostLimits { per_site: 1, per_domain: 50 });
    played.visit(&hosts("ke", 0..3));
    played.rows();
    played.cx.settings.scope.denied = [host("h1.ke")].into();
    played.wait(DAY);
    played.release();
    assert_eq!(handed_on(&played.rows()), hosts("ke", 2..3));
}

#[test]
fn urls_without_room_in_the_queue_are_on_record_and_queued_when_there_is_room() {
    let mut played = Played::in_kenya(NewHostLimits::default());
    played.cx.settings.max_waiting = 4;
    played.visit(&(0..4).map(|number| format!("http://a.ke/{number}")).collect::<Vec<_>>());
    played.crawl.count_waiting();
    played.visit(&(4..7).map(|number| format!("http://a.ke/{number}")).collect::<Vec<_>>());
    let record = played.record();
    assert_eq!((record.held_back.urls_not_queued, record.waiting, record.cut_by_depth, record.known), (3, 3, 0, 8));
    assert_eq!(record.accounted(), record.known, "{record:?}");
    played.visit(&[]);
    played.visit(&[]);
    played.visit(&[]);
    assert_eq!((played.record().waiting, played.record().state), (0, RunState::HeldBack));
    played.crawl.count_waiting();
    assert!(played.crawl.has_to_release(&played.cx));
    played.rows();
    played.release();
    // The seen set has them as pages beyond the depth, and their texts.
    let [(ticket, batches)] = &played.questions()[..] else { panic!("one question") };
    let pages = batches[0].questions.clone();
    assert!(pages.len() == 3 && pages.iter().all(|(_, level)| *level == 2), "{pages:?}");
    let (crawl, cx, replication) = (&mut played.crawl, &mut played.cx, &mut played.replication);
    crawl.seen(cx, replication, *ticket, vec![vec![SeenAnswer::Shorter { was: PageState::Cut }; 3]]);
    let taken = cx.take_commands().into_iter().find_map(|command| match command {
        Command::Store(StoreCommand::TakeCut { ticket, pages, .. }) => Some((ticket, pages)),
        _ => None,
    });
    let (ticket, asked) = taken.unwrap();
    let text = |page| (4..7).map(|number| format!("http://a.ke/{number}")).find(|text| cx.secret.of(text) == page);
    let texts = asked.into_iter().map(text).collect();
    crawl.cut_taken(cx, replication, ticket, texts);
    let record = played.record();
    assert_eq!((record.held_back, record.waiting, record.known, record.state), (HeldBack::default(), 3, 8, RunState::Running));
    assert_eq!(record.accounted(), record.known, "{record:?}");
    (0..3).for_each(|_| played.visit(&[]));
    assert_eq!((played.record().pages, played.record().state), (8, RunState::Complete));
}
