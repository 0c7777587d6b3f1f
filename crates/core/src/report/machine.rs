//! State machine of reports: the sums over our own sites and the roll-ups of every member.
//!
//! A site is entered when it changes; the sums are told when they are due.

use super::{
    stays::Stays,
    tally::{FEW_VALUES, RollUps, Tally, Whereabouts},
};
use crate::{context::Context, crawl::Crawl, crawl::scheduler::place_of, membership::Membership, ownership::Ownership, pending::Pending};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::Claim,
    cross_table::{CrossTable, Pair},
    distinct::{DistinctSets, DistinctView},
    message::Request,
    summary::{RollUp, Summary, SwarmResults},
    time::{Millis, Moment},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

/// A roll-up is told to all at most this often.
const ROLL_UP_EVERY: Millis = 1_000;

/// How much later at most a version of ours becomes because one member knows a later one: a day, since versions are wall times.
const MAX_AHEAD: u64 = 86_400_000;

/// One that others wait for, because what we own has changed, is told after so long for each member, so that what a member
/// hears of all the others does not grow with their number; but after [`MAX_CHANGED_EVERY`] at the latest.
const CHANGED_EVERY_PER_MEMBER: Millis = 250;
const MAX_CHANGED_EVERY: Millis = 3_000;

/// Members whose roll-ups are about to be too old for totals to be exact are asked whether they hold: looked for this often, so many of
/// them at once, each again after [`ASK_AGAIN`] if it does not answer: before its roll-up is too old.
const ASK_EVERY: Millis = 1_000;
const ASKED_AT_ONCE: usize = 16;
const ASK_AGAIN: Millis = 2_500;

/// Our own sums are told at once to those who know others, if no site of ours is under way and they have not changed for so long.
const SETTLED_AFTER: Millis = 2_000;

/// What a roll-up says besides sums.
pub(crate) struct BesidesSums {
    /// Our load and price, in thousandths.
    pub(crate) load: (u32, u32),
    /// False while the history of something that we hold is still being read, or others may hold it: then sums must not be taken for exact.
    pub(crate) complete: bool,
}

/// The sums over our sites, and those that others tell.
pub(crate) struct Report {
    tally: Tally,
    /// Sites whose records changed since they were entered into the tally.
    dirty: BTreeSet<Host>,
    roll_ups: RollUps,
    /// For how long members were here.
    stays: Stays,
    /// When it was last looked at whether the roll-up is to be told to all.
    told: Option<Moment>,
    /// When members whose roll-ups are old are looked for next.
    ask_due: Moment,
    /// When those were asked that have not had time enough to answer.
    asked: BTreeMap<AccessPoint, Moment>,
    version: u64,
    /// The version at which our sums, or what we own, changed last, and when that was.
    sums: (u64, Moment),
    /// Which version of our own roll-up others know, as far as we know.
    known_there: BTreeMap<AccessPoint, u64>,
    changed: bool,
    /// Members that we count, as told in the last roll-up.
    sure_of: usize,
}

impl Report {
    /// Nothing is known yet; the first roll-up is due at once.
    pub(crate) fn new(now: Moment) -> Report {
        Report {
            tally: Tally::default(),
            dirty: BTreeSet::new(),
            roll_ups: RollUps::default(),
            stays: Stays::default(),
            told: None,
            ask_due: now.after(ASK_AGAIN),
            asked: BTreeMap::new(),
            version: 0,
            sums: (0, now),
            known_there: BTreeMap::new(),
            changed: true,
            sure_of: 1,
        }
    }

    /// What the roll-up says has changed.
    pub(crate) fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// A site's record changed, or where it stands.
    pub(crate) fn site_changed(&mut self, host: Host) {
        self.dirty.insert(host);
    }

    /// A site is not ours any more.
    pub(crate) fn forget_site(&mut self, host: &Host) {
        self.tally.remove(host);
        self.dirty.remove(host);
    }

    /// Notes how many members count.
    pub(crate) fn count_members(&mut self, sure_of: usize) {
        self.changed |= sure_of != std::mem::replace(&mut self.sure_of, sure_of);
    }

