//! The sums over our own sites and the roll-ups of every member: entered when a site changes, told when they are due.

use super::tally::{RollUps, Tally, Whereabouts};
use crate::{context::Context, crawl::Crawl, membership::Membership, ownership::Ownership, pending::Pending};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::Request,
    replica::NamedReplica,
    summary::{RollUp, Summary, SwarmResults},
    time::{Millis, Moment},
    url::Host,
};
use std::collections::BTreeSet;

/// A roll-up is told at most this often.
const ROLL_UP_EVERY: Millis = 1_000;

/// One that others wait for, because what we own or who keeps it has changed, is told after so long for each member, so that what a member
/// hears of all the others does not grow with their number; but after [`CHANGED_AT_LEAST`] at the latest.
const CHANGED_EVERY_PER_MEMBER: Millis = 250;
const CHANGED_AT_LEAST: Millis = 3_000;

/// The same of one whose sums go on changing; after [`ROLL_UP_AGAIN`] at the latest.
const SUMS_EVERY_PER_MEMBER: Millis = 1_250;

/// Sums that have not changed for so long for each member are told: the crawl has come to an end, or pauses. At least and at most so long.
const SETTLED_PER_MEMBER: Millis = 1_000;
const SETTLED: (Millis, Millis) = (2_000, 10_000);

/// An unchanged roll-up is told again after so long, well before it is too old for totals to be exact.
const ROLL_UP_AGAIN: Millis = 15_000;

/// Members whose roll-ups are missing are asked for them this often, so many of them at once.
const ASK_EVERY: Millis = 5_000;
const ASKED_AT_ONCE: usize = 16;

/// What a roll-up says besides sums.
pub(crate) struct BesidesSums {
    /// Our load and price, in thousandths.
    pub(crate) load: (u32, u32),
    /// False while the history of something that we hold is still being read, or others may hold it: then sums must not be taken for exact.
    pub(crate) complete: bool,
    /// Who keeps replicas of what we hold.
    pub(crate) replicas: Vec<NamedReplica>,
}

