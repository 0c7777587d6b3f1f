//! Store of editions of the hierarchy.
//!
//! They are in the state directory, each in a file named by its content's hash, with a note of which one is used.

use crate::io::{
    snapshot::{self, FileError},
    tasks::{self, TaskKind},
};
use crate::node::{
    clock,
    config::Config,
    error::NodeError,
    hierarchy::{
        data_age::DataAge,
        images::{self, Reading},
        reading,
    },
};
use nearcrawl_core::hierarchy_version::machine::AtHand;
use nearcrawl_hierarchy::{CHUNK_LENGTH, FurtherPrefix, Hierarchy, Manifest, SnapshotError, pack, unpack, with_further};
use nearcrawl_model::edition::Edition;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The file that names the edition in use.
const IN_USE: &str = "in-use";

/// What the files of editions are called after their hashes.
const ENDING: &str = "snapshot";

/// Manifests that are remembered, so that not every piece costs reading the whole file.
const MAX_MANIFESTS: usize = 8;

/// Why an edition cannot be read from the store.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotStoreError {
    /// Its file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no usable snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// It is another one than its name says.
    #[error("{0} does not hold what its name says; remove it, it will be fetched again")]
    OtherContent(PathBuf),
    /// The operator's further prefixes do not go with it.
    #[error("the further prefixes of the configuration do not go with it: {0}")]
    Further(String),
}

/// Editions on disk. Cheap to clone; what it does waits for the disk, so it is not for the loop.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    directory: PathBuf,
    further: Arc<Vec<FurtherPrefix>>,
    manifests: Arc<Mutex<BTreeMap<[u8; 32], Manifest>>>,
    /// What the operator gave last: it is kept whatever is used.
    given: Arc<Mutex<Option<[u8; 32]>>>,
}

/// What the configuration gives, read while nothing was written: a daemon that refuses it leaves no trace.
#[derive(Clone, Debug)]
pub struct Given {
    base: Reading,
    /// With the further prefixes, if there are any.
    completed: Option<Hierarchy>,
}

impl Given {
    /// Reads what the configuration names.
    pub fn read(config: &Config) -> Result<Given, NodeError> {
        let (base, further) = (reading::base_hierarchy(config, &reading::images_of(config))?, reading::further_prefixes(config));
        let completed = (!further.is_empty()).then(|| with_further(base.hierarchy(), &further)).transpose();
        Ok(Given {
            base,
            completed: completed.map_err(|why| NodeError::Hierarchy(SnapshotStoreError::Further(why.to_string()).to_string()))?,
        })
    }

    /// The hierarchy without further prefixes.
    pub(in crate::node) fn base(&self) -> &Hierarchy {
        self.base.hierarchy()
    }
}

/// What a daemon begins with.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The hierarchy in use, with the operator's further prefixes.
    pub hierarchy: Arc<Hierarchy>,
    /// The editions that the crawler is to start with.
    pub at_hand: AtHand,
}

/// What a hierarchy is called among members.
pub fn edition_of(hierarchy: &Hierarchy) -> Edition {
    Edition { hash: hierarchy.hash(), built: hierarchy.built() }
}

