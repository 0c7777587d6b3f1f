//! Compares values of JSON with what they must be, cell by cell.

use serde_json::{Map, Value};

/// A cell that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Wrong {
    /// Which member said it.
    pub(crate) member: String,
    /// Which cell, from the outside to the inside.
    pub(crate) cell: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// What a report was compared with, and what is wrong in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// How many rows were looked at.
    pub(crate) rows: u64,
    pub(crate) wrong: Vec<Wrong>,
}

/// Objects whose every name counts: one that is not expected is wrong. Of others more may be said than is known here.
const WHOLE: [&str; 5] = ["by_status", "by_failure", "failures", "refused", "held_back"];

impl Compared {
    /// Adds what another comparison came to.
    pub(crate) fn add(&mut self, other: Compared) {
        self.rows += other.rows;
        self.wrong.extend(other.wrong);
    }

    pub(crate) fn wrong(&mut self, member: &str, cell: impl Into<String>, expected: impl ToString, found: impl ToString) {
        let (expected, found) = (expected.to_string(), found.to_string());
        self.wrong.push(Wrong { member: member.to_owned(), cell: cell.into(), expected, found });
    }

    /// One row: each name that is expected must be found with the same value.
    pub(crate) fn row(&mut self, member: &str, cell: &str, expected: &Map<String, Value>, found: &Map<String, Value>) {
        self.rows += 1;
        self.object(member, cell, expected, found, false);
    }

    /// Rows by their names: all must be there, and no other one.
    pub(crate) fn rows(&mut self, member: &str, cell: &str, expected: &Map<String, Value>, found: &Map<String, Value>) {
        for (name, value) in expected {
            let cell = format!("{cell} {name}");
            match (value, found.get(name)) {
                (Value::Object(expected), Some(Value::Object(found))) => self.row(member, &cell, expected, found),
                (_, found) => self.wrong(member, cell, value, found.unwrap_or(&Value::Null)),
            }
        }
        let more = found.iter().filter(|(name, _)| !expected.contains_key(*name));
        more.for_each(|(name, value)| self.wrong(member, format!("{cell} {name}"), "no such row", value));
    }

    fn object(&mut self, member: &str, cell: &str, expected: &Map<String, Value>, found: &Map<String, Value>, whole: bool) {
        for (name, value) in expected {
            let found = found.get(name).unwrap_or(&Value::Null);
            self.value(member, &format!("{cell} {name}"), value, found, WHOLE.contains(&name.as_str()));
        }
        let more = found.iter().filter(|(name, _)| whole && !expected.contains_key(*name));
        more.for_each(|(name, value)| self.wrong(member, format!("{cell} {name}"), "nothing", value));
    }

    /// One value.
    pub(crate) fn value(&mut self, member: &str, cell: &str, expected: &Value, found: &Value, whole: bool) {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => self.object(member, cell, expected, found, whole),
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
                let pairs = expected.iter().zip(found).enumerate();
                pairs.for_each(|(place, (expected, found))| self.value(member, &format!("{cell} {place}"), expected, found, whole));
            }
            (Value::Number(one), Value::Number(other)) if near(one.as_f64(), other.as_f64()) => {}
            (expected, found) if expected == found => {}
            (expected, found) => self.wrong(member, cell, expected, found),
        }
    }
}

fn near(one: Option<f64>, other: Option<f64>) -> bool {
    one.zip(other).is_some_and(|(one, other)| (one - other).abs() <= 1e-9 * one.abs().max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(expected: &Value, found: &Value) -> Vec<String> {
        let mut compared = Compared::default();
        let (Value::Object(expected), Value::Object(found)) = (expected, found) else { panic!("two objects") };
        compared.row("m", "row", expected, found);
        compared.wrong.into_iter().map(|wrong| format!("{}: {} for {}", wrong.cell, wrong.found, wrong.expected)).collect()
    }

    #[test]
    fn each_cell_counts_and_what_is_measured_does_not() {
        let expected =
            json!({"pages": 3, "share": 0.1, "none": null, "by_status": {"200": 3}, "facts": {"title": "x"}, "levels": [{"pages": 1}]});
        let right = json!({"pages": 3, "share": 0.1000000000001, "by_status": {"200": 3}, "busy_ms": 7, "facts": {"title": "x", "rtt": 1},
            "levels": [{"pages": 1, "busy_ms": 2}]});
        assert_eq!(wrong(&expected, &right), Vec::<String>::new());
        let other = json!({"pages": 4, "none": 1, "by_status": {"200": 3, "404": 1}, "facts": {}, "levels": []});
        let said = wrong(&expected, &other);
        assert_eq!(said.len(), 6, "{said:?}");
        assert!(said.contains(&"row by_status 404: 1 for nothing".to_owned()), "{said:?}");
    }

    #[test]
    fn rows_are_all_there_and_no_others() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let mut compared = Compared::default();
        let expected = object(json!({"KE": {"servers": 1}, "TZ": {"servers": 2}}));
        compared.rows("m", "country", &expected, &object(json!({"KE": {"servers": 1}, "UG": {"servers": 2}})));
        let cells: Vec<_> = compared.wrong.iter().map(|wrong| wrong.cell.as_str()).collect();
        assert_eq!((compared.rows, cells), (1, vec!["country TZ", "country UG"]));
    }
}
