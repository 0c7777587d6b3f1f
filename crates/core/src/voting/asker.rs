//! Who asks a voter.

use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, Ticket},
};

/// Who asked: a member, or this access point itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Member(AccessPoint, Ticket),
    Own(QuestionId),
}
