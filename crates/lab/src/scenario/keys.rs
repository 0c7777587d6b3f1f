//! One table of a scenario's file, read key by key.
//!
//! What is wrong is told with its line; so is a key that was never asked for.

use super::error::{Number, ScenarioError};
use nearcrawl_model::time::Millis;
use std::ops::RangeInclusive;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The longest duration, in milliseconds: a hundred years.
const MAX_DURATION: u64 = 100 * 366 * 86_400_000;

/// A table being read.
pub(super) struct Keys<'a> {
    text: &'a str,
    table: &'a DeTable<'a>,
    start: usize,
    asked: Vec<&'static str>,
}

/// The line in which this byte stands, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}

impl<'a> Keys<'a> {
    /// Parses a file.
    pub(super) fn root(text: &str) -> Result<Spanned<DeTable<'_>>, ScenarioError> {
        DeTable::parse(text).map_err(|why| {
            let start = why.span().map_or(0, |span| span.start);
            ScenarioError { line: line_of(text, start), message: format!("the line cannot be read as TOML: {}", why.message()) }
        })
    }

    /// The table at the top of the file.
    pub(super) fn new(text: &'a str, table: &'a DeTable<'a>) -> Keys<'a> {
        Keys { text, table, start: 0, asked: Vec::new() }
    }

    /// A table in a list of tables.
    pub(super) fn of(text: &'a str, value: &'a Spanned<DeValue<'a>>) -> Result<Keys<'a>, ScenarioError> {
        let start = value.span().start;
        let wrong = || ScenarioError { line: line_of(text, start), message: "this is a table: write [[at]], its keys below it".to_owned() };
        let table = value.get_ref().as_table().ok_or_else(wrong)?;
        Ok(Keys { text, table, start, asked: Vec::new() })
    }

    /// Where the table begins.
    pub(super) fn line(&self) -> usize {
        line_of(self.text, self.start)
    }

    /// What is wrong with the value of a key, or with the table if it has no such key.
    pub(super) fn wrong(&self, key: &str, message: &str) -> ScenarioError {
        let start = self.table.get(key).map_or(self.start, |value| value.span().start);
        ScenarioError { line: line_of(self.text, start), message: format!("{key}: {message}") }
    }

    /// The line of a key's value; 1 if it is not there.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(1, |value| line_of(self.text, value.span().start))
    }

    fn value(&mut self, key: &'static str) -> Option<&'a DeValue<'a>> {
        self.asked.push(key);
        self.table.get(key).map(Spanned::get_ref)
    }

    fn required(&mut self, key: &'static str, what: &str) -> Result<&'a DeValue<'a>, ScenarioError> {
        self.value(key).ok_or_else(|| self.wrong(key, &format!("this is missing: {what}")))
    }

    /// A member's number, if it is there.
    pub(super) fn member(&mut self, key: &'static str) -> Result<Option<Number>, ScenarioError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        integer(value).map(Some).ok_or_else(|| self.wrong(key, "write a member's number"))
    }

    /// A whole number that must be there.
    pub(super) fn number(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Result<u32, ScenarioError> {
        let allowed = format!("write a whole number from {} to {}", range.start(), range.end());
        let value = self.required(key, &allowed)?;
        integer(value).filter(|number| range.contains(number)).ok_or_else(|| self.wrong(key, &allowed))
    }

    /// A text, if it is there.
    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, ScenarioError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "write a text in quotes"))
    }

    /// One of these names, if it is there.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, names: &[(&str, T)]) -> Result<Option<T>, ScenarioError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| Some(*value));
        found.ok_or_else(|| {
            let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            self.wrong(key, &format!("nothing is called {text:?}; there are {}", names.join(", ")))
        })
    }

    /// A duration, if it is there.
    pub(super) fn duration(&mut self, key: &'static str) -> Result<Option<Millis>, ScenarioError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let duration = value.as_str().and_then(milliseconds);
        duration.map(Some).ok_or_else(|| self.wrong(key, DURATION))
    }

    /// A duration that may be negative, if it is there.
    pub(super) fn signed_duration(&mut self, key: &'static str) -> Result<Option<i64>, ScenarioError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let signed = |text: &str| match text.strip_prefix('-') {
            Some(text) => milliseconds(text).map(|duration| -(duration as i64)),
            None => milliseconds(text).map(|duration| duration as i64),
        };
        value.as_str().and_then(signed).map(Some).ok_or_else(|| self.wrong(key, DURATION))
    }

    /// A share, from 0 to 1, that must be there.
    pub(super) fn share(&mut self, key: &'static str) -> Result<f64, ScenarioError> {
        let allowed = "write a share from 0 to 1, like 0.1";
        let value = self.required(key, allowed)?;
        fraction(value).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| self.wrong(key, allowed))
    }

    /// The rate of a clock, if it is there.
    pub(super) fn rate(&mut self, key: &'static str) -> Result<Option<f64>, ScenarioError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let rate = fraction(value).filter(|rate| (0.1..=10.0).contains(rate));
        rate.map(Some).ok_or_else(|| self.wrong(key, "write a rate from 0.1 to 10, like 1.01"))
    }

    /// A list of members, or one of them.
    pub(super) fn members(&mut self, key: &'static str) -> Result<Vec<Number>, ScenarioError> {
        let value = self.required(key, MEMBERS)?;
        members(value).ok_or_else(|| self.wrong(key, MEMBERS))
    }

    /// A list of pairs of members.
    pub(super) fn pairs(&mut self, key: &'static str) -> Result<Vec<(Number, Number)>, ScenarioError> {
        let allowed = "write pairs of two members each, like [[0, 1], [2, 3]]";
        let value = self.required(key, allowed)?;
        let pair = |value: &Spanned<DeValue<'_>>| match members(value.get_ref())?.as_slice() {
            [one, other] if one != other => Some((*one, *other)),
            _ => None,
        };
        let pairs: Option<Vec<_>> = value.as_array().and_then(|list| list.iter().map(pair).collect());
        pairs.filter(|pairs| !pairs.is_empty()).ok_or_else(|| self.wrong(key, allowed))
    }

    /// A list of groups of members.
    pub(super) fn groups(&mut self, key: &'static str) -> Result<Vec<Vec<Number>>, ScenarioError> {
        let allowed = "write groups of members, like [[0, 1, 2], [3, 4]]";
        let value = self.required(key, allowed)?;
        let group = |value: &Spanned<DeValue<'_>>| value.get_ref().as_array().and_then(|_| members(value.get_ref()));
        let groups: Option<Vec<_>> = value.as_array().and_then(|list| list.iter().map(group).collect());
        groups.filter(|groups| !groups.is_empty()).ok_or_else(|| self.wrong(key, allowed))
    }

    /// The tables of a list; none if the key is not there.
    pub(super) fn tables(&mut self, key: &'static str) -> Result<Vec<&'a Spanned<DeValue<'a>>>, ScenarioError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.wrong(key, "this is a list of tables: write [[at]], its keys below it"))?;
        Ok(list.iter().collect())
    }

    /// Refuses what was never asked for.
    pub(super) fn finish(self) -> Result<(), ScenarioError> {
        let unknown = self.table.keys().filter(|key| !self.asked.contains(&key.get_ref().as_ref())).min_by_key(|key| key.span().start);
        match unknown {
            None => Ok(()),
            Some(key) => Err(ScenarioError {
                line: line_of(self.text, key.span().start),
                message: format!("there is no key {:?} here; there are {}", key.get_ref(), self.asked.join(", ")),
            }),
        }
    }
}

