//! A queue of items from which any can be removed in constant time, for the policies that need an order.

/// Is no item.
const NOBODY: u32 = u32::MAX;

/// Items between a newest and an oldest end, linked both ways.
#[derive(Clone, Debug)]
pub(super) struct List {
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
    len: usize,
}

impl List {
    /// Empty, for items below `distinct`.
    pub(super) fn new(distinct: usize) -> List {
        List { newer: vec![NOBODY; distinct], older: vec![NOBODY; distinct], newest: NOBODY, oldest: NOBODY, len: 0 }
    }

    /// How many items it has.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The item at the old end.
    pub(super) fn oldest(&self) -> Option<u32> {
        known(self.oldest)
    }

    /// The next newer item.
    pub(crate) fn newer_than(&self, item: u32) -> Option<u32> {
        known(self.newer[item as usize])
    }

    /// Puts in an item that is not in, at the new end.
    pub(crate) fn push_newest(&mut self, item: u32) {
        self.older[item as usize] = self.newest;
        self.newer[item as usize] = NOBODY;
        match known(self.newest) {
            Some(before) => self.newer[before as usize] = item,
            None => self.oldest = item,
        }
        self.newest = item;
        self.len += 1;
    }

    /// Takes out an item that is in.
    pub(super) fn remove(&mut self, item: u32) {
        let (newer, older) = (self.newer[item as usize], self.older[item as usize]);
        match known(newer) {
            Some(newer) => self.older[newer as usize] = older,
            None => self.newest = older,
        }
        match known(older) {
            Some(older) => self.newer[older as usize] = newer,
            None => self.oldest = newer,
        }
        self.len -= 1;
    }
}

fn known(item: u32) -> Option<u32> {
    (item != NOBODY).then_some(item)
}
