//! Tests that what style sheets may hide is no failure: those of the page, and those that stand elsewhere and are not read.

use crate::evaluation::{Limits, Outcome, find};
use nearcrawl_model::evaluation::Rule;
use std::time::Duration;

fn outcome(rule: Rule, page: &str) -> Outcome {
    let found = find(page, &Limits::default(), &|| Duration::ZERO);
    assert_eq!(found.evaluation.gate, None, "{page}");
    found.outcome(rule)
}

const HIDDEN: &str = "<div class=m><div class='h x' aria-hidden=true><button>x</button></div></div>";
const PICTURE: &str = "<div class=m><div class='h x' aria-hidden=false><img src=x></div></div>";

/// What came of both, with this in the head.
fn outcomes(head: &str) -> (Outcome, Outcome) {
    (outcome(Rule::HiddenFocus, &format!("{head}{HIDDEN}")), outcome(Rule::ImageName, &format!("{head}{PICTURE}")))
}

#[test]
fn what_a_sheet_of_the_page_may_hide_fails_nothing() {
    for rule in [
        "div.h{display:none}",
        "[aria-hidden]{display:none}",
        ".m .h{display:none}",
        ".m > .h, b{visibility:hidden}",
        "@media screen{.h{display:none}}",
        "@media (max-width: 40em){.h{display:none !important}}",
        "body .h{display:none}",
        "body.closed .h{display:none}",
        ".js .h{display:none}",
        ".m{.h{display:none}}",
        ".m:not(.open) .x{display:none}",
        "div:nth-child(1).h{display:none}",
        ".m{display:none}",
    ] {
        assert_eq!(outcomes(&format!("<style>{rule}</style>")), (Outcome::CannotTell, Outcome::CannotTell), "{rule}");
    }
    let hidden = "<style>[aria-hidden=true]{display:none}</style>";
    assert_eq!(outcomes(hidden), (Outcome::CannotTell, Outcome::Failed), "the picture's is not true");
}

#[test]
fn what_no_sheet_of_the_page_hides_fails() {
    for rule in [
        "",
        "div.g{display:none}",
        ".k .h{display:none}",
        ".h:hover{display:none}",
        ".h::before{display:none}",
        "@media print{.h{display:none}}",
        "@keyframes k{from{visibility:hidden}}",
        ".h{opacity:0}",
        ".h{display:block}",
        ".h:not(.x){display:none}",
        "div:empty{display:none}",
        "*{visibility:hidden}",
        "body{visibility:hidden}",
        ":not(:defined){visibility:hidden}",
    ] {
        assert_eq!(outcomes(&format!("<style>{rule}</style>")), (Outcome::Failed, Outcome::Failed), "{rule}");
    }
    let print = "<style media=print>.h{display:none}</style>";
    assert_eq!(outcomes(print), (Outcome::Failed, Outcome::Failed));
}

#[test]
fn a_sheet_that_is_not_read_may_hide_what_has_a_class() {
    let link = "<link rel=stylesheet href=x.css>";
    let focus = |page: &str| outcome(Rule::HiddenFocus, &format!("{link}{page}"));
    for page in [
        "<div class='modal fade' tabindex=-1 aria-hidden=true><button>x</button></div>",
        "<div id=menu aria-hidden=true><a href=x>x</a></div>",
        "<div aria-hidden=true><p class=x><a href=x>x</a></p></div>",
        "<div aria-hidden=true><a href=x class=x>x</a></div>",
        "<div class=d-none><p aria-hidden=true><a href=x>x</a></p></div>",
        "<style>p{display:none}</style><p aria-hidden=true><a href=x>x</a></p>",
    ] {
        assert_eq!(focus(page), Outcome::CannotTell, "{page}");
    }
    for page in [
        "<div aria-hidden=true><a href=x>x</a></div>",
        "<body class=home><div id=page><p aria-hidden=true><a href=x>x</a></p></div>",
        "<div aria-hidden=true><a href=x class=x>x</a><a href=x>x</a></div>",
    ] {
        assert_eq!(focus(page), Outcome::Failed, "{page}");
    }
    assert_eq!(focus("<div class=x aria-hidden=true><a>x</a></div>"), Outcome::Passed);
    assert_eq!(outcome(Rule::HiddenFocus, "<div class=x aria-hidden=true><a href=x>x</a></div>"), Outcome::Failed, "no sheet, no class");
    assert_eq!(outcome(Rule::HiddenFocus, &format!("<style>@import 'x.css';</style>{HIDDEN}")), Outcome::CannotTell);

    let picture = |page: &str| outcome(Rule::ImageName, &format!("{link}{page}"));
    for page in [
        "<img class=d-none src=x>",
        "<div class='modal fade'><img src=x></div>",
        "<p class='md:hidden'><img src=x>",
        "<div class='tab-pane fade'><img src=x></div>",
    ] {
        assert_eq!(picture(page), Outcome::CannotTell, "{page}");
    }
    for page in [
        "<img class=logo src=x>",
        "<div class='overflow-hidden sr-only'><img src=x></div>",
        "<div class='tab-pane fade show active'><img src=x></div>",
        "<div class='collapse navbar-collapse'><img src=x></div>",
    ] {
        assert_eq!(picture(page), Outcome::Failed, "{page}");
    }
    assert_eq!(outcome(Rule::ImageName, "<img class=d-none src=x>"), Outcome::Failed, "nothing gives the class a meaning");
    assert_eq!(picture("<img class=d-none src=x><img src=y>"), Outcome::Failed);
    assert_eq!(picture("<img class=d-none src=x alt=x>"), Outcome::Inapplicable);
}
