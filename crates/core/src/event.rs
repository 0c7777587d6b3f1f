//! The closed sets of inputs ([`Event`]) and outputs ([`Command`]) of the crawler.

use crate::{
    allowance::Outlook,
    crawl::scope::Scope,
    hierarchy_version::{editions::Found, machine::AtHand},
    replication::replicas::CopyOrder,
    report::journal_rows::ExportOrder,
    voting::records::VotingRecord,
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{Gate, SignedAdmission},
    allowance::Rest,
    claim::SignedClaim,
    cross_table::Pair,
    edition::Edition,
    exported::ExportedRows,
    fetch::{FetchOrder, FetchReport, LocatedHost, ProbeReason, ProbeReport, ProbeTarget, ResolveError},
    fingerprint::{Fingerprint, FingerprintKey},
    ids::{QuestionId, SeenTicket, SiteNumber, Ticket, TransferId, WriteId},
    journal::{JournalEntry, JournalKey, JournalRow},
    message::{Gossip, Request, Response},
    opt_out::{OptOutKey, ProofLook},
    previous_run::PreviousVersion,
    profile::Profile,
    request_record::{RecordParcel, RecordRange, RecordsQuery},
    requests_made::{RequestsMade, RequestsQuery},
    rows_digest::Digests,
    seen::{PageState, SeenAnswer, SeenBatch},
    subnet::Subnet,
    survey::SignedSurvey,
    time::Millis,
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

/// Whether the disk has room for more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskRoom {
    /// It has.
    #[default]
    Enough,
    /// Less is free than must be left.
    LittleFree,
    /// Its files take as much as the operator lets them: so many bytes.
    LimitReached(u64),
}

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// Time passed.
    Tick,
    /// Whether the disk has room for more.
    Room(DiskRoom),
    /// Why the operator lets nothing be asked of any server from now on; none if requests are allowed.
    Rest(Option<Rest>),
    /// What its operator's limits leave for the next while.
    Outlook(Outlook),
    /// What is told to the other members of this access point, as far as its operator chose so.
    Profile(Profile),
    /// The operator changed which hosts are in scope and which are denied.
    Scope(Box<Scope>),
    /// People named starting points.
    Seeds(Vec<PageUrl>),
    /// These starting points were guesses, of which nothing came: others are going to be named in their place.
    Superseded(Vec<PageUrl>),
    /// People want to know where this host is: its steward is asked, as if a URL of it had been named.
    Wanted(Host),
    /// People want the sums of the swarm by two dimensions: all members are asked for theirs.
    CrossTableWanted(Pair),
    /// People want to know how many different hosts, domains and addresses the swarm has: all members are asked for their sets.
    DistinctWanted,
    /// People want this access point to give everything back and go.
    Leave,
    /// People want another access point to have a subnet of ours.
    Move {
        /// The subnet that is to move.
        subnet: Subnet,
        /// Whose it shall be.
        to: AccessPoint,
    },
    /// Subnets that the operator wants to keep here: these, and no others. Only their operator's order moves them.
    Pinned(BTreeSet<Subnet>),
    /// The process is to stop for a while: finish what is under way, ask nothing new.
    Drain,
    /// Others reach this access point here, and nowhere else.
    Reached(Vec<String>),
    /// A connection to a member was made: both sides said hello.
    Connected {
        /// The member.
        access_point: AccessPoint,
        /// The number of its process.
        incarnation: u64,
        /// Where it can be reached, as it says.
        addresses: Vec<String>,
        /// The address at the other end, as this access point sees it.
        remote: Option<IpAddr>,
    },
    /// A member asks something.
    Asked {
        /// The member that asks.
        from: AccessPoint,
        /// To be named in the answer.
        ticket: Ticket,
        /// The question.
        request: Request,
    },
    /// The process needs an answer of a member; it comes with [`PeerCommand::Transferred`].
    Transfer {
        /// To be named in the answer.
        transfer: TransferId,
        /// Who is asked.
        to: AccessPoint,
        /// The question.
        request: Request,
    },
    /// A question of ours was answered; none if it was not.
    Answered {
        /// Our question.
        question: QuestionId,
        /// Who was asked.
        from: AccessPoint,
        /// The answer.
        answer: Option<Response>,
    },
    /// A gossip message came.
    Gossiped {
        /// Who signed it.
        author: AccessPoint,
        /// What it says.
        gossip: Gossip,
    },
    /// A connection to a member was timed.
    Distance {
        /// The member at the other end.
        to: AccessPoint,
        /// The round trip in microseconds.
        rtt_us: u32,
        /// The address at the other end.
        remote: Option<IpAddr>,
    },
    /// The DNS answered.
    Resolved {
        /// Which host.
        host: Host,
        /// Where it is, or why that is not known.
        answer: Result<LocatedHost, ResolveError>,
    },
    /// Our own probe ended.
    Probed {
        /// The question it belongs to.
        question: QuestionId,
        /// What it found.
        report: ProbeReport,
    },
    /// A page is here and is being read: what it says follows as [`Event::Fetched`] or [`Event::Revisited`].
    BodyReceived {
        /// Which address was asked.
        address: IpAddr,
        /// From sending the request to the last byte.
        took: Millis,
    },
    /// A web server answered, or did not.
    Fetched {
        /// Which address was asked.
        address: IpAddr,
        /// What came of it.
        report: Box<FetchReport>,
    },
    /// The same for a page that the run before may have known.
    Revisited {
        /// Which address was asked.
        address: IpAddr,
        /// What came of it.
        report: Box<FetchReport>,
        /// What the run before knew of the page, if it did.
        previous: Option<Box<PreviousVersion>>,
    },
    /// What the run before knew can be asked for from now on.
    PreviousRunLoaded {
        /// The site's number.
        site: SiteNumber,
        /// The journal of that run.
        journal: JournalKey,
        /// What is left of it here, if anything is.
        read: Option<PreviousRunRead>,
    },
    /// The seen set answered, batch by batch.
    Seen {
        /// The question's ticket.
        ticket: SeenTicket,
        /// For each batch the answers in the order of its questions.
        answers: Vec<Vec<SeenAnswer>>,
    },
    /// The links of a visited page.
    Children {
        /// The question's ticket.
        ticket: SeenTicket,
        /// The fingerprints of the pages that it links to.
        children: Vec<Fingerprint>,
    },
    /// URLs that had been cut.
    CutTaken {
        /// The question's ticket.
        ticket: SeenTicket,
        /// In the order asked; none if it is not known.
        urls: Vec<Option<String>>,
    },
    /// Rows are durable.
    RowsStored {
        /// The number of their [`StoreCommand::Append`].
        write: WriteId,
        /// By how many bytes the journals of their subnets grew; negative if they shrank.
        growth: BTreeMap<Subnet, i64>,
    },
    /// Journals on our disk grew or shrank, other than by [`Event::RowsStored`] or [`Event::RowsKept`]. Told once at the start as well, with
    /// what there is.
    JournalsResized {
        /// By how many bytes the journals of which subnets grew; negative if they shrank.
        growth: BTreeMap<Subnet, i64>,
    },
    /// Rows of another owner are durable.
    RowsKept {
        /// Who is to be answered, by [`StoreCommand::KeepRows`].
        ticket: Ticket,
        /// How far we have each of their journals (exclusive).
        heads: Vec<(JournalKey, u64)>,
        /// By how many bytes the journals of their subnets grew; negative if they shrank.
        growth: BTreeMap<Subnet, i64>,
    },
    /// Rows were read that a member asked for.
    RowsRead {
        /// Who is to be answered, by [`StoreCommand::RecallRows`].
        ticket: Ticket,
        /// Rows in the order of their journals, as many as an answer has room for.
        rows: Vec<JournalRow>,
        /// From which one to go on; none if these were the last.
        next: Option<(JournalKey, u64)>,
    },
    /// Copies that a member wants to compare with its own were read.
    RowsDigested {
        /// Who is to be answered, by [`StoreCommand::DigestRows`].
        ticket: Ticket,
        /// Of each journal the digests of its first rows.
        told: Vec<(JournalKey, Digests)>,
    },
    /// Pages or links were read that a member asked for.
    Exported {
        /// Who is to be answered, by [`Command::Export`].
        ticket: Ticket,
        /// The answer; none if it is to be asked again.
        rows: Option<ExportedRows>,
    },
    /// The log of requests was searched for what a member asked about.
    RequestsTold {
        /// Who is to be answered, by [`Command::TellRequests`].
        ticket: Ticket,
        /// The answer; none if it is to be asked again.
        made: Option<Box<RequestsMade>>,
    },
    /// What a member wanted of records of requests was done.
    RecordAnswered {
        /// Who is to be answered, by [`Command::Record`].
        ticket: Ticket,
        /// The answer; none if it is to be asked again.
        answer: Option<Box<Response>>,
    },
    /// It is said why something is crawled by whom, to a member that asked.
    Explained {
        /// Who is to be answered, by [`Command::Explain`].
        ticket: Ticket,
        /// The explanation, or why there is none.
        said: Result<String, String>,
    },
    /// Claims are durable.
    ClaimsStored {
        /// The number of their [`StoreCommand::StoreClaims`].
        write: WriteId,
    },
    /// What concerns votes is durable.
    VotingStored {
        /// The number of its [`StoreCommand::StoreVoting`].
        write: WriteId,
    },
    /// An operator says that these members will not come back.
    DeclareLost(Vec<AccessPoint>),
    /// A copy to a replica went out and was answered, or not.
    Copied {
        /// Which replica.
        to: AccessPoint,
        /// How far each journal was sent.
        sent: BTreeMap<JournalKey, u64>,
        /// What the replica said.
        answer: CopyAnswer,
    },
    /// A member sent all it had of a subnet, or of a host in it, or nothing came of asking it. Nothing of it is stored yet.
    Recovered {
        /// The subnet that was asked for.
        subnet: Subnet,
        /// If only those of this host were wanted.
        host: Option<Host>,
        /// The member that was asked.
        from: AccessPoint,
        /// Its journals, each up to its first gap; none if it did not answer to the end.
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
        /// How many bytes they are.
        bytes: usize,
    },
    /// The journals of a subnet were read, newest run of each host.
    Loaded {
        /// The subnet that was read.
        subnet: Subnet,
        /// What they say.
        journals: Vec<(JournalKey, Vec<JournalEntry>)>,
    },
    /// The seen set knows a loaded site.
    SeenLoaded {
        /// The site's number.
        site: SiteNumber,
    },
    /// A survey of our own is made or changed, or one is durable.
    Survey(SurveyEvent),
    /// An opt-out is asked for, its proof was looked for, or what is said of one is durable.
    OptOut(OptOutEvent),
    /// A certificate or an expulsion came, or one is durable.
    Admission(AdmissionEvent),
    /// Another hierarchy is to be used from now on.
    Hierarchy(Arc<Hierarchy>),
    /// Which editions of the hierarchy the process has when it starts.
    AtHand(AtHand),
    /// The operator gives another edition.
    Given {
        /// The name of the edition.
        edition: Edition,
        /// The hierarchy.
        hierarchy: Arc<Hierarchy>,
    },
    /// An edition that others vouch for was looked at.
    EditionFound {
        /// The name of the edition.
        edition: Edition,
        /// What is to be thought of it.
        found: Found,
        /// The hierarchy, if it is usable.
        hierarchy: Option<Arc<Hierarchy>>,
        /// Manifests, pieces and files that were not what they were called.
        wrong: u64,
    },
}

