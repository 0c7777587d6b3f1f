//! Fuzz targets for bytes from other members, from disk and from people: the values of `nearcrawl-model`.
//!
//! They check what must hold of whatever is read from the bytes.

use nearcrawl_model::{
    access_point::AccessPoint,
    address::AddressPolicy,
    admission::{AdmissionMode, AdmissionRule, Gate, MAX_LABEL, MAX_REASON, RootKey, SignedAdmission, SignedBytes},
    claim::{Claim, MAX_ANSWERS, SignedClaim},
    edition::{Edition, Endorsement},
    exported::{ExportPlace, LinkRow, MAX_IDS, MissingRow, PageRow},
    fingerprint::FingerprintKey,
    journal::{JournalEntry, JournalKey, JournalRow},
    links::Links,
    message::{Gossip, PublicRequest, PublicResponse, Request, Response},
    opt_out::{MAX_STATEMENT_BYTES, SignedStatement},
    ownership_history::{Holding, OwnershipHistory},
    ownership_map::{MAX_DEPTH, MapDigest, MapPart, PARTS, place},
    packed_stream::{Packer, Unpacker},
    previous_run::PreviousPage,
    receipt::SignedReceipt,
    record::ServerRecord,
    request_hour::RequestHour,
    subnet::Subnet,
    summary::{RollUp, Summary, SwarmResults},
    survey::{MAX_ENTRIES, MAX_SURVEY_BYTES, MAX_SURVEYS, SignedSurvey, Survey, SurveyHead, SurveyRef, SurveysDigest},
    time::WallTime,
    url::{Host, LinkBase, PageUrl},
    view::Subject,
    vote::{SignedList, VoterList, Votes},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    cmp::Ordering,
    collections::BTreeSet,
    fmt::{Debug, Display},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

crate::targets!("model":
    request,
    response,
    gossip,
    public,
    claim,
    receipt,
    votes,
    map_parts,
    packed_stream,
    journal,
    ownership_history,
    previous_page,
    roll_up,
    survey,
    admission,
    edition,
    record_json,
    request_hour,
    results_json,
    exported,
    host,
    page_url,
    join,
    subject,
    texts,
    addresses,
);

/// Reads a value in postcard. What is written again is the same value, and no longer than what was read.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = postcard::from_bytes(bytes).ok()?;
    let written = postcard::to_stdvec(&value).expect("what was read can be written");
    assert!(written == postcard::to_stdvec(&value).expect("it can be written again"));
    assert_eq!(postcard::from_bytes::<T>(&written).as_ref(), Ok(&value));
    Some(value)
}

/// The same in JSON.
fn read_json<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&value).expect("what was read can be written");
    assert_eq!(&serde_json::from_slice::<T>(&written).expect("what was written can be read"), &value);
    Some(value)
}

/// Reads a value from text. As text again it is the same value, and the text stays the same from then on.
fn read_text<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    let canonical = value.to_string();
    let again = canonical.parse::<T>().ok();
    assert_eq!(again.as_ref(), Some(&value), "{text:?} became {canonical:?}");
    assert_eq!(again.map(|again| again.to_string()), Some(canonical));
    Some(value)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn request(bytes: &[u8]) {
    match read::<Request>(bytes) {
        Some(Request::Probe(_, _, receipts)) => receipts.iter().for_each(check_receipt),
        Some(Request::Propose(proposal)) => proposal.claims.iter().chain(&proposal.releases).for_each(check_claim),
        Some(Request::TakeOver(claim)) => check_claim(&claim),
        Some(Request::Keep(rows)) => rows.iter().for_each(check_row),
        _ => {}
    }
}

fn response(bytes: &[u8]) {
    match read::<Response>(bytes) {
        Some(Response::Claims(claims, _)) => claims.iter().for_each(check_claim),
        Some(Response::Recalled(rows, _)) => rows.iter().for_each(check_row),
        Some(Response::Surveys(surveys)) => {
            assert!(surveys.len() <= MAX_SURVEYS);
            surveys.iter().for_each(check_survey);
        }
        Some(Response::OptOuts(statements)) => statements.iter().for_each(check_statement),
        Some(Response::Admissions(statements)) => statements.iter().for_each(check_admission),
        Some(Response::VoterLists(lists)) => lists.iter().for_each(check_list),
        Some(Response::ProbeDeclined(_, receipts)) => receipts.iter().for_each(check_receipt),
        _ => {}
    }
}

