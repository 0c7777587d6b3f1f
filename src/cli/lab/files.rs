//! Reads the experiments' nodes, round-trip times and links from files, packed or not.

use crate::{
    cli::error::{CommandError, Exit},
    io::text,
};
use nearcrawl_lab::{
    cache::{
        graph::{self, Graph},
        named,
    },
    delegation::{distances::Distances, nodes::Nodes},
    migration::slices::{self, Slices, hours},
    reading::InputError,
    scenario::Matrix,
};
use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

/// Reads the nodes, and the round-trip times between them; without a file of these the nodes must have coordinates.
pub fn read(nodes_path: &Path, rtt_path: Option<&Path>) -> Result<(Nodes, Distances), CommandError> {
    let name = |path: &Path| path.display().to_string();
    let nodes = Nodes::read(&name(nodes_path), open(nodes_path)?, rtt_path.is_none()).map_err(refused)?;
    let distances = match rtt_path {
        Some(path) => Distances::read(&name(path), open(path)?, &name(nodes_path), &nodes).map_err(refused)?,
        None => Distances::of_places(&nodes),
    };
    Ok((nodes, distances))
}

/// Reads links, and the hosts of the pages; without a file of these a site is `block` neighbouring pages. JSON lines name the hosts themselves.
pub fn read_graph(links_path: &Path, hosts_path: Option<&Path>, block: u32) -> Result<Graph, CommandError> {
    let name = |path: &Path| path.display().to_string();
    let text = open_text(links_path)?;
    if text.head().first() == Some(&b'{') {
        if hosts_path.is_some() {
            return Err(CommandError::new(Exit::Usage, format!("the lines of {} name the hosts themselves", name(links_path)))
                .hint("leave out --hosts"));
        }
        return named::read_named(&name(links_path), text.reader()).map_err(refused);
    }
    let links = graph::read_links(&name(links_path), text.reader()).map_err(refused)?;
    let sites = match hosts_path {
        Some(path) => graph::read_sites(&name(path), open(path)?, &name(links_path), &links).map_err(refused)?,
        None => graph::blocks(&links, block),
    };
    Ok(Graph::new(&links, sites))
}

/// Reads a folder of matrices in the order of the numbers in their names.
pub fn read_slices(directory: &Path) -> Result<Slices, CommandError> {
    let unreadable = |why: std::io::Error| CommandError::new(Exit::NoInput, format!("{} cannot be read: {why}", directory.display()));
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(|path| path.is_file()).collect();
    paths.sort_by_cached_key(|path| (number_in(path), path.clone()));
    let mut reader = slices::Reader::default();
    for path in &paths {
        reader.add(&path.display().to_string(), open(path)?).map_err(refused)?;
    }
    let nothing = || CommandError::new(Exit::Data, format!("there is no matrix in {}", directory.display()));
    reader.finish().ok_or_else(nothing)
}

/// The last number in a file's name; files without one come first.
fn number_in(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    name.split(|c: char| !c.is_ascii_digit()).rfind(|digits| !digits.is_empty())?.parse().ok()
}

/// Reads the round-trip times of a scenario.
pub fn read_matrix(path: &Path) -> Result<Matrix, CommandError> {
    Matrix::read(&path.display().to_string(), open(path)?).map_err(refused)
}

/// Reads how many hours a day each access point is available.
pub fn read_hours(path: &Path) -> Result<Vec<f64>, CommandError> {
    hours(&path.display().to_string(), open(path)?).map_err(refused)
}

/// A text, unpacked on the way whatever its name.
fn open(path: &Path) -> Result<Box<dyn Read>, CommandError> {
    Ok(Box::new(open_text(path)?.reader()))
}

fn open_text(path: &Path) -> Result<text::TextFile, CommandError> {
    text::open(path, |file| file).map_err(|why| {
        let exit = if why.kind() == Some(std::io::ErrorKind::PermissionDenied) { Exit::NoPermission } else { Exit::NoInput };
        CommandError::new(exit, why.to_string())
    })
}

fn refused(why: InputError) -> CommandError {
    let exit = if matches!(why, InputError::Io { .. }) { Exit::Storage } else { Exit::Data };
    CommandError::new(exit, why.to_string())
}

/// Processor seconds of the calling thread, as Linux counts them; 0 where it does not.
pub fn processor_seconds() -> f64 {
    let counted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = counted.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}
