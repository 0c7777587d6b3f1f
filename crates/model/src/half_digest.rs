//! Digests of 16 bytes: the first half of SHA-256, by which statements and surveys are named and compared.

/// The first 16 bytes of a digest.
pub(crate) fn half(digest: impl AsRef<[u8]>) -> [u8; 16] {
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}
