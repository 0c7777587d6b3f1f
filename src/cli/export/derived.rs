//! Columns derived from a row.
//!
//! From its host and URL, as Common Crawl's index of URLs calls it, which only Parquet has; from its answers, as Common Crawl's index of
//! hosts calls it; from its address.

use super::column::{Column, Row, int, text};
use nearcrawl_model::{
    crawled_by::CrawledBy,
    facts::family_word,
    url::{Host, PageUrl},
};
use serde_json::{Value, json};

/// Made from a host.
pub const OF_HOST: [Column; 3] = [text("surt_host_name"), text("url_host_tld"), text("url_host_registered_domain")];

/// Made from a URL.
pub const OF_URL: [Column; 4] = [text("url_protocol"), int("url_port"), text("url_path"), text("url_query")];

/// Adds what can be made of `host` and `url`.
pub fn derive(row: &mut Row) {
    if let Some(host) = row.get("host").and_then(Value::as_str).and_then(|host| host.parse::<Host>().ok()) {
        let surt = if host.address().is_some() { host.as_str().to_owned() } else { backwards(host.as_str()) };
        row.insert("surt_host_name".to_owned(), Value::String(surt));
        row.insert("url_host_tld".to_owned(), json!(host.tld()));
        row.insert("url_host_registered_domain".to_owned(), json!(host.registrable()));
    }
    if let Some(url) = row.get("url").and_then(Value::as_str).and_then(|url| PageUrl::parse(url).ok()) {
        let usual = if url.is_secure() { 443 } else { 80 };
        row.insert("url_protocol".to_owned(), json!(if url.is_secure() { "https" } else { "http" }));
        row.insert("url_port".to_owned(), json!(Some(url.port()).filter(|port| *port != usual)));
        row.insert("url_path".to_owned(), json!(url.path()));
        row.insert("url_query".to_owned(), json!(url.query()));
    }
}

/// `ke,or,museum` for `museum.or.ke`.
fn backwards(host: &str) -> String {
    let labels: Vec<_> = host.rsplit('.').collect();
    labels.join(",")
}

/// The family of the address; none if there is no address.
pub fn family(row: &Row) -> Value {
    let address = row.get("address").and_then(Value::as_str).and_then(|address| address.parse().ok());
    json!(address.map(|address| family_word(Some(address))))
}

/// Which rule chose the pages of a run, if that is known.
pub fn crawl_rule(row: &Row) -> Value {
    let by: Option<CrawledBy> = row.get("crawled_by").and_then(|by| serde_json::from_value(by.clone()).ok());
    json!(by.map(|by| by.rule()))
}

/// How many answers had such a status. None if it is not known what answers there were.
pub fn answers(row: &Row, is_counted: impl Fn(u16) -> bool) -> Value {
    let Some(by_status) = row.get("by_status").and_then(Value::as_object) else { return Value::Null };
    let counted = by_status.iter().filter(|(status, _)| status.parse().is_ok_and(&is_counted));
    json!(counted.filter_map(|(_, count)| count.as_u64()).fold(0, u64::saturating_add))
}

/// Which answers Common Crawl counts as what (<https://github.com/commoncrawl/cc-host-index>, `cc-host-index-schema.json`): each as one of these.
pub const fn is_success(status: u16) -> bool {
    status / 100 == 2
}

/// A lasting redirect.
pub const fn is_moved(status: u16) -> bool {
    matches!(status, 301 | 308)
}

/// A redirect for the moment.
pub const fn is_elsewhere(status: u16) -> bool {
    matches!(status, 302 | 307)
}

/// 3xx, and none of those that are counted apart.
pub const fn is_other_3xx(status: u16) -> bool {
    status / 100 == 3 && status != 304 && !is_moved(status) && !is_elsewhere(status)
}

/// There is no such page.
pub const fn is_gone(status: u16) -> bool {
    matches!(status, 404 | 410)
}

/// 4xx, and none that says that there is no such page.
pub const fn is_other_4xx(status: u16) -> bool {
    status / 100 == 4 && !is_gone(status)
}
