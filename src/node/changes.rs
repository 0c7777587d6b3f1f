//! Changes since the daemon looked at itself last, as lines for its log.
//!
//! They are about members that came, fell silent, died or left, subnets that came and went, and what it is doing.

use nearcrawl_core::{crawler::Crawler, membership::Parting, report::View};
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::Rest,
    time::Moment,
    view::{Activity, EventKind, EventOutcome, EventView, Liveness, MemberView, Span, State, counted},
};
use std::{
    collections::BTreeMap,
    mem::Discriminant,
    time::{Duration, Instant},
};

/// Lines of one kind at one look; more are counted.
const MAX_LINES: usize = 20;

/// What it is doing is told at most so often: a crawl of a few pages begins and ends all the time.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What was seen at the last look.
#[derive(Debug, Default)]
pub struct Changes {
    members: BTreeMap<AccessPoint, Liveness>,
    owned: Option<u64>,
    /// How many delegations and hand-overs had ended.
    events: u64,
    doing: Option<(State, Option<Discriminant<Rest>>, Instant)>,
    alone: bool,
}

impl Changes {
    /// Looks, and says what has changed.
    pub fn look(&mut self, crawler: &Crawler, now: Instant) -> Vec<String> {
        let view = crawler.view();
        let mut lines = self.of_members(&view, crawler.parted());
        let ended = view.events_ended();
        let new = usize::try_from(ended.saturating_sub(self.events)).unwrap_or(usize::MAX);
        if new > 0 {
            let latest = view.latest_ended(new);
            let moves = latest.iter().filter(|event| event.kind == EventKind::Move);
            lines.extend(at_most(moves.map(told).collect(), "hand-over"));
            self.events = ended;
        }
        let owned = view.subnets_held() as u64;
        if let Some(before) = self.owned.replace(owned).filter(|before| *before != owned) {
            lines.push(format!("owns {} now, {before} before", counted(owned, "subnet")));
        }
        lines.extend(self.of_state(&view, now));
        let alone = view.alone();
        let is_news = !std::mem::replace(&mut self.alone, alone.is_some());
        lines.extend(alone.filter(|_| is_news));
        lines
    }

    fn of_members(&mut self, view: &View<'_>, parted: &BTreeMap<AccessPoint, (Parting, Moment)>) -> Vec<String> {
        let members = view.members().into_iter().filter(|member| !member.is_me);
        let how = |member: &AccessPoint| parted.get(member).map(|(how, _)| *how);
        let stands = |member: &MemberView| match (member.liveness, how(&member.access_point)) {
            (Liveness::Dead, Some(Parting::Left | Parting::Excluded)) => Liveness::Left,
            (liveness, _) => liveness,
        };
        let members: BTreeMap<_, _> = members.map(|member| (member.access_point, (stands(&member), member.subnets))).collect();
        let mut lines = Vec::new();
        for (member, (liveness, subnets)) in &members {
            let who = member.short();
            lines.extend(match (self.members.get(member), liveness) {
                (None, Liveness::Alive) => Some(format!("{who} is a member now")),
                (Some(Liveness::Silent | Liveness::Dead), Liveness::Alive) => Some(format!("{who} answers again")),
                (Some(Liveness::Left), Liveness::Alive) => Some(format!("{who} is a member again")),
                (Some(Liveness::Alive), Liveness::Silent) => {
                    Some(format!("{who} is silent{}", its(*subnets, "waits for it", "wait for it")))
                }
                (Some(Liveness::Alive | Liveness::Silent), Liveness::Dead | Liveness::Left) => {
                    let taken = its(*subnets, "is taken over by another member", "are taken over by the others");
                    Some(format!("{}{taken}", gone(&who, how(member).or(Some(Parting::Dead)))))
                }
                _ => None,
            });
        }
        let were = self
            .members
            .iter()
            .filter(|(member, liveness)| matches!(liveness, Liveness::Alive | Liveness::Silent) && !members.contains_key(member));
        lines.extend(were.map(|(member, _)| gone(&member.short(), how(member))));
        self.members = members.into_iter().map(|(member, (liveness, _))| (member, liveness)).collect();
        at_most(lines, "change of members")
    }

    fn of_state(&mut self, view: &View<'_>, now: Instant) -> Option<String> {
        let doing = view.activity();
        // Between requests there are pauses: that is no change.
        let state = if doing.state() == State::Waiting { State::Fetching } else { doing.state() };
        let rest = if let Activity::Resting(rest) = &doing { Some(std::mem::discriminant(rest)) } else { None };
        match self.doing {
            Some((known, why, _)) if known == state && why == rest => None,
            Some((.., since)) if now.duration_since(since) < TOLD_EVERY && matches!(state, State::Fetching | State::Idle) => None,
            _ => {
                self.doing = Some((state, rest, now));
                Some(doing.to_string())
            }
        }
    }
}

/// That a member is none any more, and how it parted.
fn gone(who: &str, how: Option<Parting>) -> String {
    match how {
        Some(Parting::Left) => format!("{who} has left the swarm"),
        Some(Parting::Excluded) => format!("{who} is not admitted as a member any more"),
        Some(Parting::Dead) => format!("{who} is dead: it did not answer for too long"),
        None => format!("{who} is no member any more"),
    }
}

/// What comes of its subnets, if it has any.
fn its(subnets: u64, of_one: &str, of_several: &str) -> String {
    match subnets {
        0 => String::new(),
        1 => format!("; its 1 subnet {of_one}"),
        _ => format!("; its {subnets} subnets {of_several}"),
    }
}

fn told(event: &EventView) -> String {
    let (subnet, to, took) = (event.subnet, event.to.short(), Span(event.duration_ms));
    let why = event.reason_text.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    match event.outcome {
        EventOutcome::CalledOff => format!("{subnet} stays here; its hand-over to {to} was called off after {took}{why}"),
        EventOutcome::Owned | EventOutcome::Released => format!("{subnet} was handed over to {to} within {took}{why}"),
        EventOutcome::Rewarded | EventOutcome::Penalised | EventOutcome::Undecided | EventOutcome::ToMove => {
            format!("{subnet} was judged within {took}{why}")
        }
    }
}

/// The first of many lines, and how many more there are.
fn at_most(mut lines: Vec<String>, what: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_LINES);
    if more > 0 {
        lines.truncate(MAX_LINES);
        lines.push(format!("{} more", counted(more, what)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_left_and_one_that_died_read_differently_and_one_subnet_is_one() {
        assert_eq!(gone("a", Some(Parting::Left)) + &its(0, "waits", "wait"), "a has left the swarm");
        let dead = gone("a", Some(Parting::Dead)) + &its(1, "is taken over by another member", "are taken over by the others");
        assert_eq!(dead, "a is dead: it did not answer for too long; its 1 subnet is taken over by another member");
        assert_eq!(its(2, "waits", "wait"), "; its 2 subnets wait");
    }

    #[test]
    fn of_many_lines_the_first_are_told_and_the_others_counted() {
        let lines: Vec<String> = (0..MAX_LINES + 3).map(|line| line.to_string()).collect();
        let told = at_most(lines.clone(), "hand-over");
        assert_eq!((told.len(), told[MAX_LINES].as_str()), (MAX_LINES + 1, "3 hand-overs more"));
        assert_eq!(at_most(lines[..MAX_LINES].to_vec(), "hand-over").len(), MAX_LINES);
    }
}
