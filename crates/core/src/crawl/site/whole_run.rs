//! Record of a site's last whole run, which answers queries while the site is visited again, until the present run is whole.

use nearcrawl_model::{
    facts::ServerFacts,
    failing_pages::FailingPages,
    journal::{JournalEntry, JournalKey},
    record::{HeldBack, RunUnderWay, ServerRecord},
    sketch::Sketch,
};
use std::net::IpAddr;

/// What the pages of a run named elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedHosts {
    /// External hosts.
    pub(crate) hosts: Sketch,
    /// Their registrable domains.
    pub(crate) domains: Sketch,
}

/// The record of a host's last whole run, while the present one is not whole, and what that run named, if it is known.
#[derive(Debug, Default)]
pub(super) struct WholeRun(Option<Box<ServerRecord>>, Option<Box<NamedHosts>>);

impl WholeRun {
    /// The row for the journal of the next run that says what `present`, which is over, came to; none if it asked for nothing: then what is
    /// known of the run before it is passed on.
    pub(super) fn row(&self, present: &ServerRecord) -> Option<JournalEntry> {
        let last = if present.known > 0 { Some(present) } else { self.0.as_deref() };
        let row = |record: &ServerRecord| Some(JournalEntry::WholeRun { record: record.to_json() }).filter(JournalEntry::is_plausible);
        // Long URLs can make a sample too long for a row.
        row(last?).or_else(|| row(&ServerRecord { failing_pages: FailingPages::default(), ..last?.clone() }))
    }

    /// What is on record of the server: the last whole run, or the first one as far as it is.
    pub(super) fn published(&self, present: &ServerRecord) -> ServerRecord {
        let Some(whole) = &self.0 else { return present.clone() };
        let ServerRecord { run, state, pages, waiting, held_back: now, .. } = *present;
        let mut record = ServerRecord { next_run: Some(RunUnderWay { run, state, pages, waiting }), ..(**whole).clone() };
        // Hosts that it held back wait in the present run, and may have gone on since.
        let HeldBack { hosts_by_site_limit, hosts_by_domain_limit, host_urls, .. } = now;
        record.held_back = HeldBack { hosts_by_site_limit, hosts_by_domain_limit, host_urls, ..record.held_back };
        if record.waiting == 0 {
            record.state = record.state_when_over();
        }
        record
    }

    /// What is known of the server besides its pages, by the last whole run.
    pub(super) fn facts(&self) -> Option<&ServerFacts> {
        self.0.as_ref()?.facts.as_deref()
    }

    /// Whether an earlier run answers, and what it named, if that is known.
    pub(super) fn named(&self) -> Option<Option<&NamedHosts>> {
        self.0.as_ref().map(|_| self.1.as_deref())
    }

    /// The journal of this run says what the last whole one named.
    pub(super) fn remember_named(&mut self, hosts: &Sketch, domains: &Sketch) {
        if self.0.is_some() {
            self.1 = Some(Box::new(NamedHosts { hosts: hosts.clone(), domains: domains.clone() }));
        }
    }

    /// The record of the last whole run.
    pub(super) fn last(&self) -> Option<&ServerRecord> {
        self.0.as_deref()
    }

    /// The present run answers from now on.
    pub(super) fn ends(&mut self) {
        *self = WholeRun::default();
    }

    /// The journal of this run says what an earlier run of the host came to.
    pub(super) fn remember(&mut self, record: &[u8], key: &JournalKey, address: IpAddr) {
        let record = ServerRecord::from_json(record);
        let record = record.filter(|record| record.host == key.host && record.run < key.run);
        self.0 = record.map(|record| Box::new(ServerRecord { address: Some(address), ..record }));
    }

    /// The host has this address now.
    pub(super) fn moved(&mut self, address: IpAddr) {
        self.0.iter_mut().for_each(|whole| whole.address = Some(address));
    }

