//! Reads HTML pages: links and character set by a scanner, accessibility failures by a document tree.
//!
//! Pure: bytes in, facts out.

#![warn(unreachable_pub)]

pub mod evaluation;
pub mod scanner;
