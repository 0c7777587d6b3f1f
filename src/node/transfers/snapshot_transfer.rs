//! Transfer of editions of the hierarchy between members, as chunks of a file, each checked when it arrives.

use crate::node::{
    hierarchy::snapshot_store::SnapshotStore,
    transfers::peer_transfers::{self, PeerQuestion},
};
use futures::{StreamExt, stream};
use nearcrawl_core::{
    event::Event,
    hierarchy_version::editions::{Found, GATHER_WITHIN, MAX_SOURCES},
};
use nearcrawl_hierarchy::{Change, Gathering, Hierarchy, Manifest};
use nearcrawl_model::{
    access_point::AccessPoint,
    edition::Edition,
    message::{Request, Response},
    view::counted,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

/// Pieces under way at once.
const PIECES_AT_ONCE: usize = 4;

/// The longest encoded manifest: that of the largest file has 16 KiB and a little.
const MAX_MANIFEST: usize = 20 << 10;

/// Why an edition could not be fetched or used.
#[derive(Debug, thiserror::Error)]
enum GatherError {
    /// None of the members that were asked has a usable manifest.
    #[error("none of {} gave a usable manifest", counted(*.0, "member"))]
    NoManifest(usize),
    /// No member has the chunks that are missing.
    #[error("{0} pieces are missing, and no member that was asked has the right ones")]
    Missing(usize),
    /// The members who have it took too long.
    #[error("its pieces did not come in time")]
    Slow,
    /// The file does not contain a usable edition.
    #[error(transparent)]
    SnapshotStore(#[from] crate::node::hierarchy::snapshot_store::SnapshotStoreError),
    /// The task that looks at it ended.
    #[error("looking at it was interrupted")]
    Interrupted,
}

/// Fetches an edition, opens it, and compares it with what is used here.
pub async fn gather(
    asking: mpsc::Sender<PeerQuestion>,
    snapshots: SnapshotStore,
    ours: Arc<Hierarchy>,
    edition: Edition,
    from: Vec<AccessPoint>,
) -> Event {
    gather_within(Duration::from_millis(GATHER_WITHIN), asking, snapshots, ours, edition, from).await
}

async fn gather_within(
    within: Duration,
    asking: mpsc::Sender<PeerQuestion>,
    snapshots: SnapshotStore,
    ours: Arc<Hierarchy>,
    edition: Edition,
    from: Vec<AccessPoint>,
) -> Event {
    let mut wrong = 0;
    match look_at(within, asking, snapshots, ours, edition, from, &mut wrong).await {
        Ok((found, hierarchy)) => {
            tracing::info!("the hierarchy {edition}, announced by other members, was fetched and checked: {found:?}");
            Event::EditionFound { edition, found, hierarchy: Some(Arc::new(hierarchy)), wrong }
        }
        Err(why) => {
            tracing::warn!("the hierarchy {edition}, announced by other members, cannot be used and is not voted for: {why}");
            Event::EditionFound { edition, found: Found::Unusable, hierarchy: None, wrong }
        }
    }
}

async fn look_at(
    within: Duration,
    asking: mpsc::Sender<PeerQuestion>,
    snapshots: SnapshotStore,
    ours: Arc<Hierarchy>,
    edition: Edition,
    from: Vec<AccessPoint>,
    wrong: &mut u64,
) -> Result<(Found, Hierarchy), GatherError> {
    let until = Instant::now() + within;
    let asked = from.into_iter().take(MAX_SOURCES).collect::<Vec<_>>();
    let questions = asked.iter().map(|source| timeout(within / 5, manifest_of(&asking, *source, &edition)));
    let answers = futures::future::join_all(questions).await;
    let mut packings: BTreeMap<[u8; 32], (Manifest, Vec<AccessPoint>)> = BTreeMap::new();
    for (source, answer) in asked.iter().zip(answers) {
        match answer.unwrap_or(Told::Nothing) {
            Told::Manifest(manifest) => packings.entry(manifest.id()).or_insert_with(|| (manifest, Vec::new())).1.push(*source),
            Told::Wrong => *wrong += 1,
            Told::Nothing => {}
        }
    }
    // The same hierarchy can be packed in several ways; the file that most members have comes first.
    let mut packings: Vec<_> = packings.into_values().collect();
    packings.sort_by_key(|(_, sources)| std::cmp::Reverse(sources.len()));
    let mut failure = GatherError::NoManifest(asked.len());
    let mut left = packings.len() as u32;
    for (manifest, sources) in packings {
        // A slow member must leave the others their share of the time.
        let share = until.saturating_duration_since(Instant::now()) / left;
        left -= 1;
        let attempt = match timeout(share, fetch(&asking, manifest, sources, wrong)).await {
            Ok(Ok(file)) => {
                let opened = open(snapshots.clone(), Arc::clone(&ours), edition, file).await;
                *wrong += u64::from(matches!(opened, Err(GatherError::SnapshotStore(_))));
                opened
            }
            Ok(Err(why)) => Err(why),
            Err(_) => Err(GatherError::Slow),
        };
        match attempt {
            Ok(found) => return Ok(found),
            Err(why) => failure = why,
        }
    }
    Err(failure)
}

/// What a member answers that is asked for a manifest.
pub(in crate::node) enum Told {
    /// One that can be of this edition.
    Manifest(Manifest),
    /// One that cannot be.
    Wrong,
    /// It has none, or does not answer.
    Nothing,
}

impl Told {
    /// The manifest, if it can be of this edition.
    pub fn manifest(self) -> Option<Manifest> {
        if let Told::Manifest(manifest) = self { Some(manifest) } else { None }
    }
}

/// Asks a member for the manifest of its file of an edition.
pub(in crate::node) async fn manifest_of(asking: &mpsc::Sender<PeerQuestion>, source: AccessPoint, edition: &Edition) -> Told {
    let Some(Response::HierarchyManifest(Some(bytes))) =
        peer_transfers::ask(asking, source, Request::HierarchyManifest(edition.hash)).await
    else {
        return Told::Nothing;
    };
    let manifest = (bytes.len() <= MAX_MANIFEST).then(|| postcard::from_bytes::<Manifest>(&bytes).ok()).flatten();
    match manifest.filter(|manifest| manifest.hash() == edition.hash && manifest.check().is_ok()) {
        Some(manifest) => Told::Manifest(manifest),
        None => Told::Wrong,
    }
}

/// Fetches all chunks, in turn from the members that have the file; a member that sends a wrong one is not asked again.
async fn fetch(
    asking: &mpsc::Sender<PeerQuestion>,
    manifest: Manifest,
    mut sources: Vec<AccessPoint>,
    wrong: &mut u64,
) -> Result<Vec<u8>, GatherError> {
    let (id, chunks) = (manifest.id(), manifest.chunks());
    let mut gathering = Gathering::new(manifest).map_err(|_| GatherError::NoManifest(sources.len()))?;
    while !sources.is_empty() {
        let missing: Vec<usize> = gathering.missing().collect();
        let useless = Mutex::new(BTreeSet::new());
        let questions = missing.into_iter().enumerate().map(|(turn, index)| {
            let source = sources[turn % sources.len()];
            let request = Request::HierarchyChunk { manifest: id, index: index as u32 };
            let useless = &useless;
            async move {
                // Known by now to be of no use: this piece is asked for elsewhere in the next round.
                let known = useless.lock().unwrap_or_else(PoisonError::into_inner).contains(&source);
                (index, source, if known { None } else { peer_transfers::ask(asking, source, request).await })
            }
        });
        let mut answers = stream::iter(questions).buffer_unordered(PIECES_AT_ONCE);
        while let Some((index, source, answer)) = answers.next().await {
            let taken = match answer {
                Some(Response::HierarchyChunk(Some(bytes))) => gathering.put(index, bytes).inspect_err(|_| *wrong += 1).is_ok(),
                _ => false,
            };
            if !taken && useless.lock().unwrap_or_else(PoisonError::into_inner).insert(source) {
                tracing::debug!("{} sent no usable chunk {index} of a hierarchy and is not asked for more; the others are", source.short());
            }
        }
        drop(answers);
        let useless = useless.into_inner().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| !useless.contains(source));
        if gathering.missing().next().is_none() {
            break;
        }
    }
    gathering.finish().map_err(|unfinished| GatherError::Missing(unfinished.missing.min(chunks)))
}

/// Opens a file, which checks all of its structure, and says what is to be thought of the change.
async fn open(snapshots: SnapshotStore, ours: Arc<Hierarchy>, edition: Edition, file: Vec<u8>) -> Result<(Found, Hierarchy), GatherError> {
    let looking = tokio::task::spawn_blocking(move || {
        let hierarchy = snapshots.take_in(&edition, &file)?;
        let change = Change::between(&ours, &hierarchy);
        if change.is_doubtful() {
            tracing::warn!("the hierarchy {edition} differs from the one in use by more than the time between them explains: {change}");
        }
        let found = if change.is_doubtful() { Found::Doubtful } else { Found::Plausible };
        Ok((found, snapshots.complete(&hierarchy)?))
    });
    looking.await.map_err(|_| GatherError::Interrupted)?
}

/// Answers what a member asks of our files.
pub async fn tell(snapshots: SnapshotStore, wanted: Wanted) -> Response {
    let looking = tokio::task::spawn_blocking(move || match wanted {
        Wanted::Manifest(hash) => {
            Response::HierarchyManifest(snapshots.manifest(&hash).and_then(|manifest| postcard::to_stdvec(&manifest).ok()))
        }
        Wanted::Chunk { manifest, index } => Response::HierarchyChunk(snapshots.chunk(&manifest, index)),
    });
    looking.await.unwrap_or(Response::Busy(1_000))
}

/// What a member requests of the snapshot files here.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// The manifest of this edition's file.
    Manifest([u8; 32]),
    /// One chunk of a file.
    Chunk {
        /// The hash of the file's manifest.
        manifest: [u8; 32],
        /// The number of the chunk, from 0.
        index: u32,
    },
}

#[cfg(test)]
mod tests;
