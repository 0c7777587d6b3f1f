//! The list of a survey: a file of URLs or hosts with labels, as text or CSV.
//!
//! Whatever cannot be read is named with its line.

use crate::cli::{
    error::{CommandError, Exit},
    seed,
};
use nearcrawl_model::{
    survey::{SurveyEntry, check_labels},
    url::PageUrl,
    view::counted,
};
use std::{collections::BTreeMap, path::Path};

/// How many wrong lines are named.
const MAX_SHOWN: usize = 10;

/// Reads a list.
///
/// # Errors
///
/// The file cannot be read, or some of its lines cannot.
pub(super) fn read(file: &Path) -> Result<Vec<SurveyEntry>, CommandError> {
    let text = seed::read(file)?;
    let name = file.display();
    let read = entries(text.trim_start_matches('\u{feff}'));
    read.map_err(|wrong| {
        let more = wrong.len().saturating_sub(MAX_SHOWN);
        let mut lines: Vec<_> = wrong.iter().take(MAX_SHOWN).map(|(line, why)| format!("{name}:{line}: {why}")).collect();
        if more > 0 {
            lines.push(format!("and {}", counted(more, "more line")));
        }
        CommandError::new(Exit::Data, lines.join("\n  ")).hint("a line is like: https://www.uonbi.ac.ke/ sector=university")
    })
}

/// What is wrong with which line.
type Wrong = Vec<(u64, String)>;

/// The entries of a list, in its order.
fn entries(text: &str) -> Result<Vec<SurveyEntry>, Wrong> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let named = |cell: &str| matches!(cell.trim().trim_matches('"').to_ascii_lowercase().as_str(), "url" | "host");
    let is_csv = first.split([',', ';']).any(named);
    let lines =
        if is_csv { from_csv(text, if first.contains(';') && !first.contains(',') { b';' } else { b',' }) } else { from_text(text) };
    let (mut entries, mut wrong, mut seen) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (line, entry) in lines {
        match entry {
            Ok(entry) => match seen.insert(entry.url.clone(), line) {
                None => entries.push(entry),
                Some(before) => wrong.push((line, format!("{} is in line {before} already", entry.url))),
            },
            Err(why) => wrong.push((line, why)),
        }
    }
    match (wrong.is_empty(), entries.is_empty()) {
        (false, _) => Err(wrong),
        (true, true) => Err(vec![(1, "the list has no URL".to_owned())]),
        (true, false) => Ok(entries),
    }
}

/// The number of a line, and what it says or why it says nothing.
type Line = (u64, Result<SurveyEntry, String>);

fn from_text(text: &str) -> Vec<Line> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let url = words.next().unwrap_or_default();
        let label = |word: &str| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("{:?} is no label: write it like sector=university", short(word))),
        };
        entry(url, words.map(label).collect::<Result<_, _>>()?)
    };
    lines.map(|(number, line)| (number, read(line))).collect()
}

fn from_csv(text: &str, delimiter: u8) -> Vec<Line> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).comment(Some(b'#')).trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(why) => return vec![(1, Err(format!("the header cannot be read: {why}")))],
    };
    let at = header.iter().position(|name| name.eq_ignore_ascii_case("url"));
    let at = at.or_else(|| header.iter().position(|name| name.eq_ignore_ascii_case("host"))).unwrap_or(0);
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(why) => {
                let line = why.position().map_or(1, csv::Position::line);
                lines.push((line, Err("the line cannot be read as CSV in UTF-8".to_owned())));
                continue;
            }
        };
        let line = record.position().map_or(1, csv::Position::line);
        let read = if record.len() == header.len() {
            let cells = header.iter().zip(&record).enumerate().filter(|(column, (_, value))| *column != at && !value.is_empty());
            entry(record.get(at).unwrap_or_default(), cells.map(|(_, (name, value))| (name.to_owned(), value.to_owned())).collect())
        } else {
            Err(format!("{}, where the header has {}", counted(record.len(), "column"), header.len()))
        };
        lines.push((line, read));
    }
    lines
}

/// A URL or a host with its labels.
fn entry(url: &str, mut labels: Vec<(String, String)>) -> Result<SurveyEntry, String> {
    let whole = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
    let url = PageUrl::parse(&whole).map_err(|why| format!("{:?}: {why}", short(url)))?;
    labels.sort();
    check_labels(&labels).map_err(|why| why.to_string())?;
    Ok(SurveyEntry { url, labels })
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let entries = entries(text).unwrap();
        entries.iter().map(|entry| format!("{} {:?}", entry.url, entry.labels)).collect()
    }

    #[test]
    fn text_and_csv_say_the_same() {
        let text = "# studied\nhttps://www.uonbi.ac.ke/ sector=university city=Nairobi\n\nmuseums.or.ke sector=museum\n";
        let csv = "url,sector,city\nhttps://www.uonbi.ac.ke/,university,Nairobi\nmuseums.or.ke,museum,\n";
        let german = "sector;HOST;city\nuniversity;https://www.uonbi.ac.ke/;Nairobi\n\"museum\";museums.or.ke;\n";
        assert_eq!(read(text), read(csv));
        assert_eq!(read(text), read(german));
        assert_eq!(read(text)[1], r#"https://museums.or.ke/ [("sector", "museum")]"#);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let wrong = |text: &str| entries(text).unwrap_err().into_iter().map(|(line, why)| format!("{line}: {why}")).collect::<Vec<_>>();
        let text = "https://a.ke/\nmailto://x kind=1\nb.ke kind\nhttps://a.ke/ kind=2\nc.ke kind=1 kind=2\n";
        let said = wrong(text);
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].starts_with("2: \"mailto://x\": "), "{said:?}");
        assert_eq!(said[1], "3: \"kind\" is no label: write it like sector=university");
        assert_eq!(said[2], "4: https://a.ke/ is in line 1 already");
        assert_eq!(said[3], "5: a URL has a label twice");
        assert_eq!(wrong("url,sector\na.ke,x\nb.ke,y,z\n"), ["3: 3 columns, where the header has 2"]);
        assert_eq!(wrong("# nothing\n"), ["1: the list has no URL"]);
        assert!(wrong("url,bad name\na.ke,x\n")[0].contains("cannot be the name of a label"));
    }
}
