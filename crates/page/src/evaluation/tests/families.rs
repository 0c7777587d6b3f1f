//! Tests of each family of rules, beyond the W3C's own examples.

use crate::evaluation::{Limits, evaluate};
use nearcrawl_model::evaluation::Rule;
use std::time::Duration;

/// How often a page fails a rule.
fn failures(rule: Rule, page: &str) -> u32 {
    let evaluation = evaluate(page, &Limits::default(), &|| Duration::ZERO);
    assert_eq!(evaluation.gate, None, "{page}");
    evaluation.failures.get(&rule).copied().unwrap_or(0)
}

fn fails(rule: Rule, pages: &[&str]) {
    for page in pages {
        assert_eq!(failures(rule, page), 1, "{} fails by {page}", rule.id());
    }
}

fn holds(rule: Rule, pages: &[&str]) {
    for page in pages {
        assert_eq!(failures(rule, page), 0, "{} holds in {page}", rule.id());
    }
}

#[test]
fn a_page_in_order_has_no_failures() {
    let page = "<!doctype html><html lang=en><head><title>Opening hours</title><meta name=viewport content='width=device-width'></head><body>\
        <header><a href=/><img src=logo.svg alt=Home></a><nav><ul><li><a href=/a>Hours</a></ul></nav></header>\
        <main><h1>Hours</h1><form><label>Day <select name=d><option>Mon</select></label><label for=q>Search</label><input id=q type=search>\
        <button>Go</button></form><table><caption>Hours</caption><tr><th>Day<th>Open<tr><td>Mon<td>8</table>\
        <noscript><img src=pixel></noscript><template><img><img></template><script>'<img>'</script><br></main></body></html>";
    let evaluation = evaluate(page, &Limits::default(), &|| Duration::ZERO);
    assert_eq!((evaluation.total(), evaluation.gate), (0, None), "{evaluation:?}");
    assert_eq!(evaluation.elements, 33, "what is in a template or not parsed as markup is not counted");
}

#[test]
fn our_own_page_has_no_failures() {
    let evaluation = evaluate(include_str!("../../../../../src/node/api/page/index.html"), &Limits::default(), &|| Duration::ZERO);
    assert_eq!((evaluation.total(), evaluation.gate), (0, None), "{evaluation:?}");
}

#[test]
fn names_come_from_where_the_standard_looks() {
    let link = Rule::LinkName;
    fails(
        link,
        &[
            "<a href=x><svg><path></svg></a>",
            "<a href=x><span hidden>x</span></a>",
            "<a href=x><i style='visibility:hidden'>x</i></a>",
            "<a href=x><img alt=x aria-hidden=true></a>",
            "<a href=x aria-labelledby=none> </a>",
            "<a href=x><script>x</script></a>",
        ],
    );
    holds(
        link,
        &[
            "<a href=x><svg><title>x</title></svg></a>",
            "<a href=x title=x></a>",
            "<a href=x><b><i><img alt=x></i></b></a>",
            "<a href=x aria-labelledby='none l'></a><b id=l hidden>x</b>",
            "<a href=x><my-icon></my-icon></a>",
            "<a>x</a><a name=top></a>",
            "<a href=x><i style='visibility:hidden'><b style='visibility:visible'>x</b></i></a>",
            "<details><a href=x></a></details>",
        ],
    );
    let field = Rule::FormFieldName;
    fails(
        field,
        &[
            "<label><input value=x></label>",
            "<label for=y>x</label><input id=z>",
            "<select><option>x</select>",
            "<div role=textbox>x</div>",
        ],
    );
    holds(
        field,
        &[
            "<label>x<input></label>",
            "<label for=z></label><label for=z>x</label><input id=z>",
            "<input placeholder=x>",
            "<input type=hidden>",
            "<label for=z hidden>x</label><input id=z>",
            "<input type=password>",
            "<fieldset aria-hidden=true><input></fieldset>",
        ],
    );
    fails(Rule::ButtonName, &["<button><img></button>", "<input type=button>", "<div role=button tabindex=0></div>"]);
    holds(
        Rule::ButtonName,
        &["<input type=submit>", "<input type=button value=x>", "<button><img alt=x></button>", "<button disabled>x</button>"],
    );
}

