//! Splits WHOIS files into objects; attributes of the wanted objects are returned, all others are skipped unread.
//!
//! ```text
//! inetnum:      196.207.3.172 - 196.207.3.175      the first attribute names the class
//! descr:        a value
//!               that goes on                       a line that begins with a blank, a TAB or + goes on
//! % a comment
//!                                                  an empty line ends the object
//! ```
//!
//! The registries' own form (RPSL) and ARIN's differ in their names only. Persons, roles, maintainers and whatever else is no network and
//! no organisation never gets further than its first word: no personal data is taken in.

use super::{
    lines::{Line, Lines},
    report::{LineError, ReadError, ReadReport},
};
use std::{io::BufRead, ops::Range};

/// The longest value that is kept, in bytes: what is longer is none of the values that are used.
const MAX_VALUE: usize = 512;

/// The most attributes of one object that are kept; real ones have under 20 that are wanted.
const MAX_ATTRIBUTES: usize = 64;

/// The class of a WHOIS object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A range of IPv4 addresses.
    Inetnum,
    /// A range of IPv6 addresses.
    Inet6num,
    /// RPSL's `organisation`: a holder.
    Organisation,
    /// ARIN's range of IPv4 addresses.
    Net,
    /// ARIN's range of IPv6 addresses.
    V6Net,
    /// ARIN's `OrgID`: a holder.
    Org,
}

impl Class {
    /// The class that begins with this attribute.
    fn of(name: &[u8]) -> Option<Class> {
        let classes = [
            ("inetnum", Class::Inetnum),
            ("inet6num", Class::Inet6num),
            ("organisation", Class::Organisation),
            ("NetHandle", Class::Net),
            ("V6NetHandle", Class::V6Net),
            ("OrgID", Class::Org),
        ];
        classes.iter().find(|(first, _)| name.eq_ignore_ascii_case(first.as_bytes())).map(|(_, class)| *class)
    }

    /// How reports call it.
    fn name(self) -> &'static str {
        match self {
            Class::Inetnum => "inetnum",
            Class::Inet6num => "inet6num",
            Class::Organisation => "organisation",
            Class::Net => "NetHandle",
            Class::V6Net => "V6NetHandle",
            Class::Org => "OrgID",
        }
    }

    /// The attributes that are kept, besides the first.
    fn wanted(self) -> &'static [&'static str] {
        match self {
            Class::Inetnum | Class::Inet6num => {
                &["country", "org", "mnt-by", "ownerid", "owner", "netname", "status", "source", "last-modified", "changed"]
            }
            Class::Organisation => &["org-name", "country", "source"],
            Class::Net | Class::V6Net => &["OrgID", "NetRange", "NetName", "NetType", "Country", "Updated", "Source"],
            Class::Org => &["OrgName", "Country", "Source"],
        }
    }
}

/// One object, as far as it is wanted.
#[derive(Debug)]
pub(super) struct Object {
    pub class: Class,
    /// Where it begins.
    line: u64,
    /// All values, one after another.
    text: String,
    /// Names and where their values stand; the first is the object's own.
    values: Vec<(&'static str, Range<usize>)>,
    /// What was wrong with one of its lines.
    broken: Option<LineError>,
}

impl Object {
    /// The value of the attribute that names the object.
    pub(crate) fn key(&self) -> &str {
        self.values.first().map_or("", |(_, at)| &self.text[at.clone()])
    }

    /// All values of an attribute that are not empty.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.values.iter().filter(move |(n, _)| *n == name).map(|(_, at)| self.text[at.clone()].trim()).filter(|v| !v.is_empty())
    }

    /// The first value of an attribute that is not empty.
    pub(crate) fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn begin(&mut self, class: Class, line: u64, value: &[u8]) {
        self.class = class;
        self.line = line;
        self.text.clear();
        self.values.clear();
        self.broken = None;
        self.keep(class.name(), value);
    }

    fn keep(&mut self, name: &'static str, value: &[u8]) {
        if self.values.len() < MAX_ATTRIBUTES {
            let start = self.text.len();
            self.append(value);
            self.values.push((name, start..self.text.len()));
        }
    }

    /// Adds a continuation to the last value.
    fn continue_last(&mut self, more: &[u8]) {
        let end = self.text.len();
        if let Some(start) = self.values.last().map(|(_, at)| at.start).filter(|start| end - start < MAX_VALUE) {
            self.text.push(' ');
            self.append(more);
            if let Some((_, at)) = self.values.last_mut() {
                *at = start..self.text.len();
            }
        }
    }

    /// Values are UTF-8 or else Latin-1, in which every byte is a character. In RPSL a # begins a comment.
    fn append(&mut self, value: &[u8]) {
        let value = match self.class {
            Class::Inetnum | Class::Inet6num | Class::Organisation => value.split(|b| *b == b'#').next().unwrap_or(value),
            Class::Net | Class::V6Net | Class::Org => value,
        };
        let value = value[..value.len().min(MAX_VALUE)].trim_ascii();
        match std::str::from_utf8(value) {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.extend(value.iter().map(|b| char::from(*b))),
        }
    }
}

