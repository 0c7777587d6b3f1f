//! Reads the experiments' files record by record, up to a limit; every refusal says which file, which line, and what to do.

use csv::StringRecord;
use nearcrawl_model::view::counted;
use std::io::{self, Read, Take};

/// The most bytes that are read of one file, unpacked: many times what any known collection of round-trip times has, and 70 million links.
pub(crate) const MAX_FILE: u64 = 1 << 30;

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It broke off.
    #[error("{file} cannot be read: {error}")]
    Io {
        /// The file's path.
        file: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// It has no records.
    #[error("{file} is empty; its first line names the columns, like {example}, and records follow")]
    Empty {
        /// The file's path.
        file: String,
        /// What the first line may look like.
        example: &'static str,
    },
    /// A column is missing.
    #[error("{file} has no column {column}; its first line must name the columns, like {example}")]
    Column {
        /// The file's path.
        file: String,
        /// The missing column's name.
        column: String,
        /// What the first line may look like.
        example: &'static str,
    },
    /// A line makes no sense.
    #[error("{file}, line {line}: {what}")]
    Line {
        /// The file's path.
        file: String,
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// More than an experiment can hold.
    #[error("{file} has more than {most} {what}; take a part of it")]
    TooMany {
        /// The file's path.
        file: String,
        /// How many would be taken.
        most: usize,
        /// The kind of item that there are too many of.
        what: &'static str,
    },
    /// A graph without a link.
    #[error("{file} holds no link; each line is one: the number of the page it is on, a tab, the number of the page it leads to")]
    NoLinks {
        /// The file's path.
        file: String,
    },
    /// A page belongs to no site.
    #[error("page {page} has links in {links}, but {file} names no host for it; do the two files belong together?")]
    NoHost {
        /// Which file of hosts.
        file: String,
        /// The page's index.
        page: usize,
        /// The links' file.
        links: String,
    },
    /// It does not belong to the nodes.
    #[error("no line of {file} is about two nodes of {nodes}: do the two files belong together?")]
    Strangers {
        /// The file's path.
        file: String,
        /// The nodes' file.
        nodes: String,
    },
}

/// The records of one CSV file, one after another.
pub(super) struct Lines<R> {
    file: String,
    reader: csv::Reader<Take<R>>,
    line: u64,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(file: &str, input: R) -> Lines<R> {
        let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(input.take(MAX_FILE));
        Lines { file: file.to_owned(), reader, line: 0 }
    }

    /// With tabs between the cells, and `#` before remarks, as graphs are usually written.
    pub(crate) fn tabbed(file: &str, input: R) -> Lines<R> {
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.has_headers(false).delimiter(b'\t').quoting(false).comment(Some(b'#')).from_reader(input.take(MAX_FILE));
        Lines { file: file.to_owned(), reader, line: 0 }
    }

    /// The next record; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<StringRecord>, InputError> {
        let mut record = StringRecord::new();
        Ok(self.next_into(&mut record)?.then_some(record))
    }

    /// Overwrites `record` with the next one; whether there was one.
    pub(crate) fn next_into(&mut self, record: &mut StringRecord) -> Result<bool, InputError> {
        let read = self.reader.read_record(record).map_err(|error| self.refusal(error))?;
        if !read && self.reader.get_ref().limit() == 0 {
            return Err(InputError::TooMany { file: self.file.clone(), most: MAX_FILE as usize, what: "bytes" });
        }
        self.line = record.position().map_or(self.line, csv::Position::line);
        Ok(read)
    }

    /// A refusal of the line that was read last.
    pub(crate) fn bad(&self, what: String) -> InputError {
        InputError::Line { file: self.file.clone(), line: self.line, what }
    }

    pub(crate) fn empty(&self, example: &'static str) -> InputError {
        InputError::Empty { file: self.file.clone(), example }
    }

    fn refusal(&self, error: csv::Error) -> InputError {
        let line = error.position().map_or(self.line + 1, csv::Position::line);
        let what = match error.into_kind() {
            csv::ErrorKind::Io(error) => return InputError::Io { file: self.file.clone(), error },
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{}, but the first line has {expected_len}", counted(len, "cell"))
            }
            csv::ErrorKind::Utf8 { .. } => "not UTF-8 text".to_owned(),
            _ => "no CSV".to_owned(),
        };
        InputError::Line { file: self.file.clone(), line, what }
    }
}
