//! Parses the chosen caches: rules by name, sizes by number or as powers of two from one to another.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_lab::cache::policies::Policy;

/// The policies compared by default; STATIC with both ways of counting.
pub const ALL: &str = "infinite,min,lru,clock,random,static,s3fifo,sieve";

/// The most entries: 2^30.
const MAX_ENTRIES: usize = 1 << 30;

/// The most sizes.
const MAX_SIZES: usize = 1_000;

/// Sizes, the smallest first, none twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

/// The sizes of a list like `1..1024,1500`.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = Vec::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        match item.split_once("..") {
            None => sizes.push(size(item)?),
            Some((from, to)) => {
                let (from, to) = (size(from)?, size(to)?);
                let powers = (0..usize::BITS - 1).map(|exponent| 1 << exponent).filter(|power| (from..=to).contains(power));
                let before = sizes.len();
                sizes.extend(powers);
                if sizes.len() == before {
                    return Err(format!("there is no power of two in {item}"));
                }
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    match sizes.len() {
        0 => Err("no size is named; write numbers, or a range of powers of two like 1..1024".to_owned()),
        1..=MAX_SIZES => Ok(Sizes(sizes)),
        _ => Err(format!("these are more than {MAX_SIZES} sizes")),
    }
}

fn size(text: &str) -> Result<usize, String> {
    let size = text.trim().parse().ok().filter(|size| (1..=MAX_ENTRIES).contains(size));
    size.ok_or_else(|| format!("{text:?} is no number of entries from 1 to {MAX_ENTRIES}"))
}

/// The rules of a list like `clock,lru`.
pub fn policies(list: &str) -> Result<Vec<Policy>, CommandError> {
    let mut policies = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let policy = Policy::ALL.into_iter().find(|policy| policy.to_string() == name).ok_or_else(|| unknown(name))?;
        policies.push(policy);
        if policy == Policy::Static {
            policies.push(Policy::StaticCharged);
        }
    }
    // `static,static-charged` must not give a column twice.
    let mut once = Vec::new();
    policies.into_iter().for_each(|policy| {
        if !once.contains(&policy) {
            once.push(policy)
        }
    });
    if once.is_empty() { Err(wrong("no policy is named".to_owned()).hint(format!("there are {ALL}"))) } else { Ok(once) }
}

fn wrong(message: String) -> CommandError {
    CommandError::new(Exit::Usage, message)
}

fn unknown(name: &str) -> CommandError {
    let nearest = ALL.split(',').max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    let hint = match nearest.filter(|known| strsim::jaro(known, name) > 0.7) {
        Some(known) => format!("do you mean {known}?"),
        None => format!("there are {ALL}"),
    };
    wrong(format!("there is no policy {name:?}")).hint(hint)
}
