//! What a page says of itself, for the record of its server, from one page of it.
//!
//! This is its language, script, character encoding, the program that made it, title, declared wishes.

use super::{
    charset::Charset,
    entities,
    raw_text::{self, Kind},
    tag::StartTag,
    tokens::StartTags,
};
use icu_properties::{CodePointMapData, PropertyNamesShort, props::Script};
use memchr::memchr;
use nearcrawl_model::facts::{FrontPage, MAX_TITLE, MAX_WORD, cleaned};
use std::collections::BTreeMap;

/// How much of a page is looked at, in bytes.
const LOOKED_AT: usize = 128 << 10;

/// How many letters decide on the script, and how few do not.
const MAX_LETTERS: usize = 4_096;
const MIN_LETTERS: usize = 16;

/// Reads what a page says of itself. `content_type` and `content_language` are the headers as they came.
pub fn front_page(bytes: &[u8], content_type: Option<&str>, content_language: Option<&str>) -> FrontPage {
    let (charset, rest) = Charset::of_page(bytes, content_type);
    let name = charset.name(rest);
    let rest = &rest[..rest.len().min(LOOKED_AT)];
    let text = charset.transcode(rest).map_or_else(|| charset.decode(rest), |(_, text)| text);
    let mut page = FrontPage { charset: Some(name.to_owned()), ..FrontPage::default() };
    let mut letters = Letters::default();
    let (bytes, mut behind) = (text.as_bytes(), 0);
    for tag in StartTags::every(bytes) {
        // The tag is a piece of the page: where it stands is known by its address.
        let begin = (tag.name().as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
        letters.count(visible(&text, behind, begin.saturating_sub(1)));
        let end = begin + tag.0.len() + 1;
        let kind = raw_text::kind(&tag);
        let inside = if kind == Kind::Markup { 0 } else { raw_text::length(kind, tag.name(), bytes.get(end..).unwrap_or_default()) };
        behind = end + inside;
        read_tag(&mut page, &tag, text.get(end..behind).unwrap_or_default());
    }
    letters.count(visible(&text, behind, text.len()));
    page.script = letters.script();
    page.language = page.language.or_else(|| content_language.and_then(|list| language(list.split(',').next()?)));
    page
}

/// Reads a tag, and the raw text behind it. What is said first counts.
fn read_tag(page: &mut FrontPage, tag: &StartTag<'_>, inside: &str) {
    let value = |name: &'static str| {
        let mut all = tag.attributes().filter(|attribute| attribute.name.eq_ignore_ascii_case(name.as_bytes()));
        all.next().map(|attribute| entities::decode(String::from_utf8_lossy(attribute.value)).into_owned())
    };
    if tag.is(b"html") && page.language.is_none() {
        page.language = [value("lang"), value("xml:lang")].into_iter().flatten().find_map(|tag| language(&tag));
    } else if tag.is(b"title") && page.title.is_none() {
        page.title = cleaned(&entities::decode(inside.into()), MAX_TITLE);
    } else if tag.is(b"meta") {
        let (Some(content), name) = (value("content"), value("name").unwrap_or_default()) else { return };
        if name.eq_ignore_ascii_case("generator") && page.generator.is_none() {
            page.generator = cleaned(&content, MAX_WORD);
        } else if name.eq_ignore_ascii_case("tdm-reservation") && page.tdm_reserved.is_none() {
            page.tdm_reserved = match content.trim() {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            };
        }
    }
}

/// A language tag, if it may be one: letters, digits and hyphens. An underline is taken for a hyphen.
fn language(tag: &str) -> Option<String> {
    let tag = tag.trim().replace('_', "-");
    let fits = (2..=MAX_WORD / 2).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (fits && tag.as_bytes()[0].is_ascii_alphabetic()).then_some(tag)
}

/// The text between two places that is no end tag. A comment may count as text.
fn visible(text: &str, from: usize, to: usize) -> impl Iterator<Item = char> + '_ {
    let mut rest = text.get(from..to).unwrap_or_default();
    std::iter::from_fn(move || {
        if rest.starts_with('<') {
            rest = memchr(b'>', rest.as_bytes()).map_or("", |at| &rest[at + 1..]);
            return Some(' ');
        }
        let next = rest.chars().next()?;
        rest = &rest[next.len_utf8()..];
        Some(next)
    })
}

/// Letters counted by their script.
#[derive(Default)]
struct Letters {
    by_script: BTreeMap<Script, usize>,
    counted: usize,
}

impl Letters {
    fn count(&mut self, text: impl Iterator<Item = char>) {
        let scripts = CodePointMapData::<Script>::new();
        for letter in text.filter(|c| c.is_alphabetic()) {
            if self.counted >= MAX_LETTERS {
                return;
            }
            let script = scripts.get(letter);
            if script != Script::Common && script != Script::Inherited {
                self.counted += 1;
                *self.by_script.entry(script).or_default() += 1;
            }
        }
    }

