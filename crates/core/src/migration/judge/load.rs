//! Load of this access point, the price of a second of its time, and the subnets that it gives away.

use super::Rule;
use crate::{
    context::Context,
    crawler::TICK,
    migration::{
        Judgement, LoadPrice, ShedCandidate,
        handover::{Proposal, Surroundings},
        shed_load,
    },
    signal::Signal,
};
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use std::collections::BTreeMap;

/// How often an access point's load is looked at, in ticks: once a minute.
const LOAD_EVERY: u64 = 600;

/// A member that is busy for less than this share of its time is not loaded at all: then only nearness counts.
const UNLOADED: f64 = 0.5;

/// The load of this access point.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Requests under way, added up over the ticks since the load was looked at.
    under_way: u64,
    /// The share of its time for which it was busy, 0 to 1.
    busy: f64,
    price: LoadPrice,
}

/// The load of every member, as it was looked at just now.
#[derive(Debug)]
pub(crate) struct Loads {
    /// The share of our time for which we were busy, 0 to 1.
    own: f64,
    /// The same of the swarm on average.
    average: f64,
    /// The same of the others, as they told.
    told: BTreeMap<AccessPoint, f64>,
    /// Request time that this access point had since the load was looked at, in microseconds.
    slots_us: f64,
}

impl Load {
    /// What a second of our time is worth.
    pub(crate) fn price(&self) -> LoadPrice {
        self.price
    }

    /// Our load and our price in thousandths, as they are told.
    pub(crate) fn told(&self) -> (u32, u32) {
        let permille = |share: f64| (share * 1000.0).round() as u32;
        (permille(self.busy), permille(self.price.factor()))
    }

    /// Counts what is under way; now and then looks at how busy we were, and what a second of our time is worth therefore.
    pub(crate) fn tick(&mut self, cx: &mut Context, around: &Surroundings<'_>) -> Option<Loads> {
        self.under_way += around.crawl.fetches().scheduler().busy() as u64;
        if !cx.rounds.is_multiple_of(LOAD_EVERY) {
            return None;
        }
        let parallel = around.crawl.fetches().scheduler().politeness().parallel.max(1) as f64;
        let own = std::mem::take(&mut self.under_way) as f64 / LOAD_EVERY as f64 / parallel;
        let share_told = |who| around.report.roll_up_of(&who).map(|(told, _)| (who, f64::from(told.busy_permille) / 1000.0));
        let told: BTreeMap<AccessPoint, f64> = around.others(cx.me).filter_map(share_told).collect();
        let all = told.values().map(|share| share.clamp(UNLOADED, 1.0)).sum::<f64>() + own.max(UNLOADED);
        let average = all / (told.len() + 1) as f64;
        self.busy = own;
        self.price = if own < UNLOADED { self.price.relaxed() } else { self.price.after(own, average) };
        cx.signal(Signal::RollUpChanged);
        Some(Loads { own, average, told, slots_us: (LOAD_EVERY * TICK) as f64 * 1000.0 * parallel })
    }
}

impl Loads {
    /// A subnet that could go: its requests took so long since the load was looked at, and it was judged like this.
    pub(super) fn candidate(
        &self,
        unit: Subnet,
        spent_us: f64,
        judged: &Judgement<AccessPoint>,
    ) -> Option<ShedCandidate<Subnet, AccessPoint>> {
        let Judgement { seconds, rival: Some(rival), .. } = judged else { return None };
        let here = spent_us / self.slots_us;
        Some(ShedCandidate { unit, arm: rival.arm, here, there: here * rival.seconds / seconds, worth: rival.worth })
    }

    /// If we are too busy, which subnets go to others who are not, as far as they told.
    pub(crate) fn shed(mut self, cx: &Context, candidates: Vec<ShedCandidate<Subnet, AccessPoint>>) -> Vec<Proposal> {
        if cx.settings.migration.rule != Rule::Nearcrawl || self.own < UNLOADED {
            return Vec::new();
        }
        let (own, average) = (self.own, self.average);
        let leaving = shed_load(own, average, candidates, |to, there| {
            let Some(share) = self.told.get_mut(to) else { return false };
            let room = *share + there <= average;
            *share += if room { there } else { 0.0 };
            room
        });
        let why = format!("{} is too busy: {:.0} % of its time, the swarm {:.0} %", cx.me.short(), own * 100.0, average * 100.0);
        leaving.into_iter().map(|(subnet, to)| Proposal { subnet, to, why: why.clone() }).collect()
    }
}
