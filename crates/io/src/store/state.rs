//! The thread of `state/`: it commits what must not be lost, many changes with one sync.
//!
//! It takes all actions that wait, puts the changes among them into one batch, syncs once, answers them, and then the readers.
//! A reader may so see a change that was asked for after it, but never misses one that was answered before it.

use super::columns::Column;
use super::{
    action_timer::ActionTimer,
    counters::{StoreCounters, add},
    database::Database,
    error::StoreError,
    journal::{self, Appended, Growth, JournalChanges, ReadFault},
};
use nearcrawl_model::{
    claim::SignedClaim,
    journal::{JournalKey, JournalRow},
    subnet::Subnet,
};
use rocksdb::{DB, IteratorMode, WriteBatch};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// A key with its value; none deletes it.
pub(super) type VotingRecord = (Vec<u8>, Option<Vec<u8>>);

/// A name with its value; none deletes it.
pub(super) type NamedValue = (String, Option<Vec<u8>>);

/// Keys with their values.
pub(super) type StoredVoting = Vec<(Vec<u8>, Vec<u8>)>;

/// Rows, and where to go on.
pub(super) type Page = (Vec<JournalRow>, Option<(JournalKey, u64)>);

/// What can be asked of `state/`.
pub(super) enum StateAction {
    Write(StateWrite),
    Read(StateRead),
    /// Flush, close, and say when it is done.
    Close(Closing),
}

pub(super) enum StateWrite {
    /// Names with their values; without one, the name is deleted.
    MetaPut {
        values: Vec<NamedValue>,
        answer: Answer<()>,
    },
    /// Each with the key of its subnet and already encoded.
    ClaimsPut {
        claims: Vec<(Vec<u8>, Vec<u8>)>,
        answer: Answer<()>,
    },
    /// Keys with their values; without one, the key is deleted.
    VotingPut {
        records: Vec<VotingRecord>,
        answer: Answer<()>,
    },
    Append {
        rows: Vec<JournalRow>,
        answer: Answer<Appended>,
    },
    DropRuns {
        before: JournalKey,
        but_newest: bool,
        answer: Answer<Growth>,
    },
}

pub(super) enum StateRead {
    MetaGet { name: String, answer: Answer<Option<Vec<u8>>> },
    Claims { answer: Answer<Vec<SignedClaim>> },
    Voting { answer: Answer<StoredVoting> },
    Journal { journal: JournalKey, from: u64, most_bytes: usize, answer: Answer<Vec<JournalRow>> },
    Journals { subnet: Option<Subnet>, answer: Answer<Vec<(JournalKey, u64)>> },
    Sizes { answer: Answer<Growth> },
    Range { subnet: Subnet, from: Option<(JournalKey, u64)>, most_bytes: usize, answer: Answer<Page> },
}

/// How to end.
pub(super) struct Closing {
    /// Whether the database will be opened again: then all rows are flushed into tables, so that opening is quick.
    pub(super) keep: bool,
    /// The channel to report its end on.
    pub(super) done: oneshot::Sender<()>,
}

/// A batch is committed when it has grown to this, even if more changes wait.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// What is done once it is known how the commit went.
type AfterCommit = Box<dyn FnOnce(Result<(), StoreError>)>;

/// Serves until it is closed or all handles are dropped. Returns the channel to report its end on.
pub(super) fn serve(
    mut database: Database,
    mut actions: mpsc::Receiver<StateAction>,
    counters: &Arc<StoreCounters>,
    timer: &ActionTimer,
) -> Option<oneshot::Sender<()>> {
    let mut closed = None;
    let mut reads = Vec::new();
    while closed.is_none() {
        timer.end();
        let Some(first) = actions.blocking_recv() else { break };
        timer.begin();
        let mut group = Group::default();
        let mut next = Some(first);
        while let Some(action) = next {
            match action {
                StateAction::Write(write) => group.add(&mut database, write),
                StateAction::Read(read) => reads.push(read),
                StateAction::Close(closing) => {
                    closed = Some(closing);
                    break;
                }
            }
            next = if group.batch.size_in_bytes() < MAX_BATCH_BYTES { actions.try_recv().ok() } else { None };
        }
        group.commit(&mut database, counters);
        for read in reads.drain(..) {
            timer.begin();
            add(&counters.state_reads, 1);
            answer(&mut database, read);
        }
    }
    if closed.as_ref().is_none_or(|closing| closing.keep) {
        database.flush();
    }
    closed.map(|closing| closing.done)
}

/// Changes that are committed together.
#[derive(Default)]
struct Group {
    batch: WriteBatch,
    journals: JournalChanges,
    after: Vec<AfterCommit>,
    /// A change could not even be prepared: then none of them is made, for the batch may hold half of it.
    failed: Option<StoreError>,
}

