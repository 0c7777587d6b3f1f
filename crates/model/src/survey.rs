//! Surveys: which hosts are studied, and how they are to be crawled.
//!
//! A survey names hosts, by a list or by a scope; it is signed by the access point that made it, and every member keeps a copy.
//!
//! Only its creator changes it, by a further revision: of two that are signed the one with the greater number counts, and of two with one
//! number the one with the greater digest, so that all members come to the same one in whatever order they hear of them. Dates decide
//! nothing but the end of a survey.

use super::{
    access_point::AccessPoint,
    claim::SIGNATURE_BYTES,
    half_digest::half,
    time::{Millis, WallTime},
    url::{Host, PageUrl},
};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use utoipa::ToSchema;

/// Surveys of one creator that may live at a time.
pub const MAX_LIVING: usize = 10;

/// Surveys of one creator that are kept, with those that have ended: of more the one that ended first is dropped.
pub const MAX_OF_CREATOR: usize = 40;

/// Surveys that a member keeps, of all creators together: ten of each of 30 members, and some that have ended. Of more the one that ended
/// first is dropped.
pub const MAX_SURVEYS: usize = 400;

/// Bytes of all surveys that a member keeps; those that have ended make room here, too.
pub const MAX_TOTAL_BYTES: usize = 32 << 20;

/// URLs in one survey.
pub const MAX_ENTRIES: usize = 20_000;

/// Bytes of one survey: two of them fit into a message.
pub const MAX_SURVEY_BYTES: usize = 448 << 10;

/// Labels of one URL.
pub const MAX_LABELS: usize = 8;

/// Characters of a name, and of a label's name or value.
pub const MAX_NAME: usize = 64;

/// Characters of a licence, a description or a contact.
pub const MAX_TEXT: usize = 1_000;

/// Values of one kind in a scope: top-level domains, countries, organisations, autonomous systems.
pub const MAX_SCOPE: usize = 300;

/// The deepest level that a survey may wish for.
pub const MAX_DEPTH: u8 = 50;

/// The shortest interval between two runs that a survey may wish for: an hour.
pub const MIN_INTERVAL: Millis = 3_600_000;

/// The longest interval: ten years.
pub const MAX_INTERVAL: Millis = 3_650 * 86_400_000;

/// The longest rest between two requests that a survey may wish for: an hour.
pub const MAX_DELAY: Millis = 3_600_000;

/// The greatest multiple of an answer's time that a survey may wish a server to rest for.
pub const MAX_FACTOR: u64 = 1_000;

/// Hosts of a survey's list that every member may be wished to probe.
pub const MAX_PROBED: u32 = 1_000;

/// The greatest revision: no creator comes near it, and there is always a next one.
pub const MAX_REVISION: u64 = 1 << 48;

/// Whether a survey wishes for anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SurveyState {
    /// Its hosts are crawled.
    #[default]
    Running,
    /// It wishes for nothing until it is resumed.
    Paused,
    /// It wishes for nothing any more; its results stay.
    Ended,
}

impl fmt::Display for SurveyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SurveyState::Running => "running",
            SurveyState::Paused => "paused",
            SurveyState::Ended => "ended",
        })
    }
}

/// How the hosts of a survey are to be crawled; what it does not say is as the configuration of each member says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wishes {
    /// The deepest level that is fetched: 0 is the starting URLs alone.
    pub depth: Option<u8>,
    /// The least rest between two requests to an address, in milliseconds.
    pub min_delay_ms: Option<Millis>,
    /// How many times as long as its last answer took an address rests.
    pub delay_factor: Option<u64>,
    /// Whether pages are evaluated.
    pub evaluation: bool,
    /// The interval between the beginnings of two runs, in milliseconds.
    pub interval_ms: Option<Millis>,
}

