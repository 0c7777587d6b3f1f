//! Test that a page is new only once, though the daemon is killed again and again.
//!
//! A process of its own asks, and is killed for it. Only what was answered last, in memory, may be new again.

use super::*;
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    seen::{SeenAnswer, SeenBatch},
};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

/// Set in the process that is killed: the directory to work in.
const DIRECTORY: &str = "NEARCRAWL_TEST_KILLED";

/// Set there, too: how many batches were answered to those killed before.
const ANSWERED: &str = "NEARCRAWL_TEST_ANSWERED";

/// Pages in a batch.
const BATCH: u64 = 1_000;

/// Batches in each process: enough for the newest changes to fill memory and be swept into rows more than once.
const LIFE: u64 = 60;

/// So many batches are answered in memory at most before they are in the log, with 8 bytes a page.
const MAX_FORGOTTEN: u64 = 17;

/// The nth batch: all its pages were never asked about before, most of them are of one site.
fn batch(n: u64) -> SeenBatch {
    let site = if n.is_multiple_of(5) { 100 + n } else { 7 };
    let questions = (n * BATCH..(n + 1) * BATCH).map(|page| (Fingerprint(page).scoped(1), 3)).collect();
    SeenBatch { site: SiteNumber(site), depth: 8, visited: None, questions }
}

#[test]
fn a_page_is_new_once_though_its_askers_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{}::asks_until_it_is_killed", module_path!().split_once("::").unwrap().1);
    let mut answered = 0;
    for life in 1..=4 {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", &name, "--nocapture"]).env(DIRECTORY, dir.path()).env(ANSWERED, answered.to_string());
        let mut process = alone.stdout(Stdio::piped()).spawn().unwrap();
        let mut forgotten = 0;
        // Each process ends at another place of a batch, a sweep, a flush.
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(again) = line.strip_prefix("new again ") {
                let again: u64 = again.parse().unwrap();
                assert!(again + MAX_FORGOTTEN >= answered, "batch {again} was forgotten by a kill after {answered} batches");
                forgotten += 1;
            }
            if let Some(number) = line.strip_prefix("answered ") {
                answered = number.parse::<u64>().unwrap() + 1;
            }
            if answered >= life * LIFE + life * life {
                break;
            }
        }
        println!("{forgotten} batches were new again");
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(answered >= life * LIFE, "{answered} batches were answered in {life} lives");
    }
}

/// Does nothing unless the test above started it.
#[tokio::test]
async fn asks_until_it_is_killed() {
    let (Some(dir), Ok(answered)) = (std::env::var_os(DIRECTORY), std::env::var(ANSWERED)) else { return };
    let store = open(Path::new(&dir));
    let answered: u64 = answered.parse().unwrap();
    let mut forgotten = false;
    for n in 0..answered {
        let new = store.seen(&batch(n)).await.unwrap().into_iter().filter(|said| *said == SeenAnswer::New).count() as u64;
        assert!(new == 0 || new == BATCH, "{new} pages of batch {n}: a batch is in the log as a whole");
        assert!(new > 0 || !forgotten, "batch {n} is in the log, and one that was answered before it is not");
        forgotten = new > 0;
        if forgotten {
            println!("new again {n}");
        }
    }
    for n in answered.. {
        store.seen(&batch(n)).await.unwrap();
        println!("answered {n}");
    }
}
