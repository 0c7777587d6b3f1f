//! How do access points talk to each other? Over libp2p, which only this module uses.
//!
//! [`Swarm::start`] runs libp2p's event loop in a task of its own; [`SwarmCommand`]s go in, [`SwarmEvent`]s come out, both
//! over bounded channels. Nothing but a hello is taken from a peer before its hello was accepted. A reader, which is no member, asks
//! with [`ask_public`].

mod behaviour;
mod brief;
mod channel;
mod codec;
mod config;
mod diagnosis;
mod dialling;
mod gossip_limits;
mod greet;
mod hello;
mod identity;
mod messages;
mod peers;
mod protocol;
mod public;
mod rate;
mod reason;
mod run;
mod serve;
mod slots;
mod source;
#[cfg(test)]
mod tests;
mod topic;
mod transport;

pub use config::{StartError, SwarmConfig};
pub use hello::{HelloError, SwarmId, SwarmSecrets};
pub use identity::{access_point_of, access_point_of_seed, peer_id_of};
pub use messages::{AskError, SwarmCommand, SwarmCounters, SwarmEvent, SwarmHandle, TellError};
pub use protocol::PROTOCOL;
pub use public::{Reader, ReaderConfig, ask_public, ask_public_with};
pub use run::Swarm;
pub use source::listen_address;
