//! Priors for a subnet from its relatives: how far what was predicted is off among them, level by level.
//!
//! A prior says how long a unit of work should take; a slow server takes longer from everywhere. By how much is a trait of the subnet,
//! its `level`, as a natural logarithm. An owner that knows the levels of a network's other subnets knows this one's within their spread:
//! that is the shrinkage from subnet to AS to country to all. What accesses scatter by is passed down in the same way.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many families an owner keeps at most; the one that was told of longest ago goes first.
pub(crate) const MAX_FAMILIES: usize = 16_384;

/// What families count for that no owner told of: the level may be off by the factor e or more.
const UNKNOWN_VARIANCE: f64 = 1.0;

/// The scatter of a single access's logarithm if nothing is known: a third up or down.
const UNKNOWN_NOISE: f64 = 0.1;

/// A family of so few members is believed half, its own family above the other half.
const HALF_BELIEVED: f64 = 4.0;

/// What is told weighs at least so much against what was told before: families change, too.
const MIN_SHARE: f64 = 0.01;

/// What relatives know, in natural logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// By how much the members take longer than was predicted.
    pub level: f64,
    /// The variance of that among the members, 0 or more.
    pub variance: f64,
    /// The variance of single accesses around what is usual for their member, above 0.
    pub noise: f64,
}

impl Default for Scale {
    /// Nothing is known.
    fn default() -> Scale {
        Scale { level: 0.0, variance: UNKNOWN_VARIANCE, noise: UNKNOWN_NOISE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Family {
    count: f64,
    scale: Scale,
    told: u64,
}

/// The families that an owner's subnets belong to, by any key: its own position in the hierarchy, an AS number, a country.
#[derive(Clone, Debug)]
pub struct Families<K> {
    by_key: BTreeMap<K, Family>,
    by_age: BTreeMap<u64, K>,
    told: u64,
    most: usize,
}

impl<K: Ord + Clone> Default for Families<K> {
    fn default() -> Families<K> {
        Families { by_key: BTreeMap::new(), by_age: BTreeMap::new(), told: 0, most: MAX_FAMILIES }
    }
}

impl<K: Ord + Clone> Families<K> {
    /// A member of these families, from the smallest to the largest, turned out to have this level, and accesses to it that scatter.
    pub fn tell(&mut self, path: &[K], level: f64, noise: f64) {
        if !level.is_finite() || !noise.is_finite() || noise <= 0.0 {
            return;
        }
        for key in path {
            self.told += 1;
            let family = self.by_key.entry(key.clone()).or_insert(Family { count: 0.0, scale: Scale::default(), told: 0 });
            self.by_age.remove(&family.told);
            self.by_age.insert(self.told, key.clone());
            family.told = self.told;
            family.count += 1.0;
            let share = (1.0 / family.count).max(MIN_SHARE);
            let off = level - family.scale.level;
            family.scale.level += share * off;
            // The first says nothing of the spread; the second is the first that does.
            let variance = if family.count > 1.0 { family.scale.variance } else { 0.0 };
            family.scale.variance = (1.0 - share) * (variance + share * off * off);
            family.scale.noise += share * (noise - family.scale.noise);
            if self.by_key.len() > self.most
                && let Some((_, oldest)) = self.by_age.pop_first()
            {
                self.by_key.remove(&oldest);
            }
        }
    }

    /// What a subnet of these families, from the smallest to the largest, can be expected to be like: each as far as it is known,
    /// otherwise as the next larger one.
    pub fn expected_scale(&self, path: &[K]) -> Scale {
        path.iter().rev().filter_map(|key| self.by_key.get(key)).fold(Scale::default(), |above, family| {
            let share = family.count / (family.count + HALF_BELIEVED);
            let mix = |own: f64, above: f64| share * own + (1.0 - share) * above;
            let apart = family.scale.level - above.level;
            Scale {
                level: mix(family.scale.level, above.level),
                variance: mix(family.scale.variance, above.variance) + share * (1.0 - share) * apart * apart,
                noise: mix(family.scale.noise, above.noise),
            }
        })
    }

    /// How many families are known.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
