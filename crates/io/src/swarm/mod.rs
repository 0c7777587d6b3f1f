//! Communication between access points over libp2p, which only this module uses.
//!
//! [`Swarm::start`] runs libp2p's event loop in a task of its own; [`SwarmCommand`]s go in, [`SwarmEvent`]s come out, both
//! over bounded channels. Nothing but a hello is taken from a peer before its hello was accepted. A reader, which is no member, asks
//! with [`ask_public`], and who is to become a member asks with [`seen_from`] whether others will reach it.

mod behaviour;
mod brief;
mod channel;
mod checks;
mod codec;
mod config;
mod diagnosis;
mod dial_back;
mod dial_guard;
mod dialling;
mod gossip_limits;
mod greet;
mod hello;
mod identity;
mod members_only;
mod messages;
mod meter;
mod outside;
mod peers;
mod port;
mod protocol;
mod public;
mod quic;
mod rate;
mod reach;
mod reason;
mod reservations;
mod run;
mod sent_messages;
mod serve;
mod single_ping;
mod slots;
mod source;
mod spent_turns;
#[cfg(test)]
mod tests;
mod topic;
mod transport;
mod ways;

pub use config::{StartError, SwarmConfig};
pub use hello::{HelloError, SwarmId, SwarmSecrets};
pub use identity::{access_point_of, access_point_of_seed, peer_id_of};
pub use messages::{AskError, Reachability, Reached, SwarmCommand, SwarmCounters, SwarmEvent, SwarmHandle, TellError};
pub use meter::SwarmMeter;
pub use outside::{OutsideError, SeenFrom, seen_from};
pub use port::MIN_PORT;
pub use protocol::PROTOCOL;
pub use public::{Reader, ReaderConfig, ask_public, ask_public_with};
pub use run::Swarm;
pub use sent_messages::SentMessages;
pub use source::{Carrier, listen_address};
