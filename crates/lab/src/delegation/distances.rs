//! Distances between nodes: measured round-trip times, or twice the distance on a plane.

use super::nodes::Nodes;
use crate::reading::{InputError, Lines};
use std::{collections::BTreeMap, io::Read};

/// The most round-trip times that are kept: 400 MB.
pub(crate) const MAX_CELLS: usize = 100_000_000;

/// The longest round-trip time that is accepted, in milliseconds; it fits the microseconds of a probe's answer.
const MAX_MS: f32 = 60_000.0;

/// What the first line of a file of round-trip times may look like, for error messages.
const EXAMPLE: &str = "source,target,ms";

/// What is not known.
const UNKNOWN: f32 = f32::NAN;

/// The round-trip times between nodes, which it names by their index.
#[derive(Clone, Debug)]
pub enum Distances {
    /// As measured: one row for each node that probed, one cell for each node.
    Measured {
        /// Rows of round-trip times in milliseconds, by the index of the probing node.
        rows: BTreeMap<usize, Vec<f32>>,
        /// Lines about nodes that are not in the nodes' file.
        strangers: u64,
    },
    /// Twice the Euclidean distance of the nodes' places.
    Plane(Vec<(f64, f64)>),
}

impl Distances {
    /// Reads `source,target,ms` records. Lines about unknown nodes are counted and passed over, so that a part of the nodes may be used
    /// with the whole file; of several measurements of one direction the least is kept.
    pub fn read(file: &str, input: impl Read, nodes_file: &str, nodes: &Nodes) -> Result<Distances, InputError> {
        let mut lines = Lines::new(file, input);
        let (mut rows, mut strangers, mut first) = (BTreeMap::<usize, Vec<f32>>::new(), 0, true);
        while let Some(line) = lines.next()? {
            let [source, target, ms] = [0, 1, 2].map(|column| line.get(column).unwrap_or_default().trim());
            let headings = std::mem::take(&mut first) && ms.parse::<f32>().is_err();
            if line.len() < 3 {
                return Err(InputError::Column { file: file.into(), column: "ms".into(), example: EXAMPLE });
            }
            if headings {
                continue;
            }
            let believed = ms.parse::<f32>().ok().filter(|ms| (0.0..=MAX_MS).contains(ms));
            let ms = believed.ok_or_else(|| lines.bad(format!("{ms:?} is no round-trip time in milliseconds")))?;
            let (Some(source), Some(target)) = (nodes.find(source), nodes.find(target)) else {
                strangers += 1;
                continue;
            };
            let count = nodes.list().len();
            if !rows.contains_key(&source) && (rows.len() + 1) * count > MAX_CELLS {
                return Err(InputError::TooMany { file: file.into(), most: MAX_CELLS, what: "pairs of nodes" });
            }
            let cell = &mut rows.entry(source).or_insert_with(|| vec![UNKNOWN; count])[target];
            // The minimum with something unknown is the other.
            *cell = cell.min(ms);
        }
        match (rows.is_empty(), strangers) {
            (false, _) => Ok(Distances::Measured { rows, strangers }),
            (true, 0) => Err(lines.empty(EXAMPLE)),
            (true, _) => Err(InputError::Strangers { file: file.into(), nodes: nodes_file.into() }),
        }
    }

    /// Takes the nodes' places on a plane; nodes without one stand at its origin.
    pub fn of_places(nodes: &Nodes) -> Distances {
        Distances::Plane(nodes.list().iter().map(|node| node.place.unwrap_or_default()).collect())
    }

    /// What `source` measured when it probed `target`, in milliseconds.
    pub(crate) fn probe_ms(&self, source: usize, target: usize) -> Option<f32> {
        let ms = match self {
            Distances::Measured { rows, .. } => rows.get(&source).map_or(UNKNOWN, |row| row[target]),
            Distances::Plane(places) => {
                let ((ax, ay), (bx, by)) = (places[source], places[target]);
                (2.0 * (ax - bx).hypot(ay - by)) as f32
            }
        };
        (!ms.is_nan()).then_some(ms)
    }

    /// The round-trip time between two nodes: the lesser of both directions, or the one that was measured.
    pub(crate) fn between_ms(&self, a: usize, b: usize) -> Option<f32> {
        match (self.probe_ms(a, b), self.probe_ms(b, a)) {
            (Some(there), Some(back)) => Some(there.min(back)),
            (there, back) => there.or(back),
        }
    }

    /// Whether this node probed any other.
    pub(crate) fn probes_of(&self, source: usize) -> bool {
        match self {
            Distances::Measured { rows, .. } => rows.contains_key(&source),
            Distances::Plane(_) => true,
        }
    }

    /// How many lines were about nodes that are not in the nodes' file.
    pub fn strangers(&self) -> u64 {
        match self {
            Distances::Measured { strangers, .. } => *strangers,
            Distances::Plane(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Nodes {
        Nodes::read("nodes", "id,ipv4,x_ms,y_ms\na,192.0.2.1,0,0\nb,192.0.2.2,3,4\nc,192.0.2.3,0,1\n".as_bytes(), true).unwrap()
    }

    fn read(text: &str) -> Result<Distances, InputError> {
        Distances::read("rtt.csv", text.as_bytes(), "nodes.csv", &nodes())
    }

    #[test]
    fn the_lesser_direction_and_the_least_measurement_count() {
        let distances = read("source_probe_id,target_probe_id,min_rtt_ms\na,b,9.5\na,b,9.25\nb,a,9\na,z,1\n").unwrap();
        assert_eq!((distances.probe_ms(0, 1), distances.between_ms(0, 1), distances.between_ms(0, 2)), (Some(9.25), Some(9.0), None));
        assert_eq!((distances.strangers(), distances.probes_of(1), distances.probes_of(2)), (1, true, false));
    }

    #[test]
    fn the_line_of_headings_may_be_missing() {
        assert_eq!(read("a,b,9.5\n").unwrap().probe_ms(0, 1), Some(9.5));
    }

    #[test]
    fn a_round_trip_on_a_plane_is_there_and_back() {
        let distances = Distances::of_places(&nodes());
        assert_eq!((distances.probe_ms(0, 1), distances.between_ms(2, 0)), (Some(10.0), Some(2.0)));
    }

    #[test]
    fn every_mistake_is_named_with_file_line_and_what_to_do() {
        let cases = [
            ("source,target,ms\n", "rtt.csv is empty"),
            ("source,target,ms\na,b,fast\n", "rtt.csv, line 2: \"fast\" is no round-trip time"),
            ("a,b,1\na,b,-1\n", "line 2"),
            ("a,b,1\na,b,inf\n", "line 2"),
            ("a,b,1\na,b\n", "rtt.csv, line 2: 2 cells"),
            ("a,b\n", "no column ms"),
            ("x,y,1\n", "do the two files belong together"),
        ];
        for (text, told) in cases {
            let refusal = read(text).unwrap_err().to_string();
            assert!(refusal.contains(told), "{refusal} for {text:?}");
        }
    }
}
