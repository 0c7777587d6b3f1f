//! Renders pages, and tells which of their elements fail which rule.

use super::{
    host::{Host, Page, Voice},
    lists::FLAWS,
};
use std::collections::BTreeMap;

/// How often each rule is failed, and the line in which the first element begins that does.
pub(crate) type Failures = BTreeMap<&'static str, (u64, u32)>;

/// The text of a page, by lines.
#[derive(Default)]
struct Lines {
    text: String,
    count: u32,
    failures: Failures,
}

impl Lines {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
    }

    /// The element that the next line begins with fails this rule.
    fn fails(&mut self, rule: &'static str) {
        let line = self.count + 1;
        self.failures.entry(rule).or_insert((0, line)).0 += 1;
    }
}

/// Writes a page with these references, as `href` has them; `version` is how often it has changed.
pub(crate) fn page(host: &Host, page: &Page, run: u32, hrefs: &[String]) -> (Vec<u8>, Failures) {
    let voice = host.voice(run);
    let mut lines = Lines::default();
    lines.line("<!doctype html>");
    begin(&mut lines, &voice);
    if !page.titled {
        // The page as a whole fails, which begins with its root element.
        lines.failures.insert("2779a5", (1, 2));
    }
    lines.line("<head>");
    if !host.latin1 {
        lines.line("<meta charset=\"utf-8\">");
    }
    if page.titled {
        lines.line(&format!("<title>{}</title>", title(host, page)));
    }
    if let Some(generator) = host.generator {
        lines.line(&format!("<meta name=\"generator\" content=\"{generator}\">"));
    }
    if let Some(reserved) = host.tdm_meta {
        lines.line(&format!("<meta name=\"tdm-reservation\" content=\"{}\">", u8::from(reserved)));
    }
    let robots: Vec<&str> =
        [(page.no_index, "noindex"), (page.no_follow, "nofollow")].iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    if !robots.is_empty() {
        lines.line(&format!("<meta name=\"robots\" content=\"{}\">", robots.join(", ")));
    }
    flaws(&mut lines, page, true);
    lines.line("</head>");
    lines.line("<body>");
    (0..3).for_each(|_| lines.line(&format!("<p>{}</p>", voice.text)));
    hrefs.iter().for_each(|href| lines.line(&format!("<p><a href=\"{}\">{}</a></p>", href.replace('&', "&amp;"), voice.word)));
    flaws(&mut lines, page, false);
    let version = page.edits.iter().filter(|edit| **edit <= run).count();
    lines.line(&format!("<p>{version}</p>"));
    lines.line("</body>");
    lines.line("</html>");
    (lines.text.into_bytes(), lines.failures)
}

fn begin(lines: &mut Lines, voice: &Voice) {
    let tag = voice.tag.filter(|_| !voice.by_header);
    match tag {
        None => lines.fails("b5c3f8"),
        Some(_) if !voice.is_valid => lines.fails("bf051a"),
        Some(_) => {}
    }
    lines.line(&tag.map_or_else(|| "<html>".to_owned(), |(tag, _)| format!("<html lang=\"{tag}\">")));
}

fn flaws(lines: &mut Lines, page: &Page, in_head: bool) {
    for flaw in page.flaws.iter().filter(|flaw| flaw.in_head == in_head) {
        assert!(FLAWS.contains(flaw));
        lines.fails(flaw.rule);
        lines.line(flaw.markup);
    }
}

/// The title of a page.
pub(crate) fn title(host: &Host, page: &Page) -> String {
    format!("{} {}", host.domain, page.path)
}
