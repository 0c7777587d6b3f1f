//! Tests of what is found when a directory is opened again: after a close, a kill, an upgrade, damage.

use super::*;
use crate::store::{FORMAT, OpenError, StoreError};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    seen::{SeenAnswer, SeenBatch},
};
use std::{collections::BTreeMap, io, path::PathBuf};

/// A way to damage a database, by name.
type Way = (&'static str, fn(&Path));

fn ask(pages: impl IntoIterator<Item = u64>) -> SeenBatch {
    SeenBatch { site: SiteNumber(7), depth: 8, visited: None, questions: pages.into_iter().map(|n| (Fingerprint(n), 1)).collect() }
}

/// Files by name and content.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), if path.is_dir() { Vec::new() } else { fs::read(path).unwrap() })).collect()
}

fn file_with(dir: &Path, fits: impl Fn(&str) -> bool) -> PathBuf {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| fits(path.file_name().unwrap().to_str().unwrap())).max().expect("such a file exists")
}

fn flip(path: &Path, places: impl Iterator<Item = usize>) {
    let mut bytes = fs::read(path).unwrap();
    for at in places {
        let at = at % bytes.len();
        bytes[at] ^= 0x5a;
    }
    fs::write(path, bytes).unwrap();
}

/// A closed directory with something in both databases.
async fn filled(dir: &Path) -> JournalKey {
    let key = journal("10.1.0.0/16", "a.example.org", 1);
    let store = open(dir);
    store.journal_append(rows(&key, 0..500)).await.unwrap();
    store.meta_put("incarnation", vec![1]).await.unwrap();
    store.seen(&ask(0..5000)).await.unwrap();
    store.close().await;
    key
}

#[tokio::test]
async fn everything_is_there_after_a_drop() {
    let dir = tempfile::tempdir().unwrap();
    let key = journal("10.1.0.0/16", "a.example.org", 1);
    let (store, report) = Store::open(dir.path(), &config()).unwrap();
    assert!(report.new && report.cache_rebuilt.is_none());
    store.meta_put("incarnation", vec![1, 2]).await.unwrap();
    store.journal_append(rows(&key, 0..3)).await.unwrap();
    store.seen(&ask([1, 2])).await.unwrap();
    drop(store);
    let (store, report) = Store::open(dir.path(), &config()).unwrap();
    assert!(!report.new && report.cache_rebuilt.is_none());
    assert_eq!(store.meta_get("incarnation").await.unwrap(), Some(vec![1, 2]));
    assert_eq!(store.journal_read(key, 0, usize::MAX).await.unwrap().len(), 3);
    assert_eq!(store.seen(&ask([2, 3])).await.unwrap(), [SeenAnswer::Known, SeenAnswer::New]);
}

#[tokio::test]
async fn a_closed_store_answers_no_more_and_frees_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let other = store.clone();
    store.close().await;
    store.close().await;
    assert_eq!(other.meta_get("incarnation").await, Err(StoreError::Closed));
    assert_eq!(other.seen(&ask([1])).await, Err(StoreError::Closed));
    open(dir.path()).meta_put("incarnation", vec![2]).await.unwrap();
}

/// While writers run, the directory is copied as it lies on the disk, again and again: every copy must hold what was answered
/// before the copying began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("live"));
    let keys: Vec<_> = (0..4).map(|n| journal("10.1.0.0/16", &format!("h{n}.example.org"), 1)).collect();
    for round in 0..5u64 {
        let appended = keys.iter().map(|key| store.journal_append(rows(key, round * 20..round * 20 + 20)));
        futures::future::try_join_all(appended).await.unwrap();
        store.seen(&ask(round * 100..round * 100 + 100)).await.unwrap();
        // What was answered in memory is in the log before the thread reads anything that depends on it.
        store.children(SiteNumber(1), Fingerprint(0)).await.unwrap();
        // More is under way while the copy is made.
        let (busy, key) = (store.clone(), keys[0].clone());
        let writer = tokio::spawn(async move {
            for n in 0..20 {
                busy.journal_append(vec![row(&key, (round + 1) * 20 + n, &format!("entry {}", (round + 1) * 20 + n))]).await.unwrap();
            }
        });
        let (live, copied) = (dir.path().join("live"), dir.path().join(format!("killed-{round}")));
        // The cache's files may vanish in compaction while they are copied; its log is enough here.
        copy(&live, &copied);
        let killed = open(&copied);
        for key in &keys {
            let found = killed.journal_read(key.clone(), 0, usize::MAX).await.unwrap();
            assert!(found.len() as u64 >= round * 20 + 20);
            assert_eq!(found, rows(key, 0..found.len() as u64));
            assert!(killed.journals(None).await.unwrap().contains(&(key.clone(), found.len() as u64)));
        }
        assert!(killed.seen(&ask(0..round * 100 + 100)).await.unwrap().iter().all(|said| *said == SeenAnswer::Known));
        writer.await.unwrap();
    }
}

