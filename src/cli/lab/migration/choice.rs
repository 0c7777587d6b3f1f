//! Parses the chosen rules, and checks shares.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_lab::migration::policies::Policy;

/// The rules compared by default.
pub const ALL: &str = "oma,twoma,nearcrawl,uniform,oracle";

/// The most pairs of a site and an access point.
pub const MAX_CELLS: usize = 100_000_000;

/// The largest error that makes sense: nearly everything is between a twentieth and twenty times of what it should be.
const MAX_ERROR: f64 = 3.0;

/// The rules of a list like `twoma,nearcrawl`.
pub fn policies(list: &str) -> Result<Vec<Policy>, CommandError> {
    let mut policies = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let policy = Policy::ALL.into_iter().find(|policy| policy.to_string() == name).ok_or_else(|| unknown(name))?;
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    if policies.is_empty() {
        return Err(CommandError::new(Exit::Usage, "no policy is named".to_owned()).hint(format!("there are {ALL}")));
    }
    Ok(policies)
}

fn unknown(name: &str) -> CommandError {
    let nearest = ALL.split(',').max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    let hint = match nearest.filter(|known| strsim::jaro(known, name) > 0.7) {
        Some(known) => format!("do you mean {known}?"),
        None => format!("there are {ALL}"),
    };
    CommandError::new(Exit::Usage, format!("there is no policy {name:?}")).hint(hint)
}

/// A relative error.
pub fn error(text: &str) -> Result<f64, String> {
    let error = text.parse().ok().filter(|error| (0.0..=MAX_ERROR).contains(error));
    error.ok_or_else(|| format!("{text:?} is no share from 0 to {MAX_ERROR}, like 0.2"))
}

/// A share of what is alike.
pub fn purity(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is no share from 0 to 1, like 0.95"))
}
