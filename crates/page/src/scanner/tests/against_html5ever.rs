//! Tests that the scanner sees the tags that html5ever's tokenizer sees, as far as any part of the scanner uses them.

#![expect(clippy::disallowed_methods, reason = "real pages are files")]

use super::super::{
    charset::Charset,
    entities, raw_text,
    tag::StartTag,
    tokens::{ASKED_FOR, StartTags},
};
use html5ever::{
    tendril::StrTendril,
    tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts, states::RawKind},
};
use proptest::prelude::*;
use std::{cell::RefCell, collections::BTreeSet};

/// A start tag: its name and attributes, the first of each name.
type Seen = (String, Vec<(String, String)>);

#[derive(Default)]
struct Sink {
    tags: RefCell<Vec<Seen>>,
    foreign: RefCell<usize>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        let name = tag.name.to_string();
        let mut foreign = self.foreign.borrow_mut();
        let is_foreign = name == "svg" || name == "math";
        if tag.kind == TagKind::EndTag {
            *foreign = foreign.saturating_sub(usize::from(is_foreign));
            return TokenSinkResult::Continue;
        }
        *foreign += usize::from(is_foreign && !tag.self_closing);
        let attributes =
            tag.attrs.iter().map(|a| (a.name.local.to_string(), a.value.to_string().replace("\r\n", "\n").replace('\r', "\n"))).collect();
        if ASKED_FOR.contains(&&*name) {
            self.tags.borrow_mut().push((name.clone(), attributes));
        }
        if *foreign > 0 && tag.self_closing {
            return TokenSinkResult::Continue;
        }
        match raw_text::kind(&StartTag(name.as_bytes())) {
            raw_text::Kind::Markup => TokenSinkResult::Continue,
            raw_text::Kind::Plaintext => TokenSinkResult::Plaintext,
            raw_text::Kind::Script => TokenSinkResult::RawData(RawKind::ScriptData),
            raw_text::Kind::Text if name == "title" || name == "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            raw_text::Kind::Text => TokenSinkResult::RawData(RawKind::Rawtext),
        }
    }
}

fn html5ever_sees(page: &str) -> Vec<Seen> {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts { discard_bom: false, ..TokenizerOpts::default() });
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(page));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.tags.into_inner()
}

fn we_see(page: &str) -> Vec<Seen> {
    let charset = Charset::of_page(b"", Some("text/html; charset=utf-8")).0;
    let text = |bytes: &[u8]| charset.decode(bytes).replace("\r\n", "\n").replace('\r', "\n");
    let lower = |bytes: &[u8]| text(bytes).to_ascii_lowercase().replace('\0', "\u{fffd}");
    StartTags::new(page.as_bytes())
        .map(|tag| {
            let mut names = BTreeSet::new();
            let all = tag.attributes().map(|a| (lower(a.name), entities::decode(text(a.value).into()).into_owned()));
            let attributes = all.filter(|(name, _)| names.insert(name.clone())).collect();
            (lower(tag.name()), attributes)
        })
        .filter(|(name, _)| ASKED_FOR.contains(&&**name))
        .collect()
}

/// Both see the same in a page, and in one that goes on: whether the last tag is seen says whether they agree on where they are.
fn assert_same(page: &str) {
    for page in [page, &format!("{page}<a href=\"last\">"), &format!("{page}<p class=\"c\">{:70}<a>", "")] {
        assert_eq!(we_see(page), html5ever_sees(page), "{page:?}");
    }
}

