//! The trial of `nearcrawl lab map` without the daemon's store: `map [CLAIMS [VOTERS [RTT_MS]]]`.

use nearcrawl_lab::map::{MAX_CLAIMS, MAX_VOTERS, MapTrial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let mut next = |default: u32| numbers.next().unwrap_or(Ok(default));
    let (Ok(claims), Ok(voters), Ok(rtt_ms)) = (next(100_000), next(u32::from(MAX_VOTERS)), next(50)) else {
        eprintln!("usage: map [CLAIMS [VOTERS [RTT_MS]]]");
        return ExitCode::from(65);
    };
    let (claims, voters) = (claims.clamp(1, MAX_CLAIMS), voters.clamp(1, u32::from(MAX_VOTERS)) as u8);
    println!("{:?}", MapTrial { claims, rtt_ms: rtt_ms.into(), voters }.run(&mut |_| ()));
    ExitCode::SUCCESS
}
