//! URLs and hosts in one canonical form, so that equal pages are equal texts.

mod host;
mod join;
mod medium;
mod page_url;
#[cfg(test)]
mod tests;
mod trap;

pub use host::Host;
pub use join::{LinkBase, QueryEncoding};
pub(crate) use page_url::Parts;
pub use page_url::{Origin, PageUrl, UrlRef};
pub(crate) use trap::{MAX_REPEATS, MAX_SEGMENTS};

use serde::{Deserialize, Serialize};

/// The longest URL that is followed, in bytes.
pub(crate) const MAX_URL: usize = 2048;

/// The longest text that is read as a URL or as a reference, in bytes. It may be longer than [`MAX_URL`], because a
/// fragment or dots go away; beyond this nothing is looked at.
pub(crate) const MAX_REFERENCE: usize = 8 * MAX_URL;

/// Why a text is not a URL that this crawler follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum UrlError {
    /// Not a URL at all.
    #[error("not a URL")]
    Malformed,
    /// `mailto:`, `javascript:`, `ftp:` and the like.
    #[error("only http and https are crawled")]
    Scheme,
    /// Longer than [`MAX_URL`].
    #[error("longer than {MAX_URL} bytes")]
    TooLong,
    /// No host, or one that cannot be a name in the DNS.
    #[error("no usable host name")]
    Host,
    /// The path looks like a spider trap: more than [`MAX_SEGMENTS`] segments, or the same ones more than [`MAX_REPEATS`]
    /// times in a row.
    #[error("the path is deeper than {MAX_SEGMENTS} segments or repeats itself more than {MAX_REPEATS} times")]
    TrapPath,
}
