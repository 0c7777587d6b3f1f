//! Exchanges with a member that take several messages, and what memory and time they may take.

pub mod exports;
pub(super) mod measured_transfer;
pub(super) mod peer_transfers;
pub(super) mod recovery_budget;
pub(super) mod snapshot_transfer;
