//! Tests that an edition comes whole from members of whom some lie, and that none is taken that is not what it is called.

use super::*;
use crate::node::{config::Config, hierarchy::snapshot_store::edition_of};
use nearcrawl_hierarchy::{Builder, CHUNK_LENGTH, MAX_FILE, pack};
use nearcrawl_model::message::MAX_MESSAGE;
use serde::Serialize;
use sha2::{Digest, Sha256};

fn member(number: u8) -> AccessPoint {
    AccessPoint([number; 32])
}

/// A world of many /24s, large enough for several pieces.
fn hierarchy(date: u32, blocks: std::ops::Range<u32>) -> Hierarchy {
    let mut text = format!("2|lab|{date}|{}|19700101|{date}|+0000\n", blocks.len());
    for block in blocks {
        // Names that do not compress.
        let holder = u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(block) << 40);
        text += &format!("lab|KE|ipv4|20.{}.{}.0|256|20200101|allocated|{holder:x}{:x}\n", block >> 8, block & 255, holder.rotate_left(21));
    }
    let mut builder = Builder::new();
    builder.read_delegated("lab", text.as_bytes()).unwrap();
    builder.finish().unwrap()
}

fn snapshots() -> (tempfile::TempDir, SnapshotStore) {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { state_dir: directory.path().to_owned(), ..Config::default() };
    (directory, SnapshotStore::open(&config).unwrap())
}

/// What came of an question, and what it cost.
struct Outcome {
    found: Found,
    /// Whether it can be loaded from the snapshots now.
    filed: bool,
    wrong: u64,
    /// How often each member was asked for a piece.
    pieces: BTreeMap<AccessPoint, usize>,
    /// The most that was under way at once, in questions.
    at_once: usize,
}

/// Runs an question for `edition` against members that answer as `answers` says.
async fn gathered(
    edition: Edition,
    ours: Hierarchy,
    from: u8,
    answers: impl Fn(AccessPoint, &Request) -> Option<Response>,
) -> (Found, bool) {
    let outcome = told(GATHER_WITHIN, edition, ours, from, |to, request| Some(answers(to, request))).await;
    (outcome.found, outcome.filed)
}

/// The same within so many milliseconds; whoever answers nothing at all keeps us waiting.
async fn told(
    within: u64,
    edition: Edition,
    ours: Hierarchy,
    from: u8,
    answers: impl Fn(AccessPoint, &Request) -> Option<Option<Response>>,
) -> Outcome {
    let (_directory, snapshots) = snapshots();
    let (asking, mut asked) = mpsc::channel::<PeerQuestion>(4);
    let sources = (1..=from).map(member).collect();
    let question = gather_within(Duration::from_millis(within), asking, snapshots.clone(), Arc::new(ours), edition, sources);
    let question = tokio::spawn(question);
    let (mut pieces, mut at_once) = (BTreeMap::new(), 0);
    let mut waiting = Vec::new();
    while let Some(PeerQuestion { to, request, reply }) = asked.recv().await {
        *pieces.entry(to).or_insert(0) += usize::from(matches!(request, Request::HierarchyChunk { .. }));
        waiting.retain(|reply: &tokio::sync::oneshot::Sender<_>| !reply.is_closed());
        match answers(to, &request) {
            Some(answer) => drop(reply.send(answer)),
            None => waiting.push(reply),
        }
        at_once = at_once.max(waiting.len());
    }
    let Event::EditionFound { found, hierarchy, wrong, .. } = question.await.unwrap() else { panic!("another event") };
    assert!(hierarchy.is_none_or(|hierarchy| hierarchy.hash() == edition.hash));
    Outcome { found, filed: snapshots.load(&edition.hash).is_ok(), wrong, pieces, at_once }
}

/// What somebody answers who has this file.
fn honest(file: &[u8], hash: [u8; 32], request: &Request) -> Option<Response> {
    let manifest = Manifest::of(hash, file);
    match request {
        Request::HierarchyManifest(wanted) if *wanted == hash => {
            Some(Response::HierarchyManifest(Some(postcard::to_stdvec(&manifest).unwrap())))
        }
        Request::HierarchyChunk { manifest: wanted, index } if *wanted == manifest.id() => {
            Some(Response::HierarchyChunk(Manifest::chunk(file, *index as usize).map(<[u8]>::to_vec)))
        }
        _ => None,
    }
}

