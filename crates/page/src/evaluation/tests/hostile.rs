//! Tests with markup that is written to cost: it is refused by name, or evaluated as quickly as any page.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "how long it takes is what is tested")]

use crate::evaluation::{Limits, evaluate};
use nearcrawl_model::evaluation::{Evaluation, Gate, Rule};
use proptest::prelude::*;
use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

/// For one page, in an unoptimised build on a busy machine: steps decide, and this finds what does not count them. `benches/evaluation.rs`
/// measures an optimised build.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Without the usual limit of time, so that it is the markup that decides; with a quarter of the steps, as each takes several times as long
/// in an unoptimised build.
fn limits() -> Limits {
    Limits { time: PAGE_TIMEOUT, steps: Limits::default().steps / 4, ..Limits::default() }
}

fn cost(name: &str, text: &str) -> Evaluation {
    cost_within(name, text, &limits())
}

fn cost_within(name: &str, text: &str, limits: &Limits) -> Evaluation {
    let begun = Instant::now();
    let evaluation = evaluate(text, limits, &|| begun.elapsed());
    let took = begun.elapsed();
    println!("{name:<28} {:>8} bytes {took:>12.1?} {:?}", text.len(), evaluation.gate);
    assert!(took < PAGE_TIMEOUT, "{name} took {took:?}");
    evaluation
}

/// As many copies as make about 48 KiB.
fn many(piece: &str) -> String {
    piece.repeat((48 << 10) / piece.len())
}

/// Numbered copies of `before`, a number and `behind`.
fn numbered(before: &str, behind: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = write!(text, "{before}{number}{behind}");
        text
    })
}

#[test]
fn what_is_deep_is_refused() {
    for (name, text) in [
        ("nested lists", many("<ul><li>")),
        ("nested divisions", many("<div>")),
        ("nested tables", many("<table><tr><td>")),
        ("formatting in paragraphs", numbered("<p><b id=", ">", 9_000)),
        ("foreign elements", many("<svg><g>")),
        ("annotation in foreign", format!("<p>{}", many("<math><mi><b>"))),
    ] {
        assert_eq!(cost(name, &text).gate, Some(Gate::TooDeep), "{name}");
    }
}

#[test]
fn what_has_many_attributes_is_refused() {
    let attributes = numbered(" a", "=1", 100_000);
    assert_eq!(cost("many attributes", &format!("<p{attributes}>")).gate, Some(Gate::TooManyAttributes));
    assert_eq!(cost("many attributes, no end", &format!("<p{attributes}")).gate, Some(Gate::TooManyAttributes));
    assert_eq!(cost("attributes on an end tag", &format!("<p>x</p{attributes}>")).gate, Some(Gate::TooManyAttributes));
    assert_eq!(cost("gathered attributes", &numbered("<body a", "=1>", 40_000)).gate, Some(Gate::TooManyAttributes));
}

#[test]
fn what_grows_in_the_tree_is_refused() {
    // The standard opens all unclosed formatting elements anew in each paragraph.
    let formats = numbered("<font size=", ">", 100);
    let few = Limits { elements: 10_000, ..limits() };
    let grown = cost_within("reopened formatting", &format!("{formats}{}", many("<p>x")), &few);
    assert_eq!(grown.gate, Some(Gate::TooManyElements));
    let late = Limits { time: Duration::ZERO, ..Limits::default() };
    assert_eq!(cost_within("slow by any measure", &many("<p>x"), &late).gate, Some(Gate::TooSlow));
    assert_eq!(cost("too long", &"x".repeat(2 << 20)).gate, Some(Gate::TooLong));
}

#[test]
fn what_refers_to_everything_is_refused() {
    let targets = numbered("<i id=", "></i>", 4_000);
    let all: String = numbered("", " ", 4_000);
    let links = format!("<a href=x aria-labelledby='{all}'></a>").repeat(5);
    assert_eq!(cost("references", &format!("{targets}{links}")).gate, None);
    let nested = format!("{}{}", "<i role=button>".repeat(100), "<b></b>".repeat(20_000));
    assert_eq!(cost("names of names", &nested).gate, Some(Gate::TooEntangled));
    let styled = format!("<style>{}b{{display:none}}</style>{}", many("u i,"), many("<i></i>"));
    assert_eq!(cost("selectors of everything", &styled).gate, Some(Gate::TooEntangled));
}

