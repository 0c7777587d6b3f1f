//! Explanations of all keys, read from the packaged example.

/// The example that is packaged with the daemon: every key with its default, or an example value where the comment before it
/// says "No default".
pub(crate) const EXAMPLE: &str = include_str!("../../../nearcrawl.example.toml");

/// What the example file says, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// `[name]`, and what is said of it.
    Section { name: String, meaning: String },
    /// Keys that one comment explains together, each with the value in the example.
    Keys { section: String, keys: Vec<(String, String)>, meaning: String },
}

/// Every section and key, in the order of the example.
pub(crate) fn explained() -> Vec<Entry> {
    entries(EXAMPLE)
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
