//! The values whose encodings are frozen: at least one of each kind of message, claim, vote and journal row.
//!
//! A new variant does not compile before it has a name here, and `make frozen` does not forget it.

use super::Sample;
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    account::LevelCounts,
    admission::{Admission, Certificate as MemberCertificate, Expulsion, Issuer, RootKey, SignedAdmission},
    claim::{Answer, Claim, ClaimReason, SignedClaim},
    crawled_by::CrawledBy,
    cross_table::CrossTable,
    distances::Distances,
    distinct::{DistinctSets, DistinctView},
    edition::{Edition, Endorsement},
    estimates::{Estimate, Estimates},
    evaluation::{Evaluation, EvaluationCounts, Gate, Rule},
    exported::{ExportOf, ExportPlace, ExportQuery, ExportedRows, JournalPlace},
    facts::{Certificate, Fact, FrontPage, Guard, HttpVersion, TlsVersion, Vantage},
    fetch::{FetchError, LocatedHost, PageType, ProbeReport, ProbeTarget, ResolveError, Served},
    fingerprint::Fingerprint,
    forwarded::{ForwardedAnswer, ForwardedQuestion, NotForwarded, SealedAnswer, SealedQuestion, Token},
    journal::{Arrival, HostLimit, JournalEntry, JournalKey, JournalRow, Place, SkipReason, VisitOutcome},
    message::{Award, Gossip, HandOff, Proposal, PublicRequest, PublicResponse, Request, Response, Unwilling},
    opt_out::{OptOutKey, OptOutProof, OptOutSubject, SignedStatement, Statement, StatementHead, StatementsDigest},
    ownership_history::{Holding, OwnershipHistory},
    ownership_map::{ComparedPart, MapDigest, MapPart, WantedPart},
    profile::{AllowanceState, ByteLimit, Profile, ToldAllowance, ToldProfile, UsedShare},
    receipt::{Declined, Receipt, SignedReceipt},
    replica::{NamedReplica, StoreId},
    request_hour::{AskedServer, RequestHour},
    request_record::{
        RecordGap, RecordMissing, RecordParcel, RecordRange, RecordTold, RecordedHour, RecordedRequests, RecordsQuery, RequestsMissing,
        UnknownMember,
    },
    requests_made::{MadeRequest, MemberRequests, RequestsMade, RequestsQuery, RequestsView, Uncovered, Verdict},
    revisit::{Change, Validators},
    rows_digest::RowsDigest,
    run_history::RunHistory,
    server_rows::{ServerOwner, ServerRows},
    spans::Spans,
    subnet::Subnet,
    summary::{Counts, Coverage, Dimension, RollUp, Summary, SwarmResults},
    survey::{SignedSurvey, Survey, SurveyEntry, SurveyHead, SurveyPlan, SurveyScope, SurveyState, SurveysDigest, Wishes},
    survey_probes::{MemberRoundTrip, ProbeOutcome, ProbedServer, ProbedSurvey, SurveyProbes},
    time::WallTime,
    url::{Host, Origin, PageUrl},
    vote::{
        AcceptedOwner, AcceptedRow, AwardedPart, Ballot, BallotAnswer, BallotRequest, DoubleVote, Grant, HandedOver, InheritedReplicas,
        Renewal, Renewed, ReplicaSet, SetNumber, SignedList, SignedPart, SignedReplicas, Vote, Voted, VoterList, Votes, sign_accepted,
        sign_installed,
    },
};
use serde::de::DeserializeOwned;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

/// Every value, of all kinds.
pub(super) fn all() -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut names = BTreeSet::new();
    let mut add = |sample: Sample| {
        assert!(names.insert(sample.name.clone()), "two values are called {}", sample.name);
        samples.push(sample);
    };
    requests().into_iter().for_each(|(more, value)| add(Sample::new("request", &(request(&value).to_owned() + more), value)));
    responses().into_iter().for_each(|(more, value)| add(Sample::new("response", &(response(&value).to_owned() + more), value)));
    gossips().into_iter().for_each(|value| add(Sample::new("gossip", gossip(&value), value)));
    entries().into_iter().for_each(|value| add(Sample::new("entry", entry(&value), value)));
    outcomes().into_iter().for_each(|value| add(Sample::new("outcome", outcome(&value), value)));
    add(Sample::new("public-request", "results", PublicRequest::Results));
    add(Sample::new("public-response", "results", PublicResponse::Results(Box::new(results()))));
    let rows = PublicRequest::ServerRows { of: AccessPoint([7; 32]), after: Some(host("a.ke")) };
    add(Sample::new("public-request", "owners", PublicRequest::Owners));
    add(Sample::new("public-request", "server-rows", rows));
    let rows = PublicRequest::HistoryRows { of: AccessPoint([7; 32]), after: Some(host("a.ke")) };
    add(Sample::new("public-request", "history-rows", rows));
    let owners = vec![ServerOwner { access_point: AccessPoint([7; 32]), servers: 300 }];
    add(Sample::new("public-response", "owners", PublicResponse::Owners(owners)));
    add(Sample::new("public-request", "distinct", PublicRequest::Distinct));
    add(Sample::new("public-response", "distinct", PublicResponse::Distinct(Box::new(DistinctView::new(member(1), &distinct_sets(), 2)))));
    add(Sample::new("public-response", "server-rows", PublicResponse::ServerRows(server_rows())));
    let rows = PublicRequest::ExportRows { of: AccessPoint([7; 32]), query: export_query() };
    add(Sample::new("public-request", "export-rows", rows));
    let rows = PublicRequest::ExportRows { of: AccessPoint([7; 32]), query: ExportQuery { of: ExportOf::Events, from: None } };
    add(Sample::new("public-request", "export-rows-of-events", rows));
    add(Sample::new("public-response", "exported-rows", PublicResponse::ExportedRows(exported_rows())));
    add(Sample::new("public-request", "requests-made", PublicRequest::RequestsMade(requests_query())));
    let of_members = vec![MemberRequests::of(AccessPoint([7; 32]), Some(requests_made())), MemberRequests::of(AccessPoint([8; 32]), None)];
    let view = Box::new(RequestsView::new(&requests_query(), of_members));
    let made = PublicResponse::RequestsMade(view, vec![record_told()], Box::new(requests_missing()));
    add(Sample::new("public-response", "requests-made", made));
    let of_probes = PublicRequest::SurveyProbes { of: AccessPoint([7; 32]), survey: survey().id() };
    let opted_out = statement(OptOutSubject::Host(host("museum.or.ke")), OptOutProof::Txt).key;
    add(Sample::new("public-request", "opt-out", PublicRequest::OptOut(opted_out.clone(), true)));
    add(Sample::new("public-request", "opt-outs", PublicRequest::OptOuts { after: Some(opted_out.clone()) }));
    add(Sample::new("public-response", "opt-outs", PublicResponse::OptOuts { views: "[]".to_owned(), next: Some(opted_out) }));
    add(Sample::new("public-response", "opt-out", PublicResponse::OptOut("{}".to_owned())));
    add(Sample::new("public-request", "probed-survey", PublicRequest::ProbedSurvey("unis".to_owned())));
    add(Sample::new("public-request", "survey-probes", of_probes));
    let members = vec![AccessPoint([7; 32]), AccessPoint([8; 32])];
    let probed = ProbedSurvey { signed: SignedSurvey::sign(&survey_with_sample(), &key(2)).unwrap(), members };
    add(Sample::new("public-response", "probed-survey", PublicResponse::ProbedSurvey(Box::new(probed))));
    add(Sample::new("public-response", "survey-probes", PublicResponse::SurveyProbes(Box::new(survey_probes()))));
    add(Sample::new("dimensions", "all", Dimension::ALL[..11].to_vec()));
    add(Sample::new("dimensions", "rule-set", Dimension::RuleSet));
    add(Sample::new("public-response", "refused", PublicResponse::Refused("no".to_owned())));
    add(Sample::new("claim", "as-it-is-signed", claim()));
    add(Sample::new("claim", "of-an-ipv6-subnet", Claim { subnet: subnet("2001:db8::/48"), rtt_us: None, runner_up: None, ..claim() }));
    add(Sample::new("claim", "signed", signed(&claim())));
    add(Sample::new("claim", "voted", voted()));
    add(Sample::new("survey", "as-it-is-signed", survey()));
    add(Sample::new("survey", "signed", signed_survey()));
    add(Sample::new("survey", "with-a-sample", survey_with_sample()));
    add(Sample::new("survey", "with-a-sample-signed", SignedSurvey::sign(&survey_with_sample(), &key(2)).unwrap()));
    add(Sample::new("opt-out", "as-it-is-signed", statement(OptOutSubject::Host(host("museum.or.ke")), OptOutProof::Txt)));
    add(Sample::new("opt-out", "signed", statements()));
    add(Sample::new("admission", "certificate-as-it-is-signed", certificate(Issuer::Inviter(member(2)), false)));
    add(Sample::new("admission", "expulsion-as-it-is-signed", expulsion(Issuer::Root)));
    add(Sample::new("admission", "signed", admissions()));
    add(Sample::new("receipt", "as-it-is-signed", receipt()));
    add(Sample::new("receipt", "signed", SignedReceipt::sign(&receipt(), &key(2))));
    add(Sample::new("list", "founded", SignedList::founded_by(&key(1))));
    add(Sample::new("list", "second", second_list()));
    add(Sample::new("list", "as-it-is-signed", (second_list().list, ballot())));
    add(Sample::new("vote", "as-it-is-signed", accepted_owner()));
    add(Sample::new("journal", "key", journal_key()));
    add(Sample::new("journal", "row", row()));
    add(Sample::new("words", "fetch-errors", words::<FetchError>(23)));
    add(Sample::new("words", "resolve-errors", words::<ResolveError>(7)));
    add(Sample::new("words", "rules", words::<Rule>(34)));
    add(Sample::new("words", "gates", words::<Gate>(7)));
    add(Sample::new("words", "skip-reasons", words::<SkipReason>(7)));
    add(Sample::new("words", "declined", words::<Declined>(12)));
    add(Sample::new("words", "claim-reasons", words::<ClaimReason>(5)));
    add(Sample::new("words", "changes", words::<Change>(5)));
    samples
}

