//! Tests of robots.txt with Google's own specification cases, and with hostile files.

use super::{matcher::MAX_WILDCARD_RULES, parser::MAX_ROBOTS, *};
use std::fmt::Write as _;

mod naive;
mod specification;

fn allows(file: &str, path: &str) -> bool {
    Robots::parse(file.as_bytes(), "nearcrawl").allows(path)
}

#[test]
fn statuses_mean_what_the_rfc_says() {
    let body = b"User-agent: *\nDisallow: /private".as_slice();
    let rules = RobotsVerdict::Rules(Robots::parse(body, "nearcrawl"));
    let open = RobotsVerdict::Rules(Robots::allow_all());
    for (status, expected) in [(200, &rules), (206, &rules), (301, &open), (401, &open), (403, &open), (404, &open), (410, &open)] {
        assert_eq!(&verdict(Ok((status, body)), "nearcrawl"), expected, "{status}");
    }
    for status in [429, 500, 503, 599, 100, 0, 999] {
        assert_eq!(verdict(Ok((status, body)), "nearcrawl"), RobotsVerdict::Unavailable, "{status}");
    }
    for failure in [FetchError::ConnectTimeout, FetchError::ConnectionRefused, FetchError::BodyTooLarge, FetchError::NotHttp] {
        assert_eq!(verdict(Err(failure), "nearcrawl"), RobotsVerdict::Unavailable);
    }
    assert!(!RobotsVerdict::Unavailable.allows("/"));
    assert!(!RobotsVerdict::Unavailable.into_rules().allows("/a"));
    assert!(!rules.allows("/private/x") && rules.allows("/public"));
}

#[test]
fn the_file_itself_is_always_allowed() {
    assert!(allows("User-agent: *\nDisallow: /", "/robots.txt"));
    assert!(Robots::disallow_all().allows("/robots.txt"));
    assert!(!allows("User-agent: *\nDisallow: /", "/robots.txt2"));
    assert!(!Robots::disallow_all().allows("/"));
    assert!(!Robots::disallow_all().allows(""));
    assert!(Robots::allow_all().allows("/a?b"));
}

#[test]
fn our_group_or_else_everybodys() {
    let file = "user-agent: *\ndisallow: /all\ncrawl-delay: 7\n\nUser-Agent: NearCrawl/2.0\nDisallow: /ours\n\nUser-agent: other\nDisallow: /\n\nUser-agent: other\nUser-agent: nearcrawl\nDisallow: /more\nCrawl-delay: 2.5\nCrawl-delay: x\nCrawl-delay: -3\n";
    let ours = Robots::parse(file.as_bytes(), "nearcrawl");
    assert!(ours.allows("/all") && !ours.allows("/ours") && !ours.allows("/more"));
    assert_eq!(ours.crawl_delay(), Some(2500));
    let another = Robots::parse(file.as_bytes(), "somebody");
    assert!(another.allows("/all") && !another.allows("/ours"), "what is said to nearcrawl is said to every access point");
    assert_eq!(another.crawl_delay(), Some(2500));
    let nobody = Robots::parse(b"user-agent: *\ndisallow: /all\n\nUser-agent: other\nDisallow: /ours", "somebody");
    assert!(!nobody.allows("/all") && nobody.allows("/ours"));
    assert!(allows("User-agent: nearcrawler\nDisallow: /", "/"));
    assert_eq!(Robots::parse(b"User-agent: *\nCrawl-delay: 1e300", "x").crawl_delay(), Some(Millis::MAX));
    assert_eq!(Robots::parse(b"User-agent: *\nCrawl-delay: NaN", "x").crawl_delay(), None);
}

#[test]
fn what_is_said_to_the_program_holds_under_every_name() {
    let no = "User-agent: nearcrawl\nDisallow: /\n";
    for file in [
        no.to_owned(),
        format!("{no}\nUser-agent: *\nAllow: /\n"),
        format!("{no}\nUser-agent: museumbot\nAllow: /\n"),
        format!("User-agent: museumbot\nAllow: /\n\n{no}"),
    ] {
        assert!(!Robots::parse(file.as_bytes(), "museumbot").allows("/a"), "{file}");
    }
    let both = "User-agent: nearcrawl\nDisallow: /private\n\nUser-agent: museumbot\nDisallow: /tmp\nCrawl-delay: 7\n";
    let rules = Robots::parse(both.as_bytes(), "museumbot");
    assert_eq!(["/a", "/private", "/tmp"].map(|path| rules.allows(path)), [true, false, false]);
    assert_eq!(rules.crawl_delay(), Some(7_000));
    let own = "User-agent: museumbot\nAllow: /a\nDisallow: /\n";
    assert!(Robots::parse(own.as_bytes(), "museumbot").allows("/a"), "who does not speak of the program speaks of the own name");
    assert!(Robots::parse(own.as_bytes(), "nearcrawl").allows("/b"));
}