/// What happens to a survey.
#[derive(Clone, Debug)]
pub enum SurveyEvent {
    /// A survey of our own, signed by us, is to be stored and told.
    Made(SignedSurvey),
    /// A survey is durable.
    Stored {
        /// The number of its [`StoreCommand::StoreSurvey`].
        write: WriteId,
    },
    /// What was probed for a survey is durable.
    ProbesStored {
        /// The number of its [`StoreCommand::StoreSurveyProbes`].
        write: WriteId,
    },
}

/// What happens to an opt-out.
#[derive(Clone, Debug)]
pub enum OptOutEvent {
    /// People want nothing to be asked there, or that it may be asked again. What comes of it is to be read by its number.
    Asked {
        /// The number, above those before.
        number: u64,
        /// Where, and by which proof.
        key: OptOutKey,
        /// Whether nothing is to be asked there.
        stops: bool,
    },
    /// The same of a program that is no member: for a file it is looked only where this access point looks after the server.
    AskedByReader {
        /// The number, above those before.
        number: u64,
        /// Where, and by which proof.
        key: OptOutKey,
        /// Whether nothing is to be asked there.
        stops: bool,
    },
    /// The host of a proof was looked up.
    Located {
        /// The question of the [`WebCommand::LocateProof`].
        question: QuestionId,
        /// Its address, or why there is none.
        address: Result<IpAddr, String>,
    },
    /// A proof was looked for.
    Looked {
        /// The question of the [`WebCommand::LookForProof`].
        question: QuestionId,
        /// What was found.
        found: ProofLook,
    },
    /// Statements are durable.
    Stored {
        /// The number of their [`StoreCommand::KeepOptOuts`].
        write: WriteId,
    },
}

