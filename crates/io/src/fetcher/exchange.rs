//! One exchange on one connection: the request, the head of the answer, its body, and what they mean.

use super::{
    body::{self, Wanted, io_kind},
    buffers::{Buffers, LARGE},
    connection::Connection,
    decode::{ACCEPTED, Decoder, Encoding},
    facts, guard, head,
    limits::FetchLimits,
    pace::Deadline,
    units::micros,
};
use crate::tasks::{self, TaskKind};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::{
    HeaderMap, Request, Response, StatusCode, Uri,
    body::{Body, Incoming},
    header::{self, HeaderValue},
    http::uri::PathAndQuery,
};
use nearcrawl_model::{
    evaluation::{Evaluated, Gate, RULE_SET},
    facts::Fact,
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, PageFacts, PageType, Served},
    fingerprint::FingerprintKey,
    links::{Link, Links},
    revisit::content_of,
    time::Millis,
    url::PageUrl,
};
use nearcrawl_page::{
    evaluation::{self, Findings},
    scanner,
};
use std::{
    error::Error as _,
    io,
    time::{Duration, Instant},
};
use tokio::sync::SemaphorePermit;

/// The settings that all exchanges share.
pub struct Manners {
    /// The value of the `User-Agent` header.
    pub user_agent: HeaderValue,
    /// The first word of our name: robots rules for it are for us.
    pub product: String,
    /// The `From` header with the operator's address; none leaves it out.
    pub from: Option<HeaderValue>,
    /// The time and size limits.
    pub limits: FetchLimits,
    /// The key of the fingerprints of links.
    pub key: FingerprintKey,
    /// Whether failures are looked for in pages.
    pub evaluate: bool,
    /// The buffers for bodies.
    pub buffers: Buffers,
}

/// The result of an exchange, with its measurements.
pub struct Exchange {
    /// The outcome.
    pub outcome: FetchOutcome,
    /// From sending the request to the last byte read.
    pub took: Duration,
    /// How long the connection took to stand, if it was made for this exchange.
    pub connect: Option<Duration>,
    /// From sending the request to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Bytes of the body over the wire.
    pub wire_bytes: u64,
    /// The `Server` header, cut and cleaned.
    pub software: Option<String>,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Millis>,
    /// What the connection and the head of the answer say of the server.
    pub facts: Vec<Fact>,
    /// Whether the connection may carry another request.
    pub reusable: bool,
}

/// Why the head of the answer was not received.
pub enum NoHead {
    /// The connection ended before a single byte of an answer: on a kept connection this is no fault of the server's.
    NothingCame(hyper::Error),
    /// Bytes were received that are no head of an HTTP answer.
    Broken(hyper::Error),
    /// The head was not complete in time.
    TimedOut,
}

/// Sends the request and waits for the head of the answer. Says when the request was sent.
pub async fn ask(
    connection: &mut Connection,
    order: &FetchOrder,
    manners: &Manners,
    deadline: &Deadline,
) -> (Instant, Result<Response<Incoming>, NoHead>) {
    let request = request(order, manners);
    connection.busy = true;
    match deadline.within(manners.limits.head, connection.sender.ready()).await {
        Some(Ok(())) => {}
        // Nothing was sent, so whatever came was no answer.
        Some(Err(error)) => return (Instant::now(), Err(NoHead::NothingCame(error))),
        None => return (Instant::now(), Err(NoHead::TimedOut)),
    }
    connection.meter.reset(manners.limits.raw_head());
    let sent = Instant::now();
    let answer = match deadline.within(manners.limits.head, connection.sender.send_request(request)).await {
        Some(Ok(response)) => {
            connection.meter.allow(manners.limits.raw_body());
            Ok(response)
        }
        Some(Err(error)) => Err(came_or_not(connection, error)),
        None => Err(NoHead::TimedOut),
    };
    (sent, answer)
}

fn came_or_not(connection: &Connection, error: hyper::Error) -> NoHead {
    if connection.meter.read() == 0 { NoHead::NothingCame(error) } else { NoHead::Broken(error) }
}