const DURATION: &str = "write a duration of at most 36600d, like \"90s\", \"15m10s\", \"2h\" or \"400d\"";
const MEMBERS: &str = "write a list of members' numbers, like [0, 3]";

fn integer(value: &DeValue<'_>) -> Option<u32> {
    let integer = value.as_integer()?;
    u32::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn fraction(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(float) => float.as_str().parse().ok(),
        None => integer(value).map(f64::from),
    }
}

fn members(value: &DeValue<'_>) -> Option<Vec<Number>> {
    if let Some(one) = integer(value) {
        return Some(vec![one]);
    }
    let list = value.as_array()?;
    list.iter().map(|item| integer(item.get_ref())).collect::<Option<Vec<_>>>().filter(|list| !list.is_empty())
}

/// A duration like `15m10s`, each unit at most once and the larger first.
fn milliseconds(text: &str) -> Option<Millis> {
    const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let (mut rest, mut total, mut largest) = (text, 0_u64, 0);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let letters = rest[digits..].len() - rest[digits..].trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let unit = UNITS[largest..].iter().position(|(name, _)| *name == &rest[digits..digits + letters])? + largest;
        let part = rest[..digits].parse::<u64>().ok()?.checked_mul(UNITS[unit].1)?;
        total = total.checked_add(part)?;
        largest = unit + 1;
        rest = &rest[digits + letters..];
    }
    (!text.is_empty() && total <= MAX_DURATION).then_some(total)
}
