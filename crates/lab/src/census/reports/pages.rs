//! Checks of rows of visits and of links, in each format; and of rows of servers and runs in Parquet.

use super::{asking::Asking, exports::plain, exports::runs, totals::csv_rows};
use crate::{
    census::{
        compare::Compared,
        parquet,
        reference::{self, Expected},
    },
    demo::daemons::DaemonError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Row = Map<String, Value>;

/// Rows by what tells them apart.
type Rows = BTreeMap<String, Row>;

/// The value of a column.
type Cell<'a> = &'a dyn Fn(&str) -> String;

/// An export: its arguments, what must be in it, and by which columns its rows are told apart.
struct Export {
    arguments: &'static [&'static str],
    expected: Rows,
    key: fn(Cell<'_>) -> String,
}

fn servers<'a>(asking: &Asking<'a>) -> impl Iterator<Item = &'a Expected> + use<'a> {
    asking.reference.run(asking.run).servers.values()
}

fn pages(asking: &Asking<'_>) -> Export {
    Export { arguments: &["pages"], expected: servers(asking).flat_map(Expected::page_rows).collect(), key: |cell| cell("url") }
}

fn links(asking: &Asking<'_>) -> [Export; 2] {
    let by_page = |cell: Cell<'_>| {
        let to_url = cell("to_url");
        format!("{} to {}", cell("url"), if to_url.is_empty() { cell("to_host") } else { to_url })
    };
    let expected = servers(asking).flat_map(Expected::page_links).collect();
    let of_pages = Export { arguments: &["links", "--by", "page"], expected, key: by_page };
    let by_host = |cell: Cell<'_>| format!("{} to {}", cell("host"), cell("to_host"));
    [Export { arguments: &["links"], expected: servers(asking).flat_map(Expected::host_links).collect(), key: by_host }, of_pages]
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}

impl Export {
    fn key_of(&self, row: &Row) -> String {
        (self.key)(&|name| row.get(name).map_or(String::new(), text))
    }

    /// Rows as they were found: each once, all of them and no other one.
    fn compare(&self, compared: &mut Compared, member: &str, found: Vec<Row>) {
        let cell = self.arguments.join(" ");
        compared.value(member, &format!("{cell} rows"), &json!(self.expected.len()), &json!(found.len()), false);
        let wrap = |(key, row): (String, Row)| (key, Value::Object(row));
        let found = found.into_iter().map(|row| wrap((self.key_of(&row), row))).collect();
        compared.rows(member, &cell, &self.expected.clone().into_iter().map(wrap).collect(), &found);
    }

    /// Asked for as lines of JSON and as CSV.
    async fn asked(&self, asking: &Asking<'_>, number: usize) -> Result<Compared, DaemonError> {
        let (mut compared, number) = (Compared::default(), asking.member(number));
        let member = asking.name(number);
        let arguments = [&["export"], self.arguments].concat();
        let lines = asking.swarm.lines(number, &arguments).await?;
        self.compare(&mut compared, &member, lines.into_iter().filter_map(|row| row.as_object().cloned()).collect());
        let said = asking.swarm.ask(number, &[&arguments[..], &["--format", "csv"]].concat()).await?;
        let mut rows: BTreeMap<String, _> = BTreeMap::new();
        for row in csv_rows(&said) {
            rows.insert((self.key)(&|name| row.get(name).cloned().unwrap_or_default()), row);
        }
        let cell = format!("{} (CSV)", self.arguments.join(" "));
        for (key, expected) in &self.expected {
            match rows.remove(key) {
                Some(row) => plain(&mut compared, &member, &format!("{cell} {key}"), expected, &row),
                None => compared.wrong(&member, format!("{cell} {key}"), "a row", "none"),
            }
        }
        rows.keys().for_each(|key| compared.wrong(&member, format!("{cell} {key}"), "no such row", "a row"));
        Ok(compared)
    }

    /// Asked for as a Parquet file, with the columns that only that has.
    async fn as_parquet(&self, asking: &Asking<'_>, number: usize) -> Result<Compared, DaemonError> {
        let (mut compared, number) = (Compared::default(), asking.member(number));
        let (member, file) = (asking.name(number), asking.swarm.common.directory.join("export.parquet"));
        let path = file.display().to_string();
        asking.swarm.ask(number, &[&["export"], self.arguments, &["--format", "parquet", "--out", &path]].concat()).await?;
        let read = std::fs::read(&file).map_err(|why| why.to_string()).and_then(|bytes| parquet::rows(&bytes));
        let Ok(rows) = read.inspect_err(|why| compared.wrong(&member, self.arguments.join(" "), "a Parquet file", why)) else {
            return Ok(compared);
        };
        let found = rows.into_iter().map(|row| self.without_own_names(asking, &mut compared, &member, row)).collect();
        self.compare(&mut compared, &member, found);
        Ok(compared)
    }

    /// A row as other formats have it. What is made of its host and URL is compared here.
    fn without_own_names(&self, asking: &Asking<'_>, compared: &mut Compared, member: &str, mut row: Row) -> Row {
        let host = row.remove("url_host_name").unwrap_or_default();
        if let Some(server) = host.as_str().and_then(|host| asking.reference.run(asking.run).servers.get(host)) {
            let surt = server.host.rsplit('.').collect::<Vec<_>>().join(",");
            let made = json!({"surt_host_name": surt, "url_host_tld": server.tld, "url_host_registered_domain": server.domain});
            compared.value(member, &format!("{} {}", self.arguments[0], server.host), &made, &Value::Object(row.clone()), false);
        }
        if let Some(url) = row.get("url").and_then(Value::as_str) {
            let (protocol, rest) = url.split_once("://").unwrap_or_default();
            let (path, query) =
                rest.split_once('/').map_or(("", None), |(_, path)| path.split_once('?').map_or((path, None), |(a, b)| (a, Some(b))));
            let port = rest.split('/').next().and_then(|authority| authority.rsplit_once(':')?.1.parse::<u16>().ok());
            let made = json!({"url_protocol": protocol, "url_port": port, "url_path": format!("/{path}"), "url_query": query});
            compared.value(member, url, &made, &Value::Object(row.clone()), false);
        }
        row.insert("host".to_owned(), host);
        let other = row.remove("other_json").and_then(|other| serde_json::from_str::<Row>(other.as_str()?).ok());
        row.extend(other.unwrap_or_default());
        row
    }
}

/// `export pages`.
pub(super) async fn of_pages(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    pages(&asking).asked(&asking, 3).await
}

/// `export links`, by host and by page.
pub(super) async fn of_links(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    for (number, export) in links(&asking).iter().enumerate() {
        compared.add(export.asked(&asking, number + 1).await?);
    }
    Ok(compared)
}

/// All exports with `--format parquet`.
pub(super) async fn in_parquet(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let rows = servers(&asking).map(|server| (server.host.clone(), server.server_cells())).collect();
    let of_servers = Export { arguments: &["servers"], expected: rows, key: |cell| cell("host") };
    let rows =
        runs(&asking).into_values().map(|server: &reference::Expected| (format!("{} {}", server.host, server.run), server.history_row()));
    let by_run = |cell: Cell<'_>| format!("{} {}", cell("host"), cell("run"));
    let of_runs = Export { arguments: &["history"], expected: rows.collect(), key: by_run };
    let mut compared = Compared::default();
    for (number, export) in [of_servers, of_runs, pages(&asking)].into_iter().chain(links(&asking)).enumerate() {
        compared.add(export.as_parquet(&asking, number).await?);
    }
    Ok(compared)
}
