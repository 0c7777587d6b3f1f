//! Predicts what other access points would measure of a subnet, for an owner that may move it.
//!
//! The prediction is made of what the swarm measured and expects.

use super::Knowledge;
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};

/// By how much an answer that was measured once may be off, as a share: other paths, other hours.
const MEASURED_ERROR: f64 = 0.15;

/// What is expected of an access point without having been measured is off by at least so much.
const MIN_EXPECTED_ERROR: f64 = 0.3;

/// What an access point would measure of a subnet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Foretold {
    /// Which access point.
    pub access_point: AccessPoint,
    /// The round trip in microseconds.
    pub rtt_us: f64,
    /// By how much that may be off, as a share.
    pub error: f64,
}

impl Knowledge {
    /// What these access points would measure of a subnet, the nearest first: those who measured it, and those of whom something can
    /// be expected. Nothing of a subnet that is near everywhere: there is no better place for it.
    pub(crate) fn foretell(&self, hierarchy: &Hierarchy, subnet: Subnet, access_points: &[AccessPoint]) -> Vec<Foretold> {
        if self.anycast(hierarchy, &subnet) {
            return Vec::new();
        }
        let measured = self.measurements(&subnet).filter(|(who, _)| access_points.contains(who));
        let mut foretold: Vec<Foretold> =
            measured.map(|(access_point, rtt_us)| Foretold { access_point, rtt_us: f64::from(rtt_us), error: MEASURED_ERROR }).collect();
        let in_ms = |known: &Foretold| Some((self.index(known.access_point)?, (known.rtt_us / 1000.0) as f32));
        let answers: Vec<(usize, f32)> = foretold.iter().filter_map(in_ms).collect();
        let unknown = access_points.iter().filter(|who| foretold.iter().all(|known| known.access_point != **who));
        let open: Vec<(AccessPoint, usize)> = unknown.filter_map(|who| Some((*who, self.index(*who)?))).collect();
        let indices: Vec<usize> = open.iter().map(|(_, index)| *index).collect();
        if !indices.is_empty() {
            let (columns, guesses) = self.hypotheses(hierarchy, subnet, &answers, &indices);
            for (column, (ms, spread)) in columns.into_iter().zip(guesses.means_ms().into_iter().zip(guesses.spreads())) {
                let error = f64::from(spread).max(MIN_EXPECTED_ERROR);
                foretold.push(Foretold { access_point: open[column].0, rtt_us: f64::from(ms) * 1000.0, error });
            }
        }
        foretold.sort_by(|a, b| a.rtt_us.total_cmp(&b.rtt_us).then(a.access_point.cmp(&b.access_point)));
        foretold
    }
}
