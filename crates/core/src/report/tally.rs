//! Running totals: our own sites' records, added up as they change, and every member's sums put together.

use super::{
    consistent::{Answer, Consistent, Heard},
    contribution::Contribution,
    cross_tables::CrossTables,
    distinct::Distinct,
    strata::Strata,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    account::LevelCounts,
    claim::Claim,
    cross_table::{CrossTable, Pair},
    estimates::Estimates,
    evaluation::EvaluationCounts,
    facts::{family_word, language_word, rule_set_word, software_word},
    record::{RunState, ServerRecord, ServerStatus},
    summary::{Counts, Coverage, Dimension, OTHER, RollUp, Summary, SwarmResults},
    time::{Millis, Moment},
    url::Host,
};
use std::{collections::BTreeMap, sync::Arc};

/// Where a server stands in the world, for the splits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    /// ISO code, `ZZ` unknown.
    pub country: String,
    /// Regional registry.
    pub registry: String,
    /// Holder of the subnet.
    pub organisation: String,
}

/// The sums over our own sites, kept up to date one record at a time.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sites: BTreeMap<Host, Contribution>,
    strata: Strata,
    summary: Summary,
    /// Whether a site was entered since the sums were told.
    untold: bool,
}

/// What a server adds to the sums.
pub(super) fn counts_of(record: &ServerRecord) -> Counts {
    Counts {
        servers: 1,
        up: u64::from(record.status == ServerStatus::Up),
        pages: record.pages,
        requests: record.requests,
        bytes: record.bytes,
        busy_ms: record.busy_ms,
        external_hosts: record.external_hosts,
        external_urls: record.external_urls,
        external_domains: record.external_domains,
        cut_by_depth: record.cut_by_depth,
        refused_by_robots: record.refused_by_robots,
        failed: record.failed,
        unfinished: u64::from(matches!(record.state, RunState::Running | RunState::PausedByBudget)),
        evaluated: record.evaluation.as_ref().map_or(0, |sums| sums.pages),
        detected_failures: record.evaluation.as_ref().map_or(0, EvaluationCounts::detected),
        page_bytes: record.page_bytes,
        waiting_urls: record.waiting,
        waiting_urls_by_budget: if record.state == RunState::PausedByBudget { record.waiting } else { 0 },
        urls_not_queued: record.held_back.urls_not_queued,
        hosts_held_by_site_limit: record.held_back.hosts_by_site_limit,
        hosts_held_by_domain_limit: record.held_back.hosts_by_domain_limit,
    }
}

/// Whether it is known what a server is: its answers say so, or nothing is asked any more.
pub(super) fn is_visited(record: &ServerRecord) -> bool {
    let is_over = record.known > 0 && !matches!(record.state, RunState::Running | RunState::PausedByBudget);
    record.status != ServerStatus::Waiting || is_over
}

/// The status in one word; what is down says why, by what went wrong most often.
fn status_word(record: &ServerRecord) -> String {
    match record.main_failure().filter(|_| record.status == ServerStatus::Down) {
        Some(failure) => format!("down: {}", failure.word()),
        None => record.status.word().to_owned(),
    }
}

/// What a server is in each dimension.
pub(super) fn values_of(record: &ServerRecord, whereabouts: Whereabouts) -> [(Dimension, String); Dimension::ALL.len()] {
    let facts = record.facts.as_deref().cloned().unwrap_or_default();
    [
        (Dimension::Country, whereabouts.country),
        (Dimension::Tld, record.host.tld().unwrap_or("(address)").to_owned()),
        (Dimension::Registry, whereabouts.registry),
        (Dimension::Organisation, whereabouts.organisation),
        (Dimension::Software, software_word(record.software.as_deref())),
        (Dimension::Status, status_word(record)),
        (Dimension::Language, language_word(facts.language.as_deref(), record.pages)),
        (Dimension::Script, facts.script_word().to_owned()),
        (Dimension::Http, facts.http_word()),
        (Dimension::Tls, facts.tls_word().to_owned()),
        (Dimension::Family, family_word(record.address).to_owned()),
        (Dimension::RuleSet, rule_set_word(record.evaluation_rules)),
    ]
}

