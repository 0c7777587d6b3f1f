//! Addresses of this access point that its configuration does not have: where members see it, where its names lead, what its interfaces have.
//!
//! No server is asked there: behind a home router they lead to what the router lets nobody in to from outside.

use crate::io::resolver::{Family, Resolver};
use ipnetwork::IpNetwork;
use nearcrawl_model::{address::SeenAt, fetch::ResolveError, url::Host};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Where a name led last holds for so long, if it cannot be looked up any more.
const HOLDS_FOR: Duration = Duration::from_secs(3600);

/// Names are looked up again so long afterwards, as members are asked where they see us; or if one could not be.
const AGAIN: Duration = Duration::from_secs(1200);
const AGAIN_FAILED: Duration = Duration::from_secs(60);

/// More questions about own names than that are not asked at a time.
const MAX_NAMES: usize = 32;

/// What is asked about a name in `swarm.advertise`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnName {
    /// Its addresses of a family.
    Addresses(Host, Family),
    /// The multiaddresses that are listed under it (`/dnsaddr`).
    Listed(Host),
}

impl OwnName {
    /// Where it leads, whatever may be contacted.
    pub(super) async fn look_up(&self, resolver: &Resolver) -> Result<Vec<IpAddr>, ResolveError> {
        match self {
            OwnName::Addresses(host, family) => resolver.every_address(host, *family).await,
            OwnName::Listed(host) => {
                let texts = resolver.texts(&format!("_dnsaddr.{host}")).await?;
                Ok(texts.iter().filter_map(|text| text.strip_prefix("dnsaddr=")).flat_map(literals).collect())
            }
        }
    }
}

/// The names that these multiaddresses begin with.
fn names(addresses: &[String]) -> BTreeSet<OwnName> {
    let mut names = BTreeSet::new();
    for address in addresses {
        let mut parts = address.split('/').skip(1);
        let (kind, host) = (parts.next(), parts.next().and_then(|name| name.parse::<Host>().ok()));
        match (kind, host) {
            (Some("dns" | "dns4" | "dns6"), Some(host)) => {
                names.extend([Family::Four, Family::Six].map(|family| OwnName::Addresses(host.clone(), family)));
            }
            (Some("dnsaddr"), Some(host)) => drop(names.insert(OwnName::Listed(host))),
            _ => {}
        }
    }
    names
}

/// The IP addresses in a multiaddress.
pub(super) fn literals(address: &str) -> impl Iterator<Item = IpAddr> {
    address.split('/').filter_map(|part| part.parse::<IpAddr>().ok()).filter(|ip| !ip.is_unspecified())
}

/// Where this access point is. Clones are the same.
#[derive(Clone)]
pub(super) struct OwnAddresses(Arc<Mutex<Known>>);

struct Known {
    /// Where members see it; they take back what does not hold any more.
    seen: Vec<IpAddr>,
    /// Where its names lead, and when that was found out.
    named: BTreeMap<OwnName, (Vec<IpAddr>, Instant)>,
    /// The addresses of the machine's interfaces, with the networks that they are in.
    here: Vec<IpNetwork>,
    /// Ranges that the operator opened: a laboratory's servers may be on this machine.
    opened: Vec<IpNetwork>,
    /// When names are looked up again; none if they never were.
    next: Option<Instant>,
    /// Who is told all that.
    told: SeenAt,
}

impl Known {
    fn tell(&self) {
        let is_opened = |address: &IpAddr| self.opened.iter().any(|range| range.contains(*address));
        let named = self.named.values().flat_map(|(addresses, _)| addresses.iter().copied());
        let found = named.chain(self.here.iter().map(IpNetwork::ip)).filter(|address| !is_opened(address));
        let mut addresses = self.seen.clone();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        self.told.set(&addresses, &self.here);
    }
}

