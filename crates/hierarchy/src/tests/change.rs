//! Tests that a rebuild which changes too much is noticed.

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
    let after = Change::between(&before, &dated(4, 100, "20260401"));
    assert_eq!((after.kept, after.added, after.removed, after.days), (96, 4, 4, 90));
    assert!(!after.is_doubtful(), "{after}");
    assert!(!Change::between(&before, &dated(0, 105, "20260401")).is_doubtful());
    assert!(Change::between(&before, &dated(0, 106, "20260401")).is_doubtful(), "five in a hundred are explained");
    assert!(Change::between(&before, &dated(0, 94, "20260401")).is_doubtful());
}

#[test]
fn twenty_in_a_hundred_a_year_are_explained_by_time() {
    let before = dated(0, 100, "20240101");
    let two_years = Change::between(&before, &dated(0, 140, "20260101"));
    assert_eq!((two_years.days, (two_years.explained_ratio * 100.0).round()), (731, 40.0));
    assert!(!two_years.is_doubtful(), "{two_years}");
    assert!(Change::between(&before, &dated(0, 141, "20260101")).is_doubtful());
    assert!(Change::between(&before, &dated(0, 106, "20240301")).is_doubtful(), "in sixty days only the least is");
}

#[test]
fn each_registry_s_share_of_change_is_explained_by_the_age_of_its_own_file() {
    let both = |old_blocks: u32, old_date: &str, new_date: &str| {
        let mut builder = Builder::new();
        for (name, net, blocks, date) in [("old", 10, old_blocks, old_date), ("new", 11, 100, new_date)] {
            let mut text = format!("2|{name}|1|{blocks}|20000101|{date}|0\n");
            (0..blocks).for_each(|n| writeln!(text, "{name}|KE|ipv4|{net}.0.{n}.0|256|20000101|allocated|a").unwrap());
            builder.read_delegated(name, text.as_bytes()).unwrap();
        }
        builder.finish().unwrap()
    };
    // A hundred subnets of a file of 2018, and a hundred of one of this year: 160 and 5 of them may have come.
    let before = both(100, "20180101", "20260101");
    let after = Change::between(&before, &both(250, "20260101", "20260102"));
    assert_eq!((after.days, (after.explained_ratio * 1000.0).round()), (1461, 825.0));
    assert!(!after.is_doubtful(), "{after}");
    let only_new = both(100, "20180101", "20260102");
    assert!(Change::between(&before, &only_new).explained_ratio < 0.06, "a file of the same day explains nothing");
}

#[test]
fn an_older_file_than_the_one_in_use_is_doubtful_and_named() {
    let change = Change::between(&dated(0, 100, "20260101"), &dated(0, 100, "20251001"));
    assert!(change.is_doubtful());
    assert!(change.to_string().contains("file of lab is of 20251001, older than 20260101"), "{change}");
}

#[test]
fn a_registry_does_not_go_however_much_time_would_explain() {
    let other = dated(0, 100, "20260101");
    let mut builder = Builder::new();
    builder.read_delegated("lab", "2|lab|1|1|20000101|20160101|0\nlab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\n".as_bytes()).unwrap();
    builder.read_delegated("gone", "2|gone|1|1|20000101|20160101|0\ngone|KE|ipv4|11.0.0.0|256|20000101|allocated|a\n".as_bytes()).unwrap();
    let change = Change::between(&builder.finish().unwrap(), &other);
    assert_eq!(change.missing, ["gone"]);
    assert!(change.is_doubtful() && change.to_string().contains("nothing is from gone any more"), "{change}");
}

#[test]
fn the_first_hierarchy_may_be_anything() {
    assert!(!Change::between(&empty(), &dated(0, 100, "20260101")).is_doubtful());
}

#[test]
fn a_diff_counts_moved_addresses_holders_and_registries() {
    let before = of("lab|KE|ipv4|10.0.0.0|1024|20000101|allocated|a\nlab|KE|ipv4|10.9.0.0|256|20000101|allocated|b\n");
    let now = of(
        "lab|KE|ipv4|10.0.0.0|1024|20000101|allocated|c\nlab|UG|ipv4|10.0.1.0|256|20000101|allocated|a\nnew|UG|ipv4|255.255.255.0|256|20000101|allocated|d\n",
    );
    let diff = Diff::between(&before, &now);
    assert_eq!((diff.change.kept, diff.change.added, diff.change.removed), (1, 2, 1));
    // 10.0.1.0/24 has a smaller subnet now, 10.9.0.0/24 has none any more, the last 256 addresses have got one.
    assert_eq!(diff.moved_ipv4_addresses, 3 * 256);
    assert_eq!((diff.other_holder, diff.other_country), (1, 0));
    assert_eq!((diff.organisations_kept, diff.organisations_added, diff.organisations_removed), (1, 2, 1));
    assert_eq!(diff.registries["lab"], RegistryDiff { kept: 1, added: 1, removed: 1 });
    assert_eq!(diff.registries["new"], RegistryDiff { kept: 0, added: 1, removed: 0 });
    assert!(diff.doubtful && diff.to_string().contains("768 of IPv4"), "{diff}");
    let none = Diff::between(&before, &before);
    assert!(none.same_hash && !none.doubtful && none.moved_ipv4_addresses == 0, "{none}");
}
