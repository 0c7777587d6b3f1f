//! Do the rules of migration say what the paper says, and what was promised beyond?

use super::{oma::Partition, *};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

fn chance() -> StdRng {
    StdRng::seed_from_u64(1)
}

#[test]
fn tw_1_pairs_that_are_accessed_together_end_in_one_arm() {
    // Nine objects in three arms; those with equal remainders are accessed together, nineteen times of twenty.
    let mut partition = Partition::new(vec![0, 0, 0, 1, 1, 1, 2, 2, 2], 5);
    let mut chance = chance();
    for _ in 0..20_000 {
        let one = chance.random_range(0..9);
        let other = if chance.random::<f64>() < 0.95 { (one + 3 * chance.random_range(1..3)) % 9 } else { chance.random_range(0..9) };
        partition.pair(one, other);
    }
    let arms = partition.arms();
    assert!((0..9).all(|object| arms[object] == arms[object % 3]), "{arms:?}");
    assert!(arms[0] != arms[1] && arms[1] != arms[2], "arms keep their sizes: {arms:?}");
}

#[test]
fn tw_1_a_reward_goes_inward_and_only_the_boundary_is_left() {
    let mut partition = Partition::new(vec![0, 0, 1, 1], 3);
    assert_eq!(partition.pair(0, 1), 0);
    assert_eq!(partition.pair(2, 3), 0);
    assert_eq!(partition.pair(0, 2), 0, "neither stands at the boundary: nobody moves");
    assert_eq!(partition.pair(0, 2), 2, "now they do: one comes, another makes room");
    assert_eq!(partition.arms()[0], partition.arms()[2]);
    assert_eq!(partition.pair(0, 0) + partition.pair(0, 9), 0);
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
