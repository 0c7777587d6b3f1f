//! Requests a page that the run before knew, by its version; if it is the same still, its links are those of then.

use crate::io::{
    fetcher::Fetcher,
    store::Store,
    tasks::{self, TaskKind},
};
use nearcrawl_core::event::Event;
use nearcrawl_model::{fetch::FetchOrder, fingerprint::Fingerprint, ids::SiteNumber, time::Millis};

/// Asks, with what is known. If that cannot be read, or not whole, the page is asked for as if nothing were.
pub async fn revisit(
    fetcher: &Fetcher,
    store: &Store,
    (mut order, on_body): (FetchOrder, impl FnOnce(Millis)),
    site: SiteNumber,
    page: Fingerprint,
) -> Event {
    let address = order.address;
    let previous = match tasks::run(TaskKind::PreviousPage, store.previous_version(site, page)).await {
        Ok(Ok(previous)) => previous,
        Ok(Err(why)) => {
            tracing::debug!("{}: its version of the previous run cannot be read, so it is downloaded in full: {why}", order.url);
            None
        }
        Err(_) => None,
    };
    if let Some(known) = previous.as_ref().filter(|known| known.stands_in(fetcher.evaluates() || order.evaluate)) {
        order.validators = known.page.validators.clone();
    }
    let report = fetcher.fetch_telling(order, on_body).await;
    Event::Revisited { address, report: Box::new(report), previous: previous.map(Box::new) }
}
