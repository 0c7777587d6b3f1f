//! The fuzz targets as a library.
//!
//! The tests of the crates include the same files and replay the corpora.

#[cfg(feature = "core")]
#[path = "../targets/core.rs"]
pub mod core;
#[path = "../targets/corpus.rs"]
pub mod corpus;
#[cfg(feature = "hierarchy")]
#[path = "../targets/hierarchy.rs"]
pub mod hierarchy;
#[cfg(feature = "lab")]
#[path = "../targets/lab.rs"]
pub mod lab;
#[path = "../targets/model.rs"]
pub mod model;
#[cfg(feature = "page")]
#[path = "../targets/page.rs"]
pub mod page;

pub mod files;

use corpus::Target;

/// The targets of one crate.
pub struct Folder {
    /// Its name; the folder of the corpora has the same.
    pub name: &'static str,
    /// Its targets.
    pub targets: &'static [Target],
    /// What a target may take of memory, whatever the input, in bytes: what it makes to look at what it read, and what a list may reserve
    /// before its length proves wrong.
    pub memory: usize,
    /// What each byte of input may take more, in bytes.
    pub memory_a_byte: usize,
}

/// All targets.
pub const ALL: &[Folder] = &[
    Folder { name: "model", targets: model::TARGETS, memory: 3 << 20, memory_a_byte: 64 },
    #[cfg(feature = "page")]
    Folder { name: "page", targets: page::TARGETS, memory: 1 << 20, memory_a_byte: 2_048 },
    #[cfg(feature = "hierarchy")]
    Folder { name: "hierarchy", targets: hierarchy::TARGETS, memory: 16 << 20, memory_a_byte: 1_024 },
    #[cfg(feature = "core")]
    Folder { name: "core", targets: core::TARGETS, memory: 16 << 20, memory_a_byte: 512 },
    #[cfg(feature = "lab")]
    Folder { name: "lab", targets: lab::TARGETS, memory: 1 << 20, memory_a_byte: 1_024 },
];

/// The target with a name like `model/claim`, and the folder that it is in.
pub fn named(name: &str) -> Option<(&'static Folder, &'static Target)> {
    let (folder, name) = name.split_once('/')?;
    let folder = ALL.iter().find(|known| known.name == folder)?;
    Some((folder, folder.targets.iter().find(|target| target.name == name)?))
}
