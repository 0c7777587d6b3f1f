//! Log of the made-up servers: every request and connection of the whole swarm, in the order of one clock, kept in memory.

use socket2::Socket;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem::MaybeUninit,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How many requests are kept; later ones are served and counted, not kept.
pub const MAX_KEPT: usize = 2_000_000;

/// One request as a server saw it. Times count from the start of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSeen {
    /// When its head had been read.
    pub start: Duration,
    /// When its answer was handed over, or the asker had gone; none while it is being answered.
    pub end: Option<Duration>,
    /// The address that was asked.
    pub server: IpAddr,
    /// Who asked: the TCP peer's address.
    pub peer: IpAddr,
    /// `GET`, `HEAD`, …
    pub method: String,
    /// The Host header without its port, in lower case.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// The answer's status; none if the asker went away before it.
    pub status: Option<u16>,
}

/// A worst case, and where it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// How many at once.
    pub at_once: usize,
    /// At which address; none if nothing was seen at all.
    pub server: Option<IpAddr>,
}

/// The shortest pause between two requests to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// From the end of one request to the start of the next; zero if they overlap.
    pub lasted: Duration,
    /// The server's address.
    pub server: IpAddr,
    /// The addresses that sent the request before and the one after it.
    pub peers: (IpAddr, IpAddr),
}

struct OpenConnection {
    server: IpAddr,
    socket: Socket,
}

#[derive(Default)]
struct Books {
    requests: Vec<RequestSeen>,
    not_kept: u64,
    answering: BTreeMap<IpAddr, usize>,
    most_requests: BTreeMap<IpAddr, usize>,
    open: BTreeMap<u64, OpenConnection>,
    max_connections: BTreeMap<IpAddr, usize>,
    connections: u64,
}

/// The log of a web.
pub struct Log {
    started: Instant,
    books: Mutex<Books>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let books = self.books();
        write!(f, "Log({} requests, {} connections)", books.requests.len(), books.connections)
    }
}

impl Default for Log {
    fn default() -> Self {
        Log { started: Instant::now(), books: Mutex::new(Books::default()) }
    }
}

impl Log {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of this log: since it was started.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// How many requests were kept so far: a position to read on from with [`Log::since`].
    pub fn len(&self) -> usize {
        self.books().requests.len()
    }

    /// Whether nothing was asked yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All requests, by start.
    pub fn requests(&self) -> Vec<RequestSeen> {
        self.since(0)
    }

    /// The requests from a position on, by start.
    pub fn since(&self, position: usize) -> Vec<RequestSeen> {
        self.books().requests.get(position..).unwrap_or_default().to_vec()
    }

    /// How many requests came after the log was full.
    pub fn not_kept(&self) -> u64 {
        self.books().not_kept
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> u64 {
        self.books().connections
    }

    /// How many connections are open now.
    pub fn open_connections(&self) -> usize {
        self.books().open.len()
    }

    /// The most requests that one address was answering at once.
    pub fn most_requests_at_once(&self) -> Most {
        most(&self.books().most_requests)
    }

    /// The most connections that one address had open at once. A connection whose peer had closed its side does not count.
    pub fn most_connections_at_once(&self) -> Most {
        most(&self.books().max_connections)
    }

    /// How many probes came: `HEAD` requests for robots.txt.
    pub fn probes(&self) -> usize {
        self.books().requests.iter().filter(|request| request.method == "HEAD").count()
    }

    /// How often each URL path was asked for with `GET`, by host and path; robots.txt is left out.
    pub fn fetches(&self) -> BTreeMap<(String, String), usize> {
        let mut fetches = BTreeMap::new();
        for request in self.books().requests.iter().filter(|request| request.method == "GET" && request.path != "/robots.txt") {
            *fetches.entry((request.host.clone(), request.path.clone())).or_insert(0) += 1;
        }
        fetches
    }

    /// Which peers asked for anything.
    pub fn peers(&self) -> BTreeSet<IpAddr> {
        self.books().requests.iter().map(|request| request.peer).collect()
    }

    /// The pauses between requests that follow each other at one address, whoever asked.
    pub fn pauses(&self) -> Vec<Pause> {
        let books = self.books();
        let mut last: BTreeMap<IpAddr, (Duration, IpAddr)> = BTreeMap::new();
        let mut pauses = Vec::new();
        for request in &books.requests {
            let end = request.end.unwrap_or(request.start);
            if let Some((ended, before)) = last.get(&request.server) {
                let lasted = request.start.saturating_sub(*ended);
                pauses.push(Pause { lasted, server: request.server, peers: (*before, request.peer) });
            }
            last.insert(request.server, (end, request.peer));
        }
        pauses
    }

    /// The shortest of the [`Log::pauses`].
    pub fn shortest_pause(&self) -> Option<Pause> {
        self.pauses().into_iter().min_by_key(|pause| pause.lasted)
    }

    /// A connection was accepted. `socket` is a duplicate by which its state can be seen later.
    pub(crate) fn opened(self: &Arc<Self>, server: IpAddr, socket: Socket) -> ConnectionGuard {
        let mut books = self.books();
        books.connections += 1;
        let id = books.connections;
        // The peer may have closed an earlier connection though its task had no turn yet to notice: that one is no longer open.
        let others = books.open.values().filter(|other| other.server == server && !closed_by_peer(&other.socket)).count();
        let most = books.max_connections.entry(server).or_default();
        *most = (*most).max(others + 1);
        books.open.insert(id, OpenConnection { server, socket });
        drop(books);
        ConnectionGuard { log: self.clone(), id }
    }

    /// A request's head was read.
    pub(crate) fn asked(self: &Arc<Self>, request: RequestSeen) -> RequestGuard {
        let server = request.server;
        let mut books = self.books();
        let answering = books.answering.entry(server).or_default();
        *answering += 1;
        let at_once = *answering;
        let most = books.most_requests.entry(server).or_default();
        *most = (*most).max(at_once);
        let index = if books.requests.len() < MAX_KEPT {
            // Taken again inside the lock, so that the requests stand in the order of their start.
            books.requests.push(RequestSeen { start: self.now(), ..request });
            Some(books.requests.len() - 1)
        } else {
            books.not_kept += 1;
            None
        };
        drop(books);
        RequestGuard { log: self.clone(), server, index, status: None }
    }
}

/// The greatest entry.
fn most(counts: &BTreeMap<IpAddr, usize>) -> Most {
    let greatest = counts.iter().max_by_key(|(_, count)| **count);
    Most { at_once: greatest.map_or(0, |(_, count)| *count), server: greatest.map(|(server, _)| *server) }
}

/// Whether the other side has closed: there is nothing left to read but the end.
fn closed_by_peer(socket: &Socket) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    match socket.peek(&mut byte) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// Stands for an open connection; dropping it is its end.
pub(crate) struct ConnectionGuard {
    log: Arc<Log>,
    id: u64,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.log.books().open.remove(&self.id);
    }
}

/// Stands for a request being answered; dropping it is its end.
pub(crate) struct RequestGuard {
    log: Arc<Log>,
    server: IpAddr,
    index: Option<usize>,
    status: Option<u16>,
}

impl RequestGuard {
    /// The request was answered with this status.
    pub(crate) fn answered(mut self, status: u16) {
        self.status = Some(status);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let now = self.log.now();
        let mut books = self.log.books();
        if let Some(answering) = books.answering.get_mut(&self.server) {
            *answering = answering.saturating_sub(1);
        }
        if let Some(request) = self.index.and_then(|index| books.requests.get_mut(index)) {
            request.end = Some(now);
            request.status = self.status;
        }
    }
}