fn hex(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of(hex: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    let plain = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    for (byte, digits) in hash.iter_mut().zip(hex.as_bytes().chunks(2)).take(if plain { 32 } else { 0 }) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    plain.then_some(hash)
}

impl SnapshotStore {
    /// The snapshots in a daemon's state directory.
    pub fn open(config: &Config) -> Result<SnapshotStore, NodeError> {
        let directory = config.state_dir.join("hierarchy");
        fs::create_dir_all(&directory).map_err(|error| {
            NodeError::of_file(&directory, format!("cannot be created: {error}; the daemon keeps its hierarchies there"), &error)
        })?;
        let further = Arc::new(reading::further_prefixes(config));
        Ok(SnapshotStore { directory, further, manifests: Arc::default(), given: Arc::default() })
    }

    /// What to begin with: the edition that was adopted last, unless the operator's is pinned; else the operator's. The operator's is
    /// filed, so that others can fetch it, by a task of its own: packing a large one takes a while.
    pub fn begin(&self, given: Given, config: &Config) -> Result<Beginning, NodeError> {
        let Given { base, completed } = given;
        let given = Arc::new(base.filed(&self.directory));
        let edition = edition_of(&given);
        self.remember_given(&edition);
        let adopted = self.in_use().filter(|hash| *hash != edition.hash && !config.hierarchy.pinned);
        let adopted = adopted.and_then(|hash| match self.load(&hash) {
            Ok(hierarchy) => Some(hierarchy),
            Err(why) => {
                tracing::warn!("the hierarchy adopted by vote cannot be read, so the configured one is used: {why}");
                None
            }
        });
        let complete = |hierarchy: &Hierarchy| self.complete(hierarchy).map_err(|why| NodeError::Hierarchy(why.to_string()));
        let own = completed.map_or_else(|| Arc::clone(&given), Arc::new);
        let filing = (self.clone(), Arc::clone(&given));
        std::thread::spawn(move || {
            let _running = tasks::begin(TaskKind::ConfiguredHierarchy);
            let (snapshots, given) = filing;
            if let Err(why) = snapshots.file(&given) {
                tracing::warn!("the configured hierarchy could not be stored, so other members cannot fetch it from here: {why}");
            }
        });
        let pinned = config.hierarchy.pinned;
        if let Some(adopted) = adopted.as_ref().map(edition_of).filter(|adopted| edition.age_order(adopted).is_lt()) {
            tracing::info!("the hierarchy {adopted}, adopted by vote, is used: the configured one, {edition}, is not newer");
        }
        let beginning = match adopted {
            Some(adopted) => Beginning {
                at_hand: AtHand { uses: edition_of(&adopted), given: Some((edition, own)), pinned },
                hierarchy: Arc::new(complete(&adopted)?),
            },
            None => Beginning { hierarchy: own, at_hand: AtHand { uses: edition, given: None, pinned } },
        };
        DataAge::tell(DataAge::of(&beginning.at_hand.uses, clock::now().wall));
        Ok(beginning)
    }

    /// The operator's hierarchy, read once more; none if it is the edition that is known already.
    pub fn given_again(&self, config: &Config, known: &Edition) -> Result<Option<(Edition, Arc<Hierarchy>)>, NodeError> {
        let given = reading::base_hierarchy(config, &self.directory)?.filed(&self.directory);
        let edition = edition_of(&given);
        if edition.hash == known.hash {
            return Ok(None);
        }
        let failed = |why: SnapshotStoreError| NodeError::Hierarchy(why.to_string());
        self.remember_given(&edition);
        self.file(&given).map_err(failed)?;
        Ok(Some((edition, Arc::new(self.complete(&given).map_err(failed)?))))
    }

    /// A hierarchy with the operator's further prefixes, which are this access point's alone.
    pub fn complete(&self, hierarchy: &Hierarchy) -> Result<Hierarchy, SnapshotStoreError> {
        if self.further.is_empty() {
            return Ok(hierarchy.clone());
        }
        with_further(hierarchy, &self.further).map_err(|why| SnapshotStoreError::Further(why.to_string()))
    }

    fn remember_given(&self, edition: &Edition) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(edition.hash);
    }

    fn path(&self, hash: &[u8; 32]) -> PathBuf {
        self.directory.join(format!("{}.{ENDING}", hex(hash)))
    }

    /// Which edition was used last, if one was adopted.
    pub fn in_use(&self) -> Option<[u8; 32]> {
        hash_of(fs::read_to_string(self.directory.join(IN_USE)).ok()?.trim())
    }

    /// Reads an edition and checks that it is what it is called.
    pub fn load(&self, hash: &[u8; 32]) -> Result<Hierarchy, SnapshotStoreError> {
        let path = self.path(hash);
        let hierarchy = images::read(&self.directory, &snapshot::read(&path)?)?.filed(&self.directory);
        if hierarchy.hash() == *hash { Ok(hierarchy) } else { Err(SnapshotStoreError::OtherContent(path)) }
    }

    /// Files a hierarchy, if it is not there.
    fn file(&self, hierarchy: &Hierarchy) -> Result<(), SnapshotStoreError> {
        let path = self.path(&hierarchy.hash());
        if path.exists() { Ok(()) } else { Ok(snapshot::write(&path, &pack(hierarchy))?) }
    }

    /// Opens a file that was fetched, checks that it is this edition, and files it as it came, with its image.
    pub fn take_in(&self, edition: &Edition, file: &[u8]) -> Result<Hierarchy, SnapshotStoreError> {
        let hierarchy = unpack(file)?;
        let path = self.path(&edition.hash);
        if edition_of(&hierarchy) != *edition {
            return Err(SnapshotStoreError::OtherContent(path));
        }
        snapshot::write(&path, file)?;
        Ok(images::file(&self.directory, hierarchy))
    }

    /// Records which edition is used, and removes those that are not needed.
    pub fn keep(&self, uses: &Edition, others: &[[u8; 32]]) -> Result<(), SnapshotStoreError> {
        snapshot::write(&self.directory.join(IN_USE), format!("{}\n", hex(&uses.hash)).as_bytes())?;
        let given = *self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let keep: Vec<[u8; 32]> = others.iter().copied().chain([uses.hash]).chain(given).collect();
        images::remove_others(&self.directory, &keep);
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let named = path.file_stem().and_then(|stem| hash_of(stem.to_str()?));
            let ours = path.extension().is_some_and(|ending| ending == ENDING);
            if let (true, Some(hash)) = (ours, named)
                && !keep.contains(&hash)
            {
                // What cannot be removed today is removed with the next one.
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// What the file of this edition is made of; none if there is none.
    pub fn manifest(&self, hash: &[u8; 32]) -> Option<Manifest> {
        let known = |manifests: &BTreeMap<_, Manifest>| manifests.values().find(|manifest| manifest.hash() == *hash).cloned();
        let path = self.path(hash);
        if let Some(manifest) = known(&self.manifests.lock().unwrap_or_else(PoisonError::into_inner)).filter(|_| path.exists()) {
            return Some(manifest);
        }
        let manifest = Manifest::of(*hash, &snapshot::read(&path).ok()?);
        let mut manifests = self.manifests.lock().unwrap_or_else(PoisonError::into_inner);
        if manifests.len() >= MAX_MANIFESTS {
            manifests.clear();
        }
        manifests.insert(manifest.id(), manifest.clone());
        Some(manifest)
    }

    /// A piece of a file whose manifest was asked for before; none if there is no such file or piece.
    pub fn chunk(&self, manifest: &[u8; 32], index: u32) -> Option<Vec<u8>> {
        let known = self.manifests.lock().unwrap_or_else(PoisonError::into_inner).get(manifest).cloned()?;
        read_piece(&self.path(&known.hash()), u64::from(index) * CHUNK_LENGTH as u64).filter(|bytes| known.accepts(index as usize, bytes))
    }
}

fn read_piece(path: &Path, from: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut piece = Vec::new();
    file.take(CHUNK_LENGTH as u64).read_to_end(&mut piece).ok()?;
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_hierarchy::Builder;

    fn hierarchy(prefixes: &[&str]) -> Hierarchy {
        let mut builder = Builder::new();
        for prefix in prefixes {
            let (country, organisation, registry) = ("KE".to_owned(), "Museum".to_owned(), "lab".to_owned());
            builder.add_prefix(&FurtherPrefix { prefix: prefix.parse().unwrap(), country, organisation, registry }).unwrap();
        }
        builder.finish().unwrap()
    }

    fn snapshots() -> (tempfile::TempDir, SnapshotStore) {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { state_dir: directory.path().to_owned(), ..Config::default() };
        (directory, SnapshotStore::open(&config).unwrap())
    }

    #[test]
    fn what_is_taken_in_can_be_given_out_in_pieces_and_read_again() {
        let (_directory, snapshots) = snapshots();
        let hierarchy = hierarchy(&["9.0.0.0/24", "9.0.0.0/25"]);
        let (edition, file) = (edition_of(&hierarchy), pack(&hierarchy));
        assert!(snapshots.manifest(&edition.hash).is_none());
        snapshots.take_in(&edition, &file).unwrap();
        let manifest = snapshots.manifest(&edition.hash).unwrap();
        assert_eq!(snapshots.chunk(&manifest.id(), 0).unwrap(), file);
        assert_eq!((snapshots.chunk(&manifest.id(), 1), snapshots.chunk(&[0; 32], 0)), (None, None));
        assert_eq!(snapshots.load(&edition.hash).unwrap().hash(), edition.hash);
    }

    #[test]
    fn what_is_not_what_it_is_called_is_not_taken_in() {
        let (directory, snapshots) = snapshots();
        let (asked, other) = (hierarchy(&["9.0.0.0/24"]), hierarchy(&["9.0.0.0/23"]));
        let edition = edition_of(&asked);
        assert!(matches!(snapshots.take_in(&edition, &pack(&other)), Err(SnapshotStoreError::OtherContent(_))));
        let mut broken = pack(&asked);
        let middle = broken.len() / 2;
        broken[middle] ^= 1;
        assert!(matches!(snapshots.take_in(&edition, &broken), Err(SnapshotStoreError::Snapshot(_))));
        assert!(matches!(snapshots.take_in(&edition, b"nonsense"), Err(SnapshotStoreError::Snapshot(_))));
        assert_eq!(fs::read_dir(directory.path().join("hierarchy")).unwrap().count(), 0, "nothing of it stays");
    }

    #[test]
    fn only_what_is_needed_is_kept_and_what_is_used_is_found_again() {
        let (_directory, snapshots) = snapshots();
        let hierarchies = [hierarchy(&["9.0.0.0/24"]), hierarchy(&["9.0.0.0/23"]), hierarchy(&["9.0.0.0/22"])];
        let editions = hierarchies.each_ref().map(edition_of);
        for (edition, hierarchy) in editions.iter().zip(&hierarchies) {
            snapshots.take_in(edition, &pack(hierarchy)).unwrap();
        }
        assert_eq!(snapshots.in_use(), None);
        snapshots.keep(&editions[1], &[editions[0].hash]).unwrap();
        assert_eq!(snapshots.in_use(), Some(editions[1].hash));
        assert!(snapshots.load(&editions[0].hash).is_ok() && snapshots.load(&editions[1].hash).is_ok());
        assert!(matches!(snapshots.load(&editions[2].hash), Err(SnapshotStoreError::File(_))));
    }
}
