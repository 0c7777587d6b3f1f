//! Certificates and expulsions of members, signed offline by the swarm's root key, or by a member that the root made an inviter.
//!
//! A chain has at most two links: the root certifies members and inviters, an inviter certifies members. Expulsions hold for ever: the root
//! expels anybody, an inviter those whom it invited. What an expelled member certified is void, too: inviters answer for whom they invited.
//! An inviter is none any more when the root certifies it anew without that right: whom it invited before stays, and what it signs after
//! that (by the time in it) is void.
//! Whoever holds this is judged by [`Gate::judge`], at a connection's beginning, and again whenever the statements change.

use super::{
    access_point::AccessPoint,
    claim::SIGNATURE_BYTES,
    half_digest::half,
    opt_out::{StatementHead, StatementId},
    time::WallTime,
};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    sync::Arc,
};
use utoipa::ToSchema;

/// Certificates that a member keeps, of all issuers together.
pub const MAX_CERTIFICATES: usize = 4_096;

/// Expulsions that a member keeps, of all issuers together.
pub const MAX_EXPULSIONS: usize = 4_096;

/// Certificates that are kept of one inviter, and as many expulsions.
pub const MAX_OF_INVITER: usize = 512;

/// Statements in one message.
pub const MAX_TOLD: usize = 256;

/// Bytes of one statement.
pub const MAX_STATEMENT_BYTES: usize = 512;

/// Bytes of the name that an issuer gives a member.
pub const MAX_LABEL: usize = 64;

/// Bytes of the reason of an expulsion.
pub const MAX_REASON: usize = 200;

/// The greatest serial of an expulsion.
pub const MAX_SERIAL: u64 = 1 << 48;

/// What a certificate or an expulsion begins with where it is one line of text.
pub const TEXT_HEAD: &str = "nearcrawl-admission-1:";

/// Characters of a certificate as text; the longest has about 1,600.
const MAX_TEXT: usize = 4_096;

/// The public key whose holder admits members: the name of a swarm that is not open. 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootKey(pub [u8; 32]);

/// A text that is no root key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no root key: `nearcrawl swarm init` prints it, 64 hexadecimal digits")]
pub struct ParseRootKeyError(pub String);

impl fmt::Display for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootKey({self})")
    }
}

impl FromStr for RootKey {
    type Err = ParseRootKeyError;

    fn from_str(text: &str) -> Result<RootKey, ParseRootKeyError> {
        let wrong = || ParseRootKeyError(text.chars().take(80).collect());
        let digits: Vec<u8> =
            text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>().ok_or_else(wrong)?;
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(wrong()) };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        Ok(RootKey(bytes.try_into().map_err(|_| wrong())?))
    }
}

impl Serialize for RootKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for RootKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RootKey, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
        } else {
            Ok(RootKey(<[u8; 32]>::deserialize(deserializer)?))
        }
    }
}

/// Who signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Issuer {
    /// The holder of the root key.
    Root,
    /// A member whom the root made an inviter; its certificate stands beside what it signs.
    Inviter(AccessPoint),
}

impl Issuer {
    /// The inviter; none if it is the root.
    pub fn inviter(self) -> Option<AccessPoint> {
        match self {
            Issuer::Root => None,
            Issuer::Inviter(inviter) => Some(inviter),
        }
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Issuer::Root => f.write_str("the root key"),
            Issuer::Inviter(inviter) => write!(f, "the inviter {}", inviter.short()),
        }
    }
}

/// That an access point may be a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Of which swarm.
    pub swarm: RootKey,
    /// Who signs it.
    pub issuer: Issuer,
    /// Who may be a member.
    pub member: AccessPoint,
    /// Whether it may invite others: the root alone says so.
    pub may_invite: bool,
    /// When it was signed, by the clock there. Of two of one issuer for one member the later one counts.
    pub issued: WallTime,
    /// Until when it holds: not longer than the inviter's own.
    pub expires: WallTime,
    /// What people call the member.
    pub label: String,
}

/// That an access point may not be a member any more, nor whom it invited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expulsion {
    /// Of which swarm.
    pub swarm: RootKey,
    /// Who signs it: the root for anybody, an inviter for whom it invited.
    pub issuer: Issuer,
    /// Who is expelled.
    pub member: AccessPoint,
    /// Of two of one issuer about one member the one with the greater serial counts: it may have another reason.
    pub serial: u64,
    /// When it was signed, by the clock there.
    pub at: WallTime,
    /// Why, for people.
    pub reason: String,
}

