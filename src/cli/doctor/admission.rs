//! Checks whether this access point may be a member, by the rule of the configuration and the certificate in the state directory.

use super::finding::{Finding, State};
use crate::node::{StartChecks, config::Config};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{Admission, AdmissionMode, AdmissionView, Certificate, CertificateView, SignedAdmission},
    time::WallTime,
};

const CHECK: &str = "admission";

const DAY: u64 = 86_400_000;

/// A certificate that ends within this time is soon to be replaced.
const SOON: u64 = 30 * DAY;

/// Who we are, and by which certificate; `known` is what a daemon that runs has been told of.
pub(super) fn admission(config: &Config, checked: Option<&StartChecks>, known: Option<&AdmissionView>, now: WallTime) -> Finding {
    let Some(checked) = checked else {
        return Finding::new(CHECK, State::NotChecked, "the certificate is looked at when the configuration has no mistakes")
            .by("admission.mode");
    };
    let in_file = judge(config, checked.access_point(), checked.certificate(), now);
    // The file is not all: the swarm may know of an expulsion, or of a certificate that was signed later.
    let by_daemon = known.and_then(|known| judge_known(checked.certificate().filter(|_| invites(config)), known, now));
    by_daemon.filter(|_| in_file.state != State::Failed).unwrap_or(in_file)
}

fn invites(config: &Config) -> bool {
    config.admission.rule.mode == AdmissionMode::Invite
}

/// What is wrong that a daemon that runs knows of.
fn judge_known(certificate: Option<&SignedAdmission>, known: &AdmissionView, now: WallTime) -> Option<Finding> {
    let ask = "ask who signed it for one that is signed now (nearcrawl swarm invite), and take that in with nearcrawl swarm join";
    let in_file = certificate.and_then(|signed| signed.read().ok()).and_then(|statement| match statement {
        Admission::Certificate(one) => Some(one),
        Admission::Expulsion(_) => None,
    });
    let later = in_file.as_ref().and_then(|one| {
        let same = |known: &&CertificateView| known.access_point == one.member && known.invited_by == one.issuer.inviter();
        known.certificates.iter().filter(same).find(|known| known.issued_at > one.issued && known.expires_at < one.expires)
    });
    let superseded = later.zip(in_file.as_ref()).map(|(later, one)| {
        let state = if later.expires_at <= now { State::Failed } else { State::Warning };
        let found = format!(
            "the certificate in the state directory, signed by {}, does not count: the swarm knows of one that was signed later, {}, and ends {}",
            one.issuer, later.issued_at, later.expires_at
        );
        Finding::new(CHECK, state, found).by("admission.swarm").remedy(ask)
    });
    let refused = || {
        let why = known.refused_text.as_ref()?;
        Some(Finding::new(CHECK, State::Failed, format!("the daemon is no member: {why}")).by("admission.mode"))
    };
    superseded.or_else(refused)
}

