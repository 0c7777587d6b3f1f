//! Sets of whole numbers that mostly follow each other, as spans.

use super::ownership_map::at_most;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Spans of one set; beyond it the lowest go.
pub const MAX_SPANS: usize = 1_024;

/// Numbers, as spans from the first to the one behind the last; in order, with numbers between them that are not in the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spans(Vec<(u32, u32)>);

impl<'de> Deserialize<'de> for Spans {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spans = at_most::<_, _, MAX_SPANS>(deserializer)?;
        let is_ordered = spans.iter().all(|(from, until)| from < until) && spans.is_sorted_by(|one: &(u32, u32), next| one.1 < next.0);
        if is_ordered { Ok(Spans(spans)) } else { Err(de::Error::custom("spans that are empty, touch each other or are out of order")) }
    }
}

impl FromIterator<u32> for Spans {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Spans {
        let mut spans = Spans::default();
        numbers.into_iter().for_each(|number| spans.add(number, number.saturating_add(1)));
        spans
    }
}

impl Spans {
    /// Adds the numbers from the first one to the one before the last.
    pub fn add(&mut self, from: u32, until: u32) {
        if from >= until {
            return;
        }
        let first = self.0.partition_point(|(_, end)| *end < from);
        let behind = self.0.partition_point(|(begin, _)| *begin <= until);
        let joined = self.0.get(first..behind).unwrap_or_default();
        let from = joined.first().map_or(from, |(begin, _)| from.min(*begin));
        let until = joined.last().map_or(until, |(_, end)| until.max(*end));
        self.0.splice(first..behind, [(from, until)]);
        let beyond = self.0.len().saturating_sub(MAX_SPANS);
        self.0.drain(..beyond);
    }

    /// Adds all of another set.
    pub fn join(&mut self, other: &Spans) {
        other.0.iter().for_each(|(from, until)| self.add(*from, *until));
    }

    /// Whether a number is in it.
    pub fn contains(&self, number: u32) -> bool {
        let behind = self.0.partition_point(|(begin, _)| *begin <= number);
        behind.checked_sub(1).and_then(|place| self.0.get(place)).is_some_and(|(_, end)| number < *end)
    }

    /// The same numbers, but for those below the first and those from the last on.
    #[must_use]
    pub fn within(&self, from: u32, until: u32) -> Spans {
        let cut = self.0.iter().map(|(begin, end)| (*begin.max(&from), *end.min(&until)));
        Spans(cut.filter(|(begin, end)| begin < end).collect())
    }

    /// The same numbers, but for those from the first to the one before the last.
    #[must_use]
    pub fn without(&self, from: u32, until: u32) -> Spans {
        if from >= until {
            return self.clone();
        }
        let (mut left, above) = (self.within(0, from), self.within(until, u32::MAX));
        left.0.extend(above.0);
        left
    }

    /// The number behind the last one; none if there are none.
    pub fn end(&self) -> Option<u32> {
        self.0.last().map(|(_, end)| *end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many numbers.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(from, until)| u64::from(until - from)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_join_where_they_touch() {
        let mut spans = Spans::default();
        for (from, until) in [(10, 12), (20, 25), (12, 14), (5, 5), (13, 20)] {
            spans.add(from, until);
        }
        assert_eq!(spans, Spans(vec![(10, 25)]));
        spans.add(30, 31);
        spans.add(1, 2);
        assert_eq!(spans, Spans(vec![(1, 2), (10, 25), (30, 31)]));
        let of = |number| spans.contains(number);
        assert!(of(1) && of(10) && of(24) && of(30) && !of(0) && !of(2) && !of(25) && !of(31));
        assert_eq!((spans.within(11, 31), spans.end(), spans.count()), (Spans(vec![(11, 25), (30, 31)]), Some(31), 17));
        assert_eq!(spans.without(12, 31), Spans(vec![(1, 2), (10, 12)]));
        assert_eq!((spans.without(0, 40), spans.without(13, 13)), (Spans::default(), spans.clone()));
        assert_eq!([3, 4, 5, 9].into_iter().collect::<Spans>(), Spans(vec![(3, 6), (9, 10)]));
        spans.add(0, 100);
        assert_eq!(spans, Spans(vec![(0, 100)]));
    }

    #[test]
    fn what_others_say_is_in_order_or_refused_and_of_too_many_the_lowest_go() {
        let read = |spans: &[(u32, u32)]| postcard::from_bytes::<Spans>(&postcard::to_stdvec(spans).unwrap());
        assert!(read(&[(1, 2), (3, 4)]).is_ok() && read(&[]).is_ok());
        for wrong in [&[(2, 2)][..], &[(3, 2)], &[(1, 3), (3, 4)], &[(5, 6), (1, 2)]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        let many: Spans = (0..=MAX_SPANS as u32).map(|number| 3 * number).collect();
        assert!(!many.contains(0) && many.contains(3) && many.contains(3 * MAX_SPANS as u32));
        assert!(read(&vec![(1, 2); MAX_SPANS + 1]).is_err());
    }
}
