//! Names the starting URLs of a survey's list.
//!
//! The steward of each host does it: each URL is named once in the swarm, and none is lost when a member dies, its creator or another,
//! because the next steward names those of its hosts.

use crate::wishes::KeptSurvey;
use nearcrawl_model::{access_point::AccessPoint, survey::SurveyId, time::Millis, time::Moment, url::Host, url::PageUrl};
use std::{collections::BTreeMap, sync::Arc};

/// URLs that are looked at in one step: finding out who their steward is takes longer the more members there are.
const IN_A_STEP: usize = 500;

/// So long every member may take to hear of a survey before the first of its URLs is named: owners know then how to crawl what comes.
const HEARD_BY_ALL: Millis = 3_000;

/// What was named of a survey's list.
#[derive(Debug)]
struct Listed {
    kept: Arc<KeptSurvey>,
    since: Moment,
    /// By place in the list.
    named: Vec<bool>,
    /// Up to where was it looked since something changed?
    next: usize,
}

/// Which starting URLs were named here.
#[derive(Debug, Default)]
pub(crate) struct Placing {
    lists: BTreeMap<SurveyId, Listed>,
    members: Vec<AccessPoint>,
}

impl Placing {
    /// These surveys live, and no others.
    pub(crate) fn living<'a>(&mut self, surveys: impl Iterator<Item = &'a Arc<KeptSurvey>>, now: Moment) {
        let mut before = std::mem::take(&mut self.lists);
        for kept in surveys.filter(|kept| !kept.survey.plan.entries.is_empty()) {
            let known = before.remove(&kept.head.id).filter(|known| known.kept.survey.plan.entries == kept.survey.plan.entries);
            let listed = match known {
                Some(known) => Listed { kept: Arc::clone(kept), ..known },
                None => Listed { named: vec![false; kept.survey.plan.entries.len()], kept: Arc::clone(kept), since: now, next: 0 },
            };
            self.lists.insert(kept.head.id, listed);
        }
    }

    /// The next URLs that are to be named here, if `live` are alive. `steward_of` says who serves a host.
    pub(crate) fn next(
        &mut self,
        live: &[AccessPoint],
        me: &AccessPoint,
        now: Moment,
        steward_of: impl Fn(&Host) -> Option<AccessPoint>,
    ) -> Vec<PageUrl> {
        if live != self.members {
            self.members = live.to_vec();
            self.lists.values_mut().for_each(|listed| listed.next = 0);
        }
        let (mut urls, mut steps) = (Vec::new(), IN_A_STEP);
        for listed in self.lists.values_mut().filter(|listed| now.since(listed.since) >= HEARD_BY_ALL) {
            let entries = &listed.kept.survey.plan.entries;
            let end = entries.len().min(listed.next + steps);
            steps -= end - listed.next;
            for (entry, named) in entries[listed.next..end].iter().zip(&mut listed.named[listed.next..end]) {
                if !*named && steward_of(&entry.url.host()).is_none_or(|steward| steward == *me) {
                    *named = true;
                    urls.push(entry.url.clone());
                }
            }
            listed.next = end;
        }
        urls
    }
}