#[test]
fn what_the_pages_own_styles_hide_needs_no_name_but_may_give_one() {
    let styled = |page: &str| {
        failures(Rule::LinkName, &format!("<style>.gone {{ display: none }} @media print {{ .on {{ display: none }} }}</style>{page}"))
    };
    assert_eq!(styled("<div class='x gone'><a href=x></a></div>"), 0);
    assert_eq!(styled("<a href=x class=on></a>"), 1);
    assert_eq!(styled("<a href=x><b class=gone>shown on wider screens, maybe</b></a>"), 0);
}

#[test]
fn roles_hold_unless_they_are_overruled() {
    fails(Rule::HeadingName, &["<h2 role=none tabindex=0></h2>", "<h2 role='nonsense heading'></h2>"]);
    holds(Rule::HeadingName, &["<h2 role=none></h2>", "<h2 role=PRESENTATION></h2>", "<h2>x</h2>"]);
    fails(Rule::DecorativeExposed, &["<ul role=none aria-label=x><li>x</ul>", "<img alt='' tabindex=0>"]);
    holds(
        Rule::DecorativeExposed,
        &["<ul role=none><li>x</ul>", "<img alt=''>", "<img alt='' aria-hidden=true title=x>", "<div role=none tabindex=-1>x</div>"],
    );
    fails(Rule::RoleKnown, &["<div role=buton>x</div>", "<div role=widget>x</div>"]);
    holds(Rule::RoleKnown, &["<div role='x button'>x</div>", "<div role=''>x</div>", "<div role=buton hidden>x</div>"]);
    fails(Rule::AriaPermitted, &["<p aria-checked=true>x</p>", "<span aria-label=x>y</span>", "<nav aria-level=2>x</nav>"]);
    holds(
        Rule::AriaPermitted,
        &["<nav aria-label=x>x</nav>", "<a href=x aria-expanded=true>x</a>", "<label aria-live=off>x</label>", "<p aria-live=off>x"],
    );
    fails(Rule::AriaRequired, &["<i role=checkbox>x</i>", "<i role=slider tabindex=0>x</i>", "<i role=separator tabindex=0></i>"]);
    holds(
        Rule::AriaRequired,
        &["<input type=checkbox role=switch>", "<input type=range role=slider>", "<i role=separator></i>", "<h3 role=heading>x</h3>"],
    );
}

#[test]
fn owners_and_owned_are_found_through_what_means_nothing() {
    fails(Rule::RequiredContext, &["<div role=tab>x</div>", "<div role=tablist><section title=y><i role=tab>x</i></section></div>"]);
    holds(
        Rule::RequiredContext,
        &[
            "<div role=tablist><div><span><i role=tab>x</i></span></div></div>",
            "<x-tabs><i role=tab>x</i></x-tabs>",
            "<table role=grid><tr><td role=gridcell>x</table>",
            "<div role=tree><ul role=group><li role=treeitem>x</ul></div>",
        ],
    );
    fails(
        Rule::RequiredOwned,
        &["<ul role=tablist><li><a href=x>x</a></ul>", "<div role=list>x</div>", "<div role=menu><b role=option>x</b></div>"],
    );
    fails(
        Rule::RequiredOwned,
        &[
            "<div role=list><my-item role=region aria-label=z>x</my-item></div>",
            "<script>define()</script><div role=list><my-item role=region aria-label=z>x</my-item></div>",
        ],
    );
    holds(
        Rule::RequiredOwned,
        &[
            "<script>define()</script><div role=list><my-item role=none>x</my-item></div>",
            "<script>define()</script><div role=menu><my-items role=group>x</my-items></div>",
        ],
    );
    holds(
        Rule::RequiredOwned,
        &[
            "<div role=list></div>",
            "<ul role=tablist><li role=none><a role=tab href=x>x</a></ul>",
            "<div role=list><x-items></x-items></div>",
            "<div role=menu><i role=separator></i><b role=menuitem>x</b></div>",
            "<div role=list><div role=listitem>x</div><p hidden>x</p></div>",
        ],
    );
}

