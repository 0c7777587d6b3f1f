//! A finding: what was looked at, what was found, and what helps.

use serde::Serialize;

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// The daemon works, but less well than it could.
    Warning,
    /// It keeps the daemon from its work.
    Failed,
    /// It cannot be known from here.
    NotChecked,
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    pub state: State,
    /// What was found.
    pub found_text: String,
    /// The key of the configuration that it depends on.
    pub key: Option<&'static str>,
    /// What helps.
    pub remedy_text: Option<String>,
}

impl Finding {
    /// What was found, in a sentence.
    pub fn new(check: &'static str, state: State, found: impl Into<String>) -> Finding {
        Finding { check, state, found_text: found.into(), key: None, remedy_text: None }
    }

    /// It is as it should be.
    pub fn good(check: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(check, State::Good, found)
    }

    /// It depends on this key.
    pub fn by(self, key: &'static str) -> Finding {
        Finding { key: Some(key), ..self }
    }

    /// This helps.
    pub fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding { remedy_text: Some(remedy.into()), ..self }
    }
}
