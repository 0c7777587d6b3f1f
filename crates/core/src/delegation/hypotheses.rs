//! Weighted guesses of what each access point would measure, and whether another probe is worth its price.

/// Round-trip times are compared as logarithms, for most of what disturbs them is in proportion; two milliseconds are added first,
/// so that what happens within a city does not count.
pub(super) fn to_log(ms: f32) -> f32 {
    (ms.max(0.0) + 2.0).ln()
}

/// The milliseconds of a logarithm.
pub(super) fn to_ms(log: f32) -> f32 {
    log.exp() - 2.0
}

/// In how many steps the possible outcomes of a probe are divided.
const OUTCOMES: usize = 24;

/// What the round-trip times of one subnet may be: rows are guesses of where it is, columns access points.
#[derive(Clone, Debug, Default)]
pub(super) struct Hypotheses {
    /// How likely each guess is; they add up to one.
    pub weights: Vec<f32>,
    /// How many access points there are.
    pub columns: usize,
    /// By guess and access point: the logarithm that its probe would give.
    pub expected: Vec<f32>,
    /// By guess and access point: the standard deviation of that logarithm.
    pub spread: Vec<f32>,
}

/// The probe that is worth most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worth {
    /// The column.
    pub column: usize,
    /// By how many milliseconds the owner will be nearer, on the average, for having asked.
    pub gain_ms: f32,
}

impl Hypotheses {
    /// Adds a guess: how likely it is, and for each access point the logarithm to be expected and its standard deviation.
    pub(super) fn add(&mut self, weight: f32, row: &[(f32, f32)]) {
        self.weights.push(weight);
        self.expected.extend(row.iter().map(|(expected, _)| expected));
        self.spread.extend(row.iter().map(|(_, spread)| spread));
    }

    /// What each access point would measure on the average, in milliseconds.
    pub(crate) fn means_ms(&self) -> Vec<f32> {
        let mut means = vec![0.0; self.columns];
        for (guess, weight) in self.weights.iter().enumerate() {
            for (mean, ms) in means.iter_mut().zip(self.row_ms(guess)) {
                *mean += weight * ms;
            }
        }
        means
    }

    /// By how much each access point's logarithm may be off, over all guesses: a standard deviation.
    pub(crate) fn spreads(&self) -> Vec<f32> {
        let sum = |of: &dyn Fn(usize) -> f32| (0..self.weights.len()).map(|guess| self.weights[guess] * of(guess)).sum::<f32>();
        let spread = |column: usize| {
            let at = |guess: usize| (self.expected[guess * self.columns + column], self.spread[guess * self.columns + column]);
            let mean = sum(&|guess| at(guess).0);
            sum(&|guess| (at(guess).0 - mean).powi(2) + at(guess).1.powi(2)).sqrt()
        };
        (0..self.columns).map(spread).collect()
    }

    fn row_ms(&self, guess: usize) -> impl Iterator<Item = f32> + '_ {
        let row = guess * self.columns..(guess + 1) * self.columns;
        // The mean of a log-normal variable lies above its median.
        self.expected[row.clone()].iter().zip(&self.spread[row]).map(|(x, s)| to_ms(x + s * s / 2.0))
    }

    /// The probe that is worth most, when `best_ms` was measured already: knowledge gradient, which is how much nearer the owner
    /// that is chosen after the answer will be than the one chosen now, over all answers that may come.
    pub(crate) fn most_worth(&self, best_ms: f32) -> Option<Worth> {
        let ms: Vec<f32> = (0..self.weights.len()).flat_map(|guess| self.row_ms(guess)).collect();
        let now = self.means_ms().into_iter().fold(best_ms, f32::min);
        let mut sums = vec![0.0f32; self.columns];
        let worth = |column: usize| Worth { column, gain_ms: now - self.after(column, best_ms, &ms, &mut sums) };
        (0..self.columns).map(worth).max_by(|a, b| a.gain_ms.total_cmp(&b.gain_ms).then(b.column.cmp(&a.column)))
    }

    /// The expected milliseconds of the best choice after asking `column`.
    fn after(&self, column: usize, best_ms: f32, ms: &[f32], sums: &mut [f32]) -> f32 {
        let at = |guess: usize| (self.expected[guess * self.columns + column], self.spread[guess * self.columns + column]);
        let likely = || (0..self.weights.len()).filter(|guess| self.weights[*guess] > 1e-3).map(at);
        let low = likely().map(|(x, s)| x - 2.5 * s).fold(f32::INFINITY, f32::min);
        let high = likely().map(|(x, s)| x + 2.5 * s).fold(f32::NEG_INFINITY, f32::max);
        let step = (high - low) / OUTCOMES as f32;
        let (mut after, mut mass) = (0.0, 0.0);
        for outcome in 0..OUTCOMES {
            let x = low + (outcome as f32 + 0.5) * step;
            sums.fill(0.0);
            let mut probability = 0.0;
            for (guess, weight) in self.weights.iter().enumerate() {
                let (expected, spread) = at(guess);
                // An outcome stands for its whole step.
                let spread = spread.max(step / 2.0);
                let z = (x - expected) / spread;
                if z.abs() < 3.5 {
                    let p = weight * (-0.5 * z * z).exp() / spread;
                    probability += p;
                    for (sum, ms) in sums.iter_mut().zip(&ms[guess * self.columns..]) {
                        *sum += p * ms;
                    }
                }
            }
            if probability > 0.0 {
                let others = sums.iter().enumerate().filter(|(other, _)| *other != column).map(|(_, sum)| sum / probability);
                after += probability * others.fold(best_ms.min(to_ms(x)), f32::min);
                mass += probability;
            }
        }
        if mass > 0.0 { after / mass } else { f32::INFINITY }
    }
}
