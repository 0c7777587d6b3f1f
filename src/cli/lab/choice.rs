//! Parses the chosen policies: names separated by commas, some with a number of their own.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_lab::delegation::policies::Policy;

/// The procedures compared by default.
pub const ALL: &str = "ipmicra,nearcrawl,random-order,popular-first,brute-force,random-delegation";

/// What is compared only if asked for by name.
const FURTHER: &str = "random,oracle,brute-force-subnet";

/// Prices that show the whole bargain between probes and nearness, in milliseconds.
const USUAL_PRICES: [f64; 12] = [0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0];

/// The most policies, prices counted one by one.
const MAX_POLICIES: usize = 100;

/// The policies of a list like `ipmicra,nearcrawl@0.5`. Those with a threshold have `threshold_ms` if they say no other; `nearcrawl`
/// without a price is played at each of `prices`, or at the usual ones.
pub fn policies(list: &str, threshold_ms: f64, prices: &[f64]) -> Result<Vec<Policy>, CommandError> {
    let prices = if prices.is_empty() { &USUAL_PRICES[..] } else { prices };
    let mut policies: Vec<Policy> = Vec::new();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (name, number) = match item.split_once('@') {
            Some((name, number)) => (name, Some(milliseconds(number).map_err(|why| wrong(format!("{item:?}: {why}")))?)),
            None => (item, None),
        };
        let threshold = number.unwrap_or(threshold_ms);
        let asked = match (name, number) {
            ("ipmicra", _) => vec![Policy::IpMicra(threshold)],
            ("random-order", _) => vec![Policy::RandomOrder(threshold)],
            ("popular-first", _) => vec![Policy::PopularFirst(threshold)],
            ("nearcrawl", None) => prices.iter().map(|price| Policy::Nearcrawl(*price)).collect(),
            ("nearcrawl", Some(price)) => vec![Policy::Nearcrawl(price)],
            ("oracle", None) => prices.iter().map(|price| Policy::Oracle(*price)).collect(),
            ("oracle", Some(price)) => vec![Policy::Oracle(price)],
            ("brute-force-subnet", None) => vec![Policy::BruteForceSubnet],
            ("brute-force", None) => vec![Policy::BruteForce],
            ("random-delegation", None) => vec![Policy::RandomDelegation],
            ("random", None) => vec![Policy::Random],
            ("brute-force" | "brute-force-subnet" | "random-delegation" | "random", Some(_)) => {
                return Err(wrong(format!("{name} has neither a threshold nor a price")));
            }
            _ => return Err(unknown(name)),
        };
        // `nearcrawl,nearcrawl@0.5` must not give a point twice.
        policies.extend(asked.into_iter().filter(|policy| !policies.contains(policy)).collect::<Vec<_>>());
    }
    match policies.len() {
        0 => Err(wrong("no policy is named".to_owned()).hint(format!("there are {ALL},{FURTHER}"))),
        1..=MAX_POLICIES => Ok(policies),
        _ => Err(wrong(format!("these are more than {MAX_POLICIES} policies"))),
    }
}

/// A share of the sites, of which something must be left to evaluate.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "write a share from 0 to below 1, like 0.65".to_owned())
}

/// A threshold or a price.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    let ms = text.trim().parse().ok().filter(|ms| (0.0..=60_000.0).contains(ms));
    ms.ok_or_else(|| "write milliseconds from 0 to 60000, like 0.5".to_owned())
}

fn wrong(message: String) -> CommandError {
    CommandError::new(Exit::Usage, message)
}

fn unknown(name: &str) -> CommandError {
    let nearest = ALL.split(',').chain(FURTHER.split(',')).max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    let hint = match nearest.filter(|known| strsim::jaro(known, name) > 0.7) {
        Some(known) => format!("do you mean {known}?"),
        None => format!("there are {ALL},{FURTHER}"),
    };
    wrong(format!("there is no policy {name:?}")).hint(hint)
}
