//! Carries out a crawler's commands in virtual time: the disk one after another, web servers after a round trip, name servers, probes.

use crate::swarm::ledger::{Contact, Purpose};
use crate::swarm::network::Exchange;
use crate::swarm::sim_event::{SimEvent, SimEventKind};
use crate::swarm::world::World;
use crate::web::Answer;
use nearcrawl_core::{
    event::{AdmissionEvent, Command, Event, HierarchyCommand, OptOutEvent, PeerCommand, StoreCommand, SurveyEvent, WebCommand},
    hierarchy_version::editions::Found,
    replication::replicas::CopyOrder,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReport, LocatedHost, PageFacts, ProbeReport, ResolveError},
    fingerprint::FingerprintKey,
    ids::Ticket,
    journal::{JournalKey, JournalRow},
    links::Link,
    message::{Request, Response},
    opt_out::ProofLook,
    previous_run::PreviousVersion,
    revisit::{Validators, content_of},
    time::Millis,
    url::{Host, PageUrl},
};
use std::{collections::BTreeMap, net::IpAddr};

/// How much one message of rows holds, in bytes.
const PIECE: usize = 256 << 10;

/// What a synced write takes, and what the cache takes.
const STATE_TAKES: Millis = 3;
const CACHE_TAKES: Millis = 1;

/// How much earlier than due a run can begin: some time passes from the begin of a run to its first row or request.
const EARLY: Millis = 60_000;

/// What a web server thinks about a page.
const SERVICE: Millis = 15;

/// When a command to the store is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// As soon as it is given.
    AtOnce,
    /// With the next synced write of the state, among all that one event ordered in this place.
    State(u8),
    /// With the next write of the cache.
    Cache,
}

impl Turn {
    /// Rows for replicas are read after rows were stored.
    pub(super) const COPY: Turn = Turn::State(4);

    pub(super) fn of(command: &StoreCommand) -> Turn {
        match command {
            // The smallest of all.
            StoreCommand::KeepContacts { .. } => Turn::AtOnce,
            StoreCommand::StoreClaims { .. }
            | StoreCommand::StoreVoting { .. }
            | StoreCommand::StoreSurvey { .. }
            | StoreCommand::StoreSurveyProbes { .. }
            | StoreCommand::KeepAdmissions { .. }
            | StoreCommand::KeepOptOuts { .. } => Turn::State(0),
            StoreCommand::KeepRows { .. } => Turn::State(1),
            StoreCommand::Append { .. } => Turn::State(2),
            StoreCommand::DropRuns { .. } => Turn::State(3),
            StoreCommand::Load(_) => Turn::State(5),
            StoreCommand::RecallRows { .. } | StoreCommand::DigestRows { .. } => Turn::State(6),
            StoreCommand::LoadPreviousRun { .. }
            | StoreCommand::DropPreviousRun(_)
            | StoreCommand::Seen { .. }
            | StoreCommand::Children { .. }
            | StoreCommand::PutCut { .. }
            | StoreCommand::TakeCut { .. }
            | StoreCommand::LoadSeen { .. }
            | StoreCommand::DropSeen(_) => Turn::Cache,
        }
    }
}

impl World {
    /// Carries out a command of a crawler.
    pub(super) fn perform(&mut self, who: AccessPoint, command: Command) {
        match command {
            Command::Store(command) => self.store(who, command),
            Command::Web(command) => self.ask_web(who, command),
            Command::Peers(command) => self.tell_peers(who, command),
            Command::Hierarchy(command) => self.exchange_hierarchies(who, command),
            Command::Export { ticket, order } => {
                if let Some(node) = self.nodes.get(&who) {
                    let rows = Some(node.disk.export(&order));
                    self.tell(who, Event::Exported { ticket, rows });
                }
            }
            // Nobody writes down here what was asked of whom.
            Command::TellRequests { ticket, .. } => self.tell(who, Event::RequestsTold { ticket, made: None }),
            Command::Record { ticket, .. } => self.tell(who, Event::RecordAnswered { ticket, answer: None }),
            Command::Explain { ticket, .. } => self.tell(who, Event::Explained { ticket, said: Err("nobody asks here".to_owned()) }),
            // The world's loop ends the process at this one.
            Command::Finished => {}
        }
    }

