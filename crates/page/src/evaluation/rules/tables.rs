//! Do the header cells of a table head something, and do cells name headers of their own table?

use crate::evaluation::{
    document::{Element, Item, Visit},
    found::Found,
    name::has_name,
};
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

/// What a header cell can be the header of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heads {
    /// Cells below it.
    Column,
    /// Cells to the right of it.
    Row,
    /// Cells of its group, wherever they stand in it.
    Group,
    /// Nobody can tell: browsers differ.
    Either,
}

pub(super) fn check(table: Element<'_>, found: &mut Found) {
    let has_data = || table.role().is_some_and(|role| matches!(role.name, "table" | "grid" | "treegrid"));
    if !table.is_html() || !table.is_rendered() || !has_data() {
        return;
    }
    if !table.is("table") {
        return match cells_by_role(table) {
            Some(cells) => check_headers(&cells, found),
            None => found.cannot_tell(Rule::TableHeaderCells),
        };
    }
    let cells = cells(table);
    for cell in cells.iter().filter(|cell| cell.element.says("headers")) {
        let refers_wrongly = |id: &str| !table.document.by_id(id).is_some_and(|header| heads(header, cell.element, table));
        let wrong = cell.element.attr("headers").unwrap_or_default().split_ascii_whitespace().any(refers_wrongly);
        if cell.element.is_rendered() {
            found.judge(Rule::TableHeadersAttribute, cell.element, wrong);
        }
    }
    // A body without rows waits for a script to fill it.
    let is_waiting = |group: Element<'_>| group.is("tbody") && !group.children().any(|row| row.is("tr"));
    match table.children().any(is_waiting) {
        true => found.cannot_tell(Rule::TableHeaderCells),
        false => check_headers(&cells, found),
    }
}

fn is_header(element: Element<'_>) -> bool {
    element.has_role("columnheader") || element.has_role("rowheader")
}

/// Whether something can be the cell of a header: it is a cell for assistive technology too.
fn is_cell(element: Element<'_>) -> bool {
    (is_header(element) || element.has_role("cell") || element.has_role("gridcell")) && element.state().is_exposed()
}

/// Whether an element can be named as a header by a cell: another one of the same table, and a header.
fn heads(header: Element<'_>, cell: Element<'_>, table: Element<'_>) -> bool {
    let is_in_table = header.ancestors().find(|ancestor| ancestor.is("table")).is_some_and(|around| around.index == table.index);
    header.index != cell.index && is_in_table && matches!(header.name(), "td" | "th") && is_header(header)
}

