//! Files that figures are drawn from, by name, checksum and licence.
//!
//! Those that are there are the very ones, or it is said that they are not.

use crate::{
    cli::error::{CommandError, Exit},
    io::text,
};
use sha2::{Digest, Sha256};
use std::{
    io::{self, BufRead},
    path::{Path, PathBuf},
};

/// A file.
struct Source {
    name: &'static str,
    /// Of its content, unpacked.
    sha256: &'static str,
    licence: &'static str,
    what: &'static str,
}

/// The rows of a crawl, which may be those of another one.
const SERVERS: &str = "servers.jsonl";

/// The round-trip times of RIPE Atlas, their nodes, a web graph, and what a crawl of real pages left on record.
const SOURCES: [Source; 4] = [
    Source {
        name: "nodes.csv",
        sha256: "ab472a89ec5c9d0e31668c4bb6c0522440be7d59100c5b6396b0fa1661557b20",
        licence: "MIT; RIPE NCC attribution",
        what: "RIPE Atlas anchors, 2023-01-01: addresses and places",
    },
    Source {
        name: "rtt_min_ms.csv.zst",
        sha256: "1a0371b388d70055546292958e071fe62404c23e0ae60459c5b3de64b78bc3f2",
        licence: "MIT; RIPE NCC attribution",
        what: "the least round-trip times between them in a week",
    },
    Source {
        name: SERVERS,
        sha256: "c8a211d9d154be347e0022b8a7705cef834daffd5e06f32f63b627881151ce3f",
        licence: "CC0",
        what: "export servers of five daemons that crawled Debian's documentation",
    },
    Source {
        name: "cnr-2000.edges.tsv.zst",
        sha256: "db55a42aeba48ffea2a740285d9df875112869cd8fc7d7af65867f9414d72f41",
        licence: "research use with citation; not shipped",
        what: "web graph cnr-2000 of the Laboratory for Web Algorithmics, https://law.di.unimi.it/webdata/cnr-2000/, as source, tab, target",
    },
];

/// What is there.
#[derive(Debug)]
pub(super) struct Data {
    there: [Option<PathBuf>; 4],
    /// Whether rows of another crawl were named.
    other_servers: bool,
}

impl Data {
    /// Looks into the folder. `servers`: rows to be used instead of those in it.
    pub(super) fn open(directory: &Path, servers: Option<&Path>) -> Result<Data, CommandError> {
        let mut there = [const { None }; 4];
        for (source, place) in SOURCES.iter().zip(&mut there) {
            let path = directory.join(source.name);
            if !path.is_file() {
                continue;
            }
            let sum = sum_of(&path).map_err(|why| CommandError::new(Exit::NoInput, format!("{} cannot be read: {why}", path.display())))?;
            if sum != source.sha256 {
                let why =
                    format!("{} is another file than the figures are of: its SHA-256 is {sum}, not {}", path.display(), source.sha256);
                return Err(CommandError::new(Exit::Data, why).hint("put the right file there, or take this one away"));
            }
            *place = Some(path);
        }
        if let Some(servers) = servers {
            there[2] = Some(servers.to_owned());
        }
        Ok(Data { there, other_servers: servers.is_some() })
    }

    /// Nodes and their round-trip times.
    pub(super) fn atlas(&self) -> Option<(&Path, &Path)> {
        Some((self.there[0].as_deref()?, self.there[1].as_deref()?))
    }

    /// Rows of `export servers`.
    pub(super) fn servers(&self) -> Option<&Path> {
        self.there[2].as_deref()
    }

    /// The links of a known web.
    pub(super) fn links(&self) -> Option<&Path> {
        self.there[3].as_deref()
    }

    /// What is said of the files on the page.
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let row = |(source, there): (&Source, &Option<PathBuf>)| {
            let drawn = if there.is_some() { "yes" } else { "no: it is not in the folder of --data" };
            let sum = if self.other_servers && source.name == SERVERS { "another file, named by --servers" } else { source.sha256 };
            [source.name, source.what, source.licence, sum, drawn].map(str::to_owned).to_vec()
        };
        let head = ["file", "what", "licence", "SHA-256, unpacked", "drawn from"].map(str::to_owned).to_vec();
        [head].into_iter().chain(SOURCES.iter().zip(&self.there).map(row)).collect()
    }
}

fn sum_of(path: &Path) -> io::Result<String> {
    let (mut content, mut sum) = (text::open(path, |file| file).map_err(io::Error::other)?.reader(), Sha256::new());
    loop {
        let read = content.fill_buf()?;
        if read.is_empty() {
            return Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        let length = read.len();
        sum.update(read);
        content.consume(length);
    }
}
