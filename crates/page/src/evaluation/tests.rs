//! Are the rules' own examples told right, and does hostile markup cost nothing?

mod cases;
mod families;
mod hostile;
mod places;
mod styles;
