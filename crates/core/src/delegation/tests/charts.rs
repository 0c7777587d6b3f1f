//! Tests of the chart against the globe, and of the worth of a probe against its price.

use crate::delegation::{
    globe::{kilometres, places_of, shortest_km, usual_ms},
    hypotheses::{Hypotheses, to_log, to_ms},
    places::PLACES,
};

#[test]
fn places_are_sorted_by_country_and_their_shares_make_a_whole() {
    assert!(PLACES.is_sorted_by_key(|place| place.0), "countries are found by bisection");
    for place in PLACES {
        let whole: f32 = PLACES[places_of(place.0)].iter().map(|place| place.3).sum();
        assert!((whole - 100.0).abs() < 0.5, "{:?} has {whole} %", std::str::from_utf8(&place.0));
        assert!(place.1.abs() <= 90.0 && place.2.abs() <= 180.0);
    }
    assert!(places_of(*b"US").len() > 5 && places_of(*b"DE").start < places_of(*b"DE").end && places_of(*b"??").is_empty());
}

#[test]
fn distances_are_those_of_the_globe() {
    let between = |a: &[u8; 2], b: &[u8; 2]| shortest_km(places_of(*a), places_of(*b));
    for (a, b, km) in [(b"FI", b"EE", 85.0..300.0), (b"NL", b"BR", 7_000.0..9_800.0), (b"ES", b"NZ", 18_000.0..20_100.0)] {
        assert!(km.contains(&between(a, b)), "{:?} to {:?}: {} km", std::str::from_utf8(a), std::str::from_utf8(b), between(a, b));
    }
    assert!(kilometres(0, 0) < 5.0);
    // Nothing is predicted to be faster than light in fibre.
    assert!((0..200).map(|n| n as f32 * 100.0).all(|km| usual_ms(km) > km / 100.0));
}

fn guesses(rows: &[(f32, &[f32])]) -> Hypotheses {
    let mut guesses = Hypotheses { columns: rows[0].1.len(), ..Hypotheses::default() };
    for (weight, ms) in rows {
        guesses.add(*weight, &ms.iter().map(|ms| (to_log(*ms), 0.05)).collect::<Vec<_>>());
    }
    guesses
}

#[test]
fn a_probe_is_worth_what_it_can_still_change() {
    assert!((to_ms(to_log(17.0)) - 17.0).abs() < 0.01);
    // All guesses agree who is nearest: nothing to learn.
    let sure = guesses(&[(0.5, &[10.0, 80.0]), (0.5, &[12.0, 90.0])]);
    assert!(sure.most_worth(f32::INFINITY).unwrap().gain_ms < 0.1);
    // Here or there, 90 ms apart: a probe of either tells, and saves about half of that.
    let open = guesses(&[(0.5, &[10.0, 100.0]), (0.5, &[100.0, 10.0])]);
    let worth = open.most_worth(f32::INFINITY).unwrap();
    assert!((40.0..50.0).contains(&worth.gain_ms), "{worth:?}");
    // A third knows by its answer where it is, too, but is never nearest itself; so is one whose answer says nothing.
    let open = guesses(&[(0.5, &[10.0, 100.0, 60.0]), (0.5, &[100.0, 10.0, 60.0])]);
    assert_ne!(open.most_worth(f32::INFINITY).unwrap().column, 2);
    // A member has answered already, and is nearer than any of these can be.
    assert!(open.most_worth(5.0).unwrap().gain_ms < 0.01);
}
