//! Reads a parsed document against the keys that are asked for, and remembers every problem.

use super::{
    error::Problem,
    renamed,
    values::{Parsed, text},
};
use std::path::{Path, PathBuf};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// How much of a wrong value a message repeats, in characters.
const MAX_QUOTE: usize = 60;

/// A document being read. Asking for a key is what makes it known; what was never asked for is unknown.
pub(super) struct Reader<'a> {
    text: &'a str,
    root: &'a DeTable<'a>,
    directory: PathBuf,
    known: Vec<(&'static str, &'static str)>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// Reads `root`, parsed from `text`; paths in it are relative to `directory`.
    pub(super) fn new(text: &'a str, root: &'a DeTable<'a>, directory: &Path) -> Reader<'a> {
        Reader { text, root, directory: directory.to_owned(), known: Vec::new(), problems: Vec::new() }
    }

    /// The section of that name; the empty name is the top of the file.
    pub(super) fn section<'r>(&'r mut self, name: &'static str) -> Section<'r, 'a> {
        let mut table = Some(self.root);
        if !name.is_empty() {
            self.known.push(("", name));
            let found = self.root.get(name);
            table = found.and_then(|value| value.get_ref().as_table());
            if let (Some(value), None) = (found, table) {
                self.complain(value, name.to_owned(), format!("this is a section: write [{name}] on a line of its own, its keys below it"));
            }
        }
        Section { reader: self, name, table }
    }

    fn complain<T>(&mut self, at: &Spanned<T>, name: String, message: String) {
        let quote = self.text.get(at.span()).unwrap_or_default();
        let mut short: String = quote.chars().take(MAX_QUOTE).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if short.len() < quote.len() {
            short.push('…');
        }
        self.problems.push(Problem { line: Some(line_of(self.text, at.span().start)), what: format!("{name} = {short}"), message });
    }

    /// Every (section, key) that was asked for so far.
    #[cfg(test)]
    pub(super) fn known(&self) -> &[(&'static str, &'static str)] {
        &self.known
    }

    /// Adds what was never asked for to the problems, and gives all of them in the order of the lines.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        let mut unknown = Vec::new();
        let root = self.root;
        for (key, value) in root {
            match value.get_ref().as_table() {
                Some(table) if self.known.contains(&("", key.get_ref().as_ref())) => {
                    for inner in table.keys() {
                        unknown.extend(self.unknown(key.get_ref(), inner.get_ref(), inner.span().start));
                    }
                }
                _ => unknown.extend(self.unknown("", key.get_ref(), key.span().start)),
            }
        }
        self.problems.extend(unknown);
        self.problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        self.problems
    }

    fn unknown(&self, section: &str, key: &str, start: usize) -> Option<Problem> {
        if self.known.contains(&(section, key)) {
            return None;
        }
        let message = match (renamed::name_now(section, key), self.nearest(section, key)) {
            (Some(now), _) => format!("`{key}` is called `{now}` now"),
            (None, Some(hint)) => format!("there is no such key; {hint}"),
            (None, None) => "there is no such key; nearcrawl.example.toml lists all there are".to_owned(),
        };
        Some(Problem { line: Some(line_of(self.text, start)), what: full_name(section, key), message })
    }

    /// A key of that name elsewhere, or else the key of this section that is written most like it.
    fn nearest(&self, section: &str, key: &str) -> Option<String> {
        let elsewhere = self.known.iter().find(|(s, k)| *k == key && *s != section);
        if let Some((home, _)) = elsewhere {
            let place = if home.is_empty() { "to the top of the file, before every section".to_owned() } else { format!("under [{home}]") };
            return Some(format!("`{key}` belongs {place}"));
        }
        let alike = |known: &str| strsim::damerau_levenshtein(known, key);
        let near = self.known.iter().filter(|(s, _)| *s == section).min_by_key(|(_, k)| alike(k))?;
        let most_changes = (key.chars().count() / 2).clamp(1, 4);
        (alike(near.1) <= most_changes).then(|| format!("did you mean `{}`?", near.1))
    }
}

/// One section being read.
pub(super) struct Section<'r, 'a> {
    reader: &'r mut Reader<'a>,
    name: &'static str,
    table: Option<&'a DeTable<'a>>,
}

impl<'a> Section<'_, 'a> {
    fn find(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.reader.known.push((self.name, key));
        self.value(key)
    }

    /// What is written under `key`, or under the name it had: that name is reported once, and causes no further problems.
    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        let table = self.table?;
        table.get(key).or_else(|| table.get(renamed::name_before(self.name, key)?))
    }

    fn parse<T>(&mut self, key: &str, value: &Spanned<DeValue<'_>>, parse: impl FnOnce(&DeValue<'_>) -> Parsed<T>) -> Option<T> {
        match parse(value.get_ref()) {
            Ok(parsed) => Some(parsed),
            Err(message) => {
                self.reader.complain(value, full_name(self.name, key), message);
                None
            }
        }
    }

    /// The value of `key`, or `default` if the key is not there or its value is wrong.
    pub(super) fn take<T>(&mut self, key: &'static str, default: T, parse: impl FnOnce(&DeValue<'_>) -> Parsed<T>) -> T {
        let Some(value) = self.find(key) else { return default };
        self.parse(key, value, parse).unwrap_or(default)
    }

    /// The values of the list `key`, empty if it is not there; a wrong item is reported in its own line.
    pub(super) fn list<T>(&mut self, key: &'static str, default: Vec<T>, parse: impl Fn(&DeValue<'_>) -> Parsed<T>) -> Vec<T> {
        let Some(value) = self.find(key) else { return default };
        let Some(items) = value.get_ref().as_array() else {
            let message = "write a list in square brackets, like [\"one\", \"two\"]".to_owned();
            self.reader.complain(value, full_name(self.name, key), message);
            return default;
        };
        items.iter().filter_map(|item| self.parse(key, item, &parse)).collect()
    }

    /// Like [`Section::take`] for a path: relative ones are relative to the configuration's own directory.
    pub(super) fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        let directory = self.reader.directory.clone();
        self.take(key, None, |value| text(value).map(|text| Some(directory.join(text))))
    }

    /// Like [`Section::list`] for paths.
    pub(super) fn paths(&mut self, key: &'static str) -> Vec<PathBuf> {
        let directory = self.reader.directory.clone();
        self.list(key, Vec::new(), |value| text(value).map(|text| directory.join(text)))
    }

    /// Reports values that are allowed alone but not together; the line is that of the first of `keys` that is there.
    pub(super) fn contradicts(&mut self, keys: &[&str], message: String) {
        let written = keys.iter().find_map(|key| self.value(key).map(|value| (*key, value)));
        match written {
            Some((key, value)) => self.reader.complain(value, full_name(self.name, key), message),
            None => self.reader.problems.push(Problem { line: None, what: self.name.to_owned(), message }),
        }
    }
}

fn full_name(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

/// The line, counted from 1, of a byte position.
pub(super) fn line_of(text: &str, position: usize) -> usize {
    text.bytes().take(position).filter(|byte| *byte == b'\n').count() + 1
}
