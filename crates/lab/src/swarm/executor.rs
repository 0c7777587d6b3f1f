//! Carries out a crawler's commands in virtual time: the disk one after another, web servers after a round trip, name servers, probes.

use crate::swarm::ledger::{Contact, Purpose};
use crate::swarm::network::Waiting;
use crate::swarm::sim_event::SimEventKind;
use crate::swarm::world::World;
use crate::web::Answer;
use nearcrawl_core::{
    event::{Command, Event, HierarchyCommand, PeerCommand, StoreCommand, WebCommand},
    hierarchy_version::editions::Found,
    replication::replicas::CopyOrder,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReport, LocatedHost, PageFacts, ProbeReport, ResolveError},
    fingerprint::{Fingerprint, FingerprintKey},
    former::Former,
    ids::{QuestionId, Receipt, SeenTicket, SiteNumber, Ticket},
    journal::{JournalKey, JournalRow},
    links::Link,
    message::{Request, Response},
    revisit::{Validators, content_of},
    seen::{PageState, SeenBatch},
    subnet::Subnet,
    time::Millis,
    url::{Host, PageUrl},
};
use std::net::IpAddr;

/// How much one message of rows holds, in bytes.
pub(super) const PIECE: usize = 256 << 10;

/// What a synced write takes, and what the cache takes.
const STATE_TAKES: Millis = 3;
const CACHE_TAKES: Millis = 1;

/// What a web server thinks about a page.
const SERVICE: Millis = 15;

/// What the state store is asked to do.
pub(super) enum StateAction {
    Append { receipt: Receipt, rows: Vec<JournalRow> },
    Claims { receipt: Option<Receipt>, claims: Vec<SignedClaim> },
    Keep { ticket: Ticket, rows: Vec<JournalRow> },
    Recall { ticket: Ticket, subnet: Subnet, from: Option<(JournalKey, u64)> },
    Load(Subnet),
    Drop(JournalKey),
    Copy(CopyOrder),
}

impl StateAction {
    /// What is done first of all that one event ordered. Rows are stored before they are read to be sent.
    pub(super) fn class(&self) -> u8 {
        match self {
            StateAction::Claims { .. } => 0,
            StateAction::Keep { .. } => 1,
            StateAction::Append { .. } => 2,
            StateAction::Drop(_) => 3,
            StateAction::Copy(_) => 4,
            StateAction::Load(_) => 5,
            StateAction::Recall { .. } => 6,
        }
    }
}

/// What the cache is asked to do.
pub(super) enum CacheAction {
    Seen {
        ticket: SeenTicket,
        batches: Vec<SeenBatch>,
    },
    Children {
        ticket: SeenTicket,
        site: SiteNumber,
        page: Fingerprint,
    },
    PutCut {
        site: SiteNumber,
        urls: Vec<(Fingerprint, String)>,
    },
    TakeCut {
        ticket: SeenTicket,
        site: SiteNumber,
        pages: Vec<Fingerprint>,
    },
    Load {
        site: SiteNumber,
        seen: Vec<(Fingerprint, u8, PageState)>,
        children: Vec<(Fingerprint, Vec<Fingerprint>)>,
        cut: Vec<(Fingerprint, String)>,
    },
    Drop(SiteNumber),
    LoadFormer {
        site: SiteNumber,
        journal: JournalKey,
        key: FingerprintKey,
    },
    DropFormer(SiteNumber),
}

impl World {
    /// Carries out a command of a crawler.
    pub(super) fn perform(&mut self, who: AccessPoint, command: Command) {
        match command {
            Command::Store(command) => self.store(who, command),
            Command::Web(command) => self.ask_web(who, command),
            Command::Peers(command) => self.tell_peers(who, command),
            Command::Hierarchy(command) => self.exchange_hierarchies(who, command),
            // The world's loop ends the process at this one.
            Command::Finished => {}
        }
    }

