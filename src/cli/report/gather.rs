//! Gathers the rows of a report, and tells how much of the swarm's they are: every server once, as its owner has it on record.

use crate::cli::{in_part::InPartCounts, survey::OffRecord};
use nearcrawl_core::report::RowEstimates;
use nearcrawl_model::{
    access_point::AccessPoint,
    estimates::Estimates,
    record::{RunState, ServerRecord},
    server_rows::certain,
    time::WallTime,
    url::Host,
    view::counted,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A server as its owner tells it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it is.
    pub place: Place,
    /// Its record.
    pub record: ServerRecord,
    /// How many hosts it stands for: itself; more where only a sample of its address's hosts was visited; none if it is not in that sample.
    /// Set by [`Sample`].
    pub weight: f64,
}

/// Where a server is in the world.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    /// ISO code of the country of its subnet; `ZZ` if the registries do not have it.
    #[serde(default)]
    pub country: String,
    /// The regional registry.
    #[serde(default)]
    pub registry: String,
    /// Who holds the subnet.
    #[serde(default)]
    pub organisation: String,
    /// The probability with which it is in the sample of its address's hosts; none if it is in none. Rows of earlier versions have none of it.
    #[serde(default = "certain")]
    inclusion_probability: Option<f64>,
}

impl Row {
    /// What an owner sent, if it is a row.
    pub fn of(row: &str) -> Option<Row> {
        // Two passes: a flattened record could not have numbers as keys.
        let place: Place = serde_json::from_str(row).ok()?;
        Some(Row { weight: 1.0, place, record: serde_json::from_str(row).ok()? })
    }
}

/// The rows of a report as far as they are a sample of hosts of which not all were visited.
#[derive(Debug, Default)]
pub struct Sample(RowEstimates);

impl Sample {
    /// Enters a row.
    pub fn enter(&mut self, row: &Row) {
        self.0.enter(&row.record, row.place.inclusion_probability);
    }

    /// Says how many hosts a row stands for, if that does not depend on the others at its address. Returns whether it does not.
    pub fn weigh_alone(row: &mut Row) -> bool {
        let weight = RowEstimates::weight_alone(&row.record, row.place.inclusion_probability);
        row.weight = weight.unwrap_or(row.weight);
        weight.is_some()
    }

    /// Says how many hosts a row stands for, now that all have been entered.
    pub fn weigh(&self, row: &mut Row) {
        row.weight = self.0.weight(&row.record, row.place.inclusion_probability);
    }

    /// What sums over the rows come to.
    pub fn estimates(&self) -> Estimates {
        self.0.estimates()
    }
}

/// What a report says of its data.
#[derive(Debug, Default)]
pub struct Gathered {
    servers: u64,
    unfinished: u64,
    unreadable: u64,
    runs: BTreeSet<u32>,
    first: Option<WallTime>,
    last: Option<WallTime>,
    members: BTreeMap<AccessPoint, u64>,
    /// Which members' rows are missing, and why.
    pub missing: Vec<String>,
    /// How many servers the members say that they have.
    told: u64,
    /// Of which survey, if not of all servers.
    survey: Option<String>,
    /// Servers on record that are not in the survey.
    others: u64,
    /// As of addresses where not all hosts were visited.
    pub sample: Sample,
    /// The site trees on record, if the report is of a survey.
    pub trees: BTreeSet<Host>,
    /// What there is of the survey's list besides, if whoever was asked tells it.
    pub off_record: Option<OffRecord>,
    /// The edition of the hierarchy, if whoever was asked tells it.
    pub hierarchy: Option<String>,
}

impl Gathered {
    /// Nothing yet, of members that say that they have so many servers; of one survey or of all.
    pub fn of(told: u64, survey: Option<String>) -> Gathered {
        Gathered { told, survey, ..Gathered::default() }
    }

    /// A server is not in the survey.
    pub fn leave_out(&mut self) {
        self.others += 1;
    }

