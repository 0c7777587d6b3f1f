//! Reads an image in place: its header and its sections.
//!
//! ```text
//! header of 144 bytes: magic 8 · version u32 · 0 u32 · hash of the content 32 · SHA-256 of the sources 32 · 13 counts u32 · zeros
//! sections, each beginning at a multiple of 16 bytes, zeros between
//! ```
//!
//! Numbers are little-endian. The sections' offsets follow from the counts, so an image cannot state false ones. An image is made where
//! it is used, from the packed snapshot; images are never sent.

use super::{
    layout::{
        Counts, HEADER, Layout,
        Section::{self, *},
    },
    lookup::{V4Table, V6Table},
    prefix::{Prefix, V6_LENGTH},
    source::{Place, Source},
};
use bytemuck::Pod;
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!("hierarchies are used as they lie on disk, with little-endian numbers: this machine would read them backwards");

/// How every image begins.
pub(super) const MAGIC: &[u8; 8] = b"NCRAWLIM";

/// Grows when the meaning of an image changes; other versions are refused, and made again from the packed snapshot.
pub(super) const VERSION: u32 = 1;

/// Where the counts end in the header.
pub(super) const COUNTS_END: usize = 80 + 13 * 4;

/// Bytes that the caller keeps: a mapped file, or memory. They must not change as long as they are shared.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Why an image is refused. An image can always be made again from the packed snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Something else, or made by another version of this program.
    #[error("not a hierarchy image of this version of the program: unpack the snapshot again")]
    NotAnImage,
    /// Too short or too long.
    #[error("the hierarchy image has the wrong length: unpack the snapshot again")]
    Length,
    /// It contradicts itself.
    #[error("the hierarchy image is damaged, {0}: unpack the snapshot again")]
    Damaged(&'static str),
}

impl ImageError {
    /// What is wrong, in a few words.
    pub(super) fn reason(self) -> &'static str {
        match self {
            ImageError::NotAnImage => "it is no image",
            ImageError::Length => "it has the wrong length",
            ImageError::Damaged(why) => why,
        }
    }
}

/// SHA-256.
pub(super) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// An image and where everything is in it.
pub(super) struct View {
    image: SharedBytes,
    layout: Layout,
    pub counts: Counts,
    pub hash: [u8; 32],
    pub registries: Vec<String>,
    pub sources: Vec<Source>,
}

impl View {
    /// Computes the offsets of the sections; the contents are not checked yet.
    pub(crate) fn over(image: SharedBytes) -> Result<View, ImageError> {
        let bytes = (*image).as_ref();
        let header = bytes.first_chunk::<HEADER>().ok_or(ImageError::NotAnImage)?;
        if &header[..8] != MAGIC
            || header[8..12] != VERSION.to_le_bytes()
            || header[12..16] != [0; 4]
            || header[COUNTS_END..].iter().any(|b| *b != 0)
        {
            return Err(ImageError::NotAnImage);
        }
        let mut counts = Counts::default();
        for (number, bytes) in counts.numbers().into_iter().zip(header[80..COUNTS_END].as_chunks::<4>().0) {
            *number = u32::from_le_bytes(*bytes);
        }
        let (layout, length) = counts.layout().ok_or(ImageError::Length)?;
        if length != bytes.len() {
            return Err(ImageError::Length);
        }
        let mut end = HEADER;
        for range in &layout {
            if bytes[end..range.start].iter().any(|b| *b != 0) {
                return Err(ImageError::Damaged("something lies between its sections"));
            }
            end = range.end;
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(&header[16..48]);
        let sources = &bytes[layout[Sources as usize].clone()];
        let registries = &bytes[layout[Registries as usize].clone()];
        if digest(sources) != header[48..80] {
            return Err(ImageError::Damaged("its sources changed"));
        }
        let sources = read(sources).ok_or(ImageError::Damaged("its sources cannot be read"))?;
        let registries = read(registries).ok_or(ImageError::Damaged("its registries cannot be read"))?;
        Ok(View { layout, counts, hash, registries, sources, image })
    }

    /// The whole image.
    pub(crate) fn bytes(&self) -> &[u8] {
        (*self.image).as_ref()
    }

    /// The section as a slice of its element type.
    pub(crate) fn section<T: Pod>(&self, section: Section) -> &[T] {
        bytemuck::cast_slice(&self.bytes()[self.layout[section as usize].clone()])
    }

    pub(crate) fn place(&self, index: usize) -> Place {
        let [low, high, country @ ..] = self.section::<[u8; 4]>(Places)[index];
        Place { registry: u16::from_le_bytes([low, high]), country }
    }

    /// Id and name of an organisation.
    pub(crate) fn texts(&self, organisation: usize) -> (&str, &str) {
        let ends: &[[u32; 2]] = self.section(TextEnds);
        let start = if organisation == 0 { 0 } else { ends[organisation - 1][1] as usize };
        let [id, name] = ends[organisation].map(|end| end as usize);
        let texts = self.section(Texts);
        // Checked at opening; bytes that changed since are no reason to panic.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        (text(&texts[start..id]), text(&texts[id..name]))
    }

    pub(crate) fn prefix(&self, position: u32) -> Prefix {
        let (heads, lengths): (&[u32], &[u8]) = (self.section(Heads), self.section(Lengths));
        let long = |index: u32| self.section::<u128>(Long)[index as usize];
        Prefix::stored(lengths[position as usize], heads[position as usize], long)
    }

    /// Where the IPv6 address of a position is in `Long`; none for an IPv4 subnet.
    pub(crate) fn long_index(&self, position: u32) -> Option<usize> {
        let length = self.section::<u8>(Lengths)[position as usize];
        (length >= V6_LENGTH).then(|| self.section::<u32>(Heads)[position as usize] as usize)
    }

    pub(crate) fn v4(&self) -> V4Table<'_> {
        V4Table { index: self.section(V4Index), lows: self.section(V4Lows), owners: self.section(V4Owners) }
    }

    pub(crate) fn v6(&self) -> V6Table<'_> {
        let [index, uppers, begins, owners] = [V6Index, V6Uppers, V6Begins, V6Owners].map(|s| self.section(s));
        V6Table { index, uppers, begins, starts: self.section(V6Starts), owners }
    }
}

/// Reads a list, if it is written as this program writes it.
fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<Vec<T>> {
    let list = postcard::from_bytes::<Vec<T>>(bytes).ok()?;
    (postcard::to_stdvec(&list).ok()? == bytes).then_some(list)
}
