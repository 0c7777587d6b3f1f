//! Tests of the store's answers: journals, claims, the seen set and the small tables.

use super::*;
use crate::store::{Appended, Growth, StoreError};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    fingerprint::Fingerprint,
    ids::SiteNumber,
    seen::{PageState, SeenAnswer, SeenBatch, SeenVisit},
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::atomic::Ordering::Relaxed,
};

fn rows_of(key: &JournalKey, from: u64, entries: &[&str]) -> Vec<JournalRow> {
    (from..).zip(entries).map(|(sequence, entry)| row(key, sequence, entry)).collect()
}

#[tokio::test]
async fn a_gap_closes_and_a_row_that_differs_replaces_all_that_a_previous_owner_wrote_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let key = journal("10.1.0.0/16", "a.example.org", 1);
    let next = |appended: Appended| appended.heads.into_iter().map(|(_, next)| next).collect::<Vec<_>>();
    assert_eq!(next(store.journal_append(vec![row(&key, 0, "a"), row(&key, 1, "b")]).await.unwrap()), [2]);
    assert_eq!(next(store.journal_append(vec![row(&key, 1, "b"), row(&key, 2, "c")]).await.unwrap()), [3]);
    assert_eq!(next(store.journal_append(vec![row(&key, 5, "f"), row(&key, 4, "e")]).await.unwrap()), [3], "3 is missing");
    assert_eq!(next(store.journal_append(vec![row(&key, 5, "f")]).await.unwrap()), [3]);
    assert_eq!(next(store.journal_append(vec![row(&key, 7, "h"), row(&key, 3, "d")]).await.unwrap()), [6], "6 is missing");
    let found = store.journal_read(key.clone(), 1, usize::MAX).await.unwrap();
    let found: Vec<_> = found.iter().map(|row| (row.sequence, std::str::from_utf8(&row.entry).unwrap())).collect();
    assert_eq!(found, [(1, "b"), (2, "c"), (3, "d"), (4, "e"), (5, "f"), (7, "h")]);
    assert_eq!(store.journals(None).await.unwrap(), [(key.clone(), 6)]);
    // Repeated rows change nothing, whatever lies behind them; the first that differs is where the new owner took over.
    assert_eq!(next(store.journal_append(rows_of(&key, 0, &["a", "b"])).await.unwrap()), [6]);
    assert_eq!(next(store.journal_append(rows_of(&key, 1, &["b", "x", "y", "x2"])).await.unwrap()), [5]);
    assert_eq!(
        next(store.journal_append([rows_of(&key, 5, &["z"]), rows_of(&key, 4, &["w"]), rows_of(&key, 5, &["v"])].concat()).await.unwrap()),
        [6]
    );
    let found = store.journal_read(key.clone(), 0, usize::MAX).await.unwrap();
    let found: Vec<_> = found.iter().map(|row| std::str::from_utf8(&row.entry).unwrap()).collect();
    assert_eq!(found, ["a", "b", "x", "y", "w", "v"]);
    assert_eq!(store.journals(None).await.unwrap(), [(key, 6)]);
}

#[tokio::test]
async fn what_the_journals_of_a_subnet_take_is_known_also_after_rows_were_replaced_and_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let [key, other] = ["a.example.org", "b.example.org"].map(|host| journal("10.1.0.0/16", host, 1));
    let grown = |growth: &Growth| growth.get(&key.subnet).copied().unwrap_or(0);
    let first = grown(&store.journal_append(rows_of(&key, 0, &["0123456789"; 10])).await.unwrap().growth);
    assert!((100..2_000).contains(&first), "entries and keys of ten rows are {first} bytes");
    assert_eq!(grown(&store.journal_append(rows_of(&key, 3, &["0123456789"; 7])).await.unwrap().growth), 0, "they are there already");
    let second = grown(&store.journal_append(rows_of(&other, 0, &["0123456789"; 10])).await.unwrap().growth);
    assert_eq!(store.journal_sizes().await.unwrap(), Growth::from([(key.subnet, first + second)]));
    let replaced = grown(&store.journal_append(rows_of(&key, 5, &["9876543210"])).await.unwrap().growth);
    assert_eq!(replaced, -first * 4 / 10, "five rows went, one came");
    assert_eq!(grown(&drop_one(&store, &other).await), -second);
    assert_eq!(grown(&drop_one(&store, &other).await), 0, "it was not there any more");
    store.close().await;
    let store = open(dir.path());
    assert_eq!(store.journal_sizes().await.unwrap(), Growth::from([(key.subnet, first + replaced)]));
}

