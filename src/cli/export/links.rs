//! `export links`: what a host links to, as rows of hosts or of pages.
//!
//! An owner tells links by numbers, and says once what each number means. Here they get their names; what is remembered are the names of
//! one host at a time.

use super::column::{Column, Row, flag, int, text};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::LinkRow,
    url::{Host, PageUrl},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The columns of links from host to host, and behind them the rest.
pub const HOST_COLUMNS: [Column; 8] = [
    text("access_point"),
    text("host").called("url_host_name"),
    int("run"),
    text("run_state"),
    text("to_host"),
    int("pages"),
    int("links"),
    flag("in_scope"),
];

/// The same of links from page to page.
pub const PAGE_COLUMNS: [Column; 8] = [
    text("access_point"),
    text("host").called("url_host_name"),
    int("run"),
    text("run_state"),
    text("url"),
    text("to_host"),
    text("to_url"),
    flag("in_scope"),
];

/// Names of one host's links that are remembered, at most, and their bytes.
const MAX_NAMES: usize = 8 << 20;
const MAX_TEXT: usize = 512 << 20;

/// Hosts that one host links to, at most.
const MAX_TARGETS: usize = 1 << 20;

/// A link of a page: where it leads, as far as that is known.
pub struct Link<'a> {
    pub to_host: Option<&'a str>,
    /// None of what lies out of scope: there only hosts are on record.
    pub to_url: Option<&'a str>,
    pub in_scope: bool,
}

/// What the numbers of one host's links mean.
#[derive(Default)]
struct Names {
    text: String,
    ends: Vec<(u32, u32)>,
    of: HashMap<u64, u32>,
}

impl Names {
    fn enter(&mut self, number: u64, name: &str) {
        let has_room = self.ends.len() < MAX_NAMES && self.text.len() + name.len() <= MAX_TEXT;
        if has_room && !self.of.contains_key(&number) {
            self.of.insert(number, self.ends.len() as u32);
            let start = self.text.len() as u32;
            self.text.push_str(name);
            self.ends.push((start, self.text.len() as u32));
        }
    }

    fn get(&self, number: u64) -> Option<&str> {
        let (start, end) = self.ends[*self.of.get(&number)? as usize];
        Some(&self.text[start as usize..end as usize])
    }
}

/// Links to one host.
#[derive(Clone, Copy, Default)]
struct Target {
    pages: u64,
    links: u64,
    in_scope: bool,
    /// The page that was counted last.
    last: u64,
}

/// The links of a host, one row of its journal after the other.
pub struct Links {
    by_page: bool,
    host: Option<(AccessPoint, Host)>,
    run: u32,
    state: Value,
    names: Names,
    targets: BTreeMap<String, Target>,
    pages: u64,
    /// Links whose target has no name on record, of all hosts.
    pub unnamed: u64,
    /// Links to hosts beyond the limit, of all hosts.
    pub not_counted: u64,
}

impl Links {
    pub fn new(by_page: bool) -> Links {
        Links {
            by_page,
            host: None,
            run: 0,
            state: Value::Null,
            names: Names::default(),
            targets: BTreeMap::new(),
            pages: 0,
            unnamed: 0,
            not_counted: 0,
        }
    }

    /// Whether each link is a row.
    pub fn is_by_page(&self) -> bool {
        self.by_page
    }

