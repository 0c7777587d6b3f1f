//! Opt-outs of web sites from requests.
//!
//! An opt-out names a host, a domain or a range of addresses; every member keeps a copy and requests nothing there.
//!
//! Members speak for themselves only: each signs what it saw of a proof, or what its operator ordered, as a [`Statement`] that says "stop"
//! or "go". Of two statements of one member about one thing the one with the greater revision counts, and of two with one revision that
//! with the greater digest; dates are shown and decide nothing. What the statements of several members come to is for each member to judge.

use super::{access_point::AccessPoint, claim::SIGNATURE_BYTES, half_digest::half, subnet::Subnet, time::WallTime, url::Host};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{fmt, net::IpAddr, str::FromStr};
use utoipa::ToSchema;

/// Statements of one member that are kept.
pub const MAX_OF_MEMBER: usize = 1_000;

/// Of these, orders of its operator.
pub const MAX_ORDERS: usize = 100;

/// Statements that a member keeps, of all members together.
pub const MAX_STATEMENTS: usize = 10_000;

/// Statements in one message.
pub const MAX_TOLD: usize = 256;

/// Bytes of one statement.
pub const MAX_STATEMENT_BYTES: usize = 512;

/// The greatest revision: no member comes near it, and there is always a next one.
pub const MAX_REVISION: u64 = 1 << 48;

/// The widest range of IPv4 addresses, as the length of its prefix.
pub const WIDEST_V4: u8 = 16;

/// The widest range of IPv6 addresses.
pub const WIDEST_V6: u8 = 32;

/// What stands before a name in the DNS where its TXT record is looked for.
pub const TXT_LABEL: &str = "_nearcrawl";

/// Where a proof is looked for at a web server.
pub const PROOF_PATH: &str = "/.well-known/nearcrawl-opt-out";

/// What a proof says, as a word of its own.
pub const PROOF_WORD: &str = "no-crawl";

/// What a TXT record says besides if it is meant for all hosts of its domain.
pub const DOMAIN_WORD: &str = "domain";

/// Where nothing is to be asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OptOutSubject {
    /// This host.
    Host(Host),
    /// This name and all hosts below it.
    Domain(Host),
    /// Servers at these addresses, whatever their names.
    Range(Subnet),
}

impl OptOutSubject {
    /// What people mean by a name, an address or a range.
    ///
    /// # Errors
    ///
    /// It is none, as a sentence.
    pub fn read(text: &str, domain: bool) -> Result<OptOutSubject, OptOutError> {
        let (text, quoted) = (text.trim(), || text.chars().take(80).collect::<String>());
        let range = text.parse::<IpAddr>().map(|address| Subnet::around(address, 128)).or_else(|_| text.parse::<Subnet>());
        let subject = match (range, text.parse::<Host>()) {
            (Ok(range), _) => OptOutSubject::Range(range),
            (_, Ok(host)) if host.address().is_some() => {
                OptOutSubject::Range(Subnet::around(host.address().unwrap_or(IpAddr::from([0; 4])), 128))
            }
            (_, Ok(host)) if domain => OptOutSubject::Domain(host),
            (_, Ok(host)) => OptOutSubject::Host(host),
            _ => {
                return Err(wrong(format!(
                    "{:?} is no host, domain, address or range: write it like museum.or.ke or 192.0.2.0/24",
                    quoted()
                )));
            }
        };
        subject.check().map(|()| subject)
    }

    fn check(&self) -> Result<(), OptOutError> {
        match self {
            OptOutSubject::Host(host) if host.address().is_some() => Err(wrong("an address is opted out as a range")),
            OptOutSubject::Host(_) => Ok(()),
            OptOutSubject::Domain(name) if name.registrable().is_none() => {
                Err(wrong(format!("{name} is a public suffix: name a domain below it, or one host")))
            }
            OptOutSubject::Domain(_) => Ok(()),
            OptOutSubject::Range(range) if range.length() >= 96 && range.first() != range.first().to_canonical() => {
                Err(wrong(format!("{range} are IPv4 addresses: write it as IPv4, like 192.0.2.0/24")))
            }
            OptOutSubject::Range(range) => {
                let widest = if range.first().is_ipv4() { WIDEST_V4 } else { WIDEST_V6 };
                if range.length() >= widest {
                    Ok(())
                } else {
                    Err(wrong(format!("{range} is too wide: at most a /{widest} is opted out at once")))
                }
            }
        }
    }

    /// Whether a server of this name, or at this address, is meant.
    pub fn covers(&self, host: Option<&Host>, address: Option<IpAddr>) -> bool {
        match self {
            OptOutSubject::Host(name) => host == Some(name),
            OptOutSubject::Domain(name) => host.is_some_and(|host| is_below(host.as_str(), name.as_str())),
            OptOutSubject::Range(range) => {
                // A socket of both families names an IPv4 address as ::ffff:192.0.2.7.
                address.or_else(|| host?.address()).is_some_and(|address| range.contains(address.to_canonical()))
            }
        }
    }

