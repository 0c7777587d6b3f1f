//! Unifies spellings of organisations' names.
//!
//! Each registry, WHOIS and the tables of routes write an organisation's name in their own way, and totals by organisation go by the name:
//! of those that differ in nothing that tells organisations apart, all get one spelling.
//!
//! An id (opaque-id, handle) is the registry's own: within one registry it is one organisation however many files have it (see `holders`),
//! and an equal id of another registry says nothing. So names decide across registries, and cautiously, since two organisations that are
//! taken for one cannot be told apart any more:
//!
//! * capitals, commas, quotes, hyphens and the points of abbreviations do not count (`EXAMPLE NETZ GMBH`, `Example-Netz G.m.b.H.`),
//! * nor which of two words for one legal form it is (`Limited`, `Ltd.`),
//! * and a name without a legal form is the one with it only if no other form goes with that name, and the name has two words besides:
//!   `Example Netz` is `Example Netz GmbH`, but not if there is an `Example Netz AG`, too.
//!
//! Names with different legal forms stay apart: `Example Netz GmbH` and `Example Netz AG` are two companies.

use super::super::holders::Holders;
use std::collections::{BTreeMap, BTreeSet};

/// Legal forms, as one word in small letters without points; words for one form stand in one line, the first for all.
const FORMS: [&[&str]; 34] = [
    &["ab"],
    &["ag"],
    &["aps"],
    &["as"],
    &["asa"],
    &["bv"],
    &["co", "company"],
    &["corp", "corporation"],
    &["doo"],
    &["eg"],
    &["eirl"],
    &["ev"],
    &["gmbh"],
    &["inc", "incorporated"],
    &["kft"],
    &["kg"],
    &["llc"],
    &["llp"],
    &["ltd", "limited"],
    &["ltda", "limitada"],
    &["nv"],
    &["oao"],
    &["ooo"],
    &["oy"],
    &["oyj"],
    &["plc"],
    &["pty"],
    &["pvt", "private"],
    &["sa"],
    &["sarl"],
    &["sas"],
    &["spa"],
    &["srl"],
    &["sro"],
];

/// Names with fewer words are taken for what they are, with their legal form or without.
const MIN_WORDS: usize = 2;

/// What tells organisations apart in a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Its words but for the legal form.
    words: String,
    /// Its legal form; empty if it has none.
    form: String,
}

/// A word without what does not count. Points are kept unless they are of an abbreviation: `S.A.` is `sa`, and `example.com` stays.
fn plain(word: &str) -> String {
    let word = word.trim_end_matches('.').to_lowercase();
    let is_abbreviation = word.contains('.') && word.split('.').all(|part| part.chars().count() <= 1);
    if is_abbreviation { word.replace('.', "") } else { word }
}

fn key_of(name: &str) -> Key {
    let separates = |letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '"' | '\'' | '-' | '_' | '(' | ')');
    let mut words: Vec<String> = name.split(separates).map(plain).filter(|word| !word.is_empty()).collect();
    let mut form = Vec::new();
    while words.len() > 1
        && let Some(found) = words.last().and_then(|last| FORMS.iter().find(|words| words.contains(&last.as_str())))
    {
        form.insert(0, found[0]);
        words.pop();
    }
    Key { words: words.join(" "), form: form.join(" ") }
}

/// How often each spelling comes.
type Spellings<'a> = BTreeMap<&'a str, usize>;

/// The most frequent one; of several the alphabetically first.
fn best<'a>(spellings: &Spellings<'a>) -> Option<&'a str> {
    spellings.iter().rev().max_by_key(|(_, times)| **times).map(|(spelling, _)| *spelling)
}