    fn store(&mut self, who: AccessPoint, command: StoreCommand) {
        match command {
            StoreCommand::LoadFormer { site, journal, key } => self.cache(who, CacheAction::LoadFormer { site, journal, key }),
            StoreCommand::DropFormer(site) => self.cache(who, CacheAction::DropFormer(site)),
            StoreCommand::Append { receipt, rows } => self.state(who, StateAction::Append { receipt, rows }),
            StoreCommand::StoreClaims { receipt, claims } => self.state(who, StateAction::Claims { receipt, claims }),
            // Written as soon as it is said, as the smallest of all.
            StoreCommand::KeepContacts { page, bytes } => {
                if let Some(node) = self.nodes.get_mut(&who) {
                    node.disk.contacts.insert(page, bytes);
                }
            }
            StoreCommand::KeepRows { ticket, rows } => self.state(who, StateAction::Keep { ticket, rows }),
            StoreCommand::RecallRows { ticket, subnet, from } => self.state(who, StateAction::Recall { ticket, subnet, from }),
            StoreCommand::Load(subnet) => self.state(who, StateAction::Load(subnet)),
            StoreCommand::DropJournal(key) => self.state(who, StateAction::Drop(key)),
            StoreCommand::Seen { ticket, batches } => self.cache(who, CacheAction::Seen { ticket, batches }),
            StoreCommand::Children { ticket, site, page } => self.cache(who, CacheAction::Children { ticket, site, page }),
            StoreCommand::PutCut { site, urls } => self.cache(who, CacheAction::PutCut { site, urls }),
            StoreCommand::TakeCut { ticket, site, pages } => self.cache(who, CacheAction::TakeCut { ticket, site, pages }),
            StoreCommand::LoadSeen { site, seen, children, cut } => self.cache(who, CacheAction::Load { site, seen, children, cut }),
            StoreCommand::DropSeen(site) => self.cache(who, CacheAction::Drop(site)),
        }
    }

    fn ask_web(&mut self, who: AccessPoint, command: WebCommand) {
        match command {
            WebCommand::Resolve(host) => {
                let answer = self.resolve(&host);
                self.schedule(who, 30, SimEventKind::Event(Box::new(Event::Resolved { host, answer })));
            }
            WebCommand::Probe { question, target } => {
                let rtt_us = self.round_trip_us(who, target.address.ip());
                let took = Millis::from(rtt_us / 1000);
                self.contact(who, target.address.ip(), took, Purpose::Probe);
                let report = ProbeReport { rtt_us: Ok(rtt_us), took };
                self.schedule(who, took, SimEventKind::Event(Box::new(Event::Probed { question, report })));
            }
            WebCommand::Fetch(order) => self.fetch(who, order, None),
            WebCommand::Revisit { mut order, site, page } => {
                let former = self.nodes.get(&who).and_then(|node| node.disk.former(site, page));
                if let Some(known) = former.as_ref().filter(|known| known.stands_in()) {
                    order.validators = known.page.validators.clone();
                }
                self.fetch(who, order, former);
            }
            WebCommand::CloseConnection(address) => self.close(who, address),
        }
    }

    fn tell_peers(&mut self, who: AccessPoint, command: PeerCommand) {
        match command {
            PeerCommand::Ask { to, question, request } => {
                let waiting = (question != QuestionId::NOBODY).then_some(Waiting::Crawler { question });
                self.ask(who, to, request, waiting);
            }
            PeerCommand::Answer { ticket, response } => self.answer(who, ticket, response),
            PeerCommand::Publish(gossip) => self.publish(who, &gossip),
            PeerCommand::Know { access_point, .. } => {
                self.link(who, access_point);
            }
            PeerCommand::Recover { subnet, from } => {
                self.ask(who, from, Request::Recall(subnet, None), Some(Waiting::Recover { subnet, rows: Vec::new() }));
            }
            PeerCommand::Copy(order) => self.state(who, StateAction::Copy(order)),
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

    /// All that one event ordered is one synced write, after those of the events before.
    fn state(&mut self, who: AccessPoint, action: StateAction) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        let (free, now) = (node.state_free, self.now);
        let done = *node.state_batch.get_or_insert_with(|| free.max(now).after(STATE_TAKES));
        node.state_free = done;
        self.schedule(who, done.since(now), SimEventKind::State(action));
    }

    fn cache(&mut self, who: AccessPoint, action: CacheAction) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        let (free, now) = (node.cache_free, self.now);
        let done = *node.cache_batch.get_or_insert_with(|| free.max(now).after(CACHE_TAKES));
        node.cache_free = done;
        self.schedule(who, done.since(now), SimEventKind::Cache(action));
    }

