//! How much came from a member that was asked for known bytes, and by which way.

use crate::{access_point::AccessPoint, time::Millis};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Pieces of the hierarchy's file that a member was asked for, to measure the connection to it. Bytes count if they are what the file's
/// manifest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeasuredTransfer {
    /// The member.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Bytes that came by a direct connection.
    pub direct_bytes: u64,
    /// Bytes that came through a third member.
    pub relayed_bytes: u64,
    /// From the first question to the last answer, in milliseconds.
    pub took_ms: Millis,
    /// Questions that were not answered in time, or with "busy" again and again.
    pub unanswered: u64,
}

impl MeasuredTransfer {
    /// Nothing has come yet.
    pub fn new(access_point: AccessPoint) -> MeasuredTransfer {
        MeasuredTransfer { access_point, direct_bytes: 0, relayed_bytes: 0, took_ms: 0, unanswered: 0 }
    }

    /// Bytes by both ways.
    pub fn bytes(&self) -> u64 {
        self.direct_bytes + self.relayed_bytes
    }

    /// Both together, of one member, one after the other.
    pub fn and(self, next: &MeasuredTransfer) -> MeasuredTransfer {
        MeasuredTransfer {
            direct_bytes: self.direct_bytes + next.direct_bytes,
            relayed_bytes: self.relayed_bytes + next.relayed_bytes,
            took_ms: self.took_ms + next.took_ms,
            unanswered: self.unanswered + next.unanswered,
            ..self
        }
    }
}
