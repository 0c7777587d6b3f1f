//! The access point's identity: its Ed25519 key, in a file that only its user can read; and the key that a swarm shares.
//!
//! The file has 64 bytes: the secret seed, then the public key that follows from it. A damaged byte in either is noticed, for they do not
//! belong together then; a damaged seed alone would be another identity. Files of earlier versions have the seed only; they are replaced
//! when they are read.

use crate::io::{
    files::{read_regular, replace_private},
    swarm::access_point_of_seed,
};
use crate::node::{config::Config, error::NodeError};
use nearcrawl_model::{access_point::AccessPoint, admission::SignedAdmission, view::counted};
use std::{
    ffi::CString,
    fs,
    io::{self, Read},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

/// The name of the key's file in the state directory.
const KEY_FILE: &str = "key";

/// A longer file is none of a key, in bytes.
const MAX_KEY_FILE: u64 = 4096;

/// Bytes of a seed, and of a public key.
const HALF: usize = 32;

/// An access point's key.
pub struct NodeIdentity {
    /// The secret seed of the Ed25519 key.
    pub seed: [u8; 32],
    /// The public name.
    pub access_point: AccessPoint,
    /// Whether it was made just now.
    pub created: bool,
    /// The certificate by which it is a member, if people gave it one.
    pub certificate: Option<SignedAdmission>,
}

/// Whether the state directory and the key can be used, or made if they are not there; nothing is written.
pub(in crate::node) fn check(config: &Config) -> Result<(), NodeError> {
    let dir = &config.state_dir;
    let below = ["state", "cache", "hierarchy"].map(|name| dir.join(name));
    for dir in below.iter().chain([dir]) {
        writable(dir).map_err(|(at, error)| failed(&at, "the state directory cannot be there, or cannot be written", &error))?;
    }
    let path = dir.join(KEY_FILE);
    match read(&path) {
        Ok(_) | Err(KeyFileError::Missing) => Ok(()),
        Err(KeyFileError::Wrong(why, forbidden)) => Err(NodeError::Key { path, why, forbidden }),
    }
}

/// Whether this user may create files in `directory`; if it is not there, whether it can be created. Fails with what is in the way.
fn writable(directory: &Path) -> Result<(), (PathBuf, io::Error)> {
    for at in directory.ancestors() {
        // A relative path that consists of one name lies in the working directory.
        let at = if at.as_os_str().is_empty() { Path::new(".") } else { at };
        let failed = |error| Err((at.to_owned(), error));
        match fs::metadata(at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return failed(error),
            Ok(found) if !found.is_dir() => return failed(io::ErrorKind::NotADirectory.into()),
            // No directory can be made there, whatever the system says of rights.
            Ok(_) if at != directory && (at.starts_with("/proc") || at.starts_with("/sys")) => {
                return failed(io::ErrorKind::PermissionDenied.into());
            }
            Ok(_) => return may_write(at).or_else(failed),
        }
    }
    Ok(())
}

/// Whether this process may create files in a directory.
fn may_write(directory: &Path) -> io::Result<()> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: `path` ends in NUL and lives as long as the call, which writes nothing.
    let answer = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK | libc::X_OK, libc::AT_EACCESS) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the state directory and the key, or reads the key that is there. A certificate is not looked at.
pub fn init(config: &Config) -> Result<NodeIdentity, NodeError> {
    let dir = &config.state_dir;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| failed(dir, "cannot be created", &error))?;
    let path = dir.join(KEY_FILE);
    match read(&path) {
        Ok(StoredKey { seed, checked }) => {
            if !checked {
                write(&path, &seed).map_err(|error| failed(&path, "cannot be replaced by one with a check", &error))?;
            }
            Ok(NodeIdentity { seed, access_point: access_point_of_seed(seed), created: false, certificate: None })
        }
        Err(KeyFileError::Missing) => {
            let seed = random_seed().map_err(|error| failed(&path, "no random bytes from /dev/urandom", &error))?;
            write(&path, &seed).map_err(|error| failed(&path, "cannot be written", &error))?;
            Ok(NodeIdentity { seed, access_point: access_point_of_seed(seed), created: true, certificate: None })
        }
        Err(KeyFileError::Wrong(why, forbidden)) => Err(NodeError::Key { path, why, forbidden }),
    }
}

/// 32 bytes from the kernel.
pub(in crate::node) fn random_seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
    Ok(seed)
}

/// The seed in a key file that is there.
///
/// # Errors
/// There is none, or it cannot be used.
pub(in crate::node) fn seed_of(path: &Path) -> Result<[u8; HALF], NodeError> {
    let failed = |why: String, forbidden| NodeError::Key { path: path.to_owned(), why, forbidden };
    match read(path) {
        Ok(stored) => Ok(stored.seed),
        Err(KeyFileError::Missing) => Err(failed("there is no such file".to_owned(), false)),
        Err(KeyFileError::Wrong(why, forbidden)) => Err(failed(why, forbidden)),
    }
}

/// Who an access point with this configuration is; none if its key is not made yet, or cannot be used.
pub(in crate::node) fn known(config: &Config) -> Option<AccessPoint> {
    read(&config.state_dir.join(KEY_FILE)).ok().map(|stored| access_point_of_seed(stored.seed))
}

enum KeyFileError {
    Missing,
    Wrong(String, bool),
}

/// What a key file has.
struct StoredKey {
    seed: [u8; HALF],
    /// Whether the public key stood there, too, and is the seed's.
    checked: bool,
}

