//! Kinds of messages between members: the names under which messages and their bytes are counted, in daemons and in simulated swarms.

use crate::message::{Gossip, Request, Response};

impl Request {
    /// What kind of question this is.
    pub fn kind(&self) -> &'static str {
        match self {
            Request::Swim(_) | Request::Farewell(_) => "membership",
            Request::CompareClaims(_) | Request::SendClaims(_) => "comparison",
            Request::Locate(_) | Request::Pinned(_) => "location",
            Request::Confirm(..) | Request::HostMoved(_) => "confirmation",
            Request::FindOwner(..) | Request::Reserve(..) | Request::Probe(..) | Request::Award { .. } | Request::ProbeTurn(_) => {
                "delegation"
            }
            Request::HandOff(_) => "hand-off",
            Request::Offer { .. } | Request::TakeOver(_) | Request::TakeHost { .. } => "migration",
            Request::Keep(_) | Request::CompareRows(_) | Request::KeepRecord(_) | Request::CompareRecord(_) => "copies",
            Request::Recall(..) | Request::Holds(_) => "recovery",
            Request::HierarchyManifest(_) | Request::HierarchyChunk { .. } => "hierarchy",
            Request::TellClaims(_) => "claims",
            Request::Totals
            | Request::CompareTotals { .. }
            | Request::ExchangeTotals(..)
            | Request::CrossTotals(..)
            | Request::Distinct(_) => "totals",
            Request::ServerRows(_)
            | Request::HistoryRows(_)
            | Request::ExportRows(_)
            | Request::SurveyProbes(_)
            | Request::RequestsMade(_)
            | Request::Records(_)
            | Request::Why(_) => "readers",
            Request::Tell(gossip) => gossip.kind(),
            Request::Renew(_) => "leases",
            Request::Propose(_) | Request::Withdraw { .. } | Request::DoubleVote(_) => "votes",
            Request::Ballot(_) | Request::VoterLists(_) => "voter lists",
            Request::CompareSurveys(_) | Request::SendSurveys(_) => "surveys",
            Request::CompareOptOuts(_) | Request::SendOptOuts(_) => "opt-outs",
            Request::CompareAdmissions(_) | Request::SendAdmissions(_) => "admissions",
            Request::Forward(_) => "forwarded",
        }
    }
}

impl Response {
    /// What kind of question this answers.
    pub fn kind(&self) -> &'static str {
        match self {
            Response::Noted | Response::Swim(_) => "membership",
            Response::Claims(..) | Response::Compared { .. } => "comparison",
            Response::Located(_) => "location",
            Response::FindingOwner(_) | Response::Probed(..) | Response::ProbeDeclined(..) | Response::ProbeTurn(_) => "delegation",
            Response::HandedOff { .. } | Response::Busy(_) => "hand-off",
            Response::Offered(_) => "migration",
            Response::Kept(..) | Response::NoRoom | Response::RowsCompared(_) | Response::RecordKept(_) | Response::RecordHours(_) => {
                "copies"
            }
            Response::Recalled(..) | Response::Held { .. } => "recovery",
            Response::HierarchyManifest(_) | Response::HierarchyChunk(_) => "hierarchy",
            Response::Renewed(_) => "leases",
            Response::Voted(_) => "votes",
            Response::Ballot(_) | Response::VoterLists(_) => "voter lists",
            Response::Forwarded(_) => "forwarded",
            Response::Totals(_) | Response::TotalsHold | Response::CrossTotals(_) | Response::Distinct(_) => "totals",
            Response::ServerRows(_)
            | Response::ExportedRows(_)
            | Response::SurveyProbes(_)
            | Response::RequestsMade(_)
            | Response::Records(_)
            | Response::Why(_) => "readers",
            Response::SurveyHeads(_) | Response::Surveys(_) => "surveys",
            Response::OptOutHeads(_) | Response::OptOuts(_) => "opt-outs",
            Response::AdmissionHeads(_) | Response::Admissions(_) => "admissions",
            Response::Refused(_) => "refusals",
        }
    }
}

impl Gossip {
    /// What kind of gossip this is.
    pub fn kind(&self) -> &'static str {
        match self {
            Gossip::Claims(_) => "gossip of claims",
            Gossip::RollUp(_) => "gossip of totals",
            Gossip::Endorsement(_) => "gossip of editions",
            Gossip::Distances(_) => "gossip of distances",
            Gossip::Surveys(_) => "gossip of surveys",
            Gossip::OptOuts(_) => "gossip of opt-outs",
            Gossip::Admissions(_) => "gossip of admissions",
            Gossip::Profile(_) => "gossip of profiles",
            Gossip::Leaving => "membership",
        }
    }
}