/// What is signed about a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Admission {
    /// It may be one.
    Certificate(Certificate),
    /// It may be one no more.
    Expulsion(Expulsion),
}

/// Why a statement about a member is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// The bytes do not decode to a statement.
    #[error("the statement cannot be decoded")]
    Malformed,
    /// The signature does not verify.
    #[error("the statement is not signed by {0}")]
    BadSignature(Issuer),
    /// It is of another swarm.
    #[error("it is of swarm {theirs}, and the configured root key is {ours}")]
    OtherSwarm {
        /// The configured root key.
        ours: RootKey,
        /// The one that the statement names.
        theirs: RootKey,
    },
    /// It says what its issuer may not say; how, as a sentence.
    #[error("{0}")]
    OutOfRange(String),
}

fn wrong(why: impl Into<String>) -> AdmissionError {
    AdmissionError::OutOfRange(why.into())
}

impl Admission {
    /// Of which swarm it is.
    pub fn swarm(&self) -> RootKey {
        match self {
            Admission::Certificate(certificate) => certificate.swarm,
            Admission::Expulsion(expulsion) => expulsion.swarm,
        }
    }

    /// Who signs it.
    pub fn issuer(&self) -> Issuer {
        match self {
            Admission::Certificate(certificate) => certificate.issuer,
            Admission::Expulsion(expulsion) => expulsion.issuer,
        }
    }

    /// Whom it is about.
    pub fn member(&self) -> AccessPoint {
        match self {
            Admission::Certificate(certificate) => certificate.member,
            Admission::Expulsion(expulsion) => expulsion.member,
        }
    }

    /// Whether it is an expulsion.
    pub fn expels(&self) -> bool {
        matches!(self, Admission::Expulsion(_))
    }

    fn check(&self) -> Result<(), AdmissionError> {
        let is_plain = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
        match self {
            Admission::Certificate(one) if !is_plain(&one.label, MAX_LABEL) => {
                Err(wrong(format!("a label has at most {MAX_LABEL} bytes and no control characters")))
            }
            Admission::Certificate(one) if one.expires <= one.issued => Err(wrong("a certificate ends after it was signed")),
            Admission::Certificate(one) if one.may_invite && one.issuer != Issuer::Root => {
                Err(wrong("an inviter cannot make inviters: only the root key can"))
            }
            Admission::Expulsion(one) if !is_plain(&one.reason, MAX_REASON) || one.reason.is_empty() => {
                Err(wrong(format!("the reason of an expulsion has 1 to {MAX_REASON} bytes and no control characters")))
            }
            Admission::Expulsion(one) if one.serial > MAX_SERIAL => Err(wrong("the serial of an expulsion is out of range")),
            _ if self.issuer() == Issuer::Inviter(self.member()) => Err(wrong("nobody speaks about itself")),
            _ => Ok(()),
        }
    }

    /// Which one it is: the digest of its kind, its issuer and its member.
    pub fn id(&self) -> StatementId {
        let (issuer, member) = (self.issuer().inviter().map_or([0; 32], |inviter| inviter.0), self.member());
        let of = Sha256::new().chain_update([u8::from(self.expels()), u8::from(self.issuer() != Issuer::Root)]);
        StatementId(half(of.chain_update(issuer).chain_update(member.0).finalize()))
    }

    /// Of two with the same id the one with the greater revision counts.
    fn revision(&self) -> u64 {
        match self {
            Admission::Certificate(certificate) => certificate.issued.0,
            Admission::Expulsion(expulsion) => expulsion.serial,
        }
    }
}

/// The domain separator of the signatures, so that one of them is valid for nothing else. Which kind of statement it is stands in the bytes.
const CONTEXT: &[u8] = b"nearcrawl admission 1\0";

/// An [`Admission`] as it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedBytes {
    /// The statement, encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 over a domain separator and `bytes`.
    pub signature: Vec<u8>,
}

impl SignedBytes {
    fn sign(statement: &Admission, key: &SigningKey) -> Result<SignedBytes, AdmissionError> {
        statement.check()?;
        let bytes = postcard::to_stdvec(statement).map_err(|_| AdmissionError::Malformed)?;
        let signature = key.sign(&[CONTEXT, &bytes].concat()).to_bytes().to_vec();
        Ok(SignedBytes { bytes, signature })
    }