/// Which hosts belong to a survey besides those of its list. With everything empty, none do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurveyScope {
    /// Top-level domains, in lower case.
    pub tlds: BTreeSet<String>,
    /// ISO codes of countries, in capitals, as the registries have the addresses.
    pub countries: BTreeSet<String>,
    /// Holders of subnets, as the hierarchy calls them.
    pub organisations: BTreeSet<String>,
    /// Numbers of autonomous systems.
    pub asns: BTreeSet<u32>,
}

impl SurveyScope {
    /// Whether nothing belongs to it.
    pub fn is_empty(&self) -> bool {
        self.tlds.is_empty() && !self.is_of_places()
    }

    /// Whether it depends on where an address is.
    pub fn is_of_places(&self) -> bool {
        !(self.countries.is_empty() && self.organisations.is_empty() && self.asns.is_empty())
    }

    /// Whether a host of this name belongs to it wherever it is.
    pub fn names(&self, host: &Host) -> bool {
        host.tld().is_some_and(|tld| self.tlds.contains(tld))
    }

    /// Whether what is there belongs to it.
    pub fn covers(&self, place: &Place<'_>) -> bool {
        self.countries.contains(place.country)
            || self.organisations.contains(place.organisation)
            || place.asn.is_some_and(|asn| self.asns.contains(&asn))
    }
}

/// Where an address is by the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// ISO code of the country; `ZZ` if it is not known.
    pub country: &'a str,
    /// Who holds the subnet.
    pub organisation: &'a str,
    /// The autonomous system.
    pub asn: Option<u32>,
}

/// A URL of a survey's list, with what the study says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurveyEntry {
    /// A starting URL.
    #[schema(value_type = String)]
    pub url: PageUrl,
    /// Names with their values, like `sector` and `university`; each name once, in order.
    pub labels: Vec<(String, String)>,
}

/// What somebody wants to study; its creator makes a [`Survey`] of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurveyPlan {
    /// What it is called: no other survey of its creator is.
    pub name: String,
    /// When it ends.
    #[schema(value_type = Option<String>)]
    pub ends_at: Option<WallTime>,
    /// How its hosts are crawled.
    pub wishes: Wishes,
    /// Which hosts are.
    pub scope: SurveyScope,
    /// Under which licence its results may be used.
    pub licence: String,
    /// What it is for.
    pub description: String,
    /// Who answers for it.
    pub contact: String,
    /// Its list.
    pub entries: Vec<SurveyEntry>,
    /// How many hosts of its list every member probes once, 1 to [`MAX_PROBED`]; none if that is not wished. Stands behind everything else,
    /// and where it is none nothing stands there: such a survey has the bytes that it had before there was this field.
    #[serde(default, deserialize_with = "at_the_end", skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
}

/// A value behind all others, which may be missing. What follows and is no such value is found by [`SignedSurvey::read`], which encodes anew.
fn at_the_end<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let is_text = from.is_human_readable();
    Option::deserialize(from).or_else(|why| if is_text { Err(why) } else { Ok(None) })
}

/// A survey as its creator signs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Who made it, and signs it.
    pub creator: AccessPoint,
    /// The number of this version of it, from 1.
    pub revision: u64,
    /// Whether it is going on.
    pub state: SurveyState,
    /// When it was made, by its creator's clock.
    pub created_at: WallTime,
    /// When it was changed last, by its creator's clock.
    pub changed_at: WallTime,
    /// What is studied.
    pub plan: SurveyPlan,
}

/// Which survey: the digest of its creator and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SurveyId(pub [u8; 16]);

/// Which version of which survey a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SurveyHead {
    /// Which survey.
    pub id: SurveyId,
    /// Its revision.
    pub revision: u64,
    /// The digest of its signed bytes.
    pub digest: [u8; 16],
}

/// The digest of all surveys that a member keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveysDigest(pub [u8; 16]);

impl SurveysDigest {
    /// Of these, which are in order.
    pub fn of<'a>(heads: impl IntoIterator<Item = &'a SurveyHead>) -> SurveysDigest {
        let mut hasher = Sha256::new();
        for head in heads {
            hasher.update(head.id.0);
            hasher.update(head.revision.to_le_bytes());
            hasher.update(head.digest);
        }
        SurveysDigest(half(hasher.finalize()))
    }
}

