//! Rules on tables: header cells must head something, and cells must name headers of their own table.

use crate::evaluation::{
    document::{Element, Item, Visit},
    found::Found,
    name::has_name,
};
use nearcrawl_model::evaluation::Rule;
use std::{collections::BTreeSet, ops::Range};

/// Tables wider than this are not judged.
const MAX_COLUMNS: usize = 1000;

/// A cell covers so many rows at most.
const MAX_ROWS: usize = 65_534;

/// Tables are not judged whose cells reach over more columns and rows than this, all taken together.
const MAX_REACH: usize = 500_000;

/// A cell and the slots that it covers: columns from `left` to before `right`, rows from `top` to before `bottom`.
struct Cell<'d> {
    element: Element<'d>,
    left: usize,
    right: usize,
    top: usize,
    bottom: usize,
    /// Which group of rows it stands in.
    row_group: usize,
    /// Which group of columns it begins in.
    column_group: Option<usize>,
}

impl Cell<'_> {
    /// Whether another header cell stands in the same columns.
    fn is_over(&self, other: &Cell<'_>) -> bool {
        (self.left, self.right) == (other.left, other.right)
    }

    /// Whether another header cell stands in the same rows.
    fn is_beside(&self, other: &Cell<'_>) -> bool {
        (self.top, self.bottom) == (other.top, other.bottom)
    }

    /// Whether headers are found for it by where it stands: it names none.
    fn takes_headers(&self) -> bool {
        is_cell(self.element) && !self.element.says("headers")
    }

    fn is_header(&self) -> bool {
        self.element.is("th") || is_header(self.element)
    }
}

/// What a header cell can be the header of.
#[derive(Clone, Copy)]
enum Heads {
    /// Cells below it.
    Column,
    /// Cells to the right of it.
    Row,
    /// Cells of its group of rows, below it and to the right of it.
    RowGroup,
    /// Cells of its group of columns, likewise.
    ColumnGroup,
    /// Nothing by the standard, as there is data in its row and in its column. Browsers differ.
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
        let refers_wrongly =
            |id: &str| table.document.spend() && !table.document.by_id(id).is_some_and(|header| heads(header, cell.element, table));
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
/// and header cells"). Cells that name their headers take no others, and none is its own header.
fn check_headers(cells: &[Cell<'_>], found: &mut Found) {
    let named: BTreeSet<&str> = cells.iter().flat_map(|cell| named_by(cell.element)).collect();
    let is_named = |header: Element<'_>| {
        let id = header.attr("id").filter(|id| named.contains(id));
        id.and_then(|id| header.document.by_id(id)).is_some_and(|first| first.index == header.index)
    };
    let Some(reach) = Reach::of(cells) else { return found.cannot_tell(Rule::TableHeaderCells) };
    for cell in cells {
        let header = cell.element;
        // The rule is about what can be seen, and what is empty cannot. What has no name may be seen or not: an icon, or a blank picture.
        if !header.is_exposed() || !is_header(header) || !has_content(header) && !has_name(header) {
            continue;
        }
        let heads = if is_named(header) { Some(true) } else { reach.has_cells(cell) };
        match heads.filter(|heads| *heads || has_name(header)) {
            Some(heads) => found.judge(Rule::TableHeaderCells, header, !heads),
            None => found.cannot_tell(Rule::TableHeaderCells),
        }
    }
}

/// The ids of other cells that a cell names as its headers.
fn named_by(cell: Element<'_>) -> impl Iterator<Item = &str> {
    let ids = cell.attr("headers").unwrap_or_default().split_ascii_whitespace();
    ids.filter(move |id| cell.attr("id") != Some(*id))
}

/// Where the cells of a table stand, and how far they reach.
struct Reach<'c, 'd> {
    cells: &'c [Cell<'d>],
    /// The cells in each column, from above.
    columns: Vec<Vec<&'c Cell<'d>>>,
    /// The cells in each row, from the left.
    rows: Vec<Vec<&'c Cell<'d>>>,
    /// Where data cells are that are not empty.
    data: Occupied,
    /// Where data cells are at all.
    data_cells: Occupied,
}

/// Which columns and which rows have something in them.
#[derive(Clone)]
struct Occupied {
    columns: Vec<bool>,
    rows: Vec<bool>,
}

impl Occupied {
    fn fill(&mut self, columns: Range<usize>, rows: Range<usize>) {
        self.columns[columns].fill(true);
        self.rows[rows].fill(true);
    }
}

