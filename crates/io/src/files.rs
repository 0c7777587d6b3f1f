//! Small files: regular ones are read up to a size, and those of secrets are replaced so that no half a file is ever visible.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Opens a regular file for reading. A pipe would keep its reader waiting for a writer, and a device may never end.
///
/// # Errors
/// It cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // With O_NONBLOCK a pipe is opened at once. Reading a regular file is the same with it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        _ if kind.is_file() => Ok(file),
        _ if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "this is a device or a pipe, and not a file")),
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// It cannot be read, is no regular file, or is longer.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Replaces a file that only its user may read: the new one is written to `beside`, in the same directory, made durable and renamed, so that a
/// crash leaves the old file or the new one. What stands at `beside` before, or after a failure, is removed.
///
/// # Errors
/// The file cannot be written; the old one is as it was.
pub fn replace_private(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    // What an earlier attempt left may have other rights, or be a link.
    match fs::remove_file(beside) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    replace(path, beside, bytes, OpenOptions::new().write(true).create_new(true).mode(0o600))
}

/// The same with the options by which `beside` is opened.
fn replace(path: &Path, beside: &Path, bytes: &[u8], options: &OpenOptions) -> io::Result<()> {
    let attempt = || {
        let mut file = options.open(beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(beside, path)
    };
    attempt().inspect_err(|_| {
        // The first error is returned; a file that is left is no reason for a second one.
        let _ = fs::remove_file(beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        ffi::CString,
        os::unix::{ffi::OsStrExt, fs::PermissionsExt},
        sync::mpsc,
        thread,
        time::Duration,
    };

    #[test]
    fn what_is_no_regular_file_or_too_long_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let [plain, pipe] = ["plain", "pipe"].map(|name| directory.path().join(name));
        fs::write(&plain, "12345").unwrap();
        assert_eq!(read_regular(&plain, 5).unwrap(), b"12345");
        assert_eq!(read_regular(&plain, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_regular(&directory.path().join("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_regular(directory.path(), 4).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(read_regular(Path::new("/dev/zero"), u64::MAX).unwrap_err().to_string().contains("not a file"));

        let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: `name` ends in NUL and lives as long as the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let (told, answer) = mpsc::sync_channel(1);
        thread::spawn(move || told.send(read_regular(&pipe, 4).unwrap_err().to_string()));
        let why = answer.recv_timeout(Duration::from_secs(20)).expect("it does not wait for a writer");
        assert!(why.contains("a pipe"), "{why}");
    }

    #[test]
    fn a_private_file_is_replaced_whole_whatever_was_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let [path, beside] = ["key", "key.new"].map(|name| directory.path().join(name));
        fs::write(&beside, "left").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o644)).unwrap();
        replace_private(&path, &beside, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!beside.exists());
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let [path, beside] = ["key", "key.new"].map(|name| directory.path().join(name));
        fs::write(&path, "old").unwrap();
        // It can be opened, and has no room.
        std::os::unix::fs::symlink("/dev/full", &beside).unwrap();
        let why = replace(&path, &beside, b"new", OpenOptions::new().write(true)).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::StorageFull, "{why}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(fs::symlink_metadata(&beside).is_err(), "nothing is left beside it");
    }
}
