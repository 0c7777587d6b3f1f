//! W3, W11: servers that waste our time, and TLS that is not to be believed.

use super::case::{Case, SLOWLY, Step, Want::*, case, chunked, closed, head, secure, send, unasked};
use FetchError::*;
use nearcrawl_model::fetch::FetchError;

/// All cases of servers that are slow, or gone.
pub fn slow() -> Vec<Case> {
    let drip = |text: &str| Step::Drip(text.to_owned().into(), SLOWLY);
    vec![
        unasked("W3", "never-reads", vec![Step::Hold], Fails(HeadTimeout)),
        case("W3", "never-answers", vec![Step::Hold], Fails(HeadTimeout)),
        case("W3", "slow-head", vec![drip(&format!("HTTP/1.1 200 OK\r\nX-Slow: {}", "y".repeat(200)))], Fails(HeadTimeout)),
        case("W3", "half-a-head", vec![send("HTTP/1.1 200 OK\r\nX-"), Step::Hold], Fails(HeadTimeout)),
        case("W3", "body-that-stalls", vec![head("Content-Length: 100\r\n"), send("some"), Step::Hold], Fails(BodyTimeout)),
        case("W3", "body-that-never-begins", vec![head("Content-Length: 100\r\n"), Step::Hold], Fails(BodyTimeout)),
        case("W3", "body-that-drips", vec![head("Content-Length: 9000\r\n"), drip(&"x".repeat(9000))], Fails(BodyTimeout)),
        case("W3", "chunks-that-drip", vec![chunked(), drip(&"1\r\nx\r\n".repeat(1000))], Fails(BodyTimeout)),
        case("W3", "closes-at-once", vec![Step::Close], Fails(Closed)).robots(vec![Step::Close]),
        case("W3", "resets-at-once", vec![Step::Reset], Fails(Closed)).robots(vec![Step::Reset]),
        case("W3", "closes-within-the-head", vec![send("HTTP/1.1 200 OK\r\nX-"), Step::Close], Fails(Closed)),
        closed("W3", "nobody-listens"),
    ]
}

/// All cases of TLS that is none, or not what it should be.
pub fn tls() -> Vec<Case> {
    let raw = |name, steps, failure| unasked("W11", name, steps, Fails(failure));
    let alert = |description: u8| vec![send(vec![21, 3, 1, 0, 2, 2, description]), Step::Hold];
    // The beginning of a server's answer in TLS 1.0, with a cipher of its time.
    let mut old = vec![22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
    old.extend([7; 32]);
    old.extend([0, 0, 0x2f, 0]);
    vec![
        secure("tls-good", "good", Page(0)),
        secure("tls-expired", "expired", Fails(CertificateExpired)),
        secure("tls-not-yet", "future", Fails(CertificateExpired)),
        secure("tls-for-another", "other", Fails(CertificateForOther)),
        secure("tls-self-signed", "self-signed", Fails(UnknownIssuer)),
        secure("tls-sha1", "sha1", Fails(BadCertificate)).not_crawled(),
        secure("tls-for-clients", "client", Fails(BadCertificate)),
        raw("tls-tarpit", vec![Step::Hold], TlsTimeout),
        raw(
            "tls-drips",
            vec![Step::Drip(vec![22, 3, 3, 0x40, 0].into_iter().chain([2; 400]).collect::<Vec<u8>>().into(), SLOWLY)],
            TlsTimeout,
        ),
        raw("tls-garbage", vec![send(vec![0xa5; 4096]), Step::Hold], TlsProtocol),
        raw("tls-plain-http", vec![send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), Step::Hold], TlsProtocol),
        raw("tls-1-0", vec![send(old), Step::Hold], TlsProtocol),
        raw("tls-refuses-the-version", alert(70), TlsProtocol),
        raw("tls-refuses-the-name", alert(112), TlsFailed),
        raw("tls-record-too-large", vec![send(vec![22, 3, 3, 0xff, 0xff]), Step::Hold], TlsProtocol),
        raw("tls-handshake-too-large", vec![send(vec![22, 3, 3, 0, 4, 2, 0xff, 0xff, 0xff]), Step::Hold], TlsProtocol),
        raw("tls-closes", vec![Step::Close], TlsFailed),
        raw("tls-resets", vec![Step::Drip(vec![22].into(), SLOWLY), Step::Reset], TlsFailed),
    ]
}
