//! The trees that people named here since the start: what the operator takes out of the scope is asked no more, but for these.

use nearcrawl_model::url::Host;
use std::collections::BTreeMap;

/// Trees that are remembered; beyond it the one that was named longest ago is forgotten.
const MAX_NAMED: usize = 10_000;

/// The trees that people named.
#[derive(Debug, Default)]
pub(crate) struct NamedTrees {
    /// By when they were named last.
    trees: BTreeMap<Host, u64>,
    order: BTreeMap<u64, Host>,
    last: u64,
}

/// What became of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// It was not remembered before.
    pub(crate) is_new: bool,
    /// Another one was forgotten for it.
    pub(crate) has_dropped: bool,
}

impl NamedTrees {
    /// People named one, maybe once more.
    pub(crate) fn name(&mut self, tree: Host) -> Named {
        self.last += 1;
        let before = self.trees.insert(tree.clone(), self.last);
        before.and_then(|before| self.order.remove(&before));
        self.order.insert(self.last, tree);
        let oldest = if self.trees.len() > MAX_NAMED { self.order.pop_first() } else { None };
        let has_dropped = oldest.is_some_and(|(_, oldest)| self.trees.remove(&oldest).is_some());
        Named { is_new: before.is_none(), has_dropped }
    }

    /// Whether people named it.
    pub(crate) fn contains(&self, tree: &Host) -> bool {
        self.trees.contains_key(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use nearcrawl_model::url::PageUrl;

    fn tree(number: usize) -> Host {
        format!("h{number}.ke").parse().unwrap()
    }

    #[test]
    fn of_more_than_fit_the_oldest_is_forgotten_and_counted() {
        let mut cx = Context::of_test(1);
        let url = |number: usize, path: usize| PageUrl::parse(&format!("http://www.h{number}.ke/{path}")).unwrap();
        // Many URLs of one tree are one.
        cx.name(&(0..20_000).map(|path| url(0, path)).collect::<Vec<_>>());
        cx.name(&(1..MAX_NAMED).map(|number| url(number, 0)).collect::<Vec<_>>());
        assert!((0..MAX_NAMED).all(|number| cx.named.contains(&tree(number))) && cx.counters.refused.is_empty());
        // One that is named again is the latest.
        cx.name(&[url(0, 7), url(MAX_NAMED, 0)]);
        assert!(cx.named.contains(&tree(0)) && cx.named.contains(&tree(MAX_NAMED)) && !cx.named.contains(&tree(1)));
        assert_eq!(cx.counters.refused.values().copied().collect::<Vec<_>>(), [1]);
        assert_eq!((cx.named.trees.len(), cx.named.order.len()), (MAX_NAMED, MAX_NAMED));
    }
}