/// Drops a journal of a site's first run.
async fn drop_one(store: &Store, key: &JournalKey) -> Growth {
    store.journal_drop_runs(JournalKey { run: key.run + 1, ..key.clone() }, false).await.unwrap()
}

#[tokio::test]
async fn the_copy_of_a_run_without_its_first_row_does_not_stay_in_place_of_the_whole_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let runs = [1, 2, 3, 4].map(|run| journal("10.0.0.0/16", "a.example.org", run));
    for (key, from) in runs.iter().zip([0, 0, 1, 0]) {
        store.journal_append(rows(key, from..4)).await.unwrap();
    }
    let left = |store: &Store| {
        let store = store.clone();
        async move { store.journals(None).await.unwrap().into_iter().map(|(key, _)| key.run).collect::<Vec<_>>() }
    };
    store.journal_drop_runs(runs[3].clone(), true).await.unwrap();
    assert_eq!(left(&store).await, [2, 4], "the third has no beginning");
    store.journal_append(rows(&runs[0], 1..4)).await.unwrap();
    store.journal_drop_runs(runs[3].clone(), false).await.unwrap();
    assert_eq!(left(&store).await, [4]);
}

#[tokio::test]
async fn journals_are_listed_by_subnet_and_dropped_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let wide = journal("10.0.0.0/8", "a.example.org", 1);
    let narrow = journal("10.0.0.0/16", "a.example.org", 1);
    let again = journal("10.0.0.0/16", "a.example.org", 2);
    let six = journal("2001:db8::/32", "b.example.org", 1);
    let all = [&wide, &narrow, &again, &six];
    let both: Vec<_> = all.iter().flat_map(|key| rows(key, 0..300)).collect();
    assert_eq!(store.journal_append(both).await.unwrap().heads, all.map(|key| (key.clone(), 300)));
    assert_eq!(store.journals(None).await.unwrap(), all.map(|key| (key.clone(), 300)));
    assert_eq!(store.journals(Some(subnet("10.0.0.0/16"))).await.unwrap(), [(narrow.clone(), 300), (again.clone(), 300)]);
    drop_one(&store, &narrow).await;
    drop_one(&store, &narrow).await;
    assert_eq!(store.journals(None).await.unwrap(), [&wide, &again, &six].map(|key| (key.clone(), 300)));
    assert!(store.journal_read(narrow.clone(), 0, usize::MAX).await.unwrap().is_empty());
    assert_eq!(store.journal_read(again, 0, usize::MAX).await.unwrap().len(), 300);
    // Of older runs the newest stays; other subnets and hosts are not concerned.
    let runs = [3, 4, 7].map(|run| journal("10.0.0.0/16", "a.example.org", run));
    store.journal_append(runs.iter().flat_map(|key| rows(key, 0..2)).collect()).await.unwrap();
    let (third, shrunk) = (runs[1].clone(), store.journal_drop_runs(runs[2].clone(), true).await.unwrap());
    assert!(shrunk[&third.subnet] < 0, "{shrunk:?}");
    assert_eq!(store.journals(None).await.unwrap(), [(wide, 300), (third, 2), (runs[2].clone(), 2), (six, 300)]);
    assert!(store.journal_drop_runs(runs[2].clone(), true).await.unwrap().is_empty());
    // It may begin anew, and does not find rows of its previous opening.
    assert_eq!(store.journal_append(vec![row(&narrow, 1, "b"), row(&narrow, 0, "a")]).await.unwrap().heads, [(narrow, 2)]);
}