impl Tally {
    /// Enters a site's record as it is now, in place of what was entered for it before. `place` is where it stands in line among the hosts of
    /// its address.
    pub(crate) fn enter(&mut self, record: &ServerRecord, whereabouts: Whereabouts, place: u64) {
        self.remove(&record.host);
        self.untold = true;
        let values = values_of(record, whereabouts);
        let (levels, evaluation) = (record.levels.clone(), record.evaluation.clone());
        let (address, visited) = (record.address, is_visited(record).then(|| record.first_visit_at.unwrap_or_default()));
        let contribution = Contribution { counts: counts_of(record), values, levels, evaluation, address, place, visited };
        self.summary.total.add(&contribution.counts);
        self.summary.add_levels(&contribution.levels);
        contribution.evaluation.iter().for_each(|sums| self.summary.evaluation.add(sums));
        for (dimension, value) in &contribution.values {
            self.summary.by.entry(*dimension).or_default().entry(value.clone()).or_default().add(&contribution.counts);
        }
        self.sites.insert(record.host.clone(), contribution);
        self.strata.enter(&record.host, &self.sites);
    }

    /// Takes a site out again: it is not ours any more.
    pub(crate) fn remove(&mut self, host: &Host) {
        let Some(old) = self.sites.remove(host) else { return };
        self.strata.remove(host, &old);
        self.summary.total.subtract(&old.counts);
        self.summary.levels.iter_mut().zip(&old.levels).for_each(|(sum, level)| sum.subtract(level));
        old.evaluation.iter().for_each(|sums| self.summary.evaluation.subtract(sums));
        while self.summary.levels.pop_if(|last| *last == LevelCounts::default()).is_some() {}
        for (dimension, value) in &old.values {
            let Some(values) = self.summary.by.get_mut(dimension) else { continue };
            let Some(counts) = values.get_mut(value) else { continue };
            counts.subtract(&old.counts);
            if *counts == Counts::default() {
                values.remove(value);
            }
        }
    }

    /// Whether the sums are others than those that were told last.
    pub(crate) fn is_untold(&self) -> bool {
        self.untold
    }

    /// The sums as they are now are told.
    pub(crate) fn mark_told(&mut self) {
        self.untold = false;
    }

    /// Makes the estimates anew for addresses whose hosts changed.
    pub(crate) fn estimate(&mut self) {
        self.summary.estimates = self.strata.estimates(&self.sites);
    }

    /// The probability with which a host that was entered is in the sample that estimates rest on, since these were made anew; none if it
    /// is not.
    pub(crate) fn inclusion_probability(&self, host: &Host) -> Option<f64> {
        self.strata.inclusion_probability(host, self.sites.get(host)?)
    }

    /// What each site adds to the sums.
    pub(super) fn sites(&self) -> &BTreeMap<Host, Contribution> {
        &self.sites
    }

    /// The sums over all our sites.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The sums by the values of two dimensions, whole.
    pub(crate) fn cross(&self, by: Pair) -> CrossTable {
        let mut table = CrossTable::new(by);
        for site in self.sites.values() {
            let value = |wanted: Dimension| site.values.iter().find(|(dimension, _)| *dimension == wanted).map(|(_, value)| value.clone());
            if let (Some(one), Some(other)) = (value(by.0), value(by.1)) {
                table.add((one, other), &site.counts);
            }
        }
        table
    }

    /// The sums as they are gossiped: at most [`Dimension::most_values`] of each, the smallest ones added up as [`OTHER`].
    pub(crate) fn small_summary(&self) -> Summary {
        let Summary { total, levels, evaluation, estimates, .. } = &self.summary;
        let (total, levels, evaluation) = (*total, levels.clone(), evaluation.clone());
        let mut small = Summary { total, by: BTreeMap::new(), levels, evaluation, estimates: Estimates::default() };
        for (dimension, values) in &self.summary.by {
            let mut ranked: Vec<_> = values.iter().collect();
            ranked.sort_by(|(a, x), (b, y)| y.servers.cmp(&x.servers).then(a.cmp(b)));
            let kept = small.by.entry(*dimension).or_default();
            for (rank, (value, counts)) in ranked.into_iter().enumerate() {
                let value = if rank < dimension.most_values() { value.as_str() } else { OTHER };
                kept.entry(value.to_owned()).or_default().add(counts);
            }
        }
        small.estimates = estimates.clone().within(&small.by, OTHER);
        small
    }
}

/// Access points whose roll-ups are kept: gossip is signed by its author, but no other member vouches for who that is.
pub(crate) const MAX_ROLL_UPS: usize = 8_192;

