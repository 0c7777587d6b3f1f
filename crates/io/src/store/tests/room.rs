//! Tests with a full disk: nothing that was answered is lost, and writing goes on once there is space again.
//!
//! The limit on file sizes stands for a full disk: it holds for a whole process, so the test runs in one of its own.

use super::*;
use crate::store::StoreError;
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    seen::{SeenAnswer, SeenBatch},
};
use std::{
    process::Command,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

/// Set in the process that has the limit: the directory to work in.
const DIRECTORY: &str = "NEARCRAWL_TEST_FULL_DISK";

/// Lets files grow to `bytes` from now on, and gets an error instead of a signal when one would grow beyond.
fn limit_files_to(bytes: libc::rlim_t) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls on a structure of ours; ignoring a signal installs no handler.
    unsafe {
        assert_ne!(libc::signal(libc::SIGXFSZ, libc::SIG_IGN), libc::SIG_ERR);
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit), 0);
        limit.rlim_cur = bytes.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

/// Runs another test of this file in a process of its own, which has the directory to work in.
fn alone(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let done = alone.args(["--exact", &name, "--nocapture"]).env(DIRECTORY, dir.path()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    println!("{said}");
}

#[test]
fn a_full_disk_loses_nothing_and_writing_goes_on_by_itself() {
    alone("in_a_process_of_its_own");
}

#[test]
fn a_question_that_failed_on_a_full_disk_may_be_asked_again() {
    alone("asks_on_a_full_disk");
}

/// Does nothing unless the test above started it.
#[tokio::test]
async fn asks_on_a_full_disk() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let config = StoreConfig { retry_full_disk: Duration::from_millis(20), ..config() };
    let (store, _) = Store::open(Path::new(&dir), &config).unwrap();
    // So many that the newest changes are swept into rows again and again.
    let batch = |n: u64| SeenBatch {
        site: SiteNumber(7 + n % 2),
        depth: 8,
        visited: None,
        questions: (n * 1_000..(n + 1) * 1_000).map(|page| (Fingerprint(page).scoped(1), 3)).collect(),
    };
    let (mut asked, mut refused) = (0, 0);
    for cycle in 1..=5u64 {
        limit_files_to(150_000 * cycle);
        for _ in 0..100 {
            match store.seen(&batch(asked)).await {
                Ok(said) => assert!(said.iter().all(|said| *said == SeenAnswer::New), "cycle {cycle}: batch {asked}"),
                Err(error) => {
                    assert!(matches!(error, StoreError::NoSpace(_)), "cycle {cycle}: {error:?}");
                    refused += 1;
                    break;
                }
            }
            asked += 1;
        }
        limit_files_to(libc::RLIM_INFINITY);
        let since = Instant::now();
        let said = loop {
            match store.seen(&batch(asked)).await {
                Ok(said) => break said,
                Err(error) => assert!(since.elapsed() < Duration::from_secs(20), "cycle {cycle}: {error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(said.iter().all(|said| *said == SeenAnswer::New), "cycle {cycle}: batch {asked} was refused and entered all the same");
        asked += 1;
    }
    println!("{asked} batches, {refused} times refused");
    assert!(refused >= 3, "the disk was full only {refused} times");
    for n in 0..asked {
        assert!(store.seen(&batch(n)).await.unwrap().iter().all(|said| *said == SeenAnswer::Known), "batch {n} was forgotten");
    }
}

/// Does nothing unless the test above started it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let config = StoreConfig { retry_full_disk: Duration::from_millis(20), ..config() };
    let (store, _) = Store::open(Path::new(&dir), &config).unwrap();
    let key = journal("10.1.0.0/16", "a.example.org", 1);
    // Entries that no compression makes smaller.
    let entry = |n: u64| (0..40_000u64).map(|i| (i.wrapping_mul(n * 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let append = |n: u64| store.journal_append(vec![JournalRow { key: key.clone(), sequence: n, entry: entry(n) }]);
    let mut answered = 0;
    for cycle in 0..5u64 {
        limit_files_to(400_000);
        let mut refused = None;
        for _ in 0..200 {
            match append(answered).await {
                Ok(_) => answered += 1,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        assert!(matches!(refused, Some(StoreError::NoSpace(_))), "cycle {cycle}: {refused:?} after {answered}");
        let found = store.journal_read(key.clone(), 0, usize::MAX).await.unwrap();
        assert!(found.len() as u64 >= answered, "cycle {cycle}: still read while full: {} of {answered}", found.len());
        limit_files_to(libc::RLIM_INFINITY);
        let since = Instant::now();
        while let Err(error) = append(answered).await {
            assert!(matches!(error, StoreError::NoSpace(_)), "cycle {cycle}: {error:?}");
            assert!(since.elapsed() < Duration::from_secs(20), "cycle {cycle}: not writing again");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        answered += 1;
    }
    assert!(store.counters().no_space.load(Relaxed) >= 5);
    assert!(store.counters().reopened.load(Relaxed) >= 5);
    drop(store);
    let store = open(Path::new(&dir));
    let found = store.journal_read(key, 0, usize::MAX).await.unwrap();
    assert_eq!(found.len() as u64, answered);
    assert!(found.iter().enumerate().all(|(n, row)| row.sequence == n as u64 && row.entry == entry(n as u64)));
}

#[tokio::test]
async fn the_disk_can_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let before = store.disk_usage().await.unwrap();
    store.meta_put("large", vec![7; 300_000]).await.unwrap();
    assert!(store.disk_usage().await.unwrap() >= before + 300_000);
    assert!(store.free_space().await.unwrap() > 0);
    assert_eq!(store.waiting(), (0, 0));
}
