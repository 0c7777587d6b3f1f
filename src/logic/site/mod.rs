//! Which page of this site next? Its tree, its rules and its robots.txt.

pub mod robots;