/// At which share of the greatest age of an exact roll-up, in percent, members are asked whether it holds: those whose claims are others by our
/// map, those that are asked something at that moment anyway, greater members, and lesser ones. Voters are asked to renew our lease every 13 s:
/// who would be asked before the next time is asked along.
const ASKED_OTHER_AT: Millis = 24;
const ASKED_ALONG_AT: Millis = 20;
const ASKED_FIRST_AT: Millis = 76;
const ASKED_AT: Millis = 84;
/// Access points that own nothing by our map, and of whom totals with more than [`FEW_VALUES`] values are kept: whoever owns nothing has
/// nothing to sum, unless we have not heard of it yet.
pub(crate) const MAX_LARGE_OF_NON_OWNERS: usize = 64;
pub(crate) const FEW_VALUES: usize = 16;

/// How old a roll-up may be for totals to be exact, in milliseconds: this, or in large swarms so much for each member.
const MAX_AGE: Millis = 30_000;
const MAX_AGE_PER_MEMBER: Millis = 300;

/// How long a roll-up may have been on its way: gossip that cannot be sent for so long is dropped.
const MAX_WAY: Millis = 5_000;

/// How long ago the roll-ups of so many members may have come for their totals to be exact.
fn oldest_exact(members: usize) -> Millis {
    (members as u64 * MAX_AGE_PER_MEMBER).max(MAX_AGE) - MAX_WAY
}

/// Whether what came then is older than so many percent of what may be in the exact totals of so many members.
fn is_older(at: Moment, percent: Millis, members: usize, now: Moment) -> bool {
    now.since(at) > oldest_exact(members) * percent / 100
}

/// How old the newest sums of so many members may be in totals that are exact, from when they were told.
pub(crate) fn oldest_told(members: usize) -> Millis {
    oldest_exact(members) + MAX_WAY
}

/// Every member's last roll-up, those that answer, and what members told of the tables and sets that people asked for.
#[derive(Debug, Default)]
pub(crate) struct RollUps {
    heard: BTreeMap<AccessPoint, Heard>,
    consistent: Consistent,
    /// Who lived when that changed last.
    live: Vec<AccessPoint>,
    pub(super) cross_tables: CrossTables,
    pub(super) distinct: Distinct,
}

impl RollUps {
    /// How many access points' roll-ups are kept.
    pub(crate) fn len(&self) -> usize {
        self.heard.len()
    }

    /// Whether one of this access point may be kept.
    pub(crate) fn has_room_for(&self, owner: &AccessPoint) -> bool {
        self.heard.len() < MAX_ROLL_UPS || self.heard.contains_key(owner)
    }

    /// Whether there is room for one with so many values, of an access point that owns nothing by our map.
    pub(crate) fn has_room_for_large(&self, owner: &AccessPoint, owns: impl Fn(&AccessPoint) -> bool) -> bool {
        let large = |(other, (known, _)): &(&AccessPoint, &Heard)| *other != owner && known.summary.values() > FEW_VALUES && !owns(other);
        self.heard.iter().filter(large).count() < MAX_LARGE_OF_NON_OWNERS
    }

    /// Notes a roll-up. False if it is not newer than the one known. Versions grow with the wall clock, which may have been set back, or its
    /// owner may have lost its disk: beside one that is too old to count, any other counts.
    pub(crate) fn hear(&mut self, roll_up: RollUp, is_gone: impl Fn(&AccessPoint) -> bool, now: Moment) -> bool {
        let newer = self
            .heard
            .get(&roll_up.owner)
            .is_none_or(|(known, at)| known.version < roll_up.version || (known.version != roll_up.version && now.since(*at) > MAX_AGE));
        if newer {
            let owner = roll_up.owner;
            let heard = (Arc::new(roll_up), now);
            self.consistent.look(owner, &heard, is_gone, now);
            self.heard.insert(owner, heard);
        }
        newer
    }

    /// A claim holds from now on instead of the one before, or of the one around it. `is_gone`: whether an access point is no member and owns
    /// nothing.
    pub(crate) fn claim_holds(
        &mut self,
        claim: &Claim,
        before: Option<&Claim>,
        around: Option<&Claim>,
        digest_of: impl Fn(&AccessPoint) -> u64,
        is_gone: impl Fn(&AccessPoint) -> bool,
        now: Moment,
    ) {
        for member in self.consistent.claim_holds(claim, before, around, digest_of, &is_gone, now) {
            if let Some(heard) = self.heard.get(&member) {
                self.consistent.look(member, heard, &is_gone, now);
            }
        }
    }

