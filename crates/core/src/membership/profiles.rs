//! Profiles of members: a name and the state of their limits, if their operators chose so.
//!
//! They are kept as they were told, and shown to people. No decision depends on them.

use crate::context::{Context, PAUSE_A_MEMBER, TELL_AGAIN};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::Gossip,
    profile::{Profile, ToldProfile},
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// No two tellings are nearer than this.
const MIN_PAUSE: Millis = 5_000;

/// What was not told again in so many of these times is not shown any more: the member may have stopped telling it.
const TIMES: u64 = 3;

/// Members whose profiles are kept.
const MAX_HEARD: usize = 4_096;

/// What this access point tells, and what others told last.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    mine: Profile,
    heard: BTreeMap<AccessPoint, (ToldProfile, Moment)>,
    changed: bool,
    told: Option<Moment>,
    version: u64,
}

impl Profiles {
    /// What this access point tells from now on.
    pub(super) fn tell(&mut self, mine: Profile) {
        self.changed |= self.mine != mine;
        self.mine = mine;
    }

    /// A member came: it has heard nothing.
    pub(super) fn member_came(&mut self) {
        self.changed = true;
    }

    /// Another member told its own.
    pub(super) fn hear(&mut self, cx: &mut Context, told: ToldProfile) {
        let known = self.heard.get(&told.from).map(|(known, _)| known.version);
        if told.from == cx.me || known.is_some_and(|known| told.version <= known) {
            return;
        }
        if known.is_none() && self.heard.len() >= MAX_HEARD {
            return cx.refuse("profiles of members beyond the limit");
        }
        self.heard.insert(told.from, (told, cx.now.moment));
    }

    /// Tells what is new if it is time, and forgets what was not told for long. Who has nothing to tell says nothing, but that it has stopped.
    pub(super) fn tick(&mut self, cx: &mut Context, live: &[AccessPoint]) {
        let members = live.len() as u64;
        let pause = MIN_PAUSE.max(PAUSE_A_MEMBER * members);
        let again = TELL_AGAIN.max(10 * pause);
        let now = cx.now.moment;
        self.heard.retain(|_, (_, at)| now.since(*at) < TIMES * again);
        let due = |pause: Millis| self.told.is_none_or(|told| now.since(told) >= pause);
        let is_empty = self.mine == Profile::default();
        if members < 2 || is_empty && (self.told.is_none() || !self.changed) || !(self.changed && due(pause) || due(again)) {
            return;
        }
        self.changed = false;
        self.told = if is_empty { None } else { Some(now) };
        // As with roll-ups: wall time keeps versions growing across restarts.
        self.version = (self.version + 1).max(cx.now.wall.0);
        let others: Vec<_> = live.iter().copied().filter(|member| *member != cx.me).collect();
        let told = ToldProfile { from: cx.me, version: self.version, profile: self.mine.clone() };
        cx.tell_all(&others, Gossip::Profile(told));
    }

    /// What this access point tells.
    pub(super) fn mine(&self) -> &Profile {
        &self.mine
    }

    /// What another member told.
    pub(super) fn of(&self, who: &AccessPoint) -> Option<&Profile> {
        self.heard.get(who).map(|(told, _)| &told.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Command, PeerCommand};
    use nearcrawl_model::{
        message::Request,
        profile::{AllowanceState, ToldAllowance},
    };

    const OTHER: AccessPoint = AccessPoint([7; 32]);

    fn named(name: &str) -> Profile {
        Profile { name: Some(name.parse().unwrap()), allowance: None }
    }

    /// What it tells in so many seconds.
    fn told(profiles: &mut Profiles, cx: &mut Context, seconds: u64) -> Vec<ToldProfile> {
        for _ in 0..seconds {
            cx.now.moment = cx.now.moment.after(1_000);
            cx.now.wall.0 += 1_000;
            let live = [cx.me, OTHER];
            profiles.tick(cx, &live);
        }
        let tells = |command| match command {
            Command::Peers(PeerCommand::Ask { request: Request::Tell(gossip), .. }) => match *gossip {
                Gossip::Profile(told) => Some(told),
                _ => None,
            },
            _ => None,
        };
        std::mem::take(&mut cx.commands).into_iter().filter_map(tells).collect()
    }

    #[test]
    fn who_chose_nothing_tells_nothing_and_what_is_taken_back_is_said_once() {
        let (mut cx, mut profiles) = (Context::of_test(1), Profiles::default());
        profiles.member_came();
        assert_eq!(told(&mut profiles, &mut cx, 3_000), []);
        profiles.tell(named("Museum"));
        let said = told(&mut profiles, &mut cx, 700);
        assert_eq!(
            said.iter().map(|told| &told.profile).collect::<Vec<_>>(),
            [&named("Museum"); 2],
            "at once, and again after ten minutes"
        );
        assert!(said[0].version < said[1].version && said[0].from == cx.me);
        profiles.tell(Profile::default());
        assert_eq!(told(&mut profiles, &mut cx, 3_000).len(), 1);
    }

    #[test]
    fn what_changes_often_is_told_rarely_and_newcomers_are_told() {
        let (mut cx, mut profiles) = (Context::of_test(1), Profiles::default());
        let mut said = 0;
        for second in 0..60 {
            let state = if second % 2 == 0 { AllowanceState::Paused } else { AllowanceState::WithinLimits };
            profiles.tell(Profile { name: None, allowance: Some(ToldAllowance { state, used: Vec::new() }) });
            said += told(&mut profiles, &mut cx, 1).len();
        }
        assert!((10..=13).contains(&said), "{said}");
        told(&mut profiles, &mut cx, 10);
        assert_eq!(told(&mut profiles, &mut cx, 30), []);
        profiles.member_came();
        assert_eq!(told(&mut profiles, &mut cx, 5).len(), 1);
    }

    #[test]
    fn the_newest_telling_holds_until_it_is_not_repeated() {
        let (mut cx, mut profiles) = (Context::of_test(1), Profiles::default());
        let telling = |version, name| ToldProfile { from: OTHER, version, profile: named(name) };
        profiles.hear(&mut cx, telling(5, "new"));
        profiles.hear(&mut cx, telling(4, "old"));
        assert_eq!(profiles.of(&OTHER), Some(&named("new")));
        told(&mut profiles, &mut cx, 1_700);
        assert!(profiles.of(&OTHER).is_some());
        told(&mut profiles, &mut cx, 200);
        assert_eq!(profiles.of(&OTHER), None, "after half an hour");
        for number in 0..MAX_HEARD as u64 + 5 {
            let mut key = [9; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            profiles.hear(&mut cx, ToldProfile { from: AccessPoint(key), ..telling(1, "many") });
        }
        assert_eq!((profiles.heard.len(), cx.counters.refused["profiles of members beyond the limit"]), (MAX_HEARD, 5));
    }
}
