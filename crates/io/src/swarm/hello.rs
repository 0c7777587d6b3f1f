//! The hello, the first exchange on every connection, by which peers accept each other.
//!
//! The one who dialled says hello, the other one judges it and answers with its own hello, which is judged in turn.

use super::protocol::PROTOCOL;
use libp2p::PeerId;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{NotAdmitted, SignedAdmission},
    fingerprint::FingerprintKey,
};
use serde::{Deserialize, Serialize};

/// Which swarm: chosen at random by its first access point.
pub type SwarmId = [u8; 16];

/// The longest text of a refusal, in characters.
const MAX_REASON: usize = 400;

/// The secrets that all members of a swarm share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmSecrets {
    /// The identifier of the swarm.
    pub swarm: SwarmId,
    /// The key of its fingerprints.
    pub fingerprint_key: FingerprintKey,
}

/// The first message on a connection: version, swarm and addresses of the sender.
///
/// Its fields stay as they are for ever. What later versions add stands behind them ([`Hello::with_rest`]), where earlier ones pass over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The latest protocol version that the sender speaks, first and for ever: it must be readable in every version.
    pub protocol: u32,
    /// The swarm that the sender is a member of; none if it wants to become one.
    pub swarm: Option<SwarmId>,
    /// Which hierarchy it placed addresses by when it started.
    pub hierarchy_hash: [u8; 32],
    /// How often it has started.
    pub incarnation: u64,
    /// Its version, for people.
    pub software: String,
    /// A reader only asks the public questions.
    pub reader: bool,
    /// Where it can be reached.
    pub addresses: Vec<String>,
    /// The oldest protocol version that it speaks. Stands behind the message; where it is missing, only the latest one is spoken.
    #[serde(skip)]
    pub oldest: u32,
    /// The certificate by which it is a member. Stands behind the message, too, if there is one.
    #[serde(skip)]
    pub certificate: Option<SignedAdmission>,
}

impl Hello {
    /// What stands behind a message with this hello.
    pub(super) fn rest(&self) -> Result<Vec<u8>, postcard::Error> {
        let shown = if self.certificate.is_some() { postcard::to_stdvec(&self.certificate)? } else { Vec::new() };
        Ok([postcard::to_stdvec(&self.oldest)?, shown].concat())
    }

    /// Reads what stands behind a message with this hello.
    pub(super) fn with_rest(self, rest: &[u8]) -> Hello {
        let (oldest, rest) = postcard::take_from_bytes::<u32>(rest).unwrap_or((self.protocol, &[]));
        Hello { oldest: oldest.min(self.protocol), certificate: read_shown(rest), ..self }
    }
}

/// A statement about a member that stands behind a message.
fn read_shown(rest: &[u8]) -> Option<SignedAdmission> {
    postcard::take_from_bytes::<Option<SignedAdmission>>(rest).ok().and_then(|(shown, _)| shown)
}

/// The answer to a hello.
#[expect(clippy::large_enum_variant, reason = "one is made for each connection, and sent or taken apart at once")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelloAnswer {
    /// The sender is accepted.
    Welcome {
        /// The answering peer's own hello.
        hello: Hello,
        /// To a member that has no swarm yet: the swarm's secrets.
        secrets: Option<SwarmSecrets>,
    },
    /// Stay out, and what to do about it. If the sender was expelled, the expulsion stands behind the message.
    Refused(String, #[serde(skip)] Option<Box<SignedAdmission>>),
}

/// Why a peer was refused. The text is what the other side's operator reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The peer speaks another protocol version.
    #[error(
        "protocol version {theirs} cannot talk to version {ours}: install releases of nearcrawl in the swarm that are at most one protocol \
         version apart"
    )]
    OtherProtocol {
        /// The version that this side speaks.
        ours: u32,
        /// The other side's.
        theirs: u32,
    },
    /// The peer is a member of another swarm.
    #[error(
        "this is swarm {}, not {}: check the bootstrap address, or begin with an empty data directory to change swarms",
        short(ours),
        short(theirs)
    )]
    OtherSwarm {
        /// The swarm that this side is a member of.
        ours: SwarmId,
        /// The other side's.
        theirs: SwarmId,
    },
    /// The asked side has not joined a swarm itself.
    #[error("this access point has not joined a swarm yet: try again when it has, or bootstrap from another one")]
    NoSwarmYet,
    /// No hello came.
    #[error("no hello came within {0} s of connecting")]
    NoHello(u64),
    /// What came was no hello.
    #[error("the hello could not be read")]
    Unreadable,
    /// The peer speaks libp2p, and not the protocol of hellos.
    #[error("no swarm is there: another program that uses libp2p answers; is this the address of a nearcrawl daemon?")]
    NoSwarm,
    /// Nonsense was sent too often.
    #[error("{0} malformed messages; the peer is shut out for a while")]
    Misbehaved(u32),
    /// Far more was sent than a member may send.
    #[error("far more messages than a member may send; the peer is shut out for a while")]
    Flooding,
    /// It is connected as a member, and says that it only reads.
    #[error("this is a member's connection: a program that only reads has a key of its own")]
    ReadingMember,
    /// It refused this access point on a connection that still stands.
    #[error("your side refused this access point a moment ago")]
    RefusedBefore,
    /// The peer may not be a member.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
}

