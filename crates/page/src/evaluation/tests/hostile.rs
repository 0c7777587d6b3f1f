//! Tests with markup that is written to cost: it is refused by name, or evaluated as quickly as any page.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "how long it takes is what is tested")]

use crate::evaluation::{Limits, evaluate};
use nearcrawl_model::evaluation::{Evaluation, Gate, Rule};
use std::{
    fmt::Write,
    time::{Duration, Instant},
};

/// For one page, on the slow side of a busy machine, in an unoptimised build. `benches/evaluation.rs` measures an optimised one.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// All limits but that of time, so that it is the markup that decides.
fn limits() -> Limits {
    Limits { time: PAGE_TIMEOUT, ..Limits::default() }
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
