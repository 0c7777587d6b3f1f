//! Reasons why there is no virtual network here.

use std::io;

/// Why a network could not be set up or changed.
#[derive(Debug, thiserror::Error)]
pub enum NetlabError {
    /// This process may not make network namespaces.
    #[error("a virtual network needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN), but this process may not {what}: {source}")]
    NotRoot {
        /// What was refused.
        what: &'static str,
        /// The error that the system reports.
        source: io::Error,
    },
    /// There is no TUN device.
    #[error("a virtual network needs /dev/net/tun (`modprobe tun`; a container needs the device, too): {0}")]
    NoTun(io::Error),
    /// There is no `ip`.
    #[error("a virtual network needs the command `ip` (Debian: iproute2; scripts/setup.sh installs it): {0}")]
    NoIp(io::Error),
    /// There is no `nft`.
    #[error("a virtual network with routers needs the command `nft` (Debian: nftables; scripts/setup.sh installs it): {0}")]
    NoNft(io::Error),
    /// `ip` or `nft` did not do what it was told.
    #[error("`ip -batch` or `nft` failed on:\n{0}")]
    Refused(String),
    /// The plan has no such node, or two nodes with one name or address.
    #[error("the plan of the network: {0}")]
    Plan(String),
    /// Something else of the system.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The error that the system reports.
        source: io::Error,
    },
}

impl NetlabError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> NetlabError {
        let what = what.into();
        move |source| NetlabError::System { what, source }
    }
}
