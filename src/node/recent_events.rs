//! The newest messages of this process's log, for people who look at its page.
//!
//! They are kept in memory, apart from where the log goes.

use nearcrawl_model::time::WallTime;
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    fmt::{self, Write},
    sync::{Mutex, PoisonError},
};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};
use utoipa::ToSchema;

/// Messages that are kept.
const MAX_KEPT: usize = 100;

/// Of a longer message the rest is left out, in characters.
const MAX_TEXT: usize = 600;

static KEPT: Mutex<VecDeque<LoggedView>> = Mutex::new(VecDeque::new());

/// A message of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedView {
    /// When it was written.
    #[schema(value_type = String)]
    pub logged_at: WallTime,
    /// How grave it is: error, warn or info.
    pub level: String,
    /// What it says.
    pub message_text: String,
}

/// Keeps the messages that the log shows, down to level info.
pub struct RecentEvents;

impl<S: Subscriber> Layer<S> for RecentEvents {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        if level > Level::INFO {
            return;
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let message_text = text.0.chars().take(MAX_TEXT).collect();
        keep(LoggedView { logged_at: super::clock::now().wall, level: level.as_str().to_ascii_lowercase(), message_text });
    }
}

fn keep(message: LoggedView) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_front(message);
    kept.truncate(MAX_KEPT);
}

/// The messages that are kept, the newest first.
pub(super) fn newest() -> Vec<LoggedView> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The message, with its fields behind it.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a text cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn the_newest_messages_are_kept_and_no_more() {
        let subscriber = tracing_subscriber::registry().with(RecentEvents);
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..MAX_KEPT + 5 {
                tracing::warn!(number, "message");
                tracing::debug!("not kept");
            }
        });
        let newest = newest();
        assert_eq!(newest.len(), MAX_KEPT);
        assert_eq!((newest[0].level.as_str(), newest[0].message_text.as_str()), ("warn", "message number=104"));
    }
}
