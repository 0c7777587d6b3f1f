//! Configuration of a running daemon: the value of each key, and what it means.

use super::explained::{Entry, explained};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use utoipa::ToSchema;

/// A key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingView {
    /// Its section; empty for keys before the first one.
    pub section: String,
    /// Its name.
    pub key: String,
    /// Its value in the file, written as there; none if the file leaves it out, so that the default holds.
    pub value: Option<String>,
    /// The value that it has if it is left out, or an example if there is none.
    pub default: String,
    /// What it means.
    pub meaning_text: String,
}

/// The settings of a running daemon; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct InUse(Arc<Mutex<Vec<SettingView>>>);

impl InUse {
    /// Those of this file.
    pub fn of(file: &str) -> InUse {
        InUse(Arc::new(Mutex::new(read(file))))
    }

    /// The file was read again, and these keys of it hold now.
    pub fn adopt(&self, file: &str, holds: impl Fn(&str, &str) -> bool) {
        let mut settings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (setting, new) in settings.iter_mut().zip(read(file)) {
            if holds(&setting.section, &setting.key) {
                setting.value = new.value;
            }
        }
    }

    /// As they are now, in the order of the packaged example.
    pub fn all(&self) -> Vec<SettingView> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(file: &str) -> Vec<SettingView> {
    let written: toml::Table = file.parse().unwrap_or_default();
    let mut settings = Vec::new();
    for entry in explained() {
        let Entry::Keys { section, keys, meaning } = entry else { continue };
        let table = if section.is_empty() { Some(&written) } else { written.get(&section).and_then(toml::Value::as_table) };
        for (key, default) in keys {
            let value = table.and_then(|table| table.get(&key)).map(ToString::to_string);
            settings.push(SettingView { section: section.clone(), key, value, default, meaning_text: meaning.clone() });
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_sets_is_told_apart_from_defaults_and_only_what_holds_is_adopted() {
        let settings = InUse::of("contact = \"me@museum.ke\"\n[crawl]\ndepth = 3\n");
        let value = |section: &str, key: &str| {
            let all = settings.0.lock().unwrap();
            let found = all.iter().find(|setting| setting.section == section && setting.key == key).unwrap();
            assert!(!found.meaning_text.is_empty(), "{section} {key}");
            found.value.clone()
        };
        assert_eq!((value("", "contact").as_deref(), value("crawl", "depth").as_deref()), (Some("\"me@museum.ke\""), Some("3")));
        assert_eq!(value("crawl", "deny_tlds"), None);
        settings.adopt("[crawl]\ndepth = 9\ndeny_tlds = [\"zz\"]\n", |_, key| key == "deny_tlds");
        assert_eq!((value("crawl", "depth").as_deref(), value("crawl", "deny_tlds").as_deref()), (Some("3"), Some("[\"zz\"]")));
    }
}
