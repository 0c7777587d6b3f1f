//! Input and output for nearcrawl: each module uses one library to reach the network, the disk or the clock; no module decides anything.

pub mod client;
pub mod default_route;
pub mod fetcher;
pub mod files;
pub mod image;
pub mod json;
pub mod machine;
pub mod memory;
pub mod prober;
pub mod registry;
pub mod request_log;
pub mod resolver;
pub mod snapshot;
pub mod sockets;
pub mod store;
pub mod swarm;
pub mod tasks;
pub mod tcp_bytes;
pub mod text;