fn read(path: &Path) -> Result<StoredKey, KeyFileError> {
    let wrong = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => KeyFileError::Missing,
        kind => KeyFileError::Wrong(format!("the key cannot be read: {error}"), kind == io::ErrorKind::PermissionDenied),
    };
    let mode = fs::metadata(path).map_err(wrong)?.permissions().mode();
    if mode & 0o077 != 0 {
        let why = format!(
            "the key can be read by others (mode {:03o}): chmod 600 it, and create a new one if another user may have read it",
            mode & 0o777
        );
        return Err(KeyFileError::Wrong(why, true));
    }
    let bytes = read_regular(path, MAX_KEY_FILE).map_err(wrong)?;
    parse(&bytes).map_err(|what| KeyFileError::Wrong(format!("{what}: restore it from a copy, or remove it for a new identity"), false))
}

/// The key in the bytes of a file, or what is wrong with them.
fn parse(bytes: &[u8]) -> Result<StoredKey, String> {
    match bytes.as_chunks::<HALF>() {
        ([seed], []) => Ok(StoredKey { seed: *seed, checked: false }),
        ([seed, public], []) if access_point_of_seed(*seed).0 == *public => Ok(StoredKey { seed: *seed, checked: true }),
        ([_, _], []) => Err("the key is damaged: its secret and its public half do not belong together".to_owned()),
        _ => Err(format!("the key has {} instead of {}", counted(bytes.len(), "byte"), 2 * HALF)),
    }
}

/// Written aside and renamed, so that a crash leaves no half a key.
fn write(path: &Path, seed: &[u8; HALF]) -> io::Result<()> {
    replace_private(path, &path.with_extension("new"), &[*seed, access_point_of_seed(*seed).0].concat())?;
    path.parent().map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
}

/// The key that all members of a swarm share: 64 hexadecimal digits.
pub(in crate::node) fn pre_shared_key(path: &Path) -> Result<[u8; 32], NodeError> {
    let wrong = |why: String| NodeError::PreSharedKey { path: path.to_owned(), why };
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            let path = path.display();
            wrong(format!(
                "swarm.pre_shared_key_file does not exist; copy it from another member, create it for a new swarm with \
                 `openssl rand -hex 32 > {path}`, or leave the key out"
            ))
        }
        _ => wrong(format!("swarm.pre_shared_key_file cannot be read: {error}")),
    };
    let bytes = read_regular(path, MAX_KEY_FILE).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let digits: Vec<u8> = text.trim().bytes().filter_map(|digit| (digit as char).to_digit(16).map(|digit| digit as u8)).collect();
    if digits.len() != 64 || text.trim().len() != 64 {
        return Err(wrong("a pre-shared key is 64 hexadecimal digits, for example from `openssl rand -hex 32`".to_owned()));
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Ok(key)
}

fn failed(path: &Path, what: &str, error: &io::Error) -> NodeError {
    let advice = match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => "; state_dir must name a directory, not a file",
        io::ErrorKind::PermissionDenied => "; set state_dir to a directory that this user may write to",
        _ => "",
    };
    NodeError::of_file(path, format!("{what}: {error}{advice}"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(dir: &Path) -> Config {
        Config { state_dir: dir.join("state"), ..Config::default() }
    }

    #[test]
    fn a_key_is_made_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let first = init(&config(dir.path())).unwrap();
        let second = init(&config(dir.path())).unwrap();
        assert!(first.created && !second.created);
        assert_eq!((first.seed, first.access_point), (second.seed, second.access_point));
        let mode = fs::metadata(dir.path().join("state/key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_cut_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        init(&config(dir.path())).unwrap();
        let path = dir.path().join("state/key");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = init(&config(dir.path())).map(|_| ()).unwrap_err();
        assert!(error.exit_status() == 77 && error.to_string().contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for bytes in [31, 33, 63, 65] {
            fs::write(&path, vec![1; bytes]).unwrap();
            assert!(init(&config(dir.path())).map(|_| ()).unwrap_err().to_string().contains(&format!("{bytes} bytes")));
        }
    }

    #[test]
    fn a_full_disk_is_to_be_tried_again() {
        for code in [libc::ENOSPC, libc::EDQUOT] {
            let error = failed(Path::new("state/key"), "cannot be written", &io::Error::from_raw_os_error(code));
            assert!(error.exit_status() == 75 && error.to_string().contains("free at least 256 MiB"), "{error}");
        }
        let denied = failed(Path::new("state/key"), "cannot be written", &io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(denied.exit_status(), 77, "{denied}");
    }

    #[test]
    fn any_flipped_bit_is_noticed_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        init(&config(dir.path())).unwrap();
        let path = dir.path().join("state/key");
        let sound = fs::read(&path).unwrap();
        assert_eq!(sound.len(), 64);
        for bit in (0..64 * 8).step_by(5) {
            let mut damaged = sound.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &damaged).unwrap();
            let error = init(&config(dir.path())).map(|_| ()).unwrap_err();
            assert!(error.exit_status() == 66 && error.to_string().contains("is damaged"), "bit {bit}: {error}");
            assert!(error.to_string().contains("state/key") && error.to_string().contains("from a copy"), "{error}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
    }

    #[test]
    fn a_key_of_an_earlier_version_is_kept_and_gets_its_public_half() {
        let dir = tempfile::tempdir().unwrap();
        let made = init(&config(dir.path())).unwrap();
        let path = dir.path().join("state/key");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, made.seed).unwrap();
        let read = init(&config(dir.path())).unwrap();
        assert_eq!((read.seed, read.access_point, read.created), (made.seed, made.access_point, false));
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!dir.path().join("state/key.new").exists());
    }
}
