//! Stores the newest of a value that changes, beside the loop: one write at a time.
//!
//! What changes while one is under way waits, and takes the place of what waited. What could not be stored is stored when it is looked for
//! again, unless there is something newer.

/// What is to be stored, and what is being stored.
#[derive(Debug)]
pub struct WriteBehind<T> {
    waits: Option<T>,
    storing: Option<T>,
}

impl<T> Default for WriteBehind<T> {
    fn default() -> WriteBehind<T> {
        WriteBehind { waits: None, storing: None }
    }
}

impl<T: Clone> WriteBehind<T> {
    /// This is the newest.
    pub fn put(&mut self, value: T) {
        self.waits = Some(value);
    }

    /// What is to be stored now, if anything is: from then on until [`WriteBehind::has_stored`] it is being stored.
    pub fn next(&mut self) -> Option<T> {
        if self.storing.is_none() {
            self.storing = self.waits.take();
            return self.storing.clone();
        }
        None
    }

    /// It was stored, or could not be.
    pub fn has_stored(&mut self, is_stored: bool) {
        let tried = self.storing.take();
        if !is_stored && self.waits.is_none() {
            self.waits = tried;
        }
    }

    /// Whether something is being stored.
    pub fn is_storing(&self) -> bool {
        self.storing.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_stored_at_a_time_and_then_the_newest() {
        let mut writes = WriteBehind::default();
        assert_eq!(writes.next(), None);
        writes.put(1);
        assert_eq!((writes.next(), writes.next(), writes.is_storing()), (Some(1), None, true));
        writes.put(2);
        writes.put(3);
        assert_eq!(writes.next(), None, "the first is under way");
        writes.has_stored(true);
        assert_eq!((writes.is_storing(), writes.next()), (false, Some(3)));
        writes.has_stored(true);
        assert_eq!((writes.is_storing(), writes.next()), (false, None));
    }

    #[test]
    fn what_was_not_stored_is_stored_again_unless_there_is_something_newer() {
        let mut writes = WriteBehind::default();
        writes.put(1);
        assert_eq!(writes.next(), Some(1));
        writes.has_stored(false);
        assert_eq!((writes.is_storing(), writes.next()), (false, Some(1)), "the disk was full");
        writes.put(2);
        writes.has_stored(false);
        assert_eq!(writes.next(), Some(2));
        writes.has_stored(true);
        assert_eq!(writes.next(), None);
    }
}