/// What it means that no head came. `ended` is what the connection itself died of, where that is known.
pub fn head_failure(error: &hyper::Error, ended: Option<&hyper::Error>) -> FetchError {
    let inner = error.source().and_then(|source| source.downcast_ref::<hyper::Error>());
    let causes = || [Some(error), inner, ended].into_iter().flatten();
    // hyper has no name for "spoke before it was asked": it is what none of its other names fits.
    let is_loss =
        |cause: &hyper::Error| cause.is_canceled() || cause.is_closed() || cause.is_incomplete_message() || io_kind(cause).is_some();
    if causes().any(|cause| cause.is_parse_too_large() || io_kind(cause) == Some(io::ErrorKind::FileTooLarge)) {
        FetchError::HeadTooLarge
    } else if causes().all(is_loss) {
        FetchError::Closed
    } else {
        FetchError::NotHttp
    }
}

fn request(order: &FetchOrder, manners: &Manners) -> Request<Empty<Bytes>> {
    let FetchOrder { url, validators, .. } = order;
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = target(url);
    let headers = request.headers_mut();
    headers.reserve(6);
    if let Ok(host) = HeaderValue::from_str(url.authority()) {
        headers.insert(header::HOST, host);
    }
    headers.insert(header::USER_AGENT, manners.user_agent.clone());
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/html, application/xhtml+xml"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    if let Some(from) = &manners.from {
        headers.insert(header::FROM, from.clone());
    }
    for (name, value) in [(header::IF_NONE_MATCH, &validators.etag), (header::IF_MODIFIED_SINCE, &validators.last_modified)] {
        if let Some(value) = value.as_ref().and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
    request
}

/// Path and query for the request line; bytes that may not stand there are escaped.
fn target(url: &PageUrl) -> Uri {
    let text = url.path_and_query();
    let path = PathAndQuery::try_from(text).or_else(|_| {
        let may_stay = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
        let escape = |byte: u8| if may_stay(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        PathAndQuery::try_from(text.bytes().map(escape).collect::<String>())
    });
    path.map(Uri::from).unwrap_or_default()
}

/// Receives the answer and, where it is wanted, its body. What a page says is left to be read.
pub async fn receive<'a>(
    response: Response<Incoming>,
    order: &FetchOrder,
    manners: &'a Manners,
    sent: Instant,
    deadline: &Deadline,
) -> (Exchange, Option<Unread<'a>>) {
    let (parts, incoming) = response.into_parts();
    let headers = &parts.headers;
    let keeps_open = head::keeps_open(parts.version, headers);
    let status = parts.status.as_u16();
    let mut exchange = Exchange {
        outcome: FetchOutcome::Status(status),
        took: Duration::ZERO,
        connect: None,
        first_byte: None,
        wire_bytes: 0,
        software: head::software(headers),
        retry_after: head::retry_after(headers),
        facts: facts::of_head(parts.version, headers, order.url.is_secure()),
        reusable: false,
    };
    // Robots rules are read as they are: 4xx means that there are none (RFC 9309 §2.3.1.3), whoever says so.
    let challenged = guard::challenges(status, headers) && (order.purpose == FetchPurpose::Page || status >= 500);
    let unread = match (order.purpose, parts.status) {
        _ if challenged && !is_refusal(status) => Some(FetchOutcome::Failed(FetchError::Challenged)),
        (_, status) if status.is_redirection() && (is_redirect(status) || headers.contains_key(header::LOCATION)) => {
            Some(redirect(status.as_u16(), headers, order, manners))
        }
        (FetchPurpose::Page, StatusCode::NOT_MODIFIED) if !order.validators.is_empty() => {
            let tag = head::robots_tag(headers, &manners.product);
            let validators = head::validators(headers);
            Some(FetchOutcome::NotModified { validators, no_index: tag.no_index, no_follow: tag.no_follow })
        }
        (FetchPurpose::Robots, status) if !status.is_success() => {
            Some(FetchOutcome::Robots { status: status.as_u16(), body: Bytes::new() })
        }
        (FetchPurpose::Robots, _) => None,
        (FetchPurpose::Page, status) if !status.is_success() => Some(FetchOutcome::Status(status.as_u16())),
        (FetchPurpose::Page, _) => {
            let content_type = head::content_type(headers);
            (!head::is_html(&content_type)).then_some(FetchOutcome::NotHtml { status, content_type })
        }
    };
    let (to_the_end, page) = match unread {
        Some(outcome) => {
            exchange.outcome = outcome;
            // After an upgrade the connection speaks something else.
            let (wire_bytes, to_the_end) =
                if keeps_open && status >= 200 { body::drain(incoming, &manners.limits, deadline).await } else { (0, false) };
            exchange.wire_bytes = wire_bytes;
            (to_the_end, None)
        }
        None => wanted(&mut exchange, incoming, parts.headers, status, order.purpose, manners, Times { sent, deadline }).await,
    };
    exchange.took = sent.elapsed();
    exchange.reusable = to_the_end && keeps_open;
    (exchange, page)
}

