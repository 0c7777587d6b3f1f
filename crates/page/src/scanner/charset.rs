//! Character encoding of a page: byte order mark, header, meta element, in this order.
//!
//! Markup is ASCII in nearly all encodings, so pages are scanned as bytes and only references are decoded.

use super::tokens;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use std::borrow::Cow;

/// How far into the page a meta element may declare the encoding, in bytes (as the HTML standard says).
const PRESCAN: usize = 1024;

/// A page's character encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charset {
    /// How the bytes are read; none if nothing declares it.
    declared: Option<&'static Encoding>,
    /// How a query with other characters than ASCII is sent.
    query: &'static Encoding,
}

impl Charset {
    fn of(encoding: &'static Encoding) -> Charset {
        Charset { declared: Some(encoding), query: encoding.output_encoding() }
    }

    /// The encoding of a page, and the page without its byte order mark.
    pub(super) fn of_page<'a>(bytes: &'a [u8], content_type: Option<&str>) -> (Charset, &'a [u8]) {
        if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
            return (Charset::of(encoding), &bytes[mark..]);
        }
        let header = content_type.and_then(|value| named_in(value.as_bytes()));
        let charset = match header.or_else(|| declared_in_meta(bytes)) {
            Some(encoding) => Charset::of(encoding),
            None => Charset { declared: None, query: UTF_8 },
        };
        (charset, bytes)
    }

    /// The whole page as UTF-8 text, if its markup is not ASCII as it is; and how to go on reading it.
    pub(super) fn transcode(self, bytes: &[u8]) -> Option<(Charset, Cow<'_, str>)> {
        let encoding = self.declared.filter(|encoding| !encoding.is_ascii_compatible())?;
        let (text, _) = encoding.decode_without_bom_handling(bytes);
        Some((Charset { declared: Some(UTF_8), query: self.query }, text))
    }

    /// A piece of the page as text. What is declared as nothing is read as UTF-8 if it is, else as Windows-1252, like most
    /// of what is old enough not to say.
    pub(super) fn decode<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        if self.declared.is_none_or(|encoding| encoding == UTF_8)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Cow::Borrowed(text);
        }
        self.declared.unwrap_or(WINDOWS_1252).decode_without_bom_handling(bytes).0
    }

    /// The name of the encoding that a page is read by.
    pub(super) fn name(&self, bytes: &[u8]) -> &'static str {
        match self.declared {
            Some(encoding) => encoding.name(),
            None if std::str::from_utf8(bytes).is_ok() => UTF_8.name(),
            None => WINDOWS_1252.name(),
        }
    }

    /// The bytes of a query; none if they are UTF-8 anyway.
    pub(super) fn query_encoding(&self) -> Option<&'static Encoding> {
        Some(self.query).filter(|encoding| *encoding != UTF_8)
    }
}

/// What `charset=` names in a content type.
fn named_in(content_type: &[u8]) -> Option<&'static Encoding> {
    let at = content_type.windows(7).position(|window| window.eq_ignore_ascii_case(b"charset"))?;
    let value = content_type[at + 7..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let label = match value.first()? {
        quote @ (b'"' | b'\'') => value[1..].split(|byte| byte == quote).next()?,
        _ => value.split(|byte| byte.is_ascii_whitespace() || *byte == b';').next()?,
    };
    Encoding::for_label(label)
}

/// What a meta element near the beginning declares.
fn declared_in_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(PRESCAN)];
    let encoding = tokens::StartTags::new(head).filter(|tag| tag.is(b"meta")).find_map(|tag| {
        let attributes = tag.attributes();
        if let Some(label) = attributes.clone().get(b"charset") {
            return Encoding::for_label(label);
        }
        let is_type = attributes.clone().get(b"http-equiv").is_some_and(|value| value.eq_ignore_ascii_case(b"content-type"));
        if is_type { named_in(attributes.get(b"content")?) } else { None }
    })?;
    // Whoever could read the declaration knows that it is not UTF-16.
    Some(if encoding.is_ascii_compatible() || encoding.output_encoding() == encoding { encoding } else { UTF_8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8], header: Option<&str>) -> Option<&'static str> {
        Charset::of_page(bytes, header).0.declared.map(Encoding::name)
    }

    #[test]
    fn mark_before_header_before_meta() {
        let meta = b"<meta charset=koi8-r>".as_slice();
        assert_eq!(name(meta, None), Some("KOI8-R"));
        assert_eq!(name(meta, Some("text/html; charset=\"Shift_JIS\"; x=y")), Some("Shift_JIS"));
        assert_eq!(name(meta, Some("text/html; Charset = latin1")), Some("windows-1252"));
        assert_eq!(name(meta, Some("text/html; charset=nonsense")), Some("KOI8-R"));
        assert_eq!(name(b"\xEF\xBB\xBF<p>", Some("text/html; charset=latin1")), Some("UTF-8"));
        assert_eq!(name(b"\xFF\xFE<\0", None), Some("UTF-16LE"));
        assert_eq!(name(b"<p>", None), None);
        let old = b"<META content='text/html; charset=big5' HTTP-EQUIV=Content-Type>";
        assert_eq!(name(old, None), Some("Big5"));
        assert_eq!(name(b"<!-- <meta charset=big5> --><title><meta charset=big5></title><meta charset=utf-16>", None), Some("UTF-8"));
        assert_eq!(name(&[b" ".repeat(2000).as_slice(), meta].concat(), None), None);
        assert_eq!(name(b"<meta charset=utf-7>", None), None);
        assert_eq!(name(b"<meta charset=iso-2022-jp>", None), Some("ISO-2022-JP"));
    }
}
