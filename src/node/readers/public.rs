//! Says which questions of programs that are no members are refused, and why.

use crate::node::opt_outs::reader_opt_outs;
use nearcrawl_model::{address::AddressPolicy, message::PublicRequest};
use std::net::IpAddr;

/// What programs hear when their share of the bytes is spent.
const READERS_SPENT: &str = "its bytes of today for programs that are no members are spent (a quarter of allowance.swarm_per_day); ask another member, or again tomorrow";

/// Whom this daemon answers now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Openness {
    /// It answers members only (`swarm.readers`).
    pub members_only: bool,
    /// Its operator lets it ask servers nothing now.
    pub is_resting: bool,
    /// The share of the bytes that programs have is spent.
    pub is_spent: bool,
}

impl Openness {
    /// Why a program that is no member is not answered, as a sentence; none if it is.
    pub fn refuses(self, request: &PublicRequest) -> Option<&'static str> {
        let spent = self.is_spent.then_some(READERS_SPENT);
        match request {
            // Who says no to the swarm may do so at any member.
            PublicRequest::OptOut(key, _) => reader_opt_outs::refuses(key.proof, self.is_resting, spent),
            _ if self.members_only => Some("this access point answers members of the swarm only; ask another one"),
            PublicRequest::RequestsMade(query) if !query.is_fair() => Some("no such time may be asked about"),
            PublicRequest::RequestsMade(query) => untold(query.address).or(spent),
            PublicRequest::Results
            | PublicRequest::Owners
            | PublicRequest::ServerRows { .. }
            | PublicRequest::HistoryRows { .. }
            | PublicRequest::ExportRows { .. }
            | PublicRequest::Distinct
            | PublicRequest::ProbedSurvey(_)
            | PublicRequest::SurveyProbes { .. }
            | PublicRequest::OptOuts { .. } => spent,
        }
    }
}

/// Why a program is told nothing of this address, whatever there is: what members ask in private networks is their operators' concern.
fn untold(address: IpAddr) -> Option<&'static str> {
    let is_public = AddressPolicy::default().check_ip(address).is_ok();
    (!is_public).then_some("requests to private and other special-purpose addresses are told to members only")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        exported::{ExportOf, ExportQuery},
        opt_out::{OptOutKey, OptOutProof, OptOutSubject},
        requests_made::RequestsQuery,
        survey::SurveyId,
        time::WallTime,
    };

    /// The place of a question in [`asked`], so that a new one does not compile before it stands there.
    fn place(request: &PublicRequest) -> usize {
        match request {
            PublicRequest::Results => 0,
            PublicRequest::Owners => 1,
            PublicRequest::ServerRows { .. } => 2,
            PublicRequest::HistoryRows { .. } => 3,
            PublicRequest::ExportRows { .. } => 4,
            PublicRequest::Distinct => 5,
            PublicRequest::RequestsMade(_) => 6,
            PublicRequest::ProbedSurvey(_) => 7,
            PublicRequest::SurveyProbes { .. } => 8,
            PublicRequest::OptOut(..) => 9,
            PublicRequest::OptOuts { .. } => 10,
        }
    }

    fn made(address: &str, from: u64, until: u64) -> PublicRequest {
        PublicRequest::RequestsMade(RequestsQuery { address: address.parse().unwrap(), from: WallTime(from), until: WallTime(until) })
    }

    fn opt_out(proof: OptOutProof) -> PublicRequest {
        PublicRequest::OptOut(OptOutKey { subject: OptOutSubject::Host("a.ke".parse().unwrap()), proof }, true)
    }

    /// One question of each kind.
    fn asked() -> [PublicRequest; 11] {
        let of = AccessPoint([7; 32]);
        [
            PublicRequest::Results,
            PublicRequest::Owners,
            PublicRequest::ServerRows { of, after: None },
            PublicRequest::HistoryRows { of, after: None },
            PublicRequest::ExportRows { of, query: ExportQuery { of: ExportOf::Pages, from: None } },
            PublicRequest::Distinct,
            made("8.8.8.8", 0, 1),
            PublicRequest::ProbedSurvey("unis".to_owned()),
            PublicRequest::SurveyProbes { of, survey: SurveyId([1; 16]) },
            opt_out(OptOutProof::Txt),
            PublicRequest::OptOuts { after: None },
        ]
    }

    const OPEN: Openness = Openness { members_only: false, is_resting: false, is_spent: false };

    #[test]
    fn each_question_is_refused_where_only_members_are_answered_or_the_bytes_are_spent_and_a_no_by_a_record_never() {
        for (number, request) in asked().into_iter().enumerate() {
            assert_eq!(place(&request), number);
            let is_no = matches!(request, PublicRequest::OptOut(..));
            assert_eq!(OPEN.refuses(&request), None, "{request:?}");
            assert_eq!(Openness { is_resting: true, ..OPEN }.refuses(&request), None, "{request:?}");
            let spent = Openness { is_spent: true, ..OPEN }.refuses(&request);
            assert_eq!(spent, (!is_no).then_some(READERS_SPENT), "{request:?}");
            let members_only = Openness { members_only: true, ..OPEN }.refuses(&request);
            assert_eq!(members_only.is_some_and(|why| why.contains("members of the swarm only")), !is_no, "{request:?}");
            assert_eq!(members_only, Openness { members_only: true, is_spent: true, is_resting: true }.refuses(&request), "{request:?}");
        }
    }

    #[test]
    fn a_no_by_a_file_is_heard_where_only_members_are_answered_and_not_while_nothing_is_asked_of_servers() {
        let file = opt_out(OptOutProof::File);
        assert_eq!(Openness { members_only: true, ..OPEN }.refuses(&file), None);
        assert_eq!(Openness { members_only: true, is_spent: true, ..OPEN }.refuses(&file), Some(READERS_SPENT));
        let resting = Openness { is_resting: true, is_spent: true, ..OPEN }.refuses(&file);
        assert!(resting.is_some_and(|why| why.contains("publish a TXT record")), "{resting:?}");
    }

    #[test]
    fn programs_hear_nothing_of_private_networks_nor_of_more_than_two_days() {
        for address in ["10.1.2.3", "127.0.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"]
        {
            let why = OPEN.refuses(&made(address, 0, 1));
            assert!(why.is_some_and(|why| why.contains("private")), "{address}: {why:?}");
        }
        assert_eq!(OPEN.refuses(&made("2606:4700::1111", 0, 1)), None);
        assert_eq!(OPEN.refuses(&made("8.8.8.8", 2, 1)), Some("no such time may be asked about"));
    }
}
