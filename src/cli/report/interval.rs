//! How sure is a share? The interval of Wilson (1927), which holds its 95 % also where shares are near 0 or 1 and counts are small.

/// Standard deviations to each side that hold 95 % of a normal distribution.
pub const Z: f64 = 1.959_964;

/// The 95 % interval of the share that these make of all; everything, if there are none.
pub fn wilson(these: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (all as f64, these as f64 / all as f64);
    let (square, scale) = (Z * Z, 1.0 + Z * Z / n);
    let middle = (share + square / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    // At the ends rounding must not exclude the share itself.
    ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
}

/// The value below which this share of the sorted ones lies, between two of them in proportion; none of none.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_literature_and_hold_what_they_promise() {
        let close = |(low, high): (f64, f64), (a, b): (f64, f64)| (low - a).abs() < 5e-5 && (high - b).abs() < 5e-5;
        // Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (these, all, wanted) in
            [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718))]
        {
            assert!(close(wilson(these, all), wanted), "{these} of {all}: {:?}", wilson(these, all));
        }
        assert_eq!((wilson(0, 0), wilson(7, 7).1), ((0.0, 1.0), 1.0));
    }

    #[test]
    fn quantiles_lie_between_two_values() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!((quantile(&[3.0], 0.9), quantile(&[1.0, 2.0, 3.0, 4.0], 0.5)), (Some(3.0), Some(2.5)));
    }
}
