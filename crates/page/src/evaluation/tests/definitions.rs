//! Tests of what comes of a rule where its definition, or a standard that it refers to, draws a fine line; and where nobody can tell.

use crate::evaluation::{
    Limits,
    Outcome::{self, CannotTell, Failed, Inapplicable, Passed},
    find,
};
use nearcrawl_model::evaluation::Rule;
use std::time::Duration;

fn told(rule: Rule, outcome: Outcome, pages: &[&str]) {
    for page in pages {
        let found = find(page, &Limits::default(), &|| Duration::ZERO);
        assert_eq!(found.evaluation.gate, None, "{page}");
        assert_eq!(found.outcome(rule), outcome, "{} of {page}", rule.id());
    }
}

#[test]
fn one_radio_button_of_a_group_is_in_the_tab_order() {
    let radio = |more: &str| format!("<input type=radio name=a {more}>");
    let (hidden, checked) = (format!("<p aria-hidden=true>{}</p>", radio("")), radio("checked"));
    let told = |outcome, page: String| told(Rule::HiddenFocus, outcome, &[&page]);
    told(Passed, format!("{hidden}{checked}"));
    told(Passed, format!("<form>{hidden}{checked}</form>"));
    told(Passed, format!("<form id=f></form>{}{}", hidden.replace("name=a", "name=a form=f"), radio("form=f checked")));
    told(Passed, format!("<p aria-hidden=true>{checked}</p>{checked}"));
    told(Failed, hidden.clone());
    told(Failed, format!("{hidden}{}", radio("")));
    told(Failed, format!("<form>{hidden}</form>{checked}"));
    told(Failed, format!("{hidden}{}", checked.replace("name=a", "name=b")));
    told(Failed, format!("<p aria-hidden=true>{checked}</p>{}", radio("")));
    told(Failed, format!("{checked}<p aria-hidden=true>{checked}</p>"));
    told(Failed, format!("{}{}", hidden.replace("name=a", ""), checked.replace("name=a", "")));
}

#[test]
fn nobody_can_tell_where_a_script_takes_the_focus() {
    let script = |script: &str, page: &str| format!("<script>{script}</script>{page}");
    let by_tag = "document.querySelector(\"[aria-hidden] a\").addEventListener(\"focus\", wrap)";
    let by_class = "$(\".btn\").on(\"focus\", log)";
    for (rule, attributes) in [(Rule::HiddenFocus, "aria-hidden=true"), (Rule::PresentationalFocus, "role=img aria-label=x")] {
        let page = |inner: &str| format!("<div {attributes}>{inner}</div>");
        told(
            rule,
            CannotTell,
            &[
                &page("<button onfocus='track()'>x</button>"),
                &script(by_class, &page("<button class=btn>x</button>")),
                &script(by_tag, &page("<a href=x>x</a>")),
                &page("<iframe src=x></iframe>"),
                &page("<iframe src=x tabindex=0></iframe>"),
            ],
        );
        told(
            rule,
            Failed,
            &[
                &page("<button>x</button>"),
                &page("<button onfocus='x = 1'>x</button>"),
                &page("<button onfocus='track()'>x</button><a href=x>x</a>"),
                &script(by_class, &page("<button class=other>x</button>")),
                &script("a.addEventListener('click', b)", &page("<a href=x>x</a>")),
                &page("<details>x</details>"),
            ],
        );
        told(
            rule,
            Passed,
            &[
                &page("<button disabled onfocus='track()'>x</button>"),
                &page("<iframe src=x tabindex=-1></iframe>"),
                &page("<iframe src=x style='display:none;display:bogus'></iframe>"),
                &page("<details hidden>x</details>"),
                &page("<details><summary tabindex=-1>x</summary></details>"),
            ],
        );
    }
    told(Rule::HiddenFocus, CannotTell, &["<iframe src=x aria-hidden=true></iframe>"]);
    told(Rule::HiddenFocus, Failed, &["<details aria-hidden=true>x</details>"]);
    let styled = "<style>.h{display:none}</style><p role=img aria-label=x><a href=x class=h>x</a></p>";
    told(Rule::PresentationalFocus, CannotTell, &[styled]);
    told(Rule::HiddenFocus, Passed, &["<p aria-hidden=true><a href=x style='display:none;display:bogus'>x</a></p>"]);
}

#[test]
fn standard_and_browsers_differ_on_headers_beside_empty_cells() {
    let table = Rule::TableHeaderCells;
    told(
        table,
        CannotTell,
        &[
            "<table><tr><td></td><th>Mon</th></tr><tr><td>1</td><td></td></tr></table>",
            "<table><tr><td><th>a<tr><td>b<td>1</table>",
            "<table><tr><th scope=colgroup colspan=2>G<tr><td>1<td>2</table>",
            // What has no name may be seen or not.
            "<table><tr><td>1<th scope=row><img alt='' src=x></table>",
        ],
    );
    told(
        table,
        Passed,
        &[
            "<table><tr><th>a<tr><td></table>",
            "<table><tr><td><th scope=col>a<tr><td>b<td>1</table>",
            "<table><tr><th>a<th>b<tr><th>c<td></table>",
            "<table><tr><td><th>a<th role=cell>b</table>",
            "<table><colgroup span=2></colgroup><tr><th scope=colgroup colspan=2>G<tr><td>1<td>2</table>",
            "<table><tr><th><img alt='' src=x><tr><td>1</table>",
        ],
    );
    told(table, Failed, &["<table><tr><td>1<th scope=row>a</table>", "<table><tr><td><tr><th scope=col>a</table>"]);
    told(table, Inapplicable, &["<table><tr><td>1<th scope=row> </table>"]);
}
