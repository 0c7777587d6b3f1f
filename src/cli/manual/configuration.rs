//! The page nearcrawl.toml(5): every key of the example file with its meaning and default, and what the configuration's parser allows.

use crate::node::config::{Config, ConfigError};
use std::{
    io::{self, Write},
    path::Path,
};

/// The example that is packaged with the daemon: every key with its default, explained by the comment before it.
const EXAMPLE: &str = include_str!("../../../nearcrawl.example.toml");

/// What the example file says, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// `[name]`, and what is said of it.
    Section { name: String, meaning: String },
    /// Keys that one comment explains together, each with the value in the example.
    Keys { section: String, keys: Vec<(String, String)>, meaning: String },
}

/// Writes the page.
pub(super) fn page(out: &mut Vec<u8>) -> io::Result<()> {
    writeln!(out, ".TH nearcrawl.toml 5 \"\" \"nearcrawl {}\" \"nearcrawl configuration\"", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, ".SH NAME\nnearcrawl.toml \\- configuration of the nearcrawl daemon")?;
    writeln!(out, ".SH SYNOPSIS\n\\fI/etc/nearcrawl/nearcrawl.toml\\fR\n.br\n\\fBnearcrawl run\\fR \\fB\\-\\-config\\fR \\fI<FILE>\\fR")?;
    writeln!(out, ".SH DESCRIPTION")?;
    writeln!(
        out,
        "A TOML file. Every key may be left out, and then has the default given here. \\fBnearcrawl check\\fR explains what is wrong with a \
         file, line by line. Durations are written \"50ms\", \"45s\", \"10m\", \"12h\", \"7d\"; sizes \"64KiB\", \"8MiB\", \"1GiB\". Relative \
         paths are relative to the file's directory."
    )?;
    for entry in entries(EXAMPLE) {
        match entry {
            Entry::Section { name, meaning } => {
                writeln!(out, ".SH [{}]", name.to_uppercase())?;
                if !meaning.is_empty() {
                    writeln!(out, "{}", roff(&meaning))?;
                }
            }
            Entry::Keys { section, keys, meaning } => write_keys(out, &section, &keys, &meaning)?,
        }
    }
    writeln!(out, ".SH SEE ALSO\n\\fBnearcrawl\\fR(1), \\fBnearcrawl\\-check\\fR(1), \\fBnearcrawl\\-run\\fR(1)")
}

fn write_keys(out: &mut Vec<u8>, section: &str, keys: &[(String, String)], meaning: &str) -> io::Result<()> {
    let names: Vec<String> = keys.iter().map(|(key, _)| format!("\\fB{}\\fR", roff(key))).collect();
    writeln!(out, ".TP\n{}\n{}", names.join(", "), roff(meaning))?;
    for (key, value) in keys {
        let which = if keys.len() > 1 { format!("{}: ", roff(key)) } else { String::new() };
        let default = if meaning.contains("No default") { "Example" } else { "Default" };
        writeln!(out, ".br\n{which}{default}: {}.", roff(value))?;
        if let Some(allowed) = allowed(section, key) {
            writeln!(out, "{}.", roff(&allowed))?;
        }
    }
    Ok(())
}

/// Text in which nothing is taken for a request or an escape.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Reads the example file: comments (`# …`), sections (`[name]`), keys that are switched off (`#key = value`).
fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut section, mut comment, mut heading) = (String::new(), Vec::new(), true);
    for line in text.lines() {
        if let Some(said) = line.strip_prefix("# ") {
            comment.push(said);
        } else if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
            entries.push(Entry::Section { name: section.clone(), meaning: comment.join(" ") });
            comment.clear();
        } else if let Some((key, value)) = line.strip_prefix('#').and_then(|rest| rest.split_once(" = ")).filter(|(key, _)| is_key(key)) {
            let pair = (key.to_owned(), value.to_owned());
            match entries.last_mut() {
                Some(Entry::Keys { keys, .. }) if comment.is_empty() => keys.push(pair),
                _ => entries.push(Entry::Keys { section: section.clone(), keys: vec![pair], meaning: comment.join(" ") }),
            }
            comment.clear();
        } else if let (Some(item), Some(Entry::Keys { keys, .. })) = (line.strip_prefix('#'), entries.last_mut()) {
            // A list over several lines.
            keys.last_mut().into_iter().for_each(|(_, value)| value.push_str(item));
        } else if heading {
            // What stands before the first empty line is about the file, which the description says.
            comment.clear();
            heading = false;
        }
    }
    entries
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// What a key's value may be, as the parser says it of values that it refuses; a range if there is one.
fn allowed(section: &str, key: &str) -> Option<String> {
    let header = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
    let answers = ["\"9999999d\"", "\"999999GiB\"", "\"0us\"", "-1", "[-1]"].map(|value| refusal(&format!("{header}{key} = {value}\n")));
    let ranges = answers.iter().flatten().find(|answer| answer.contains(" from ") && answer.contains(" to "));
    let single = answers.get(3).and_then(Option::as_ref).filter(|answer| !answer.contains("square brackets"));
    let answer = ranges.or(single).or(answers.get(4).and_then(Option::as_ref))?;
    let mut letters = answer.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
}

fn refusal(text: &str) -> Option<String> {
    match Config::parse(text, Path::new("nearcrawl.toml")) {
        Err(ConfigError::Wrong { problems, .. }) => problems.into_iter().next().map(|problem| problem.message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        let mut out = Vec::new();
        page(&mut out).unwrap();
        String::from_utf8(out).unwrap().replace("\\-", "-")
    }

    #[test]
    fn every_key_of_the_example_is_explained_with_its_default() {
        let text = text();
        let (mut section, mut keys) = (String::new(), 0);
        for line in EXAMPLE.lines() {
            if line.starts_with('[') {
                section = line.to_uppercase();
                assert!(text.contains(&format!(".SH {section}\n")), "{section}");
            }
            let Some((key, _)) =
                line.strip_prefix('#').filter(|rest| !rest.starts_with([' ', '{'])).and_then(|rest| rest.split_once(" = "))
            else {
                continue;
            };
            let part = text.split(".SH ").find(|part| section.is_empty() || part.starts_with(&section)).unwrap();
            let part = if section.is_empty() { text.as_str() } else { part };
            assert!(part.contains(&format!("\\fB{key}\\fR")), "{section} {key} is missing in\n{part}");
            keys += 1;
        }
        assert!(keys > 60, "{keys}");
    }

    #[test]
    fn ranges_are_those_of_the_parser() {
        assert_eq!(allowed("swarm", "readers").unwrap(), "Write \"anybody\" or \"members\"");
        assert_eq!(allowed("crawl", "depth").unwrap(), refusal("[crawl]\ndepth = -1").map(|text| text.replacen('w', "W", 1)).unwrap());
        for (section, key) in [("crawl", "revisit"), ("store", "memory"), ("crawl", "parallel")] {
            assert!(allowed(section, key).unwrap().contains(" from "), "{section}.{key}");
        }
        for entry in entries(EXAMPLE) {
            let Entry::Keys { section, keys, meaning } = entry else { continue };
            assert!(!meaning.is_empty(), "{section} {keys:?} has no comment");
        }
    }
}
