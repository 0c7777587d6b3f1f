//! Routes to members that do not answer us directly: the third members through whom they are asked.

use crate::membership::rendezvous;
use nearcrawl_model::{
    access_point::AccessPoint,
    forwarded::Token,
    time::{Millis, Moment},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Members that do not answer directly and are remembered.
pub(crate) const MAX_WAYS: usize = 1_024;

/// Members whose last direct messages are remembered.
const MAX_CONTACTS: usize = 4_096;

/// After a failure a member is asked directly after this time, then after twice as much, and so on up to the second.
const TRY_DIRECTLY: Millis = 2_000;
const MAX_TRY_DIRECTLY: Millis = 60_000;

/// Who answered something within this time is reached: one question got lost, or too many are under way.
const ANSWERED_LATELY: Millis = 3_000;

/// For how long a third member that failed is not taken, if there is another one.
const FAILED_FOR: Millis = 20_000;

/// A member that we had direct messages of within this time probably passes on what we ask.
const IN_TOUCH: Millis = 30_000;

/// A way that nothing goes for so long is forgotten.
const FORGET_AFTER: Millis = 300_000;

/// For how long nothing is forwarded to a member that no third member reached, or that answered none of so many questions; twice as long if
/// that happens again, and so on up to the second. It may be dead, or seem so: SWIM's indirect probes go through few members.
const UNANSWERED: u8 = 2;
const GIVEN_UP_FOR: Millis = 5_000;
const MAX_GIVEN_UP_FOR: Millis = 60_000;

/// What is known of the way to a member that does not answer directly.
#[derive(Debug)]
struct Way {
    /// When something was for it last.
    used: Moment,
    /// When it is asked directly the next time, and how long after that once more.
    due: Moment,
    pause: Millis,
    /// Whether it is being asked directly.
    trying: bool,
    /// The third member through which it answered last.
    via: Option<AccessPoint>,
    /// Third members through which no answer came, and when.
    failed: BTreeMap<AccessPoint, Moment>,
    /// Until when nothing is forwarded to it, and for how long the next time.
    given_up: Moment,
    give_up_for: Millis,
    /// Questions in a row that were given up before they were answered.
    unanswered: u8,
    /// Its last token.
    token: Token,
}

/// When a member last answered us, and when it last said anything, both directly.
#[derive(Clone, Copy, Debug)]
struct Contact {
    answered: Option<Moment>,
    heard: Moment,
}

/// All ways.
#[derive(Debug, Default)]
pub(super) struct Ways {
    ways: BTreeMap<AccessPoint, Way>,
    contacts: BTreeMap<AccessPoint, Contact>,
}

impl Ways {
    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    /// A member said something directly.
    pub(super) fn heard(&mut self, now: Moment, who: AccessPoint) {
        if let Some(contact) = self.contact(now, who) {
            contact.heard = now;
        }
    }

    /// A member answered directly: from now on it is asked directly.
    pub(super) fn answered(&mut self, now: Moment, who: AccessPoint) {
        self.ways.remove(&who);
        if let Some(contact) = self.contact(now, who) {
            (contact.heard, contact.answered) = (now, Some(now));
        }
    }

    fn contact(&mut self, now: Moment, who: AccessPoint) -> Option<&mut Contact> {
        let room = self.contacts.len() < MAX_CONTACTS;
        if !room && !self.contacts.contains_key(&who) {
            return None;
        }
        Some(self.contacts.entry(who).or_insert(Contact { answered: None, heard: now }))
    }

    /// A member did not answer what was asked directly at that time. False if there is no room to remember it.
    pub(super) fn failed(&mut self, now: Moment, to: AccessPoint, asked: Moment) -> bool {
        let answered = self.contacts.get(&to).and_then(|contact| contact.answered);
        let is_reached = answered.is_some_and(|answered| answered > asked || now.since(answered) < ANSWERED_LATELY);
        if is_reached || self.ways.contains_key(&to) {
            return true;
        }
        if self.ways.len() >= MAX_WAYS {
            return false;
        }
        let way = Way {
            used: now,
            due: now.after(TRY_DIRECTLY),
            pause: TRY_DIRECTLY,
            trying: false,
            via: None,
            failed: BTreeMap::new(),
            given_up: Moment(0),
            give_up_for: GIVEN_UP_FOR,
            unanswered: 0,
            token: Token::default(),
        };
        self.ways.insert(to, way);
        true
    }

    /// Whether a member is asked through others at present.
    pub(super) fn is_forwarded(&self, now: Moment, to: &AccessPoint) -> bool {
        self.ways.get(to).is_some_and(|way| now >= way.given_up)
    }

    /// The third member to take next, but for those already tried: the one that worked last, else one that we are in touch with, voters
    /// before others, else any that we are not known to miss. Of those through which nothing came lately one is taken if nobody is left.
    pub(super) fn third(
        &mut self,
        now: Moment,
        to: AccessPoint,
        tried: &[AccessPoint],
        voters: &[AccessPoint],
        live: impl Iterator<Item = AccessPoint>,
    ) -> Option<AccessPoint> {
        let Ways { ways, contacts } = self;
        let usable: BTreeSet<AccessPoint> = live.filter(|who| *who != to && !tried.contains(who) && !ways.contains_key(who)).collect();
        let way = ways.get_mut(&to)?;
        way.used = now;
        if let Some(via) = way.via.filter(|via| usable.contains(via)) {
            return Some(via);
        }
        let in_touch = |who: &AccessPoint| contacts.get(who).is_some_and(|contact| now.since(contact.heard) < IN_TOUCH);
        let failed = |who: &AccessPoint| way.failed.get(who).filter(|at| now.since(**at) < FAILED_FOR).copied();
        let key = rendezvous::key_hash(&to.to_string());
        let order = |who: &AccessPoint| (!in_touch(who), !voters.contains(who), Reverse(rendezvous::weight(key, who)));
        let fresh = usable.iter().filter(|who| failed(who).is_none()).min_by_key(|who| order(who));
        fresh.or_else(|| usable.iter().filter(|_| tried.is_empty()).min_by_key(|who| failed(who))).copied()
    }

    /// An answer came through a third member, with a token.
    pub(super) fn worked(&mut self, to: &AccessPoint, via: AccessPoint, token: Token) {
        if let Some(way) = self.ways.get_mut(to) {
            way.failed.remove(&via);
            (way.via, way.token, way.give_up_for, way.unanswered) = (Some(via), token, GIVEN_UP_FOR, 0);
        }
    }

    /// None came through a third member.
    pub(super) fn did_not_work(&mut self, now: Moment, to: &AccessPoint, via: AccessPoint) {
        if let Some(way) = self.ways.get_mut(to) {
            if way.via == Some(via) {
                way.via = None;
            }
            way.failed.retain(|_, at| now.since(*at) < FAILED_FOR);
            way.failed.insert(via, now);
        }
    }

    /// A question is given up: third members that could still be taken will not be.
    pub(super) fn unanswered(&mut self, now: Moment, to: &AccessPoint) {
        if let Some(way) = self.ways.get_mut(to) {
            way.unanswered = way.unanswered.saturating_add(1);
            if way.unanswered >= UNANSWERED {
                self.give_up(now, to);
            }
        }
    }

    /// No third member is left: it is asked directly again for a while.
    pub(super) fn give_up(&mut self, now: Moment, to: &AccessPoint) {
        if let Some(way) = self.ways.get_mut(to) {
            way.given_up = now.after(way.give_up_for);
            way.give_up_for = (2 * way.give_up_for).min(MAX_GIVEN_UP_FOR);
        }
    }

    /// The last token of a member.
    pub(super) fn token(&self, to: &AccessPoint) -> Token {
        self.ways.get(to).map(|way| way.token).unwrap_or_default()
    }

    /// Who is to be asked directly once more. Forgets ways that are not used any more, or that lead to nobody.
    pub(super) fn due(&mut self, now: Moment, is_member: impl Fn(&AccessPoint) -> bool) -> Vec<AccessPoint> {
        self.ways.retain(|to, way| now.since(way.used) < FORGET_AFTER && is_member(to));
        self.contacts.retain(|_, contact| now.since(contact.heard) < FORGET_AFTER);
        let due = self.ways.iter_mut().filter(|(_, way)| !way.trying && now >= way.due);
        due.map(|(to, way)| {
            way.trying = true;
            *to
        })
        .collect()
    }

    /// A member that was asked directly once more did not answer.
    pub(super) fn still_fails(&mut self, now: Moment, to: &AccessPoint) {
        if let Some(way) = self.ways.get_mut(to) {
            way.trying = false;
            way.pause = (2 * way.pause).min(MAX_TRY_DIRECTLY);
            way.due = now.after(way.pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_answers_no_question_is_left_alone_for_longer_each_time_until_an_answer_comes() {
        let to = AccessPoint([7; 32]);
        let mut ways = Ways::default();
        ways.failed(Moment(0), to, Moment(0));
        let mut now = Moment(0);
        ways.unanswered(now, &to);
        assert!(ways.is_forwarded(now, &to), "one question may get lost");
        let mut pauses = Vec::new();
        for _ in 0..5 {
            ways.unanswered(now, &to);
            let pause = (0..=MAX_GIVEN_UP_FOR).step_by(1_000).find(|pause| ways.is_forwarded(now.after(*pause), &to)).unwrap();
            pauses.push(pause);
            now = now.after(pause);
        }
        assert_eq!(pauses, [5_000, 10_000, 20_000, 40_000, 60_000]);
        ways.worked(&to, AccessPoint([1; 32]), Token::default());
        ways.unanswered(now, &to);
        assert!(ways.is_forwarded(now, &to), "it answered since");
    }
}