#[tokio::test]
async fn a_subnet_is_read_page_by_page_whatever_the_size_of_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let net = "10.1.0.0/16";
    let keys: Vec<_> = ["a.org", "a.org.b.org", "b.org"].iter().flat_map(|h| (1..4).map(|run| journal(net, h, run))).collect();
    let wanted: Vec<_> = keys.iter().flat_map(|key| rows(key, 0..7)).collect();
    let neighbours = [journal("10.0.0.0/16", "z.org", 1), journal("10.1.0.0/17", "a.org", 1), journal("10.2.0.0/16", "a.org", 1)];
    store.journal_append(neighbours.iter().flat_map(|key| rows(key, 0..3)).collect()).await.unwrap();
    store.journal_append(wanted.clone()).await.unwrap();
    for most_bytes in [0, 40, 100, 1000, usize::MAX] {
        let (mut found, mut from) = (Vec::new(), None);
        for _ in 0..=wanted.len() {
            let (page, next) = store.journal_range(subnet(net), from, most_bytes).await.unwrap();
            assert!(page.len() == 1 || page.iter().map(|row| row.entry.len()).sum::<usize>() <= most_bytes);
            found.extend(page);
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(found, wanted, "pages of {most_bytes} bytes");
    }
    // A confused asker gets nothing of other subnets.
    let (page, next) = store.journal_range(subnet(net), Some((neighbours[2].clone(), 0)), usize::MAX).await.unwrap();
    assert!(page.is_empty() && next.is_none());
    assert_eq!(store.journal_range(subnet(net), Some((neighbours[0].clone(), 0)), usize::MAX).await.unwrap().0, wanted);
    assert_eq!(store.journal_read(keys[1].clone(), 2, 0).await.unwrap(), rows(&keys[1], 2..3), "at least one");
}

#[tokio::test]
async fn changes_that_come_together_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let keys: Vec<_> = (0..400).map(|n| journal("10.1.0.0/16", &format!("h{}.org", n % 50), n / 50)).collect();
    let appends = keys.iter().map(|key| store.journal_append(rows(key, 0..3)));
    for (key, done) in keys.iter().zip(futures::future::join_all(appends).await) {
        assert_eq!(done.unwrap().heads, [(key.clone(), 3)]);
    }
    let (writes, commits) = (store.counters().state_writes.load(Relaxed), store.counters().state_commits.load(Relaxed));
    assert_eq!(writes, 400);
    assert!(commits < 200, "{commits} commits for {writes} writes");
    assert_eq!(store.journals(None).await.unwrap().len(), 400);
}

#[tokio::test]
async fn claims_are_kept_one_to_a_subnet() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let claim = |net: &str, epoch| {
        let owner = AccessPoint(key.verifying_key().to_bytes());
        let subnet = subnet(net);
        let claim = Claim {
            subnet,
            epoch,
            owner,
            rtt_us: Some(900),
            runner_up: None,
            probes: 3,
            reason: ClaimReason::Awarded,
            released: false,
            answers: Vec::new(),
        };
        SignedClaim::sign(&claim, &key)
    };
    store.claims_put(vec![claim("10.2.0.0/16", 1), claim("10.1.0.0/16", 1)]).await.unwrap();
    store.claims_put(vec![claim("10.2.0.0/16", 2), claim("2001:db8::/32", 1)]).await.unwrap();
    let malformed = SignedClaim { bytes: vec![1, 2], signature: vec![], votes: None };
    assert_eq!(store.claims_put(vec![claim("10.9.0.0/16", 1), malformed]).await, Err(StoreError::MalformedClaim));
    drop(store);
    let all = open(dir.path()).claims_all().await.unwrap();
    assert_eq!(all, [claim("10.1.0.0/16", 1), claim("10.2.0.0/16", 2), claim("2001:db8::/32", 1)]);
    assert!(all.iter().all(|signed| signed.open().is_ok()));
}

