//! Tests that a robots.txt that moved to where nobody may ask ends a site's turn, with one row in its journal.

use super::*;
use crate::{
    crawl::fetch_cycle::MAX_AGAIN,
    opt_out::in_force::{InForce, OptedOut},
};
use nearcrawl_model::{
    journal::{JournalEntry, SkipReason},
    links::Link,
    opt_out::{OptOutKey, OptOutProof, OptOutSubject},
    record::RunState,
    time::WallTime,
};

/// Where www.a.ke lives: at the address of a.ke, or beside it, in a subnet that is ours too.
const PLACES: [&str; 2] = [ADDRESS, "9.0.1.2"];

fn moved() -> FetchOutcome {
    let to = url("http://www.a.ke/robots.txt");
    FetchOutcome::Redirect { status: 302, to: Link { fingerprint: Context::of_test(1).secret.of(to.as_str()), url: to } }
}

/// Nothing is asked of www.a.ke.
fn opted_out() -> OptedOut {
    OptedOut::of([InForce {
        key: OptOutKey { subject: OptOutSubject::read("www.a.ke", false).unwrap(), proof: OptOutProof::Txt },
        by: Context::of_test(2).me,
        at: WallTime(1),
        is_certain: true,
        is_disputed: false,
    }])
}

impl Played {
    /// It is known where www.a.ke lives.
    fn with_www(mut self, at: &str) -> Played {
        let located = LocatedHost { host: host("www.a.ke"), address: at.parse().unwrap(), valid_for: 3_600_000 };
        self.routing.located(&mut self.cx, &host("www.a.ke"), Ok(located));
        self
    }

    /// The site asks nothing more, and these are the rows that say why.
    #[track_caller]
    fn ends(&mut self) -> Vec<JournalEntry> {
        let (at, whose) = self.crawl.next_turn(&self.cx).expect("the site has its turn");
        let mut again = 0;
        loop {
            let (crawl, cx, replication, others) = self.others();
            match crawl.take_turn(cx, replication, others, (at, &whose), again) {
                Turn::Again => again += 1,
                Turn::Over => break,
                Turn::Asked => panic!("it asks"),
            }
        }
        let rows = self.rows();
        assert!(self.crawl.next_turn(&self.cx).is_none(), "nothing waits");
        rows
    }
}

/// The robots.txt of a.ke cannot be had, so its page is left out.
#[track_caller]
fn assert_unavailable(rows: &[JournalEntry]) {
    let [JournalEntry::Robots { origin, answer, .. }, JournalEntry::Skipped { reason, .. }] = rows else {
        panic!("{} rows, first: {:?}", rows.len(), rows.first())
    };
    assert_eq!((origin, answer), (&url("http://a.ke/").origin(), &Err(FetchError::BadRedirect)));
    assert_eq!(*reason, SkipReason::RobotsUnavailable);
}

#[test]
fn a_robots_txt_that_moved_to_a_host_that_is_opted_out_cannot_be_had() {
    for at in PLACES {
        let mut played = Played::begun().with_www(at);
        let order = played.turn().expect("robots.txt is asked for");
        played.answers(&order, moved());
        played.wait(60_000);
        played.rows();
        played.cx.opted_out = opted_out();
        assert_unavailable(&played.ends());
        let record = played.record();
        assert_eq!((record.refused_by_robots_unavailable, record.waiting, record.state), (1, 0, RunState::Complete), "{at}");
    }
}

#[test]
fn a_robots_txt_that_moved_to_a_denied_address_cannot_be_had() {
    let mut played = Played::begun().with_www(PLACES[1]);
    let order = played.turn().expect("robots.txt is asked for");
    played.answers(&order, moved());
    played.wait(60_000);
    played.rows();
    played.cx.settings.scope.denied_ranges = vec![Subnet::around(PLACES[1].parse().unwrap(), 32)];
    assert_unavailable(&played.ends());
}

/// An earlier version entered the failure for the origin that robots.txt had moved to, again and again.
#[test]
fn a_successor_gets_over_a_journal_that_says_so_of_the_other_host() {
    let mut played = Played::begun();
    let order = played.turn().expect("robots.txt is asked for");
    let mut rows = played.rows();
    played.answers(&order, moved());
    let other =
        JournalEntry::Robots { origin: url("http://www.a.ke/").origin(), at: WallTime(1), answer: Err(FetchError::BadRedirect), took: 0 };
    rows.extend(std::iter::repeat_n(other, 3 * MAX_AGAIN));
    let (mut successor, number) = played.successor(rows);
    successor = successor.with_www(PLACES[0]);
    successor.crawl.awake(&mut successor.cx, number);
    successor.cx.opted_out = opted_out();
    successor.wait(60_000);
    let order = successor.turn().expect("robots.txt is asked for");
    successor.answers(&order, moved());
    successor.wait(60_000);
    successor.rows();
    assert_unavailable(&successor.ends());
}

#[test]
fn a_site_that_sets_very_many_pages_aside_lets_others_have_their_turn_between() {
    let mut played = Played::allowed();
    let links: Vec<_> = (0..MAX_AGAIN + 10).map(|number| format!("http://a.ke/{number}")).collect();
    played.cx.settings.max_in_memory = 4 * MAX_AGAIN;
    played.visit(&links);
    let number_of = |played: &Played| played.record().waiting as usize;
    assert_eq!(number_of(&played), MAX_AGAIN + 10);
    played.cx.settings.scope.denied_ranges = vec![subnet()];
    assert_eq!((played.turn(), number_of(&played)), (None, 10), "as many as may be set aside in one turn");
    assert_eq!((played.turn(), number_of(&played)), (None, 10), "the address rests");
    played.wait(1_000);
    assert_eq!((played.turn(), number_of(&played)), (None, 0));
}