/// What happens to certificates and expulsions.
#[derive(Clone, Debug)]
pub enum AdmissionEvent {
    /// People gave one, to be told to all. What comes of it is to be read by its number.
    Given {
        /// The number, above those before.
        number: u64,
        /// The statement.
        signed: Box<SignedAdmission>,
    },
    /// A member showed this certificate when it connected, or who refuses this access point showed why.
    Shown(Box<SignedAdmission>),
    /// Statements are durable.
    Stored {
        /// The number of their [`StoreCommand::KeepAdmissions`].
        write: WriteId,
    },
}

/// What a replica says to rows that it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyAnswer {
    /// They are stored: it has each of these journals up to there (exclusive).
    Kept(Vec<(JournalKey, u64)>),
    /// Its copies of these journals begin with so many of our rows.
    Compared(Vec<(JournalKey, u64)>),
    /// The journals of the sender take as much of its disk as they may.
    NoRoom,
    /// It did not answer, or refused them.
    Failed,
}

/// Something is to be done. The executor matches each kind to the last variant, so that a command that is not carried
/// out does not compile.
#[derive(Clone, Debug)]
pub enum Command {
    /// On the state directory, in the order given.
    Store(StoreCommand),
    /// In the DNS or at web servers, each as a task of its own.
    Web(WebCommand),
    /// With other members.
    Peers(PeerCommand),
    /// With the files of the hierarchy.
    Hierarchy(HierarchyCommand),
    /// Read pages or links of journals, beside everything else, for [`Event::Exported`].
    Export {
        /// Whom to answer.
        ticket: Ticket,
        /// The rows that are asked for.
        order: Box<ExportOrder>,
    },
    /// Search the log of requests, beside everything else, for [`Event::RequestsTold`].
    TellRequests {
        /// Whom to answer.
        ticket: Ticket,
        /// The address and time that are asked about.
        query: RequestsQuery,
    },
    /// Keep or read copies of records of requests, beside everything else, for [`Event::RecordAnswered`].
    Record {
        /// Whom to answer.
        ticket: Ticket,
        /// What is wanted.
        order: RecordOrder,
    },
    /// Say why something is crawled by whom, for [`Event::Explained`]: the process knows some of it alone.
    Explain {
        /// Whom to answer.
        ticket: Ticket,
        /// What is asked about, as text.
        subject: String,
    },
    /// Everything is done that [`Event::Leave`] or [`Event::Drain`] asked for.
    Finished,
}

