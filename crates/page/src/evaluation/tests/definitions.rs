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
fn headers_and_footers_of_parts_of_the_page_are_not_named() {
    let permitted = Rule::AriaPermitted;
    told(
        permitted,
        Failed,
        &[
            "<article><header aria-label=x>y</header></article>",
            "<section><div><footer aria-label=x>y</footer></div></section>",
            "<main><header aria-labelledby=x>y</header></main>",
            "<nav><header aria-label=x>y</header></nav>",
            "<aside><footer aria-braillelabel=x>y</footer></aside>",
            "<div role=region><header aria-label=x>y</header></div>",
            "<div role=complementary><header aria-label=x>y</header></div>",
        ],
    );
    told(
        permitted,
        Passed,
        &[
            "<header aria-label=x>y</header><main>z</main>",
            "<div role=group><footer aria-label=x>y</footer></div>",
            "<article><header role=group aria-label=x>y</header></article>",
            "<article><header aria-live=off>y</header></article>",
            "<header><article aria-label=x>y</article></header>",
        ],
    );
}

#[test]
fn sections_are_regions_if_they_have_a_name() {
    let permitted = Rule::AriaPermitted;
    told(
        permitted,
        Failed,
        &[
            "<section aria-roledescription=slide>x</section>",
            "<article><aside aria-roledescription=note>x</aside></article>",
            "<section><aside aria-brailleroledescription=note>x</aside></section>",
        ],
    );
    told(
        permitted,
        Passed,
        &[
            "<section aria-roledescription=slide title=x>x</section>",
            "<section aria-roledescription=slide aria-labelledby=h><h2 id=h>x</h2></section>",
            "<section role=region aria-roledescription=slide>x</section>",
            "<aside aria-roledescription=note>x</aside>",
            "<main><aside aria-roledescription=note>x</aside></main>",
            "<article><aside aria-roledescription=note aria-label=y>x</aside></article>",
            "<section aria-label=x>y</section>",
        ],
    );
    told(permitted, CannotTell, &["<section aria-label=''>x</section>", "<section><aside aria-label=' '>x</aside></section>"]);
    let context = Rule::RequiredContext;
    told(context, Passed, &["<div role=tablist><section><i role=tab>x</i></section></div>"]);
    told(context, Failed, &["<div role=tablist><section aria-label=y><i role=tab>x</i></section></div>"]);
}

#[test]
fn what_is_edited_says_so_with_a_valid_value() {
    let permitted = Rule::AriaPermitted;
    told(
        permitted,
        Failed,
        &[
            "<div contenteditable=false aria-label=x>y</div>",
            "<div contenteditable=on aria-label=x>y</div>",
            "<div role=paragraph contenteditable aria-label=x>y</div>",
        ],
    );
    told(
        permitted,
        CannotTell,
        &[
            "<div contenteditable aria-label=x>y</div>",
            "<div contenteditable=TRUE aria-multiline=true>y</div>",
            "<label contenteditable=plaintext-only aria-label=x>y</label>",
        ],
    );
    let hidden = Rule::HiddenFocus;
    told(hidden, Failed, &["<p contenteditable aria-hidden=true>x</p>", "<p contenteditable=Plaintext-only aria-hidden=true>x</p>"]);
    told(hidden, Passed, &["<p contenteditable=false aria-hidden=true>x</p>", "<p contenteditable=yes aria-hidden=true>x</p>"]);
}

