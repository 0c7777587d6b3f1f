//! Finds the links of a page independently of the crawler's scanner: html5ever's tree, walked in document order.

use nearcrawl_model::url::PageUrl;
use scraper::{Html, node::Element};

/// The links of a page by the crawler's rules: a, area, frame, iframe, canonical and alternate-language links, refresh.
pub fn of(body: &[u8], url: &PageUrl) -> Vec<PageUrl> {
    let html = Html::parse_document(&String::from_utf8_lossy(body));
    let elements = || html.tree.nodes().filter_map(|node| node.value().as_element());
    let base = elements().find(|element| element.name() == "base" && element.attr("href").is_some());
    let base = base.and_then(|element| url.join(element.attr("href")?).ok()).unwrap_or_else(|| url.clone());
    // The tree's nodes are numbered as the parser made them, which is document order where nothing is moved; a walk is exact.
    let ordered = html.tree.root().descendants().filter_map(|node| node.value().as_element());
    ordered.filter_map(reference).filter_map(|reference| base.join(&reference).ok()).collect()
}

/// What an element refers to, if it is a link.
fn reference(element: &Element) -> Option<String> {
    let attribute = |name| element.attr(name).map(str::to_owned);
    let is = |name: &str, value: &str| {
        element.attr(name).is_some_and(|text| text.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(value)))
    };
    match element.name() {
        "a" | "area" => attribute("href"),
        "frame" | "iframe" => attribute("src"),
        "link" if is("rel", "canonical") || (is("rel", "alternate") && element.attr("hreflang").is_some()) => attribute("href"),
        "meta" if is("http-equiv", "refresh") => {
            let content = element.attr("content")?;
            let (_, url) = content.split_once(['u', 'U'])?;
            let url = url.get(..2).filter(|text| text.eq_ignore_ascii_case("rl")).and(url.get(2..))?;
            Some(url.trim_start().strip_prefix('=')?.trim().trim_matches(['"', '\'']).to_owned())
        }
        _ => None,
    }
}

/// The same bytes with some `href="…"` values replaced.
pub fn rewrite(bytes: &[u8], moved: impl Fn(&str) -> Option<String>) -> Vec<u8> {
    const HREF: &[u8] = b"href=\"";
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4);
    let mut rest = bytes;
    while let Some(at) = rest.windows(HREF.len()).position(|window| window == HREF) {
        let (head, tail) = rest.split_at(at + HREF.len());
        out.extend_from_slice(head);
        let Some(end) = tail.iter().position(|byte| *byte == b'"') else {
            rest = tail;
            break;
        };
        match std::str::from_utf8(&tail[..end]).ok().and_then(&moved) {
            Some(to) => out.extend_from_slice(to.as_bytes()),
            None => out.extend_from_slice(&tail[..end]),
        }
        rest = &tail[end..];
    }
    out.extend_from_slice(rest);
    out
}
