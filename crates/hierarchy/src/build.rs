//! Builds a hierarchy from registry files.
//!
//! Files are read one by one, each taken whole or refused whole; then the tree is made of all.
//!
//! Equal inputs in any order give equal hashes: what files say of one prefix is ranked by kind, date and name (see the modules `assemble`
//! and `build::merge`), never by who came first; and an organisation is called as WHOIS calls it, else as the smallest AS number that its
//! registry assigned to it is called in the tables, else as its widest network; of several such names the alphabetically first. Spellings
//! of one name become one (module `spelling`).

mod collected;
mod merge;
mod spelling;

use super::{
    asn::{self, Route},
    assemble::{AssemblyError, Material, assemble},
    delegated::{self, Held, Record, is_holder, is_registry},
    entries::{Entry, Origin, Rank},
    format::Format,
    limits::MAX_SUBNETS,
    networks::{self, CountryRange, Network},
    objects,
    prefix::{Prefix, SHORTEST, cut},
    registered::{self, Registered, Told},
    report::{ReadError, ReadReport},
    source::{Place, Source},
    tree::Hierarchy,
};
use collected::{Collected, INHERITED, Learnt, NOWHERE, OWN_TITLE, Systems, UNTOLD};
use nearcrawl_model::subnet::Subnet;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io::BufRead};

/// A prefix that the configuration adds: a laboratory, or a network of one's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FurtherPrefix {
    /// The prefix; at least 3 bits long.
    pub prefix: Subnet,
    /// Two letters; empty is unknown (`ZZ`).
    #[serde(default)]
    pub country: String,
    /// The holder, at most 64 bytes; empty: the prefix has a holder of its own.
    #[serde(default)]
    pub organisation: String,
    /// The registry, lower-case letters, digits and hyphens; empty is `local`.
    #[serde(default)]
    pub registry: String,
}

/// Why a prefix of the configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FurtherPrefixError {
    /// The prefix is shorter than 3 bits: it covers too much of the address space.
    #[error("the further prefix {0} is too short: write one of at least {SHORTEST} bits")]
    TooShort(Subnet),
    /// The country is not two letters.
    #[error("{1:?} is no country of the further prefix {0}: write two letters, or leave it out")]
    Country(Subnet, String),
    /// The organisation's name is too long or has control characters.
    #[error("the organisation of the further prefix {0} has more than 64 bytes or control characters: write a shorter one")]
    Organisation(Subnet),
    /// The registry's name is not a usable name.
    #[error("{1:?} is no registry of the further prefix {0}: write lower-case letters, digits and hyphens, or leave it out")]
    Registry(Subnet, String),
}

/// Why further prefixes could not be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithFurtherError {
    /// One of them makes no sense.
    #[error(transparent)]
    Prefix(#[from] FurtherPrefixError),
    /// Together they exceed a limit.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
}

/// What a table of routes is read for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutedUse {
    /// Names of organisations only.
    Names,
    /// Names, and networks nested in the delegated blocks: finer subnets, about three times as many.
    #[default]
    NamesAndNetworks,
}

/// Collects what the files say.
#[derive(Default)]
pub struct Builder {
    overrule: bool,
    /// Sources of the hierarchy in use, and their dates.
    in_use: BTreeMap<String, String>,
    collected: Collected,
}

impl Builder {
    /// An empty builder that refuses doubtful files.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Whether doubtful files are taken nevertheless: with too many bad lines, with broken counts, with nothing in them, or older than those in use.
    /// Their bad lines never are.
    #[must_use]
    pub fn overrule(mut self, overrule: bool) -> Builder {
        self.overrule = overrule;
        self
    }

    /// The sources of the hierarchy in use: older files than these are refused.
    #[must_use]
    pub fn in_use(mut self, sources: &[Source]) -> Builder {
        for Source { name, date } in sources {
            let latest = self.in_use.entry(name.clone()).or_default();
            *latest = date.clone().max(std::mem::take(latest));
        }
        self
    }

