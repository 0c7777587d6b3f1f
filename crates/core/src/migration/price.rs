//! Load prices: by how much its load makes an access point more expensive, so that nearness does not bring all to one of them.
//!
//! With limited capacities the best that a swarm can do is a linear program: each subnet at one access point, none busy longer than the
//! last must be. Its dual gives every access point a price for a second of its time; at the right prices each subnet that takes what is
//! cheapest for it, time by price, does what the program says. They are found by multiplying: who is busier than the average grows dearer.

/// How fast prices follow loads.
const STEP: f64 = 0.25;

/// Prices stay within this factor of 1, so that a member that lies about its load (or the swarm's) moves only so much.
const MAX_PRICE: f64 = 64.0;

/// What a second of an access point's time counts, next to a second of another's.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct LoadPrice(f64);

impl Default for LoadPrice {
    /// As much as every member's.
    fn default() -> LoadPrice {
        LoadPrice(1.0)
    }
}

impl LoadPrice {
    /// The factor by which the time is multiplied.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// As a member tells it: the factor.
    pub fn of(factor: f64) -> LoadPrice {
        LoadPrice(believable(factor))
    }

    /// The price of a member that is not loaded at all any more: half way back to every member's.
    pub(crate) fn relaxed(self) -> LoadPrice {
        LoadPrice::of(self.0.sqrt())
    }

    /// The price after a run in which this access point was busy for `own` seconds (its work, divided by what it does at once), and the
    /// swarm's on average for `average`.
    pub fn after(self, own: f64, average: f64) -> LoadPrice {
        if !(own >= 0.0 && average > 0.0) {
            return self;
        }
        // No member can be twice as busy as the average and half as dear the next moment.
        LoadPrice::of(self.0 * (own / average).clamp(0.25, 4.0).powf(STEP))
    }
}

fn believable(price: f64) -> f64 {
    if price.is_finite() { price.clamp(1.0 / MAX_PRICE, MAX_PRICE) } else { 1.0 }
}
