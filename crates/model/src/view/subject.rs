//! Subjects of queries by people: a page, a host, an address or a subnet, as they type it.

use crate::{
    subnet::{Subnet, SubnetError},
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
pub enum SubjectError {
    /// It looks like nothing of the kind.
    #[error("{0:?} is neither a URL nor a host name nor an IP address nor a subnet")]
    Unknown(String),
    /// It looks like a subnet, and is none.
    #[error(transparent)]
    Subnet(#[from] SubnetError),
}

/// Whether a text is meant as a subnet: something like an address, a slash, and a number. Pages at such URLs are asked for with `http://`.
fn like_a_subnet(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let dotted = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let grouped = address.matches(':').count() > 1 && address.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    (dotted || grouped) && !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let no_subject = || SubjectError::Unknown(text.chars().take(120).collect());
        if let Ok(address) = text.trim_matches(['[', ']']).parse() {
            return Ok(Subject::Address(address));
        }
        match text.parse::<Subnet>() {
            Ok(subnet) if text.contains('/') => return Ok(Subject::Subnet(subnet)),
            Err(why) if like_a_subnet(text) => return Err(why.into()),
            _ => {}
        }
        if text.contains("://") {
            return PageUrl::parse(text).map(Subject::Url).map_err(|_| no_subject());
        }
        if text.contains('/') {
            return PageUrl::parse(&format!("http://{text}")).map(Subject::Url).map_err(|_| no_subject());
        }
        // An address in a form that only URLs have, like `190.0`, is one, too.
        let host: Host = text.parse().map_err(|_| no_subject())?;
        Ok(host.address().map_or(Subject::Host(host), Subject::Address))
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
        for bad in ["10.0.0.0/33", "10.0.0.0/999", "10.0.0/24", "300.0.0.0/8", "10.0.0.0/255.255.0", "2001:db8::/129", "2001:::/32"] {
            let said = read(bad).unwrap_err().to_string();
            assert!(said.contains("is not a subnet") && said.contains(bad) && said.contains("at most 32 for IPv4"), "{bad}: {said}");
        }
        assert_eq!(read("http://10.0.0.1/33"), Ok(Subject::Url(PageUrl::parse("http://10.0.0.1/33").unwrap())));
    }
}
