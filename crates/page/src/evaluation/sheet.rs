//! Finds what the style sheets of a page may hide.
//!
//! These are selectors of rules that hide, in its own sheets; and what is known of the others, which are not read.

use super::{
    selector::{Kind, Selector, attr, classes},
    style,
    work::Work,
};
use scraper::{Html, Node, node::Element};
use std::{collections::HashMap, iter};

/// What style sheets may hide.
#[derive(Debug, Default)]
pub(super) struct Hiding {
    /// The selectors of rules that hide, by [`Selector::key`], a map for each kind. unordered: only looked up.
    by_key: [HashMap<String, Vec<Selector>>; 5],
    /// Whether there are style sheets that stand elsewhere.
    has_others: bool,
}

impl Hiding {
    /// What a page's style sheets may hide. Of one whose selectors are too many, nothing.
    pub(super) fn of(html: &Html, work: &Work) -> Hiding {
        let mut hiding = Hiding::default();
        for node in html.tree.nodes() {
            match node.value() {
                Node::Element(element) if is_link_to_sheet(element) => hiding.has_others = true,
                Node::Element(element) if element.name() == "style" && element.attr("media").is_none_or(is_for_screens) => {
                    node.children().filter_map(|child| child.value().as_text()).for_each(|sheet| hiding.read(sheet, work));
                }
                _ => {}
            }
        }
        hiding
    }

    fn read(&mut self, sheet: &str, work: &Work) {
        let sheet = Sheet::of(sheet, work);
        self.has_others |= sheet.imports;
        // A rule that hides everything is there to be undone, by a script or another rule.
        for selector in sheet.hiding.into_iter().filter(Selector::says_something) {
            let (kind, key) = selector.key();
            self.by_key[kind as usize].entry(key).or_default().push(selector);
        }
    }

    /// Whether there are style sheets that are not read, because they stand elsewhere.
    pub(super) fn has_others(&self) -> bool {
        self.has_others
    }

    /// The selectors of rules that hide, of those that may match an element.
    pub(super) fn candidates<'h>(&'h self, element: &'h Element, work: &'h Work) -> impl Iterator<Item = &'h Selector> {
        let of_id = attr(element, "id", work).into_iter().flat_map(|id| self.by(Kind::Id, id));
        let of_classes = classes(element, work).flat_map(|class| self.by(Kind::Class, class));
        let of_name = self.by(Kind::Name, element.name());
        let names = element.attrs().map(|(name, _)| name).take_while(|name| work.read(name));
        let of_attributes = names.flat_map(|name| self.by(Kind::Attribute, name));
        of_id.chain(of_classes).chain(of_name).chain(of_attributes).chain(self.by(Kind::Any, ""))
    }

    fn by(&self, kind: Kind, key: &str) -> &[Selector] {
        let of_kind = &self.by_key[kind as usize];
        let selectors = match () {
            () if of_kind.is_empty() => None,
            () if key.bytes().any(|byte| byte.is_ascii_uppercase()) => of_kind.get(&key.to_ascii_lowercase()),
            () => of_kind.get(key),
        };
        selectors.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a style sheet that stands elsewhere probably hides an element: one of its classes says so, in the words of common style
    /// sheets (Bootstrap, Tailwind, Foundation, Bulma, UIkit, WordPress).
    pub(super) fn is_hidden_by_name(&self, element: &Element, work: &Work) -> bool {
        let is_open = || classes(element, work).any(|class| OPEN.contains(&class));
        let hides = |class: &str| says_hidden(class) || (CLOSED.contains(&class) && !is_open());
        self.has_others && classes(element, work).any(|class| work.spend(class.len()) && hides(class))
    }
}

/// Classes of what is hidden until it is opened.
const CLOSED: [&str; 10] =
    ["modal", "collapse", "tab-pane", "dropdown-menu", "carousel-item", "offcanvas", "reveal", "uk-modal", "uk-dropdown", "uk-offcanvas"];

/// Classes of what is opened, and of what is closed on small screens only.
const OPEN: [&str; 9] = ["show", "in", "active", "open", "is-active", "is-open", "uk-open", "visible", "navbar-collapse"];

