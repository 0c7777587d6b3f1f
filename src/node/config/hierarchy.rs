//! `[hierarchy]`: the hierarchy of subnets that the daemon uses, and where the registries' files come from.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use ipnetwork::IpNetwork;
use std::path::PathBuf;
use toml::de::DeValue;
use url::Url;

/// The registries a prefix may be said to come from, as their statistics files write them.
const REGISTRIES: [&str; 5] = ["afrinic", "apnic", "arin", "lacnic", "ripencc"];

/// The longest organisation name, in bytes.
const MAX_ORGANISATION: usize = 128;

/// A subnet that the operator adds to the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraPrefix {
    /// The subnet, as a prefix.
    pub prefix: IpNetwork,
    /// Its country (two capital letters), if it is known.
    pub country: Option<String>,
    /// The organisation that holds it, if it is known.
    pub organisation: Option<String>,
    /// The registry it comes from (`afrinic`, `apnic`, `arin`, `lacnic`, `ripencc`), if it is known.
    pub registry: Option<String>,
}

/// A file that `nearcrawl hierarchy fetch` downloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySource {
    /// How the copy is called.
    pub name: String,
    /// Where it is.
    pub url: Url,
}

/// The most files that can be fetched.
const MAX_SOURCES: usize = 64;

/// Where each registry publishes its delegated-extended statistics.
const STATISTICS: [(&str, &str); 5] = [
    ("afrinic", "https://ftp.afrinic.net/pub/stats/afrinic/delegated-afrinic-extended-latest"),
    ("apnic", "https://ftp.apnic.net/stats/apnic/delegated-apnic-extended-latest"),
    ("arin", "https://ftp.arin.net/pub/stats/arin/delegated-arin-extended-latest"),
    ("lacnic", "https://ftp.lacnic.net/pub/stats/lacnic/delegated-lacnic-extended-latest"),
    ("ripencc", "https://ftp.ripe.net/pub/stats/ripencc/delegated-ripencc-extended-latest"),
];

impl RegistrySource {
    /// A source of that name and address, or what is wrong with them.
    pub fn new(name: &str, url: &str) -> Result<RegistrySource, String> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
        let ours = [".part", ".notes", ".new"].iter().any(|ending| name.ends_with(ending));
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) || name.starts_with('.') || ours {
            return Err("write a name of at most 64 lower-case letters, digits, hyphens, underscores and dots".to_owned());
        }
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or("write an address that begins with https:// (or http://)")?;
        Ok(RegistrySource { name: name.to_owned(), url })
    }
}

/// The five registries' statistics.
fn statistics() -> Vec<RegistrySource> {
    STATISTICS.iter().filter_map(|(name, url)| RegistrySource::new(name, url).ok()).collect()
}

/// `[hierarchy]`: which hierarchy of subnets is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchyConfig {
    /// A snapshot to load instead of the built-in hierarchy.
    pub snapshot: Option<PathBuf>,
    /// Registry statistics files (`delegated-…-extended-…`), or files of any other format that is understood, to build the hierarchy from at start,
    /// instead of the built-in one.
    pub delegated: Vec<PathBuf>,
    /// Subnets to add.
    pub prefixes: Vec<ExtraPrefix>,
    /// What `nearcrawl hierarchy fetch` downloads.
    pub sources: Vec<RegistrySource>,
    /// Whether the hierarchy stays as it is, whatever edition most members announce.
    pub pinned: bool,
}

impl Default for HierarchyConfig {
    fn default() -> Self {
        HierarchyConfig { snapshot: None, delegated: Vec::new(), prefixes: Vec::new(), sources: statistics(), pinned: false }
    }
}

impl HierarchyConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> HierarchyConfig {
        let config = HierarchyConfig {
            snapshot: section.path("snapshot"),
            delegated: section.paths("delegated"),
            prefixes: section.list("prefixes", Vec::new(), extra_prefix),
            sources: section.list("sources", statistics(), registry_source),
            pinned: section.take("pinned", false, values::truth),
        };
        let mut names: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
        names.sort_unstable();
        if names.len() > MAX_SOURCES || names.windows(2).any(|pair| pair[0] == pair[1]) {
            section.contradicts(&["sources"], format!("write at most {MAX_SOURCES} sources, each with a name of its own"));
        }
        if config.snapshot.is_some() && !config.delegated.is_empty() {
            section.contradicts(
                &["delegated"],
                "the hierarchy comes from `snapshot` or is built from `delegated`; keep one of the two".to_owned(),
            );
        }
        config
    }
}

fn extra_prefix(value: &DeValue<'_>) -> Parsed<ExtraPrefix> {
    let wanted =
        "write {prefix = \"192.0.2.0/24\", country = \"KE\", organisation = \"Museum\", registry = \"afrinic\"}; only prefix must be there";
    let table = value.as_table().ok_or(wanted)?;
    let known = ["prefix", "country", "organisation", "registry"];
    if let Some(key) = table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
        return Err(format!("there is no key `{}` here; {wanted}", key.get_ref()));
    }
    let optional = |key: &str, check: &dyn Fn(&DeValue<'_>) -> Parsed<String>| {
        table.get(key).map(|value| check(value.get_ref()).map_err(|message| format!("{key}: {message}"))).transpose()
    };
    let prefix = table.get("prefix").ok_or(wanted)?;
    Ok(ExtraPrefix {
        prefix: values::range(prefix.get_ref()).map_err(|message| format!("prefix: {message}"))?,
        country: optional("country", &country)?,
        organisation: optional("organisation", &organisation)?,
        registry: optional("registry", &registry)?,
    })
}

fn registry_source(value: &DeValue<'_>) -> Parsed<RegistrySource> {
    let wanted = "write {name = \"afrinic\", url = \"https://example.org/delegated-afrinic-extended-latest\"}";
    let table = value.as_table().filter(|table| table.len() == 2).ok_or(wanted)?;
    let text = |key: &str| table.get(key).and_then(|value| value.get_ref().as_str()).ok_or(wanted);
    RegistrySource::new(text("name")?, text("url")?)
}

fn country(value: &DeValue<'_>) -> Parsed<String> {
    let fits = |text: &&str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    value.as_str().filter(fits).map(str::to_owned).ok_or_else(|| "write a country as two capital letters, like \"KE\"".to_owned())
}

fn organisation(value: &DeValue<'_>) -> Parsed<String> {
    let text = values::text(value)?;
    if text.len() <= MAX_ORGANISATION && !text.chars().any(|c| c.is_control() || c == '|') {
        Ok(text)
    } else {
        Err(format!("write at most {MAX_ORGANISATION} bytes, without `|` and control characters"))
    }
}

fn registry(value: &DeValue<'_>) -> Parsed<String> {
    let known = value.as_str().filter(|text| REGISTRIES.contains(text));
    known.map(str::to_owned).ok_or_else(|| format!("write one of {}", REGISTRIES.join(", ")))
}