/// The sums over our sites, and those that others tell.
pub(crate) struct Report {
    tally: Tally,
    /// Sites whose records changed since they were entered into the tally.
    dirty: BTreeSet<Host>,
    roll_ups: RollUps,
    /// When the last roll-up was told.
    told: Option<Moment>,
    /// When a site's record changed last.
    sums_changed: Moment,
    /// Whether one changed since the last roll-up was told.
    untold: bool,
    /// When members whose roll-ups are missing are asked next.
    ask_due: Moment,
    version: u64,
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
            told: None,
            sums_changed: now,
            untold: false,
            ask_due: now.after(ASK_EVERY),
            version: 0,
            changed: true,
            sure_of: 1,
        }
    }

    /// What the roll-up says has changed.
    pub(crate) fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// A site's record changed, or where it stands.
    pub(crate) fn site_changed(&mut self, now: Moment, host: Host) {
        self.sums_changed = now;
        self.untold = true;
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

    /// Notes another member's roll-up.
    pub(crate) fn hear(&mut self, cx: &mut Context, roll_up: RollUp) {
        if self.roll_ups.has_room_for(&roll_up.owner) {
            self.roll_ups.hear(roll_up, cx.now.moment);
        } else {
            cx.refuse("totals of members beyond the limit");
        }
    }

    /// How many access points' roll-ups are kept, our own included.
    pub(crate) fn roll_ups(&self) -> usize {
        self.roll_ups.len()
    }

    /// A member's last roll-up and when it came.
    pub(crate) fn roll_up_of(&self, owner: &AccessPoint) -> Option<(&RollUp, Moment)> {
        self.roll_ups.of(owner)
    }

    /// For how long a member has told its totals.
    pub(crate) fn told_for(&self, owner: &AccessPoint) -> Millis {
        self.roll_ups.told_for(owner)
    }

    /// Whether our own sums are to be put together anew, for those who ask us.
    pub(crate) fn is_stale(&self, cx: &Context) -> bool {
        !self.dirty.is_empty() && self.recent(cx).is_none()
    }

    /// Whether the roll-up is to be told now.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        let Some(told) = self.told else { return true };
        let members = self.sure_of as u64;
        let settled = now.since(self.sums_changed) >= (members * SETTLED_PER_MEMBER).clamp(SETTLED.0, SETTLED.1);
        let wait = match (self.changed, self.untold) {
            (true, _) => (members * CHANGED_EVERY_PER_MEMBER).clamp(ROLL_UP_EVERY, CHANGED_AT_LEAST),
            (false, true) if settled => ROLL_UP_EVERY,
            (false, true) => (members * SUMS_EVERY_PER_MEMBER).clamp(ROLL_UP_EVERY, ROLL_UP_AGAIN),
            (false, false) => ROLL_UP_AGAIN,
        };
        now.since(told) >= wait
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
        let BesidesSums { load: (busy_permille, price_permille), complete, replicas } = more;
        self.enter_dirty(cx, crawl);
        // Wall time keeps versions growing across restarts; the clock jumping back only costs the difference in silence.
        self.version = (self.version + 1).max(cx.now.wall.0);
        let digest = ownership.register().digest_of(&cx.me);
        let roll_up = RollUp {
            owner: cx.me,
            version: self.version,
            claims_digest: if complete { digest } else { !digest },
            subnets: ownership.register().count(&cx.me) as u64,
            sure_of: self.sure_of as u32,
            busy_permille,
            price_permille,
            replicas,
            summary: self.tally.small_summary(),
        };
        self.roll_ups.hear(roll_up.clone(), cx.now.moment);
        let live = members.live();
        self.roll_ups.retain(|owner| live.contains(owner) || ownership.register().count(owner) > 0);
        roll_up
    }

    /// The last roll-up was told to all.
    pub(crate) fn told(&mut self, now: Moment) {
        self.changed = false;
        self.untold = !self.dirty.is_empty();
        self.told = Some(now);
    }

    /// Our last roll-up if it is recent.
    pub(crate) fn recent(&self, cx: &Context) -> Option<RollUp> {
        let (roll_up, at) = self.roll_ups.of(&cx.me)?;
        (cx.now.moment.since(at) < ROLL_UP_EVERY).then(|| roll_up.clone())
    }

    /// Asks members whose roll-ups did not arrive for a while: gossip may be lost.
    pub(crate) fn ask_silent(&mut self, cx: &mut Context, members: &Membership) {
        if cx.now.moment < self.ask_due {
            return;
        }
        self.ask_due = cx.now.moment.after(ASK_EVERY);
        for member in self.roll_ups.overdue(cx.me, &members.live(), cx.now.moment, ASKED_AT_ONCE) {
            cx.ask(member, Pending::Totals, Request::Totals);
        }
    }

    /// The sums over our own sites as they are now.
    pub(crate) fn own_summary(&mut self, cx: &Context, crawl: &Crawl) -> Summary {
        self.enter_dirty(cx, crawl);
        self.tally.summary().clone()
    }

    /// Enters the sites that changed into the tally.
    fn enter_dirty(&mut self, cx: &Context, crawl: &Crawl) {
        for host in std::mem::take(&mut self.dirty) {
            if let Some(site) = crawl.site(&host) {
                self.tally.enter(&site.record, whereabouts(cx, crawl, &host));
            }
        }
    }

    /// What the swarm knows so far, as far as we know.
    pub(crate) fn results(&self, cx: &Context, members: &Membership, ownership: &Ownership) -> SwarmResults {
        let owners = ownership.register().owners().map(|owner| (owner, ownership.register().digest_of(&owner))).collect();
        let mut results = self.roll_ups.results(cx.me, &owners, &members.live(), cx.now.moment);
        // Without a lease others may have gone on with what is ours; with another map we do not know whose totals to wait for.
        let unsure = if let Some(why) = members.no_lease(cx.now.moment) {
            Some(format!("this access point holds no lease: {why}"))
        } else if !ownership.is_synced() {
            Some("this access point has not compared its map with another member's yet".to_owned())
        } else if ownership.register().released() > 0 {
            Some(format!("{} subnets change hands", ownership.register().released()))
        } else {
            (!self.dirty.is_empty()).then(|| "this access point's own totals are changing".to_owned())
        };
        if let Some(why) = unsure {
            results.exact = false;
            results.in_transition_text = Some(results.in_transition_text.map_or(why.clone(), |others| format!("{why}; {others}")));
        }
        results
    }
}

/// Where one of our sites stands in the world.
fn whereabouts(cx: &Context, crawl: &Crawl, host: &Host) -> Whereabouts {
    let position = crawl.site(host).and_then(|site| cx.hierarchy.locate(site.address));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// When a roll-up is told within a minute by one of so many members whose sites change until then.
    fn told(members: usize, changes_until: u64) -> Vec<u64> {
        let mut report = Report::new(Moment(0));
        report.count_members(members);
        let mut told = Vec::new();
        for at in (0..60_000).step_by(100) {
            if at < changes_until {
                report.site_changed(Moment(at), "a.ke".parse().unwrap());
            }
            if report.is_due(Moment(at)) {
                report.dirty.clear();
                report.told(Moment(at));
                told.push(at);
            }
        }
        told
    }

    #[test]
    fn sums_that_go_on_changing_are_told_more_rarely_in_a_larger_swarm_and_settled_ones_soon() {
        assert_eq!(told(2, 6_000), [0, 2_500, 5_000, 7_500, 22_500, 37_500, 52_500]);
        assert_eq!(told(100, 20_000), [0, 15_000, 29_900, 44_900, 59_900]);
    }

    #[test]
    fn what_others_wait_for_is_told_within_a_second_in_small_swarms_and_within_three_in_any() {
        for (members, wait) in [(2, 1_000), (12, 3_000), (1_000, 3_000)] {
            let mut report = Report::new(Moment(0));
            report.count_members(members);
            report.told(Moment(0));
            report.mark_changed();
            assert_eq!((report.is_due(Moment(wait - 1)), report.is_due(Moment(wait))), (false, true));
        }
    }
}