/// Each header cell must head at least one cell: by its id, or by where it stands (HTML standard, "Forming relationships between data cells
/// and header cells"). Cells that name their headers take no others.
fn check_headers(cells: &[Cell<'_>], found: &mut Found) {
    let named: BTreeSet<&str> =
        cells.iter().flat_map(|cell| cell.element.attr("headers").unwrap_or_default().split_ascii_whitespace()).collect();
    let reach = Reach::of(cells);
    for cell in cells {
        let header = cell.element;
        if !header.is_exposed() || !is_header(header) || !has_name(header) {
            continue;
        }
        let heads = match reach.heads(cell) {
            _ if header.attr("id").is_some_and(|id| named.contains(id)) => true,
            Heads::Column => reach.has_below(cell),
            Heads::Row => reach.has_behind(cell),
            Heads::Group => cells.len() > 1,
            Heads::Either => {
                found.cannot_tell(Rule::TableHeaderCells);
                continue;
            }
        };
        found.judge(Rule::TableHeaderCells, header, !heads);
    }
}

/// How far the cells of a table reach.
struct Reach {
    /// Down to which row there are cells, in each column.
    down: Vec<usize>,
    /// Right to which column there are cells, in each row.
    across: Vec<usize>,
    /// Which columns and which rows have data cells that are not empty.
    data_in_column: Vec<bool>,
    data_in_row: Vec<bool>,
}

impl Reach {
    fn of(cells: &[Cell<'_>]) -> Reach {
        let columns = cells.iter().map(|cell| cell.right).max().unwrap_or(0);
        let rows = cells.iter().map(|cell| cell.bottom).max().unwrap_or(0);
        let mut reach =
            Reach { down: vec![0; columns], across: vec![0; rows], data_in_column: vec![false; columns], data_in_row: vec![false; rows] };
        for cell in cells {
            let (columns, rows) = (cell.left..cell.right, cell.top..cell.bottom);
            if is_cell(cell.element) && !cell.element.says("headers") {
                reach.down[columns.clone()].iter_mut().for_each(|row| *row = cell.bottom.max(*row));
                reach.across[rows.clone()].iter_mut().for_each(|column| *column = cell.right.max(*column));
            }
            // Empty corners are data cells by the standard, but no browser takes them for such.
            if !cell.element.is("th") && has_content(cell.element) {
                reach.data_in_column[columns].fill(true);
                reach.data_in_row[rows].fill(true);
            }
        }
        reach
    }

    /// What a header cell heads: what its scope or its role says, or else what is free of data.
    fn heads(&self, cell: &Cell<'_>) -> Heads {
        let header = cell.element;
        if !header.is("th") {
            return if header.has_role("rowheader") { Heads::Row } else { Heads::Column };
        }
        match header.attr("scope").map(str::to_ascii_lowercase).as_deref() {
            Some("col") => Heads::Column,
            Some("row") => Heads::Row,
            Some("rowgroup" | "colgroup") => Heads::Group,
            _ if !self.data_in_row[cell.top..cell.bottom].contains(&true) => Heads::Column,
            _ if !self.data_in_column[cell.left..cell.right].contains(&true) => Heads::Row,
            _ => Heads::Either,
        }
    }

    fn has_below(&self, cell: &Cell<'_>) -> bool {
        self.down[cell.left..cell.right].iter().any(|row| *row > cell.bottom)
    }

    fn has_behind(&self, cell: &Cell<'_>) -> bool {
        self.across[cell.top..cell.bottom].iter().any(|column| *column > cell.right)
    }
}

/// Whether there is anything in a cell.
fn has_content(cell: Element<'_>) -> bool {
    cell.walk(|_| Visit::Into).any(|item| match item {
        Item::Text(text, _) => !text.trim().is_empty(),
        Item::Element(_) => true,
    })
}

/// The cells of a table whose parts are so by their roles, or none if nobody can tell where they stand: some are placed by number, owned
/// from elsewhere or made by a script.
fn cells_by_role(table: Element<'_>) -> Option<Vec<Cell<'_>>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let (mut row, mut row_end, mut column) = (0, 0, 0);
    let is_inner_table = |inner: Element<'_>| inner.role().is_some_and(|role| matches!(role.name, "table" | "grid" | "treegrid"));
    let visit = |inner: Element<'_>| match () {
        () if is_inner_table(inner) || !inner.state().is_exposed() => Visit::Past,
        () if is_cell(inner) => Visit::Over,
        () => Visit::Into,
    };
    for item in table.walk(visit) {
        let Item::Element(inner) = item else { continue };
        let is_placed = ["aria-colindex", "aria-rowindex", "aria-rowspan", "aria-owns"].iter().any(|name| inner.says(name));
        let is_waiting = inner.has_role("rowgroup") && !inner.descendants().any(|row| row.has_role("row"));
        if is_placed || is_waiting || inner.name().contains('-') || inner.is("slot") || inner.state().styled_away {
            return None;
        }
        if inner.has_role("row") {
            (row, row_end, column) = (row + 1, inner.end(), 0);
        } else if is_cell(inner) && inner.index < row_end {
            let width = span(inner, "aria-colspan").max(span(inner, "colspan")).clamp(1, MAX_COLUMNS);
            let right = column + width;
            if right > MAX_COLUMNS {
                return None;
            }
            cells.push(Cell { element: inner, left: column, right, top: row - 1, bottom: row });
            column = right;
        }
    }
    Some(cells)
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
