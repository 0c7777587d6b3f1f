//! Search for the member nearest to a subnet, with the fewest probes.

use super::{Knowledge, Step, Verdict};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};

/// One search for one subnet.
#[derive(Clone, Debug)]
pub struct Nearest {
    subnet: Subnet,
    price_us: u32,
    answers: Vec<(AccessPoint, Option<u32>)>,
}

impl Nearest {
    /// Begins for a subnet without an owner. A probe is worth its while if it can be expected to bring the owner nearer by
    /// `price_us` microseconds.
    pub fn new(subnet: Subnet, price_us: u32) -> Nearest {
        Nearest { subnet, price_us, answers: Vec::new() }
    }

    /// Notes what an access point's probe gave, in microseconds; none if it failed or was declined.
    pub fn answer(&mut self, from: AccessPoint, rtt_us: Option<u32>) {
        self.answers.push((from, rtt_us));
    }

    /// How many probes were answered so far.
    pub fn probes(&self) -> u16 {
        self.answers.len().min(usize::from(u16::MAX)) as u16
    }

    /// The answers so far, in the order in which they came.
    pub fn answers(&self) -> &[(AccessPoint, Option<u32>)] {
        &self.answers
    }

    /// What to do next. `live` are the access points that can be asked, never empty; `load` is an access point's share of the
    /// work, 1.0 the average. What was answered is to be told to the knowledge once the search has ended: until then the search
    /// itself remembers it.
    pub fn next(&mut self, hierarchy: &Hierarchy, knowledge: &Knowledge, live: &[AccessPoint], load: &dyn Fn(AccessPoint) -> f64) -> Step {
        let answered = self.answers.iter().filter_map(|(who, rtt_us)| Some((*who, (*rtt_us)?)));
        let known: Vec<(AccessPoint, u32)> = answered.filter(|(who, _)| live.contains(who)).collect();
        if live.len() == 1 {
            return Step::Settle(self.settle(live[0], &known));
        }
        let in_ms = |(who, rtt_us): &(AccessPoint, u32)| Some((knowledge.index(*who)?, *rtt_us as f32 / 1000.0));
        let answers: Vec<(usize, f32)> = known.iter().filter_map(in_ms).collect();
        if knowledge.anycast(hierarchy, &self.subnet) || knowledge.faster_than_light(&answers) {
            let least_busy = live.iter().min_by(|a, b| load(**a).total_cmp(&load(**b)).then(a.cmp(b)));
            return Step::Settle(Verdict { by_load: true, ..self.settle(*least_busy.unwrap_or(&live[0]), &known) });
        }
        let unasked = live.iter().filter(|who| self.answers.iter().all(|(asked, _)| asked != *who));
        let open: Vec<(AccessPoint, usize)> = unasked.filter_map(|who| Some((*who, knowledge.index(*who)?))).collect();
        let indices: Vec<usize> = open.iter().map(|(_, index)| *index).collect();
        let (columns, guesses) = knowledge.hypotheses(hierarchy, self.subnet, &answers, &indices);
        let best = known.iter().min_by_key(|(who, rtt_us)| (*rtt_us, *who)).copied();
        let best_ms = best.map_or(f32::INFINITY, |(_, rtt_us)| rtt_us as f32 / 1000.0);
        if let Some(worth) = guesses.most_worth(best_ms)
            && worth.gain_ms > self.price_us as f32 / 1000.0
        {
            return Step::Ask(open[columns[worth.column]].0);
        }
        let means = guesses.means_ms();
        let foretold = means.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map(|(column, ms)| (*ms, open[columns[column]].0));
        let owner = match (best, foretold) {
            (_, Some((ms, owner))) if ms < best_ms => owner,
            (Some((owner, _)), _) => owner,
            (None, _) => live[0],
        };
        Step::Settle(self.settle(owner, &known))
    }

    fn settle(&self, owner: AccessPoint, known: &[(AccessPoint, u32)]) -> Verdict {
        let rtt_us = known.iter().find(|(who, _)| *who == owner).map(|(_, rtt_us)| *rtt_us);
        let runner_up = known.iter().filter(|(who, _)| *who != owner).min_by_key(|(who, rtt_us)| (*rtt_us, *who)).map(|(who, _)| *who);
        Verdict { owner, rtt_us, runner_up, probes: self.probes(), by_load: false }
    }
}