#[test]
fn a_second_daemon_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _store = open(dir.path());
    for _ in 0..20 {
        let error = Store::open(dir.path(), &config()).unwrap_err();
        assert_eq!(error, OpenError::InUse { dir: dir.path().to_path_buf() });
        assert_eq!(error.exit_status(), 73);
    }
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_a_byte_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    fs::write(dir.path().join("format"), format!("{}\n", FORMAT + 1)).unwrap();
    let before = [contents(dir.path()), contents(&dir.path().join("state")), contents(&dir.path().join("cache"))];
    let error = Store::open(dir.path(), &config()).unwrap_err();
    assert_eq!(error, OpenError::NewerFormat { dir: dir.path().to_path_buf(), found: FORMAT + 1, ours: FORMAT });
    assert_eq!(error.exit_status(), 78);
    assert!(error.to_string().contains("install the newer version"), "{error}");
    assert_eq!(before, [contents(dir.path()), contents(&dir.path().join("state")), contents(&dir.path().join("cache"))]);
}

#[tokio::test]
async fn a_damaged_cache_is_moved_aside_and_begun_anew() {
    let ways: [Way; 5] = [
        ("CURRENT is gone", |cache| fs::remove_file(cache.join("CURRENT")).unwrap()),
        ("CURRENT is rubbish", |cache| fs::write(cache.join("CURRENT"), b"rubbish").unwrap()),
        ("the manifest has flipped bytes", |cache| flip(&file_with(cache, |n| n.starts_with("MANIFEST")), (8..200).step_by(7))),
        ("a table is gone", |cache| fs::remove_file(file_with(cache, |n| n.ends_with(".sst"))).unwrap()),
        ("it says that it is damaged", |cache| fs::write(cache.join("DAMAGED"), b"flipped bytes").unwrap()),
    ];
    for (what, harm) in ways {
        let dir = tempfile::tempdir().unwrap();
        let key = filled(dir.path()).await;
        harm(&dir.path().join("cache"));
        let (store, report) = Store::open(dir.path(), &config()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let rebuilt = report.cache_rebuilt.unwrap_or_else(|| panic!("{what}: not noticed"));
        assert_eq!(rebuilt.moved_to, dir.path().join("cache.damaged-1"), "{what}");
        assert!(rebuilt.moved_to.is_dir() && !rebuilt.reason.is_empty(), "{what}");
        assert_eq!(store.seen(&ask([1])).await.unwrap(), [SeenAnswer::New], "{what}");
        assert_eq!(store.journal_read(key, 0, usize::MAX).await.unwrap().len(), 500, "{what}: the state is as it was");
        store.close().await;
        assert!(Store::open(dir.path(), &config()).unwrap().1.cache_rebuilt.is_none(), "{what}: once is enough");
    }
}

/// Flipped bytes in a table are only found when it is read: from then on nothing is answered, and the next opening rebuilds.
#[tokio::test]
async fn a_cache_found_damaged_in_use_answers_no_more_and_is_rebuilt_at_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let tables = contents(&dir.path().join("cache")).into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "sst"));
    let (largest, bytes) = tables.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    // Rows in front; index, filter and footer behind stay whole, so that opening goes well.
    flip(&largest, (0..bytes.len() / 4).step_by(50));
    let (store, report) = Store::open(dir.path(), &config()).unwrap();
    assert!(report.cache_rebuilt.is_none(), "{report:?}");
    let said = store.seen(&ask(0..5000)).await;
    assert!(matches!(said, Err(StoreError::CacheDamaged { .. })), "{said:?}");
    assert!(matches!(store.seen(&ask([1_000_000])).await, Err(StoreError::CacheDamaged { .. })), "never a silent wrong answer");
    assert_eq!(store.counters().damaged.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(store.meta_get("incarnation").await.unwrap(), Some(vec![1]), "the state goes on");
    assert_eq!(store.state_damage().await, None);
    store.close().await;
    let (store, report) = Store::open(dir.path(), &config()).unwrap();
    assert!(report.cache_rebuilt.is_some());
    assert_eq!(store.seen(&ask([1])).await.unwrap(), [SeenAnswer::New]);
}

