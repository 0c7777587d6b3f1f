//! Who has not acknowledged what we said? A few others are told one by one, and again every second: a message may get lost, and they have to
//! know it within seconds.

use nearcrawl_model::{access_point::AccessPoint, opt_out::StatementId};
use std::collections::{BTreeMap, BTreeSet};

/// After so many times one is not told any more: it hears of it when statements are compared.
const MAX_TIMES: u8 = 30;

/// What each of the others was told and has not acknowledged, and how often.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    untold: BTreeMap<AccessPoint, (BTreeSet<StatementId>, u8)>,
}

impl Telling {
    /// These are to be told that.
    pub(crate) fn begin(&mut self, others: &[AccessPoint], ids: &[StatementId]) {
        for other in others {
            let (untold, times) = self.untold.entry(*other).or_default();
            untold.extend(ids);
            *times = 0;
        }
    }

    /// Who is to be told what now.
    pub(crate) fn now(&mut self, lives: impl Fn(&AccessPoint) -> bool) -> Vec<(AccessPoint, Vec<StatementId>)> {
        self.untold.retain(|other, (_, times)| *times < MAX_TIMES && lives(other));
        self.untold.values_mut().for_each(|(_, times)| *times += 1);
        self.untold.iter().map(|(other, (ids, _))| (*other, ids.iter().copied().collect())).collect()
    }

    /// A member has heard these.
    pub(crate) fn acknowledged(&mut self, by: AccessPoint, ids: &[StatementId]) {
        if let Some((untold, _)) = self.untold.get_mut(&by) {
            untold.retain(|id| !ids.contains(id));
            if untold.is_empty() {
                self.untold.remove(&by);
            }
        }
    }
}
