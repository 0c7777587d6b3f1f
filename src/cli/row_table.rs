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
    estimates::{CellEstimates, Estimates},
    server_rows::{RowsOf, ServerRow},
    split::Split,
    summary::Counts,
    survey::SurveyRef,
};
use serde::{Deserialize, Serialize};

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

    fn total(&self) -> &Counts {
        &self.total
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
