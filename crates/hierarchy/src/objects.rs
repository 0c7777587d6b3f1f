//! Where does one WHOIS object end and the next begin? Attributes of the objects that are wanted; all others are skipped unread.
//!
//! ```text
//! inetnum:      196.207.3.172 - 196.207.3.175      the first attribute names the class
//! descr:        a value
//!               that goes on                       a line that begins with a blank, a TAB or + goes on
//! % a comment
//!                                                  an empty line ends the object
//! ```
//!
//! The registries' own form (RPSL) and ARIN's differ in their names only. Persons, roles, maintainers and whatever else is no network and no
//! organisation never gets further than its first word: no personal data is taken in.

use super::{
    lines::Lines,
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

/// Reads a whole file, handing every object that is wanted to `take`, which says what is wrong with it; the report is not judged yet.
pub(super) fn read(
    report: &mut ReadReport,
    input: impl BufRead,
    mut take: impl FnMut(&mut ReadReport, &Object) -> Result<Result<(), LineError>, ReadError>,
) -> Result<(), ReadError> {
    enum Within {
        /// After an empty line: the next attribute begins an object.
        None,
        /// In an object of a class that is skipped.
        Skipped,
        /// In an object that is kept; whether its last attribute is kept.
        Wanted(bool),
    }
    let mut object = Object { class: Class::Net, line: 0, text: String::new(), values: Vec::new(), broken: None };
    let mut within = Within::None;
    let mut lines = Lines::new(input);
    let mut done = |report: &mut ReadReport, object: &Object| {
        report.count_record(object.class.name());
        let outcome = match object.broken {
            Some(what) => Err(what),
            None => take(report, object)?,
        };
        if let Err(what) = outcome {
            report.count_bad(what, object.line, object.key().as_bytes());
        }
        Ok(())
    };
    while let Some(line) = lines.next(&report.source)? {
        report.lines += 1;
        let text = line.text;
        match text.first() {
            Some(b'%' | b'#') => continue,
            None => {}
            Some(_) if text.trim_ascii().is_empty() => {}
            Some(b' ' | b'\t' | b'+') => {
                match within {
                    Within::None => report.count_bad(LineError::MissingFields, line.number, text),
                    Within::Wanted(true) => object.continue_last(&text[1..]),
                    Within::Wanted(false) | Within::Skipped => {}
                }
                continue;
            }
            Some(_) => {
                let colon = memchr::memchr(b':', text);
                let name = colon.map(|at| text[..at].trim_ascii());
                let value = colon.map_or(&b""[..], |at| &text[at + 1..]);
                let class = name.and_then(Class::of);
                // ARIN's networks have an OrgID, which begins an object of its own elsewhere.
                let begins = match within {
                    Within::None => true,
                    Within::Skipped | Within::Wanted(_) => class.is_some_and(|c| c != Class::Org),
                };
                if !begins {
                    if let Within::Wanted(last) = &mut within {
                        let wanted = name.and_then(|name| object.class.wanted().iter().find(|w| name.eq_ignore_ascii_case(w.as_bytes())));
                        *last = wanted.is_some();
                        match wanted {
                            Some(_) if !line.whole => object.broken = Some(LineError::TooLong),
                            Some(_) if value.contains(&0) => object.broken = Some(LineError::NotText),
                            Some(name) => object.keep(name, value),
                            None if name.is_none() => object.broken = Some(LineError::MissingFields),
                            None => {}
                        }
                    }
                    continue;
                }
                // Some writer forgot the empty line.
                if let Within::Wanted(_) = within {
                    done(report, &object)?;
                }
                within = match (class, name) {
                    (_, Some(name)) if name.contains(&0) => {
                        report.count_bad(LineError::NotText, line.number, text);
                        Within::None
                    }
                    (Some(class), _) => {
                        object.begin(class, line.number, value);
                        object.broken = (!line.whole).then_some(LineError::TooLong);
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
                continue;
            }
        }
        // Here the line was empty.
        if let Within::Wanted(_) = within {
            done(report, &object)?;
        }
        within = Within::None;
    }
    if let Within::Wanted(_) = within {
        done(report, &object)?;
    }
    Ok(())
}
