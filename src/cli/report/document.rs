//! A report: one table of values with what must be known to read it, as text, CSV, JSON, SVG or one page of HTML.

use crate::cli::{
    chart::{Chart, STYLE, escaped},
    error::{CommandError, Exit},
    table::{Style, Table, paragraph},
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A count.
    Count(u64),
    /// A share, from 0 to 1.
    Share(f64),
    /// Milliseconds.
    Millis(f64),
    /// Not known.
    Nothing,
}

impl Cell {
    fn for_people(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Share(share) => format!("{:.1} %", 100.0 * share),
            Cell::Millis(ms) => format!("{ms:.1}"),
            Cell::Nothing => "–".to_owned(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Cell::Text(text) => Value::from(text.clone()),
            Cell::Count(count) => Value::from(*count),
            Cell::Share(share) => Value::from((share * 1e6).round() / 1e6),
            Cell::Millis(ms) => Value::from((ms * 1e3).round() / 1e3),
            Cell::Nothing => Value::Null,
        }
    }
}

/// A column: as programs name it, and as people do; one without a name for people is not shown to them.
pub type Column = (&'static str, &'static str);

/// A report.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about.
    pub title: String,
    /// How the values came about, in sentences.
    pub method: String,
    /// What must be known of the data: names and values.
    pub facts: Vec<(&'static str, String)>,
    /// The same for programs.
    pub data: Map<String, Value>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// The figures.
    pub charts: Vec<Chart>,
}

/// What each row of a CSV says of the whole report, behind its own values: a file of rows alone would not say what they are of.
const ABOUT: [&str; 9] =
    ["report", "survey", "first_run", "last_run", "first_visit_at", "last_visit_at", "hierarchy", "coverage_text", "method_text"];

/// As one cell of a CSV.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.chars().filter(|c| !c.is_control()).collect(),
        other => other.to_string(),
    }
}

impl Document {
    /// The values of [`ABOUT`].
    fn about(&self) -> [String; ABOUT.len()] {
        let datum = |name: &str| self.data.get(name).map(plain).unwrap_or_default();
        let runs = self.data.get("runs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let run = |run: Option<&Value>| run.map(plain).unwrap_or_default();
        let told = |(name, value): &(&'static str, String)| match *name {
            "time span" | "run" | "hierarchy" | "survey" => None,
            name => Some(format!("{name}: {value}")),
        };
        let coverage = self.facts.iter().filter_map(told).collect::<Vec<_>>().join("; ");
        [
            self.name.to_owned(),
            datum("survey"),
            run(runs.first()),
            run(runs.last()),
            datum("first_visit_at"),
            datum("last_visit_at"),
            datum("hierarchy"),
            plain(&Value::from(coverage)),
            self.method.clone(),
        ]
    }

    /// The columns that people see.
    fn shown(&self) -> Vec<(usize, &'static str)> {
        self.columns.iter().enumerate().filter(|(_, (_, title))| !title.is_empty()).map(|(number, (_, title))| (number, *title)).collect()
    }

    /// Whether a column has words, which begin at its left.
    fn is_of_words(&self, column: usize) -> bool {
        self.rows.iter().any(|row| matches!(row[column], Cell::Text(_)))
    }

    /// For a terminal.
    pub fn text(&self, style: Style) -> String {
        let shown = self.shown();
        let heads: Vec<String> =
            shown.iter().map(|(n, title)| if self.is_of_words(*n) { (*title).to_owned() } else { format!(">{title}") }).collect();
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| table.row(shown.iter().map(|(n, _)| row[*n].for_people()).collect()));
        let rows = if self.rows.is_empty() { "no server on record has what this report is about\n".to_owned() } else { table.text(style) };
        let facts: String = self.facts.iter().map(|(name, value)| paragraph(&format!("{name}: {value}"))).collect();
        format!("{}\n\n{rows}\n{facts}{}", style.heading(&self.title), paragraph(&format!("method: {}", self.method)))
    }

    /// One line for each row; values without units, then what the report is of.
    pub fn csv(&self) -> Result<String, CommandError> {
        let failed = |why: &dyn std::fmt::Display| CommandError::new(Exit::Internal, format!("the report cannot be written as CSV: {why}"));
        let mut writer = csv::Writer::from_writer(Vec::new());
        let about = self.about();
        writer.write_record(self.columns.iter().map(|(name, _)| name).chain(&ABOUT)).map_err(|why| failed(&why))?;
        for row in &self.rows {
            let cells = row.iter().map(|cell| plain(&cell.value()));
            writer.write_record(cells.chain(about.iter().cloned())).map_err(|why| failed(&why))?;
        }
        let bytes = writer.into_inner().map_err(|why| failed(&why))?;
        String::from_utf8(bytes).map_err(|why| failed(&why))
    }

