//! Results of requests for robots.txt.
//!
//! A redirect is followed to other hosts too, but only where this access point may ask.

use super::{CrawlReads, link_filter::LinkFilter, site::Site, sites::Sites};
use crate::{
    context::Context,
    replication::Replication,
    routing::{locator::Lookup, outbox::Item},
    signal::Signal,
};
use nearcrawl_model::{
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose},
    journal::Arrival,
    time::Millis,
    url::{Host, Origin, PageUrl},
};
use std::net::IpAddr;

/// How soon to look again whether it is known where a robots.txt that moved lies.
pub(super) const SEARCH_AGAIN: Millis = 1_000;

/// Whom an order goes to.
#[derive(Debug)]
pub(super) enum Asked {
    /// The server at its address.
    There(FetchOrder),
    /// Not known yet, or not settled yet whose server it is.
    Later,
    /// None: the robots.txt cannot be had.
    Never,
}

/// Where a robots.txt that moved lies.
enum Found {
    At(IpAddr),
    /// That is not known yet, or not whose server it is.
    NotYet,
    /// Where this access point may not ask.
    Elsewhere,
}

/// Where an order goes to. All go to the site's own address, but a robots.txt that moved to another host lies where that host
/// lives: it is asked for if we own the subnet there, so that a server is never asked by two members at once. `origin` is the one that
/// waits for its robots.txt, wherever that has moved.
pub(super) fn place_of(
    cx: &mut Context,
    sites: &mut Sites,
    links: &mut LinkFilter,
    replication: &Replication,
    others: CrawlReads<'_>,
    (host, origin): (&Host, &Origin),
    order: FetchOrder,
) -> Asked {
    let target = order.url.host();
    if order.purpose == FetchPurpose::Page || target == *host {
        return Asked::There(order);
    }
    let Some(site) = sites.get_mut(host) else { return Asked::Later };
    let in_scope = cx.may_admit(&target) || (target.is_within(&site.tree) && !cx.settings.scope.denies(&target));
    let found = match others.routing.locator().lookup(&target, cx.now.moment) {
        _ if !in_scope => Found::Elsewhere,
        Lookup::At(located) if located.address == site.address => Found::At(located.address),
        Lookup::At(located) => may_ask_at(cx, links, replication, others, located.address, (&order.url, site.key.run)),
        Lookup::Nowhere(_) => Found::Elsewhere,
        Lookup::Later(..) | Lookup::Unknown => {
            cx.signal(Signal::Locate(target.clone()));
            Found::NotYet
        }
    };
    match found {
        // A host that nobody may ask: an opt-out or a denied address.
        Found::At(address) if cx.denies(&target, Some(address)) => Asked::Never,
        Found::At(address) => Asked::There(FetchOrder { address, ..order }),
        Found::NotYet if site.robots_searched(origin) => Asked::Later,
        Found::NotYet | Found::Elsewhere => Asked::Never,
    }
}

/// The address if it is ours to ask. If it is not, the host is named to its owner, as a link to it would be: what cannot be crawled
/// here for want of its robots.txt is not lost there.
fn may_ask_at(
    cx: &mut Context,
    links: &mut LinkFilter,
    replication: &Replication,
    others: CrawlReads<'_>,
    address: IpAddr,
    (url, run): (&PageUrl, u32),
) -> Found {
    let claim = others.ownership.register().around(address).filter(|claim| !claim.released);
    if let Some(claim) = claim.filter(|claim| claim.owner == cx.me) {
        let ready = !others.ownership.is_watched(&claim.subnet) && !replication.is_loading(&claim.subnet);
        return if ready { Found::At(address) } else { Found::NotYet };
    }
    let host = url.host();
    let known = others.routing.first_for(&host).is_some();
    if !known && links.admits_host(cx, &host, cx.secret.of(host.as_str())) {
        cx.signal(Signal::Reroute(vec![Item { arrival: Arrival { url: url.root(), place: None, run }, origin: None }]));
    }
    if claim.is_some() { Found::Elsewhere } else { Found::NotYet }
}

/// What a site is told of its robots.txt; none if it moved, and is asked for there.
pub(super) fn answer(site: &mut Site, origin: &Origin, outcome: FetchOutcome) -> Option<Result<(u16, Vec<u8>), FetchError>> {
    Some(match outcome {
        FetchOutcome::Redirect { to, .. } if site.robots_moved(origin, &to.url) => return None,
        // It leads on and on, or in circles: as if there were none (RFC 9309 §2.3.1.2).
        FetchOutcome::Redirect { .. } => Ok((404, Vec::new())),
        FetchOutcome::Robots { status, body } => Ok((status, body.to_vec())),
        FetchOutcome::Page { status, .. } | FetchOutcome::NotHtml { status, .. } | FetchOutcome::Status(status) => Ok((status, Vec::new())),
        FetchOutcome::NotModified { .. } => Ok((304, Vec::new())),
        FetchOutcome::Failed(failure) => Err(failure),
    })
}

/// Whether robots.txt could not be had for the moment.
pub(super) fn is_failure(answer: &Result<(u16, Vec<u8>), FetchError>) -> bool {
    answer.as_ref().map_or(true, |(status, _)| *status >= 500 || *status == 429)
}
