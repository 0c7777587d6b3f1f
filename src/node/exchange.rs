//! How does an edition of the hierarchy come from other members, and go to them? As the pieces of a file, each checked when it comes.

use super::{
    errands::{self, Errand},
    library::Library,
};
use crate::{
    logic::{
        crawler::event::Event,
        editions::Found,
        hierarchy::{Gathering, Hierarchy, Manifest},
    },
    model::{
        access_point::AccessPoint,
        edition::Edition,
        message::{Request, Response},
    },
};
use futures::{StreamExt, stream};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::mpsc;

/// Members that are asked for one edition.
const MOST_SOURCES: usize = 8;

/// Pieces under way at once.
const PIECES_AT_ONCE: usize = 4;

/// The longest encoded manifest: that of the largest file has 16 KiB and a little.
const LONGEST_MANIFEST: usize = 20 << 10;

/// Why an edition could not be had.
#[derive(Debug, thiserror::Error)]
enum GatherFailure {
    /// Nobody who was asked has a usable manifest.
    #[error("none of {0} members gave a usable manifest")]
    NoManifest(usize),
    /// Nobody has the pieces that are missing.
    #[error("{0} pieces are missing, and nobody who was asked gives the right ones")]
    Missing(usize),
    /// The file is no usable edition.
    #[error(transparent)]
    Library(#[from] super::library::LibraryFailure),
    /// The task that looks at it ended.
    #[error("looking at it was interrupted")]
    Interrupted,
}

/// Fetches an edition, opens it, and compares it with what is used here.
pub async fn gather(
    asking: mpsc::Sender<Errand>,
    library: Library,
    ours: Arc<Hierarchy>,
    edition: Edition,
    from: Vec<AccessPoint>,
) -> Event {
    match look_at(asking, library, ours, edition, from).await {
        Ok((found, hierarchy)) => {
            tracing::info!("the hierarchy {edition}, which others vouch for, is {found:?}");
            Event::EditionFound { edition, found, hierarchy: Some(Arc::new(hierarchy)) }
        }
        Err(why) => {
            tracing::warn!("the hierarchy {edition}, which others vouch for, cannot be used: {why}");
            Event::EditionFound { edition, found: Found::Unusable, hierarchy: None }
        }
    }
}

async fn look_at(
    asking: mpsc::Sender<Errand>,
    library: Library,
    ours: Arc<Hierarchy>,
    edition: Edition,
    from: Vec<AccessPoint>,
) -> Result<(Found, Hierarchy), GatherFailure> {
    let mut packings: BTreeMap<[u8; 32], (Manifest, Vec<AccessPoint>)> = BTreeMap::new();
    let asked = from.into_iter().take(MOST_SOURCES).collect::<Vec<_>>();
    for source in &asked {
        if let Some(manifest) = manifest_of(&asking, *source, &edition).await {
            packings.entry(manifest.id()).or_insert_with(|| (manifest, Vec::new())).1.push(*source);
        }
    }
    if packings.is_empty() {
        return Err(GatherFailure::NoManifest(asked.len()));
    }
    // The same hierarchy can be packed in several ways; the file that most members have comes first.
    let mut packings: Vec<_> = packings.into_values().collect();
    packings.sort_by_key(|(_, sources)| std::cmp::Reverse(sources.len()));
    let mut failure = GatherFailure::NoManifest(asked.len());
    for (manifest, sources) in packings {
        let attempt = match fetch(&asking, manifest, sources).await {
            Ok(file) => open(library.clone(), Arc::clone(&ours), edition, file).await,
            Err(why) => Err(why),
        };
        match attempt {
            Ok(found) => return Ok(found),
            Err(why) => failure = why,
        }
    }
    Err(failure)
}

async fn manifest_of(asking: &mpsc::Sender<Errand>, source: AccessPoint, edition: &Edition) -> Option<Manifest> {
    let Some(Response::HierarchyManifest(Some(bytes))) = errands::ask(asking, source, Request::HierarchyManifest(edition.hash)).await
    else {
        return None;
    };
    let manifest = (bytes.len() <= LONGEST_MANIFEST).then(|| postcard::from_bytes::<Manifest>(&bytes).ok())??;
    (manifest.hash() == edition.hash && manifest.check().is_ok()).then_some(manifest)
}

/// Fetches all pieces, from all who have the file in turn; whoever gives a wrong one is not asked again.
async fn fetch(asking: &mpsc::Sender<Errand>, manifest: Manifest, mut sources: Vec<AccessPoint>) -> Result<Vec<u8>, GatherFailure> {
    let (id, chunks) = (manifest.id(), manifest.chunks());
    let mut gathering = Gathering::new(manifest).map_err(|_| GatherFailure::NoManifest(sources.len()))?;
    while !sources.is_empty() {
        let missing: Vec<usize> = gathering.missing().collect();
        let questions = missing.into_iter().enumerate().map(|(turn, index)| {
            let source = sources[turn % sources.len()];
            let request = Request::HierarchyChunk { manifest: id, index: index as u32 };
            async move { (index, source, errands::ask(asking, source, request).await) }
        });
        let mut answers = stream::iter(questions).buffer_unordered(PIECES_AT_ONCE);
        let mut useless = Vec::new();
        while let Some((index, source, answer)) = answers.next().await {
            let taken = match answer {
                Some(Response::HierarchyChunk(Some(bytes))) => gathering.put(index, bytes).is_ok(),
                _ => false,
            };
            if !taken && !useless.contains(&source) {
                tracing::debug!("{} gave no usable piece {index} of a hierarchy", source.short());
                useless.push(source);
            }
            if useless.len() == sources.len() {
                break;
            }
        }
        drop(answers);
        sources.retain(|source| !useless.contains(source));
        if gathering.missing().next().is_none() {
            break;
        }
    }
    gathering.finish().map_err(|unfinished| GatherFailure::Missing(unfinished.missing.min(chunks)))
}

/// Opens a file, which checks all of its structure, and says what is to be thought of the change.
async fn open(library: Library, ours: Arc<Hierarchy>, edition: Edition, file: Vec<u8>) -> Result<(Found, Hierarchy), GatherFailure> {
    let looking = tokio::task::spawn_blocking(move || {
        let hierarchy = library.take_in(&edition, &file)?;
        let change = hierarchy.change_since(&ours);
        if change.is_doubtful() {
            tracing::warn!("the hierarchy {edition} changes more than time explains: {change}");
        }
        let found = if change.is_doubtful() { Found::Doubtful } else { Found::Plausible };
        Ok((found, library.complete(&hierarchy)?))
    });
    looking.await.map_err(|_| GatherFailure::Interrupted)?
}

/// Answers what a member asks of our files.
pub async fn tell(library: Library, wanted: Wanted) -> Response {
    let looking = tokio::task::spawn_blocking(move || match wanted {
        Wanted::Manifest(hash) => {
            Response::HierarchyManifest(library.manifest(&hash).and_then(|manifest| postcard::to_stdvec(&manifest).ok()))
        }
        Wanted::Chunk { manifest, index } => Response::HierarchyChunk(library.chunk(&manifest, index)),
    });
    looking.await.unwrap_or(Response::Busy(1_000))
}

/// What a member asks of our files.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// What the file of this edition is made of.
    Manifest([u8; 32]),
    /// A piece of it.
    Chunk {
        /// Names the manifest.
        manifest: [u8; 32],
        /// Which piece.
        index: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        logic::hierarchy::{Builder, CHUNK_LENGTH},
        node::{config::Config, library::edition_of},
    };

