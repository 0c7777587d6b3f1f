//! Checks that must hold before a daemon starts.
//!
//! `run` and `check` use the same function, and nothing is written before it succeeds.
//!
//! What another process may hold just now (the state directory, a port) is not asked here: a daemon that runs with the configuration holds
//! both, and the configuration is right.

use crate::io::{
    fetcher::WebTls,
    machine,
    resolver::Resolver,
    sockets::could_bind,
    store::Store,
    swarm::{self, Carrier},
};
use crate::node::{
    allowance::{disk_limit::MIN_FREE, metered_line},
    api::ApiError,
    config::Config,
    error::NodeError,
    hierarchy::{
        data_age::DataAge,
        snapshot_store::{Given, edition_of},
    },
    setup,
    state::{admission_files, keyfile},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{AdmissionMode, SignedAdmission},
    fingerprint::FingerprintKey,
    time::WallTime,
};
use std::{
    net::{IpAddr, SocketAddr},
    slice,
};

/// A configuration with which a daemon can start, as far as that can be known beforehand, and what had to be read to know it.
#[derive(Clone, Debug)]
pub struct StartChecks {
    /// The hierarchy of the configuration.
    pub(super) given: Given,
    /// The key without which no other member can connect, if there is one.
    pub(super) pre_shared_key: Option<[u8; 32]>,
    /// The certificate by which it is a member, if people gave it one.
    pub(super) certificate: Option<SignedAdmission>,
    /// Who it is; none if the key is not made yet.
    access_point: Option<AccessPoint>,
}

impl StartChecks {
    /// Checks all that a start needs: each thing, whatever is wrong with the others.
    ///
    /// # Errors
    /// Why a daemon cannot start with this configuration here: all reasons at once.
    pub fn of(config: &Config) -> Result<StartChecks, NodeError> {
        let mut mistakes: Vec<NodeError> = config.not_ready().into_iter().map(NodeError::from).collect();
        found(keyfile::check(config), &mut mistakes);
        // What is wrong with a file in the place of the directory was said.
        if config.state_dir.is_dir() {
            found(Store::check_format(&config.state_dir), &mut mistakes);
        }
        check_listening(config, &mut mistakes);
        let key_file = config.swarm.pre_shared_key_file.as_deref();
        let pre_shared_key = found(key_file.map(keyfile::pre_shared_key).transpose(), &mut mistakes).flatten();
        check_web(config, &mut mistakes);
        let certificate = found(admission_files::certificate(config), &mut mistakes).flatten();
        match found(Given::read(config), &mut mistakes) {
            Some(given) if mistakes.is_empty() => {
                Ok(StartChecks { given, pre_shared_key, certificate, access_point: keyfile::known(config) })
            }
            _ => Err(NodeError::of_all(mistakes)),
        }
    }

    /// What is allowed but will not work as it is probably meant, one sentence each: of the configuration and of what was read beside it.
    pub fn warnings(&self, config: &Config) -> Vec<String> {
        let mut warnings = config.warnings();
        let (rule, me) = (&config.admission.rule, self.access_point);
        if rule.mode == AdmissionMode::Invite && self.certificate.is_none() {
            let what = "admission.mode = \"invite\", and there is no certificate in the state directory: members of the swarm will not let this access \
                        point in until `nearcrawl swarm join` has put one there";
            warnings.push(what.to_owned());
        }
        if let Some(me) = me.filter(|me| rule.mode == AdmissionMode::Closed && !rule.members.contains(me)) {
            warnings.push(format!("admission.members lacks this access point, {me}: it lets the others in, and is no member itself"));
        }
        let others = config.swarm.advertise.iter().filter(|address| {
            let named = address.rsplit_once("/p2p/").and_then(|(_, peer)| peer.parse::<AccessPoint>().ok());
            named.zip(me).is_some_and(|(named, me)| named != me)
        });
        warnings.extend(
            others.map(|address| format!("swarm.advertise = \"{address}\" ends in the peer id of another access point than this one")),
        );
        // The directory may still have to be made.
        let existing = config.state_dir.ancestors().find(|at| at.is_dir());
        if let Some(free) = existing.and_then(|at| machine::free_bytes(at).ok()).filter(|free| *free < MIN_FREE) {
            let what = format!(
                "{} MiB are free on the disk of {}: below {} MiB nothing is fetched",
                free >> 20,
                config.state_dir.display(),
                MIN_FREE >> 20
            );
            warnings.push(what);
        }
        warnings.extend(metered_line::present(&config.allowance.metered_interfaces).1.as_deref().map(metered_line::sentence));
        warnings
    }

    /// The day of the latest source of its hierarchy, counted from 1970; none if no source has a date.
    pub fn hierarchy_day(&self) -> Option<i64> {
        edition_of(self.given.base()).day()
    }

    /// How old the data of its hierarchy is; none if no source has a date.
    pub fn hierarchy_age(&self, now: WallTime) -> Option<DataAge> {
        DataAge::of(&edition_of(self.given.base()), now)
    }

