//! What does a page say, and where does it link to?

use crate::model::{fetch::PageFacts, fingerprint::FingerprintKey, url::PageUrl};

/// Reads a page.
pub fn scan(_bytes: &[u8], _content_type: Option<&str>, _base: &PageUrl, _key: &FingerprintKey) -> PageFacts {
    PageFacts::default()
}