    /// The name that a proof is looked for at; a range has none.
    pub fn name(&self) -> Option<&Host> {
        match self {
            OptOutSubject::Host(name) | OptOutSubject::Domain(name) => Some(name),
            OptOutSubject::Range(_) => None,
        }
    }
}

fn is_below(host: &str, name: &str) -> bool {
    host.strip_suffix(name).is_some_and(|head| head.is_empty() || head.ends_with('.'))
}

impl fmt::Display for OptOutSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptOutSubject::Host(host) => host.fmt(f),
            OptOutSubject::Domain(name) => write!(f, "{name} and all hosts below it"),
            OptOutSubject::Range(range) => range.fmt(f),
        }
    }
}

/// What shows that who says no may say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OptOutProof {
    /// A TXT record below [`TXT_LABEL`].
    Txt,
    /// A file at [`PROOF_PATH`].
    File,
    /// The operator of the member orders it.
    Order,
}

impl OptOutProof {
    /// What an owner publishes, in words.
    pub fn published_at(self, subject: &OptOutSubject) -> String {
        match (self, subject.name()) {
            (OptOutProof::Txt, Some(name)) if matches!(subject, OptOutSubject::Domain(_)) => {
                format!("a TXT record at {TXT_LABEL}.{name} that says \"{PROOF_WORD} {DOMAIN_WORD}\"")
            }
            (OptOutProof::Txt, Some(name)) => format!("a TXT record at {TXT_LABEL}.{name} that says \"{PROOF_WORD}\""),
            (OptOutProof::File, Some(name)) => {
                format!("a text file at https://{name}{PROOF_PATH} (or http) whose first line is {PROOF_WORD}")
            }
            _ => "an operator's order".to_owned(),
        }
    }
}

impl fmt::Display for OptOutProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OptOutProof::Txt => "txt",
            OptOutProof::File => "file",
            OptOutProof::Order => "order",
        })
    }
}

impl FromStr for OptOutProof {
    type Err = OptOutError;

    fn from_str(text: &str) -> Result<OptOutProof, OptOutError> {
        match text {
            "txt" => Ok(OptOutProof::Txt),
            "file" => Ok(OptOutProof::File),
            "order" => Ok(OptOutProof::Order),
            _ => Err(wrong("a proof is txt, file or order")),
        }
    }
}

/// What an opt-out is about: statements of several members may be about one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OptOutKey {
    /// Where nothing is to be asked.
    pub subject: OptOutSubject,
    /// What shows that who says so may.
    pub proof: OptOutProof,
}

impl OptOutKey {
    /// Whether there can be such an opt-out.
    ///
    /// # Errors
    ///
    /// Why not, as a sentence.
    pub fn check(&self) -> Result<(), OptOutError> {
        match (&self.subject, self.proof) {
            (OptOutSubject::Range(_), OptOutProof::Txt | OptOutProof::File) => {
                Err(wrong("addresses are opted out by an operator's order only (--proof order)"))
            }
            (OptOutSubject::Domain(_), OptOutProof::File) => {
                Err(wrong("a file proves one host only: a domain is opted out by a TXT record or an operator's order"))
            }
            // Who answers for a whole registry? Its own proof would do.
            (OptOutSubject::Host(host), OptOutProof::Order) if host.address().is_none() && host.registrable().is_none() => {
                Err(wrong(format!("{host} is a public suffix, below which names have different owners: name a host")))
            }
            (subject, _) => subject.check(),
        }
    }
}

/// What a member says of an opt-out, as it signs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// Who says it, and signs it.
    pub by: AccessPoint,
    /// What about.
    pub key: OptOutKey,
    /// The number of this version of it, from 1.
    pub revision: u64,
    /// Whether nothing is to be asked there: the proof was seen, or the operator ordered it. If not, the proof was looked for in vain, or
    /// the order is withdrawn.
    pub stops: bool,
    /// When it was said, by the clock of who says it.
    pub at: WallTime,
}

/// Which statement: the digest of who says it and of what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StatementId(pub [u8; 16]);

/// Which version of which statement a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StatementHead {
    /// Which one.
    pub id: StatementId,
    /// Its revision.
    pub revision: u64,
    /// The digest of its signed bytes.
    pub digest: [u8; 16],
}

/// The digest of all statements that a member keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementsDigest(pub [u8; 16]);

impl StatementsDigest {
    /// Of these, which are in order.
    pub fn of<'a>(heads: impl IntoIterator<Item = &'a StatementHead>) -> StatementsDigest {
        let mut hasher = Sha256::new();
        for head in heads {
            hasher.update(head.id.0);
            hasher.update(head.revision.to_le_bytes());
            hasher.update(head.digest);
        }
        StatementsDigest(half(hasher.finalize()))
    }
}

