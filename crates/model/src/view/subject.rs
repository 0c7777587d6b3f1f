//! What can people ask about? A page, a host, an address or a subnet, as they type it.

use crate::{
    subnet::Subnet,
    url::{Host, PageUrl},
};
use std::{fmt, net::IpAddr, str::FromStr};

/// What can be asked about: a page, a host, an address or a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The URL of a page.
    Url(PageUrl),
    /// A host name.
    Host(Host),
    /// An IP address.
    Address(IpAddr),
    /// A subnet, registered or a part of one.
    Subnet(Subnet),
}

/// The error for a text that is no [`Subject`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a URL nor a host name nor an IP address nor a subnet")]
pub struct NoSubject(pub String);

impl FromStr for Subject {
    type Err = NoSubject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let no_subject = || NoSubject(text.chars().take(120).collect());
        if let Ok(address) = text.trim_matches(['[', ']']).parse() {
            return Ok(Subject::Address(address));
        }
        if text.contains('/')
            && let Ok(subnet) = text.parse()
        {
            return Ok(Subject::Subnet(subnet));
        }
        if text.contains("://") {
            return PageUrl::parse(text).map(Subject::Url).map_err(|_| no_subject());
        }
        if text.contains('/') {
            return PageUrl::parse(&format!("http://{text}")).map(Subject::Url).map_err(|_| no_subject());
        }
        text.parse().map(Subject::Host).map_err(|_| no_subject())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Url(url) => url.fmt(f),
            Subject::Host(host) => host.fmt(f),
            Subject::Address(address) => address.fmt(f),
            Subject::Subnet(subnet) => subnet.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_url_a_host_an_address_or_a_subnet() {
        let read = |text: &str| text.parse::<Subject>();
        assert_eq!(read(" 10.1.2.3 "), Ok(Subject::Address("10.1.2.3".parse().unwrap())));
        assert_eq!(read("[2001:db8::1]"), Ok(Subject::Address("2001:db8::1".parse().unwrap())));
        assert_eq!(read("10.1.2.0/24"), Ok(Subject::Subnet("10.1.2.0/24".parse().unwrap())));
        assert_eq!(read("2001:db8::/48"), Ok(Subject::Subnet("2001:db8::/48".parse().unwrap())));
        assert_eq!(read("10.1.2.3/a"), Ok(Subject::Url(PageUrl::parse("http://10.1.2.3/a").unwrap())));
        assert_eq!(read("Museum.or.KE"), Ok(Subject::Host("museum.or.ke".parse().unwrap())));
        assert_eq!(read("museum.or.ke/a"), Ok(Subject::Url(PageUrl::parse("http://museum.or.ke/a").unwrap())));
        assert_eq!(read("https://museum.or.ke/"), Ok(Subject::Url(PageUrl::parse("https://museum.or.ke/").unwrap())));
        for bad in ["", "a b", "ftp://museum.or.ke/", "..", "http://"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
