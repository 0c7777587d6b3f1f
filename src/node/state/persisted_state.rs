//! What is kept from one start of the daemon to the next, beside claims and journals: small named values in the store.

use crate::io::{store::Store, swarm::SwarmSecrets};
use crate::node::{
    error::NodeError,
    state::{
        keyfile,
        store_queue::{admissions_page, contacts_page, opt_outs_page, survey_probes_slot, survey_slot},
    },
};
use nearcrawl_core::{allowance::AllKept, crawl::scope::EverInScope, delegation::contacts::PAGES};
use nearcrawl_model::{access_point::AccessPoint, replica::StoreId, subnet::Subnet, survey::MAX_SURVEYS, url::PageUrl};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeSet, HashSet},
    os::unix::fs::MetadataExt,
    path::Path,
};

const INCARNATION: &str = "incarnation";
const SECRETS: &str = "swarm";
const MEMBERS: &str = "members";
const ADDRESSES: &str = "addresses";
const SEEDS: &str = "seeds";
const PLACE: &str = "place";
const ALLOWANCE: &str = "allowance";
const SWARM_ALLOWANCE: &str = "swarm allowance";
const READERS_ALLOWANCE: &str = "readers allowance";
const TOTALS: &str = "totals";
const PINS: &str = "pins";
const EVER_IN_SCOPE: &str = "ever in scope";
const ACQUAINTANCES: &str = "acquaintances";
const STORE_ID: &str = "store";

/// Where a state directory is: a copy of it is somewhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    machine: String,
    device: u64,
    inode: u64,
}

impl Place {
    /// Where this directory is; none if the machine has no id or the directory cannot be looked at.
    pub fn of(directory: &Path) -> Option<Place> {
        let machine = std::fs::read_to_string("/etc/machine-id").ok()?.trim().to_owned();
        let found = std::fs::metadata(directory).ok()?;
        Some(Place { machine, device: found.dev(), inode: found.ino() })
    }
}

/// The last so many starting points are named again at each start; their owners know them.
const MAX_SEEDS: usize = 10_000;

/// What was remembered.
#[derive(Debug)]
pub struct PersistedState {
    /// The id of the database, drawn when it was made.
    pub store: StoreId,
    /// The number of this start, already stored.
    pub incarnation: u64,
    /// The swarm it is a member of.
    pub secrets: Option<SwarmSecrets>,
    /// The members that counted at last.
    pub members: BTreeSet<AccessPoint>,
    /// Where members could be reached.
    pub addresses: Vec<String>,
    /// Starting points that people named here.
    pub seeds: Vec<PageUrl>,
    /// Whether the process before surely has ended: it used this directory, whose lock is held, on this machine.
    pub sole: bool,
    /// What concerns votes: keys and values.
    pub voting: Vec<(Vec<u8>, Vec<u8>)>,
    /// The pages of the record of contacts.
    pub contacts: Vec<Vec<u8>>,
    /// The surveys.
    pub surveys: Vec<Vec<u8>>,
    /// How much of the operator's allowance is used.
    pub allowance: AllKept,
    /// The totals that were told last.
    pub totals: Option<Vec<u8>>,
    /// Which members were here lately.
    pub acquaintances: Option<Vec<u8>>,
    /// Subnets that the operator keeps here.
    pub pins: BTreeSet<Subnet>,
    /// What was in scope here at any time.
    pub ever_in_scope: EverInScope,
    /// What was probed for them.
    pub survey_probes: Vec<Vec<u8>>,
    /// The pages of statements about opt-outs.
    pub opt_outs: Vec<Vec<u8>>,
    /// The pages of certificates and expulsions.
    pub admissions: Vec<Vec<u8>>,
}