    /// Takes in a row as its owner tells it. Passes each link on if they are wanted page by page; false if it is no row of links.
    pub fn take<E>(&mut self, owner: AccessPoint, row: Row, each: impl FnMut(&PageUrl, Link<'_>) -> Result<(), E>) -> Result<bool, E> {
        let Ok(row) = serde_json::from_value::<LinkRow>(Value::Object(row)) else { return Ok(false) };
        let of_host = row.url.as_ref().is_none_or(|url| url.host_str() == row.host.as_str());
        if !of_host || row.names.len() != row.named.0.len() || !row.names.iter().all(|name| self.is_name(name)) {
            return Ok(false);
        }
        if self.host.as_ref().is_none_or(|(_, host)| *host != row.host) {
            self.forget();
            self.host = Some((owner, row.host.clone()));
        }
        self.run = row.run;
        self.state = json!(row.run_state);
        for (number, name) in row.named.0.iter().zip(&row.names) {
            self.names.enter(*number, name);
        }
        if self.by_page { self.pass_on(&row, each) } else { Ok(self.count(&row)) }
    }

    fn is_name(&self, name: &str) -> bool {
        if self.by_page { PageUrl::parse(name).is_ok_and(|url| url.as_str() == name) } else { name.parse::<Host>().is_ok() }
    }

    fn pass_on<E>(&mut self, row: &LinkRow, mut each: impl FnMut(&PageUrl, Link<'_>) -> Result<(), E>) -> Result<bool, E> {
        let Some(url) = &row.url else { return Ok(true) };
        let own = row.host.as_str();
        let children = row.children.0.iter().map(|number| (*number, Some(own)));
        for (number, host) in children.chain(row.elsewhere.0.iter().map(|number| (*number, None))) {
            let to_url = self.names.get(number);
            self.unnamed += u64::from(to_url.is_none());
            let named = to_url.and_then(|url| PageUrl::parse(url).ok());
            let to_host = named.as_ref().map(PageUrl::host_str).or(host);
            each(url, Link { to_host, to_url, in_scope: true })?;
        }
        for host in &row.beyond {
            each(url, Link { to_host: Some(host.as_str()), to_url: None, in_scope: false })?;
        }
        Ok(true)
    }

    fn count(&mut self, row: &LinkRow) -> bool {
        if row.url.is_none() {
            return true;
        }
        self.pages += u64::from(!row.goes_on);
        let page = self.pages;
        let own = row.host.as_str().to_owned();
        self.target(&own, row.internal, true, page);
        for number in &row.elsewhere.0 {
            match self.names.get(*number).map(str::to_owned) {
                Some(host) => self.target(&host, 1, true, page),
                None => self.unnamed += 1,
            }
        }
        row.beyond.iter().for_each(|host| self.target(host.as_str(), 0, false, page));
        true
    }

    fn target(&mut self, host: &str, links: u64, in_scope: bool, page: u64) {
        if links == 0 && in_scope {
            return;
        }
        if !self.targets.contains_key(host) {
            if self.targets.len() >= MAX_TARGETS {
                self.not_counted += links.max(1);
                return;
            }
            self.targets.insert(host.to_owned(), Target { in_scope, ..Target::default() });
        }
        let Some(target) = self.targets.get_mut(host) else { return };
        target.links = target.links.saturating_add(links);
        target.in_scope |= in_scope;
        target.pages += u64::from(std::mem::replace(&mut target.last, page) != page);
    }

    /// What all rows of a row of its owner begin with.
    pub fn head(owner: AccessPoint, row: &Row) -> Row {
        let mut head = Row::new();
        head.insert("access_point".to_owned(), Value::String(owner.to_string()));
        for name in ["host", "run", "run_state"] {
            head.extend(row.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        head
    }

    /// A row of a link.
    pub fn page_row(head: &Row, url: &PageUrl, link: &Link<'_>) -> Row {
        let mut row = head.clone();
        row.insert("url".to_owned(), Value::String(url.as_str().to_owned()));
        row.insert("to_host".to_owned(), json!(link.to_host));
        row.insert("to_url".to_owned(), json!(link.to_url));
        row.insert("in_scope".to_owned(), Value::Bool(link.in_scope));
        row
    }

    /// The host has no more rows: those of its links from host to host. Of hosts out of scope only pages are counted.
    pub fn end(&mut self) -> Vec<Row> {
        let Some((owner, host)) = self.host.clone() else { return Vec::new() };
        let row = |(to_host, target): (&String, &Target)| {
            let links = if target.in_scope { json!(target.links) } else { Value::Null };
            let row = json!({
                "access_point": owner.to_string(), "host": host, "run": self.run, "run_state": self.state, "to_host": to_host,
                "pages": target.pages, "links": links, "in_scope": target.in_scope,
            });
            if let Value::Object(row) = row { row } else { Row::new() }
        };
        let rows = self.targets.iter().map(row).collect();
        self.forget();
        rows
    }

    /// What came of the present host does not count.
    pub fn forget(&mut self) {
        (self.host, self.pages) = (None, 0);
        self.targets.clear();
        self.names = Names::default();
    }
}
