//! Notes on requests for the log of requests.
//!
//! Each request is noted when it begins, and written with what came of it when it has ended, however it ends: also if its task is called
//! off or panics. What sends nothing is not written.

use crate::io::request_log::{RequestKind, RequestLine, RequestLog};
use crate::node::{clock, requests::request_record::RequestRecord};
use nearcrawl_core::event::Event;
use nearcrawl_model::{
    fetch::{
        FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReport, FetchRule, LocatedHost, ProbeReason, ProbeReport, ProbeTarget,
        ResolveError,
    },
    url::Host,
};
use sha2::{Digest, Sha256};

/// Longer paths are told by their hash.
const MAX_PATH: usize = 1_024;

/// Where requests are written down: in the log, and in the record that outlasts it.
#[derive(Clone, Debug)]
pub struct RequestNotes {
    /// The log.
    pub log: RequestLog,
    /// The record.
    pub record: RequestRecord,
}

impl RequestNotes {
    fn write(&self, line: RequestLine) {
        self.record.add(&line);
        self.log.write(line);
    }
}

/// A request that is under way.
#[derive(Debug)]
pub struct Note(Option<(RequestNotes, Box<RequestLine>)>);

impl Note {
    fn begin(log: Option<&RequestNotes>, line: impl FnOnce() -> RequestLine) -> Note {
        Note(log.map(|log| (log.clone(), Box::new(RequestLine { asked_at: clock::now().wall, ..line() }))))
    }

    /// A page or robots.txt is asked for.
    pub fn fetch(log: Option<&RequestNotes>, order: &FetchOrder) -> Note {
        Note::begin(log, || {
            let (reason, text) = (&order.reason, order.url.path_and_query());
            let is_page = order.purpose == FetchPurpose::Page;
            let is_short = text.len() <= MAX_PATH;
            let hash = || Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            RequestLine {
                kind: if is_page { RequestKind::Page } else { RequestKind::Robots },
                reason: reason.rule.word().to_owned(),
                host: order.url.host().to_string(),
                address: Some(order.address.to_canonical()),
                port: Some(order.url.port()),
                path: is_short.then(|| text.to_owned()),
                path_sha256: (!is_short).then(hash),
                level: is_page.then_some(reason.level),
                tree: reason.tree.as_ref().map(Host::to_string),
                run: Some(reason.run).filter(|run| *run > 0),
                surveys: reason.surveys.clone(),
                ..RequestLine::default()
            }
        })
    }

    /// A server's distance is measured.
    pub fn probe(log: Option<&RequestNotes>, target: &ProbeTarget, reason: ProbeReason) -> Note {
        Note::begin(log, || {
            let (word, access_point) = match reason {
                ProbeReason::Delegation(steward) => ("delegation", steward),
                ProbeReason::Home(member) => ("home", Some(member)),
                ProbeReason::Survey => ("survey", None),
            };
            RequestLine {
                kind: RequestKind::Probe,
                reason: word.to_owned(),
                host: target.host.to_string(),
                address: Some(target.address.ip().to_canonical()),
                port: Some(target.address.port()),
                access_point,
                ..RequestLine::default()
            }
        })
    }

    /// A name is looked up. An address is none.
    pub fn lookup(log: Option<&RequestNotes>, host: &Host) -> Note {
        Note::begin(log.filter(|_| host.address().is_none()), || RequestLine {
            kind: RequestKind::Dns,
            reason: "lookup".to_owned(),
            host: host.to_string(),
            ..RequestLine::default()
        })
    }

    /// The record with the proof of an opt-out is looked up.
    pub fn proof(log: Option<&RequestNotes>, name: &str) -> Note {
        Note::begin(log, || RequestLine {
            kind: RequestKind::Dns,
            reason: FetchRule::OptOut.word().to_owned(),
            host: name.to_owned(),
            ..RequestLine::default()
        })
    }

    /// That look-up has ended.
    pub fn looked(mut self) {
        if let Some((log, line)) = self.0.take() {
            log.write(*line);
        }
    }

    /// The request has ended.
    pub fn fetched(self, report: &FetchReport) {
        let (status, failure) = match &report.outcome {
            FetchOutcome::Page { status, .. }
            | FetchOutcome::NotHtml { status, .. }
            | FetchOutcome::Robots { status, .. }
            | FetchOutcome::Redirect { status, .. }
            | FetchOutcome::Status(status) => (Some(*status), None),
            FetchOutcome::NotModified { .. } => (Some(304), None),
            FetchOutcome::Failed(failure) => (None, Some(*failure)),
        };
        self.end(failure, |line| {
            (line.fetch_status, line.bytes, line.took_ms) = (status, Some(report.wire_bytes), Some(report.took));
        });
    }

    /// The request has ended, if this is what came of it.
    pub fn revisited(self, event: &Event) {
        if let Event::Revisited { report, .. } = event {
            self.fetched(report);
        }
    }

    /// The probe has ended.
    pub fn probed(self, report: &ProbeReport) {
        // It was ordered as a rest began: nothing was sent.
        if report.rtt_us == Err(FetchError::Cancelled) {
            return;
        }
        self.end(report.rtt_us.err(), |line| line.took_ms = Some(report.took));
    }

    /// The look-up has ended.
    pub fn resolved(mut self, answer: &Result<LocatedHost, ResolveError>) {
        let Some((log, mut line)) = self.0.take() else { return };
        match answer {
            Ok(located) => line.address = Some(located.address),
            Err(failure) => line.failure = Some(failure.word()),
        }
        log.write(*line);
    }

    fn end(mut self, failure: Option<FetchError>, fill: impl FnOnce(&mut RequestLine)) {
        let Some((log, mut line)) = self.0.take() else { return };
        // Nothing was sent.
        if matches!(failure, Some(FetchError::ForbiddenAddress | FetchError::NoAddress)) {
            return;
        }
        line.failure = failure.map(FetchError::word);
        fill(&mut line);
        log.write(*line);
    }
}

/// It was called off, or its task panicked: it may have been sent.
impl Drop for Note {
    fn drop(&mut self) {
        if let Some((log, mut line)) = self.0.take() {
            let failure = if std::thread::panicking() { FetchError::Crashed } else { FetchError::Cancelled };
            line.failure = Some(failure.word());
            log.write(*line);
        }
    }
}
