//! Is a rebuild that changes too much noticed?

use super::*;
use std::fmt::Write;

/// `blocks` /24s from `from` on, in a file of `date`.
fn dated(from: u32, blocks: u32, date: &str) -> Hierarchy {
    let mut text = format!("2|lab|1|{blocks}|20000101|{date}|0\n");
    for n in from..from + blocks {
        writeln!(text, "lab|KE|ipv4|10.0.{n}.0|256|20000101|allocated|a").unwrap();
    }
    of(&text)
}

#[test]
fn a_quarters_growth_is_believed_and_a_landslide_is_not() {
    let before = dated(0, 100, "20260101");
    let after = dated(10, 100, "20260401").change_since(&before);
    assert_eq!((after.kept, after.added, after.removed), (90, 10, 10));
    assert!(!after.is_doubtful(), "{after}");
    assert!(dated(0, 79, "20260401").change_since(&before).is_doubtful(), "a fifth is gone");
    assert!(dated(0, 121, "20260401").change_since(&before).is_doubtful(), "a fifth is new");
    assert!(!dated(0, 120, "20260401").change_since(&before).is_doubtful());
}

#[test]
fn an_older_file_than_the_one_in_use_is_doubtful_and_named() {
    let change = dated(0, 100, "20251001").change_since(&dated(0, 100, "20260101"));
    assert!(change.is_doubtful());
    assert!(change.to_string().contains("file of lab is of 20251001, older than 20260101"), "{change}");
}

#[test]
fn the_first_hierarchy_may_be_anything() {
    assert!(!dated(0, 100, "20260101").change_since(&Hierarchy::empty()).is_doubtful());
}
