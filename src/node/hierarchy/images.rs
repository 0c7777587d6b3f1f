//! Images of the hierarchy: it is unpacked once, into a file named by its content, which is mapped at each later start.
//!
//! Behind the image stands its seal, a sum of all its bytes, which finds what a disk or a crash did to it in a small part of the time
//! that a look at everything in it takes. It does not protect against malice: only the user who runs the program can write here.

use crate::io::{
    image::{self, Mapped},
    memory, snapshot,
};
use nearcrawl_hierarchy::{Hierarchy, Label, SnapshotError};
use nearcrawl_model::revisit::content_of;
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What images are called after their hashes.
const ENDING: &str = "hierarchy";

/// The ending of the names of files that are being written; left over after a power failure.
const UNFINISHED: &str = "new";

/// Bytes of a seal.
const SEAL: usize = 8;

fn seal(image: &[u8]) -> [u8; SEAL] {
    content_of(image).to_le_bytes()
}

/// A file with a seal that holds: the image in it.
struct Sealed(Mapped);

impl Sealed {
    fn check(file: Mapped) -> Option<Sealed> {
        let (image, sealed) = file.as_ref().split_last_chunk::<SEAL>()?;
        (seal(image) == *sealed).then_some(Sealed(file))
    }
}

impl AsRef<[u8]> for Sealed {
    fn as_ref(&self) -> &[u8] {
        let file = self.0.as_ref();
        &file[..file.len() - SEAL]
    }
}

/// The directory of images for commands without a state directory, in the user's cache: none if there is none, or it cannot be made.
pub fn of_user() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let directory = cache.join(env!("CARGO_PKG_NAME")).join("hierarchy");
    fs::create_dir_all(&directory).ok().map(|()| directory)
}

fn path(directory: &Path, hash: &[u8; 32]) -> PathBuf {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    directory.join(format!("{hex}.{ENDING}"))
}

/// Opens the image of this hash, if it is there and right.
pub fn open(directory: &Path, hash: &[u8; 32]) -> Option<Hierarchy> {
    let path = path(directory, hash);
    if !path.exists() {
        return None;
    }
    let opened = image::map(&path).map_err(|why| why.to_string()).and_then(|mapped| {
        let sealed = Arc::new(Sealed::check(mapped).ok_or("its seal does not hold")?);
        sealed.0.rest();
        let hierarchy = Hierarchy::open_own(Arc::clone(&sealed) as Arc<_>).map_err(|why| why.to_string())?;
        if hierarchy.hash() == *hash { Ok(hierarchy) } else { Err("it is another hierarchy than its name says".to_owned()) }
    });
    opened.inspect_err(|why| tracing::warn!("the image {} cannot be used and is made again from the snapshot: {why}", path.display())).ok()
}

/// Files the image of a hierarchy, and gives the hierarchy as it is there: in memory only as far as it is looked at. If it cannot be
/// filed it stays in memory.
pub fn file(directory: &Path, hierarchy: Hierarchy) -> Hierarchy {
    let hash = hierarchy.hash();
    let path = path(directory, &hash);
    let written = fs::create_dir_all(directory)
        .map_err(|why| why.to_string())
        .and_then(|()| snapshot::write_parts(&path, &[hierarchy.image(), &seal(hierarchy.image())]).map_err(|why| why.to_string()));
    if let Err(why) = written {
        tracing::warn!("the hierarchy is kept in memory, because its image cannot be written to {}: {why}", directory.display());
        return hierarchy;
    }
    let filed = open(directory, &hash).unwrap_or(hierarchy);
    memory::give_back_freed();
    filed
}

/// A hierarchy that was read while nothing was written.
#[derive(Clone, Debug)]
pub enum Reading {
    /// It is used as it is: it was mapped from its image, or is not worth one.
    Ready(Hierarchy),
    /// It was unpacked, and shall have an image as soon as something may be written.
    Unpacked(Hierarchy),
}

impl Reading {
    /// What was read.
    pub fn hierarchy(&self) -> &Hierarchy {
        match self {
            Reading::Ready(hierarchy) | Reading::Unpacked(hierarchy) => hierarchy,
        }
    }

    /// Files the image, if there shall be one.
    pub fn filed(self, directory: &Path) -> Hierarchy {
        match self {
            Reading::Ready(hierarchy) => hierarchy,
            Reading::Unpacked(hierarchy) => file(directory, hierarchy),
        }
    }
}