    fn store(&mut self, who: AccessPoint, command: StoreCommand) {
        match Turn::of(&command) {
            Turn::AtOnce => self.stored(who, command),
            turn => self.in_turn(who, turn, SimEventKind::Stored(command)),
        }
    }

    fn ask_web(&mut self, who: AccessPoint, command: WebCommand) {
        match command {
            WebCommand::Resolve { host, .. } => {
                let answer = self.resolve(&host);
                self.schedule(who, 30, SimEventKind::Event(Box::new(Event::Resolved { host, answer })));
            }
            WebCommand::Probe { question, target, .. } => {
                let rtt_us = self.round_trip_us(who, target.address.ip());
                let took = Millis::from(rtt_us / 1000);
                self.contact(who, target.address.ip(), took, Purpose::Probe);
                let report = ProbeReport { rtt_us: Ok(rtt_us), took };
                self.schedule(who, took, SimEventKind::Event(Box::new(Event::Probed { question, report })));
            }
            WebCommand::Fetch(order) => self.fetch(who, order, None),
            WebCommand::Revisit { mut order, site, page } => {
                let previous = self.nodes.get(&who).and_then(|node| node.disk.previous_version(site, page));
                if let Some(known) = previous.as_ref().filter(|known| known.stands_in(false)) {
                    order.validators = known.page.validators.clone();
                }
                self.fetch(who, order, previous);
            }
            WebCommand::CloseConnection(address) => self.close(who, address),
            WebCommand::LocateProof { question, host } => {
                let address = self.resolve(&host).map(|located| located.address).map_err(|why| why.to_string());
                self.schedule(who, 30, SimEventKind::Event(Box::new(Event::OptOut(OptOutEvent::Located { question, address }))));
            }
            WebCommand::LookForProof { question, key, .. } => {
                self.ledger.looks.push((self.now, who, key.clone()));
                let found = if self.proofs.contains(&key) { ProofLook::Stands } else { ProofLook::Gone("it is not there".to_owned()) };
                self.schedule(who, 50, SimEventKind::Event(Box::new(Event::OptOut(OptOutEvent::Looked { question, found }))));
            }
        }
    }

    fn tell_peers(&mut self, who: AccessPoint, command: PeerCommand) {
        match command {
            PeerCommand::Ask { to, question, request } => self.ask(who, to, question, request),
            PeerCommand::Answer { ticket, response } => self.answer(who, ticket, response),
            PeerCommand::Publish(gossip) => self.publish(who, &gossip),
            PeerCommand::Guard(gate) => self.guard(who, gate),
            PeerCommand::Know { access_point, .. } => {
                self.link(who, access_point);
            }
            PeerCommand::Recover { subnet, host, from } => {
                let first = host.clone().map(|host| (JournalKey { subnet, host, run: 0 }, 0));
                self.exchange(who, from, Request::Recall(subnet, first), Exchange::Recover { subnet, host, rows: Vec::new() });
            }
            PeerCommand::Transferred { transfer, answer } => self.transferred(who, transfer, answer),
            PeerCommand::Copy(order) => self.in_turn(who, Turn::COPY, SimEventKind::Copy(order)),
        }
    }