    /// Takes in what an owner sent; the row, if it is one.
    pub fn enter(&mut self, owner: AccessPoint, row: &str) -> Option<Row> {
        let Some(row) = Row::of(row) else {
            self.unreadable += 1;
            return None;
        };
        let record = &row.record;
        self.sample.enter(&row);
        if self.survey.is_some() {
            self.trees.extend([record.tree.clone(), record.host.without_www()]);
        }
        self.servers += 1;
        self.unfinished += u64::from(matches!(record.state, RunState::Running | RunState::PausedByBudget));
        self.runs.insert(record.run);
        self.first = self.first.into_iter().chain(record.first_visit_at).min();
        self.last = self.last.max(record.last_visit_at);
        *self.members.entry(owner).or_default() += 1;
        Some(row)
    }

    /// For people.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let span = match (self.first, self.last) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "no request was sent yet".to_owned(),
        };
        let runs = match (self.runs.first(), self.runs.last()) {
            (Some(first), Some(last)) if first == last => format!("run {first} of each server"),
            (Some(first), Some(last)) => format!("the last whole run of each server, runs {first} to {last}"),
            _ => "none".to_owned(),
        };
        let mut coverage = format!("{} of {}", counted(self.servers, "server"), counted(self.members.len() as u64, "member"));
        if self.servers + self.others < self.told {
            coverage += &format!("; the members said that they have {}", self.told);
        }
        if self.unfinished > 0 {
            coverage += &format!("; the first run of {} is not over, so their values will change", counted(self.unfinished, "server"));
        }
        if self.unreadable > 0 {
            coverage += &format!("; {} cannot be read", counted(self.unreadable, "row"));
        }
        self.missing.iter().for_each(|missing| coverage += &format!("; rows are missing: {missing}"));
        let hierarchy = self.hierarchy.clone().unwrap_or_else(|| "not told by a member over the network".to_owned());
        let survey = match &self.survey {
            Some(survey) => {
                let off = self.off_record.and_then(|off| off.sentence()).map_or_else(String::new, |off| format!("; {off}"));
                format!("{survey}; {} on record not in it{off}", counted(self.others, "server"))
            }
            None => "none: all servers on record".to_owned(),
        };
        let facts = [("time span", span), ("run", runs), ("coverage", coverage), ("hierarchy", hierarchy), ("survey", survey)];
        let estimates = self.sample.estimates();
        let estimated = estimates.totals().map(|totals| ("estimated", totals));
        facts.into_iter().chain(weighted(&estimates).map(|sample| ("sample", sample))).chain(estimated).collect()
    }

    /// For programs.
    pub fn data(&self) -> Map<String, Value> {
        let estimates = self.sample.estimates();
        let value = json!({
            "sample": InPartCounts::from(&estimates),
            "estimates": estimates,
            "first_visit_at": self.first.map(|at| at.to_string()),
            "last_visit_at": self.last.map(|at| at.to_string()),
            "runs": self.runs.iter().collect::<Vec<_>>(),
            "servers": self.servers,
            "servers_told": self.told,
            "survey": self.survey,
            "servers_not_in_survey": self.others,
            "hosts_without_address": self.off_record.map(|off| off.without_address),
            "hosts_not_known": self.off_record.map(|off| off.not_known),
            "servers_unfinished": self.unfinished,
            "rows_unreadable": self.unreadable,
            "members": self.members.len(),
            "missing_text": self.missing,
            "hierarchy": self.hierarchy,
        });
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

/// What stands for hosts that were not visited; none if all were.
fn weighted(estimates: &Estimates) -> Option<String> {
    let counts = InPartCounts::from(estimates);
    let mut text = format!(
        "{}; each weighs as many hosts as it stands for in shares and quantiles of what a visit shows, and those not visited weigh nothing",
        counts.sentence()?
    );
    if counts.not_estimated > 0 {
        text += &format!(
            "; {} of them are where too few were visited to stand for the rest, and these weigh nothing, too",
            counts.not_estimated
        );
    }
    Some(text)
}

/// Whether every row is there.
pub fn is_whole(gathered: &Gathered) -> bool {
    gathered.missing.is_empty() && gathered.unreadable == 0
}
