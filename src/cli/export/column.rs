//! The columns of a table, and a row of it.

pub use crate::cli::walk::Row;
use serde_json::Value;

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
    /// A list of words in JSON; a text in a table.
    Words,
}

/// Where the value of a column is in a row.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// It is called like the column.
    Name,
    /// In an object within the row: the names from the outside to the inside, with points between them.
    Within(&'static str),
    /// It is made of the row, which keeps what it is made of.
    Made(fn(&Row) -> Value),
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// As it is called in CSV, and, unless it lies within an object or is made, in JSON.
    pub name: &'static str,
    /// As it is called in Parquet: as Common Crawl has it, where that means the same.
    pub parquet: &'static str,
    pub holds: Type,
    source: Source,
}

impl Column {
    /// The same column under another name in Parquet.
    pub const fn called(self, parquet: &'static str) -> Column {
        Column { parquet, ..self }
    }

    /// The same column with a value that lies within an object of the row.
    pub const fn within(self, path: &'static str) -> Column {
        Column { source: Source::Within(path), ..self }
    }

    /// The same column with a value that is made of the row.
    pub const fn made(self, make: fn(&Row) -> Value) -> Column {
        Column { source: Source::Made(make), ..self }
    }
}

const fn column(name: &'static str, holds: Type) -> Column {
    Column { name, parquet: name, holds, source: Source::Name }
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

pub const fn words(name: &'static str) -> Column {
    column(name, Type::Words)
}

/// The values of a row in the order of the columns; what has no column stays in the row.
pub fn cells(columns: &[Column], row: &mut Row) -> Vec<Value> {
    // What is made comes first: then the row is still whole.
    let made = |column: &Column| if let Source::Made(make) = column.source { make(row) } else { Value::Null };
    let mut cells: Vec<Value> = columns.iter().map(made).collect();
    for (column, cell) in columns.iter().zip(&mut cells) {
        match column.source {
            Source::Name => *cell = row.remove(column.name).unwrap_or_default(),
            Source::Within(path) => *cell = taken(row, path).unwrap_or_default(),
            Source::Made(_) => {}
        }
        if column.holds == Type::Words {
            *cell = joined(cell);
        }
    }
    cells
}

/// Takes a value out of the objects around it, and these if nothing is left in them.
fn taken(row: &mut Row, path: &str) -> Option<Value> {
    let Some((outer, inner)) = path.split_once('.') else { return row.remove(path) };
    let within = row.get_mut(outer)?.as_object_mut()?;
    let value = taken(within, inner);
    if within.is_empty() {
        row.remove(outer);
    }
    value
}

/// Words as one text; none if there is none.
fn joined(words: &Value) -> Value {
    let words: Vec<&str> = words.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if words.is_empty() { Value::Null } else { Value::String(words.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_within_objects_are_taken_and_what_has_no_column_stays() {
        let columns = [
            text("host"),
            text("issuer").within("facts.certificate.issuer"),
            words("offers").within("facts.alt_svc"),
            words("none").within("facts.none"),
            int("letters").made(|row| json!(row["host"].as_str().map(str::len))),
            int("gone").within("nothing.there"),
        ];
        let facts = json!({"certificate": {"issuer": "R3"}, "alt_svc": ["h3", "h2"], "none": [], "later": 1});
        let Value::Object(mut row) = json!({"host": "a.ke", "facts": facts, "nothing": null}) else { unreachable!() };
        let found = cells(&columns, &mut row);
        assert_eq!(found, [json!("a.ke"), json!("R3"), json!("h3; h2"), Value::Null, json!(4), Value::Null]);
        assert_eq!(Value::Object(row), json!({"facts": {"later": 1}, "nothing": null}));
    }
}