fn gossip(bytes: &[u8]) {
    match read::<Gossip>(bytes) {
        Some(Gossip::Claims(claims)) => claims.iter().for_each(check_claim),
        Some(Gossip::RollUp(roll_up)) => check_summary(&roll_up.summary),
        Some(Gossip::OptOuts(statements)) => statements.iter().for_each(check_statement),
        Some(Gossip::Admissions(statements)) => statements.iter().for_each(check_admission),
        _ => {}
    }
}

fn public(bytes: &[u8]) {
    read::<PublicRequest>(bytes);
    if let Some(PublicResponse::Results(results)) = read(bytes) {
        check_summary(&results.summary);
    }
}

/// Rows that owners tell readers.
fn exported(bytes: &[u8]) {
    read_json::<PageRow>(bytes);
    read_json::<MissingRow>(bytes);
    if let Some(place) = read_json::<ExportPlace>(bytes) {
        assert!(place.is_behind(None) && !place.is_behind(Some(&place)));
    }
    if let Some(row) = read_json::<LinkRow>(bytes) {
        assert!([row.children, row.elsewhere, row.named].iter().all(|ids| ids.0.len() <= 2 * MAX_IDS));
    }
}

/// A claim has one encoding, and claims have one order.
fn check_claim(signed: &SignedClaim) {
    let Ok(claim) = signed.read() else { return };
    assert!(SignedClaim::of_parts(&claim, &[0; 64], None).bytes == signed.bytes, "a second encoding of a claim was read");
    if signed.verify(&claim).is_ok() {
        assert!(claim.answers.len() <= MAX_ANSWERS && signed.open().as_ref() == Ok(&claim));
    }
    if let Some(votes) = &signed.votes {
        check_votes(votes, &claim);
    }
    let other = Claim { epoch: claim.epoch.saturating_add(1), ..claim.clone() };
    assert_eq!(claim.strength(&claim), Ordering::Equal);
    assert_eq!(claim.strength(&other), other.strength(&claim).reverse());
    assert!(other.epoch == claim.epoch || MapDigest::of_claim(&claim) != MapDigest::of_claim(&other));
}

/// As a whole message, and as the bytes that are signed.
fn claim(bytes: &[u8]) {
    if let Some(signed) = read::<SignedClaim>(bytes) {
        check_claim(&signed);
    }
    check_claim(&SignedClaim { bytes: bytes.to_vec(), signature: vec![0; 64], votes: None });
}

fn check_receipt(signed: &SignedReceipt) {
    assert_eq!(signed.open(), signed.clone().open());
    assert_eq!(signed.id(), signed.clone().id());
}

fn receipt(bytes: &[u8]) {
    if let Some(signed) = read::<SignedReceipt>(bytes) {
        check_receipt(&signed);
    }
    check_receipt(&SignedReceipt { bytes: bytes.to_vec(), signature: vec![0; 64] });
}

/// No list of voters is decided by signatures that nobody made.
fn check_votes(votes: &Votes, claim: &Claim) {
    let list = VoterList { number: votes.list, voters: votes.voters.iter().map(|by| by.voter).collect(), age: 0 };
    if list.voters.len() <= 3 {
        let proven = votes.prove(&list, claim.subnet, claim.epoch, claim.owner);
        assert!(!proven || !list.voters.is_empty());
    }
}

