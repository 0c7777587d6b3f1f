//! `servers`: the servers that the swarm has on record, as a table for people.
//!
//! They come from the owners, through the daemon on this machine or through any member.

use super::{
    error::CommandError,
    json,
    owners::Source,
    table::{Style, Table, bytes, paragraph},
    walk::{each_row, not_whole},
};
use crate::node::clock;
use clap::{Args, ValueEnum};
use nearcrawl_model::{
    access_point::AccessPoint,
    record::ServerStatus,
    server_rows::RowsOf,
    time::WallTime,
    url::Host,
    view::{Span, counted},
};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Shown under `servers --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl servers\n  \
    nearcrawl servers --country ke,tz --sort pages --limit 20\n  \
    nearcrawl servers --status down,refused --software nginx --limit 0\n  \
    nearcrawl servers --tld ke --json\n  \
    nearcrawl servers --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    Each owner is asked for its servers; if one does not answer, the others' are shown, and the exit code is 69. For all columns and many \
    servers there is `nearcrawl export servers`.";

/// The arguments of `servers`.
#[derive(Args, Clone, Debug)]
pub struct ServersArgs {
    /// Only servers in these countries, like ke,tz
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    country: Vec<String>,
    /// Only servers under these top-level domains
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tld: Vec<String>,
    /// Only servers with one of these statuses
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status)]
    status: Vec<ServerStatus>,
    /// Only servers whose software has this in its name
    #[arg(long, value_name = "TEXT")]
    software: Option<String>,
    /// In which order: texts from a on, numbers and times from the greatest on
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
    sort: Sort,
    /// The other way round
    #[arg(long)]
    reverse: bool,
    /// How many are shown; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
    /// Print the records as JSON
    #[arg(long)]
    json: bool,
}

/// By what servers are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The name.
    #[default]
    Host,
    /// The country that the address is registered in.
    Country,
    /// The status.
    Status,
    /// The software.
    Software,
    /// HTML pages.
    Pages,
    /// Size of the pages.
    Size,
    /// Requests in the last run.
    Requests,
    /// Requests without a usable answer.
    Failed,
    /// External hosts that it links to.
    Links,
    /// When it was visited last.
    Visited,
}

impl Sort {
    fn column(self) -> &'static str {
        match self {
            Sort::Host => "host",
            Sort::Country => "country",
            Sort::Status => "status",
            Sort::Software => "software",
            Sort::Pages => "pages",
            Sort::Size => "page_bytes",
            Sort::Requests => "requests",
            Sort::Failed => "failed",
            Sort::Links => "external_hosts",
            Sort::Visited => "last_visit_at",
        }
    }

    /// The order of two servers; of equal ones that of their names.
    fn order(self, one: &Server, other: &Server) -> Ordering {
        let column = self.column();
        let by_column = match self {
            Sort::Host => Ordering::Equal,
            Sort::Country | Sort::Status | Sort::Software => {
                // What is not known comes last.
                let text = |server: &Server| server.text(column).map_or((true, String::new()), |text| (false, text.to_lowercase()));
                text(one).cmp(&text(other))
            }
            // Moments are written so that their texts have their order.
            Sort::Visited => other.text(column).cmp(&one.text(column)),
            Sort::Pages | Sort::Size | Sort::Requests | Sort::Failed | Sort::Links => other.number(column).cmp(&one.number(column)),
        };
        by_column.then_with(|| one.text("host").cmp(&other.text("host")))
    }
}

/// A record as its owner tells it, with the owner.
struct Server(Map<String, Value>);

impl Server {
    fn read(owner: AccessPoint, row: &str) -> Option<Server> {
        let Value::Object(mut row) = serde_json::from_str(row).ok()? else { return None };
        row.get("host")?.as_str()?.parse::<Host>().ok()?;
        row.insert("access_point".to_owned(), Value::String(owner.to_string()));
        Some(Server(row))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    fn is_wanted(&self, args: &ServersArgs) -> bool {
        let among = |wanted: &[String], value: Option<&str>| {
            wanted.is_empty() || value.is_some_and(|value| wanted.iter().any(|one| one.trim_start_matches('.').eq_ignore_ascii_case(value)))
        };
        let host = self.text("host").and_then(|host| host.parse::<Host>().ok());
        let status = self.0.get("status").and_then(|status| serde_json::from_value::<ServerStatus>(status.clone()).ok());
        let software = |wanted: &String| self.text("software").is_some_and(|it| it.to_lowercase().contains(&wanted.to_lowercase()));
        among(&args.country, self.text("country"))
            && among(&args.tld, host.as_ref().and_then(Host::tld))
            && (args.status.is_empty() || status.is_some_and(|status| args.status.contains(&status)))
            && args.software.as_ref().is_none_or(software)
    }
}

/// The servers that are wanted, the first of their order.
struct Chosen<'a> {
    args: &'a ServersArgs,
    servers: Vec<Server>,
    asked: u64,
    wanted: u64,
}

impl Chosen<'_> {
    /// False of what is no row.
    fn take(&mut self, owner: AccessPoint, row: &str) -> bool {
        let Some(server) = Server::read(owner, row) else { return false };
        self.asked += 1;
        if !server.is_wanted(self.args) {
            return true;
        }
        self.wanted += 1;
        self.servers.push(server);
        // Of more than are shown only the first are kept.
        if self.args.limit > 0 && self.servers.len() >= self.args.limit.saturating_mul(2).max(1_000) {
            self.sort();
        }
        true
    }

    fn sort(&mut self) {
        let ServersArgs { sort, reverse, limit, .. } = self.args;
        self.servers.sort_by(|one, other| if *reverse { sort.order(other, one) } else { sort.order(one, other) });
        if *limit > 0 {
            self.servers.truncate(*limit);
        }
    }
}

/// Asks all owners, and prints what is wanted. What is missing is an error, behind what is there.
pub async fn servers(args: &ServersArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let mut source = Source::of(args.member.as_deref(), args.api.as_deref()).await?;
    let mut chosen = Chosen { args, servers: Vec::new(), asked: 0, wanted: 0 };
    let missing = each_row(&mut source, RowsOf::Servers, |owner, row| chosen.take(owner, row)).await?;
    chosen.sort();
    let text = if args.json { json(&chosen.servers.iter().map(|server| &server.0).collect::<Vec<_>>())? } else { told(&chosen, style) };
    Ok((text, not_whole(&missing)))
}

fn told(chosen: &Chosen<'_>, style: Style) -> String {
    let mut table = Table::new(&["host", "country", "status", ">pages", ">size", ">failed", "software", ">visited", "owner"]);
    let now = clock::now().wall.0;
    for server in &chosen.servers {
        let text = |name: &str| server.text(name).unwrap_or("").to_owned();
        let visited = server.text("last_visit_at").and_then(|at| at.parse::<WallTime>().ok());
        let owner = server.text("access_point").and_then(|owner| owner.parse::<AccessPoint>().ok());
        table.row(vec![
            text("host"),
            text("country"),
            text("status"),
            server.number("pages").to_string(),
            bytes(server.number("page_bytes")),
            server.number("failed").to_string(),
            text("software"),
            visited.map_or("never".to_owned(), |at| format!("{} ago", Span(now.saturating_sub(at.0)))),
            owner.map_or_else(String::new, |owner| owner.short()),
        ]);
    }
    let shown = chosen.servers.len() as u64;
    let mut sum = format!("{} on record", counted(chosen.asked, "server"));
    if chosen.wanted != chosen.asked {
        sum = format!("{} of {sum}", chosen.wanted);
    }
    if shown < chosen.wanted {
        sum += &format!(", {shown} shown (--limit 0 shows all)");
    }
    table.text(style) + &paragraph(&sum)
}

fn status(text: &str) -> Result<ServerStatus, String> {
    serde_json::from_value(Value::String(text.to_ascii_lowercase()))
        .map_err(|_| "write up, no-pages, refused, robots, robots-unavailable, down or waiting".to_owned())
}
