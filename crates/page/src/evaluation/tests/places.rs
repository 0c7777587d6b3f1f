//! Tests of where failures are, and of the outcome of each rule.

use crate::evaluation::{Limits, MAX_PLACES, Outcome, find, is_html};
use nearcrawl_model::evaluation::{Gate, Rule};
use proptest::prelude::*;
use std::time::Duration;

fn places(page: &str) -> Vec<(Rule, u32, String)> {
    let found = find(page, &Limits::default(), &|| Duration::ZERO);
    assert_eq!(found.evaluation.gate, None, "{page}");
    assert_eq!(found.evaluation.total(), found.places.len() as u64, "{page}");
    found.places.into_iter().map(|place| (place.rule, place.line, place.tag)).collect()
}

#[test]
fn a_failure_stands_where_its_tag_begins() {
    let page = "<!doctype html>\n<html lang=en>\n<title>x</title>\r\n<!-- two\nlines --><p>\r<img\n  src=a\n  id='i'>x\n\n<img src=b><a href=c\n>\n</a>\
        <script>\n'<img>'\n</script><p id=i><i a=1\nA=2></i>\n<table><th>x";
    let expected = [
        (Rule::ImageName, 6, "<img id=\"i\" src=\"a\">"),
        (Rule::ImageName, 10, "<img src=\"b\">"),
        (Rule::LinkName, 10, "<a href=\"c\">"),
        (Rule::UniqueId, 6, "<img id=\"i\" src=\"a\">"),
        (Rule::UniqueId, 14, "<p id=\"i\">"),
        (Rule::UniqueAttribute, 14, "<i a=1 A=2>"),
        (Rule::TableHeaderCells, 16, "<th>"),
    ];
    assert_eq!(places(page), expected.map(|(rule, line, tag)| (rule, line, tag.to_owned())));
}

#[test]
fn the_first_failure_of_each_rule_is_told_apart() {
    let found =
        find("<html lang=en><title>x</title>\n<a href=x></a>\n<img><img>\n<a href=x></a><img>", &Limits::default(), &|| Duration::ZERO);
    let rules: Vec<Rule> = found.evaluation.failures.keys().copied().collect();
    assert_eq!((rules, found.first_lines()), (vec![Rule::ImageName, Rule::LinkName], vec![3, 2]));
}

#[test]
fn what_a_page_lacks_stands_at_its_root() {
    let expected = [(Rule::PageTitle, 1, "<html>".to_owned()), (Rule::PageLanguage, 1, "<html>".to_owned())];
    assert_eq!(places("\n\n<p>x"), expected.clone().map(|(rule, _, tag)| (rule, 3, tag)));
    assert_eq!(places("<p>\n\n\nx"), expected);
}

#[test]
fn a_tag_is_told_in_short_and_does_no_harm_to_a_terminal() {
    let [(.., tag)] = &places(&format!("<html lang=en><title>x</title><img src='\u{1b}[31m\n{}'>", "é".repeat(200)))[..] else { panic!() };
    assert!(tag.starts_with("<img src=\" [31m éé") && tag.ends_with("éé…>") && tag.chars().count() == 103, "{tag}");
    let many = find(&"<img>\n".repeat(MAX_PLACES + 5), &Limits::default(), &|| Duration::ZERO);
    assert_eq!(many.evaluation.failures[&Rule::ImageName] as usize, MAX_PLACES + 5);
    let told = many.places.iter().filter(|place| place.rule == Rule::ImageName).count();
    assert_eq!(told, MAX_PLACES, "the first ones");
}

#[test]
fn each_rule_has_an_outcome() {
    let outcome = |rule: Rule, page: &str| find(page, &Limits::default(), &|| Duration::ZERO).outcome(rule);
    assert_eq!(outcome(Rule::ImageName, "<p>x"), Outcome::Inapplicable);
    assert_eq!(outcome(Rule::ImageName, "<img alt=x>"), Outcome::Passed);
    assert_eq!(outcome(Rule::ImageName, "<img alt=x><img>"), Outcome::Failed);
    assert_eq!(outcome(Rule::ImageName, &"<div>".repeat(500)), Outcome::CannotTell);
    assert_eq!(outcome(Rule::PageTitle, "<title>x</title>"), Outcome::Passed);
    assert_eq!(outcome(Rule::RequiredContext, "<x-tabs><i role=tab>x</i></x-tabs>"), Outcome::CannotTell);
    assert_eq!(outcome(Rule::RequiredContext, "<x-tabs><i role=tab>x</i></x-tabs><p role=tab>x"), Outcome::Failed);
    assert_eq!(outcome(Rule::ObjectName, "<object data=x.png>fall-back</object>"), Outcome::CannotTell);
    assert_eq!(outcome(Rule::Zoom, "<meta name=viewport content='width=device-width'>"), Outcome::Inapplicable);
    assert_eq!(outcome(Rule::AriaDefined, "<p aria-label=x aria-lable=x>"), Outcome::Failed);
    assert_eq!(outcome(Rule::TableHeaderCells, "<table><tr><th>a<tbody></table>"), Outcome::CannotTell);
}

#[test]
fn what_is_no_page_is_not_looked_at() {
    for binary in ["\x7fELF\x02\x01\x01\0<p>", "%PDF-1.7\n\x01", "<p>\0"] {
        assert_eq!(find(binary, &Limits::default(), &|| Duration::ZERO).evaluation.gate, Some(Gate::NotHtml), "{binary:?}");
        assert!(!is_html(binary, true), "{binary:?}");
    }
    let pages = [
        "<p>x",
        "\u{feff}\n<!doctype HTML>",
        "<!-- <rss> --><html>",
        "<?xml version='1.0'?><html xmlns='…'>",
        "<my-app></my-app>",
        "<H1>x",
    ];
    for page in pages {
        assert!(is_html(page, false) && is_html(page, true), "{page}");
    }
    for only_if_called in ["Hours <b>8</b>", "{{ title }}<p>x"] {
        assert!(!is_html(only_if_called, false) && is_html(only_if_called, true), "{only_if_called}");
    }
    let others =
        ["", "plain text", "{\"a\": 1}", "<rss><title>x</title></rss>", "<?xml version='1.0'?><project>", "#include <stdio.h>\n", "a < b"];
    for other in others {
        assert!(!is_html(other, false) && !is_html(other, true), "{other}");
    }
}

proptest! {
    /// Wherever an element without a name stands, its line is found, whatever is around it.
    #[test]
    fn lines_are_counted_like_an_editor(before in prop::collection::vec(piece(), 0..12), behind in prop::collection::vec(piece(), 0..4)) {
        let before: String = before.concat();
        let page = format!("<!doctype html><html lang=en><title>x</title><body>{before}<img\nsrc=the-one>{}", behind.concat());
        let line = 1 + before.matches('\n').count() as u32;
        let found: Vec<u32> = places(&page).iter().filter(|(.., tag)| tag.contains("the-one")).map(|(_, line, _)| *line).collect();
        prop_assert_eq!(found, vec![line]);
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "\n",
        "x",
        " ",
        "<p>",
        "</p>\n",
        "<br\n>",
        "<!--\n-->",
        "<b\nid\n=\n'\n'>",
        "</b\n>",
        "<script>\n<b>\n</script>",
        "<style>\n</style\n>",
        "&amp;\n",
        "&#10;",
        "<textarea>\n\n</textarea>",
        "<ul>\n<li>",
        "<svg>\n<path\n/></svg>",
        "<table><tr><td>\n</table>",
        "</nothing\n>",
        "<?x\n?>",
        "<!x\n>",
        "< \n",
        "<pre>\n</pre>",
    ])
}
