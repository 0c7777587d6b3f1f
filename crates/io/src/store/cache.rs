//! The thread of `cache/`: it remembers what could be found out again: pages seen, URLs cut, small tables.
//!
//! One action at a time: that is why of each page "new" is said exactly once.

use super::columns::Column;
use super::{
    action_timer::ActionTimer,
    counters::{StoreCounters, add},
    database::{Database, within},
    error::StoreError,
    journal::ReadFault,
    previous_run,
    room::{Room, Shared},
    seen::{self, SeenSet},
    state::{Answer, Closing, look},
};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    previous_run::{PreviousRow, PreviousVersion},
    seen::{PageState, SeenAnswer, SeenBatch},
};
use rocksdb::{DB, Direction, IteratorMode, WriteBatch};
use std::ops::RangeInclusive;
use tokio::sync::{mpsc, oneshot};

/// A row of a small table: key and value.
pub(super) type TableRow = (Vec<u8>, Vec<u8>);

/// The actions on `cache/`.
pub(super) enum CacheAction {
    Seen {
        batch: SeenBatch,
        answer: Answer<Vec<SeenAnswer>>,
    },
    Children {
        site: u64,
        page: Fingerprint,
        answer: Answer<Vec<Fingerprint>>,
    },
    CutPut {
        site: u64,
        urls: Vec<(Fingerprint, String)>,
        answer: Answer<()>,
    },
    CutTake {
        site: u64,
        pages: Vec<Fingerprint>,
        answer: Answer<Vec<Option<String>>>,
    },
    SiteLoad {
        site: u64,
        rows: Vec<(Fingerprint, u8, PageState)>,
        answer: Answer<()>,
    },
    PreviousRunPut {
        site: u64,
        rows: Vec<PreviousRow>,
        answer: Answer<()>,
    },
    PreviousPage {
        site: u64,
        page: Fingerprint,
        answer: Answer<Option<PreviousVersion>>,
    },
    PreviousRunDrop {
        site: u64,
        answer: Answer<()>,
    },
    SitesDrop {
        sites: RangeInclusive<u64>,
        answer: Answer<()>,
    },
    TablePut {
        key: Vec<u8>,
        value: Vec<u8>,
        answer: Answer<()>,
    },
    TableDelete {
        key: Vec<u8>,
        answer: Answer<()>,
    },
    TableGet {
        key: Vec<u8>,
        answer: Answer<Option<Vec<u8>>>,
    },
    TableAll {
        prefix: Vec<u8>,
        answer: Answer<Vec<TableRow>>,
    },
    /// Write and sweep what callers' threads entered in the seen set.
    Settle,
    /// Flush, close, and say when it is done.
    Close(Closing),
}

/// Serves until it is closed or all handles are dropped. Returns the channel to report its end on.
pub(super) fn serve(
    shared: &Shared,
    mut actions: mpsc::Receiver<CacheAction>,
    counters: &StoreCounters,
    timer: &ActionTimer,
) -> Option<oneshot::Sender<()>> {
    let mut closed = None;
    while let Some(action) = actions.blocking_recv() {
        if let CacheAction::Close(closing) = action {
            closed = Some(closing);
            break;
        }
        add(&counters.cache_actions, 1);
        timer.begin();
        if shared.work(|room| perform(room, action, counters)).is_none() {
            break;
        }
        timer.end();
    }
    if let Some(mut room) = shared.close()
        && closed.as_ref().is_none_or(|closing| closing.keep)
    {
        // What cannot be written now is lost, as by a kill.
        let _ = room.seen.write_log(&mut room.database);
        room.database.flush();
    }
    closed.map(|closing| closing.done)
}

