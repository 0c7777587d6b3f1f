//! Snapshot file of a hierarchy, as members share it.
//!
//! It is identified by the hash of its content, and accepted only if every byte is right.
//!
//! ```text
//! label · zstd( magic 8 · version u32 · content length u64 · content · sources length u32 · sources · SHA-256 of all before )
//! ```
//!
//! Numbers are little-endian. The sources are postcard; the content is what the hash is taken of. The checksum finds
//! accidents; against malice the content itself is checked: it must be exactly what its own tree would be written as. The label
//! may be missing; if it is there, it must be right.

use super::{
    codec::{Malformed, content_hash, decode, encode, measure},
    label::{LABEL_LENGTH, Label},
    source::Source,
    tables,
    tree::Hierarchy,
    view::{self, ImageError},
};
use sha2::{Digest, Sha256};
use std::{
    io::{Read, Write},
    sync::Arc,
};

const MAGIC: &[u8; 8] = b"NCRAWLHI";

/// Grows when the file's meaning changes; other versions are refused.
const VERSION: u32 = 1;

/// The largest snapshot that is unpacked, in bytes: enough for the most subnets, not for a bomb.
const MAX_UNPACKED: u64 = 512 << 20;

/// The most bytes that a snapshot of so many bytes may unpack to: real ones grow three times. So whoever wants to fill the memory
/// must at least send something.
fn most_unpacked(packed: usize) -> u64 {
    MAX_UNPACKED.min((1 << 20) + 100 * packed as u64)
}

/// The zstd level of a snapshot: high, because it is compressed rarely and transferred often.
const COMPRESSION: i32 = 19;

/// The zstd level of a snapshot with more content than [`LARGE`]: the last tenth of its size would cost minutes.
const COMPRESSION_OF_LARGE: i32 = 9;

/// From so many bytes on, content counts as large.
const LARGE: u64 = 16 << 20;

/// The most bytes that the list of sources may take.
const MAX_SOURCES_BYTES: usize = 64 << 10;

/// Why a snapshot is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It does not unpack.
    #[error("not a snapshot, or a damaged one: it does not unpack; get it again, or build one with `nearcrawl hierarchy build`")]
    Compression,
    /// It unpacks to something else.
    #[error("not a hierarchy snapshot: build one with `nearcrawl hierarchy build`")]
    NotASnapshot,
    /// It was written by another version of this program.
    #[error("the snapshot has format {0}, this program reads format {VERSION}: build it again with this program")]
    Version(u32),
    /// Its end is missing, or it has too much of one.
    #[error("the snapshot has the wrong length, it was cut off or something was added: get it again")]
    Length,
    /// It unpacks to more than any hierarchy needs.
    #[error("the snapshot unpacks to more than {0} bytes, far more than its size explains: it is none")]
    TooLarge(u64),
    /// Its bytes changed.
    #[error("the snapshot is damaged, its checksum does not hold: get it again")]
    Checksum,
    /// The content is invalid although the checksum is right, so it was made on purpose.
    #[error("the snapshot makes no sense: {0}; do not take snapshots from where this one came from")]
    Malformed(&'static str),
    /// The label in front states another hierarchy than the content.
    #[error("the snapshot is labelled as another hierarchy than it is: do not take snapshots from where this one came from")]
    Label,
    /// It is an image, not a snapshot, and cannot be opened.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl From<Malformed> for SnapshotError {
    fn from(malformed: Malformed) -> Self {
        SnapshotError::Malformed(malformed.0)
    }
}

/// The snapshot file, compressed: equal for equal hierarchies from equal sources, with one version of zstd.
pub fn pack(hierarchy: &Hierarchy) -> Vec<u8> {
    let content_length = measure(hierarchy.view()).1;
    let level = if content_length > LARGE { COMPRESSION_OF_LARGE } else { COMPRESSION };
    #[expect(clippy::unwrap_used, reason = "compressing from memory into memory at a valid level does not fail")]
    let mut encoder = zstd::stream::write::Encoder::new(hierarchy.label().to_bytes().to_vec(), level).unwrap();
    write_unpacked(hierarchy, content_length, |bytes| {
        #[expect(clippy::unwrap_used, reason = "writing into memory does not fail")]
        encoder.write_all(bytes).unwrap();
    });
    #[expect(clippy::unwrap_used, reason = "writing into memory does not fail")]
    encoder.finish().unwrap()
}