    /// A member says that its roll-up of this version holds.
    pub(crate) fn holds(&mut self, owner: &AccessPoint, version: u64, now: Moment) {
        if let Some((_, at)) = self.heard.get_mut(owner).filter(|(known, _)| known.version == version) {
            *at = now;
        }
    }

    /// Those of the living whose last roll-up will soon be as old as it may be, or speaks of other claims than those of our map, the oldest
    /// first. Of two members, each of which tells the other whether its own holds when it asks, the lesser one asks first.
    pub(crate) fn overdue(
        &self,
        me: AccessPoint,
        live: &[AccessPoint],
        digest_of: impl Fn(&AccessPoint) -> u64,
        now: Moment,
    ) -> Vec<AccessPoint> {
        let heard = |member: &AccessPoint| self.heard.get(member).map(|(_, at)| *at);
        let percent = |roll_up: &RollUp| match roll_up {
            other if other.claims_digest != digest_of(&other.owner) => ASKED_OTHER_AT,
            greater if me < greater.owner => ASKED_FIRST_AT,
            _ => ASKED_AT,
        };
        let is_overdue = |member: &AccessPoint| {
            let known = self.heard.get(member);
            known.is_none_or(|(roll_up, at)| is_older(*at, percent(roll_up), live.len(), now))
        };
        let mut members: Vec<_> = live.iter().filter(|member| **member != me && is_overdue(member)).copied().collect();
        members.sort_by_key(|member| (heard(member), *member));
        members
    }

    /// Whether a member that is asked something now anyway is asked together with that whether its roll-up holds: in one packet that is cheap,
    /// and later it would take one of its own.
    pub(crate) fn is_asked_along(&self, member: &AccessPoint, live: usize, now: Moment) -> bool {
        self.heard.get(member).is_some_and(|(_, at)| is_older(*at, ASKED_ALONG_AT, live, now))
    }

    /// Keeps only these access points' roll-ups, and ends changes of hands that are over.
    pub(crate) fn retain(&mut self, keep: impl Fn(&AccessPoint) -> bool, now: Moment) {
        self.heard.retain(|owner, _| keep(owner));
        self.consistent.settle(|member| !keep(member), |member| self.heard.get(member), now);
    }

    /// Others live than before. Changes of hands that were over before, because somebody was gone, stay so if that one comes back: what has
    /// answered is not taken back.
    pub(crate) fn members_changed(&mut self, live: Vec<AccessPoint>, owns: impl Fn(&AccessPoint) -> bool, now: Moment) {
        let before = std::mem::replace(&mut self.live, live);
        self.consistent.settle(|member| !before.contains(member) && !owns(member), |member| self.heard.get(member), now);
    }

    /// An access point's last roll-up and when it came.
    pub(crate) fn of(&self, owner: &AccessPoint) -> Option<(&RollUp, Moment)> {
        self.heard.get(owner).map(|(roll_up, at)| (roll_up.as_ref(), *at))
    }

