//! The page nearcrawl.toml(5): every key of the example file with its meaning and default, and what the configuration's parser allows.

use crate::node::config::{
    Config, ConfigError,
    explained::{Entry, explained},
};
use std::{
    io::{self, Write},
    path::Path,
};

/// Writes the page.
pub(super) fn page(out: &mut Vec<u8>) -> io::Result<()> {
    writeln!(out, ".TH nearcrawl.toml 5 \"\" \"nearcrawl {}\" \"nearcrawl configuration\"", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, ".SH NAME\nnearcrawl.toml \\- configuration of the nearcrawl daemon")?;
    writeln!(out, ".SH SYNOPSIS\n\\fI/etc/nearcrawl/nearcrawl.toml\\fR\n.br\n\\fBnearcrawl run\\fR \\fB\\-\\-config\\fR \\fI<FILE>\\fR")?;
    writeln!(out, ".SH DESCRIPTION")?;
    writeln!(
        out,
        "A TOML file. Every key may be left out, and then has the default given here, or no value where an example is given. \
         \\fBnearcrawl check\\fR explains what is wrong with a file, line by line. Durations are written \"50ms\", \"45s\", \"10m\", \
         \"12h\", \"7d\"; sizes \"64KiB\", \"8MiB\", \"1GiB\". Relative paths are relative to the file's directory."
    )?;
    for entry in explained() {
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
    use crate::node::config::explained::EXAMPLE;

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
        for (section, key) in [("crawl", "revisit"), ("store", "memory"), ("crawl", "max_parallel")] {
            assert!(allowed(section, key).unwrap().contains(" from "), "{section}.{key}");
        }
        for entry in explained() {
            let Entry::Keys { section, keys, meaning } = entry else { continue };
            assert!(!meaning.is_empty(), "{section} {keys:?} has no comment");
        }
    }
}
