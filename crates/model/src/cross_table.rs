//! Cross table of two splits: one member's sums by the values of two dimensions, with a limited number of cells.

use super::{
    access_point::AccessPoint,
    summary::{Counts, Dimension, MAX_VALUE, OTHER},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How many cells a table has at most; what is beyond is added up in the cell of [`OTHER`] and [`OTHER`].
pub const MAX_CELLS: usize = 256;

/// Two dimensions.
pub type Pair = (Dimension, Dimension);

/// Sums by the values of two dimensions. Cells add up to the total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossTable {
    /// The dimensions.
    pub by: Pair,
    /// The sums, by the value of the first and of the second one.
    pub cells: BTreeMap<(String, String), Counts>,
}

impl CrossTable {
    /// A table without servers.
    pub fn new(by: Pair) -> CrossTable {
        CrossTable { by, cells: BTreeMap::new() }
    }

    /// Adds a server, or several, to a cell.
    pub fn add(&mut self, values: (String, String), counts: &Counts) {
        self.cells.entry(values).or_default().add(counts);
    }

    /// Adds another table of the same dimensions.
    pub fn merge(&mut self, other: &CrossTable) {
        other.cells.iter().for_each(|(values, counts)| self.add(values.clone(), counts));
    }

    /// Keeps the cells with the most servers and adds the others up as [`OTHER`].
    pub fn cut(self) -> CrossTable {
        if self.cells.len() <= MAX_CELLS {
            return self;
        }
        let mut ranked: Vec<_> = self.cells.into_iter().collect();
        ranked.sort_by(|(a, x), (b, y)| y.servers.cmp(&x.servers).then_with(|| a.cmp(b)));
        let mut cut = CrossTable::new(self.by);
        for (rank, (values, counts)) in ranked.into_iter().enumerate() {
            let values = if rank < MAX_CELLS - 1 { values } else { (OTHER.to_owned(), OTHER.to_owned()) };
            cut.add(values, &counts);
        }
        cut
    }

    /// Whether a member may tell it.
    pub fn is_tellable(&self) -> bool {
        self.cells.len() <= MAX_CELLS && self.cells.keys().all(|(one, other)| one.len().max(other.len()) <= MAX_VALUE)
    }

    /// The sums over all cells.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.cells.values().for_each(|counts| total.add(counts));
        total
    }
}

/// One cell of a table, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cell {
    /// The values of the two dimensions, in the order asked for.
    pub values: [String; 2],
    /// The sums over the servers that have both.
    pub counts: Counts,
}

/// What any access point answers to `results --by A,B`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CrossTableView {
    /// The access point that put this answer together.
    #[schema(value_type = String)]
    pub answered_by: AccessPoint,
    /// Whether every member told its part and they add up to the totals of `results`, which are exact.
    pub exact: bool,
    /// If not exact, why, in words.
    pub in_transition_text: Option<String>,
    /// The two dimensions.
    #[schema(value_type = Vec<String>)]
    pub by: [Dimension; 2],
    /// The cells, those with the most servers first; small ones beyond 256 are added up as `(other)`.
    pub cells: Vec<Cell>,
}

impl CrossTableView {
    /// A table with how far it is to be believed.
    pub fn new(answered_by: AccessPoint, table: CrossTable, in_transition_text: Option<String>) -> CrossTableView {
        let by = [table.by.0, table.by.1];
        let cell = |((one, other), counts)| Cell { values: [one, other], counts };
        let mut cells: Vec<Cell> = table.cut().cells.into_iter().map(cell).collect();
        cells.sort_by(|a, b| b.counts.servers.cmp(&a.counts.servers).then_with(|| a.values.cmp(&b.values)));
        CrossTableView { answered_by, exact: in_transition_text.is_none(), in_transition_text, by, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_added_up() {
        let one = Counts { servers: 1, pages: 2, ..Counts::default() };
        let mut table = CrossTable::new((Dimension::Country, Dimension::Tld));
        for n in 0..MAX_CELLS + 10 {
            table.add((format!("{n}"), "ke".to_owned()), &one);
        }
        table.add(("0".to_owned(), "ke".to_owned()), &one);
        let (total, whole) = (table.total(), table.is_tellable());
        let cut = table.cut();
        assert_eq!((whole, cut.is_tellable(), cut.cells.len(), cut.total()), (false, true, MAX_CELLS, total));
        assert_eq!(cut.cells[&(OTHER.to_owned(), OTHER.to_owned())].servers, 11);
        let view = CrossTableView::new(AccessPoint([1; 32]), cut, None);
        assert_eq!((view.cells[0].values.as_slice(), view.cells[1].values[0].as_str()), (&[OTHER.to_owned(), OTHER.to_owned()][..], "0"));
    }
}
