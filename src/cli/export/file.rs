//! Which file do rows go to, in which format, and behind which row does it go on?

use super::{
    column::Column,
    output::Output,
    text::{Format, Lines, OpenError, Place, Text},
    walk::Hosts,
};
use crate::cli::error::{CommandError, Exit};
use std::path::Path;

/// Opens a file of this name, or standard output, and says behind which row it goes on. `belong` is whether a server has several rows.
pub fn open(
    (format, out, resume): (Format, Option<&Path>, bool),
    columns: &[Column],
    belong: bool,
    seen: &mut Hosts,
) -> Result<(Output, Place), CommandError> {
    let file = out.filter(|out| *out != Path::new("-"));
    let lines = match format {
        Format::Jsonl => Lines::Json,
        Format::Csv => Lines::Csv,
        Format::Parquet => {
            let path = file
                .ok_or_else(|| CommandError::new(Exit::Usage, "a Parquet file cannot go to standard output").hint("name it with --out"))?;
            if resume {
                let why = CommandError::new(Exit::Usage, "a Parquet file cannot be gone on with: it is whole, or is not there");
                return Err(why.hint("leave out --resume, or export as JSON lines or CSV"));
            }
            return Ok((Output::parquet(path, columns)?, None));
        }
    };
    let Some(path) = file else {
        let name = "standard output".to_owned();
        let text = Text::standard(lines, columns).map_err(|why| CommandError::new(Exit::Storage, format!("{name}: {why}")))?;
        return Ok((Output::text(name, text), None));
    };
    let name = path.display().to_string();
    let (text, place) = Text::open(path, (lines, columns), resume, belong, |host| seen.insert(host)).map_err(|why| match why {
        OpenError::Io(why) => CommandError::new(Exit::InUse, format!("{name}: {why}")),
        OpenError::Other(_) | OpenError::Columns => {
            CommandError::new(Exit::Data, format!("{name}: {why}")).hint("leave out --resume to write it anew, or name another file")
        }
    })?;
    Ok((Output::text(name, text), place))
}
