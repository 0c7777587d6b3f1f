//! Files of the log of requests: one a day, or several; the oldest go when there are too many, or they are too old.

use nearcrawl_model::time::WallTime;
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

const DAY: u64 = 86_400_000;

/// A file takes at most this part of all, so that what goes at once is little.
const PARTS: u64 = 16;

const MAX_FILE: u64 = 8 << 20;

/// Files of one day that are told apart by their numbers.
const MAX_NUMBER: u32 = 99_999;

/// Where the log is and how much of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLogConfig {
    /// The directory of its files.
    pub directory: PathBuf,
    /// How many days it goes back, today among them.
    pub max_days: u64,
    /// How many bytes all files may have.
    pub max_bytes: u64,
}

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogFile {
    /// Its day, counted from 1970.
    pub(super) day: u64,
    /// Which of that day.
    pub(super) number: u32,
    pub(super) path: PathBuf,
}

impl LogFile {
    fn new(directory: &Path, day: u64, number: u32) -> LogFile {
        let date: String = WallTime(day.saturating_mul(DAY)).to_string().chars().take(10).collect();
        LogFile { day, number, path: directory.join(format!("{date}-{number:05}.jsonl")) }
    }

    fn read(path: PathBuf) -> Option<LogFile> {
        let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        let (date, number) = name.rsplit_once('-')?;
        let day = format!("{date}T00:00:00Z").parse::<WallTime>().ok()?.0 / DAY;
        let number = number.parse().ok().filter(|number| *number <= MAX_NUMBER)?;
        Some(LogFile { day, number, path })
    }
}

/// When a day begins that is counted from 1970.
pub(super) fn begin_of(day: u64) -> WallTime {
    WallTime(day.saturating_mul(DAY))
}

/// The day of a moment, counted from 1970.
pub(super) fn day_of(moment: WallTime) -> u64 {
    moment.0 / DAY
}

/// Whoever writes to a log holds it.
#[derive(Debug)]
pub(super) struct WriterLock {
    _file: File,
}

/// The file that is locked. It is none of the log's.
const LOCK: &str = "lock";

/// Whether somebody writes to the log in this directory; no if that cannot be known.
pub(super) fn is_written(directory: &Path) -> bool {
    File::open(directory.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

/// A day that has files before this moment's, the last one, as the moment at which it begins; else that moment.
pub(super) fn day_before(directory: &Path, moment: WallTime) -> io::Result<WallTime> {
    let before = list(directory)?.into_iter().rfind(|file| file.day < day_of(moment));
    Ok(before.map_or(moment, |file| begin_of(file.day)))
}

/// All files, the oldest first; none if there is no directory.
pub(super) fn list(directory: &Path) -> io::Result<Vec<LogFile>> {
    let entries = match fs::read_dir(directory) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        files.extend(LogFile::read(entry?.path()));
    }
    files.sort();
    Ok(files)
}

/// The file that is written to.
#[derive(Debug)]
struct Current {
    file: File,
    /// The day that the clock showed when it was opened: before the file's if the clock was set back.
    day: u64,
    of: LogFile,
    length: u64,
}

/// The files, and the one of them that is written to.
#[derive(Debug)]
pub(super) struct Files {
    config: RequestLogConfig,
    current: Option<Current>,
}

impl Files {
    /// Those in this directory, which need not be there yet.
    pub(super) fn new(config: RequestLogConfig) -> Files {
        Files { config, current: None }
    }

    /// The lock of who writes. It is shared, for the time that another one needs to see that it is not held: no writer waits for another one.
    pub(super) fn lock(&self) -> Option<WriterLock> {
        let mut made = OpenOptions::new();
        let file = made.create(true).truncate(false).write(true).open(self.config.directory.join(LOCK)).ok()?;
        file.lock_shared().ok()?;
        Some(WriterLock { _file: file })
    }

    /// Appends whole lines. If that fails, nothing of them stays.
    pub(super) fn append(&mut self, lines: &[u8], now: WallTime) -> io::Result<()> {
        let (day, length) = (day_of(now), lines.len() as u64);
        let max_file = (self.config.max_bytes / PARTS).clamp(1, MAX_FILE);
        let fits = self
            .current
            .as_ref()
            .is_some_and(|current| current.day == day && (current.length == 0 || current.length.saturating_add(length) <= max_file));
        if !fits {
            self.current = Some(self.next_file(day, max_file.saturating_sub(length))?);
            self.prune(now)?;
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        if let Err(why) = current.file.write_all(lines) {
            // What was written of a line would be taken for a part of the next one.
            if current.file.set_len(current.length).is_err() {
                self.current = None;
            }
            return Err(why);
        }
        current.length += length;
        Ok(())
    }

    /// The last file of the day if it has room and was not written to before by us, else a new one. It is never before one that was written
    /// to, so that files stand in the order in which they were written also if the clock was set back.
    fn next_file(&self, day: u64, room: u64) -> io::Result<Current> {
        let directory = &self.config.directory;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let last = list(directory)?.pop();
        let of = match last.filter(|last| last.day >= day) {
            None => LogFile::new(directory, day, 0),
            Some(last) => {
                let has_room = last.day == day && fs::metadata(&last.path)?.len() <= room;
                if has_room || last.number >= MAX_NUMBER { last } else { LogFile::new(directory, last.day, last.number + 1) }
            }
        };
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&of.path)?;
        let mut length = file.metadata()?.len();
        if length > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
            // A process that was killed, or a power cut, left half a line: it stays by itself.
            if last != *b"\n" {
                file.write_all(b"\n")?;
                length += 1;
            }
        }
        Ok(Current { file, day, of, length })
    }

    /// Removes what is too old, and the oldest of what is too much. Room is left for the file that is written to.
    pub(super) fn prune(&mut self, now: WallTime) -> io::Result<()> {
        let files = list(&self.config.directory)?;
        let max_file = (self.config.max_bytes / PARTS).clamp(1, MAX_FILE);
        let current = self.current.as_ref().map(|current| &current.of);
        let mut left = self.config.max_bytes.saturating_sub(max_file);
        let (today, mut full) = (day_of(now), false);
        for file in files.iter().rev().filter(|file| Some(*file) != current) {
            let metadata = match fs::metadata(&file.path) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            let length = metadata.len();
            full |= length > left;
            // Of a clock that was ahead: it is as old as the disk says.
            let written = || metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs() / 86_400);
            let day = if file.day > today { written().unwrap_or(file.day) } else { file.day };
            if full || day.saturating_add(self.config.max_days) <= today {
                fs::remove_file(&file.path)?;
            } else {
                left -= length;
            }
        }
        Ok(())
    }
}
