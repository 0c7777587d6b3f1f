//! Progress of an experiment, and the file of its plot.

use crate::{
    cli::error::{CommandError, Exit},
    io::snapshot,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// A bar for so many of something.
pub(super) fn bar(length: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // A template that does not parse would be a pity, not a failure.
    if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {what}, {{eta}} left")) {
        bar.set_style(style);
    }
    bar
}

/// The file of a plot: what is written is SVG, whatever its name says.
pub(super) fn svg_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => Err("plots are written as SVG: name a file that ends in .svg".to_owned()),
        _ => Ok(path),
    }
}

/// Draws the figures into a file, if one was named.
pub(super) fn write_plot(path: Option<&Path>, svg: impl FnOnce() -> String) -> Result<(), CommandError> {
    match path {
        Some(path) => snapshot::write(path, svg().as_bytes()).map_err(|why| CommandError::new(Exit::InUse, why.to_string())),
        None => Ok(()),
    }
}
