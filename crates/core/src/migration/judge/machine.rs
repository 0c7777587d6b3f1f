//! State machine that watches our subnets: how their accesses are judged, and what their relatives tell of them.

use super::{Access, Rule, Watched, load::Loads};
use crate::{
    context::Context,
    migration::{
        Case, Families, LoadPrice, ShedCandidate,
        handover::{Proposal, Surroundings},
        twoma,
    },
};
use nearcrawl_hierarchy::{Hierarchy, OrganisationId};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::FetchReport,
    ownership_history::OwnershipHistory,
    subnet::Subnet,
    time::Millis,
    view::{EventKind, EventView},
};
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

/// What follows from a judgement where owners are drawn.
const STAYS: &str = "it stays, because owners are drawn (delegation.policy = \"random\")";

/// What is known of the speed of our subnets.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    watched: BTreeMap<Subnet, Watched>,
    families: Families<Family>,
    arm: twoma::Arm<Subnet>,
}

/// Whose relatives a subnet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Holder(OrganisationId),
    Country([u8; 2]),
}

impl Judge {
    /// A request to a server of ours ended: it counts towards the subnet's present access. `price` is our own.
    pub(crate) fn time_access(
        &mut self,
        cx: &mut Context,
        around: &Surroundings<'_>,
        price: LoadPrice,
        subnet: Subnet,
        report: &FetchReport,
    ) -> Option<Proposal> {
        let settings = cx.settings.migration;
        if settings.rule == Rule::None || around.membership.standings().is_empty() {
            return None;
        }
        let watched = self.watched.entry(subnet).or_insert_with(|| Watched::new(cx.now.moment, settings.states, None));
        let complete = watched.add(cx.now, report) >= settings.requests_per_access;
        if complete { self.judge_access(cx, around, price, subnet) } else { None }
    }

    /// A tree of a subnet of ours is done for this time: what was measured until now is an access, unless it is next to nothing.
    pub(crate) fn end_access(&mut self, cx: &mut Context, around: &Surroundings<'_>, price: LoadPrice, subnet: Subnet) -> Option<Proposal> {
        let measured = self.watched.get(&subnet).map_or(0, Watched::requests);
        let enough = measured >= cx.settings.migration.requests_per_access.div_ceil(4);
        if enough { self.judge_access(cx, around, price, subnet) } else { None }
    }

    fn judge_access(&mut self, cx: &mut Context, around: &Surroundings<'_>, price: LoadPrice, subnet: Subnet) -> Option<Proposal> {
        let access = self.watched.get_mut(&subnet)?.end_access()?;
        cx.counters.accesses_judged += 1;
        let proposal = match cx.settings.migration.rule {
            Rule::None => None,
            Rule::Twoma => self.judge_by_the_paper(cx, around, subnet, &access),
            Rule::Nearcrawl => self.judge_by_case(cx, around, price, subnet, &access),
        };
        if let Some(event) = self.told(cx, subnet, &access, proposal.as_ref()) {
            cx.events.judged(event);
        }
        // A subnet whose owner was drawn stays there: only a load moves it.
        proposal.filter(|_| cx.settings.policy.seeks_the_nearest())
    }

    /// What is told of a judgement.
    fn told(&self, cx: &Context, subnet: Subnet, access: &Access, proposal: Option<&Proposal>) -> Option<EventView> {
        let begun = access.begun()?;
        let (outcome, rival) = self.watched.get(&subnet)?.outcome();
        Some(EventView {
            kind: EventKind::Judgement,
            begun_at: begun.wall,
            duration_ms: cx.now.moment.since(begun.moment),
            subnet,
            outcome,
            from: Some(cx.me),
            to: proposal.map(|proposal| proposal.to).or(rival).unwrap_or(cx.me),
            probes: None,
            policy: Some(cx.settings.migration.rule.name().to_owned()),
            reason_text: self.last_judgement(cx, &subnet),
            requests: Some(access.requests),
            took_ms: Some((access.took_us / 1_000.0).round() as Millis),
        })
    }

