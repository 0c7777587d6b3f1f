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
