//! Where the lines of a crawl go: files that a later call goes on with, or standard output and pipes that somebody reads.
//!
//! A file is written before what it says is recorded in the state directory, so after a kill it may have lines that the state does not
//! know: these are taken out when the same crawl goes on. So each page is in it once.

use crate::cli::error::CommandError;
use nearcrawl_model::journal::JournalKey;
use serde::Deserialize;
use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};

/// Pieces that wait for a reader before nothing more is fetched.
const MAX_PIECES: usize = 256;

/// Somewhere to write lines to.
pub(super) struct Sink {
    path: PathBuf,
    to: To,
}

enum To {
    /// A file, that can be gone on with.
    File(File),
    /// Whoever reads standard output or a pipe; in a thread of its own, because they may take their time.
    Reader(Reader),
}

/// A thread that writes.
struct Reader {
    /// None when it is finished.
    pieces: Option<SyncSender<Vec<u8>>>,
    /// What does not fit in there.
    waiting: VecDeque<Vec<u8>>,
    failure: Arc<Mutex<Option<io::Error>>>,
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

impl Sink {
    /// Nothing is lost of a file that is there before [`Sink::begin`].
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn open(path: &Path) -> Result<Sink, CommandError> {
        if path == Path::new("-") {
            return Ok(Sink { path: path.to_owned(), to: To::Reader(Reader::of(io::stdout())) });
        }
        let is_file = fs::metadata(path).map_or(true, |found| found.is_file());
        let mut options = OpenOptions::new();
        let opened = options.append(true).create(is_file).open(path);
        let file = opened.map_err(|why| CommandError::creating(path, &why))?;
        let to = if is_file { To::File(file) } else { To::Reader(Reader::of(file)) };
        Ok(Sink { path: path.to_owned(), to })
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        if self.path == Path::new("-") { "standard output".to_owned() } else { self.path.display().to_string() }
    }

    /// Whether it is a file that can be read again and replaced.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.to, To::File(_))
    }

    /// Keeps of a file that is there the whole lines that are wanted, and empties it otherwise. `keep` is shown each of them.
    pub(super) fn begin(&mut self, mut keep: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        let To::File(file) = &mut self.to else { return Ok(()) };
        let (mut kept, mut all) = (Vec::new(), true);
        let mut lines = BufReader::new(File::open(&self.path)?);
        let (mut line, mut at) = (Vec::new(), 0_u64);
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            let is_kept = line.ends_with(b"\n") && keep(&line);
            all &= is_kept;
            match kept.last_mut() {
                Some((_, end)) if is_kept && *end == at => *end += read as u64,
                _ if is_kept => kept.push((at, at + read as u64)),
                _ => {}
            }
            at += read as u64;
        }
        if all {
            return Ok(());
        }
        match kept[..] {
            [] => file.set_len(0),
            [(0, end)] => file.set_len(end),
            _ => {
                let mut from = File::open(&self.path)?;
                self.replace(|to| {
                    for (start, end) in &kept {
                        io::copy(&mut part(&mut from, *start, end - start)?, to)?;
                    }
                    Ok(())
                })
            }
        }
    }

    /// Replaces a file as a whole: whoever reads it meanwhile finds the old one or the new one.
    pub(super) fn replace(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = self.path.with_file_name(name);
        let mut out = BufWriter::new(File::create(&part)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&part, &self.path)?;
        self.to = To::File(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }

    /// Writes some whole lines.
    pub(super) fn write(&mut self, lines: Vec<u8>) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        match &mut self.to {
            To::File(file) => file.write_all(&lines),
            To::Reader(reader) => {
                reader.waiting.push_back(lines);
                reader.pass_on()
            }
        }
    }

    /// Passes on what waits for a reader.
    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File(_) => Ok(()),
            To::Reader(reader) => reader.pass_on(),
        }
    }

    /// Whether lines wait for a reader who takes their time.
    pub(super) fn is_behind(&self) -> bool {
        matches!(&self.to, To::Reader(reader) if !reader.waiting.is_empty())
    }

    /// Whether nobody reads any more.
    pub(super) fn is_closed(&self) -> bool {
        matches!(&self.to, To::Reader(reader) if reader.is_closed)
    }

    /// Waits until everything was read.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File(file) => file.flush(),
            To::Reader(reader) => reader.finish(),
        }
    }
}