    /// Notes the roll-up of another member, or of one that is gone and still owns something.
    pub(crate) fn hear(&mut self, cx: &mut Context, members: &Membership, ownership: &Ownership, roll_up: RollUp) {
        let owner = &roll_up.owner;
        let owns = |who: &AccessPoint| ownership.register().count(who) > 0;
        if !owns(owner) && !members.standings().contains_key(owner) {
            return cx.refuse("totals of access points that are no members");
        }
        if !roll_up.summary.is_tellable() {
            return cx.refuse("totals with more values than a member tells");
        }
        let few = roll_up.summary.values() <= FEW_VALUES || owns(owner) || self.roll_ups.has_room_for_large(owner, owns);
        if few && self.roll_ups.has_room_for(owner) {
            self.stays.told(roll_up.owner, cx.now.moment);
            self.roll_ups.hear(roll_up, gone(members, ownership), cx.now.moment);
        } else {
            cx.refuse("totals of members beyond the limit");
        }
    }

    /// A claim holds from now on instead of the one before.
    pub(crate) fn claim_holds(&mut self, cx: &Context, members: &Membership, ownership: &Ownership, claim: &Claim, before: Option<&Claim>) {
        let register = ownership.register();
        let around = if before.is_none() { register.covering(&claim.subnet) } else { None };
        self.roll_ups.claim_holds(claim, before, around, |owner| register.digest_of(owner), gone(members, ownership), cx.now.moment);
    }

    /// A member says that its totals of this version hold.
    pub(crate) fn holds(&mut self, cx: &Context, owner: AccessPoint, version: u64) {
        self.stays.told(owner, cx.now.moment);
        self.roll_ups.holds(&owner, version, cx.now.moment);
    }

    /// How many access points' roll-ups are kept, our own included.
    pub(crate) fn roll_ups(&self) -> usize {
        self.roll_ups.len()
    }

    /// A member's last roll-up and when it came.
    pub(crate) fn roll_up_of(&self, owner: &AccessPoint) -> Option<(&RollUp, Moment)> {
        self.roll_ups.of(owner)
    }

    /// For how long a member has told its totals, and when it did last; none of a member that has told none.
    pub(crate) fn told_for(&self, member: &AccessPoint) -> Option<(Millis, Moment)> {
        self.stays.lasted(member)
    }

    /// Of how many members that is remembered.
    pub(crate) fn stays(&self) -> usize {
        self.stays.len()
    }

    /// Whether our own sums are to be put together anew, for those who ask us.
    pub(crate) fn is_stale(&self, cx: &Context) -> bool {
        self.is_changing() && self.recent_one(cx).is_none()
    }

    /// Whether our own sums are others than in our last roll-up.
    fn is_changing(&self) -> bool {
        !self.dirty.is_empty() || self.tally.is_untold()
    }

