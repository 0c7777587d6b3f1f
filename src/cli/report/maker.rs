//! The trait by which a report is made of rows, and the properties by which it tells servers apart.

use super::{document::Document, gather::Row};
use clap::ValueEnum;
use nearcrawl_model::facts::software_word;

/// By what servers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Country of the subnet, by the registries
    #[default]
    Country,
    /// Top-level domain of the host
    Tld,
    /// Regional internet registry
    Registry,
    /// Organisation that holds the subnet
    Organisation,
    /// The server's software
    Software,
}

impl By {
    /// As it is called on the command line and in data.
    pub fn name(self) -> &'static str {
        match self {
            By::Country => "country",
            By::Tld => "tld",
            By::Registry => "registry",
            By::Organisation => "organisation",
            By::Software => "software",
        }
    }

    /// Whether it is known of a server before anything is asked of it.
    pub fn is_known_before(self) -> bool {
        self != By::Software
    }

    /// What it is of a server.
    pub fn value(self, row: &Row) -> String {
        match self {
            By::Country => row.place.country.clone(),
            By::Tld => row.record.host.tld().unwrap_or("(address)").to_owned(),
            By::Registry => row.place.registry.clone(),
            By::Organisation => row.place.organisation.clone(),
            By::Software => software_word(row.record.software.as_deref()),
        }
    }
}

/// What makes a report of rows.
pub trait Maker {
    /// Takes in a server.
    fn enter(&mut self, row: &Row);
    /// The report, without what is known of its data.
    fn finish(self: Box<Self>) -> Document;
}