fn part(file: &mut File, start: u64, length: u64) -> io::Result<io::Take<&mut File>> {
    use io::{Read, Seek};
    file.seek(io::SeekFrom::Start(start))?;
    Ok(file.take(length))
}

impl Reader {
    fn of(to: impl Write + Send + 'static) -> Reader {
        let (pieces, waiting) = sync_channel(MAX_PIECES);
        let failure = Arc::new(Mutex::new(None));
        let told = Arc::clone(&failure);
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            if let Err(why) = write_all(to, &waiting) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        });
        let (thread, failed) = thread.map_or_else(|why| (None, Some(why)), |thread| (Some(thread), None));
        if failed.is_some() {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        }
        Reader { pieces: Some(pieces), waiting: VecDeque::new(), failure, thread, is_closed: false }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        while let (Some(piece), Some(pieces)) = (self.waiting.pop_front(), &self.pieces) {
            match pieces.try_send(piece) {
                Ok(()) => {}
                Err(TrySendError::Full(piece)) => {
                    self.waiting.push_front(piece);
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return self.ended(),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(pieces) = self.pieces.take() {
            for piece in self.waiting.drain(..) {
                // Why it does not take it is known when the thread has ended.
                let _ = pieces.send(piece);
            }
        }
        self.ended()
    }

    /// The thread has ended, or will when it has written all: why.
    fn ended(&mut self) -> io::Result<()> {
        self.pieces = None;
        self.waiting.clear();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The reader has seen enough (`| head`): no failure.
            Some(why) if why.kind() == io::ErrorKind::BrokenPipe => self.is_closed = true,
            Some(why) => return Err(why),
            None => {}
        }
        Ok(())
    }
}

fn write_all(mut to: impl Write, pieces: &Receiver<Vec<u8>>) -> io::Result<()> {
    for piece in pieces {
        to.write_all(&piece)?;
        to.flush()?;
    }
    Ok(())
}

/// Which row of which journal a line tells.
#[derive(Deserialize)]
struct Origin<'a> {
    #[serde(borrow)]
    host: Cow<'a, str>,
    run: u32,
    row: u64,
}

/// Which rows of the journals are in a file already.
#[derive(Default)]
pub(super) struct Written(BTreeMap<(String, u32), Vec<u64>>);

impl Written {
    /// Takes over what a file has of these journals, and takes out what they do not know. Of pages no second line stays.
    pub(super) fn begin(sink: &mut Sink, journals: &[(JournalKey, u64)], each_once: bool) -> io::Result<Written> {
        let mut heads: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
        for (key, rows) in journals {
            let head = heads.entry(key.host.as_str()).or_default().entry(key.run).or_default();
            *head = (*head).max(*rows);
        }
        let mut rows: BTreeMap<(String, u32), Vec<u64>> = BTreeMap::new();
        sink.begin(|line| {
            let Ok(Origin { host, run, row }) = serde_json::from_slice(line) else { return false };
            let Some(runs) = heads.get(&*host) else { return false };
            let is_recorded = match runs.get(&run) {
                Some(head) => row < *head,
                // The journals of earlier runs are not kept.
                None => runs.keys().any(|later| *later > run),
            };
            let of_journal = rows.entry((host.into_owned(), run)).or_default();
            match of_journal.last() {
                _ if !is_recorded => false,
                Some(last) if row > *last => {
                    of_journal.push(row);
                    true
                }
                Some(last) if row == *last => !each_once,
                Some(_) => match of_journal.binary_search(&row) {
                    Ok(_) => !each_once,
                    Err(place) => {
                        of_journal.insert(place, row);
                        true
                    }
                },
                None => {
                    of_journal.push(row);
                    true
                }
            }
        })?;
        Ok(Written(rows))
    }

