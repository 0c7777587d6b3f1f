//! What happened is written down, stored, and copied.
//!
//! * [`machine`]: rows are stored, copied, and only then spoken of
//! * [`append_queue`]: rows on their way to the disk
//! * [`replicas`]: who has which rows, and when is something *recorded*?
//! * [`forwarding`]: which URLs that rows name have arrived?
//! * [`recovery`]: what another wrote is read, and its sites go on from there

mod append_queue;
mod forwarding;
mod machine;
pub(crate) mod recovery;
pub mod replicas;

use append_queue::AppendQueue;
pub(crate) use append_queue::MAX_GATHERED;
use forwarding::Forwarding;
use nearcrawl_model::subnet::Subnet;
use replicas::Replicas;
use std::collections::BTreeMap;

/// The journals of our sites: rows on their way to the disk and to replicas.
#[derive(Default)]
pub(crate) struct Replication {
    queue: AppendQueue,
    replicas: Replicas,
    forwarding: Forwarding,
    pub(crate) loading: BTreeMap<Subnet, recovery::Loading>,
}