/// Statuses that by themselves mean a refusal.
fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403 | 429 | 451)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn redirect(status: u16, headers: &HeaderMap, order: &FetchOrder, manners: &Manners) -> FetchOutcome {
    match head::location(headers, &order.url) {
        Ok(url) => FetchOutcome::Redirect { status, to: Link { fingerprint: manners.key.of(url.as_str()), url } },
        Err(_) => FetchOutcome::Failed(FetchError::BadRedirect),
    }
}

/// Pages up to this size are scanned on the thread that receives them. Larger ones would delay all other tasks: they get a thread of
/// their own, and so do all that are evaluated, which takes as long.
const SCANNED_AT_ONCE: usize = 512 << 10;

/// The facts read from a page, and the buffer with its bytes.
///
/// # Errors
/// Reading it panicked, or the program is ending.
async fn scan(
    bytes: Vec<u8>,
    content_type: Option<&str>,
    order: &FetchOrder,
    manners: &Manners,
) -> Result<(Vec<u8>, PageFacts), FetchError> {
    let (url, evaluate) = (&order.url, manners.evaluate || order.evaluate);
    let limits = scanner::ScanLimits::default();
    if bytes.len() <= SCANNED_AT_ONCE && !evaluate {
        let page = scanner::scan(&bytes, content_type, url, &manners.key, limits);
        return Ok((bytes, page));
    }
    let (content_type, url, key) = (content_type.map(str::to_owned), url.clone(), manners.key);
    let scanning = tokio::task::spawn_blocking(move || {
        let _running = tasks::begin(TaskKind::PageReading);
        let mut page = scanner::scan(&bytes, content_type.as_deref(), &url, &key, limits);
        page.evaluation = evaluate.then(|| evaluated(&bytes, content_type.as_deref()));
        (bytes, page)
    });
    scanning.await.map_err(|ended| if ended.is_panic() { FetchError::Crashed } else { FetchError::Cancelled })
}

/// Looks for failures in a page, and at the clock: that is part of the access.
fn evaluated(bytes: &[u8], content_type: Option<&str>) -> Evaluated {
    let begun = Instant::now();
    let limits = evaluation::Limits::default();
    let found = if bytes.len() > limits.bytes {
        Findings::refused(Gate::TooLong)
    } else {
        evaluation::find(&scanner::text(bytes, content_type), &limits, &|| begun.elapsed())
    };
    let lines = found.first_lines();
    Evaluated { evaluation: found.evaluation, took_us: micros(begun.elapsed()), rules: RULE_SET, lines }
}

/// When the request was sent, and when all must be over.
struct Times<'a> {
    sent: Instant,
    deadline: &'a Deadline,
}

