//! `results --by` where the reader sums: the splits of a survey, of rules, or as any member tells rows over the network.

use super::{
    error::{CommandError, Exit},
    in_part::InPartCounts,
    last_whole::{Standing, Sums},
    owners::Source,
    survey::SurveyFilter,
    walk::{each_row, not_whole},
};
use nearcrawl_core::report::RowTable;
use nearcrawl_model::{
    access_point::AccessPoint,
    cross_table::{Cell, CrossTableView},
    estimates::{CellEstimates, Estimates},
    server_rows::{RowsOf, ServerRow},
    split::Split,
    summary::{Counts, Dimension, OTHER},
    survey::SurveyRef,
    time::Millis,
    view::Age,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sums by one or two splits, of all cells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowTableView {
    /// The splits, in the order asked for.
    pub by: Vec<String>,
    /// Only servers of this survey; none, if it is all.
    pub survey: Option<String>,
    /// How many servers were summed.
    pub servers: u64,
    /// The sums over all of them.
    pub total: Counts,
    /// Whether these are the newest sums.
    #[serde(flatten)]
    pub standing: Standing,
    /// Whether every owner answered.
    pub all_owners_answered: bool,
    /// Whose rows are missing, and why.
    pub missing_text: Vec<String>,
    /// How much of the hosts of crowded addresses was visited: the sums are of these only.
    pub sample: InPartCounts,
    /// What the sums over all servers come to with the hosts there that were not visited.
    pub estimates: Estimates,
    /// The cells, those with the most servers first.
    pub cells: Vec<RowCell>,
}

impl Sums for RowTableView {
    fn missing(&self) -> &[String] {
        &self.missing_text
    }

    fn is_less_than(&self, than: &RowTableView) -> bool {
        self.total.is_less_than(&than.total)
    }

    fn standing(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

/// A cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowCell {
    /// The values of the splits in their order.
    pub values: Vec<String>,
    /// The sums over the servers that have them.
    pub counts: Counts,
    /// What they come to with the hosts of crowded addresses that were not visited; none if all is counted.
    pub estimates: Option<CellEstimates>,
}

/// The sums by two dimensions as all members tell them, and what they come to where not all hosts of an address were visited.
#[derive(Clone, Debug, Serialize)]
pub struct CrossTableTold {
    /// The access point that put the sums together.
    pub answered_by: AccessPoint,
    /// Whether every member told its part of the sums.
    pub exact: bool,
    /// If not exact, why, in words.
    pub in_transition_text: Option<String>,
    /// The dimensions.
    pub by: [Dimension; 2],
    /// Whether every owner told the rows that the estimates rest on. Without all of them nothing is estimated.
    pub all_owners_answered: bool,
    /// Whose rows are missing, and why.
    pub missing_text: Vec<String>,
    /// How long ago all rows were there that the estimates rest on, in milliseconds; none if these are the newest, or nothing is estimated.
    pub estimates_age_ms: Option<Millis>,
    /// Why the newest rows do not answer.
    pub estimates_in_transition_text: Option<String>,
    /// How much of the hosts of crowded addresses was visited: the sums are of these only. If rows are missing it is what members tell of it.
    pub sample: InPartCounts,
    /// What the sums over all servers come to with the others there; none if something would have to be estimated and rows are missing for it:
    /// then cells have no estimates either.
    pub estimates: Option<Estimates>,
    /// The cells, those with the most servers first.
    pub cells: Vec<RowCell>,
}

impl CrossTableTold {
    /// These sums, and what the rows of all servers say of the hosts that were not visited, of which members tell `sample`; no rows where all
    /// are counted. Rows that are not to be had take nothing from what was counted.
    pub fn of(view: CrossTableView, sample: InPartCounts, rows: Option<Result<RowTableView, CommandError>>) -> CrossTableTold {
        let CrossTableView { answered_by, exact, in_transition_text, by, cells } = view;
        let (rows, failure) = match rows.transpose() {
            Ok(rows) => (rows, None),
            Err(why) => (None, Some(why.message)),
        };
        let missing_text = rows.as_ref().map(|rows| rows.missing_text.clone()).unwrap_or_default();
        let missing_text: Vec<String> = missing_text.into_iter().chain(failure).collect();
        let is_whole = missing_text.is_empty();
        let rows = rows.filter(|_| is_whole);
        let sample = rows.as_ref().map_or(sample, |rows| rows.sample);
        let Standing { consistent_age_ms, in_transition_text: old } = rows.as_ref().map(|rows| rows.standing.clone()).unwrap_or_default();
        let (mut of_cells, mut estimates) = (BTreeMap::new(), is_whole.then(Estimates::default));
        if let Some(rows) = rows {
            of_cells = rows.cells.into_iter().filter_map(|cell| Some((cell.values, cell.estimates?))).collect();
            estimates = Some(rows.estimates);
        }
        let mut told: Vec<RowCell> = Vec::new();
        let mut total = Counts::default();
        for Cell { values, counts } in cells {
            let values = values.to_vec();
            total.add(&counts);
            told.push(RowCell { estimates: of_cells.remove(&values), values, counts });
        }
        // What is left is of cells that are added up as one.
        if let Some(other) = told.iter_mut().find(|cell| cell.values.iter().all(|value| value == OTHER)) {
            for estimates in of_cells.values() {
                other.estimates.get_or_insert_default().add(estimates);
            }
        }
        for RowCell { counts, estimates, .. } in &mut told {
            estimates.iter_mut().for_each(|estimates| estimates.settle(counts));
        }
        estimates.iter_mut().for_each(|estimates| estimates.settle(&total, &BTreeMap::new()));
        CrossTableTold {
            answered_by,
            exact,
            in_transition_text,
            by,
            all_owners_answered: is_whole,
            missing_text,
            estimates_age_ms: consistent_age_ms,
            estimates_in_transition_text: old,
            sample,
            estimates,
            cells: told,
        }
    }

    /// What is estimated, or why nothing is, in words; none if all is counted.
    pub fn estimated(&self) -> Option<String> {
        let Some(estimates) = &self.estimates else {
            let missing = self.missing_text.join("; ");
            return Some(format!("what was not visited at addresses with many hosts is not estimated: servers are missing: {missing}"));
        };
        let age = self.estimates_age_ms.zip(self.estimates_in_transition_text.as_deref());
        let age = age.map_or_else(String::new, |(age, why)| format!("; estimates of rows as they were {} ago: {why}", Age(age)));
        estimates.sentence().map(|sentence| sentence + &age)
    }

    /// The error behind what was printed, if something would have to be estimated and is not.
    pub fn failure(&self) -> Option<CommandError> {
        let why = self.estimated().filter(|_| self.estimates.is_none())?;
        Some(CommandError::new(Exit::Unavailable, why).hint("ask again when all members answer"))
    }
}

/// Asks all owners for the rows of their servers and sums them up by these splits.
///
/// # Errors
///
/// Nobody answers, or no server of those who answer belongs to the survey, or several surveys have this name.
pub async fn row_table(
    by: &[Split],
    survey: Option<&SurveyRef>,
    member: Option<&str>,
    api: Option<&str>,
) -> Result<RowTableView, CommandError> {
    let mut source = Source::of(member, api).await?;
    let (mut table, mut filter) = (RowTable::new(by.to_vec()), SurveyFilter::new(survey));
    let enter = |_, row: &str| {
        let Some(row) = ServerRow::read(row) else { return false };
        let mark = filter.find(&row.surveys);
        if survey.is_none() || mark.is_some() {
            table.enter(&row, mark.iter().flat_map(|mark| mark.label_texts()));
        }
        true
    };
    let missing = each_row(&mut source, RowsOf::Servers, enter).await?;
    filter.finish()?;
    if let Some(survey) = survey.filter(|_| table.servers() == 0) {
        // Those that are missing may belong to it.
        not_whole(&missing).map_or(Ok(()), Err)?;
        return Err(CommandError::new(Exit::Data, format!("no server on record belongs to a survey {survey}"))
            .hint("`nearcrawl survey list` shows the surveys that a daemon knows of"));
    }
    let cells = table.cells();
    let (estimates, mut of_cells) = table.estimates(&cells);
    let cell = |(values, counts): (Vec<String>, Counts)| RowCell { estimates: of_cells.remove(&values), values, counts };
    let mut cells: Vec<_> = cells.into_iter().map(cell).collect();
    cells.sort_by(|a, b| b.counts.servers.cmp(&a.counts.servers).then_with(|| a.values.cmp(&b.values)));
    Ok(RowTableView {
        by: by.iter().map(|split| split.name().to_owned()).collect(),
        survey: survey.map(ToString::to_string),
        servers: table.servers() as u64,
        total: table.total(),
        standing: Standing::default(),
        all_owners_answered: missing.is_empty(),
        missing_text: missing,
        sample: InPartCounts::from(&estimates),
        estimates,
        cells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{cross_table::CrossTable, estimates::Estimate};

    fn counts(servers: u64, up: u64) -> Counts {
        Counts { servers, up, ..Counts::default() }
    }

    /// As members tell it.
    const SAMPLE: InPartCounts = InPartCounts { addresses: 1, hosts: 210, sampled: 45, not_estimated: 0 };

    fn view() -> CrossTableView {
        let mut table = CrossTable::new((Dimension::Country, Dimension::Software));
        for (country, software, servers) in [("KE", "nginx", 20), ("TZ", "Apache", 14), (OTHER, OTHER, 6)] {
            table.add((country.to_owned(), software.to_owned()), &counts(servers, servers));
        }
        CrossTableView::new(AccessPoint([1; 32]), table, None)
    }

    /// Rows of which one cell is counted, one is estimated, and two are small.
    fn rows(missing_text: Vec<String>) -> RowTableView {
        let more = |more: f64| {
            let estimate = Estimate { more, variance: more, ..Estimate::default() };
            Some(CellEstimates { servers: estimate, up: estimate, ..CellEstimates::default() })
        };
        let cell = |values: [&str; 2], estimates| RowCell { values: values.map(str::to_owned).to_vec(), counts: counts(1, 1), estimates };
        let mut estimates = Estimates { addresses: 1, hosts: 200, sampled: 40, ..Estimates::default() };
        estimates.up.more = 121.0;
        RowTableView {
            by: vec!["country".to_owned(), "software".to_owned()],
            survey: None,
            servers: 40,
            total: counts(40, 40),
            standing: Standing::default(),
            all_owners_answered: missing_text.is_empty(),
            missing_text,
            sample: InPartCounts::from(&estimates),
            estimates,
            cells: vec![
                cell(["KE", "nginx"], more(100.0)),
                cell(["TZ", "Apache"], None),
                cell(["UG", "nginx"], more(16.0)),
                cell(["UG", "caddy"], more(9.0)),
            ],
        }
    }

    #[test]
    fn cells_of_the_whole_swarm_say_what_they_come_to_and_small_ones_together() {
        let told = CrossTableTold::of(view(), SAMPLE, Some(Ok(rows(Vec::new()))));
        let up = |cell: &RowCell| cell.estimates.map(|estimates| (estimates.up.estimated, estimates.up.margin));
        let cells: Vec<_> = told.cells.iter().map(|cell| (cell.values[0].as_str(), cell.counts.servers, up(cell))).collect();
        assert_eq!(cells, [("KE", 20, Some((120, 20))), ("TZ", 14, None), (OTHER, 6, Some((31, 10)))]);
        assert_eq!((told.estimates.as_ref().unwrap().up.estimated, told.sample.sampled), (161, 40));
        assert_eq!(told.failure(), None);
        assert!(told.estimated().unwrap().starts_with("estimated: 161 servers up"), "{:?}", told.estimated());
    }

    #[test]
    fn without_all_rows_nothing_is_estimated_and_that_is_said() {
        let said = "is not estimated: servers are missing: ";
        for (rows, missing) in [
            (Ok(rows(vec!["x: it does not answer".to_owned()])), "x: it does not answer"),
            // Rows that are not to be had at all take nothing from what was counted.
            (Err(CommandError::new(Exit::Unavailable, "the daemon does not answer")), "the daemon does not answer"),
        ] {
            let told = CrossTableTold::of(view(), SAMPLE, Some(rows));
            assert!(told.cells.iter().all(|cell| cell.estimates.is_none()) && told.estimates.is_none() && !told.all_owners_answered);
            assert_eq!((told.cells.len(), told.missing_text.as_slice(), told.sample), (3, &[missing.to_owned()][..], SAMPLE));
            assert!(told.estimated().unwrap().ends_with(&format!("{said}{missing}")), "{:?}", told.estimated());
            let failure = told.failure().unwrap();
            assert!(failure.exit == Exit::Unavailable && failure.message.contains(said), "{failure}");
            let json = serde_json::to_value(&told).unwrap();
            assert!(json["estimates"].is_null() && json["sample"]["addresses"] == 1, "{json}");
        }
        let counted = CrossTableTold::of(view(), InPartCounts::default(), None);
        assert!(counted.all_owners_answered && counted.estimated().is_none() && counted.failure().is_none() && counted.cells.len() == 3);
        assert_eq!(counted.estimates.map(|estimates| (estimates.addresses, estimates.up.estimated)), Some((0, 40)));
    }

    #[test]
    fn estimates_of_rows_of_before_say_how_old_they_are() {
        let why = Some("servers are missing: x".to_owned());
        let standing = Standing { consistent_age_ms: Some(300_000), in_transition_text: why.clone() };
        let told = CrossTableTold::of(view(), SAMPLE, Some(Ok(RowTableView { standing, ..rows(Vec::new()) })));
        assert_eq!((told.exact, told.estimates_age_ms, &told.estimates_in_transition_text), (true, Some(300_000), &why));
        let said = told.estimated().unwrap();
        assert!(said.ends_with(&format!("; estimates of rows as they were {} ago: servers are missing: x", Age(300_000))), "{said}");
        let newest = CrossTableTold::of(view(), SAMPLE, Some(Ok(rows(Vec::new()))));
        assert!(newest.estimates_age_ms.is_none() && !newest.estimated().unwrap().contains("ago"));
    }
}
