//! Cross tables of two splits over the whole swarm.
//!
//! Tables are too many to be told unasked: who is asked for one asks all members. While subnets change hands the last one that was whole
//! answers, for ten minutes, as the totals do.

use nearcrawl_model::{
    access_point::AccessPoint,
    cross_table::{CrossTable, Pair},
    summary::Counts,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

use super::consistent::KEPT;

/// Tables that are put together or remembered at once.
const MAX_TABLES: usize = 8;

/// Members that are asked for one table. With more the table is never exact.
const MAX_ASKED: usize = 512;

/// Who asks again so soon gets the same table.
const HOLDS: Millis = 2_000;

/// Tables of our own that are made for others in a second.
const MAX_MADE: u32 = 16;

/// A table on its way.
#[derive(Debug)]
struct Gathered {
    begun: Moment,
    waits_for: BTreeSet<AccessPoint>,
    came: BTreeMap<AccessPoint, CrossTable>,
}

/// Tables that somebody asked for.
#[derive(Debug, Default)]
pub(super) struct CrossTables {
    gathered: BTreeMap<Pair, Gathered>,
    /// The last of each that were whole, and when the members were asked for them.
    whole: BTreeMap<Pair, (CrossTable, Moment)>,
    /// How many were made for others since when.
    made: (Moment, u32),
}

impl CrossTables {
    /// Somebody wants this table. Says whom to ask for their parts; nobody if it is here or on its way.
    pub(super) fn want(&mut self, by: Pair, own: (AccessPoint, CrossTable), live: &[AccessPoint], now: Moment) -> Vec<AccessPoint> {
        if self.gathered.get(&by).is_some_and(|table| now.since(table.begun) < HOLDS) {
            return Vec::new();
        }
        self.gathered.remove(&by);
        while self.gathered.len() >= MAX_TABLES {
            let oldest = self.gathered.iter().min_by_key(|(_, table)| table.begun).map(|(by, _)| *by);
            oldest.map(|by| (self.gathered.remove(&by), self.whole.remove(&by)));
        }
        let waits_for: BTreeSet<_> = live.iter().filter(|member| **member != own.0).take(MAX_ASKED).copied().collect();
        let asked = waits_for.iter().copied().collect();
        self.gathered.insert(by, Gathered { begun: now, waits_for, came: BTreeMap::from([own]) });
        asked
    }

    /// A member told its part, or none. Whether it was the last one.
    pub(super) fn came(&mut self, from: AccessPoint, by: Pair, table: Option<CrossTable>) -> bool {
        let Some(gathered) = self.gathered.get_mut(&by) else { return false };
        if !gathered.waits_for.remove(&from) {
            return false;
        }
        if let Some(table) = table.filter(|table| table.by == by && table.is_tellable()) {
            gathered.came.insert(from, table);
        }
        gathered.waits_for.is_empty()
    }

    /// All that will come has come: if it adds up to the swarm's totals the table is whole.
    pub(super) fn settle(&mut self, by: Pair, total: &Counts) {
        let table = self.table(by);
        if !self.is_gathering(by)
            && table.total() == *total
            && let Some(gathered) = self.gathered.get(&by)
        {
            self.whole.insert(by, (table, gathered.begun));
        }
    }

    /// The last table that was whole, if it may still answer, and how old it is.
    pub(super) fn last_whole(&self, by: Pair, now: Moment) -> Option<(&CrossTable, Millis)> {
        self.whole.get(&by).map(|(table, at)| (table, now.since(*at))).filter(|(_, age)| *age <= KEPT)
    }

    /// Whether members still have to tell their parts.
    pub(super) fn is_gathering(&self, by: Pair) -> bool {
        self.gathered.get(&by).is_some_and(|table| !table.waits_for.is_empty())
    }

    /// What has come by now, put together.
    pub(super) fn table(&self, by: Pair) -> CrossTable {
        let mut sum = CrossTable::new(by);
        self.gathered.get(&by).iter().flat_map(|table| table.came.values()).for_each(|part| sum.merge(part));
        sum
    }

    /// Whether one more table may be made for another member now.
    pub(super) fn may_make(&mut self, now: Moment) -> bool {
        if now.since(self.made.0) >= 1_000 {
            self.made = (now, 0);
        }
        self.made.1 += 1;
        self.made.1 <= MAX_MADE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::summary::Dimension;

    const BY: Pair = (Dimension::Country, Dimension::Tld);

    fn table(by: Pair, servers: u64) -> CrossTable {
        let mut table = CrossTable::new(by);
        table.add(("KE".to_owned(), "ke".to_owned()), &Counts { servers, ..Counts::default() });
        table
    }

    #[test]
    fn a_table_is_gathered_once_and_only_from_those_that_were_asked() {
        let [me, a, b, stranger] = [1, 2, 3, 4].map(|byte| AccessPoint([byte; 32]));
        let mut tables = CrossTables::default();
        assert_eq!(tables.want(BY, (me, table(BY, 1)), &[me, a, b], Moment(0)), [a, b]);
        assert!(tables.want(BY, (me, table(BY, 1)), &[me, a, b], Moment(1_999)).is_empty());
        tables.came(stranger, BY, Some(table(BY, 1_000)));
        tables.came(a, BY, Some(table(BY, 10)));
        tables.came(a, BY, Some(table(BY, 10)));
        assert!(tables.is_gathering(BY));
        tables.came(b, BY, Some(table((Dimension::Tld, Dimension::Country), 100)));
        assert_eq!((tables.is_gathering(BY), tables.table(BY).total().servers), (false, 11), "b told another table");
        assert_eq!(tables.want(BY, (me, table(BY, 1)), &[me, a], Moment(2_000)), [a]);
    }

    #[test]
    fn the_last_table_that_added_up_to_the_totals_answers_for_ten_minutes() {
        let [me, a] = [1, 2].map(|byte| AccessPoint([byte; 32]));
        let mut tables = CrossTables::default();
        let of = |servers| Counts { servers, ..Counts::default() };
        tables.want(BY, (me, table(BY, 1)), &[me, a], Moment(0));
        tables.settle(BY, &of(1));
        assert_eq!(tables.last_whole(BY, Moment(1)), None, "a has not told its part");
        assert!(tables.came(a, BY, Some(table(BY, 10))));
        tables.settle(BY, &of(12));
        assert_eq!(tables.last_whole(BY, Moment(1)), None);
        tables.settle(BY, &of(11));
        tables.want(BY, (me, table(BY, 1)), &[me], Moment(5_000));
        tables.settle(BY, &of(11));
        let whole = |now| tables.last_whole(BY, Moment(now)).map(|(table, age)| (table.total().servers, age));
        assert_eq!((whole(5_000), whole(600_000), whole(600_001)), (Some((11, 5_000)), Some((11, 600_000)), None));
    }

    #[test]
    fn tables_are_few_and_not_many_are_made_for_others() {
        let me = AccessPoint([1; 32]);
        let mut tables = CrossTables::default();
        for (n, one) in Dimension::ALL.into_iter().enumerate() {
            let by = (one, Dimension::Tld);
            tables.want(by, (me, table(by, 1)), &[me], Moment(n as u64));
        }
        assert_eq!(tables.gathered.len(), MAX_TABLES);
        let made = (0..MAX_MADE + 5).filter(|_| tables.may_make(Moment(5_000))).count();
        assert_eq!((made, tables.may_make(Moment(6_000))), (MAX_MADE as usize, true));
    }
}