/// What a member wants of records of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordOrder {
    /// Keep the copy of its record.
    Keep(AccessPoint, Box<RecordParcel>),
    /// Say which hours of its record there are here.
    Compare(AccessPoint, RecordRange),
    /// Say what copies of records say.
    Tell(Box<RecordsQuery>),
}

/// How much is left of a journal of the run before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousRunRead {
    /// How many pages that run had.
    pub pages: u64,
    /// How many rows can be stood on: up to the first gap.
    pub rows: u64,
}

/// A read or write of the store. They are begun in the order in which they are given.
#[derive(Clone, Debug)]
pub enum StoreCommand {
    /// Read the journal of the run before, so that [`WebCommand::Revisit`] finds what it knew.
    LoadPreviousRun {
        /// The site that is visited again.
        site: SiteNumber,
        /// The journal of that run.
        journal: JournalKey,
        /// The key of its fingerprints.
        key: FingerprintKey,
    },
    /// Forget what a site's run before knew.
    DropPreviousRun(SiteNumber),
    /// Ask the seen set.
    Seen {
        /// To be named in the answer.
        ticket: SeenTicket,
        /// The visits that are recorded, and the pages asked about.
        batches: Vec<SeenBatch>,
    },
    /// Read the links of a visited page.
    Children {
        /// To be named in the answer.
        ticket: SeenTicket,
        /// The site.
        site: SiteNumber,
        /// The page.
        page: Fingerprint,
    },
    /// Remember URLs beyond the depth.
    PutCut {
        /// The site.
        site: SiteNumber,
        /// Their fingerprints, and the URLs as text.
        urls: Vec<(Fingerprint, String)>,
    },
    /// Take URLs back that had been cut.
    TakeCut {
        /// To be named in the answer.
        ticket: SeenTicket,
        /// The site.
        site: SiteNumber,
        /// The fingerprints of the URLs.
        pages: Vec<Fingerprint>,
    },
    /// Make the seen set know a site.
    LoadSeen {
        /// The site.
        site: SiteNumber,
        /// Pages with level and state.
        seen: Vec<(Fingerprint, u8, PageState)>,
        /// Links of visited pages.
        children: Vec<(Fingerprint, Vec<Fingerprint>)>,
        /// URLs beyond the depth.
        cut: Vec<(Fingerprint, String)>,
    },
    /// Forget a site's part of the seen set.
    DropSeen(SiteNumber),
    /// Store rows of our own journals durably. As at a replica, a row that differs from the stored one replaces it and all behind it.
    Append {
        /// To be named when it is done.
        write: WriteId,
        /// The rows, in order.
        rows: Vec<JournalRow>,
    },
    /// Store claims durably.
    StoreClaims {
        /// To be named when it is done; none if nothing waits for it.
        write: Option<WriteId>,
        /// The claims.
        claims: Vec<SignedClaim>,
    },
    /// Store what concerns votes durably, in order; with no records, say when all before is durable.
    StoreVoting {
        /// To be named when it is done, with [`Event::VotingStored`].
        write: WriteId,
        /// The records, in order.
        records: Vec<VotingRecord>,
    },
    /// Store a survey durably; it replaces what is in its slot. Answered with [`SurveyEvent::Stored`].
    StoreSurvey {
        /// To be named when it is done.
        write: WriteId,
        /// Where, below [`nearcrawl_model::survey::MAX_SURVEYS`].
        slot: u16,
        /// The survey as it was signed, encoded.
        bytes: Vec<u8>,
    },
    /// Store a page of statements about opt-outs durably; it replaces the page before. Answered with [`OptOutEvent::Stored`].
    KeepOptOuts {
        /// To be named when it is done.
        write: WriteId,
        /// Its number, below [`crate::opt_out::PAGES`].
        page: u8,
        /// What it says.
        bytes: Vec<u8>,
    },
    /// Store a page of certificates and expulsions durably; it replaces the page before. Answered with [`AdmissionEvent::Stored`].
    KeepAdmissions {
        /// To be named when it is done.
        write: WriteId,
        /// Its number, below [`crate::admission::PAGES`].
        page: u8,
        /// What it says.
        bytes: Vec<u8>,
    },
    /// Store a page of the record of contacts; it replaces the page before.
    KeepContacts {
        /// Its number, below [`crate::delegation::contacts::PAGES`].
        page: u8,
        /// What it says.
        bytes: Vec<u8>,
    },
    /// Store rows for another owner, then say how far we have them with [`Event::RowsKept`]. A row that differs from the stored one
    /// replaces it and all behind it: the present owner's statement holds.
    KeepRows {
        /// Whom to answer.
        ticket: Ticket,
        /// The rows, in order.
        rows: Vec<JournalRow>,
    },
    /// Read the rows we have, for [`Event::RowsRead`].
    RecallRows {
        /// Whom to answer.
        ticket: Ticket,
        /// The subnet whose rows are read.
        subnet: Subnet,
        /// The first row that is wanted; none from the beginning.
        from: Option<(JournalKey, u64)>,
    },
    /// Read how these journals begin, each up to this row (exclusive), for [`Event::RowsDigested`]. Some at the end may be left out if they are
    /// long.
    DigestRows {
        /// Whom to answer.
        ticket: Ticket,
        /// Each journal, and the row up to which.
        journals: Vec<(JournalKey, u64)>,
    },
    /// Read a subnet's journals.
    Load(Subnet),
    /// Forget the journals of a site's runs before this one. Answered with [`Event::JournalsResized`] if there were any.
    DropRuns {
        /// The run.
        before: JournalKey,
        /// Except the newest of them that has its first row: it is compared with. One without is no run that could be.
        but_newest: bool,
    },
    /// Store what was probed for the survey in this slot; it replaces what is there. Answered with [`SurveyEvent::ProbesStored`].
    StoreSurveyProbes {
        /// To be named when it is done.
        write: WriteId,
        /// The slot of the survey, below [`nearcrawl_model::survey::MAX_SURVEYS`].
        slot: u16,
        /// The probes, encoded.
        bytes: Vec<u8>,
    },
}

