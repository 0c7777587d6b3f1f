//! Where rows go, in which form; each format by itself.

use super::{
    column::{Column, Row},
    derived::{OF_HOST, OF_URL, derive},
    parquet::Parquet,
    text::Text,
};
use crate::cli::error::{CommandError, Exit};
use std::{io, path::Path};

/// A place for rows.
pub struct Output {
    name: String,
    to: To,
}

enum To {
    Text(Box<Text>),
    Parquet(Box<Parquet>),
}

impl Output {
    /// Lines.
    pub fn text(name: String, text: Text) -> Output {
        Output { name, to: To::Text(Box::new(text)) }
    }

    /// A Parquet file with these columns, and what can be made of `host` and `url`.
    pub fn parquet(path: &Path, columns: &[Column]) -> Result<Output, CommandError> {
        let name = path.display().to_string();
        let of_url: &[Column] = if columns.iter().any(|column| column.name == "url") { &OF_URL } else { &[] };
        let all = columns.iter().chain(&OF_HOST).chain(of_url).copied();
        let file = Parquet::create(path, all).map_err(|why| CommandError::new(Exit::InUse, format!("{name}: {why}")))?;
        Ok(Output { name, to: To::Parquet(Box::new(file)) })
    }

    /// Writes a row.
    pub fn add(&mut self, mut row: Row) -> Result<(), CommandError> {
        let written = match &mut self.to {
            To::Text(text) => text.add(row),
            To::Parquet(file) => {
                derive(&mut row);
                file.add(row)
            }
        };
        written.map_err(|why| self.failed(&why))
    }

    /// The rows of a host are whole.
    pub fn host_ends(&mut self) -> Result<(), CommandError> {
        let written = match &mut self.to {
            To::Text(text) => {
                text.host_ends();
                Ok(())
            }
            To::Parquet(file) => file.host_ends(),
        };
        written.map_err(|why| self.failed(&why))
    }

    /// Takes the rows of the present host back; false if that is not possible any more.
    pub fn take_back(&mut self) -> Result<bool, CommandError> {
        let taken = match &mut self.to {
            To::Text(text) => text.take_back(),
            To::Parquet(file) => Ok(file.take_back()),
        };
        taken.map_err(|why| self.failed(&why))
    }

    /// Everything is there.
    pub fn finish(self) -> Result<(), CommandError> {
        let name = self.name;
        let finished = match self.to {
            To::Text(mut text) => text.finish(),
            To::Parquet(file) => file.finish(),
        };
        finished.map_err(|why| failed(&name, &why))
    }

    fn failed(&self, why: &io::Error) -> CommandError {
        failed(&self.name, why)
    }
}

fn failed(name: &str, why: &io::Error) -> CommandError {
    CommandError::new(Exit::Storage, format!("{name}: {why}"))
}
