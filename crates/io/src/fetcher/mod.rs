//! Fetches pages from web servers: one request at a time to an address, over one connection, within limits.
//!
//! Redirects are reported, not followed; there are no cookies, no credentials and no proxy; only HTML is read.

mod body;
mod buffers;
mod certificate;
mod config;
mod connection;
mod connection_slots;
mod decode;
pub mod dial;
mod exchange;
mod facts;
mod guard;
mod head;
mod limits;
mod pace;
pub mod tls;
mod units;
mod wire;

pub use config::{FetcherConfig, FetcherConfigError};
pub use limits::FetchLimits;
pub(crate) use units::{micros, millis};

use super::tasks::{self, TaskKind};
use buffers::Buffers;
use connection::{Connection, Line, Opening};
use connection_slots::{ConnectionSlot, ConnectionSlots};
use exchange::{Exchange, Manners, NoHead, Unread};
pub use head::MAX_RETRY_AFTER;
use hyper::header::HeaderValue;
use nearcrawl_model::{
    address::AddressPolicy,
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchReport, FetchRule},
    time::Millis,
};
use pace::Deadline;
pub(crate) use pace::Waits;
use std::{
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
pub use tls::WebTls;
pub(crate) use wire::Counted;
pub use wire::Wire;

/// A value that can stand in a header, none for what cannot or is empty.
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok().filter(|value| !value.is_empty() && value.to_str().is_ok())
}

/// Fetches pages. Cheap to clone: all clones share their connections.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    manners: Manners,
    opening: Opening,
    slots: ConnectionSlots,
    sweeping: AtomicBool,
}

impl Fetcher {
    /// A fetcher that trusts the web's roots.
    pub fn new(config: FetcherConfig, policy: impl Into<Arc<AddressPolicy>>) -> Result<Fetcher, FetcherConfigError> {
        Fetcher::with_tls(config, policy, WebTls::default())
    }

    /// A fetcher that trusts other roots.
    pub fn with_tls(config: FetcherConfig, policy: impl Into<Arc<AddressPolicy>>, tls: WebTls) -> Result<Fetcher, FetcherConfigError> {
        let FetcherConfig { user_agent, from, source_address, limits, key, evaluate, rate, unread } = config;
        let product = user_agent.split(['/', ' ']).next().unwrap_or_default().to_owned();
        let agent = header_value(&user_agent).ok_or(FetcherConfigError::UserAgent(user_agent))?;
        let from = match from {
            Some(text) => Some(header_value(&text).ok_or(FetcherConfigError::From(text))?),
            None => None,
        };
        let opening = Opening {
            policy: policy.into(),
            source: source_address,
            limits: limits.clone(),
            tls,
            open: Arc::new(AtomicUsize::new(0)),
            opened: AtomicU64::new(0),
            wire: Arc::new(Wire::paced(rate, unread)),
        };
        let manners = Manners { user_agent: agent, product, from, limits, key, evaluate, buffers: Buffers::default() };
        Ok(Fetcher(Arc::new(Inner { manners, opening, slots: ConnectionSlots::default(), sweeping: AtomicBool::new(false) })))
    }

    /// Whether it looks for failures in each page.
    pub fn evaluates(&self) -> bool {
        self.0.manners.evaluate
    }

    /// Makes one request. Waits until no other request to the address is under way. It never fails: errors are in the report.
    pub async fn fetch(&self, order: FetchOrder) -> FetchReport {
        self.fetch_telling(order, |_| ()).await
    }

