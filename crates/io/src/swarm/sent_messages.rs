//! Counts of the messages sent to members since the start, and of their bytes, by kind.

use nearcrawl_model::view::MessagesView;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Counts of messages by kind. A kind is a word of this program, so they are few.
#[derive(Debug, Default)]
pub struct SentMessages(Mutex<BTreeMap<&'static str, Sent>>);

#[derive(Debug, Default)]
struct Sent {
    messages: u64,
    bytes: u64,
}

impl SentMessages {
    /// A message goes out.
    pub(super) fn count(&self, kind: &'static str, message: &impl Serialize) {
        let bytes = postcard::experimental::serialized_size(message).unwrap_or(0) as u64;
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = kinds.entry(kind).or_default();
        sent.messages += 1;
        sent.bytes += bytes;
    }

    /// One line for each kind of which there were any.
    pub fn table(&self) -> Vec<MessagesView> {
        let kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(kind, sent): (&&str, &Sent)| MessagesView { kind: (*kind).to_owned(), sent: sent.messages, encoded_bytes: sent.bytes };
        kinds.iter().map(line).collect()
    }
}
