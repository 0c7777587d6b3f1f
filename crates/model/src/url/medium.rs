//! Recognises by the file name what is no HTML page.
//!
//! Only HTML is collected (Low Load Server Crawler, LL-6), so a picture need not be requested at all.

/// Endings of what is never HTML, in order. Those of programs that may answer with HTML (`.cgi`, `.py`, `.pl`) are not here, nor `.xml`,
/// which may be XHTML.
const MEDIA: [&str; 89] = [
    "3gp", "7z", "aac", "apk", "asc", "avi", "avif", "bin", "bmp", "bz2", "cab", "css", "csv", "deb", "dmg", "doc", "docx", "dvi", "eot",
    "epub", "exe", "flac", "flv", "gif", "gz", "ico", "img", "ipynb", "iso", "jar", "jpeg", "jpg", "js", "json", "kml", "kmz", "m3u8",
    "m4a", "m4v", "map", "md5", "mid", "mjs", "mkv", "mobi", "mov", "mp3", "mp4", "mpeg", "mpg", "msi", "odp", "ods", "odt", "ogg", "ogv",
    "otf", "pdf", "png", "ppt", "pptx", "ps", "rar", "rpm", "rtf", "sha256", "sig", "svg", "tar", "tbz2", "tex", "tgz", "tif", "tiff",
    "torrent", "ttf", "txt", "txz", "wasm", "wav", "webm", "webp", "wmv", "woff", "woff2", "xls", "xlsx", "xz", "zip",
];

/// The longest of them.
const MAX_LENGTH: usize = 7;

/// The same as numbers, in the same order: an ending is found without comparing texts.
const NUMBERS: [u64; MEDIA.len()] = {
    let mut numbers = [0; MEDIA.len()];
    let mut at = 0;
    while at < MEDIA.len() {
        numbers[at] = number(MEDIA[at].as_bytes());
        at += 1;
    }
    numbers
};

/// The bytes of a short text, in lower case, first the first: in the order of texts.
const fn number(text: &[u8]) -> u64 {
    let mut number = 0;
    let mut at = 0;
    while at < text.len() {
        number |= (text[at].to_ascii_lowercase() as u64) << (56 - 8 * at);
        at += 1;
    }
    number
}

/// Whether a path ends in the name of a file that is never HTML. A script that is asked for a picture (`/get?f=a.png`) is not meant:
/// give the path alone.
pub(super) fn names_media(path: &str) -> bool {
    let path = path.as_bytes();
    let Some(from_end) = path.iter().rev().take(MAX_LENGTH + 1).position(|byte| matches!(byte, b'.' | b'/')) else { return false };
    let (stem, ending) = path.split_at(path.len() - from_end);
    // Behind the last slash stands a name, and before its last dot something, too.
    matches!(stem, [.., before, b'.'] if *before != b'/') && NUMBERS.binary_search(&number(ending)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endings_are_in_order_so_that_they_are_found() {
        assert!(MEDIA.is_sorted() && MEDIA.iter().all(|ending| ending.len() <= MAX_LENGTH));
        assert!(MEDIA.iter().all(|ending| names_media(&format!("/a.{ending}")) && names_media(&format!("/a.{}", ending.to_uppercase()))));
    }

    #[test]
    fn pages_and_programs_are_asked_for() {
        for path in
            ["/", "/a", "/a.html", "/a.htm", "/a.php", "/a.asp", "/a.cgi", "/a.py", "/a.xml", "/a.b.", "/.png", "/png", "/a.png/", "/v1.2"]
        {
            assert!(!names_media(path), "{path}");
        }
        assert!(names_media("/a/b.tar.gz") && names_media("/paper.PDF"));
    }
}