/// Receives a body that is wanted; says whether that was to its end, and leaves a page to be read.
async fn wanted<'a>(
    exchange: &mut Exchange,
    incoming: Incoming,
    headers: HeaderMap,
    status: u16,
    purpose: FetchPurpose,
    manners: &'a Manners,
    times: Times<'_>,
) -> (bool, Option<Unread<'a>>) {
    let limits = &manners.limits;
    let encoding = match Encoding::read(headers.get_all(header::CONTENT_ENCODING).iter().map(HeaderValue::as_bytes)) {
        Ok(encoding) => encoding,
        Err(failure) => {
            exchange.outcome = FetchOutcome::Failed(failure);
            return (false, None);
        }
    };
    let (wanted, limit) = match purpose {
        FetchPurpose::Page => (Wanted::Whole(limits.wire_bytes), limits.decoded_bytes),
        FetchPurpose::Robots => (Wanted::Beginning(limits.robots_bytes), limits.robots_bytes),
    };
    let mut buffer = manners.buffers.take();
    if encoding == Encoding::Identity {
        // Not more than what must be asked for: a server may say any length.
        let said = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
        buffer.reserve(said.min(LARGE));
    }
    let decoder = Decoder::new(encoding, buffer, limit, limits);
    let body = body::read(incoming, decoder, wanted, (limits, &manners.buffers), times.sent, times.deadline).await;
    exchange.wire_bytes = body.wire_bytes;
    let to_the_end = body.to_the_end;
    exchange.outcome = match body.bytes {
        Ok(bytes) if purpose == FetchPurpose::Page => {
            return (to_the_end, Some(Unread { status, headers, bytes, _permit: body.permit }));
        }
        Ok(bytes) => FetchOutcome::Robots { status, body: Bytes::from(bytes) },
        Err(failure) => FetchOutcome::Failed(failure),
    };
    (to_the_end, None)
}

/// A page that came and was not read yet. Reading is our time, not the server's.
pub struct Unread<'a> {
    status: u16,
    headers: HeaderMap,
    bytes: Vec<u8>,
    /// The right to hold the bytes, if they are many.
    _permit: Option<SemaphorePermit<'a>>,
}

/// So much of a page says what it is, in bytes.
const BEGINNING: usize = 2048;

/// As what a page came.
fn served(bytes: &[u8], headers: &HeaderMap) -> Option<Served> {
    let said = PageType::of(&head::content_type(headers))?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let beginning = bytes.get(..BEGINNING).unwrap_or(bytes);
    Some(Served { said, detected: evaluation::type_of(&scanner::text(beginning, content_type)) })
}

impl Unread<'_> {
    /// The outcome that follows from the page, and whose challenge it is if it is one.
    pub async fn read(self, order: &FetchOrder, manners: &Manners) -> (FetchOutcome, Option<Fact>) {
        let Unread { status, headers, bytes, _permit } = self;
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let (bytes, mut page) = match scan(bytes, content_type, order, manners).await {
            Ok(read) => read,
            Err(failure) => return (FetchOutcome::Failed(failure), None),
        };
        page.decoded_bytes = bytes.len() as u64;
        page.content = content_of(&bytes);
        page.served = served(&bytes, &headers);
        if status == 200 {
            page.validators = head::validators(&headers);
        }
        let challenger = guard::challenger(&bytes, page.links.len());
        if order.front && challenger.is_none() {
            let language = headers.get(header::CONTENT_LANGUAGE).and_then(|value| value.to_str().ok());
            page.front = Some(Box::new(scanner::front_page(&bytes, content_type, language)));
        }
        manners.buffers.give(bytes);
        if let Some(vendor) = challenger {
            return (FetchOutcome::Failed(FetchError::Challenged), Some(Fact::Guard(vendor)));
        }
        let tag = head::robots_tag(&headers, &manners.product);
        page.no_index |= tag.no_index;
        page.no_follow |= tag.no_follow;
        if page.no_follow {
            page.links = Links::default();
        }
        (FetchOutcome::Page { status, page }, None)
    }
}