fn check_list(signed: &SignedList) {
    if signed.accepted.len() + signed.installed.len() > 6 {
        return;
    }
    let nobody = BTreeSet::new();
    if signed.check(None, &nobody).is_ok() {
        assert!(signed.list.number == 1 && signed.list.voters.len() == 1 && signed.list.contains(&signed.list.voters[0]));
    }
    let before = VoterList { number: signed.list.number.saturating_sub(1), ..signed.list.clone() };
    if signed.check(Some(&before), &nobody).is_ok() {
        assert!(signed.check_accepted(Some(&before), &nobody).is_ok() && signed.list.quorum() <= signed.list.voters.len());
    }
}

fn votes(bytes: &[u8]) {
    if let Some(list) = read::<SignedList>(bytes) {
        check_list(&list);
    }
    read::<Votes>(bytes);
}

/// A part is what its parts are together.
fn map_parts(bytes: &[u8]) {
    let Some((part, subnet, digests)) = read::<(MapPart, Subnet, Vec<MapDigest>)>(bytes) else { return };
    let at = place(&subnet);
    assert!(part.depth() <= MAX_DEPTH && part.contains(part.first_place()));
    let parts: Vec<MapPart> = part.parts().collect();
    assert_eq!(parts.len(), if part.depth() < MAX_DEPTH { PARTS } else { 0 });
    assert!(parts.is_empty() || parts.iter().filter(|inner| inner.contains(at)).count() == usize::from(part.contains(at)));
    assert_eq!(MapPart::around(part.first_place(), part.depth()), part);
    assert_eq!(MapDigest::of_listed(digests.iter().copied()), MapDigest::of_listed(digests.into_iter()));
}

/// Messages of one stream, each behind a byte with its length: whatever they are, they are said and heard again; and as packed ones they are
/// refused, or some messages.
fn packed_stream(bytes: &[u8]) {
    const LARGEST: usize = 64 << 10;
    let (mut packer, mut unpacker, mut hostile) = (Packer::default(), Unpacker::default(), Some(Unpacker::default()));
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first() {
        let (message, next) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = next;
        assert_eq!(unpacker.unpack(&packer.pack(message), message.len()).as_deref(), Ok(message));
        // What follows one that is refused is not heard.
        if let Some(mut stream) = hostile.take()
            && let Ok(heard) = stream.unpack(message, LARGEST)
        {
            assert!(heard.len() <= LARGEST);
            hostile = Some(stream);
        }
    }
}

/// What is plausible can be added up.
fn check_entry(entry: &JournalEntry) {
    if let JournalEntry::Visited { took, bytes, .. } = entry
        && entry.is_plausible()
    {
        assert!(took.checked_mul(1 << 24).is_some() && bytes.checked_mul(1 << 20).is_some());
    }
    if let JournalEntry::OwnershipHistory(history) = entry {
        check_history(history);
    }
}

fn check_row(row: &JournalRow) {
    if row.key.is_plausible() {
        assert!(row.key.run.checked_add(1).is_some());
    }
    if let Ok(entry) = postcard::from_bytes::<JournalEntry>(&row.entry) {
        check_entry(&entry);
    }
}

fn journal(bytes: &[u8]) {
    if let Some(row) = read::<JournalRow>(bytes) {
        check_row(&row);
    }
    if let Some(entry) = read::<JournalEntry>(bytes) {
        check_entry(&entry);
    }
    read::<JournalKey>(bytes);
}

/// Histories are bounded and in order, however they came about; told twice they say nothing new.
fn check_history(told: &OwnershipHistory) {
    let mut merged = OwnershipHistory::default();
    merged.merge(told.clone());
    assert!(merged.holdings.len() <= 16 && merged.holdings.is_sorted_by(|one, next| one.epoch < next.epoch));
    let mut again = merged.clone();
    again.merge(merged.clone());
    assert_eq!(again, merged);
    if let Some(last) = merged.holdings.last().cloned() {
        again.enter(Holding { epoch: last.epoch.saturating_add(1), ..last });
        again.leave(&"why".repeat(200));
        assert!(again.holdings.len() <= 16);
    }
}

fn ownership_history(bytes: &[u8]) {
    if let Some(history) = read::<OwnershipHistory>(bytes) {
        check_history(&history);
    }
    if let Some((one, other)) = read::<(OwnershipHistory, OwnershipHistory)>(bytes) {
        check_history(&one);
        check_history(&other);
    }
}