impl<'c, 'd> Reach<'c, 'd> {
    /// None if the cells reach too far.
    fn of(cells: &'c [Cell<'d>]) -> Option<Reach<'c, 'd>> {
        let reach: usize = cells.iter().map(|cell| cell.right - cell.left + cell.bottom - cell.top).sum();
        let can_be_spent = |cell: &Cell<'_>| cell.element.document.work().spend(reach);
        if reach > MAX_REACH || !cells.first().is_none_or(can_be_spent) {
            return None;
        }
        let columns = cells.iter().map(|cell| cell.right).max().unwrap_or(0);
        let rows = cells.iter().map(|cell| cell.bottom).max().unwrap_or(0);
        let none = Occupied { columns: vec![false; columns], rows: vec![false; rows] };
        let (columns, rows) = (vec![Vec::new(); columns], vec![Vec::new(); rows]);
        let mut reach = Reach { cells, columns, rows, data: none.clone(), data_cells: none };
        for cell in cells {
            let (columns, rows) = (cell.left..cell.right, cell.top..cell.bottom);
            reach.columns[columns.clone()].iter_mut().for_each(|column| column.push(cell));
            reach.rows[rows.clone()].iter_mut().for_each(|row| row.push(cell));
            if !cell.element.is("th") {
                if has_content(cell.element) {
                    reach.data.fill(columns.clone(), rows.clone());
                }
                reach.data_cells.fill(columns, rows);
            }
        }
        // A cell that hangs down from a row above comes before those that begin further left.
        reach.rows.iter_mut().for_each(|row| row.sort_by_key(|cell| cell.left));
        Some(reach)
    }

    /// Whether a header cell has cells. None if it has some for browsers only: by the standard an empty corner is a data cell, so that a
    /// header beside it is none of a column, and a header of a group is none of a column or of a row.
    fn has_cells(&self, header: &Cell<'_>) -> Option<bool> {
        let has = |heads: Heads| match heads {
            Heads::Column => self.has_below(header),
            Heads::Row => self.has_behind(header),
            Heads::RowGroup => self.has_in_row_group(header),
            Heads::ColumnGroup => self.has_in_column_group(header),
            Heads::Either => false,
        };
        if has(self.heads(header, &self.data_cells)) {
            return Some(true);
        }
        let has_for_browsers = match self.heads(header, &self.data) {
            Heads::RowGroup => has(Heads::Row),
            Heads::ColumnGroup => has(Heads::Column),
            Heads::Either => true,
            heads => has(heads),
        };
        (!has_for_browsers).then_some(false)
    }

    /// What a header cell heads: what its scope or its role says, or else what is free of data.
    fn heads(&self, cell: &Cell<'_>, data: &Occupied) -> Heads {
        let header = cell.element;
        if !header.is("th") {
            return if header.has_role("rowheader") { Heads::Row } else { Heads::Column };
        }
        match header.attr("scope").map(str::to_ascii_lowercase).as_deref() {
            Some("col") => Heads::Column,
            Some("row") => Heads::Row,
            Some("rowgroup") => Heads::RowGroup,
            Some("colgroup") => Heads::ColumnGroup,
            _ if !data.rows[cell.top..cell.bottom].contains(&true) => Heads::Column,
            _ if !data.columns[cell.left..cell.right].contains(&true) => Heads::Row,
            _ => Heads::Either,
        }
    }

    fn has_below(&self, header: &Cell<'_>) -> bool {
        self.columns[header.left..header.right].iter().any(|column| {
            let begin = column.partition_point(|cell| cell.top < header.bottom);
            leads_to_one(header, &column[begin..], |header, cell| header.is_over(cell))
        })
    }

    fn has_behind(&self, header: &Cell<'_>) -> bool {
        self.rows[header.top..header.bottom].iter().any(|row| {
            let begin = row.partition_point(|cell| cell.left < header.right);
            leads_to_one(header, &row[begin..], |header, cell| header.is_beside(cell))
        })
    }

    fn has_in_row_group(&self, header: &Cell<'_>) -> bool {
        let begin = self.cells.partition_point(|cell| cell.row_group < header.row_group);
        let end = self.cells.partition_point(|cell| cell.row_group <= header.row_group);
        self.cells[begin..end].iter().rev().any(|cell| is_in_reach(header, cell))
    }

    fn has_in_column_group(&self, header: &Cell<'_>) -> bool {
        let is_of_group = |cell: &Cell<'_>| cell.column_group == header.column_group;
        let cells = self.cells.iter().rev().take_while(|_| header.element.document.spend());
        header.column_group.is_some() && cells.filter(|cell| is_of_group(cell)).any(|cell| is_in_reach(header, cell))
    }
}

