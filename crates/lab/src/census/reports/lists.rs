//! Checks of `servers`: which are shown, in which order, and what is said of each.

use super::{
    asking::Asking,
    words::{bytes, compare_table, table, unbroken},
};
use crate::{
    census::{compare::Compared, reference::Expected},
    demo::daemons::DaemonError,
};
use nearcrawl_model::view::counted;
use serde_json::{Value, json};
use std::cmp::Reverse;

/// By what servers are sorted: a number from the greatest on, or a text, with nothing at the end.
type Key = (Reverse<u64>, bool, String);

/// Something to ask for: arguments, which servers that means, and in which order.
struct Question<'a> {
    arguments: Vec<&'a str>,
    servers: Vec<&'a Expected>,
}

/// Questions with each filter and some orders. Servers come in the order of their names.
fn questions<'a>(servers: &[&'a Expected]) -> Vec<Question<'a>> {
    let only = |holds: &dyn Fn(&Expected) -> bool| servers.iter().copied().filter(|server| holds(server)).collect::<Vec<_>>();
    let sorted = |mut servers: Vec<&'a Expected>, key: &dyn Fn(&Expected) -> Key| {
        servers.sort_by_key(|server| key(server));
        servers
    };
    let number = |number: u64| (Reverse(number), false, String::new());
    let text = |text: Option<&str>| (Reverse(0), text.is_none(), text.unwrap_or_default().to_lowercase());
    let mut questions = vec![Question { arguments: vec!["--limit", "0"], servers: servers.to_vec() }];
    let mut add = |arguments: &[&'a str], servers| questions.push(Question { arguments: arguments.to_vec(), servers });
    let mut most = sorted(servers.to_vec(), &|server| number(server.pages.len() as u64));
    most.truncate(7);
    add(&["--sort", "pages", "--limit", "7"], most);
    let down = only(&|server| matches!(server.status, "down" | "refused"));
    add(&["--status", "down,refused", "--limit", "0", "--sort", "country"], sorted(down, &|server| text(Some(&server.country))));
    let nginx = only(&|server| server.software.is_some_and(|software| software.starts_with("nginx")));
    add(&["--software", "NGINX", "--limit", "0", "--sort", "failed"], sorted(nginx, &|server| number(server.failed)));
    let in_country = only(&|server| matches!(server.tld.as_str(), "qm" | "xa"));
    add(&["--tld", "qm,.xa", "--limit", "0", "--sort", "software"], sorted(in_country, &|server| text(server.software)));
    let mut home = sorted(only(&|server| matches!(server.country.as_str(), "QM" | "XA")), &|server| number(server.page_bytes));
    home.reverse();
    add(&["--country", "qm,XA", "--limit", "0", "--sort", "size", "--reverse"], home);
    for (sort, key) in [("requests", "requests"), ("links", "external_hosts")] {
        add(&["--sort", sort, "--limit", "0"], sorted(servers.to_vec(), &|server| number(server.counts()[key])));
    }
    questions
}

/// `servers` in several ways, as JSON and as text, each asked of another member.
pub(super) async fn servers(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    let all: Vec<&Expected> = asking.reference.run(asking.run).servers.values().collect();
    for (number, Question { arguments, servers }) in questions(&all).into_iter().enumerate() {
        let (number, cell) = (asking.member(number), arguments.join(" "));
        let (member, arguments) = (asking.name(number), [&["servers"], &arguments[..]].concat());
        let told = asking.swarm.json(number, &arguments).await?;
        let found = told.as_array().cloned().unwrap_or_default();
        let order: Vec<&str> = found.iter().filter_map(|row| row["host"].as_str()).collect();
        let hosts: Vec<&str> = servers.iter().map(|server| server.host.as_str()).collect();
        compared.value(&member, &format!("{cell}: hosts"), &json!(hosts), &json!(order), false);
        for (server, row) in servers.iter().zip(&found) {
            compared.row(&member, &format!("{cell}: {}", server.host), &server.server_row(), &row.as_object().cloned().unwrap_or_default());
        }
        let said = asking.swarm.ask(number, &arguments).await?;
        compare_text(&mut compared, (&member, &cell), (&servers, all.len()), &said);
    }
    Ok(compared)
}

/// The first columns of the table, and the sentence under it.
fn compare_text(compared: &mut Compared, (member, cell): (&str, &str), (servers, all): (&[&Expected], usize), said: &str) {
    let row = |server: &&Expected| {
        let numbers = [server.pages.len().to_string(), unbroken(&bytes(server.page_bytes)), server.failed.to_string()];
        (server.host.clone(), [server.country.clone(), server.status.to_owned()].into_iter().chain(numbers).collect::<Vec<_>>())
    };
    let found = table(said, "host").into_iter().filter(|(host, _)| host != "host");
    let found = found.map(|(host, row)| (host, row.into_iter().take(5).collect())).collect();
    compare_table(compared, member, cell, servers.iter().map(row).collect(), found);
    let on_record = format!("{} on record", counted(all as u64, "server"));
    if !unbroken(said).contains(&unbroken(&on_record)) {
        compared.wrong(member, cell, on_record, Value::from(said.lines().last().unwrap_or_default()));
    }
}
