//! Compares the linear matcher with one that simply tries everything, and tests that it stays linear where that one does not.

use super::*;

/// Whether a pattern matches, by trying every length for every star; counts what it tries.
fn tries_all(pattern: &[u8], path: &[u8], steps: &mut usize) -> bool {
    *steps += 1;
    match (pattern, path) {
        ([], _) => true,
        ([b'$'], rest) => rest.is_empty(),
        ([b'*', behind @ ..], rest) => (0..=rest.len()).any(|at| tries_all(behind, &rest[at..], steps)),
        ([wanted, behind @ ..], [found, rest @ ..]) if wanted == found => tries_all(behind, rest, steps),
        _ => false,
    }
}

/// The longest rule that matches decides, Allow where two are equally long. Lengths are those of the normal form, where stars in a row
/// and at the end count as the one or none that they mean.
fn naive(rules: &[(bool, String)], path: &str) -> bool {
    let length = |pattern: &str| {
        let mut normal = pattern.to_owned();
        while normal.contains("**") {
            normal = normal.replace("**", "*");
        }
        normal.strip_suffix('*').map_or(normal.len(), |rest| rest.len().max(1))
    };
    let matching = rules.iter().filter(|(_, pattern)| tries_all(pattern.as_bytes(), path.as_bytes(), &mut 0));
    matching.map(|(allow, pattern)| (length(pattern), *allow)).max().is_none_or(|(_, allow)| allow)
}

/// A word over a small alphabet; the same for the same seed.
struct Words(u64);

impl Words {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn word(&mut self, letters: &[u8], longest: u64) -> String {
        let length = self.below(longest + 1);
        (0..length).map(|_| char::from(letters[self.below(letters.len() as u64) as usize])).collect()
    }
}

#[test]
fn the_matcher_agrees_with_trying_everything() {
    let mut words = Words(9);
    let (mut refused, mut allowed) = (0, 0);
    for round in 0..4_000 {
        let count = 1 + words.below(4);
        let rules: Vec<(bool, String)> = (0..count)
            .map(|_| {
                let end = if words.below(4) == 0 { "$" } else { "" };
                (words.below(2) == 0, format!("/{}{end}", words.word(b"aab/***", 7)))
            })
            .collect();
        let file = rules.iter().fold("User-agent: *\n".to_owned(), |file, (allow, pattern)| {
            format!("{file}{}: {pattern}\n", if *allow { "Allow" } else { "Disallow" })
        });
        let robots = Robots::parse(file.as_bytes(), "nearcrawl");
        for _ in 0..12 {
            let path = format!("/{}", words.word(b"aab/", 9));
            let expected = naive(&rules, &path);
            assert_eq!(robots.decide(&path, &mut 0), expected, "round {round}: {path:?} by\n{file}");
            if expected { allowed += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 5_000 && allowed > 5_000, "the words say too little: {refused} refused, {allowed} allowed");
}

#[test]
fn steps_grow_with_the_path_and_not_with_the_stars() {
    // Trying everything takes the number of ways to lay stars into the path: 5 stars are enough to show it.
    let mut few = 0;
    assert!(!tries_all(b"/*a*a*a*a*ab", &b"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[..], &mut few));
    assert!(few > 100_000, "the pattern is not pathological: {few} steps");
    for stars in [1, 10, 100, 1_000, 10_000, 100_000] {
        for length in [1_000, 2_000, 4_000, 8_000] {
            let path = format!("/{}", "a".repeat(length));
            for pattern in [format!("/{}b", "*a".repeat(stars)), format!("/{}b$", "*a".repeat(stars)), format!("/{}", "*".repeat(stars))] {
                let mut steps = 0;
                Robots::parse(format!("User-agent: *\nDisallow: {pattern}").as_bytes(), "nearcrawl").decide(&path, &mut steps);
                assert!(steps <= 2 * length + 10, "{steps} steps for {stars} stars and {length} bytes");
            }
        }
    }
}