#[test]
fn the_focus_is_looked_for_where_it_can_come_to() {
    fails(
        Rule::HiddenFocus,
        &[
            "<div aria-hidden=true><a href=x>x</a></div>",
            "<div aria-hidden=true><p tabindex=0>x</p></div>",
            "<fieldset disabled aria-hidden=true><legend><input></legend></fieldset>",
            "<map name=m aria-hidden=true><area href=x alt=x></map><img usemap='#m' alt=x src=x>",
            "<img usemap='#m' alt=x src=x><map id=m><area href=x alt=x aria-hidden=true></map>",
        ],
    );
    holds(
        Rule::HiddenFocus,
        &[
            "<div aria-hidden=true><a>x</a><button disabled>x</button><a href=x tabindex=-1>x</a></div>",
            "<div aria-hidden=true hidden><a href=x>x</a></div>",
            "<div aria-hidden=true inert><a href=x>x</a></div>",
            "<fieldset disabled aria-hidden=true><legend>x</legend><legend><input></legend></fieldset>",
            "<div aria-hidden=true><details><summary tabindex=-1>y</summary><a href=x>x</a></details></div>",
            "<map name=m aria-hidden=true><area href=x alt=x></map>",
            "<map name=m aria-hidden=true><area href=x alt=x></map><img usemap='#n' alt=x src=x>",
            "<map name=m aria-hidden=true><area href=x alt=x></map><img usemap='#m' alt=x src=x hidden>",
            "<map name=m aria-hidden=true><area alt=x><area href=x alt=x tabindex=-1></map><img usemap='#m' alt=x src=x>",
            "<map name=m></map><map name=m aria-hidden=true><area href=x alt=x></map><img usemap='#m' alt=x src=x>",
        ],
    );
    fails(Rule::PresentationalFocus, &["<div role=img aria-label=x><a href=x>x</a></div>", "<button><i tabindex=0>x</i></button>"]);
    holds(Rule::PresentationalFocus, &["<button><i tabindex=-1>x</i></button>", "<div role=img aria-label=x><b>x</b></div>"]);
}

#[test]
fn tables_are_laid_out_before_they_are_judged() {
    let table = Rule::TableHeaderCells;
    fails(
        table,
        &["<table><tr><th scope=col>a<th scope=col>b<tr><td>1</table>", "<table><tr><th scope=row>a</table>", "<table><tr><th>a</table>"],
    );
    holds(
        table,
        &[
            "<table><tr><th>a<td>1<tr><td colspan=2>2</table>",
            "<table><tr><th rowspan=2>a<th>b<tr><th>c<tr><td>1<td>2</table>",
            "<table><tr><th><td>x</table>",
            "<table role=none><tr><th>a</table>",
            "<table><thead><tr><th>a</thead><tbody id=rows></tbody></table>",
            "<table><tr><th colspan=2>a<tr><td>1</table>",
        ],
    );
    let headers = Rule::TableHeadersAttribute;
    fails(
        headers,
        &[
            "<table><tr><th id=a>a<td headers='a b'>1</table>",
            "<table><tr><td id=a headers=a>1</table>",
            "<table><tr><th id=a>a</table><table><tr><td headers=a>1</table>",
        ],
    );
    holds(
        headers,
        &[
            "<table><tr><th id=a>a<td headers=a>1</table>",
            "<table role=none><tr><td headers=x>1</table>",
            "<table><tr><td headers=''>1</table>",
        ],
    );
}