#[test]
fn hand_written_pages() {
    let table = [
        "<a href=x>",
        "<a href='x>y'>",
        "<a href=\"x'>y\">",
        "<a href=x'y>z'>",
        "<a href=>x>",
        "<a =x=y>",
        "<a/href=x>",
        "<a href=x/>",
        "<a href=x />",
        "<a href = x>",
        "<a href\n=\n'x'\n>",
        "<a href='x'class=y>",
        "<a x=1 X=2>",
        "<a href=x",
        "<a href='x",
        "<a ",
        "<a",
        "<",
        "</",
        "</a",
        "<a>>",
        "<!--<a>--><b>",
        "<!--><a>--><b>",
        "<!---><a>--><b>",
        "<!----><a>",
        "<!--x--!><a>",
        "<!---!><a>--><b>",
        "<!--x-- ><a>--><b>",
        "<!--<!--><a>",
        "<!--<!-- --> <a> -->",
        "<!-- --!--><a>",
        "<!--",
        "<!-",
        "<!-a><b>",
        "<!a 'x>y'><b>",
        "<!doctype html PUBLIC \"x>y\"><b>",
        "<!DOCTYPE><a>",
        "<?php echo '<a>' ?><b>",
        "</ a><b>",
        "</><a>",
        "</1<a>",
        "<![CDATA[<a>]]><b>",
        "<svg><![CDATA[x]]><a></svg>",
        "<1><a>",
        "< a><b>",
        "a<b",
        "a < b > c <d>",
        "<a<b>",
        "<a<b c<d>",
        "<a\0b c\0d=e\0f>",
        "<a\u{c}b=c>",
        "<script><a></script><b>",
        "<script></scripts><a></script ><b>",
        "<script><!--<a></script><b>",
        "<script><!--<script></script><a>--></script><b>",
        "<script><!--<script></script></script><a>",
        "<script><!--><script></script><a>",
        "<script><!-- <script --> </script><a>",
        "<script><!--<scripty></script><a>",
        "<script><!--<script>--></script><a>",
        "<script><!--<script/</script/--></script><b>",
        "<script><!-<script></script><a>",
        "<script></script",
        "<script></script <a>",
        "<SCRIPT></Script><a>",
        "<script/><a></script><b>",
        "<style><a></style><b>",
        "<style><!--</style><b>-->",
        "<title><a>&lt;</title><b>",
        "<title></title/><b>",
        "<title></titlex></title\n><b>",
        "<textarea><a></textarea x='>'><b>",
        "<xmp><a></xmp><b>",
        "<noembed><a></noembed><b>",
        "<noframes><a></noframes><b>",
        "<iframe src=x><a></iframe><b>",
        "<noscript><a></noscript><b>",
        "<plaintext><a></plaintext><b>",
        "<svg><title/><a></svg><title/><b>",
        "<svg/><title/><a>",
        "<svg><style/><a>",
        "<math><title/ ><a></title><b>",
        "<a b='&amp;&lt&#60;&#x3C&copy=&copy;'>",
        "<a b=&amp>",
        "<a b=&#x110000;&#0;&#128;>",
        "<a b='&'>",
        "<a b='&;&#;&#x;'>",
        "<a b='\r\n\r'>",
        "<a ü=ü>",
        "<ü><a>",
        "\u{feff}<a>",
        "<a b=`c`>",
        "<a b='c'/ d>",
        "<a b/c/d>",
        "<a b= 'c'>",
        "<a 'b'=\"c\">",
        "<a \"><b>\">",
        "<a b=c\"><d \">",
        "<a b='c'\"><d e='\">",
        "<div data-x='{\"a\": \"<b>\"}'><a>",
        "<a href=\"x\" class=\"y\">z</a><p><b class=\"<\">",
        "<p title=\"<a href=x>\">",
        "<p title=\"> <a href=x>\">",
        "<p a=b\" c=\"d>e\"><a>",
        "<p a==\"  c=\"d>e\"><a>",
        "<p a=b=\" c=\"d>e\"><a>",
        "<p=\" b=\">\"><a>",
        "</p=\" b=\">\"><a>",
        "<p\u{1}q=\" b=\">\"><a>",
        "<p \r=\"x\" b=\">\"><a>",
        "<p a=\"b\"=\" c=\">\"><a>",
        "<p/=\" c=\">\"><a>",
        "<p a/b=\"x\"><a>",
        "<p b\"c=\" d=\">\"><a>",
        "<p '=\" d=\">\"><a>",
        "<p a=\"'\" b='\"'><a>",
    ];
    assert!(table.len() >= 40);
    for page in table {
        (0..64).for_each(|shift| assert_same(&(" ".repeat(shift) + page)));
    }
}

#[test]
fn real_pages() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/html");
    let mut pages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "html") {
            let page = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            let seen = we_see(&page);
            assert!(seen.len() > 20, "{}: only {} tags", path.display(), seen.len());
            assert_eq!(seen, html5ever_sees(&page), "{}", path.display());
            pages += 1;
        }
    }
    assert!(pages >= 10, "only {pages} pages were found");
}

/// Pieces near the edges of the tokenizer's grammar.
fn page() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<",
        ">",
        "/",
        "=",
        "'",
        "\"",
        " ",
        "\n",
        "\t",
        "!",
        "-",
        "--",
        "<!--",
        "-->",
        "--!>",
        "<a ",
        "<a",
        "</a>",
        "href",
        "href=",
        "x",
        "<script>",
        "</script>",
        "<script",
        "</script",
        "<style>",
        "</style>",
        "<title>",
        "</title>",
        "<textarea>",
        "</textarea ",
        "<iframe ",
        "</iframe>",
        "<noscript>",
        "<xmp>",
        "</xmp>",
        "<svg>",
        "</svg>",
        "<svg/>",
        "<title/>",
        "<math ",
        "<!doctype",
        "<?",
        "<![CDATA[",
        "]]>",
        "&amp;",
        "&lt",
        "&#60;",
        "&#x3e",
        "&",
        ";",
        "\0",
        "ü",
        "\u{c}",
        "<plaintext",
        "`",
        "\r",
        "<a href=\"x\">",
        "<p class=\"y\" id=\"z\">",
        "<link rel=\"x\"",
        " href=\"",
        " x=\"y\"",
        "=\"",
        "\u{1}",
        "                                ",
    ]);
    prop::collection::vec(piece, 0..32).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn random_pages(page in page()) {
        assert_same(&page);
    }

    #[test]
    fn any_bytes_at_all(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = super::facts(&bytes);
    }
}
