//! Tables by one or two splits, for a reader that sums the rows of servers itself.

use super::{
    crowds::{Crowds, InCell, Standing, is_known_before},
    tally::{Whereabouts, counts_of, values_of},
};
use nearcrawl_model::{
    estimates::{CellEstimates, Estimates},
    record::ServerRecord,
    server_rows::ServerRow,
    split::{NO_LABEL, NONE_DETECTED, NOT_EVALUATED, Split},
    summary::Counts,
    url::Host,
};
use std::collections::BTreeMap;

/// The values of one split that a server has, each with the failures that count for it, if these are not all of the server's.
type Values = Vec<(String, Option<u64>)>;

/// The sums of rows of servers by one or two splits, each server once: while one is on its way from an owner to another, both may tell of it.
///
/// Memory: about 300 bytes and the values for each server.
#[derive(Debug)]
pub struct RowTable {
    by: Vec<Split>,
    rows: BTreeMap<Host, Row>,
}

#[derive(Debug)]
struct Row {
    /// Run and requests: of two rows of one server the later one counts.
    rank: (u32, u64),
    counts: Counts,
    /// In the order of the splits.
    values: Vec<Values>,
    /// Whether it stands for others at its address.
    standing: Option<Standing>,
}

impl RowTable {
    /// A table without servers, by these splits in this order.
    pub fn new(by: Vec<Split>) -> RowTable {
        RowTable { by, rows: BTreeMap::new() }
    }

    /// Enters a row, with its labels by the survey that is asked about, as in `sector=university`.
    pub fn enter(&mut self, row: &ServerRow, labels: impl IntoIterator<Item = String>) {
        let rank = (row.record.run, row.record.requests);
        if self.rows.get(&row.record.host).is_some_and(|known| known.rank > rank) {
            return;
        }
        let whereabouts =
            Whereabouts { country: row.country.clone(), registry: row.registry.clone(), organisation: row.organisation.clone() };
        let of_owners = values_of(&row.record, whereabouts);
        let labels: Vec<String> = labels.into_iter().collect();
        let values = self.by.iter().map(|split| match split {
            Split::By(wanted) => of_owners.iter().filter(|(by, _)| by == wanted).map(|(_, value)| (value.clone(), None)).collect(),
            Split::Label if labels.is_empty() => vec![(NO_LABEL.to_owned(), None)],
            Split::Label => labels.iter().map(|label| (label.clone(), None)).collect(),
            Split::Rule => rules_of(&row.record),
        });
        let entered = Row { rank, counts: counts_of(&row.record), values: values.collect(), standing: Standing::of_row(row) };
        self.rows.insert(row.record.host.clone(), entered);
    }

    /// How many servers were entered.
    pub fn servers(&self) -> usize {
        self.rows.len()
    }

    /// The sums over the servers that have all these values, in the order of the splits. A server with several values counts for each, so
    /// cells by label or rule do not add up to the total; of a rule the detected failures are those of this rule alone.
    pub fn cells(&self) -> BTreeMap<Vec<String>, Counts> {
        let mut cells = BTreeMap::<Vec<String>, Counts>::new();
        for InCell { cell, counts, .. } in self.rows.values().flat_map(|row| self.cells_of(row)) {
            cells.entry(cell).or_default().add(&counts);
        }
        cells
    }

    /// The sums over all servers.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.rows.values().for_each(|row| total.add(&row.counts));
        total
    }

    /// What the sums come to where not all hosts of an address were visited: over all servers, and in these cells; none in those of which all
    /// is counted.
    pub fn estimates(&self, cells: &BTreeMap<Vec<String>, Counts>) -> (Estimates, BTreeMap<Vec<String>, CellEstimates>) {
        let mut crowds = Crowds::default();
        for row in self.rows.values() {
            if let Some(standing) = &row.standing {
                crowds.enter(standing, &row.counts, || self.cells_of(row));
            }
        }
        let settled = |(cell, counts): (&Vec<String>, &Counts)| {
            let mut estimates = crowds.cell(cell)?;
            estimates.settle(counts);
            Some((cell.clone(), estimates))
        };
        let mut all = crowds.all();
        all.settle(&self.total(), &BTreeMap::new());
        (all, cells.iter().filter_map(settled).collect())
    }

    /// The cells that a row counts in.
    fn cells_of(&self, row: &Row) -> Vec<InCell> {
        let mut cells = vec![InCell { cell: Vec::new(), known: Vec::new(), counts: row.counts }];
        for (split, values) in self.by.iter().zip(&row.values) {
            let is_known = match split {
                Split::By(dimension) => is_known_before(*dimension),
                Split::Label => true,
                Split::Rule => false,
            };
            let with = |before: &InCell| {
                let before = before.clone();
                values.iter().map(move |(value, failures)| {
                    let InCell { mut cell, mut known, counts } = before.clone();
                    cell.push(value.clone());
                    // What is not known keeps its place, so that the values of two splits are not taken for each other.
                    known.push(if is_known { value.clone() } else { String::new() });
                    InCell { cell, known, counts: Counts { detected_failures: failures.unwrap_or(counts.detected_failures), ..counts } }
                })
            };
            cells = cells.iter().flat_map(with).collect();
        }
        cells
    }
}

