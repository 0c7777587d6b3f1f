//! The path from the root of the hierarchy to a subnet, for display.

use super::tree::{Hierarchy, Organisation, Position};
use nearcrawl_model::subnet::Subnet;
use serde::Serialize;
use std::{fmt, net::IpAddr};

/// The levels above an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path<'a> {
    /// The address asked for.
    pub address: IpAddr,
    /// The subnet it lies in.
    pub subnet: Subnet,
    /// The levels, if a registered block covers it; without, the subnet is implicit.
    pub registered: Option<Registered<'a>>,
}

/// What the registries record about an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Registered<'a> {
    /// Position of the subnet.
    pub position: u32,
    /// The name of the registry.
    pub registry: &'a str,
    /// The country, `ZZ` unknown.
    pub country: &'a str,
    /// The holder of the subnet.
    pub organisation: Organisation<'a>,
    /// The subnets around it, the delegated block first, the subnet itself last.
    pub blocks: Vec<Subnet>,
}

impl<'a> Path<'a> {
    /// The way from the root of `hierarchy` to an address.
    pub fn to(hierarchy: &'a Hierarchy, address: IpAddr) -> Path<'a> {
        let registered = hierarchy.locate(address).map(|position| Registered {
            position: position.0,
            registry: hierarchy.registry(position),
            country: hierarchy.country(position),
            organisation: hierarchy.organisation_record(hierarchy.organisation(position)),
            blocks: blocks(hierarchy, position),
        });
        Path { address, subnet: hierarchy.subnet_of(address), registered }
    }

    /// One line for each level, without indentation.
    pub fn lines(&self) -> Vec<String> {
        let Some(registered) = &self.registered else {
            return vec!["unregistered".to_owned(), format!("implicit subnet {}", self.subnet)];
        };
        let mut lines = vec![
            format!("registry {}", registered.registry),
            format!("country {}", registered.country),
            format!("organisation {}", registered.organisation),
        ];
        let last = registered.blocks.len() - 1;
        lines.extend(registered.blocks.iter().enumerate().map(|(i, block)| {
            let level = if i == 0 { "block" } else { "nested network" };
            format!("{level} {block}{}", if i == last { " ← its subnet" } else { "" })
        }));
        lines
    }
}

/// The subnets around a position, the outermost first.
fn blocks(hierarchy: &Hierarchy, position: Position) -> Vec<Subnet> {
    let around = std::iter::successors(Some(position), |p| hierarchy.parent(*p));
    let mut blocks: Vec<Subnet> = around.map(|p| hierarchy.subnet(p)).collect();
    blocks.reverse();
    blocks
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        self.lines().iter().enumerate().try_for_each(|(depth, line)| write!(f, "\n{:indent$}{line}", "", indent = 2 * (depth + 1)))
    }
}

impl fmt::Display for Organisation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.asn) {
            (Some(name), Some(asn)) => write!(f, "{name} (AS{asn}, {})", self.id),
            (None, Some(asn)) => write!(f, "AS{asn} ({})", self.id),
            (Some(name), None) => write!(f, "{name} ({})", self.id),
            (None, None) => f.write_str(self.id),
        }
    }
}
