//! The link graph as `lab cache` takes it: a file of links between numbered pages, and one of the pages' hosts.

use super::links::Link;
use nearcrawl_model::url::PageUrl;
use std::{
    collections::{HashMap, hash_map::RandomState},
    fs::File,
    hash::BuildHasher,
    io::{self, BufWriter, Write},
    path::Path,
};

/// Both files, while they are written. Pages have numbers in the order in which they come up; what is remembered of each is a number.
pub struct Trace {
    links: BufWriter<File>,
    hosts: BufWriter<File>,
    /// Two URLs have the same hash by one chance in 2^64.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
    /// Links that lead to no page on record.
    pub left_out: u64,
}

impl Trace {
    pub fn create(links: &Path, hosts: &Path) -> io::Result<Trace> {
        let create = |path: &Path| File::create(path).map(BufWriter::new);
        let (links, hosts) = (create(links)?, create(hosts)?);
        Ok(Trace { links, hosts, numbers: HashMap::new(), hasher: RandomState::new(), left_out: 0 })
    }

    /// Writes a link, if it leads to a page.
    pub fn add(&mut self, from: &PageUrl, link: &Link<'_>) -> io::Result<bool> {
        let (Some(to), Some(host)) = (link.to_url, link.to_host) else {
            self.left_out += 1;
            return Ok(false);
        };
        let from = self.number(from.as_str(), from.host_str())?;
        let to = self.number(to, host)?;
        writeln!(self.links, "{from}\t{to}")?;
        Ok(true)
    }

    fn number(&mut self, url: &str, host: &str) -> io::Result<u32> {
        let hash = self.hasher.hash_one(url);
        if let Some(number) = self.numbers.get(&hash) {
            return Ok(*number);
        }
        let number = u32::try_from(self.numbers.len()).map_err(|_| io::Error::other("there are more pages than numbers"))?;
        self.numbers.insert(hash, number);
        writeln!(self.hosts, "{number}\t{host}")?;
        Ok(number)
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.links.flush()?;
        self.hosts.flush()
    }
}
