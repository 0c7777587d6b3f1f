//! A virtual network for tests, in which each node is a network namespace.
//!
//! What a node sends passes through this process, which delays it, loses it, or drops it where the network is partitioned. Real programs
//! run in it with real sockets.
//!
//! A namespace has no interface but `lo` and a TUN device that this process holds, so nothing leaves the machine. Namespaces have no
//! names: the kernel removes them when the last process in them has ended. Root, `/dev/net/tun` and the command `ip` are needed, and `nft`
//! if a node is behind a router: that is a second namespace, in which the kernel translates addresses.

mod error;
mod lab;
mod namespace;
mod network;
mod router;

pub use error::NetlabError;
pub use lab::Lab;
pub use network::{Dropped, Node, Plan};
pub use router::{INSIDE, Router};
