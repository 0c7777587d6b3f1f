//! Records of servers on their way to a reader, each as the JSON that its owner writes.
//!
//! So a reader of another version keeps what it does not know, and who passes them on need not understand them.

use super::{
    access_point::AccessPoint, ownership_map::at_most, record::ServerRecord, run_history::RunSummary, survey::SurveyMark, url::Host,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// Rows in one answer.
pub const MAX_ROWS: usize = 256;

/// Bytes of rows in one answer, unless the first one is longer: half of the longest message.
const MAX_BYTES: usize = 512 << 10;

/// Members that are told to own servers.
pub const MAX_OWNERS: usize = 10_000;

/// Some of the servers that a member owns, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerRows {
    /// One JSON object each, at most [`MAX_ROWS`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_ROWS>")]
    pub rows: Vec<String>,
    /// The host after which to go on; none at the end.
    #[schema(value_type = Option<String>)]
    pub next: Option<Host>,
}

/// A member that owns servers, as far as its totals were heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerOwner {
    /// Which member.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// How many servers it has on record.
    pub servers: u64,
}

/// A server as its owner has it on record, and where it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerRow {
    /// The owner, which says all this.
    pub access_point: AccessPoint,
    /// ISO code of the country, as the registries have it; `ZZ` if they do not.
    pub country: String,
    /// The regional registry.
    pub registry: String,
    /// Who holds the subnet.
    pub organisation: String,
    /// The probability with which it is in the sample that estimates rest on: 1 unless not all of the many hosts of its address were
    /// visited, and there, too, if it was visited out of its turn and stands for itself alone. None if it is not in that sample, because it
    /// was not visited yet, or because too few were.
    pub inclusion_probability: Option<f64>,
    /// The surveys that it belongs to, as far as its owner knows; none says no more than that its owner knows of none.
    pub surveys: Vec<SurveyMark>,
    /// The record of the last whole run, or of the first one.
    #[serde(flatten)]
    pub record: ServerRecord,
}

/// The probability of a row that tells none, as those of members of earlier versions, which counted each server as itself.
pub fn certain() -> Option<f64> {
    Some(1.0)
}

impl ServerRow {
    /// Reads a row; none if it is not one. (A derived reader takes no numbers for keys of maps in what is flattened.)
    pub fn read(text: &str) -> Option<ServerRow> {
        #[derive(Deserialize)]
        struct Rest {
            access_point: AccessPoint,
            country: String,
            registry: String,
            organisation: String,
            #[serde(default = "certain")]
            inclusion_probability: Option<f64>,
            #[serde(default)]
            surveys: Vec<SurveyMark>,
        }
        let row: serde_json::Value = serde_json::from_str(text).ok()?;
        let record = ServerRecord::deserialize(&row).ok()?;
        let Rest { access_point, country, registry, organisation, inclusion_probability, surveys } = Rest::deserialize(&row).ok()?;
        Some(ServerRow { access_point, country, registry, organisation, inclusion_probability, surveys, record })
    }
}

/// The runs of a server as its owner has them on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The owner, which says all this.
    pub access_point: AccessPoint,
    /// The server's host name.
    pub host: Host,
    /// The starting host of its tree, without `www.`.
    pub tree: Host,
    /// The surveys that it belongs to today.
    #[serde(default)]
    pub surveys: Vec<SurveyMark>,
    /// How many runs are left out because there were more than are kept.
    #[serde(default)]
    pub runs_left_out: u64,
    /// Where it is today, and whether it stands for others there; none of owners of an earlier version.
    #[serde(default)]
    pub today: Option<Today>,
    /// The runs in order.
    pub runs: Vec<RunRow>,
}

/// Where a server is today, and whether it stands for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Today {
    /// Its address.
    pub address: Option<IpAddr>,
    /// ISO code of the country, as the registries have it; `ZZ` if they do not.
    pub country: String,
    /// The regional registry.
    pub registry: String,
    /// Who holds the subnet.
    pub organisation: String,
    /// As in a [`ServerRow`].
    #[serde(default = "certain")]
    pub inclusion_probability: Option<f64>,
}

