//! Keys of journals, made so that byte order is the order (subnet, host, run, sequence) and each of them is one range.
//!
//! ```text
//! subnet    family (4 or 6) · address (4 or 16 bytes) · prefix length      one subnet's journals are one range
//! journal   subnet · host · NUL · run (u32, big endian)                    one journal's rows are one range
//! row       journal · sequence (u64, big endian)
//! ```
//! No host contains a NUL, so no host's keys fall between another's.

use nearcrawl_model::{journal::JournalKey, subnet::Subnet, url::Host};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The key of a subnet: 6 or 18 bytes.
pub(super) fn of_subnet(subnet: &Subnet) -> Vec<u8> {
    let mut key = Vec::with_capacity(18);
    match subnet.first() {
        IpAddr::V4(address) => {
            key.push(4);
            key.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            key.push(6);
            key.extend_from_slice(&address.octets());
        }
    }
    key.push(subnet.length());
    key
}

/// What the keys of the journals of all runs of a site begin with.
pub(super) fn of_site(journal: &JournalKey) -> Vec<u8> {
    let mut key = of_subnet(&journal.subnet);
    key.extend_from_slice(journal.host.as_str().as_bytes());
    key.push(0);
    key
}

/// The key of a journal, which begins the keys of its rows.
pub(super) fn of_journal(journal: &JournalKey) -> Vec<u8> {
    let mut key = of_site(journal);
    key.extend_from_slice(&journal.run.to_be_bytes());
    key
}

/// The key of a row.
pub(super) fn of_row(journal: &[u8], sequence: u64) -> Vec<u8> {
    [journal, &sequence.to_be_bytes()].concat()
}

/// Reads the key of a journal, or none if it is not one.
pub(super) fn read_journal(key: &[u8]) -> Option<JournalKey> {
    let (family, rest) = key.split_first()?;
    let (address, rest): (IpAddr, _) = match family {
        4 => rest.split_first_chunk::<4>().map(|(a, rest)| (Ipv4Addr::from(*a).into(), rest))?,
        6 => rest.split_first_chunk::<16>().map(|(a, rest)| (Ipv6Addr::from(*a).into(), rest))?,
        _ => return None,
    };
    let (length, rest) = rest.split_first()?;
    let subnet = Subnet::around(address, *length);
    let (host, run) = rest.split_last_chunk::<4>()?;
    let host: Host = std::str::from_utf8(host.strip_suffix(&[0])?).ok()?.parse().ok()?;
    let journal = JournalKey { subnet, host, run: u32::from_be_bytes(*run) };
    // A length beyond the family's or a host in another spelling would be another key.
    (of_journal(&journal) == key).then_some(journal)
}

/// Reads the key of a row, or none if it is not one.
pub(super) fn read_row(key: &[u8]) -> Option<(JournalKey, u64)> {
    let (journal, sequence) = key.split_last_chunk::<8>()?;
    Some((read_journal(journal)?, u64::from_be_bytes(*sequence)))
}

/// The smallest key that is greater than all keys beginning with `prefix`; none if there is no such key.
pub(super) fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn journals() -> impl Strategy<Value = JournalKey> {
        let address = prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)];
        let host = prop_oneof!["[a-z]{1,3}(\\.[a-z0-9]{1,2}){0,2}", Just("10.0.0.1".to_owned()), Just("2001:db8::7".to_owned())];
        (address, any::<u8>(), host, prop_oneof![Just(1u32), Just(2), Just(255), Just(256), any::<u32>()])
            .prop_filter_map("not a host", |(address, length, host, run)| {
                Some(JournalKey { subnet: Subnet::around(address, length), host: host.parse().ok()?, run })
            })
    }

    proptest! {
        #[test]
        fn a_row_key_reads_back(journal in journals(), sequence: u64) {
            let key = of_row(&of_journal(&journal), sequence);
            prop_assert_eq!(read_row(&key), Some((journal, sequence)));
        }

        #[test]
        fn byte_order_is_subnet_host_run_sequence(mut keys in prop::collection::vec((journals(), 0u64..3), 2..30)) {
            let order = |(journal, sequence): &(JournalKey, u64)| {
                (of_subnet(&journal.subnet), journal.host.as_str().to_owned(), journal.run, *sequence)
            };
            keys.sort_by_key(order);
            prop_assert!(keys.is_sorted_by_key(|(journal, sequence)| of_row(&of_journal(journal), *sequence)));
        }

        #[test]
        fn a_subnet_is_one_range_and_so_is_a_journal(a in journals(), b in journals(), sequence: u64) {
            let row = of_row(&of_journal(&b), sequence);
            let inside = |prefix: Vec<u8>| row >= prefix && behind(&prefix).is_none_or(|end| row < end);
            prop_assert_eq!(inside(of_subnet(&a.subnet)), a.subnet == b.subnet);
            prop_assert_eq!(inside(of_journal(&a)), a == b);
        }

        #[test]
        fn no_bytes_make_it_panic(key: Vec<u8>) {
            if let Some((journal, sequence)) = read_row(&key) {
                prop_assert_eq!(of_row(&of_journal(&journal), sequence), key);
            }
        }
    }

    #[test]
    fn behind_skips_bytes_that_cannot_grow() {
        assert_eq!(behind(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(behind(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(behind(&[0xff]), None);
        assert_eq!(behind(&[]), None);
    }
}