    /// Like [`Fetcher::fetch`], and calls `on_body` when a page is here and only its reading is left, with what it took: from then on
    /// somebody else may speak to the address, and whoever was called first can have the next request under way before the reading begins.
    ///
    /// A panic is a failure of this request: it is reported as [`FetchError::Crashed`], and the connection is closed.
    pub async fn fetch_telling(&self, order: FetchOrder, on_body: impl FnOnce(Millis)) -> FetchReport {
        let address = SocketAddr::new(order.address.to_canonical(), order.url.port());
        if self.0.opening.policy.check(address).is_err() {
            return report(order, failed(FetchError::ForbiddenAddress, Duration::ZERO));
        }
        if !self.may_begin(&order) {
            return report(order, failed(FetchError::Cancelled, Duration::ZERO));
        }
        self.start_sweeping();
        let slot = self.0.slots.enter(address.ip());
        let stopped = slot.stopped();
        let begun = Instant::now();
        let asked = {
            // Polled where it stands: wrapped by value, it would be copied into each future around it, several times for each page.
            let speaking = pin!(async {
                let mut connection = slot.connection.lock().await;
                let (exchange, page) = self.0.speak(&mut connection, address, &order).await;
                let _reading = slot.reading.lock().await;
                drop(connection);
                let Some(page) = page else { return exchange };
                on_body(millis(exchange.took));
                tokio::task::yield_now().await;
                let (outcome, fact) = page.read(&order, &self.0.manners).await;
                let facts = exchange.facts.into_iter().chain(fact).collect();
                Exchange { outcome, facts, ..exchange }
            });
            let asking = async {
                tokio::select! {
                    biased;
                    exchange = speaking => exchange,
                    () = stopped => failed(FetchError::Cancelled, Duration::ZERO),
                }
            };
            tasks::run(TaskKind::Fetch, asking).await
        };
        let exchange = match asked {
            Ok(exchange) => exchange,
            Err(_) => {
                self.close_kept(&slot).await;
                failed(FetchError::Crashed, begun.elapsed())
            }
        };
        self.0.slots.leave(address.ip(), slot);
        report(order, exchange)
    }

    /// Whether the operator's limits let this request begin now; otherwise it is cancelled before anything is sent.
    pub fn may_begin(&self, order: &FetchOrder) -> bool {
        let wire = &self.0.opening.wire;
        is_prompt(order) || (!wire.is_closed() && wire.may_begin())
    }

    /// Closes the connection that a panic may have left in the middle of an answer, unless another request uses it by now.
    async fn close_kept(&self, slot: &ConnectionSlot) {
        if let Ok(mut kept) = slot.connection.try_lock()
            && let Some(connection) = kept.take()
        {
            connection.close().await;
        }
    }

    /// Cancels what is under way at an address and closes the connection to it; returns when it is closed.
    pub async fn close(&self, address: IpAddr) {
        self.0.slots.close(address.to_canonical()).await;
    }

    /// Cancels everything under way and closes all connections; returns when they are closed.
    pub async fn close_all(&self) {
        self.0.slots.close_all().await;
    }

    /// The bytes of all its connections.
    pub fn wire(&self) -> Arc<Wire> {
        Arc::clone(&self.0.opening.wire)
    }

    /// How many connections are open now.
    pub fn open_connections(&self) -> usize {
        self.0.opening.open.load(Ordering::Relaxed)
    }

    /// How many connections were ever opened.
    pub fn opened_connections(&self) -> u64 {
        self.0.opening.opened.load(Ordering::Relaxed)
    }

    /// How many large bodies are in memory now: at most 16, the others wait.
    pub fn large_bodies(&self) -> usize {
        self.0.manners.buffers.large_bodies()
    }

    /// How many addresses are spoken to, waited for, or have a kept connection.
    pub fn connection_slots(&self) -> usize {
        self.0.slots.count()
    }

    /// The task that closes idle connections begins with the first request and ends with the last clone of the fetcher.
    fn start_sweeping(&self) {
        if self.0.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let idle = self.0.manners.limits.idle;
        let inner = Arc::downgrade(&self.0);
        // After a panic it goes on with the next round.
        tokio::spawn(async move { while tasks::run(TaskKind::Sweep, sweep(inner.clone(), idle)).await.is_err() {} });
    }
}

/// Whether a request goes out whatever the operator's limits say: the look for the proof that an owner of a server wants no requests. It is some
/// kilobytes, which are counted, and a limit that is spent must not keep a no from being heard.
fn is_prompt(order: &FetchOrder) -> bool {
    order.reason.rule == FetchRule::OptOut
}

async fn sweep(inner: Weak<Inner>, idle: Duration) {
    let pause = (idle / 8).clamp(Duration::from_millis(10), Duration::from_secs(5));
    loop {
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        inner.slots.sweep(idle).await;
    }
}

