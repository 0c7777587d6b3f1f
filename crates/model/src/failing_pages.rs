//! Sample of the pages of a site that fail a rule, with rule and line, for readers who want to check for themselves.

use super::{evaluation::Rule, fingerprint::Fingerprint, url::PageUrl};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// How many failing pages of a site and rule are named.
pub const MAX_FAILING_PAGES: usize = 20;

/// A page that fails a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailingPage {
    /// Its URL.
    #[schema(value_type = String)]
    pub url: PageUrl,
    /// The line in which the first element begins that fails the rule, from 1.
    pub line: u32,
}

/// A sample of the pages of a site that fail a rule, for each rule: of all that fail it the [`MAX_FAILING_PAGES`] whose URLs have the lowest
/// fingerprints. So each has the same chance, no site can choose, and whoever reads its journal comes to the same sample. Copies share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailingPages(Arc<BTreeMap<Rule, Vec<FailingPage>>>);

impl FailingPages {
    /// The sample of each rule, in the order of the fingerprints.
    pub fn by_rule(&self) -> &BTreeMap<Rule, Vec<FailingPage>> {
        &self.0
    }

    /// Takes in that a page fails a rule, in this line first.
    pub fn note(&mut self, rule: Rule, url: &PageUrl, line: u32, key: impl Fn(&PageUrl) -> Fingerprint) {
        let pages = self.0.get(&rule).map_or(&[][..], Vec::as_slice);
        let Err(place) = pages.binary_search_by_key(&key(url), |page| key(&page.url)) else { return };
        if place < MAX_FAILING_PAGES {
            let pages = Arc::make_mut(&mut self.0).entry(rule).or_default();
            pages.insert(place, FailingPage { url: url.clone(), line });
            pages.truncate(MAX_FAILING_PAGES);
        }
    }
}

impl Serialize for FailingPages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FailingPages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(FailingPages(Arc::new(BTreeMap::deserialize(deserializer)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::FingerprintKey;

    #[test]
    fn the_sample_is_the_same_in_whatever_order_pages_come() {
        let key = FingerprintKey([3; 16]);
        let of = |url: &PageUrl| key.of(url.as_str());
        let urls: Vec<PageUrl> = (0..100).map(|page| PageUrl::parse(&format!("http://a.ke/{page}")).unwrap()).collect();
        let (mut there, mut back) = (FailingPages::default(), FailingPages::default());
        urls.iter().for_each(|url| there.note(Rule::ImageName, url, 7, of));
        urls.iter().rev().chain(&urls).for_each(|url| back.note(Rule::ImageName, url, 7, of));
        assert_eq!(there, back, "also if a page comes twice");
        let mut lowest = urls.clone();
        lowest.sort_by_key(of);
        let sample: Vec<PageUrl> = there.by_rule()[&Rule::ImageName].iter().map(|page| page.url.clone()).collect();
        assert_eq!(sample, lowest[..MAX_FAILING_PAGES]);
        there.note(Rule::LinkName, &urls[0], 1, of);
        let json = serde_json::to_value(&there).unwrap();
        assert_eq!(json["c487ae"], serde_json::json!([{ "url": "http://a.ke/0", "line": 1 }]));
        assert_eq!(serde_json::from_value::<FailingPages>(json).unwrap(), there);
    }
}
