//! What the previous run knows of a page, so that this run need not download it again.

use super::{
    evaluation::{Evaluation, RULE_SET},
    fingerprint::Fingerprint,
    journal::VisitOutcome,
    links::Links,
    revisit::Validators,
    url::Host,
};
use serde::{Deserialize, Serialize};

/// A page as the run before left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousPage {
    /// How the visit ended.
    pub outcome: VisitOutcome,
    /// What the server said of its version.
    pub validators: Validators,
    /// What [`super::revisit::content_of`] says of its body; 0 if that was not noted.
    pub content: u64,
    /// What its body took over the wire when it was last downloaded, in bytes.
    pub size: u64,
    /// Its links to pages of the same site.
    pub children: Vec<Fingerprint>,
    /// Its links to other sites in scope, and to other hosts of the tree.
    pub elsewhere: Vec<Fingerprint>,
    /// External hosts out of scope that it links to.
    pub beyond_scope: Vec<Host>,
    /// External URLs out of scope that it links to, each by half its fingerprint.
    pub beyond: Vec<u32>,
    /// What came of looking for failures in it, if that was done.
    pub evaluation: Option<Evaluation>,
    /// The version of the rule set by which that was done; 0 if it is not known.
    pub rules: u32,
    /// Where it fails: a line for each rule, or none if that is not known.
    pub lines: Vec<u32>,
}

impl PreviousPage {
    /// Whether it was a page at all: what answered otherwise is remembered only for its links.
    pub fn is_page(&self) -> bool {
        self.outcome.is_page()
    }
}

/// One thing that the run before tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreviousRow {
    /// A URL by its fingerprint: what links lead to.
    Text(Fingerprint, String),
    /// A page that was visited.
    Page(Fingerprint, Box<PreviousPage>),
}

/// A page of the run before with its links by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousVersion {
    /// As it was.
    pub page: PreviousPage,
    /// Its links, those within the site first.
    pub links: Links,
}

impl PreviousVersion {
    /// Whether it can stand in for a download: it was a page, and all its links are known by name; and if pages are evaluated, it was
    /// evaluated by the rules of today.
    pub fn stands_in(&self, evaluate: bool) -> bool {
        let evaluated = self.page.evaluation.is_some() && self.page.rules == RULE_SET;
        self.page.is_page() && (evaluated || !evaluate) && self.links.len() == self.page.children.len() + self.page.elsewhere.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_not_evaluated_by_the_rules_of_today_stands_in_only_where_none_is_evaluated() {
        let page = |evaluation, rules| PreviousPage {
            outcome: VisitOutcome::Page(200),
            validators: Validators::default(),
            content: 1,
            size: 1,
            children: Vec::new(),
            elsewhere: Vec::new(),
            beyond_scope: Vec::new(),
            beyond: Vec::new(),
            evaluation,
            rules,
            lines: Vec::new(),
        };
        for (evaluation, rules, evaluated) in
            [(None, 0, false), (Some(Evaluation::default()), RULE_SET - 1, false), (Some(Evaluation::default()), RULE_SET, true)]
        {
            let version = PreviousVersion { page: page(evaluation, rules), links: Links::default() };
            assert_eq!((version.stands_in(false), version.stands_in(true)), (true, evaluated));
        }
    }
}
