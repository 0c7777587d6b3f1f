//! The decisions: pure, seeded and clockless; each room answers one question.

pub mod site;
