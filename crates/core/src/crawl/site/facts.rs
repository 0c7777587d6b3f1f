//! Selects the facts of a server that are written down: those that are new in this run.

use nearcrawl_model::{
    facts::{Fact, FrontPage, ServerFacts, Vantage},
    fetch::{FetchOutcome, FetchReport},
};

/// What else has to be known of facts that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learning {
    /// Whether text and data mining was reserved, or not, by a header: that counts before what a page says.
    tdm_by_header: bool,
    /// Whether the distance was measured by who owned the server before.
    measured_before: bool,
}

impl Learning {
    /// What an answer says of the server that is not known yet. `vantage`: where this access point is; `front`: the page may be its front page.
    pub(super) fn news(self, known: &ServerFacts, report: &FetchReport, vantage: &Vantage, front: bool) -> Vec<Fact> {
        let distance = report.connect_us.map(|rtt_us| Fact::Distance { rtt_us, vantage: vantage.clone() });
        let moves = moves_to_https(report).then_some(Fact::RedirectsToHttps);
        let front = match &report.outcome {
            FetchOutcome::Page { page, .. } if front => page.front.as_deref().cloned().map(Fact::FrontPage),
            _ => None,
        };
        let told = distance.into_iter().chain(report.facts.iter().cloned()).chain(moves).chain(front);
        told.filter(|fact| self.lacks(known, fact) && fact.is_plausible()).collect()
    }

    /// Whether what is measured says something of the distance that is known: it is this owner's.
    pub(super) fn measures(self, known: &ServerFacts) -> bool {
        known.rtt_us.is_some() && !self.measured_before
    }

    /// Another owner goes on: what it measures counts instead.
    pub(super) fn changes_owner(&mut self) {
        self.measured_before = true;
    }

    /// Whether this is worth writing down: it is not known yet, or a distance that is much shorter than known or measured by another owner.
    fn lacks(self, known: &ServerFacts, fact: &Fact) -> bool {
        match fact {
            Fact::Distance { rtt_us, .. } => self.measured_before || known.rtt_us.is_none_or(|known| *rtt_us < known / 2),
            Fact::Http(_) => known.http_version.is_none(),
            Fact::AltSvc(offers) => known.alt_svc.is_empty() && !offers.is_empty(),
            Fact::Tls(_) => known.tls_version.is_none(),
            Fact::Certificate(_) => known.certificate.is_none(),
            Fact::Hsts(_) => known.hsts_ms.is_none(),
            Fact::RedirectsToHttps => !known.redirects_to_https,
            Fact::Guard(_) => known.guard.is_none(),
            Fact::ContentUsage(_) => known.content_usage.is_none(),
            Fact::TdmReservation(_) => !self.tdm_by_header,
            Fact::FrontPage(page) => self.front_page(known) != *page,
        }
    }

    /// Takes in a fact.
    pub(super) fn learn(&mut self, known: &mut ServerFacts, fact: &Fact) {
        match fact {
            Fact::Distance { rtt_us, vantage } => {
                if self.measured_before {
                    known.first_byte_us = None;
                }
                self.measured_before = false;
                (known.rtt_us, known.vantage) = (Some(*rtt_us), Some(vantage.clone()));
            }
            Fact::Http(version) => known.http_version = Some(*version),
            Fact::AltSvc(offers) => known.alt_svc.clone_from(offers),
            Fact::Tls(version) => known.tls_version = Some(*version),
            Fact::Certificate(certificate) => known.certificate = Some(certificate.clone()),
            Fact::Hsts(seconds) => known.hsts_ms = Some(seconds.saturating_mul(1_000)),
            Fact::RedirectsToHttps => known.redirects_to_https = true,
            Fact::Guard(guard) => known.guard = Some(*guard),
            Fact::ContentUsage(usage) => known.content_usage = Some(usage.clone()),
            Fact::TdmReservation(reserved) => {
                self.tdm_by_header = true;
                known.tdm_reserved = Some(*reserved);
            }
            Fact::FrontPage(page) => self.read_front_page(known, page),
        }
    }

    /// What is known of the front page.
    pub(super) fn front_page(self, known: &ServerFacts) -> FrontPage {
        let ServerFacts { language, script, charset, generator, title, tdm_reserved, .. } = known.clone();
        FrontPage { language, script, charset, generator, title, tdm_reserved: tdm_reserved.filter(|_| !self.tdm_by_header) }
    }

    fn read_front_page(self, known: &mut ServerFacts, page: &FrontPage) {
        let FrontPage { language, script, charset, generator, title, tdm_reserved } = page.clone();
        (known.language, known.script, known.charset, known.generator, known.title) = (language, script, charset, generator, title);
        if !self.tdm_by_header {
            known.tdm_reserved = tdm_reserved;
        }
    }
}

