//! Queries to the system about the disk: how much is taken, how much is free, and who holds a directory.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
};

/// A lock on a directory, held for as long as this lives, by one process or one opening of it at a time.
#[derive(Debug)]
pub(super) struct DirectoryLock(#[expect(dead_code, reason = "the lock belongs to the open file")] File);

/// Locks the directory by its file `lock`; none if another process holds it.
pub(super) fn lock(dir: &Path) -> io::Result<Option<DirectoryLock>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("lock"))?;
    // SAFETY: the descriptor is open for as long as `file` lives, and flock touches no memory of ours.
    let done = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if done == 0 {
        return Ok(Some(DirectoryLock(file)));
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) }
}

/// Bytes that this user may still write on the disk that `path` lies on.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends with NUL, and `answer` has room for what statvfs writes.
    let done = unsafe { libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs succeeded, so it has filled all of `answer`.
    let answer = unsafe { answer.assume_init() };
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Bytes of the files in `dir` and below. Files that vanish meanwhile, as RocksDB's do, count as nothing.
pub(super) fn used_bytes(dir: &Path) -> io::Result<u64> {
    let mut total = 0;
    let mut waiting = vec![dir.to_path_buf()];
    while let Some(dir) = waiting.pop() {
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => waiting.push(entry.path()),
                Ok(meta) => total += meta.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(total)
}

/// Writes a file so that after a crash it is there whole or as it was before.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}
