//! What the swarm has on record, row by row: `export servers` asks each owner, through the daemon on this machine or through any member.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
};
use crate::{
    io::swarm::{Reader, ReaderConfig},
    node::remote_results::{NoResults, PATIENCE, no_answer, refused},
};
use clap::{Args, Subcommand, ValueEnum};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{PublicRequest, PublicResponse},
    server_rows::{ServerOwner, ServerRows},
    url::Host,
    view::counted,
};
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
    nearcrawl export servers --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…";

/// What is exported.
#[derive(Subcommand, Debug)]
pub enum ExportCommand {
    /// One row for each server: where it is, what its owner has on record, and who that is
    #[command(after_help = EXAMPLES)]
    Servers(ServersArgs),
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

/// The arguments of `export servers`.
#[derive(Args, Clone, Debug)]
pub struct ServersArgs {
    /// How rows are written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
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

/// The columns of a CSV, as they are called in JSON, and behind them the rest.
const COLUMNS: [&str; 31] = [
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
];

/// What has no column of its own.
const REST: &str = "other_json";

/// How often an owner that does not answer is asked, with pauses that double.
const TRIES: u32 = 4;

const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How often progress is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// Exports.
pub async fn export(command: &ExportCommand) -> Result<String, CommandError> {
    let ExportCommand::Servers(args) = command;
    let mut source = Source::of(args).await?;
    let (mut output, mut place) = Output::open(args)?;
    let mut owners = source.owners().await?;
    owners.sort_by_key(|owner| owner.access_point);
    let all = owners.iter().map(|owner| owner.servers).sum();
    let (mut progress, mut missing) = (Progress::new(all), Vec::new());
    for owner in owners {
        let mut after = match &place {
            Some((last, _)) if owner.access_point < *last => continue,
            Some((last, host)) if owner.access_point == *last => Some(host.clone()),
            _ => None,
        };
        place = None;
        loop {
            let rows = match source.rows(owner.access_point, after.as_ref()).await {
                Ok(rows) => rows,
                Err(why) => {
                    missing.push(format!("{}: {why}", owner.access_point.short()));
                    break;
                }
            };
            let advances = rows.next.as_ref().is_none_or(|next| after.as_ref().is_none_or(|after| next > after));
            for row in &rows.rows {
                progress.wrote(output.write(owner.access_point, row)?);
            }
            if !advances {
                missing.push(format!("{}: its rows do not advance", owner.access_point.short()));
                break;
            }
            after = rows.next;
            if after.is_none() {
                break;
            }
        }
    }
    output.finish()?;
    progress.finish(&missing)
}

/// Who is asked.
enum Source {
    Daemon(ApiClient),
    Member(Box<Reader>, String),
}

impl Source {
    async fn of(args: &ServersArgs) -> Result<Source, CommandError> {
        let Some(member) = &args.member else {
            return Ok(Source::Daemon(ApiClient::new(&ApiArgs { api: args.api.clone(), json: false })?));
        };
        let reader = Reader::connect(&ReaderConfig::default(), member.trim(), PATIENCE).await;
        let reader = reader.map_err(|why| unavailable(&no_answer(member, &why)))?;
        Ok(Source::Member(Box::new(reader), member.clone()))
    }

    async fn owners(&mut self) -> Result<Vec<ServerOwner>, CommandError> {
        match self {
            Source::Daemon(api) => api.get("/api/servers/owners", &[]).await,
            Source::Member(reader, address) => match reader.ask(PublicRequest::Owners).await {
                Ok(PublicResponse::Owners(owners)) => Ok(owners),
                Ok(other) => Err(unavailable(&refused(address, other))),
                Err(why) => Err(unavailable(&no_answer(address, &why))),
            },
        }
    }

    /// The rows of an owner behind a host; why there are none, as the end of a sentence.
    async fn rows(&mut self, of: AccessPoint, after: Option<&Host>) -> Result<ServerRows, String> {
        let mut pause = FIRST_PAUSE;
        for tried in 1.. {
            match self.rows_once(of, after).await {
                Ok(rows) => return Ok(rows),
                Err(why) if tried >= TRIES => return Err(why),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        Err("no answer".to_owned())
    }

    async fn rows_once(&mut self, of: AccessPoint, after: Option<&Host>) -> Result<ServerRows, String> {
        match self {
            Source::Daemon(api) => {
                let (of, after) = (of.to_string(), after.map(Host::to_string));
                let mut parameters = vec![("of", of.as_str())];
                parameters.extend(after.as_deref().map(|after| ("after", after)));
                api.get("/api/servers/rows", &parameters).await.map_err(|why| why.message)
            }
            Source::Member(reader, address) => {
                match reader.ask(PublicRequest::ServerRows { of, after: after.cloned() }).await {
                    Ok(PublicResponse::ServerRows(rows)) => Ok(rows),
                    Ok(other) => Err(refused(address, other).to_string()),
                    Err(why) => {
                        // The connection may be gone: the next question goes over another one.
                        if let Ok(again) = Reader::connect(&ReaderConfig::default(), address.trim(), PATIENCE).await {
                            **reader = again;
                        }
                        Err(no_answer(address, &why).to_string())
                    }
                }
            }
        }
    }
}

fn unavailable(why: &NoResults) -> CommandError {
    CommandError::new(Exit::Unavailable, why.to_string()).hint("`nearcrawl members` shows where members can be reached")
}

/// Where rows go.
struct Output {
    format: Format,
    name: String,
    to: Box<dyn Write + Send>,
}

/// The owner and the host of the last row that is there.
type Place = Option<(AccessPoint, Host)>;

impl Output {
    fn open(args: &ServersArgs) -> Result<(Output, Place), CommandError> {
        let file = args.out.as_deref().filter(|out| *out != Path::new("-"));
        let Some(path) = file else {
            let mut output = Output { format: args.format, name: "standard output".to_owned(), to: Box::new(BufWriter::new(io::stdout())) };
            output.head()?;
            return Ok((output, None));
        };
        let name = path.display().to_string();
        let failed = |why: io::Error| CommandError::new(Exit::InUse, format!("{name}: {why}"));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(!args.resume).open(path).map_err(failed)?;
        let (end, place) = if args.resume { last_place(&file, args.format).map_err(failed)? } else { (0, None) };
        if place.is_none() && end > 0 {
            let why = format!(
                "{name} has no row of an export as {} to go on behind",
                if args.format == Format::Csv { "CSV" } else { "JSON lines" }
            );
            return Err(CommandError::new(Exit::Data, why).hint("leave out --resume to write it anew, or name another file"));
        }
        file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end))).map_err(failed)?;
        let mut output = Output { format: args.format, name, to: Box::new(BufWriter::new(file)) };
        if end == 0 {
            output.head()?;
        }
        Ok((output, place))
    }

