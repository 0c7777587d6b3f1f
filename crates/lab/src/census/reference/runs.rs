//! Expected results of each run of a made-up web.

use super::{
    pages,
    record::{Expected, records},
    visits::{self, Asked, InRun},
};
use crate::{
    census::{plan::DEPTH, world::World},
    oracle,
};
use nearcrawl_model::url::PageUrl;
use std::collections::{BTreeMap, BTreeSet};

/// What one run of the web must come to.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// By host.
    pub(crate) servers: BTreeMap<String, Expected>,
    /// How often each URL is asked for, robots.txt included.
    pub(crate) asked: BTreeMap<Asked, u64>,
}

/// What all runs must come to, from the first on.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) runs: Vec<Run>,
}

impl Reference {
    /// For a web.
    pub(crate) fn of(world: &World) -> Reference {
        let mut starts: BTreeSet<PageUrl> = world.seeds().iter().filter_map(|seed| PageUrl::parse(seed).ok()).collect();
        let mut runs: Vec<Run> = Vec::new();
        let mut before = None;
        for run in 1..=world.plan.runs {
            let seeds: Vec<PageUrl> = starts.iter().cloned().collect();
            let outcome = oracle::traverse(&InRun { world, run }, &seeds, DEPTH);
            // What was led to from outside is visited again in the next run, whether anybody still leads there or not.
            let outside = outcome.fetched.iter().filter(|(url, visit)| visit.level == 0 && !visits::is_behind_door(world, url));
            starts.extend(outside.map(|(url, _)| url.clone()));
            starts.extend(outcome.refused_by_robots.iter().filter(|url| url.path_and_query() == "/").cloned());
            let previous = runs.last().map(|run| &run.servers);
            let mut servers = records(world, run, &outcome, before.as_ref(), previous);
            pages::enter(world, run, &outcome, previous, &mut servers);
            let asked = visits::asked(world, run, &outcome);
            before = Some(outcome);
            runs.push(Run { servers, asked });
        }
        Reference { runs }
    }

    /// What this run (from 1) must come to.
    pub(crate) fn run(&self, run: u32) -> &Run {
        &self.runs[run as usize - 1]
    }
}
