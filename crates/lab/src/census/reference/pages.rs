//! Expected records of each visit of a server, and of where its pages lead.

use super::{
    record::{Expected, failure, key, visits},
    visit::Visit,
    visits::{InRun, in_scope},
};
use crate::{
    census::world::{
        Reply, World,
        host::{Content, Host},
    },
    oracle::{self, Kind},
};
use nearcrawl_model::{evaluation::RULE_SET, revisit::content_of, url::PageUrl};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where a page or a redirect leads.
fn links_of(web: &InRun<'_>, host: &Host, url: &PageUrl, kind: Kind) -> Vec<PageUrl> {
    let page = web.page(url).and_then(|(_, page)| page);
    match (kind, page.map(|page| &page.content)) {
        (Kind::Page, _) => page.map(|page| web.all_links(host, page)).unwrap_or_default(),
        (Kind::Redirect, Some(Content::Moved(target))) => web.world.moved_to(host, target).into_iter().collect(),
        // The front door: http leads to https.
        (Kind::Redirect, _) => PageUrl::parse(&format!("{}/", host.origin())).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The content type of an answer without what stands behind it. Pages of this world are HTML and are sent as that.
fn essence(reply: &Reply) -> Option<&str> {
    let header = reply.headers.iter().find(|(name, _)| *name == "content-type");
    header.and_then(|(_, value)| value.split(';').next())
}

/// Enters all visits into the records of a run.
pub(super) fn enter(
    world: &World,
    run: u32,
    outcome: &oracle::Expected,
    previous: Option<&BTreeMap<String, Expected>>,
    servers: &mut BTreeMap<String, Expected>,
) {
    for (name, server) in servers {
        let Some(host) = world.host(name) else { continue };
        let previous = previous.and_then(|servers| servers.get(name));
        server.visits = pages(&InRun { world, run }, host, outcome, server, previous);
    }
}

/// All visits of a server in a run.
fn pages(web: &InRun<'_>, host: &Host, outcome: &oracle::Expected, expected: &Expected, previous: Option<&Expected>) -> Vec<Visit> {
    let visit = |(url, level, kind): (&PageUrl, u8, Kind)| {
        let reply = web.world.reply(&host.name, url.is_secure(), url.path_and_query(), web.run, None);
        let page = web.page(url).and_then(|(_, page)| page);
        let (is_page, is_broken) = (kind == Kind::Page, kind == Kind::Broken);
        let not_modified = expected.is_not_modified(host, (url, kind), &reply.body, previous);
        let then = previous.and_then(|previous| previous.pages.get(&key(url)));
        let change = is_page.then(|| match then {
            None => "new",
            Some(_) if not_modified => "not-modified",
            Some(then) if then.body == reply.body => "unchanged",
            Some(_) => "changed",
        });
        let all = links_of(web, host, url, kind);
        let links: BTreeMap<String, String> =
            all.iter().filter(|link| in_scope(link.host_str())).map(|link| (link.to_string(), link.host_str().to_owned())).collect();
        let beyond: BTreeSet<String> = all.iter().map(PageUrl::to_string).filter(|link| !links.contains_key(link)).collect();
        let size = if is_broken { 0 } else { reply.body.len() };
        let status = if not_modified { 304 } else { reply.status };
        let failures = page.filter(|_| is_page && expected.evaluates).map(|page| web.world.html(host, page, web.run).1);
        let says_type = (is_page && !not_modified) || kind == Kind::NotHtml;
        let row = json!({
            "url": url.to_string(), "level": level, "fetch_status": (!is_broken).then_some(status),
            "outcome": match kind {
                Kind::Page => "page",
                Kind::Redirect => "redirect",
                Kind::NotHtml => "not-html",
                Kind::Status(_) => "status",
                Kind::Broken => "failed",
            },
            "failure": is_broken.then(|| failure(page.map(|page| &page.content))),
            "fetch_redirect": all.first().filter(|_| kind == Kind::Redirect).map(PageUrl::to_string),
            "content_mime_type": says_type.then(|| essence(&reply)), "content_mime_detected": (says_type && is_page).then_some("text/html"),
            "bytes": if not_modified { 0 } else { size }, "page_bytes": if is_page { size } else { 0 },
            "no_index": is_page && page.is_some_and(|page| page.no_index), "no_follow": is_page && page.is_some_and(|page| page.no_follow),
            "change": change, "content": is_page.then(|| format!("{:016x}", content_of(&reply.body))),
            "etag": (is_page && host.etags).then(|| format!("\"{:016x}\"", content_of(&reply.body))), "last_modified": null,
            "internal_links": links.values().filter(|to| **to == host.name).count(),
            "external_links": links.values().filter(|to| **to != host.name).count(), "links_beyond_scope": beyond.len(),
            "detected_failures": failures.as_ref().map(|failures| failures.values().map(|(count, _)| count).sum::<u64>()),
            "evaluation_rules": failures.map(|_| RULE_SET),
        });
        let row = if let Value::Object(row) = row { row } else { Map::new() };
        let beyond = all.iter().map(PageUrl::host_str).filter(|host| !in_scope(host)).map(str::to_owned).collect();
        Visit { url: url.to_string(), row, links, beyond }
    };
    visits(host, outcome).map(visit).collect()
}

impl Expected {
    /// What all rows of its pages and links begin with.
    fn of_run(&self) -> Map<String, Value> {
        let head = json!({"host": self.host, "run": self.run, "run_state": self.state});
        if let Value::Object(head) = head { head } else { Map::new() }
    }

    /// Its rows in `export pages`, by URL.
    pub(crate) fn page_rows(&self) -> impl Iterator<Item = (String, Map<String, Value>)> + '_ {
        self.visits.iter().map(|visit| {
            let mut row = self.of_run();
            row.insert("tree".to_owned(), json!(self.tree));
            row.extend(visit.row.clone());
            (visit.url.clone(), row)
        })
    }

    /// Its rows in `export links --by page`, by both ends.
    pub(crate) fn page_links(&self) -> Vec<(String, Map<String, Value>)> {
        let mut rows = Vec::new();
        for visit in &self.visits {
            let inside = visit.links.iter().map(|(url, host)| (Some(url), host, true));
            for (to_url, to_host, in_scope) in inside.chain(visit.beyond.iter().map(|host| (None, host, false))) {
                let mut row = self.of_run();
                let more = json!({"url": visit.url, "to_url": to_url, "to_host": to_host, "in_scope": in_scope});
                row.extend(more.as_object().cloned().unwrap_or_default());
                rows.push((format!("{} to {}", visit.url, to_url.unwrap_or(to_host)), row));
            }
        }
        rows
    }

    /// Its rows in `export links`, by both hosts.
    pub(crate) fn host_links(&self) -> Vec<(String, Map<String, Value>)> {
        let mut targets: BTreeMap<&str, (u64, Option<u64>)> = BTreeMap::new();
        for visit in &self.visits {
            let mut of_page: BTreeMap<&str, u64> = BTreeMap::new();
            visit.links.values().for_each(|host| *of_page.entry(host).or_default() += 1);
            for (host, links) in of_page {
                let (pages, sum) = targets.entry(host).or_default();
                (*pages, *sum) = (*pages + 1, Some(sum.unwrap_or(0) + links));
            }
            visit.beyond.iter().for_each(|host| targets.entry(host).or_default().0 += 1);
        }
        let row = |(to_host, (pages, links)): (&str, (u64, Option<u64>))| {
            let mut row = self.of_run();
            let more = json!({"to_host": to_host, "pages": pages, "links": links, "in_scope": links.is_some()});
            row.extend(more.as_object().cloned().unwrap_or_default());
            (format!("{} to {to_host}", self.host), row)
        };
        targets.into_iter().map(row).collect()
    }
}
