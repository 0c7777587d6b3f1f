//! What can happen to an access point of a simulated world?

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

pub(super) enum What {
    Wake,
    Dial(AccessPoint),
    Event(Box<Event>),
    Asked { from: AccessPoint, life: u64, wire: u64, request: Box<Request> },
    Answered { wire: u64, from: AccessPoint, response: Option<Box<Response>> },
    Gossiped(Gossip),
    State(StateAction),
    Cache(CacheAction),
    Landed { contact: usize, address: IpAddr, took: Millis },
    Fetched { contact: usize, address: IpAddr, report: Box<FetchReport>, former: Option<Box<Former>> },
}
