//! The decisions: pure, seeded, clockless. Each room answers one question.

pub mod membership;