#[test]
fn some_elements_have_fewer_properties_than_their_kind() {
    let permitted = Rule::AriaPermitted;
    told(
        permitted,
        Failed,
        &[
            "<input type=color aria-required=true>",
            "<input type=file aria-readonly=true>",
            "<input type=COLOR aria-placeholder=x>",
            "<body aria-roledescription=x>y",
        ],
    );
    told(
        permitted,
        Passed,
        &[
            "<input type=color aria-disabled=true aria-label=x>",
            "<input type=file aria-required=true aria-invalid=true>",
            "<input type=date aria-required=true>",
        ],
    );
    // Browsers leave it out, standards do not.
    let area = |attribute: &str| format!("<map name=m><area {attribute}></map><img usemap='#m' alt=x src=x>");
    told(permitted, CannotTell, &[&area("aria-label=x"), &area("aria-expanded=true")]);
    told(permitted, Failed, &[&area("href=x alt=x aria-checked=true")]);
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

#[test]
fn nobody_can_tell_what_browsers_make_of_elements_without_a_role() {
    let (context, owned) = (Rule::RequiredContext, Rule::RequiredOwned);
    told(
        context,
        CannotTell,
        &[
            "<div role=list><label><i role=listitem>x</i></label></div>",
            "<div role=list><dl><dt><i role=listitem>x</i></dl></div>",
            "<div role=list><center><i role=listitem>x</i></center></div>",
            "<article><div role=list><header><i role=listitem>x</i></header></div></article>",
        ],
    );
    told(
        context,
        Failed,
        &[
            "<div role=listitem>x</div>",
            // Whatever a label is, neither it nor what is around it is a list.
            "<div role=menu><label><i role=listitem>x</i></label></div>",
            "<label><i role=listitem>x</i></label>",
            "<div role=list><label tabindex=0><i role=listitem>x</i></label></div>",
            "<div role=list><header><i role=listitem>x</i></header></div>",
        ],
    );
    told(context, Passed, &["<div role=list><picture><i role=listitem>x</i></picture></div>"]);
    told(
        owned,
        CannotTell,
        &[
            "<div role=list><label><i role=listitem>x</i></label></div>",
            "<div role=list><i role=listitem>x</i><iframe src=x></iframe></div>",
        ],
    );
    told(
        owned,
        Failed,
        &[
            "<div role=list><label><a href=x>x</a></label></div>",
            "<div role=list><label>x</label></div>",
            "<div role=menu><dl>x</dl></div>",
        ],
    );
    told(owned, Passed, &["<div role=list><i role=listitem>x</i><br><wbr></div>"]);
    told(owned, Inapplicable, &["<div aria-busy=true><ul role=menu>x</ul></div>", "<ul role=menu aria-busy=true>x</ul>"]);
    told(owned, Failed, &["<div aria-busy=false><ul role=menu>x</ul></div>"]);
}

#[test]
fn values_of_html_are_those_of_the_role() {
    let required = Rule::AriaRequired;
    told(required, Passed, &["<progress role=meter value=3></progress>", "<meter role=slider></meter>"]);
    told(required, Failed, &["<progress role=meter></progress>", "<b role=meter value=3></b>"]);
    told(
        required,
        Inapplicable,
        &["<input type=checkbox role=checkbox>", "<h2 role=heading>x</h2>", "<progress role=progressbar></progress>"],
    );
    // WAI-ARIA (5.2.2) forbids this value of required states unless it is among those of the state: here it is.
    told(required, Passed, &["<i role=checkbox aria-checked=undefined>x</i>"]);
}

#[test]
fn a_list_to_choose_from_says_what_is_chosen() {
    let name = Rule::ImageName;
    let named = |select: &str| format!("<img src=x aria-labelledby=s><select id=s {select}</select>");
    for none in [
        ">",
        "><option>",
        "><option> </option><option>b",
        "multiple><option>a",
        "size=2><option>a",
        "><option>a<option selected label=' '>",
    ] {
        told(name, Failed, &[&named(none)]);
    }
    for one in [
        "><option>a",
        "><option disabled><option>b",
        "><optgroup disabled><option></optgroup><option>b",
        "><option><option selected>b",
        "><option label=a>",
        "multiple><option selected>a<option>",
    ] {
        told(name, Passed, &[&named(one)]);
    }
    told(name, Passed, &[&format!("<script>fill()</script>{}", named(">"))]);
}

#[test]
fn of_an_empty_alternative_and_the_focus_no_standard_says_who_wins() {
    let (name, exposed) = (Rule::ImageName, Rule::DecorativeExposed);
    for page in ["<img src=x alt='' tabindex=0>", "<img src=x alt='' aria-live=off>", "<img src=x alt role='bogus' tabindex=0>"] {
        told(name, CannotTell, &[page]);
        told(exposed, Failed, &[page]);
    }
    told(name, Failed, &["<img src=x alt='' role=none tabindex=0>", "<img src=x alt=' ' tabindex=0>"]);
    told(name, Passed, &["<img src=x alt='' title=x tabindex=0>", "<img src=x alt=''>"]);
}