impl OwnAddresses {
    /// Nothing is known yet; this is told what is found out.
    pub(super) fn new(told: SeenAt) -> OwnAddresses {
        let (seen, named, here, opened) = (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        OwnAddresses(Arc::new(Mutex::new(Known { seen, named, here, opened, next: None, told })))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This is told from now on.
    pub(super) fn tell(&self, told: SeenAt) {
        let mut known = self.known();
        known.told = told;
        known.tell();
    }

    /// Members see us at these addresses.
    pub(super) fn seen(&self, addresses: &[IpAddr]) {
        let mut known = self.known();
        known.seen = addresses.to_vec();
        known.tell();
    }

    /// The machine's interfaces have these addresses; none if the system does not tell now: then they are as it told them last. Addresses in
    /// ranges that the operator opened are left out.
    pub(super) fn interfaces(&self, told: Option<Vec<IpNetwork>>, opened: &[IpNetwork]) {
        let Some(here) = told else { return };
        let mut known = self.known();
        if here != known.here || opened != known.opened {
            (known.here, known.opened) = (here, opened.to_vec());
            known.tell();
        }
    }

    /// The names in these multiaddresses that are to be looked up now. What was not confirmed for long is given up.
    pub(super) fn due(&self, addresses: &[String], now: Instant) -> Vec<OwnName> {
        let mut known = self.known();
        let before = known.named.len();
        known.named.retain(|_, (_, since)| now.saturating_duration_since(*since) < HOLDS_FOR);
        if known.named.len() < before {
            known.tell();
        }
        if known.next.is_some_and(|next| now < next) {
            return Vec::new();
        }
        known.next = Some(now + AGAIN);
        names(addresses).into_iter().take(MAX_NAMES).collect()
    }

    /// What came of a look-up. After a failure the name leads where it did before.
    pub(super) fn looked_up(&self, name: OwnName, found: Result<Vec<IpAddr>, ResolveError>, now: Instant) {
        let mut known = self.known();
        match found {
            Ok(addresses) => {
                known.named.insert(name, (addresses, now));
                known.tell();
            }
            Err(_) => known.next = Some(now + AGAIN_FAILED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_found_in_addresses_of_every_kind() {
        let texts = ["/dns4/a.ke/tcp/4817", "/dns/a.ke/udp/4817/quic-v1", "/dnsaddr/b.ke/tcp/1", "/ip4/192.0.2.1/tcp/1"].map(str::to_owned);
        let (a, b): (Host, Host) = ("a.ke".parse().unwrap(), "b.ke".parse().unwrap());
        let wanted = [OwnName::Addresses(a.clone(), Family::Four), OwnName::Addresses(a, Family::Six), OwnName::Listed(b)];
        assert_eq!(names(&texts), wanted.into());
        assert_eq!(literals("/ip6/2001:db8::1/tcp/1/p2p/x").collect::<Vec<_>>(), [at("2001:db8::1")]);
        assert_eq!(literals(&texts[3]).chain(literals("/ip4/0.0.0.0/tcp/1")).collect::<Vec<_>>(), [at("192.0.2.1")]);
    }

    #[test]
    fn where_a_name_led_holds_until_it_leads_elsewhere_or_for_an_hour() {
        let (told, now) = (SeenAt::default(), Instant::now());
        let own = OwnAddresses::new(told.clone());
        let advertise = ["/dns4/home.dyn.ke/tcp/4817".to_owned()];
        let name = own.due(&advertise, now).remove(0);
        assert!(own.due(&advertise, now).is_empty(), "it is being looked up");
        own.looked_up(name.clone(), Ok(vec![at("9.9.9.9")]), now);
        own.seen(&[at("8.8.8.8")]);
        assert_eq!(told.get(), [at("8.8.8.8"), at("9.9.9.9")]);
        let now = now + AGAIN;
        assert_eq!(own.due(&advertise, now).len(), 2, "again from time to time");
        own.looked_up(name.clone(), Ok(vec![at("9.9.9.10")]), now);
        assert_eq!(told.get(), [at("8.8.8.8"), at("9.9.9.10")]);
        own.looked_up(name.clone(), Err(ResolveError::TimedOut), now);
        assert_eq!(told.get().len(), 2, "the name server does not answer");
        assert_eq!(own.due(&advertise, now + AGAIN_FAILED).len(), 2, "so it is asked again soon");
        own.due(&advertise, now + HOLDS_FOR);
        assert_eq!(told.get(), [at("8.8.8.8")]);
    }

    #[test]
    fn another_policy_is_told_all_and_opened_ranges_are_left_out() {
        let own = OwnAddresses::new(SeenAt::default());
        let name = OwnName::Listed("a.ke".parse().unwrap());
        own.looked_up(name, Ok(vec![at("127.0.0.1"), at("9.9.9.9")]), Instant::now());
        let here = vec!["127.0.0.2/8".parse().unwrap(), "2a00::7/64".parse().unwrap()];
        own.interfaces(Some(here), &["127.0.0.0/8".parse().unwrap()]);
        let told = SeenAt::default();
        own.tell(told.clone());
        assert_eq!(told.get(), [at("9.9.9.9"), at("2a00::7")]);
        let policy = nearcrawl_model::address::AddressPolicy { seen_at: told, ..Default::default() };
        assert_eq!(policy.check_ip(at("2a00::8")), Err(nearcrawl_model::address::AddressError::OwnNetwork));
    }
}
