//! What can happen to an access point of a simulated world, and what comes first at one instant?

use super::hands::{CacheAction, StateAction};
use crate::{
    logic::crawler::event::Event,
    model::{
        access_point::AccessPoint,
        fetch::FetchReport,
        message::{Gossip, Request, Response},
        revisit::Former,
        time::Millis,
    },
};
use std::net::IpAddr;

/// Something that will happen to one life of one access point.
pub(super) struct Happening {
    pub(super) node: AccessPoint,
    pub(super) life: u64,
    pub(super) what: What,
}

/// The order of what happens to one access point at one instant: by kind, by whom it concerns, and by the class of the message. What still
/// ties goes by the order in which it was brought about.
pub(super) type Rank = (u8, u128, u8);

pub(super) enum What {
    Wake,
    Dial(AccessPoint),
    Event(Box<Event>),
    Asked { from: AccessPoint, life: u64, wire: u64, class: u8, request: Box<Request> },
    Answered { wire: u64, from: AccessPoint, class: u8, response: Option<Box<Response>> },
    Gossiped { from: AccessPoint, class: u8, gossip: Gossip },
    State(StateAction),
    Cache(CacheAction),
    Landed { contact: usize, address: IpAddr, took: Millis },
    Fetched { contact: usize, address: IpAddr, report: Box<FetchReport>, former: Option<Box<Former>> },
}

impl What {
    /// Where this stands among what happens at one instant: by what it is, not by when it was brought about.
    pub(super) fn rank(&self, number_of: impl Fn(&AccessPoint) -> u32) -> Rank {
        let address = |address: &IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(*address)),
            IpAddr::V6(address) => u128::from(*address),
        };
        match self {
            What::Answered { from, class, .. } => (0, number_of(from).into(), *class),
            What::Asked { from, class, .. } => (1, number_of(from).into(), *class),
            What::Gossiped { from, class, .. } => (2, number_of(from).into(), *class),
            What::Event(event) => (3, 0, event_class(event)),
            What::State(action) => (4, 0, action.class()),
            What::Cache(_) => (5, 0, 0),
            What::Landed { address: of, .. } => (6, address(of), 0),
            What::Fetched { address: of, .. } => (7, address(of), 0),
            What::Dial(other) => (8, number_of(other).into(), 0),
            What::Wake => (9, 0, 0),
        }
    }
}

/// The number of this kind of event, among those that the world itself sends.
fn event_class(event: &Event) -> u8 {
    match event {
        Event::Met { .. } => 0,
        Event::Distance { .. } => 1,
        Event::Resolved { .. } => 2,
        Event::Probed { .. } => 3,
        Event::EditionFound { .. } => 4,
        _ => 5,
    }
}
