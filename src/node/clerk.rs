//! Who minds the store? The clerk: takes orders in the order of the mind's wishes and brings the answers back as events.
//!
//! Each database of the store answers in the order in which it was asked; the clerk sees to it that the asking keeps the order of
//! the wishes, while many orders are under way at once, so that the store can commit them together. What is answered at once need not go
//! through the clerk's hands.

use crate::{
    io::{
        store::{Store, StoreError},
        swarm::{SwarmCommand, SwarmHandle},
    },
    logic::{
        crawler::event::{Command, Event},
        site::former::FormerReader,
    },
    model::{
        fingerprint::FingerprintKey,
        journal::{JournalEntry, JournalKey, JournalRow},
        message::Response,
        seen::{PageState, SeenAnswer, SeenBatch, SeenVisit},
        subnet::Subnet,
    },
};
use futures::{
    StreamExt,
    future::{BoxFuture, ready, try_join_all},
    stream::FuturesUnordered,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::sync::mpsc;

/// The most bytes of rows in one message between members.
pub const MOST_ROW_BYTES: usize = 256 << 10;

/// Rows are read from the store in pieces of this size.
const READ_PIECE: usize = 1 << 20;

/// How long a full disk is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What came of an order.
pub type Outcome = Result<Option<Event>, StoreError>;

/// An order that is being carried out.
pub type Doing = BoxFuture<'static, Outcome>;

/// Where orders are given.
pub struct Orders {
    store: Store,
    swarm: Option<SwarmHandle>,
    clerk: mpsc::UnboundedSender<Doing>,
    /// Orders that the clerk has not finished.
    open: Arc<AtomicUsize>,
}

impl Orders {
    /// The way to a clerk, and the clerk, who works until nobody can order any more and everything is done.
    pub fn new(store: Store, swarm: Option<SwarmHandle>, outcomes: mpsc::Sender<Outcome>) -> (Orders, impl Future<Output = ()>) {
        // Unbounded, because the loop must never wait for the store while the store waits for the loop; what is under way is
        // bounded by the servers asked at once, the outbox and the hand-offs that members may have open.
        let (clerk, orders) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        (Orders { store, swarm, clerk, open: Arc::clone(&open) }, serve(orders, open, outcomes))
    }

    /// Gives an order. If none is open before it and the store answers at once, the answer is returned; else the clerk brings it.
    pub fn give(&self, command: Command) -> Option<Event> {
        let mut doing = carry_out(self.store.clone(), self.swarm.clone(), command);
        if self.open.load(Ordering::SeqCst) == 0
            && let Poll::Ready(done) = doing.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            match done {
                Ok(event) => return event,
                failed => doing = Box::pin(ready(failed)),
            }
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        // The clerk only ends when the store failed, and that is told by its outcome.
        let _ = self.clerk.send(doing);
        None
    }
}

async fn serve(mut orders: mpsc::UnboundedReceiver<Doing>, open: Arc<AtomicUsize>, outcomes: mpsc::Sender<Outcome>) {
    let mut under_way: FuturesUnordered<Doing> = FuturesUnordered::new();
    let mut more = true;
    while more || !under_way.is_empty() {
        tokio::select! {
            biased;
            order = orders.recv(), if more => match order {
                // Polled in order when `next` is polled below: that puts it into the store's queue.
                Some(doing) => under_way.push(doing),
                None => more = false,
            },
            Some(outcome) = under_way.next(), if !under_way.is_empty() => {
                open.fetch_sub(1, Ordering::SeqCst);
                if !matches!(outcome, Ok(None)) && outcomes.send(outcome).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// A full disk is waited out: what was asked for is done when there is room again.
fn carry_out(store: Store, swarm: Option<SwarmHandle>, order: Command) -> Doing {
    Box::pin(async move {
        loop {
            let done = match &order {
                Command::Seen { ticket, batches } => seen(&store, *ticket, batches).await,
                order => try_to(&store, swarm.as_ref(), order.clone()).await,
            };
            match done {
                Err(StoreError::NoSpace(why)) => {
                    tracing::warn!("the disk is full ({why}); trying again");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                done => return done,
            }
        }
    })
}

async fn try_to(store: &Store, swarm: Option<&SwarmHandle>, order: Command) -> Outcome {
    let event = match order {
        Command::Children { ticket, site, page } => Some(Event::Children { ticket, children: store.children(site, page).await? }),
        Command::PutCut { site, urls } => {
            store.cut_put(site, urls).await?;
            None
        }
        Command::TakeCut { ticket, site, pages } => Some(Event::CutTaken { ticket, urls: store.cut_take(site, pages).await? }),
        Command::LoadSeen { site, seen, children, cut } => {
            let levels: BTreeMap<_, _> = seen.iter().map(|(page, level, _)| (*page, *level)).collect();
            store.site_load(site, seen).await?;
            store.cut_put(site, cut).await?;
            for (page, children) in children {
                let level = levels.get(&page).copied().unwrap_or(0);
                let visited = Some(SeenVisit { page, level, children });
                store.seen(&SeenBatch { site, depth: 0, visited, questions: Vec::new() }).await?;
            }
            debug_assert!(PageState::Waiting < PageState::Visited, "loading marks pages visited that were");
            Some(Event::SeenLoaded { site })
        }
        Command::LoadFormer { site, journal, key } => {
            let host = journal.host.clone();
            Some(Event::FormerLoaded { site, host, pages: load_former(store, site, journal, key).await? })
        }
        Command::DropFormer(site) => {
            store.former_drop(site).await?;
            None
        }
        Command::DropSeen(site) => {
            store.site_drop(site).await?;
            None
        }
        Command::Append { receipt, rows } => {
            store.journal_append(rows).await?;
            Some(Event::Stored { receipt })
        }
        Command::StoreClaims { receipt, claims } => {
            store.claims_put(claims).await?;
            (receipt != 0).then_some(Event::Stored { receipt })
        }
        Command::KeepContacts { page, bytes } => {
            store.meta_put(&contacts_page(page), bytes).await?;
            None
        }
        Command::KeepRows { ticket, rows } => {
            let heads = store.journal_append(rows).await?;
            tell(swarm, ticket, Response::Kept(heads));
            None
        }
        Command::RecallRows { ticket, subnet, from } => {
            let (rows, next) = store.journal_range(subnet, from, MOST_ROW_BYTES).await?;
            tell(swarm, ticket, Response::Recalled(rows, next));
            None
        }
        Command::Load(subnet) => Some(Event::Loaded { subnet, journals: load(store, subnet).await? }),
        Command::DropJournal(key) => {
            store.journal_drop(key).await?;
            None
        }
        _ => None,
    };
    Ok(event)
}

/// Where a page of the book of contacts is stored.
pub fn contacts_page(page: u8) -> String {
    format!("contacts-{page:02x}")
}

fn tell(swarm: Option<&SwarmHandle>, ticket: u64, response: Response) {
    if let Some(swarm) = swarm
        && swarm.tell(SwarmCommand::Answer { ticket, response }).is_err()
    {
        tracing::debug!("an answer was not sent: the swarm is busy or gone; it will be asked for again");
    }
}

/// The newest run of each host of a subnet, read whole.
async fn load(store: &Store, subnet: Subnet) -> Result<Vec<(JournalKey, Vec<JournalEntry>)>, StoreError> {
    let mut newest: BTreeMap<_, JournalKey> = BTreeMap::new();
    for (key, next) in store.journals(Some(subnet)).await? {
        let newer = newest.get(&key.host).is_none_or(|known| known.run < key.run);
        if newer && next > 0 {
            newest.insert(key.host.clone(), key);
        }
    }
    let mut journals = Vec::new();
    for key in newest.into_values() {
        let mut entries = Vec::new();
        loop {
            let mut piece = read(store, &key, entries.len() as u64).await?;
            if piece.is_empty() {
                break;
            }
            entries.append(&mut piece);
        }
        journals.push((key, entries));
    }
    Ok(journals)
}

/// A piece of a journal from this row on, up to its first gap or broken line: what follows cannot be stood on.
async fn read(store: &Store, key: &JournalKey, next: u64) -> Result<Vec<JournalEntry>, StoreError> {
    let rows = store.journal_read(key.clone(), next, READ_PIECE).await?;
    let entries = (next..).zip(rows).map_while(
        |(expected, JournalRow { sequence, entry, .. })| {
            if sequence == expected { postcard::from_bytes(&entry).ok() } else { None }
        },
    );
    Ok(entries.collect())
}

/// Makes a site know what the run before it knew; how many pages that had, or none if there is no such journal.
async fn load_former(store: &Store, site: u64, journal: JournalKey, key: FingerprintKey) -> Result<Option<u64>, StoreError> {
    let mut reader = FormerReader::new(key);
    let mut next = 0;
    loop {
        let piece = read(store, &journal, next).await?;
        if piece.is_empty() {
            break;
        }
        next += piece.len() as u64;
        store.former_put(site, piece.into_iter().flat_map(|entry| reader.read(entry)).collect()).await?;
    }
    store.former_put(site, reader.end().into_iter().collect()).await?;
    Ok((next > 0).then(|| reader.pages()))
}

/// Asks the seen set all of this at once, so that no later order's question is answered in between.
async fn seen(store: &Store, ticket: u64, batches: &[SeenBatch]) -> Outcome {
    let answers = try_join_all(batches.iter().map(|batch| ask_seen(store, batch))).await?;
    Ok(Some(Event::Seen { ticket, answers }))
}

/// A batch without anything in it is not asked.
async fn ask_seen(store: &Store, batch: &SeenBatch) -> Result<Vec<SeenAnswer>, StoreError> {
    if batch.visited.is_none() && batch.questions.is_empty() { Ok(Vec::new()) } else { store.seen(batch).await }
}
