//! The immutable hierarchy: sorted arrays by position, and the queries on it.

use super::{
    label::Label,
    layout::Section,
    lookup::NOBODY,
    prefix::{Prefix, number},
    source::{Place, Source},
    view::View,
};
use nearcrawl_model::subnet::Subnet;
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, ops::Range, sync::Arc};

/// Length of the implicit subnet of an IPv4 address that no registered block covers.
pub(crate) const IMPLICIT_V4: u8 = 24;

/// Length of the implicit subnet of an IPv6 address that no registered block covers.
pub(crate) const IMPLICIT_V6: u8 = 48;

/// A subnet's number: depth first, so that everything beneath an ancestor is one contiguous range. Means nothing in a
/// hierarchy with another [`Hierarchy::hash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(pub u32);

/// An organisation's number: a holder as one registry names it (registry and opaque-id). The same company at two registries is two
/// organisations, because the files do not say that it is one. Means nothing in a hierarchy with another hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OrganisationId(pub u32);

/// What is known of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Organisation<'a> {
    /// The registry that knows it.
    pub registry: &'a str,
    /// How the registry names it (the opaque-id).
    pub id: &'a str,
    /// Its name, where a file told one.
    pub name: Option<&'a str>,
    /// The smallest number of an autonomous system that the registry assigned to it.
    pub asn: Option<u32>,
}

/// A level of the tree, on the way from a subnet up to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A subnet that covers the one below.
    Nested,
    /// The holder of the block, in one country.
    Organisation,
    /// The country, within one registry.
    Country,
    /// The regional registry.
    Registry,
    /// The root: the whole hierarchy.
    Root,
}

/// One step up: the level, and the positions of everything beneath it (including the covering subnet itself).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The level.
    pub kind: StepKind,
    /// The positions of all subnets beneath it.
    pub range: Range<u32>,
}

/// The tree: a cheap view of an image that is shared by all copies. Immutable; the image has about 45 bytes a subnet and 60 an
/// organisation.
#[derive(Clone)]
pub struct Hierarchy {
    view: Arc<View>,
}

impl std::fmt::Debug for Hierarchy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hierarchy({} subnets, {:02x?})", self.len(), &self.hash()[..4])
    }
}