/// An element that is left open is opened anew in each paragraph, with the same long value: uncounted, a page of 1 MiB takes minutes to hours.
#[test]
fn long_values_are_counted_as_often_as_they_are_read() {
    let limits = Limits { steps: 4_000_000, ..limits() };
    for (attribute, piece) in [
        ("style", "a:b;"),
        ("style", " "),
        ("class", "hidhid-overflow "),
        ("class", "x-hidde"),
        ("class", " "),
        ("role", "a "),
        ("id", "a"),
        ("lang", "a"),
        ("lang", " "),
        ("aria-hidden", " "),
        ("aria-label", " "),
        ("aria-relevant", "text "),
        ("aria-owns", "x "),
        ("title", " "),
        ("tabindex", "1"),
    ] {
        let page = |value: &str| {
            let others = if attribute == "role" { "" } else { "role=button" };
            format!("<link rel=stylesheet href=x><p><b {others} {attribute}='{value}'>{}", "<p>x".repeat(5_000))
        };
        let long = piece.repeat(100_000 / piece.len());
        assert_eq!(cost_within(attribute, &page(&long), &limits).gate, Some(Gate::TooEntangled), "{attribute} of {piece:?}");
        assert_eq!(cost_within(attribute, &page(piece), &limits).gate, None, "{attribute} of {piece:?}");
    }
    let names = |name: &str| format!("<style>[a]{{display:none}}</style><p><b {name}>{}", "<p>x".repeat(5_000));
    assert_eq!(cost_within("names", &names(&"n".repeat(100_000)), &limits).gate, Some(Gate::TooEntangled));
    assert_eq!(cost_within("names", &names("n"), &limits).gate, None);
}

#[test]
fn attributes_are_counted_as_often_as_they_are_opened_anew() {
    let many = numbered(" a", "", 190);
    let elements: String = (0..100).map(|number| format!("<b z{number}{many}>")).collect();
    let cost = |name, page: String| cost_within(name, &page, &limits()).gate;
    assert_eq!(cost("attributes opened anew", format!("<p>{elements}{}", "<p>x".repeat(100))), Some(Gate::TooManyAttributes));
    assert_eq!(cost("one with many, opened anew", format!("<p><b{many}>{}", "<p>x".repeat(10_000))), Some(Gate::TooManyAttributes));
    assert_eq!(cost("attributes", format!("<p>{elements}{}", "<p>x".repeat(10))), None);
    // What does not count as a visit of its own.
    let asked_often = format!("{}{}", "<i role=button>".repeat(100), format!("<b{many}></b>").repeat(1_000));
    let few = Limits { steps: 5_000_000, ..limits() };
    assert_eq!(cost_within("asked for attributes", &asked_often, &few).gate, Some(Gate::TooEntangled));
}

/// Each test of a selector, and each class that is compared with it.
#[test]
fn comparisons_of_selectors_are_counted() {
    let limits = Limits { steps: 4_000_000, ..limits() };
    let refused = |name: &str, selectors: &str, around: &str, element: &str| {
        let style = format!("<style>{selectors}{{display:none}}</style>");
        let page = |style: &str| format!("{style}{around}{}", element.repeat(200));
        assert_eq!(cost_within(name, &page(&style), &limits).gate, Some(Gate::TooEntangled), "{name}");
        assert_eq!(cost_within(name, &page(""), &limits).gate, None, "{name}");
    };
    let classes = numbered("y", " ", 100);
    let not = format!(":not({})", numbered(".x", ",", 99));
    let element = format!("<b class='{classes}'>x</b>");
    refused("classes", &format!("b{}:empty", not.repeat(50)), "", &element);
    let around = format!("<i class='{classes}'>").repeat(100);
    refused("classes around", &format!("{}:empty b", numbered(":not(.x", ")", 90)), &around, "<b>x</b>");
    refused("tests", &format!("{}b:empty", numbered("b[z", "],", 1_000)), "", &format!("<b{}>x</b>", numbered(" a", "", 190)));
    let (name, value) = ("x".repeat(900), "y".repeat(900));
    refused("values", &format!("b[a*={name}],").repeat(200), "", &format!("<b a={value}>x</b>"));
    refused("long classes", &format!(".{name}y b,").repeat(100), &format!("<i class={name}x>").repeat(50), "<b>x</b>");
}