    /// The paper's rule: against the average of what is ours, and from the boundary to any member (TW-10..TW-14).
    fn judge_by_the_paper(&mut self, cx: &Context, around: &Surroundings<'_>, subnet: Subnet, access: &Access) -> Option<Proposal> {
        let took_us = access.took_us;
        self.arm.note(subnet, took_us);
        let (answer, average_us) = (self.arm.answer(&subnet), self.arm.average().unwrap_or(took_us));
        let why = self.watched.get_mut(&subnet)?.judge_by_the_paper(answer, took_us, average_us)?;
        let to = twoma::elsewhere(cx.me, around.membership.live(), &mut chance_of(cx, &subnet))?;
        Some(Proposal { subnet, to, why })
    }

    /// Ours: against what the subnet would take at the nearest others.
    fn judge_by_case(
        &mut self,
        cx: &mut Context,
        around: &Surroundings<'_>,
        price: LoadPrice,
        subnet: Subnet,
        access: &Access,
    ) -> Option<Proposal> {
        let family = family_of(&cx.hierarchy, &subnet);
        let scale = self.families.expected_scale(&family);
        let watched = self.watched.get_mut(&subnet)?;
        let candidates = watched.candidates(cx, around, price, subnet, access);
        let moves = watched.judge_by_case((cx.now.moment, cx.me), access, &candidates, &scale, &mut chance_of(cx, &subnet));
        if let Some((level, noise)) = watched.level_and_noise(&candidates, &scale) {
            self.families.tell(&family, level, noise);
        }
        moves.map(|(to, why)| Proposal { subnet, to, why })
    }

    /// What our subnets took since the load was looked at, of those that could go.
    pub(crate) fn shed_candidates(&mut self, loads: &Loads) -> Vec<ShedCandidate<Subnet, AccessPoint>> {
        let spent = self.watched.iter_mut().map(|(subnet, watched)| (*subnet, watched.take_spent()));
        spent.filter_map(|(subnet, (spent_us, judged))| loads.candidate(subnet, spent_us, &judged?)).collect()
    }

    /// What a subnet of ours learnt, to travel with it; empty if nothing.
    pub(crate) fn learnt_of(&self, subnet: &Subnet) -> Vec<u8> {
        self.watched.get(subnet).map(Watched::learnt).unwrap_or_default()
    }

    /// What was learnt of a subnet that has just become ours, or is ours again after a restart.
    pub(crate) fn learn(&mut self, cx: &Context, subnet: Subnet, history: &OwnershipHistory) {
        if let Ok(mut case) = postcard::from_bytes::<Case<AccessPoint>>(&history.learnt) {
            if history.holdings.last().is_none_or(|last| last.owner != cx.me) {
                case.moved();
            }
            self.watched.insert(subnet, Watched::new(cx.now.moment, cx.settings.migration.states, Some(case)));
        }
    }

    /// The member that we wanted to have a subnet would not, or could not.
    pub(crate) fn refused(&mut self, subnet: &Subnet, by: AccessPoint) {
        if let Some(watched) = self.watched.get_mut(subnet) {
            watched.refused_by(by);
        }
    }

    /// A subnet is not ours any more.
    pub(crate) fn forget(&mut self, subnet: &Subnet) {
        self.watched.remove(subnet);
        self.arm.forget(subnet);
    }

    /// How a subnet of ours was judged last, in a sentence.
    pub(crate) fn last_judgement(&self, cx: &Context, subnet: &Subnet) -> Option<String> {
        let said = self.watched.get(subnet)?.last_judgement(cx.settings.migration.rule == Rule::Twoma)?;
        Some(if cx.settings.policy.seeks_the_nearest() { said } else { format!("{said}; {STAYS}") })
    }
}

/// The families of a subnet, the smallest first.
fn family_of(hierarchy: &Hierarchy, subnet: &Subnet) -> Vec<Family> {
    let Some(position) = hierarchy.locate(subnet.first()) else { return Vec::new() };
    let country = hierarchy.country(position).as_bytes().try_into().ok().map(Family::Country);
    std::iter::once(Family::Holder(hierarchy.organisation(position))).chain(country).collect()
}

/// Chance that is the same whenever the same happens.
fn chance_of(cx: &Context, subnet: &Subnet) -> StdRng {
    let text = format!("{subnet} {} {}", cx.me, cx.counters.requests);
    StdRng::seed_from_u64(cx.secret.of(&text).0)
}
