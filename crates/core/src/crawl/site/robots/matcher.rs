//! Matches patterns of robots.txt against paths: `*` stands for anything, `$` for the end; no pattern makes this backtrack.

use memchr::memmem;
use std::borrow::Cow;

/// How many rules with wildcards are kept as they are. Each costs a walk over the path, and a page has thousands of links.
/// Beyond this many, an Allow is dropped and a Disallow is cut at its first wildcard: more is left alone, never less.
pub(crate) const MAX_WILDCARD_RULES: usize = 1000;

/// A pattern as it is compared: bytes beyond ASCII are percent-encoded, hexadecimal digits are upper case, stars in a row
/// are one, and a star at the end is none.
pub(super) fn normal_pattern(pattern: &[u8]) -> Vec<u8> {
    let mut normal = encode(pattern).into_owned();
    for at in 0..normal.len().saturating_sub(2) {
        if normal[at] == b'%' && normal[at + 1].is_ascii_hexdigit() && normal[at + 2].is_ascii_hexdigit() {
            normal[at + 1..at + 3].make_ascii_uppercase();
        }
    }
    normal.dedup_by(|later, earlier| *later == b'*' && *earlier == b'*');
    // `/a*` is `/a`, but `/a*$` stays. A `*` alone must stay something: it is `/`, which matches all paths.
    if normal.last() == Some(&b'*') {
        normal.pop();
    }
    if normal.is_empty() {
        normal.push(b'/');
    }
    normal
}

/// A path with the hexadecimal digits of its escapes in upper case.
pub(super) fn upper_case_escapes(path: &str) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(path.as_bytes());
    for at in memchr::memchr_iter(b'%', path.as_bytes()) {
        let escape = path.as_bytes().get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        if escape.is_some_and(|digits| digits.iter().any(u8::is_ascii_lowercase)) {
            bytes.to_mut()[at + 1..at + 3].make_ascii_uppercase();
        }
    }
    bytes
}

/// Percent-encodes what is beyond ASCII.
pub(super) fn encode(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.is_ascii() {
        return Cow::Borrowed(bytes);
    }
    let mut encoded = Vec::with_capacity(3 * bytes.len());
    for &byte in bytes {
        if byte.is_ascii() { encoded.push(byte) } else { encoded.extend([b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]) }
    }
    Cow::Owned(encoded)
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(value)]
}

/// Reads `%61` as `a`: letters, digits and `-._~` mean the same with and without (RFC 3986 §2.3).
pub(super) fn decode_unreserved(normal: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', normal).is_none() {
        return Cow::Borrowed(normal);
    }
    let value = |digit: u8| (digit as char).to_digit(16);
    let mut decoded = Vec::with_capacity(normal.len());
    let mut rest = normal;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if let (b'%', [high, low, behind @ ..]) = (byte, behind)
            && let (Some(high), Some(low)) = (value(*high), value(*low))
            && let Ok(plain) = u8::try_from(high * 16 + low)
            && (plain.is_ascii_alphanumeric() || b"-._~".contains(&plain))
        {
            decoded.push(plain);
            rest = behind;
        } else {
            decoded.push(byte);
        }
    }
    Cow::Owned(decoded)
}

/// Patterns without wildcards: plain beginnings of paths, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Literals {
    /// All patterns, one behind the other.
    text: Box<[u8]>,
    sorted: Box<[Literal]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Literal {
    start: u32,
    end: u32,
    /// The longest other pattern that this one begins with, or [`NOTHING`].
    parent: u32,
}

const NOTHING: u32 = u32::MAX;

impl Literals {
    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(super) fn new(mut patterns: Vec<Vec<u8>>) -> Literals {
        patterns.sort_unstable();
        patterns.dedup();
        let mut text = Vec::with_capacity(patterns.iter().map(Vec::len).sum());
        let mut sorted: Vec<Literal> = Vec::with_capacity(patterns.len());
        // The chain of patterns that the one before begins with; in sorted order each pattern's parent is on it.
        let mut chain: Vec<u32> = Vec::new();
        for pattern in &patterns {
            while let Some(&last) = chain.last() {
                let Literal { start, end, .. } = sorted[last as usize];
                if pattern.starts_with(&text[start as usize..end as usize]) {
                    break;
                }
                chain.pop();
            }
            // At most MAX_ROBOTS bytes were read, three for each after encoding: 32 bits are plenty.
            let start = text.len() as u32;
            text.extend_from_slice(pattern);
            let parent = chain.last().copied().unwrap_or(NOTHING);
            chain.push(sorted.len() as u32);
            sorted.push(Literal { start, end: text.len() as u32, parent });
        }
        Literals { text: text.into(), sorted: sorted.into() }
    }

