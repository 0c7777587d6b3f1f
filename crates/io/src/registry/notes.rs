//! Notes on the version of a downloaded file: what the server said of it, kept beside it, so that it need not come twice.

use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The URL and validators of a downloaded file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notes {
    /// The URL that it was downloaded from.
    pub url: String,
    /// The entity tag, as it was written.
    pub etag: Option<String>,
    /// The date of the last change, as it was written.
    pub last_modified: Option<String>,
}

impl Notes {
    /// What makes sure that the rest of a file belongs to its beginning: a strong entity tag, else the date.
    pub fn validator(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
        strong.or(self.last_modified.as_deref())
    }

    /// Reads notes of this address; none if there are none, they are of another address, or they cannot be read.
    pub fn read(path: &Path, url: &str) -> Option<Notes> {
        let notes: Notes = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        (notes.url == url).then_some(notes)
    }

    /// Writes them: into a file beside it first, which then takes its name.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let beside = with_ending(path, ".new");
        fs::write(&beside, serde_json::to_vec(self)?)?;
        fs::rename(&beside, path)
    }
}

/// The path with more at its end.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
