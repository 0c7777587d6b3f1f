//! Estimates of what a subnet would take elsewhere, and of what a trial would bring: Bayes on logarithms, in closed form.

/// What is known of an arm, in natural logarithms of seconds for a unit of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Evidence {
    /// What was predicted; 0 if nothing was.
    pub prior: f64,
    /// The variance of that, above 0.
    pub prior_variance: f64,
    /// What was measured there, and its variance; none of an arm not tried.
    pub measured: Option<(f64, f64)>,
}

/// What is believed of an arm. The level that all arms have in common is not known for certain either; `tied` says how much of its
/// uncertainty the arm shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Belief {
    pub mean: f64,
    /// The arm's own variance.
    pub variance: f64,
    /// How much of the common level's deviation it takes along, 0 to 1.
    pub tied: f64,
}

/// The level of a subnet (see `family`), as far as its arms tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub mean: f64,
    pub variance: f64,
}

impl Level {
    /// What relatives told, corrected by all that was measured.
    pub(super) fn of(expected: f64, variance: f64, evidence: impl Iterator<Item = Evidence>) -> Level {
        let variance = variance.max(1e-6);
        let (mut weight, mut sum) = (1.0 / variance, expected / variance);
        for arm in evidence {
            let Some((measured, uncertain)) = arm.measured else { continue };
            let says = 1.0 / (arm.prior_variance + uncertain);
            weight += says;
            sum += says * (measured - arm.prior);
        }
        Level { mean: sum / weight, variance: 1.0 / weight }
    }

    /// What is to be believed of an arm.
    pub(crate) fn belief(&self, arm: &Evidence) -> Belief {
        let Some((measured, uncertain)) = arm.measured else {
            return Belief { mean: arm.prior + self.mean, variance: arm.prior_variance, tied: 1.0 };
        };
        let trust = arm.prior_variance / (arm.prior_variance + uncertain);
        Belief { mean: trust * measured + (1.0 - trust) * (arm.prior + self.mean), variance: trust * uncertain, tied: 1.0 - trust }
    }

    /// The variance of the difference of two arms' times.
    pub(super) fn apart(&self, one: &Belief, other: &Belief) -> f64 {
        let tied = one.tied - other.tied;
        one.variance + other.variance + tied * tied * self.variance
    }
}

/// What a move is worth, in accesses of the present length: over the accesses to come what is saved if a trial shows the other arm to be
/// better (knowledge gradient), less what the trial itself may lose. `longer` is the logarithm of how many times as long it takes there,
/// `variance` its variance, and `noise` that of a single access.
pub(super) fn worth(longer: f64, variance: f64, noise: f64, horizon: f64) -> f64 {
    // How far a single access there can move the belief.
    let spread = (variance * variance / (variance + noise)).sqrt();
    horizon * saved(longer, spread) - ((longer + variance / 2.0).exp() - 1.0)
}

/// The mean of what is saved, as a share: 1 - e^x where that is positive, for x normal with this mean and standard deviation.
fn saved(mean: f64, spread: f64) -> f64 {
    if spread < 1e-9 {
        return (1.0 - mean.exp()).max(0.0);
    }
    let (near, far) = (-mean / spread, -mean / spread - spread);
    // Farther off is nothing to speak of.
    if near < -5.0 {
        return 0.0;
    }
    (normal(near) - (mean + spread * spread / 2.0).exp() * normal(far)).max(0.0)
}

/// The share of the normal distribution below `x` (Abramowitz and Stegun 26.2.17; off by less than 1e-7).
pub(super) fn normal(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let above = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
    if x > 0.0 { 1.0 - above } else { above }
}
