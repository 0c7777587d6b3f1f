//! What does this machine allow a daemon? Open files, free disk, and whether its clock is kept right.

use std::net::{IpAddr, SocketAddr, UdpSocket};

pub use super::store::free_bytes;

/// How many files and connections this process may have open at once.
pub fn open_files() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes one rlimit to the address that it is given, which is that of a local variable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    known.then_some(limit.rlim_cur)
}

/// Whether the kernel believes that somebody keeps its clock right, by NTP or alike; none if it does not say.
pub fn clock_is_kept() -> Option<bool> {
    // SAFETY: all zeros is a timex, and modes 0 changes nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex writes one timex to the address that it is given, which is that of a local variable.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    (state >= 0).then_some(state != libc::TIME_ERROR)
}

/// The address from which this machine would send to the Internet. Nothing is sent.
pub fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    // An address of the documentation (RFC 5737): connecting a UDP socket only chooses a route.
    socket.connect(("192.0.2.1", 9)).ok()?;
    socket.local_addr().ok().map(|address: SocketAddr| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_says_is_plausible() {
        assert!(open_files().is_some_and(|limit| limit > 10));
        let directory = tempfile::tempdir().unwrap();
        assert!(free_bytes(directory.path()).unwrap() > 0);
    }
}
