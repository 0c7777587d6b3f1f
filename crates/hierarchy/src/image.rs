//! Images of a hierarchy: made and opened.
//!
//! An image is made from the packed snapshot where it is used; an image from a file is checked as a whole before it is opened.

use super::{
    codec,
    layout::{ALIGNMENT, Counts, Layout, Section},
    tree::Hierarchy,
    verify,
    view::{COUNTS_END, ImageError, MAGIC, SharedBytes, VERSION, View, digest},
};
use bytemuck::Pod;
use std::sync::Arc;

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

    /// The finished image, once all sections are filled: its structure is checked, and its hash taken.
    pub(crate) fn seal(mut self) -> Result<View, ImageError> {
        let sources = digest(self.section(Section::Sources));
        self.bytes()[48..80].copy_from_slice(&sources);
        let mut memory = Arc::new(self.memory);
        let view = View::over(memory.clone())?;
        verify::structure(&view)?;
        let hash = codec::measure(&view).0;
        drop(view);
        // The view was the only other one that had a share of the memory: it can be written once more.
        if let Some(memory) = Arc::get_mut(&mut memory) {
            bytemuck::cast_slice_mut::<u128, u8>(&mut memory.words)[16..48].copy_from_slice(&hash);
        }
        View::over(memory)
    }
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
