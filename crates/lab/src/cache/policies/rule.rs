//! The interface of a rule of replacement: requests one after another, and for each whether it is in the cache.

/// A cache that learns of requests one after another.
pub(crate) trait Cache {
    /// Whether it holds this item. What happens then is the cache's rule.
    fn touch(&mut self, item: u32) -> bool;
}
