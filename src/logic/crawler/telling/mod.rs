//! What are people told? The crawler's state as plain values: what it is doing, whom it knows, what is whose, and why.
//!
//! * `activity`: what is it doing, and why is it not doing more? Is anything left to do?
//! * `status`: the numbers
//! * `lists`: members, claims, servers
//! * `why`: why is this crawled by whom, and when?

mod activity;
mod lists;
mod status;
#[cfg(test)]
mod tests;
mod why;

pub use status::Outside;
