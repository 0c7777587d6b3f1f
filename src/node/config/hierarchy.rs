//! Which map of the address space does the daemon use?

use super::{
    reader::{Parsed, Section},
    values,
};
use ipnetwork::IpNetwork;
use std::path::PathBuf;
use toml::de::DeValue;

/// The registries a prefix may be said to come from, as their statistics files write them.
const REGISTRIES: [&str; 5] = ["afrinic", "apnic", "arin", "lacnic", "ripencc"];

/// The longest organisation name, in bytes.
const LONGEST_ORGANISATION: usize = 128;

/// A subnet that the operator adds to the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraPrefix {
    /// The subnet.
    pub prefix: IpNetwork,
    /// Its country (two capital letters), if it is known.
    pub country: Option<String>,
    /// Who holds it, if it is known.
    pub organisation: Option<String>,
    /// The registry it comes from (`afrinic`, `apnic`, `arin`, `lacnic`, `ripencc`), if it is known.
    pub registry: Option<String>,
}

/// `[hierarchy]`: which hierarchy of subnets is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HierarchyConfig {
    /// A snapshot to load instead of the built-in hierarchy.
    pub snapshot: Option<PathBuf>,
    /// Registry statistics files (`delegated-…-extended-…`) to build the hierarchy from at start, instead of the built-in one.
    pub delegated: Vec<PathBuf>,
    /// Subnets to add.
    pub prefixes: Vec<ExtraPrefix>,
    /// Whether the hierarchy stays as it is, whatever edition most members vouch for.
    pub pinned: bool,
}

impl HierarchyConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> HierarchyConfig {
        let config = HierarchyConfig {
            snapshot: section.path("snapshot"),
            delegated: section.paths("delegated"),
            prefixes: section.list("prefixes", Vec::new(), extra_prefix),
            pinned: section.take("pinned", false, values::truth),
        };
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

fn country(value: &DeValue<'_>) -> Parsed<String> {
    let fits = |text: &&str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    value.as_str().filter(fits).map(str::to_owned).ok_or_else(|| "write a country as two capital letters, like \"KE\"".to_owned())
}

fn organisation(value: &DeValue<'_>) -> Parsed<String> {
    let text = values::text(value)?;
    if text.len() <= LONGEST_ORGANISATION && !text.chars().any(|c| c.is_control() || c == '|') {
        Ok(text)
    } else {
        Err(format!("write at most {LONGEST_ORGANISATION} bytes, without `|` and control characters"))
    }
}

fn registry(value: &DeValue<'_>) -> Parsed<String> {
    let known = value.as_str().filter(|text| REGISTRIES.contains(text));
    known.map(str::to_owned).ok_or_else(|| format!("write one of {}", REGISTRIES.join(", ")))
}