#[test]
fn a_picture_that_is_exposed_needs_a_name_whatever_it_was_to_be() {
    fails(
        Rule::ImageName,
        &[
            "<img src=x role=none tabindex=-1>",
            "<img src=x role=presentation aria-live=polite>",
            "<img src=x role=button tabindex=0>",
            "<div role=none><img src=x></div>",
            "<button><img src=x></button>",
            "<div role=image></div>",
        ],
    );
    holds(
        Rule::ImageName,
        &[
            "<img src=x alt=''>",
            "<img src=x role=none>",
            "<img src=x alt='' title=x tabindex=0>",
            "<img src=x role=none tabindex=0 alt=x>",
            "<img src=x role=none tabindex=0 disabled hidden>",
            "<img src=x role=button aria-label=x>",
            "<div style='visibility:hidden'><img src=x></div>",
            "<div aria-hidden=true><img src=x tabindex=0></div>",
        ],
    );
}

#[test]
fn states_and_properties_are_those_of_the_role_or_of_the_element() {
    fails(
        Rule::AriaPermitted,
        &[
            "<audio controls aria-orientation=vertical></audio>",
            "<video controls aria-checked=true></video>",
            "<iframe title=x aria-pressed=true></iframe>",
            "<label aria-checked=true>x</label>",
            "<dl aria-level=2><dt>x</dl>",
            "<cite aria-valuenow=1>x</cite>",
            "<input type=date aria-checked=true>",
            "<summary aria-sort=none>x</summary>",
            "<div role=none aria-checked=true>x</div>",
            "<table role=presentation aria-rowcount=2><tr><td>x</table>",
            "<div aria-roledescription=slide>x</div>",
            "<span aria-braillelabel=x>y</span>",
            "<strong aria-labelledby=x>y</strong>",
            "<div role=paragraph aria-label=x>y</div>",
            "<div aria-label=''>x</div>",
            "<a aria-expanded=true>x</a>",
            "<svg aria-pressed=true></svg>",
            "<svg><g aria-pressed=true><path /></g></svg>",
            "<svg><path aria-checked=true /></svg>",
            "<x-tab aria-pressed=true>x</x-tab>",
            "<x-tab aria-label=x>x</x-tab><script type=application/ld+json>{}</script>",
            "<label aria-label=x>x</label>",
            "<fieldset><legend aria-labelledby=x>x</legend></fieldset>",
            "<figure><figcaption aria-label=x>x</figcaption></figure>",
            "<abbr aria-label=x>x</abbr>",
            "<body aria-label=x>x",
            "<cite aria-label=x>x</cite>",
            "<kbd aria-label=x>x</kbd>",
            "<mark aria-label=x>x</mark>",
            "<ruby>x<rt aria-label=x>y</ruby>",
            "<var aria-braillelabel=x>x</var>",
        ],
    );
    holds(
        Rule::AriaPermitted,
        &[
            "<audio controls aria-label=x aria-activedescendant=y></audio>",
            "<input type=password aria-required=true>",
            "<input type=date aria-readonly=true>",
            "<input type=file aria-required=true>",
            "<label aria-live=off>x</label>",
            "<summary aria-expanded=true>x</summary>",
            "<x-tab aria-checked=true>x</x-tab><script>customElements.define('x-tab', Tab)</script>",
            "<x-tab aria-label=x onclick='f()'>x</x-tab>",
            "<x-tab aria-label=x>x<template shadowrootmode=open><slot></slot></template></x-tab>",
            "<x-tab role=switch aria-checked=true>x</x-tab>",
            "<x-tab aria-busy=true>x</x-tab>",
            "<svg><g aria-label=x><path aria-hidden=false /></g></svg>",
            "<svg><rect role=checkbox aria-checked=true /></svg>",
            "<ruby aria-label=x>x<rt>y</ruby>",
            "<figcaption role=group aria-label=x>x</figcaption>",
            "<label contenteditable aria-label=x>x</label>",
            "<dl aria-label=x><dt aria-label=x>x</dl>",
            "<canvas aria-checked=true></canvas>",
            "<div role=none aria-busy=true>x</div>",
            "<button role=none aria-pressed=true>x</button>",
            "<div contenteditable aria-label=x>y</div>",
            "<section aria-roledescription=slide aria-label=x>x</section>",
            "<div aria-checked=true hidden>x</div>",
            "<p><math aria-checked=true></math>",
        ],
    );
}

