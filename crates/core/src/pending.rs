//! Questions to members that are not answered yet, each with what its answer is for.

use nearcrawl_model::{
    cross_table::Pair, fetch::LocatedHost, ids::TransferId, opt_out::StatementId, ownership_map::MapPart, subnet::Subnet, url::Host,
};

/// A question to a member that is not answered yet: what its answer is for.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Where a host is: its steward was asked.
    Locate(Host),
    /// Who shall own the subnet of an address: its steward was asked to find out.
    FindOwner,
    /// How far it is from there to a server in the subnet.
    Probe { subnet: Subnet },
    /// Whether the member takes the subnet that it was awarded.
    Award { subnet: Subnet },
    /// Whether the member takes a subnet of ours.
    Offer { subnet: Subnet },
    /// Whether it took URLs in.
    HandOff,
    /// Where its ownership map differs from ours, or which claims it has that we lack.
    Compare(MapQuestion),
    /// Whether a voter renews our lease: the number of the renewal.
    Renew(u64),
    /// Whether a voter of this list accepts these claims of ours, made in this term of our lease.
    Propose { list: u64, term: u64, claims: Vec<(Subnet, u64)> },
    /// A step of the choice of the next list of voters.
    Ballot,
    /// Which lists of voters there are.
    VoterLists,
    /// What the process asked for an exchange of its own.
    Transfer(TransferId),
    /// The SWIM datagram that it sends back.
    Swim,
    /// Its totals, if they are no longer those of version `yours`; it was told ours of version `mine`, 0 if of none.
    Totals { mine: u64, yours: u64 },
    /// Nothing: it was told something.
    Told,
    /// Which database a replica uses.
    StoreOf,
    /// Of which of these subnets it has journal rows.
    Holds(Vec<Subnet>),
    /// Whether a host is still at its address: its steward was asked.
    Confirm(Host),
    /// Whether the owner of the address before has a host that is at this one now.
    HostMoved(LocatedHost),
    /// Whether the owner of a host's new address has recorded its journals: that address.
    TakeHost(LocatedHost),
    /// Whether the steward of these hosts heard where they are.
    Pinned(Vec<Host>),
    /// Its sums by two dimensions.
    CrossTotals(Pair),
    /// Whether its surveys are others than ours.
    SurveyHeads,
    /// Surveys that we lack.
    Surveys,
    /// Its distinct sets.
    Distinct,
    /// When we may probe the server whose turn it is.
    ProbeTurn,
    /// Whether its statements about opt-outs are others than ours.
    OptOutHeads,
    /// Statements about opt-outs that we lack.
    OptOuts,
    /// Whether it has heard these statements about opt-outs.
    OptOutsTold(Vec<StatementId>),
    /// Which certificates and expulsions a member has.
    AdmissionHeads,
    /// Certificates and expulsions of a member.
    Admissions,
    /// A member is told these certificates and expulsions.
    AdmissionsTold(Vec<StatementId>),
}

/// What a member was asked in a comparison of ownership maps.
#[derive(Debug)]
pub(crate) struct MapQuestion {
    /// The number of the comparison: an answer that comes after its end is not taken in.
    pub(crate) pass: u64,
    pub(crate) asked: Asked,
}

/// Of which parts of its map what was asked.
#[derive(Debug)]
pub(crate) enum Asked {
    /// How they compare with ours.
    Compared(Vec<MapPart>),
    /// The claims in them that we lack, of each those behind the claim to this subnet.
    Claims(Vec<(MapPart, Option<Subnet>)>),
}
