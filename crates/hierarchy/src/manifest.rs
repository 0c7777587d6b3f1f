//! Manifest of a snapshot file, for fetching it in chunks from untrusted peers.
//!
//! A manifest has the digest of each chunk, so that a wrong chunk is noticed when it arrives and requested again from another peer.
//!
//! A manifest proves nothing about the content, which is checked when the complete file is opened. It only fixes the bytes.

use super::label::Label;
use nearcrawl_model::view::counted;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Bytes of every chunk but the last.
pub const CHUNK_LENGTH: usize = 256 << 10;

/// The largest snapshot file that is exchanged, in bytes.
pub const MAX_FILE: u64 = 128 << 20;

/// What a snapshot file is made of. At most 16 KiB and a little when serialized.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Manifest {
    hash: [u8; 32],
    length: u64,
    built: u32,
    subnets: u32,
    digests: Vec<[u8; 32]>,
}

/// Why a manifest is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The file would be empty or larger than [`MAX_FILE`].
    #[error("the manifest is of a file of {}, a snapshot has between 1 and {MAX_FILE}: ask another member", counted(*.0, "byte"))]
    Length(u64),
    /// Not as many digests as the length needs.
    #[error("the manifest has {}, its file has {}: ask another member", counted(*has, "digest"), counted(*needs, "chunk"))]
    Chunks {
        /// Digests in the manifest.
        has: usize,
        /// Chunks of a file of that length.
        needs: usize,
    },
}

/// Why a chunk is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The file has fewer chunks.
    #[error("there is no chunk {index} in a file of {chunks}")]
    NoSuchChunk {
        /// The chunk's index.
        index: usize,
        /// Chunks of the file.
        chunks: usize,
    },
    /// Its bytes are not those of the manifest.
    #[error("chunk {0} is not what the manifest says: ask another member for it")]
    WrongBytes(usize),
}

/// A file was asked for before all its chunks were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("missing: {missing} of {}; get them first", counted(*chunks, "chunk"))]
pub struct NotYetWhole {
    /// Chunks that are missing.
    pub missing: usize,
    /// Chunks of the file.
    pub chunks: usize,
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

impl Manifest {
    /// The manifest of a snapshot file whose content has this hash. What it says of subnets and date is taken from the file's label.
    pub fn of(hash: [u8; 32], file: &[u8]) -> Manifest {
        let label = Label::of(file);
        Manifest {
            hash,
            length: file.len() as u64,
            built: label.map_or(0, |l| l.built),
            subnets: label.map_or(0, |l| l.subnets),
            digests: file.chunks(CHUNK_LENGTH).map(digest).collect(),
        }
    }

    /// Hash of the hierarchy in the file, as [`super::Hierarchy::hash`] has it.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The latest date of the hierarchy's sources as YYYYMMDD, 0 unknown. Only claimed until the file is opened.
    pub fn built(&self) -> u32 {
        self.built
    }

    /// How many subnets the hierarchy has, 0 unknown. Only claimed until the file is opened.
    pub fn subnets(&self) -> u32 {
        self.subnets
    }

    /// How many chunks the file has.
    pub fn chunks(&self) -> usize {
        self.digests.len()
    }

    /// Whether these are the bytes of the chunk at `index`.
    pub fn accepts(&self, index: usize, bytes: &[u8]) -> bool {
        bytes.len() <= CHUNK_LENGTH && self.digests.get(index).is_some_and(|wanted| *wanted == digest(bytes))
    }

    /// Names this manifest: SHA-256 over all of it. Two files of one hierarchy, packed differently, have different manifests.
    pub fn id(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(b"nearcrawl manifest 1");
        hasher.update(self.hash);
        hasher.update(self.length.to_le_bytes());
        hasher.update(self.built.to_le_bytes());
        hasher.update(self.subnets.to_le_bytes());
        self.digests.iter().for_each(|d| hasher.update(d));
        hasher.finalize().into()
    }

    /// Whether it can be of a file at all. To be asked of every manifest that somebody else made; [`Gathering::new`] does.
    pub fn check(&self) -> Result<(), ManifestError> {
        if self.length == 0 || self.length > MAX_FILE {
            return Err(ManifestError::Length(self.length));
        }
        let needs = self.length.div_ceil(CHUNK_LENGTH as u64) as usize;
        if self.digests.len() != needs {
            return Err(ManifestError::Chunks { has: self.digests.len(), needs });
        }
        Ok(())
    }

    /// The bytes of the chunk at `index`, cut from the file for somebody who asks; none beyond its end.
    pub fn chunk(file: &[u8], index: usize) -> Option<&[u8]> {
        file.chunks(CHUNK_LENGTH).nth(index)
    }
}

/// A file that arrives in chunks, in any order. Takes as much memory as has arrived.
#[derive(Clone, Debug)]
pub struct Gathering {
    manifest: Manifest,
    missing: BTreeSet<usize>,
    chunks: Vec<Vec<u8>>,
}

impl Gathering {
    /// Nothing has arrived yet.
    pub fn new(manifest: Manifest) -> Result<Gathering, ManifestError> {
        manifest.check()?;
        let chunks = manifest.chunks();
        Ok(Gathering { manifest, missing: (0..chunks).collect(), chunks: vec![Vec::new(); chunks] })
    }

    /// What is gathered.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Indices of the chunks that have not arrived, ascending.
    pub fn missing(&self) -> impl Iterator<Item = usize> + '_ {
        self.missing.iter().copied()
    }

