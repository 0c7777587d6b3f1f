//! How do the policies compare at a glance? Probes a site against share of optimal delegations, as an SVG picture.

use crate::lab::delegation::score::Row;

/// The picture.
pub fn svg(_rows: &[Row]) -> String {
    String::new()
}
