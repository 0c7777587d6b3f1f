//! What people read: the headline of the totals, and why a host or a URL is as it is.

use super::{asking::Asking, exports::compare_failing};
use crate::{
    census::{compare::Compared, reference::sums},
    demo::daemons::DaemonError,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many hosts are asked about.
const HOSTS: usize = 24;

/// The first line of `results`.
pub(super) async fn headline(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared { rows: 1, ..Compared::default() };
    let number = asking.member(1);
    let said = asking.swarm.ask(number, &["results"]).await?;
    let total = sums(asking.reference.run(asking.run).servers.values());
    let [servers, up, pages, requests] = ["servers", "up", "pages", "requests"].map(|figure| total[figure]);
    let expected = format!("{servers} servers ({up} up), {pages} pages, {requests} requests, ");
    let line = said.lines().next().unwrap_or_default();
    if !line.starts_with(&expected) {
        compared.wrong(&asking.name(number), "first line", expected, line);
    }
    Ok(compared)
}

/// `why HOST` and `why URL`, asked of the owners.
pub(super) async fn why(asking: Asking<'_>) -> Result<Compared, DaemonError> {
    let mut compared = Compared::default();
    let owners: BTreeMap<String, String> = asking
        .swarm
        .lines(asking.member(0), &["export", "servers"])
        .await?
        .iter()
        .filter_map(|row| Some((row["host"].as_str()?.to_owned(), row["access_point"].as_str()?.to_owned())))
        .collect();
    let servers = &asking.reference.run(asking.run).servers;
    for expected in servers.values().step_by(servers.len().div_ceil(HOSTS).max(1)) {
        let is_owner = |member: &usize| owners.get(&expected.host) == Some(&asking.swarm.daemons[*member].access_point);
        let Some(owner) = asking.swarm.running().into_iter().find(is_owner) else { continue };
        let (member, told) = (asking.name(owner), asking.swarm.json(owner, &["why", &expected.host]).await?);
        let wanted = json!({"host": expected.host, "address": expected.address, "tree": expected.tree, "owner_is_me": true,
                            "state": expected.state, "facts": expected.facts});
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        compared.row(&member, &expected.host, &object(&wanted), &object(&told));
        compare_failing(&mut compared, &member, expected, &told["failing_pages"]);
        let Some(host) = asking.world.host(&expected.host) else { continue };
        let asked_for = if expected.status == "up" { "not-waiting" } else { continue };
        let told = asking.swarm.json(owner, &["why", &host.home()]).await?;
        compared.row(&member, &host.home(), &object(&json!({"state": asked_for})), &object(&told));
        let private = format!("{}/private/x.html", host.origin());
        if host.page("/private/x.html", asking.run).is_some() && expected.refused_by_robots > 0 {
            let told = asking.swarm.json(owner, &["why", &private]).await?;
            compared.row(&member, &private, &object(&json!({"state": "refused-by-robots"})), &object(&told));
        }
    }
    Ok(compared)
}
