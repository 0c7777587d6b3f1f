//! Maps files into memory: the system loads their pages on access, and drops them when memory is short.

use super::snapshot::FileError;
use memmap2::Mmap;
use std::{fs::File, path::Path};

/// A file that is mapped into memory, read-only.
#[derive(Debug)]
pub struct Mapped(Mmap);

impl Mapped {
    /// Lets go of what is in memory of it, after all of it was looked at once; what is looked at again comes from the disk.
    pub fn rest(&self) {
        // SAFETY: the mapping is of a file and nobody writes to it, so what is let go of comes back as it was.
        let advised = unsafe { self.0.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        // It only takes more memory if the system does not listen.
        drop(advised);
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps a file that never changes: it is named by its content, written beside its place and then renamed (as
/// [`super::snapshot::write`] does), so that it only ever appears whole. It may be removed while it is mapped.
pub fn map(path: &Path) -> Result<Mapped, FileError> {
    let failed = |error| FileError::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    }
    // SAFETY: the mapping is sound as long as nobody changes or shortens the file. The daemon's own files are named by their content and
    // never written to again once they have their name, and its directory is open to nobody else.
    let mapped = unsafe { Mmap::map(&file) }.map_err(failed)?;
    Ok(Mapped(mapped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, sync::Arc};

    #[test]
    fn a_mapped_file_is_there_even_after_it_was_removed_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        super::super::snapshot::write(&path, &[7; 100_000]).unwrap();
        let mapped: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(map(&path).unwrap());
        super::super::snapshot::write(&path, b"another").unwrap();
        assert_eq!((*mapped).as_ref(), [7; 100_000]);
        assert_eq!(map(&path).unwrap().as_ref(), b"another");
        fs::remove_file(&path).unwrap();
        assert_eq!((*mapped).as_ref(), [7; 100_000]);
    }

    #[test]
    fn an_empty_file_is_empty_and_what_is_no_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("empty"), b"").unwrap();
        assert_eq!(map(&dir.path().join("empty")).unwrap().as_ref(), b"");
        for path in [dir.path().to_owned(), dir.path().join("missing")] {
            assert!(map(&path).unwrap_err().to_string().contains(path.to_str().unwrap()));
        }
    }
}