    /// Whether it is to be looked at now whether the roll-up is to be told to all.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        let Some(told) = self.told else { return true };
        let wait = (self.sure_of as u64 * CHANGED_EVERY_PER_MEMBER).clamp(ROLL_UP_EVERY, MAX_CHANGED_EVERY);
        self.changed && now.since(told) >= wait
    }

    /// Brings the tally up to date and says what we hold and know.
    pub(crate) fn roll_up(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        ownership: &Ownership,
        crawl: &Crawl,
        more: BesidesSums,
    ) -> RollUp {
        let BesidesSums { load: (busy_permille, price_permille), complete } = more;
        self.enter_dirty(cx, crawl);
        let digest = ownership.register().digest_of(&cx.me);
        let mut roll_up = RollUp {
            owner: cx.me,
            version: self.version,
            claims_digest: if complete { digest } else { !digest },
            subnets: ownership.register().count(&cx.me) as u64,
            sure_of: self.sure_of as u32,
            busy_permille,
            price_permille,
            summary: self.tally.small_summary(),
        };
        self.tally.mark_told();
        let before = self.roll_ups.of(&cx.me).map(|(before, _)| before);
        if before != Some(&roll_up) {
            // Wall time keeps versions growing across restarts; the clock jumping back only costs the difference in silence.
            self.version = self.version.saturating_add(1).max(cx.now.wall.0);
            roll_up.version = self.version;
            if before.is_none_or(|before| before.summary != roll_up.summary || before.claims_digest != roll_up.claims_digest) {
                self.sums = (self.version, cx.now.moment);
            }
        }
        self.roll_ups.holds(&cx.me, roll_up.version, cx.now.moment);
        self.roll_ups.hear(roll_up.clone(), gone(members, ownership), cx.now.moment);
        let live = members.live();
        self.roll_ups.retain(|owner| live.contains(owner) || ownership.register().count(owner) > 0, cx.now.moment);
        self.known_there.retain(|member, _| live.contains(member));
        roll_up
    }

    /// Whether a roll-up of ours is told to all now: the first one is. For later ones the others ask: each message to all comes to everybody
    /// several times, and sums change all the time.
    #[must_use]
    pub(crate) fn tells(&mut self, now: Moment) -> bool {
        self.changed = false;
        self.told.replace(now).is_none()
    }

    /// Others live than before.
    pub(crate) fn members_changed(&mut self, cx: &Context, members: &Membership, ownership: &Ownership) {
        self.roll_ups.members_changed(members.live().to_vec(), |owner| ownership.register().count(owner) > 0, cx.now.moment);
    }

    /// Our last roll-up if it is recent.
    pub(crate) fn recent(&self, cx: &Context) -> Option<RollUp> {
        self.recent_one(cx).cloned()
    }

    fn recent_one(&self, cx: &Context) -> Option<&RollUp> {
        let (roll_up, at) = self.roll_ups.of(&cx.me)?;
        (cx.now.moment.since(at) < ROLL_UP_EVERY).then_some(roll_up)
    }

    /// A member knows this version of our totals. If it is later than ours, another process with our key told it: ours becomes a later one, or
    /// nobody would take it in. A member that lies gets us ahead by a day each time, of which there are enough.
    pub(crate) fn is_known_as(&mut self, version: u64) {
        if version > self.version {
            self.version = version.min(self.version.saturating_add(MAX_AHEAD));
        }
    }

    /// Members that are to be asked now whether their roll-ups hold, or for those that did not arrive: gossip may be lost.
    pub(crate) fn overdue(&mut self, cx: &Context, members: &Membership, ownership: &Ownership) -> Vec<AccessPoint> {
        let now = cx.now.moment;
        if now < self.ask_due {
            return Vec::new();
        }
        self.ask_due = now.after(ASK_EVERY);
        self.asked.retain(|_, at| now.since(*at) < ASK_AGAIN);
        let live = members.live();
        let mut overdue = self.roll_ups.overdue(cx.me, live, |owner| ownership.register().digest_of(owner), now);
        overdue.extend(self.untold(cx, live));
        let mut seen = BTreeSet::new();
        overdue.retain(|member| !self.asked.contains_key(member) && seen.insert(*member));
        overdue.truncate(ASKED_AT_ONCE);
        overdue
    }

    /// Those of these members, which are asked something now anyway, that are asked with it whether their roll-ups hold. Who does not know our
    /// present one is told it when it is asked alone: it does not fit into the rest of a packet, and a swarm that crawls has a new one all the time.
    pub(crate) fn asked_along(&self, cx: &Context, members: &Membership, asked: Vec<AccessPoint>) -> Vec<AccessPoint> {
        let live = members.live();
        let knows_ours = |member: &AccessPoint| self.known_there.get(member).is_some_and(|known| *known == self.version);
        let is_wanted = |member: &AccessPoint| {
            knows_ours(member) && !self.asked.contains_key(member) && self.roll_ups.is_asked_along(member, live.len(), cx.now.moment)
        };
        asked.into_iter().filter(|member| is_wanted(member) && live.contains(member)).collect()
    }

    /// Members that do not know our sums, although these will hardly change soon.
    fn untold(&self, cx: &Context, live: &[AccessPoint]) -> Vec<AccessPoint> {
        let (version, since) = self.sums;
        let under_way = self.roll_ups.of(&cx.me).is_none_or(|(mine, _)| mine.summary.total.unfinished > 0);
        if under_way || cx.now.moment.since(since) < SETTLED_AFTER {
            return Vec::new();
        }
        let knows = |member: &AccessPoint| self.known_there.get(member).is_some_and(|known| *known >= version);
        live.iter().filter(|member| **member != cx.me && !knows(member)).copied().collect()
    }

    /// A member knows our roll-up of this version.
    pub(crate) fn knows(&mut self, who: AccessPoint, version: u64) {
        self.known_there.insert(who, version);
    }

    /// Asks them. `mine` is our own roll-up as it is now: they need not ask whether it holds.
    pub(crate) fn ask_whether_they_hold(&mut self, cx: &mut Context, members: Vec<AccessPoint>, mine: Option<&RollUp>) {
        let version = mine.map_or(0, |mine| mine.version);
        for member in members {
            let yours = self.roll_ups.of(&member).map_or(0, |(known, _)| known.version);
            self.asked.insert(member, cx.now.moment);
            let news = mine.filter(|mine| self.known_there.get(&member) != Some(&mine.version)).cloned();
            let told = news.as_ref().map_or_else(|| self.known_there.get(&member).copied().unwrap_or(0), |news| news.version);
            let request = match news {
                Some(news) => Request::ExchangeTotals(Box::new(news), yours),
                None => Request::CompareTotals { mine: version, yours },
            };
            cx.ask(member, Pending::Totals { mine: told, yours }, request);
        }
    }

    /// The sums over our own sites as they are now.
    pub(crate) fn own_summary(&mut self, cx: &Context, crawl: &Crawl) -> Summary {
        self.enter_dirty(cx, crawl);
        let mut summary = self.tally.summary().clone();
        summary.settle();
        summary
    }

    /// Our own sums by two dimensions as they are now, with their largest cells.
    pub(crate) fn own_table(&mut self, cx: &Context, crawl: &Crawl, by: Pair) -> CrossTable {
        self.enter_dirty(cx, crawl);
        self.tally.cross(by).cut()
    }

    /// Asks all members for their parts of a table, unless that has just been done. `own`: ours.
    pub(crate) fn gather(&mut self, cx: &mut Context, members: &Membership, own: CrossTable) {
        let by = own.by;
        for member in self.roll_ups.cross_tables.want(by, (cx.me, own), members.live(), cx.now.moment) {
            cx.ask(member, Pending::CrossTotals(by), Request::CrossTotals(by.0, by.1));
        }
    }

    /// A member told its part of a table, or did not. Whether it was the last one: then the table is to be compared with the totals.
    pub(crate) fn cross_totals_came(&mut self, from: AccessPoint, by: Pair, table: Option<CrossTable>) -> bool {
        self.roll_ups.cross_tables.came(from, by, table)
    }

    /// All members that will have told their parts of a table: if it adds up to these totals it answers until the next one does.
    pub(crate) fn compare_table(&mut self, by: Pair, results: &SwarmResults) {
        self.roll_ups.cross_tables.settle(by, &results.summary.total);
    }

    /// The last table that was whole, if it may still answer, and how old it is.
    pub(crate) fn last_whole_table(&self, cx: &Context, by: Pair) -> Option<(&CrossTable, Millis)> {
        self.roll_ups.cross_tables.last_whole(by, cx.now.moment)
    }

    /// Whether one more table may be made for another member now.
    pub(crate) fn may_make_table(&mut self, now: Moment) -> bool {
        self.roll_ups.cross_tables.may_make(now)
    }

    /// What members told of a table so far, put together, and whether some still have to.
    pub(crate) fn cross_table(&self, by: Pair) -> (CrossTable, bool) {
        (self.roll_ups.cross_tables.table(by), self.roll_ups.cross_tables.is_gathering(by))
    }

    /// Our own distinct sets, as they are now or were a second ago.
    pub(crate) fn own_sets(&mut self, cx: &Context, crawl: &Crawl) -> (Arc<DistinctSets>, u64) {
        self.roll_ups.distinct.own(crawl.sites().len(), cx.now.moment, || sets_of(cx, crawl))
    }

    /// Asks all members for their distinct sets, unless that has just been done.
    pub(crate) fn gather_sets(&mut self, cx: &mut Context, members: &Membership, crawl: &Crawl) {
        let own = self.own_sets(cx, crawl);
        for (member, known) in self.roll_ups.distinct.want(cx.me, own, members.live(), cx.now.moment) {
            cx.ask(member, Pending::Distinct, Request::Distinct(known));
        }
    }

    /// A member told its distinct sets, said that they are still the same, or did not answer. Whether it was the last one: then the sets are
    /// to be compared with the totals.
    pub(crate) fn sets_came(&mut self, from: AccessPoint, answer: Option<Option<DistinctSets>>) -> bool {
        self.roll_ups.distinct.came(from, answer)
    }

    /// Whether no member is waited for that was asked for its distinct sets.
    pub(crate) fn has_all_sets(&self) -> bool {
        self.roll_ups.distinct.has_come()
    }

    /// All members told their distinct sets that will: the counts are whole if nothing changes hands by these totals.
    pub(crate) fn compare_sets(&mut self, cx: &Context, results: &SwarmResults) {
        self.roll_ups.distinct.settle(cx.me, results.exact.then_some(results.summary.total.servers));
    }

    /// What members told of their distinct sets so far, put together.
    pub(crate) fn distinct(&self, cx: &Context) -> DistinctView {
        self.roll_ups.distinct.view(cx.me, cx.now.moment)
    }

    /// Enters the sites that changed into the tally, and makes estimates anew where hosts changed or are not ours any more: rows tell with
    /// which probability each is in the sample.
    pub(crate) fn enter_dirty(&mut self, cx: &Context, crawl: &Crawl) {
        for host in std::mem::take(&mut self.dirty) {
            if let Some(site) = crawl.site(&host).filter(|site| !site.has_ended()) {
                self.tally.enter(&site.published(), whereabouts(cx, Some(site.address)), place_of(&host, &cx.secret));
            }
        }
        self.tally.estimate();
    }

    /// The probability with which a host is in the sample that estimates rest on, since [`Report::enter_dirty`]; none if it is not.
    pub(super) fn inclusion_probability(&self, host: &Host) -> Option<f64> {
        self.tally.inclusion_probability(host)
    }

    /// What the swarm knows so far, as far as we know.
    pub(crate) fn results(&self, cx: &Context, members: &Membership, ownership: &Ownership) -> SwarmResults {
        let owners = ownership.register().owners().map(|owner| (owner, ownership.register().digest_of(&owner))).collect();
        let mut results = self.roll_ups.results(cx.me, &owners, members.live(), cx.now.moment);
        // Without a lease others may have gone on with what is ours; with another map we do not know whose totals to wait for.
        let unsure = if let Some(why) = members.no_lease(cx.now.moment) {
            Some(format!("this access point holds no lease: {why}"))
        } else if !ownership.is_synced() {
            Some("this access point has not compared its map with another member's yet".to_owned())
        } else if ownership.register().released() > 0 {
            Some(format!("{} subnets change hands", ownership.register().released()))
        } else {
            self.is_changing().then(|| "this access point's own totals are changing".to_owned())
        };
        if let Some(why) = unsure {
            results.exact = false;
            results.in_transition_text = Some(results.in_transition_text.map_or(why.clone(), |others| format!("{why}; {others}")));
        }
        results
    }
}

