//! Shortens what members say about requests until it fits into the answer to a program that is no member.

use super::PublicAnswer;
use nearcrawl_model::{
    message::{MAX_MESSAGE, PublicResponse},
    request_record::{RecordTold, RequestsAnswer},
};

/// An answer to a program is shorter, in bytes: what it is wrapped in has room within a message.
const MAX_TOLD: usize = MAX_MESSAGE - (16 << 10);

/// Of that what records say takes at most so much.
const MAX_RECORDS_TOLD: usize = 256 << 10;

impl PublicAnswer for RequestsAnswer {
    fn response(self) -> PublicResponse {
        let RequestsAnswer { view, mut records, missing } = self;
        shorten(&mut records);
        let taken = postcard::experimental::serialized_size(&missing).unwrap_or(MAX_TOLD).saturating_add(MAX_RECORDS_TOLD);
        let view = Box::new(view.fitting(MAX_TOLD.saturating_sub(taken)));
        PublicResponse::RequestsMade(view, records, Box::new(missing))
    }
}

/// Leaves out hours of records that are too long together: first all but some of each, then all.
fn shorten(records: &mut [RecordTold]) {
    for most in [usize::MAX, 4, 0] {
        records.iter_mut().for_each(|told| told.hours.truncate(most));
        if postcard::experimental::serialized_size(&*records).is_ok_and(|bytes| bytes <= MAX_RECORDS_TOLD) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        request_record::{MAX_COPIES, RecordMissing, RecordedHour, RequestsMissing, UnknownMember},
        requests_made::{MAX_MADE, MadeRequest, MemberRequests, RequestsMade, RequestsQuery, RequestsView, Verdict},
        time::WallTime,
    };

    #[test]
    fn a_reader_gets_an_answer_that_fits_into_a_message() {
        let line =
            MadeRequest { asked_at: WallTime(5), reason: "second-try".to_owned(), host: format!("{}.ke", "a".repeat(60)).parse().ok() };
        let made = RequestsMade { requests: 100, lines: vec![line; MAX_MADE], uncovered: None };
        let members = (0..250).map(|number| MemberRequests::of(AccessPoint([number; 32]), Some(made.clone()))).collect();
        let query = RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(0), until: WallTime(1) };
        let view = RequestsView::new(&query, members);
        let hour = RecordedHour {
            first_at: WallTime(1),
            last_at: WallTime(2),
            requests: 3,
            bytes: 4,
            reasons: vec!["second-try".to_owned(); 9],
            hosts: vec![format!("{}.ke", "a".repeat(60)).parse().unwrap(); 4],
            all_hosts: true,
        };
        let told = |number| RecordTold {
            access_point: AccessPoint([number; 32]),
            answered_by: AccessPoint([1; 32]),
            gone_at: None,
            verdict: Verdict::Yes,
            hours: vec![hour.clone(); 50],
            gap: None,
        };
        let length = |answer: &PublicResponse| postcard::to_stdvec(answer).unwrap().len();
        let records: Vec<_> = (0..64).map(told).collect();
        let whole = PublicResponse::RequestsMade(Box::new(view.clone()), records.clone(), Box::default());
        assert!(length(&whole) > 2 * MAX_MESSAGE);
        let fitting = RequestsAnswer { view, records, missing: RequestsMissing::default() }.response();
        assert!(length(&fitting) < MAX_MESSAGE, "{} bytes", length(&fitting));
        let PublicResponse::RequestsMade(view, records, _) = fitting else { panic!("another answer") };
        assert!(view.members.iter().all(|member| member.requests == 100 && !member.lines.is_empty()));
        assert!(records.iter().all(|told| !told.hours.is_empty() && told.verdict == Verdict::Yes));
        // What is missing is at most of all members.
        let unknown = UnknownMember {
            access_point: AccessPoint([9; 32]),
            was_asked: false,
            gone_at: Some(WallTime(1_790_000_000_000)),
            record: RecordMissing::NoAnswer,
        };
        let missing = RequestsMissing { unknown: vec![unknown; MAX_COPIES], unanswered: vec![AccessPoint([9; 32]); MAX_COPIES] };
        let bytes = postcard::to_stdvec(&missing).unwrap().len();
        assert!(bytes + MAX_RECORDS_TOLD + MAX_COPIES * 64 < MAX_TOLD, "{bytes} bytes leave no room for {MAX_COPIES} members");
    }
}
