//! Output of the demonstration: live progress (a bar on a terminal, plain lines elsewhere), and the table at the end.

use super::verdict::Row;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearcrawl_model::view::counted;
use std::{
    fmt::Write,
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

/// Without a terminal, how often a line is written.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// No line is wider.
pub(super) const MAX_COLUMNS: usize = 100;

/// What is going on right now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Now {
    /// Reachable URLs fetched so far.
    pub fetched: usize,
    /// Of so many.
    pub of: usize,
    /// Subnets that have an owner.
    pub owned: usize,
    /// Of so many.
    pub subnets: usize,
    /// Probes so far.
    pub probes: usize,
    /// Daemons that run.
    pub alive: usize,
    /// What is being waited for.
    pub phase: String,
}

/// Tells people how far it is. Everything goes to standard error: standard output is for the table.
#[derive(Debug)]
pub(super) struct Show {
    started: Instant,
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
}

impl Default for Show {
    fn default() -> Self {
        Show::new()
    }
}

impl Show {
    /// One for where standard error goes.
    pub(super) fn new() -> Show {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let template = "{elapsed_precise} {bar:30} {pos}/{len} URLs  {wide_msg}";
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Show { started: Instant::now(), bar, last_line: None }
    }

    /// Something worth a line of its own has happened.
    pub(super) fn event(&self, text: &str) {
        let line = folded(&format!("{:5.1} s  ", self.started.elapsed().as_secs_f64()), text);
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// How far it is.
    pub(super) fn progress(&mut self, now: &Now) {
        let Now { fetched, of, owned, subnets, probes, alive, phase } = now;
        let (probes, daemons) = (counted(*probes, "probe"), counted(*alive, "daemon"));
        let message = format!("{owned}/{subnets} subnets owned, {probes}, {daemons}, {phase}");
        if let Some(bar) = &self.bar {
            bar.set_length(*of as u64);
            bar.set_position(*fetched as u64);
            bar.set_message(message);
        } else if self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            self.event(&format!("{fetched}/{of} URLs, {message}"));
        }
    }

    /// The end of progress; the table follows.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `text` after `start`, in lines of at most [`MAX_COLUMNS`] that break between words, or in one that is longer than a line; all but the
/// first are indented by the width of `start`.
pub(super) fn folded(start: &str, text: &str) -> String {
    let indent = start.chars().count();
    let mut folded = start.to_owned();
    let mut column = indent;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > indent && column + 1 + width > MAX_COLUMNS {
            folded.extend(["\n", &" ".repeat(indent)]);
            column = indent;
        } else if column > indent {
            folded.push(' ');
            column += 1;
        }
        for letter in word.chars() {
            if column == MAX_COLUMNS {
                folded.extend(["\n", &" ".repeat(indent)]);
                column = indent;
            }
            folded.push(letter);
            column += 1;
        }
    }
    folded
}

/// The table as people read it.
pub(super) fn table(rows: &[Row]) -> String {
    let width = |cell: fn(&Row) -> &str, least: usize| rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0).max(least);
    let what = width(|row| &row.what, 4);
    let wanted = width(|row| &row.wanted, 6);
    let found = width(|row| &row.found, 5);
    let mut text = format!("\n{:what$}  {:>wanted$}  {:found$}\n{}\n", "what", "wanted", "found", "─".repeat(what + wanted + found + 9));
    for row in rows {
        let mark = match (row.wanted.is_empty(), row.holds) {
            (true, _) => "",
            (false, true) => "ok",
            (false, false) => "FAILS",
        };
        // Writing to a string cannot fail.
        let line = format!("{:what$}  {:>wanted$}  {:found$}  {mark}", row.what, row.wanted, row.found);
        let _ = writeln!(text, "{}", line.trim_end());
        for example in &row.examples {
            let _ = writeln!(text, "{}", folded("    ", example));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_folded_between_words() {
        assert_eq!(folded("  1.0 s  ", "short"), "  1.0 s  short");
        let text = folded("    ", &"word ".repeat(40));
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= MAX_COLUMNS && line.starts_with("    word")), "{text}");
        let text = folded("  ", &format!("in /{}", "x".repeat(150)));
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= MAX_COLUMNS), "{text}");
    }

    #[test]
    fn the_table_marks_what_fails_and_lines_up() {
        let row = |what: &str, wanted: &str, found: &str, holds, examples: &[&str]| Row {
            what: what.to_owned(),
            wanted: wanted.to_owned(),
            found: found.to_owned(),
            holds,
            examples: examples.iter().map(|example| (*example).to_owned()).collect(),
        };
        let text = table(&[
            row("pages", "700", "699", false, &["http://a.test/: missing"]),
            row("most requests at once", "1", "1", true, &[]),
            row("for information", "", "x", true, &[]),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].starts_with("pages ") && lines[3].ends_with("FAILS"), "{text}");
        assert!(lines[4].contains("http://a.test/: missing"));
        assert!(lines[5].ends_with("ok"));
        assert!(!lines[6].ends_with("ok"));
        assert_eq!(lines[3].find("699"), lines[5].rfind("1  "), "{text}");
    }
}
