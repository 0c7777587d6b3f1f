//! A site goes on where its former owner stood, or is ours no more.

use crate::{
    context::Context,
    crawl::{Crawl, site::Site, site::replay::replay},
    event::{Command, StoreCommand, WebCommand},
    routing::outbox::Item,
};
use nearcrawl_model::{
    journal::{Arrival, JournalEntry, JournalKey},
    subnet::Subnet,
    url::Host,
};

impl Crawl {
    /// A site begins where the journal ends; it is asked nothing before the seen set knows it. Returns what it named for others and may not
    /// have arrived; none if the journal tells nothing.
    pub(crate) fn resume(&mut self, cx: &mut Context, key: &JournalKey, entries: &[JournalEntry]) -> Option<Vec<Item>> {
        self.next_site += 1;
        let number = self.next_site;
        let Some(replayed) = replay(key.clone(), number, entries, &cx.settings.rules, &cx.secret) else {
            cx.refuse("journals that do not begin with an opening");
            return None;
        };
        let site = replayed.site;
        // Whatever the journal does not tell was asked after its last line: a whole rest from now is on the safe side.
        let rest = self.scheduler.politeness().rest_after(site.last_took(), site.slowest_crawl_delay()).max(site.last_rest());
        self.scheduler.rest(site.address, cx.now.moment.after(rest));
        self.awakening.insert(number, key.host.clone());
        self.by_subnet.entry(key.subnet).or_default().insert(key.host.clone());
        self.sites.insert(key.host.clone(), site);
        let (seen, children, cut) = (replayed.seen, replayed.children, replayed.cut);
        cx.commands.push_back(Command::Store(StoreCommand::LoadSeen { site: number, seen, children, cut }));
        let outgoing = replayed.outgoing.into_iter();
        Some(outgoing.map(|(sequence, arrival)| Item { arrival, origin: Some((key.clone(), sequence)) }).collect())
    }

    /// Takes out a site of a subnet.
    pub(crate) fn take_out(&mut self, subnet: &Subnet, host: &Host) -> Option<Site> {
        if let Some(hosts) = self.by_subnet.get_mut(subnet) {
            hosts.remove(host);
            if hosts.is_empty() {
                self.by_subnet.remove(subnet);
            }
        }
        self.sites.remove(host)
    }

    /// Nothing more is asked of a site that was taken out, and nothing of it is kept.
    pub(crate) fn close(&mut self, cx: &mut Context, site: &Site) {
        self.scheduler.drop_site(site.address, &site.key.host);
        self.superseded.remove(&site.key.host);
        self.awakening.remove(&site.number);
        cx.commands.push_back(Command::Web(WebCommand::CloseConnection(site.address)));
        cx.commands.push_back(Command::Store(StoreCommand::DropSeen(site.number)));
    }
}

/// With what a site began, if it is the home of its tree: it begins so again where it is now.
pub(crate) fn starting_urls(site: &Site) -> impl Iterator<Item = Item> {
    let starts = site.starts.iter().filter(|_| site.is_home());
    starts.map(|url| Item { arrival: Arrival { url: url.clone(), place: None, run: site.key.run }, origin: None })
}