/// Why a survey is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// The bytes do not decode to a survey.
    #[error("the survey cannot be decoded")]
    Malformed,
    /// The signature does not verify with the creator's key.
    #[error("the survey's signature is not its creator's")]
    BadSignature,
    /// It is larger than a survey may be, or says what none may say; how, as a sentence.
    #[error("{0}")]
    OutOfRange(String),
}

fn wrong(why: impl Into<String>) -> SurveyError {
    SurveyError::OutOfRange(why.into())
}

/// A word that names something: letters, digits, `-`, `_` and `.`.
fn check_word(what: &str, word: &str) -> Result<(), SurveyError> {
    let fits = !word.is_empty() && word.len() <= MAX_NAME && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if fits {
        return Ok(());
    }
    let word: String = word.chars().take(80).collect();
    Err(wrong(format!("{word:?} cannot be {what}: take 1 to {MAX_NAME} letters, digits, '-', '_' and '.'")))
}

fn check_text(what: &str, text: &str, most: usize) -> Result<(), SurveyError> {
    if text.chars().count() > most {
        return Err(wrong(format!("{what} has more than {most} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(wrong(format!("{what} has a control character")));
    }
    Ok(())
}

/// Whether labels are what a survey may say of a URL.
///
/// # Errors
///
/// Why not.
pub fn check_labels(labels: &[(String, String)]) -> Result<(), SurveyError> {
    if labels.len() > MAX_LABELS {
        return Err(wrong(format!("a URL has more than {MAX_LABELS} labels")));
    }
    for (name, value) in labels {
        check_word("the name of a label", name)?;
        if value.is_empty() {
            return Err(wrong(format!("the label {name} has no value")));
        }
        check_text(&format!("the value of the label {name}"), value, MAX_NAME)?;
    }
    if labels.is_sorted_by(|(one, _), (next, _)| one < next) { Ok(()) } else { Err(wrong("a URL has a label twice")) }
}

impl Wishes {
    fn check(&self) -> Result<(), SurveyError> {
        if self.depth.is_some_and(|depth| depth > MAX_DEPTH) {
            return Err(wrong(format!("a depth is 0 to {MAX_DEPTH}")));
        }
        if self.min_delay_ms.is_some_and(|delay| delay > MAX_DELAY) {
            return Err(wrong("a delay between two requests is at most an hour"));
        }
        if self.delay_factor.is_some_and(|factor| factor > MAX_FACTOR) {
            return Err(wrong(format!("a delay is at most {MAX_FACTOR} times as long as an answer took")));
        }
        if self.interval_ms.is_some_and(|interval| !(MIN_INTERVAL..=MAX_INTERVAL).contains(&interval)) {
            return Err(wrong("an interval between two runs is an hour to ten years"));
        }
        Ok(())
    }
}

impl SurveyScope {
    fn check(&self) -> Result<(), SurveyError> {
        let most = [self.tlds.len(), self.countries.len(), self.organisations.len(), self.asns.len()].into_iter().max();
        if most.is_some_and(|most| most > MAX_SCOPE) {
            return Err(wrong(format!("a scope has more than {MAX_SCOPE} values of a kind")));
        }
        for tld in &self.tlds {
            let host: Option<Host> = tld.parse().ok();
            if host.is_none_or(|host| host.as_str() != tld || host.tld() != Some(tld)) {
                let tld: String = tld.chars().take(80).collect();
                return Err(wrong(format!("{tld:?} is no top-level domain: write it like ke")));
            }
        }
        if let Some(country) = self.countries.iter().find(|code| code.len() != 2 || !code.bytes().all(|b| b.is_ascii_uppercase())) {
            let country: String = country.chars().take(80).collect();
            return Err(wrong(format!("{country:?} is no ISO code of a country: write it like KE")));
        }
        self.organisations.iter().try_for_each(|name| check_text("an organisation", name, 200))
    }
}

impl SurveyPlan {
    /// Whether it is within all limits.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self) -> Result<(), SurveyError> {
        check_word("the name of a survey", &self.name)?;
        self.wishes.check()?;
        self.scope.check()?;
        check_text("the licence", &self.licence, MAX_TEXT)?;
        check_text("the description", &self.description, MAX_TEXT)?;
        check_text("the contact", &self.contact, MAX_TEXT)?;
        if self.entries.len() > MAX_ENTRIES {
            return Err(wrong(format!("a survey lists at most {MAX_ENTRIES} URLs")));
        }
        if self.entries.is_empty() && self.scope.is_empty() {
            return Err(wrong("a survey needs a list of URLs or a scope"));
        }
        if self.probe.is_some_and(|probe| !(1..=MAX_PROBED).contains(&probe)) {
            return Err(wrong(format!("every member can probe 1 to {MAX_PROBED} hosts of a survey")));
        }
        if self.probe.is_some() && self.entries.is_empty() {
            return Err(wrong("the hosts that every member probes are drawn from a list, and the survey has none"));
        }
        self.entries.iter().try_for_each(|entry| check_labels(&entry.labels))
    }

    /// Names of the labels of its list.
    pub fn label_names(&self) -> BTreeSet<String> {
        self.entries.iter().flat_map(|entry| &entry.labels).map(|(name, _)| name.clone()).collect()
    }

    /// The hosts of its list without `www.`, each once: so the trees of sites are called.
    pub fn trees(&self) -> BTreeSet<Host> {
        self.entries.iter().map(|entry| entry.url.host().without_www()).collect()
    }
}

/// The digest of a creator and a name.
pub fn survey_id(creator: &AccessPoint, name: &str) -> SurveyId {
    SurveyId(half(Sha256::new().chain_update(creator.0).chain_update(name).finalize()))
}

impl Survey {
    /// Which one it is.
    pub fn id(&self) -> SurveyId {
        survey_id(&self.creator, &self.plan.name)
    }

    /// Whether its end date has passed.
    pub fn is_over(&self, now: WallTime) -> bool {
        self.plan.ends_at.is_some_and(|end| end <= now)
    }

    /// What its state comes to at this time.
    pub fn state_at(&self, now: WallTime) -> SurveyState {
        if self.is_over(now) { SurveyState::Ended } else { self.state }
    }

    /// The hosts that every member probes, each with its first URL in the order of URLs: those with the smallest hashes by a key that is this
    /// survey's own. So all members draw the same ones, each host of the list with the same probability, in whatever order it has them.
    pub fn sample(&self) -> Vec<(Host, &PageUrl)> {
        let Some(size) = self.plan.probe else { return Vec::new() };
        let mut hosts: BTreeMap<Host, &PageUrl> = BTreeMap::new();
        for entry in &self.plan.entries {
            let url = hosts.entry(entry.url.host()).or_insert(&entry.url);
            *url = (&entry.url).min(*url);
        }
        let key = self.id();
        let hash =
            |host: &Host| half(Sha256::new().chain_update(SAMPLE_CONTEXT).chain_update(key.0).chain_update(host.as_str()).finalize());
        let mut drawn: Vec<_> = hosts.into_iter().map(|(host, url)| (hash(&host), host, url)).collect();
        drawn.sort();
        drawn.into_iter().take(size as usize).map(|(_, host, url)| (host, url)).collect()
    }

    fn check(&self) -> Result<(), SurveyError> {
        if !(1..=MAX_REVISION).contains(&self.revision) {
            return Err(wrong("a survey's revision is out of range"));
        }
        self.plan.check()
    }
}

/// A survey as it travels: the signed bytes themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedSurvey {
    /// The survey, encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 over [`SURVEY_CONTEXT`] and `bytes`, by the survey's creator.
    pub signature: Vec<u8>,
}

/// The domain separator of the signature, so that a signature of a survey is valid for nothing else.
const SURVEY_CONTEXT: &[u8] = b"nearcrawl survey 1\0";

/// The domain separator of the hashes by which hosts are drawn.
const SAMPLE_CONTEXT: &[u8] = b"nearcrawl sample 1\0";

fn signed_bytes(bytes: &[u8]) -> Vec<u8> {
    [SURVEY_CONTEXT, bytes].concat()
}

impl SignedSurvey {
    /// Signs a survey with its creator's key.
    ///
    /// # Errors
    ///
    /// It is not within the limits.
    pub fn sign(survey: &Survey, key: &SigningKey) -> Result<SignedSurvey, SurveyError> {
        survey.check()?;
        let bytes = postcard::to_stdvec(survey).map_err(|_| SurveyError::Malformed)?;
        if bytes.len() > MAX_SURVEY_BYTES {
            let (has, most) = (bytes.len() >> 10, MAX_SURVEY_BYTES >> 10);
            return Err(wrong(format!("the survey takes {has} KiB, and may take {most} KiB: split its list into several surveys")));
        }
        let signature = key.sign(&signed_bytes(&bytes)).to_bytes().to_vec();
        Ok(SignedSurvey { bytes, signature })
    }

    /// Decodes the survey and checks that its creator signed it.
    ///
    /// # Errors
    ///
    /// It is none, too large, or another's.
    pub fn open(&self) -> Result<Survey, SurveyError> {
        let survey = self.read()?;
        let key = VerifyingKey::from_bytes(&survey.creator.0).map_err(|_| SurveyError::BadSignature)?;
        let signature: &[u8; SIGNATURE_BYTES] = self.signature.as_slice().try_into().map_err(|_| SurveyError::BadSignature)?;
        key.verify(&signed_bytes(&self.bytes), &(*signature).into()).map_err(|_| SurveyError::BadSignature)?;
        Ok(survey)
    }

    /// Decodes the survey without checking the signature: for what was checked before it was stored. Only the bytes that
    /// [`SignedSurvey::sign`] writes are a survey.
    ///
    /// # Errors
    ///
    /// It is none, or too large.
    pub fn read(&self) -> Result<Survey, SurveyError> {
        if self.bytes.len() > MAX_SURVEY_BYTES {
            return Err(wrong("the survey is too large"));
        }
        let survey: Survey = postcard::from_bytes(&self.bytes).map_err(|_| SurveyError::Malformed)?;
        survey.check()?;
        let again = postcard::to_stdvec(&survey).map_err(|_| SurveyError::Malformed)?;
        if again == self.bytes { Ok(survey) } else { Err(SurveyError::Malformed) }
    }

    /// Which version it is of the survey that was decoded from it.
    pub fn head(&self, survey: &Survey) -> SurveyHead {
        SurveyHead { id: survey.id(), revision: survey.revision, digest: half(Sha256::digest(&self.bytes)) }
    }
}

/// What a record says of a survey that its host belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurveyMark {
    /// Its name.
    pub name: String,
    /// The peer id of the member that made it.
    #[schema(value_type = String)]
    pub creator: AccessPoint,
    /// What its list says of the host: names of labels with their values.
    pub labels: BTreeMap<String, BTreeSet<String>>,
}