    /// The key without which no other member can connect, if there is one.
    pub fn pre_shared_key(&self) -> Option<[u8; 32]> {
        self.pre_shared_key
    }

    /// The certificate by which it is a member, if people gave it one.
    pub fn certificate(&self) -> Option<&SignedAdmission> {
        self.certificate.as_ref()
    }

    /// Who it is; none if the key is not made yet.
    pub fn access_point(&self) -> Option<AccessPoint> {
        self.access_point
    }

    /// Asks the DNS as the daemon will.
    ///
    /// # Errors
    /// There is nobody to ask.
    pub fn resolver(config: &Config) -> Result<Resolver, NodeError> {
        Ok(setup::web_clients(config, FingerprintKey([0; 16]))?.resolver)
    }
}

/// What was found; if it is a mistake, it goes to the others.
fn found<T, E: Into<NodeError>>(looked: Result<T, E>, mistakes: &mut Vec<NodeError>) -> Option<T> {
    looked.map_err(|why| mistakes.push(why.into())).ok()
}

/// Whether the clients can be made: the files of certificates one by one, then the name servers and the headers of requests. The clients
/// themselves are made under the swarm's key.
fn check_web(config: &Config, mistakes: &mut Vec<NodeError>) {
    for file in &config.fetch.ca_files {
        found(WebTls::with_authorities(slice::from_ref(file)), mistakes);
    }
    let mut without_files = config.clone();
    without_files.fetch.ca_files.clear();
    found(setup::web_clients(&without_files, FingerprintKey([0; 16])), mistakes);
}

/// A socket that is to listen.
struct Listener {
    address: SocketAddr,
    carrier: Carrier,
    /// Whether one at `[::]` has the IPv4 addresses, too. That of the API does, as the system has it by default; those of the swarm do not.
    dual: bool,
    /// The key and value that name it.
    key: String,
}

/// Whether all addresses can be listened on, each beside the others.
fn check_listening(config: &Config, mistakes: &mut Vec<NodeError>) {
    let mut listeners = Vec::new();
    for address in &config.swarm.listen {
        if let Some((socket, carrier)) = found(swarm::listen_address(address), mistakes) {
            listeners.push(Listener { address: socket, carrier, dual: false, key: format!("swarm.listen = \"{address}\"") });
        }
    }
    if let Some(listen) = config.api.listen {
        let tried = could_bind(listen).map_err(|why| ApiError::CannotListen { listen, why });
        if found(tried, mistakes).is_some() {
            let key = format!("api.listen = \"{listen}\"");
            listeners.push(Listener { address: listen, carrier: Carrier::Tcp, dual: true, key });
        }
    }
    for (index, one) in listeners.iter().enumerate() {
        if let Some(other) = listeners[..index].iter().find(|other| collide(one, other)) {
            mistakes.push(NodeError::SamePort { one: other.key.clone(), other: one.key.clone() });
        }
    }
}

/// Whether two sockets cannot listen at once.
fn collide(one: &Listener, other: &Listener) -> bool {
    let (a, b) = (one.address, other.address);
    let same_place = a.ip() == b.ip() || has(one, b.ip()) || has(other, a.ip());
    one.carrier == other.carrier && same_place && a.port() == b.port() && a.port() != 0
}

/// Whether a socket listens at an address because its own is unspecified: that is all of its family, or of both.
fn has(listener: &Listener, address: IpAddr) -> bool {
    let own = listener.address.ip();
    own.is_unspecified() && (own.is_ipv4() == address.is_ipv4() || (listener.dual && own.is_ipv6()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_api_at_all_ipv6_addresses_has_those_of_ipv4_too() {
        let same_port = |swarm: &str, api: &str| {
            let text = format!("[swarm]\nlisten = [\"{swarm}\"]\n[api]\nlisten = \"{api}\"\n");
            let mut mistakes = Vec::new();
            check_listening(&Config::parse(&text, Path::new("node.toml")).unwrap(), &mut mistakes);
            match &mistakes[..] {
                [] => false,
                [NodeError::SamePort { .. }] => true,
                _ => panic!("{mistakes:?}"),
            }
        };
        assert!(same_port("/ip4/127.41.1.1/tcp/5004", "[::]:5004") && same_port("/ip4/0.0.0.0/tcp/5004", "[::]:5004"));
        assert!(same_port("/ip6/::/tcp/5004", "[::1]:5004") && same_port("/ip4/0.0.0.0/tcp/5004", "127.41.1.1:5004"));
        // A listener of the swarm at all IPv6 addresses leaves those of IPv4 to others.
        assert!(!same_port("/ip6/::/tcp/5004", "127.41.1.1:5004") && !same_port("/ip6/::/tcp/5004", "0.0.0.0:5004"));
        assert!(!same_port("/ip4/127.41.1.1/tcp/5005", "[::]:5004") && !same_port("/ip4/127.41.1.1/udp/5004/quic-v1", "[::]:5004"));
    }
}
