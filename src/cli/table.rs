//! Prints tables, lists of facts and paragraphs, no wider than the terminal (100 columns where there is none); colours on terminals only.

use super::error::{CommandError, Exit};
use std::io::IsTerminal;

/// The widest output in columns, if standard output is no terminal or a wider one.
const MAX_WIDTH: usize = 100;

/// No column is made narrower than this, however narrow the terminal.
const MIN_COLUMN: usize = 12;

/// Whether headings are set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Headings in bold, by escape sequences.
    Coloured,
    /// No escape sequences.
    Plain,
}

/// Whether escape sequences may be written to `stream`: it is a terminal that understands them, and NO_COLOR is not set.
pub(super) fn may_colour(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !set("NO_COLOR") && !dumb
}

/// The width of standard output in columns: that of the terminal, at most [`MAX_WIDTH`].
fn columns() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize to the address that it is given, which is that of a local variable.
    let known = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) } == 0 && size.ws_col > 0;
    if known { usize::from(size.ws_col).min(MAX_WIDTH) } else { MAX_WIDTH }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks `text` into lines of at most `limit` columns, at spaces where there are some, inside words where there are none.
fn lines(text: &str, limit: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let used = lines.last().map_or(0, |line| width(line));
            let gap = usize::from(used > 0);
            if used + gap + word.len() <= limit {
                let line = lines.last_mut().into_iter();
                line.for_each(|line| line.extend([' '].iter().take(gap).chain(&word)));
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let rest = word.split_off(limit.max(1).min(word.len()));
            lines.last_mut().into_iter().for_each(|line| line.extend(&word));
            word = rest;
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// Rows as CSV, below the names of their columns. Control characters in what others wrote are left out.
pub(super) fn as_csv(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<String, CommandError> {
    let failed = |why: &dyn std::fmt::Display| CommandError::new(Exit::Internal, format!("the answer cannot be written as CSV: {why}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head).map_err(|why| failed(&why))?;
    for row in rows {
        let cells = row.iter().map(|cell| cell.chars().filter(|c| !c.is_control()).collect::<String>());
        writer.write_record(cells).map_err(|why| failed(&why))?;
    }
    let bytes = writer.into_inner().map_err(|why| failed(&why))?;
    String::from_utf8(bytes).map_err(|why| failed(&why))
}

/// A sentence or paragraph, broken into lines that fit standard output, each with its end.
pub(super) fn paragraph(text: &str) -> String {
    lines(text, columns()).iter().map(|line| format!("{line}\n")).collect()
}

impl Style {
    /// What fits standard output: plain in a pipe, on a dumb terminal, or if NO_COLOR is set.
    pub fn of_stdout() -> Style {
        if may_colour(&std::io::stdout()) { Style::Coloured } else { Style::Plain }
    }

    /// The text in bold, if there are colours.
    pub fn heading(self, text: &str) -> String {
        match self {
            Style::Coloured => format!("\x1b[1m{text}\x1b[0m"),
            Style::Plain => text.to_owned(),
        }
    }
}

/// Rows under headings. A heading that begins with `>` makes its column right-aligned.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(headings: &[&str]) -> Table {
        Table { headings: headings.iter().map(|heading| (*heading).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row, with as many cells as there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        // What web servers and registries say about themselves ends up here: it must not command the terminal.
        self.rows.push(cells.iter().map(|cell| cell.chars().map(|c| if c.is_control() { '·' } else { c }).collect()).collect());
    }

    /// The text, each line with its end; nothing at all without rows. What is too wide for standard output is broken inside its column.
    pub fn text(&self, style: Style) -> String {
        self.text_within(style, columns())
    }

    fn text_within(&self, style: Style, limit: usize) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let right: Vec<bool> = self.headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings: Vec<&str> = self.headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
        let mut widths: Vec<usize> = (0..headings.len())
            .map(|column| self.rows.iter().map(|row| width(&row[column])).chain([width(headings[column])]).max().unwrap_or(0))
            .collect();
        shrink(&mut widths, &right, limit);
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (column, cell) in cells.enumerate() {
                let gap = " ".repeat(widths[column].saturating_sub(width(cell)));
                let between = if column == 0 { "" } else { "  " };
                line += between;
                line += &if right[column] { gap + cell } else { cell.to_owned() + &gap };
            }
            line.trim_end().to_owned()
        };
        // Headings are broken like cells: one may be wider than its column has become.
        let broken = |cells: &mut dyn Iterator<Item = &str>| -> Vec<String> {
            let cells: Vec<Vec<String>> = cells.zip(&widths).map(|(cell, width)| lines(cell, *width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            (0..height).map(|at| line(&mut cells.iter().map(|cell| cell.get(at).map_or("", String::as_str)))).collect()
        };
        let headings = broken(&mut headings.iter().copied()).into_iter().map(|line| style.heading(&line));
        let rows = self.rows.iter().flat_map(|row| broken(&mut row.iter().map(String::as_str)));
        headings.chain(rows).map(|line| line + "\n").collect()
    }
}

/// Narrows the widest columns of text until a row fits `limit`, two columns between each; numbers keep their width.
fn shrink(widths: &mut [usize], right: &[bool], limit: usize) {
    let gaps = 2 * widths.len().saturating_sub(1);
    loop {
        let total = widths.iter().sum::<usize>() + gaps;
        let texts = widths.iter_mut().zip(right).filter(|(width, right)| !**right && **width > MIN_COLUMN);
        match texts.max_by_key(|(width, _)| **width) {
            Some((widest, _)) if total > limit => *widest -= 1,
            _ => return,
        }
    }
}

/// `name  value` lines; a value that is too wide for standard output goes on below itself.
pub fn facts(style: Style, facts: &[(&str, String)]) -> String {
    facts_within(style, facts, columns())
}

fn facts_within(style: Style, facts: &[(&str, String)], limit: usize) -> String {
    let names = facts.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in facts {
        let gap = " ".repeat(names - width(name));
        let value: String = value.chars().map(|c| if c.is_control() { '·' } else { c }).collect();
        let value = lines(&value, limit.saturating_sub(names + 2).max(MIN_COLUMN)).join(&format!("\n{}", " ".repeat(names + 2)));
        text += &format!("{}{gap}  {value}\n", style.heading(name));
    }
    text
}

/// Bytes as people say them: `812 B`, `4.6 MB`.
pub fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_no_line_ends_in_spaces() {
        let mut table = Table::new(&["country", ">servers", "note"]);
        table.row(vec!["KE".into(), "21".into(), "é".into()]);
        table.row(vec!["(other)".into(), "1007".into(), String::new()]);
        assert_eq!(table.text(Style::Plain), "country  servers  note\nKE            21  é\n(other)     1007\n");
        assert!(table.text(Style::Coloured).starts_with("\x1b[1mcountry"));
        assert_eq!(Table::new(&["a"]).text(Style::Plain), "");
    }

    #[test]
    fn what_is_too_wide_is_broken_inside_its_column() {
        let mut table = Table::new(&["organisation", ">servers", "address"]);
        table.row(vec![
            "The University of Dar es Salaam".into(),
            "1007".into(),
            "/ip4/127.10.0.1/tcp/4817/p2p/12D3KooWG4kFggyG5Aq8".into(),
        ]);
        for limit in [60, 80, 100] {
            let text = table.text_within(Style::Plain, limit);
            assert!(text.lines().all(|line| width(line) <= limit), "{limit}:\n{text}");
            let whole: String = text.split_whitespace().collect();
            assert!(limit < 100 || whole.contains("/ip4/127.10.0.1/tcp/4817/p2p/12D3KooWG4kFggyG5Aq8"), "{text}");
        }
        let mut headed = Table::new(&["what one web is like", "within 20 % and 50 % of the load"]);
        headed.row(vec!["a".into(), "both".into()]);
        assert_eq!(
            headed.text_within(Style::Plain, 30),
            "what one web    within 20 %\nis like         and 50 % of\n                the load\na               both\n"
        );
        let narrow = table.text_within(Style::Plain, 60);
        assert!(narrow.lines().count() > 2 && narrow.contains("1007"), "{narrow}");
        let facts = facts_within(Style::Plain, &[("because", "word ".repeat(30).trim_end().to_owned())], 40);
        assert!(
            facts.lines().all(|line| width(line) <= 40) && facts.lines().skip(1).all(|line| line.starts_with("         word")),
            "{facts}"
        );
        assert_eq!(lines("", 5), [""]);
        assert_eq!(lines("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
    }

    #[test]
    fn servers_cannot_command_the_terminal() {
        let mut table = Table::new(&["software"]);
        table.row(vec!["ngi\x1b[2Jnx\n".into()]);
        assert_eq!(table.text(Style::Plain), "software\nngi·[2Jnx·\n");
        assert_eq!(facts(Style::Plain, &[("a", "\x07".into())]), "a  ·\n");
    }

    #[test]
    fn bytes_read_naturally() {
        for (count, text) in [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (999_600, "1.0 MB"), (4_812_233, "4.8 MB")] {
            assert_eq!(bytes(count), text);
        }
    }
}