impl SurveyMark {
    /// Its labels, each as `sector=university`.
    pub fn label_texts(&self) -> impl Iterator<Item = String> + '_ {
        self.labels.iter().flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")))
    }
}

/// How people name a survey: `universities`, or with the end of its creator's peer id if several creators have one of that name,
/// `universities@3kjLcUyQ`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyRef {
    /// Its name.
    pub name: String,
    /// The end of its creator's peer id, if it was given.
    pub creator: Option<String>,
}

impl SurveyRef {
    /// Whether it may name this survey.
    pub fn fits(&self, name: &str, creator: &AccessPoint) -> bool {
        self.name == name && self.creator.as_ref().is_none_or(|end| creator.to_string().ends_with(end.as_str()))
    }
}

impl std::str::FromStr for SurveyRef {
    type Err = SurveyError;

    fn from_str(text: &str) -> Result<SurveyRef, SurveyError> {
        let (name, creator) = text.split_once('@').map_or((text, None), |(name, creator)| (name, Some(creator)));
        check_word("the name of a survey", name)?;
        if let Some(creator) = creator {
            check_word("the end of a peer id", creator)?;
        }
        Ok(SurveyRef { name: name.to_owned(), creator: creator.map(str::to_owned) })
    }
}

impl fmt::Display for SurveyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.creator.iter().try_for_each(|creator| write!(f, "@{creator}"))
    }
}

