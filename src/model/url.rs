//! Which page, on which host? URLs and hosts in one canonical form, so that equal pages are equal texts.

mod host;
mod join;
mod medium;
mod page_url;
#[cfg(test)]
mod tests;
mod trap;

pub use host::Host;
pub use join::{LinkBase, QueryEncoding};
pub(in crate::model) use page_url::Parts;
pub use page_url::{Origin, PageUrl, UrlRef};
pub use trap::{MOST_REPEATS, MOST_SEGMENTS};

use serde::{Deserialize, Serialize};

/// The longest URL that is followed, in bytes.
pub const LONGEST_URL: usize = 2048;

/// The longest text that is read as a URL or as a reference, in bytes. It may be longer than [`LONGEST_URL`], because a
/// fragment or dots go away; beyond this nothing is looked at.
pub const LONGEST_REFERENCE: usize = 8 * LONGEST_URL;

/// Why a text is not a URL that this crawler follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum UrlRefusal {
    /// Not a URL at all.
    #[error("not a URL")]
    Malformed,
    /// `mailto:`, `javascript:`, `ftp:` and the like.
    #[error("only http and https are crawled")]
    Scheme,
    /// Longer than [`LONGEST_URL`].
    #[error("longer than {LONGEST_URL} bytes")]
    TooLong,
    /// No host, or one that cannot be a name in the DNS.
    #[error("no usable host name")]
    Host,
    /// The path looks like a spider trap: more than [`MOST_SEGMENTS`] segments, or the same ones more than [`MOST_REPEATS`]
    /// times in a row.
    #[error("the path is deeper than {MOST_SEGMENTS} segments or repeats itself more than {MOST_REPEATS} times")]
    TrapPath,
}
