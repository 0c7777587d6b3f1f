//! The nodes of the experiment with their addresses, read from a CSV file whose first line names the columns.

use crate::reading::{InputError, Lines};
use std::{collections::BTreeMap, io::Read, net::IpAddr};

/// The most nodes that are read.
pub(crate) const MAX_NODES: usize = 100_000;

/// What the first line of a nodes file may look like, for error messages.
const EXAMPLE: &str = "probe_id,ipv4,country,is_target,is_source";
const EXAMPLE_ON_A_PLANE: &str = "id,ipv4,x_ms,y_ms";

/// The largest coordinate, in milliseconds: no place on Earth is that far away.
const FARTHEST_MS: f64 = 60_000.0;

/// A machine that may act as a crawler, as a site, or both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// How the files call it.
    pub id: String,
    /// Its address; none if it is not known, then it cannot be a site.
    pub address: Option<IpAddr>,
    /// The country it stands in, if the file says so. Only crawlers use it, about themselves.
    pub country: Option<[u8; 2]>,
    /// Whether it answered probes.
    pub is_target: bool,
    /// Whether it sent probes.
    pub is_source: bool,
    /// Where it stands on the plane, in milliseconds one way; only in worlds with coordinates.
    pub place: Option<(f64, f64)>,
}

/// The nodes and where to find each by its id.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    list: Vec<Node>,
    by_id: BTreeMap<String, usize>,
}

impl Nodes {
    /// Reads nodes. Needs the columns `id` (or `probe_id`) and `ipv4` (or `ip`, `address`), and with `on_a_plane` also `x_ms` and
    /// `y_ms`; takes `country`, `is_target` and `is_source` (1 or 0, otherwise all are both) into account, passes over all others.
    pub fn read(file: &str, input: impl Read, on_a_plane: bool) -> Result<Nodes, InputError> {
        let mut lines = Lines::new(file, input);
        let example = if on_a_plane { EXAMPLE_ON_A_PLANE } else { EXAMPLE };
        let headings = lines.next()?.ok_or_else(|| lines.empty(example))?;
        let find = |names: &[&str]| headings.iter().position(|heading| names.contains(&heading.trim().to_ascii_lowercase().as_str()));
        let need = |names: &[&str]| find(names).ok_or_else(|| InputError::Column { file: file.into(), column: names[0].into(), example });
        let (id, address) = (need(&["id", "probe_id", "node"])?, need(&["ipv4", "ip", "address", "ipv6"])?);
        let (country, target, source) = (find(&["country", "cc"]), find(&["is_target"]), find(&["is_source"]));
        let place = if on_a_plane { Some((need(&["x_ms", "x"])?, need(&["y_ms", "y"])?)) } else { None };
        let mut nodes = Nodes::default();
        while let Some(line) = lines.next()? {
            let cell = |column: usize| line.get(column).unwrap_or_default().trim();
            let flag = |column: Option<usize>| match column.map(cell) {
                None | Some("1" | "true") => Ok(true),
                Some("" | "0" | "false") => Ok(false),
                Some(other) => Err(lines.bad(format!("{other:?} should be 1 or 0"))),
            };
            let coordinate = |column: usize| {
                let value = cell(column).parse::<f64>().ok().filter(|value| value.abs() <= FARTHEST_MS);
                value.ok_or_else(|| lines.bad(format!("{:?} is no coordinate in milliseconds", cell(column))))
            };
            let node = Node {
                id: cell(id).to_owned(),
                address: match cell(address) {
                    "" => None,
                    text => Some(text.parse().map_err(|_| lines.bad(format!("{text:?} is no IP address; leave it empty if unknown")))?),
                },
                country: match country.map(cell) {
                    None | Some("" | "ZZ") => None,
                    Some(text) => Some(country_code(text).ok_or_else(|| lines.bad(format!("{text:?} is no country, write it like KE")))?),
                },
                is_target: flag(target)?,
                is_source: flag(source)?,
                place: place.map(|(x, y)| Ok::<_, InputError>((coordinate(x)?, coordinate(y)?))).transpose()?,
            };
            if node.id.is_empty() {
                return Err(lines.bad("the node has no id".into()));
            }
            if nodes.list.len() == MAX_NODES {
                return Err(InputError::TooMany { file: file.into(), most: MAX_NODES, what: "nodes" });
            }
            if nodes.by_id.insert(node.id.clone(), nodes.list.len()).is_some() {
                return Err(lines.bad(format!("there is a node {:?} already; ids must differ", node.id)));
            }
            nodes.list.push(node);
        }
        if nodes.list.is_empty() { Err(lines.empty(example)) } else { Ok(nodes) }
    }

