//! Replication of journals: rows are written down, stored, and copied.
//!
//! * [`machine`]: rows are stored, copied, and only then spoken of
//! * [`append_queue`]: rows on their way to the disk
//! * [`placement`]: which members keep copies
//! * [`replicas`]: who has which rows, and when something is *recorded*
//! * [`forwarding`]: which URLs that rows name have arrived
//! * [`kept`]: how much of our disk the journals of each owner take
//! * [`recovery`]: what another wrote is fetched and read
//! * [`holders`]: which members have rows of it
//! * [`awaited_replicas`]: which of them must have all, and how long one is waited for
//! * [`load_queue`]: which subnets wait for that
//! * [`loading`]: which of its copies is the best

mod append_queue;
mod awaited_replicas;
mod forwarding;
mod holders;
mod kept;
mod load_queue;
pub(crate) mod loading;
mod machine;
mod placement;
mod recovery;
pub mod replicas;
#[cfg(test)]
mod tests;

use append_queue::AppendQueue;
pub(crate) use append_queue::MAX_GATHERED;
pub(crate) use awaited_replicas::{AwaitedReplicas, Lived, taken_over};
use forwarding::Forwarding;
use holders::Holders;
use kept::Kept;
use load_queue::LoadQueue;
pub(crate) use load_queue::MAX_LOADS;
use loading::Loading;
use nearcrawl_model::subnet::Subnet;
use placement::Placement;
pub(crate) use placement::Reputation;
use replicas::Replicas;
use std::collections::BTreeMap;

/// The journals of our sites: rows on their way to the disk and to replicas.
#[derive(Default)]
pub(crate) struct Replication {
    queue: AppendQueue,
    replicas: Replicas,
    placement: Placement,
    forwarding: Forwarding,
    kept: Kept,
    /// Subnets that became ours and whose journals are being fetched or read.
    loading: BTreeMap<Subnet, Loading>,
    /// Those that wait until fewer are.
    load_queue: LoadQueue,
    /// Who has the journals of subnets of which a claim of ours was accepted and is not acted on yet.
    expected: BTreeMap<Subnet, AwaitedReplicas>,
    /// Whether subnets wait for what the voters tell of their replicas.
    lacks_replicas: bool,
    /// Members that are asked of which they have rows.
    holders: Holders,
    /// Subnets being loaded that wait for a member to come back, as of the last look at them.
    parked: usize,
    /// Bytes that other members have sent of them: the caller sees to it that there are not too many.
    recovered_bytes: usize,
}