fn short(bytes: &[u8]) -> String {
    bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a hello that does not fit ours. `dialled` says that we chose to connect to this peer.
pub(super) fn judge(ours: &Hello, theirs: &Hello, dialled: bool) -> Result<(), HelloError> {
    if ours.protocol.min(theirs.protocol) < ours.oldest.max(theirs.oldest) {
        return Err(HelloError::OtherProtocol { ours: ours.protocol, theirs: theirs.protocol });
    }
    if theirs.reader {
        return Ok(());
    }
    match (ours.swarm, theirs.swarm) {
        (Some(ours), Some(theirs)) if ours != theirs => Err(HelloError::OtherSwarm { ours, theirs }),
        // Only a peer that we sent a hello to can make us a member of its swarm, not one that connects to us.
        (None, Some(_)) if dialled => Ok(()),
        (None, _) => Err(HelloError::NoSwarmYet),
        _ => Ok(()),
    }
}

impl HelloAnswer {
    /// A refusal with its text.
    pub(super) fn refused(refusal: &HelloError) -> HelloAnswer {
        HelloAnswer::Refused(refusal.to_string(), None)
    }

    /// What stands behind a message with this answer.
    pub(super) fn rest(&self) -> Result<Vec<u8>, postcard::Error> {
        match self {
            HelloAnswer::Welcome { hello, .. } => hello.rest(),
            HelloAnswer::Refused(_, None) => Ok(Vec::new()),
            HelloAnswer::Refused(_, proof) => postcard::to_stdvec(proof),
        }
    }
}

/// A text from a peer, fit for a log line.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_REASON).collect()
}

/// The addresses of a peer that may be dialled: a few, well-formed, and without another peer's id, unless they lead through that peer.
pub(super) fn usable_addresses(texts: &[String], peer: AccessPoint) -> Vec<String> {
    use libp2p::multiaddr::Protocol;
    let usable = |text: &&String| {
        text.len() <= 128
            && text.parse::<libp2p::Multiaddr>().is_ok_and(|address| {
                let mut parts = address.iter();
                let host = matches!(
                    parts.next(),
                    Some(Protocol::Ip4(_) | Protocol::Ip6(_) | Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_))
                );
                let port = match parts.next() {
                    Some(Protocol::Tcp(port)) => port != 0,
                    Some(Protocol::Udp(port)) => port != 0 && parts.next() == Some(Protocol::QuicV1),
                    _ => false,
                };
                let is_of = |named: PeerId| super::access_point_of(&named) == Some(peer);
                let owner = match (parts.next(), parts.next()) {
                    (None, _) => true,
                    (Some(Protocol::P2p(named)), None) => is_of(named),
                    (Some(Protocol::P2p(relay)), Some(Protocol::P2pCircuit)) => !is_of(relay),
                    _ => false,
                };
                host && port && owner && parts.next().is_none()
            })
    };
    texts.iter().filter(usable).take(4).cloned().collect()
}

/// Reads a hello; of another version's only the version.
pub(super) fn read_hello(bytes: &[u8]) -> Option<Hello> {
    if let Ok((hello, rest)) = postcard::take_from_bytes::<Hello>(bytes) {
        return Some(hello.with_rest(rest));
    }
    let (protocol, _) = postcard::take_from_bytes::<u32>(bytes).ok()?;
    (protocol != PROTOCOL).then(|| Hello {
        protocol,
        swarm: None,
        hierarchy_hash: [0; 32],
        incarnation: 0,
        software: String::new(),
        reader: false,
        addresses: Vec::new(),
        oldest: protocol,
        certificate: None,
    })
}

