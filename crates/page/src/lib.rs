//! What does an HTML page say? Its links and character set by a scanner, its accessibility failures by a document tree. Pure: bytes in,
//! facts out.

#![warn(unreachable_pub)]

pub mod evaluation;
pub mod scanner;
