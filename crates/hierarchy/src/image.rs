//! How does a hierarchy lie in memory and on disk? As one flat image that is used in place, mapped from a file or not.
//!
//! ```text
//! header of 144 bytes: magic 8 · version u32 · 0 u32 · hash of the content 32 · SHA-256 of the sources 32 · 13 counts u32 · zeros
//! sections, each beginning at a multiple of 16 bytes, zeros between
//! ```
//!
//! Numbers are little-endian. The sections' offsets follow from the counts, so an image cannot state false ones. An image is made where
//! it is used, from the packed snapshot; images are never sent.

use super::{
    codec,
    layout::{
        ALIGNMENT, Counts, HEADER, Layout,
        Section::{self, *},
    },
    lookup::{V4Table, V6Table},
    prefix::Prefix,
    tree::{Hierarchy, Place, Source, V6_LENGTH},
    verify,
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
const VERSION: u32 = 1;

/// Where the counts end in the header.
const COUNTS_END: usize = 80 + 13 * 4;

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

/// Memory that is aligned as an image must be.
struct Memory {
    words: Vec<u128>,
    length: usize,
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// An image that is being made.
pub(super) struct Draft {
    memory: Memory,
    layout: Layout,
}

impl Draft {
    /// All zeros, but for the header; none if this machine cannot address so much.
    pub(crate) fn new(mut counts: Counts) -> Option<Draft> {
        let (layout, length) = counts.layout()?;
        let mut draft = Draft { memory: Memory { words: vec![0; length.div_ceil(ALIGNMENT)], length }, layout };
        let header = draft.bytes();
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[80..COUNTS_END].copy_from_slice(bytemuck::cast_slice(&counts.numbers().map(|n| *n)));
        Some(draft)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.memory.words)[..self.memory.length]
    }

    /// A section, to be filled.
    pub(crate) fn section<T: Pod>(&mut self, section: Section) -> &mut [T] {
        let range = self.layout[section as usize].clone();
        bytemuck::cast_slice_mut(&mut self.bytes()[range])
    }

    /// The finished hierarchy, once all sections are filled: its structure is checked, and its hash taken.
    pub(crate) fn seal(mut self) -> Result<Hierarchy, ImageError> {
        let sources = digest(self.section(Sources));
        self.bytes()[48..80].copy_from_slice(&sources);
        let mut memory = Arc::new(self.memory);
        let mut view = View::over(memory.clone())?;
        verify::structure(&view)?;
        view.hash = codec::measure(&view).0;
        let View { hash, image, .. } = &mut view;
        // The draft is shared with nobody but the view: taken from it for a moment, it can be written once more.
        *image = Arc::new([0u8; 0]);
        if let Some(memory) = Arc::get_mut(&mut memory) {
            bytemuck::cast_slice_mut::<u128, u8>(&mut memory.words)[16..48].copy_from_slice(hash);
        }
        *image = memory;
        Ok(Hierarchy::of(view))
    }
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
    fn over(image: SharedBytes) -> Result<View, ImageError> {
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
        // Checked at opening; bytes that changed since under a broken promise are no reason to panic.
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

impl Hierarchy {
    /// Opens an image where it lies. Everything is checked first, in one walk: that the tree is one, that every table says the same as
    /// the content, and that the content has the hash that it is called by; hostile bytes are refused, in time and memory in
    /// proportion to their length. Bytes that are not aligned to 16 are copied.
    pub fn open(image: SharedBytes) -> Result<Hierarchy, ImageError> {
        let bytes = (*image).as_ref();
        let image = if bytes.as_ptr().align_offset(ALIGNMENT) == 0 { image } else { aligned(bytes) };
        let view = View::over(image)?;
        verify::structure(&view)?;
        if codec::measure(&view).0 != view.hash {
            return Err(ImageError::Damaged("its content has another hash"));
        }
        Ok(Hierarchy::of(view))
    }

    /// Opens an image that [`Hierarchy::image`] gave to this very program and that is known not to have changed since: it is not checked,
    /// and no page of it is read before it is needed.
    pub fn open_own(image: SharedBytes) -> Result<Hierarchy, ImageError> {
        if (*image).as_ref().as_ptr().align_offset(ALIGNMENT) != 0 {
            return Err(ImageError::NotAnImage);
        }
        Ok(Hierarchy::of(View::over(image)?))
    }

    /// The image, to be written to a file that [`Hierarchy::open`] opens.
    pub fn image(&self) -> &[u8] {
        self.view().bytes()
    }
}

fn aligned(bytes: &[u8]) -> SharedBytes {
    let mut words = vec![0u128; bytes.len().div_ceil(ALIGNMENT)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    Arc::new(Memory { words, length: bytes.len() })
}
