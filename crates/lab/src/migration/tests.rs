//! Tests that the laboratory measures what it says, and that the rules do what was promised, in worlds small enough for a test.

use super::{world::*, *};
use crate::reading::InputError;

fn experiment(policies: &[Policy], runs: usize) -> Experiment {
    let shape = Shape {
        sites: 0,
        access_points: 0,
        sizes: Sizes::Equal,
        noise: 0.0,
        capacity: Capacity::Equal,
        sites_per_subnet: 1,
        purity: 1.0,
        change_every: None,
        hours: Vec::new(),
    };
    Experiment {
        shape,
        access_points: vec![8],
        sites: vec![600],
        slices: None,
        runs,
        states: 5,
        policies: policies.to_vec(),
        start: Start::Uniform,
        prior_error: None,
        rounds: 1,
        seed: 3,
    }
}

fn totals(experiment: &Experiment) -> Vec<f64> {
    experiment.run(NonZero::<usize>::MIN, &|| ()).rows.iter().map(|row| row.total_vs_oracle).collect()
}

#[test]
fn the_papers_rule_halves_the_total_and_comes_to_rest_in_the_papers_world() {
    let outcome = experiment(&[Policy::Twoma, Policy::Uniform, Policy::Oracle, Policy::Oma], 90).run(NonZero::<usize>::MIN, &|| ());
    let row = |policy: usize, run: usize| &outcome.rows[policy * 91 + run];
    assert!((2.4..2.7).contains(&row(0, 0).total_vs_oracle), "2.55 was measured before: {:?}", row(0, 0));
    assert_eq!((row(0, 90).total_vs_oracle, row(0, 90).right_place, row(0, 90).moves), (1.0, 1.0, 0.0));
    assert_eq!(row(1, 90).total_vs_oracle, row(0, 0).total_vs_oracle, "all begin alike");
    assert_eq!((row(2, 0).total_vs_oracle, row(2, 0).right_place), (1.0, 1.0));
    assert!(row(3, 90).total_vs_oracle > 2.0, "time means nothing to OMA");
    assert!((15.0..45.0).contains(&outcome.reached[0].within_a_twentieth.unwrap()), "30 was measured before: {:?}", outcome.reached[0]);
}

#[test]
fn sizes_mislead_the_papers_rule_and_not_the_default() {
    let mut experiment = experiment(&[Policy::Twoma, Policy::Nearcrawl], 40);
    experiment.shape.sizes = Sizes::LogNormal;
    experiment.shape.noise = 0.2;
    experiment.prior_error = Some(0.2);
    let totals = totals(&experiment);
    assert!(totals[40] > 1.6, "{}", totals[40]);
    assert!(totals[41 + 10] < 1.05 && totals[41 + 40] < 1.02, "{} {}", totals[41 + 10], totals[41 + 40]);
}

#[test]
fn the_default_finds_its_way_again_after_a_change() {
    let mut experiment = experiment(&[Policy::Nearcrawl], 65);
    experiment.shape.noise = 0.2;
    experiment.shape.change_every = Some(40);
    experiment.prior_error = Some(0.2);
    let totals = totals(&experiment);
    assert!(totals[39] < 1.02 && totals[40] > 2.3 && totals[60] < 1.1, "{} {} {}", totals[39], totals[40], totals[60]);
}

#[test]
fn prices_share_the_work_and_the_bound_is_one() {
    let mut experiment = experiment(&[Policy::Oracle, Policy::Nearcrawl], 60);
    experiment.shape.capacity = Capacity::Unequal;
    experiment.prior_error = Some(0.2);
    let outcome = experiment.run(NonZero::<usize>::MIN, &|| ());
    let makespan = |policy: usize, run: usize| outcome.rows[policy * 61 + run].makespan_vs_bound;
    assert!((1.0..1.03).contains(&makespan(0, 0)), "{}", makespan(0, 0));
    assert!(makespan(1, 0) > 2.0 && (1.0..1.25).contains(&makespan(1, 60)), "{} {}", makespan(1, 0), makespan(1, 60));
    assert!(outcome.rows.iter().all(|row| row.makespan_vs_bound >= 1.0), "nobody is better than the bound");
}

#[test]
fn the_number_of_threads_changes_nothing_and_rounds_differ() {
    let mut experiment = experiment(&[Policy::Twoma, Policy::Nearcrawl], 5);
    experiment.rounds = 3;
    let alone = experiment.run(NonZero::<usize>::MIN, &|| ());
    assert_eq!(alone, experiment.run(NonZero::new(3).unwrap(), &|| ()));
    experiment.rounds = 1;
    assert_ne!(alone.rows, experiment.run(NonZero::<usize>::MIN, &|| ()).rows);
}

#[test]
fn subnets_begin_together_and_hours_lengthen_everything() {
    let mut shape = Shape { sites: 64, access_points: 4, sites_per_subnet: 16, ..experiment(&[], 1).shape };
    let world = World::new(&shape, 5);
    assert_eq!((world.subnets(), world.row(0)), (4, world.row(15)));
    let places = uniform(&world, 1);
    assert!(places.chunks(16).all(|subnet| subnet.iter().all(|place| *place == subnet[0])));
    shape.hours = vec![6.0];
    assert!((World::new(&shape, 5).seconds(0, 0) / world.seconds(0, 0) - 4.0).abs() < 1e-5);
    shape.hours.clear();
    shape.purity = 0.0;
    assert_ne!(World::new(&shape, 5).row(0), World::new(&shape, 5).row(1));
}

#[test]
fn slices_fill_their_gaps_from_before_else_from_after() {
    let mut reader = slices::Reader::default();
    for slice in ["0\t0\n0.3\t0\n", "0\t0.5\n0\t0\n", "0\t0\n0.7\t0\n"] {
        reader.add("slice", slice.as_bytes()).unwrap();
    }
    let slices = reader.finish().unwrap();
    let all = |line, column| [0, 1, 2, 9].map(|slice| (slices.seconds(slice, line, column) * 10.0).round());
    assert_eq!((all(0, 1), all(1, 0)), ([5.0; 4], [3.0, 3.0, 7.0, 7.0]));
    assert!(!slices.knows(0, 0) && slices.knows(0, 1));
    for (text, told) in [("0\t1\n2\n", "slice, line 2: 1 cell for"), ("0\tx\n1\t0\n", "line 1: \"x\""), ("0\t1\n", "square matrix")] {
        let refusal: InputError = slices::Reader::default().add("slice", text.as_bytes()).unwrap_err();
        assert!(refusal.to_string().contains(told), "{refusal}");
    }
}
