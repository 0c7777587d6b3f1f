//! Progress of a crawl: a bar on a terminal, else a line now and then; on standard error.

use crate::cli::table::bytes;
use indicatif::{ProgressBar, ProgressStyle};
use nearcrawl_core::report::View;
use nearcrawl_model::view::{ProgressView, Span, counted};
use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// How often the bar is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// When the first line comes where there is no terminal. The pause doubles with each line.
const FIRST_LINE: Duration = Duration::from_secs(2);

/// The longest pause between two lines.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The rate is that of so much time.
const WINDOW: Duration = Duration::from_secs(10);

/// What is shown.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    is_quiet: bool,
    begun: Instant,
    due: Instant,
    pause: Duration,
    /// When there were how many pages, a while ago and not so long ago.
    marks: [(Instant, u64); 2],
}

impl Progress {
    pub(super) fn new(is_quiet: bool) -> Progress {
        let now = Instant::now();
        let is_drawn = !is_quiet && io::stderr().is_terminal();
        let bar = is_drawn.then(|| {
            let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(1).with_style(style)
        });
        let pause = if is_drawn { DRAW_EVERY } else { FIRST_LINE };
        Progress { bar, is_quiet, begun: now, due: now + pause, pause, marks: [(now, 0); 2] }
    }

    /// Draws or writes it, if it is time.
    pub(super) fn show(&mut self, view: &View<'_>) {
        let now = Instant::now();
        if self.is_quiet || now < self.due {
            return;
        }
        let progress = view.progress();
        let rate = self.rate(now, progress.pages);
        let done = progress.known.saturating_sub(progress.waiting + progress.busy);
        match &self.bar {
            Some(bar) => {
                bar.set_length(progress.known.max(1));
                bar.set_position(done);
                bar.set_message(told(&progress, rate));
            }
            None => {
                self.pause = (self.pause * 2).min(MAX_PAUSE);
                let share = done * 100 / progress.known.max(1);
                let elapsed = Span(now.duration_since(self.begun).as_millis() as u64);
                // Nobody may be there to read it.
                let _ = writeln!(io::stderr(), "{elapsed}: {share} % of what is known, {}", told(&progress, rate));
            }
        }
        self.due = now + self.pause;
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Pages a second, lately.
    fn rate(&mut self, now: Instant, pages: u64) -> f64 {
        if now.duration_since(self.marks[1].0) >= WINDOW {
            self.marks = [self.marks[1], (now, pages)];
        }
        let (since, before) = self.marks[0];
        pages.saturating_sub(before) as f64 / now.duration_since(since).as_secs_f64().max(0.001)
    }
}

fn told(progress: &ProgressView, rate: f64) -> String {
    // Nothing was fetched: nothing is known of how long a page takes.
    let left =
        if progress.waiting == 0 || progress.pages == 0 { String::new() } else { format!(", about {} left", Span(progress.left_ms)) };
    format!(
        "{} from {}, {rate:.1} pages/s, {}, {} waiting{left}",
        counted(progress.pages, "page"),
        counted(progress.servers, "server"),
        bytes(progress.bytes),
        counted(progress.waiting, "URL"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut progress = Progress::new(true);
        let at = |seconds: u64| progress.begun + Duration::from_secs(seconds);
        let (ten, twenty, thirty) = (at(10), at(20), at(30));
        assert_eq!(progress.rate(ten, 100), 10.0);
        assert_eq!(progress.rate(twenty, 100), 0.0);
        assert_eq!(progress.rate(thirty, 150), 5.0);
    }

    #[test]
    fn time_left_is_told_while_something_waits() {
        let some = ProgressView { pages: 3, waiting: 1, busy: 0, servers: 1, bytes: 1_500, known: 4, left_ms: 65_000 };
        assert_eq!(told(&some, 0.5), "3 pages from 1 server, 0.5 pages/s, 1.5 kB, 1 URL waiting, about 1 min 5 s left");
        assert!(!told(&ProgressView { waiting: 0, ..some }, 0.5).contains("left"));
        assert!(!told(&ProgressView { pages: 0, ..some }, 0.0).contains("left"), "no server has answered");
    }
}