    /// Only the bytes that were signed are a statement: there is one encoding.
    fn read(&self) -> Result<Admission, AdmissionError> {
        if self.bytes.len() > MAX_STATEMENT_BYTES || self.signature.len() != SIGNATURE_BYTES {
            return Err(wrong("the statement is too large, or its signature is none"));
        }
        let statement: Admission = postcard::from_bytes(&self.bytes).map_err(|_| AdmissionError::Malformed)?;
        statement.check()?;
        let again = postcard::to_stdvec(&statement).map_err(|_| AdmissionError::Malformed)?;
        if again == self.bytes { Ok(statement) } else { Err(AdmissionError::Malformed) }
    }

    fn is_signed_by(&self, key: &[u8; 32]) -> bool {
        let key = VerifyingKey::from_bytes(key).ok();
        let signature: Option<&[u8; SIGNATURE_BYTES]> = self.signature.as_slice().try_into().ok();
        let signed = [CONTEXT, &self.bytes].concat();
        key.zip(signature).is_some_and(|(key, signature)| key.verify(&signed, &(*signature).into()).is_ok())
    }
}

/// A statement as it travels, with what shows that its issuer may make it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedAdmission {
    /// The statement, signed by its issuer.
    pub statement: SignedBytes,
    /// The inviter's certificate, signed by the root; none if the root signed the statement itself.
    pub inviter: Option<SignedBytes>,
}

impl SignedAdmission {
    /// Signs with the root key.
    ///
    /// # Errors
    ///
    /// It says what the root may not say.
    pub fn by_root(statement: &Admission, key: &SigningKey) -> Result<SignedAdmission, AdmissionError> {
        let signed = SignedAdmission { statement: SignedBytes::sign(statement, key)?, inviter: None };
        signed.open(&RootKey(key.verifying_key().to_bytes())).map(|_| signed)
    }

    /// Signs with the key of an inviter, whose own certificate this is.
    ///
    /// # Errors
    ///
    /// It says what that inviter may not say.
    pub fn by_inviter(statement: &Admission, key: &SigningKey, own: &SignedAdmission) -> Result<SignedAdmission, AdmissionError> {
        let signed = SignedAdmission { statement: SignedBytes::sign(statement, key)?, inviter: Some(own.statement.clone()) };
        signed.open(&statement.swarm()).map(|_| signed)
    }

    /// Decodes the statement and checks that whoever signed it may say so in this swarm. Whether a certificate holds still is not looked at.
    ///
    /// # Errors
    ///
    /// It is none, of another swarm, or not its issuer's to make.
    pub fn open(&self, root: &RootKey) -> Result<Admission, AdmissionError> {
        let statement = self.read()?;
        let issuer = statement.issuer();
        if statement.swarm() != *root {
            return Err(AdmissionError::OtherSwarm { ours: *root, theirs: statement.swarm() });
        }
        let key = issuer.inviter().map_or(root.0, |inviter| inviter.0);
        if !self.statement.is_signed_by(&key) {
            return Err(AdmissionError::BadSignature(issuer));
        }
        if self.inviter.as_ref().is_some_and(|inviter| !inviter.is_signed_by(&root.0)) {
            return Err(AdmissionError::BadSignature(Issuer::Root));
        }
        Ok(statement)
    }

    /// Decodes the statement without checking signatures: for what was checked before it was stored.
    ///
    /// # Errors
    ///
    /// It is none, or does not fit to the inviter's certificate beside it.
    pub fn read(&self) -> Result<Admission, AdmissionError> {
        let statement = self.statement.read()?;
        let inviter = match (&self.inviter, statement.issuer()) {
            (None, Issuer::Root) => return Ok(statement),
            (Some(inviter), Issuer::Inviter(named)) => match inviter.read()? {
                Admission::Certificate(one) if one.member == named && one.issuer == Issuer::Root && one.swarm == statement.swarm() => one,
                _ => return Err(wrong("the certificate beside it is not that of the inviter that signed it")),
            },
            _ => return Err(wrong("what an inviter signs stands beside its certificate, and what the root signs by itself")),
        };
        match &statement {
            _ if !inviter.may_invite => Err(wrong(format!("{} is no inviter", inviter.member.short()))),
            Admission::Certificate(one) if one.expires > inviter.expires => {
                Err(wrong(format!("it would hold longer than the inviter's own certificate, which ends {}", inviter.expires)))
            }
            _ => Ok(statement),
        }
    }

