//! The events of a simulated swarm, and their order at one instant.

use super::executor::Turn;
use nearcrawl_core::{
    event::{Event, StoreCommand},
    replication::replicas::CopyOrder,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::FetchReport,
    message::{Gossip, Request, Response},
    previous_run::PreviousVersion,
    time::Millis,
};
use std::net::IpAddr;

/// An event that is scheduled for one process of one access point: it is dropped if that has been killed meanwhile.
pub(super) struct SimEvent {
    pub(super) node: AccessPoint,
    pub(super) life: u64,
    pub(super) kind: SimEventKind,
}

/// The order of events of one access point at one instant: by kind, by whom it concerns, and by the class of the message. What still ties
/// goes by the order in which it was scheduled.
pub(super) type Rank = (u8, u128, u8);

pub(super) enum SimEventKind {
    Wake,
    Dial(AccessPoint),
    Event(Box<Event>),
    Asked {
        from: AccessPoint,
        life: u64,
        wire: u64,
        class: u8,
        request: Box<Request>,
    },
    Answered {
        wire: u64,
        from: AccessPoint,
        class: u8,
        response: Option<Box<Response>>,
    },
    Gossiped {
        from: AccessPoint,
        class: u8,
        gossip: Gossip,
    },
    /// The store has carried this out.
    Stored(StoreCommand),
    /// It is this copy's turn to be read from the store.
    Copy(CopyOrder),
    BodyReceived {
        contact: usize,
        address: IpAddr,
        took: Millis,
    },
    Fetched {
        contact: usize,
        address: IpAddr,
        report: Box<FetchReport>,
        previous: Option<Box<PreviousVersion>>,
    },
}

impl SimEventKind {
    /// Where this stands among the events of one instant: by what it is, not by when it was scheduled.
    pub(super) fn rank(&self, number_of: impl Fn(&AccessPoint) -> u32) -> Rank {
        let address = |address: &IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(*address)),
            IpAddr::V6(address) => u128::from(*address),
        };
        match self {
            SimEventKind::Answered { from, class, .. } => (0, number_of(from).into(), *class),
            SimEventKind::Asked { from, class, .. } => (1, number_of(from).into(), *class),
            SimEventKind::Gossiped { from, class, .. } => (2, number_of(from).into(), *class),
            SimEventKind::Event(event) => (3, 0, event_class(event)),
            SimEventKind::Stored(command) => store_rank(Turn::of(command)),
            SimEventKind::Copy(_) => store_rank(Turn::COPY),
            SimEventKind::BodyReceived { address: of, .. } => (6, address(of), 0),
            SimEventKind::Fetched { address: of, .. } => (7, address(of), 0),
            SimEventKind::Dial(other) => (8, number_of(other).into(), 0),
            SimEventKind::Wake => (9, 0, 0),
        }
    }
}

/// The number of this kind of event, among those that the world itself sends.
fn event_class(event: &Event) -> u8 {
    match event {
        Event::Connected { .. } => 0,
        Event::Distance { .. } => 1,
        Event::Resolved { .. } => 2,
        Event::Probed { .. } => 3,
        Event::EditionFound { .. } => 4,
        Event::Tick
        | Event::Room(_)
        | Event::Rest(_)
        | Event::Outlook(_)
        | Event::Profile(_)
        | Event::Seeds(_)
        | Event::Superseded(_)
        | Event::Wanted(_)
        | Event::Leave
        | Event::Move { .. }
        | Event::Pinned(_)
        | Event::Drain
        | Event::Reached(_)
        | Event::Asked { .. }
        | Event::Answered { .. }
        | Event::Gossiped { .. }
        | Event::BodyReceived { .. }
        | Event::Fetched { .. }
        | Event::Revisited { .. }
        | Event::PreviousRunLoaded { .. }
        | Event::Seen { .. }
        | Event::Children { .. }
        | Event::CutTaken { .. }
        | Event::RowsStored { .. }
        | Event::JournalsResized { .. }
        | Event::RowsKept { .. }
        | Event::RowsRead { .. }
        | Event::RowsDigested { .. }
        | Event::Exported { .. }
        | Event::RequestsTold { .. }
        | Event::RecordAnswered { .. }
        | Event::Explained { .. }
        | Event::Transfer { .. }
        | Event::ClaimsStored { .. }
        | Event::VotingStored { .. }
        | Event::DeclareLost(_)
        | Event::Copied { .. }
        | Event::Recovered { .. }
        | Event::Loaded { .. }
        | Event::SeenLoaded { .. }
        | Event::Survey(_)
        | Event::OptOut(_)
        | Event::Scope(_)
        | Event::Admission(_)
        | Event::Hierarchy(_)
        | Event::AtHand(_)
        | Event::CrossTableWanted(_)
        | Event::DistinctWanted
        | Event::Given { .. } => 5,
    }
}

/// The state before the cache.
fn store_rank(turn: Turn) -> Rank {
    match turn {
        Turn::AtOnce => (4, 0, 0),
        Turn::State(place) => (4, 0, place),
        Turn::Cache => (5, 0, 0),
    }
}
