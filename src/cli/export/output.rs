//! Outputs of rows, one for each format.

use super::{
    column::{Column, Row},
    derived::{OF_HOST, OF_URL, derive},
    origin::beside,
    parquet::Parquet,
    text::Text,
};
use crate::cli::error::{CommandError, Exit};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// What standard output is called in errors.
pub const STANDARD: &str = "standard output";

/// A place for rows.
pub struct Output {
    name: String,
    rows: Text,
    /// The file of the rows; none if they go to standard output.
    rows_at: Option<PathBuf>,
    /// Which Parquet file is made of them in the end.
    parquet: Option<Spool>,
}

/// Rows of a Parquet file, as lines of JSON beside it until all are there. So they can be taken back and gone on with like those of other
/// files, which rows in packed columns cannot.
struct Spool {
    lines: PathBuf,
    columns: Vec<Column>,
    file: PathBuf,
}

impl Spool {
    /// Makes the Parquet file.
    fn convert(&self) -> io::Result<()> {
        let mut file = Parquet::create(&self.file, self.columns.iter().copied())?;
        for line in BufReader::new(File::open(&self.lines)?).lines() {
            let mut row: Row = serde_json::from_str(&line?)?;
            derive(&mut row);
            file.add(row)?;
        }
        file.finish()
    }

    /// The file is whole: what it was made of is not needed any more.
    fn remove(&self) -> io::Result<()> {
        // Only exports that can be gone on with have written down what they are of.
        let _ = fs::remove_file(beside(&self.lines));
        fs::remove_file(&self.lines)
    }
}

/// Where the rows of a Parquet file are until all are there.
pub fn spool_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

impl Output {
    /// Lines to standard output.
    pub fn standard(rows: Text) -> Output {
        Output { name: STANDARD.to_owned(), rows, rows_at: None, parquet: None }
    }

    /// Lines in a file.
    pub fn text(file: &Path, rows: Text) -> Output {
        Output { name: file.display().to_string(), rows, rows_at: Some(file.to_owned()), parquet: None }
    }

    /// A Parquet file with these columns, and what can be made of `host` and `url`; its rows go to lines of JSON first.
    pub fn parquet(file: &Path, rows: Text, columns: &[Column]) -> Output {
        let of_url: &[Column] = if columns.iter().any(|column| column.name == "url") { &OF_URL } else { &[] };
        let columns = columns.iter().chain(&OF_HOST).chain(of_url).copied().collect();
        let spool = Spool { lines: spool_of(file), columns, file: file.to_owned() };
        Output { name: file.display().to_string(), rows, rows_at: Some(spool.lines.clone()), parquet: Some(spool) }
    }

    /// Writes a row.
    pub fn add(&mut self, row: Row) -> Result<(), CommandError> {
        self.rows.add(row).map_err(|why| failed(&self.name, &why))
    }

    /// The rows of a host are whole.
    pub fn host_ends(&mut self) {
        self.rows.host_ends();
    }

    /// Takes the rows of the present host back; false if that is not possible any more.
    pub fn take_back(&mut self) -> Result<bool, CommandError> {
        self.rows.take_back().map_err(|why| failed(&self.name, &why))
    }

    /// The rows are of no use: takes back what was written to a file. One that was begun for them is removed with what stands beside it; a
    /// Parquet file of before stays as it is.
    pub fn discard(mut self) -> Result<(), CommandError> {
        let is_empty = self.rows.discard().map_err(|why| failed(&self.name, &why))?;
        // A link to a file is not ours to remove.
        if let Some(file) = self.rows_at.filter(|file| is_empty && fs::symlink_metadata(file).is_ok_and(|data| data.is_file())) {
            let _ = fs::remove_file(beside(&file));
            fs::remove_file(&file).map_err(|why| failed(&self.name, &why))?;
        }
        Ok(())
    }

    /// No more rows come. If they are `whole`, nothing will have to be gone on with.
    pub fn finish(mut self, whole: bool) -> Result<(), CommandError> {
        let finished = self.rows.finish().and_then(|()| match &self.parquet {
            Some(spool) => {
                spool.convert()?;
                if whole { spool.remove() } else { Ok(()) }
            }
            None => Ok(()),
        });
        finished.map_err(|why| failed(&self.name, &why))
    }
}

fn failed(name: &str, why: &io::Error) -> CommandError {
    CommandError::new(Exit::Storage, format!("{name}: {why}"))
}
