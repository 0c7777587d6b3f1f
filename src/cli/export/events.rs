//! `export events`: a row for each delegation and hand-over that ended lately at the daemon that is asked.

use super::{
    column::{Column, Row, int, text, time},
    file,
    text::Format,
    walk::Hosts,
};
use crate::cli::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
};
use clap::{Args, ValueEnum};
use nearcrawl_model::view::{EventView, EventsView, counted};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// Shown under `export events --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl export events > events.jsonl\n  \
    nearcrawl export events --format csv --out events.csv\n  \
    nearcrawl export events --api http://127.0.0.1:4881\n\n\
    Rows are of the daemon that is asked alone: the searches for owners that it ran (kind: delegation) and the subnets that it offered to \
    others (kind: move), each when it has ended, with its beginning (begun_at) and its duration in milliseconds (duration_ms). It keeps the \
    latest 4096 in memory, until it ends; if some were dropped, a warning says how many.";

/// The columns.
pub const COLUMNS: [Column; 11] = [
    text("access_point"),
    text("kind"),
    time("begun_at"),
    int("duration_ms"),
    text("subnet"),
    text("outcome"),
    text("from"),
    text("to"),
    int("probes"),
    text("policy"),
    text("reason_text"),
];

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LinesOf {
    /// One JSON object a line, as `docs/JSON.md` describes it
    #[default]
    Jsonl,
    /// Columns of plain values
    Csv,
}

/// The arguments of `export events`.
#[derive(Args, Clone, Debug)]
pub struct EventsArgs {
    /// How rows are written
    #[arg(long, value_enum, default_value_t)]
    format: LinesOf,
    /// Write to this file [default: -, standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
}

/// Asks the daemon, and writes what it tells.
pub async fn events(args: &EventsArgs) -> Result<String, CommandError> {
    let view: EventsView = ApiClient::new(&ApiArgs { api: args.api.clone(), json: false })?.get("/api/events", &[]).await?;
    write(args, &view)?;
    if view.dropped > 0 {
        let _ = writeln!(io::stderr(), "warning: {} before these are not kept any more", counted(view.dropped, "event"));
    }
    Ok(String::new())
}

/// Writes a row for each.
pub fn write(args: &EventsArgs, view: &EventsView) -> Result<(), CommandError> {
    let format = match args.format {
        LinesOf::Jsonl => Format::Jsonl,
        LinesOf::Csv => Format::Csv,
    };
    let (mut output, _) = file::open((format, args.out.as_deref(), false), &COLUMNS, false, &mut Hosts::default())?;
    for event in &view.events {
        output.add(row(view, event)?)?;
    }
    output.finish(true)
}

fn row(view: &EventsView, event: &EventView) -> Result<Row, CommandError> {
    let Ok(Value::Object(mut row)) = serde_json::to_value(event) else {
        return Err(CommandError::new(Exit::Internal, "an event is no JSON object".to_owned()));
    };
    row.insert("access_point".to_owned(), json!(view.access_point));
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        time::WallTime,
        view::{EventKind, EventOutcome},
    };
    use std::fs;

    fn view() -> EventsView {
        let (me, other) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
        let delegation = EventView {
            kind: EventKind::Delegation,
            begun_at: WallTime(1_790_000_000_000),
            duration_ms: 4_250,
            subnet: "192.0.2.0/24".parse().unwrap(),
            outcome: EventOutcome::Owned,
            from: None,
            to: other,
            probes: Some(2),
            policy: Some("nearcrawl".to_owned()),
            reason_text: None,
        };
        let (from, reason_text) = (Some(me), Some("moved by its operator, \"now\"".to_owned()));
        let outcome = EventOutcome::CalledOff;
        let moved = EventView { kind: EventKind::Move, outcome, from, probes: None, policy: None, reason_text, ..delegation.clone() };
        EventsView { access_point: me, dropped: 0, events: vec![delegation, moved] }
    }

    #[test]
    fn each_event_is_a_row_with_its_duration() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        let args = |format| EventsArgs { format, out: Some(path.clone()), api: None };
        write(&args(LinesOf::Jsonl), &view()).unwrap();
        let lines: Vec<Value> = fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["kind"], &lines[0]["duration_ms"], &lines[0]["probes"]), (&json!("delegation"), &json!(4_250), &json!(2)));
        assert_eq!((&lines[1]["outcome"], &lines[1]["from"]), (&json!("called-off"), &json!(AccessPoint([1; 32]))));
        write(&args(LinesOf::Csv), &view()).unwrap();
        let mut reader = csv::Reader::from_path(&path).unwrap();
        assert!(reader.headers().unwrap().iter().eq(COLUMNS.iter().map(|column| column.name).chain(["other_json"])));
        let cells: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!([&cells[0][1], &cells[0][2], &cells[0][3], &cells[0][8]], ["delegation", "2026-09-21T14:13:20.000Z", "4250", "2"]);
        assert_eq!((&cells[1][10], &cells[1][11]), ("moved by its operator, \"now\"", "{}"));
    }
}
