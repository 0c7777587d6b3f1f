//! Limits on the certificates and expulsions that are kept, so that no inviter takes the space of the others, nor that of the root.

use crate::statements::Book;
use nearcrawl_model::{
    admission::{Admission, Issuer, MAX_CERTIFICATES, MAX_EXPULSIONS, MAX_OF_INVITER, SignedAdmission},
    opt_out::StatementId,
    time::{Millis, WallTime},
};

/// So long after its end a certificate is kept: clocks differ, and people want to read that it has ended.
pub(crate) const KEPT_AFTER_END: Millis = 30 * 86_400_000;

/// The certificates and expulsions that are kept.
pub(crate) type AdmissionBook = Book<Admission, SignedAdmission>;

/// Why a statement is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotKeptError {
    /// It ended long ago.
    #[error("the certificate ended long ago")]
    Ended,
    /// Its inviter has signed as much as it may.
    #[error("an inviter may have {MAX_OF_INVITER} certificates and {MAX_OF_INVITER} expulsions, and this one has them")]
    TooManyOfInviter,
    /// The swarm has as many as it may.
    #[error("a swarm may have {MAX_CERTIFICATES} certificates and {MAX_EXPULSIONS} expulsions, inviters together three quarters of them")]
    TooMany,
}

impl NotKeptError {
    /// What is counted.
    pub(crate) fn class(self) -> &'static str {
        match self {
            NotKeptError::Ended => "certificates that ended long ago",
            NotKeptError::TooManyOfInviter => "certificates and expulsions beyond the limit for an inviter",
            NotKeptError::TooMany => "certificates and expulsions beyond the limit for the swarm",
        }
    }
}

/// Whether a certificate ended so long ago that nobody keeps it.
pub(crate) fn is_over(statement: &Admission, now: WallTime) -> bool {
    matches!(statement, Admission::Certificate(one) if one.expires.0.saturating_add(KEPT_AFTER_END) <= now.0)
}

/// Whether there is room for a statement that is new here, and which one makes room for it: a certificate that has ended, and for the root's
/// one of an inviter.
///
/// # Errors
///
/// Why there is none.
pub(crate) fn room_for(kept: &AdmissionBook, statement: &Admission, now: WallTime) -> Result<Option<StatementId>, NotKeptError> {
    if is_over(statement, now) {
        return Err(NotKeptError::Ended);
    }
    if kept.get(&statement.id()).is_some() {
        return Ok(None);
    }
    let most = if statement.expels() { MAX_EXPULSIONS } else { MAX_CERTIFICATES };
    let same_kind = || kept.all().filter(|one| one.statement.expels() == statement.expels());
    let of_inviters = || same_kind().filter(|one| one.statement.issuer() != Issuer::Root);
    let count = same_kind().count();
    if statement.issuer() != Issuer::Root {
        if of_inviters().filter(|one| one.statement.issuer() == statement.issuer()).count() >= MAX_OF_INVITER {
            return Err(NotKeptError::TooManyOfInviter);
        }
        if of_inviters().count() >= most / 4 * 3 {
            return Err(NotKeptError::TooMany);
        }
    }
    if count < most {
        return Ok(None);
    }
    let has_ended = |statement: &Admission| matches!(statement, Admission::Certificate(one) if one.expires <= now);
    let ended = same_kind().find(|one| has_ended(&one.statement));
    let of_inviter = || of_inviters().last().filter(|_| statement.issuer() == Issuer::Root);
    ended.or_else(of_inviter).map(|one| Some(one.head.id)).ok_or(NotKeptError::TooMany)
}
