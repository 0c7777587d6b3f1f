//! Prints answers about hierarchies, as text or as JSON.

use super::error::HierarchyError;
use std::{fmt::Display, io::Write};

pub(super) fn print(out: &mut dyn Write, json: bool, what: &(impl Display + serde::Serialize)) -> Result<(), HierarchyError> {
    if json {
        serde_json::to_writer_pretty(&mut *out, what).map_err(|e| HierarchyError::Print(e.into()))?;
        writeln!(out).map_err(HierarchyError::Print)
    } else {
        writeln!(out, "{what}").map_err(HierarchyError::Print)
    }
}