/// The distinct sets of our servers' records.
fn sets_of(cx: &Context, crawl: &Crawl) -> DistinctSets {
    let mut sets = DistinctSets::default();
    for site in crawl.sites().all().filter(|site| !site.has_ended()) {
        let host = &site.key.host;
        sets.servers += 1;
        sets.addresses.insert(cx.secret.of(&site.address.to_canonical().to_string()));
        sets.domains.insert(cx.secret.of(host.registrable().unwrap_or(host.as_str())));
        match site.named_hosts() {
            Some(named) => {
                sets.external_hosts.merge(&named.hosts);
                sets.external_domains.merge(&named.domains);
            }
            None => sets.unknown += 1,
        }
    }
    sets
}

/// Where a site with this address stands in the world.
pub(super) fn whereabouts(cx: &Context, address: Option<IpAddr>) -> Whereabouts {
    let position = address.and_then(|address| cx.hierarchy.locate(address));
    let Some(position) = position else {
        return Whereabouts { country: "ZZ".into(), registry: "unregistered".into(), organisation: "unregistered".into() };
    };
    let organisation = cx.hierarchy.organisation(position);
    Whereabouts {
        country: cx.hierarchy.country(position).to_owned(),
        registry: cx.hierarchy.registry(position).to_owned(),
        organisation: cx.hierarchy.organisation_name(organisation).to_owned(),
    }
}

