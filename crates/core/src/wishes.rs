//! The rules by which a host is crawled.
//!
//! They are those of this access point's configuration, and those of the living surveys that want it: all members go by the same ones,
//! whoever owns what.
//!
//! Of several wishes the deepest and politest count: the deepest level, the longest of each rest, the shortest interval between two runs,
//! and evaluation if one of them wants it. The configuration's own wish counts where its scope, or a starting point that no survey names,
//! leads; its rests count always, and what it denies is never wanted.

use crate::{
    crawl::{politeness::Politeness, site::SiteRules},
    settings::Settings,
};
use nearcrawl_model::{
    survey::{Place, SignedSurvey, Survey, SurveyEntry, SurveyHead, SurveyMark, SurveyState},
    time::{Millis, WallTime},
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A survey that is kept here, with its list by trees.
#[derive(Debug)]
pub(crate) struct KeptSurvey {
    pub(crate) survey: Survey,
    pub(crate) signed: SignedSurvey,
    pub(crate) head: SurveyHead,
    /// Where it is stored.
    pub(crate) slot: u16,
    /// Places in its list, by the tree that a URL starts.
    trees: BTreeMap<Host, Vec<u32>>,
}

impl KeptSurvey {
    /// A survey, with the signed bytes that it was decoded from.
    pub(crate) fn new(survey: Survey, signed: SignedSurvey, slot: u16) -> KeptSurvey {
        let mut trees: BTreeMap<Host, Vec<u32>> = BTreeMap::new();
        for (place, entry) in (0..).zip(&survey.plan.entries) {
            trees.entry(entry.url.host().without_www()).or_default().push(place);
        }
        KeptSurvey { head: signed.head(&survey), survey, signed, slot, trees }
    }

    /// What its list says of a host, or of the tree that the host is in.
    fn entries<'a>(&'a self, host: &Host, tree: &Host) -> impl Iterator<Item = &'a SurveyEntry> + use<'a> {
        let of_tree = self.trees.get(tree).or_else(|| self.trees.get(&host.without_www()));
        of_tree.into_iter().flatten().filter_map(|place| self.survey.plan.entries.get(*place as usize))
    }

    /// Whether a host there, in this tree, belongs to it.
    pub(crate) fn has(&self, host: &Host, tree: &Host, place: &Place<'_>) -> bool {
        let scope = &self.survey.plan.scope;
        self.entries(host, tree).next().is_some() || scope.names(host) || scope.covers(place)
    }

    /// Whether its list names this URL, or one whose root it is.
    pub(crate) fn lists(&self, url: &PageUrl) -> bool {
        let host = url.host();
        self.entries(&host, &host.without_www()).any(|entry| entry.url == *url || entry.url.root() == *url)
    }

    /// What it says of a host of its own.
    pub(crate) fn mark(&self, host: &Host, tree: &Host) -> SurveyMark {
        let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, value) in self.entries(host, tree).flat_map(|entry| &entry.labels) {
            labels.entry(name.clone()).or_default().insert(value.clone());
        }
        SurveyMark { name: self.survey.plan.name.clone(), creator: self.survey.creator, labels }
    }
}

/// What the surveys that want a host wish for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteWishes {
    /// The deepest level; none if the configuration's counts.
    pub(crate) depth: Option<u8>,
    /// The least rest between two requests.
    pub(crate) min_delay: Millis,
    /// How many times as long as its answer took a server rests.
    pub(crate) delay_factor: u64,
    /// Whether pages are evaluated.
    pub(crate) evaluation: bool,
    /// The time between the beginnings of two runs; none if the configuration's counts.
    pub(crate) interval: Option<Millis>,
    /// Whether nobody wants it any more: its surveys are paused or have ended.
    pub(crate) is_unwanted: bool,
}

impl SiteWishes {
    /// The deepest level of a run that begins now.
    pub(crate) fn depth(&self, rules: &SiteRules) -> u8 {
        self.depth.unwrap_or(rules.depth)
    }

    /// When a tree is visited again after its run began.
    pub(crate) fn interval(&self, settings: &Settings) -> Millis {
        self.interval.unwrap_or(settings.revisit)
    }

