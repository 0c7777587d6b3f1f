//! Reads the lines of an untrusted file: one by one, up to a longest line and a largest file.

use super::report::{LineError, ReadError, ReadReport};
use std::io::{self, BufRead};

/// The longest line that is kept whole, in bytes; real records have under 120, real remarks under 300.
pub(super) const MAX_LINE: usize = 1024;

/// The most bytes that are read of one file, unpacked.
pub(super) const MAX_FILE: u64 = 4 << 30;

/// Reads lines of limited length from a file of limited size.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    bytes: u64,
    number: u64,
}

/// One line, without its end.
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Its bytes, at most [`MAX_LINE`].
    pub text: &'a [u8],
    /// Whether these are all.
    pub whole: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines { input, line: Vec::with_capacity(256), bytes: 0, number: 0 }
    }

    /// The next line; none at the end.
    pub(crate) fn next(&mut self, source_name: &str) -> Result<Option<Line<'_>>, ReadError> {
        let failed = |error| ReadError::Io { source_name: source_name.to_owned(), error };
        if !self.read().map_err(failed)? {
            return Ok(None);
        }
        self.number += 1;
        if self.bytes > MAX_FILE {
            return Err(ReadError::TooLarge(source_name.to_owned()));
        }
        let whole = self.line.len() <= MAX_LINE;
        let kept = &self.line[..self.line.len().min(MAX_LINE)];
        let text = if self.number == 1 { kept.strip_prefix(b"\xef\xbb\xbf").unwrap_or(kept) } else { kept };
        Ok(Some(Line { number: self.number, text: text.strip_suffix(b"\r").unwrap_or(text), whole }))
    }

    /// Reads one more line, of which at most a byte more than allowed is kept; false at the end.
    fn read(&mut self) -> io::Result<bool> {
        self.line.clear();
        let before = self.bytes;
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let end = memchr::memchr(b'\n', buffer);
            let take = end.unwrap_or(buffer.len());
            let room = (MAX_LINE + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&buffer[..take.min(room)]);
            let used = take + usize::from(end.is_some());
            self.input.consume(used);
            self.bytes += used as u64;
            // One endless line is no line.
            if end.is_some() || used == 0 || self.bytes > MAX_FILE {
                return Ok(self.bytes > before);
            }
        }
    }
}

/// Passes every line of a UTF-8 file, without its line end, to `read`, which returns what is wrong with it.
pub(super) fn text_lines(
    report: &mut ReadReport,
    input: impl BufRead,
    mut read: impl FnMut(&mut ReadReport, &str) -> Result<Result<(), LineError>, ReadError>,
) -> Result<(), ReadError> {
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next(&report.source)? {
        report.lines += 1;
        let outcome = match std::str::from_utf8(line.text) {
            _ if !line.whole => Err(LineError::TooLong),
            Ok(text) if text.contains('\0') => Err(LineError::NotText),
            Ok(text) => read(report, text.trim_end())?,
            Err(_) => Err(LineError::NotText),
        };
        if let Err(what) = outcome {
            report.count_bad(what, line.number, line.text);
        }
    }
    Ok(())
}

/// The fields of a line of a table, divided by TABs or else by commas: all but the last one as they are, the last one to the end of the line with its
/// quotes and doubled quotes undone. Fewer fields than `N` leave the rest empty.
pub(super) fn fields<const N: usize>(line: &str) -> ([&str; N], String) {
    let divider = if line.contains('\t') { '\t' } else { ',' };
    let mut parts = line.splitn(N + 1, divider);
    let first = std::array::from_fn(|_| parts.next().unwrap_or_default().trim().trim_matches('"'));
    let rest = parts.next().unwrap_or_default().trim();
    let unquoted = rest.strip_prefix('"').map(|n| n.strip_suffix('"').unwrap_or(n).replace("\"\"", "\""));
    (first, unquoted.unwrap_or_else(|| rest.to_owned()))
}