#[tokio::test]
async fn pieces_come_from_all_who_have_them_and_wrong_ones_are_asked_for_elsewhere() {
    let new = hierarchy(20_260_701, 0..20_400);
    let (edition, file) = (edition_of(&new), pack(&new));
    assert!(file.len() > CHUNK_LENGTH, "{} bytes are one piece", file.len());
    let outcome = gathered(edition, hierarchy(20_260_401, 0..20_000), 4, |who, request| {
        let right = honest(&file, edition.hash, request);
        match (who, right) {
            // One sends rubbish, one breaks off, one does not answer at all.
            (who, Some(Response::HierarchyChunk(Some(mut bytes)))) if who == member(1) => {
                bytes[7] ^= 1;
                Some(Response::HierarchyChunk(Some(bytes)))
            }
            (who, Some(Response::HierarchyChunk(_))) if who == member(2) => Some(Response::HierarchyChunk(None)),
            (who, _) if who == member(3) => None,
            (_, right) => right,
        }
    });
    assert_eq!(outcome.await, (Found::Plausible, true));
}

#[tokio::test]
async fn what_cannot_be_completed_is_broken_or_is_something_else_is_not_usable() {
    let new = hierarchy(20_260_701, 0..300);
    let (edition, file) = (edition_of(&new), pack(&new));
    let ours = || hierarchy(20_260_401, 0..300);
    let only_manifest =
        |_, request: &Request| honest(&file, edition.hash, request).filter(|said| matches!(said, Response::HierarchyManifest(_)));
    assert_eq!(gathered(edition, ours(), 3, only_manifest).await, (Found::Unusable, false));
    // Honest about a file that is broken, or holds another hierarchy, or another date than was told.
    let mut broken = file.clone();
    let end = broken.len() - 9;
    broken[end] ^= 1;
    let other = pack(&hierarchy(20_260_701, 5..300));
    let older = pack(&hierarchy(20_260_402, 0..300));
    for lie in [broken, other, older, vec![0; 100]] {
        let answers = |_, request: &Request| honest(&lie, edition.hash, request);
        assert_eq!(gathered(edition, ours(), 2, answers).await, (Found::Unusable, false));
    }
    let endless = |_, request: &Request| {
        matches!(request, Request::HierarchyManifest(_)).then(|| Response::HierarchyManifest(Some(vec![255; 900_000])))
    };
    assert_eq!(gathered(edition, ours(), 2, endless).await, (Found::Unusable, false));
}

#[tokio::test]
async fn what_changes_more_than_time_explains_is_doubtful() {
    let new = hierarchy(20_260_701, 150..450);
    let (edition, file) = (edition_of(&new), pack(&new));
    let answers = |_, request: &Request| honest(&file, edition.hash, request);
    assert_eq!(gathered(edition, hierarchy(20_260_401, 0..300), 1, answers).await, (Found::Doubtful, true));
}

/// A manifest as it travels, for those who make up their own.
#[derive(Serialize)]
struct Manifested {
    hash: [u8; 32],
    length: u64,
    built: u32,
    subnets: u32,
    digests: Vec<[u8; 32]>,
}

/// A manifest of whatever is said.
fn said(hash: [u8; 32], length: u64, digests: Vec<[u8; 32]>) -> Option<Option<Response>> {
    let manifest = Manifested { hash, length, built: 20_260_701, subnets: 20_400, digests };
    Some(Some(Response::HierarchyManifest(Some(postcard::to_stdvec(&manifest).unwrap()))))
}

