//! W1, W2: bombs, bodies without end, and lengths that lie.

use super::case::{Case, Step, Want::*, case, chunked, endless, head, pack, page_with, send};
use FetchError::*;
use nearcrawl_model::fetch::FetchError;

fn packed(name: &str, body: &[u8]) -> Vec<Step> {
    page_with(&format!("Content-Encoding: {name}\r\n"), body)
}

/// All cases of packed bodies.
pub async fn bombs() -> Vec<Case> {
    let zeros = vec![0; 32 << 20];
    // Every other kilobyte is noise, so that it unpacks to a little more than is allowed at a ratio that is.
    let mut state = 1u64;
    let dense = (0..9u32 << 20).map(|at| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if at / 512 % 4 == 0 { (state >> 33) as u8 } else { 0 }
    });
    let dense = dense.collect::<Vec<u8>>();
    let gzip = pack("gzip", &zeros).await;
    let text = pack("gzip", b"half of this is missing, and that is noticed").await;
    let members = pack("gzip", b"<a href=/x>").await.repeat(10_000);
    vec![
        case("W1", "gzip-bomb", packed("gzip", &gzip), Fails(DecodedTooLarge)),
        case("W1", "deflate-bomb", packed("deflate", &pack("deflate", &zeros).await), Fails(DecodedTooLarge)),
        case("W1", "brotli-bomb", packed("br", &pack("br", &zeros).await), Fails(DecodedTooLarge)),
        case("W1", "zstd-bomb", packed("zstd", &pack("zstd", &zeros).await), Fails(DecodedTooLarge)),
        case("W1", "dense-bomb", packed("gzip", &pack("gzip", &dense).await), Fails(DecodedTooLarge)),
        case("W1", "bomb-in-bomb", packed("gzip, gzip", &pack("gzip", &gzip).await), Fails(BadEncoding)),
        case("W1", "two-encodings", packed("gzip\r\nContent-Encoding: br", b"x"), Fails(BadEncoding)),
        case("W1", "unknown-encoding", packed("compress", b"x"), Fails(BadEncoding)),
        case("W1", "not-packed", packed("gzip", b"<html>not packed</html>"), Fails(BadEncoding)),
        case("W1", "half-packed", packed("gzip", &text[..text.len() / 2]), Fails(BadEncoding)),
        case("W1", "one-packed-byte", packed("zstd", &[0x28]), Fails(BadEncoding)),
        case("W1", "large-window-brotli", packed("br", &[0x11, 0x1e, 0, 0, 0, 0]), Fails(BadEncoding)),
        // A frame that asks for a window of 2 GiB.
        case("W1", "large-window-zstd", packed("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 3, 0, 0x10, b'x']), Fails(BadEncoding)),
        // Browsers read the first member; what stands behind it is not unpacked.
        case("W1", "ten-thousand-members", packed("gzip", &members), Page(1)),
        case(
            "W1",
            "gzip-name-without-end",
            vec![head("Content-Encoding: gzip\r\n"), send([0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3].to_vec()), endless("x")],
            Fails(BodyTooLarge),
        ),
    ]
}

/// All cases of bodies that do not end where they should.
pub fn lengths() -> Vec<Case> {
    let length = |value: &str, body: &str| {
        vec![send(format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {value}\r\n\r\n{body}"))]
    };
    let ends = |mut steps: Vec<Step>, end: Step| {
        steps.push(end);
        steps
    };
    vec![
        case("W2", "endless-body", vec![head(""), endless("x")], Fails(BodyTooLarge)),
        case("W2", "endless-chunks", vec![chunked(), endless(["10000\r\n", &"x".repeat(0x10000), "\r\n"].concat())], Fails(BodyTooLarge)),
        case("W2", "one-byte-chunks", vec![chunked(), endless("1\r\nx\r\n")], Fails(BodyTooLarge)),
        case("W2", "few-small-chunks", vec![chunked(), send("1\r\nx\r\n".repeat(1000) + "0\r\n\r\n")], Page(0)),
        case("W2", "chunk-size-of-a-megabyte", vec![chunked(), send("0".repeat(1 << 20) + "5\r\nhello\r\n0\r\n\r\n")], Page(0)),
        case("W2", "chunk-size-without-end", vec![chunked(), send("0".repeat(1 << 20)), Step::Hold], Fails(BodyTimeout)),
        case("W2", "chunk-extension-without-end", vec![chunked(), send("5;"), endless("x")], Fails(NotHttp)),
        case("W2", "chunk-size-that-is-none", vec![chunked(), send("zz\r\nhello\r\n0\r\n\r\n")], Fails(NotHttp)),
        case("W2", "negative-chunk", vec![chunked(), send("-5\r\nhello\r\n0\r\n\r\n")], Fails(NotHttp)),
        case("W2", "chunk-beyond-64-bits", vec![chunked(), send("fffffffffffffffff\r\nhello")], Fails(NotHttp)),
        case("W2", "chunk-of-4-gib", vec![chunked(), send("100000000\r\n"), endless("x")], Fails(BodyTooLarge)),
        case("W2", "chunks-without-end-mark", vec![chunked(), send("5\r\nhello\r\n"), Step::Close], Fails(Closed)),
        case("W2", "trailers-flood", vec![chunked(), send("5\r\nhello\r\n0\r\n"), endless("X-More: and more\r\n")], Fails(NotHttp)),
        case("W2", "length-too-long", ends(length("100", "short"), Step::Close), Fails(Closed)),
        case("W2", "length-too-long-reset", ends(length("100", "short"), Step::Reset), Fails(Closed)),
        case("W2", "length-too-short", length("5", "hello<a href=/more>"), Page(0)),
        case("W2", "length-negative", length("-5", "hello"), Fails(NotHttp)),
        case("W2", "length-with-plus", length("+5", "hello"), Fails(NotHttp)),
        case("W2", "length-in-words", length("five", "hello"), Fails(NotHttp)),
        case("W2", "length-beyond-64-bits", length("18446744073709551617", "hello"), Fails(NotHttp)),
        case("W2", "two-lengths", length("5\r\nContent-Length: 6", "hello!"), Fails(NotHttp)),
        case("W2", "length-of-4-gib", ends(length("4294967296", ""), endless("x")), Fails(BodyTooLarge)),
        case(
            "W2",
            "length-and-chunks",
            vec![head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), send("5\r\nhello\r\n0\r\n\r\n")],
            Page(0),
        ),
        case("W2", "unknown-transfer-coding", vec![head("Transfer-Encoding: rot13\r\n"), send("hello"), Step::Close], Page(0)),
    ]
}
