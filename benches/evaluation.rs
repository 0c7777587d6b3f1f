//! Benchmark of the search for failures in a page: real pages, and pages that are written to cost.
//!
//! `cargo bench --bench evaluation` reads the pages beside the tests; `cargo bench --bench evaluation -- DIRECTORY…` reads all HTML files
//! below the directories and tells what was detected in them, too.

use nearcrawl::cli::Style;
use nearcrawl_model::evaluation::EvaluationCounts;
use nearcrawl_page::{
    evaluation::{Limits, evaluate},
    scanner,
};
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How often each page is evaluated; the shortest time counts.
const ROUNDS: usize = 3;

fn html_files(directory: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            html_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            files.push(path);
        }
    }
}

fn real_pages(directories: &[PathBuf]) {
    let mut files = Vec::new();
    directories.iter().for_each(|directory| html_files(directory, &mut files));
    let (mut sums, mut times, mut bytes) = (EvaluationCounts::default(), Vec::new(), 0);
    for file in files {
        let Ok(content) = fs::read(&file) else { continue };
        let time = || {
            let begun = Instant::now();
            let evaluation = evaluate(&scanner::text(&content, None), &Limits::default(), &|| begun.elapsed());
            (begun.elapsed(), evaluation)
        };
        let Some((took, evaluation)) = (0..ROUNDS).map(|_| time()).min_by_key(|(took, _)| *took) else { continue };
        bytes += content.len();
        times.push(took);
        sums.count(&evaluation, u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }
    times.sort();
    let at = |percent: usize| times.get(times.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default();
    let seconds = times.iter().sum::<Duration>().as_secs_f64();
    println!(
        "{} pages of {} KB on average: {:.0} µs a page, median {:.0?}, 90 % {:.0?}, 99 % {:.0?}, longest {:.0?}; {:.1} MB/s",
        times.len(),
        bytes / times.len().max(1) / 1000,
        seconds * 1e6 / times.len().max(1) as f64,
        at(50),
        at(90),
        at(99),
        at(100),
        bytes as f64 / 1e6 / seconds
    );
    println!("{}", nearcrawl::cli::detected(&sums, true, Style::Plain));
}

/// Half a megabyte of each.
fn hostile_pages() {
    let many = |piece: &str| piece.repeat(500_000 / piece.len());
    let numbered = |before: &str, behind: &str, count: usize| {
        (0..count).fold(String::new(), |mut text, number| {
            let _ = write!(text, "{before}{number}{behind}");
            text
        })
    };
    let pages = [
        ("nested lists", many("<ul><li>")),
        ("nested tables", many("<table><tr><td>")),
        ("formatting in paragraphs", numbered("<p><b id=", ">", 30_000)),
        ("reopened formatting", numbered("<font size=", ">", 100) + &many("<p>x")),
        ("adoption agency", many("<a><div></a>")),
        ("adoption, deep down", "<div>".repeat(100) + &many("<a><p></a></p>")),
        ("tables, deep down", "<i>".repeat(100) + &many("<table><tr><td><b>x</table>")),
        ("misnested formatting", many("<b><i></b></i>")),
        ("foster-parented tables", many("<table><a>")),
        ("text in tables", "<table>".to_owned() + &many("x<tr>")),
        ("100,000 attributes", format!("<p{}>", numbered(" a", "=1", 100_000))),
        ("attributes on bodies", numbered("<body a", "=1>", 40_000)),
        ("names of names", "<i role=button>".repeat(100) + &"<b></b>".repeat(60_000)),
        ("open brackets", many("<")),
        ("styles opened anew", format!("<p><b style='{}'>{}", "a:b;".repeat(100_000), "<p>x".repeat(25_000))),
        ("attributes opened anew", format!("<p><b{}>{}", numbered(" a", "", 190), "<p>x".repeat(45_000))),
        (
            "labels and references",
            format!("<input id=x>{}<a href=x aria-labelledby='{}'>", numbered("<label for=x id=", "></label>", 8_000), many("x ")),
        ),
        ("selectors within a rule", format!("<style>{}b{{{}{{display:none}}}}", "a,".repeat(499), many("&,"))),
        ("classes and selectors", {
            let style = format!("b{}:empty{{display:none}}", format!(":not({})", numbered(".x", ",", 99)).repeat(50));
            format!("<style>{style}</style>{}", many(&format!("<b class='{}'>x</b>", numbered("y", " ", 100))))
        }),
        ("labels", many("<label for=x></label>")),
    ];
    for (name, page) in pages {
        let begun = Instant::now();
        let evaluation = evaluate(&page, &Limits::default(), &|| begun.elapsed());
        let gate = evaluation.gate.map_or_else(|| "evaluated".to_owned(), |gate| format!("refused: {gate}"));
        println!("{name:<26} {:>7.1} ms  {gate}", begun.elapsed().as_secs_f64() * 1e3);
    }
}

fn main() {
    let mut directories: Vec<PathBuf> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).map(PathBuf::from).collect();
    if directories.is_empty() {
        directories.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/html"));
    }
    real_pages(&directories);
    hostile_pages();
}