fn previous_page(bytes: &[u8]) {
    read::<PreviousPage>(bytes);
}

/// Sums do not depend on the order in which they are made.
fn check_summary(summary: &Summary) {
    let (mut one, mut other) = (Summary::default(), summary.clone());
    one.add(summary);
    one.add(&Summary::default());
    other.add(&Summary::default());
    assert_eq!((one.total, &one.by, &one.evaluation), (other.total, &other.by, &other.evaluation));
    assert!(one.levels.len() <= 64);
}

fn roll_up(bytes: &[u8]) {
    if let Some(roll_up) = read::<RollUp>(bytes) {
        check_summary(&roll_up.summary);
    }
    let Some((one, other)) = read::<(Summary, Summary)>(bytes) else { return };
    let (mut forth, mut back) = (Summary::default(), Summary::default());
    forth.add(&one);
    forth.add(&other);
    back.add(&other);
    back.add(&one);
    assert_eq!(forth, back);
}

/// What passes is within all limits and has one encoding; a name is read as it is written.
fn check_survey(signed: &SignedSurvey) {
    let Ok(survey) = signed.read() else { return };
    assert!(signed.bytes.len() <= MAX_SURVEY_BYTES && survey.plan.entries.len() <= MAX_ENTRIES);
    assert_eq!(postcard::to_stdvec(&survey).as_deref(), Ok(&signed.bytes[..]));
    assert_eq!((signed.head(&survey).id, signed.head(&survey).revision), (survey.id(), survey.revision));
    let name = read_text::<SurveyRef>(&format!("{}@{}", survey.plan.name, survey.creator)).expect("it can be named");
    assert!(name.fits(&survey.plan.name, &survey.creator));
    assert!(signed.open().is_err() || signed.open().as_ref() == Ok(&survey));
}

/// The same of what a member says of an opt-out.
fn check_statement(signed: &SignedStatement) {
    let Ok(statement) = signed.read() else { return };
    assert!(signed.bytes.len() <= MAX_STATEMENT_BYTES && statement.key.check().is_ok());
    assert_eq!(postcard::to_stdvec(&statement).as_deref(), Ok(&signed.bytes[..]));
    assert_eq!((signed.head(&statement).id, signed.head(&statement).revision), (statement.id(), statement.revision));
    assert!(signed.open().is_err() || signed.open().as_ref() == Ok(&statement));
}

/// A statement about a member has one encoding, is within its limits, and lets nobody in whom the root did not certify.
fn check_admission(signed: &SignedAdmission) {
    use nearcrawl_model::admission::{Admission, MAX_STATEMENT_BYTES};
    let Ok(statement) = signed.read() else { return };
    assert!(signed.statement.bytes.len() <= MAX_STATEMENT_BYTES);
    assert_eq!(postcard::to_stdvec(&statement).as_deref(), Ok(&signed.statement.bytes[..]));
    match &statement {
        Admission::Certificate(one) => assert!(one.label.len() <= MAX_LABEL && one.issued < one.expires),
        Admission::Expulsion(one) => assert!(!one.reason.is_empty() && one.reason.len() <= MAX_REASON),
    }
    assert_eq!(signed.head(&statement).id, statement.id());
    // The root that it names is anybody's; this one signed nothing.
    let root = RootKey([7; 32]);
    assert!(signed.open(&root).is_err());
    let rule = AdmissionRule { mode: AdmissionMode::Invite, swarm: Some(root), ..AdmissionRule::default() };
    assert!(Gate { rule, ..Gate::default() }.judge_shown(&statement.member(), Some(signed), WallTime(0)).is_err());
    assert_eq!(signed.to_string().parse::<SignedAdmission>().as_ref(), Ok(signed));
}