    /// The rows of a journal that are in the file; they are asked for once.
    pub(super) fn take(&mut self, key: &JournalKey) -> Vec<u64> {
        self.0.remove(&(key.host.as_str().to_owned(), key.run)).unwrap_or_default()
    }
}

/// Whether two paths lead to one file, now or once they are made.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    if let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) {
        return one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    let place = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((parent.canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: &str, run: u32, row: u64) -> String {
        format!("{{\"url\":\"http://{host}/{row}\",\"host\":\"{host}\",\"run\":{run},\"row\":{row}}}\n")
    }

    fn journal(host: &str, run: u32, rows: u64) -> (JournalKey, u64) {
        (JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.parse().unwrap(), run }, rows)
    }

    /// What stays of this text, and whether the file is the same one.
    fn kept(text: &str, journals: &[(JournalKey, u64)], each_once: bool) -> (String, Vec<u64>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        fs::write(&path, text).unwrap();
        let mut sink = Sink::open(&path).unwrap();
        let mut written = Written::begin(&mut sink, journals, each_once).unwrap();
        sink.write(b"more\n".to_vec()).unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
        let text = fs::read_to_string(&path).unwrap();
        (text.strip_suffix("more\n").unwrap().to_owned(), written.take(&journals[0].0))
    }

    #[test]
    fn what_is_not_recorded_is_taken_out_of_a_file_before_it_is_gone_on_with() {
        let journals = [journal("a.ke", 1, 5), journal("b.ke", 2, 3)];
        let (a, b) = (row("a.ke", 1, 3), row("b.ke", 2, 2));
        let earlier = row("b.ke", 1, 90);
        let all = format!("{a}{b}{earlier}");
        assert_eq!(kept(&all, &journals, true), (all.clone(), vec![3]), "all of it stays");
        let cases = [
            (format!("{all}{}", &row("a.ke", 1, 4)[..9]), &all, "a line that was cut off"),
            (format!("{}{all}", row("a.ke", 1, 5)), &all, "a row that was not stored"),
            (format!("{a}{}{b}{a}{earlier}", row("c.ke", 1, 0)), &all, "a host that is not known, and a second line"),
            (format!("{a}{}{b}{earlier}", row("b.ke", 3, 0)), &all, "a run that is not known"),
            (row("c.ke", 1, 0), &String::new(), "the file of another crawl"),
            ("notes\n".to_owned(), &String::new(), "something else"),
        ];
        for (text, stays, what) in &cases {
            assert_eq!(&kept(text, &journals, true).0, *stays, "{what}");
        }
        assert_eq!(kept(&format!("{a}{a}"), &journals, false), (format!("{a}{a}"), vec![3]), "links of a page are several");
    }

    #[test]
    fn nobody_has_to_read_to_the_end() {
        let (reader, writer) = io::pipe().unwrap();
        let mut sink = Sink { path: "-".into(), to: To::Reader(Reader::of(writer)) };
        sink.write(b"a\n".to_vec()).unwrap();
        drop(reader);
        while !sink.is_closed() {
            sink.write(b"b\n".to_vec()).unwrap();
        }
        assert!(!sink.is_behind());
        sink.finish().unwrap();
    }

    #[test]
    fn whoever_takes_their_time_is_waited_for() {
        use std::io::Read;
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sink = Sink { path: "-".into(), to: To::Reader(Reader::of(writer)) };
        let mut pieces = 0;
        while !sink.is_behind() {
            sink.write(vec![b'x'; 4096]).unwrap();
            pieces += 1;
        }
        assert!(pieces > MAX_PIECES);
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all.len())
        });
        sink.finish().unwrap();
        drop(sink);
        assert_eq!(reading.join().unwrap().unwrap(), pieces * 4096);
    }

    #[test]
    fn two_paths_to_one_file_are_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let (one, link) = (directory.path().join("one"), directory.path().join("link"));
        assert!(is_same_file(&one, &directory.path().join(".").join("one")), "before there is one");
        fs::write(&one, "").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        assert!(is_same_file(&one, &link) && !is_same_file(&one, &directory.path().join("other")));
    }
}