impl Inner {
    async fn speak(&self, slot: &mut Option<Connection>, address: SocketAddr, order: &FetchOrder) -> (Exchange, Option<Unread<'_>>) {
        let begun = Instant::now();
        let line = Line::of(&order.url);
        // Whether a connection waits for the operator's limits is settled when it is opened: one look, one connection.
        let is_prompt = is_prompt(order);
        if let Some(other) = slot.take_if(|kept| !kept.is_usable() || kept.line != line || is_prompt) {
            other.close().await;
        }
        loop {
            let kept = slot.is_some();
            if let Err(failure) = self.connected(slot, address, &line, begun + self.manners.limits.total, is_prompt).await {
                return (failed(failure, begun.elapsed()), None);
            }
            let Some(connection) = slot.as_mut() else { return (failed(FetchError::Closed, begun.elapsed()), None) };
            let meter = connection.meter.clone();
            let connect = (!kept).then_some(connection.stood_after);
            let session = connection.facts.clone();
            let deadline = Deadline::new(begun + self.manners.limits.total, Arc::clone(&connection.waits), !kept);
            let (sent, answer) = exchange::ask(connection, order, &self.manners, &deadline).await;
            // What came late because it waited here says nothing of the server.
            let prompt = || deadline.waited().is_zero();
            let first_byte = || meter.first_byte().filter(|_| prompt()).map(|first| first.saturating_duration_since(sent));
            let (error, nothing_came) = match answer {
                Ok(response) => {
                    let (mut exchange, page) = exchange::receive(response, order, &self.manners, sent, &deadline).await;
                    exchange.first_byte = first_byte();
                    exchange.connect = connect;
                    exchange.facts.extend(session);
                    self.park(slot, exchange.reusable && !is_prompt).await;
                    return (exchange, page);
                }
                Err(NoHead::TimedOut) => {
                    let took = sent.elapsed();
                    self.park(slot, false).await;
                    return (Exchange { first_byte: first_byte(), ..failed(FetchError::HeadTimeout, took) }, None);
                }
                Err(NoHead::NothingCame(error)) => (error, true),
                Err(NoHead::Broken(error)) => (error, false),
            };
            let took = sent.elapsed();
            let ended = match slot.take() {
                Some(connection) => connection.close().await,
                None => None,
            };
            // The server may close a kept connection at any time, also just when we use it. Then, and only then, ask again.
            if kept && nothing_came {
                continue;
            }
            return (Exchange { first_byte: first_byte(), ..failed(exchange::head_failure(&error, ended.as_ref()), took) }, None);
        }
    }

    /// Sees to it that there is a connection, if a request may begin: it may have waited for the one before it, for bytes, or for its connection.
    async fn connected(
        &self,
        slot: &mut Option<Connection>,
        address: SocketAddr,
        line: &Line,
        until: Instant,
        is_prompt: bool,
    ) -> Result<(), FetchError> {
        let may_begin = || is_prompt || self.opening.wire.may_begin();
        if slot.is_none() && may_begin() {
            // Boxed, so that who needs none does not carry room for it: most find the connection open.
            *slot = Some(Box::pin(self.opening.open(address, line.clone(), until, is_prompt)).await?);
        }
        if may_begin() { Ok(()) } else { Err(FetchError::Cancelled) }
    }

    /// Keeps the connection for the next request, or closes it.
    async fn park(&self, slot: &mut Option<Connection>, reusable: bool) {
        let has_room = self.opening.open.load(Ordering::Relaxed) <= self.manners.limits.max_kept;
        if reusable && has_room {
            if let Some(connection) = slot.as_mut() {
                connection.busy = false;
                connection.idle_since = Instant::now();
            }
        } else if let Some(connection) = slot.take() {
            connection.close().await;
        }
    }
}

fn failed(failure: FetchError, took: Duration) -> Exchange {
    Exchange {
        outcome: FetchOutcome::Failed(failure),
        took,
        connect: None,
        first_byte: None,
        wire_bytes: 0,
        software: None,
        retry_after: None,
        facts: Vec::new(),
        reusable: false,
    }
}

fn report(order: FetchOrder, exchange: Exchange) -> FetchReport {
    FetchReport {
        url: order.url,
        outcome: exchange.outcome,
        took: millis(exchange.took),
        connect_us: exchange.connect.map(micros),
        first_byte_us: exchange.first_byte.map(micros),
        wire_bytes: exchange.wire_bytes,
        software: exchange.software,
        retry_after: exchange.retry_after,
        facts: exchange.facts,
    }
}

#[cfg(test)]
pub(crate) mod tests;