    fn member(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    /// A world of many /24s, large enough for several pieces.
    fn hierarchy(date: u32, blocks: std::ops::Range<u32>) -> Hierarchy {
        let mut text = format!("2|lab|{date}|{}|19700101|{date}|+0000\n", blocks.len());
        for block in blocks {
            // Names that do not compress.
            let holder = u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(block) << 40);
            text +=
                &format!("lab|KE|ipv4|20.{}.{}.0|256|20200101|allocated|{holder:x}{:x}\n", block >> 8, block & 255, holder.rotate_left(21));
        }
        let mut builder = Builder::new();
        builder.read_delegated("lab", text.as_bytes()).unwrap();
        builder.finish().unwrap()
    }

    fn library() -> (tempfile::TempDir, Library) {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { state_dir: directory.path().to_owned(), ..Config::default() };
        (directory, Library::open(&config).unwrap())
    }

    /// Runs an errand for `edition` against members that answer as `answers` says.
    async fn gathered(
        edition: Edition,
        ours: Hierarchy,
        from: u8,
        answers: impl Fn(AccessPoint, &Request) -> Option<Response>,
    ) -> (Found, bool) {
        let (_directory, library) = library();
        let (asking, mut asked) = mpsc::channel::<Errand>(4);
        let sources = (1..=from).map(member).collect();
        let errand = tokio::spawn(gather(asking, library.clone(), Arc::new(ours), edition, sources));
        while let Some(Errand { to, request, reply }) = asked.recv().await {
            let _ = reply.send(answers(to, &request));
        }
        let Event::EditionFound { found, hierarchy, .. } = errand.await.unwrap() else { panic!("another event") };
        assert!(hierarchy.is_none_or(|hierarchy| hierarchy.hash() == edition.hash));
        (found, library.load(&edition.hash).is_ok())
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
        let (edition, file) = (edition_of(&new), new.to_bytes());
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
        let (edition, file) = (edition_of(&new), new.to_bytes());
        let ours = || hierarchy(20_260_401, 0..300);
        let only_manifest =
            |_, request: &Request| honest(&file, edition.hash, request).filter(|said| matches!(said, Response::HierarchyManifest(_)));
        assert_eq!(gathered(edition, ours(), 3, only_manifest).await, (Found::Unusable, false));
        // Honest about a file that is broken, or holds another hierarchy, or another date than was told.
        let mut broken = file.clone();
        let end = broken.len() - 9;
        broken[end] ^= 1;
        let other = hierarchy(20_260_701, 5..300).to_bytes();
        let older = hierarchy(20_260_402, 0..300).to_bytes();
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
        let (edition, file) = (edition_of(&new), new.to_bytes());
        let answers = |_, request: &Request| honest(&file, edition.hash, request);
        assert_eq!(gathered(edition, hierarchy(20_260_401, 0..300), 1, answers).await, (Found::Doubtful, true));
    }
}
