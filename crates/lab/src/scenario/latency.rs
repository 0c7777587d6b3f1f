//! How far members and servers are from each other where a scenario says so: all alike, or as measured somewhere.

use crate::{
    reading::{InputError, Lines},
    rng::KeyedRng,
    swarm::Latencies,
};
use csv::StringRecord;
use std::{collections::BTreeMap, io::Read, net::IpAddr};

/// Everybody is 1 ms from everybody and everything.
pub(super) struct Equal;

impl Latencies for Equal {
    fn to_server(&self, _: usize, _: IpAddr) -> u32 {
        1_000
    }

    fn between(&self, _: usize, _: usize) -> u32 {
        1_000
    }
}

/// Measured round-trip times between nodes: members stand at the nodes that measured, one after another, and each subnet at one of all.
pub struct Matrix {
    sources: Vec<usize>,
    nodes: usize,
    us: BTreeMap<(usize, usize), u32>,
}

/// What is taken for a pair that was not measured, in microseconds.
const UNMEASURED: u32 = 150_000;

/// The longest round-trip time that is believed, in milliseconds.
const MAX_MS: f64 = 60_000.0;

impl Matrix {
    /// Reads round-trip times in milliseconds: `source,target,ms` records, or as many rows as columns with zeros in the diagonal, with or
    /// without names of the nodes in the first row and column.
    ///
    /// # Errors
    ///
    /// The line that is none of these.
    pub fn read(file: &str, input: impl Read) -> Result<Matrix, InputError> {
        let mut lines = Lines::new(file, input);
        let (mut rows, mut count, mut records, mut bad) = (Vec::new(), 0_usize, Records::default(), None);
        while let Some(line) = lines.next()? {
            count += 1;
            if !records.add(&line, count == 1) {
                bad.get_or_insert(lines.bad("this is no source,target,ms".to_owned()));
            }
            // A table is at most one row higher than it is wide.
            if rows.len() <= line.len() {
                rows.push(line);
            }
        }
        if let Some(table) = (rows.len() == count).then(|| table(&rows)).flatten() {
            return Ok(table);
        }
        match bad {
            Some(why) => Err(why),
            None if records.sources.is_empty() => Err(lines.empty("source,target,ms")),
            None => Ok(Matrix { sources: records.sources, nodes: records.nodes.len(), us: records.us }),
        }
    }

    fn us(&self, one: usize, other: usize) -> u32 {
        let known = self.us.get(&(one, other)).or_else(|| self.us.get(&(other, one)));
        if one == other { 200 } else { known.copied().unwrap_or(UNMEASURED) }
    }

    fn node_of(&self, member: usize) -> usize {
        self.sources[member % self.sources.len()]
    }
}

/// A round-trip time in microseconds, from a cell that holds milliseconds.
fn microseconds(cell: Option<&str>) -> Option<u32> {
    let ms = cell?.trim().parse::<f64>().ok().filter(|ms| (0.0..=MAX_MS).contains(ms))?;
    Some((ms * 1_000.0) as u32)
}

/// What records say.
#[derive(Default)]
struct Records {
    nodes: BTreeMap<String, usize>,
    sources: Vec<usize>,
    us: BTreeMap<(usize, usize), u32>,
}

impl Records {
    /// Takes a record in; false if it is none. Headings are passed over.
    fn add(&mut self, line: &StringRecord, is_first: bool) -> bool {
        let Some(measured) = microseconds(line.get(2)).filter(|_| line.len() == 3) else { return is_first && line.len() == 3 };
        let [source, target] = [0, 1].map(|column| {
            let next = self.nodes.len();
            *self.nodes.entry(line.get(column).unwrap_or_default().trim().to_owned()).or_insert(next)
        });
        if !self.sources.contains(&source) {
            self.sources.push(source);
        }
        // Of several measurements the least.
        self.us.entry((source, target)).and_modify(|known| *known = measured.min(*known)).or_insert(measured);
        true
    }
}

/// As many rows as columns, all numbers, zeros in the diagonal; a row and a column of names may stand before them.
fn table(rows: &[StringRecord]) -> Option<Matrix> {
    let named = usize::from(rows.len() == rows.first()?.len() && microseconds(rows[0].get(0)) != Some(0));
    let nodes = rows.len() - named;
    let mut us = BTreeMap::new();
    for (one, row) in rows.iter().skip(named).enumerate() {
        if row.len() != rows.len() {
            return None;
        }
        for other in 0..nodes {
            let measured = microseconds(row.get(other + named))?;
            if one == other && measured != 0 {
                return None;
            }
            us.insert((one, other), measured);
        }
    }
    (nodes > 0).then(|| Matrix { sources: (0..nodes).collect(), nodes, us })
}

impl Latencies for Matrix {
    fn to_server(&self, from: usize, address: IpAddr) -> u32 {
        let bits = if let IpAddr::V4(address) = address { u32::from(address) >> 8 } else { 0 };
        self.us(self.node_of(from), KeyedRng::new(bits.into()).below(self.nodes as u64) as usize)
    }

    fn between(&self, one: usize, other: usize) -> u32 {
        self.us(self.node_of(one), self.node_of(other))
    }
}
