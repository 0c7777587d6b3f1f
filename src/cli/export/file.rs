//! The file that rows go to: its format, and the row behind which it goes on.

use super::{
    column::Column,
    output::{Output, STANDARD, spool_of},
    text::{Format, Lines, OpenError, Text},
};
use crate::cli::{
    error::{CommandError, Exit},
    owners::Place,
    walk::Hosts,
};
use std::path::{Path, PathBuf};

/// The file that rows go to; none if that is standard output.
pub fn rows_at(format: Format, out: Option<&Path>) -> Option<PathBuf> {
    let file = out.filter(|out| *out != Path::new("-"))?;
    Some(if format == Format::Parquet { spool_of(file) } else { file.to_owned() })
}

/// Opens a file of this name, or standard output, and says behind which row it goes on. `belong` is whether a server has several rows.
pub fn open(
    (format, out, resume): (Format, Option<&Path>, bool),
    columns: &[Column],
    belong: bool,
    seen: &mut Hosts,
) -> Result<(Output, Place), CommandError> {
    let file = out.filter(|out| *out != Path::new("-"));
    let lines = if format == Format::Csv { Lines::Csv } else { Lines::Json };
    let Some(path) = file else {
        if format == Format::Parquet {
            let why = CommandError::new(Exit::Usage, "a Parquet file cannot go to standard output");
            return Err(why.hint("name it with --out"));
        }
        let text = Text::standard(lines, columns).map_err(|why| CommandError::new(Exit::Storage, format!("{STANDARD}: {why}")))?;
        return Ok((Output::standard(text), None));
    };
    let rows_at = if format == Format::Parquet { spool_of(path) } else { path.to_owned() };
    let name = rows_at.display().to_string();
    let (text, place) = Text::open(&rows_at, (lines, columns), resume, belong, |host| seen.insert(host)).map_err(|why| match why {
        OpenError::Io(why) => CommandError::new(Exit::InUse, format!("{name}: {why}")),
        OpenError::Other(_) | OpenError::Columns => {
            CommandError::new(Exit::Data, format!("{name}: {why}")).hint("leave out --resume to write it anew, or name another file")
        }
    })?;
    let output = if format == Format::Parquet { Output::parquet(path, text, columns) } else { Output::text(path, text) };
    Ok((output, place))
}
