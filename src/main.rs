//! The door: hands over to [`nearcrawl::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nearcrawl::cli::main(std::env::args_os())
}