/// The first words of an enumeration, with their names: their numbers must not change.
fn words<T: DeserializeOwned + Debug>(count: u8) -> Vec<(String, T)> {
    let word = |number| postcard::from_bytes::<T>(&[number]).unwrap();
    (0..count).map(word).map(|word| (format!("{word:?}"), word)).collect()
}

/// Signatures were made by keys of 32 equal bytes: they are valid for the bytes that were signed, not only for those written today.
pub(super) fn check_signatures(frozen: &BTreeMap<&str, Vec<u8>>) {
    let voted: SignedClaim = postcard::from_bytes(&frozen["claim/voted"]).unwrap();
    let opened = voted.open().unwrap();
    assert_eq!(opened, claim());
    assert_eq!(voted.bytes, frozen["claim/as-it-is-signed"]);
    let (founded, second): (SignedList, SignedList) =
        (postcard::from_bytes(&frozen["list/founded"]).unwrap(), postcard::from_bytes(&frozen["list/second"]).unwrap());
    let nobody = BTreeSet::new();
    founded.check(None, &nobody).unwrap();
    second.check(Some(&founded.list), &nobody).unwrap();
    assert!(voted.votes.unwrap().prove(&second.list, opened.subnet, opened.epoch, opened.owner));
    let signed: SignedReceipt = postcard::from_bytes(&frozen["receipt/signed"]).unwrap();
    assert_eq!(signed.open(), Ok(receipt()));
    let signed: SignedSurvey = postcard::from_bytes(&frozen["survey/signed"]).unwrap();
    assert_eq!((signed.open(), &signed.bytes), (Ok(survey()), &frozen["survey/as-it-is-signed"]));
    let signed: SignedSurvey = postcard::from_bytes(&frozen["survey/with-a-sample-signed"]).unwrap();
    assert_eq!((signed.open(), &signed.bytes), (Ok(survey_with_sample()), &frozen["survey/with-a-sample"]));
    let signed: Vec<SignedStatement> = postcard::from_bytes(&frozen["opt-out/signed"]).unwrap();
    assert_eq!(&signed[0].bytes, &frozen["opt-out/as-it-is-signed"]);
    assert!(signed.iter().all(|signed| signed.open().is_ok()));
    let (Request::Forward(question), Response::Forwarded(Ok(answer))) = (
        postcard::from_bytes(&frozen["request/forward"]).unwrap(),
        postcard::from_bytes::<Response>(&frozen["response/forwarded"]).unwrap(),
    ) else {
        panic!("they are called so")
    };
    assert!(question.is_sealed_by(&member(1)));
    assert_eq!(answer.open(&member(2)).unwrap().question, question.digest());
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn member(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

fn subnet(text: &str) -> Subnet {
    text.parse().unwrap()
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn claim() -> Claim {
    Claim {
        subnet: subnet("192.0.2.0/24"),
        epoch: 300,
        owner: member(2),
        rtt_us: Some(8_000),
        runner_up: Some(member(3)),
        probes: 4,
        reason: ClaimReason::Moved,
        released: false,
        answers: vec![Answer { rtt_us: 40_000, prober: ShortId([5; 8]) }],
    }
}

fn signed(claim: &Claim) -> SignedClaim {
    SignedClaim::sign(claim, &key(2))
}

fn voters(numbers: &[u8]) -> Vec<AccessPoint> {
    let mut voters: Vec<_> = numbers.iter().map(|number| member(*number)).collect();
    voters.sort_unstable();
    voters
}

fn ballot() -> Ballot {
    Ballot { round: 7, proposer: member(1) }
}

fn second_list() -> SignedList {
    let list = VoterList { number: 2, voters: voters(&[1, 2, 3]), age: 86_400 };
    let installed = [1, 2].iter().map(|number| sign_installed(&list, &key(*number))).collect();
    SignedList { accepted: vec![sign_accepted(&list, ballot(), &key(1))], installed, ballot: ballot(), list }
}

fn accepted_owner() -> AcceptedOwner {
    AcceptedOwner { list: 2, subnet: claim().subnet, epoch: claim().epoch, owner: claim().owner, term: 9 }
}

fn votes() -> Votes {
    Votes { list: 2, term: 9, voters: [1, 3].iter().map(|number| accepted_owner().vote(&key(*number))).collect() }
}

fn voted() -> SignedClaim {
    SignedClaim { votes: Some(Box::new(votes())), ..signed(&claim()) }
}

fn receipt() -> Receipt {
    Receipt {
        subnet: subnet("192.0.2.0/24"),
        address: "192.0.2.7:443".parse().unwrap(),
        prober: member(2),
        steward: member(3),
        sequence: 1,
        before: [6; 16],
        rtt_us: Some(9_000),
        at: WallTime(1_790_000_000_250),
    }
}

fn target() -> ProbeTarget {
    ProbeTarget { address: "[2001:db8::7]:443".parse().unwrap(), host: host("a.ke"), secure: true }
}

fn located() -> LocatedHost {
    LocatedHost { host: host("www.a.ke"), address: "192.0.2.7".parse().unwrap(), valid_for: 3_600_000 }
}

fn journal_key() -> JournalKey {
    JournalKey { subnet: subnet("192.0.2.0/24"), host: host("a.ke"), run: 3 }
}

fn row() -> JournalRow {
    JournalRow { key: journal_key(), sequence: 200, entry: vec![6, 7] }
}

fn arrival() -> Arrival {
    let place = Place { tree: host("a.ke"), level: 2, hops: 1 };
    Arrival { url: url("https://b.ke/x?y=1"), place: Some(place), run: 3 }
}

fn handed_over() -> HandedOver {
    let row = AcceptedRow { subnet: subnet("192.0.2.0/24"), epoch: 4, owner: member(2), term: 9 };
    HandedOver { rows: vec![row], ended: vec![(member(3), 5)], replicas: vec![replicas()] }
}

fn replicas() -> SignedReplicas {
    let named = |number| NamedReplica { member: member(number), store: StoreId(300 + u64::from(number)) };
    let inherited = vec![InheritedReplicas { members: vec![named(1)], patience_s: 86_400 }];
    let set = ReplicaSet { owner: member(2), number: set_number(), members: vec![named(2), named(3)], inherited };
    SignedReplicas::sign(set, &key(2))
}

fn set_number() -> SetNumber {
    SetNumber { term: 9, version: 400 }
}

fn renewal(replicas: Option<SignedReplicas>) -> Request {
    let (ended, known, replicas) = ([76, 75], set_number(), replicas.map(Box::new));
    Request::Renew(Renewal {
        list: 2,
        term: 9,
        incarnation: 12,
        process: 77,
        ended,
        sole: true,
        installed: 1,
        leaving: false,
        known,
        replicas,
    })
}

fn grant(replicas: Option<SignedReplicas>) -> Renewed {
    Renewed::Granted(Box::new(Grant { unpublished: vec![(claim().subnet, 4)], stored: set_number(), replicas: replicas.map(Box::new) }))
}

fn part() -> SignedPart {
    let awarded = AwardedPart { part: subnet("192.0.2.0/24"), to: member(1), within: (subnet("192.0.0.0/16"), 7) };
    SignedPart::sign(awarded, &key(2))
}

fn award() -> Award {
    let answers = claim().answers;
    Award { subnet: subnet("192.0.2.0/24"), epoch: 4, rtt_us: Some(8_000), runner_up: Some(member(3)), probes: 4, answers, part: None }
}

fn digest() -> MapDigest {
    MapDigest::of_claim(&claim())
}

fn sealed_question() -> SealedQuestion {
    let token = Token { process: 78, period: 300 };
    let request = postcard::to_stdvec(&Request::VoterLists(1)).unwrap();
    SealedQuestion::seal(&ForwardedQuestion { from: member(1), to: member(2), process: 77, number: 400, token, request }, &key(1))
}

fn sealed_answer() -> SealedAnswer {
    let token = Token { process: 78, period: 301 };
    let response = Some(postcard::to_stdvec(&Response::Noted).unwrap());
    SealedAnswer::seal(&ForwardedAnswer { question: sealed_question().digest(), token, response }, &key(2))
}

/// The name of a request. One arm for each.
fn request(request: &Request) -> &'static str {
    match request {
        Request::Swim(_) => "swim",
        Request::Locate(_) => "locate",
        Request::FindOwner(..) => "find-owner",
        Request::Probe(..) => "probe",
        Request::Award { .. } => "award",
        Request::HandOff(_) => "hand-off",
        Request::Keep(_) => "keep",
        Request::Recall(..) => "recall",
        Request::CompareClaims(_) => "compare-claims",
        Request::Farewell(_) => "farewell",
        Request::Reserve(..) => "reserve",
        Request::HierarchyManifest(_) => "hierarchy-manifest",
        Request::HierarchyChunk { .. } => "hierarchy-chunk",
        Request::Offer { .. } => "offer",
        Request::TakeOver(_) => "take-over",
        Request::Renew(_) => "renew",
        Request::Propose(_) => "propose",
        Request::Withdraw { .. } => "withdraw",
        Request::Ballot(_) => "ballot",
        Request::VoterLists(_) => "voter-lists",
        Request::SendClaims(_) => "send-claims",
        Request::Totals => "totals",
        Request::DoubleVote(_) => "double-vote",
        Request::Holds(_) => "holds",
        Request::Forward(_) => "forward",
        Request::TellClaims(_) => "tell-claims",
        Request::CompareTotals { .. } => "compare-totals",
        Request::Confirm(..) => "confirm",
        Request::HostMoved(_) => "host-moved",
        Request::TakeHost { .. } => "take-host",
        Request::Pinned(_) => "pinned",
        Request::Tell(_) => "tell",
        Request::CompareRows(_) => "compare-rows",
        Request::ExchangeTotals(..) => "exchange-totals",
        Request::ServerRows(_) => "server-rows",
        Request::ExportRows(_) => "export-rows",
        Request::HistoryRows(_) => "history-rows",
        Request::CrossTotals(..) => "cross-totals",
        Request::CompareSurveys(_) => "compare-surveys",
        Request::SendSurveys(_) => "send-surveys",
        Request::CompareOptOuts(_) => "compare-opt-outs",
        Request::SendOptOuts(_) => "send-opt-outs",
        Request::CompareAdmissions(_) => "compare-admissions",
        Request::SendAdmissions(_) => "send-admissions",
        Request::RequestsMade(_) => "requests-made",
        Request::Why(_) => "why",
        Request::KeepRecord(_) => "keep-record",
        Request::Records(_) => "records",
        Request::CompareRecord(_) => "compare-record",
        Request::Distinct(_) => "distinct",
        Request::SurveyProbes(_) => "survey-probes",
        Request::ProbeTurn(_) => "probe-turn",
    }
}

/// Each with what is added to its name, where there are several of one kind.
fn requests() -> Vec<(&'static str, Request)> {
    let net = || subnet("192.0.2.0/24");
    let ballots = [
        ("-prepare", BallotRequest::Prepare { number: 1, ballot: ballot(), wanted: second_list().list }),
        ("-accept", BallotRequest::Accept { ballot: ballot(), list: second_list().list }),
        ("-install", BallotRequest::Install { list: second_list(), before: handed_over() }),
        ("-adopt", BallotRequest::Adopt(second_list())),
        ("-decided", BallotRequest::Decided(2)),
    ];
    let mut all = vec![
        ("", Request::Swim(vec![1, 2, 3])),
        ("", Request::Locate(host("xn--bcher-kva.example"))),
        ("", Request::FindOwner(net(), target())),
        ("", Request::Probe(net(), target(), vec![SignedReceipt::sign(&receipt(), &key(2))])),
        ("", Request::Award { award: award(), rest: 30_000 }),
        ("", Request::HandOff(vec![HandOff { host: located(), arrivals: vec![arrival(), Arrival { place: None, ..arrival() }] }])),
        ("", Request::Keep(vec![row()])),
        ("", Request::Recall(net(), Some((journal_key(), 200)))),
        ("-from-the-first", Request::Recall(net(), None)),
        ("", Request::CompareClaims(vec![(MapPart::WHOLE, MapDigest::EMPTY), (MapPart::around(u64::MAX, 3), digest())])),
        ("", Request::Farewell(true)),
        ("", Request::Reserve(net(), target())),
        ("", Request::HierarchyManifest([8; 32])),
        ("", Request::HierarchyChunk { manifest: [8; 32], index: 300 }),
        ("", Request::Offer { subnet: net(), epoch: 4 }),
        ("", Request::TakeOver(voted())),
        ("", renewal(None)),
        ("-with-keepers", renewal(Some(replicas()))),
        (
            "",
            Request::Propose(Proposal {
                list: 2,
                term: 9,
                process: 77,
                claims: vec![signed(&claim())],
                releases: vec![voted()],
                parts: vec![part()],
            }),
        ),
        ("", Request::Withdraw { process: 77, claims: vec![(net(), 4)] }),
        ("", Request::VoterLists(1)),
        ("", Request::Totals),
        ("", Request::DoubleVote(Box::new(double_vote()))),
        ("", Request::Holds(vec![net()])),
        ("", Request::Forward(Box::new(sealed_question()))),
        ("", Request::TellClaims(Vec::new())),
        ("", Request::CompareTotals { mine: 300, yours: 301 }),
        ("", Request::Confirm(host("a.ke"), "192.0.2.7".parse().unwrap())),
        ("", Request::HostMoved(located())),
        ("", Request::TakeHost { host: located(), journal: journal_key(), rows: 300 }),
        ("", Request::Pinned(vec![(host("a.ke"), "192.0.2.7".parse().unwrap())])),
        ("", Request::Tell(Box::new(Gossip::RollUp(Box::new(roll_up()))))),
        ("", Request::CompareRows(vec![(journal_key(), 201)])),
        ("", Request::ExchangeTotals(Box::new(roll_up()), 300)),
        ("", Request::ServerRows(Some(host("a.ke")))),
        ("", Request::ExportRows(export_query())),
        ("", Request::HistoryRows(Some(host("a.ke")))),
        ("", Request::CrossTotals(Dimension::Country, Dimension::Tld)),
        ("", Request::CompareSurveys(SurveysDigest::of([&survey_head()]))),
        ("", Request::SendSurveys(vec![survey_head().id])),
        ("", Request::Distinct(300)),
        ("", Request::SurveyProbes(survey_head().id)),
        ("", Request::ProbeTurn("192.0.2.7".parse().unwrap())),
        ("", Request::CompareOptOuts(StatementsDigest::of([&statement_head()]))),
        ("", Request::SendOptOuts(vec![statement_head().id])),
        ("", Request::CompareAdmissions(StatementsDigest::of([&admission_head()]))),
        ("", Request::SendAdmissions(vec![admission_head().id])),
        ("", Request::RequestsMade(requests_query())),
        ("", Request::Why("a.ke".to_owned())),
        ("", Request::KeepRecord(Box::new(record_parcel()))),
        ("", Request::Records(Box::new(RecordsQuery { owners: vec![AccessPoint([7; 32])], query: requests_query() }))),
        ("", Request::CompareRecord(RecordRange { from: 496_300, until: 497_000, digest: 0x0102_0304_0506_0708 })),
        ("", Request::SendClaims(vec![WantedPart { part: MapPart::WHOLE, after: Some(net()), has: vec![digest()] }])),
    ];
    all.extend(ballots.into_iter().map(|(name, request)| (name, Request::Ballot(Box::new(request)))));
    all
}

/// The history of a site that had one run.
fn run_history() -> RunHistory {
    let record = r#"{"host":"a.ke","address":"192.0.2.7","tree":"a.ke","run":3,"status":"up","state":"complete","software":"nginx",
        "pages":300,"requests":301,"bytes":70000,"busy_ms":900,"known":400,"cut_by_depth":0,"refused_by_robots":0,"cut_by_script":0,
        "cut_by_yield":0,"failed":1,"by_status":{},"external_hosts":5,"deepest":2,"first_visit_at":"2026-11-25T08:00:00.000Z",
        "last_visit_at":null,"no_index":0,"no_follow":0,"crawl_delay_ms":null,"refused_by_crawl_delay":0,
        "crawled_by":{"depth":5,"yield_price_millionths":4000,"max_pages_per_run":1000}}"#;
    let mut history = RunHistory::default();
    history.enter(&serde_json::from_str(record).unwrap());
    history
}

fn export_query() -> ExportQuery {
    let within = Some(JournalPlace { run: 2, sequence: 300, part: 1 });
    ExportQuery { of: ExportOf::PageLinks, from: Some(ExportPlace { host: host("a.ke"), within }) }
}

fn requests_query() -> RequestsQuery {
    RequestsQuery { address: "192.0.2.7".parse().unwrap(), from: WallTime(1_790_000_000_000), until: WallTime(1_790_000_300_000) }
}

fn recorded_hour() -> RecordedHour {
    RecordedHour {
        first_at: WallTime(1_790_000_100_000),
        last_at: WallTime(1_790_000_300_999),
        requests: 300,
        bytes: 4_096,
        reasons: vec!["robots".to_owned(), "second-try".to_owned()],
        hosts: vec![host("a.ke")],
        all_hosts: true,
    }
}

fn recorded_requests(gap: Option<RecordGap>) -> RecordedRequests {
    let verdict = if gap.is_some() { Verdict::Unknown } else { Verdict::Yes };
    RecordedRequests { owner: AccessPoint([7; 32]), verdict, hours: vec![recorded_hour()], gap }
}

fn record_told() -> RecordTold {
    RecordTold {
        access_point: AccessPoint([7; 32]),
        answered_by: AccessPoint([8; 32]),
        gone_at: Some(WallTime(1_790_000_200_000)),
        verdict: Verdict::Unknown,
        hours: vec![recorded_hour()],
        gap: Some(RecordGap::Nearby),
    }
}

fn requests_missing() -> RequestsMissing {
    let all = [RecordMissing::NotKept, RecordMissing::NotNeeded, RecordMissing::TooRecent, RecordMissing::TooMany, RecordMissing::NoAnswer];
    let unknown = all.into_iter().zip(7..).map(|(record, number)| UnknownMember {
        access_point: AccessPoint([number; 32]),
        was_asked: record != RecordMissing::NotKept,
        gone_at: (record == RecordMissing::NotKept).then_some(WallTime(1_790_000_200_000)),
        record,
    });
    RequestsMissing { unknown: unknown.collect(), unanswered: vec![AccessPoint([9; 32])] }
}

/// Its hour is so short that it is not compressed: the bytes of zstd may differ between its versions.
fn record_parcel() -> RecordParcel {
    let mut hour = RequestHour::new(497_000);
    let asked = |address: &str, rule, second: u64| AskedServer {
        at: WallTime(497_000 * 3_600_000 + second * 1_000),
        address: address.parse().unwrap(),
        rule,
        host: Some(host("a.ke")),
        bytes: 70_000,
    };
    for asked in [asked("192.0.2.7", "robots", 10), asked("192.0.2.7", "link", 700), asked("2001:db8::7", "survey", 3_599)] {
        hour.add(&asked);
    }
    let mut covered = Spans::default();
    covered.add(497_000 * 12, 497_002 * 12);
    RecordParcel { covered, asked: [497_000].into_iter().collect(), hours: vec![(497_000, hour.pack())] }
}

fn requests_made() -> RequestsMade {
    let line = MadeRequest { asked_at: WallTime(1_790_000_100_000), reason: "second-try".to_owned(), host: Some(host("a.ke")) };
    RequestsMade {
        requests: 300,
        lines: vec![line, MadeRequest { asked_at: WallTime(1), reason: "home".to_owned(), host: None }],
        uncovered: Some(Uncovered::Killed),
    }
}

fn exported_rows() -> ExportedRows {
    ExportedRows { rows: vec![r#"{"host":"a.ke"}"#.to_owned()], next: Some(ExportPlace { host: host("a.ke"), within: None }) }
}

fn server_rows() -> ServerRows {
    ServerRows { rows: vec![r#"{"host":"a.ke"}"#.to_owned()], next: Some(host("a.ke")) }
}

/// The name of an answer. One arm for each.
fn response(response: &Response) -> &'static str {
    match response {
        Response::Noted => "noted",
        Response::Located(_) => "located",
        Response::FindingOwner(_) => "finding-owner",
        Response::Probed(..) => "probed",
        Response::ProbeDeclined(..) => "probe-declined",
        Response::HandedOff { .. } => "handed-off",
        Response::Busy(_) => "busy",
        Response::Kept(_) => "kept",
        Response::Recalled(..) => "recalled",
        Response::Claims(..) => "claims",
        Response::Refused(_) => "refused",
        Response::HierarchyManifest(_) => "hierarchy-manifest",
        Response::HierarchyChunk(_) => "hierarchy-chunk",
        Response::Offered(_) => "offered",
        Response::Renewed(_) => "renewed",
        Response::Voted(_) => "voted",
        Response::Ballot(_) => "ballot",
        Response::VoterLists(_) => "voter-lists",
        Response::Compared { .. } => "compared",
        Response::NoRoom => "no-room",
        Response::Totals(_) => "totals",
        Response::Held { .. } => "held",
        Response::Forwarded(_) => "forwarded",
        Response::Swim(_) => "swim",
        Response::TotalsHold => "totals-hold",
        Response::CrossTotals(_) => "cross-totals",
        Response::SurveyHeads(_) => "survey-heads",
        Response::Surveys(_) => "surveys",
        Response::OptOutHeads(_) => "opt-out-heads",
        Response::OptOuts(_) => "opt-outs",
        Response::AdmissionHeads(_) => "admission-heads",
        Response::Admissions(_) => "admissions",
        Response::RequestsMade(_) => "requests-made",
        Response::Why(_) => "why",
        Response::RecordKept(_) => "record-kept",
        Response::Records(_) => "records",
        Response::RecordHours(_) => "record-hours",
        Response::Distinct(_) => "distinct",
        Response::RowsCompared(_) => "rows-compared",
        Response::ServerRows(_) => "server-rows",
        Response::ExportedRows(_) => "exported-rows",
        Response::SurveyProbes(_) => "survey-probes",
        Response::ProbeTurn(_) => "probe-turn",
    }
}

/// Each with what is added to its name, where there are several of one kind.
fn responses() -> Vec<(&'static str, Response)> {
    let vote = || accepted_owner().vote(&key(1));
    let mut all = vec![
        ("", Response::Noted),
        ("", Response::Located(Ok(located()))),
        ("-not", Response::Located(Err(ResolveError::Crashed))),
        ("", Response::FindingOwner(Some(voted()))),
        ("-still", Response::FindingOwner(None)),
        ("", Response::Probed(ProbeReport { rtt_us: Ok(9_000), took: 30 }, SignedReceipt::sign(&receipt(), &key(2)))),
        ("-not", Response::Probed(ProbeReport { rtt_us: Err(FetchError::Crashed), took: 30 }, SignedReceipt::sign(&receipt(), &key(2)))),
        ("", Response::ProbeDeclined(Declined::BookFull, Vec::new())),
        ("", Response::HandedOff { not_mine: vec![host("a.ke")] }),
        ("", Response::Busy(1_000)),
        ("", Response::Kept(vec![(journal_key(), 201)])),
        ("", Response::Recalled(vec![row()], Some((journal_key(), 201)))),
        ("", Response::Claims(vec![voted()], true)),
        ("", Response::Refused("no".to_owned())),
        ("", Response::HierarchyManifest(Some(vec![1, 2]))),
        ("", Response::HierarchyChunk(None)),
        ("", Response::VoterLists(vec![SignedList::founded_by(&key(1))])),
        ("", Response::NoRoom),
        ("", Response::Totals(Box::new(roll_up()))),
        ("", Response::Held { store: StoreId(300), subnets: vec![claim().subnet] }),
        ("", Response::Forwarded(Ok(Box::new(sealed_answer())))),
        ("-not", Response::Forwarded(Err(NotForwarded::Unreachable))),
        ("-busy", Response::Forwarded(Err(NotForwarded::Busy))),
        ("-refused", Response::Forwarded(Err(NotForwarded::Refused))),
        ("", Response::Swim(vec![1, 2, 3])),
        ("", Response::TotalsHold),
        ("", Response::ServerRows(server_rows())),
        ("", Response::ExportedRows(exported_rows())),
        ("", Response::CrossTotals(Box::new(cross_table()))),
        ("", Response::SurveyHeads(Some(vec![survey_head()]))),
        ("-equal", Response::SurveyHeads(None)),
        ("", Response::Surveys(vec![signed_survey()])),
        ("", Response::OptOutHeads(Some(vec![statement_head()]))),
        ("-equal", Response::OptOutHeads(None)),
        ("", Response::OptOuts(statements())),
        ("", Response::AdmissionHeads(Some(vec![admission_head()]))),
        ("-equal", Response::AdmissionHeads(None)),
        ("", Response::Admissions(admissions())),
        ("", Response::RequestsMade(Box::new(requests_made()))),
        (
            "-too-recent",
            Response::RequestsMade(Box::new(RequestsMade { requests: 0, lines: Vec::new(), uncovered: Some(Uncovered::TooRecent) })),
        ),
        ("", Response::Why(r#"{"asked":"a.ke"}"#.to_owned())),
        ("", Response::RecordKept([497_000, 497_001, 497_003].into_iter().collect())),
        ("", Response::Records(vec![recorded_requests(None), recorded_requests(Some(RecordGap::TooRecent))])),
        ("", Response::RecordHours(Some(vec![(496_999, 9), (497_000, u64::MAX)]))),
        ("-same", Response::RecordHours(None)),
        ("", Response::Distinct(Some(Box::new(distinct_sets())))),
        ("-as-known", Response::Distinct(None)),
        ("", Response::SurveyProbes(Some(Box::new(survey_probes())))),
        ("-of-none", Response::SurveyProbes(None)),
        ("", Response::ProbeTurn(Some(300))),
        ("-later", Response::ProbeTurn(None)),
        ("", Response::RowsCompared(vec![(journal_key(), vec![(201, RowsDigest([7; 16]))])])),
    ];
    let unwilling = [("", None), ("-held-back", Some(Unwilling::HeldBack)), ("-busy", Some(Unwilling::Busy))];
    let more = [("-full", Some(Unwilling::Full)), ("-not-yours", Some(Unwilling::NotYours))];
    all.extend(unwilling.into_iter().chain(more).map(|(name, why)| (name, Response::Offered(why))));
    let renewed = [
        ("-granted", grant(None)),
        ("-granted-with-keepers", grant(Some(replicas()))),
        ("-ended", Renewed::Ended(9)),
        ("-held", Renewed::Held),
        ("-superseded", Renewed::Superseded(12)),
        ("-changing", Renewed::Changing),
        ("-other-list", Renewed::OtherList(2)),
    ];
    all.extend(renewed.map(|(name, answer)| (name, Response::Renewed(answer))));
    let voted = [
        ("-votes", Voted::Votes(vec![Vote::Accepted(vote(), vec![0]), Vote::Owned, Vote::Epoch(4), Vote::Invalid], vec![replicas()])),
        ("-later", Voted::Later),
        ("-no-lease", Voted::NoLease),
        ("-other-list", Voted::OtherList(2)),
    ];
    all.extend(voted.map(|(name, answer)| (name, Response::Voted(answer))));
    let ballots = [
        ("-promised", BallotAnswer::Promised(Some((ballot(), second_list().list)))),
        ("-outvoted", BallotAnswer::Outvoted(ballot())),
        ("-accepted", BallotAnswer::Accepted(vote(), handed_over())),
        ("-installed", BallotAnswer::Installed(vote())),
        ("-other-list", BallotAnswer::OtherList(2)),
        ("-noted", BallotAnswer::Noted),
        ("-decided", BallotAnswer::Decided(2, handed_over())),
    ];
    all.extend(ballots.map(|(name, answer)| (name, Response::Ballot(Box::new(answer)))));
    all.push(("", Response::Compared { whole: true, parts: vec![ComparedPart::Equal, ComparedPart::Differs(vec![digest()])] }));
    all
}

/// The name of a gossip message. One arm for each.
fn gossip(gossip: &Gossip) -> &'static str {
    match gossip {
        Gossip::Claims(_) => "claims",
        Gossip::RollUp(_) => "roll-up",
        Gossip::Endorsement(_) => "endorsement",
        Gossip::Distances(_) => "distances",
        Gossip::Surveys(_) => "surveys",
        Gossip::OptOuts(_) => "opt-outs",
        Gossip::Admissions(_) => "admissions",
        Gossip::Profile(_) => "profile",
        Gossip::Leaving => "leaving",
    }
}

fn gossips() -> Vec<Gossip> {
    let edition = |first| Edition { hash: [first; 32], built: 20_260_401 };
    let distances = Distances {
        from: member(2),
        version: 300,
        address: Some("2001:db8::1".parse().unwrap()),
        country: Some(*b"KE"),
        home_port: Some(8080),
        round_trips: vec![(ShortId([5; 8]), 40_000)],
    };
    vec![
        Gossip::Claims(vec![voted(), signed(&claim())]),
        Gossip::RollUp(Box::new(roll_up())),
        Gossip::Endorsement(Endorsement { by: member(2), version: 3, uses: edition(1), endorses: edition(2) }),
        Gossip::Distances(distances),
        Gossip::Surveys(vec![survey_head()]),
        Gossip::OptOuts(statements()),
        Gossip::Admissions(admissions()),
        Gossip::Profile(told_profile()),
        Gossip::Leaving,
    ]
}

fn told_profile() -> ToldProfile {
    let used = UsedShare::new(ByteLimit::CrawlMonth, 40, Some(100)).into_iter().collect();
    let allowance = Some(ToldAllowance { state: AllowanceState::OutsideHours, used });
    ToldProfile { from: member(2), version: 300, profile: Profile { name: "Museum".parse().ok(), allowance } }
}

fn survey() -> Survey {
    let labels = vec![("city".to_owned(), "Nairobi".to_owned()), ("sector".to_owned(), "university".to_owned())];
    let plan = SurveyPlan {
        name: "universities".to_owned(),
        ends_at: Some(WallTime(1_800_000_000_000)),
        wishes: Wishes {
            depth: Some(4),
            min_delay_ms: Some(2_000),
            delay_factor: Some(12),
            evaluation: true,
            interval_ms: Some(86_400_000),
        },
        scope: SurveyScope {
            tlds: ["ke".to_owned()].into(),
            countries: ["TZ".to_owned()].into(),
            organisations: ["Museum".to_owned()].into(),
            asns: [36_914].into(),
        },
        licence: "CC-BY-4.0".to_owned(),
        description: "what universities have".to_owned(),
        contact: "me@example.org".to_owned(),
        entries: vec![SurveyEntry { url: url("https://www.uonbi.ac.ke/"), labels }],
        probe: None,
    };
    let (created_at, changed_at) = (WallTime(1_700_000_000_000), WallTime(1_700_000_001_000));
    Survey { creator: member(2), revision: 300, state: SurveyState::Paused, created_at, changed_at, plan }
}

fn survey_with_sample() -> Survey {
    Survey { plan: SurveyPlan { probe: Some(300), ..survey().plan }, ..survey() }
}

fn survey_probes() -> SurveyProbes {
    let outcomes =
        [ProbeOutcome::UnderWay, ProbeOutcome::Answered, ProbeOutcome::NoAnswer, ProbeOutcome::NoAddress, ProbeOutcome::Interrupted];
    let row = |outcome: ProbeOutcome| ProbedServer {
        host: host("a.ke"),
        address: (outcome != ProbeOutcome::NoAddress).then(|| "192.0.2.7".parse().unwrap()),
        at: WallTime(1_700_000_000_000),
        outcome,
        rtt_us: (outcome == ProbeOutcome::Answered).then_some(41_500),
    };
    SurveyProbes {
        access_point: member(1),
        address: Some("2001:db8::7".parse().unwrap()),
        servers: 300,
        denied: 1,
        waiting_for_budget: 2,
        waiting_for_address: 3,
        waiting_for_turn: 4,
        rows: outcomes.map(row).to_vec(),
        round_trips: vec![MemberRoundTrip { access_point: member(2), rtt_us: 9_000 }],
    }
}

fn signed_survey() -> SignedSurvey {
    SignedSurvey::sign(&survey(), &key(2)).unwrap()
}

fn survey_head() -> SurveyHead {
    signed_survey().head(&survey())
}

fn statement(subject: OptOutSubject, proof: OptOutProof) -> Statement {
    let key = OptOutKey { subject, proof };
    Statement { by: member(2), key, revision: 300, stops: true, at: WallTime(1_700_000_000_000) }
}

/// One of each kind.
fn statements() -> Vec<SignedStatement> {
    let all = [
        statement(OptOutSubject::Host(host("museum.or.ke")), OptOutProof::Txt),
        statement(OptOutSubject::Host(host("museum.or.ke")), OptOutProof::File),
        statement(OptOutSubject::Domain(host("museum.or.ke")), OptOutProof::Txt),
        Statement { stops: false, ..statement(OptOutSubject::Range(subnet("192.0.2.0/24")), OptOutProof::Order) },
        statement(OptOutSubject::Range(subnet("2001:db8::/48")), OptOutProof::Order),
    ];
    all.iter().map(|statement| SignedStatement::sign(statement, &key(2)).unwrap()).collect()
}

fn statement_head() -> StatementHead {
    let statement = statement(OptOutSubject::Host(host("museum.or.ke")), OptOutProof::Txt);
    SignedStatement::sign(&statement, &key(2)).unwrap().head(&statement)
}

fn root() -> RootKey {
    RootKey(key(9).verifying_key().to_bytes())
}

fn certificate(issuer: Issuer, may_invite: bool) -> Admission {
    Admission::Certificate(MemberCertificate {
        swarm: root(),
        issuer,
        member: if may_invite { member(2) } else { member(3) },
        may_invite,
        issued: WallTime(1_700_000_000_000),
        expires: WallTime(1_800_000_000_000),
        label: "Nairobi".to_owned(),
    })
}

fn expulsion(issuer: Issuer) -> Admission {
    let at = WallTime(1_700_000_000_000);
    Admission::Expulsion(Expulsion { swarm: root(), issuer, member: member(3), serial: 300, at, reason: "asked too much".to_owned() })
}

/// Of the root and of an inviter, one of each kind.
fn admissions() -> Vec<SignedAdmission> {
    let by_root = |statement| SignedAdmission::by_root(&statement, &key(9)).unwrap();
    let (inviter, issuer) = (by_root(certificate(Issuer::Root, true)), Issuer::Inviter(member(2)));
    let by_inviter = |statement| SignedAdmission::by_inviter(&statement, &key(2), &inviter).unwrap();
    vec![inviter.clone(), by_inviter(certificate(issuer, false)), by_root(expulsion(Issuer::Root)), by_inviter(expulsion(issuer))]
}

fn admission_head() -> StatementHead {
    let signed = admissions().remove(1);
    signed.head(&signed.read().unwrap())
}

fn double_vote() -> DoubleVote {
    let accepted = [accepted_owner(), AcceptedOwner { owner: member(3), ..accepted_owner() }];
    DoubleVote { votes: [accepted[0].vote(&key(1)), accepted[1].vote(&key(1))], accepted }
}

fn roll_up() -> RollUp {
    RollUp {
        owner: member(2),
        version: 300,
        claims_digest: u64::MAX,
        subnets: 2,
        sure_of: 5,
        busy_permille: 700,
        price_permille: 1_300,
        summary: summary(),
    }
}

/// Each number another one, so that none can be taken for another.
fn counts(from: u64) -> Counts {
    Counts {
        servers: from,
        up: from + 1,
        pages: from + 2,
        requests: from + 3,
        bytes: from + 4,
        busy_ms: from + 5,
        external_hosts: from + 6,
        external_urls: from + 7,
        external_domains: from + 8,
        cut_by_depth: from + 9,
        refused_by_robots: from + 10,
        failed: from + 11,
        unfinished: from + 12,
        evaluated: from + 13,
        detected_failures: from + 14,
        page_bytes: from + 15,
        waiting_urls: from + 16,
        waiting_urls_by_budget: from + 17,
        urls_not_queued: from + 18,
        hosts_held_by_site_limit: from + 19,
        hosts_held_by_domain_limit: from + 20,
    }
}

fn cross_table() -> CrossTable {
    let mut table = CrossTable::new((Dimension::Language, Dimension::Family));
    table.add(("sw".to_owned(), "ipv6".to_owned()), &counts(400));
    table
}

fn distinct_sets() -> DistinctSets {
    let set = |numbers: std::ops::Range<u64>| numbers.map(|number| Fingerprint(number << 40)).collect();
    let (addresses, domains) = (set(1..2), set(3..5));
    DistinctSets { servers: 4, unknown: 1, addresses, domains, external_hosts: set(6..9), external_domains: set(10..11) }
}

fn summary() -> Summary {
    let dimensions =
        [Dimension::Country, Dimension::Tld, Dimension::Registry, Dimension::Organisation, Dimension::Software, Dimension::Status];
    let by = dimensions.into_iter().zip(2..).map(|(dimension, number)| (dimension, [("x".to_owned(), counts(100 * number))].into()));
    let evaluation = EvaluationCounts {
        pages: 1,
        refused: [(Gate::TooLong, 2)].into(),
        elements: 3,
        failures: [(Rule::ALL[0], 4)].into(),
        failing: 5,
        took_us: 6,
    };
    let levels = vec![LevelCounts { pages: 1, requests: 2, bytes: 3, busy_ms: 4, external_hosts: 5 }];
    let estimate = |number: u32| Estimate {
        more: f64::from(number) + 0.5,
        variance: 2.5,
        third_cumulant: 1.5,
        variance_squared_per_freedom: 0.5,
        counted_unvisited: 7.0,
        not_estimated: 9,
        estimated: 3,
        margin: 4,
        low: 1,
        high: 7,
    };
    let estimates = Estimates {
        addresses: 1,
        hosts: 2,
        sampled: 3,
        not_estimated: 4,
        up: estimate(5),
        pages: estimate(6),
        page_bytes: estimate(7),
        by: [(Dimension::Status, [("x".to_owned(), estimate(8))].into())].into(),
    };
    Summary { total: counts(100), by: by.collect(), levels, evaluation, estimates }
}

fn results() -> SwarmResults {
    SwarmResults {
        answered_by: member(1),
        exact: false,
        in_transition_text: Some("one member is missing".to_owned()),
        oldest_roll_up_age_ms: 2_000,
        covers: vec![Coverage { access_point: member(2), roll_up_age_ms: 2_000, subnets: 3, servers: 4 }],
        summary: summary(),
        consistent_age_ms: Some(1_000),
    }
}

/// The name of a journal's entry. One arm for each.
fn entry(entry: &JournalEntry) -> &'static str {
    match entry {
        JournalEntry::Opened { .. } => "opened",
        JournalEntry::Admitted { .. } => "admitted",
        JournalEntry::Robots { answer: Ok(_), .. } => "robots",
        JournalEntry::Robots { answer: Err(_), .. } => "robots-failed",
        JournalEntry::Visited { .. } => "visited",
        JournalEntry::Raised { .. } => "raised",
        JournalEntry::Skipped { reason: SkipReason::OtherScheme, .. } => "skipped-other-scheme",
        JournalEntry::Skipped { .. } => "skipped",
        JournalEntry::Forwarded { .. } => "forwarded",
        JournalEntry::TakenOver { .. } => "taken-over",
        JournalEntry::Resumed { .. } => "resumed",
        JournalEntry::Reopened { .. } => "reopened",
        JournalEntry::Follows { .. } => "follows",
        JournalEntry::Kept { .. } => "kept",
        JournalEntry::Started { .. } => "started",
        JournalEntry::Beyond { .. } => "beyond",
        JournalEntry::OwnershipHistory(_) => "ownership-history",
        JournalEntry::Evaluated { .. } => "evaluated",
        JournalEntry::Moved { .. } => "moved",
        JournalEntry::WholeRun { .. } => "whole-run",
        JournalEntry::EvaluatedBy { .. } => "evaluated-by",
        JournalEntry::HeldBack { .. } => "held-back",
        JournalEntry::Released { .. } => "released",
        JournalEntry::Followed { .. } => "followed",
        JournalEntry::NotKept { .. } => "not-kept",
        JournalEntry::NotQueued { .. } => "not-queued",
        JournalEntry::Learnt { .. } => "learnt",
        JournalEntry::EvaluatedAt { .. } => "evaluated-at",
        JournalEntry::History(_) => "history",
        JournalEntry::NamedHosts { .. } => "named-hosts",
        JournalEntry::CrawledBy(_) => "crawled-by",
    }
}

fn entries() -> Vec<JournalEntry> {
    let at = WallTime(1_790_000_000_250);
    let urls = || vec![(url("http://a.ke/x"), 2, 1)];
    let origin = || Origin { secure: true, host: host("a.ke"), port: 8443 };
    let history = OwnershipHistory {
        holdings: vec![Holding {
            owner: member(2),
            epoch: 4,
            reason: ClaimReason::Awarded,
            claimed_at: at,
            released_text: Some("far".to_owned()),
        }],
        learnt: vec![1, 2],
    };
    vec![
        JournalEntry::Opened { address: "192.0.2.7".parse().unwrap(), tree: host("a.ke"), at },
        JournalEntry::Admitted { urls: urls() },
        JournalEntry::Robots { origin: origin(), at, answer: Ok((200, b"Disallow:".to_vec())), took: 30 },
        JournalEntry::Robots { origin: origin(), at, answer: Err(FetchError::Closed), took: 30 },
        JournalEntry::Visited {
            url: url("http://a.ke/"),
            level: 1,
            at,
            outcome: VisitOutcome::Page(200),
            took: 300,
            first_byte_us: Some(40_000),
            bytes: 5_000,
            software: Some("Apache".to_owned()),
            children: vec![Fingerprint(6)],
            found: urls(),
            outgoing: vec![arrival()],
            beyond_scope: vec![host("b.example")],
            rest: Some(7_000),
        },
        JournalEntry::Raised { urls: urls(), visited: vec![(Fingerprint(8), 1)] },
        JournalEntry::Skipped { url: url("http://a.ke/x"), reason: SkipReason::Yield },
        JournalEntry::Skipped { url: url("https://a.ke/"), reason: SkipReason::OtherScheme },
        JournalEntry::Forwarded { before: 300 },
        JournalEntry::TakenOver { epoch: 4 },
        JournalEntry::Resumed { at },
        JournalEntry::Reopened { urls: urls() },
        JournalEntry::Follows { run: 2, pages: 300 },
        JournalEntry::Kept {
            page: Fingerprint(9),
            level: 1,
            validators: Validators { etag: Some("\"x\"".to_owned()), last_modified: Some("Sun, 22 Nov 2026 20:17:14 GMT".to_owned()) },
            content: u64::MAX,
            size: 5_000,
            change: Some(Change::Missed),
            elsewhere: vec![Fingerprint(10)],
            named: vec![url("http://b.ke/")],
        },
        JournalEntry::Started { urls: vec![url("http://a.ke/")] },
        JournalEntry::Beyond { page: Fingerprint(9), urls: vec![11] },
        JournalEntry::OwnershipHistory(history),
        JournalEntry::Evaluated {
            page: Fingerprint(9),
            evaluation: Evaluation { failures: [(Rule::ALL[1], 2)].into(), elements: 30, gate: None },
            took_us: 900,
        },
        JournalEntry::Moved { from: subnet("192.0.2.0/24"), to: subnet("198.51.100.0/24"), address: "198.51.100.7".parse().unwrap() },
        JournalEntry::WholeRun { record: b"{}".to_vec() },
        JournalEntry::EvaluatedBy {
            page: Fingerprint(9),
            evaluation: Evaluation { failures: [(Rule::ALL[1], 2)].into(), elements: 30, gate: None },
            took_us: 900,
            rules: 1,
        },
        JournalEntry::HeldBack { by: HostLimit::Domain, urls: vec![arrival()] },
        JournalEntry::Released { at: WallTime(1_000), outgoing: vec![Arrival { place: None, ..arrival() }] },
        JournalEntry::Followed { since: WallTime(1_000), new: 300, hosts: vec![Fingerprint(9)] },
        JournalEntry::NotKept { urls: 300 },
        JournalEntry::NotQueued { urls: vec![(Fingerprint(9), 4)] },
        JournalEntry::Learnt { facts: facts() },
        JournalEntry::EvaluatedAt {
            page: Fingerprint(9),
            evaluation: Evaluation { failures: [(Rule::ALL[1], 2)].into(), elements: 30, gate: None },
            took_us: 900,
            rules: 2,
            lines: vec![300],
        },
        JournalEntry::History(run_history()),
        JournalEntry::NamedHosts { hosts: distinct_sets().external_hosts, domains: distinct_sets().external_domains },
        JournalEntry::CrawledBy(CrawledBy::new(5, 4_000, 1_000)),
    ]
}

/// A fact of each kind, in the order of their places.
fn facts() -> Vec<Fact> {
    let word = |text: &str| Some(text.to_owned());
    vec![
        Fact::Distance { rtt_us: 900, vantage: Vantage { country: word("KE"), asn: Some(64_512) } },
        Fact::Http(HttpVersion::Http11),
        Fact::AltSvc(vec!["h3".to_owned()]),
        Fact::Tls(TlsVersion::Tls13),
        Fact::Certificate(Certificate {
            issuer: "Authority".to_owned(),
            not_before_at: WallTime(1_780_000_000_000),
            not_after_at: WallTime(1_790_000_000_000),
        }),
        Fact::Hsts(31_536_000),
        Fact::RedirectsToHttps,
        Fact::Guard(Guard::Anubis),
        Fact::ContentUsage("train-ai=n".to_owned()),
        Fact::TdmReservation(true),
        Fact::FrontPage(FrontPage {
            language: word("pt-BR"),
            script: word("Latn"),
            charset: word("UTF-8"),
            generator: word("WordPress 6.8"),
            title: word("Museu"),
            tdm_reserved: Some(false),
        }),
    ]
}

/// The name of an outcome. One arm for each.
fn outcome(outcome: &VisitOutcome) -> &'static str {
    match outcome {
        VisitOutcome::Page(_) => "page",
        VisitOutcome::NotHtml(_) => "not-html",
        VisitOutcome::Redirect(_) => "redirect",
        VisitOutcome::Status(_) => "status",
        VisitOutcome::Failed(_) => "failed",
        VisitOutcome::RestrictedPage { .. } => "restricted-page",
        VisitOutcome::ServedPage { served: Served { detected: Some(_), .. }, .. } => "served-page",
        VisitOutcome::ServedPage { .. } => "served-page-of-no-kind",
        VisitOutcome::NotHtmlAs { .. } => "not-html-as",
        VisitOutcome::RedirectTo { .. } => "redirect-to",
    }
}

fn outcomes() -> Vec<VisitOutcome> {
    vec![
        VisitOutcome::Page(200),
        VisitOutcome::NotHtml(206),
        VisitOutcome::Redirect(301),
        VisitOutcome::Status(404),
        VisitOutcome::Failed(FetchError::Closed),
        VisitOutcome::RestrictedPage { status: 200, no_index: true, no_follow: false },
        VisitOutcome::ServedPage {
            status: 200,
            no_index: false,
            no_follow: true,
            served: Served { said: PageType::Html, detected: Some(PageType::Xhtml) },
        },
        VisitOutcome::ServedPage {
            status: 200,
            no_index: false,
            no_follow: false,
            served: Served { said: PageType::Xhtml, detected: None },
        },
        VisitOutcome::NotHtmlAs { status: 206, content_type: "application/pdf".to_owned() },
        VisitOutcome::RedirectTo { status: 308, to: url("https://www.a.ke/b") },
    ]
}