#[test]
fn what_a_role_requires_is_set_and_not_empty() {
    fails(
        Rule::AriaRequired,
        &[
            "<div role=heading>x</div>",
            "<div role=heading aria-level=''>x</div>",
            "<h2 hidden></h2><p role=heading>x</p>",
            "<div role=combobox aria-expanded=true>x</div>",
            "<div role=combobox aria-expanded=true aria-controls=''>x</div>",
            "<div role=combobox aria-controls=x>x</div>",
            "<div role=combobox>x</div>",
            "<div role=combobox aria-expanded='' aria-controls=x>x</div>",
            "<div role=scrollbar aria-controls=x></div>",
            "<div role=meter>x</div>",
            "<div role='x checkbox radio'>x</div>",
            "<svg><g role=radio></g></svg>",
        ],
    );
    holds(
        Rule::AriaRequired,
        &[
            "<div role=heading aria-level=7>x</div>",
            "<h2 role=heading>x</h2>",
            "<div role=option>x</div>",
            "<div role=tab>x</div>",
            "<div role=spinbutton tabindex=0>x</div>",
            "<div role=combobox aria-expanded=true aria-controls=x>x</div>",
            // Its list may not be there yet.
            "<div role=combobox aria-expanded=false>x</div>",
            "<div role=combobox aria-expanded=false aria-controls=''>x</div>",
            "<select role=combobox></select>",
            "<div role=heading hidden>x</div>",
            "<div role=heading aria-hidden=true>x</div>",
        ],
    );
}

#[test]
fn a_context_is_the_parent_that_assistive_technology_sees() {
    fails(
        Rule::RequiredContext,
        &[
            "<div role=list><div tabindex=0><p role=listitem>x</p></div></div>",
            "<div role=list><div role=none tabindex=-1><p role=listitem>x</p></div></div>",
            "<div role=list><div role=tabpanel><p role=listitem>x</p></div></div>",
            "<ul role=none><li role=listitem>x</li></ul>",
            "<div role=caption>x</div>",
            "<div role=list><div role=caption>x</div></div>",
            "<p role=listitem id=x>x</p><div role=list aria-owns=x hidden></div>",
            "<div role=list><p role=listitem id=x>x</p></div><div role=menu aria-owns=x></div>",
            "<div role=menu><p role=option>x</p></div>",
            "<div role=table><div role=cell>x</div></div>",
            "<div role=list><p><svg><g role=listitem></g></svg></p></div>",
            "<div role=list><my-item role=region aria-label=z><div role=listitem>x</div></my-item></div>",
        ],
    );
    holds(
        Rule::RequiredContext,
        &[
            "<div role=table><div role=caption>x</div></div>",
            "<figure><div role=caption>x</div></figure>",
            "<table><caption role=caption>x</caption></table>",
            "<ul><div role=listitem>x</div></ul>",
            "<div role=list><div><span><p role=listitem>x</p></span></div></div>",
            "<p role=listitem id=x>x</p><div role=list aria-owns=x></div>",
            "<div role=group><p role=option>x</p></div>",
            "<div role=list><x-items><p role=listitem>x</p></x-items></div>",
            // What it draws around the item nobody knows.
            "<script>define()</script><x-items role=region aria-label=z><p role=listitem>x</p></x-items>",
            "<my-list role=list><p role=listitem>x</p></my-list>",
            "<p role=listitem aria-hidden=true>x</p>",
        ],
    );
}

