//! Errors in JSON texts, in words for people.

use serde_json::{Error, error::Category};

/// What is wrong, as the end of a sentence about the text: `is no JSON: it breaks off`.
pub fn wrong(error: &Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof if error.line() <= 1 && error.column() == 0 => "is empty, where JSON is expected".to_owned(),
        Category::Eof => format!("is no JSON: it breaks off at {place}"),
        Category::Syntax => format!("is no JSON: something is wrong at {place}"),
        Category::Data => format!("is JSON of another shape: {}", without_place(&error.to_string())),
        Category::Io => format!("cannot be read: {error}"),
    }
}

/// The library's words without its `at line 1 column 1`, which for data is where a whole object ends.
fn without_place(said: &str) -> String {
    let words = said.rsplit_once(" at line ").map_or(said, |(words, _)| words);
    words.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Seeds {
        #[serde(rename = "urls")]
        _urls: Vec<String>,
    }

    #[test]
    fn what_is_wrong_is_said_without_the_words_of_the_library() {
        for (text, says) in [
            ("", "is empty, where JSON is expected"),
            ("<html>", "is no JSON: something is wrong at line 1, column 1"),
            ("{\"urls\": [\"a\"", "is no JSON: it breaks off at line 1, column 13"),
            ("{}", "is JSON of another shape: missing field `urls`"),
            ("{\"urls\": 3}", "is JSON of another shape: invalid type: integer `3`, expected a sequence"),
        ] {
            assert_eq!(wrong(&serde_json::from_str::<Seeds>(text).unwrap_err()), says, "{text}");
        }
    }
}
