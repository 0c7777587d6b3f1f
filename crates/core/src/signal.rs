//! Signals: what one machine wants of another.
//!
//! [`crate::crawler::Crawler::settle_signals`] carries them out in order, after the machine that gave them has returned.

use crate::routing::{acknowledgements::Acknowledgement, outbox::Item};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    journal::JournalEntry,
    message::Award,
    subnet::Subnet,
    url::Host,
    vote::SignedPart,
};
use std::sync::Arc;

/// What one machine wants of another, grouped by who receives it.
#[derive(Debug)]
pub(crate) enum Signal {
    /// To all: another edition of the hierarchy is in use from now on.
    HierarchyChanged(Arc<Hierarchy>),
    /// To ownership: sign and store these claims of ours.
    Claim(Vec<Claim>),
    /// To voting: these claims of ours need votes; if one of them is within another's subnet, that one allowed it.
    ClaimsToVote(Vec<SignedClaim>, Option<Box<SignedPart>>),
    /// To ownership: enough voters have accepted these claims of ours.
    ClaimsAccepted(Vec<SignedClaim>),
    /// To ownership: these claims of ours, by subnet and epoch, were not accepted and may be made anew.
    ClaimsGivenUp(Vec<(Subnet, u64)>),
    /// To ownership: a voter has not heard of our claims to these subnets.
    ClaimsToTell(Vec<Subnet>),
    /// To the report: these voters are asked to renew our lease.
    LeaseAsked(Vec<AccessPoint>),
    /// To ownership: our lease has run out and a new term of it begins: what we own may be others' by now.
    TermBegan,
    /// To ownership: our own search for a subnet's owner chose us.
    Awarded(Award),
    /// To crawl: a claim of ours that was watched may be acted on.
    ClaimProven(Subnet),
    /// To crawl, replication, routing and the report: a claim of ours could not be watched all the time, so its history is asked for again.
    ClaimDoubtful(Subnet),
    /// To delegation: a member is alive that the roster did not have.
    MemberCame(AccessPoint),
    /// To ownership, the hierarchy version and the report: a connection to a member was made.
    MemberConnected(AccessPoint),
    /// To delegation, ownership and replication: the roster gave a member up.
    MemberDied(AccessPoint),
    /// To voting, replication and membership: this access point may be a member no more, or may be one again.
    AdmissionChanged(AccessPoint),
    /// To replication: the next owner of a subnet is known, or there is none any more; it is one of the replicas.
    NextOwnerChanged(Subnet),
    /// To replication, crawl and routing: a subnet that was to be handed over stays.
    HandOverCalledOff(Subnet),
    /// To crawl and replication: this last row is written, if the subnet has a journal, and stored with all before it.
    HandOverCloses(Option<Box<(Host, JournalEntry)>>),
    /// To delegation: what we measured of the way to a subnet just now, be it more or less than before.
    WayMeasured { subnet: Subnet, rtt_us: u32 },
    /// To replication, routing and the report: the living are others than before.
    MembersChanged,
    /// To routing: these URLs are for others, or for sites of ours that are not open.
    Reroute(Vec<Item>),
    /// To routing: the address of this host is wanted.
    Locate(Host),
    /// To routing, and to replication if nothing has to be waited for: URLs were handed to us and are being recorded.
    Admitted(Acknowledgement),
    /// To migration: nothing waits any more at a site of this subnet.
    SiteFinished(Subnet),
    /// To the report: the record of this host's site has changed.
    SiteChanged(Host),
    /// To the report: what the roll-up tells has changed.
    RollUpChanged,
}
