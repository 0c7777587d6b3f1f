//! Are heads read as servers mean them?