#[tokio::test]
async fn small_tables_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for (name, key) in [("pins", "b"), ("pins", "a"), ("pin", "sc"), ("pinsa", "x")] {
        store.cache_put(name, key.as_bytes(), format!("{name} {key}").into_bytes()).await.unwrap();
    }
    let all = store.cache_all("pins").await.unwrap();
    assert_eq!(all, [(b"a".to_vec(), b"pins a".to_vec()), (b"b".to_vec(), b"pins b".to_vec())]);
    store.cache_delete("pins", b"a").await.unwrap();
    assert_eq!(store.cache_get("pins", b"a").await.unwrap(), None);
    assert_eq!(store.cache_get("pin", b"sc").await.unwrap(), Some(b"pin sc".to_vec()));
    for name in ["", "a\0b", &"long".repeat(17)] {
        assert!(matches!(store.cache_all(name).await, Err(StoreError::BadName(_))), "{name:?}");
        assert!(matches!(store.meta_put(name, vec![]).await, Err(StoreError::BadName(_))), "{name:?}");
    }
}

#[tokio::test]
async fn a_site_is_forgotten_whole_and_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (low, high) = (Fingerprint(0), Fingerprint(u64::MAX));
    for number in [0, 1, 2, u64::MAX] {
        let site = SiteNumber(number);
        let visit = SeenVisit { page: low, level: 0, children: vec![high, low] };
        let batch = SeenBatch { site, depth: 0, visited: Some(visit), questions: vec![(high, 1), (low, 1)] };
        assert_eq!(store.seen(&batch).await.unwrap(), [SeenAnswer::New, SeenAnswer::Known]);
        store.cut_put(site, vec![(high, format!("http://h{number}/"))]).await.unwrap();
        assert_eq!(store.children(site, low).await.unwrap(), [high, low]);
    }
    let ask = |site| SeenBatch { site, depth: 0, visited: None, questions: vec![(low, 0), (high, 0)] };
    for site in [SiteNumber(1), SiteNumber(u64::MAX)] {
        store.site_drop(site).await.unwrap();
        assert_eq!(store.seen(&ask(site)).await.unwrap(), [SeenAnswer::New, SeenAnswer::New]);
        assert!(store.children(site, low).await.unwrap().is_empty());
        assert_eq!(store.cut_take(site, vec![high]).await.unwrap(), [None]);
    }
    for number in [0, 2] {
        let site = SiteNumber(number);
        let cut = SeenAnswer::Shorter { was: PageState::Cut };
        assert_eq!(store.seen(&ask(site)).await.unwrap(), [SeenAnswer::Known, cut]);
        assert_eq!(store.seen(&ask(site)).await.unwrap(), [SeenAnswer::Known, SeenAnswer::Known]);
        let taken = store.cut_take(site, vec![low, high, high]).await.unwrap();
        assert_eq!(taken, [None, Some(format!("http://h{number}/")), None], "given out once");
        assert_eq!(store.cut_take(site, vec![high]).await.unwrap(), [None]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_new_to_exactly_one_of_many_askers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let askers = (0..8u64).map(|asker| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut new = Vec::new();
            for batch in 0..20u64 {
                let pages: Vec<_> = (0..50).map(|n| Fingerprint((batch * 50 + (n * 7 + asker * 13) % 50) * 3)).collect();
                let questions = pages.iter().map(|page| (*page, 3)).collect();
                let said = store.seen(&SeenBatch { site: SiteNumber(1), depth: 8, visited: None, questions }).await.unwrap();
                new.extend(pages.into_iter().zip(said).filter(|(_, said)| *said == SeenAnswer::New).map(|(page, _)| page));
            }
            new
        })
    });
    let new: Vec<_> = futures::future::try_join_all(askers).await.unwrap().concat();
    assert_eq!(new.len(), 1000);
    assert_eq!(new.into_iter().collect::<BTreeSet<_>>().len(), 1000);
    assert_eq!(store.counters().seen_new.load(Relaxed), 1000);
    assert_eq!(store.counters().seen_known.load(Relaxed), 7000);
}