    /// Everything but the figures.
    pub fn json(&self) -> Value {
        let row = |row: &Vec<Cell>| -> Map<String, Value> {
            self.columns.iter().zip(row).map(|((name, _), cell)| ((*name).to_owned(), cell.value())).collect()
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        json!({ "report": self.name, "title": self.title, "method_text": self.method, "data": self.data, "rows": rows })
    }

    /// The first figure, which stands for the report, with what must be known of its data below it; nothing if there is nothing to draw.
    pub fn svg(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!("{name}: {value}"));
        let caption: Vec<String> = facts.chain([format!("method: {}", self.method)]).collect();
        self.charts.first().map(|chart| chart.svg_with(self.name, &caption)).unwrap_or_default()
    }

    /// One page without anything from elsewhere.
    pub fn html(&self) -> String {
        let mut page = page_head(&self.title);
        let _ = write!(page, "<main>\n<h1>{}</h1>\n", escaped(&self.title));
        for (number, chart) in self.charts.iter().enumerate() {
            let _ = writeln!(page, "<figure>{}</figure>", chart.svg(&format!("{}-{number}", self.name)));
        }
        page += "<h2>Values</h2>\n";
        page += &self.html_table();
        let _ = writeln!(page, "<h2>Method</h2>\n<p>{}</p>\n<h2>Data</h2>\n<dl>", escaped(&self.method));
        for (name, value) in &self.facts {
            let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
        }
        page + "</dl>\n</main>\n</body>\n</html>\n"
    }

    fn html_table(&self) -> String {
        if self.rows.is_empty() {
            return "<p>No server on record has what this report is about.</p>\n".to_owned();
        }
        let mut table = format!("<div class=\"wide\"><table>\n<caption>{}</caption>\n<thead><tr>", escaped(&self.title));
        let shown = self.shown();
        for (number, title) in &shown {
            let class = if self.is_of_words(*number) { " class=\"word\"" } else { "" };
            let _ = write!(table, "<th scope=\"col\"{class}>{}</th>", escaped(title));
        }
        table += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            table += "<tr>";
            for (number, cell) in shown.iter().map(|(number, _)| (*number, &row[*number])) {
                let text = escaped(&cell.for_people());
                let _ = match (number, cell) {
                    (0, _) => write!(table, "<th scope=\"row\">{text}</th>"),
                    (_, Cell::Text(_)) => write!(table, "<td class=\"word\">{text}</td>"),
                    _ => write!(table, "<td>{text}</td>"),
                };
            }
            table += "</tr>\n";
        }
        table + "</tbody></table></div>\n"
    }
}

/// The beginning of a page, up to its body.
pub fn page_head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{STYLE}\n{PAGE_STYLE}</style>\n</head>\n<body>\n",
        escaped(title)
    )
}

/// What pages look like, on screens and on paper.
const PAGE_STYLE: &str = "\
:root{--page:#fff;--text:#1d232b;--quiet:#55606d;--rule:#dfe3e8}\
@media (prefers-color-scheme:dark){:root{--page:#14181d;--text:#e8ecf1;--quiet:#a9b4c0;--rule:#3a434e}}\
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 'DejaVu Sans',Verdana,sans-serif}\
main{max-width:62rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}\
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem}\
figure{margin:1rem 0 1.5rem}figure svg{width:100%;height:auto;border:1px solid var(--rule)}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}\
caption{text-align:left;color:var(--quiet);padding-bottom:.5rem}\
th,td{padding:.3rem .75rem .3rem 0;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top}\
th[scope=row],.word{text-align:left}td:not(.word){white-space:nowrap}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dt{color:var(--quiet)}dd{margin:0;overflow-wrap:anywhere}\
blockquote{margin:.5rem 0 .5rem 0;padding-left:1rem;border-left:3px solid var(--rule);color:var(--quiet)}\
@media (max-width:40rem){dl{display:block}dd{margin-bottom:.5rem}}\
@media print{:root{--page:#fff;--text:#000;--quiet:#333;--rule:#bbb}body{font-size:10pt}main{max-width:none;padding:0}\
figure,tr,dt,dd{break-inside:avoid}h2,h3{break-after:avoid}thead{display:table-header-group}}";
