//! Limits of this machine for a daemon: open files, free disk, and whether its clock is kept right.

use ipnetwork::IpNetwork;
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

/// The addresses of this machine's network interfaces but for loopback ones, each with the length of the network that it is in; none if the
/// system does not tell. That it has no other ones is an empty list.
pub fn interfaces() -> Option<Vec<IpNetwork>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: getifaddrs writes the head of a list that it allocates to the address that it is given, which is that of a local variable.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: each pointer is null or to an entry of that list, which is not freed before the end of the loop.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: both are null, or to socket addresses of that list.
        let (address, mask) = unsafe { (address_at(entry.ifa_addr), address_at(entry.ifa_netmask)) };
        found.extend(address.filter(|address| !address.is_loopback()).and_then(|address| with_mask(address, mask)));
        next = entry.ifa_next;
    }
    // SAFETY: it is the head of the list, and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// An address in the network of this mask; by itself, if there is none, or it is not one of a network.
fn with_mask(address: IpAddr, mask: Option<IpAddr>) -> Option<IpNetwork> {
    let of_mask = mask.filter(|mask| mask.is_ipv4() == address.is_ipv4()).and_then(|mask| IpNetwork::with_netmask(address, mask).ok());
    of_mask.or_else(|| IpNetwork::new(address, if address.is_ipv4() { 32 } else { 128 }).ok())
}

/// The address in a socket address, if it is one of IP.
///
/// # Safety
/// The pointer is null, or to a whole socket address, of which every kind begins with its family.
unsafe fn address_at(socket: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller says so.
    let family = i32::from(unsafe { socket.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: the family says so. The copy needs no alignment.
            let address = unsafe { socket.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::from(u32::from_be(address.sin_addr.s_addr).to_be_bytes()))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says so. The copy needs no alignment.
            let address = unsafe { socket.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::from(address.sin6_addr.s6_addr))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_by_which_the_machine_sends_is_one_of_its_interfaces() {
        let all: Vec<IpAddr> = interfaces().unwrap().iter().map(IpNetwork::ip).collect();
        assert!(all.iter().all(|address| !address.is_loopback()), "{all:?}");
        // Without a route there is none.
        if let Some(own) = own_address().filter(|own| !own.is_loopback()) {
            assert!(all.contains(&own), "{own} is not among {all:?}");
        }
    }

    #[test]
    fn an_interface_is_in_the_network_of_its_mask() {
        let read = |address: &str, mask: Option<&str>| {
            with_mask(address.parse().unwrap(), mask.map(|mask| mask.parse().unwrap())).unwrap().to_string()
        };
        assert_eq!(read("192.0.2.7", Some("255.255.255.0")), "192.0.2.7/24");
        assert_eq!(read("2001:db8::7", Some("ffff:ffff:ffff:ffff::")), "2001:db8::7/64");
        assert_eq!(read("2001:db8::7", None), "2001:db8::7/128");
        assert_eq!(read("192.0.2.7", Some("255.0.255.0")), "192.0.2.7/32");
        assert_eq!(read("192.0.2.7", Some("ffff::")), "192.0.2.7/32");
    }

    #[test]
    fn what_the_machine_says_is_plausible() {
        assert!(open_files().is_some_and(|limit| limit > 10));
        let directory = tempfile::tempdir().unwrap();
        assert!(free_bytes(directory.path()).unwrap() > 0);
    }
}
