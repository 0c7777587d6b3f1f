//! What happened is written down, stored, and copied.
//!
//! * [`journal`]: rows are gathered, stored, copied, and only then spoken of
//! * [`recovery`]: what another wrote is read, and its sites go on from there
//! * [`replicas`]: who has which rows, and when is something *recorded*?

pub(crate) mod journal;
pub(crate) mod recovery;
pub mod replicas;

use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalKey, JournalRow},
    subnet::Subnet,
    time::Moment,
};
use replicas::Replicas;
use std::collections::BTreeMap;

/// The journals of our sites: rows on their way to the disk and to replicas.
pub(crate) struct Replication {
    pub(crate) rows: Vec<JournalRow>,
    pub(crate) rows_since: Option<Moment>,
    pub(crate) row_outgoing: Vec<crate::routing::outbox::Item>,
    pub(crate) appends: BTreeMap<u64, journal::Appending>,
    pub(crate) replicas: Replicas,
    /// Keepers that did not take what was sent, and when they are tried again.
    pub(crate) copy_again: BTreeMap<AccessPoint, Moment>,
    pub(crate) forwarding: BTreeMap<JournalKey, journal::Forwarding>,
    pub(crate) loading: BTreeMap<Subnet, recovery::Loading>,
}
