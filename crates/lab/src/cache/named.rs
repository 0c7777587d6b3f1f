//! Reads graphs in which pages have URLs instead of numbers: the lines of `crawl --links` and of `export links --by page`.

use super::graph::{Graph, MAX_LINKS, MAX_PAGES};
use crate::reading::{InputError, MAX_FILE};
use serde::Deserialize;
use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
};

/// A line; what else is in it does not matter here.
#[derive(Deserialize)]
struct Link<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    host: Cow<'a, str>,
    #[serde(borrow)]
    to_url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    to_host: Option<Cow<'a, str>>,
}

/// Numbers in the order in which names come up.
#[derive(Default)]
struct Numbers(BTreeMap<String, u32>);

impl Numbers {
    fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let next = self.0.len() as u32;
        self.0.insert(name.to_owned(), next);
        next
    }
}

/// Reads links as JSON lines. Pages are numbered as they come up, a site is a host, and links whose target has no URL on record are left out.
pub fn read_named(file: &str, input: impl Read) -> Result<Graph, InputError> {
    let bad = |line: u64, what: String| InputError::Line { file: file.to_owned(), line, what };
    let too_many = |most: usize, what| InputError::TooMany { file: file.to_owned(), most, what };
    let (mut pages, mut hosts, mut links, mut sites) = (Numbers::default(), Numbers::default(), Vec::new(), Vec::new());
    let mut input = BufReader::new(input.take(MAX_FILE));
    let (mut text, mut line) = (String::new(), 0);
    loop {
        text.clear();
        if input.read_line(&mut text).map_err(|error| InputError::Io { file: file.to_owned(), error })? == 0 {
            break;
        }
        line += 1;
        if input.get_ref().limit() == 0 && input.buffer().is_empty() {
            return Err(too_many(MAX_FILE as usize, "bytes"));
        }
        let link: Link = serde_json::from_str(&text)
            .map_err(|why| bad(line, format!("no link as `crawl --links` and `export links --by page` write them ({why})")))?;
        let (Some(to_url), Some(to_host)) = (link.to_url, link.to_host) else { continue };
        let mut page = |url: &str, host: &str| {
            let page = pages.of(url);
            if page as usize == sites.len() {
                sites.push(hosts.of(host));
            }
            page
        };
        links.push((page(&link.url, &link.host), page(&to_url, &to_host)));
        if sites.len() > MAX_PAGES {
            return Err(too_many(MAX_PAGES, "pages"));
        }
        if links.len() > MAX_LINKS {
            return Err(too_many(MAX_LINKS, "links"));
        }
    }
    if links.is_empty() { Err(InputError::NoLinks { file: file.to_owned() }) } else { Ok(Graph::new(&links, sites)) }
}
