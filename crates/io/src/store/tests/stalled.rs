//! Test that no caller waits for a disk that stands still.
//!
//! The thread that asks is the one that decides: it may only be told to wait, never wait.
//!
//! The fault point holds for a whole process, so the test runs in one of its own.

use super::*;
use futures::{StreamExt, poll, stream::FuturesOrdered};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    seen::{SeenAnswer, SeenBatch, SeenVisit},
};
use std::{
    process::Command,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

/// Set in the process that works: its directory, and the file that stops its disk.
const DIRECTORY: &str = "NEARCRAWL_TEST_STALLED";
const STALL: &str = "NEARCRAWL_STALL_STORE";

/// For how long the disk stands still.
const STANDS_STILL: Duration = Duration::from_secs(2);

/// One step of an asker takes no longer, on a machine that is busy with other tests; a disk that is waited for takes [`STANDS_STILL`].
const MAX_STEP: Duration = Duration::from_millis(500);

/// The nth batch: a visited page with pages that nobody asked about before.
fn batch(n: u64) -> SeenBatch {
    let page = |i: u64| Fingerprint(n * 100 + i).scoped(1);
    let visited = Some(SeenVisit { page: page(0), level: 1, children: (1..40).map(page).collect() });
    SeenBatch { site: SiteNumber(7), depth: 8, visited, questions: (1..40).map(|i| (page(i), 2)).collect() }
}

#[test]
fn nobody_who_asks_waits_for_a_disk_that_stands_still() {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{}::in_a_process_of_its_own", module_path!().split_once("::").unwrap().1);
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", &name, "--nocapture"]).env(DIRECTORY, dir.path()).env(STALL, dir.path().join("stall"));
    let done = alone.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    println!("{said}");
}

/// Does nothing unless the test above started it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    let (Some(dir), Some(stall)) = (std::env::var_os(DIRECTORY), std::env::var_os(STALL)) else { return };
    let store = open(&Path::new(&dir).join("store"));
    let at_once = || store.counters().answered_at_once.load(Relaxed);
    let mut asked = 0;
    // Past the first generation, so that there are rows to be read and pages to be swept, too.
    while asked < 1_500 || at_once() < 50 {
        let said = store.seen(&batch(asked)).await.unwrap();
        assert!(said.iter().all(|said| *said == SeenAnswer::New), "batch {asked}: {said:?}");
        asked += 1;
    }
    // More than callers answer themselves: the thread writes and sweeps what there is before it answers. Then it is idle again.
    let known = (0..30).flat_map(|n| batch(n).questions).collect();
    store.seen(&SeenBatch { site: SiteNumber(7), depth: 8, visited: None, questions: known }).await.unwrap();
    let idle = at_once();
    while at_once() == idle {
        store.seen(&batch(0)).await.unwrap();
    }
    fs::write(&stall, "").unwrap();
    let (begun, before) = (Instant::now(), at_once());
    let restarted = std::thread::spawn(move || {
        std::thread::sleep(STANDS_STILL);
        fs::remove_file(stall).unwrap();
    });
    let first = asked;
    let (mut waiting, mut longest) = (FuturesOrdered::new(), Duration::ZERO);
    while begun.elapsed() < STANDS_STILL - MAX_STEP && waiting.len() < 200 {
        let step = Instant::now();
        let store = store.clone();
        let mut asking = Box::pin(async move { store.seen(&batch(asked)).await });
        if let std::task::Poll::Ready(said) = poll!(&mut asking) {
            assert!(waiting.is_empty(), "batch {asked} overtook another");
            assert!(said.unwrap().iter().all(|said| *said == SeenAnswer::New));
        } else {
            waiting.push_back(asking);
        }
        longest = longest.max(step.elapsed());
        asked += 1;
    }
    let (in_memory, queued) = (at_once() - before, waiting.len());
    println!("{in_memory} answered in memory, {queued} waiting, the longest step {longest:?}");
    assert!(longest < MAX_STEP, "an asker was held up for {longest:?}");
    assert!(in_memory > 0 && queued > 0, "answered as long as that needs no disk, then queued: {in_memory}, {queued}");
    while store.silent_for() < Duration::from_millis(100) {
        assert!(begun.elapsed() < STANDS_STILL, "it is not seen that the store does not answer");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    restarted.join().unwrap();
    while let Some(said) = waiting.next().await {
        assert!(said.unwrap().iter().all(|said| *said == SeenAnswer::New));
    }
    for n in 0..asked {
        let said = store.seen(&batch(n)).await.unwrap();
        assert!(said.iter().all(|said| *said == SeenAnswer::Known), "batch {n} of {first} before it and {asked}: {said:?}");
        assert_eq!(store.children(SiteNumber(7), batch(n).visited.unwrap().page).await.unwrap().len(), 39, "batch {n}");
    }
}