/// Whether an access point is no member and owns nothing.
fn gone(members: &Membership, ownership: &Ownership) -> impl Fn(&AccessPoint) -> bool {
    move |member| ownership.register().count(member) == 0 && !members.live().contains(member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::site::Site;
    use nearcrawl_model::{
        ids::SiteNumber,
        journal::JournalKey,
        record::{ServerRecord, ServerStatus},
        time::WallTime,
    };

    #[test]
    fn the_first_roll_up_is_told_to_all_and_nothing_else_is() {
        let mut report = Report::new(Moment(0));
        assert_eq!([0, 1, 2].map(|now| report.tells(Moment(now))), [true, false, false]);
        report.site_changed("a.ke".parse().unwrap());
        assert!(!report.is_due(Moment(60_000)), "sums are asked for");
    }

    #[test]
    fn totals_become_later_than_those_that_another_process_with_the_same_key_told() {
        let mut report = Report::new(Moment(0));
        report.version = 1_000;
        report.is_known_as(900);
        assert_eq!(report.version, 1_000);
        report.is_known_as(5_000);
        assert_eq!(report.version, 5_000);
        report.is_known_as(u64::MAX);
        assert_eq!(report.version, 5_000 + MAX_AHEAD, "one that lies uses up no versions");
    }

    #[test]
    fn what_others_wait_for_is_told_within_a_second_in_small_swarms_and_within_three_in_any() {
        for (members, wait) in [(2, 1_000), (12, 3_000), (1_000, 3_000)] {
            let mut report = Report::new(Moment(0));
            report.count_members(members);
            assert!(report.tells(Moment(0)));
            report.mark_changed();
            assert_eq!((report.is_due(Moment(wait - 1)), report.is_due(Moment(wait))), (false, true));
        }
    }

    /// A host of one address, with its number as its place in line.
    fn host(number: u64, is_visited: bool) -> (ServerRecord, u64) {
        let (host, address): (Host, _) = (format!("h{number}.ke").parse().unwrap(), "9.0.0.1".parse().unwrap());
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.clone(), run: 1 };
        let record = Site::open(key, address, host, SiteNumber(1), WallTime(0)).record;
        let status = if is_visited { ServerStatus::Up } else { ServerStatus::Waiting };
        (ServerRecord { status, known: 1, waiting: 1, ..record }, number)
    }

    #[test]
    fn estimates_are_made_anew_when_a_host_is_not_ours_any_more() {
        let cx = Context::of_test(1);
        let (mut report, crawl) = (Report::new(Moment(0)), Crawl::new(&cx.settings, 0));
        for number in 0..100 {
            let (record, place) = host(number, number < 50);
            report.tally.enter(&record, Whereabouts::default(), place);
        }
        report.enter_dirty(&cx, &crawl);
        let probability = |report: &Report, number: u64| report.inclusion_probability(&host(number, true).0.host);
        assert_eq!((probability(&report, 7), probability(&report, 70)), (Some(0.5), None));
        report.forget_site(&host(0, true).0.host);
        report.enter_dirty(&cx, &crawl);
        assert_eq!((probability(&report, 7), probability(&report, 70)), (Some(49.0 / 99.0), None));
    }

    #[test]
    fn sums_that_were_entered_for_rows_are_still_to_be_told() {
        let cx = Context::of_test(1);
        let mut report = Report::new(Moment(0));
        assert!(!report.is_stale(&cx));
        let (record, place) = host(1, true);
        report.tally.enter(&record, Whereabouts::default(), place);
        assert!(report.is_stale(&cx), "the last roll-up says less");
        report.tally.mark_told();
        assert!(!report.is_stale(&cx));
    }
}