/// Whether a class says that it hides: `hidden`, `hide-on-mobile`, `lg:invisible`, `d-md-none`, `uk-hidden@m`, `isHidden`. What hides
/// from the eyes only (`visually-hidden`), and what hides something else (`overflow-hidden`), does not.
fn says_hidden(class: &str) -> bool {
    // Most classes have nothing of these words.
    let is_like = |part: &[u8]| [b"hid", b"vis", b"non", b"dis"].iter().any(|begin| part.eq_ignore_ascii_case(*begin));
    if class != "dn" && !class.as_bytes().windows(3).any(is_like) {
        return false;
    }
    let is_word = |words: &[&str]| words_of(class).any(|word| words.iter().any(|each| each.eq_ignore_ascii_case(word)));
    let of_display = || {
        let mut words = words_of(class);
        words.next().is_some_and(|first| matches!(first, "d" | "display")) && words.last() == Some("none")
    };
    let of_else =
        || is_word(&["overflow", "visually", "visual", "text", "backface", "sr", "a11y", "accessibly", "scroll", "scrollbar", "assistive"]);
    class == "dn" || class == "no-display" || of_display() || (is_word(&["hidden", "hide", "invisible"]) && !of_else())
}

/// The words of a name: `md:is-hidden` has three, `isHidden` two.
fn words_of(name: &str) -> impl Iterator<Item = &str> {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.flat_map(|word| {
        let mut rest = word;
        iter::from_fn(move || {
            let begin = rest.char_indices().skip(1).find(|(_, letter)| letter.is_ascii_uppercase());
            let (word, behind) = rest.split_at(begin.map_or(rest.len(), |(at, _)| at));
            rest = behind;
            (!word.is_empty()).then_some(word)
        })
    })
}

/// Whether an element brings a style sheet from elsewhere; one that is loaded first and applied later is one, too.
fn is_link_to_sheet(element: &Element) -> bool {
    let is_of = |word: &str| element.attr("rel").unwrap_or_default().split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(word));
    let is_preload = || is_of("preload") && element.attr("as").is_some_and(|kind| kind.eq_ignore_ascii_case("style"));
    // A sheet that is for print until it is loaded has a script that says otherwise.
    let is_shown = || element.attr("media").is_none_or(is_for_screens) || element.attr("onload").is_some();
    element.name() == "link"
        && element.attr("href").is_some()
        && is_shown()
        && (is_preload() || (is_of("stylesheet") && !is_of("alternate")))
}

/// Whether a list of media queries may hold for somebody who looks at a screen.
fn is_for_screens(queries: &str) -> bool {
    queries.split(',').any(|query| {
        let query = query.trim_ascii().to_ascii_lowercase();
        let (is_not, query) = match query.strip_prefix("not ") {
            Some(rest) => (true, rest.trim_ascii_start()),
            None => (false, query.strip_prefix("only ").unwrap_or(&query).trim_ascii_start()),
        };
        let medium = query.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        let is_screen = matches!(medium, "" | "all" | "screen");
        if is_not { !is_screen || query.contains('(') } else { is_screen }
    })
}

/// What matters of a style sheet.
#[derive(Debug, Default)]
struct Sheet {
    /// The selectors of rules that hide.
    hiding: Vec<Selector>,
    /// Whether it brings others from elsewhere.
    imports: bool,
}

/// How deep rules may be in one another.
const MAX_OPEN: usize = 30;

/// What stands before a brace that is open.
enum Block<'s> {
    /// A rule: its selectors, and whether it hides.
    Rule { selectors: &'s str, hides: bool },
    /// A condition that may hold.
    Condition,
    /// What has no rules for elements, or not for screens.
    Other,
}

impl Sheet {
    fn of(text: &str, work: &Work) -> Sheet {
        let text = without_comments(text);
        let mut sheet = Sheet::default();
        let mut open: Vec<Block<'_>> = Vec::new();
        let (mut rest, mut is_end) = (text.as_str(), false);
        while !is_end || !open.is_empty() {
            let length = length_of_part(rest);
            let (part, behind) = rest.split_at(length);
            let part = part.trim_ascii();
            let mark = behind.bytes().next();
            is_end = mark.is_none();
            rest = behind.get(1..).unwrap_or_default();
            match mark {
                Some(b'{') => open.push(Block::of(part, &open)),
                Some(b';') => sheet.declare(part, &mut open),
                _ => {
                    sheet.declare(part, &mut open);
                    sheet.close(open.pop(), &mut open, work);
                }
            }
        }
        sheet
    }

    /// A declaration belongs to the innermost rule that is open.
    fn declare(&mut self, part: &str, open: &mut [Block<'_>]) {
        if matches!(open.last(), Some(Block::Other)) {
            return;
        }
        self.imports |= open.is_empty() && part.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("@import"));
        if let Some(hides) = innermost(open) {
            let shown = style::shown(part);
            *hides |= shown.gone || shown.visible == Some(false);
        }
    }