impl Group {
    fn add(&mut self, database: &mut Database, write: StateWrite) {
        // A full disk may have room again; this must come before anything is read from the database that will be written to.
        let ready = if self.after.is_empty() { database.make_writable() } else { Ok(()) };
        // Prepared in any case, because that also stores the channel of the answer.
        let prepared = self.prepare(database, write);
        if let Err(error) = ready.and(prepared) {
            self.failed.get_or_insert(error);
        }
    }

    fn prepare(&mut self, database: &mut Database, write: StateWrite) -> Result<(), StoreError> {
        match write {
            StateWrite::MetaPut { values, answer } => {
                self.after.push(Box::new(|done| drop(answer.send(done))));
                for (name, value) in values {
                    match value {
                        Some(value) => self.batch.put(name, value),
                        None => self.batch.delete(name),
                    }
                }
            }
            StateWrite::ClaimsPut { claims, answer } => {
                self.after.push(Box::new(|done| drop(answer.send(done))));
                let db = database.db()?;
                for (subnet, claim) in claims {
                    self.batch.put_cf(Column::Claims.of(db), subnet, claim);
                }
            }
            StateWrite::VotingPut { records, answer } => {
                self.after.push(Box::new(|done| drop(answer.send(done))));
                let column = Column::Voting.of(database.db()?);
                for (key, value) in records {
                    match value {
                        Some(value) => self.batch.put_cf(column, key, value),
                        None => self.batch.delete_cf(column, key),
                    }
                }
            }
            StateWrite::Append { rows, answer } => {
                let appended = database.db().map(|db| self.journals.append(db, &mut self.batch, &rows));
                let appended = appended.and_then(|appended| appended.map_err(|fault| fault.settle(database)));
                let failed = appended.as_ref().err().cloned();
                self.after.push(Box::new(|done| drop(answer.send(done.and(appended)))));
                return failed.map_or(Ok(()), Err);
            }
            StateWrite::DropRuns { before, but_newest, answer } => {
                let dropped = database.db().map(|db| self.journals.drop_runs(db, &mut self.batch, &before, but_newest));
                let dropped = dropped.and_then(|dropped| dropped.map_err(|fault| fault.settle(database)));
                let failed = dropped.as_ref().err().cloned();
                self.after.push(Box::new(|done| drop(answer.send(done.and(dropped)))));
                return failed.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    fn commit(mut self, database: &mut Database, counters: &StoreCounters) {
        if self.after.is_empty() {
            return;
        }
        add(&counters.state_writes, self.after.len() as u64);
        let done = match self.failed {
            Some(error) => Err(error),
            None => database.db().map(|db| self.journals.finish(db, &mut self.batch)).and_then(|()| {
                add(&counters.state_commits, 1);
                add(&counters.state_bytes, self.batch.size_in_bytes() as u64);
                database.write(self.batch)
            }),
        };
        for after in self.after {
            after(done.clone());
        }
    }
}

fn answer(database: &mut Database, read: StateRead) {
    // A caller that has stopped waiting needs no answer.
    match read {
        StateRead::MetaGet { name, answer } => drop(answer.send(look(database, |db| Ok(db.get(&name)?)))),
        StateRead::Claims { answer } => drop(answer.send(look(database, claims))),
        StateRead::Voting { answer } => drop(answer.send(look(database, voting))),
        StateRead::Journal { journal, from, most_bytes, answer } => {
            drop(answer.send(look(database, |db| journal::read(db, &journal, from, most_bytes))));
        }
        StateRead::Journals { subnet, answer } => drop(answer.send(look(database, |db| journal::heads(db, subnet.as_ref())))),
        StateRead::Sizes { answer } => drop(answer.send(look(database, journal::sizes))),
        StateRead::Range { subnet, from, most_bytes, answer } => {
            drop(answer.send(look(database, |db| journal::range(db, &subnet, from.as_ref(), most_bytes))));
        }
    }
}

/// Reads from a database and tells it what went wrong, if anything did.
pub(super) fn look<T>(database: &mut Database, read: impl FnOnce(&DB) -> Result<T, ReadFault>) -> Result<T, StoreError> {
    let found = read(database.db()?);
    found.map_err(|fault| fault.settle(database))
}

fn voting(db: &DB) -> Result<StoredVoting, ReadFault> {
    let records = db.iterator_cf(Column::Voting.of(db), IteratorMode::Start);
    records.map(|item| item.map(|(key, value)| (key.into_vec(), value.into_vec())).map_err(ReadFault::from)).collect()
}

/// All claims; those that a 0.1 has stored are without votes.
fn claims(db: &DB) -> Result<Vec<SignedClaim>, ReadFault> {
    db.iterator_cf(Column::Claims.of(db), IteratorMode::Start)
        .map(|item| {
            let bytes = item?.1;
            let unproven = |_| postcard::from_bytes(&bytes).map(|(bytes, signature)| SignedClaim { bytes, signature, votes: None });
            postcard::from_bytes(&bytes).or_else(unproven).map_err(|_| ReadFault::Nonsense("a stored claim cannot be decoded"))
        })
        .collect()
}
