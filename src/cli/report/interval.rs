//! Confidence intervals of shares and quantiles.
//!
//! For shares that of Wilson (1927), which holds its 95 % also where shares are near 0 or 1 and counts are small; for quantiles that of
//! order statistics, which supposes nothing of how values are distributed.

/// Standard deviations to each side that hold 95 % of a normal distribution.
pub const Z: f64 = 1.959_964;

/// How often a value may lie beyond one end of an interval.
const BEYOND: f64 = 0.025;

/// Of so many, chances are computed exactly; of more, the binomial distribution is taken for normal.
const EXACT: u64 = 1_000;

/// The 95 % interval of a share that was found among so many; everything, if there are none.
pub fn wilson(share: f64, n: f64) -> (f64, f64) {
    if n <= 0.0 {
        return (0.0, 1.0);
    }
    let (square, scale) = (Z * Z, 1.0 + Z * Z / n);
    let middle = (share + square / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    // At the ends rounding must not exclude the share itself.
    ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
}

/// A value, and its weight.
pub type Weighty = (f64, f64);

/// The value below which this share of the sorted ones lies, by their weights, between two of them in proportion; none of none.
pub fn quantile(sorted: &[Weighty], share: f64) -> Option<f64> {
    // From the middle of a value's weight to the middle of the next one's.
    let steps: Vec<f64> = sorted.windows(2).map(|pair| (pair[0].1 + pair[1].1) / 2.0).collect();
    let mut rest = share * steps.iter().sum::<f64>();
    for (pair, step) in sorted.windows(2).zip(&steps) {
        if rest <= *step {
            let part = if *step > 0.0 { rest / step } else { 0.0 };
            return Some(pair[0].0 + (pair[1].0 - pair[0].0) * part);
        }
        rest -= step;
    }
    sorted.last().map(|(value, _)| *value)
}

/// Between which of `n` sorted values, counted from 1, the quantile lies in 95 of 100 cases; none if so few cannot say.
fn ranks(share: f64, n: u64) -> Option<(u64, u64)> {
    let count = n as f64;
    let (low, high) = if n > EXACT {
        let half = Z * (count * share * (1.0 - share)).sqrt();
        ((count * share - half).floor().max(0.0) as u64, (count * share + half).ceil() as u64 + 1)
    } else {
        // The chance that just `k` of them lie below the quantile, and that at most so many do.
        let (mut combinations, mut sum) = (0.0_f64, 0.0_f64);
        let (mut low, mut high) = (0, None);
        for k in 0..=n {
            let below = k as f64;
            sum += (combinations + below * share.ln() + (count - below) * (1.0 - share).ln()).exp();
            combinations += ((count - below) / (below + 1.0)).ln();
            if sum <= BEYOND {
                low = k + 1;
            }
            if high.is_none() && 1.0 - sum <= BEYOND {
                high = Some(k + 1);
            }
        }
        (low, high.unwrap_or(n + 1))
    };
    (low >= 1 && high <= n).then_some((low, high))
}

/// The 95 % interval of a quantile of the sorted values, which say as much as `effective` ones of equal weight; none of few.
pub fn quantile_interval(sorted: &[Weighty], share: f64, effective: f64) -> Option<(f64, f64)> {
    // Rounding must not take one away.
    let n = (effective + 1e-6).floor() as u64;
    let (low, high) = ranks(share, n)?;
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let at = |rank: u64| {
        let (wanted, mut sum) = (all * rank as f64 / n as f64 * (1.0 - 1e-9), 0.0);
        let value = sorted.iter().find(|(_, weight)| {
            sum += weight;
            sum >= wanted
        });
        value.or(sorted.last()).map(|(value, _)| *value)
    };
    at(low).zip(at(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(values: &[f64]) -> Vec<Weighty> {
        values.iter().map(|value| (*value, 1.0)).collect()
    }

    #[test]
    fn intervals_are_those_of_the_literature_and_hold_what_they_promise() {
        let close = |(low, high): (f64, f64), (a, b): (f64, f64)| (low - a).abs() < 5e-5 && (high - b).abs() < 5e-5;
        let wilson_of = |these: u64, all: u64| wilson(these as f64 / all as f64, all as f64);
        // Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (these, all, wanted) in
            [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718))]
        {
            assert!(close(wilson_of(these, all), wanted), "{these} of {all}: {:?}", wilson_of(these, all));
        }
        assert_eq!((wilson(0.0, 0.0), wilson_of(7, 7).1), ((0.0, 1.0), 1.0));
    }

    #[test]
    fn quantiles_lie_between_two_values() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!((quantile(&equal(&[3.0]), 0.9), quantile(&equal(&[1.0, 2.0, 3.0, 4.0]), 0.5)), (Some(3.0), Some(2.5)));
        // One that stands for three counts as three.
        let (one, three) = (quantile(&[(1.0, 1.0), (2.0, 6.0), (9.0, 1.0)], 0.5), quantile(&equal(&[1.0, 2.0, 2.0, 2.0, 9.0]), 0.5));
        assert_eq!((one, three), (Some(2.0), Some(2.0)));
    }

    #[test]
    fn quantiles_lie_between_the_order_statistics_of_the_tables() {
        // Conover, "Practical Nonparametric Statistics": the median of 100 between the 40th and the 61st.
        assert_eq!((ranks(0.5, 100), ranks(0.5, 6), ranks(0.5, 5), ranks(0.1, 20)), (Some((40, 61)), Some((1, 6)), None, None));
        for share in [0.1, 0.25, 0.5, 0.9] {
            let (exact, normal) = (ranks(share, 1_000).unwrap(), ranks(share, 1_001).unwrap());
            assert!(exact.0.abs_diff(normal.0) <= 1 && exact.1.abs_diff(normal.1) <= 2, "{share}: {exact:?} {normal:?}");
        }
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile_interval(&equal(&values), 0.5, 100.0), Some((40.0, 61.0)));
        let weighty: Vec<Weighty> = values.iter().map(|value| (*value, 7.0)).collect();
        assert_eq!(quantile_interval(&weighty, 0.5, 100.0), Some((40.0, 61.0)), "weights that are equal change nothing");
    }
}