    fn exchange_hierarchies(&mut self, who: AccessPoint, command: HierarchyCommand) {
        match command {
            HierarchyCommand::Gather { edition, from, .. } => {
                // Every member that announces an edition has it; it arrives after a while.
                let reached = from.iter().any(|other| self.link(who, *other));
                let hierarchy = self.editions.get(&edition.hash).filter(|_| reached).cloned();
                let found = if hierarchy.is_some() { Found::Plausible } else { Found::Unusable };
                self.schedule(who, 700, SimEventKind::Event(Box::new(Event::EditionFound { edition, found, hierarchy, wrong: 0 })));
            }
            HierarchyCommand::Keep { uses, .. } => {
                if let (Some(node), Some(hierarchy)) = (self.nodes.get_mut(&who), self.editions.get(&uses.hash)) {
                    node.hierarchy = hierarchy.clone();
                }
            }
            HierarchyCommand::TellManifest { ticket, .. } | HierarchyCommand::TellChunk { ticket, .. } => {
                self.answer(who, ticket, Response::Refused("not in this world".to_owned()));
            }
        }
    }

    /// All that events order of the state while a write is under way is the next write, in the order of the events; all that one event orders
    /// of the cache is one write, after those of the events before.
    fn in_turn(&mut self, who: AccessPoint, turn: Turn, kind: SimEventKind) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        let now = self.now;
        let (end, place) = match turn {
            Turn::Cache => {
                let free = node.cache_free;
                node.cache_free = *node.cache_batch.get_or_insert_with(|| free.max(now).after(CACHE_TAKES));
                (node.cache_free, 0)
            }
            Turn::State(_) | Turn::AtOnce => {
                let takes = self.faults.write_takes(node.number).unwrap_or(STATE_TAKES);
                node.state_writes.order(now, takes)
            }
        };
        self.schedule_behind(who, end.since(now), place, kind);
    }

    /// Rows of another owner are stored, and that is answered.
    fn keep_rows(&mut self, who: AccessPoint, ticket: Ticket, rows: &[JournalRow]) {
        let no_copies = self.faults.no_copies;
        let Some(node) = self.nodes.get_mut(&who) else { return };
        let (heads, growth) = if no_copies { (heads_of(rows), BTreeMap::new()) } else { node.disk.append(rows) };
        self.rows_stored(who, rows, false);
        self.tell(who, Event::RowsKept { ticket, heads, growth });
    }

    /// The store has carried a command out: only now it is true.
    pub(super) fn stored(&mut self, who: AccessPoint, command: StoreCommand) {
        let Some(command) = self.hold_write(who, command) else { return };
        let Some(node) = self.nodes.get_mut(&who) else { return };
        if node.disk.is_damaged_for(&command) {
            return self.ends_damaged(who);
        }
        let disk = &mut node.disk;
        match command {
            StoreCommand::StoreSurvey { write, slot, bytes } => {
                disk.surveys.insert(slot, bytes);
                self.tell(who, Event::Survey(SurveyEvent::Stored { write }));
            }
            StoreCommand::StoreSurveyProbes { write, slot, bytes } => {
                disk.survey_probes.insert(slot, bytes);
                self.tell(who, Event::Survey(SurveyEvent::ProbesStored { write }));
            }
            StoreCommand::KeepAdmissions { write, page, bytes } => {
                disk.admissions.insert(page, bytes);
                self.tell(who, Event::Admission(AdmissionEvent::Stored { write }));
            }
            StoreCommand::KeepOptOuts { write, page, bytes } => {
                disk.opt_outs.insert(page, bytes);
                self.tell(who, Event::OptOut(OptOutEvent::Stored { write }));
            }
            StoreCommand::KeepContacts { page, bytes } => drop(disk.contacts.insert(page, bytes)),
            StoreCommand::StoreVoting { write, records } => {
                disk.store_voting(records);
                self.tell(who, Event::VotingStored { write });
            }
            StoreCommand::StoreClaims { write, claims } => {
                let claims = claims.into_iter().filter_map(|proof| Some((proof.read().ok()?.subnet, proof)));
                disk.claims.extend(claims);
                if let Some(write) = write {
                    self.tell(who, Event::ClaimsStored { write });
                }
            }
            StoreCommand::Append { write, rows } => {
                let (_, growth) = disk.append(&rows);
                self.rows_stored(who, &rows, true);
                self.tell(who, Event::RowsStored { write, growth });
            }
            StoreCommand::KeepRows { ticket, rows } => self.keep_rows(who, ticket, &rows),
            StoreCommand::RecallRows { ticket, subnet, from } => {
                let (rows, next) = disk.recall(&subnet, from.as_ref(), PIECE);
                self.tell(who, Event::RowsRead { ticket, rows, next });
            }
            StoreCommand::DigestRows { ticket, journals } => {
                let told = journals.into_iter().map(|(key, rows)| (key.clone(), disk.digests(&key, rows))).collect();
                self.tell(who, Event::RowsDigested { ticket, told });
            }
            StoreCommand::Load(subnet) => {
                let journals = disk.load(&subnet);
                self.tell(who, Event::Loaded { subnet, journals });
            }
            StoreCommand::DropRuns { before, but_newest } => {
                let older = disk.older_runs(&before, but_newest);
                let growth = disk.drop_journals(&older);
                self.tell(who, Event::JournalsResized { growth });
            }
            StoreCommand::Seen { ticket, batches } => {
                let answers = batches.into_iter().map(|batch| disk.ask_seen(batch)).collect();
                self.tell(who, Event::Seen { ticket, answers });
            }
            StoreCommand::Children { ticket, site, page } => {
                let children = disk.children(site, page);
                self.tell(who, Event::Children { ticket, children });
            }
            StoreCommand::PutCut { site, urls } => disk.put_cut(site, urls),
            StoreCommand::TakeCut { ticket, site, pages } => {
                let urls = disk.take_cut(site, &pages);
                self.tell(who, Event::CutTaken { ticket, urls });
            }
            StoreCommand::LoadSeen { site, seen, children, cut } => {
                disk.load_seen(site, seen, children, cut);
                self.tell(who, Event::SeenLoaded { site });
            }
            StoreCommand::DropSeen(site) => disk.drop_seen(site),
            StoreCommand::LoadPreviousRun { site, journal, key } => {
                let read = disk.load_previous_run(site, &journal, key);
                self.tell(who, Event::PreviousRunLoaded { site, journal, read });
            }
            StoreCommand::DropPreviousRun(site) => disk.drop_previous_run(site),
        }
    }

    /// Rows for a replica were read from the store and are sent.
    pub(super) fn copy(&mut self, who: AccessPoint, order: CopyOrder) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        if order.ranges.iter().any(|(key, from, to)| node.disk.is_damaged_within(key, *from, *to)) {
            return self.ends_damaged(who);
        }
        if order.compares {
            let journals = order.ranges.iter().map(|(key, _, rows)| (key.clone(), *rows)).collect();
            return self.exchange(who, order.to, Request::CompareRows(journals), Exchange::Compare);
        }
        let mut room = PIECE;
        let rows: Vec<_> = order.ranges.iter().flat_map(|(key, from, to)| node.disk.read(key, *from, *to, &mut room)).collect();
        let sent = rows.iter().map(|row| (row.key.clone(), row.sequence + 1)).collect();
        self.exchange(who, order.to, Request::Keep(rows), Exchange::Copy { sent });
    }

    fn resolve(&self, host: &Host) -> Result<LocatedHost, ResolveError> {
        let address = self.web.addresses.get(host).copied().ok_or(ResolveError::NoSuchName)?;
        Ok(LocatedHost { host: host.clone(), address, valid_for: self.names_hold })
    }

    fn contact(&mut self, by: AccessPoint, address: IpAddr, took: Millis, purpose: Purpose) -> usize {
        self.ledger.contacts.push(Contact { address, by, begin: self.now, end: self.now.after(took), purpose });
        self.ledger.contacts.len() - 1
    }

    fn fetch(&mut self, who: AccessPoint, order: FetchOrder, previous: Option<PreviousVersion>) {
        let FetchOrder { url, address, purpose, validators, .. } = order;
        let rtt_us = self.round_trip_us(who, address);
        // Where distances were measured, an answer takes just as long.
        let (trips, service) = if self.latencies.is_some() { (1, 0) } else { (2, SERVICE) };
        let slow = if purpose == FetchPurpose::Page { self.slow.get(&address).copied().unwrap_or(0) } else { 0 };
        let took = Millis::from(rtt_us / 1000) * trips + service + slow;
        let (seen_as, outcome) = match purpose {
            FetchPurpose::Robots => (Purpose::Robots(url.clone()), self.robots_answer(&url)),
            FetchPurpose::Page => (Purpose::Page(url.clone()), self.page_answer(&url, &validators)),
        };
        let contact = self.contact(who, address, took, seen_as);
        self.page_asked(who, &url, purpose, &outcome);
        if let Some(node) = self.nodes.get_mut(&who) {
            node.contacts.insert(address, contact);
        }
        let report = FetchReport {
            wire_bytes: if matches!(outcome, FetchOutcome::NotModified { .. }) { 0 } else { 100 + 10 * url.as_str().len() as u64 },
            url,
            outcome,
            took,
            // Where ways change a connection is made for each request; elsewhere probes alone tell how far it is.
            connect_us: (!self.detours.is_empty()).then_some(rtt_us),
            first_byte_us: Some(if trips == 1 { rtt_us } else { (took * 900) as u32 }),
            software: Some("lab/1".to_owned()),
            retry_after: None,
            facts: Vec::new(),
        };
        let previous = previous.map(Box::new);
        let is_page = self.reading > 0 && matches!(report.outcome, FetchOutcome::Page { .. });
        if is_page {
            self.schedule(who, took, SimEventKind::BodyReceived { contact, address, took });
        }
        let told = took + if is_page { self.reading } else { 0 };
        self.schedule(who, told, SimEventKind::Fetched { contact, address, report: Box::new(report), previous });
    }

    fn robots_answer(&self, url: &PageUrl) -> FetchOutcome {
        match self.web.robots.get(&url.host()) {
            Some(text) => FetchOutcome::Robots { status: 200, body: text.clone().into_bytes().into() },
            // It may have moved.
            None => match self.page_answer(url, &Validators::default()) {
                FetchOutcome::Redirect { status, to } => FetchOutcome::Redirect { status, to },
                _ => FetchOutcome::Status(404),
            },
        }
    }

    fn page_answer(&self, url: &PageUrl, asked: &Validators) -> FetchOutcome {
        let secret = FingerprintKey([7; 16]);
        let link = |url: PageUrl| Link { fingerprint: secret.of(url.as_str()), url };
        match self.web.answer(url) {
            Answer::Page(links) => {
                let text: Vec<_> = links.iter().map(PageUrl::as_str).collect();
                let content = content_of(text.join("\n").as_bytes());
                // Every third page comes from a server that says nothing of versions.
                let etag = (!url.as_str().len().is_multiple_of(3)).then(|| format!("\"{content:x}\""));
                let validators = Validators { etag, last_modified: None };
                if !asked.is_empty() && *asked == validators {
                    return FetchOutcome::NotModified { validators, no_index: false, no_follow: false };
                }
                let links = links.into_iter().map(link).collect();
                let page = PageFacts { decoded_bytes: 1_000, links, validators, content, ..PageFacts::default() };
                FetchOutcome::Page { status: 200, page }
            }
            Answer::Redirect(to) => FetchOutcome::Redirect { status: 302, to: link(to) },
            Answer::Status(status) => FetchOutcome::Status(status),
            Answer::Broken => FetchOutcome::Failed(FetchError::Closed),
            Answer::NotHtml => FetchOutcome::NotHtml { status: 200, content_type: "image/png".to_owned() },
        }
    }

    /// The connection is closed: what was being asked there breaks off.
    fn close(&mut self, who: AccessPoint, address: IpAddr) {
        let Some(contact) = self.nodes.get_mut(&who).and_then(|node| node.contacts.remove(&address)) else { return };
        let Some(contact) = self.ledger.contacts.get_mut(contact) else { return };
        contact.end = contact.end.min(self.now);
        let (Purpose::Page(url) | Purpose::Robots(url)) = &contact.purpose else { return };
        let took = self.now.since(contact.begin);
        let report = FetchReport {
            url: url.clone(),
            outcome: FetchOutcome::Failed(FetchError::Cancelled),
            took,
            connect_us: None,
            first_byte_us: None,
            wire_bytes: 0,
            software: None,
            retry_after: None,
            facts: Vec::new(),
        };
        self.schedule(who, 0, SimEventKind::Event(Box::new(Event::Fetched { address, report: Box::new(report) })));
    }
}