/// A question to the DNS, or a request to a server outside of the swarm.
#[derive(Clone, Debug)]
pub enum WebCommand {
    /// Look a host up.
    Resolve {
        /// The host's name.
        host: Host,
        /// The address that is the answer if it is among those that the name has; else it is the smallest.
        pinned: Option<IpAddr>,
    },
    /// Probe a target.
    Probe {
        /// To be named in the report.
        question: QuestionId,
        /// The address that is probed, and a host there.
        target: ProbeTarget,
        /// The reason, for the log of requests.
        reason: ProbeReason,
    },
    /// Ask a web server.
    Fetch(FetchOrder),
    /// Send this request, with the version of the page that the run before knew.
    Revisit {
        /// The request; its validators are filled in.
        order: FetchOrder,
        /// The site.
        site: SiteNumber,
        /// The page.
        page: Fingerprint,
    },
    /// Close the connection to this address; nothing more is asked there.
    CloseConnection(IpAddr),
    /// Look for the proof of an opt-out, in the DNS or by one request to the server. Answered with [`OptOutEvent::Looked`].
    LookForProof {
        /// To be named in the answer.
        question: QuestionId,
        /// The opt-out; not an order.
        key: OptOutKey,
        /// The address that a file is asked for at; none if the host is looked up.
        at: Option<IpAddr>,
    },
    /// Look up where a file that is the proof of an opt-out would be. Answered with [`OptOutEvent::Located`].
    LocateProof {
        /// To be named in the answer.
        question: QuestionId,
        /// The host.
        host: Host,
    },
}