    /// The selectors of a rule that hides are read once, at its end. If one stands for those of the rule around it, that one hides.
    fn close(&mut self, block: Option<Block<'_>>, open: &mut [Block<'_>], work: &Work) {
        let Some(Block::Rule { selectors, hides: true }) = block else { return };
        let mut outer = innermost(open);
        for selector in Selector::list(selectors, work) {
            match &mut outer {
                Some(hides) if selector.is_of_any() => **hides = true,
                _ => self.hiding.push(selector),
            }
        }
    }
}

/// Whether the innermost rule that is open hides.
fn innermost<'o>(open: &'o mut [Block<'_>]) -> Option<&'o mut bool> {
    open.iter_mut().rev().find_map(|block| match block {
        Block::Rule { hides, .. } => Some(hides),
        _ => None,
    })
}

impl<'s> Block<'s> {
    fn of(prelude: &'s str, open: &[Block<'s>]) -> Block<'s> {
        if open.len() >= MAX_OPEN || matches!(open.last(), Some(Block::Other)) {
            return Block::Other;
        }
        let Some(at) = prelude.strip_prefix('@') else {
            return Block::Rule { selectors: prelude, hides: false };
        };
        let name = at.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '-').next().unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "media" if !is_for_screens(&at[name.len()..]) => Block::Other,
            "media" | "supports" | "layer" | "container" | "scope" | "document" | "-moz-document" => Block::Condition,
            _ => Block::Other,
        }
    }
}

