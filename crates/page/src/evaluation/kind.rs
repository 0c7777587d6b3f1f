//! Recognises whether a text is an HTML page; what cannot be HTML is not evaluated.

use crate::scanner::tokens::StartTags;
use nearcrawl_model::fetch::PageType;

/// So much of a text is looked at, in bytes (MIME Sniffing standard, "resource header").
const HEAD: usize = 1445;

/// The elements of HTML, old ones too.
const ELEMENTS: &str = "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br button \
    canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset figcaption figure font \
    footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li link main map mark \
    marquee menu meta meter nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext pre progress q rb rp \
    rt rtc ruby s samp script search section select slot small source span strike strong style sub summary sup table tbody td template \
    textarea tfoot th thead time title tr track tt u ul var video wbr xmp";

/// Whether a text is not one: it begins with bytes that no text has (MIME Sniffing standard, "binary data byte").
pub(super) fn is_binary(text: &str) -> bool {
    let is_binary = |byte: u8| matches!(byte, 0..=8 | 0xb | 0xe..=0x1a | 0x1c..=0x1f);
    text.bytes().take(HEAD).any(is_binary)
}

/// Whether a text is HTML: it begins with markup of HTML. Of one that is `called` HTML, by its name or its server, it may also come later.
///
/// ```
/// use nearcrawl_page::evaluation::is_html;
/// assert!(is_html("<!-- x --> <!DOCTYPE html>", false) && is_html("Hours: <b>8</b>", true));
/// assert!(!is_html("Hours: <b>8</b>", false) && !is_html("<?xml version='1.0'?><rss></rss>", true) && !is_html("{}", true));
/// ```
pub fn is_html(text: &str, called: bool) -> bool {
    if is_binary(text) {
        return false;
    }
    let start = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    if !called && !start.starts_with('<') {
        return false;
    }
    let is_element = |name: &str| name.contains('-') || ELEMENTS.split_ascii_whitespace().any(|element| element.eq_ignore_ascii_case(name));
    let doctype = || start.get(..14).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype html"));
    let first = StartTags::every(text.as_bytes()).next();
    first.is_some_and(|tag| std::str::from_utf8(tag.name()).is_ok_and(is_element)) || doctype()
}

/// The namespace of XHTML.
const XHTML: &[u8] = b"http://www.w3.org/1999/xhtml";

/// What a page is by its beginning: XHTML if its `html` element is in the namespace of XHTML, whatever the server calls it; else HTML if it is
/// that at all.
///
/// ```
/// use nearcrawl_model::fetch::PageType;
/// use nearcrawl_page::evaluation::type_of;
/// assert_eq!(type_of("<!doctype html><html lang=en>"), Some(PageType::Html));
/// assert_eq!(type_of("<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>"), Some(PageType::Xhtml));
/// assert_eq!((type_of("<?xml version='1.0'?><rss></rss>"), type_of("{}")), (None, None));
/// ```
pub fn type_of(text: &str) -> Option<PageType> {
    if !is_html(text, true) {
        return None;
    }
    let first = StartTags::every(text.as_bytes()).next();
    let namespace = first.filter(|tag| tag.is(b"html")).and_then(|tag| tag.attributes().find(|attribute| attribute.name == b"xmlns"));
    let is_xhtml = namespace.is_some_and(|namespace| namespace.value == XHTML);
    Some(if is_xhtml { PageType::Xhtml } else { PageType::Html })
}
