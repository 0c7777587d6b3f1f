//! Tests that the swarm changes to another edition when it should, and that liars cannot make it change when it should not.

use super::*;
use nearcrawl_model::time::WallTime;
use proptest::prelude::*;

const OLD: Edition = Edition { hash: [1; 32], built: 20_260_401 };
const NEW: Edition = Edition { hash: [2; 32], built: 20_260_701 };
const FORGED: Edition = Edition { hash: [3; 32], built: 20_260_801 };

fn member(number: u8) -> AccessPoint {
    AccessPoint([number; 32])
}

fn at(seconds: u64) -> Now {
    // Around the end of 2026.
    Now { moment: Moment(1_000_000 + 1_000 * seconds), wall: WallTime(1_795_219_200_000 + 1_000 * seconds) }
}

/// A swarm of minds that tell each other everything, and what each of them would find in an edition.
struct Council {
    minds: BTreeMap<AccessPoint, Editions>,
    round: u64,
}

impl Council {
    fn of(members: u8) -> Council {
        let minds = (1..=members).map(|n| (member(n), Editions::new(member(n), OLD, OLD, false))).collect();
        Council { minds, round: 0 }
    }

    fn mind(&mut self, number: u8) -> &mut Editions {
        self.minds.get_mut(&member(number)).unwrap()
    }

    /// Every member says what it vouches for, then acts, a few times. `finds` says what a member finds in an edition.
    fn talk(&mut self, finds: impl Fn(AccessPoint, Edition) -> Found) {
        let settled: BTreeSet<_> = self.minds.keys().copied().collect();
        let live: Vec<_> = settled.iter().copied().collect();
        for _ in 0..6 {
            self.round += 1;
            let now = at(60 * self.round);
            let said: Vec<_> = self
                .minds
                .iter()
                .map(|(by, mind)| Endorsement { by: *by, version: self.round, uses: mind.uses(), endorses: mind.endorses() })
                .collect();
            for (who, mind) in &mut self.minds {
                said.iter().for_each(|said| assert!(mind.hear(*said)));
                while let Some(wish) = mind.next(&settled, &live, now) {
                    if let Wish::Gather { edition, from } = wish {
                        assert!(!from.is_empty() && !from.contains(who));
                        mind.found(edition, finds(*who, edition), now);
                    }
                }
            }
        }
    }

    fn used(&self) -> Vec<Edition> {
        self.minds.values().map(Editions::uses).collect()
    }
}

#[test]
fn one_member_with_a_newer_plausible_edition_brings_it_to_all() {
    for members in [1, 2, 3, 8] {
        let mut council = Council::of(members);
        council.mind(1).propose(NEW);
        council.talk(|_, _| Found::Plausible);
        assert_eq!(council.used(), vec![NEW; members.into()], "{members} members");
    }
}

#[test]
fn what_most_find_doubtful_is_used_by_no_member_and_what_is_broken_neither() {
    for found in [Found::Doubtful, Found::Unusable] {
        let mut council = Council::of(5);
        council.mind(1).propose(NEW);
        council.mind(2).propose(NEW);
        council.talk(|_, _| found);
        assert_eq!(council.used(), vec![OLD; 5], "two of five are not enough");
        council.mind(3).propose(NEW);
        council.talk(|_, _| found);
        let follows = if found == Found::Doubtful { NEW } else { OLD };
        assert_eq!(council.used(), [NEW, NEW, NEW, follows, follows], "most vouch; what is broken is used by no member all the same");
    }
}

#[test]
fn who_is_pinned_neither_follows_nor_counts_for_the_new() {
    let mut council = Council::of(3);
    council.minds.insert(member(3), Editions::new(member(3), OLD, OLD, true));
    council.minds.insert(member(2), Editions::new(member(2), OLD, OLD, true));
    council.mind(1).propose(NEW);
    council.talk(|_, _| Found::Plausible);
    assert_eq!(council.used(), vec![OLD; 3], "two of three are pinned to the old one");
}

#[test]
fn no_member_follows_a_stranger_into_the_future_or_in_small_steps_or_without_a_date() {
    let (future, soon, dateless) =
        (Edition { hash: [9; 32], built: 20_270_601 }, Edition { hash: [8; 32], built: 20_260_420 }, Edition { hash: [7; 32], built: 0 });
    for edition in [future, soon, dateless] {
        let mut council = Council::of(3);
        council.mind(1).propose(edition);
        council.talk(|_, _| Found::Plausible);
        assert_eq!(council.used(), vec![OLD; 3], "{edition}");
    }
}

#[test]
fn a_member_that_was_away_for_a_year_takes_what_most_vouch_for_though_it_doubts_it() {
    let mut council = Council::of(4);
    for number in 1..=3 {
        council.mind(number).propose(NEW);
    }
    council.talk(|_, _| Found::Doubtful);
    assert_eq!(council.used(), vec![NEW; 4]);
}

#[test]
fn of_two_new_editions_the_later_one_wins() {
    let later = Edition { hash: [4; 32], built: 20_261_001 };
    let mut council = Council::of(5);
    council.mind(1).propose(NEW);
    council.mind(5).propose(later);
    council.talk(|_, _| Found::Plausible);
    assert_eq!(council.used(), vec![later; 5]);
}