    /// The script of most letters, by its code. Japanese is written in three, which count as one; Korean may have two.
    fn script(&self) -> Option<String> {
        let of = |script: Script| self.by_script.get(&script).copied().unwrap_or(0);
        let kana = of(Script::Hiragana) + of(Script::Katakana);
        let (script, most) = self.by_script.iter().max_by_key(|(_, count)| **count).map(|(script, count)| (*script, *count))?;
        if self.counted < MIN_LETTERS {
            return None;
        }
        let japanese = kana + of(Script::Han);
        if kana * 10 >= japanese && japanese > 0 && japanese >= most {
            return Some("Jpan".to_owned());
        }
        if of(Script::Hangul) > 0 && of(Script::Hangul) >= most {
            return Some("Kore".to_owned());
        }
        PropertyNamesShort::<Script>::new().get(script).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str) -> FrontPage {
        front_page(page.as_bytes(), Some("text/html; charset=utf-8"), None)
    }

    #[test]
    fn a_page_says_what_it_is() {
        let page = "<!doctype html><html LANG='pt_BR' class=x><head><meta name=Generator content='WordPress&nbsp;6.8'>\
            <meta name=tdm-reservation content=1><title>\n Museu &amp;\n Arquivo </title><title>x</title><script>var лес = 'не считается';</script>\
            </head><body><p>Bem-vindo ao museu da cidade.</p></body></html>";
        let read = read(page);
        assert_eq!((read.language.as_deref(), read.title.as_deref()), (Some("pt-BR"), Some("Museu & Arquivo")));
        assert_eq!((read.generator.as_deref(), read.tdm_reserved), (Some("WordPress 6.8"), Some(true)));
        assert_eq!((read.script.as_deref(), read.charset.as_deref()), (Some("Latn"), Some("UTF-8")));
    }

    #[test]
    fn scripts_are_told_by_most_letters_outside_of_markup() {
        for (text, code) in [
            ("Добро пожаловать в музей города <b class='latin letters are not counted'>", Some("Cyrl")),
            ("مرحبا بكم في متحف المدينة القديمة", Some("Arab")),
            ("東京国立博物館へようこそ。展示室のご案内はこちらです。", Some("Jpan")),
            ("欢迎来到中国国家博物馆参观我们的展览和收藏品", Some("Hani")),
            ("국립중앙박물관에 오신 것을 환영합니다 안내", Some("Kore")),
            ("ยินดีต้อนรับสู่พิพิธภัณฑ์แห่งชาติ", Some("Thai")),
            ("short", None),
            ("123 456 789 012 345 678", None),
        ] {
            assert_eq!(read(&format!("<p>{text}</p>")).script.as_deref(), code, "{text}");
        }
    }

    #[test]
    fn the_header_s_language_counts_where_the_page_has_none_and_nonsense_nowhere() {
        let language = |page: &str, header| front_page(page.as_bytes(), None, header).language;
        assert_eq!(language("<html lang=sw>", Some("en")).as_deref(), Some("sw"));
        assert_eq!(language("<html lang=''>", Some("en-KE, sw")).as_deref(), Some("en-KE"));
        assert_eq!(language("<html xml:lang=sw lang='<b>'>", None).as_deref(), Some("sw"));
        assert_eq!(language("<p>", Some("all of them, really")), None);
    }

    #[test]
    fn encodings_are_told_as_they_are_read() {
        let charset = |bytes: &[u8], header| front_page(bytes, header, None).charset.unwrap();
        assert_eq!(charset(b"<p>caf\xe9", None), "windows-1252");
        assert_eq!(charset("<p>café".as_bytes(), None), "UTF-8");
        assert_eq!(charset(b"<meta charset=koi8-r>", None), "KOI8-R");
        let wide: Vec<u8> = "<title>Ж</title>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let page = front_page(&[b"\xff\xfe".as_slice(), &wide].concat(), None, None);
        assert_eq!((page.charset.as_deref(), page.title.as_deref()), (Some("UTF-16LE"), Some("Ж")));
    }

    #[test]
    fn hostile_pages_are_read_to_the_end_and_bring_nothing_unclean() {
        let long = "x".repeat(5_000);
        let pages = [
            format!("<html lang={long}><title>{long}\u{7}</title><meta name=generator content='\u{1b}[2J{long}'>"),
            "<".repeat(300_000),
            "<title>".repeat(30_000),
            "é<".repeat(70_000),
            "<!--".repeat(50_000),
            "<p title='".to_owned(),
        ];
        for page in pages {
            let read = read(&page);
            assert!(nearcrawl_model::facts::Fact::FrontPage(read.clone()).is_plausible(), "{read:?}");
        }
    }
}
