//! Why does this address belong to that subnet? The way from the root to it, for people.

use super::tree::{Hierarchy, Organisation, Position};
use nearcrawl_model::subnet::Subnet;
use serde::Serialize;
use std::{fmt, net::IpAddr};

/// The levels above an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path<'a> {
    /// The address asked for.
    pub address: IpAddr,
    /// The subnet it lives in.
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

impl Hierarchy {
    /// The way from the root to an address, for people.
    pub fn path(&self, address: IpAddr) -> Path<'_> {
        let registered = self.locate(address).map(|position| Registered {
            position: position.0,
            registry: self.registry(position),
            country: self.country(position),
            organisation: self.organisation_record(self.organisation(position)),
            blocks: self.blocks(position),
        });
        Path { address, subnet: self.subnet_of(address), registered }
    }

    fn blocks(&self, position: Position) -> Vec<Subnet> {
        let mut blocks: Vec<Subnet> = std::iter::successors(Some(position), |p| self.parent(*p)).map(|p| self.subnet(p)).collect();
        blocks.reverse();
        blocks
    }
}

impl Path<'_> {
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