#[test]
fn wildcards_and_lengths() {
    let table = [
        ("Disallow: /*.php$", "/a/b.php", false),
        ("Disallow: /*.php$", "/a/b.php?x", true),
        ("Disallow: /*.php", "/a/b.php5", false),
        ("Disallow: /a$b", "/a$b", false),
        ("Disallow: /$", "/", false),
        ("Disallow: /$", "/a", true),
        ("Disallow: *", "/a", false),
        ("Disallow: ***", "/a", false),
        ("Disallow: *$", "/a", false),
        ("Disallow: /a*b*c", "/a-c-b-c", false),
        ("Disallow: /a*b*c", "/a-c-b", true),
        ("Disallow: /*ab$", "/aab", false),
        ("Disallow: /*ab*ab$", "/ab", true),
        ("Disallow: /a*$", "/abc", false),
        ("Disallow: /p\nAllow: /page", "/page", true),
        ("Disallow: /page\nAllow: /page", "/page", true),
        ("Disallow: /*.html\nAllow: /a", "/a.html", false),
        ("Disallow: /*.ph\nAllow: /p*.p", "/page.ph", true),
        ("Disallow: /\nAllow: /$", "/", true),
        ("Disallow: /%7Ejoe/", "/~joe/x", false),
        ("Disallow: /~joe/", "/%7ejoe/x", false),
        ("Disallow: /a%2fb", "/a%2Fb", false),
        ("Disallow: /a%2Fb", "/a/b", true),
        ("Disallow: /ü", "/%c3%bc", false),
        ("Disallow:\nDisallow: # nothing", "/", true),
        ("Disallow: private", "/private", true),
    ];
    for (rules, path, expected) in table {
        assert_eq!(allows(&format!("User-agent: *\n{rules}\n"), path), expected, "{rules:?} for {path}");
    }
}

#[test]
fn the_literal_index_agrees_with_trying_all() {
    let mut seed = 1_u64;
    let mut word = |longest: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (length, mut bits) = ((seed >> 33) % longest, seed >> 40);
        let mut word = "/".to_owned();
        for _ in 0..length {
            word.push(if bits & 1 == 0 { 'a' } else { 'b' });
            bits >>= 1;
        }
        word
    };
    for _ in 0..200 {
        let patterns: Vec<Vec<u8>> = (0..12).map(|_| word(9).into_bytes()[1..].to_vec()).filter(|p| !p.is_empty()).collect();
        let index = Literals::new(patterns.clone());
        for _ in 0..20 {
            let path = &word(12).into_bytes()[1..];
            let expected = patterns.iter().filter(|pattern| path.starts_with(pattern)).map(Vec::len).max();
            assert_eq!(index.longest_match(path, &mut 0), expected, "{path:?} in {patterns:?}");
        }
    }
}

/// Builds the rules, and says how many steps the worst of a few paths takes.
fn worst_steps(file: &str) -> usize {
    let robots = Robots::parse(file.as_bytes(), "nearcrawl");
    let paths = [format!("/{}", "a".repeat(2047)), format!("/{}", "ab".repeat(1023)), "/".to_owned(), format!("/{}", "%61".repeat(682))];
    let mut worst = 0;
    for path in &paths {
        let mut steps = 0;
        robots.decide(path, &mut steps);
        worst = worst.max(steps);
    }
    worst
}