    /// All of them, in the order of the file.
    pub(crate) fn list(&self) -> &[Node] {
        &self.list
    }

    /// The index of the node with this id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}

fn country_code(text: &str) -> Option<[u8; 2]> {
    let code: [u8; 2] = text.as_bytes().try_into().ok()?;
    code.iter().all(u8::is_ascii_alphabetic).then(|| code.map(|letter| letter.to_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Nodes, InputError> {
        Nodes::read("nodes.csv", text.as_bytes(), false)
    }

    #[test]
    fn columns_are_found_by_name_in_any_order_and_others_are_passed_over() {
        let nodes = read("city,is_target,ipv4,probe_id,country\n\"Washington, DC\",1,192.0.2.1,6025,US\nNairobi,0,,7,\n").unwrap();
        let [first, second] = nodes.list() else { panic!("{nodes:?}") };
        assert_eq!((first.id.as_str(), first.country, first.is_target, first.is_source), ("6025", Some(*b"US"), true, true));
        assert_eq!((second.address, second.country, second.is_target), (None, None, false));
        assert_eq!((nodes.find("7"), nodes.find("8")), (Some(1), None));
    }

    #[test]
    fn nodes_on_a_plane_have_places() {
        let nodes = Nodes::read("n", "id,ipv4,x_ms,y_ms\n1,12.5.0.1,-31.5,19\n".as_bytes(), true).unwrap();
        assert_eq!(nodes.list()[0].place, Some((-31.5, 19.0)));
    }

    #[test]
    fn every_mistake_is_named_with_file_line_and_what_to_do() {
        let cases = [
            ("", "nodes.csv is empty"),
            ("id,ipv4\n", "nodes.csv is empty"),
            ("ipv4,country\n192.0.2.1,KE\n", "nodes.csv has no column id"),
            ("id,ipv4\n1,192.0.2.1\n2,192.0.2.300\n", "nodes.csv, line 3: \"192.0.2.300\" is no IP address"),
            ("id,ipv4\n1,192.0.2.1\n1,192.0.2.2\n", "nodes.csv, line 3: there is a node \"1\" already"),
            ("id,ipv4\n,192.0.2.1\n", "line 2: the node has no id"),
            ("id,ipv4,country\n1,192.0.2.1,Kenya\n", "line 2: \"Kenya\" is no country"),
            ("id,ipv4,is_target\n1,192.0.2.1,maybe\n", "line 2: \"maybe\" should be 1 or 0"),
            ("id,ipv4\n1,192.0.2.1,7\n", "line 2"),
        ];
        for (text, told) in cases {
            let refusal = read(text).unwrap_err().to_string();
            assert!(refusal.contains(told), "{refusal} for {text:?}");
        }
        let on_a_plane = |line: &str| Nodes::read("n", format!("id,ipv4,x_ms,y_ms\n{line}\n").as_bytes(), true).unwrap_err().to_string();
        for bad in ["1,192.0.2.1,,2", "1,192.0.2.1,NaN,2", "1,192.0.2.1,1e9,2"] {
            assert!(on_a_plane(bad).contains("is no coordinate"), "{bad}");
        }
        let missing = Nodes::read("n", "id,ipv4\n1,192.0.2.1\n".as_bytes(), true).unwrap_err().to_string();
        assert!(missing.contains("no column x_ms") && missing.contains("id,ipv4,x_ms,y_ms"), "{missing}");
    }
}
