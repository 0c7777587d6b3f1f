//! Reasons why a file is not a scenario.

/// A member's number.
pub type Number = u32;

/// Why a file is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScenarioError {
    /// The line of the file, from 1.
    pub line: usize,
    /// What is wrong there, and what is allowed.
    pub message: String,
}
