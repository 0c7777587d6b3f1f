//! What happened is written down, stored, and copied.
//!
//! * [`machine`]: rows are stored, copied, and only then spoken of
//! * [`append_queue`]: rows on their way to the disk
//! * [`replicas`]: who has which rows, and when is something *recorded*?
//! * [`forwarding`]: which URLs that rows name have arrived?
//! * [`kept`]: how much of our disk do the journals of each owner take?
//! * [`recovery`]: what another wrote is fetched and read
//! * [`load_queue`]: which subnets wait for that?
//! * [`loading`]: which of its copies is the best?

mod append_queue;
mod forwarding;
mod kept;
mod load_queue;
pub(crate) mod loading;
mod machine;
mod recovery;
pub mod replicas;
#[cfg(test)]
mod tests;

use append_queue::AppendQueue;
pub(crate) use append_queue::MAX_GATHERED;
use forwarding::Forwarding;
use kept::Kept;
use load_queue::LoadQueue;
pub(crate) use load_queue::MAX_LOADS;
use loading::Loading;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet, time::Moment};
use replicas::Replicas;
use std::collections::BTreeMap;

/// The journals of our sites: rows on their way to the disk and to replicas.
#[derive(Default)]
pub(crate) struct Replication {
    queue: AppendQueue,
    replicas: Replicas,
    forwarding: Forwarding,
    kept: Kept,
    /// Replicas that have no room for more rows of ours, and until when others are preferred.
    full: BTreeMap<AccessPoint, Moment>,
    /// Subnets that became ours and whose journals are being fetched or read.
    loading: BTreeMap<Subnet, Loading>,
    /// Those that wait until fewer are.
    load_queue: LoadQueue,
    /// Bytes that other members have sent of them: the caller sees to it that there are not too many.
    recovered_bytes: usize,
}