    /// Goes on from a finished hierarchy.
    fn from_hierarchy(hierarchy: &Hierarchy) -> Builder {
        Builder { collected: Collected::of(hierarchy), ..Builder::default() }
    }

    /// Reads a file of a known format. `source_name` is for messages only. A refused file leaves nothing behind.
    pub fn read(&mut self, source_name: &str, input: impl BufRead, format: Format, routed_use: RoutedUse) -> Result<ReadReport, ReadError> {
        match format {
            Format::Delegated => self.read_delegated(source_name, input),
            Format::Whois => self.read_whois(source_name, input),
            Format::Networks => self.read_networks(source_name, input),
            Format::Routes => self.read_asn_csv(source_name, input, routed_use),
            Format::Countries => self.read_countries(source_name, input),
        }
    }

    /// Reads a registry's delegated or delegated-extended statistics.
    pub fn read_delegated(&mut self, source_name: &str, input: impl BufRead) -> Result<ReadReport, ReadError> {
        self.whole_file(source_name, Format::Delegated, |builder, report, _| {
            delegated::read(report, input, |report, record| builder.take_record(report, &record))
        })
    }

    /// Reads a registry's bulk WHOIS data, RPSL or ARIN's form.
    pub(crate) fn read_whois(&mut self, source_name: &str, input: impl BufRead) -> Result<ReadReport, ReadError> {
        self.whole_file(source_name, Format::Whois, |builder, report, learnt| {
            objects::read(report, input, |report, object| {
                match registered::read(object) {
                    Err(what) => return Ok(Err(what)),
                    Ok(Told::Unheld) => report.unheld += 1,
                    Ok(Told::Network(network)) => builder.take_registered(report, learnt, network)?,
                    Ok(Told::Organisation { registry, id, name, country }) => {
                        let registry =
                            builder.collected.registry(registry.as_deref().unwrap_or(merge::ELSEWHERE)).ok_or_else(|| too_many(report))?;
                        let organisation = builder.collected.organisation(registry, &id);
                        learnt.title(organisation, OWN_TITLE, &name);
                        learnt.country(organisation, country);
                    }
                }
                builder.is_within_limits(report).map(Ok)
            })
        })
    }

    /// Reads a table of nested networks, `prefix,country,asn,name`.
    pub(crate) fn read_networks(&mut self, source_name: &str, input: impl BufRead) -> Result<ReadReport, ReadError> {
        self.whole_file(source_name, Format::Networks, |builder, report, learnt| {
            networks::read(report, input, |report, Network { prefix, country, asn, name }| {
                learnt.name(asn, name);
                let organisation = builder.system(asn);
                builder.push(report, prefix.v6, (prefix.first, prefix.last()), UNTOLD, country, organisation, Origin::Compiled, 0)
            })
        })
    }

    /// Reads a table of routes, `first,last,AS number,"organisation"`.
    pub(crate) fn read_asn_csv(&mut self, source_name: &str, input: impl BufRead, routed_use: RoutedUse) -> Result<ReadReport, ReadError> {
        self.whole_file(source_name, Format::Routes, |builder, report, learnt| {
            asn::read(report, input, |report, Route { v6, first, last, asn, name }| {
                learnt.name(asn, name);
                if routed_use == RoutedUse::Names {
                    report.used += 1;
                    return if learnt.names.len() > MAX_SUBNETS { Err(too_many(report)) } else { Ok(()) };
                }
                let organisation = builder.system(asn);
                builder.push(report, v6, (first, last), UNTOLD, NOWHERE, organisation, Origin::Routed, 0)
            })
        })
    }

    /// Reads a table of countries, `first,last,country`: where it disagrees with the block around it, the range is a nested network.
    pub(crate) fn read_countries(&mut self, source_name: &str, input: impl BufRead) -> Result<ReadReport, ReadError> {
        self.whole_file(source_name, Format::Countries, |builder, report, _| {
            networks::read_countries(report, input, |report, CountryRange { v6, first, last, country }| {
                builder.push(report, v6, (first, last), UNTOLD, country, INHERITED, Origin::Placed, 0)
            })
        })
    }

