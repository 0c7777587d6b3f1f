//! Column families of the two databases, with their keys and values.
//!
//! New ones are added here and nowhere else.

use rocksdb::{ColumnFamily, DB};

/// The column family that RocksDB insists on; nothing is stored in it.
pub(super) const DEFAULT: &str = "default";

/// A column family. How keys of journals are made up is in `key.rs`, those of the seen set in `seen/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Database `state`: subnet → the signed claim last stored for it.
    Claims,
    /// Database `state`: what concerns votes, with keys and values as the decisions made them.
    Voting,
    /// Database `state`: journal, sequence number → an entry.
    Rows,
    /// Database `state`: journal → how many rows it has without a gap.
    Heads,
    /// Database `cache`: site, depth, row → packed fingerprints of the seen set.
    Seen,
    /// Database `cache`: a running number → what was entered into the seen set lately and is not in its rows yet.
    Recent,
    /// Database `cache`: site, page → the fingerprints of its links.
    Children,
    /// Database `cache`: site, page → the URL of a page beyond the depth.
    Cut,
    /// Database `cache`: small tables by name.
    Tables,
    /// Database `cache`: site, page → what the run before knew of it.
    PreviousRun,
}

impl Column {
    /// Those of the database that must not be lost.
    pub(super) const STATE: [Column; 4] = [Column::Claims, Column::Voting, Column::Rows, Column::Heads];
    /// Those of the database that is made again from the journals.
    pub(super) const CACHE: [Column; 6] =
        [Column::Seen, Column::Recent, Column::Children, Column::Cut, Column::Tables, Column::PreviousRun];

    /// Its name on disk, which never changes.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Column::Claims => "claims",
            Column::Voting => "voting",
            Column::Rows => "rows",
            Column::Heads => "heads",
            Column::Seen => "seen",
            Column::Recent => "recent",
            Column::Children => "children",
            Column::Cut => "cut",
            Column::Tables => "tables",
            Column::PreviousRun => "former",
        }
    }

    /// The family in an open database.
    pub(super) fn of(self, db: &DB) -> &ColumnFamily {
        #[expect(clippy::expect_used, reason = "a database only opens with all the column families of its plan")]
        db.cf_handle(self.name()).expect("the column family was opened")
    }
}