/// A message to other members, or an exchange with one of them.
#[derive(Clone, Debug)]
pub enum PeerCommand {
    /// Ask a member. [`QuestionId::NO_ANSWER`] wants no answer.
    Ask {
        /// The member that is asked.
        to: AccessPoint,
        /// To be named in the answer.
        question: QuestionId,
        /// The question.
        request: Request,
    },
    /// Answer a member.
    Answer {
        /// The question, by the ticket under which it came.
        ticket: Ticket,
        /// The answer.
        response: Response,
    },
    /// Tell every member.
    Publish(Gossip),
    /// A member can be reached here.
    Know {
        /// The member.
        access_point: AccessPoint,
        /// Its addresses, as it told them.
        addresses: Vec<String>,
    },
    /// This came of what the process asked by [`Event::Transfer`]; none if there is no answer.
    Transferred {
        /// The question, by the number that the process gave it.
        transfer: TransferId,
        /// The answer.
        answer: Option<Response>,
    },
    /// Let in only who passes this gate, and close the connections to members that do not any more.
    Guard(Arc<Gate>),
    /// Send rows to a replica.
    Copy(CopyOrder),
    /// Ask a member for all rows of a subnet, or of a host in it; they are judged before they are stored.
    Recover {
        /// The subnet whose rows are wanted.
        subnet: Subnet,
        /// If only those of this host are wanted.
        host: Option<Host>,
        /// The member that is asked.
        from: AccessPoint,
    },
}

/// Fetching, keeping and handing out files of the hierarchy.
#[derive(Clone, Debug)]
pub enum HierarchyCommand {
    /// Fetch an edition of the hierarchy from members, open it and compare it with ours.
    Gather {
        /// The edition that is wanted.
        edition: Edition,
        /// Who has it.
        from: Vec<AccessPoint>,
        /// What is used here.
        ours: Arc<Hierarchy>,
    },
    /// Remember which edition is used, and forget all but these.
    Keep {
        /// What is used.
        uses: Edition,
        /// The hashes of what else may be needed.
        others: Vec<[u8; 32]>,
    },
    /// Answer with what a file of the hierarchy with this hash is made of.
    TellManifest {
        /// Whom to answer.
        ticket: Ticket,
        /// The hash of the file.
        hash: [u8; 32],
    },
    /// Answer with a piece of a file of a hierarchy.
    TellChunk {
        /// Whom to answer.
        ticket: Ticket,
        /// Names the manifest.
        manifest: [u8; 32],
        /// Which piece.
        index: u32,
    },
}
