//! Which of the shipped scenarios hold?

use super::Scenario;

/// Shipped scenarios that do not hold yet: the promises that they break with seed 1, and why. A commit that mends one takes it off.
const BROKEN: &[(&str, &[&str], &str)] = &[
    ("a1-newcomers", &["end"], "A1: a newcomer never gets the whole of a large map"),
    ("a1-twenty-thousand", &["end"], "A1, as above"),
    (
        "a10-limit-and-deaths",
        &["exact_but_wrong"],
        "a member that has not joined yet, or was cut off from its start, calls empty totals exact",
    ),
    (
        "a10-pairs-apart",
        &["fetched_twice", "exact_but_wrong"],
        "a member that has not joined yet, or was cut off from its start, calls empty totals exact",
    ),
    ("a12-boot-clock", &["exact_but_wrong"], "exact totals have no age: who stood still answers with what it knew before"),
    (
        "a12-half-frozen",
        &["fetched_twice", "exact_but_wrong"],
        "exact totals have no age: who stood still answers with what it knew before; and A6",
    ),
    ("a12-suspended", &["exact_but_wrong"], "exact totals have no age: who stood still answers with what it knew before"),
    (
        "a2-wiped",
        &["fetched_twice", "exact_but_wrong"],
        "an owner that lost its disk goes on without its journals, although replicas have them (A2)",
    ),
    ("a3-ghosts", &["lost", "exact_but_wrong"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    ("a3-hundred-ghosts", &["end"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    (
        "a3-majority-lost",
        &["lost"],
        "without an operator's way out (declare-lost) the fence of the others stays closed; three disks are gone with all copies of some subnets",
    ),
    ("a3-new-keys", &["end"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    ("a3-short-lived", &["end"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    ("a3-twelve-and-twenty", &["lost"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    (
        "a6-even-2",
        &["overlaps", "pauses_broken"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "a6-even-4",
        &["fetched_twice", "exact_but_wrong"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "a6-even-6",
        &["fetched_twice", "exact_but_wrong"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "a6-halves",
        &["fetched_twice"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "a6-parted-again",
        &["overlaps", "pauses_broken", "fetched_twice", "exact_but_wrong"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "a6-thirds",
        &["fetched_twice"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "a6-two-apart",
        &["overlaps", "pauses_broken"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    ("all-at-once", &["overlaps", "pauses_broken", "fetched_twice", "lost", "exact_but_wrong"], "each of the above"),
    ("b1-sums-of-others", &["exact_but_wrong"], "B1: sums in the name of another member are believed"),
    ("b2-claims", &["fetched_twice", "exact_but_wrong"], "B2: a claim needs no right"),
    ("b2-claims-and-death", &["fetched_twice", "exact_but_wrong"], "B2: a claim needs no right"),
    ("b3-addresses", &["exact_but_wrong"], "B3: hand-offs are believed, and hosts come on record that are not at that address"),
    ("b3-all-hand-offs", &["exact_but_wrong"], "B3: hand-offs are believed, and hosts come on record that are not at that address"),
    ("b3-hosts", &["exact_but_wrong"], "B3: hand-offs are believed, and hosts come on record that are not at that address"),
    ("b4-dial", &["end"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    ("b4-dial-and-death", &["lost"], "A3: whoever was named or up once counts, so the fence of the others stays closed"),
    ("b6-released-journals", &["fetched_twice", "exact_but_wrong"], "B6: anybody may overwrite kept journals of a released subnet"),
    ("b9-copied-key", &["overlaps", "pauses_broken", "fetched_twice", "exact_but_wrong"], "B9: a copied key is not noticed"),
    ("b9-copied-key-stays", &["overlaps", "pauses_broken", "fetched_twice", "exact_but_wrong"], "B9: a copied key is not noticed"),
    (
        "churn",
        &["fetched_twice", "exact_but_wrong"],
        "an owner that lost its disk goes on without its journals, although replicas have them (A2)",
    ),
    (
        "double-accept",
        &["fetched_twice", "exact_but_wrong"],
        "A6: no member is dead by an agreement of a majority of voters: halves and pairs go on, or ask again for what only the others keep",
    ),
    (
        "kills",
        &["fetched_twice", "exact_but_wrong"],
        "an owner that lost its disk goes on without its journals, although replicas have them (A2)",
    ),
];

/// What is played wherever tests are run: the others take minutes together.
const QUICK: &[&str] = &["a11-full-disk", "a5-moved-hosts", "a7-wall-clocks", "b3-addresses", "quiet"];

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
fn what_is_in_the_lists_is_shipped() {
    let names = BROKEN.iter().map(|(name, ..)| *name).chain(QUICK.iter().copied());
    let missing: Vec<_> = names.filter(|name| !directory().join(format!("{name}.toml")).exists()).collect();
    assert_eq!(missing, [""; 0]);
}