/// The hierarchy in a packed snapshot: from its image in `directory`; if there is none yet, or a damaged one, it is unpacked.
pub fn read(directory: &Path, packed: &[u8]) -> Result<Reading, SnapshotError> {
    if let Some(hierarchy) = Label::of(packed).and_then(|label| open(directory, &label.hash)) {
        return Ok(Reading::Ready(hierarchy));
    }
    Ok(Reading::Unpacked(nearcrawl_hierarchy::unpack(packed)?))
}

/// Removes the images of all other hierarchies, and what a crash left unfinished. What is mapped still stays usable.
pub fn remove_others(directory: &Path, keep: &[[u8; 32]]) {
    let keep: Vec<PathBuf> = keep.iter().map(|hash| path(directory, hash)).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let image = name.ends_with(&format!(".{ENDING}"));
        let unfinished = name.contains(&format!(".{ENDING}.")) && name.ends_with(&format!(".{UNFINISHED}"));
        if unfinished || (image && !keep.contains(&found)) {
            // What cannot be removed today is removed another time.
            let _ = fs::remove_file(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_hierarchy::{Builder, FurtherPrefix, pack};

    fn open_or_unpack(directory: &Path, packed: &[u8]) -> Result<Hierarchy, SnapshotError> {
        read(directory, packed).map(|reading| reading.filed(directory))
    }

    fn hierarchy(prefix: &str) -> Hierarchy {
        let (country, organisation, registry) = ("KE".to_owned(), "Museum".to_owned(), "lab".to_owned());
        let mut builder = Builder::new();
        builder.add_prefix(&FurtherPrefix { prefix: prefix.parse().unwrap(), country, organisation, registry }).unwrap();
        builder.finish().unwrap()
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_snapshot_is_unpacked_once_and_mapped_from_then_on() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("hierarchy");
        let packed = pack(&hierarchy("9.0.0.0/24"));
        let reading = read(&directory, &packed).unwrap();
        assert!(!directory.exists(), "reading writes nothing");
        let first = reading.filed(&directory);
        let image = directory.join(&names(&directory)[0]);
        let made = fs::metadata(&image).unwrap().modified().unwrap();
        // Only the label is looked at: the rest may be anything.
        let second = open_or_unpack(&directory, &packed[..60]).unwrap();
        assert_eq!((first.hash(), second.hash()), (hierarchy("9.0.0.0/24").hash(), first.hash()));
        assert_eq!(second.locate("9.0.0.7".parse().unwrap()).map(|p| second.subnet(p).to_string()), Some("9.0.0.0/24".to_owned()));
        assert_eq!(fs::metadata(&image).unwrap().modified().unwrap(), made, "not written again");
    }

    #[test]
    fn a_damaged_image_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = hierarchy("9.0.0.0/24");
        open_or_unpack(dir.path(), &pack(&wanted)).unwrap();
        let image = dir.path().join(&names(dir.path())[0]);
        let good = fs::read(&image).unwrap();
        let mut damaged = good.clone();
        damaged[5000] ^= 1;
        let sealed = |image: &[u8]| [image, &seal(image)].concat();
        for bad in [&damaged[..], &good[..4096], b"", &sealed(hierarchy("9.0.0.0/23").image()), &sealed(b""), &sealed(b"no image")] {
            fs::remove_file(&image).unwrap();
            fs::write(&image, bad).unwrap();
            assert!(open(dir.path(), &wanted.hash()).is_none());
            assert_eq!(open_or_unpack(dir.path(), &pack(&wanted)).unwrap().hash(), wanted.hash());
            assert_eq!(fs::read(&image).unwrap(), good);
        }
        assert!(open_or_unpack(dir.path(), b"no snapshot").is_err());
    }

    #[test]
    fn where_nothing_can_be_written_the_hierarchy_stays_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("a file");
        fs::write(&taken, b"").unwrap();
        assert_eq!(open_or_unpack(&taken, &pack(&hierarchy("9.0.0.0/24"))).unwrap().hash(), hierarchy("9.0.0.0/24").hash());
    }

    #[test]
    fn other_images_go_and_what_is_mapped_stays_usable() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (file(dir.path(), hierarchy("9.0.0.0/24")), file(dir.path(), hierarchy("9.0.0.0/23")));
        fs::write(dir.path().join("00.hierarchy.17.new"), b"half").unwrap();
        fs::write(dir.path().join("other"), b"not ours").unwrap();
        remove_others(dir.path(), &[new.hash()]);
        assert_eq!(names(dir.path()).len(), 2, "{:?}", names(dir.path()));
        assert!(open(dir.path(), &old.hash()).is_none() && open(dir.path(), &new.hash()).is_some());
        assert!(old.locate("9.0.0.7".parse().unwrap()).is_some());
    }
}
