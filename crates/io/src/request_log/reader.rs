//! Reads the log of requests line by line, from a moment on, also while it is written to.

use super::{
    files::{self, LogFile},
    line::{RequestKind, RequestLine},
};
use nearcrawl_model::{requests_made::LATEST_END, time::WallTime};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// A longer line is none of ours.
const MAX_LINE: u64 = 64 << 10;

/// From the end of a file no more is read for its newest lines, in bytes.
const MAX_TAIL: u64 = 256 << 10;

/// The newest lines of the log in this directory, the newest first, as far as they are in the last two files.
///
/// # Errors
/// A file cannot be read.
pub fn newest(directory: &Path, most: usize) -> io::Result<Vec<RequestLine>> {
    let mut lines = Vec::new();
    for of in files::list(directory)?.iter().rev().take(2) {
        let mut file = match File::open(&of.path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
        let mut tail = Vec::new();
        io::Read::take(&mut file, MAX_TAIL).read_to_end(&mut tail)?;
        // The first and the last of them may be parts of lines.
        let read = tail.split(|byte| *byte == b'\n').rev().filter_map(|line| serde_json::from_slice::<RequestLine>(line).ok());
        lines.extend(read.take(most - lines.len()));
        if lines.len() == most {
            break;
        }
    }
    Ok(lines)
}

/// Something in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A line, whatever its time.
    Line(Box<RequestLine>),
    /// A line that cannot be read.
    Bad,
}

/// Since when is every line there? None if there is none. Lines are written when a request has ended, so behind files that were removed the
/// first one that is left may be of a request that began, and ended, after one whose line is gone.
///
/// # Errors
/// A file cannot be read.
pub(super) fn covers_from(directory: &Path) -> io::Result<Option<WallTime>> {
    for of in files::list(directory)? {
        let day = of.day;
        let mut first = None;
        let mut visit = |entry: Entry| match entry {
            Entry::Bad => ControlFlow::Continue(()),
            Entry::Line(line) => {
                first = Some(line);
                ControlFlow::Break(())
            }
        };
        let _ = Reader::new(directory, WallTime(0)).read_file(of, 0, true, &mut visit)?;
        let Some(first) = first else { continue };
        // What ended before a daemon began has nothing to do with it.
        let since = if first.kind == RequestKind::Begin { first.asked_at } else { WallTime(first.asked_at.0.saturating_add(LATEST_END)) };
        // No line of a file is of a later day than the file. One of an earlier day is of a clock that was set back: files that were removed
        // may have had lines of the file's day.
        let is_behind = files::day_of(since) < day;
        return Ok(Some(if is_behind { files::begin_of(day.saturating_add(1)) } else { since }));
    }
    Ok(None)
}

/// Reads a log, and goes on where it stopped.
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    since: WallTime,
    /// The file that was read last, and how far.
    at: Option<(LogFile, u64)>,
    bad: u64,
}

impl Reader {
    /// Of the log in this directory, from this moment on.
    pub fn new(directory: &Path, since: WallTime) -> Reader {
        Reader { directory: directory.to_owned(), since, at: None, bad: 0 }
    }

    /// Lines that could not be read: of a process that was killed while it wrote, or damaged.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// Reads what has come since the last time, the oldest first, until there is no more or the visitor has enough.
    ///
    /// # Errors
    /// A file cannot be read. One that was removed meanwhile, for its age, is no error.
    pub fn read(&mut self, visit: &mut dyn FnMut(RequestLine) -> ControlFlow<()>) -> io::Result<()> {
        let since = self.since;
        self.read_all(&mut |entry| match entry {
            Entry::Line(line) if line.asked_at >= since => visit(*line),
            Entry::Line(_) | Entry::Bad => ControlFlow::Continue(()),
        })
    }

    /// The same with the lines of an earlier time in the files that are read, and with those that cannot be read.
    pub(super) fn read_all(&mut self, visit: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> io::Result<()> {
        let files = files::list(&self.directory)?;
        let first = self.at.as_ref().map(|(file, _)| file.clone());
        let wanted = |file: &&LogFile| match &first {
            Some(first) => *file >= first,
            None => file.day >= files::day_of(self.since),
        };
        let wanted: Vec<LogFile> = files.iter().filter(wanted).cloned().collect();
        let last = wanted.last().cloned();
        for file in wanted {
            let offset = self.at.as_ref().filter(|(at, _)| *at == file).map_or(0, |(_, offset)| *offset);
            let is_last = Some(&file) == last.as_ref();
            if self.read_file(file, offset, is_last, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_file(
        &mut self,
        of: LogFile,
        mut offset: u64,
        is_last: bool,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let mut file = match File::open(&of.path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(ControlFlow::Continue(())),
            file => file?,
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut file = BufReader::new(file);
        let mut line = Vec::new();
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            line.clear();
            let length = io::Read::take(&mut file, MAX_LINE).read_until(b'\n', &mut line)? as u64;
            let is_whole = line.last() == Some(&b'\n') || length == MAX_LINE;
            // The rest of the last line may be on its way.
            if length == 0 || (!is_whole && is_last) {
                break;
            }
            offset += length;
            match serde_json::from_slice::<RequestLine>(&line) {
                Ok(line) => flow = visit(Entry::Line(Box::new(line))),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(_) => {
                    self.bad += 1;
                    flow = visit(Entry::Bad);
                }
            }
        }
        self.at = Some((of, offset));
        Ok(flow)
    }
}
