//! Releases what limits held back: new hosts that a site may now lead to, and URLs for which the queue has space again.

use super::{link_filter::LinkFilter, site::Site};
use crate::context::Context;
use nearcrawl_model::journal::{Arrival, HostLimit, JournalEntry};

/// URLs that one row lets go, unless one host has more.
const IN_A_ROW: usize = 1_000;

/// The most URLs of one site that are queued at once when there is room again.
pub(super) const QUEUED_AT_ONCE: usize = 1_000;

/// How many URLs may be queued that were not for want of room: the queue is left a quarter for what is found now.
pub(super) fn room(cx: &Context, waiting: usize) -> usize {
    (cx.settings.max_waiting / 4).saturating_mul(3).saturating_sub(waiting)
}

/// Whether the limit for a site lets go on hosts that wait at this one.
pub(super) fn is_due(cx: &Context, site: &Site) -> bool {
    let per_site = cx.settings.new_hosts.per_site;
    site.held.counts().hosts_by_site_limit > 0 && (per_site == 0 || site.held.today(cx.now.wall) < per_site)
}

/// Whether links may lead to what waits: the operator may have changed the scope since.
pub(super) fn in_scope(cx: &Context, arrival: &Arrival) -> bool {
    let host = arrival.url.host();
    if arrival.place.is_some() { !cx.settings.scope.denies(&host) } else { cx.may_admit(&host) }
}

/// The rows that say on what limits let go at a site now, the hosts that were named first before the others; and which hosts wait because of
/// their domain from now on.
pub(super) fn rows(cx: &Context, links: &mut LinkFilter, site: &Site) -> Vec<JournalEntry> {
    let per_site = cx.settings.new_hosts.per_site;
    let mut left = if per_site == 0 { u64::MAX } else { per_site.saturating_sub(site.held.today(cx.now.wall)) };
    let (mut rows, mut outgoing, mut of_domain) = (Vec::new(), Vec::new(), Vec::new());
    for (print, by, urls) in site.held.in_line() {
        let urls: Vec<_> =
            urls.filter(|arrival| in_scope(cx, arrival)).map(|arrival| Arrival { run: site.key.run, ..arrival.clone() }).collect();
        let Some(host) = urls.first().map(|arrival| arrival.url.host()) else { continue };
        if !site.held.has_followed(print) {
            let external = urls.iter().any(|arrival| arrival.place.is_none());
            if external && left == 0 {
                continue;
            }
            if !links.admits_host(cx, &host, print) {
                of_domain.extend(urls.into_iter().filter(|_| by == HostLimit::Site));
                continue;
            }
            left -= u64::from(external);
        }
        outgoing.extend(urls);
        if outgoing.len() >= IN_A_ROW {
            rows.push(JournalEntry::Released { at: cx.now.wall, outgoing: std::mem::take(&mut outgoing) });
        }
    }
    rows.extend((!outgoing.is_empty()).then_some(JournalEntry::Released { at: cx.now.wall, outgoing }));
    rows.extend((!of_domain.is_empty()).then_some(JournalEntry::HeldBack { by: HostLimit::Domain, urls: of_domain }));
    rows
}
