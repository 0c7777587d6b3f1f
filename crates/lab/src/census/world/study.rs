//! The surveys of the made-up web: one of a list with labels, and one of two countries' domains.

use super::{World, host::Nature, links::may_be_named};

/// A survey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Study {
    pub(crate) name: &'static str,
    /// URLs with their labels; every host among them is a starting point anyway.
    pub(crate) list: Vec<(String, Labels)>,
    /// Top-level domains of which all hosts belong to it.
    pub(crate) tlds: Vec<&'static str>,
}

/// Names and values, by name.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// A listed host that has no address.
pub(crate) const NOWHERE: &str = "http://listed-and-nowhere.test:8080/";

impl Study {
    /// The list as a file.
    pub(crate) fn csv(&self) -> String {
        let names: Vec<&str> = self.list.iter().flat_map(|(_, labels)| labels.iter().map(|(name, _)| *name)).take(2).collect();
        let mut text = format!("url,{}\n", names.join(","));
        for (url, labels) in &self.list {
            let values: Vec<&str> = labels.iter().map(|(_, value)| value.as_str()).collect();
            text.push_str(&format!("{url},{}\n", values.join(",")));
        }
        text
    }
}

impl World {
    /// All surveys.
    pub(crate) fn studies(&self) -> [Study; 2] {
        let hosts = self.hosts.iter().enumerate().filter(|(_, host)| may_be_named(host));
        // Every other plain host, and all that have something special.
        let listed = hosts.filter(|(number, host)| host.nature != Nature::Plain || number % 2 == 0);
        let labels = |number: usize, domain: &str| {
            let sector = domain.chars().take_while(char::is_ascii_alphabetic).collect();
            vec![("half", if number % 4 < 2 { "first" } else { "second" }.to_owned()), ("sector", sector)]
        };
        let list = listed.map(|(number, host)| (host.home(), labels(number, &host.domain)));
        let nowhere = (NOWHERE.to_owned(), labels(0, "nowhere"));
        let list = list.chain([nowhere]).collect();
        [Study { name: "sectors", list, tlds: Vec::new() }, Study { name: "countries", list: Vec::new(), tlds: vec!["qm", "xa"] }]
    }
}