#[test]
fn the_focus_may_be_passed_on_at_once() {
    let guard = |script: &str| format!("<div aria-hidden=true><a href=x id=guard class='a b'>x</a></div><script>{script}</script>");
    holds(
        Rule::HiddenFocus,
        &[
            "<div aria-hidden=true><a href=x onfocus='document.querySelector(\"input\").focus()'>x</a></div><input>",
            "<div aria-hidden=true tabindex=0 onfocus='wrap(event)'></div>",
            &guard("document.getElementById('guard').addEventListener('focus', () => first.focus())"),
            &guard("document.querySelectorAll(\".b\").forEach(a => a.onfocus = wrap)"),
        ],
    );
    fails(
        Rule::HiddenFocus,
        &[
            "<div aria-hidden=true><a href=x onfocus='this.title = 1'>x</a></div>",
            "<div aria-hidden=true><a href=x onclick='go()'>x</a></div>",
            &guard("document.getElementById('guard').addEventListener('click', () => first.focus())"),
            &guard("document.getElementById('other').addEventListener('focus', () => first.focus())"),
        ],
    );
}

#[test]
fn headers_head_cells_as_the_standard_lays_them_out() {
    let table = Rule::TableHeaderCells;
    fails(
        table,
        &[
            // A row is read from its header on, not back to it.
            "<table><tr><td>1<th scope=row>a</table>",
            "<table><tr><td>1<th>a</table>",
            "<table><tr><td>1<tr><th scope=col>a</table>",
            // Cells that are none for assistive technology, or have other headers.
            "<table><tr><th>a<tr><td role=button>1</table>",
            "<table><tr><th>a<tr><td aria-hidden=true>1</table>",
            "<table><tr><th id=a>a<th>b<tr><td>1<td headers=a>2</table>",
            "<table role=grid><tr><th>a<th>b<tr><td>1</table>",
            "<div role=table><div role=row><i role=columnheader>a</i><i role=columnheader>b</i></div>\
             <div role=row><i role=cell>1</i></div></div>",
            "<div role=grid><div role=rowgroup><div role=row><i role=columnheader>a</i></div></div></div>",
            "<div role=table><div role=row><i role=cell>1</i><i role=rowheader>a</i></div></div>",
            "<div role=grid><table role=none><tr role=row><td role=columnheader>a</table></div>",
        ],
    );
    holds(
        table,
        &[
            "<table><tr><td><th>a<tr><th>b<td>1</table>",
            "<table><tr><th>a<td>1<tr><td>x<td>2</table>",
            "<table><tr><th scope=row>a<td>1</table>",
            "<table><tr><th>a<tr><td></table>",
            "<table><tr><th id=a>a<tr><td>x<td headers=a>1</table><table role=none><tr><th>b</table>",
            "<table><tr><th colspan=2>a<tr><th>b<th>c<tr><td>1<td>2</table>",
            "<div role=table><div role=row><i role=columnheader>a</i></div><div role=rowgroup><div role=row><i role=cell>1</i></div></div></div>",
            "<div role=table><div role=row><i role=rowheader>a</i><i role=cell>1</i></div></div>",
            "<div role=table><div role=row><i role=columnheader>a</i><i role=columnheader>b</i></div>\
             <div role=row><i role=cell aria-colspan=2>1</i></div></div>",
            "<div role=grid><div role=row><i role=columnheader aria-colindex=4>a</i></div></div>",
            "<div role=grid><div role=row><i role=columnheader>a</i></div><div role=rowgroup></div></div>",
            "<div role=grid><div role=row><i role=columnheader>a</i></div><x-rows></x-rows></div>",
            "<div role=grid aria-hidden=true><div role=row><i role=columnheader>a</i></div></div>",
            "<div role=row><i role=columnheader>a</i></div>",
            "<div role=grid><table role=none><tr role=row><td role=columnheader>a</table>\
             <table role=none><tr role=row><td role=gridcell>1</table></div>",
        ],
    );
}

