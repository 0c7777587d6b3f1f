//! Tests of the hierarchy against a plain reading of the same files.

mod change;
mod hostile;
mod images;
mod mixed;
mod opening;
mod reading;
mod relatives;
mod whois;

use super::*;
use nearcrawl_model::subnet::Subnet;
use std::net::IpAddr;

/// Registries' files as published, cut down.
const AFRINIC: &str = include_str!("../../../tests/data/hierarchy/delegated-afrinic-excerpt.txt");
const RIPE: &str = include_str!("../../../tests/data/hierarchy/delegated-ripencc-excerpt.txt");
const ROUTES: &str = include_str!("../../../tests/data/hierarchy/asn-ipv4-excerpt.csv");

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn subnet(text: &str) -> Subnet {
    text.parse().unwrap()
}

/// A hierarchy of records as a registry would write them, without version and summary lines.
fn of(records: &str) -> Hierarchy {
    let mut builder = Builder::new();
    builder.read_delegated("records", records.as_bytes()).unwrap();
    builder.finish().unwrap()
}

/// Both excerpts with the table of routes: real data with nested networks.
fn real() -> Hierarchy {
    let mut builder = Builder::new();
    builder.read_delegated("afrinic", AFRINIC.as_bytes()).unwrap();
    builder.read_delegated("ripencc", RIPE.as_bytes()).unwrap();
    builder.read_asn_csv("routes", ROUTES.as_bytes(), RoutedUse::NamesAndNetworks).unwrap();
    builder.finish().unwrap()
}

/// A hierarchy without a single subnet.
fn empty() -> Hierarchy {
    Builder::new().finish().unwrap()
}

fn positions(hierarchy: &Hierarchy) -> impl Iterator<Item = Position> {
    (0..hierarchy.len()).map(Position)
}