/// A certificate or an expulsion: as a message, as the bytes that are signed, as text.
fn admission(bytes: &[u8]) {
    if let Some(signed) = read::<SignedAdmission>(bytes) {
        check_admission(&signed);
    }
    let statement = SignedBytes { bytes: bytes.to_vec(), signature: vec![0; 64] };
    check_admission(&SignedAdmission { statement, inviter: None });
    if let Ok(signed) = text(bytes).parse::<SignedAdmission>() {
        check_admission(&signed);
    }
    read_text::<RootKey>(text(bytes));
}

/// A signed survey, or the bytes of one.
fn survey(bytes: &[u8]) {
    if let Some(signed) = read::<SignedSurvey>(bytes) {
        check_survey(&signed);
    }
    check_survey(&SignedSurvey { bytes: bytes.to_vec(), signature: Vec::new() });
    check_statement(&SignedStatement { bytes: bytes.to_vec(), signature: Vec::new() });
    read::<Survey>(bytes);
    if let Some(heads) = read::<Vec<SurveyHead>>(bytes) {
        assert_eq!(SurveysDigest::of(&heads), SurveysDigest::of(&heads.clone()));
    }
}

fn edition(bytes: &[u8]) {
    read::<Endorsement>(bytes);
    let Some((one, other)) = read::<(Edition, Edition)>(bytes) else { return };
    assert_eq!(one.age_order(&other), other.age_order(&one).reverse());
    assert_eq!(one.age_order(&other) == Ordering::Equal, one == other);
    assert!(one.day().is_none_or(|day| (-719_528..=2_932_896).contains(&day)));
}

/// A member's record of an hour: what is read is written and read again as the same.
fn request_hour(bytes: &[u8]) {
    if let Ok(hour) = RequestHour::unpack(bytes) {
        assert_eq!(RequestHour::unpack(&hour.pack()).as_ref(), Ok(&hour));
    }
}

fn record_json(bytes: &[u8]) {
    read_json::<ServerRecord>(bytes);
}

fn results_json(bytes: &[u8]) {
    if let Ok(results) = serde_json::from_slice::<SwarmResults>(bytes) {
        check_summary(&results.summary);
    }
}

/// A host's text is canonical, and what is derived from it is a host again.
fn check_host(host: &Host) {
    assert_eq!(host.as_str().parse::<Host>().as_ref(), Ok(host));
    assert!(host.as_str().len() <= 253 && host.is_within(host) && host.may_start(&host.without_www()));
    assert_eq!(host.without_www(), host.without_www().without_www());
    assert_eq!(postcard::from_bytes::<Host>(&postcard::to_stdvec(host).expect("it can be written")).as_ref(), Ok(host));
    if let Some(parent) = host.parent() {
        assert!(host.is_within(&parent) && !parent.is_within(host) && host.address().is_none());
        assert_eq!(parent.as_str().parse::<Host>().as_ref(), Ok(&parent));
    }
    if let Some(registered) = host.registrable() {
        assert!(host.address().is_none() && host.as_str().ends_with(registered) && host.tld().is_some());
    }
}

fn host(bytes: &[u8]) {
    if let Some(host) = read_text::<Host>(text(bytes)) {
        check_host(&host);
    }
}

/// A URL's text is canonical, and its parts put together are the whole.
fn check_url(url: &PageUrl) {
    assert_eq!(PageUrl::parse(url.as_str()).as_ref(), Ok(url));
    assert!(url.as_str().len() <= 2048 && url.as_str().is_ascii() && !url.as_str().contains('#'));
    assert_eq!(format!("{}{}", url.origin(), url.path_and_query()), url.as_str());
    assert_eq!(url.origin_str(), url.origin().to_string());
    assert_eq!(url.authority(), url.origin().authority());
    assert_eq!(url.origin().page(url.path_and_query()).as_ref(), Ok(url));
    assert_eq!(url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path())), url.path_and_query());
    assert_eq!(url.host_str().parse::<Host>().as_ref(), Ok(&url.host()));
    assert_eq!((url.root().origin(), url.root().path_and_query()), (url.origin(), "/"));
    assert_eq!(url.by_ref().to_url(), *url);
    check_host(&url.host());
}

fn page_url(bytes: &[u8]) {
    if let Ok(url) = PageUrl::parse(text(bytes)) {
        check_url(&url);
    }
}

