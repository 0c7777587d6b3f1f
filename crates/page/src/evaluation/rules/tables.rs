//! Do the header cells of a table head something, and do cells name headers of their own table?

use crate::evaluation::{document::Element, found::Found, name::has_name};
use nearcrawl_model::evaluation::Rule;
use std::collections::BTreeSet;

/// Tables wider than this are not judged.
const MAX_COLUMNS: usize = 1000;

/// A cell and the slots that it covers: columns from `left` to before `right`, rows from `top` to before `bottom`.
struct Cell<'d> {
    element: Element<'d>,
    left: usize,
    right: usize,
    top: usize,
    bottom: usize,
}

pub(super) fn check(table: Element<'_>, found: &mut Found) {
    let has_data = || table.role().is_some_and(|role| matches!(role.name, "table" | "grid" | "treegrid"));
    if !table.is("table") || !table.is_rendered() || !has_data() {
        return;
    }
    let cells = cells(table);
    for cell in cells.iter().filter(|cell| cell.element.says("headers")) {
        let refers_wrongly = |id: &str| !table.document.by_id(id).is_some_and(|header| heads(header, cell.element, table));
        let wrong = cell.element.attr("headers").unwrap_or_default().split_ascii_whitespace().any(refers_wrongly);
        found.fail_if(Rule::TableHeadersAttribute, cell.element.is_rendered() && wrong);
    }
    // A body without rows waits for a script to fill it.
    let is_waiting = |group: Element<'_>| group.is("tbody") && !group.children().any(|row| row.is("tr"));
    if !table.children().any(is_waiting) {
        check_headers(&cells, found);
    }
}

fn is_header(element: Element<'_>) -> bool {
    element.has_role("columnheader") || element.has_role("rowheader")
}

/// Whether an element can be named as a header by a cell: another one of the same table, and a header.
fn heads(header: Element<'_>, cell: Element<'_>, table: Element<'_>) -> bool {
    let is_in_table = header.ancestors().find(|ancestor| ancestor.is("table")).is_some_and(|around| around.index == table.index);
    header.index != cell.index && is_in_table && matches!(header.name(), "td" | "th") && is_header(header)
}

/// Each header cell must head at least one cell: by its id, or by where it stands (HTML standard, "Forming relationships between data cells
/// and header cells"). Where a header could head by its row as well as by its column, either will do,
/// and a row is headed from its end too, as readers understand it.
fn check_headers(cells: &[Cell<'_>], found: &mut Found) {
    let named: BTreeSet<&str> =
        cells.iter().flat_map(|cell| cell.element.attr("headers").unwrap_or_default().split_ascii_whitespace()).collect();
    // How far down cells go in each column, and how many cells and data cells there are in each row. Those that name their headers take no
    // others.
    let mut down = vec![0; cells.iter().map(|cell| cell.right).max().unwrap_or(0)];
    let mut across = vec![(0, 0); cells.iter().map(|cell| cell.bottom).max().unwrap_or(0)];
    for cell in cells.iter().filter(|cell| !cell.element.says("headers")) {
        down[cell.left..cell.right].iter_mut().for_each(|row| *row = cell.bottom.max(*row));
        for (cells, data) in &mut across[cell.top..cell.bottom] {
            *cells += 1;
            *data += u32::from(cell.element.is("td"));
        }
    }
    for cell in cells {
        let header = cell.element;
        if !header.is("th") || !header.is_exposed() || !is_header(header) || !has_name(header) {
            continue;
        }
        let heads_column = || down[cell.left..cell.right].iter().any(|row| *row > cell.bottom);
        let row = || across[cell.top..cell.bottom].iter();
        let heads = match header.attr("scope").map(str::to_ascii_lowercase).as_deref() {
            Some("col") => heads_column(),
            Some("row") => row().any(|(cells, _)| *cells > 1),
            Some("rowgroup" | "colgroup") => cells.len() > 1,
            _ => heads_column() || row().any(|(_, data)| *data > 0),
        };
        found.fail_if(Rule::TableHeaderCells, !heads && !header.attr("id").is_some_and(|id| named.contains(id)));
    }
}

/// The cells of a table in its slots (HTML standard, "Forming a table"); none of a table that is too wide.
fn cells(table: Element<'_>) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    // Up to which row the cells above reach down in each column.
    let mut taken: Vec<usize> = Vec::new();
    let mut row = 0;
    let groups = table.children().filter(|child| child.is("thead") || child.is("tbody") || child.is("tfoot"));
    for group in groups {
        let end = row + group.children().filter(|child| child.is("tr")).count();
        for line in group.children().filter(|child| child.is("tr")) {
            let mut column = 0;
            for element in line.children().filter(|child| child.is("td") || child.is("th")) {
                while taken.get(column).is_some_and(|until| *until > row) {
                    column += 1;
                }
                let right = column + span(element, "colspan").clamp(1, MAX_COLUMNS);
                if right > MAX_COLUMNS {
                    return Vec::new();
                }
                let bottom = match span(element, "rowspan") {
                    0 if element.has("rowspan") => end,
                    rows => end.min(row + rows.max(1)),
                };
                taken.resize(taken.len().max(right), 0);
                taken[column..right].iter_mut().for_each(|until| *until = bottom.max(*until));
                cells.push(Cell { element, left: column, right, top: row, bottom });
                column = right;
            }
            row += 1;
        }
    }
    cells
}

/// How many slots a cell covers; 0 if that is not said, or said to be 0.
fn span(cell: Element<'_>, name: &str) -> usize {
    cell.attr(name).and_then(|text| text.trim_ascii().parse().ok()).unwrap_or(0)
}