/// One run of a server, and where the server was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow {
    /// ISO code of the country, as the registries have it today; `ZZ` if they do not.
    pub country: String,
    /// The regional registry.
    pub registry: String,
    /// Who holds the subnet.
    pub organisation: String,
    /// What the run came to.
    #[serde(flatten)]
    pub summary: RunSummary,
}

/// Which rows are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// A [`ServerRow`] for each server.
    Servers,
    /// A [`HistoryRow`] for each server.
    History,
}

impl ServerRows {
    /// As many of these rows as fit into an answer, at least one; each with its host.
    pub fn of<R: Serialize>(servers: impl IntoIterator<Item = (Host, R)>) -> ServerRows {
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, None);
        for (host, server) in servers {
            let Ok(row) = serde_json::to_string(&server) else { continue };
            bytes += row.len();
            if !rows.is_empty() && (bytes > MAX_BYTES || rows.len() >= MAX_ROWS) {
                return ServerRows { rows, next: last };
            }
            last = Some(host);
            rows.push(row);
        }
        ServerRows { rows, next: None }
    }
}

#[cfg(test)]
impl HistoryRow {
    /// For tests: a host of no survey with these runs.
    pub(crate) fn of_runs(host: &str, runs: impl IntoIterator<Item = RunRow>) -> HistoryRow {
        let (access_point, host): (_, Host) = (AccessPoint([7; 32]), host.parse().unwrap());
        let (tree, runs) = (host.clone(), runs.into_iter().collect());
        HistoryRow { access_point, host, tree, surveys: Vec::new(), runs_left_out: 0, today: None, runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn servers(count: usize, software: usize) -> Vec<(Host, ServerRow)> {
        let row = |number: usize| {
            let record = json!({
                "host": format!("s{number:04}.test"), "address": null, "tree": "s.test", "run": 1, "status": "up", "state": "complete",
                "software": "x".repeat(software), "pages": 1, "requests": 1, "bytes": 1, "busy_ms": 1, "known": 1, "cut_by_depth": 0,
                "refused_by_robots": 0, "cut_by_script": 0, "cut_by_yield": 0, "failed": 0, "by_status": {"200": 1}, "external_hosts": 0, "deepest": 0,
                "first_visit_at": null, "last_visit_at": null, "no_index": 0, "no_follow": 0, "crawl_delay_ms": null,
                "refused_by_crawl_delay": 0,
            });
            let record: ServerRecord = serde_json::from_value(record).unwrap();
            let (country, registry, organisation) = ("KE".to_owned(), "afrinic".to_owned(), "Museum".to_owned());
            let (access_point, inclusion_probability, surveys) = (AccessPoint([7; 32]), Some(1.0), Vec::new());
            (record.host.clone(), ServerRow { access_point, country, registry, organisation, inclusion_probability, surveys, record })
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn an_answer_has_as_many_rows_as_fit_and_says_where_to_go_on() {
        let short = ServerRows::of(servers(3, 1));
        assert_eq!((short.rows.len(), short.next), (3, None));
        assert_eq!(ServerRow::read(&short.rows[1]).as_ref(), Some(&servers(2, 1)[1].1), "it is read as it was");
        let mut row: Value = serde_json::from_str(&short.rows[1]).unwrap();
        let producer = AccessPoint([7; 32]).to_string();
        assert_eq!((&row["host"], &row["country"], &row["access_point"]), (&json!("s0001.test"), &json!("KE"), &json!(producer)));
        row["inclusion_probability"] = Value::Null;
        assert_eq!(ServerRow::read(&row.to_string()).unwrap().inclusion_probability, None);
        row.as_object_mut().unwrap().remove("inclusion_probability");
        assert_eq!(ServerRow::read(&row.to_string()).unwrap().inclusion_probability, Some(1.0), "as members of before tell it");
        let many = ServerRows::of(servers(MAX_ROWS + 5, 1));
        assert_eq!((many.rows.len(), many.next.unwrap().to_string()), (MAX_ROWS, format!("s{:04}.test", MAX_ROWS - 1)));
        let long = ServerRows::of(servers(9, 100_000));
        assert!(long.rows.len() < 9 && long.rows.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        let too_long = ServerRows::of(servers(2, 2 * MAX_BYTES));
        assert_eq!((too_long.rows.len(), too_long.next.unwrap().to_string()), (1, "s0000.test".to_owned()), "it is told all the same");
    }
}
