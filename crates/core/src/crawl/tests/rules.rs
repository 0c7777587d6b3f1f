//! Tests that the record of a run says by which rules its pages were chosen, also when they have changed since.

use super::*;
use nearcrawl_model::{crawled_by::CrawledBy, journal::JournalEntry};

/// The rules that these rows name.
fn named(rows: &[JournalEntry]) -> Vec<CrawledBy> {
    let named = rows.iter().filter_map(|row| if let JournalEntry::CrawledBy(by) = row { Some(*by) } else { None });
    named.collect()
}

/// As they are configured now.
fn configured(played: &Played) -> CrawledBy {
    let rules = &played.cx.settings.rules;
    CrawledBy::new(rules.depth, rules.price.millionths(), rules.pages_per_run)
}

#[test]
fn a_run_that_is_over_keeps_its_rules_and_its_successor_has_its_own() {
    let mut played = Played::allowed();
    assert_eq!(played.record().crawled_by, None, "no page was asked for");
    played.cx.settings.rules.depth = 5;
    let deep = configured(&played);
    played.visit(&["http://a.ke/more".to_owned()]);
    played.visit(&[]);
    let before = played.rows();
    assert_eq!((named(&before), played.record().crawled_by), (vec![deep], Some(deep)), "it is written once");
    // The survey that wished for the depth ends, and another member takes the site over.
    played.cx.settings.rules.depth = 1;
    let shallow = configured(&played);
    assert_ne!(deep, shallow);
    assert_eq!((played.record().crawled_by, played.successor(before.clone()).0.record().crawled_by), (Some(deep), Some(deep)));
    let mut successor = played.successor_in_next_run(2, before);
    successor.visit(&[]);
    let site = successor.crawl.site(&host("a.ke")).unwrap();
    assert_eq!((site.key.run, site.record.crawled_by), (2, Some(shallow)));
    let runs: Vec<_> = site.runs().0.iter().map(|run| (run.run, run.crawled_by)).collect();
    assert_eq!(runs[0], (1, Some(deep)), "the history tells the two apart: {runs:?}");
}

#[test]
fn rules_that_change_within_a_run_hold_from_the_next_page_on() {
    let mut played = Played::allowed();
    let first = configured(&played);
    played.visit(&["http://a.ke/more".to_owned(), "http://a.ke/other".to_owned()]);
    played.cx.settings.rules.pages_per_run = 7;
    let later = configured(&played);
    assert_eq!(played.record().crawled_by, Some(first));
    played.visit(&[]);
    played.visit(&[]);
    assert_eq!((named(&played.rows()), played.record().crawled_by), (vec![first, later], Some(later)));
}
