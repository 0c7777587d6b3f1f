//! Small files: regular ones are read up to a size.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        ffi::CString,
        fs,
        os::unix::ffi::OsStrExt,
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
        let (told, answer) = mpsc::channel();
        thread::spawn(move || told.send(read_regular(&pipe, 4).unwrap_err().to_string()));
        let why = answer.recv_timeout(Duration::from_secs(20)).expect("it does not wait for a writer");
        assert!(why.contains("a pipe"), "{why}");
    }
}