    /// How long an address rests after an answer that took `took`: at least as long as the configuration says.
    pub(crate) fn rest_after(&self, politeness: &Politeness, took: Millis, crawl_delay: Option<Millis>) -> Millis {
        politeness.rest_after(took, crawl_delay).max(self.min_delay).max(took.saturating_mul(self.delay_factor))
    }
}

/// The surveys that are kept here: those that live, and those that wish for nothing.
#[derive(Debug, Default)]
pub(crate) struct InEffect {
    pub(crate) living: Vec<Arc<KeptSurvey>>,
    pub(crate) resting: Vec<Arc<KeptSurvey>>,
}

impl InEffect {
    /// At this time.
    pub(crate) fn at<'a>(now: WallTime, kept: impl Iterator<Item = &'a Arc<KeptSurvey>>) -> InEffect {
        let (living, resting) = kept.cloned().partition(|kept| kept.survey.state_at(now) == SurveyState::Running);
        InEffect { living, resting }
    }

    /// Those that live.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Arc<KeptSurvey>> {
        self.living.iter()
    }

    /// Those that a host belongs to, living or not.
    pub(crate) fn having<'a>(&'a self, host: &Host, tree: &Host, place: &Place<'_>) -> Vec<&'a Arc<KeptSurvey>> {
        self.living.iter().chain(&self.resting).filter(|kept| kept.has(host, tree, place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{context::Context, crawl::scope::Scope};
    use nearcrawl_model::{
        access_point::AccessPoint,
        survey::{SurveyPlan, SurveyScope, Wishes},
    };

    fn kept(name: &str, state: SurveyState, wishes: Wishes, urls: &[&str], tlds: &[&str]) -> Arc<KeptSurvey> {
        labelled(name, state, wishes, urls, tlds, "university")
    }

    fn labelled(name: &str, state: SurveyState, wishes: Wishes, urls: &[&str], tlds: &[&str], sector: &str) -> Arc<KeptSurvey> {
        let key = ed25519_dalek::SigningKey::from_bytes(&[3; 32]);
        let entry = |url: &&str| SurveyEntry { url: PageUrl::parse(url).unwrap(), labels: vec![("sector".into(), sector.into())] };
        let plan = SurveyPlan {
            name: name.to_owned(),
            wishes,
            scope: SurveyScope { tlds: tlds.iter().map(|tld| (*tld).to_owned()).collect(), ..SurveyScope::default() },
            entries: urls.iter().map(entry).collect(),
            ..SurveyPlan::default()
        };
        let creator = AccessPoint(key.verifying_key().to_bytes());
        let survey = Survey { creator, revision: 1, state, created_at: WallTime(0), changed_at: WallTime(0), plan };
        let signed = SignedSurvey::sign(&survey, &key).unwrap();
        Arc::new(KeptSurvey::new(survey, signed, 0))
    }

    fn context(surveys: &[Arc<KeptSurvey>]) -> Context {
        let mut cx = Context::of_test(1);
        cx.settings.scope = Scope { tlds: ["tz".to_owned()].into(), denied: ["bad.ke".parse().unwrap()].into(), ..Scope::default() };
        cx.wishes = InEffect::at(cx.now.wall, surveys.iter());
        cx
    }

    fn wishes(cx: &Context, host: &str, starts: &[&str]) -> SiteWishes {
        let (host, starts): (Host, Vec<_>) = (host.parse().unwrap(), starts.iter().map(|url| PageUrl::parse(url).unwrap()).collect());
        cx.wishes_for(&host, &host.without_www(), "9.0.0.1".parse().unwrap(), starts.iter())
    }

    #[test]
    fn of_several_wishes_the_deepest_and_politest_count() {
        let wish = |depth, min_delay, interval| Wishes {
            depth: Some(depth),
            min_delay_ms: Some(min_delay),
            interval_ms: Some(interval),
            ..Wishes::default()
        };
        let deep = kept("deep", SurveyState::Running, wish(7, 2_000, 9_000_000), &["https://www.a.ke/"], &[]);
        let often = Wishes { evaluation: true, delay_factor: Some(30), ..wish(1, 500, 4_000_000) };
        let often = kept("often", SurveyState::Running, often, &["https://a.ke/about"], &[]);
        let paused = kept("paused", SurveyState::Paused, wish(20, 60_000, 3_600_000), &["https://a.ke/"], &[]);
        let cx = context(&[deep, often, paused]);
        let both = wishes(&cx, "a.ke", &["https://www.a.ke/", "https://a.ke/about"]);
        let rest = |took| both.rest_after(&cx.settings.politeness, took, None);
        assert_eq!((both.depth, both.evaluation, both.interval, both.is_unwanted), (Some(7), true, Some(4_000_000), false));
        assert_eq!((rest(1), rest(100)), (2_000, 3_000), "the longest of each rest");
        assert_eq!(wishes(&cx, "b.ke", &[]), SiteWishes::default(), "no survey has it");
        // Whoever named it besides wants it as the configuration says, too.
        let named = wishes(&cx, "a.ke", &["https://a.ke/", "https://a.ke/news"]);
        assert_eq!((named.depth, named.interval), (Some(7), Some(4_000_000)));
    }

    #[test]
    fn what_only_paused_surveys_have_is_not_wanted() {
        let paused = kept("paused", SurveyState::Paused, Wishes::default(), &["https://a.ke/dir/", "https://b.tz/"], &["ke"]);
        let cx = context(std::slice::from_ref(&paused));
        assert!(wishes(&cx, "a.ke", &["https://a.ke/dir/", "https://a.ke/"]).is_unwanted);
        assert!(!wishes(&cx, "b.tz", &["https://b.tz/"]).is_unwanted, "the configuration's scope has it");
        assert!(!cx.may_admit(&"c.ke".parse().unwrap()));
        let list = kept("list", SurveyState::Ended, Wishes::default(), &["https://a.ke/dir/"], &[]);
        let cx = context(&[list]);
        assert!(wishes(&cx, "a.ke", &["https://a.ke/dir/", "https://a.ke/"]).is_unwanted);
        assert!(!wishes(&cx, "a.ke", &["https://a.ke/other"]).is_unwanted, "somebody else named it");
    }

    #[test]
    fn a_scope_of_names_is_decided_at_once_and_what_is_denied_never() {
        let cx = context(&[kept("ke", SurveyState::Running, Wishes::default(), &[], &["ke"])]);
        let host = |text: &str| text.parse::<Host>().unwrap();
        assert!(cx.may_admit(&host("a.ke")) && cx.may_admit(&host("a.tz")) && !cx.may_admit(&host("a.ug")));
        assert!(!cx.may_admit(&host("bad.ke")) && !cx.admits_at(&host("bad.ke"), "9.0.0.1".parse().unwrap()));
        assert!(cx.admits_at(&host("a.ke"), "9.0.0.1".parse().unwrap()));
        let mark = kept("x", SurveyState::Running, Wishes::default(), &["https://a.ke/"], &[]).mark(&host("www.a.ke"), &host("a.ke"));
        assert_eq!(mark.labels["sector"], ["university".to_owned()].into());
    }

    #[test]
    fn each_of_two_surveys_that_have_a_host_says_what_it_calls_it() {
        let one = labelled("one", SurveyState::Running, Wishes::default(), &["https://a.ke/"], &[], "university");
        let other = labelled("other", SurveyState::Ended, Wishes::default(), &["https://www.a.ke/"], &[], "museum");
        let (cx, host) = (context(&[one, other]), "www.a.ke".parse::<Host>().unwrap());
        let tree = host.without_www();
        let place = Place { country: "KE", organisation: "", asn: None };
        let marks = cx.wishes.having(&host, &tree, &place).into_iter().map(|kept| kept.mark(&host, &tree));
        let said: BTreeMap<_, _> = marks.map(|mark| (mark.name.clone(), mark.label_texts().collect::<Vec<_>>())).collect();
        assert_eq!((&said["one"][..], &said["other"][..]), (&["sector=university".to_owned()][..], &["sector=museum".to_owned()][..]));
    }
}
