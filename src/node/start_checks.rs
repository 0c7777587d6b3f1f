//! Checks that must hold before a daemon starts.
//!
//! `run` and `check` use the same function, and nothing is written before it succeeds.
//!
//! What another process may hold just now (the state directory, a port) is not asked here: a daemon that runs with the configuration holds
//! both, and the configuration is right.

use crate::io::{
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
use std::net::SocketAddr;

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
    /// Checks all that a start needs.
    ///
    /// # Errors
    /// Why a daemon cannot start with this configuration here.
    pub fn of(config: &Config) -> Result<StartChecks, NodeError> {
        config.ready_to_run()?;
        keyfile::check(config)?;
        Store::check_format(&config.state_dir)?;
        check_listening(config)?;
        let pre_shared_key = config.swarm.pre_shared_key_file.as_deref().map(keyfile::pre_shared_key).transpose()?;
        // The files of certificates, the name servers and the headers of requests; the clients themselves are made under the swarm's key.
        setup::web_clients(config, FingerprintKey([0; 16]))?;
        let certificate = admission_files::certificate(config)?;
        Ok(StartChecks { given: Given::read(config)?, pre_shared_key, certificate, access_point: keyfile::known(config) })
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

/// Whether all addresses can be listened on, each beside the others.
fn check_listening(config: &Config) -> Result<(), NodeError> {
    let mut taken: Vec<((SocketAddr, Carrier), String)> = Vec::new();
    for address in &config.swarm.listen {
        taken.push((swarm::listen_address(address)?, format!("swarm.listen = \"{address}\"")));
    }
    if let Some(listen) = config.api.listen {
        could_bind(listen).map_err(|why| ApiError::CannotListen { listen, why })?;
        taken.push(((listen, Carrier::Tcp), format!("api.listen = \"{listen}\"")));
    }
    for (index, (address, key)) in taken.iter().enumerate() {
        if let Some((_, other)) = taken[..index].iter().find(|(other, _)| other.1 == address.1 && collide(address.0, other.0)) {
            return Err(NodeError::SamePort { one: other.clone(), other: key.clone() });
        }
    }
    Ok(())
}

/// Whether two sockets cannot listen at once: an unspecified address is all of its family.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    let same_place = one.ip() == other.ip() || (everywhere && one.is_ipv4() == other.is_ipv4());
    same_place && one.port() == other.port() && one.port() != 0
}
