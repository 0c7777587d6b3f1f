//! Reasons why this access point never sends a request to a URL, host, address or subnet.
//!
//! Its configuration or the address itself forbids it.

use nearcrawl_model::{
    address::{AddressError, AddressPolicy},
    fetch::ResolveError,
    subnet::Subnet,
    url::{Host, PageUrl},
    view::Subject,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What a subject is refused for.
pub(super) struct NeverContacted {
    /// The reason, in sentences.
    pub(super) text: String,
    /// Whether other members, whatever their configuration, refuse it too unless they opened the range: then it has no owner.
    pub(super) everywhere: bool,
}

/// How ranges are opened, for those who ask about one.
const OPENED_BY: &str = "Only ranges in crawl.allow_ranges are excepted, which is meant for laboratories.";

/// The same for a machine that is near this one: to whom the network belongs only its operator knows.
const OWN_NETWORK_OPENED_BY: &str = "Machines there may be closed to everybody outside by a router. If it is a data centre's, \
                                     which customers share, crawl.allow_ranges opens it.";

/// Why a host whose addresses are all refused is not crawled.
pub(super) fn nowhere(host: &Host, failure: ResolveError) -> String {
    match failure {
        ResolveError::ForbiddenAddress => {
            format!(
                "No request is sent to {host}: its name leads to private, reserved or denied addresses only, or into the network of the \
                 machine that looked it up. {OPENED_BY}"
            )
        }
        _ => format!("No member crawls {host}: it has no usable address ({failure})."),
    }
}

/// Why a subject is refused, if it is; `address` is where it is, as far as that is known.
pub(super) fn never_contacted(policy: &AddressPolicy, subject: &Subject, address: Option<IpAddr>) -> Option<NeverContacted> {
    match subject {
        Subject::Subnet(subnet) => refused_subnet(policy, subnet),
        Subject::Address(address) => policy.check_ip(*address).err().map(|why| refused(&address.to_string(), why)),
        Subject::Host(host) => policy.check_ip(address_of(host, address)?).err().map(|why| refused(host.as_str(), why)),
        Subject::Url(url) => refused_url(policy, url, address),
    }
}

fn refused_url(policy: &AddressPolicy, url: &PageUrl, address: Option<IpAddr>) -> Option<NeverContacted> {
    let host = url.host();
    match address_of(&host, address) {
        Some(address) => policy.check(SocketAddr::new(address, url.port())).err().map(|why| refused(host.as_str(), why)),
        None => (!policy.ports.contains(&url.port())).then(|| refused(host.as_str(), AddressError::Port(url.port()))),
    }
}

/// A subnet is refused if both its ends are, for one reason, and no range in it is opened.
fn refused_subnet(policy: &AddressPolicy, subnet: &Subnet) -> Option<NeverContacted> {
    let first = policy.check_ip(subnet.first()).err()?;
    let last = policy.check_ip(subnet.network().broadcast()).err()?;
    let opened = policy.allowed.iter().any(|range| subnet.contains(range.ip()));
    (first == last && !opened).then(|| refused(&subnet.to_string(), first))
}

/// Where a host is: as it is known, as it says itself, or at the loopback address that RFC 6761 gives to `localhost`.
fn address_of(host: &Host, known: Option<IpAddr>) -> Option<IpAddr> {
    let local = host.as_str() == "localhost" || host.as_str().ends_with(".localhost");
    known.or_else(|| host.address()).or_else(|| local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

fn refused(name: &str, why: AddressError) -> NeverContacted {
    let (text, everywhere) = match why {
        AddressError::Own => (format!("This access point sends no request to {name}: it is an address of this machine."), false),
        AddressError::OwnNetwork => (format!("This access point sends no request to {name}: it is {why}. {OWN_NETWORK_OPENED_BY}"), false),
        AddressError::Denied => {
            (format!("This access point sends no request to {name}: it is in a range that crawl.deny_ranges denies."), false)
        }
        AddressError::NoContact => (
            format!(
                "This access point sends no request to {name}: it has no contact, so it asks no servers but those in crawl.allow_ranges. \
                 Set contact in the configuration, so that whoever runs the server can reach you."
            ),
            false,
        ),
        AddressError::Port(port) => {
            (format!("This access point sends no request to port {port} of {name}: the port is not one of crawl.ports."), false)
        }
        special => (format!("No request is sent to {name}: this is {special}, which no member contacts. {OPENED_BY}"), true),
    };
    NeverContacted { text, everywhere }
}
