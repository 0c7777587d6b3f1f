//! Prints answers as JSON.

use super::error::{CommandError, Exit};

/// A value as indented JSON, with a line end.
pub(super) fn json(value: &impl serde::Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|why| CommandError::new(Exit::Internal, format!("the answer cannot be written as JSON: {why}")))
}