    /// Puts the roll-ups of `owners` (who hold something, with the digest of what they hold by our map) and of the living
    /// together. Exact if every owner is alive, and the roll-up of everybody is recent and speaks of just the claims that we know. What
    /// answers is the same, exact or not: see [`Consistent`].
    pub(crate) fn results(&self, me: AccessPoint, owners: &BTreeMap<AccessPoint, u64>, live: &[AccessPoint], now: Moment) -> SwarmResults {
        let mut results = SwarmResults {
            answered_by: me,
            exact: true,
            in_transition_text: None,
            oldest_roll_up_age_ms: 0,
            covers: Vec::new(),
            summary: Summary::default(),
            consistent_age_ms: None,
        };
        let mut why = Vec::new();
        // Who lives and owns nothing by our map may own what we have not heard of.
        let nothing = live.iter().filter(|member| !owners.contains_key(member)).map(|member| (member, &0));
        for (owner, digest) in owners.iter().chain(nothing) {
            match self.heard.get(owner) {
                None => why.push(format!("waiting for totals from {}", owner.short())),
                Some((roll_up, _)) if roll_up.claims_digest != *digest => {
                    why.push(format!("waiting for matching totals from {}", owner.short()));
                }
                Some(_) if !live.contains(owner) => why.push(format!("{} is silent", owner.short())),
                Some((_, at)) if now.since(*at) > oldest_exact(live.len()) => {
                    why.push(format!("the last totals from {} are {} s old", owner.short(), now.since(*at) / 1_000));
                }
                Some(_) => {}
            }
        }
        let is_gone = |member: &AccessPoint| !owners.contains_key(member) && !live.contains(member);
        let Answer { totals, since } = self.consistent.answer(is_gone, |member| self.heard.get(member), now);
        results.consistent_age_ms = since.map(|since| now.since(since));
        for (owner, (roll_up, at)) in totals {
            // The last time that they were said to hold.
            let newest = self.heard.get(&owner).filter(|(newest, _)| newest.version == roll_up.version);
            let roll_up_age_ms = now.since(newest.map_or(*at, |(_, at)| *at));
            results.oldest_roll_up_age_ms = results.oldest_roll_up_age_ms.max(roll_up_age_ms);
            results.covers.push(Coverage {
                access_point: owner,
                roll_up_age_ms,
                subnets: roll_up.subnets,
                servers: roll_up.summary.total.servers,
            });
            results.summary.add(&roll_up.summary);
        }
        results.summary.settle();
        results.exact = why.is_empty();
        results.in_transition_text = (!why.is_empty()).then(|| why.join("; "));
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        context::Context,
        crawl::Crawl,
        event::{Command, PeerCommand},
        membership::{Member, Membership, Roster, Swim},
        ownership::Ownership,
        report::{BesidesSums, Report},
    };
    use nearcrawl_model::{
        evaluation::Rule,
        facts::{HttpVersion, ServerFacts},
        fetch::FetchError,
        journal::JournalKey,
        message::Request,
        summary::MAX_VALUES,
        time::WallTime,
    };