/// Why an opt-out, or a statement about one, is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptOutError {
    /// The bytes do not decode to a statement.
    #[error("the statement cannot be decoded")]
    Malformed,
    /// The signature does not verify with the key of who says it.
    #[error("the statement's signature is not that of the member that it names")]
    BadSignature,
    /// It says what none may say; how, as a sentence.
    #[error("{0}")]
    OutOfRange(String),
}

fn wrong(why: impl Into<String>) -> OptOutError {
    OptOutError::OutOfRange(why.into())
}

impl Statement {
    /// Which one it is.
    pub fn id(&self) -> StatementId {
        statement_id(&self.by, &self.key)
    }

    fn check(&self) -> Result<(), OptOutError> {
        if !(1..=MAX_REVISION).contains(&self.revision) {
            return Err(wrong("a statement's revision is out of range"));
        }
        self.key.check()
    }
}

/// The digest of a member and of what it speaks about.
pub fn statement_id(by: &AccessPoint, key: &OptOutKey) -> StatementId {
    #[expect(clippy::expect_used, reason = "postcard writes any key into a growing vector")]
    let key = postcard::to_stdvec(key).expect("a key always encodes");
    StatementId(half(Sha256::new().chain_update(by.0).chain_update(key).finalize()))
}

/// A statement as it travels: the signed bytes themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedStatement {
    /// The statement, encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 over [`STATEMENT_CONTEXT`] and `bytes`, by who says it.
    pub signature: Vec<u8>,
}

/// The domain separator of the signature, so that a signature of a statement is valid for nothing else.
const STATEMENT_CONTEXT: &[u8] = b"nearcrawl opt-out 1\0";

fn signed_bytes(bytes: &[u8]) -> Vec<u8> {
    [STATEMENT_CONTEXT, bytes].concat()
}

impl SignedStatement {
    /// Signs a statement with the key of who says it.
    ///
    /// # Errors
    ///
    /// It says what none may say.
    pub fn sign(statement: &Statement, key: &SigningKey) -> Result<SignedStatement, OptOutError> {
        statement.check()?;
        let bytes = postcard::to_stdvec(statement).map_err(|_| OptOutError::Malformed)?;
        let signature = key.sign(&signed_bytes(&bytes)).to_bytes().to_vec();
        Ok(SignedStatement { bytes, signature })
    }

    /// Decodes the statement and checks the signature.
    ///
    /// # Errors
    ///
    /// It is none, too large, or another's.
    pub fn open(&self) -> Result<Statement, OptOutError> {
        let statement = self.read()?;
        let key = VerifyingKey::from_bytes(&statement.by.0).map_err(|_| OptOutError::BadSignature)?;
        let signature: &[u8; SIGNATURE_BYTES] = self.signature.as_slice().try_into().map_err(|_| OptOutError::BadSignature)?;
        key.verify(&signed_bytes(&self.bytes), &(*signature).into()).map_err(|_| OptOutError::BadSignature)?;
        Ok(statement)
    }

    /// Decodes the statement without checking the signature: for what was checked before it was stored. Only the bytes that
    /// [`SignedStatement::sign`] writes are a statement.
    ///
    /// # Errors
    ///
    /// It is none, or too large.
    pub fn read(&self) -> Result<Statement, OptOutError> {
        if self.bytes.len() > MAX_STATEMENT_BYTES {
            return Err(wrong("the statement is too large"));
        }
        let statement: Statement = postcard::from_bytes(&self.bytes).map_err(|_| OptOutError::Malformed)?;
        statement.check()?;
        let again = postcard::to_stdvec(&statement).map_err(|_| OptOutError::Malformed)?;
        if again == self.bytes { Ok(statement) } else { Err(OptOutError::Malformed) }
    }

    /// Which version it is of the statement that was decoded from it.
    pub fn head(&self, statement: &Statement) -> StatementHead {
        StatementHead { id: statement.id(), revision: statement.revision, digest: half(Sha256::digest(&self.bytes)) }
    }
}

/// What came of looking for a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofLook {
    /// It is there.
    Stands,
    /// It is not; what was found instead, as a sentence.
    Gone(String),
    /// That could not be found out; why, as a sentence.
    Unclear(String),
}