#[test]
fn selectors_are_kept_up_to_a_limit() {
    let outer = "a,".repeat(499);
    for (name, inner) in [("selectors of a rule", "&,".repeat(1_000)), ("rules within a rule", "&{display:none}".repeat(1_000))] {
        assert_eq!(cost(name, &format!("<style>{outer}b{{{inner}b{{display:none}}}}</style><p>x")).gate, None, "{name}");
    }
    let many = format!("<style>{}{{display:none}}</style><p>x", numbered(".a", ",", 100_000));
    assert_eq!(cost("100,000 selectors", &many).gate, Some(Gate::TooEntangled));
}

#[test]
fn what_is_looked_at_for_each_reference_is_counted() {
    let references = "x ".repeat(100_000);
    let labels = format!("<input id=x>{}<a href=x aria-labelledby='{references}'></a>", "<label for=x></label>".repeat(10_000));
    assert_eq!(cost("labels", &labels).gate, Some(Gate::TooEntangled));
    let owners = format!("{}{}", "<i>".repeat(120), "<b role=listitem></b>".repeat(20_000));
    assert_eq!(cost("owners", &owners).gate, Some(Gate::TooEntangled));
    let choices = format!("<select id=x>{}</select><a href=x aria-labelledby='{references}'></a>", "<option>".repeat(10_000));
    assert_eq!(cost("choices", &choices).gate, Some(Gate::TooEntangled));
    let radios = format!("{}<b aria-hidden=true>{}", "<i>".repeat(100), "<input type=radio name=a>".repeat(20_000));
    assert_eq!(cost("forms of radio buttons", &radios).gate, Some(Gate::TooEntangled));
    // What is long is read once, not for each reference.
    for target in [format!("<b id=x>{}</b>", " ".repeat(500_000)), format!("<x{} id=x></x>", "n".repeat(500_000))] {
        assert_eq!(cost("long targets", &format!("{target}<a href=x aria-labelledby='{references}'></a>")).gate, None);
    }
    let number = format!("<meta name=viewport content='maximum-scale={}{}'>", "1".repeat(500_000), "-".repeat(500_000));
    assert_eq!(cost("a long number", &number).gate, None);
}

/// Pieces whose costs may multiply.
const PIECES: &[&str] = &[
    "<p>x",
    "<p><b class='a b c' style='color:red' id=x>",
    "<i role=button aria-label=' '>",
    "<a href=x aria-labelledby='x x x x'>",
    "<label for=x></label>",
    "<input id=x>",
    "</b>",
    "</i></a>",
    "<b role=listitem aria-owns='x y'></b>",
    "<table><tr><th id=y scope=colgroup colspan=9 rowspan=0>x<td headers='x y'>",
    "<colgroup span=3>",
    "<div aria-hidden=true role=img>",
    "</div>",
    "<details><summary>",
    "<style>.a .b:not(.c,.d,:is(.e)) c, &{&{display:none}}</style>",
    "<style>b:empty, [class~=b]:not([id=z]) > p{visibility:hidden}",
    "<style>@media{a,b,",
    "&,&,&{display:none}",
    "<script>'focus' x y",
    "</script></style>",
    "<!---->",
    "<x-y lang=a>",
    "<svg><title></title><g role=img>",
    "</svg>",
    "<map name=x><area href=x></map><img usemap=#x alt='",
    "'>",
    "                ",
    "<link rel=stylesheet href=x>",
    "<select id=x><option selected>",
    "<form id=y><input type=radio name=z form=y checked>",
    "<details aria-hidden=true><iframe></iframe>",
    "<section title=x><header aria-label=x>",
    "<dl><p role=list>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is repeated next to whatever: it ends, and either everything is told or nothing.
    #[test]
    fn pieces_that_multiply_end(parts in proptest::collection::vec((0..PIECES.len(), 0..12_u32), 1..12)) {
        let page: String = parts.iter().map(|(piece, doublings)| PIECES[*piece].repeat(1 << doublings)).collect();
        let limits = Limits { steps: 2_000_000, ..limits() };
        let found = cost_within("pieces", &page, &limits);
        prop_assert!(found.gate.is_none() || found.failures.is_empty());
        prop_assert!(found.elements as usize <= limits.elements);
    }
}

