//! The rules by which subnets move, and their settings.

use crate::migration::STATES;

/// By which rule subnets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// They stay where they are.
    None,
    /// The paper's (TWOMA §3).
    Twoma,
    /// Ours: [`Case`](crate::migration::Case).
    Nearcrawl,
}

impl Rule {
    /// Its name in configurations and views.
    pub fn name(self) -> &'static str {
        match self {
            Rule::None => "none",
            Rule::Twoma => "twoma",
            Rule::Nearcrawl => "nearcrawl",
        }
    }
}

/// How subnets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationSettings {
    /// By which rule.
    pub rule: Rule,
    /// States of an arm, the paper's N.
    pub states: u8,
    /// Requests that make an access.
    pub requests_per_access: u32,
}

impl Default for MigrationSettings {
    fn default() -> MigrationSettings {
        MigrationSettings { rule: Rule::Nearcrawl, states: STATES, requests_per_access: 16 }
    }
}