/// A survey as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurveyView {
    /// Its name.
    pub name: String,
    /// The peer id of the member that made it.
    #[schema(value_type = String)]
    pub creator: AccessPoint,
    /// Whether that is the member that answers.
    pub is_mine: bool,
    /// Its state now: its end date counts.
    pub state: SurveyState,
    /// The number of this version of it.
    pub revision: u64,
    /// When it was made.
    #[schema(value_type = String)]
    pub created_at: WallTime,
    /// When it was changed last.
    #[schema(value_type = String)]
    pub changed_at: WallTime,
    /// When it ends.
    #[schema(value_type = Option<String>)]
    pub ends_at: Option<WallTime>,
    /// How long ago it was made, in milliseconds, by the clocks of its creator and of who answers.
    pub age_ms: Millis,
    /// How its hosts are crawled.
    pub wishes: Wishes,
    /// Which hosts are, besides those of its list.
    pub scope: SurveyScope,
    /// Under which licence its results may be used.
    pub licence: String,
    /// What it is for.
    pub description: String,
    /// Who answers for it.
    pub contact: String,
    /// How many URLs its list has.
    pub urls: u64,
    /// How many hosts these are, `www.` apart.
    pub hosts: u64,
    /// Names of the labels of its list.
    pub labels: BTreeSet<String>,
    /// How many hosts of its list every member probes once; none if that is not wished.
    pub probe: Option<u32>,
    /// Its list, where one survey is asked for.
    #[serde(default)]
    pub entries: Vec<SurveyEntry>,
}

