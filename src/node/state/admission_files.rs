//! The swarm's root key and the certificates of members, as files.
//!
//! The root key is used by people only, where they like, and by no daemon. Its file is one line that only its user can read: the secret
//! seed and the public key, which belong together. A certificate is one line of text, too.

use crate::node::{config::Config, error::NodeError, state::keyfile};
use ed25519_dalek::SigningKey;
use nearcrawl_model::admission::{RootKey, SignedAdmission};
use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The name of the certificate's file in the state directory.
pub const CERTIFICATE_FILE: &str = "certificate";

/// What the file of a root key begins with.
const ROOT_HEAD: &str = "nearcrawl-root-key-1:";

/// A longer file is no certificate and no root key, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// A key to sign certificates with.
pub enum IssuingKey {
    /// The swarm's root key.
    Root(SigningKey),
    /// That of an access point, which may be an inviter.
    Member(SigningKey),
}

/// Makes a root key in a file that only its user can read. A file that is there is not touched.
///
/// # Errors
/// The file is there, or cannot be written.
pub fn create_root_key(path: &Path) -> io::Result<RootKey> {
    let key = SigningKey::from_bytes(&keyfile::random_seed()?);
    let root = RootKey(key.verifying_key().to_bytes());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(format!("{ROOT_HEAD}{}:{root}\n", RootKey(key.to_bytes())).as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key is of no use, and would be in the way.
        let _ = fs::remove_file(path);
    }
    written.map(|()| root)
}

/// The key in a file: a root key, or that of an access point.
///
/// # Errors
/// There is none, it is damaged, or others can read it.
pub fn issuing_key(path: &Path) -> Result<IssuingKey, NodeError> {
    let wrong = |why: &str, forbidden| NodeError::Key { path: path.to_owned(), why: why.to_owned(), forbidden };
    let bytes = read(path).map_err(|why| wrong(&why.to_string(), why.kind() == io::ErrorKind::PermissionDenied))?;
    let Some(line) = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().strip_prefix(ROOT_HEAD)) else {
        return Ok(IssuingKey::Member(SigningKey::from_bytes(&keyfile::seed_of(path)?)));
    };
    let mode = fs::metadata(path).map_err(|why| wrong(&why.to_string(), false))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(wrong(
            "the root key can be read by others: chmod 600 it, and begin with a new one if another user may have read it",
            true,
        ));
    }
    // Both halves are written like a root key: 64 hexadecimal digits.
    let halves = line.split_once(':').and_then(|(seed, root)| Some((seed.parse::<RootKey>().ok()?, root.parse::<RootKey>().ok()?)));
    let key = halves.map(|(seed, root)| (SigningKey::from_bytes(&seed.0), root));
    match key.filter(|(key, root)| key.verifying_key().to_bytes() == root.0) {
        Some((key, _)) => Ok(IssuingKey::Root(key)),
        None => Err(wrong("the root key is damaged: restore it from a copy", false)),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the certificate of an access point is.
pub fn certificate_path(config: &Config) -> PathBuf {
    config.state_dir.join(CERTIFICATE_FILE)
}

/// The certificate in the state directory. Whether it counts is said by the daemon's state; here it is only read.
pub(in crate::node) fn certificate(config: &Config) -> Result<Option<SignedAdmission>, NodeError> {
    let path = certificate_path(config);
    match read_certificate(&path) {
        Ok(signed) => Ok(Some(signed)),
        Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(why) => Err(NodeError::Key { forbidden: why.kind() == io::ErrorKind::PermissionDenied, why: why.to_string(), path }),
    }
}

/// The certificate that is the one line of a file.
///
/// # Errors
/// The file cannot be read, or is none.
pub fn read_certificate(path: &Path) -> io::Result<SignedAdmission> {
    let bytes = read(path)?;
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("this is no certificate: {why}"));
    let text = std::str::from_utf8(&bytes).map_err(|why| wrong(why.to_string()))?;
    text.parse().map_err(|why: nearcrawl_model::admission::AdmissionError| wrong(why.to_string()))
}

/// Puts a certificate into a file, so that a crash leaves the one before or this one.
///
/// # Errors
/// The file cannot be written.
pub fn write_certificate(path: &Path, signed: &SignedAdmission) -> io::Result<()> {
    let aside = path.with_extension("new-certificate");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&aside)?;
    file.write_all(format!("{signed}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_key_is_written_once_for_its_user_only_and_a_damaged_one_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ROOT.key");
        let root = create_root_key(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let key_of = |path: &Path| match issuing_key(path) {
            Ok(IssuingKey::Root(key)) => Ok(RootKey(key.verifying_key().to_bytes())),
            Ok(IssuingKey::Member(_)) => Err("a member's".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        assert_eq!(key_of(&path), Ok(root));
        assert_eq!(create_root_key(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(key_of(&path), Ok(root), "it is as it was");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(key_of(&path).unwrap_err().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let first = if text.as_bytes()[ROOT_HEAD.len()] == b'0' { "1" } else { "0" };
        fs::write(&path, format!("{ROOT_HEAD}{first}{}", &text[ROOT_HEAD.len() + 1..])).unwrap();
        assert!(key_of(&path).unwrap_err().contains("damaged"));
        assert!(key_of(&directory.path().join("none")).unwrap_err().contains("none"));
    }
}
