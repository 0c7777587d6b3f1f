//! Tests of the rule of yield: what it leaves out, and that every reader of a journal decides alike.

use super::*;
use nearcrawl_model::ids::SiteNumber;

/// A site whose `/links/` name a new host each, whose `/old/` name none, all found on the front page.
fn two_branches(pages: usize) -> Vec<JournalEntry> {
    let paths: Vec<String> = (0..pages).flat_map(|number| [format!("/old/{number}"), format!("/links/{number}")]).collect();
    let links: Vec<(&str, u8)> = paths.iter().map(|path| (path.as_str(), 1)).collect();
    vec![JournalEntry::Admitted { urls: found(&[("/", 0)]) }, robots(""), visited("/", 0, &links, &[])]
}

/// Asks all that the rules let it, and returns the journal's further entries.
fn ask_all(site: &mut Site, rules: &SiteRules) -> Vec<JournalEntry> {
    let mut entries = Vec::new();
    loop {
        let entry = match site.next(WallTime(4), rules, &KEY) {
            Next::Nothing => return entries,
            Next::Skip(url, reason) => JournalEntry::Skipped { url, reason },
            Next::Fetch(order) => {
                let path = order.url.path_and_query();
                let host = path.strip_prefix("/links/").map(|number| format!("http://h{number}.example/"));
                visited(path, 1, &[], &host.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        site.apply(&entry, rules, &KEY);
        entries.push(entry);
    }
}

#[test]
fn a_branch_that_brings_too_little_is_left_out_and_its_journal_tells_the_same() {
    let rules = SiteRules { price: Price::of(0.05).unwrap(), ..rules() };
    let (key, mut entries) = opened();
    entries.extend(two_branches(100));
    let mut site = replay(key.clone(), SiteNumber(1), &entries, &rules, &KEY).unwrap().site;
    entries.extend(ask_all(&mut site, &rules));
    let record = &site.record;
    assert!((50..98).contains(&record.cut_by_yield), "{}", record.cut_by_yield);
    assert_eq!((record.pages, record.external_hosts, record.state), (201 - record.cut_by_yield, 101, RunState::CutByYield));
    assert!(site.finished());
    // Wherever the previous owner stopped, the next one goes on alike.
    for end in [4, 20, 60, entries.len()] {
        let mut successor = replay(key.clone(), SiteNumber(2), &entries[..end], &rules, &KEY).unwrap().site;
        assert_eq!(ask_all(&mut successor, &rules), entries[end..], "from {end} on");
        assert_eq!(successor.record, site.record);
    }
    let free = SiteRules { price: Price::default(), ..rules };
    let mut site = replay(key, SiteNumber(3), &entries[..5], &free, &KEY).unwrap().site;
    ask_all(&mut site, &free);
    assert_eq!((site.record.pages, site.record.cut_by_yield, site.record.state), (201, 0, RunState::Complete));
}

#[test]
fn what_was_left_out_is_asked_for_if_it_is_named_as_a_starting_url() {
    let rules = SiteRules { price: Price::of(0.05).unwrap(), ..rules() };
    let (key, mut entries) = opened();
    entries.extend(two_branches(100));
    let mut site = replay(key.clone(), SiteNumber(1), &entries, &rules, &KEY).unwrap().site;
    entries.extend(ask_all(&mut site, &rules));
    let (known, left_out, last) = (site.record.known, site.record.cut_by_yield, KEY.of(page("/old/99").as_str()));
    assert!(site.left_out(last));
    let replayed = replay(key, SiteNumber(1), &entries, &rules, &KEY).unwrap();
    assert!(replayed.seen.contains(&(last, 1, PageState::Waiting)), "the seen set goes on expecting it");
    site.apply(&JournalEntry::Raised { urls: found(&[("/old/99", 0)]), visited: Vec::new() }, &rules, &KEY);
    assert_eq!((site.record.known, site.record.cut_by_yield, site.finished()), (known, left_out - 1, false));
    let asked = ask_all(&mut site, &rules);
    assert!(matches!(&asked[..], [JournalEntry::Visited { url, .. }] if *url == page("/old/99")), "{asked:?}");
    assert_eq!(site.record.state, RunState::CutByYield);
}

#[test]
fn what_only_the_further_rows_of_a_visit_name_counts_too() {
    let rules = SiteRules { price: Price::of(0.05).unwrap(), ..rules() };
    // How many pages of `/links/` are asked for. Other sites handed over all they name before: nothing is outgoing.
    let asked = |further: &dyn Fn(&str, &str) -> Option<JournalEntry>| {
        let (key, mut entries) = opened();
        entries.extend(two_branches(100));
        let mut site = replay(key, SiteNumber(1), &entries, &rules, &KEY).unwrap().site;
        let mut asked = 0;
        loop {
            match site.next(WallTime(4), &rules, &KEY) {
                Next::Nothing => return asked,
                Next::Skip(url, reason) => site.apply(&JournalEntry::Skipped { url, reason }, &rules, &KEY),
                Next::Fetch(order) => {
                    let path = order.url.path();
                    site.apply(&visited(path, 1, &[], &[]), &rules, &KEY);
                    if let Some(number) = path.strip_prefix("/links/") {
                        asked += 1;
                        further(path, number).iter().for_each(|row| site.apply(row, &rules, &KEY));
                    }
                }
            }
        }
    };
    let nothing = asked(&|_, _| None);
    let hosts = asked(&|path, number| Some(kept(path, None, 0, &[&format!("http://h{number}.example/")])));
    assert!(nothing < 50 && hosts == 100, "{nothing} {hosts}");
    // Twenty links that come again and again tell that the branch looks outward, but what part of them is new falls.
    let again = asked(&|path, number| {
        let link = KEY.of(number).half() % 20;
        Some(JournalEntry::Beyond { page: KEY.of(path), urls: vec![link] })
    });
    let menu = asked(&|path, _| Some(JournalEntry::Beyond { page: KEY.of(path), urls: vec![1] }));
    assert!(again > menu && again < 100, "{nothing} {menu} {again}");
}