/// Reads the answer to a hello.
pub(super) fn read_answer(bytes: &[u8]) -> Option<HelloAnswer> {
    Some(match postcard::take_from_bytes(bytes).ok()? {
        (HelloAnswer::Welcome { hello, secrets }, rest) => HelloAnswer::Welcome { hello: hello.with_rest(rest), secrets },
        (HelloAnswer::Refused(text, _), rest) => HelloAnswer::Refused(text, read_shown(rest).map(Box::new)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::protocol::OLDEST;

    fn hello() -> Hello {
        Hello {
            protocol: PROTOCOL,
            swarm: Some([1; 16]),
            hierarchy_hash: [2; 32],
            incarnation: 3,
            software: "nearcrawl/0".to_owned(),
            reader: false,
            addresses: Vec::new(),
            oldest: OLDEST,
            certificate: None,
        }
    }

    fn written(hello: &Hello) -> Vec<u8> {
        [postcard::to_stdvec(hello).unwrap(), hello.rest().unwrap()].concat()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_reason() {
        assert_eq!(judge(&hello(), &hello(), false), Ok(()));
        let joiner = Hello { swarm: None, ..hello() };
        assert_eq!(judge(&hello(), &joiner, false), Ok(()), "a joiner is let in");
        assert_eq!(judge(&joiner, &hello(), true), Ok(()));
        assert_eq!(judge(&joiner, &hello(), false), Err(HelloError::NoSwarmYet), "but nobody makes us join who was not asked");
        assert_eq!(judge(&joiner, &joiner, true), Err(HelloError::NoSwarmYet));
        let other = Hello { swarm: Some([9; 16]), ..hello() };
        assert!(judge(&hello(), &other, true).unwrap_err().to_string().contains("bootstrap"));
        let elsewhere = Hello { hierarchy_hash: [9; 32], ..hello() };
        assert_eq!(judge(&hello(), &elsewhere, true), Ok(()), "editions of the hierarchy may differ: claims say whose an address is");
        let reader = Hello { reader: true, ..elsewhere };
        assert_eq!(judge(&hello(), &reader, false), Ok(()));
    }

    #[test]
    fn the_version_is_readable_even_if_the_rest_has_changed() {
        assert_eq!(read_hello(&written(&hello())), Some(hello()));
        let newest = PROTOCOL + 5;
        let newer = postcard::to_stdvec(&(newest, "something else")).unwrap();
        let read = read_hello(&newer).unwrap();
        assert_eq!(judge(&hello(), &read, false), Err(HelloError::OtherProtocol { ours: PROTOCOL, theirs: newest }));
        assert_eq!(read_hello(&postcard::to_stdvec(&(PROTOCOL, 0_u8)).unwrap()), None);
        assert_eq!(read_hello(&[]), None);
    }

    /// From protocol 5 on: a release speaks its version and the one before.
    #[test]
    fn releases_talk_to_each_other_if_their_versions_overlap() {
        let of = |protocol, oldest| Hello { protocol, oldest, ..hello() };
        let talk = |one: &Hello, other: &Hello| {
            let (here, there) = (judge(one, &read_hello(&written(other)).unwrap(), true), judge(other, one, false));
            assert_eq!(here.is_ok(), there.is_ok(), "{here:?}, {there:?}");
            here.is_ok()
        };
        assert!(talk(&of(7, 6), &of(6, 5)) && talk(&of(6, 5), &of(5, 5)) && talk(&of(7, 7), &of(7, 6)));
        assert!(!talk(&of(7, 6), &of(5, 5)) && !talk(&of(7, 7), &of(6, 5)) && !talk(&of(8, 7), &of(6, 5)));
    }

    /// The first releases with protocol 5 say nothing behind their hello, and pass over what others say there.
    #[test]
    fn what_stands_behind_a_hello_may_be_missing_and_is_passed_over() {
        let old = postcard::to_stdvec(&hello()).unwrap();
        assert_eq!(read_hello(&old), Some(Hello { oldest: PROTOCOL, ..hello() }));
        let newer = Hello { protocol: 6, oldest: 5, ..hello() };
        let bytes = [written(&newer), b"of later versions".to_vec()].concat();
        assert_eq!(read_hello(&bytes), Some(newer.clone()));
        assert_eq!(postcard::from_bytes::<Hello>(&bytes).unwrap(), Hello { oldest: 0, ..newer.clone() });
        let welcome = HelloAnswer::Welcome { hello: newer.clone(), secrets: None };
        let answer = [postcard::to_stdvec(&welcome).unwrap(), newer.rest().unwrap()].concat();
        assert_eq!(read_answer(&answer), Some(welcome));
        assert!(matches!(read_answer(&postcard::to_stdvec(&HelloAnswer::Welcome { hello: newer, secrets: None }).unwrap()),
            Some(HelloAnswer::Welcome { hello, .. }) if hello.oldest == 6));
    }

    /// Who was invited shows its certificate; earlier releases pass over it, and the bytes of a hello without one are as they were.
    #[test]
    fn a_certificate_stands_behind_a_hello_and_an_expulsion_behind_a_refusal() {
        use ed25519_dalek::SigningKey;
        use nearcrawl_model::{
            admission::{Admission, Certificate, Issuer, RootKey},
            time::WallTime,
        };
        let (root, member) = (SigningKey::from_bytes(&[9; 32]), super::super::access_point_of_seed([1; 32]));
        let swarm = RootKey(root.verifying_key().to_bytes());
        let (issued, expires) = (WallTime(1), WallTime(2));
        let one = Certificate { swarm, issuer: Issuer::Root, member, may_invite: true, issued, expires, label: "x".repeat(64) };
        let signed = SignedAdmission::by_root(&Admission::Certificate(one), &root).unwrap();
        let shown = Hello { certificate: Some(signed.clone()), ..hello() };
        assert_eq!(read_hello(&written(&shown)), Some(shown.clone()));
        assert_eq!(read_hello(&[written(&shown), b"more".to_vec()].concat()), Some(shown.clone()));
        let of_earlier = postcard::from_bytes::<Hello>(&written(&shown)).unwrap();
        assert_eq!(of_earlier, Hello { oldest: 0, ..hello() });
        let welcome = HelloAnswer::Welcome { hello: shown, secrets: None };
        let refused = HelloAnswer::Refused("expelled".to_owned(), Some(Box::new(signed)));
        for answer in [welcome, refused, HelloAnswer::Refused("no".to_owned(), None)] {
            let bytes = [postcard::to_stdvec(&answer).unwrap(), answer.rest().unwrap()].concat();
            assert_eq!(read_answer(&bytes), Some(answer));
        }
        let plain = postcard::to_stdvec(&HelloAnswer::Refused("no".to_owned(), None)).unwrap();
        assert_eq!(plain, [&[1, 2], &b"no"[..]].concat(), "as protocol 5 writes it");
    }

    /// The bytes of a hello in protocol 5, as they stay.
    #[test]
    fn a_hello_is_encoded_as_in_protocol_5() {
        let hello = Hello { protocol: 5, oldest: 5, addresses: vec!["/ip4/192.0.2.1/tcp/4817".to_owned()], ..hello() };
        let head = [vec![5, 1], vec![1; 16], vec![2; 32], vec![3, 11], b"nearcrawl/0".to_vec(), vec![0, 1, 23]].concat();
        assert_eq!(written(&hello), [head, b"/ip4/192.0.2.1/tcp/4817".to_vec(), vec![5]].concat());
    }

    #[test]
    fn only_addresses_of_the_peer_itself_are_taken() {
        let me = super::super::access_point_of_seed([1; 32]);
        let other = super::super::access_point_of_seed([2; 32]);
        let texts: Vec<String> = [
            "/ip4/192.0.2.1/tcp/4001".to_owned(),
            format!("/dns4/a.example/tcp/4001/p2p/{me}"),
            format!("/ip4/192.0.2.1/udp/4001/quic-v1/p2p/{me}"),
            format!("/ip4/192.0.2.1/tcp/4001/p2p/{other}/p2p-circuit"),
            format!("/ip4/192.0.2.1/tcp/4001/p2p/{me}/p2p-circuit"),
            "/ip4/192.0.2.1/tcp/4001/p2p-circuit".to_owned(),
            format!("/ip4/192.0.2.1/tcp/4001/p2p/{other}/p2p-circuit/p2p-circuit"),
            format!("/ip4/192.0.2.1/tcp/4001/p2p/{other}"),
            "/ip4/192.0.2.1/tcp/0".to_owned(),
            "/ip4/192.0.2.1/udp/1".to_owned(),
            "nonsense".to_owned(),
        ]
        .into();
        assert_eq!(usable_addresses(&texts, me), texts[..4]);
        assert_eq!(clean("a\nb\u{7}c"), "abc");
    }
}
