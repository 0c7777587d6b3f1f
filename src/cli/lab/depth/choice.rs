//! Parses the chosen prices and the chosen web.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_core::crawl::site::yields::Price;
use nearcrawl_lab::web::endless::shape::Shape;

/// Prices that show the whole bargain between load and coverage; among them the daemon's.
pub const PRICES: &str = "0.3,0.2,0.15,0.13,0.12,0.115,0.11,0.1,0.09,0.08,0.05,0.02,0.01,0.007,0.006,0.005,0.0045,0.0042,0.004,0.0038,0.0036,0.0035,0.0034,0.003";

/// The most prices.
const MAX_PRICES: usize = 100;

/// Prices, in the order of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices(pub Vec<Price>);

/// The prices of a list like `0.1,0.01`.
pub fn prices(text: &str) -> Result<Prices, String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let prices: Vec<Price> = items.map(price).collect::<Result<_, _>>()?;
    if prices.len() > MAX_PRICES { Err(format!("these are more than {MAX_PRICES} prices")) } else { Ok(Prices(prices)) }
}

fn price(text: &str) -> Result<Price, String> {
    let price = text.parse().ok().and_then(Price::of).filter(|price| *price > Price::default());
    price.ok_or_else(|| format!("{text:?} is no price: write new external hosts a request, above 0, like 0.01"))
}

/// The usual web with these changes, each like `uneven=0.5`.
pub fn shape(changes: &[String]) -> Result<Shape, CommandError> {
    let mut shape = Shape::default();
    for change in changes {
        let wrong = |message: String| CommandError::new(Exit::Usage, message);
        let (name, factor) =
            change.split_once('=').ok_or_else(|| wrong(format!("--change {change}: write NAME=FACTOR, like uneven=0.5")))?;
        let factor: f64 = factor
            .parse()
            .ok()
            .filter(|factor| (0.1..=10.0).contains(factor))
            .ok_or_else(|| wrong(format!("--change {change}: the factor must be a number from 0.1 to 10")))?;
        let mut numbers = shape.numbers();
        let names = numbers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        match numbers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, number)) => **number *= factor,
            None => return Err(wrong(format!("the web has no number {name:?}")).hint(format!("there are {names}"))),
        }
    }
    Ok(shape)
}
