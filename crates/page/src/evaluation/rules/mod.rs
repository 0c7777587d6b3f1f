//! The rules, one file for each family.

mod aria;
mod controls;
mod focus;
mod images;
mod language;
mod ownership;
mod page;
mod tables;
mod values;

use super::{document::Document, found::Found};

/// Applies all rules to a page.
pub(super) fn check(document: &Document<'_>, found: &mut Found) {
    page::check(document, found);
    for element in document.elements() {
        found.elements += 1;
        images::check(element, found);
        controls::check(element, found);
        language::check(element, found);
        aria::check(element, found);
        ownership::check(element, found);
        focus::check(element, found);
        tables::check(element, found);
    }
}