/// Reads them, and stores the number of a new start.
pub async fn recall(store: &Store, place: Option<Place>) -> Result<PersistedState, NodeError> {
    let incarnation = get::<u64>(store, INCARNATION).await?.unwrap_or(0) + 1;
    put(store, INCARNATION, &incarnation).await?;
    let before: Option<Place> = get(store, PLACE).await?;
    let sole = incarnation == 1 || (before.is_some() && before == place);
    if let Some(place) = place {
        put(store, PLACE, &place).await?;
    }
    let mut contacts = Vec::new();
    for page in 0..PAGES {
        contacts.extend(store.meta_get(&contacts_page(page)).await?);
    }
    let (mut surveys, mut survey_probes) = (Vec::new(), Vec::new());
    for slot in 0..MAX_SURVEYS as u16 {
        surveys.extend(store.meta_get(&survey_slot(slot)).await?);
        survey_probes.extend(store.meta_get(&survey_probes_slot(slot)).await?);
    }
    let (opt_outs, admissions) = statements(store).await?;
    Ok(PersistedState {
        store: store_id(store).await?,
        incarnation,
        secrets: get(store, SECRETS).await?,
        members: get(store, MEMBERS).await?.unwrap_or_default(),
        addresses: get(store, ADDRESSES).await?.unwrap_or_default(),
        seeds: get(store, SEEDS).await?.unwrap_or_default(),
        sole,
        voting: store.voting_all().await?,
        contacts,
        surveys,
        allowance: AllKept {
            crawl: get(store, ALLOWANCE).await?,
            swarm: get(store, SWARM_ALLOWANCE).await?,
            readers: get(store, READERS_ALLOWANCE).await?,
        },
        totals: store.meta_get(TOTALS).await?,
        pins: get(store, PINS).await?.unwrap_or_default(),
        ever_in_scope: get(store, EVER_IN_SCOPE).await?.unwrap_or_default(),
        acquaintances: store.meta_get(ACQUAINTANCES).await?,
        survey_probes,
        opt_outs,
        admissions,
    })
}

/// The pages of statements about opt-outs, and those of certificates and expulsions.
pub async fn statements(store: &Store) -> Result<(Vec<Vec<u8>>, Vec<Vec<u8>>), NodeError> {
    let (mut opt_outs, mut admissions) = (Vec::new(), Vec::new());
    for page in 0..nearcrawl_core::opt_out::PAGES {
        opt_outs.extend(store.meta_get(&opt_outs_page(page)).await?);
    }
    for page in 0..nearcrawl_core::admission::PAGES {
        admissions.extend(store.meta_get(&admissions_page(page)).await?);
    }
    Ok((opt_outs, admissions))
}

/// Which database this is; drawn and stored at the first start with it.
async fn store_id(store: &Store) -> Result<StoreId, NodeError> {
    if let Some(id) = get(store, STORE_ID).await? {
        return Ok(id);
    }
    let failed = |error: std::io::Error| NodeError::Key { path: "/dev/urandom".into(), why: error.to_string(), forbidden: false };
    let [a, b, c, d, e, f, g, h, ..] = keyfile::random_seed().map_err(failed)?;
    let id = StoreId(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    put(store, STORE_ID, &id).await?;
    Ok(id)
}

/// The swarm that let us in.
pub async fn keep_secrets(store: &Store, secrets: &SwarmSecrets) -> Result<(), NodeError> {
    put(store, SECRETS, secrets).await
}

/// Stores the members that count now, and their addresses.
pub async fn keep_members(store: &Store, members: &BTreeSet<AccessPoint>, addresses: &[String]) -> Result<(), NodeError> {
    put(store, MEMBERS, members).await?;
    put(store, ADDRESSES, &addresses).await
}

/// A part of what is kept that is stored again whenever it has changed.
#[derive(Clone, Debug)]
pub enum StatePart {
    /// How much of the operator's allowance is used, and whether he paused the daemon.
    Allowance(Box<AllKept>),
    /// The totals that were told.
    Totals(Vec<u8>),
    /// Which members were here lately.
    Acquaintances(Vec<u8>),
    /// Which subnets the operator keeps here; the answer that it is so is sent afterwards.
    Pins(BTreeSet<Subnet>),
    /// What was in scope here at any time.
    EverInScope(EverInScope),
}

/// Which part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatePartKind {
    /// [`StatePart::Allowance`].
    Allowance,
    /// [`StatePart::Totals`].
    Totals,
    /// [`StatePart::Acquaintances`].
    Acquaintances,
    /// [`StatePart::Pins`].
    Pins,
    /// [`StatePart::EverInScope`].
    EverInScope,
}

impl StatePart {
    /// Which part it is.
    pub fn kind(&self) -> StatePartKind {
        match self {
            StatePart::Allowance(_) => StatePartKind::Allowance,
            StatePart::Totals(_) => StatePartKind::Totals,
            StatePart::Acquaintances(_) => StatePartKind::Acquaintances,
            StatePart::Pins(_) => StatePartKind::Pins,
            StatePart::EverInScope(_) => StatePartKind::EverInScope,
        }
    }
}

