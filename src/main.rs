//! The program's entry point: calls [`nearcrawl::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nearcrawl::cli::main(std::env::args_os())
}
