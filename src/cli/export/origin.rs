//! Origin of a file of rows: which export it is of.
//!
//! It is noted in a file beside it, `FILE.export`, so that `--resume` adds no rows of another one.

use super::{column::Row, text::Format};
use crate::cli::error::{CommandError, Exit};
use nearcrawl_model::{access_point::AccessPoint, server_rows::ServerOwner, survey::SurveyRef};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write as _},
    path::{Path, PathBuf},
};

/// Owners that are written down; one of them is found again as long as it is the same swarm.
const MAX_OWNERS: usize = 64;

/// What stands beside a file is not longer than this, in bytes, nor is the row that is looked at.
const MAX_READ: u64 = 1 << 20;

/// What an export is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Of what there is a row.
    export: String,
    /// How rows are written.
    format: String,
    /// Only servers that belong to this survey.
    survey: Option<String>,
    /// Some of the members that had servers on record, by which the swarm is known again: keys of theirs are nobody else's.
    owners: BTreeSet<AccessPoint>,
}

/// Where it stands of a file.
pub fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".export");
    PathBuf::from(name)
}

impl Origin {
    pub fn new(export: &str, format: Format, survey: Option<&SurveyRef>, owners: &[ServerOwner]) -> Origin {
        let format = match format {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        };
        let owners: BTreeSet<_> = owners.iter().map(|owner| owner.access_point).collect();
        Origin {
            export: export.to_owned(),
            format: format.to_owned(),
            survey: survey.map(SurveyRef::to_string),
            owners: owners.into_iter().take(MAX_OWNERS).collect(),
        }
    }

    /// Whether a file can be gone on with. One that is not there, or empty, can.
    ///
    /// # Errors
    ///
    /// It is of another export, or cannot be read.
    pub fn check(&self, file: &Path) -> Result<(), CommandError> {
        let is_begun = fs::metadata(file).is_ok_and(|data| data.len() > 0);
        if !is_begun {
            return Ok(());
        }
        let name = file.display();
        let failed = |why: io::Error| CommandError::new(Exit::InUse, format!("{}: {why}", beside(file).display()));
        let difference = match known(file).map_err(failed)? {
            Some(known) => self.differs_from(&known),
            None => self.differs_from_rows(file).map_err(|why| CommandError::new(Exit::InUse, format!("{name}: {why}")))?,
        };
        match difference {
            None => Ok(()),
            Some(why) => Err(CommandError::new(Exit::Data, format!("{name} is of another export: {why}; it was left as it is"))
                .hint("name another file, give the options of the first call, or leave out --resume to write it anew")),
        }
    }

    /// Writes it down for a file; not for a pipe or a device. Without it the file can be gone on with as far as its rows tell what it is of, so
    /// a directory that only the file may be written in is no error.
    pub fn write(&self, file: &Path) {
        if !fs::metadata(file).is_ok_and(|data| data.is_file()) {
            return;
        }
        let (path, text) = (beside(file), serde_json::to_string(self).unwrap_or_default() + "\n");
        if let Err(why) = fs::write(&path, text) {
            let _ = writeln!(io::stderr(), "warning: {}: {why}; --resume will know this file by its rows alone", path.display());
        }
    }

    /// What is different about the export that a file is of, if anything is.
    fn differs_from(&self, known: &Origin) -> Option<String> {
        if self.export != known.export {
            return Some(format!("it has {}, not {}", known.export, self.export));
        }
        if self.format != known.format {
            return Some(format!("it is {}, not {}", known.format, self.format));
        }
        if !same_survey(self.survey.as_deref(), known.survey.as_deref()) {
            let of = |survey: &Option<String>| survey.as_ref().map_or("all servers".to_owned(), |name| format!("the survey {name}"));
            return Some(format!("its servers are those of {}, not of {}", of(&known.survey), of(&self.survey)));
        }
        let is_other = !known.owners.is_empty() && !self.owners.is_empty() && known.owners.is_disjoint(&self.owners);
        is_other.then(|| "no member that had servers then has any now, so it is of another swarm".to_owned())
    }

    /// The same of a file that nothing was written down for, as far as its first row tells.
    fn differs_from_rows(&self, file: &Path) -> io::Result<Option<String>> {
        if let Some(survey) = &self.survey {
            return Ok(Some(format!(
                "{} is missing, which would say whether its servers are those of the survey {survey}",
                beside(file).display()
            )));
        }
        let mut line = String::new();
        BufReader::new(File::open(file)?).take(MAX_READ).read_line(&mut line)?;
        // Of CSV the columns are compared when it is opened.
        let Ok(row) = serde_json::from_str::<Row>(&line) else { return Ok(None) };
        Ok(match export_of(&row) {
            Some(export) if export != self.export => Some(format!("it has {export}, not {}", self.export)),
            _ if row.contains_key("labels") => Some("its servers are those of a survey".to_owned()),
            _ => None,
        })
    }
}