fn judge(config: &Config, me: Option<AccessPoint>, certificate: Option<&SignedAdmission>, now: WallTime) -> Finding {
    let rule = &config.admission.rule;
    let (new, failed) = (
        || Finding::new(CHECK, State::NotChecked, "the key is not made yet").remedy("nearcrawl init makes it, and prints the peer id"),
        |found: String| Finding::new(CHECK, State::Failed, found),
    );
    match (rule.mode, me, certificate) {
        (AdmissionMode::Open, ..) => {
            Finding::good(CHECK, "this access point lets everybody in; whom its members let in is their operators' to say")
                .by("admission.mode")
        }
        (AdmissionMode::Closed, None, _) => new().by("admission.members"),
        (AdmissionMode::Closed, Some(me), _) if rule.members.contains(&me) => {
            Finding::good(CHECK, format!("{me} is on the list of members")).by("admission.members")
        }
        (AdmissionMode::Closed, Some(me), _) => failed(format!("{me} is not on the list of members"))
            .by("admission.members")
            .remedy("add it to the list, here and at every other member"),
        (AdmissionMode::Invite, me, None) => {
            let who = me.map_or_else(String::new, |me| format!(" for {me}"));
            failed(format!("there is no certificate{who} in {}", config.state_dir.display())).by("admission.mode").remedy(
                "have an inviter, or the holder of the root key, run nearcrawl swarm invite; then nearcrawl swarm join what that writes",
            )
        }
        (AdmissionMode::Invite, me, Some(signed)) => {
            let opened = rule.swarm.map(|root| signed.open(&root));
            match opened {
                Some(Ok(Admission::Certificate(certificate))) => by_certificate(me, &certificate, now),
                Some(Err(why)) => failed(format!("the certificate does not count: {why}"))
                    .by("admission.swarm")
                    .remedy("is the root key that of this swarm? Else ask its holder for another certificate"),
                _ => failed("what is in place of the certificate is none".to_owned())
                    .by("admission.swarm")
                    .remedy("nearcrawl swarm join puts one there"),
            }
        }
    }
}