/// Reads a snapshot file, or an image. The hash is computed anew, never taken from the file.
pub fn unpack(bytes: &[u8]) -> Result<Hierarchy, SnapshotError> {
    if bytes.starts_with(view::MAGIC) {
        return Ok(Hierarchy::open(Arc::new(bytes.to_vec()))?);
    }
    let label = Label::of(bytes);
    let packed = if label.is_some() { &bytes[LABEL_LENGTH..] } else { bytes };
    let mut unpacked = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| SnapshotError::Compression)?;
    let most = most_unpacked(packed.len());
    // One byte more than allowed, to see that it is too large.
    decoder.take(most + 1).read_to_end(&mut unpacked).map_err(|_| SnapshotError::Compression)?;
    if unpacked.len() as u64 > most {
        return Err(SnapshotError::TooLarge(most));
    }
    let hierarchy = read_unpacked(&unpacked)?;
    if label.is_some_and(|label| label != hierarchy.label()) { Err(SnapshotError::Label) } else { Ok(hierarchy) }
}

fn write_unpacked(hierarchy: &Hierarchy, content_length: u64, mut sink: impl FnMut(&[u8])) {
    let view = hierarchy.view();
    // A list of a few short texts; should it ever not encode, a snapshot without its sources is still right.
    let sources = postcard::to_stdvec(&view.sources).ok().filter(|s| s.len() <= MAX_SOURCES_BYTES).unwrap_or_else(|| vec![0]);
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(bytes);
        sink(bytes);
    };
    part(&head(VERSION, content_length));
    encode(view, &mut part);
    part(&(sources.len() as u32).to_le_bytes());
    part(&sources);
    sink(&hasher.finalize());
}

#[cfg(test)]
pub(super) fn unpacked(hierarchy: &Hierarchy) -> Vec<u8> {
    let mut unpacked = Vec::new();
    write_unpacked(hierarchy, measure(hierarchy.view()).1, |bytes| unpacked.extend_from_slice(bytes));
    unpacked
}

pub(super) fn read_unpacked(bytes: &[u8]) -> Result<Hierarchy, SnapshotError> {
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(SnapshotError::NotASnapshot)?;
    if magic != MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    let (version, rest) = rest.split_first_chunk::<4>().ok_or(SnapshotError::Length)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let (sealed, checksum) = bytes.split_last_chunk::<32>().ok_or(SnapshotError::Length)?;
    if content_hash(sealed) != *checksum {
        return Err(SnapshotError::Checksum);
    }
    let rest = &rest[..rest.len().checked_sub(32).ok_or(SnapshotError::Length)?];
    let (length, rest) = rest.split_first_chunk::<8>().ok_or(SnapshotError::Length)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| SnapshotError::Length)?;
    let (content, rest) = rest.split_at_checked(length).ok_or(SnapshotError::Length)?;
    let (length, sources) = rest.split_first_chunk::<4>().ok_or(SnapshotError::Length)?;
    if u32::from_le_bytes(*length) as usize != sources.len() || sources.len() > MAX_SOURCES_BYTES {
        return Err(SnapshotError::Length);
    }
    let mut columns = decode(content)?;
    columns.sources = postcard::from_bytes::<Vec<Source>>(sources).map_err(|_| SnapshotError::Malformed("its sources cannot be read"))?;
    let hierarchy = tables::build(columns).map(Hierarchy::of).map_err(|why| SnapshotError::Malformed(why.reason()))?;
    // Whatever else the content says than its tree would be written as, it was not canonical.
    if hierarchy.hash() != content_hash(content) {
        return Err(SnapshotError::Malformed("its content is not in canonical form"));
    }
    Ok(hierarchy)
}

/// What comes before the content.
fn head(version: u32, content_length: u64) -> Vec<u8> {
    [&MAGIC[..], &version.to_le_bytes(), &content_length.to_le_bytes()].concat()
}

/// Puts the parts of a file together under a checksum.
#[cfg(test)]
pub(super) fn seal(version: u32, content: &[u8], sources: &[u8]) -> Vec<u8> {
    let mut out = [&head(version, content.len() as u64)[..], content, &(sources.len() as u32).to_le_bytes(), sources].concat();
    let checksum = content_hash(&out);
    out.extend_from_slice(&checksum);
    out
}
