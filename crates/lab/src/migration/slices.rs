//! Round-trip times of real paths in the course of time: a folder of matrices, one for each moment, in seconds, for all pairs of nodes.

use super::super::reading::{InputError, Lines};
use nearcrawl_model::view::counted;
use std::{io::Read, sync::Arc};

/// The most round-trip times that are kept: 400 MB.
const MAX_CELLS: usize = 100_000_000;

/// The most bytes of one matrix.
const MAX_BYTES: u64 = 1 << 26;

/// The most access points whose hours are told.
const MAX_ACCESS_POINTS: usize = 10_000;

/// Hours a day of each access point, from records `access point,hours`; the first line may name the columns. 24 where none is told.
pub fn hours(file: &str, input: impl Read) -> Result<Vec<f64>, InputError> {
    let (mut lines, mut hours, mut first) = (Lines::new(file, input), Vec::new(), true);
    while let Some(line) = lines.next()? {
        let [who, told] = [0, 1].map(|column| line.get(column).unwrap_or_default().trim());
        let headings = std::mem::take(&mut first) && told.parse::<f64>().is_err();
        if headings {
            continue;
        }
        let who = who.parse::<usize>().ok().filter(|who| (1..=MAX_ACCESS_POINTS).contains(who));
        let who = who.ok_or_else(|| lines.bad("an access point is a number from 1".to_owned()))?;
        let told = told.parse::<f64>().ok().filter(|told| *told > 0.0 && *told <= 24.0);
        let told = told.ok_or_else(|| lines.bad("hours a day are a number above 0, up to 24".to_owned()))?;
        if hours.len() < who {
            hours.resize(who, 24.0);
        }
        hours[who - 1] = told;
    }
    if hours.is_empty() { Err(lines.empty("access_point,hours")) } else { Ok(hours) }
}

/// Matrices in the order of time, all between the same nodes. Where one has no measurement the one before holds, else the next.
#[derive(Clone, Debug)]
pub struct Slices {
    nodes: usize,
    /// All slices, one after another; 0 where a pair was never measured.
    cells: Arc<Vec<f32>>,
}

/// Reads them one by one.
#[derive(Debug, Default)]
pub struct Reader {
    nodes: usize,
    cells: Vec<f32>,
}

impl Reader {
    /// The next matrix: a line for each node, seconds to each node, separated by tabs or spaces; 0 is no measurement.
    pub fn add(&mut self, file: &str, input: impl Read) -> Result<(), InputError> {
        let mut text = String::new();
        let io = |error| InputError::Io { file: file.to_owned(), error };
        input.take(MAX_BYTES).read_to_string(&mut text).map_err(io)?;
        let mut count = 0;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |what: String| InputError::Line { file: file.to_owned(), line: number as u64 + 1, what };
            let before = self.cells.len();
            for word in line.split_whitespace() {
                let seconds = word.parse::<f32>().ok().filter(|seconds| (0.0..=3_600.0).contains(seconds));
                self.cells.push(seconds.ok_or_else(|| bad(format!("{word:?} is no round-trip time in seconds")))?);
            }
            if self.cells.len() > MAX_CELLS {
                return Err(InputError::TooMany {
                    file: file.to_owned(),
                    most: MAX_CELLS,
                    what: "round-trip times, with the slices before",
                });
            }
            let cells = self.cells.len() - before;
            if self.nodes == 0 {
                self.nodes = cells;
            }
            if cells != self.nodes {
                return Err(bad(format!("{} for {}", counted(cells, "cell"), counted(self.nodes, "node"))));
            }
            count += 1;
        }
        if count == 0 || count != self.nodes {
            let what = format!("{} for {}; a slice is a square matrix", counted(count, "line"), counted(self.nodes, "node"));
            return Err(InputError::Line { file: file.to_owned(), line: count as u64, what });
        }
        Ok(())
    }

    /// All that was read; none if that was nothing.
    pub fn finish(self) -> Option<Slices> {
        let Reader { nodes, mut cells } = self;
        let pairs = nodes * nodes;
        if cells.is_empty() {
            return None;
        }
        let count = cells.len() / pairs;
        for pair in 0..pairs {
            let mut fill = |order: &mut dyn Iterator<Item = usize>| {
                let mut known = 0.0;
                for slice in order {
                    let cell = &mut cells[slice * pairs + pair];
                    if *cell > 0.0 {
                        known = *cell;
                    }
                    *cell = known;
                }
            };
            fill(&mut (0..count));
            fill(&mut (0..count).rev());
        }
        Some(Slices { nodes, cells: Arc::new(cells) })
    }
}

impl Slices {
    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many slices.
    pub fn count(&self) -> usize {
        self.cells.len() / (self.nodes * self.nodes)
    }

    /// Whether there was ever a measurement of this pair.
    pub fn knows(&self, line: usize, column: usize) -> bool {
        self.seconds(0, line, column) > 0.0
    }

    /// The round trip in that slice; the last one holds on after the end.
    pub fn seconds(&self, slice: usize, line: usize, column: usize) -> f64 {
        let slice = slice.min(self.count() - 1);
        f64::from(self.cells[(slice * self.nodes + line) * self.nodes + column])
    }
}