/// How far it is to the next brace or semicolon that is in no quotes and no brackets.
fn length_of_part(text: &str) -> usize {
    let (mut open, mut quote, mut is_escaped) = (0_u32, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (byte, quote) {
            _ if is_escaped => is_escaped = false,
            (b'\\', _) => is_escaped = true,
            // Quotes end with their line at the latest.
            (_, Some(mark)) if byte == mark || byte == b'\n' => quote = None,
            (_, Some(_)) => {}
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'(' | b'[', None) => open += 1,
            (b')' | b']', None) => open = open.saturating_sub(1),
            (b'{' | b'}', None) => return at,
            (b';', None) if open == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn without_comments(sheet: &str) -> String {
    let sheet = sheet.replace("<!--", "").replace("-->", "");
    let mut pieces = sheet.split("/*");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once("*/").map_or("", |(_, behind)| behind))
}

#[cfg(test)]
mod tests {
    use super::{Hiding, Sheet, is_for_screens, says_hidden};
    use crate::evaluation::{
        selector::Selector,
        work::{MAX_SELECTOR_PARTS, Work},
    };
    use proptest::prelude::*;
    use scraper::{ElementRef, Html};

    fn hidden(sheet: &str) -> Vec<Selector> {
        Sheet::of(sheet, &Work::default()).hiding
    }

    #[test]
    fn rules_that_hide_are_found() {
        let sheet = "@import 'x'; .a, #b /* { */ , p.c, .d .e { display: none } @media print { .f { display: none } .g{} } .h { color: red }
            @media screen and (min-width: 9em) { .k { color: red; display: none } } @font-face { display: none } .l { content: '}{' }
            @keyframes x { from { visibility: hidden } } @supports (a:b) { @layer y { [hidden] { display: none !important } } }
            @media print { @media screen { .m { display: none } } } .n { .o { display: none } &.p { color: red } @media all { display: none } }
            .i{visibility:hidden}.j{display:none";
        let list = |selectors| Selector::list(selectors, &Work::default());
        assert_eq!(hidden(sheet), list(".a, #b, p.c, .d .e, .k, [hidden], .o, .n, .i, .j"));
        assert!(Sheet::of(sheet, &Work::default()).imports);
        assert_eq!(hidden(".q { & { display: none } }"), list(".q"));
        for nothing in ["}} {{ @x { /*", "", "{", "}", ".a { display: block } .b { opacity: 0 }", "a:hover, b::after { display: none }"] {
            assert_eq!(hidden(nothing), [], "{nothing}");
            assert!(!Sheet::of(nothing, &Work::default()).imports, "{nothing}");
        }
    }

    #[test]
    fn selectors_of_a_rule_are_read_once() {
        let outer = ".a,".repeat(250);
        for inner in [format!("{}{{display:none}}", "&,".repeat(7_000)), "&{display:none}".repeat(7_000)] {
            assert_eq!(hidden(&format!("{outer}.b{{{inner}}}")).len(), 251);
        }
        assert_eq!(hidden(".a,.b{&,c{@media all{&{display:none}}}}").len(), 3);
    }

    #[test]
    fn selectors_that_are_kept_have_a_limit() {
        for piece in [".a,", "a ", "a.b", ":is(a,b)", ":not(:is(a,b),c)", "[a],", "*,", ".a:hover,"] {
            let work = Work::default();
            let few = Sheet::of(&format!("{}c{{display:none}}", piece.repeat(1000)), &work).hiding.len();
            assert!(!work.is_spent() && few > 0, "{piece}");
            let rule = format!("{}c{{display:none}}", piece.repeat(200_000 / piece.len()));
            let kept = Sheet::of(&rule.repeat(5), &work).hiding.len();
            assert!(work.is_spent() && kept <= MAX_SELECTOR_PARTS, "{piece}");
        }
    }

    #[test]
    fn media_are_for_screens_or_not() {
        for queries in
            ["", "all", "screen", "only screen and (color)", "print, screen", "(max-width: 9em)", "not print", "not screen and (color)"]
        {
            assert!(is_for_screens(queries), "{queries}");
        }
        for queries in ["print", "print and (color)", "speech", "not all", "not screen"] {
            assert!(!is_for_screens(queries), "{queries}");
        }
    }

    #[test]
    fn classes_say_that_they_hide() {
        for class in [
            "hidden",
            "hide",
            "d-none",
            "d-md-none",
            "lg:hidden",
            "invisible",
            "is-hidden-mobile",
            "hide-for-small-only",
            "uk-hidden@m",
            "elementor-hidden-phone",
            "isHidden",
            "u-hide",
            "mfp-hide",
            "hidden-xs",
        ] {
            assert!(says_hidden(class), "{class}");
        }
        for class in [
            "visually-hidden",
            "sr-only",
            "overflow-hidden",
            "text-hide",
            "visuallyHidden",
            "float-none",
            "list-none",
            "hideout",
            "d-block",
            "nonesuch",
            "",
        ] {
            assert!(!says_hidden(class), "{class}");
        }
    }

    #[test]
    fn sheets_from_elsewhere_are_seen() {
        let has_others = |page: &str| Hiding::of(&Html::parse_document(page), &Work::default()).has_others();
        for page in [
            "<link rel=stylesheet href=x>",
            "<link rel='preload' as=style href=x>",
            "<link rel=stylesheet media=print onload='media=0' href=x>",
            "<style>@import url(x;y);</style>",
        ] {
            assert!(has_others(page), "{page}");
        }
        for page in [
            "<link rel=stylesheet>",
            "<link rel=icon href=x>",
            "<link rel=stylesheet media=print href=x>",
            "<link rel='alternate stylesheet' href=x>",
            "<style>p { color: red }</style>",
        ] {
            assert!(!has_others(page), "{page}");
        }
        let by_name = |class: &str| {
            let html = Html::parse_document(&format!("<link rel=stylesheet href=x><p class='{class}'>"));
            let element = html.tree.nodes().filter_map(ElementRef::wrap).find(|element| element.value().name() == "p").unwrap();
            let work = Work::default();
            Hiding::of(&html, &work).is_hidden_by_name(element.value(), &work)
        };
        assert!(by_name("modal fade") && by_name("x collapse") && by_name("d-none d-md-block"));
        assert!(!by_name("modal fade show") && !by_name("collapse in") && !by_name("collapse navbar-collapse") && !by_name("fade"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in r#"[a-b .#:()\[\]{};@,&|>+~*'"\\é/0=-]{0,60}"#) {
            let sheet = format!("{text}{{display:none}} @media {text} {{ p:is({text}) {{ display:none }} }} b:not({text}){{visibility:hidden");
            let html = Html::parse_document("<p class=a id=b><b class=b a=b>x</b>");
            let mut hiding = Hiding::default();
            let work = Work::default();
            hiding.read(&sheet, &work);
            for element in html.tree.nodes().filter_map(ElementRef::wrap) {
                let ancestors = || element.ancestors().filter_map(|node| node.value().as_element());
                let candidates = hiding.candidates(element.value(), &work);
                let _ = candidates.filter(|selector| selector.may_match(element.value(), false, ancestors(), &work)).count();
            }
        }
    }
}
