//! Relay of questions to members that do not answer directly.
//!
//! Some members do not reach each other: one has IPv4 only and the other IPv6 only, a firewall is in between, or one has as many
//! connections as it may. What one of them asks the other goes through a third member, sealed ([`nearcrawl_model::forwarded`]).
//!
//! * [`ways`]: which members do not answer directly, and which third member to take
//! * [`passing`]: what we pass on for others
//! * [`taken`]: what reached us through others: each question once, and only if it is recent
//! * [`machine`]: what becomes of each question and answer
//!
//! The relay stands between the machines and the process: every question and answer passes it, so no machine knows how its questions
//! travel ([`crate::crawler::Crawler::next_command`]). One that is not answered directly is not sent again from here: whatever is asked is
//! asked again by its machine, and goes through a third member then. Once a member has not answered, it is asked directly from time to
//! time with a small question; when that is answered, nothing is forwarded any more.
//!
//! A lease that was renewed through a third member is as valid as any other: the answer is sealed by the voter and belongs to the very
//! question, and the lease counts from when the owner sent that. A renewal that a third member holds back is refused after two
//! [`taken::TOKEN_EVERY`].

pub(crate) mod machine;
mod passing;
mod taken;
#[cfg(test)]
mod tests;
mod ways;

pub(crate) use machine::Relay;
pub(crate) use {machine::MAX_FORWARDING, passing::MAX_PASSING, taken::MAX_TAKEN, ways::MAX_WAYS};
