//! Checks language tags against the registry of language subtags.

use std::sync::LazyLock;

/// The primary language subtags of the IANA registry, sorted.
static LANGUAGES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let lines = include_str!("../../../../data/languages.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_ascii_whitespace).collect()
});

/// The primary subtag of a language tag in lower case, if it is registered as a language: `en` of `EN-gb`. Grandfathered tags (`i-lux`) have
/// none.
pub(super) fn primary(tag: &str) -> Option<&'static str> {
    let first = tag.trim_ascii().split('-').next()?.to_ascii_lowercase();
    LANGUAGES.binary_search(&first.as_str()).ok().map(|at| LANGUAGES[at])
}

#[cfg(test)]
mod tests {
    use super::primary;

    #[test]
    fn languages_are_those_that_are_registered() {
        assert!(super::LANGUAGES.is_sorted_by(|left, right| left < right));
        for (tag, language) in
            [("en", "en"), ("EN-us-GB", "en"), (" fr ", "fr"), ("sgn", "sgn"), ("qaa-x", "qaa"), ("cmn", "cmn"), ("zh-Hant", "zh")]
        {
            assert_eq!(primary(tag), Some(language), "{tag}");
        }
        for tag in ["", "  ", "eng", "english", "i-lux", "x-klingon", "en_US", "#1", "invalid", "e"] {
            assert_eq!(primary(tag), None, "{tag}");
        }
    }
}
