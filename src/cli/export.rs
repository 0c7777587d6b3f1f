//! What the swarm has on record, row by row: `export servers` and `export history` ask each owner, through the daemon on this machine or
//! through any member.

use super::{
    error::{CommandError, Exit},
    owners::{Place, Source},
    survey::SurveyFilter,
};
use clap::{Args, Subcommand, ValueEnum};
use nearcrawl_model::{access_point::AccessPoint, server_rows::RowsOf, survey::SurveyRef, url::Host, view::counted};
use serde_json::{Map, Value};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, IsTerminal, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Shown under `export --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl export servers > servers.jsonl\n  \
    nearcrawl export servers --format csv --out servers.csv\n  \
    nearcrawl export servers --out servers.jsonl --resume\n  \
    nearcrawl export history --format csv > runs.csv\n  \
    nearcrawl export servers --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…";

/// Shown under `export history --help`.
pub const HISTORY_EXAMPLES: &str = "Examples:\n  \
    nearcrawl export history > runs.jsonl\n  \
    nearcrawl export history --format csv --out runs.csv\n  \
    nearcrawl export history --out runs.jsonl --resume\n\n\
    A run that is not over is among the rows only if it is the first one of its server (state: running). Of more than 240 runs some older \
    ones are left out (runs_left_out); the first one and the latest 120 stay.";

/// What is exported.
#[derive(Subcommand, Debug)]
pub enum ExportCommand {
    /// One row for each server: where it is, what its owner has on record, and who that is
    #[command(after_help = EXAMPLES)]
    Servers(ServersArgs),
    /// One row for each server and run: what each run of it came to, since it is known
    #[command(after_help = HISTORY_EXAMPLES)]
    History(ServersArgs),
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a line, as `docs/JSON.md` describes it
    #[default]
    Jsonl,
    /// Columns of plain values; what has no column of its own is JSON in the last one
    Csv,
}

/// The arguments of `export servers` and `export history`.
#[derive(Args, Clone, Debug)]
pub struct ServersArgs {
    /// How rows are written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only servers that belong to this survey, with its labels
    #[arg(long, value_name = "NAME")]
    survey: Option<SurveyRef>,
    /// Write to this file [default: -, standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on behind the last row of the file of --out, if it is there
    #[arg(long, requires = "out")]
    resume: bool,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
}

/// The columns of a CSV of servers, as they are called in JSON, and behind them the rest.
const COLUMNS: [&str; 33] = [
    "access_point",
    "host",
    "country",
    "registry",
    "organisation",
    "address",
    "tree",
    "run",
    "status",
    "state",
    "software",
    "pages",
    "page_bytes",
    "requests",
    "bytes",
    "busy_ms",
    "known",
    "fetched",
    "unanswered",
    "waiting",
    "cut_by_depth",
    "refused_by_robots",
    "cut_by_script",
    "failed",
    "external_hosts",
    "external_urls",
    "external_domains",
    "deepest",
    "crawl_delay_ms",
    "first_visit_at",
    "last_visit_at",
    "surveys",
    "labels",
];

/// The same of a CSV of runs.
const RUN_COLUMNS: [&str; 36] = [
    "access_point",
    "host",
    "run",
    "country",
    "registry",
    "organisation",
    "address",
    "tree",
    "status",
    "state",
    "first_visit_at",
    "last_visit_at",
    "known",
    "pages",
    "page_bytes",
    "bytes",
    "requests",
    "failed",
    "busy_ms",
    "external_hosts",
    "external_urls",
    "external_domains",
    "compared_run",
    "pages_before",
    "new_pages",
    "changed_pages",
    "gone_pages",
    "evaluated",
    "failing",
    "detected_failures",
    "evaluation_rules",
    "software",
    "language",
    "runs_left_out",
    "surveys",
    "labels",
];

/// What has no column of its own.
const REST: &str = "other_json";

/// How often progress is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// Exports.
pub async fn export(command: &ExportCommand) -> Result<String, CommandError> {
    let (rows, args) = match command {
        ExportCommand::Servers(args) => (RowsOf::Servers, args),
        ExportCommand::History(args) => (RowsOf::History, args),
    };
    let mut source = Source::of(args.member.as_deref(), args.api.as_deref()).await?;
    let (mut output, place) = Output::open(args, rows)?;
    let owners = source.owners().await?;
    let all = owners.iter().map(|owner| owner.servers).sum();
    let (mut progress, mut filter) = (Progress::new(all), SurveyFilter::new(args.survey.as_ref()));
    let write = |owner: AccessPoint, row: &str| -> Result<(), CommandError> {
        if let Some(row) = filter.row(row, args.format == Format::Csv) {
            progress.wrote(output.write(owner, &row)?);
        }
        Ok(())
    };
    let missing = source.walk(owners, rows, place, write).await?;
    output.finish()?;
    filter.finish()?;
    progress.finish(&missing)
}

/// Where rows go.
struct Output {
    rows: RowsOf,
    format: Format,
    name: String,
    to: Box<dyn Write + Send>,
}

impl Output {
    fn open(args: &ServersArgs, rows: RowsOf) -> Result<(Output, Place), CommandError> {
        let file = args.out.as_deref().filter(|out| *out != Path::new("-"));
        let Some(path) = file else {
            let mut output =
                Output { rows, format: args.format, name: "standard output".to_owned(), to: Box::new(BufWriter::new(io::stdout())) };
            output.head()?;
            return Ok((output, None));
        };
        let name = path.display().to_string();
        let failed = |why: io::Error| CommandError::new(Exit::InUse, format!("{name}: {why}"));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(!args.resume).open(path).map_err(failed)?;
        let Written { end, place, has_rows } =
            if args.resume { written(&file, args.format, rows).map_err(failed)? } else { Written::default() };
        if !has_rows && end > 0 {
            let why = format!(
                "{name} has no row of an export as {} to go on behind",
                if args.format == Format::Csv { "CSV" } else { "JSON lines" }
            );
            return Err(CommandError::new(Exit::Data, why).hint("leave out --resume to write it anew, or name another file"));
        }
        file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end))).map_err(failed)?;
        let mut output = Output { rows, format: args.format, name, to: Box::new(BufWriter::new(file)) };
        if end == 0 {
            output.head()?;
        }
        Ok((output, place))
    }

    fn head(&mut self) -> Result<(), CommandError> {
        match self.format {
            Format::Jsonl => Ok(()),
            Format::Csv => self.line(&csv_line(columns(self.rows).iter().map(|name| (*name).to_owned()).chain([REST.to_owned()]))),
        }
    }

    /// Writes a row of this owner, or one for each run of it; says how many, and none if it is no row.
    fn write(&mut self, owner: AccessPoint, row: &str) -> Result<Option<u64>, CommandError> {
        let Some(row) = checked(owner, row) else { return Ok(None) };
        let rows = match self.rows {
            RowsOf::Servers => vec![row],
            RowsOf::History => match runs_of(row) {
                Some(runs) => runs,
                None => return Ok(None),
            },
        };
        let count = rows.len() as u64;
        for row in rows {
            let line = match self.format {
                Format::Jsonl => Value::Object(row).to_string() + "\n",
                Format::Csv => csv_row(columns(self.rows), row),
            };
            self.line(&line)?;
        }
        Ok(Some(count))
    }

    fn line(&mut self, line: &str) -> Result<(), CommandError> {
        self.to.write_all(line.as_bytes()).map_err(|why| self.failed(&why))
    }

    fn finish(&mut self) -> Result<(), CommandError> {
        self.to.flush().map_err(|why| self.failed(&why))
    }

    fn failed(&self, why: &io::Error) -> CommandError {
        CommandError::new(Exit::Storage, format!("{}: {why}", self.name))
    }
}

/// A row as it came over the network, with the owner that was asked for it: an object with a host, or none.
fn checked(owner: AccessPoint, row: &str) -> Option<Map<String, Value>> {
    let Value::Object(mut row) = serde_json::from_str(row).ok()? else { return None };
    row.get("host")?.as_str()?.parse::<Host>().ok()?;
    row.insert("access_point".to_owned(), Value::String(owner.to_string()));
    Some(row)
}

fn columns(rows: RowsOf) -> &'static [&'static str] {
    match rows {
        RowsOf::Servers => &COLUMNS,
        RowsOf::History => &RUN_COLUMNS,
    }
}

/// Of a server with its runs, a row for each run; none if that is not what it is.
fn runs_of(mut server: Map<String, Value>) -> Option<Vec<Map<String, Value>>> {
    let Value::Array(runs) = server.remove("runs")? else { return None };
    let row = |run: Value| match run {
        Value::Object(run) if run.get("run").is_some_and(Value::is_u64) => Some(run.into_iter().chain(server.clone()).collect()),
        _ => None,
    };
    runs.into_iter().map(row).collect()
}

fn csv_row(columns: &[&str], mut row: Map<String, Value>) -> String {
    let mut plain = |name: &&str| match row.remove(*name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.chars().filter(|c| !c.is_control()).collect(),
        Some(other) => other.to_string(),
    };
    let cells: Vec<_> = columns.iter().map(&mut plain).collect();
    csv_line(cells.into_iter().chain([Value::Object(row).to_string()]))
}

fn csv_line(cells: impl Iterator<Item = String>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(cells.collect::<Vec<_>>()).ok().and_then(|()| writer.into_inner().ok());
    written.and_then(|line| String::from_utf8(line).ok()).unwrap_or_default()
}

/// What a file has of an export.
#[derive(Default)]
struct Written {
    /// Where it is gone on, in bytes.
    end: u64,
    /// The owner and the host behind which it is gone on.
    place: Place,
    /// Whether there are rows that can be read.
    has_rows: bool,
}

/// How far the whole lines of a file go, and the last row that can be read among them. Of the last server with its runs some may be missing,
/// so it is gone on before it.
fn written(file: &File, format: Format, rows: RowsOf) -> io::Result<Written> {
    let (mut at, mut line, mut lines) = (0, Vec::new(), BufReader::new(file));
    let (mut last, mut before_last) = (Written::default(), Written::default());
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        if read == 0 || line.last() != Some(&b'\n') {
            let gone_on = if rows == RowsOf::History && last.has_rows { before_last } else { last };
            return Ok(gone_on);
        }
        let place = place_of(&line, format);
        if place.is_some() && place != last.place {
            before_last = Written { end: at, place: last.place.take(), has_rows: true };
        }
        at += read as u64;
        last = Written { end: at, has_rows: last.has_rows || place.is_some(), place: place.or(last.place) };
    }
}

fn place_of(line: &[u8], format: Format) -> Place {
    let (owner, host) = match format {
        Format::Jsonl => {
            let row: Value = serde_json::from_slice(line).ok()?;
            (row["access_point"].as_str()?.to_owned(), row["host"].as_str()?.to_owned())
        }
        Format::Csv => {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
            let row = reader.records().next()?.ok()?;
            (row.get(0)?.to_owned(), row.get(1)?.to_owned())
        }
    };
    Some((owner.parse().ok()?, host.parse().ok()?))
}

/// How far it is; drawn if somebody looks.
struct Progress {
    all: u64,
    asked: u64,
    written: u64,
    unreadable: u64,
    begun: Instant,
    drawn: Instant,
    is_drawn: bool,
}

impl Progress {
    fn new(all: u64) -> Progress {
        let now = Instant::now();
        Progress { all, asked: 0, written: 0, unreadable: 0, begun: now, drawn: now, is_drawn: io::stderr().is_terminal() }
    }

    fn wrote(&mut self, rows: Option<u64>) {
        self.asked += 1;
        self.written += rows.unwrap_or(0);
        self.unreadable += u64::from(rows.is_none());
        if self.is_drawn && self.drawn.elapsed() >= DRAW_EVERY {
            self.drawn = Instant::now();
            let _ = write!(io::stderr(), "\r{} of about {}", self.asked, counted(self.all, "server"));
        }
    }

    /// The last words, on standard error: rows may be on standard output.
    fn finish(self, missing: &[String]) -> Result<String, CommandError> {
        let start = if self.is_drawn { "\r" } else { "" };
        let seconds = self.begun.elapsed().as_secs_f64();
        let _ = writeln!(
            io::stderr(),
            "{start}{} written in {seconds:.1} s, as they were when each owner was asked",
            counted(self.written, "row")
        );
        let mut wrong = missing.to_vec();
        if self.unreadable > 0 {
            wrong.push(format!("{} cannot be read", counted(self.unreadable, "row")));
        }
        if wrong.is_empty() {
            return Ok(String::new());
        }
        Err(CommandError::new(Exit::Unavailable, format!("rows are missing: {}", wrong.join("; ")))
            .hint("export again when all members answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const OWNER: &str = "12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ";

    fn args(out: &Path, format: Format, resume: bool) -> ServersArgs {
        ServersArgs { format, survey: None, out: Some(out.to_owned()), resume, member: None, api: None }
    }

    fn text_of(path: &Path) -> String {
        let mut text = String::new();
        File::open(path).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn an_export_that_was_cut_off_goes_on_behind_its_last_whole_row() {
        let directory = tempfile::tempdir().unwrap();
        let owner: AccessPoint = OWNER.parse().unwrap();
        for format in [Format::Jsonl, Format::Csv] {
            let path = directory.path().join("servers");
            let (mut output, place) = Output::open(&args(&path, format, false), RowsOf::Servers).unwrap();
            assert_eq!(place, None);
            for host in ["a.ke", "b.ke"] {
                let row = format!(r#"{{"host":"{host}","software":"A, \"b\"\n","pages":3,"by_status":{{"200":3}}}}"#);
                assert_eq!(output.write(owner, &row).unwrap(), Some(1));
            }
            output.finish().unwrap();
            let whole = text_of(&path);
            std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
            let (mut output, place) = Output::open(&args(&path, format, true), RowsOf::Servers).unwrap();
            assert_eq!(place, Some((owner, "a.ke".parse().unwrap())));
            output.write(owner, r#"{"host":"b.ke","software":"A, \"b\"\n","pages":3,"by_status":{"200":3}}"#).unwrap();
            output.finish().unwrap();
            assert_eq!(text_of(&path), whole);
        }
    }

    #[test]
    fn a_row_has_its_owner_plain_columns_and_the_rest_as_json() {
        let owner: AccessPoint = OWNER.parse().unwrap();
        let row = checked(owner, r#"{"host":"a.ke","access_point":"somebody else","pages":3,"crawl_delay_ms":null,"by_status":{"200":3}}"#)
            .unwrap();
        let line = csv_row(&COLUMNS, row);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        let cells = reader.records().next().unwrap().unwrap();
        assert_eq!(cells.len(), COLUMNS.len() + 1);
        let cell = |name: &str| &cells[COLUMNS.iter().position(|column| *column == name).unwrap()];
        assert_eq!((cell("access_point"), cell("host"), cell("pages"), cell("crawl_delay_ms")), (OWNER, "a.ke", "3", ""));
        assert_eq!(&cells[COLUMNS.len()], r#"{"by_status":{"200":3}}"#);
        for not_a_row in ["", "7", "{}", r#"{"host":7}"#, r#"{"host":"a b"}"#] {
            assert_eq!(checked(owner, not_a_row), None, "{not_a_row}");
        }
    }

    #[test]
    fn runs_are_rows_and_an_export_of_them_goes_on_before_the_server_that_was_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let owner: AccessPoint = OWNER.parse().unwrap();
        let server = |host: &str| {
            let run = |run: u32| format!(r#"{{"run":{run},"country":"KE","pages":{},"later":1}}"#, 10 * run);
            format!(r#"{{"host":"{host}","tree":"a.ke","runs_left_out":0,"runs":[{},{},{}]}}"#, run(1), run(2), run(4))
        };
        for format in [Format::Jsonl, Format::Csv] {
            let path = directory.path().join("history");
            let (mut output, _) = Output::open(&args(&path, format, false), RowsOf::History).unwrap();
            for host in ["a.ke", "b.ke"] {
                assert_eq!(output.write(owner, &server(host)).unwrap(), Some(3));
            }
            output.finish().unwrap();
            let whole = text_of(&path);
            let head = usize::from(format == Format::Csv);
            assert_eq!(whole.lines().count(), 6 + head);
            assert!(whole.lines().nth(head + 1).unwrap().contains(if head > 0 { ",a.ke,2,KE," } else { "\"run\":2" }));
            // All but the last line of each of the servers.
            for (lines, place) in [(5, Some((owner, "a.ke".parse().unwrap()))), (2, None)] {
                let cut: String = whole.lines().take(lines + head).map(|line| format!("{line}\n")).collect();
                std::fs::write(&path, cut).unwrap();
                let (mut output, found) = Output::open(&args(&path, format, true), RowsOf::History).unwrap();
                assert_eq!(found, place);
                let rest = if place.is_some() { &["b.ke"][..] } else { &["a.ke", "b.ke"] };
                rest.iter().for_each(|host| assert_eq!(output.write(owner, &server(host)).unwrap(), Some(3)));
                output.finish().unwrap();
                assert_eq!(text_of(&path), whole);
            }
            let (mut output, _) = Output::open(&args(&path, format, false), RowsOf::History).unwrap();
            assert_eq!(output.write(owner, r#"{"host":"a.ke","runs":[7]}"#).unwrap(), None);
            assert_eq!(output.write(owner, r#"{"host":"a.ke"}"#).unwrap(), None);
            assert_eq!(output.write(owner, r#"{"host":"a.ke","runs":[]}"#).unwrap(), Some(0));
        }
    }

    #[test]
    fn a_file_of_something_else_is_not_gone_on_with() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        std::fs::write(&path, "remember the milk\n").unwrap();
        let Err(refused) = Output::open(&args(&path, Format::Jsonl, true), RowsOf::Servers) else { panic!("it is taken") };
        assert_eq!(refused.exit, Exit::Data);
        assert_eq!(text_of(&path), "remember the milk\n");
    }
}