/// Gives all spellings of one name the most frequent one.
pub(super) fn unify(holders: &mut Holders) {
    let mut forms: BTreeMap<String, BTreeMap<String, Spellings<'_>>> = BTreeMap::new();
    let names: Vec<String> = holders.iter().map(|holder| holder.name.to_owned()).collect();
    for name in names.iter().filter(|name| !name.is_empty()) {
        let Key { words, form } = key_of(name);
        *forms.entry(words).or_default().entry(form).or_default().entry(name).or_default() += 1;
    }
    let mut called: BTreeMap<&str, &str> = BTreeMap::new();
    for (words, forms) in &mut forms {
        let told: BTreeSet<String> = forms.keys().filter(|form| !form.is_empty()).cloned().collect();
        if let (Some(form), None) = (told.first(), told.iter().nth(1))
            && words.split(' ').count() >= MIN_WORDS
            && let Some(without) = forms.remove("")
        {
            // It is called with its form, however often it comes without.
            let spelling = forms.get(form).and_then(best);
            called.extend(spelling.into_iter().flat_map(|spelling| without.keys().map(move |name| (*name, spelling))));
        }
        for spellings in forms.values().filter(|spellings| spellings.len() > 1) {
            called.extend(best(spellings).into_iter().flat_map(|best| spellings.keys().map(move |name| (*name, best))));
        }
    }
    for (number, name) in (0..).zip(&names) {
        if let Some(spelling) = called.get(name.as_str()).filter(|spelling| *spelling != name) {
            holders.set_name(number, spelling);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What holders with these names are called.
    fn called(names: &[&str]) -> Vec<String> {
        let mut holders = Holders::default();
        for (number, name) in (0..).zip(names) {
            let holder = holders.number(number % 3, &format!("ORG-{number}"));
            holders.set_name(holder, name);
        }
        unify(&mut holders);
        holders.iter().map(|holder| holder.name.to_owned()).collect()
    }

    #[test]
    fn spellings_of_one_name_become_the_most_frequent_one() {
        for spellings in [
            ["Example Netz GmbH", "EXAMPLE NETZ GMBH", "Example Netz GmbH"],
            ["Example Netz GmbH", "Example-Netz, G.m.b.H.", "Example Netz GmbH"],
            ["Telecom Example Limited", "Telecom Example Ltd.", "Telecom Example Limited"],
            ["Banco Example S.A.", "\"BANCO EXAMPLE\" SA", "Banco Example S.A."],
            ["Example (Pvt) Ltd", "EXAMPLE PRIVATE LIMITED", "Example (Pvt) Ltd"],
            ["Université d'Exemple", "UNIVERSITÉ D'EXEMPLE", "Université d'Exemple"],
        ] {
            assert_eq!(called(&spellings), vec![spellings[0]; 3], "{spellings:?}");
        }
        assert_eq!(called(&["EXAMPLE NETZ AG", "Example Netz AG"]), vec!["EXAMPLE NETZ AG"; 2], "of two that are as frequent the first");
        let with_form = ["Example Netz", "Example Netz", "EXAMPLE NETZ", "Example Netz GmbH"];
        assert_eq!(called(&with_form), vec!["Example Netz GmbH"; 4]);
    }

    #[test]
    fn names_of_different_organisations_stay_apart() {
        for names in [
            // Two legal forms are two companies, and which one is meant without is not known.
            &["Example Netz GmbH", "Example Netz AG", "Example Netz"][..],
            // One word is too little.
            &["Orange", "Orange S.A."],
            &["example.com Inc.", "examplecom Inc."],
            &["Example Netz GmbH & Co. KG", "Example Netz GmbH"],
            &["Example-01", "Example-02"],
            &["AS", "Company Limited", "Ltd"],
            &["Universität Beispiel", "Universitat Beispiel"],
            &["Example Bank of Kenya Ltd", "Example Bank of Uganda Ltd"],
            &["", ""],
        ] {
            assert_eq!(called(names), names);
        }
    }

    #[test]
    fn the_order_of_names_does_not_matter() {
        let mut names = vec!["Example Netz", "EXAMPLE NETZ GMBH", "Example Netz GmbH", "example netz gmbh"];
        let first = called(&names);
        names.reverse();
        assert_eq!(called(&names), first);
    }
}
