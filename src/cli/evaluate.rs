//! `evaluate`: checks HTML files for accessibility failures that their markup proves, and prints them by rule.

use super::{CommandError, Style, Table, json};
use clap::Args;
use nearcrawl_model::{
    evaluation::{Evaluation, EvaluationCounts},
    view::counted,
};
use nearcrawl_page::{
    evaluation::{Limits, evaluate as look_at},
    scanner,
};
use serde::Serialize;
use std::{fs, path::PathBuf};

/// Shown under `evaluate --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl evaluate index.html\n  \
    nearcrawl evaluate --json site/*.html\n\n\
    Each rule is one of the W3C's ACT rules, named by its id. Only what the markup proves is a failure: no failure detected does not mean that \
    there is none.";

/// The arguments of `evaluate`.
#[derive(Args, Clone, Debug)]
pub struct EvaluateArgs {
    /// HTML files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one evaluation for each file, as JSON
    #[arg(long)]
    json: bool,
}

/// What `evaluate --json` says of a file.
#[derive(Serialize)]
struct EvaluatedFile {
    file: PathBuf,
    #[serde(flatten)]
    evaluation: Evaluation,
}

/// Reads the files and looks for failures in them.
pub fn evaluate(args: &EvaluateArgs, style: Style) -> Result<String, CommandError> {
    let mut evaluated = Vec::new();
    for file in &args.files {
        let bytes = fs::read(file).map_err(|why| CommandError::of_file(file, &why))?;
        let begun = std::time::Instant::now();
        evaluated.push(EvaluatedFile {
            file: file.clone(),
            evaluation: look_at(&scanner::text(&bytes, None), &Limits::default(), &|| begun.elapsed()),
        });
    }
    if args.json {
        return json(&evaluated);
    }
    let mut sums = EvaluationCounts::default();
    let mut text = String::new();
    for EvaluatedFile { file, evaluation } in &evaluated {
        sums.count(evaluation, 0);
        if let Some(gate) = evaluation.gate {
            text += &format!("{} was not evaluated: {gate}\n", file.display());
        }
    }
    Ok(text + &told(&sums, style))
}

/// What was detected, by rule; nothing if nothing was evaluated.
pub fn told(sums: &EvaluationCounts, style: Style) -> String {
    let refused = sums.refused.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    if sums.pages == 0 && refused == 0 {
        return String::new();
    }
    let detected = counted(sums.detected(), "accessibility failure");
    let mut text = format!("{detected} detected in {} of {} evaluated", sums.failing, counted(sums.pages, "page"));
    if refused > 0 {
        text += &format!(", {refused} refused");
    }
    if let Some(each) = sums.took_us.checked_div(sums.pages.saturating_add(refused)).filter(|each| *each > 0) {
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
    use crate::cli::Exit;

    #[test]
    fn files_are_told_by_rule() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let bad = file("bad.html", "<html lang=en><title>x</title><img src=a><img src=b><a href=c></a>");
        let deep = file("deep.html", &"<div>".repeat(1000));
        let args = |files: &[&PathBuf], json| EvaluateArgs { files: files.iter().map(|path| (*path).clone()).collect(), json };
        let text = evaluate(&args(&[&bad, &deep], false), Style::Plain).unwrap();
        assert!(text.contains("deep.html was not evaluated: its elements are nested deeper"), "{text}");
        assert!(text.contains("3 accessibility failures detected in 1 of 1 page evaluated, 1 refused"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("23a2a8") && line.contains(" 2 ") && line.ends_with("accessible name")), "{text}");
        let told: serde_json::Value = serde_json::from_str(&evaluate(&args(&[&bad, &deep], true), Style::Plain).unwrap()).unwrap();
        assert_eq!((&told[0]["failures"]["c487ae"], &told[0]["gate"]), (&1.into(), &serde_json::Value::Null));
        assert_eq!(told[1]["gate"], "too-deep");
        let missing = evaluate(&args(&[&directory.path().join("none.html")], false), Style::Plain).unwrap_err();
        assert_eq!(missing.exit, Exit::NoInput);
    }
}