    /// Takes a chunk; one that is there already is not needed and changes nothing.
    pub fn put(&mut self, index: usize, bytes: Vec<u8>) -> Result<(), ChunkError> {
        let chunks = self.manifest.chunks();
        if index >= chunks {
            return Err(ChunkError::NoSuchChunk { index, chunks });
        }
        if !self.missing.contains(&index) {
            return Ok(());
        }
        if !self.manifest.accepts(index, &bytes) {
            return Err(ChunkError::WrongBytes(index));
        }
        self.missing.remove(&index);
        self.chunks[index] = bytes;
        Ok(())
    }

    /// The whole file. It is what the manifest promised; whether it is a hierarchy is found by opening it.
    pub fn finish(self) -> Result<Vec<u8>, NotYetWhole> {
        if !self.missing.is_empty() {
            return Err(NotYetWhole { missing: self.missing.len(), chunks: self.manifest.chunks() });
        }
        // Chunk by chunk, so that not all of it is there twice.
        let mut file = Vec::with_capacity(self.chunks.iter().map(Vec::len).sum());
        self.chunks.into_iter().for_each(|chunk| file.extend_from_slice(&chunk));
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i / 7 + i / CHUNK_LENGTH) as u8).collect()
    }

    #[test]
    fn chunks_in_any_order_give_the_file() {
        for length in [1, CHUNK_LENGTH - 1, CHUNK_LENGTH, CHUNK_LENGTH + 1, 3 * CHUNK_LENGTH + 5] {
            let file = file(length);
            let manifest = Manifest::of([1; 32], &file);
            assert_eq!((manifest.length(), manifest.chunks()), (length as u64, length.div_ceil(CHUNK_LENGTH)));
            let mut gathering = Gathering::new(manifest.clone()).unwrap();
            for index in (0..manifest.chunks()).rev() {
                assert_eq!(gathering.missing().last(), Some(index));
                let unfinished = gathering.clone().finish().unwrap_err();
                assert_eq!(unfinished, NotYetWhole { missing: index + 1, chunks: manifest.chunks() });
                gathering.put(index, Manifest::chunk(&file, index).unwrap().to_vec()).unwrap();
                gathering.put(index, b"once more, and wrong".to_vec()).unwrap();
            }
            assert_eq!(gathering.finish().unwrap(), file);
            assert_eq!(Manifest::chunk(&file, manifest.chunks()), None);
        }
    }

    #[test]
    fn a_wrong_chunk_is_refused_and_still_missing() {
        let file = file(2 * CHUNK_LENGTH + 9);
        let mut gathering = Gathering::new(Manifest::of([1; 32], &file)).unwrap();
        let mut wrong = Manifest::chunk(&file, 1).unwrap().to_vec();
        wrong[17] ^= 1;
        assert_eq!(gathering.put(1, wrong), Err(ChunkError::WrongBytes(1)));
        assert_eq!(gathering.put(1, Manifest::chunk(&file, 0).unwrap().to_vec()), Err(ChunkError::WrongBytes(1)));
        assert_eq!(gathering.put(3, Vec::new()), Err(ChunkError::NoSuchChunk { index: 3, chunks: 3 }));
        assert_eq!(gathering.missing().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn manifests_that_no_file_can_have_are_refused() {
        let good = Manifest::of([1; 32], &file(2 * CHUNK_LENGTH));
        assert_eq!(good.check(), Ok(()));
        let refusal = |change: fn(&mut Manifest)| {
            let mut bad = good.clone();
            change(&mut bad);
            Gathering::new(bad).unwrap_err()
        };
        assert_eq!(refusal(|m| m.length = 0), ManifestError::Length(0));
        assert_eq!(refusal(|m| m.length = MAX_FILE + 1), ManifestError::Length(MAX_FILE + 1));
        assert_eq!(refusal(|m| m.length = u64::MAX), ManifestError::Length(u64::MAX));
        assert_eq!(refusal(|m| m.length += 1), ManifestError::Chunks { has: 2, needs: 3 });
        assert_eq!(refusal(|m| m.digests.truncate(1)), ManifestError::Chunks { has: 1, needs: 2 });
        assert_eq!(Manifest::of([1; 32], b"").check(), Err(ManifestError::Length(0)));
    }

    #[test]
    fn the_id_depends_on_everything() {
        let good = Manifest::of([1; 32], &file(2 * CHUNK_LENGTH));
        assert_eq!(good.id(), Manifest::of([1; 32], &file(2 * CHUNK_LENGTH)).id());
        let changes: [fn(&mut Manifest); 5] =
            [|m| m.hash[0] ^= 1, |m| m.length -= 1, |m| m.built = 20_260_101, |m| m.subnets = 9, |m| m.digests[1][31] ^= 1];
        for change in changes {
            let mut other = good.clone();
            change(&mut other);
            assert_ne!(other.id(), good.id(), "{other:?}");
        }
    }

    #[test]
    fn the_largest_manifest_fits_into_a_message() {
        let manifest = Manifest {
            hash: [1; 32],
            length: MAX_FILE,
            built: u32::MAX,
            subnets: u32::MAX,
            digests: vec![[2; 32]; (MAX_FILE / CHUNK_LENGTH as u64) as usize],
        };
        let bytes = postcard::to_stdvec(&manifest).unwrap();
        assert!(bytes.len() < 17 << 10, "{} bytes", bytes.len());
        assert_eq!(postcard::from_bytes::<Manifest>(&bytes).unwrap(), manifest);
    }
}
