//! Decides which requests the API accepts: those of programs and browsers on this machine, and none that a foreign web page makes.
//!
//! A page elsewhere cannot read our answers (no CORS headers are ever sent), but it could point a name of its own at 127.0.0.1 and become
//! "same origin" (DNS rebinding), or send us a form that it need not read the answer of (request forgery). So the Host header must be this
//! machine's, what comes from another site gets no answer of the API, and whatever changes something must say that it is JSON, which no
//! form can, and have the daemon's token.

use super::{
    error::RequestError,
    token::{TOKEN_HEADER, Token},
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::net::IpAddr;

/// What every answer carries.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Lets a request pass, or refuses it.
pub async fn check(State((own, token)): State<(IpAddr, Option<Token>)>, request: Request, next: Next) -> Response {
    let mut response = match refusal(own, token.as_ref(), &request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn refusal(own: IpAddr, token: Option<&Token>, request: &Request) -> Option<RequestError> {
    let headers = request.headers();
    if !named_host(request).is_some_and(|host| is_ours(&host, own)) {
        return Some(RequestError::new(
            StatusCode::FORBIDDEN,
            "the Host header does not name this machine",
            "ask by localhost, 127.0.0.1, [::1] or the address that the API listens on; from elsewhere, use an SSH tunnel",
        ));
    }
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    // The page itself may be linked to. Answers of the API may cost others something: names are looked up, all members are asked.
    if only_reads && !request.uri().path().starts_with("/api/") {
        return None;
    }
    if !is_same_site(headers, own) {
        return Some(RequestError::new(
            StatusCode::FORBIDDEN,
            "another web site sent this request",
            "use the node's own page, the command line, or a program that sends no Origin header",
        ));
    }
    if only_reads {
        return None;
    }
    if !is_json(headers) {
        return Some(RequestError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "whatever changes something must be sent as JSON",
            "add the header `content-type: application/json`; a body of {} will do where none is needed",
        ));
    }
    token.filter(|token| !may_change(headers, token)).map(|token| {
        RequestError::new(
            StatusCode::UNAUTHORIZED,
            "whatever changes something needs the daemon's token",
            format!(
                "send what is in {} as the header {TOKEN_HEADER}; the command line does so if it may read that file",
                token.file().display()
            ),
        )
    })
}

/// Whether the one header is the token.
fn may_change(headers: &HeaderMap, token: &Token) -> bool {
    let mut given = headers.get_all(TOKEN_HEADER).iter();
    let (first, second) = (given.next(), given.next());
    second.is_none() && first.is_some_and(|given| token.is(given.as_bytes()))
}

/// The host that was asked for, without its port: from the request line if it stands there, else from the one Host header.
fn named_host(request: &Request) -> Option<String> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return None;
    }
    let authority = match request.uri().authority() {
        Some(authority) => authority.clone(),
        None => first?.to_str().ok()?.parse::<Authority>().ok()?,
    };
    Some(authority.host().to_owned())
}

/// Whether a host is one that no name server elsewhere can have a say in.
fn is_ours(host: &str, own: IpAddr) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback() || address == own)
}

/// Browsers say where a request comes from; programs do not, and need not.
fn is_same_site(headers: &HeaderMap, own: IpAddr) -> bool {
    let fetch_site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if fetch_site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return false;
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")?.parse::<Authority>().ok());
    host.is_some_and(|host| is_ours(host.host(), own))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(kind)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