impl SurveyView {
    /// At this time, as this member sees it; without its list.
    pub fn new(survey: &Survey, me: &AccessPoint, now: WallTime) -> SurveyView {
        let Survey { creator, revision, created_at, changed_at, plan, .. } = survey;
        SurveyView {
            name: plan.name.clone(),
            creator: *creator,
            is_mine: creator == me,
            state: survey.state_at(now),
            revision: *revision,
            created_at: *created_at,
            changed_at: *changed_at,
            ends_at: plan.ends_at,
            age_ms: now.0.saturating_sub(created_at.0),
            wishes: plan.wishes,
            scope: plan.scope.clone(),
            licence: plan.licence.clone(),
            description: plan.description.clone(),
            contact: plan.contact.clone(),
            urls: plan.entries.len() as u64,
            hosts: plan.trees().len() as u64,
            labels: plan.label_names(),
            probe: plan.probe,
            entries: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(url: &str, labels: &[(&str, &str)]) -> SurveyEntry {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        SurveyEntry { url: PageUrl::parse(url).unwrap(), labels }
    }

    fn survey(key: &SigningKey) -> Survey {
        let plan = SurveyPlan {
            name: "universities".to_owned(),
            ends_at: Some(WallTime(2_000)),
            wishes: Wishes { depth: Some(4), interval_ms: Some(MIN_INTERVAL), ..Wishes::default() },
            scope: SurveyScope { tlds: ["ke".to_owned()].into(), ..SurveyScope::default() },
            licence: "CC-BY-4.0".to_owned(),
            entries: vec![entry("https://www.uonbi.ac.ke/", &[("sector", "university")])],
            ..SurveyPlan::default()
        };
        let creator = AccessPoint(key.verifying_key().to_bytes());
        Survey { creator, revision: 1, state: SurveyState::Running, created_at: WallTime(1_000), changed_at: WallTime(1_000), plan }
    }

    #[test]
    fn what_a_creator_signs_is_read_again_and_nothing_else_is() {
        let (key, other) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        let survey = survey(&key);
        let signed = SignedSurvey::sign(&survey, &key).unwrap();
        assert_eq!(signed.open(), Ok(survey.clone()));
        assert_eq!(SignedSurvey::sign(&survey, &other).unwrap().open(), Err(SurveyError::BadSignature), "another's key");
        let mut changed = signed.clone();
        let at = changed.bytes.iter().position(|byte| *byte == b'u').unwrap();
        changed.bytes[at] = b'U';
        assert_eq!(changed.open(), Err(SurveyError::BadSignature));
        let longer = [&signed.bytes[..], &[0]].concat();
        let signature = key.sign(&signed_bytes(&longer)).to_bytes().to_vec();
        assert_eq!(SignedSurvey { bytes: longer, signature }.open(), Err(SurveyError::Malformed), "something follows");
        let (head, next) = (signed.head(&survey), Survey { revision: 2, ..survey.clone() });
        let signed_next = SignedSurvey::sign(&next, &key).unwrap();
        assert_eq!((signed_next.head(&next).id, head.id), (head.id, survey_id(&survey.creator, "universities")));
        assert!(signed_next.head(&next) > head);
    }

    /// Members of releases before there were samples have the same survey as today's if it has none, and refuse one that has.
    #[test]
    fn a_sample_stands_behind_everything_and_one_without_it_has_the_bytes_of_before() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let without = survey(&key);
        let with = Survey { plan: SurveyPlan { probe: Some(300), ..without.plan.clone() }, ..without.clone() };
        let [before, after] = [&without, &with].map(|survey| SignedSurvey::sign(survey, &key).unwrap());
        assert_eq!(after.bytes, [&before.bytes[..], &[1, 0xac, 0x02]].concat());
        assert_eq!((before.open(), after.open()), (Ok(without), Ok(with)));
        for tail in [&[0][..], &[1], &[1, 0], &[7], &[1, 5, 0]] {
            let bytes = [&before.bytes[..], tail].concat();
            let signature = key.sign(&signed_bytes(&bytes)).to_bytes().to_vec();
            assert!(SignedSurvey { bytes, signature }.open().is_err(), "{tail:?}");
        }
        let text = |text: &str| serde_json::from_str::<SurveyPlan>(text);
        let plan = serde_json::to_string(&survey(&key).plan).unwrap();
        assert_eq!(text(&plan).unwrap().probe, None);
        assert!(text(&plan.replacen('{', r#"{"probe": 7,"#, 1)).is_ok_and(|plan| plan.probe == Some(7)));
        assert!(text(&plan.replacen('{', r#"{"probe": "many","#, 1)).is_err(), "what is no number is no missing one");
    }

    #[test]
    fn a_sample_is_the_same_in_whatever_order_its_list_is_and_every_host_has_its_chance() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let urls: Vec<String> = (0..40).flat_map(|n| [format!("https://h{n}.ke/b"), format!("https://h{n}.ke/a")]).collect();
        let of = |name: &str, urls: &[String]| {
            let entries = urls.iter().map(|url| entry(url, &[])).collect();
            let plan = SurveyPlan { name: name.to_owned(), entries, probe: Some(10), ..SurveyPlan::default() };
            let survey = Survey { plan, ..survey(&key) };
            survey.sample().into_iter().map(|(host, url)| (host.to_string(), url.to_string())).collect::<Vec<_>>()
        };
        let sample = of("one", &urls);
        assert_eq!(sample, of("one", &urls.iter().rev().cloned().collect::<Vec<_>>()));
        assert!(sample.len() == 10 && sample.iter().all(|(host, url)| *url == format!("https://{host}/a")), "{sample:?}");
        assert_eq!(of("one", &urls[..6]).len(), 3, "no more than there are");
        let mut drawn: BTreeMap<String, u32> = BTreeMap::new();
        for number in 0..400 {
            of(&format!("s{number}"), &urls).into_iter().for_each(|(host, _)| *drawn.entry(host).or_default() += 1);
        }
        // Each is expected 100 times, with a standard deviation below 9.
        assert!(drawn.len() == 40 && drawn.values().all(|times| (60..=140).contains(times)), "{drawn:?}");
    }

    #[test]
    fn a_date_ends_it_and_decides_nothing_else() {
        let survey = survey(&SigningKey::from_bytes(&[1; 32]));
        assert_eq!((survey.state_at(WallTime(1_999)), survey.state_at(WallTime(2_000))), (SurveyState::Running, SurveyState::Ended));
    }

    #[test]
    fn what_is_too_large_or_makes_no_sense_is_refused_with_the_reason() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let refused = |change: fn(&mut SurveyPlan), says: &str| {
            let mut survey = survey(&key);
            change(&mut survey.plan);
            let why = SignedSurvey::sign(&survey, &key).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        };
        refused(|plan| plan.name = "two words".to_owned(), "cannot be the name of a survey");
        refused(|plan| plan.description = "x".repeat(MAX_TEXT + 1), "description has more than");
        refused(|plan| plan.wishes.interval_ms = Some(1_000), "an hour to ten years");
        refused(|plan| plan.wishes.depth = Some(200), "a depth is 0 to 50");
        refused(|plan| plan.probe = Some(0), "1 to 1000 hosts");
        refused(|plan| plan.probe = Some(MAX_PROBED + 1), "1 to 1000 hosts");
        refused(|plan| (plan.entries, plan.probe) = (Vec::new(), Some(5)), "the survey has none");
        refused(|plan| plan.scope.tlds = ["co.ke".to_owned()].into(), "no top-level domain");
        refused(|plan| plan.scope.countries = ["ke".to_owned()].into(), "write it like KE");
        refused(|plan| plan.entries[0].labels = vec![("b".to_owned(), "1".to_owned()), ("a".to_owned(), "1".to_owned())], "label twice");
        refused(|plan| (plan.entries, plan.scope) = (Vec::new(), SurveyScope::default()), "a list of URLs or a scope");
        refused(
            |plan| plan.entries = (0..MAX_ENTRIES).map(|n| entry(&format!("https://{n}.{}.ke/", "x".repeat(40)), &[])).collect(),
            "split its list",
        );
        refused(|plan| plan.entries = (0..=MAX_ENTRIES).map(|n| entry(&format!("https://{n}.ke/"), &[])).collect(), "at most 20000");
    }

    #[test]
    fn a_scope_goes_by_names_and_by_places() {
        let scope = SurveyScope {
            tlds: ["ke".to_owned()].into(),
            countries: ["TZ".to_owned()].into(),
            organisations: ["Museum".to_owned()].into(),
            asns: [36_914].into(),
        };
        let place = |country, organisation, asn| Place { country, organisation, asn };
        assert!(scope.names(&"a.ke".parse().unwrap()) && !scope.names(&"ke.com".parse().unwrap()));
        assert!(scope.covers(&place("TZ", "", None)) && scope.covers(&place("ZZ", "Museum", None)));
        assert!(scope.covers(&place("ZZ", "", Some(36_914))) && !scope.covers(&place("KE", "", Some(1))));
        assert!(scope.is_of_places() && SurveyScope::default().is_empty());
    }

    #[test]
    fn a_name_may_say_whose_survey_it_is() {
        let creator = AccessPoint([7; 32]);
        let named = |text: &str| text.parse::<SurveyRef>().unwrap();
        assert!(named("museums").fits("museums", &creator) && !named("museum").fits("museums", &creator));
        assert!(named(&format!("museums@{}", creator.short())).fits("museums", &creator));
        assert!(!named("museums@3kjLcUyQ").fits("museums", &creator));
        assert!("a b".parse::<SurveyRef>().is_err() && "a@".parse::<SurveyRef>().is_err());
    }
}