    /// Which version it is of the statement that was decoded from it.
    pub fn head(&self, statement: &Admission) -> StatementHead {
        let mut digest = Sha256::new();
        for signed in std::iter::once(&self.statement).chain(&self.inviter) {
            digest.update((signed.bytes.len() as u64).to_le_bytes());
            digest.update(&signed.bytes);
            digest.update(&signed.signature);
        }
        StatementHead { id: statement.id(), revision: statement.revision(), digest: half(digest.finalize()) }
    }
}

/// A certificate or an expulsion as one line of text.
impl fmt::Display for SignedAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        write!(f, "{TEXT_HEAD}{}", bs58::encode(bytes).into_string())
    }
}

impl FromStr for SignedAdmission {
    type Err = AdmissionError;

    fn from_str(text: &str) -> Result<SignedAdmission, AdmissionError> {
        let text = text.trim();
        let encoded = text.strip_prefix(TEXT_HEAD).filter(|_| text.len() <= MAX_TEXT);
        let encoded = encoded.ok_or_else(|| wrong(format!("a certificate, or an expulsion, is one line that begins with {TEXT_HEAD}")))?;
        let bytes = bs58::decode(encoded).into_vec().map_err(|_| AdmissionError::Malformed)?;
        let signed: SignedAdmission = postcard::from_bytes(&bytes).map_err(|_| AdmissionError::Malformed)?;
        signed.read()?;
        let again = postcard::to_stdvec(&signed).map_err(|_| AdmissionError::Malformed)?;
        if again == bytes { Ok(signed) } else { Err(AdmissionError::Malformed) }
    }
}

/// Who may be a member, by the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionMode {
    /// Everybody.
    #[default]
    Open,
    /// Who has a certificate.
    Invite,
    /// Who is on the list of the configuration.
    Closed,
}

impl fmt::Display for AdmissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdmissionMode::Open => "open",
            AdmissionMode::Invite => "invite",
            AdmissionMode::Closed => "closed",
        })
    }
}

/// What the operator decided about members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionRule {
    /// Who may be one.
    pub mode: AdmissionMode,
    /// The root key; there is one if `mode` is [`AdmissionMode::Invite`].
    pub swarm: Option<RootKey>,
    /// Who may be one if `mode` is [`AdmissionMode::Closed`].
    pub members: BTreeSet<AccessPoint>,
}

/// Why an access point may not be a member. The text is what its operator reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// It was expelled.
    #[error("expelled: {reason} (by {by})")]
    Expelled {
        /// Why.
        reason: String,
        /// By whom.
        by: Issuer,
    },
    /// Who invited it was expelled.
    #[error("expelled: the inviter {}, who answers for it, was expelled: {reason} (by {by})", inviter.short())]
    WithInviter {
        /// Who invited it.
        inviter: AccessPoint,
        /// Why that one was expelled.
        reason: String,
        /// By whom.
        by: Issuer,
    },
    /// It has no certificate.
    #[error(
        "not invited: this swarm takes members by invitation; have an inviter, or the holder of the root key, run `nearcrawl swarm invite`, \
         then `nearcrawl swarm join` what that writes"
    )]
    NoCertificate,
    /// Its certificate is not one that counts here.
    #[error("not invited: the certificate does not count: {0}")]
    BadCertificate(String),
    /// Its certificate has ended.
    #[error("not invited: the certificate ended {0}: ask for another one")]
    Ended(WallTime),
    /// It is not on the list.
    #[error("not invited: this swarm is closed, and the access point is not on its list (admission.members)")]
    NotListed,
}

impl NotAdmitted {
    /// Whether somebody decided so about this access point, or about who invited it.
    pub fn is_expelled(&self) -> bool {
        matches!(self, NotAdmitted::Expelled { .. } | NotAdmitted::WithInviter { .. })
    }
}

/// An expulsion that is known, and was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownExpulsion {
    /// Why.
    pub reason: String,
    /// The statement, for whom it is about.
    pub signed: SignedAdmission,
}

/// The expulsions that are known: of whom, and by whom.
pub type Expelled = BTreeMap<AccessPoint, BTreeMap<Issuer, Arc<KnownExpulsion>>>;

