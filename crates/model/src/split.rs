//! Dimensions by which rows of servers are split: those that owners sum by, and those that only a reader of their rows can.

use super::summary::Dimension;

/// By what rows are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Split {
    /// What owners sum by: every server has one value.
    By(Dimension),
    /// What a survey says of its hosts: a server may have several labels, or none.
    Label,
    /// The accessibility rules that its pages fail: a server may fail several.
    Rule,
}

/// The value of [`Split::Label`] for a server without a label.
pub const NO_LABEL: &str = "(none)";

/// The value of [`Split::Rule`] for a server with evaluated pages and no detected failure.
pub const NONE_DETECTED: &str = "(none detected)";

/// The value of [`Split::Rule`] for a server of which no page was evaluated.
pub const NOT_EVALUATED: &str = "(not evaluated)";

impl Split {
    /// All of them.
    pub const ALL: [Split; Dimension::ALL.len() + 2] = {
        let mut all = [Split::Label; Dimension::ALL.len() + 2];
        let mut at = 0;
        while at < Dimension::ALL.len() {
            all[at] = Split::By(Dimension::ALL[at]);
            at += 1;
        }
        all[at + 1] = Split::Rule;
        all
    };

    /// Its name wherever people see it.
    pub const fn name(self) -> &'static str {
        match self {
            Split::By(dimension) => dimension.name(),
            Split::Label => "label",
            Split::Rule => "rule",
        }
    }

    /// What its values are, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Split::By(dimension) => dimension.meaning(),
            Split::Label => "label of a survey, with --survey",
            Split::Rule => "Accessibility rule that pages fail",
        }
    }
}
