//! Reads the hierarchy that the configuration names, or the world's.

use crate::io::{files::open_regular, snapshot, text};
use crate::node::{
    config::{Config, ExtraPrefix},
    error::NodeError,
    hierarchy::images::{self, Reading},
};
use nearcrawl_hierarchy::{Builder, Format, FurtherPrefix, Hierarchy, ReadError, RoutedUse, WORLD, with_further};
use std::path::{Path, PathBuf};

/// The hierarchy that the configuration names, or the world's, with its further prefixes, for a crawl that keeps nothing: its image is
/// left in the user's cache for the next one, in place of any other that is there.
pub fn hierarchy(config: &Config) -> Result<Hierarchy, NodeError> {
    let directory = images::of_user().unwrap_or_else(|| images_of(config));
    let reading = base_hierarchy(config, &directory)?;
    if let Reading::Unpacked(hierarchy) = &reading {
        images::remove_others(&directory, &[hierarchy.hash()]);
    }
    let (base, further) = (reading.filed(&directory), further_prefixes(config));
    if further.is_empty() { Ok(base) } else { with_further(&base, &further).map_err(|why| NodeError::Hierarchy(why.to_string())) }
}

/// The prefixes that the configuration adds.
pub fn further_prefixes(config: &Config) -> Vec<FurtherPrefix> {
    config.hierarchy.prefixes.iter().map(further_prefix).collect()
}

/// The hierarchy that the configuration names or that was renewed, else the world's, from its image if `directory` has it. Nothing is written: who cannot start
/// leaves no trace.
pub fn base_hierarchy(config: &Config, directory: &Path) -> Result<Reading, NodeError> {
    let failed = |what: &Path, why: String| NodeError::Hierarchy(format!("{}: {why}", what.display()));
    // A daemon that starts would wait for the writer of a pipe, and read a device without an end.
    let regular = |path: &Path| open_regular(path).map(drop).map_err(|why| failed(path, format!("cannot be read: {why}")));
    let chosen = &config.hierarchy;
    Ok(if let Some(path) = config.snapshot() {
        regular(&path)?;
        let bytes = snapshot::read(&path).map_err(|why| failed(&path, why.to_string()))?;
        images::read(directory, &bytes).map_err(|why| failed(&path, why.to_string()))?
    } else if chosen.delegated.is_empty() {
        images::read(directory, WORLD).map_err(|why| NodeError::Hierarchy(why.to_string()))?
    } else {
        let mut builder = Builder::new();
        for path in &chosen.delegated {
            let name = path.display().to_string();
            regular(path)?;
            let file = text::open(path, |file| file).map_err(|why| failed(path, why.to_string()))?;
            let format = Format::of(file.head()).ok_or_else(|| failed(path, ReadError::Format(name.clone()).to_string()))?;
            builder.read(&name, file.reader(), format, RoutedUse::default()).map_err(|why| failed(path, why.to_string()))?;
        }
        // It is built anew at each start: the files may be others.
        Reading::Ready(builder.finish().map_err(|why| NodeError::Hierarchy(why.to_string()))?)
    })
}

/// The directory of the images of hierarchies.
pub fn images_of(config: &Config) -> PathBuf {
    config.state_dir.join("hierarchy")
}

fn further_prefix(extra: &ExtraPrefix) -> FurtherPrefix {
    FurtherPrefix {
        prefix: extra.prefix.into(),
        country: extra.country.clone().unwrap_or_default(),
        organisation: extra.organisation.clone().unwrap_or_default(),
        registry: extra.registry.clone().unwrap_or_default(),
    }
}
