//! Stages of a hand-over, and the reasons why none can begin.

use nearcrawl_model::time::Millis;
use serde::Deserialize;

/// How long the journals may take to be copied while the crawl goes on.
pub(super) const COPY_TIMEOUT: Millis = 300_000;

/// How long what is under way may take to end, and the last rows to be copied, before the crawl goes on and the move is called off.
pub(super) const STOP_TIMEOUT: Millis = 15_000;

/// How far a hand-over is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The next owner was asked whether it would.
    Offered,
    /// It would: the journals are being copied, the crawl goes on.
    Copying,
    /// Nothing new is asked.
    Stopping,
    /// Nothing is under way any more; the last row is written.
    Closing,
    /// The release is being stored.
    Releasing,
    /// It is released; the next owner has not been heard to claim it.
    Given,
    /// Seen from the next owner: it accepted.
    Coming,
    /// Seen from the next owner: it has everything, and the release.
    Handed,
}

/// Why a subnet cannot be handed over now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Immovable {
    /// It is another's, or has no owner.
    #[error("this access point does not own it; `nearcrawl why` names the owner, which can hand it over")]
    NotOurs,
    /// One's own network is one's own (IPMicra §4.1).
    #[error("this access point's own address is in it")]
    OwnNetwork,
    /// The one who should have it is not alive, or it is ourselves.
    #[error("the receiver is not another member that is alive; `nearcrawl members` lists them")]
    ReceiverNotAlive,
    /// Its history is being read, its claim is being watched, or nothing is fetched at the moment.
    #[error("its journal is being read, its claim is new, or nothing is fetched at the moment; try again in half a minute")]
    Unsettled,
    /// It moves already, or as many as may.
    #[error("its hand-over has begun already, or the limit of concurrent hand-overs is reached")]
    Busy,
}
