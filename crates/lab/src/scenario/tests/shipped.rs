//! Tests of the shipped scenarios: which hold, and which break.

use super::Scenario;

/// Shipped scenarios that do not hold: the promises that they break with seed 1, and why. A commit that fixes one removes it.
const BROKEN: &[(&str, &[&str], &str)] = &[(
    "a3-three-disks-lost",
    &["lost"],
    "by design: what is recorded is on three disks, and these three are gone for good; subnets with another copy lose nothing",
)];

/// What is played wherever tests are run: the others take minutes together.
const QUICK: &[&str] = &[
    "a11-full-disk",
    "a3-left-and-killed",
    "a3-left-and-wiped",
    "a3-one-second",
    "a5-moved-hosts",
    "a7-wall-clocks",
    "b3-addresses",
    "quiet",
];

/// What each rule is for: a shipped scenario that holds with it, and what of the promises breaks without it, with seed 1.
const NEEDED: &[(&str, &str, &[&str])] = &[
    ("no-lease", "a6-two-apart", &["overlaps", "fetched_twice"]),
    ("no-council", "a6-back-over-loss", &["overlaps", "fetched_twice"]),
    ("no-hello", "a3-names-before-deaths", &["end"]),
    ("no-replicas", "a2-wiped", &["fetched_twice", "lost", "exact_but_wrong"]),
];

fn directory() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// `NEARCRAWL_SCENARIO=a3` plays all whose names begin so, and prints what came of them.
#[test]
fn shipped_scenarios_break_what_is_known_to_break() {
    let asked = std::env::var("NEARCRAWL_SCENARIO").ok();
    let mut paths: Vec<_> = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut differ = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let scenario = Scenario::read(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|why| panic!("{name}: {why}"));
        if !asked.as_ref().map_or(QUICK.contains(&name.as_str()), |asked| name.starts_with(asked.as_str())) {
            continue;
        }
        let verdict = scenario.play(1, None, &|| ()).unwrap();
        if asked.is_some() {
            eprintln!("{name}: {:?} {}", verdict.broken(), serde_json::to_string(&verdict).unwrap());
        }
        let known = BROKEN.iter().find(|(of, ..)| *of == name).map_or(&[] as &[_], |(_, broken, _)| *broken);
        if verdict.broken() != known {
            differ.push((name, verdict.broken(), verdict.first_violation));
        }
    }
    assert!(differ.is_empty(), "not what stands in the list: {differ:#?}");
}

#[test]
fn twelve_members_in_peace_send_each_other_little_and_nothing_twice() {
    let text = std::fs::read_to_string(directory().join("quiet-twelve.toml")).unwrap();
    let verdict = Scenario { minutes: 10, ..Scenario::read(&text).unwrap() }.play(1, None, &|| ()).unwrap();
    let there = verdict.bytes_by_kind.get("copies of what is there").copied().unwrap_or(0);
    assert!(verdict.bytes_member_day <= 80_000_000 && there <= 1_000_000, "bytes a member and day: {:?}", verdict.bytes_by_kind);
}

#[test]
fn members_that_are_connected_with_a_copy_reach_the_original() {
    // With this seed some members are connected with the copy for as long as it runs.
    let text = std::fs::read_to_string(directory().join("b9-copied-key-stays.toml")).unwrap();
    let verdict = Scenario::read(&text).unwrap().play(3, None, &|| ()).unwrap();
    assert_eq!(verdict.broken(), [""; 0], "{:?}", verdict.first_violation);
}

#[test]
fn stewards_that_joined_or_were_cut_off_give_no_moved_host_a_second_owner() {
    // With these seeds members ask them for hosts before the owners of these have told them where they are.
    for (name, seed) in [("a5-moved-joiners", 2), ("a5-moved-cut-off", 77_013)] {
        let text = std::fs::read_to_string(directory().join(format!("{name}.toml"))).unwrap();
        let verdict = Scenario::read(&text).unwrap().play(seed, None, &|| ()).unwrap();
        assert_eq!(verdict.broken(), [""; 0], "{name}: {:?}", verdict.first_violation);
    }
}

#[test]
fn newcomers_that_come_for_seconds_delay_no_take_over_and_take_nothing_with_them() {
    for (name, seed) in [("a3-storm", 5), ("a3-storm-of-seven", 11)] {
        let text = std::fs::read_to_string(directory().join(format!("{name}.toml"))).unwrap();
        let verdict = Scenario::read(&text).unwrap().play(seed, None, &|| ()).unwrap();
        assert_eq!(verdict.broken(), [""; 0], "{name}: {:?}", verdict.first_violation);
        assert!(verdict.failover_ms.n > 0 && verdict.failover_ms.max <= 90_000, "{name}: {:?}", verdict.failover_ms);
    }
}

#[test]
fn what_is_in_the_lists_is_shipped() {
    let needed = NEEDED.iter().map(|(_, name, _)| *name);
    let names = BROKEN.iter().map(|(name, ..)| *name).chain(QUICK.iter().copied()).chain(needed);
    let missing: Vec<_> = names.filter(|name| !directory().join(format!("{name}.toml")).exists()).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn without_each_rule_a_shipped_scenario_that_holds_breaks() {
    let mut kept = Vec::new();
    for (rule, name, breaks) in NEEDED {
        assert!(BROKEN.iter().all(|(broken, ..)| broken != name), "{name} holds with all rules");
        let text = std::fs::read_to_string(directory().join(format!("{name}.toml"))).unwrap();
        let verdict = Scenario::read(&format!("rule = \"{rule}\"\n{text}")).unwrap().play(1, None, &|| ()).unwrap();
        let broken = verdict.broken();
        kept.extend(breaks.iter().filter(|promise| !broken.contains(promise)).map(|promise| (*rule, *name, *promise)));
    }
    assert_eq!(kept, []);
}
