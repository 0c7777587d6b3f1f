//! Which failures were found in a page? Counted by rule.

use nearcrawl_model::evaluation::Rule;
use std::collections::BTreeMap;

/// The failures found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub failures: BTreeMap<Rule, u32>,
    pub elements: u32,
}

impl Found {
    pub(crate) fn add(&mut self, rule: Rule, count: u32) {
        if count > 0 {
            let sum = self.failures.entry(rule).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    pub(crate) fn fail_if(&mut self, rule: Rule, fails: bool) {
        self.add(rule, u32::from(fails));
    }
}