/// A certificate whose signatures are right.
fn by_certificate(me: Option<AccessPoint>, certificate: &Certificate, now: WallTime) -> Finding {
    const KEY: &str = "admission.swarm";
    let Certificate { member, expires, issued, issuer, .. } = certificate;
    let finding = |state, found: String, remedy: &str| Finding::new(CHECK, state, found).by(KEY).remedy(remedy);
    let ask = "ask who signed it for another one (nearcrawl swarm invite), and take that in with nearcrawl swarm join";
    if me.is_some_and(|me| me != *member) {
        let me = me.map_or_else(String::new, |me| me.to_string());
        let found = format!("the certificate is for {member}, and the key in the state directory is that of {me}");
        return finding(State::Failed, found, "restore the key of the one that was invited, or have this one invited");
    }
    if me.is_none() {
        let found = format!("the certificate is for {member}, and there is no key in the state directory");
        return finding(State::Failed, found, "restore its key; a new one needs a certificate of its own");
    }
    if *expires <= now {
        return finding(State::Failed, format!("the certificate ended {expires}"), ask);
    }
    if issued.0 > now.0.saturating_add(DAY) {
        let found = format!("the certificate was signed {issued}, which has not come yet by the clock here");
        return finding(State::Warning, found, "set the clock, here or where it was signed");
    }
    let found = format!("the certificate of {member}, signed by {issuer}, holds until {expires}");
    if expires.0 - now.0 < SOON {
        return finding(State::Warning, found, ask);
    }
    Finding::good(CHECK, found).by(KEY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use nearcrawl_model::admission::{Issuer, RootKey};
    use std::path::Path;

    const NOW: WallTime = WallTime(1_790_000_000_000);

    fn root() -> SigningKey {
        SigningKey::from_bytes(&[9; 32])
    }

    fn config(section: &str) -> Config {
        Config::parse(&format!("state_dir = \"/nowhere/state\"\n[admission]\n{section}"), Path::new("node.toml")).unwrap()
    }

    fn invite() -> Config {
        config(&format!("mode = \"invite\"\nswarm = \"{}\"\n", RootKey(root().verifying_key().to_bytes())))
    }

    fn certificate(member: AccessPoint, days: u64) -> SignedAdmission {
        let swarm = RootKey(root().verifying_key().to_bytes());
        let (issued, expires) = (WallTime(NOW.0 - 40 * DAY), WallTime(NOW.0 + days * DAY - 5 * DAY));
        let certificate = Certificate { swarm, issuer: Issuer::Root, member, may_invite: false, issued, expires, label: "one".into() };
        SignedAdmission::by_root(&Admission::Certificate(certificate), &root()).unwrap()
    }

    #[test]
    fn a_certificate_that_is_missing_ended_or_of_another_key_is_named_with_what_helps() {
        let (me, other) = (AccessPoint([3; 32]), AccessPoint([4; 32]));
        let of = |me, certificate: Option<SignedAdmission>| judge(&invite(), me, certificate.as_ref(), NOW);
        for (finding, state, said) in [
            (of(Some(me), None), State::Failed, "there is no certificate for 12D3KooW"),
            (of(Some(me), Some(certificate(me, 0))), State::Failed, "ended"),
            (of(Some(me), Some(certificate(other, 90))), State::Failed, "is for 12D3KooW"),
            (of(None, Some(certificate(me, 90))), State::Failed, "no key"),
            (of(Some(me), Some(certificate(me, 20))), State::Warning, "holds until"),
        ] {
            assert_eq!(finding.state, state, "{finding:?}");
            assert!(finding.found_text.contains(said) && finding.key.is_some() && finding.remedy_text.is_some(), "{finding:?}");
        }
        assert_eq!(of(Some(me), Some(certificate(me, 90))).state, State::Good);
        let elsewhere = config(&format!("mode = \"invite\"\nswarm = \"{}\"\n", RootKey([7; 32])));
        let finding = judge(&elsewhere, Some(me), Some(&certificate(me, 90)), NOW);
        assert!(finding.state == State::Failed && finding.found_text.contains("it is of swarm"), "{finding:?}");
    }

    #[test]
    fn a_certificate_that_the_swarm_has_a_later_one_for_does_not_count_and_what_the_daemon_says_is_told() {
        let me = AccessPoint([3; 32]);
        let swarm = RootKey(root().verifying_key().to_bytes());
        let later = |issued_at: u64, expires_at: u64, invited_by| AdmissionView {
            mode: AdmissionMode::Invite,
            swarm: Some(swarm),
            refused_text: None,
            certificates: vec![CertificateView {
                access_point: me,
                label: String::new(),
                may_invite: false,
                invited_by,
                issued_at: WallTime(issued_at),
                expires_at: WallTime(expires_at),
                alive: true,
                refused_text: None,
            }],
            expulsions: Vec::new(),
        };
        let in_file = certificate(me, 90);
        let of = |known: &AdmissionView| judge_known(Some(&in_file), known, NOW);
        for (end, state) in [(NOW.0 + DAY, State::Warning), (NOW.0 - DAY, State::Failed)] {
            let finding = of(&later(NOW.0 - 2 * DAY, end, None)).expect("it does not count");
            assert!(finding.state == state && finding.found_text.contains("signed later"), "{finding:?}");
        }
        assert!(of(&later(NOW.0 - 2 * DAY, NOW.0 + 900 * DAY, None)).is_none(), "the other one holds longer");
        assert!(of(&later(NOW.0 - 90 * DAY, NOW.0 + DAY, None)).is_none(), "the other one was signed before");
        assert!(of(&later(NOW.0 - 2 * DAY, NOW.0 + DAY, Some(AccessPoint([4; 32])))).is_none(), "by another issuer");
        let expelled = AdmissionView { refused_text: Some("expelled: leaked (by the root key)".to_owned()), ..later(1, 2, None) };
        let finding = of(&expelled).expect("it is no member");
        assert!(finding.state == State::Failed && finding.found_text.contains("expelled: leaked"), "{finding:?}");
    }

    #[test]
    fn a_list_names_its_members_and_an_open_swarm_takes_everybody() {
        let me = AccessPoint([3; 32]);
        let listed = config(&format!("mode = \"closed\"\nmembers = [\"{me}\"]\n"));
        assert_eq!(judge(&listed, Some(me), None, NOW).state, State::Good);
        assert_eq!(judge(&listed, Some(AccessPoint([4; 32])), None, NOW).state, State::Failed);
        assert_eq!(judge(&listed, None, None, NOW).state, State::NotChecked);
        assert_eq!(judge(&config(""), None, None, NOW).state, State::Good);
    }
}