impl StatePartKind {
    /// What the log says if it could not be stored; none where who asked for it is told, or where it is logged by itself.
    pub fn if_not_stored(self) -> Option<&'static str> {
        match self {
            StatePartKind::Allowance | StatePartKind::Pins => None,
            StatePartKind::Totals => Some("the totals could not be stored, and after a restart those of earlier answer at first"),
            StatePartKind::Acquaintances => Some("which members were here lately could not be stored, and is tried again in a minute"),
            StatePartKind::EverInScope => Some(
                "what is in scope now was not stored, and is tried again in a few seconds; if it is taken out before that and the next start, \
                 hosts found by it are asked again then",
            ),
        }
    }
}

/// Stores a part.
pub async fn keep(store: &Store, part: StatePart) -> Result<(), NodeError> {
    match part {
        StatePart::Allowance(kept) => keep_allowance(store, &kept).await,
        StatePart::Totals(told) => Ok(store.meta_put(TOTALS, told).await?),
        StatePart::Acquaintances(known) => Ok(store.meta_put(ACQUAINTANCES, known).await?),
        StatePart::Pins(pins) => put(store, PINS, &pins).await,
        StatePart::EverInScope(ever) => put(store, EVER_IN_SCOPE, &ever).await,
    }
}

async fn keep_allowance(store: &Store, kept: &AllKept) -> Result<(), NodeError> {
    if let Some(crawl) = &kept.crawl {
        put(store, ALLOWANCE, crawl).await?;
    }
    if let Some(swarm) = &kept.swarm {
        put(store, SWARM_ALLOWANCE, swarm).await?;
    }
    match &kept.readers {
        Some(readers) => put(store, READERS_ALLOWANCE, readers).await,
        None => Ok(()),
    }
}

/// Stores starting points; the answer that they are accepted is sent afterwards.
pub async fn keep_seeds(store: &Store, seeds: &[PageUrl]) -> Result<(), NodeError> {
    put(store, SEEDS, &&seeds[seeds.len().saturating_sub(MAX_SEEDS)..]).await
}

/// Adds starting points to those that are kept: each once, none that is refused, and of too many the last ones.
pub fn extend_seeds(seeds: &mut Vec<PageUrl>, named: &[PageUrl], refused: impl Fn(&PageUrl) -> bool) {
    // Both lists may have 10,000 entries, and the loop waits.
    let mut known: HashSet<&PageUrl> = seeds.iter().collect();
    let new: Vec<PageUrl> = named.iter().filter(|url| !refused(url) && known.insert(url)).cloned().collect();
    seeds.extend(new);
    seeds.drain(..seeds.len().saturating_sub(MAX_SEEDS));
}

async fn get<T: DeserializeOwned>(store: &Store, name: &str) -> Result<Option<T>, NodeError> {
    // A value that cannot be read counts as none: all of them can be found out again.
    Ok(store.meta_get(name).await?.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
}

async fn put<T: Serialize>(store: &Store, name: &str, value: &T) -> Result<(), NodeError> {
    #[expect(clippy::expect_used, reason = "postcard writes any of these values into a growing vector")]
    let bytes = postcard::to_stdvec(value).expect("a remembered value always encodes");
    Ok(store.meta_put(name, bytes).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{config::Config, query::handler::QueryHandler};
    use std::path::Path;

    #[test]
    fn seeds_that_are_refused_are_not_kept_and_of_too_many_the_last_are() {
        let config = Config::parse("[crawl]\ndeny_hosts = [\"bad.test\"]\n", Path::new("node.toml")).unwrap();
        let handler = QueryHandler::new(&config, None);
        let url = |text: &str| PageUrl::parse(text).unwrap();
        let named = ["http://a.test/", "http://10.0.0.1/", "http://b.test/", "http://a.test/", "http://bad.test/", "http://b.test:9999/"];
        let mut seeds = vec![url("http://b.test/")];
        extend_seeds(&mut seeds, &named.map(url), |url| handler.seed_refusal(url).is_some());
        assert_eq!(seeds, ["http://b.test/", "http://a.test/"].map(url));
        let many: Vec<PageUrl> = (0..MAX_SEEDS).map(|number| url(&format!("http://a.test/{number}"))).collect();
        extend_seeds(&mut seeds, &many, |_| false);
        assert!(seeds == many, "the first ones make room");
    }
}