/// Who is let in: the operator's rule with the expulsions that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The rule.
    pub rule: AdmissionRule,
    /// The expulsions.
    pub expelled: Expelled,
    /// Who may invite nobody by its newest certificate of the root key, and when that was signed: what it certified after that is void.
    pub no_inviters: BTreeMap<AccessPoint, WallTime>,
}

impl Gate {
    /// Whether everybody is let in, so that nothing has to be looked at.
    pub fn is_open(&self) -> bool {
        self.rule.mode == AdmissionMode::Open && self.expelled.is_empty()
    }

    /// Judges an access point by the certificate that it shows.
    ///
    /// # Errors
    ///
    /// Why it may not be a member.
    pub fn judge_shown(&self, who: &AccessPoint, shown: Option<&SignedAdmission>, now: WallTime) -> Result<(), NotAdmitted> {
        let Some((signed, root)) = shown.zip(self.rule.swarm) else { return self.judge(who, None, now) };
        match signed.open(&root) {
            Ok(Admission::Certificate(certificate)) => self.judge(who, Some(&certificate), now),
            _ if self.rule.mode != AdmissionMode::Invite => self.judge(who, None, now),
            Ok(Admission::Expulsion(_)) => Err(NotAdmitted::NoCertificate),
            Err(why) => self.judge_expelled(who).and(Err(NotAdmitted::BadCertificate(why.to_string()))),
        }
    }

    /// Judges an access point by a certificate whose signatures were checked.
    ///
    /// # Errors
    ///
    /// Why it may not be a member.
    pub fn judge(&self, who: &AccessPoint, certificate: Option<&Certificate>, now: WallTime) -> Result<(), NotAdmitted> {
        self.judge_expelled(who)?;
        match (self.rule.mode, certificate) {
            (AdmissionMode::Open, _) => Ok(()),
            (AdmissionMode::Closed, _) if self.rule.members.contains(who) => Ok(()),
            (AdmissionMode::Closed, _) => Err(NotAdmitted::NotListed),
            (AdmissionMode::Invite, None) => Err(NotAdmitted::NoCertificate),
            (AdmissionMode::Invite, Some(certificate)) => self.judge_certificate(who, certificate, now),
        }
    }

    /// The expulsion because of which this access point is refused, to be shown to it; none if that is not the reason.
    pub fn proof_of(&self, who: &AccessPoint, why: &NotAdmitted) -> Option<&SignedAdmission> {
        let (expelled, by) = match why {
            NotAdmitted::Expelled { by, .. } => (who, by),
            NotAdmitted::WithInviter { inviter, by, .. } => (inviter, by),
            _ => return None,
        };
        self.expelled.get(expelled).and_then(|known| known.get(by)).map(|known| &known.signed)
    }

    fn judge_expelled(&self, who: &AccessPoint) -> Result<(), NotAdmitted> {
        match self.expelled.get(who).and_then(|by| by.get(&Issuer::Root)) {
            Some(known) => Err(NotAdmitted::Expelled { reason: known.reason.clone(), by: Issuer::Root }),
            None => Ok(()),
        }
    }

    fn judge_certificate(&self, who: &AccessPoint, certificate: &Certificate, now: WallTime) -> Result<(), NotAdmitted> {
        if certificate.member != *who {
            return Err(NotAdmitted::BadCertificate(format!("it is made out to {}", certificate.member)));
        }
        if let Some(inviter) = certificate.issuer.inviter() {
            // An inviter's expulsion voids what it certified itself, and nothing else.
            if let Some(known) = self.expelled.get(who).and_then(|by| by.get(&certificate.issuer)) {
                return Err(NotAdmitted::Expelled { reason: known.reason.clone(), by: certificate.issuer });
            }
            if let Err(NotAdmitted::Expelled { reason, by }) = self.judge_expelled(&inviter) {
                return Err(NotAdmitted::WithInviter { inviter, reason, by });
            }
            if let Some(since) = self.no_inviters.get(&inviter).filter(|since| **since < certificate.issued) {
                return Err(NotAdmitted::BadCertificate(format!("{} has been no inviter since {since}", inviter.short())));
            }
        }
        if certificate.expires <= now { Err(NotAdmitted::Ended(certificate.expires)) } else { Ok(()) }
    }
}