/// Where in a file the last line was.
enum Within {
    /// After an empty line: the next attribute begins an object.
    None,
    /// In an object of a class that is skipped.
    Skipped,
    /// In an object that is kept; whether its last attribute is kept.
    Wanted(bool),
}

/// Puts the objects of a file together, line by line.
struct Assembler<F> {
    object: Object,
    within: Within,
    take: F,
}

impl<F: FnMut(&mut ReadReport, &Object) -> Result<Result<(), LineError>, ReadError>> Assembler<F> {
    fn line(&mut self, report: &mut ReadReport, line: &Line<'_>) -> Result<(), ReadError> {
        let text = line.text;
        match text.first() {
            Some(b'%' | b'#') => {}
            Some(first) if !text.trim_ascii().is_empty() => {
                if matches!(first, b' ' | b'\t' | b'+') {
                    self.go_on(report, line);
                } else {
                    self.attribute(report, line)?;
                }
            }
            _ => self.end(report)?,
        }
        Ok(())
    }

    /// A line that goes on with the value before.
    fn go_on(&mut self, report: &mut ReadReport, line: &Line<'_>) {
        match self.within {
            Within::None => report.count_bad(LineError::MissingFields, line.number, line.text),
            Within::Wanted(true) => self.object.continue_last(&line.text[1..]),
            Within::Wanted(false) | Within::Skipped => {}
        }
    }

    /// A line with an attribute: of the object that was begun, or the first of another.
    fn attribute(&mut self, report: &mut ReadReport, line: &Line<'_>) -> Result<(), ReadError> {
        let text = line.text;
        let colon = memchr::memchr(b':', text);
        let name = colon.map(|at| text[..at].trim_ascii());
        let value = colon.map_or(&b""[..], |at| &text[at + 1..]);
        let class = name.and_then(Class::of);
        // ARIN's networks have an OrgID, which begins an object of its own elsewhere.
        let begins = match self.within {
            Within::None => true,
            Within::Skipped | Within::Wanted(_) => class.is_some_and(|c| c != Class::Org),
        };
        if !begins {
            self.keep(name, value, line.whole);
            return Ok(());
        }
        // Some writer forgot the empty line.
        self.end(report)?;
        self.within = match (class, name) {
            (_, Some(name)) if name.contains(&0) => {
                report.count_bad(LineError::NotText, line.number, text);
                Within::None
            }
            (Some(class), _) => {
                self.object.begin(class, line.number, value);
                self.object.broken = (!line.whole).then_some(LineError::TooLong);
                Within::Wanted(true)
            }
            (None, Some(_)) => {
                report.skipped += 1;
                Within::Skipped
            }
            (None, None) => {
                report.count_bad(LineError::MissingFields, line.number, text);
                Within::None
            }
        };
        Ok(())
    }

    /// Keeps an attribute of the object that was begun, if it is wanted.
    fn keep(&mut self, name: Option<&[u8]>, value: &[u8], whole: bool) {
        let Within::Wanted(last) = &mut self.within else { return };
        let object = &mut self.object;
        let wanted = name.and_then(|name| object.class.wanted().iter().find(|w| name.eq_ignore_ascii_case(w.as_bytes())));
        *last = wanted.is_some();
        match wanted {
            Some(_) if !whole => object.broken = Some(LineError::TooLong),
            Some(_) if value.contains(&0) => object.broken = Some(LineError::NotText),
            Some(name) => object.keep(name, value),
            None if name.is_none() => object.broken = Some(LineError::MissingFields),
            None => {}
        }
    }

    /// Passes on the object that was begun, if it is wanted.
    fn end(&mut self, report: &mut ReadReport) -> Result<(), ReadError> {
        if let Within::Wanted(_) = std::mem::replace(&mut self.within, Within::None) {
            report.count_record(self.object.class.name());
            let outcome = match self.object.broken {
                Some(what) => Err(what),
                None => (self.take)(report, &self.object)?,
            };
            if let Err(what) = outcome {
                report.count_bad(what, self.object.line, self.object.key().as_bytes());
            }
        }
        Ok(())
    }
}

/// Reads a whole file, handing every object that is wanted to `take`, which says what is wrong with it; the report is not judged yet.
pub(super) fn read(
    report: &mut ReadReport,
    input: impl BufRead,
    take: impl FnMut(&mut ReadReport, &Object) -> Result<Result<(), LineError>, ReadError>,
) -> Result<(), ReadError> {
    let object = Object { class: Class::Net, line: 0, text: String::new(), values: Vec::new(), broken: None };
    let mut assembler = Assembler { object, within: Within::None, take };
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next(&report.source)? {
        report.lines += 1;
        assembler.line(report, &line)?;
    }
    assembler.end(report)
}