/// How far journals would go with these rows.
fn heads_of(rows: &[JournalRow]) -> Vec<(JournalKey, u64)> {
    let mut heads = BTreeMap::new();
    for row in rows {
        let head = heads.entry(row.key.clone()).or_insert(0);
        *head = (row.sequence + 1).max(*head);
    }
    heads.into_iter().collect()
}

/// Whether a command adds to the state, so that it waits while the disk is full.
fn writes(command: &StoreCommand) -> bool {
    matches!(
        command,
        StoreCommand::StoreVoting { .. } | StoreCommand::StoreClaims { .. } | StoreCommand::Append { .. } | StoreCommand::KeepRows { .. }
    )
}

/// What is kept back, and what is written down to be judged.
impl World {
    /// Keeps an event back if its process stands still.
    pub(super) fn hold(&mut self, event: SimEvent) -> Option<SimEvent> {
        let Some(held) = self.faults.frozen.get_mut(&event.node) else { return Some(event) };
        held.push_back(event);
        None
    }

    /// Keeps a write back if there is no room for it.
    pub(super) fn hold_write(&mut self, who: AccessPoint, command: StoreCommand) -> Option<StoreCommand> {
        let Some(node) = self.nodes.get(&who) else { return Some(command) };
        match self.faults.full.get_mut(&node.number) {
            Some(waiting) if writes(&command) => waiting.push((who, node.life, command)),
            Some(_) | None => return Some(command),
        }
        None
    }

