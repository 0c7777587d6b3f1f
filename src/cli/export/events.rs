//! `export events`: a row for each delegation, judgement and hand-over that ended lately at the member that is asked.

use super::{
    column::{Column, Row, int, text, time},
    file,
    text::Format,
};
use crate::cli::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    owners::{Asked, Source},
    walk::Hosts,
};
use clap::{Args, ValueEnum};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::{ExportOf, ExportPlace},
    view::{EventRow, EventView, EventsView, counted},
};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// Shown under `export events --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl export events > events.jsonl\n  \
    nearcrawl export events --format csv --out events.csv\n  \
    nearcrawl export events --api http://127.0.0.1:4881\n  \
    nearcrawl export events --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    Rows are of the member that is asked alone: the searches for owners that it ran (kind: delegation), the subnets that it offered to others \
    (kind: move) and the accesses to its own subnets that it judged (kind: judgement), each when it has ended, with its beginning (begun_at) \
    and its duration in milliseconds (duration_ms). It keeps the latest 4096 judgements and the latest 4096 others in memory, until it ends; \
    if some were dropped, a warning says how many.";

/// The columns.
pub const COLUMNS: [Column; 13] = [
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
    int("requests"),
    int("took_ms"),
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
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
}

/// What a member tells.
#[derive(Default)]
pub struct Told {
    rows: Vec<Row>,
    /// Older ones that it does not keep any more.
    dropped: u64,
}

/// Rows that one member may tell: more than it keeps.
const MAX_ROWS: usize = 20_000;

/// Asks, and writes what is told.
pub async fn events(args: &EventsArgs) -> Result<String, CommandError> {
    let told = match &args.member {
        Some(member) => of_member(member).await?,
        None => of_daemon(&ApiClient::new(&ApiArgs { api: args.api.clone(), json: false })?.get("/api/events", &[]).await?)?,
    };
    let dropped = told.dropped;
    write(args, told)?;
    if dropped > 0 {
        let _ = writeln!(io::stderr(), "warning: {} before these are not kept any more", counted(dropped, "event"));
    }
    Ok(String::new())
}

/// What a daemon tells by its API.
pub fn of_daemon(view: &EventsView) -> Result<Told, CommandError> {
    let row = |event: &EventView| match serde_json::to_value(EventRow { access_point: view.access_point, event: event.clone() }) {
        Ok(Value::Object(row)) => Ok(row),
        _ => Err(CommandError::new(Exit::Internal, "an event is no JSON object".to_owned())),
    };
    Ok(Told { rows: view.events.iter().map(row).collect::<Result<_, _>>()?, dropped: view.dropped })
}

/// What a member tells over the network, of itself.
async fn of_member(member: &str) -> Result<Told, CommandError> {
    let peer = member.trim().rsplit_once("/p2p/").and_then(|(_, peer)| peer.parse::<AccessPoint>().ok());
    let peer = peer.ok_or_else(|| {
        CommandError::new(Exit::Usage, format!("{member:?} does not say which member it is"))
            .hint("write it like /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…; `nearcrawl members` has the ids")
    })?;
    let mut source = Source::of(Some(member), None).await?;
    let (mut told, mut from) = (Told::default(), None::<ExportPlace>);
    loop {
        let why = |why: String| CommandError::new(Exit::Unavailable, why).hint("releases before this one do not tell their events so");
        let piece = source.piece(Asked::Export(ExportOf::Events), peer, from.as_ref()).await.map_err(why)?;
        piece.rows.iter().for_each(|row| told.take(peer, row));
        let next = piece.next.filter(|next| next.is_behind(from.as_ref()) && told.rows.len() <= MAX_ROWS);
        if next.is_none() {
            return Ok(told);
        }
        from = next;
    }
}

impl Told {
    /// A row as the member has written it; what is none is left out.
    fn take(&mut self, member: AccessPoint, row: &str) {
        match serde_json::from_str(row) {
            Ok(Value::Object(mut row)) if row.contains_key("kind") => {
                row.insert("access_point".to_owned(), json!(member));
                self.rows.push(row);
            }
            Ok(head) => self.dropped += head["dropped"].as_u64().unwrap_or(0),
            Err(_) => {}
        }
    }
}

/// Writes a row for each.
pub fn write(args: &EventsArgs, told: Told) -> Result<(), CommandError> {
    let format = match args.format {
        LinesOf::Jsonl => Format::Jsonl,
        LinesOf::Csv => Format::Csv,
    };
    let (mut output, _) = file::open((format, args.out.as_deref(), false), &COLUMNS, false, &mut Hosts::default())?;
    told.rows.into_iter().try_for_each(|row| output.add(row))?;
    output.finish(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
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
            requests: None,
            took_ms: None,
        };
        let (from, reason_text) = (Some(me), Some("moved by its operator, \"now\"".to_owned()));
        let outcome = EventOutcome::CalledOff;
        let moved = EventView { kind: EventKind::Move, outcome, from, probes: None, policy: None, reason_text, ..delegation.clone() };
        let (kind, outcome, requests, took_ms) = (EventKind::Judgement, EventOutcome::ToMove, Some(16), Some(900));
        let judged = EventView { kind, outcome, requests, took_ms, ..moved.clone() };
        EventsView { access_point: me, dropped: 0, events: vec![delegation, moved, judged] }
    }

    #[test]
    fn each_event_is_a_row_with_its_duration() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        let args = |format| EventsArgs { format, out: Some(path.clone()), member: None, api: None };
        write(&args(LinesOf::Jsonl), of_daemon(&view()).unwrap()).unwrap();
        let lines: Vec<Value> = fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["kind"], &lines[0]["duration_ms"], &lines[0]["probes"]), (&json!("delegation"), &json!(4_250), &json!(2)));
        assert_eq!((&lines[1]["outcome"], &lines[1]["from"]), (&json!("called-off"), &json!(AccessPoint([1; 32]))));
        write(&args(LinesOf::Csv), of_daemon(&view()).unwrap()).unwrap();
        let mut reader = csv::Reader::from_path(&path).unwrap();
        assert!(reader.headers().unwrap().iter().eq(COLUMNS.iter().map(|column| column.name).chain(["other_json"])));
        let cells: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!([&cells[0][1], &cells[0][2], &cells[0][3], &cells[0][8]], ["delegation", "2026-09-21T14:13:20.000Z", "4250", "2"]);
        assert_eq!((&cells[1][10], &cells[1][13]), ("moved by its operator, \"now\"", "{}"));
        assert_eq!([&cells[2][1], &cells[2][5], &cells[2][11], &cells[2][12]], ["judgement", "to-move", "16", "900"]);
    }

    #[test]
    fn rows_of_a_member_are_its_own_and_what_it_dropped_is_added_up() {
        let (me, other) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
        let mut told = Told::default();
        for row in [
            r#"{"dropped":5}"#.to_owned(),
            format!(r#"{{"kind":"move","access_point":"{other}","later":1}}"#),
            "[]".to_owned(),
            "{".to_owned(),
        ] {
            told.take(me, &row);
        }
        assert_eq!((told.rows.len(), told.dropped), (1, 5));
        assert_eq!((&told.rows[0]["access_point"], &told.rows[0]["later"]), (&json!(me), &json!(1)));
    }
}