/// Whether a cell of a header's group is headed by it: it ends below it and to the right of it, or where it does.
fn is_in_reach(header: &Cell<'_>, cell: &Cell<'_>) -> bool {
    let is_other = cell.element.index != header.element.index;
    let is_reached = cell.right > header.left && cell.bottom > header.top;
    header.element.document.spend() && is_other && is_reached && cell.takes_headers()
}

/// Whether a cell on the way from a header has it as its header. Behind data a header that stands as this one does takes its place.
fn leads_to_one(header: &Cell<'_>, way: &[&Cell<'_>], stands_alike: fn(&Cell<'_>, &Cell<'_>) -> bool) -> bool {
    let mut has_data = false;
    for cell in way.iter().take_while(|_| header.element.document.spend()) {
        if has_data && cell.is_header() && stands_alike(header, cell) {
            return false;
        }
        if cell.takes_headers() {
            return true;
        }
        has_data |= !cell.is_header();
    }
    false
}

/// Whether there is anything in a cell.
fn has_content(cell: Element<'_>) -> bool {
    cell.walk(|_| Visit::Into).any(|item| match item {
        Item::Text(says, _) => says,
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
        if is_placed || is_waiting || inner.has_hyphen() || inner.is("slot") || inner.state().styled_away {
            return None;
        }
        if inner.has_role("row") {
            (row, row_end, column) = (row + 1, inner.end(), 0);
        } else if is_cell(inner) && inner.index < row_end {
            let width = span(inner, "aria-colspan").max(span(inner, "colspan")).unwrap_or(1).clamp(1, MAX_COLUMNS);
            let right = column + width;
            if right > MAX_COLUMNS {
                return None;
            }
            cells.push(Cell { element: inner, left: column, right, top: row - 1, bottom: row, row_group: 0, column_group: None });
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
    let column_groups = column_groups(table);
    // Wherever it is written, the foot is at the end.
    let heads_and_bodies = table.children().filter(|child| child.is("thead") || child.is("tbody"));
    let groups = heads_and_bodies.chain(table.children().filter(|child| child.is("tfoot")));
    for (row_group, group) in groups.enumerate() {
        let end = row + group.children().filter(|child| child.is("tr")).count();
        for line in group.children().filter(|child| child.is("tr")) {
            let mut column = 0;
            for element in line.children().filter(|child| child.is("td") || child.is("th")) {
                while taken.get(column).is_some_and(|until| *until > row) {
                    column += 1;
                }
                let right = column + span(element, "colspan").unwrap_or(1).clamp(1, MAX_COLUMNS);
                if right > MAX_COLUMNS {
                    return Vec::new();
                }
                let bottom = match span(element, "rowspan") {
                    Some(0) => end,
                    rows => end.min(row + rows.unwrap_or(1)),
                };
                taken.resize(taken.len().max(right), 0);
                taken[column..right].iter_mut().for_each(|until| *until = bottom.max(*until));
                let column_group = column_groups.iter().position(|group| group.contains(&column));
                cells.push(Cell { element, left: column, right, top: row, bottom, row_group, column_group });
                column = right;
            }
            row += 1;
        }
    }
    cells
}

/// The columns of each group of columns.
fn column_groups(table: Element<'_>) -> Vec<Range<usize>> {
    let width = |element: Element<'_>| span(element, "span").unwrap_or(1).clamp(1, MAX_COLUMNS);
    let mut groups: Vec<Range<usize>> = Vec::new();
    for group in table.children().filter(|child| child.is("colgroup")) {
        let begin = groups.last().map_or(0, |last| last.end);
        let columns: usize = group.children().filter(|child| child.is("col")).map(width).sum();
        groups.push(begin..begin + if columns == 0 { width(group) } else { columns });
        if begin > MAX_COLUMNS {
            break;
        }
    }
    groups
}

/// How many slots a cell covers: the number that the value begins with (HTML standard, "Rules for parsing non-negative integers").
fn span(cell: Element<'_>, name: &str) -> Option<usize> {
    let text = cell.attr(name)?.trim_ascii_start();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    (length > 0).then(|| digits[..length].parse().unwrap_or(MAX_ROWS).min(MAX_ROWS))
}