#[tokio::test]
async fn manifests_that_lie_about_the_size_are_refused_and_counted_and_the_honest_one_is_used() {
    let new = hierarchy(20_260_701, 0..20_400);
    let (edition, file) = (edition_of(&new), pack(&new));
    let hash = edition.hash;
    let right: Vec<[u8; 32]> = file.chunks(CHUNK_LENGTH).map(|chunk| Sha256::digest(chunk).into()).collect();
    let length = file.len() as u64;
    let answers = |who: AccessPoint, request: &Request| {
        let AccessPoint([number, ..]) = who;
        match (number, request) {
            // More than anybody may have; nothing at all; pieces that the length has no room for; an endless list.
            (1, Request::HierarchyManifest(_)) => said(hash, u64::MAX, right.clone()),
            (2, Request::HierarchyManifest(_)) => said(hash, 0, Vec::new()),
            (3, Request::HierarchyManifest(_)) => said(hash, length, vec![[7; 32]; 500]),
            (4, Request::HierarchyManifest(_)) => said(hash, MAX_FILE + 1, vec![[7; 32]; 90_000]),
            // Another edition's; half a message.
            (5, Request::HierarchyManifest(_)) => said([5; 32], length, right.clone()),
            (6, Request::HierarchyManifest(_)) => Some(Some(Response::HierarchyManifest(Some(vec![1; 40])))),
            (8, _) => Some(honest(&file, hash, request)),
            _ => Some(None),
        }
    };
    let outcome = told(GATHER_WITHIN, edition, hierarchy(20_260_401, 0..20_000), 8, answers).await;
    assert_eq!((outcome.found, outcome.filed, outcome.wrong), (Found::Plausible, true, 6));
    assert!((1..8).all(|liar| outcome.pieces[&member(liar)] == 0), "nobody who lies about the size is asked for a piece");
}

#[tokio::test]
async fn whoever_sends_wrong_or_endless_pieces_is_asked_for_few_and_the_honest_one_is_used() {
    let new = hierarchy(20_260_701, 0..20_400);
    let (edition, file) = (edition_of(&new), pack(&new));
    let hash = edition.hash;
    let answers = |who: AccessPoint, request: &Request| match (who, honest(&file, hash, request)) {
        // All the room of a message; a byte more than promised; another piece of the same file.
        (who, Some(Response::HierarchyChunk(_))) if who == member(1) => Some(Some(Response::HierarchyChunk(Some(vec![0; MAX_MESSAGE])))),
        (who, Some(Response::HierarchyChunk(Some(bytes)))) if who == member(2) => {
            Some(Some(Response::HierarchyChunk(Some([bytes, vec![0]].concat()))))
        }
        (who, Some(Response::HierarchyChunk(_))) if who == member(3) => {
            let last = file.chunks(CHUNK_LENGTH).last().map(<[u8]>::to_vec);
            Some(Some(Response::HierarchyChunk(last.map(|bytes| bytes[1..].to_vec()))))
        }
        (_, right) => Some(right),
    };
    let outcome = told(GATHER_WITHIN, edition, hierarchy(20_260_401, 0..20_000), 4, answers).await;
    assert_eq!((outcome.found, outcome.filed), (Found::Plausible, true));
    let asked: usize = (1..4).filter_map(|liar| outcome.pieces.get(&member(liar))).sum();
    assert!(outcome.wrong >= 1 && outcome.wrong == asked as u64, "{} wrong of {asked}", outcome.wrong);
    assert!(asked <= 3 * PIECES_AT_ONCE, "{asked} pieces of liars");
}

#[tokio::test]
async fn most_may_have_made_up_a_file_or_keep_us_waiting_and_the_honest_one_is_used_all_the_same() {
    let new = hierarchy(20_260_701, 0..20_400);
    let (edition, file) = (edition_of(&new), pack(&new));
    let hash = edition.hash;
    let made_up = vec![9; 3 * CHUNK_LENGTH];
    let endless = vec![[7; 32]; (MAX_FILE / CHUNK_LENGTH as u64) as usize];
    let answers = |who: AccessPoint, request: &Request| {
        let AccessPoint([number, ..]) = who;
        match (number, request) {
            // Three agree on a file that is no hierarchy, three on the largest one that may be, of which no piece ever comes.
            (1..=3, _) => Some(honest(&made_up, hash, request)),
            (4..=6, Request::HierarchyManifest(_)) => said(hash, MAX_FILE, endless.clone()),
            (7, _) => Some(honest(&file, hash, request)),
            _ => None,
        }
    };
    let outcome = told(3_000, edition, hierarchy(20_260_401, 0..20_000), 8, answers).await;
    assert_eq!((outcome.found, outcome.filed, outcome.wrong), (Found::Plausible, true, 1));
    assert!(outcome.at_once <= PIECES_AT_ONCE, "{} questions wait at once", outcome.at_once);
}