#[test]
fn what_cannot_be_had_is_tried_again_later_and_not_for_ever() {
    let mut mind = Editions::new(member(1), OLD, OLD, false);
    let (settled, live) = ([member(1), member(2)].into(), [member(1), member(2)]);
    mind.hear(Endorsement { by: member(2), version: 1, uses: NEW, endorses: NEW });
    let mut tries = 0;
    for second in 0..40_000 {
        if let Some(Wish::Gather { edition, from }) = mind.next(&settled, &live, at(second)) {
            assert_eq!((edition, from), (NEW, vec![member(2)]));
            tries += 1;
            mind.found(edition, Found::Unusable, at(second));
        }
    }
    assert_eq!((tries, mind.uses()), (MAX_TRIES, OLD));
}

#[test]
fn many_who_say_that_they_have_it_do_not_hide_the_one_who_does() {
    let mut mind = Editions::new(member(1), OLD, OLD, false);
    let members: Vec<_> = (1..=30).map(member).collect();
    let settled = members.iter().copied().collect();
    for liar_or_last in 2..=30 {
        mind.hear(Endorsement { by: member(liar_or_last), version: 1, uses: NEW, endorses: NEW });
    }
    let mut asked = BTreeSet::new();
    for second in 0..3_600 {
        if let Some(Wish::Gather { edition, from }) = mind.next(&settled, &members, at(second)) {
            assert!(from.len() <= MAX_SOURCES);
            asked.extend(from);
            mind.found(edition, Found::Unusable, at(second));
        }
    }
    assert_eq!(asked.len(), 29, "each is asked once before anybody is asked again");
}

#[test]
fn a_member_that_names_one_after_another_that_does_not_exist_keeps_no_other_from_the_right_one() {
    let mut mind = Editions::new(member(1), OLD, OLD, false);
    let members = [1, 2, 3, 4, 5].map(member);
    let settled = members.into();
    let mut gathered = Vec::new();
    let mut most_at_once = 0;
    for second in 0..7_200 {
        // Three liars say something new each minute, of today; nothing comes of it until the time is over.
        for liar in 3..=5 {
            let invented = Edition { hash: [liar; 32].map(|byte| byte ^ (second / 60) as u8), built: 20_261_121 };
            mind.hear(Endorsement { by: member(liar), version: second, uses: OLD, endorses: invented });
        }
        if second == 30 {
            mind.hear(Endorsement { by: member(2), version: 1, uses: NEW, endorses: NEW });
        }
        while let Some(Wish::Gather { edition, .. }) = mind.next(&settled, &members, at(second)) {
            gathered.push((second, edition));
        }
        let over = |began: u64| (began + GATHER_WITHIN / 1_000).saturating_sub(second);
        most_at_once = most_at_once.max(gathered.iter().filter(|(began, _)| over(*began) > 0).count());
        for (_, edition) in gathered.iter().filter(|(began, edition)| over(*began) == 1 && *edition != NEW) {
            mind.found(*edition, Found::Unusable, at(second));
        }
    }
    assert_eq!(most_at_once, MAX_UNDER_WAY);
    let when = gathered.iter().find(|(_, edition)| *edition == NEW).map(|(second, _)| *second);
    assert!(when.is_some_and(|second| second <= 2 * GATHER_WITHIN / 1_000), "{when:?} of {}", gathered.len());
}

proptest! {
    /// Liars vouch for a forged edition, honest members find it doubtful or broken, and some members may even tell different
    /// stories at different times: unless liars are more than half, no honest member uses it.
    #[test]
    fn half_of_the_members_or_fewer_cannot_force_an_edition_upon_the_rest(
        members in 1u8..12,
        liars in 0u8..12,
        broken in any::<bool>(),
        new in any::<bool>(),
    ) {
        let liars = liars.min(members / 2);
        let mut council = Council::of(members);
        for number in 1..=liars {
            council.minds.insert(member(number), Editions::new(member(number), FORGED, FORGED, true));
        }
        if new && liars < members {
            council.mind(members).propose(NEW);
        }
        council.talk(|_, edition| match edition {
            FORGED if broken => Found::Unusable,
            FORGED => Found::Doubtful,
            _ => Found::Plausible,
        });
        for number in liars + 1..=members {
            let used = council.mind(number).uses();
            prop_assert_ne!(used, FORGED);
            if new && 2 * liars < members {
                prop_assert_eq!(used, NEW, "the honest ones still change over together");
            }
        }
    }
}

#[test]
fn endorsements_of_members_beyond_the_limit_are_refused() {
    let edition = Edition { hash: [1; 32], built: 0 };
    let mut editions = Editions::new(AccessPoint([0; 32]), edition, edition, false);
    let says = |number: usize, version: u64| {
        let mut key = [9; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        Endorsement { by: AccessPoint(key), version, uses: edition, endorses: edition }
    };
    assert!((0..MAX_HEARD).all(|number| editions.hear(says(number, 1))));
    assert!(!editions.hear(says(MAX_HEARD, 1)), "one member too many");
    assert!(editions.hear(says(3, 2)), "who is known may say something new");
    assert_eq!(editions.heard.len(), MAX_HEARD);
    editions.retain(|member| *member == says(3, 2).by);
    assert!(editions.hear(says(MAX_HEARD, 1)), "the others are gone");
}