    /// Reads one file, and forgets it again if it is refused.
    fn whole_file(
        &mut self,
        source_name: &str,
        format: Format,
        read: impl FnOnce(&mut Builder, &mut ReadReport, &mut Learnt) -> Result<(), ReadError>,
    ) -> Result<ReadReport, ReadError> {
        let Material { registries, organisations, entries, .. } = &self.collected.material;
        let (registries, organisations, entries, systems) =
            (registries.len(), organisations.len(), entries.mark(), self.collected.systems.len());
        let mut report = ReadReport { source: source_name.to_owned(), format: Some(format), ..ReadReport::default() };
        let mut learnt = Learnt::default();
        let outcome = read(self, &mut report, &mut learnt).and_then(|()| {
            let changed = learnt.changes.iter().max_by_key(|(_, day)| **day);
            if let Some((registry, day)) = changed {
                report.registry = Some(registry.clone());
                report.date = Some(day.to_string());
            }
            let name = source_of(&report);
            let in_use = name.as_ref().and_then(|name| self.in_use.get(name));
            Ok((name, report.judge(self.overrule, in_use.map(String::as_str))?))
        });
        match outcome {
            Ok((name, report)) => {
                self.collected.learnt.absorb(learnt);
                if let (Some(name), Some(date)) = (name, &report.date) {
                    self.collected.material.sources.push(Source { name, date: date.clone() });
                }
                Ok(report)
            }
            Err(refusal) => {
                self.collected.material.entries.truncate(entries);
                self.collected.systems.truncate(systems);
                self.collected.material.organisations.truncate(organisations);
                self.collected.truncate_registries(registries);
                Err(refusal)
            }
        }
    }

    /// Takes one record of a registry's statistics.
    fn take_record(&mut self, report: &mut ReadReport, record: &Record<'_>) -> Result<(), ReadError> {
        let (Record::Block { held, .. } | Record::Systems { held, .. }) = record;
        let Held { registry, country, holder, date } = *held;
        let registry = self.collected.registry(registry).ok_or_else(|| too_many(report))?;
        let organisation = self.collected.organisation(registry, holder);
        match *record {
            Record::Block { v6, first, last, .. } => {
                self.push(report, v6, (first, last), registry, country, organisation, Origin::Delegated, date)
            }
            Record::Systems { first, count, .. } => {
                self.collected.systems.push(Systems { first, count, organisation, country });
                self.is_within_limits(report)
            }
        }
    }

    /// Takes one network of WHOIS.
    fn take_registered(&mut self, report: &mut ReadReport, learnt: &mut Learnt, network: Registered) -> Result<(), ReadError> {
        let Registered { v6, ranges, registry, country, holder, name, date } = network;
        if let Some(registry) = &registry
            && date > 0
        {
            let latest = learnt.changes.entry(registry.clone()).or_default();
            *latest = date.max(*latest);
        }
        let told = registry.as_deref().map(|name| self.collected.registry(name).ok_or_else(|| too_many(report))).transpose()?;
        let organisation = match &holder {
            // A holder belongs to some registry; a network may still find a better one around it.
            Some(id) => {
                let registry = told.or_else(|| self.collected.registry(merge::ELSEWHERE)).ok_or_else(|| too_many(report))?;
                self.collected.organisation(registry, id)
            }
            None => INHERITED,
        };
        for (first, last) in ranges {
            let widest = cut(v6, first, last).map(|p| p.length).min().unwrap_or(0);
            if organisation != INHERITED {
                learnt.title(organisation, widest.saturating_add(1), &name);
            }
            self.push(report, v6, (first, last), told.unwrap_or(UNTOLD), country, organisation, Origin::Registered, date)?;
        }
        Ok(())
    }

