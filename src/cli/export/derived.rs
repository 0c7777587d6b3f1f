//! Columns that only Parquet has, made of a host or a URL: as Common Crawl's index calls them.

use super::column::{Column, Row, int, text};
use nearcrawl_model::url::{Host, PageUrl};
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
