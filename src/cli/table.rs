//! How do rows become something that people like to read? As aligned columns, and as plain ones when nobody looks.

use std::io::IsTerminal;

/// Whether headings are set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With escape sequences.
    Coloured,
    /// Without.
    Plain,
}

impl Style {
    /// What fits standard output: plain in a pipe, on a dumb terminal, or if NO_COLOR is set.
    pub fn of_stdout() -> Style {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb { Style::Coloured } else { Style::Plain }
    }

    /// A heading.
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
    /// An empty one.
    pub fn new(headings: &[&str]) -> Table {
        Table { headings: headings.iter().map(|heading| (*heading).to_owned()).collect(), rows: Vec::new() }
    }

    /// One more row, with as many cells as there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        // What web servers and registries say about themselves ends up here: it must not command the terminal.
        self.rows.push(cells.iter().map(|cell| cell.chars().map(|c| if c.is_control() { '·' } else { c }).collect()).collect());
    }

    /// The text, each line with its end; nothing at all without rows.
    pub fn text(&self, style: Style) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let width = |text: &str| text.chars().count();
        let right: Vec<bool> = self.headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings: Vec<&str> = self.headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
        let widths: Vec<usize> = (0..headings.len())
            .map(|column| self.rows.iter().map(|row| width(&row[column])).chain([width(headings[column])]).max().unwrap_or(0))
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (column, cell) in cells.enumerate() {
                let gap = " ".repeat(widths[column] - width(cell));
                let between = if column == 0 { "" } else { "  " };
                line += between;
                line += &if right[column] { gap + cell } else { cell.to_owned() + &gap };
            }
            line.trim_end().to_owned()
        };
        let mut text = style.heading(&line(&mut headings.iter().copied())) + "\n";
        for row in &self.rows {
            text += &line(&mut row.iter().map(String::as_str));
            text.push('\n');
        }
        text
    }
}

/// `name  value` lines.
pub fn facts(style: Style, facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in facts {
        let gap = " ".repeat(width - name.chars().count());
        let value: String = value.chars().map(|c| if c.is_control() { '·' } else { c }).collect();
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
