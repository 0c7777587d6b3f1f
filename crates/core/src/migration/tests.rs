//! Tests that the rules of migration do what the paper says, and what was promised beyond.

mod machine;

use super::{case::MAX_ARMS, *};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

fn chance() -> StdRng {
    StdRng::seed_from_u64(1)
}

#[test]
fn tw_12_13_18_below_the_average_is_rewarded_above_it_penalised_equal_neither() {
    assert_eq!([0.9, 1.1, 1.0].map(|duration| twoma::answer(duration, 1.0)), [Answer::Reward, Answer::Penalty, Answer::Neither]);
}

#[test]
fn tw_14_from_the_boundary_it_goes_to_any_other_arm_each_as_likely() {
    let (mut counts, mut chance) = (BTreeMap::new(), chance());
    for _ in 0..3_000 {
        *counts.entry(twoma::elsewhere('b', &['a', 'b', 'c', 'd'], &mut chance).unwrap()).or_insert(0) += 1;
    }
    assert_eq!(counts.keys().collect::<String>(), "acd");
    assert!(counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
    assert_eq!(twoma::elsewhere('b', &['b'], &mut chance), None);
}

#[test]
fn tw_15_16_19_20_there_are_n_states_and_steps_are_of_one() {
    let mut automaton = Automaton::new(3);
    let mut state_after = |answer| (automaton.answer(answer), automaton.state());
    assert_eq!(state_after(Answer::Penalty), (true, 0), "it arrives at the boundary");
    assert_eq!([(); 4].map(|()| state_after(Answer::Reward)), [(false, 1), (false, 2), (false, 2), (false, 2)]);
    assert_eq!(state_after(Answer::Neither), (false, 2));
    assert_eq!([(); 3].map(|()| state_after(Answer::Penalty)), [(false, 1), (false, 0), (true, 0)]);
}

#[test]
fn tw_21_22_the_average_is_of_the_latest_durations_and_one_alone_is_its_own() {
    let mut arm = twoma::Arm::default();
    assert_eq!(arm.average(), None);
    arm.note("one", 7.3);
    assert_eq!(arm.answer(&"one"), Answer::Neither);
    arm.note("other", 2.0);
    arm.note("one", 4.0);
    assert!((arm.average().unwrap() - 3.0).abs() < 1e-9);
    assert_eq!([arm.answer(&"one"), arm.answer(&"other"), arm.answer(&"nobody")], [Answer::Penalty, Answer::Reward, Answer::Neither]);
    arm.forget(&"one");
    arm.note("other", f64::NAN);
    assert!((arm.average().unwrap() - 2.0).abs() < 1e-9);
    assert_eq!(arm.answer(&"other"), Answer::Neither, "alone it never moves");
}

/// A subnet whose unit of work takes so long at each arm, with a tenth of noise; played until it was accessed that often.
struct Played {
    case: Case<[u8; 32]>,
    here: [u8; 32],
    chance: StdRng,
    families: Families<u8>,
    moves: usize,
    least_gain: f64,
}

const fn arm(number: u8) -> [u8; 32] {
    [number; 32]
}

impl Played {
    fn new() -> Played {
        Played { case: Case::new(STATES), here: arm(0), chance: chance(), families: Families::default(), moves: 0, least_gain: ANY_GAIN }
    }

    fn play(&mut self, seconds: &[f64], prior: Option<&[f64]>, prices: &[f64], accesses: usize) -> Vec<Judgement<[u8; 32]>> {
        let price =
            |number: usize| (0..40).fold(LoadPrice::default(), |price, _| price.after(prices.get(number).copied().unwrap_or(1.0), 1.0));
        let candidates: Vec<_> = (0..seconds.len())
            .map(|number| Candidate {
                arm: arm(number as u8),
                prior: prior.map(|prior| Prior { seconds: prior[number], error: 0.2 }),
                price: price(number),
            })
            .collect();
        let access = |_| {
            let scale = self.families.expected_scale(&[1]);
            let took = seconds[usize::from(self.here[0])] * (0.9 + 0.2 * self.chance.random::<f64>());
            self.case.accessed(self.here, took, 10.0, &scale);
            let judgement = self.case.judge(self.here, &candidates, self.least_gain, &scale, &mut self.chance);
            if let Verdict::Move(to) = judgement.verdict {
                self.here = to;
                self.case.moved();
                self.moves += 1;
            }
            judgement
        };
        (0..accesses).map(access).collect()
    }
}

#[test]
fn a_subnet_finds_its_nearest_arm_with_and_without_being_told_and_stays() {
    for prior in [None, Some([3.1, 2.6, 2.4, 1.1, 2.9, 2.0].as_slice())] {
        let mut played = Played::new();
        played.play(&[3.0, 2.5, 2.5, 1.0, 3.0, 2.0], prior, &[], 30);
        assert_eq!(played.here, arm(3));
        let before = played.moves;
        let late = played.play(&[3.0, 2.5, 2.5, 1.0, 3.0, 2.0], prior, &[], 100);
        assert!(played.moves <= before + 2, "a trial and back, but nothing oscillates: {} after {before}", played.moves);
        let last = late.last().unwrap();
        assert_eq!((last.verdict, last.state), (Verdict::Reward, STATES - 1));
        assert!((0.9..1.1).contains(&last.seconds) && last.rival.unwrap().worth < 0.0, "{last:?}");
    }
}

#[test]
fn size_does_not_matter_only_what_a_unit_of_work_takes() {
    let (mut small, mut large) = (Case::<u8>::new(STATES), Case::<u8>::new(STATES));
    let scale = Scale::default();
    for _ in 0..5 {
        small.accessed(1, 2.0, 1.0, &scale);
        large.accessed(1, 2.0, 1e6, &scale);
    }
    assert_eq!(small.seconds(1), large.seconds(1));
    assert!(!small.accessed(1, f64::NAN, 1.0, &scale) && !small.accessed(1, 0.0, 1.0, &scale) && !small.accessed(1, 1.0, 0.0, &scale));
    assert_eq!(small.accesses(), 5, "what did no work is no access");
}

#[test]
fn when_the_network_changes_the_subnet_looks_around_again() {
    let mut played = Played::new();
    let prior = [1.0, 3.0, 3.0, 3.0];
    played.play(&[1.0, 3.0, 3.0, 3.0], Some(&prior), &[], 50);
    assert_eq!((played.here, played.moves), (arm(0), 0));
    played.play(&[3.0, 3.0, 1.0, 3.0], Some(&prior), &[], 20);
    assert_eq!(played.here, arm(2), "though it was foretold to be far");
}

#[test]
fn correlated_delays_are_waited_out_elsewhere_and_are_no_change() {
    let mut played = Played::new();
    let calm = [1.0, 1.3];
    let mut cycle = |cycles: usize| {
        let mut sheltered = 0;
        for _ in 0..cycles {
            played.play(&calm, Some(&calm), &[], 10);
            for _ in 0..6 {
                played.play(&[6.0, 1.3], Some(&calm), &[], 1);
                sheltered += usize::from(played.here == arm(1));
            }
        }
        sheltered
    };
    cycle(10);
    let sheltered = cycle(10);
    assert!(sheltered > 30, "of 60 stormy accesses, most are made elsewhere: {sheltered}");
}

#[test]
fn a_loaded_arm_is_dearer_and_who_refused_is_not_asked_at_once_again() {
    let mut played = Played::new();
    let seconds = [1.5, 1.0];
    played.play(&seconds, Some(&seconds), &[0.8, 1.3], 30);
    assert_eq!(played.here, arm(0), "the nearest is busy");
    let mut case = Case::<u8>::new(STATES);
    let candidates = [(0, 3.0), (1, 1.0), (2, 1.5)].map(|(arm, seconds)| Candidate {
        arm,
        prior: Some(Prior { seconds, error: 0.05 }),
        price: LoadPrice::default(),
    });
    let scale = Scale::default();
    case.accessed(0, 3.0, 1.0, &scale);
    assert_eq!(case.judge(0, &candidates, ANY_GAIN, &scale, &mut chance()).verdict, Verdict::Move(1));
    case.refused(1);
    assert_eq!(case.judge(0, &candidates, ANY_GAIN, &scale, &mut chance()).verdict, Verdict::Move(2));
    assert_eq!(
        Case::<u8>::new(STATES).judge(0, &candidates, ANY_GAIN, &scale, &mut chance()).verdict,
        Verdict::Neither,
        "nothing was measured"
    );
}

#[test]
fn among_arms_that_are_equally_near_a_subnet_moves_only_away_from_a_load() {
    let near = [0.003, 0.002, 0.0045, 0.006];
    let mut without = Played::new();
    without.play(&near, Some(&near), &[], 1_000);
    assert_ne!(without.moves, 0, "a third less would be worth a move");
    let mut played = Played { least_gain: 0.005, ..Played::new() };
    let judgements = played.play(&near, Some(&near), &[], 1_000);
    assert_eq!((played.moves, judgements.last().unwrap().verdict), (0, Verdict::Reward));
    played.play(&near, Some(&near), &[1.3, 1.3, 0.7, 1.3], 100);
    assert_eq!(played.here, arm(2), "it is cheaper for its load");
    let mut far = Played { least_gain: 0.005, ..Played::new() };
    let seconds = [0.020, 0.002, 0.006, 0.019];
    far.play(&seconds, Some(&seconds), &[], 100);
    assert_eq!(far.here, arm(1), "18 ms are worth it");
}

#[test]
fn a_case_travels_in_less_than_a_kibibyte_and_goes_on_where_it_was() {
    let mut played = Played::new();
    let seconds: Vec<f64> = (0..40).map(|number| 2.0 + f64::from(number % 7)).collect();
    played.play(&seconds, None, &[], 400);
    (100..104).for_each(|number| played.case.refused(arm(number)));
    assert!(played.case.tried().count() <= MAX_ARMS);
    let bytes = postcard::to_stdvec(&played.case).unwrap();
    assert!(bytes.len() < 1024, "{}", bytes.len());
    assert_eq!(postcard::from_bytes::<Case<[u8; 32]>>(&bytes).unwrap(), played.case);
}

#[test]
fn relatives_are_believed_the_more_the_nearer_and_the_more_of_them() {
    let mut families = Families::default();
    assert_eq!(families.expected_scale(&["as", "country"]), Scale::default());
    for _ in 0..50 {
        families.tell(&["as", "country"], 1.0, 0.04);
        families.tell(&["other as", "country"], 0.0, 0.04);
    }
    families.tell(&["as"], f64::NAN, 0.04);
    let level = |path: &[&'static str]| families.expected_scale(path).level;
    assert!(level(&["as", "country"]) > 0.9 && level(&["other as", "country"]) < 0.1);
    assert!((0.3..0.7).contains(&level(&["new as", "country"])), "a newcomer is like its country");
    assert!(families.expected_scale(&["as", "country"]).variance < families.expected_scale(&["new as", "country"]).variance);
    assert_eq!(families.len(), 3);
}

#[test]
fn prices_follow_loads_within_bounds() {
    let after = |own: f64, runs: usize| (0..runs).fold(LoadPrice::default(), |price, _| price.after(own, 1.0)).factor();
    assert!(after(2.0, 1) > 1.0 && after(2.0, 10) > after(2.0, 1) && after(0.5, 1) < 1.0);
    assert_eq!([after(1e9, 1_000), after(0.0, 1_000)], [64.0, 1.0 / 64.0]);
    assert_eq!(LoadPrice::default().after(f64::NAN, 1.0).factor(), 1.0);
}

#[test]
fn chance_alone_makes_hardly_any_alarm() {
    let (mut detector, mut chance, mut alarms) = (ChangeDetector::default(), chance(), 0);
    for _ in 0..100_000 {
        // Nearly normal: twelve dice.
        let deviations = (0..12).map(|_| chance.random::<f64>()).sum::<f64>() - 6.0;
        alarms += usize::from(detector.add(deviations, 1.0) != Change::None);
    }
    assert!(alarms < 20, "{alarms}");
    assert_eq!([detector.add(9.0, 1.0), detector.add(9.0, 1.0)], [Change::None, Change::Slower], "no single access makes an alarm");
}