/// Whether an http URL redirects to https at the same host, with or without `www.`.
fn moves_to_https(report: &FetchReport) -> bool {
    let FetchOutcome::Redirect { to, .. } = &report.outcome else { return false };
    !report.url.is_secure() && to.url.is_secure() && to.url.host().without_www() == report.url.host().without_www()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::site::Site;
    use nearcrawl_model::{
        facts::{Certificate, Guard, HttpVersion, TlsVersion},
        time::WallTime,
    };

    #[test]
    fn each_fact_is_worth_a_row_once_a_run() {
        let facts = [
            Fact::Http(HttpVersion::Http11),
            Fact::AltSvc(vec!["h3".to_owned()]),
            Fact::Tls(TlsVersion::Tls13),
            Fact::Certificate(Certificate { issuer: "X".to_owned(), not_before_at: WallTime(1), not_after_at: WallTime(2) }),
            Fact::Hsts(1),
            Fact::RedirectsToHttps,
            Fact::Guard(Guard::Anubis),
            Fact::ContentUsage("train-ai=n".to_owned()),
            Fact::TdmReservation(true),
            Fact::FrontPage(FrontPage { title: Some("T".to_owned()), ..FrontPage::default() }),
            Fact::Distance { rtt_us: 900, vantage: Vantage::default() },
        ];
        let (mut learning, mut known) = (Learning::default(), ServerFacts::default());
        for fact in &facts {
            assert!(learning.lacks(&known, fact), "{fact:?}");
            learning.learn(&mut known, fact);
        }
        assert!(facts.iter().all(|fact| !learning.lacks(&known, fact)));
        learning.learn(&mut known, &Fact::FrontPage(FrontPage { tdm_reserved: Some(false), ..FrontPage::default() }));
        assert_eq!((known.tdm_reserved, known.title), (Some(true), None), "the header comes before the page, and a title may be gone");
    }

    #[test]
    fn a_distance_counts_anew_with_another_owner_and_when_it_is_much_shorter() {
        let far =
            |rtt_us, country: &str| Fact::Distance { rtt_us, vantage: Vantage { country: Some(country.to_owned()), asn: Some(64_512) } };
        let key = nearcrawl_model::journal::JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: "a.ke".parse().unwrap(), run: 1 };
        let tree = key.host.clone();
        let mut site = Site::open(key, "9.0.0.1".parse().unwrap(), tree, nearcrawl_model::ids::SiteNumber(1), WallTime(0));
        site.answered_after(5);
        site.learn(&[far(9_000, "KE")]);
        site.answered_after(30_000);
        site.answered_after(20_000);
        let known = |site: &Site| site.record.facts.as_deref().cloned().unwrap();
        let lacks = |site: &Site, fact: &Fact| site.learning.lacks(&known(site), fact);
        assert!(!lacks(&site, &far(5_000, "KE")) && lacks(&site, &far(4_000, "KE")));
        assert_eq!((known(&site).rtt_us, known(&site).first_byte_us), (Some(9_000), Some(20_000)));
        site.learning.changes_owner();
        site.answered_after(10);
        assert_eq!(known(&site).first_byte_us, Some(20_000), "it is not measured from there");
        assert!(lacks(&site, &far(50_000, "TZ")));
        site.learn(&[far(50_000, "TZ")]);
        site.answered_after(70_000);
        assert_eq!((known(&site).rtt_us, known(&site).first_byte_us), (Some(50_000), Some(70_000)));
        assert_eq!(known(&site).vantage.unwrap().country.as_deref(), Some("TZ"));
    }

    #[test]
    fn the_next_run_begins_with_the_front_page_of_the_last_one_and_learns_the_rest_anew() {
        use crate::crawl::site::{SiteRules, replay::replay, yields::Price};
        use nearcrawl_model::{fingerprint::FingerprintKey, ids::SiteNumber, journal::JournalEntry};
        let rules = SiteRules { depth: 3, price: Price::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() };
        let key = nearcrawl_model::journal::JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: "a.ke".parse().unwrap(), run: 2 };
        let (address, tree, secret) = ("9.0.0.1".parse().unwrap(), key.host.clone(), FingerprintKey([7; 16]));
        let first = nearcrawl_model::journal::JournalKey { run: 1, ..key.clone() };
        let mut last = Site::open(first, address, tree.clone(), SiteNumber(1), WallTime(5));
        last.record.known = 3;
        let page = FrontPage { title: Some("Museum".to_owned()), language: Some("sw".to_owned()), ..FrontPage::default() };
        last.learn(&[Fact::Hsts(300), Fact::FrontPage(page.clone())]);
        let opened = JournalEntry::Opened { address, tree, at: WallTime(6) };
        let rows = [opened, last.whole_run().unwrap()];
        let site = replay(key, SiteNumber(2), &rows, &rules, &secret).unwrap().site;
        assert_eq!(site.published().facts, last.record.facts);
        let known = site.record.facts.as_deref().cloned().unwrap();
        assert_eq!((known.title.as_deref(), known.language.as_deref(), known.hsts_ms), (Some("Museum"), Some("sw"), None));
        assert!(!site.learning.lacks(&known, &Fact::FrontPage(page)) && site.learning.lacks(&known, &Fact::Hsts(300)));
    }
}