    /// Once the present run is whole it answers. In a tree of several hosts nothing waits also while `others_lead` here that have not yet:
    /// there it is whole when it has as many pages as the one before.
    pub(super) fn replace(&mut self, present: &ServerRecord, waits: bool, others_lead: bool) {
        let Some(whole) = &self.0 else { return };
        if present.known > 0 && !waits && (!others_lead || present.pages >= whole.pages) {
            self.ends();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::replay;
    use super::*;
    use crate::crawl::site::{Site, SiteRules, yields::Price};
    use nearcrawl_model::{fingerprint::FingerprintKey, ids::SiteNumber, journal::SkipReason, time::WallTime};

    #[test]
    fn a_successor_amid_a_run_knows_the_last_whole_one_by_the_journal_and_no_other_host_s() {
        let rules = SiteRules { depth: 3, price: Price::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() };
        let secret = FingerprintKey([7; 16]);
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: "a.ke".parse().unwrap(), run: 1 };
        let (address, tree, at) = ("9.0.0.1".parse().unwrap(), key.host.clone(), WallTime(5));
        let mut first = Site::open(key.clone(), address, tree.clone(), SiteNumber(1), at);
        (first.record.known, first.record.pages) = (9, 8);
        let url = nearcrawl_model::url::PageUrl::parse("http://a.ke/").unwrap();
        let row = first.whole_run().unwrap();
        let mut rows =
            vec![JournalEntry::Opened { address, tree, at }, row.clone(), JournalEntry::Admitted { urls: vec![(url.clone(), 0, 0)] }];
        let read = |rows: &[JournalEntry], host: &str| {
            let key = JournalKey { run: 2, host: host.parse().unwrap(), ..key.clone() };
            replay(key, SiteNumber(2), rows, &rules, &secret).unwrap().site
        };
        for length in [2, 3] {
            let published = read(&rows[..length], "a.ke").published();
            assert_eq!((published.run, published.pages, published.next_run.unwrap().run), (1, 8, 2));
        }
        assert_eq!(read(&rows[..2], "a.ke").whole_run(), Some(row), "a run that asked for nothing passes it on");
        assert_eq!(read(&rows, "b.ke").published().run, 2);
        rows.push(JournalEntry::Skipped { url, reason: SkipReason::Robots });
        let published = read(&rows, "a.ke").published();
        assert_eq!((published.run, published.pages, published.next_run), (2, 0, None), "it is whole, and has lost its pages");
    }

    #[test]
    fn a_successor_knows_what_the_last_whole_run_named_until_the_next_one_is_whole() {
        let rules = SiteRules { depth: 3, price: Price::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() };
        let secret = FingerprintKey([7; 16]);
        let (host, subnet) = ("a.ke".parse::<nearcrawl_model::url::Host>().unwrap(), "9.0.0.0/24".parse().unwrap());
        let key = |run: u32| JournalKey { subnet, host: host.clone(), run };
        let opened = JournalEntry::Opened { address: "9.0.0.1".parse().unwrap(), tree: host.clone(), at: WallTime(5) };
        let read = |run, rows: &[JournalEntry]| replay(key(run), SiteNumber(1), rows, &rules, &secret).unwrap().site;
        let counts = |site: &Site| site.named_hosts().map(|named| (named.hosts.count(), named.domains.count()));
        let mut first = read(1, std::slice::from_ref(&opened));
        assert_eq!(counts(&first), Some((0, 0)));
        first.record.known = 1;
        for named in ["x.ke", "www.x.ke", "y.ke", "x.ke"] {
            first.count_external(&named.parse().unwrap(), 0, &secret);
        }
        assert_eq!((counts(&first), first.record.external_hosts, first.record.external_domains), (Some((3, 2)), 3, 2));
        let mut rows = vec![opened.clone(), first.whole_run().unwrap(), first.named_row().unwrap()];
        assert_eq!(counts(&read(2, &rows)), Some((3, 2)));
        assert_eq!(read(2, &rows).named_row(), first.named_row(), "a run that asked for nothing passes it on");
        assert_eq!(counts(&read(2, &rows[..2])), None, "an earlier version did not write it down");
        let url = nearcrawl_model::url::PageUrl::parse("http://a.ke/").unwrap();
        rows.push(JournalEntry::Admitted { urls: vec![(url.clone(), 0, 0)] });
        assert_eq!(counts(&read(2, &rows)), Some((3, 2)), "the second run is under way");
        rows.push(JournalEntry::Skipped { url, reason: SkipReason::Robots });
        assert_eq!(counts(&read(2, &rows)), Some((0, 0)), "it is whole, and named nothing");
    }

    #[test]
    fn whoever_reads_the_journal_of_the_third_run_knows_what_the_first_and_the_second_came_to() {
        let rules = SiteRules { depth: 3, price: Price::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() };
        let secret = FingerprintKey([7; 16]);
        let (host, subnet) = ("a.ke".parse::<nearcrawl_model::url::Host>().unwrap(), "9.0.0.0/24".parse().unwrap());
        let key = |run: u32| JournalKey { subnet, host: host.clone(), run };
        let address = "9.0.0.1".parse().unwrap();
        let opened = JournalEntry::Opened { address, tree: host.clone(), at: WallTime(5) };
        let read = |run, rows: &[JournalEntry]| replay(key(run), SiteNumber(1), rows, &rules, &secret).unwrap().site;
        let runs = |site: &Site| site.runs().0.iter().map(|run| (run.run, run.pages)).collect::<Vec<_>>();
        let url = nearcrawl_model::url::PageUrl::parse("http://a.ke/").unwrap();
        let mut site = read(1, std::slice::from_ref(&opened));
        assert_eq!((runs(&site), site.history_row()), (Vec::new(), None), "nothing was asked for yet");
        for run in 2..=3 {
            (site.record.known, site.record.pages) = (9, u64::from(10 * run));
            let rows = [Some(opened.clone()), site.whole_run(), site.history_row()].map(Option::unwrap);
            let rows = rows.map(|row| postcard::from_bytes(&postcard::to_stdvec(&row).unwrap()).unwrap());
            site = read(run, &rows);
        }
        assert_eq!(runs(&site), [(1, 20), (2, 30)]);
        let history = site.history_row();
        assert!(history.as_ref().is_some_and(JournalEntry::is_plausible));
        let passed_on = read(4, &[opened.clone(), history.unwrap()]);
        assert_eq!(runs(&passed_on), [(1, 20), (2, 30)], "a run that asked for nothing passes them on, and is none of them");
        site.apply(&JournalEntry::Admitted { urls: vec![(url.clone(), 0, 0)] }, &rules, &secret);
        assert_eq!(runs(&site).len(), 2, "the third is under way");
        site.apply(&JournalEntry::Skipped { url, reason: SkipReason::Robots }, &rules, &secret);
        assert_eq!(runs(&site), [(1, 20), (2, 30), (3, 0)], "it is whole");
        // Journals of earlier versions have the last whole run only.
        let mut old = read(1, std::slice::from_ref(&opened));
        (old.record.known, old.record.pages) = (9, 8);
        assert_eq!(runs(&read(2, &[opened, old.whole_run().unwrap()])), [(1, 8)]);
    }
}
