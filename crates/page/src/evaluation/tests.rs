//! Tests with the rules' own examples, and with hostile markup, which must cost nothing.

mod cases;
mod definitions;
mod families;
mod hostile;
mod places;
mod styles;