impl Hierarchy {
    /// The hierarchy in an image that was checked.
    pub(super) fn of(view: View) -> Hierarchy {
        Hierarchy { view: Arc::new(view) }
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// By position: the numbers of a section.
    pub(super) fn numbers(&self, section: Section) -> &[u32] {
        self.view.section(section)
    }

    /// How many subnets there are; positions are 0 to one less.
    pub fn len(&self) -> u32 {
        self.view.counts.subnets
    }

    /// Whether there is no subnet at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// SHA-256 of the content: equal for members that place every address alike. Sources' names and dates do not enter.
    pub fn hash(&self) -> [u8; 32] {
        self.view.hash
    }

    /// What it was built from.
    pub fn sources(&self) -> &[Source] {
        &self.view.sources
    }

    /// The latest date of the sources as YYYYMMDD; 0 if none of them has such a date.
    pub fn built(&self) -> u32 {
        let dates = self.sources().iter().filter(|s| s.date.len() == 8).filter_map(|s| s.date.parse().ok());
        dates.max().unwrap_or(0)
    }

    /// What a snapshot of this says of itself.
    pub fn label(&self) -> Label {
        Label { hash: self.hash(), subnets: self.len(), built: self.built() }
    }

    /// The smallest subnet around an address (IPMicra §4.2, step 1); none if no registered block covers it. An IPv4 address
    /// mapped into IPv6 is looked up as the IPv4 address.
    pub fn locate(&self, address: IpAddr) -> Option<Position> {
        let found = match number(address) {
            (false, n) => self.view.v4().find(n as u32),
            (true, n) => self.view.v6().find(n),
        };
        (found != NOBODY).then_some(Position(found))
    }

    /// The smallest subnet around an address, for every address: where no registered block covers it, the implicit
    /// [`IMPLICIT_V4`] or [`IMPLICIT_V6`] around it. An implicit subnet has no position and no relatives; it may cover small
    /// registered ones, whose addresses are theirs.
    pub fn subnet_of(&self, address: IpAddr) -> Subnet {
        let address = address.to_canonical();
        match self.locate(address) {
            Some(position) => self.subnet(position),
            None => Subnet::around(address, if address.is_ipv4() { IMPLICIT_V4 } else { IMPLICIT_V6 }),
        }
    }

    /// What of the subnet around an address is surely in one place: the whole of it, or where it is larger than an implicit one
    /// ([`IMPLICIT_V4`], [`IMPLICIT_V6`]) the part of it around the address. Whoever is near to an address of a registered block of
    /// a million need not be near to the others.
    pub fn unit_of(&self, address: IpAddr) -> Subnet {
        let (address, subnet) = (address.to_canonical(), self.subnet_of(address));
        let longest = if address.is_ipv4() { IMPLICIT_V4 } else { IMPLICIT_V6 };
        if subnet.length() < longest { Subnet::around(address, longest) } else { subnet }
    }

    pub(super) fn prefix(&self, position: u32) -> Prefix {
        self.view.prefix(position)
    }

    /// Registry and country of the holder at a position.
    pub(super) fn place(&self, position: u32) -> Place {
        self.view.place(usize::from(self.view.section::<u16>(Section::PlaceOf)[position as usize]))
    }

    /// The covering subnet's position, or nobody.
    pub(super) fn parent_of(&self, position: u32) -> u32 {
        self.numbers(Section::Parents)[position as usize]
    }

    /// The subnet at a position. Panics for a position of another, larger hierarchy, like all that take one.
    pub fn subnet(&self, position: Position) -> Subnet {
        self.prefix(position.0).subnet()
    }

    /// The position of exactly this subnet.
    pub fn position(&self, subnet: Subnet) -> Option<Position> {
        let wanted = Prefix::from(&subnet);
        // Not through `locate`, which would take a prefix of mapped addresses for IPv4.
        let mut at = if wanted.v6 { self.view.v6().find(wanted.first) } else { self.view.v4().find(wanted.first as u32) };
        while at != NOBODY {
            let here = self.prefix(at);
            if here.length <= wanted.length {
                return (here == wanted).then_some(Position(at));
            }
            at = self.parent_of(at);
        }
        None
    }

    /// Who holds the subnet (IP-2). Normally the holder of the block around it, too; not where one block was registered
    /// within another's.
    pub fn organisation(&self, position: Position) -> OrganisationId {
        OrganisationId(self.numbers(Section::Holders)[position.0 as usize])
    }

    /// The autonomous system that an address belongs to, as far as registry files tell: the smallest number of the holder of the smallest
    /// block around it, or of the nearest block around that one whose holder has a number.
    pub fn asn_of(&self, address: IpAddr) -> Option<u32> {
        let around = std::iter::successors(self.locate(address), |position| self.parent(*position));
        around.map(|position| self.numbers(Section::Asns)[self.organisation(position).0 as usize]).find(|asn| *asn != 0)
    }

    /// All subnets of an organisation, in whatever country, in ascending order: the "same company" of IPMicra §4.2, step 2.
    pub fn organisation_members(&self, organisation: OrganisationId) -> impl ExactSizeIterator<Item = Position> + '_ {
        let index = organisation.0 as usize;
        let starts = self.numbers(Section::MemberStarts);
        self.numbers(Section::Members)[starts[index] as usize..starts[index + 1] as usize].iter().map(|p| Position(*p))
    }

    /// How many organisations there are; their numbers are 0 to one less.
    pub fn organisations(&self) -> u32 {
        self.view.counts.organisations
    }

    /// What is known of an organisation.
    pub(crate) fn organisation_record(&self, organisation: OrganisationId) -> Organisation<'_> {
        let index = organisation.0 as usize;
        let (id, name) = self.view.texts(index);
        let asn = self.numbers(Section::Asns)[index];
        Organisation {
            registry: &self.view.registries[usize::from(self.view.section::<u16>(Section::HolderRegistries)[index])],
            id,
            name: (!name.is_empty()).then_some(name),
            asn: (asn != 0).then_some(asn),
        }
    }

    /// What people may call an organisation: its name, or the registry's id for it.
    pub fn organisation_name(&self, organisation: OrganisationId) -> &str {
        let record = self.organisation_record(organisation);
        record.name.unwrap_or(record.id)
    }

    /// The country of the subnet's holder, as the registry has it: two capital letters, `ZZ` unknown.
    pub fn country(&self, position: Position) -> &str {
        let place = usize::from(self.view.section::<u16>(Section::PlaceOf)[position.0 as usize]);
        std::str::from_utf8(&self.view.section::<[u8; 4]>(Section::Places)[place][2..]).unwrap_or("ZZ")
    }

    /// The registry that delegated the subnet.
    pub fn registry(&self, position: Position) -> &str {
        &self.view.registries[usize::from(self.place(position.0).registry)]
    }
}