    fn record(host: &str, pages: u64) -> ServerRecord {
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.parse().unwrap(), run: 1 };
        let mut site = crate::crawl::site::Site::open(
            key,
            "9.0.0.1".parse().unwrap(),
            host.parse().unwrap(),
            nearcrawl_model::ids::SiteNumber(1),
            WallTime(0),
        );
        site.record.pages = pages;
        site.record.software = Some("nginx/1.24".to_owned());
        site.record
    }

    fn whereabouts(country: &str) -> Whereabouts {
        Whereabouts { country: country.to_owned(), registry: "afrinic".to_owned(), organisation: "Org".to_owned() }
    }

    #[test]
    fn entering_again_replaces_and_removing_leaves_nothing() {
        let mut tally = Tally::default();
        tally.enter(&record("a.ke", 3), whereabouts("KE"), 0);
        tally.enter(&record("b.ke", 4), whereabouts("KE"), 0);
        tally.enter(&record("a.ke", 5), whereabouts("TZ"), 0);
        let by = &tally.summary().by[&Dimension::Country];
        assert_eq!((tally.summary().total.pages, by["KE"].pages, by["TZ"].pages), (9, 4, 5));
        assert_eq!(tally.summary().by[&Dimension::Software]["nginx"].servers, 2);
        tally.remove(&"a.ke".parse().unwrap());
        tally.remove(&"b.ke".parse().unwrap());
        assert_eq!(tally.summary().total, Counts::default());
        assert!(tally.summary().by.values().all(BTreeMap::is_empty));
    }

    #[test]
    fn pages_are_counted_by_the_version_of_the_rule_set() {
        let mut tally = Tally::default();
        for (number, rules) in [Some(1), Some(2), Some(2), None].into_iter().enumerate() {
            let evaluation =
                rules.map(|_| EvaluationCounts { pages: 3, failures: BTreeMap::from([(Rule::ImageName, 2)]), ..Default::default() });
            let record = ServerRecord { evaluation, evaluation_rules: rules, ..record(&format!("s{number}.ke"), 4) };
            tally.enter(&record, whereabouts("KE"), 0);
        }
        let told = tally.small_summary();
        let by = &told.by[&Dimension::RuleSet];
        assert_eq!((by["1"].evaluated, by["2"].evaluated, by["none"].servers, by.len()), (3, 6, 1, 3));
        assert_eq!(
            told.rule_sets().as_deref(),
            Some(
                "evaluated by several rule sets, whose failures do not compare: rule set 1: 2 failures in 3 pages of 1 server, rule set 2: \
                 4 failures in 6 pages of 2 servers"
            )
        );
        tally.remove(&"s0.ke".parse().unwrap());
        assert_eq!(tally.small_summary().rule_sets().as_deref(), Some("rule set 2: 4 failures in 6 pages of 2 servers"));
        for number in 1..4 {
            tally.remove(&format!("s{number}.ke").parse().unwrap());
        }
        assert_eq!(tally.small_summary().rule_sets(), None);
    }

    #[test]
    fn facts_are_splits_with_few_values_in_what_is_told() {
        let mut tally = Tally::default();
        let language = |n: u16| format!("{}{}", char::from(b'a' + (n / 26) as u8), char::from(b'a' + (n % 26) as u8));
        for n in 0..100 {
            let facts = ServerFacts { language: Some(language(n)), http_version: Some(HttpVersion::Http11), ..ServerFacts::default() };
            tally.enter(&ServerRecord { facts: Some(Box::new(facts)), ..record(&format!("s{n}.ke"), 1) }, whereabouts("KE"), 0);
        }
        tally.enter(&record("a.ke", 1), whereabouts("KE"), 0);
        let told = tally.small_summary();
        assert!(told.is_tellable());
        let servers = |by: Dimension, value: &str| told.by[&by].get(value).map_or(0, |counts| counts.servers);
        assert_eq!(
            (servers(Dimension::Http, "1.1"), servers(Dimension::Http, "unknown"), servers(Dimension::Family, "ipv4")),
            (100, 1, 101)
        );
        assert_eq!((servers(Dimension::Tls, "none"), servers(Dimension::Script, "unknown")), (100, 101));
        assert_eq!((told.by[&Dimension::Language].len(), servers(Dimension::Language, OTHER)), (25, 77));
        assert_eq!(tally.summary().by[&Dimension::Language].len(), 101, "here nothing is left out");
        let table = tally.cross((Dimension::Http, Dimension::Country));
        assert_eq!(table.cells[&("1.1".to_owned(), "KE".to_owned())].servers, 100);
        assert_eq!(table.total(), tally.summary().total);
    }

    #[test]
    fn splits_by_facts_are_small_beside_the_others() {
        let mut tally = Tally::default();
        for n in 0..2_000_u32 {
            let facts = ServerFacts {
                language: Some(["sw", "en", "fr", "am", "pt-BR", "ar"][n as usize % 6].to_owned()),
                script: Some(["Latn", "Ethi", "Arab"][n as usize % 3].to_owned()),
                http_version: Some(HttpVersion::Http11),
                alt_svc: (n % 4 == 0).then(|| "h3".to_owned()).into_iter().collect(),
                ..ServerFacts::default()
            };
            let mut server = record(&format!("s{n}.{}", ["ke", "tz", "ug", "et", "org", "com"][n as usize % 6]), 40);
            (server.bytes, server.busy_ms, server.facts) = (1_000_000, 90_000, Some(Box::new(facts)));
            let place = whereabouts(["KE", "TZ", "UG", "ET"][n as usize % 4]);
            tally.enter(&server, Whereabouts { organisation: format!("Organisation {}", n % 150), ..place }, 0);
        }
        let size = |summary: &Summary| postcard::to_stdvec(summary).unwrap().len();
        let mut told = tally.small_summary();
        let with = size(&told);
        told.by.retain(|dimension, _| dimension.most_values() == MAX_VALUES);
        println!("a roll-up has {with} bytes, without facts {}", size(&told));
        assert!(with - size(&told) < 1_500, "{with} bytes, without facts {}", size(&told));
    }

    fn member(number: usize) -> AccessPoint {
        let mut key = [9; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        AccessPoint(key)
    }

    /// The totals of a member with so many values.
    fn told(number: usize, version: u64, values: usize) -> RollUp {
        let values = (0..values).map(|value| (value.to_string(), Counts { servers: 1, ..Counts::default() })).collect();
        RollUp {
            owner: member(number),
            version,
            claims_digest: 0,
            subnets: 0,
            sure_of: 1,
            busy_permille: 0,
            price_permille: 1_000,
            summary: Summary { by: [(Dimension::Country, values)].into(), ..Summary::default() },
        }
    }

    /// Our member with so many others.
    fn among(others: usize) -> (Context, Membership, Ownership, Report) {
        let cx = Context::of_test(1);
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let all = (0..others).map(member).collect();
        let members = Membership::new(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &all));
        (cx, members, Ownership::new(Moment(0), true), Report::new(Moment(0)))
    }

    #[test]
    fn totals_of_members_beyond_the_limit_are_refused() {
        let (mut cx, members, ownership, mut report) = among(MAX_ROLL_UPS + 3);
        (0..MAX_ROLL_UPS + 3).for_each(|number| report.hear(&mut cx, &members, &ownership, told(number, 1, 0)));
        assert_eq!((report.roll_ups(), cx.counters.refused["totals of members beyond the limit"]), (MAX_ROLL_UPS, 3));
        report.hear(&mut cx, &members, &ownership, told(5, 2, 0));
        assert_eq!(report.roll_up_of(&member(5)).map(|(known, _)| known.version), Some(2), "it is known already");
    }

    #[test]
    fn invented_access_points_tell_no_totals_and_members_not_more_than_they_may() {
        let (mut cx, members, ownership, mut report) = among(100);
        report.hear(&mut cx, &members, &ownership, told(100, 1, 0));
        assert_eq!((report.roll_ups(), cx.counters.refused["totals of access points that are no members"]), (0, 1));
        report.hear(&mut cx, &members, &ownership, told(1, 1, MAX_VALUES + 2));
        let mut long = told(1, 1, 0);
        long.summary.by = [(Dimension::Country, [("x".repeat(600), Counts::default())].into())].into();
        report.hear(&mut cx, &members, &ownership, long);
        assert_eq!((report.roll_ups(), cx.counters.refused["totals with more values than a member tells"]), (0, 2));
        // Who owns nothing has little to tell.
        (0..100).for_each(|number| report.hear(&mut cx, &members, &ownership, told(number, 1, FEW_VALUES + 1)));
        assert_eq!(report.roll_ups(), MAX_LARGE_OF_NON_OWNERS);
        (0..100).for_each(|number| report.hear(&mut cx, &members, &ownership, told(number, 2, FEW_VALUES)));
        assert_eq!((report.roll_ups(), cx.counters.refused["totals of members beyond the limit"]), (100, 36));
    }

    #[test]
    fn sums_that_will_hardly_change_soon_are_told_at_once_to_those_who_know_others() {
        let (mut cx, mut members, ownership, mut report) = among(2);
        (0..2).for_each(|number| members.meet(Moment(0), member(number)));
        let crawl = Crawl::new(&cx.settings, 0);
        let more = || BesidesSums { load: (0, 1_000), complete: true };
        let mine = report.roll_up(&mut cx, &members, &ownership, &crawl, more());
        (0..2).for_each(|number| report.hear(&mut cx, &members, &ownership, told(number, 1, 0)));
        cx.now.moment = Moment(5_000);
        let asked = report.overdue(&cx, &members, &ownership);
        assert_eq!(asked, [member(0), member(1)], "nobody knows them");
        report.ask_whether_they_hold(&mut cx, asked, Some(&mine));
        let questions = |cx: &mut Context| {
            cx.take_commands()
                .into_iter()
                .filter_map(|command| match command {
                    Command::Peers(PeerCommand::Ask { request, .. }) => Some(request),
                    _ => None,
                })
                .collect::<Vec<_>>()
        };
        let with_sums = Request::ExchangeTotals(Box::new(mine.clone()), 1);
        assert_eq!(questions(&mut cx), [with_sums.clone(), with_sums]);
        report.knows(member(0), mine.version);
        cx.now.moment = Moment(10_001);
        let asked = report.overdue(&cx, &members, &ownership);
        assert_eq!(asked, [member(1)], "one of them answered");
        report.knows(member(1), mine.version);
        let busier = BesidesSums { load: (9, 1_000), complete: true };
        let later = report.roll_up(&mut cx, &members, &ownership, &crawl, busier);
        cx.now.moment = Moment(24_000);
        let asked = report.overdue(&cx, &members, &ownership);
        assert_eq!(asked.len(), 2, "they have told nothing for long, and our load is told with that");
        report.ask_whether_they_hold(&mut cx, asked, Some(&later));
        assert!(questions(&mut cx).iter().all(|question| *question == Request::ExchangeTotals(Box::new(later.clone()), 1)));
    }

    #[test]
    fn voters_are_asked_with_the_renewal_of_the_lease_before_they_would_be_asked_alone() {
        let (mut cx, mut members, ownership, mut report) = among(3);
        (0..3).for_each(|number| members.meet(Moment(0), member(number)));
        let crawl = Crawl::new(&cx.settings, 0);
        let mine = report.roll_up(&mut cx, &members, &ownership, &crawl, BesidesSums { load: (0, 1_000), complete: true });
        (0..3).for_each(|number| {
            report.hear(&mut cx, &members, &ownership, told(number, 1, 0));
            report.knows(member(number), mine.version);
        });
        let voters = [member(0), cx.me, member(1), AccessPoint([77; 32])];
        cx.now.moment = Moment(4_900);
        assert_eq!(report.asked_along(&cx, &members, voters.to_vec()), [], "at the next renewal they can be asked, too");
        // A renewal later they would have been asked alone.
        cx.now.moment = Moment(8_000);
        let along = report.asked_along(&cx, &members, voters.to_vec());
        assert_eq!(along, [member(0), member(1)], "neither ourselves nor who is no member");
        report.ask_whether_they_hold(&mut cx, along, Some(&mine));
        assert_eq!(report.asked_along(&cx, &members, voters.to_vec()), [], "they have been asked just now");
        (0..2).for_each(|number| report.holds(&cx, member(number), 1));
        cx.now.moment = Moment(22_001);
        assert_eq!(report.overdue(&cx, &members, &ownership), [member(2)], "only who does not vote is asked alone");
    }

    #[test]
    fn what_is_down_says_why() {
        let mut tally = Tally::default();
        let mut down = record("a.ke", 0);
        down.status = ServerStatus::Down;
        down.by_failure = [(FetchError::HeadTimeout, 1), (FetchError::CertificateExpired, 2)].into();
        tally.enter(&down, whereabouts("KE"), 0);
        assert_eq!(tally.summary().by[&Dimension::Status]["down: certificate-expired"].servers, 1);
    }

    fn nobody(_: &AccessPoint) -> bool {
        false
    }

    #[test]
    fn an_answer_is_exact_only_when_every_owner_speaks_of_the_claims_we_know() {
        let (a, b) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
        let roll_up = |owner, version, digest, pages| {
            let total = Counts { pages, ..Counts::default() };
            RollUp {
                owner,
                version,
                claims_digest: digest,
                subnets: 1,
                sure_of: 1,
                busy_permille: 0,
                price_permille: 1000,
                summary: Summary { total, ..Summary::default() },
            }
        };
        let mut rolls = RollUps::default();
        let owners: BTreeMap<_, _> = [(a, 7), (b, 8)].into();
        assert!(rolls.hear(roll_up(a, 1, 7, 10), nobody, Moment(0)));
        let results = rolls.results(a, &owners, &[a, b], Moment(5));
        assert!(!results.exact && results.in_transition_text.unwrap().contains("waiting for totals from"));
        assert!(rolls.hear(roll_up(b, 5, 9, 1), nobody, Moment(3)));
        assert!(!rolls.results(a, &owners, &[a, b], Moment(5)).exact);
        assert!(rolls.hear(roll_up(b, 6, 8, 20), nobody, Moment(4)) && !rolls.hear(roll_up(b, 5, 9, 1), nobody, Moment(5)));
        let results = rolls.results(a, &owners, &[a, b], Moment(5));
        assert_eq!((results.exact, results.summary.total.pages, results.oldest_roll_up_age_ms, results.covers.len()), (true, 30, 5, 2));
        assert!(!rolls.results(a, &owners, &[a], Moment(5)).exact, "a silent owner's numbers may be behind");
        let c = AccessPoint([3; 32]);
        assert!(!rolls.results(a, &owners, &[a, b, c], Moment(5)).exact, "a third member may own what we have not heard of");
        assert!(rolls.results(a, &owners, &[a, b], Moment(25_000)).exact);
        let late = rolls.results(a, &owners, &[a, b], Moment(25_001));
        assert!(!late.exact && late.in_transition_text.unwrap().contains("are 25 s old"));
    }

    #[test]
    fn after_a_clock_was_set_back_totals_count_again_when_the_last_ones_are_too_old() {
        let owner = AccessPoint([1; 32]);
        let told = |version| RollUp {
            owner,
            version,
            claims_digest: 0,
            subnets: 0,
            sure_of: 1,
            busy_permille: 0,
            price_permille: 1_000,
            summary: Summary::default(),
        };
        let mut rolls = RollUps::default();
        assert!(rolls.hear(told(900), nobody, Moment(0)));
        assert!(!rolls.hear(told(7), nobody, Moment(30_000)), "it may be an earlier one that came late");
        assert!(rolls.hear(told(8), nobody, Moment(30_001)) && rolls.hear(told(9), nobody, Moment(30_002)));
    }
}
