//! The hierarchy of subnets: registry files become a tree, and the tree a snapshot that every member shares.
//!
//! The tree is IPMicra's (§4.1), with the levels that today's registries publish:
//!
//! ```text
//!
//! root → registry → country → organisation → delegated block → nested networks …
//!
//! ```
//!
//! Only blocks and nested networks are subnets (something that can be owned); the levels above them are groups of subnets. [`Builder`]
//! reads the files, [`Hierarchy`] looks addresses up. Subnets are numbered depth first ([`Position`]), so everything beneath any level is
//! one contiguous range of numbers, and which relatives of a subnet are delegated already is a range query.
//!
//! Whether a range is special (loopback, private) is not checked here: laboratories build hierarchies of loopback ranges.

#![warn(unreachable_pub)]

mod asn;
mod assemble;
mod build;
mod cells;
mod change;
mod codec;
mod columns;
mod delegated;
mod diff;
mod entries;
mod format;
mod holders;
mod image;
mod label;
mod layout;
mod limits;
mod lines;
mod lookup;
mod manifest;
mod networks;
mod objects;
mod path;
mod prefix;
mod registered;
mod relatives;
mod report;
mod segments;
mod snapshot;
mod source;
mod stats;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod verify;
mod view;
mod world;

pub use assemble::AssemblyError;
pub use build::{Builder, FurtherPrefix, FurtherPrefixError, RoutedUse, WithFurtherError, with_further};
pub use change::Change;
pub use diff::{Diff, RegistryDiff};
pub use format::Format;
pub use label::Label;
pub use manifest::{CHUNK_LENGTH, ChunkError, Gathering, MAX_FILE, Manifest, ManifestError, NotYetWhole};
pub use path::{Path, Registered};
pub use report::{LineError, LineErrorExample, LineErrors, ReadError, ReadReport, SummaryMismatch};
pub use snapshot::{SnapshotError, pack, unpack};
pub use source::Source;
pub use stats::{RegistryStats, Stats};
pub use tree::{Hierarchy, Organisation, OrganisationId, Position, Step, StepKind};
pub use view::{ImageError, SharedBytes};
pub use world::{WORLD, world};
