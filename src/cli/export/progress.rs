//! Progress of an export; drawn if somebody looks.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_model::view::counted;
use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// How often progress is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// How many servers are done, of how many.
pub struct Progress {
    all: u64,
    servers: u64,
    written: u64,
    begun: Instant,
    drawn: Instant,
    is_drawn: bool,
}

impl Progress {
    pub fn new(all: u64) -> Progress {
        let now = Instant::now();
        Progress { all, servers: 0, written: 0, begun: now, drawn: now, is_drawn: io::stderr().is_terminal() }
    }

    /// So many rows of a server were written, all there are.
    pub fn wrote(&mut self, rows: u64) {
        self.servers += 1;
        self.written += rows;
        self.draw();
    }

    /// Draws, if it is time.
    pub fn draw(&mut self) {
        if self.is_drawn && self.drawn.elapsed() >= DRAW_EVERY {
            self.drawn = Instant::now();
            let _ = write!(io::stderr(), "\r{} of about {}", self.servers, counted(self.all, "server"));
        }
    }

    /// The last message, on standard error: rows may be on standard output.
    pub fn finish(self, missing: &[String], left_out: &[String]) -> Result<String, CommandError> {
        let start = if self.is_drawn { "\r" } else { "" };
        let seconds = self.begun.elapsed().as_secs_f64();
        let rows = counted(self.written, "row");
        let _ = writeln!(io::stderr(), "{start}{rows} written in {seconds:.1} s, as they were when each owner was asked");
        if !left_out.is_empty() {
            let _ = writeln!(io::stderr(), "left out: {}", left_out.join("; "));
        }
        if missing.is_empty() {
            return Ok(String::new());
        }
        Err(CommandError::new(Exit::Unavailable, format!("rows are missing: {}", missing.join("; ")))
            .hint("export again when all members answer; --resume goes on behind what is in the file"))
    }
}