#[test]
fn the_page_itself_is_looked_at() {
    fails(Rule::PageTitle, &["<p>x", "<title> </title>", "<svg><title>x</title></svg>"]);
    holds(Rule::PageTitle, &["<title>x</title>", "<body><title>x</title>"]);
    fails(Rule::PageLanguage, &["<p>x", "<html lang=' '>"]);
    fails(Rule::PageLanguageTag, &["<html lang=en_US>", "<html lang=xx>"]);
    fails(Rule::PageLanguagesMatch, &["<html lang=en xml:lang=fr>"]);
    holds(Rule::PageLanguagesMatch, &["<html lang=en xml:lang=en-GB>", "<html lang=xx xml:lang=fr>"]);
    fails(Rule::PartLanguageTag, &["<p lang=xx>x", "<p lang=xx><img alt=x></p>"]);
    holds(Rule::PartLanguageTag, &["<p lang=xx></p>", "<p lang=''>x</p>", "<p lang=xx><b lang=fr>x</b></p>", "<p lang=xx hidden>x</p>"]);
    assert_eq!(failures(Rule::UniqueId, "<i id=a></i><i id=b></i><b id=a></b><b id=a></b>"), 3, "everyone who shares an id");
    assert_eq!(failures(Rule::UniqueAttribute, "<i a a></i><b a A='x'></b><u a b></u><!--<s a a>-->"), 2);
}

#[test]
fn headers_of_groups_head_cells_of_their_group() {
    let table = Rule::TableHeaderCells;
    fails(
        table,
        &[
            "<table><tbody><tr><th scope=rowgroup>G</tbody><tbody><tr><td>1</table>",
            "<table><colgroup><col><col></colgroup><tr><th scope=colgroup colspan=2>G</th><td>z</table>",
            "<table><colgroup span=2></colgroup><colgroup></colgroup><tr><td>1<td>2<th scope=colgroup>G</table>",
            "<table><tbody><tr><td>1<tr><td><th scope=rowgroup>G</table>",
        ],
    );
    holds(
        table,
        &[
            "<table><tbody><tr><th scope=rowgroup>G<tr><td>1</table>",
            "<table><tbody><tr><th scope=rowgroup>G<td>1</table>",
            "<table><colgroup span=2></colgroup><tr><th scope=colgroup colspan=2>G<tr><td><td>1</table>",
            "<table><colgroup><col span=2></colgroup><tr><th scope=colgroup>G<tr><td headers=x>1<td>2</table>",
            "<table><tr><th scope=colgroup colspan=2>G<tr><td>1<td>2</table>",
        ],
    );
}

#[test]
fn a_header_may_be_in_the_way_of_another_one() {
    let table = Rule::TableHeaderCells;
    fails(
        table,
        &[
            "<table><tr><th id=h headers=h scope=col>A</table>",
            "<table><tr><th>A<tr><td headers=zz>1<tr><th>B<tr><td>2</table>",
            "<table><tr><th scope=row>A<td headers=zz>1<th scope=row>B<td>2</table>",
            "<table><tr><th id=a scope=col>A<td headers=a>1<tr><td headers=z>2<tr><th id=a scope=col>B</table>",
        ],
    );
    holds(
        table,
        &[
            "<table><tr><th>A<tr><th>B<tr><td headers=zz>1<tr><td>2</table>",
            "<table><tr><th>A<tr><td>1<tr><th>B<tr><td>2</table>",
            "<table><tr><th colspan=2>A<tr><td headers=zz>1<td headers=zz>1<tr><th>B<th>C<tr><td>2<td>3</table>",
            "<table><tr><th id=h headers=h scope=col>A<tr><td>1</table>",
        ],
    );
}

#[test]
fn tables_are_formed_as_browsers_form_them() {
    holds(
        Rule::TableHeaderCells,
        &[
            "<table><tfoot><tr><td>sum</tfoot><thead><tr><th>X</thead></table>",
            "<table><tr><th>A<th>B<tr><td colspan='2;'>1</table>",
            "<table><tr><th>A<th>B<tr><td colspan=' +2px'>1</table>",
            "<table><tr><th scope=col>A<td rowspan=0>1<tr><td>2</table>",
        ],
    );
    fails(
        Rule::TableHeaderCells,
        &["<table><tr><th>A<th>B<tr><td colspan='-2'>1</table>", "<table><tr><td>1<th scope=row rowspan=x>A<tr><td>2<td>3</table>"],
    );
}