    /// All prefixes are added here: the range is cut into prefixes, which all get the same holder and place.
    #[expect(clippy::too_many_arguments, reason = "one door, and everything that is known of a range goes through it")]
    fn push(
        &mut self,
        report: &mut ReadReport,
        v6: bool,
        (first, last): (u128, u128),
        registry: u16,
        country: [u8; 2],
        organisation: u32,
        origin: Origin,
        date: u32,
    ) -> Result<(), ReadError> {
        let (place, rank) = (Place { registry, country }, Rank { origin, date });
        let before = self.collected.material.entries.len();
        self.collected.material.entries.extend(cut(v6, first, last).map(|prefix| Entry { prefix, place, organisation, rank }));
        report.used += 1;
        report.prefixes += (self.collected.material.entries.len() - before) as u64;
        self.is_within_limits(report)
    }

    /// Checks the limits at every record, so that a file with too many of them is refused before it fills the memory.
    fn is_within_limits(&self, report: &ReadReport) -> Result<(), ReadError> {
        let size = self.collected.material.entries.len().max(self.collected.material.organisations.len()).max(self.collected.systems.len());
        if size > MAX_SUBNETS { Err(too_many(report)) } else { Ok(()) }
    }

    /// Adds a prefix of the configuration.
    pub fn add_prefix(&mut self, further: &FurtherPrefix) -> Result<(), FurtherPrefixError> {
        let subnet = further.prefix;
        if subnet.length() < SHORTEST {
            return Err(FurtherPrefixError::TooShort(subnet));
        }
        let country =
            delegated::country(&further.country).ok_or_else(|| FurtherPrefixError::Country(subnet, cut_text(&further.country)))?;
        let registry = if further.registry.is_empty() { "local" } else { &further.registry };
        let bad_registry = || FurtherPrefixError::Registry(subnet, cut_text(registry));
        if !is_registry(registry) {
            return Err(bad_registry());
        }
        let own = subnet.to_string();
        let holder = if further.organisation.is_empty() { &own } else { &further.organisation };
        if !is_holder(holder) {
            return Err(FurtherPrefixError::Organisation(subnet));
        }
        let registry = self.collected.registry(registry).ok_or_else(bad_registry)?;
        let organisation = self.collected.organisation(registry, holder);
        self.collected.material.entries.push(Entry {
            prefix: Prefix::from(&subnet),
            place: Place { registry, country },
            organisation,
            rank: Rank { origin: Origin::Configured, date: 0 },
        });
        Ok(())
    }

    /// Makes the tree of all that was read.
    pub fn finish(mut self) -> Result<Hierarchy, AssemblyError> {
        self.collected.merge()?;
        assemble(self.collected.material)
    }

    /// The stand-in for whoever holds an AS number: who that is, is known only when all files are read.
    fn system(&mut self, asn: u32) -> u32 {
        if asn == 0 {
            return INHERITED;
        }
        let organisation = self.collected.organisation(UNTOLD, &format!("AS{asn}"));
        self.collected.material.organisations.set_asn(organisation, asn);
        organisation
    }
}

/// This hierarchy and further prefixes, for laboratories and private networks. A further prefix that is a subnet already replaces what
/// is known of it. The hash changes with the content.
pub fn with_further(hierarchy: &Hierarchy, prefixes: &[FurtherPrefix]) -> Result<Hierarchy, WithFurtherError> {
    if prefixes.is_empty() {
        return Ok(hierarchy.clone());
    }
    let mut builder = Builder::from_hierarchy(hierarchy);
    for further in prefixes {
        builder.add_prefix(further)?;
    }
    Ok(builder.finish()?)
}

fn too_many(report: &ReadReport) -> ReadError {
    ReadError::TooMany(report.source.clone())
}

/// How the source of a file is called: a registry's statistics as the registry.
fn source_of(report: &ReadReport) -> Option<String> {
    let registry = report.registry.as_ref()?;
    Some(if report.format == Some(Format::Whois) { format!("{registry}-whois") } else { registry.clone() })
}

/// Enough of a text for a message.
fn cut_text(text: &str) -> String {
    text.chars().take(40).collect()
}
