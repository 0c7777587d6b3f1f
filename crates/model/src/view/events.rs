//! Recent delegations, judgements and hand-overs of one access point, with the duration of each.

use crate::{
    access_point::AccessPoint,
    subnet::Subnet,
    time::{Millis, WallTime},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A search for the owner of a subnet that had none, by the access point that is asked.
    Delegation,
    /// A hand-over of a subnet, by the access point that is asked.
    Move,
    /// A judgement of an access to a subnet by its owner, the access point that is asked: is it better off elsewhere?
    Judgement,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventOutcome {
    /// A search: a claim to the subnet holds.
    Owned,
    /// A hand-over: the release is stored and holds.
    Released,
    /// A hand-over: the offer was refused, or something came between; the subnet stayed.
    CalledOff,
    /// A judgement: the subnet is well where it is.
    Rewarded,
    /// A judgement: it would be better off elsewhere, and stays for now.
    Penalised,
    /// A judgement: neither can be said.
    Undecided,
    /// A judgement: it should go to `to`. Whether it is offered then, and what came of that, is told by a hand-over.
    ToMove,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// What kind of thing.
    pub kind: EventKind,
    /// When it began: the search (not the wait for it), the offer, or the access that is judged.
    #[schema(value_type = String, format = DateTime)]
    pub begun_at: WallTime,
    /// How long it took, in milliseconds: a search until a claim was known here to hold, a hand-over until the release was stored or called off,
    /// a judgement from the first request of the access until the access was judged.
    pub duration_ms: Millis,
    /// The subnet.
    #[schema(value_type = String)]
    pub subnet: Subnet,
    /// How it ended.
    pub outcome: EventOutcome,
    /// Who had the subnet; none if no member did.
    #[schema(value_type = Option<String>)]
    pub from: Option<AccessPoint>,
    /// Who got it, or should have got it; of a judgement whom it was compared with, and who has it if it was compared with nobody.
    #[schema(value_type = String)]
    pub to: AccessPoint,
    /// Probes that the search asked for and that were made; only of a search.
    pub probes: Option<u16>,
    /// The procedure of a search: `nearcrawl`, `ipmicra` or `random`; the rule of a judgement: `nearcrawl` or `twoma`; none of a hand-over.
    pub policy: Option<String>,
    /// Why it was handed over, or judged so; none of a search.
    pub reason_text: Option<String>,
    /// Requests of the access; only of a judgement.
    #[serde(default)]
    pub requests: Option<u32>,
    /// How long they took together, in milliseconds; only of a judgement.
    #[serde(default)]
    pub took_ms: Option<Millis>,
}

/// One thing that happened, as a row of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// The access point at which it happened, which says so.
    pub access_point: AccessPoint,
    /// What happened.
    #[serde(flatten)]
    pub event: EventView,
}

/// What comes before such rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsHead {
    /// Older ones that are not kept any more.
    pub dropped: u64,
}

/// The latest of what happened at one access point since it started, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventsView {
    /// The access point that answers, at which all this happened.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Older ones since its start that are not kept any more.
    pub dropped: u64,
    /// What happened, in the order in which it ended.
    pub events: Vec<EventView>,
}
