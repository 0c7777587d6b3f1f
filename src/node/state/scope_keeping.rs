//! Storing what was ever in scope.
//!
//! A store that failed, or had no room, is tried again: else what is taken out of the scope before the next start would be asked again after
//! it.

use nearcrawl_core::crawl::scope::EverInScope;

/// What is to be stored, and what is being stored.
#[derive(Debug, Default)]
pub struct ScopeKeeping {
    due: bool,
    storing: bool,
}

impl ScopeKeeping {
    /// Something was added.
    pub fn has_grown(&mut self) {
        self.due = true;
    }

    /// What is to be stored now, if anything is.
    pub fn next(&mut self, ever: &EverInScope) -> Option<EverInScope> {
        if !self.due || self.storing {
            return None;
        }
        (self.due, self.storing) = (false, true);
        Some(ever.clone())
    }

    /// It was stored, or is to be stored again.
    pub fn has_stored(&mut self, is_stored: bool) {
        self.storing = false;
        self.due |= !is_stored;
    }

    /// Whether it is being stored.
    pub fn is_storing(&self) -> bool {
        self.storing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_core::crawl::scope::Scope;

    #[test]
    fn what_was_not_stored_is_stored_again_and_what_came_meanwhile_too() {
        let (mut keeping, mut ever) = (ScopeKeeping::default(), EverInScope::default());
        assert_eq!(keeping.next(&ever), None);
        assert!(ever.add(&Scope { asns: [64_500].into(), ..Scope::default() }));
        keeping.has_grown();
        assert_eq!(keeping.next(&ever).as_ref(), Some(&ever));
        assert!(keeping.is_storing() && keeping.next(&ever).is_none());
        keeping.has_stored(false);
        assert_eq!(keeping.next(&ever).as_ref(), Some(&ever), "the disk was full");
        assert!(ever.add(&Scope { asns: [64_501].into(), ..Scope::default() }));
        keeping.has_grown();
        keeping.has_stored(true);
        assert_eq!(keeping.next(&ever).as_ref(), Some(&ever));
        keeping.has_stored(true);
        assert!(keeping.next(&ever).is_none() && !keeping.is_storing());
    }
}
