//! Checks that distinct counts and reports, asked of any member, agree with the rows of all servers.
//!
//! This is part of the test of exports, whose swarm it uses.

use crate::support::{Swarm, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_model::url::Host;
use serde_json::Value;
use std::collections::BTreeSet;

async fn json(arguments: &[&str]) -> Value {
    let ended = nearcrawl(arguments).await;
    assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    serde_json::from_str(&ended.said).unwrap_or_else(|why| panic!("{why}: {ended:?}"))
}

/// `servers`: the rows of all servers, as JSON lines.
pub async fn agree_with_the_rows(swarm: &Swarm, servers: &str) {
    let rows: Vec<Value> = servers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts = |key: &str| rows.iter().map(|row| row[key].as_str().unwrap().to_owned()).collect::<BTreeSet<String>>();
    let domain = |host: &String| host.parse::<Host>().unwrap().registrable().unwrap_or(host).to_owned();
    let domains: BTreeSet<String> = texts("host").iter().map(domain).collect();
    let named = || rows.iter().map(|row| row["external_hosts"].as_u64().unwrap());
    let (most, sum) = (named().max().unwrap(), named().sum::<u64>());

    let api = format!("http://{}:{API_PORT}", swarm.daemons[1].address);
    let told = json(&["results", "--api", &api, "--json"]).await;
    let distinct = &told["distinct"];
    assert_eq!(distinct["in_transition_text"], Value::Null, "{distinct}");
    assert_eq!(distinct["servers"], rows.len(), "{distinct}");
    for (name, count) in [("addresses", texts("address").len()), ("domains", domains.len())] {
        assert_eq!((&distinct[name]["count"], &distinct[name]["error_ratio"]), (&count.into(), &0.0.into()), "{name}: {distinct}");
    }
    let hosts = distinct["external_hosts"]["count"].as_u64().unwrap();
    assert!(most <= hosts && hosts <= sum, "{most} at one server, {sum} summed over servers: {distinct}");
    assert_eq!(told["summary"]["total"]["external_hosts"], sum);
    let of_a_member = json(&["results", "--distinct", "--json", "--member", &swarm.daemons[2].multiaddress()]).await;
    for name in ["members", "servers", "addresses", "domains", "external_hosts", "external_domains"] {
        assert_eq!(of_a_member[name], distinct[name], "{name}");
    }

    let by = ["results", "--by", "country,software", "--json"];
    let summed_by_owners = json(&[&by[..], &["--api", &api]].concat()).await["cells"].clone();
    let summed_here = json(&[&by[..], &["--member", &swarm.daemons[2].multiaddress()]].concat()).await;
    // What hosts that were not visited add is estimated: here all were.
    assert!(summed_by_owners.as_array().unwrap().iter().all(|cell| cell["estimates"].is_null()), "{summed_by_owners}");
    assert_eq!((&summed_here["cells"], &summed_here["servers"]), (&summed_by_owners, &Value::from(rows.len())), "{summed_here}");
    let by_rule = json(&["results", "--by", "rule,tld", "--json", "--api", &api]).await;
    let failures =
        by_rule["cells"].as_array().unwrap().iter().map(|cell| cell["counts"]["detected_failures"].as_u64().unwrap()).sum::<u64>();
    let sums = &told["summary"]["total"]["detected_failures"];
    assert_eq!((&Value::from(failures), &by_rule["all_owners_answered"]), (sums, &Value::Bool(true)), "{by_rule}");

    let page = swarm.common.directory.join("report.html");
    let page = page.to_str().unwrap();
    for (report, split) in
        [("offshore", None), ("nearness", Some("registry")), ("reachability", Some("tld")), ("accessibility", None), ("load", None)]
    {
        let by: Vec<&str> = split.iter().flat_map(|split| ["--by", *split]).collect();
        let arguments: Vec<&str> = ["report", report, "--api", &api].into_iter().chain(by).collect();
        let made = json(&[&arguments[..], &["--format", "json"]].concat()).await;
        assert_eq!(made["data"]["servers"], rows.len(), "{made}");
        let total = |column: &str| made["rows"].as_array().unwrap().iter().filter_map(|row| row[column].as_u64()).sum::<u64>();
        match report {
            "reachability" => assert_eq!(total("servers") + made["data"]["servers_waiting"].as_u64().unwrap(), rows.len() as u64),
            "nearness" => assert_eq!(total("servers") + made["data"]["servers_unmeasured"].as_u64().unwrap(), rows.len() as u64),
            "load" => {
                assert_eq!((total("external_hosts"), total("pages")), (sum, rows.iter().map(|row| row["pages"].as_u64().unwrap()).sum()))
            }
            _ => {}
        }
        let written = nearcrawl(&[&arguments[..], &["--format", "html", "--out", page]].concat()).await;
        assert_eq!((written.code, written.said.as_str()), (Some(0), ""), "{written:?}");
        let evaluated = nearcrawl(&["evaluate", page]).await;
        assert_eq!(evaluated.code, Some(0), "{report}: {evaluated:?}");
    }
}
