//! By which rules is a host crawled? Those of this access point's configuration, and those of the living surveys that want it: all members go
//! by the same ones, whoever owns what.
//!
//! Of several wishes the deepest and politest count: the deepest level, the longest of each rest, the shortest interval between two runs,
//! and evaluation if one of them wants it. The configuration's own wish counts where its scope, or a starting point that no survey names,
//! leads; its rests count always, and what it denies is never wanted.

use crate::{
    context::Context,
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
    net::IpAddr,
    sync::Arc,
};

/// A survey that is kept here, with its list by trees.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) survey: Survey,
    pub(crate) signed: SignedSurvey,
    pub(crate) head: SurveyHead,
    /// Where it is stored.
    pub(crate) slot: u16,
    /// Places in its list, by the tree that a URL starts.
    trees: BTreeMap<Host, Vec<u32>>,
}

impl Kept {
    /// A survey, with the signed bytes that it was decoded from.
    pub(crate) fn new(survey: Survey, signed: SignedSurvey, slot: u16) -> Kept {
        let mut trees: BTreeMap<Host, Vec<u32>> = BTreeMap::new();
        for (place, entry) in (0..).zip(&survey.plan.entries) {
            trees.entry(entry.url.host().without_www()).or_default().push(place);
        }
        Kept { head: signed.head(&survey), survey, signed, slot, trees }
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
    fn lists(&self, url: &PageUrl) -> bool {
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
    min_delay: Millis,
    /// How many times as long as its answer took a server rests.
    delay_factor: u64,
    /// Whether pages are evaluated.
    pub(crate) evaluation: bool,
    /// The time between the beginnings of two runs; none if the configuration's counts.
    interval: Option<Millis>,
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
    living: Vec<Arc<Kept>>,
    resting: Vec<Arc<Kept>>,
}

impl InEffect {
    /// At this time.
    pub(crate) fn at<'a>(now: WallTime, kept: impl Iterator<Item = &'a Arc<Kept>>) -> InEffect {
        let (living, resting) = kept.cloned().partition(|kept| kept.survey.state_at(now) == SurveyState::Running);
        InEffect { living, resting }
    }

    /// Those that live.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Arc<Kept>> {
        self.living.iter()
    }

    /// Those that a host belongs to, living or not.
    pub(crate) fn having<'a>(&'a self, host: &Host, tree: &Host, place: &Place<'_>) -> Vec<&'a Arc<Kept>> {
        self.living.iter().chain(&self.resting).filter(|kept| kept.has(host, tree, place)).collect()
    }
}

/// Which hosts are in scope, and how they are crawled.
impl Context {
    /// Where an address is by the hierarchy.
    pub(crate) fn place_of(&self, address: IpAddr) -> Place<'_> {
        let Some(position) = self.hierarchy.locate(address) else {
            return Place { country: "ZZ", organisation: "unregistered", asn: None };
        };
        let organisation = self.hierarchy.organisation(position);
        Place {
            country: self.hierarchy.country(position),
            organisation: self.hierarchy.organisation_name(organisation),
            asn: self.hierarchy.asn_of(address),
        }
    }

    /// Whether a link to this host may make it a starting host: the configuration's scope or a living survey's has it, or may have it
    /// once its address is known.
    pub(crate) fn may_admit(&self, host: &Host) -> bool {
        self.settings.scope.admits(host)
            || (!self.settings.scope.denies(host)
                && self.wishes.living().any(|kept| kept.survey.plan.scope.is_of_places() || kept.survey.plan.scope.names(host)))
    }

    /// The same of a host whose address is known.
    pub(crate) fn admits_at(&self, host: &Host, address: IpAddr) -> bool {
        if self.settings.scope.admits(host) || self.settings.scope.denies(host) {
            return self.settings.scope.admits(host);
        }
        let place = self.place_of(address);
        self.wishes.living().any(|kept| kept.survey.plan.scope.names(host) || kept.survey.plan.scope.covers(&place))
    }

    /// What is wished for a host in this tree at this address, which `starts` lead to.
    pub(crate) fn wishes_for<'a>(
        &self,
        host: &Host,
        tree: &Host,
        address: IpAddr,
        mut starts: impl Iterator<Item = &'a PageUrl>,
    ) -> SiteWishes {
        let InEffect { living, resting } = &self.wishes;
        if living.is_empty() && resting.is_empty() {
            return SiteWishes::default();
        }
        let place = self.place_of(address);
        let wants: Vec<_> = living.iter().filter(|kept| kept.has(host, tree, &place)).collect();
        let rests: Vec<_> = resting.iter().filter(|kept| kept.has(host, tree, &place)).collect();
        if wants.is_empty() && rests.is_empty() {
            return SiteWishes::default();
        }
        let of_scope = |kept: &&Arc<Kept>| kept.survey.plan.scope.names(host) || kept.survey.plan.scope.covers(&place);
        let only_lists = !wants.iter().copied().chain(rests.iter().copied()).any(|kept| of_scope(&kept));
        // What no list names, people did, or the configuration's scope led to.
        let named_elsewhere = only_lists && starts.any(|url| !living.iter().chain(resting).any(|kept| kept.lists(url)));
        let by_configuration = self.settings.scope.admits(host) || named_elsewhere;
        let ours = |wanted: bool| wanted.then_some(self.settings.rules.depth);
        let depth_of = |kept: &&Arc<Kept>| kept.survey.plan.wishes.depth.unwrap_or(self.settings.rules.depth);
        let depths = wants.iter().map(depth_of);
        let intervals = wants.iter().filter_map(|kept| kept.survey.plan.wishes.interval_ms);
        let wishes = || wants.iter().map(|kept| kept.survey.plan.wishes);
        SiteWishes {
            // What is not asked any more stays as deep as it was.
            depth: depths.chain(ours(by_configuration)).max().or_else(|| rests.iter().map(depth_of).max()),
            min_delay: wishes().filter_map(|wishes| wishes.min_delay_ms).max().unwrap_or(0),
            delay_factor: wishes().filter_map(|wishes| wishes.delay_factor).max().unwrap_or(0),
            evaluation: wishes().any(|wishes| wishes.evaluation),
            interval: intervals.chain(by_configuration.then_some(self.settings.revisit)).min(),
            is_unwanted: wants.is_empty() && !by_configuration,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::scope::Scope;
    use nearcrawl_model::{
        access_point::AccessPoint,
        survey::{SurveyPlan, SurveyScope, Wishes},
    };

    fn kept(name: &str, state: SurveyState, wishes: Wishes, urls: &[&str], tlds: &[&str]) -> Arc<Kept> {
        let key = ed25519_dalek::SigningKey::from_bytes(&[3; 32]);
        let entry = |url: &&str| SurveyEntry { url: PageUrl::parse(url).unwrap(), labels: vec![("sector".into(), "university".into())] };
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
        Arc::new(Kept::new(survey, signed, 0))
    }

    fn context(surveys: &[Arc<Kept>]) -> Context {
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
}