/// The first line is the page, each further one a reference on it: all three ways to resolve it agree, and with the url crate.
fn join(bytes: &[u8]) {
    let mut lines = text(bytes).lines();
    let Some(Ok(page)) = lines.next().map(PageUrl::parse) else { return };
    let base = url::Url::parse(page.as_str()).expect("a page's URL is a URL");
    let (mut link_base, mut links) = (LinkBase::new(page.clone()), Links::default());
    let key = FingerprintKey([1; 16]);
    for reference in lines.take(64) {
        let joined = page.join(reference);
        let added = links.add(&mut link_base, reference, None, |url| Some(key.of(url.as_str())));
        assert_eq!(added.err(), joined.as_ref().err().copied(), "{reference:?} on {page}");
        let Ok(joined) = joined else { continue };
        check_url(&joined);
        let exact = base.join(reference).ok().and_then(|url| PageUrl::parse(url.as_str()).ok());
        assert_eq!(exact.as_ref(), Some(&joined), "{reference:?} on {page}");
        assert_eq!(links.iter().last().map(|(url, _)| url.as_str()), Some(joined.as_str()));
    }
}

fn subject(bytes: &[u8]) {
    if let Some(Subject::Subnet(subnet)) = read_text::<Subject>(text(bytes)) {
        check_subnet(subnet);
    }
}

fn check_subnet(subnet: Subnet) {
    assert!(subnet.contains(subnet.first()) && subnet.covers(&subnet));
    assert_eq!(Subnet::around(subnet.first(), subnet.length()), subnet);
    let wider = Subnet::around(subnet.first(), subnet.length().saturating_sub(1));
    assert!(wider.covers(&subnet));
}

fn texts(bytes: &[u8]) {
    let text = text(bytes);
    read_text::<AccessPoint>(text);
    if let Some(subnet) = read_text::<Subnet>(text) {
        check_subnet(subnet);
    }
    if let Ok(time) = text.parse::<WallTime>() {
        assert_eq!(time.to_string().parse(), Ok(time), "{text:?}");
    }
}

/// Nothing that carries a special address may be contacted unless an operator says so, and never what is denied.
fn addresses(bytes: &[u8]) {
    let Some((octets, rest)) = bytes.split_first_chunk::<16>() else { return };
    let port = rest.first_chunk::<2>().map_or(443, |port| u16::from_be_bytes(*port));
    let policy = AddressPolicy::default();
    let v6 = Ipv6Addr::from(*octets);
    let v4 = Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]);
    for address in [IpAddr::V6(v6), IpAddr::V4(v4)] {
        let judged = policy.check(SocketAddr::new(address, port));
        assert_eq!(judged.is_ok(), policy.check_ip(address).is_ok() && policy.ports.contains(&port));
        let inner = address.to_canonical();
        if policy.check_ip(address).is_ok() {
            assert!(!inner.is_loopback() && !inner.is_multicast() && !inner.is_unspecified());
        }
        let network = ipnetwork::IpNetwork::from(inner);
        let denied = AddressPolicy { denied: vec![network].into(), allowed: vec![network], ..AddressPolicy::default() };
        assert!(denied.check_ip(address).is_err());
        let allowed = AddressPolicy { allowed: vec![network], ..AddressPolicy::default() };
        assert!(allowed.check_ip(address).is_ok());
        check_subnet(Subnet::around(address, octets[0]));
    }
    // The same address in all its disguises.
    let refused = policy.check_ip(IpAddr::V4(v4)).is_err();
    let octets = v4.octets();
    let disguised = [
        v4.to_ipv6_mapped(),
        Ipv6Addr::from_bits(0x64_ff9b << 96 | u128::from(v4.to_bits())),
        Ipv6Addr::from([0x20, 0x02, octets[0], octets[1], octets[2], octets[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ];
    for disguise in disguised {
        assert_eq!(policy.check_ip(IpAddr::V6(disguise)).is_err(), refused, "{disguise} is {v4}");
    }
}