    fn head(&mut self) -> Result<(), CommandError> {
        match self.format {
            Format::Jsonl => Ok(()),
            Format::Csv => self.line(&csv_line(COLUMNS.iter().map(|name| (*name).to_owned()).chain([REST.to_owned()]))),
        }
    }

    /// Writes a row of this owner; false if it is none.
    fn write(&mut self, owner: AccessPoint, row: &str) -> Result<bool, CommandError> {
        let Some(row) = checked(owner, row) else { return Ok(false) };
        let line = match self.format {
            Format::Jsonl => Value::Object(row).to_string() + "\n",
            Format::Csv => csv_row(row),
        };
        self.line(&line).map(|()| true)
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

fn csv_row(mut row: Map<String, Value>) -> String {
    let mut plain = |name: &&str| match row.remove(*name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.chars().filter(|c| !c.is_control()).collect(),
        Some(other) => other.to_string(),
    };
    let cells: Vec<_> = COLUMNS.iter().map(&mut plain).collect();
    csv_line(cells.into_iter().chain([Value::Object(row).to_string()]))
}

fn csv_line(cells: impl Iterator<Item = String>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(cells.collect::<Vec<_>>()).ok().and_then(|()| writer.into_inner().ok());
    written.and_then(|line| String::from_utf8(line).ok()).unwrap_or_default()
}

/// How far the whole lines of a file go, and the last row that can be read among them.
fn last_place(file: &File, format: Format) -> io::Result<(u64, Place)> {
    let (mut end, mut place, mut line) = (0, None, Vec::new());
    let mut lines = BufReader::new(file);
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        if read == 0 || line.last() != Some(&b'\n') {
            return Ok((end, place));
        }
        end += read as u64;
        place = place_of(&line, format).or(place);
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
    written: u64,
    unreadable: u64,
    begun: Instant,
    drawn: Instant,
    is_drawn: bool,
}

impl Progress {
    fn new(all: u64) -> Progress {
        let now = Instant::now();
        Progress { all, written: 0, unreadable: 0, begun: now, drawn: now, is_drawn: io::stderr().is_terminal() }
    }

    fn wrote(&mut self, row: bool) {
        *(if row { &mut self.written } else { &mut self.unreadable }) += 1;
        if self.is_drawn && self.drawn.elapsed() >= DRAW_EVERY {
            self.drawn = Instant::now();
            let _ = write!(io::stderr(), "\r{} of about {}", self.written, counted(self.all, "server"));
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
        ServersArgs { format, out: Some(out.to_owned()), resume, member: None, api: None }
    }

    fn written(path: &Path) -> String {
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
            let (mut output, place) = Output::open(&args(&path, format, false)).unwrap();
            assert_eq!(place, None);
            for host in ["a.ke", "b.ke"] {
                let row = format!(r#"{{"host":"{host}","software":"A, \"b\"\n","pages":3,"by_status":{{"200":3}}}}"#);
                assert!(output.write(owner, &row).unwrap());
            }
            output.finish().unwrap();
            let whole = written(&path);
            std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
            let (mut output, place) = Output::open(&args(&path, format, true)).unwrap();
            assert_eq!(place, Some((owner, "a.ke".parse().unwrap())));
            output.write(owner, r#"{"host":"b.ke","software":"A, \"b\"\n","pages":3,"by_status":{"200":3}}"#).unwrap();
            output.finish().unwrap();
            assert_eq!(written(&path), whole);
        }
    }

    #[test]
    fn a_row_has_its_owner_plain_columns_and_the_rest_as_json() {
        let owner: AccessPoint = OWNER.parse().unwrap();
        let row = checked(owner, r#"{"host":"a.ke","access_point":"somebody else","pages":3,"crawl_delay_ms":null,"by_status":{"200":3}}"#)
            .unwrap();
        let line = csv_row(row);
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
    fn a_file_of_something_else_is_not_gone_on_with() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        std::fs::write(&path, "remember the milk\n").unwrap();
        let Err(refused) = Output::open(&args(&path, Format::Jsonl, true)) else { panic!("it is taken") };
        assert_eq!(refused.exit, Exit::Data);
        assert_eq!(written(&path), "remember the milk\n");
    }
}
