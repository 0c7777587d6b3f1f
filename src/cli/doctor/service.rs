//! Name servers that the systemd unit does not let the daemon ask: it refuses private addresses, and a home router's is one.
//!
//! `doctor` runs outside of the unit and reaches them, so a look-up says nothing of it. The unit and its drop-ins are read as systemd reads
//! them: a file of `/etc` takes the place of one of the same name elsewhere, and what is allowed goes before what is denied.

use super::finding::{Finding, State};
use crate::{io::resolver, node::config::Config};
use ipnetwork::IpNetwork;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Where units are, those that go before others first.
const DIRECTORIES: [&str; 5] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// The unit.
const UNIT: &str = "nearcrawl.service";

/// Whether the service may ask the name servers; none where no service is installed, or no name server is known.
pub(super) fn name_servers(config: &Config) -> Option<Finding> {
    let unit = unit_text(&DIRECTORIES.map(PathBuf::from))?;
    let servers: Vec<IpAddr> = match config.dns.servers.is_empty() {
        true => resolver::system_servers().ok()?,
        false => config.dns.servers.iter().map(|server| server.ip()).collect(),
    };
    let filter = Filter::read(&unit);
    let refused: Vec<String> = servers.iter().filter(|server| !filter.lets_through(**server)).map(ToString::to_string).collect();
    Some(match refused.len() {
        0 => Finding::good("service", "its unit lets it ask the name servers").by("dns.servers"),
        some => {
            // Where one of several can be asked names are looked up, but not when that one fails.
            let state = if some == servers.len() { State::Failed } else { State::Warning };
            let refused = refused.join(" ");
            Finding::new("service", state, format!("its unit does not let it ask {refused}: it refuses private addresses"))
                .by("dns.servers")
                .remedy(format!("sudo systemctl edit nearcrawl, with two lines: [Service] and IPAddressAllow={refused}; then restart it"))
        }
    })
}

/// The unit with its drop-ins; none if there is no unit.
fn unit_text(directories: &[PathBuf]) -> Option<String> {
    let unit = directories.iter().find_map(|directory| fs::read_to_string(directory.join(UNIT)).ok())?;
    let mut drop_ins: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for directory in directories {
        for path in files(&directory.join(format!("{UNIT}.d"))) {
            if let Some(name) = path.file_name() {
                drop_ins.entry(name.to_owned()).or_insert(path);
            }
        }
    }
    let texts = drop_ins.values().filter_map(|path| fs::read_to_string(path).ok());
    Some(texts.fold(unit, |all, text| all + "\n" + &text))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "conf")).collect()
}

/// What a unit says of addresses.
#[derive(Debug, Default)]
struct Filter {
    allowed: Vec<IpNetwork>,
    denied: Vec<IpNetwork>,
}

impl Filter {
    /// An empty value forgets what was said before (systemd.resource-control(5)).
    fn read(unit: &str) -> Filter {
        let mut filter = Filter::default();
        for line in unit.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let list = match key.trim() {
                "IPAddressAllow" => &mut filter.allowed,
                "IPAddressDeny" => &mut filter.denied,
                _ => continue,
            };
            if value.trim().is_empty() {
                list.clear();
            }
            list.extend(value.split_whitespace().flat_map(networks));
        }
        filter
    }

    fn lets_through(&self, address: IpAddr) -> bool {
        let has = |list: &[IpNetwork]| list.iter().any(|network| network.contains(address));
        has(&self.allowed) || !has(&self.denied)
    }
}

/// What a word of such a list stands for; nothing if it is none.
fn networks(word: &str) -> Vec<IpNetwork> {
    let named: &[&str] = match word {
        "any" => &["0.0.0.0/0", "::/0"],
        "localhost" => &["127.0.0.0/8", "::1/128"],
        "link-local" => &["169.254.0.0/16", "fe80::/64"],
        "multicast" => &["224.0.0.0/4", "ff00::/8"],
        _ => &[],
    };
    let one = std::iter::once(word).filter(|_| named.is_empty());
    named.iter().copied().chain(one).filter_map(|network| network.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unit that is installed.
    const OURS: &str = include_str!("../../../systemd/nearcrawl.service");

    fn lets_through(unit: &str, address: &str) -> bool {
        Filter::read(unit).lets_through(address.parse().unwrap())
    }

    #[test]
    fn the_unit_refuses_a_name_server_of_a_home_network_until_a_drop_in_allows_it() {
        for private in ["192.168.1.1", "10.0.0.1", "172.16.3.4", "fd00::1", "fe80::1", "100.64.0.1"] {
            assert!(!lets_through(OURS, private), "{private}");
            let drop_in = format!("{OURS}\n[Service]\nIPAddressAllow={private}\n");
            assert!(lets_through(&drop_in, private) && !lets_through(&drop_in, "192.168.1.2"), "{private}");
        }
        for other in ["127.0.0.53", "::1", "9.9.9.9", "2620:fe::fe"] {
            assert!(lets_through(OURS, other), "{other}");
        }
        assert!(lets_through(&format!("{OURS}\nIPAddressDeny=\n"), "192.168.1.1"), "an empty value takes back what was said before");
        assert!(lets_through(&format!("{OURS}\nIPAddressAllow=any\n"), "192.168.1.1"));
    }

    #[test]
    fn drop_ins_belong_to_the_unit_and_one_goes_before_another_of_the_same_name() {
        let root = tempfile::tempdir().unwrap();
        let [etc, lib] = ["etc", "lib"].map(|name| root.path().join(name));
        let both = [etc.clone(), lib.clone()];
        assert_eq!(unit_text(&both), None);
        let write = |directory: &Path, name: &str, text: &str| {
            let file = directory.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(&lib, UNIT, OURS);
        assert!(!lets_through(&unit_text(&both).unwrap(), "192.168.1.1"));
        write(&lib, "nearcrawl.service.d/dns.conf", "[Service]\nIPAddressAllow=192.168.1.1\n");
        assert!(lets_through(&unit_text(&both).unwrap(), "192.168.1.1"));
        write(&etc, "nearcrawl.service.d/dns.conf", "[Service]\nIPAddressAllow=192.168.7.1\n");
        write(&etc, "nearcrawl.service.d/dns.conf~", "[Service]\nIPAddressAllow=192.168.1.1\n");
        assert!(!lets_through(&unit_text(&both).unwrap(), "192.168.1.1"), "the one in /etc takes its place");
        assert!(lets_through(&unit_text(&both).unwrap(), "192.168.7.1"));
    }
}