/// Who may be a member, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdmissionView {
    /// Who may be one, by the configuration of the access point that answers.
    pub mode: AdmissionMode,
    /// The swarm's root key; none if none is configured.
    #[schema(value_type = Option<String>)]
    pub swarm: Option<RootKey>,
    /// Why the access point that answers is no member, if so.
    pub refused_text: Option<String>,
    /// The certificates that are known here, by the members' peer ids.
    pub certificates: Vec<CertificateView>,
    /// The expulsions, by the peer ids of the expelled.
    pub expulsions: Vec<ExpulsionView>,
}

/// A certificate as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CertificateView {
    /// The member's peer id.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// What its issuer calls it.
    pub label: String,
    /// Whether it may invite others.
    pub may_invite: bool,
    /// The peer id of who invited it; none if the root key did.
    #[schema(value_type = Option<String>)]
    pub invited_by: Option<AccessPoint>,
    /// When it was signed.
    #[schema(value_type = String)]
    pub issued_at: WallTime,
    /// Until when it holds.
    #[schema(value_type = String)]
    pub expires_at: WallTime,
    /// Whether that member answers now.
    pub alive: bool,
    /// Why it does not count, if so.
    pub refused_text: Option<String>,
}

/// An expulsion as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExpulsionView {
    /// The peer id of the expelled.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// The peer id of the inviter that expelled it; none if the root key did.
    #[schema(value_type = Option<String>)]
    pub expelled_by: Option<AccessPoint>,
    /// When it was signed.
    #[schema(value_type = String)]
    pub expelled_at: WallTime,
    /// Why.
    pub reason_text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(number: u8) -> SigningKey {
        SigningKey::from_bytes(&[number; 32])
    }

    fn who(number: u8) -> AccessPoint {
        AccessPoint(key(number).verifying_key().to_bytes())
    }

    fn root() -> RootKey {
        RootKey(key(99).verifying_key().to_bytes())
    }

    fn certificate(member: u8, issuer: Issuer, may_invite: bool) -> Certificate {
        let (issued, expires) = (WallTime(1_000), WallTime(9_000));
        Certificate { swarm: root(), issuer, member: who(member), may_invite, issued, expires, label: "a museum".to_owned() }
    }

    fn by_root(member: u8, may_invite: bool) -> SignedAdmission {
        SignedAdmission::by_root(&Admission::Certificate(certificate(member, Issuer::Root, may_invite)), &key(99)).unwrap()
    }

    fn by_inviter(inviter: u8, member: u8) -> Result<SignedAdmission, AdmissionError> {
        let statement = Admission::Certificate(certificate(member, Issuer::Inviter(who(inviter)), false));
        SignedAdmission::by_inviter(&statement, &key(inviter), &by_root(inviter, true))
    }

    fn expulsion(member: u8, issuer: Issuer) -> Expulsion {
        Expulsion { swarm: root(), issuer, member: who(member), serial: 5, at: WallTime(5), reason: "asked too much".to_owned() }
    }

    fn gate(expelled: &[Expulsion]) -> Gate {
        let mut gate = Gate {
            rule: AdmissionRule { mode: AdmissionMode::Invite, swarm: Some(root()), ..AdmissionRule::default() },
            ..Gate::default()
        };
        for one in expelled {
            let known = KnownExpulsion { reason: one.reason.clone(), signed: by_root(1, false) };
            gate.expelled.entry(one.member).or_default().insert(one.issuer, Arc::new(known));
        }
        gate
    }

    #[test]
    fn the_root_certifies_inviters_and_these_certify_members_and_no_further() {
        assert!(matches!(by_root(1, true).open(&root()), Ok(Admission::Certificate(one)) if one.may_invite && one.member == who(1)));
        assert!(by_inviter(1, 2).unwrap().open(&root()).is_ok());
        let makes_inviters = Admission::Certificate(Certificate { may_invite: true, ..certificate(3, Issuer::Inviter(who(1)), false) });
        let refused = SignedAdmission::by_inviter(&makes_inviters, &key(1), &by_root(1, true)).unwrap_err();
        assert!(refused.to_string().contains("only the root key"), "{refused}");
        // Who was invited by an inviter has a certificate, but none of the root's; and who is no inviter invites nobody.
        let third = Admission::Certificate(certificate(3, Issuer::Inviter(who(2)), false));
        assert!(SignedAdmission::by_inviter(&third, &key(2), &by_inviter(1, 2).unwrap()).is_err());
        let refused = SignedAdmission::by_inviter(&third, &key(2), &by_root(2, false)).unwrap_err();
        assert!(refused.to_string().contains("is no inviter"), "{refused}");
        let longer = Certificate { expires: WallTime(9_001), ..certificate(3, Issuer::Inviter(who(1)), false) };
        let refused = SignedAdmission::by_inviter(&Admission::Certificate(longer), &key(1), &by_root(1, true)).unwrap_err();
        assert!(refused.to_string().contains("longer"), "{refused}");
    }

    #[test]
    fn what_another_key_signed_or_another_swarm_is_refused() {
        let stranger = SignedAdmission::by_root(&Admission::Certificate(certificate(1, Issuer::Root, false)), &key(98));
        assert!(stranger.is_err(), "the swarm that it names has another root");
        let forged = SignedAdmission { statement: SignedBytes::sign(&by_root(1, false).read().unwrap(), &key(98)).unwrap(), inviter: None };
        assert_eq!(forged.open(&root()), Err(AdmissionError::BadSignature(Issuer::Root)));
        let other = RootKey(key(98).verifying_key().to_bytes());
        assert!(by_root(1, false).open(&other).unwrap_err().to_string().contains(&other.to_string()));
        let mut inviter_forged = by_inviter(1, 2).unwrap();
        inviter_forged.inviter = Some(SignedBytes::sign(&by_root(1, true).read().unwrap(), &key(98)).unwrap());
        assert_eq!(inviter_forged.open(&root()), Err(AdmissionError::BadSignature(Issuer::Root)));
        let longer = [&by_root(1, false).statement.bytes[..], &[0]].concat();
        let longer = SignedAdmission { statement: SignedBytes { bytes: longer, ..by_root(1, false).statement }, inviter: None };
        assert_eq!(longer.open(&root()), Err(AdmissionError::Malformed));
    }

    #[test]
    fn a_signature_of_an_opt_out_certifies_nobody() {
        let statement = Admission::Certificate(certificate(1, Issuer::Root, false));
        let bytes = postcard::to_stdvec(&statement).unwrap();
        let signature = key(99).sign(&[b"nearcrawl opt-out 1\0", &bytes[..]].concat()).to_bytes().to_vec();
        let signed = SignedAdmission { statement: SignedBytes { bytes, signature }, inviter: None };
        assert_eq!(signed.open(&root()), Err(AdmissionError::BadSignature(Issuer::Root)));
    }

    #[test]
    fn an_invited_member_is_let_in_until_its_certificate_ends() {
        let (gate, now) = (gate(&[]), WallTime(5_000));
        let judge =
            |member, shown: Option<&SignedAdmission>, now| gate.judge_shown(&who(member), shown, now).map_err(|why| why.to_string());
        assert_eq!(judge(1, Some(&by_root(1, false)), now), Ok(()));
        assert_eq!(judge(2, Some(&by_inviter(1, 2).unwrap()), now), Ok(()));
        assert!(judge(3, None, now).unwrap_err().starts_with("not invited: this swarm takes members by invitation"));
        assert!(judge(3, Some(&by_root(1, false)), now).unwrap_err().contains("made out to"), "a certificate is for one key");
        assert!(judge(1, Some(&by_root(1, false)), WallTime(9_000)).unwrap_err().contains("ended 1970-01-01T00:00:09.000Z"));
    }

    #[test]
    fn an_expelled_inviter_takes_along_whom_it_invited_and_nobody_else() {
        let now = WallTime(5_000);
        let by_root_key = gate(&[expulsion(1, Issuer::Root)]);
        let refused =
            |gate: &Gate, member, shown: &SignedAdmission| gate.judge_shown(&who(member), Some(shown), now).unwrap_err().to_string();
        assert_eq!(refused(&by_root_key, 1, &by_root(1, true)), "expelled: asked too much (by the root key)");
        assert!(refused(&by_root_key, 2, &by_inviter(1, 2).unwrap()).starts_with("expelled: the inviter "));
        assert_eq!(by_root_key.judge_shown(&who(2), Some(&by_root(2, false)), now), Ok(()), "invited anew by the root");
        let by_its_inviter = gate(&[expulsion(2, Issuer::Inviter(who(1)))]);
        assert!(refused(&by_its_inviter, 2, &by_inviter(1, 2).unwrap()).contains("by the inviter"));
        for (member, shown) in [(2, by_root(2, false)), (2, by_inviter(3, 2).unwrap()), (1, by_root(1, true))] {
            assert_eq!(by_its_inviter.judge_shown(&who(member), Some(&shown), now), Ok(()), "an inviter answers for its own only");
        }
    }

    #[test]
    fn a_closed_swarm_has_its_list_and_an_open_one_everybody_but_the_expelled() {
        let rule = AdmissionRule { mode: AdmissionMode::Closed, swarm: None, members: BTreeSet::from([who(1)]) };
        let closed = Gate { rule, ..Gate::default() };
        assert_eq!(closed.judge_shown(&who(1), None, WallTime(5)), Ok(()));
        assert_eq!(closed.judge_shown(&who(2), Some(&by_root(2, false)), WallTime(5)), Err(NotAdmitted::NotListed));
        let mut open = gate(&[expulsion(1, Issuer::Root)]);
        open.rule.mode = AdmissionMode::Open;
        assert_eq!(open.judge_shown(&who(2), None, WallTime(5)), Ok(()));
        assert!(open.judge_shown(&who(1), None, WallTime(5)).unwrap_err().is_expelled());
        assert!(Gate::default().is_open() && !open.is_open() && !closed.is_open());
    }

    #[test]
    fn a_certificate_is_a_line_of_text() {
        for signed in [by_root(1, true), by_inviter(1, 2).unwrap()] {
            let text = signed.to_string();
            assert!(text.len() < MAX_TEXT && !text.contains(char::is_whitespace), "{text}");
            assert_eq!(format!(" {text}\n").parse(), Ok(signed));
            assert!(text[..text.len() - 1].parse::<SignedAdmission>().is_err());
        }
        assert!("nonsense".parse::<SignedAdmission>().unwrap_err().to_string().contains(TEXT_HEAD));
        assert_eq!(root().to_string().parse(), Ok(root()));
        assert!("aé".repeat(32).parse::<RootKey>().is_err() && "ab".parse::<RootKey>().is_err());
    }

    #[test]
    fn a_later_statement_of_one_issuer_replaces_the_one_before() {
        let head = |statement: &Admission| SignedAdmission::by_root(statement, &key(99)).unwrap().head(statement);
        let first = Admission::Certificate(certificate(1, Issuer::Root, false));
        let later = Admission::Certificate(Certificate { issued: WallTime(2_000), ..certificate(1, Issuer::Root, false) });
        let expelled = Admission::Expulsion(expulsion(1, Issuer::Root));
        assert!(head(&first).id == head(&later).id && head(&later) > head(&first));
        let inviters = Admission::Certificate(certificate(1, Issuer::Inviter(who(2)), false));
        assert!(head(&first).id != expelled.id() && first.id() != inviters.id());
    }

    proptest! {
        /// However statements come, whoever was expelled by the root is out, and so is who has nothing but its word.
        #[test]
        fn nobody_comes_in_on_the_word_of_an_expelled_inviter(inviter in 1_u8..6, member in 6_u8..12, others in proptest::collection::vec(1_u8..12, 0..6), now in 0_u64..20_000) {
            let mut expelled: Vec<_> = others.iter().map(|other| expulsion(*other, Issuer::Root)).collect();
            expelled.push(expulsion(inviter, Issuer::Root));
            let (gate, shown) = (gate(&expelled), by_inviter(inviter, member).unwrap());
            prop_assert!(gate.judge_shown(&who(member), Some(&shown), WallTime(now)).is_err());
            prop_assert!(gate.judge_shown(&who(inviter), Some(&by_root(inviter, true)), WallTime(now)).is_err());
        }

        /// A changed byte is noticed wherever it is.
        #[test]
        fn a_changed_byte_is_noticed(place in 0_usize..4_000, by in 1_u8..=255) {
            let signed = by_inviter(1, 2).unwrap();
            let mut bytes = postcard::to_stdvec(&signed).unwrap();
            let place = place % bytes.len();
            bytes[place] ^= by;
            let opened = postcard::from_bytes::<SignedAdmission>(&bytes).ok().and_then(|changed| changed.open(&root()).ok());
            prop_assert_eq!(opened, None);
        }
    }
}