#[test]
fn hostile_files_cost_bounded_steps() {
    let mut many = "User-agent: *\n".to_owned();
    for i in 0..1_000_000 {
        let _ = writeln!(many, "Disallow: /{i}");
    }
    let nested: String = (1..900).map(|i| format!("Disallow: /{}c\n", "a".repeat(i))).collect();
    let wild: String = (0..40_000).map(|i| format!("Allow:/*a*a*a{i}\n")).collect();
    let table = [
        ("10,000 stars", format!("User-agent: *\nDisallow: /{}b", "*".repeat(10_000)), 5_000),
        ("10,000 stars between letters", format!("User-agent: *\nDisallow: /{}b$", "*a".repeat(10_000)), 5_000),
        ("a long rule that almost matches", format!("User-agent: *\nDisallow: /*{}b", "a".repeat(2_000)), 5_000),
        ("a million rules", many, 5_000),
        ("nested rules", format!("User-agent: *\n{nested}"), 5_000),
        ("wildcard rules without end", format!("User-agent: *\n{wild}"), 2 * MAX_WILDCARD_RULES * 2_100),
    ];
    for (name, file, most) in table {
        let steps = worst_steps(&file);
        assert!(steps <= most, "{name}: {steps} steps");
    }
}

#[test]
fn too_many_wildcard_rules_become_stricter_never_laxer() {
    let mut file = "User-agent: *\n".to_owned();
    for i in 0..MAX_WILDCARD_RULES {
        let _ = writeln!(file, "Disallow: /x*{i}");
    }
    file.push_str("Disallow: /shop*basket\nAllow: /shop/*/basket-of-apples\n");
    let robots = Robots::parse(file.as_bytes(), "nearcrawl");
    assert_eq!(robots.simplified(), 2);
    assert!(!robots.allows("/shop/1/basket") && !robots.allows("/shop/1/basket-of-apples") && !robots.allows("/shop/1"));
    assert!(robots.allows("/other"));
}

#[test]
fn only_whole_lines_of_the_first_500_kib_are_read() {
    let padding = "#".repeat(MAX_ROBOTS - "User-agent: *\n\nDisallow: /pri".len());
    let file = format!("User-agent: *\n{padding}\nDisallow: /private\nDisallow: /behind\n");
    let robots = Robots::parse(file.as_bytes(), "nearcrawl");
    assert!(robots.allows("/pri") && robots.allows("/behind"));
    assert!(Robots::parse(&vec![b'/'; 100 << 20], "nearcrawl").allows("/"));
}

#[test]
fn anything_else_is_no_rule() {
    for file in ["<!DOCTYPE html><html><body>Disallow: /</body></html>", "\0\0\0", "Disallow: /", "User-agent: *\nDisallow / and more\n"] {
        assert!(allows(file, "/x"), "{file:?}");
    }
    assert!(!allows("user-agent *\rdisallow /\r", "/x"));
    assert!(!allows("useragent: *\nDisalow: /", "/x"));
}

#[test]
fn a_summary_says_what_the_rules_come_to_for_us() {
    use nearcrawl_model::facts::RobotsSummary as Summary;
    for (body, summary) in [
        ("", Summary::AllowsAll),
        ("User-agent: *\nDisallow:", Summary::AllowsAll),
        ("User-agent: *\nAllow: /", Summary::AllowsAll),
        ("User-agent: other\nDisallow: /", Summary::AllowsAll),
        ("User-agent: *\nDisallow: /private", Summary::BarsSome),
        ("User-agent: *\nDisallow: /$", Summary::BarsSome),
        ("User-agent: *\nDisallow: /\nAllow: /open", Summary::BarsSome),
        ("User-agent: *\nDisallow: /", Summary::BarsAll),
        ("User-agent: *\nDisallow: *", Summary::BarsAll),
        ("User-agent: *\nDisallow: /private\nUser-agent: nearcrawl\nDisallow: /", Summary::BarsAll),
    ] {
        assert_eq!(Robots::parse(body.as_bytes(), "nearcrawl").summary(), summary, "{body}");
    }
}

#[test]
fn the_wish_for_the_use_of_content_is_that_of_our_group() {
    let body = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open train-ai=y\n\nUser-agent: other\nContent-usage: search=n\nDisallow: /x";
    assert_eq!(Robots::parse(body, "nearcrawl").content_usage(), Some("train-ai=n"));
    assert_eq!(Robots::parse(body, "other").content_usage(), Some("search=n"));
    assert_eq!(Robots::parse(b"User-agent: *\nContent-Usage:\nContent-Usage: a\x07\xff", "x").content_usage(), Some("a\u{fffd}"));
    assert!(Robots::parse(body, "other").allows("/y") && !Robots::parse(body, "other").allows("/x"), "it ends no group");
}