/// The same in the state: the words and the exit status are those of an opening that finds the damage, as at the next opening.
#[tokio::test]
async fn a_state_found_damaged_in_use_answers_no_more_and_says_what_an_opening_would() {
    let dir = tempfile::tempdir().unwrap();
    let key = filled(dir.path()).await;
    let tables = contents(&dir.path().join("state")).into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "sst"));
    let (largest, bytes) = tables.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    flip(&largest, (0..bytes.len() / 4).step_by(50));
    let store = open(dir.path());
    assert_eq!(store.state_damage().await, None, "nobody has come across it");
    let found = store.journal_read(key, 0, usize::MAX).await.unwrap_err();
    assert!(matches!(found, StoreError::StateDamaged { .. }), "{found:?}");
    assert_eq!(store.state_damage().await, Some(found.clone()), "whoever asks next is told, too");
    assert_eq!(store.meta_put("incarnation", vec![2]).await, Err(found.clone()));
    store.close().await;
    let error = Store::open(dir.path(), &config()).unwrap_err();
    assert_eq!((found.exit_status(), found.to_string()), (error.exit_status(), error.to_string()));
    assert!(error.exit_status() == 74 && error.to_string().contains("restore it from a copy"), "{error}");
}

#[tokio::test]
async fn only_the_newest_damaged_caches_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        filled(dir.path()).await;
        fs::write(dir.path().join("cache/CURRENT"), b"rubbish").unwrap();
    }
    drop(open(dir.path()));
    let kept: Vec<_> = contents(dir.path()).into_keys().filter(|path| path.to_str().unwrap().contains("damaged")).collect();
    assert_eq!(kept, [dir.path().join("cache.damaged-4"), dir.path().join("cache.damaged-5")]);
}

#[tokio::test]
async fn a_damaged_state_is_refused_with_a_clear_message() {
    let ways: [Way; 5] = [
        ("CURRENT is gone", |dir| fs::remove_file(dir.join("state/CURRENT")).unwrap()),
        ("the manifest has flipped bytes", |dir| flip(&file_with(&dir.join("state"), |n| n.starts_with("MANIFEST")), (8..200).step_by(7))),
        ("a table is gone", |dir| fs::remove_file(file_with(&dir.join("state"), |n| n.ends_with(".sst"))).unwrap()),
        ("all of it is gone", |dir| fs::remove_dir_all(dir.join("state")).unwrap()),
        ("the format is rubbish", |dir| fs::write(dir.join("format"), b"\0\0\0").unwrap()),
    ];
    for (what, harm) in ways {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path()).await;
        harm(dir.path());
        let error = Store::open(dir.path(), &config()).expect_err(what);
        assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error:?}");
        assert_eq!(error.exit_status(), 74);
        assert!(error.to_string().contains("restore it from a copy"), "{what}: {error}");
        // Nothing stays locked by the attempt, and trying again does not make it look sound.
        assert!(matches!(Store::open(dir.path(), &config()), Err(OpenError::Damaged { .. })), "{what}");
    }
}

/// A power cut may tear the last record of the log: what was synced before is there, and the directory opens.
#[tokio::test]
async fn a_torn_log_loses_only_its_torn_end() {
    let dir = tempfile::tempdir().unwrap();
    let key = journal("10.1.0.0/16", "a.example.org", 1);
    let store = open(&dir.path().join("live"));
    store.journal_append(rows(&key, 0..10)).await.unwrap();
    let log = file_with(&dir.path().join("live/state"), |n| n.ends_with(".log"));
    let synced = fs::metadata(&log).unwrap().len() as usize;
    store.journal_append(rows(&key, 10..20)).await.unwrap();
    let whole = fs::metadata(&log).unwrap().len() as usize;
    for (n, cut) in (synced..=whole).step_by((whole - synced) / 6).enumerate() {
        let torn = dir.path().join(format!("torn-{n}"));
        copy(&dir.path().join("live"), &torn);
        let log = torn.join("state").join(log.file_name().unwrap());
        let bytes = fs::read(&log).unwrap();
        fs::write(&log, &bytes[..cut]).unwrap();
        let found = open(&torn).journal_read(key.clone(), 0, usize::MAX).await.unwrap();
        assert_eq!(found, rows(&key, 0..if cut == whole { 20 } else { 10 }), "cut at {cut} of {synced}..{whole}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Store::open(&file.join("state"), &config()).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("file/state"), "{error}");
    assert_eq!(fs::metadata(file.join("state")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
}
