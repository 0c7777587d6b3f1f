//! Graph of pages, with their links and sites, read from files, or made up in [`super::synthetic`].

use crate::reading::{InputError, Lines};
use csv::StringRecord;
use nearcrawl_model::view::counted;
use std::{collections::BTreeMap, io::Read};

/// The most pages: their numbers must be below.
pub const MAX_PAGES: usize = 1 << 26;

/// The most links.
pub(crate) const MAX_LINKS: usize = 1 << 27;

/// Pages, numbered from 0, with their links and sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Where the links of each page begin; one more at the end.
    begins: Vec<u32>,
    targets: Vec<u32>,
    site_of: Vec<u32>,
    sites: usize,
}

impl Graph {
    /// From links in any order (those of one page stay in theirs) and the site of each page; sites are numbered from 0.
    pub fn new(links: &[(u32, u32)], site_of: Vec<u32>) -> Graph {
        let mut begins = vec![0; site_of.len() + 1];
        links.iter().for_each(|(from, _)| begins[*from as usize + 1] += 1);
        for page in 0..site_of.len() {
            begins[page + 1] += begins[page];
        }
        let (mut free, mut targets) = (begins.clone(), vec![0; links.len()]);
        for (from, to) in links {
            let place = &mut free[*from as usize];
            targets[*place as usize] = *to;
            *place += 1;
        }
        let sites = site_of.iter().max().map_or(0, |site| *site as usize + 1);
        Graph { begins, targets, site_of, sites }
    }

    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.site_of.len()
    }

    /// How many links there are.
    pub fn link_count(&self) -> usize {
        self.targets.len()
    }

    /// How many sites there are.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// The site of a page.
    pub(crate) fn site_of(&self, page: u32) -> u32 {
        self.site_of[page as usize]
    }

    /// Where the links of a page lead, in their order on the page.
    pub fn links(&self, page: u32) -> &[u32] {
        &self.targets[self.begins[page as usize] as usize..self.begins[page as usize + 1] as usize]
    }
}

/// Reads links: page, tab, page. Lines with `#` at the beginning are remarks.
pub fn read_links(file: &str, input: impl Read) -> Result<Vec<(u32, u32)>, InputError> {
    let mut lines = Lines::tabbed(file, input);
    let (mut links, mut record) = (Vec::new(), StringRecord::new());
    while lines.next_into(&mut record)? {
        let [from, to] = cells(&lines, &record, "a link is two numbers of pages with a tab between them")?;
        if links.len() == MAX_LINKS {
            return Err(InputError::TooMany { file: file.to_owned(), most: MAX_LINKS, what: "links" });
        }
        links.push((page(&lines, from)?, page(&lines, to)?));
    }
    if links.is_empty() { Err(InputError::NoLinks { file: file.to_owned() }) } else { Ok(links) }
}

/// Reads hosts: page, tab, name. Gives the number of each page's host, for the pages that `links` are about.
pub fn read_sites(file: &str, input: impl Read, links_file: &str, links: &[(u32, u32)]) -> Result<Vec<u32>, InputError> {
    let pages = pages_of(links);
    let (mut sites, mut numbers) = (vec![None; pages], BTreeMap::new());
    let (mut lines, mut record) = (Lines::tabbed(file, input), StringRecord::new());
    while lines.next_into(&mut record)? {
        let [number, host] = cells(&lines, &record, "a line is the number of a page, a tab, and the name of its host")?;
        let number = page(&lines, number)? as usize;
        let next = numbers.len() as u32;
        let site = *numbers.entry(host.to_owned()).or_insert(next);
        // Pages without links on them or to them are no part of the crawl.
        if let Some(place) = sites.get_mut(number) {
            *place = Some(site);
        }
    }
    let mut linked = vec![false; pages];
    links.iter().flat_map(|(from, to)| [from, to]).for_each(|page| linked[*page as usize] = true);
    let no_host = |page| InputError::NoHost { file: file.to_owned(), page, links: links_file.to_owned() };
    // Numbers may have gaps: a page that no link is about needs no host.
    let mut all = Vec::with_capacity(pages);
    for (page, site) in sites.into_iter().enumerate() {
        match site {
            Some(site) => all.push(site),
            None if linked[page] => return Err(no_host(page)),
            None => all.push(0),
        }
    }
    Ok(all)
}

/// Sites where names are lost: so many neighbouring numbers each.
pub fn blocks(links: &[(u32, u32)], block: u32) -> Vec<u32> {
    (0..pages_of(links) as u32).map(|page| page / block.max(1)).collect()
}

fn pages_of(links: &[(u32, u32)]) -> usize {
    links.iter().map(|(from, to)| *from.max(to) as usize + 1).max().unwrap_or(0)
}

fn cells<'a, R: Read>(lines: &Lines<R>, record: &'a StringRecord, should: &str) -> Result<[&'a str; 2], InputError> {
    match (record.get(0), record.get(1), record.len()) {
        (Some(first), Some(second), 2) => Ok([first.trim(), second.trim()]),
        _ => Err(lines.bad(format!("{should}; this has {}", counted(record.len(), "cell")))),
    }
}

fn page<R: Read>(lines: &Lines<R>, cell: &str) -> Result<u32, InputError> {
    let page = cell.parse().ok().filter(|page| (*page as usize) < MAX_PAGES);
    page.ok_or_else(|| lines.bad(format!("{cell:?} is no number of a page from 0 to {}", MAX_PAGES - 1)))
}
