//! Fuzz targets for the files of experiments and scenarios: tables and orders that people wrote.

use nearcrawl_lab::{
    cache::graph::{self, Graph},
    delegation::{distances::Distances, nodes::Nodes},
    migration::slices::{self, hours},
    scenario::{Matrix, file::Scenario},
};

crate::targets!("lab":
    scenario,
    matrix,
    nodes,
    graph,
    slices,
);

/// A refusal names a line of the file.
fn scenario(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    match Scenario::read(text) {
        Ok(scenario) => {
            assert!(scenario.steps.is_sorted_by_key(|step| step.at));
            assert!(scenario.members > 0 && scenario.subnets > 0 && scenario.hosts > 0 && scenario.minutes > 0);
        }
        Err(error) => assert!(error.line <= text.lines().count().max(1), "{error:?} of {} lines", text.lines().count()),
    }
}

fn matrix(bytes: &[u8]) {
    let _ = Matrix::read("fuzz", bytes);
}

/// Nodes, then a line `--`, then the times between them.
fn nodes(bytes: &[u8]) {
    let cut = bytes.windows(4).position(|window| window == b"\n--\n").unwrap_or(bytes.len());
    for on_a_plane in [false, true] {
        let Ok(nodes) = Nodes::read("fuzz", &bytes[..cut], on_a_plane) else { continue };
        let _ = Distances::read("fuzz", &bytes[(cut + 4).min(bytes.len())..], "nodes", &nodes);
        if on_a_plane {
            let _ = Distances::of_places(&nodes);
        }
    }
}

/// Links, then a line `--`, then the hosts of the pages.
fn graph(bytes: &[u8]) {
    let cut = bytes.windows(4).position(|window| window == b"\n--\n").unwrap_or(bytes.len());
    let Ok(links) = graph::read_links("fuzz", &bytes[..cut]) else { return };
    if links.iter().any(|(from, to)| from.max(to) > &1_000) {
        return;
    }
    if let Ok(sites) = graph::read_sites("fuzz", &bytes[(cut + 4).min(bytes.len())..], "links", &links) {
        let graph = Graph::new(&links, sites);
        links.iter().for_each(|(from, _)| assert!(!graph.links(*from).is_empty()));
    }
}

fn slices(bytes: &[u8]) {
    let _ = hours("fuzz", bytes);
    let mut reader = slices::Reader::default();
    if bytes.split(|byte| *byte == b'~').all(|slice| reader.add("fuzz", slice).is_ok()) {
        let _ = reader.finish();
    }
}