/// An opt-out as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptOutView {
    /// Where nothing is to be asked: a host, the name of a domain, or a range of addresses.
    pub subject: String,
    /// Which of these it is: `host`, `domain` or `range`.
    pub kind: String,
    /// What shows that who says so may.
    pub proof: OptOutProof,
    /// Whether the member that answers asks nothing there because of it.
    pub in_force: bool,
    /// When it was taken in first of those who say so now, by their clocks.
    #[schema(value_type = String)]
    pub opted_out_at: WallTime,
    /// The peer ids of the members that took it in, or saw the proof, in the order of their statements' dates.
    #[schema(value_type = Vec<String>)]
    pub said_by: Vec<AccessPoint>,
    /// The peer ids of those that looked for the proof in vain, or withdrew it.
    #[schema(value_type = Vec<String>)]
    pub denied_by: Vec<AccessPoint>,
    /// The greatest revision of the statements about it.
    pub revision: u64,
    /// How it stands, in a sentence.
    pub state_text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, domain: bool) -> Result<OptOutSubject, String> {
        OptOutSubject::read(text, domain).map_err(|why| why.to_string())
    }

    fn statement(key: &SigningKey) -> Statement {
        let by = AccessPoint(key.verifying_key().to_bytes());
        let subject = OptOutSubject::read("museum.or.ke", false).unwrap();
        Statement { by, key: OptOutKey { subject, proof: OptOutProof::Txt }, revision: 1, stops: true, at: WallTime(5) }
    }

    #[test]
    fn no_operator_answers_for_a_public_suffix() {
        for (name, fits) in [("ke", false), ("co.za", false), ("museum.or.ke", true), ("b.co.za", true)] {
            let subject = OptOutSubject::read(name, false).unwrap();
            assert_eq!(OptOutKey { subject, proof: OptOutProof::Order }.check().is_ok(), fits, "{name}");
        }
    }

    #[test]
    fn only_what_a_member_signs_itself_is_read() {
        let (key, other) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        let statement = statement(&key);
        let signed = SignedStatement::sign(&statement, &key).unwrap();
        assert_eq!(signed.open(), Ok(statement.clone()));
        assert_eq!(SignedStatement::sign(&statement, &other).unwrap().open(), Err(OptOutError::BadSignature));
        let longer = [&signed.bytes[..], &[0]].concat();
        assert_eq!(SignedStatement { bytes: longer, ..signed.clone() }.open(), Err(OptOutError::Malformed));
        let later = Statement { revision: 2, stops: false, ..statement.clone() };
        let later = (SignedStatement::sign(&later, &key).unwrap(), later);
        assert!(later.0.head(&later.1) > signed.head(&statement) && later.1.id() == statement.id());
    }

    #[test]
    fn subjects_are_read_as_people_write_them_and_none_is_too_wide() {
        assert_eq!(read("192.0.2.7", false), Ok(OptOutSubject::Range("192.0.2.7/32".parse().unwrap())));
        assert_eq!(read("192.0.0.0/16", true).map(|subject| subject.to_string()), Ok("192.0.0.0/16".to_owned()));
        assert_eq!(read("Museum.or.KE", false).map(|subject| subject.to_string()), Ok("museum.or.ke".to_owned()));
        for (text, says) in
            [("10.0.0.0/8", "too wide"), ("2001:db8::/24", "too wide"), ("or.ke", "public suffix"), ("a b", "write it like")]
        {
            assert!(read(text, true).unwrap_err().contains(says), "{text}");
        }
        let key = |subject, proof| OptOutKey { subject, proof }.check().map_err(|why| why.to_string());
        assert!(key(read("192.0.2.0/24", false).unwrap(), OptOutProof::Txt).unwrap_err().contains("order only"));
        assert!(key(read("museum.or.ke", true).unwrap(), OptOutProof::File).unwrap_err().contains("one host only"));
    }

    #[test]
    fn a_domain_covers_what_is_below_it_and_a_range_what_is_in_it() {
        let covers = |subject: &str, host: &str, address: Option<&str>| {
            let host: Host = host.parse().unwrap();
            read(subject, true).unwrap().covers(Some(&host), address.map(|address| address.parse().unwrap()))
        };
        assert!(covers("museum.or.ke", "museum.or.ke", None) && covers("museum.or.ke", "a.b.museum.or.ke", None));
        assert!(!covers("museum.or.ke", "notmuseum.or.ke", None) && !covers("museum.or.ke", "or.ke", None));
        assert!(covers("192.0.2.0/24", "a.ke", Some("192.0.2.9")) && !covers("192.0.2.0/24", "a.ke", None));
        assert!(covers("192.0.2.0/24", "192.0.2.9", None));
        assert!(covers("192.0.2.0/24", "a.ke", Some("::ffff:192.0.2.9")), "however the socket names it");
        for mapped in ["::ffff:192.0.2.0/120", "::ffff:192.0.2.7", "::ffff:0:0/96"] {
            assert!(read(mapped, false).unwrap_err().to_string().contains("write it as IPv4"), "{mapped}");
        }
        assert!(!read("museum.or.ke", false).unwrap().covers(Some(&"www.museum.or.ke".parse().unwrap()), None));
    }
}