    fn pattern(&self, literal: &Literal) -> &[u8] {
        &self.text[literal.start as usize..literal.end as usize]
    }

    /// How long the longest pattern is that the path begins with.
    pub(super) fn longest_match(&self, path: &[u8], steps: &mut usize) -> Option<usize> {
        let behind = self.sorted.partition_point(|literal| {
            *steps += 1;
            self.pattern(literal) <= path
        });
        let mut candidate = self.sorted.get(behind.checked_sub(1)?)?;
        // Whatever the path begins with stands before it in the order, and so is a beginning of its neighbour there.
        let common = self.pattern(candidate).iter().zip(path).take_while(|(a, b)| a == b).count();
        *steps += common;
        loop {
            let length = (candidate.end - candidate.start) as usize;
            if length <= common {
                return Some(length);
            }
            *steps += 1;
            candidate = self.sorted.get(candidate.parent as usize)?;
        }
    }
}

/// Patterns with `*` or `$`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wildcards(Vec<Wildcard>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Wildcard {
    /// Without the `$` at its end.
    pattern: Box<[u8]>,
    /// Whether the path must end where the pattern does.
    anchored: bool,
    allow: bool,
}

impl Wildcard {
    /// The length of the rule as written: the longer rule decides.
    fn weight(&self) -> usize {
        self.pattern.len() + usize::from(self.anchored)
    }
}

impl Wildcards {
    /// Adds a pattern; false if there are too many.
    pub(super) fn push(&mut self, pattern: &[u8], allow: bool) -> bool {
        if self.0.len() >= MAX_WILDCARD_RULES {
            return false;
        }
        let unanchored = pattern.strip_suffix(b"$");
        self.0.push(Wildcard { pattern: unanchored.unwrap_or(pattern).into(), anchored: unanchored.is_some(), allow });
        true
    }

    /// Whether a rule is an Allow, or else whether one is a Disallow.
    pub(super) fn has(&self, allow: bool) -> bool {
        self.0.iter().any(|rule| rule.allow == allow)
    }

    /// The longest first, and Allow before Disallow: the first that matches decides.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|rule| (usize::MAX - rule.weight(), !rule.allow));
        self.0.dedup();
        self.0.shrink_to_fit();
    }

    /// The verdict, given what the rules without wildcards say and with what weight.
    pub(super) fn decide(&self, written: &[u8], decoded: &[u8], literal: (usize, bool), steps: &mut usize) -> bool {
        let (weight, allowed) = literal;
        for rule in &self.0 {
            *steps += 1;
            // From here on the plain rules are longer, or as long and in favour.
            if rule.weight() < weight || (rule.weight() == weight && allowed) {
                break;
            }
            if matches(&rule.pattern, rule.anchored, if rule.allow { written } else { decoded }, steps) {
                return rule.allow;
            }
        }
        allowed
    }
}

/// Whether the path matches: the pieces between the stars are found one behind the other, each as early as possible, and an
/// anchored last piece at the end. Nothing is looked at twice, so the cost is one walk over the path and the pattern.
fn matches(pattern: &[u8], anchored: bool, path: &[u8], steps: &mut usize) -> bool {
    let mut pieces = pattern.split(|byte| *byte == b'*');
    let first = pieces.next().unwrap_or_default();
    *steps += first.len();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return !anchored || rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if anchored && pieces.peek().is_none() {
            *steps += piece.len();
            return rest.ends_with(piece);
        }
        match memmem::find(rest, piece) {
            Some(at) => {
                *steps += at + piece.len();
                rest = &rest[at + piece.len()..];
            }
            None => {
                *steps += rest.len();
                return false;
            }
        }
    }
    true
}