#[tokio::test]
async fn small_questions_are_answered_on_the_spot_and_overtake_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let at_once = || store.counters().answered_at_once.load(Relaxed);
    store.seen(&SeenBatch { site: SiteNumber(1), depth: 8, visited: None, questions: vec![(Fingerprint(1), 1)] }).await.unwrap();
    assert_eq!(at_once(), 0, "the thread reads what there is");
    // It may still be putting its tools away.
    for n in 0.. {
        let questions = vec![(Fingerprint(9), 1)];
        store.seen(&SeenBatch { site: SiteNumber(2), depth: 8, visited: None, questions }).await.unwrap();
        if at_once() >= 50 {
            break;
        }
        assert!(n < 100_000, "{} on the spot", at_once());
    }
    let before = at_once();
    let mut loading =
        std::pin::pin!(store.site_load(SiteNumber(3), (0..200_000).map(|page| (Fingerprint(page), 1, PageState::Visited)).collect()));
    assert!(futures::poll!(&mut loading).is_pending());
    let questions = vec![(Fingerprint(199_999), 1)];
    let said = store.seen(&SeenBatch { site: SiteNumber(3), depth: 8, visited: None, questions }).await.unwrap();
    assert_eq!((said, at_once()), (vec![SeenAnswer::Known], before));
    loading.await.unwrap();
}

/// The seen set as it is told: a map, asked one question after another.
#[derive(Default)]
struct Told {
    pages: HashMap<(u64, u64), (u8, PageState)>,
    children: BTreeMap<(u64, u64), Vec<Fingerprint>>,
}

impl Told {
    fn seen(&mut self, batch: &SeenBatch) -> Vec<SeenAnswer> {
        if let Some(visit) = &batch.visited {
            let page = self.pages.entry((batch.site.0, visit.page.0)).or_insert((visit.level, PageState::Visited));
            *page = (page.0.min(visit.level), PageState::Visited);
            self.children.insert((batch.site.0, visit.page.0), visit.children.clone());
        }
        let state = |level| if level <= batch.depth { PageState::Waiting } else { PageState::Cut };
        let mut answers = Vec::new();
        for (page, level) in &batch.questions {
            let key = (batch.site.0, page.0);
            answers.push(match self.pages.get(&key).copied() {
                None => {
                    self.pages.insert(key, (*level, state(*level)));
                    SeenAnswer::New
                }
                Some((known, _)) if known <= *level => SeenAnswer::Known,
                Some((_, was)) => {
                    let now = if was == PageState::Cut { state(*level) } else { was };
                    self.pages.insert(key, (*level, now));
                    SeenAnswer::Shorter { was }
                }
            });
        }
        answers
    }
}

fn batches() -> impl Strategy<Value = SeenBatch> {
    let page = || (0u64..30).prop_map(Fingerprint);
    let visit =
        (page(), 0u8..64, prop::collection::vec(page(), 0..5)).prop_map(|(page, level, children)| SeenVisit { page, level, children });
    (0u64..2, 0u8..12, prop::option::of(visit), prop::collection::vec((page(), 0u8..64), 0..20))
        .prop_map(|(site, depth, visited, questions)| SeenBatch { site: SiteNumber(site), depth, visited, questions })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_seen_set_answers_as_if_asked_one_after_another(batches in prop::collection::vec(batches(), 1..40), reopen_at in 0usize..40) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let mut store = open(dir.path());
            let mut told = Told::default();
            for (n, batch) in batches.into_iter().enumerate() {
                if n == reopen_at {
                    drop(store);
                    store = open(dir.path());
                }
                let wanted = told.seen(&batch);
                prop_assert_eq!(store.seen(&batch).await.unwrap(), wanted);
            }
            for ((site, page), children) in &told.children {
                prop_assert_eq!(&store.children(SiteNumber(*site), Fingerprint(*page)).await.unwrap(), children);
            }
            // Filled from elsewhere, another site answers the same.
            for site in 0..2 {
                let of_site = || told.pages.iter().filter(|((s, _), _)| *s == site);
                let rows = of_site().map(|((_, page), (level, state))| (Fingerprint(*page), *level, *state)).collect();
                store.site_load(SiteNumber(site + 100), rows).await.unwrap();
                let questions: Vec<_> = (0..30).map(|page| (Fingerprint(page), 1)).collect();
                let mut batch = SeenBatch { site: SiteNumber(site), depth: 3, visited: None, questions };
                let said = store.seen(&batch).await.unwrap();
                batch.site = SiteNumber(site + 100);
                prop_assert_eq!(store.seen(&batch).await.unwrap(), said);
            }
            Ok(())
        })?;
    }
}
