//! `evaluate`: checks HTML files for accessibility failures that their markup proves, and tells where they are.

mod earl;

use super::{CommandError, Exit, Style, Table, json};
use clap::Args;
use nearcrawl_model::{
    evaluation::{Evaluation, EvaluationCounts, Gate, RULE_SET, Rule},
    view::counted,
};
use nearcrawl_page::{
    evaluation::{Findings, Limits, Place, find, is_html},
    scanner,
};
use serde::Serialize;
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Shown under `evaluate --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl evaluate index.html\n  \
    nearcrawl evaluate --json site/*.html\n  \
    nearcrawl evaluate --earl report.jsonld site/*.html\n\n\
    Each rule is one of the W3C's ACT rules, named by its id. Only what the markup proves is a failure. What style sheets in \
    other files hide counts as visible, unless a class says so. No failure detected does not mean that there is none.\n\n\
    Files that cannot be read, are not HTML or would cost too much are named, and the others evaluated. The exit code is 0 if all were \
    evaluated, whatever was detected; 65 if some were refused, 66 if some are not there.";

/// The arguments of `evaluate`.
#[derive(Args, Clone, Debug)]
pub struct EvaluateArgs {
    /// HTML files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one evaluation for each file, as JSON
    #[arg(long)]
    json: bool,
    /// Write a report in the W3C's EARL 1.0 to this file, as JSON-LD
    #[arg(long, value_name = "FILE.jsonld")]
    earl: Option<PathBuf>,
}

/// A file, and what came of it.
struct Evaluated {
    file: PathBuf,
    /// What was found, or why the file was not read.
    found: Result<Findings, CommandError>,
}

impl Evaluated {
    fn of(file: &Path) -> Evaluated {
        let found = read(file).map(|bytes| findings(file, &bytes)).map_err(|why| CommandError::of_file(file, &why));
        Evaluated { file: file.to_owned(), found }
    }

    /// Why it was not evaluated; none if it was.
    fn failure(&self) -> Option<CommandError> {
        match &self.found {
            Ok(found) => found.evaluation.gate.map(|gate| CommandError::new(Exit::Data, format!("{}: {gate}", self.file.display()))),
            Err(why) => Some(why.clone()),
        }
    }
}

/// A file, or one byte more of it than is evaluated.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(Limits::default().bytes as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn findings(file: &Path, bytes: &[u8]) -> Findings {
    let begun = std::time::Instant::now();
    let limits = Limits::default();
    let text = scanner::text(bytes, None);
    if !is_html(&text, is_called_html(file)) {
        return Findings::refused(Gate::NotHtml);
    }
    if bytes.len() > limits.bytes {
        return Findings::refused(Gate::TooLong);
    }
    find(&text, &limits, &|| begun.elapsed())
}

/// Whether the name of a file says that it is HTML.
fn is_called_html(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["html", "htm", "xhtml", "xht", "shtml"].iter().any(|each| extension.eq_ignore_ascii_case(each))
}

/// What `evaluate --json` says of a file.
#[derive(Serialize)]
struct FileView<'e> {
    file: &'e Path,
    rule_set: u32,
    #[serde(flatten)]
    evaluation: Evaluation,
    places: Vec<PlaceView<'e>>,
    /// Why it was not evaluated.
    error: Option<String>,
}

#[derive(Serialize)]
struct PlaceView<'e> {
    rule: Rule,
    line: u32,
    tag_text: &'e str,
}

impl<'e> From<&'e Evaluated> for FileView<'e> {
    fn from(evaluated: &'e Evaluated) -> FileView<'e> {
        let found = evaluated.found.as_ref().ok();
        let places = found.into_iter().flat_map(|found| &found.places);
        FileView {
            file: &evaluated.file,
            rule_set: RULE_SET,
            evaluation: found.map(|found| found.evaluation.clone()).unwrap_or_default(),
            places: places.map(|Place { rule, line, tag }| PlaceView { rule: *rule, line: *line, tag_text: tag }).collect(),
            error: evaluated.failure().map(|failure| failure.message),
        }
    }
}

/// Reads the files and looks for failures in them: what is to be printed, and which files were not evaluated, if there are some.
pub fn evaluate(args: &EvaluateArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let evaluated: Vec<Evaluated> = args.files.iter().map(|file| Evaluated::of(file)).collect();
    let text = if args.json { json(&evaluated.iter().map(FileView::from).collect::<Vec<_>>())? } else { text(&evaluated, style) };
    if let Some(path) = &args.earl {
        let found = evaluated.iter().filter_map(|each| Some((each.file.as_path(), each.found.as_ref().ok()?)));
        fs::write(path, json(&earl::report(found))?).map_err(|why| CommandError::creating(path, &why))?;
    }
    Ok((text, failure(&evaluated)))
}

/// Which files were not evaluated, and why; none if all were. The exit code is that of the first one.
fn failure(evaluated: &[Evaluated]) -> Option<CommandError> {
    let failures: Vec<CommandError> = evaluated.iter().filter_map(Evaluated::failure).collect();
    let first = failures.first()?;
    if evaluated.len() == 1 {
        return Some(first.clone());
    }
    let why: String = failures.iter().map(|failure| format!("\n  {}", failure.message)).collect();
    Some(CommandError::new(
        first.exit,
        format!("{} of {} were not evaluated:{why}", failures.len(), counted(evaluated.len() as u64, "file")),
    ))
}

/// One line for each failure, like those of compilers, and a table of all.
fn text(evaluated: &[Evaluated], style: Style) -> String {
    let mut sums = EvaluationCounts::default();
    let mut text = String::new();
    for Evaluated { file, found } in evaluated {
        let Ok(found) = found else { continue };
        sums.count(&found.evaluation, 0);
        for Place { rule, line, tag } in &found.places {
            text += &format!("{}:{line}: {} {}: {tag}\n", file.display(), rule.id(), rule.name());
        }
        let untold = found.evaluation.total().saturating_sub(found.places.len() as u64);
        if untold > 0 {
            text += &format!("{}: {} not shown\n", file.display(), counted(untold, "further failure"));
        }
    }
    let told = told(&sums, false, style);
    if told.is_empty() {
        return text;
    }
    if !text.is_empty() {
        text += "\n";
    }
    text + &told + &format!("rule set {RULE_SET}: {} of the W3C's ACT rules\n", Rule::ALL.len())
}

/// What was detected, by rule; nothing if nothing was evaluated. `are_all_timed`: whether the time is that of all these pages. It is not where
/// some have not changed since an earlier run, whose result they keep.
pub fn told(sums: &EvaluationCounts, are_all_timed: bool, style: Style) -> String {
    let refused = sums.refused.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    if sums.pages == 0 && refused == 0 {
        return String::new();
    }
    let detected = counted(sums.detected(), "accessibility failure");
    let mut text = format!("{detected} detected in {} of {} evaluated", sums.failing, counted(sums.pages, "page"));
    if refused > 0 {
        text += &format!(", {refused} refused");
    }
    let each = sums.took_us.checked_div(sums.pages.saturating_add(refused));
    if let Some(each) = each.filter(|each| are_all_timed && *each > 0) {
        text += &format!(", {each} µs a page");
    }
    text += "\n";
    let mut table = Table::new(&["rule", ">failures", "name"]);
    for (rule, count) in &sums.failures {
        table.row(vec![rule.id().to_owned(), count.to_string(), rule.name().to_owned()]);
    }
    text + &table.text(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Files {
            Files(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        }
    }

    fn told(files: &[&PathBuf]) -> (String, Option<CommandError>, Value) {
        let evaluated: Vec<Evaluated> = files.iter().map(|file| Evaluated::of(file)).collect();
        let views = json(&evaluated.iter().map(FileView::from).collect::<Vec<_>>()).unwrap();
        (text(&evaluated, Style::Plain), failure(&evaluated), serde_json::from_str(&views).unwrap())
    }

    #[test]
    fn the_time_of_a_page_is_told_only_where_all_were_timed() {
        let sums = EvaluationCounts { pages: 4, took_us: 2_000, ..EvaluationCounts::default() };
        assert!(super::told(&sums, true, Style::Plain).ends_with("in 0 of 4 pages evaluated, 500 µs a page\n"));
        assert!(super::told(&sums, false, Style::Plain).ends_with("in 0 of 4 pages evaluated\n"), "some kept the result of an earlier run");
    }

    #[test]
    fn files_are_told_by_line_and_by_rule() {
        let files = Files::new();
        let bad = files.write("bad.html", b"<html lang=en><title>x</title>\n<img src=a>\n<img src=b><a href=c></a>");
        let (text, failure, views) = told(&[&bad]);
        assert_eq!(failure, None, "what was detected is no failure of the command");
        let line = format!("{}:3: c487ae Link has non-empty accessible name: <a href=\"c\">", bad.display());
        assert!(text.lines().any(|told| told == line), "{text}");
        assert!(text.contains("3 accessibility failures detected in 1 of 1 page evaluated\n"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("23a2a8") && line.contains(" 2 ") && line.ends_with("accessible name")), "{text}");
        assert!(text.ends_with(&format!("rule set {RULE_SET}: 34 of the W3C's ACT rules\n")), "{text}");
        assert_eq!((&views[0]["failures"]["c487ae"], &views[0]["gate"], &views[0]["error"]), (&1.into(), &Value::Null, &Value::Null));
        assert_eq!((&views[0]["places"][1]["line"], &views[0]["places"][1]["rule"]), (&3.into(), &"23a2a8".into()));
        assert_eq!(views[0]["rule_set"], RULE_SET);
    }

    #[test]
    fn one_file_that_is_not_there_or_no_page_does_not_hide_the_others() {
        let files = Files::new();
        let missing = files.0.path().join("none.html");
        let bad = files.write("bad.html", b"<html lang=en><title>x</title><img src=a>");
        let deep = files.write("deep.html", "<div>".repeat(1000).as_bytes());
        let binary = files.write("program", b"\x7fELF\x02\x01\x01\0\0\0<p>");
        let (text, failure, views) = told(&[&missing, &bad, &deep, &binary]);
        let failure = failure.unwrap();
        assert_eq!(failure.exit, Exit::NoInput);
        assert!(failure.message.starts_with("3 of 4 files were not evaluated:\n"), "{failure}");
        for why in ["none.html: No such file", "deep.html: its elements are nested deeper", "program: it is not HTML"] {
            assert!(failure.message.contains(why), "{failure}");
        }
        assert!(text.contains("1 accessibility failure detected in 1 of 1 page evaluated, 2 refused"), "{text}");
        let views = views.as_array().unwrap();
        assert_eq!(views.len(), 4, "one entry for each file");
        assert!(views[0]["error"].as_str().is_some_and(|why| why.contains("No such file")) && views[0]["gate"].is_null());
        assert_eq!((&views[1]["failures"]["23a2a8"], &views[1]["error"]), (&1.into(), &Value::Null));
        assert_eq!((&views[2]["gate"], &views[3]["gate"]), (&"too-deep".into(), &"not-html".into()));
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let files = Files::new();
        let others = [
            ("data.json", &b"{\"a\": \"<p>x</p>\"}"[..]),
            ("notes.txt", b"Remember the <b>milk</b>"),
            ("feed.xml", b"<?xml version='1.0'?><rss><title>x</title></rss>"),
            ("picture.html", b"\x89PNG\r\n\x1a\n\0\0<p>"),
            ("empty.html", b""),
            ("long", &b"x".repeat(3 << 20)),
        ];
        for (name, bytes) in others {
            let failure = told(&[&files.write(name, bytes)]).1.unwrap();
            assert_eq!(failure.exit, Exit::Data, "{failure}");
            assert!(failure.message.ends_with(&format!("{name}: it is not HTML")), "{failure}");
        }
        for (name, bytes) in
            [("page", &b"<!doctype html><p>x"[..]), ("part.htm", b"Remember the <b>milk</b>"), ("page.txt", b"\n<html lang=en>")]
        {
            assert_eq!(told(&[&files.write(name, bytes)]).1, None, "{name}");
        }
    }

    #[test]
    fn a_report_is_written_in_earl() {
        let files = Files::new();
        let page = files.write("a page.html", b"<!doctype html>\n<html lang=en><title>x</title>\n<img src=a><img src=b>\n<a href=c>c</a>");
        let deep = files.write("deep.html", "<div>".repeat(1000).as_bytes());
        let (missing, report) = (files.0.path().join("none.html"), files.0.path().join("report.jsonld"));
        let args = EvaluateArgs { files: vec![page, deep, missing], json: false, earl: Some(report.clone()) };
        let (_, failure) = evaluate(&args, Style::Plain).unwrap();
        assert_eq!(failure.unwrap().exit, Exit::Data);

        let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
        assert_eq!(report["@context"]["@vocab"], "http://www.w3.org/ns/earl#");
        let subjects = report["@graph"].as_array().unwrap();
        assert_eq!(subjects.len(), 2, "of what could not be read nothing is asserted");
        let source = subjects[0]["source"].as_str().unwrap();
        assert!(source.starts_with("file:///") && source.ends_with("/a%20page.html"), "{source}");
        let (here, above) = (files.0.path().join("here"), files.0.path().join("here/../a page.html"));
        fs::create_dir(here).unwrap();
        let (found, same) = (Evaluated::of(&above), files.0.path().canonicalize().unwrap().join("a page.html"));
        let climbed = earl::report([(above.as_path(), found.found.as_ref().unwrap())].into_iter());
        assert_eq!(climbed["@graph"][0]["source"], url::Url::from_file_path(same).unwrap().as_str());
        let of_rule = |subject: &Value, rule: &str| -> Vec<Value> {
            let url = format!("https://www.w3.org/WAI/standards-guidelines/act/rules/{rule}/");
            let assertions = subject["assertions"].as_array().unwrap();
            assertions.iter().filter(|assertion| assertion["test"]["@id"] == url.as_str()).cloned().collect()
        };
        let images = of_rule(&subjects[0], "23a2a8");
        assert_eq!(images.len(), 2, "one for each failing element");
        for image in &images {
            assert_eq!((&image["@type"], &image["mode"]), (&"Assertion".into(), &"earl:automatic".into()));
            assert_eq!(image["test"]["title"], "Image has non-empty accessible name");
            assert_eq!(image["result"]["outcome"], "earl:failed");
            assert_eq!(image["result"]["pointer"]["ptr:lineNumber"], 3);
            assert_eq!(image["subject"]["source"], source);
            assert_eq!(image["assertedBy"]["release"]["revision"], env!("CARGO_PKG_VERSION"));
        }
        let outcome = |subject: &Value, rule: &str| match &of_rule(subject, rule)[..] {
            [only] => only["result"]["outcome"].clone(),
            several => panic!("{several:?}"),
        };
        assert_eq!(outcome(&subjects[0], "c487ae"), "earl:passed");
        assert_eq!(outcome(&subjects[0], "97a4e1"), "earl:inapplicable");
        for rule in Rule::ALL {
            assert_eq!(outcome(&subjects[1], rule.id()), "earl:cantTell", "it was refused");
        }
    }
}
