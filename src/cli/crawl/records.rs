//! The records of `--out`: one a server, as soon as it has finished.
//!
//! A server that goes on, because a page of another one names something new there, gets another line, and the last one counts. When the
//! crawl ends a file has one line a server.

use super::{outputs::Sink, rows::line_of};
use nearcrawl_model::{record::ServerRecord, url::Host};
use serde::Deserialize;
use std::{
    borrow::Cow,
    collections::{BTreeMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    io,
};

/// Where they go.
pub(super) struct Records {
    sink: Sink,
    /// The hash of the last line of each server.
    told: BTreeMap<String, u64>,
    /// Whether the file has a line that is not the last one of its server.
    is_repeated: bool,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    host: Cow<'a, str>,
}

impl Records {
    pub(super) fn new(sink: Sink) -> Records {
        Records { sink, told: BTreeMap::new(), is_repeated: false }
    }

    /// Takes over what a file has of these servers.
    pub(super) fn begin(&mut self, is_known: impl Fn(&str) -> bool) -> io::Result<()> {
        let (told, is_repeated) = (&mut self.told, &mut self.is_repeated);
        self.sink.begin(|line| {
            let host = serde_json::from_slice::<Named<'_>>(line).ok().map(|named| named.host).filter(|host| is_known(host));
            if let Some(host) = &host {
                *is_repeated |= told.insert(host.clone().into_owned(), hash_of(line)).is_some();
            }
            host.is_some()
        })
    }

    /// A server has finished, for now.
    pub(super) fn tell(&mut self, record: &ServerRecord) -> io::Result<()> {
        let Some(line) = line_of(record) else { return Ok(()) };
        let hash = hash_of(&line);
        match self.told.insert(record.host.to_string(), hash) {
            Some(before) if before == hash => return Ok(()),
            before => self.is_repeated |= before.is_some(),
        }
        self.sink.write(line)
    }

    /// Tells those that had not finished, and leaves one line a server in a file.
    pub(super) fn finish(&mut self, records: &[ServerRecord]) -> io::Result<()> {
        for record in records {
            self.tell(record)?;
        }
        let are_all: bool = self.told.len() == records.len();
        if self.sink.is_file() && (self.is_repeated || !are_all) {
            self.sink.replace(|to| records.iter().try_for_each(|record| to.write_all(&line_of(record).unwrap_or_default())))?;
        }
        self.sink.finish()
    }

    pub(super) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    pub(super) fn sink_as_it_is(&self) -> &Sink {
        &self.sink
    }
}

/// Whether a server's last line is this one is all that is asked: Host names are not chosen to collide under this process's seed.
fn hash_of(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Of records that were written while a crawl went on, the last one of each server.
pub(in crate::cli) fn last_of_each(records: Vec<ServerRecord>) -> Vec<ServerRecord> {
    let last: BTreeMap<Host, usize> = records.iter().enumerate().map(|(place, record)| (record.host.clone(), place)).collect();
    let is_last = |(place, record): &(usize, ServerRecord)| last.get(&record.host) == Some(place);
    records.into_iter().enumerate().filter(is_last).map(|(_, record)| record).collect()
}
