//! Rows as lines: JSON, or CSV.
//!
//! A file of them can be gone on with.

use super::column::{Column, REST, Row, Type, cells};
use crate::cli::owners::Place;
use clap::ValueEnum;
use nearcrawl_model::url::Host;
use serde_json::Value;
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    Json,
    Csv,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a line, as `docs/JSON.md` describes it
    #[default]
    Jsonl,
    /// Columns of plain values; what has no column of its own is JSON in the last one
    Csv,
    /// A file for DuckDB, pandas and the like, with Common Crawl's names of columns; needs --out
    Parquet,
}

/// Where lines go.
pub struct Text {
    lines: Lines,
    columns: Vec<Column>,
    to: BufWriter<Box<dyn Write + Send>>,
    /// The same file, if it is one.
    file: Option<File>,
    /// How long it is, and how long it was when the rows of the present host began.
    at: u64,
    mark: u64,
    /// How long it was when it was opened.
    begun_at: u64,
}

/// What a file has of an export.
#[derive(Default)]
pub struct Written {
    /// Where it is gone on, in bytes.
    end: u64,
    /// The owner and the host behind which it is gone on.
    pub place: Place,
    /// Whether there are rows that can be read.
    has_rows: bool,
}

/// Why a file cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it has no row of an export as {0} to go on behind")]
    Other(&'static str),
    #[error("it has other columns than this export")]
    Columns,
}

impl Text {
    /// To standard output.
    pub fn standard(lines: Lines, columns: &[Column]) -> io::Result<Text> {
        Text::begin(lines, columns, Box::new(io::stdout()), None, 0)
    }

    /// To a file, anew or behind what is there. If rows of one host `belong` together, what there is of the last host is written anew. Each
    /// host of which rows stay is passed on.
    pub fn open(
        path: &Path,
        (lines, columns): (Lines, &[Column]),
        resume: bool,
        belong: bool,
        stays: impl FnMut(&Host),
    ) -> Result<(Text, Place), OpenError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(!resume).open(path)?;
        let Written { end, place, has_rows } = if resume { written(&file, lines, belong, stays)? } else { Written::default() };
        if resume && lines == Lines::Csv && has_rows && first_line(&file)? != csv_head(columns) {
            return Err(OpenError::Columns);
        }
        if !has_rows && end > 0 {
            return Err(OpenError::Other(if lines == Lines::Csv { "CSV" } else { "JSON lines" }));
        }
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        let to = Box::new(file.try_clone()?);
        Ok((Text::begin(lines, columns, to, Some(file), end)?, place))
    }

    fn begin(lines: Lines, columns: &[Column], to: Box<dyn Write + Send>, file: Option<File>, at: u64) -> io::Result<Text> {
        let mut text = Text { lines, columns: columns.to_vec(), to: BufWriter::new(to), file, at, mark: at, begun_at: at };
        if at == 0 && lines == Lines::Csv {
            text.line(csv_head(columns).as_bytes())?;
            text.mark = text.at;
        }
        Ok(text)
    }

    /// Writes a row.
    pub fn add(&mut self, row: Row) -> io::Result<()> {
        let line = match self.lines {
            Lines::Json => Value::Object(row).to_string() + "\n",
            Lines::Csv => csv_row(&self.columns, row),
        };
        self.line(line.as_bytes())
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.at += line.len() as u64;
        self.to.write_all(line)
    }

    /// The rows of a host are whole.
    pub fn host_ends(&mut self) {
        self.mark = self.at;
    }

    /// Takes the rows of the present host back, if there are none or they are in a file.
    pub fn take_back(&mut self) -> io::Result<bool> {
        if self.at == self.mark {
            return Ok(true);
        }
        let Some(file) = &mut self.file else {
            self.mark = self.at;
            return Ok(false);
        };
        self.to.flush()?;
        file.set_len(self.mark)?;
        // Both have one position.
        file.seek(SeekFrom::Start(self.mark))?;
        self.at = self.mark;
        Ok(true)
    }

    pub fn finish(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Takes back what was written to a file since it was opened; whether nothing is left in it.
    pub fn discard(&mut self) -> io::Result<bool> {
        self.to.flush()?;
        let Some(file) = &mut self.file else { return Ok(false) };
        file.set_len(self.begun_at)?;
        Ok(self.begun_at == 0)
    }
}

fn csv_row(columns: &[Column], mut row: Row) -> String {
    let plain = |(column, value): (&Column, Value)| match value {
        Value::Null => String::new(),
        Value::String(text) if matches!(column.holds, Type::Text | Type::Words) => {
            harmless(text.chars().filter(|c| !c.is_control()).collect())
        }
        Value::String(text) => text.chars().filter(|c| !c.is_control()).collect(),
        other => other.to_string(),
    };
    let cells: Vec<_> = columns.iter().zip(cells(columns, &mut row)).map(plain).collect();
    csv_line(cells.into_iter().chain([Value::Object(row).to_string()]))
}

/// Tables take a cell that begins so for a formula; servers choose what stands there.
fn harmless(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
}

fn csv_line(cells: impl Iterator<Item = String>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(cells.collect::<Vec<_>>()).ok().and_then(|()| writer.into_inner().ok());
    written.and_then(|line| String::from_utf8(line).ok()).unwrap_or_default()
}

/// The names of the columns, as a line.
fn csv_head(columns: &[Column]) -> String {
    csv_line(columns.iter().map(|column| column.name.to_owned()).chain([REST.to_owned()]))
}

/// The first line of a file, as far as it is not longer than any head.
fn first_line(mut file: &File) -> io::Result<String> {
    const LONGEST: u64 = 64 << 10;
    file.seek(SeekFrom::Start(0))?;
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// How far the whole lines of a file go, and the last row that can be read among them. Of the last host some rows may be missing; if they
/// `belong` together, it is gone on before them.
fn written(file: &File, lines: Lines, belong: bool, mut stays: impl FnMut(&Host)) -> io::Result<Written> {
    let (mut at, mut line, mut input) = (0, Vec::new(), BufReader::new(file));
    let (mut last, mut before_last) = (Written::default(), Written::default());
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line)?;
        if read == 0 || line.last() != Some(&b'\n') {
            if belong && last.has_rows {
                return Ok(before_last);
            }
            last.place.iter().for_each(|(_, host)| stays(host));
            return Ok(last);
        }
        let place = place_of(&line, lines);
        if place.is_some() && place != last.place {
            last.place.iter().for_each(|(_, host)| stays(host));
            before_last = Written { end: at, place: last.place.take(), has_rows: true };
        }
        at += read as u64;
        last = Written { end: at, has_rows: last.has_rows || place.is_some(), place: place.or(last.place) };
    }
}

fn place_of(line: &[u8], lines: Lines) -> Place {
    let (owner, host) = match lines {
        Lines::Json => {
            let row: Value = serde_json::from_slice(line).ok()?;
            (row["access_point"].as_str()?.to_owned(), row["host"].as_str()?.to_owned())
        }
        Lines::Csv => {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
            let row = reader.records().next()?.ok()?;
            (row.get(0)?.to_owned(), row.get(1)?.to_owned())
        }
    };
    Some((owner.parse().ok()?, host.parse().ok()?))
}