/// What is written down for a file, if there is something that can be read.
fn known(file: &Path) -> io::Result<Option<Origin>> {
    let mut text = String::new();
    match File::open(beside(file)) {
        Ok(beside) => beside.take(MAX_READ).read_to_string(&mut text)?,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why),
    };
    // A later version may write down more than this one knows: what it has in common is compared.
    serde_json::from_str(&text).map(Some).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Whether two names are of one survey: both without a creator, or both with it or the end of it. Rows of a name without a creator may be those
/// of several surveys.
fn same_survey(one: Option<&str>, other: Option<&str>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one == other };
    let parts =
        |name: &str| name.split_once('@').map_or((name.to_owned(), String::new()), |(name, creator)| (name.to_owned(), creator.to_owned()));
    let ((one, of_one), (other, of_other)) = (parts(one), parts(other));
    let are_alike = of_one.is_empty() == of_other.is_empty() && (of_one.ends_with(&of_other) || of_other.ends_with(&of_one));
    one == other && are_alike
}

/// Of which export a row is; none if that is not plain.
fn export_of(row: &Row) -> Option<&'static str> {
    let has = |key| row.contains_key(key);
    match () {
        () if has("fetch_time") => Some(PAGES),
        () if has("to_host") => Some(if has("url") { PAGE_LINKS } else { HOST_LINKS }),
        () if has("duration_ms") => Some(HISTORY),
        () if has("by_status") => Some(SERVERS),
        () => None,
    }
}

/// What there is a row of, as it is written down.
pub const SERVERS: &str = "servers";
pub const HISTORY: &str = "history";
pub const PAGES: &str = "pages";
pub const HOST_LINKS: &str = "links by host";
pub const PAGE_LINKS: &str = "links by page";

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(export: &str, format: Format, survey: Option<&str>, owners: &[u8]) -> Origin {
        let owners: Vec<_> = owners.iter().map(|number| ServerOwner { access_point: AccessPoint([*number; 32]), servers: 1 }).collect();
        Origin::new(export, format, survey.map(|name| name.parse().unwrap()).as_ref(), &owners)
    }

    #[test]
    fn a_file_is_gone_on_with_by_the_same_export_only_and_no_other_one_changes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let first = origin(PAGES, Format::Jsonl, Some("unis@12D3KooW3kjLcUyQ"), &[1, 2]);
        first.check(&path).unwrap();
        fs::write(&path, "{}\n").unwrap();
        first.write(&path);
        for same in [
            origin(PAGES, Format::Jsonl, Some("unis@12D3KooW3kjLcUyQ"), &[2, 3]),
            origin(PAGES, Format::Jsonl, Some("unis@3kjLcUyQ"), &[1]),
            origin(PAGES, Format::Jsonl, Some("unis@12D3KooW3kjLcUyQ"), &[]),
        ] {
            same.check(&path).unwrap();
        }
        for (other, says) in [
            (origin(SERVERS, Format::Jsonl, Some("unis@3kjLcUyQ"), &[1]), "it has pages, not servers"),
            (origin(PAGES, Format::Csv, Some("unis@3kjLcUyQ"), &[1]), "it is jsonl, not csv"),
            (origin(PAGES, Format::Jsonl, Some("museums"), &[1]), "those of the survey unis@12D3KooW3kjLcUyQ, not of the survey museums"),
            (origin(PAGES, Format::Jsonl, Some("unis@abcdefgh"), &[1]), "not of the survey unis@abcdefgh"),
            (origin(PAGES, Format::Jsonl, Some("unis"), &[1]), "not of the survey unis"),
            (origin(PAGES, Format::Jsonl, None, &[1]), "those of the survey unis@12D3KooW3kjLcUyQ, not of all servers"),
            (origin(PAGES, Format::Jsonl, Some("unis@3kjLcUyQ"), &[3]), "it is of another swarm"),
        ] {
            let error = other.check(&path).unwrap_err();
            assert!(error.message.contains(says) && error.hint.is_some() && error.exit == Exit::Data, "{says}: {error:?}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
        // Whether a file of before has the rows of one survey only is not known.
        let nobody_s = origin(PAGES, Format::Jsonl, Some("unis"), &[1]);
        nobody_s.write(&path);
        nobody_s.check(&path).unwrap();
        assert!(first.check(&path).unwrap_err().message.contains("those of the survey unis, not of the survey unis@"));
    }

    #[test]
    fn a_file_that_nothing_is_written_down_for_is_known_by_its_rows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let says = |origin: &Origin| origin.check(&path).err().map(|error| error.message);
        let (servers, pages) = (origin(SERVERS, Format::Jsonl, None, &[1]), origin(PAGES, Format::Jsonl, None, &[1]));
        fs::write(&path, "{\"host\":\"a.ke\",\"by_status\":{}}\n").unwrap();
        assert_eq!(says(&servers), None);
        assert!(says(&pages).unwrap().contains("it has servers, not pages"));
        assert!(says(&origin(SERVERS, Format::Jsonl, Some("unis"), &[1])).unwrap().contains("rows.export is missing"));
        fs::write(&path, "{\"host\":\"a.ke\",\"by_status\":{},\"labels\":{}}\n").unwrap();
        assert!(says(&servers).unwrap().contains("those of a survey"));
    }
}
