//! How other members reach an access point.

use crate::access_point::AccessPoint;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// Whether others reach an access point from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReachState {
    /// No member has tried yet.
    #[default]
    Unknown,
    /// They do.
    Public,
    /// A router or firewall is in between.
    BehindNat,
}

/// An address at which members connected to an access point from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedAddress {
    /// The address, as a multiaddr with the peer id.
    pub address: String,
    /// The members that did so last, within an hour.
    #[schema(value_type = Vec<String>)]
    pub confirmed_by: Vec<AccessPoint>,
}

/// How others get to an access point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReachabilityView {
    /// Whether they reach it from outside.
    pub state: ReachState,
    /// The same in a sentence, with what to do about it.
    pub state_text: String,
    /// Where others are told to reach it, the best address first.
    pub addresses: Vec<String>,
    /// Where members connected to it from outside, and which members.
    #[serde(default)]
    pub confirmed: Vec<ConfirmedAddress>,
    /// The members through which it is reached.
    #[schema(value_type = Vec<String>)]
    pub relays: Vec<AccessPoint>,
    /// The addresses that others see it at; they are never crawled from here.
    #[schema(value_type = Vec<String>)]
    pub own_addresses: Vec<IpAddr>,
    /// Whether others are reached through it.
    pub relays_for_others: bool,
    /// Members that are connected.
    pub members_connected: u64,
    /// Those of them that are reached through third members only.
    #[schema(value_type = Vec<String>)]
    pub members_relayed: Vec<AccessPoint>,
    /// Connections of two other members that it relayed since its start.
    pub circuits: u64,
    /// Members that it tried to reach since its start because they asked whether they are reached.
    pub dialled_back: u64,
    /// Direct connections since its start that came of both sides' dialling at once.
    pub holes_found: u64,
    /// Attempts at that which failed.
    pub holes_not_found: u64,
}

impl ReachabilityView {
    /// The state in a sentence. `advertised`: the operator says where it is reached.
    pub fn sentence(state: ReachState, advertised: bool, relays: &[AccessPoint]) -> String {
        match state {
            ReachState::Public if advertised => "others are told the addresses of swarm.advertise".to_owned(),
            ReachState::Public => "others reach it from outside".to_owned(),
            ReachState::Unknown => "no member has tried yet whether others reach it from outside".to_owned(),
            ReachState::BehindNat => {
                let by: Vec<String> = relays.iter().map(|relay| relay.short().to_string()).collect();
                let through = if by.is_empty() {
                    "through members that it is connected to itself: none of them relays".to_owned()
                } else {
                    format!("through {}", by.join(" and "))
                };
                format!("behind NAT or a firewall: others reach it {through}; forward its port in the router, and it is reached directly")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_members_that_relay() {
        let relays = [AccessPoint([1; 32]), AccessPoint([2; 32])];
        let said = ReachabilityView::sentence(ReachState::BehindNat, false, &relays);
        assert!(said.contains(&format!("through {} and {}", relays[0].short(), relays[1].short())), "{said}");
        assert!(ReachabilityView::sentence(ReachState::BehindNat, false, &[]).contains("none of them relays"));
        assert!(ReachabilityView::sentence(ReachState::Public, true, &[]).contains("swarm.advertise"));
    }
}