fn rules_of(record: &ServerRecord) -> Values {
    let Some(sums) = record.evaluation.as_ref().filter(|sums| sums.pages > 0) else {
        return vec![(NOT_EVALUATED.to_owned(), None)];
    };
    let failed = sums.failures.iter().filter(|(_, failures)| **failures > 0);
    let failed: Values = failed.map(|(rule, failures)| (rule.id().to_owned(), Some(*failures))).collect();
    if failed.is_empty() { vec![(NONE_DETECTED.to_owned(), None)] } else { failed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::site::Site;
    use nearcrawl_model::{
        access_point::AccessPoint,
        evaluation::{EvaluationCounts, Rule},
        ids::SiteNumber,
        journal::JournalKey,
        summary::Dimension,
        time::WallTime,
    };

    fn row(host: &str, country: &str, pages: u64, failures: Option<&[(Rule, u64)]>) -> ServerRow {
        let host: Host = host.parse().unwrap();
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.clone(), run: 1 };
        let mut record = Site::open(key, "9.0.0.1".parse().unwrap(), host, SiteNumber(1), WallTime(0)).record;
        (record.run, record.requests, record.pages) = (2, pages + 1, pages);
        record.evaluation = failures.map(|failures| EvaluationCounts {
            pages,
            failures: failures.iter().copied().collect(),
            ..EvaluationCounts::default()
        });
        ServerRow {
            access_point: AccessPoint([1; 32]),
            country: country.to_owned(),
            registry: "afrinic".to_owned(),
            organisation: "Museum".to_owned(),
            inclusion_probability: None,
            surveys: Vec::new(),
            record,
        }
    }

    fn cells(table: &RowTable) -> Vec<(String, u64, u64, u64)> {
        let cell = |(values, counts): (Vec<String>, Counts)| (values.join(" "), counts.servers, counts.pages, counts.detected_failures);
        table.cells().into_iter().map(cell).collect()
    }

    #[test]
    fn a_server_counts_for_each_rule_that_it_fails_with_the_failures_of_that_rule() {
        let mut table = RowTable::new(vec![Split::Rule, Split::By(Dimension::Country)]);
        let both = [(Rule::PageTitle, 3), (Rule::PageLanguage, 5)];
        for row in [
            row("a.ke", "KE", 10, Some(&both)),
            row("b.ke", "KE", 4, Some(&both[..1])),
            row("c.tz", "TZ", 6, Some(&[])),
            row("d.tz", "TZ", 7, None),
        ] {
            table.enter(&row, []);
        }
        // Another member has an older row of the first one.
        let mut older = row("a.ke", "ZA", 90, None);
        older.record.run = 1;
        table.enter(&older, []);
        let told = [
            ("(none detected) TZ".to_owned(), 1, 6, 0),
            ("(not evaluated) TZ".to_owned(), 1, 7, 0),
            ("2779a5 KE".to_owned(), 2, 14, 6),
            ("b5c3f8 KE".to_owned(), 1, 10, 5),
        ];
        assert_eq!((cells(&table), table.servers()), (told.to_vec(), 4));
    }

    #[test]
    fn a_server_counts_for_each_of_its_labels_and_one_without_has_a_cell_too() {
        let mut table = RowTable::new(vec![Split::Label, Split::By(Dimension::Tld)]);
        table.enter(&row("a.ke", "KE", 10, None), ["sector=museum".to_owned(), "size=small".to_owned()]);
        table.enter(&row("b.ke", "KE", 4, None), ["sector=museum".to_owned()]);
        table.enter(&row("c.tz", "TZ", 6, None), []);
        let told = [("(none) tz".to_owned(), 1, 6, 0), ("sector=museum ke".to_owned(), 2, 14, 0), ("size=small ke".to_owned(), 1, 10, 0)];
        assert_eq!(cells(&table), told);
    }
}