fn perform(room: &mut Room, action: CacheAction, counters: &StoreCounters) {
    // A caller that has stopped waiting needs no answer.
    if let CacheAction::Seen { batch, answer } = action {
        return drop(answer.send(room.ask(&batch, counters)));
    }
    let Room { database, seen: set } = room;
    match action {
        CacheAction::Children { site, page, answer } => {
            let children = set.write_log(database).and_then(|()| look(database, |db| seen::children(db, site, page)));
            drop(answer.send(children));
        }
        CacheAction::CutPut { site, urls, answer } => {
            drop(answer.send(change(database, |db, batch| {
                for (page, url) in &urls {
                    batch.put_cf(Column::Cut.of(db), seen::key(site, *page), url);
                }
            })));
        }
        CacheAction::CutTake { site, pages, answer } => drop(answer.send(cut_take(database, site, &pages))),
        CacheAction::PreviousRunPut { site, rows, answer } => drop(answer.send(previous_run::put(database, site, &rows))),
        CacheAction::PreviousPage { site, page, answer } => {
            drop(answer.send(look(database, |db| previous_run::page_with_links(db, site, page))))
        }
        CacheAction::PreviousRunDrop { site, answer } => {
            drop(answer.send(change(database, |db, batch| previous_run::forget(db, batch, site, site))));
        }
        CacheAction::SiteLoad { site, rows, answer } => drop(answer.send(set.load(database, site, &rows))),
        CacheAction::SitesDrop { sites, answer } => drop(answer.send(sites_drop(database, set, &sites))),
        CacheAction::TablePut { key, value, answer } => {
            drop(answer.send(change(database, |db, batch| batch.put_cf(Column::Tables.of(db), key, value))));
        }
        CacheAction::TableDelete { key, answer } => {
            drop(answer.send(change(database, |db, batch| batch.delete_cf(Column::Tables.of(db), key))));
        }
        CacheAction::TableGet { key, answer } => {
            drop(answer.send(look(database, |db| Ok(db.get_cf(Column::Tables.of(db), key)?))));
        }
        CacheAction::TableAll { prefix, answer } => drop(answer.send(look(database, |db| table(db, &prefix)))),
        // What fails now, the next action meets again.
        CacheAction::Settle => drop(set.make_ready(database)),
        // Answered above; the loop ends at the other one.
        CacheAction::Seen { .. } | CacheAction::Close(_) => {}
    }
}

/// Writes what `fill` puts into a batch.
fn change(database: &mut Database, fill: impl FnOnce(&DB, &mut WriteBatch)) -> Result<(), StoreError> {
    database.make_writable()?;
    let mut batch = WriteBatch::default();
    fill(database.db()?, &mut batch);
    database.write(batch)
}

/// Gives out cut URLs and forgets them. One that is asked for twice at once is given out at its first place.
fn cut_take(database: &mut Database, site: u64, pages: &[Fingerprint]) -> Result<Vec<Option<String>>, StoreError> {
    database.make_writable()?;
    let (urls, batch) = look(database, |db| {
        let cut = Column::Cut.of(db);
        let mut batch = WriteBatch::default();
        let mut taken = std::collections::BTreeSet::new();
        let mut urls = Vec::with_capacity(pages.len());
        for page in pages {
            let key = seen::key(site, *page);
            let found = if taken.insert(*page) { db.get_cf(cut, key)? } else { None };
            if found.is_some() {
                batch.delete_cf(cut, key);
            }
            let text = found.map(String::from_utf8).transpose();
            urls.push(text.map_err(|_| ReadFault::Nonsense("a cut URL is not a text"))?);
        }
        Ok((urls, batch))
    })?;
    if !batch.is_empty() {
        database.write(batch)?;
    }
    Ok(urls)
}

/// Forgets all of these sites: their pages, the pages' children and the cut URLs.
fn sites_drop(database: &mut Database, set: &mut SeenSet, sites: &RangeInclusive<u64>) -> Result<(), StoreError> {
    database.make_writable()?;
    let db = database.db()?;
    let mut batch = WriteBatch::default();
    let (first, last) = (seen::key(*sites.start(), Fingerprint(0)), seen::key(*sites.end(), Fingerprint(u64::MAX)));
    for column in [Column::Children, Column::Cut] {
        // The end of a range is not part of it.
        batch.delete_range_cf(column.of(db), first, last);
        batch.delete_cf(column.of(db), last);
    }
    previous_run::forget(db, &mut batch, *sites.start(), *sites.end());
    set.forget(database, sites, batch)
}

/// The key of a row of a small table: the table's name, NUL, the row's own key.
pub(super) fn table_key(name: &str, key: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &[0], key].concat()
}

fn table(db: &DB, prefix: &[u8]) -> Result<Vec<TableRow>, ReadFault> {
    db.iterator_cf_opt(Column::Tables.of(db), within(prefix), IteratorMode::From(prefix, Direction::Forward))
        .map(|item| {
            let (key, value) = item?;
            Ok((key[prefix.len()..].to_vec(), value.into_vec()))
        })
        .collect()
}
