//! Runs `nearcrawl lab census` with the daemons of another build.
//!
//! Usage: `cargo run -p nearcrawl-lab --example census -- PROGRAM SEED HOSTS DAEMONS RUNS KILLS`. So the daemons of an earlier version can
//! be held against the same reference.

use nearcrawl_lab::census::{CensusPlan, run_program};
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, numbers @ ..] = &arguments[..] else { return ExitCode::from(64) };
    let number = |at: usize, usual: u64| numbers.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let plan = CensusPlan {
        seed: number(0, 1),
        hosts: number(1, 400) as usize,
        daemons: number(2, 5) as usize,
        runs: number(3, 2) as u32,
        kills: number(4, 1) as usize,
    };
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    match run_program(plan, program.into(), reqwest::Client::builder).await {
        Ok(Some(outcome)) => {
            print!("{}", outcome.text());
            if outcome.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(None) => ExitCode::from(130),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(70)
        }
    }
}
