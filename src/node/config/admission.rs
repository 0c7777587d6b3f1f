//! `[admission]`: who may be a member of the swarm.

use super::{
    reader::Section,
    swarm::peer_id,
    values::{self, Parsed},
};
use nearcrawl_model::admission::{AdmissionMode, AdmissionRule, RootKey};
use toml::de::DeValue;

/// `[admission]`: who may be a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// The rule: everybody, who was invited, or who is on a list.
    pub rule: AdmissionRule,
}

const MODES: &[(&str, AdmissionMode)] =
    &[("open", AdmissionMode::Open), ("invite", AdmissionMode::Invite), ("closed", AdmissionMode::Closed)];

/// A list that is longer is a mistake.
const MAX_LISTED: usize = 4_096;

impl AdmissionConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> AdmissionConfig {
        let mode = section.take("mode", AdmissionMode::Open, values::choice(MODES));
        let swarm = section.take("swarm", None, |value| root_key(value).map(Some));
        let members = section.list("members", Vec::new(), peer_id);
        match mode {
            AdmissionMode::Invite if swarm.is_none() => section.contradicts(
                &["mode"],
                "by whom? Write the swarm's root key beside it: swarm = \"…\", as `nearcrawl swarm init` prints it".to_owned(),
            ),
            AdmissionMode::Closed if members.is_empty() => section.contradicts(
                &["mode"],
                "a closed swarm has a list of its members: members = [\"12D3KooW…\"]; `nearcrawl init` prints each peer id".to_owned(),
            ),
            AdmissionMode::Open | AdmissionMode::Invite if !members.is_empty() => {
                section.contradicts(&["members"], "the list is used with mode = \"closed\" only".to_owned());
            }
            _ => {}
        }
        if members.len() > MAX_LISTED {
            section.contradicts(&["members"], format!("at most {MAX_LISTED} members"));
        }
        AdmissionConfig { rule: AdmissionRule { mode, swarm, members: members.into_iter().collect() } }
    }
}

/// A swarm's root key.
fn root_key(value: &DeValue<'_>) -> Parsed<RootKey> {
    let text = values::any_text(value)?;
    text.parse().map_err(|_| "write the root key that `nearcrawl swarm init` printed: 64 hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::Config;
    use std::path::Path;

    fn read(text: &str) -> Result<AdmissionRule, String> {
        let parsed = Config::parse(&format!("[admission]\n{text}\n"), Path::new("node.toml"));
        parsed.map(|config| config.admission.rule).map_err(|why| why.to_string())
    }

    #[test]
    fn each_mode_needs_what_it_is_decided_by() {
        let (root, member) = ("ab".repeat(32), nearcrawl_model::access_point::AccessPoint([5; 32]).to_string());
        assert_eq!(read(""), Ok(AdmissionRule::default()));
        let invite = read(&format!("mode = \"invite\"\nswarm = \"{root}\"")).unwrap();
        assert_eq!((invite.mode, invite.swarm), (AdmissionMode::Invite, Some(RootKey([0xab; 32]))));
        let closed = read(&format!("mode = \"closed\"\nmembers = [\"{member}\"]")).unwrap();
        assert_eq!((closed.mode, closed.members.len()), (AdmissionMode::Closed, 1));
        for (wrong, says) in [
            ("mode = \"invite\"".to_owned(), "swarm init"),
            ("mode = \"closed\"".to_owned(), "list of its members"),
            (format!("members = [\"{member}\"]"), "closed"),
            ("swarm = \"12\"".to_owned(), "64 hexadecimal digits"),
            ("mode = \"secret\"".to_owned(), "\"open\", \"invite\" or \"closed\""),
        ] {
            let said = read(&wrong).unwrap_err();
            assert!(said.contains(says), "{wrong}: {said}");
        }
    }
}
