//! The columns of a table, and a row of it.

use serde_json::{Map, Value};

/// A row: one JSON object.
pub type Row = Map<String, Value>;

/// What has no column of its own.
pub const REST: &str = "other_json";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Int,
    /// A date with its time, as text in JSON.
    Time,
    Flag,
    /// A share, as a number with a point.
    Real,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As it is called in JSON and CSV.
    pub name: &'static str,
    /// As it is called in Parquet: as Common Crawl has it, where that means the same.
    pub parquet: &'static str,
    pub holds: Type,
}

impl Column {
    /// The same column under another name in Parquet.
    pub const fn called(self, parquet: &'static str) -> Column {
        Column { parquet, ..self }
    }
}

const fn column(name: &'static str, holds: Type) -> Column {
    Column { name, parquet: name, holds }
}

pub const fn text(name: &'static str) -> Column {
    column(name, Type::Text)
}

pub const fn int(name: &'static str) -> Column {
    column(name, Type::Int)
}

pub const fn time(name: &'static str) -> Column {
    column(name, Type::Time)
}

pub const fn real(name: &'static str) -> Column {
    column(name, Type::Real)
}

pub const fn flag(name: &'static str) -> Column {
    column(name, Type::Flag)
}