    /// The state store has done it: only now it is true.
    pub(super) fn state_done(&mut self, who: AccessPoint, action: StateAction) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        match action {
            StateAction::Append { receipt, rows } => {
                node.disk.append(&rows);
                self.tell(who, Event::RowsStored { receipt });
            }
            StateAction::Claims { receipt, claims } => {
                for proof in claims {
                    if let Ok(claim) = proof.read() {
                        node.disk.claims.insert(claim.subnet, proof);
                    }
                }
                if let Some(receipt) = receipt {
                    self.tell(who, Event::ClaimsStored { receipt });
                }
            }
            StateAction::Load(subnet) => {
                let journals = node.disk.load(&subnet);
                self.tell(who, Event::Loaded { subnet, journals });
            }
            StateAction::Drop(key) => node.disk.drop_journal(&key),
            StateAction::Copy(order) => {
                let mut room = PIECE;
                let rows = order.ranges.iter().flat_map(|(key, from, to)| node.disk.read(key, *from, *to, &mut room)).collect();
                self.copy(who, order.to, rows);
            }
            action @ (StateAction::Keep { .. } | StateAction::Recall { .. }) => self.answer_from_store(who, action),
        }
    }

    /// The cache has done it.
    pub(super) fn cache_done(&mut self, who: AccessPoint, action: CacheAction) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        let disk = &mut node.disk;
        match action {
            CacheAction::Seen { ticket, batches } => {
                let answers = batches.into_iter().map(|batch| disk.ask_seen(batch)).collect();
                self.tell(who, Event::Seen { ticket, answers });
            }
            CacheAction::Children { ticket, site, page } => {
                let children = disk.children(site, page);
                self.tell(who, Event::Children { ticket, children });
            }
            CacheAction::PutCut { site, urls } => disk.put_cut(site, urls),
            CacheAction::TakeCut { ticket, site, pages } => {
                let urls = disk.take_cut(site, &pages);
                self.tell(who, Event::CutTaken { ticket, urls });
            }
            CacheAction::Load { site, seen, children, cut } => {
                disk.load_seen(site, seen, children, cut);
                self.tell(who, Event::SeenLoaded { site });
            }
            CacheAction::LoadFormer { site, journal, key } => {
                let (host, pages) = (journal.host.clone(), disk.load_former(site, &journal, key));
                self.tell(who, Event::FormerLoaded { site, host, pages });
            }
            CacheAction::DropFormer(site) => disk.drop_former(site),
            CacheAction::Drop(site) => disk.drop_seen(site),
        }
    }

    fn resolve(&self, host: &Host) -> Result<LocatedHost, ResolveError> {
        let address = self.web.addresses.get(host).copied().ok_or(ResolveError::NoSuchName)?;
        Ok(LocatedHost { host: host.clone(), address, valid_for: 7 * 86_400_000 })
    }

    fn contact(&mut self, by: AccessPoint, address: IpAddr, took: Millis, purpose: Purpose) -> usize {
        self.ledger.contacts.push(Contact { address, by, begin: self.now, end: self.now.after(took), purpose });
        self.ledger.contacts.len() - 1
    }

    fn fetch(&mut self, who: AccessPoint, order: FetchOrder, former: Option<Former>) {
        let FetchOrder { url, address, purpose, validators } = order;
        let rtt_us = self.round_trip_us(who, address);
        // Where distances were measured, an answer takes just as long.
        let (trips, service) = if self.latencies.is_some() { (1, 0) } else { (2, SERVICE) };
        let took = Millis::from(rtt_us / 1000) * trips + service;
        let (seen_as, outcome) = match purpose {
            FetchPurpose::Robots => (Purpose::Robots(url.clone()), self.robots_answer(&url)),
            FetchPurpose::Page => (Purpose::Page(url.clone()), self.page_answer(&url, &validators)),
        };
        let contact = self.contact(who, address, took, seen_as);
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
        };
        let former = former.map(Box::new);
        let lands = self.reading > 0 && matches!(report.outcome, FetchOutcome::Page { .. });
        if lands {
            self.schedule(who, took, SimEventKind::Landed { contact, address, took });
        }
        let told = took + if lands { self.reading } else { 0 };
        self.schedule(who, told, SimEventKind::Fetched { contact, address, report: Box::new(report), former });
    }

    fn robots_answer(&self, url: &PageUrl) -> FetchOutcome {
        match self.web.robots.get(&url.host()) {
            Some(text) => FetchOutcome::Robots { status: 200, body: text.clone().into_bytes().into() },
            None => FetchOutcome::Status(404),
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
        };
        self.schedule(who, 0, SimEventKind::Event(Box::new(Event::Fetched { address, report: Box::new(report) })));
    }
}