    /// A page is asked for.
    pub(super) fn page_asked(&mut self, who: AccessPoint, url: &PageUrl, purpose: FetchPurpose, outcome: &FetchOutcome) {
        let Some(node) = self.nodes.get(&who).filter(|_| self.records.is_some()) else { return };
        let host = url.host();
        let run = node.crawler.as_ref().and_then(|crawler| crawler.view().run_of(&host));
        let (by, due) = (node.number as usize, self.due(node.number));
        let (Some(run), Some(records)) = (run.filter(|_| purpose == FetchPurpose::Page), &mut self.records) else { return };
        let run = records.run(&host, run, self.now, due);
        let is_page = matches!(outcome, FetchOutcome::Page { .. } | FetchOutcome::NotModified { .. });
        records.asked(self.now, by, url, run, is_page);
    }

    /// How long after the begin of a run a member may begin the next one; at once if its wall clock is wrong, which says how old a run is.
    fn due(&self, number: u32) -> Millis {
        let wrong = self.faults.wall_clock_is_wrong(number, self.now);
        if wrong { 0 } else { self.config.settings.revisit.saturating_sub(EARLY) }
    }

    /// Rows are durable on the disk of a process, which wrote them if they are its `own`.
    pub(super) fn rows_stored(&mut self, who: AccessPoint, rows: &[JournalRow], own: bool) {
        let Some(number) = self.nodes.get(&who).map(|node| node.number).filter(|_| self.records.is_some()) else { return };
        let due = self.due(number);
        let Some(records) = &mut self.records else { return };
        for row in rows {
            // Runs of hosts that do not exist are somebody's invention.
            if self.web.addresses.contains_key(&row.key.host) {
                records.stored(self.now, who, row, own, due);
            }
        }
    }
}