#[test]
fn what_is_odd_is_told_like_anything_else() {
    for (name, text) in [
        ("spans in paragraphs", many("<p><span>")),
        ("misnested formatting", many("<b><i></b></i>")),
        ("misnested blocks", many("<b><p></b></p>")),
        ("adoption agency", many("<a><div></a>")),
        ("stray end tags, deep down", format!("{}{}", "<div>".repeat(110), many("</x>"))),
        ("paragraphs, deep down", format!("{}{}", "<div>".repeat(110), many("<p>"))),
        ("adoption, deep down", format!("{}{}", "<div>".repeat(100), many("<a><p></a></p>"))),
        ("tables, deep down", format!("{}{}", "<i>".repeat(100), many("<table><tr><td><b>x</table>"))),
        ("stray end tags", many("</p></br></div>")),
        ("stray cells", many("<td><tr><table></table>")),
        ("foster-parented tables", many("<table><a>")),
        ("text in tables", format!("<table>{}", many("x<tr>"))),
        ("wide spans", format!("<table>{}", many("<tr><td rowspan=65534 colspan=999>"))),
        ("long rows", format!("<table><tr>{}", many("<td>"))),
        ("buttons and forms", many("<button><form>")),
        ("comments", many("<!-- x --><!>")),
        ("open comment", format!("<!--{}", many("-"))),
        ("entities", many("&amp;&lt&notit;&#x41;")),
        ("options", format!("<select>{}", many("<option>"))),
        ("labels", many("<label for=x>")),
        ("templates", many("<template></template>")),
        ("frames", many("<iframe srcdoc='<iframe>'></iframe>")),
        ("open script", format!("<script>{}", many("<!--<script>"))),
        ("open braces", format!("<style>{}", many("a{"))),
        ("nested rules", format!("<style>{}", many("&a,b{display:none;"))),
        ("nested selectors", format!("<style>{}{{display:none}}", many(":is("))),
        ("open brackets in lists", format!("<style>{}{{display:none}}", many("(,"))),
        ("long selectors", format!("<style>{}{{display:none}}</style><p>", many("a "))),
        ("deep conditions", format!("<style>{}", many("@media{a;"))),
        ("choices", format!("<style>:is({}){{display:none}}</style>{}", many("b,"), many("<p>"))),
        ("classes", format!("<style>{}{{display:none}}</style><p class='{}'>", numbered(".a", ",", 9_000), numbered("a", " ", 9_000))),
        ("many selectors", format!("<style>{}c{{display:none}}</style>{}", many("a b,"), many("<p>"))),
        ("nothing but nulls", many("\0")),
        ("nothing but open brackets", many("<")),
    ] {
        let _ = cost(name, &text);
    }
}

#[test]
fn nothing_breaks_on_the_way() {
    assert_eq!(evaluate("", &Limits::default(), &|| Duration::ZERO).gate, None);
    assert_eq!(
        evaluate("<svg xmlns='http://www.w3.org/2000/svg'><title>x</title></svg>", &Limits::default(), &|| Duration::ZERO).gate,
        Some(Gate::NotHtml)
    );
    let cut = "<html lang=en><title>é</title><img src=x><p id=\"";
    for end in (0..=cut.len()).filter(|end| cut.is_char_boundary(*end)) {
        let _ = evaluate(&cut[..end], &Limits::default(), &|| Duration::ZERO);
    }
    // What owns itself in a circle.
    let circle = "<div role=listitem id=a aria-owns=b></div><div id=b role=none aria-owns=a></div><i role=tab id=c aria-owns=c></i>";
    let found = evaluate(circle, &Limits::default(), &|| Duration::ZERO);
    assert_eq!((found.gate, found.failures[&Rule::RequiredContext]), (None, 2));
}
