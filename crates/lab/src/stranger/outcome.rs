//! Outcome of the trial: the steps, and how long each took.

use serde::Serialize;
use std::fmt::Write;

/// A step that was taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What it is about.
    pub step: &'static str,
    /// Whether everything was as it must be.
    pub held: bool,
    /// How long it took.
    pub seconds: f64,
    /// What was seen.
    pub detail_text: String,
}

impl Step {
    /// As a line of the table.
    pub fn line(&self) -> String {
        let held = if self.held { "holds" } else { "DOES NOT HOLD" };
        format!("{:<28}{:>8.2} s  {held}: {}", self.step, self.seconds, self.detail_text)
    }
}

/// All steps that were taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// In their order, up to the first that did not hold.
    pub steps: Vec<Step>,
    /// Whether none is missing.
    pub all_taken: bool,
}

impl Outcome {
    /// Whether every step was taken and held.
    pub fn holds(&self) -> bool {
        self.all_taken && self.steps.iter().all(|step| step.held)
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// A table for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let _ = writeln!(text, "{:<28}{:>8.2} s  {}", step.step, step.seconds, if step.held { "holds" } else { "DOES NOT HOLD" });
        }
        let all: f64 = self.steps.iter().map(|step| step.seconds).sum();
        let _ = writeln!(text, "{:<28}{all:>8.2} s", "all");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_holds_only_if_every_step_was_taken_and_held() {
        let step = |held| Step { step: "install", held, seconds: 1.25, detail_text: "a word".to_owned() };
        let of = |steps, all_taken| Outcome { steps, all_taken };
        assert!(of(vec![step(true), step(true)], true).holds());
        assert!(!of(vec![step(true)], false).holds() && !of(vec![step(true), step(false)], true).holds());
        let text = of(vec![step(true), step(false)], true).text();
        assert!(text.contains("2.50 s") && text.contains("DOES NOT HOLD"), "{text}");
    }
}
