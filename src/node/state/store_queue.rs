//! The queue to the store: takes commands in the order of the crawler and brings the answers back as events.
//!
//! Each database of the store answers in the order in which it was asked; the queue sees to it that the asking keeps the order of the
//! commands, while many are under way at once, so that the store can commit them together. What is answered at once does not go through
//! the queue.

use crate::io::store::{Appended, Store, StoreError};
use futures::{
    StreamExt,
    future::{BoxFuture, ready, try_join_all},
    stream::FuturesUnordered,
};
use nearcrawl_core::{
    crawl::site::previous_run::PreviousRunReader,
    event::{AdmissionEvent, Event, OptOutEvent, PreviousRunRead, StoreCommand, SurveyEvent},
};
use nearcrawl_model::{
    fingerprint::FingerprintKey,
    ids::{SeenTicket, SiteNumber},
    journal::{JournalEntry, JournalKey, JournalRow},
    rows_digest::{Digests, Told},
    seen::{PageState, SeenAnswer, SeenBatch, SeenVisit},
    subnet::Subnet,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The most bytes of rows in one message between members.
pub const MAX_ROW_BYTES: usize = 256 << 10;

/// Rows are read from the store in pieces of this size.
const READ_PIECE: usize = 1 << 20;

/// After so many bytes the journals are left out that a member also wants to compare.
const MAX_DIGESTED: usize = 16 << 20;

/// How long a full disk is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Commands that wait in the queue.
const MAX_WAITING: usize = 1024;

/// Commands that the store has been asked and has not answered.
const MAX_UNDER_WAY: usize = 1024;

/// Subnets whose journals are read whole at a time, those included that the loop has not taken in: each may take many MiB, and at a start
/// all of ours are read.
const MAX_LOADS: usize = 8;

/// What came of an order.
pub type Outcome = Result<Option<Event>, StoreError>;

/// The turn of an order that takes much memory, if it is one; it ends when the loop has taken in what came of it.
pub type Turn = Option<OwnedSemaphorePermit>;

/// An order that is being carried out.
pub type Doing = BoxFuture<'static, (Outcome, Turn)>;

/// Where orders are given.
pub struct StoreQueue {
    store: Store,
    doing: mpsc::Sender<Doing>,
    /// What did not fit into the queue, in order.
    backlog: VecDeque<Doing>,
    /// Commands that are not finished.
    open: Arc<AtomicUsize>,
    loads: Arc<Semaphore>,
}

impl StoreQueue {
    /// The queue, and its task, which ends when all senders are dropped and all commands are done.
    pub fn new(store: Store, outcomes: mpsc::Sender<(Outcome, Turn)>) -> (StoreQueue, impl Future<Output = ()>) {
        let (doing, orders) = mpsc::channel(MAX_WAITING);
        let open = Arc::new(AtomicUsize::new(0));
        let (backlog, loads) = (VecDeque::new(), Arc::new(Semaphore::new(MAX_LOADS)));
        (StoreQueue { store, doing, backlog, open: Arc::clone(&open), loads }, serve(orders, open, outcomes))
    }

    /// Begins a command. If none is open before it and the store answers at once, the answer is returned; else it comes as an event.
    pub fn give(&mut self, command: StoreCommand) -> Option<Event> {
        let loads = matches!(command, StoreCommand::Load(_)).then(|| Arc::clone(&self.loads));
        let alone = self.backlog.is_empty() && self.open.load(Ordering::SeqCst) == 0;
        let mut doing = carry_out(self.store.clone(), loads, command, alone);
        if alone && let Poll::Ready(done) = doing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            match done {
                (Ok(event), _) => return event,
                failed => doing = Box::pin(ready(failed)),
            }
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        self.backlog.push_back(doing);
        self.catch_up();
        None
    }

    /// Puts into the queue what fits.
    pub fn catch_up(&mut self) {
        while let Some(doing) = self.backlog.pop_front() {
            // A closed queue has ended because the store failed, which its outcome reports.
            if let Err(mpsc::error::TrySendError::Full(doing)) = self.doing.try_send(doing) {
                self.backlog.push_front(doing);
                return;
            }
        }
    }

    /// How many commands did not fit into the queue. While there are any, the loop takes in nothing that makes work for the store.
    pub fn behind(&self) -> usize {
        self.backlog.len()
    }

    /// Waits until the queue has room.
    pub fn room(&self) -> impl Future<Output = ()> + use<> {
        let queue = self.doing.clone();
        async move { drop(queue.reserve().await) }
    }
}

/// Carries orders out, and goes on with those under way while the loop takes in no outcomes: one of them may be the next in the store's queue,
/// behind which others wait who do not belong to the loop.
async fn serve(mut orders: mpsc::Receiver<Doing>, open: Arc<AtomicUsize>, outcomes: mpsc::Sender<(Outcome, Turn)>) {
    let mut under_way: FuturesUnordered<Doing> = FuturesUnordered::new();
    // What the loop had no room for, in order.
    let mut done = VecDeque::new();
    let mut more = true;
    while more || !under_way.is_empty() || !done.is_empty() {
        tokio::select! {
            biased;
            order = orders.recv(), if more && under_way.len() + done.len() < MAX_UNDER_WAY => match order {
                // Polled in order when `next` is polled below: that puts it into the store's queue.
                Some(doing) => under_way.push(doing),
                None => more = false,
            },
            Some(outcome) = under_way.next(), if !under_way.is_empty() => {
                open.fetch_sub(1, Ordering::SeqCst);
                if !matches!(outcome, (Ok(None), _)) {
                    done.push_back(outcome);
                }
            }
            place = outcomes.reserve(), if !done.is_empty() => match (place, done.pop_front()) {
                (Ok(place), Some(outcome)) => place.send(outcome),
                (Ok(_), None) => {}
                (Err(_), _) => return,
            },
        }
    }
}

/// Waits for its turn if `loads` gives them out. If the disk is full the command is tried again until there is space. A question to the seen set
/// may be answered from memory only if it is `alone`: pages that an order before it loads would not be known yet.
fn carry_out(store: Store, loads: Option<Arc<Semaphore>>, order: StoreCommand, mut alone: bool) -> Doing {
    Box::pin(async move {
        let turn = match loads {
            // It is never closed.
            Some(loads) => loads.acquire_owned().await.ok(),
            None => None,
        };
        loop {
            let done = match &order {
                StoreCommand::Seen { ticket, batches } => seen(&store, *ticket, batches, alone).await,
                order => try_to(&store, order.clone()).await,
            };
            match done {
                Err(StoreError::NoSpace(why)) => {
                    alone = false;
                    tracing::warn!("the disk is full ({why}); the write is tried again every second");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                done => return (done, turn),
            }
        }
    })
}

/// Carries out one order: one arm for each, without a rest, so that an order which nobody carries out does not compile.
async fn try_to(store: &Store, order: StoreCommand) -> Outcome {
    let event = match order {
        StoreCommand::Children { ticket, site, page } => Some(Event::Children { ticket, children: store.children(site, page).await? }),
        StoreCommand::PutCut { site, urls } => {
            store.cut_put(site, urls).await?;
            None
        }
        StoreCommand::TakeCut { ticket, site, pages } => Some(Event::CutTaken { ticket, urls: store.cut_take(site, pages).await? }),
        StoreCommand::LoadSeen { site, seen, children, cut } => {
            let levels: BTreeMap<_, _> = seen.iter().map(|(page, level, _)| (*page, *level)).collect();
            store.site_load(site, seen).await?;
            store.cut_put(site, cut).await?;
            for (page, children) in children {
                let level = levels.get(&page).copied().unwrap_or(0);
                let visited = Some(SeenVisit { page, level, children });
                store.seen_in_turn(&SeenBatch { site, depth: 0, visited, questions: Vec::new() }).await?;
            }
            debug_assert!(PageState::Waiting < PageState::Visited, "loading marks pages visited that were");
            Some(Event::SeenLoaded { site })
        }
        StoreCommand::LoadPreviousRun { site, journal, key } => {
            let read = load_previous_run(store, site, &journal, key).await?;
            Some(Event::PreviousRunLoaded { site, journal, read })
        }
        StoreCommand::DropPreviousRun(site) => {
            store.previous_run_drop(site).await?;
            None
        }
        StoreCommand::DropSeen(site) => {
            store.site_drop(site).await?;
            None
        }
        StoreCommand::Append { write, rows } => {
            let growth = store.journal_append(rows).await?.growth;
            Some(Event::RowsStored { write, growth })
        }
        StoreCommand::StoreClaims { write, claims } => {
            store.claims_put(claims).await?;
            write.map(|write| Event::ClaimsStored { write })
        }
        StoreCommand::StoreVoting { write, records } => {
            store.voting_put(records.into_iter().map(|record| (record.key, record.value)).collect()).await?;
            Some(Event::VotingStored { write })
        }
        StoreCommand::StoreSurvey { write, slot, bytes } => {
            store.meta_put(&survey_slot(slot), bytes).await?;
            Some(Event::Survey(SurveyEvent::Stored { write }))
        }
        StoreCommand::StoreSurveyProbes { write, slot, bytes } => {
            store.meta_put(&survey_probes_slot(slot), bytes).await?;
            Some(Event::Survey(SurveyEvent::ProbesStored { write }))
        }
        StoreCommand::KeepAdmissions { write, page, bytes } => {
            store.meta_put(&admissions_page(page), bytes).await?;
            Some(Event::Admission(AdmissionEvent::Stored { write }))
        }
        StoreCommand::KeepOptOuts { write, page, bytes } => {
            store.meta_put(&opt_outs_page(page), bytes).await?;
            Some(Event::OptOut(OptOutEvent::Stored { write }))
        }
        StoreCommand::KeepContacts { page, bytes } => {
            store.meta_put(&contacts_page(page), bytes).await?;
            None
        }
        StoreCommand::KeepRows { ticket, rows } => {
            let Appended { heads, growth } = store.journal_append(rows).await?;
            Some(Event::RowsKept { ticket, heads, growth })
        }
        StoreCommand::RecallRows { ticket, subnet, from } => {
            let (rows, next) = store.journal_range(subnet, from, MAX_ROW_BYTES).await?;
            Some(Event::RowsRead { ticket, rows, next })
        }
        StoreCommand::DigestRows { ticket, journals } => Some(Event::RowsDigested { ticket, told: digest(store, journals).await? }),
        StoreCommand::Load(subnet) => Some(Event::Loaded { subnet, journals: load(store, subnet).await? }),
        StoreCommand::DropRuns { before, but_newest } => {
            let growth = store.journal_drop_runs(before, but_newest).await?;
            (!growth.is_empty()).then_some(Event::JournalsResized { growth })
        }
        StoreCommand::Seen { ticket, batches } => return seen(store, ticket, &batches, false).await,
    };
    Ok(event)
}

/// Where a page of statements about opt-outs is stored.
pub fn opt_outs_page(page: u8) -> String {
    format!("opt-outs-{page:02x}")
}

/// Where a page of certificates and expulsions is stored.
pub fn admissions_page(page: u8) -> String {
    format!("admissions-{page:02x}")
}

/// Where a page of the record of contacts is stored.
pub fn contacts_page(page: u8) -> String {
    format!("contacts-{page:02x}")
}

/// Where a survey is stored.
pub fn survey_slot(slot: u16) -> String {
    format!("survey-{slot:04x}")
}

/// Where what was probed for a survey is stored.
pub fn survey_probes_slot(slot: u16) -> String {
    format!("survey-probes-{slot:04x}")
}

/// What is told of copies to those who compare them with theirs, which have so many rows. Long ones wait for the next question.
async fn digest(store: &Store, journals: Vec<(JournalKey, u64)>) -> Result<Vec<(JournalKey, Digests)>, StoreError> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for (key, rows) in journals {
        if bytes > MAX_DIGESTED {
            break;
        }
        let heads = store.journals(Some(key.subnet)).await?;
        let rows = heads.iter().find(|(other, _)| *other == key).map_or(0, |(_, head)| *head).min(rows);
        let (mut told, mut next) = (Told::of(rows), 0);
        while next < rows {
            let piece = store.journal_read(key.clone(), next, READ_PIECE).await?;
            let before = next;
            for row in piece.iter().take_while(|row| row.sequence < rows) {
                told.add(&row.entry);
                bytes += row.entry.len();
                next = row.sequence + 1;
            }
            if next == before {
                break;
            }
        }
        all.push((key, told.digests()));
    }
    Ok(all)
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

/// Makes a site know what the run before it knew; none if there is no such journal.
async fn load_previous_run(
    store: &Store,
    site: SiteNumber,
    journal: &JournalKey,
    key: FingerprintKey,
) -> Result<Option<PreviousRunRead>, StoreError> {
    let mut reader = PreviousRunReader::new(key);
    let mut next = 0;
    loop {
        let piece = read(store, journal, next).await?;
        if piece.is_empty() {
            break;
        }
        next += piece.len() as u64;
        store.previous_run_put(site, piece.into_iter().flat_map(|entry| reader.read(entry)).collect()).await?;
    }
    store.previous_run_put(site, reader.end().into_iter().collect()).await?;
    Ok((next > 0).then(|| PreviousRunRead { pages: reader.pages(), rows: next }))
}

/// Asks the seen set all of this at once, so that no later order's question is answered in between.
async fn seen(store: &Store, ticket: SeenTicket, batches: &[SeenBatch], alone: bool) -> Outcome {
    let answers = try_join_all(batches.iter().map(|batch| ask_seen(store, batch, alone))).await?;
    Ok(Some(Event::Seen { ticket, answers }))
}

/// A batch without anything in it is not asked.
async fn ask_seen(store: &Store, batch: &SeenBatch, alone: bool) -> Result<Vec<SeenAnswer>, StoreError> {
    match batch.visited.is_none() && batch.questions.is_empty() {
        true => Ok(Vec::new()),
        false if alone => store.seen(batch).await,
        false => store.seen_in_turn(batch).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::store::StoreConfig;
    use nearcrawl_model::{
        fingerprint::Fingerprint,
        ids::{SeenTicket, WriteId},
        seen::SeenAnswer,
    };

    #[tokio::test]
    async fn only_so_many_subnets_are_in_memory_until_the_loop_takes_them_in() {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(directory.path(), &StoreConfig::default()).unwrap();
        let (sender, mut outcomes) = mpsc::channel(1_024);
        let (mut queue, serving) = StoreQueue::new(store, sender);
        tokio::spawn(serving);
        let subnet = |number: usize| Subnet::around(std::net::Ipv4Addr::new(9, 0, number as u8, 0).into(), 24);
        let (mut loaded, mut written, mut most) = (Vec::new(), false, 0);
        for number in 0..3 * MAX_LOADS {
            // A thread of the store is asked. Before the first it may have answered already when the queue looks.
            if let Some(event) = queue.give(StoreCommand::Load(subnet(number))) {
                assert!(matches!(event, Event::Loaded { .. }) && number == 0, "{event:?}");
                loaded.push(subnet(number));
            }
        }
        while outcomes.len() < MAX_LOADS {
            tokio::task::yield_now().await;
        }
        // Others are not held up, and when this one is done the loads would be, too.
        assert!(queue.give(StoreCommand::Append { write: WriteId(1), rows: Vec::new() }).is_none());
        while outcomes.len() <= MAX_LOADS {
            tokio::task::yield_now().await;
        }
        while loaded.len() < 3 * MAX_LOADS || !written {
            most = most.max(outcomes.len() - usize::from(!written));
            let (outcome, _turn) = outcomes.recv().await.unwrap();
            match outcome.unwrap() {
                Some(Event::Loaded { subnet, .. }) => loaded.push(subnet),
                Some(Event::RowsStored { write: WriteId(1), .. }) => written = true,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(most, MAX_LOADS);
        assert_eq!(loaded, (0..3 * MAX_LOADS).map(subnet).collect::<Vec<_>>(), "each, in order");
    }

    /// As when the loop has ended and what must be kept is stored.
    #[tokio::test]
    async fn who_asks_the_store_is_answered_though_the_loop_takes_in_no_outcomes() {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(directory.path(), &StoreConfig { queue: 2, ..StoreConfig::default() }).unwrap();
        let (sender, mut outcomes) = mpsc::channel(1);
        let (mut queue, serving) = StoreQueue::new(store.clone(), sender);
        const ORDERS: u64 = 100;
        let mut answered = 0;
        for write in 1..=ORDERS {
            answered += u64::from(queue.give(StoreCommand::Append { write: WriteId(write), rows: Vec::new() }).is_some());
        }
        tokio::spawn(serving);
        for _ in 0..10 {
            tokio::time::timeout(Duration::from_secs(60), store.meta_put("kept", Vec::new())).await.expect("it is answered").unwrap();
        }
        while answered < ORDERS {
            let (outcome, _) = outcomes.recv().await.unwrap();
            assert!(matches!(outcome, Ok(Some(Event::RowsStored { .. }))), "{outcome:?}");
            answered += 1;
        }
    }

    /// A hand-over or a start loads many sites, and what leads to their front pages is asked for at once.
    #[tokio::test]
    async fn a_question_about_a_site_is_answered_after_its_pages_were_loaded_however_many_there_are() {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(directory.path(), &StoreConfig::default()).unwrap();
        let (sender, mut outcomes) = mpsc::channel(1_024);
        let (mut queue, serving) = StoreQueue::new(store, sender);
        tokio::spawn(serving);
        const SITES: u64 = 400;
        let front = Fingerprint(7);
        for round in 0..20 {
            let sites = || (1..=SITES).map(|number| SiteNumber(round * SITES + number));
            for site in sites() {
                let seen = vec![(front, 0, PageState::Visited)];
                queue.give(StoreCommand::LoadSeen { site, seen, children: Vec::new(), cut: Vec::new() });
                let batch = SeenBatch { site, depth: 8, visited: None, questions: vec![(front, 0)] };
                if let Some(Event::Seen { answers, .. }) =
                    queue.give(StoreCommand::Seen { ticket: SeenTicket(site.0), batches: vec![batch] })
                {
                    assert_eq!(answers, [[SeenAnswer::Known]], "{site:?}");
                }
                if site.0 % 7 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            while queue.open.load(Ordering::SeqCst) > 0 {
                queue.catch_up();
                while let Ok((outcome, _)) = outcomes.try_recv() {
                    if let Some(Event::Seen { ticket, answers }) = outcome.unwrap() {
                        assert_eq!(answers, [[SeenAnswer::Known]], "site {ticket:?} in round {round}");
                    }
                }
                tokio::task::yield_now().await;
            }
        }
    }
}
