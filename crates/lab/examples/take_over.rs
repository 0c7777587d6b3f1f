//! Measures how long the subnets of a dead member have no owner.
//!
//! `take_over [MEMBERS [SUBNETS [SEED]]]`, 12 and 100,000 if missing, prints JSON.

use nearcrawl_lab::scenario::take_over::TakeOverTrial;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let mut next = |default: u32| numbers.next().unwrap_or(Ok(default));
    let (Ok(members), Ok(subnets), Ok(seed)) = (next(12), next(100_000), next(1)) else {
        eprintln!("usage: take_over [MEMBERS [SUBNETS [SEED]]]");
        return ExitCode::from(65);
    };
    let outcome = TakeOverTrial { seed: seed.into(), members: members.max(4), subnets, limit_ms: 1_200_000 }.run();
    println!("{outcome:?}");
    ExitCode::SUCCESS
}
