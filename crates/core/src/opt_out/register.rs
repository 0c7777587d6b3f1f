//! Register of statements about opt-outs, with its limits.
//!
//! Of each the greatest revision is kept; of two with one revision that with the greater digest.

use crate::statements::{Book, Kept};
use nearcrawl_model::{
    access_point::AccessPoint,
    opt_out::{
        MAX_OF_MEMBER, MAX_ORDERS, MAX_STATEMENTS, OptOutKey, OptOutProof, SignedStatement, Statement, StatementHead, StatementId,
        statement_id,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Statements that are kept of those who are no members, all together.
pub(crate) const MAX_OF_STRANGERS: usize = 1_000;

/// Whose a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signer {
    /// Our own.
    Me,
    /// Of another member, live or silent.
    Member,
    /// Of nobody that is known here: anybody can make as many keys as they like.
    Stranger,
}

/// Why a statement is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotKeptError {
    /// As new a version is known.
    #[error("a version as new is known")]
    Known,
    /// Who orders it is no member.
    #[error("only members' operators give orders")]
    NoMember,
    /// Those who are no members have said as much as they may.
    #[error("{MAX_OF_STRANGERS} statements of programs that are no members are kept, the most that are allowed")]
    TooManyOfStrangers,
    /// Its member has ordered as much as its operator may.
    #[error("the operator of this access point has {MAX_ORDERS} orders, withdrawn ones included, the most that are allowed")]
    TooManyOrders,
    /// Its member has said as much as it may.
    #[error("this access point has stated {MAX_OF_MEMBER} opt-outs, withdrawn ones included, the most that are allowed")]
    TooManyOfMember,
    /// The swarm has as many as it may.
    #[error("the swarm keeps {MAX_STATEMENTS} statements about opt-outs, the most that are allowed")]
    TooMany,
}

impl NotKeptError {
    /// What is counted.
    pub(crate) fn class(self) -> &'static str {
        match self {
            NotKeptError::Known => "opt-outs that are known",
            NotKeptError::NoMember => "opt-outs of those who are no members",
            NotKeptError::TooManyOfStrangers => "opt-outs beyond the limit for those who are no members",
            NotKeptError::TooManyOrders => "opt-outs by order beyond the limit for a member",
            NotKeptError::TooManyOfMember => "opt-outs beyond the limit for a member",
            NotKeptError::TooMany => "opt-outs beyond the limit for the swarm",
        }
    }
}

/// A statement about an opt-out that is kept here.
pub(crate) type KeptStatement = Kept<Statement, SignedStatement>;

/// The statements that are kept here.
#[derive(Debug, Default)]
pub(crate) struct Register {
    book: Book<Statement, SignedStatement>,
    /// Who says something of what.
    about: BTreeMap<OptOutKey, BTreeMap<AccessPoint, StatementId>>,
    /// Which are of whom.
    of: BTreeMap<AccessPoint, OfOne>,
}

/// The statements of one member by what dropping one of them would lose here, the least first: those that are withdrawn or were looked for
/// in vain here, those whose proof was not looked for here, and those whose proof was seen here.
#[derive(Debug, Default)]
struct OfOne([BTreeSet<StatementId>; 3]);

impl OfOne {
    fn len(&self) -> usize {
        self.0.iter().map(BTreeSet::len).sum()
    }

    fn ids(&self) -> impl Iterator<Item = &StatementId> {
        self.0.iter().flatten()
    }

    fn remove(&mut self, id: &StatementId) {
        for ids in &mut self.0 {
            ids.remove(id);
        }
    }
}

/// The place of a statement in that order, by what this access point says of its subject. Of orders all are alike: nobody looks for a
/// proof, and of one that was withdrawn and forgotten an old version could be told again.
fn worth(statement: &Statement, mine: Option<bool>) -> usize {
    match mine {
        _ if statement.key.proof == OptOutProof::Order => 1,
        _ if !statement.stops => 0,
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    }
}

/// Statements come.
impl Register {
    /// Their versions, and which of them are stored.
    pub(crate) fn book(&self) -> &Book<Statement, SignedStatement> {
        &self.book
    }

    /// The same, to have them stored.
    pub(crate) fn book_mut(&mut self) -> &mut Book<Statement, SignedStatement> {
        &mut self.book
    }

    /// Whether there is room for a statement, and which one makes room for it. Nothing makes room for those of who is no member, and ours
    /// for nobody's.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn room_for(
        &self,
        statement: &Statement,
        head: &StatementHead,
        me: &AccessPoint,
        signer_of: impl Fn(&AccessPoint) -> Signer,
    ) -> Result<Option<StatementId>, NotKeptError> {
        if let Some(known) = self.book.get(&head.id) {
            return if known.head >= *head { Err(NotKeptError::Known) } else { Ok(None) };
        }
        let signer = signer_of(&statement.by);
        if signer == Signer::Stranger {
            self.room_for_stranger(statement, signer_of)?;
        }
        let theirs = self.of.get(&statement.by);
        let count = theirs.map_or(0, OfOne::len);
        if count >= MAX_OF_MEMBER {
            return Err(NotKeptError::TooManyOfMember);
        }
        let is_order = |id: &&StatementId| self.book.get(id).is_some_and(|kept| kept.statement.key.proof == OptOutProof::Order);
        if statement.key.proof == OptOutProof::Order && theirs.into_iter().flat_map(OfOne::ids).filter(is_order).count() >= MAX_ORDERS {
            return Err(NotKeptError::TooManyOrders);
        }
        if self.book.len() < MAX_STATEMENTS {
            return Ok(None);
        }
        if signer == Signer::Stranger {
            return Err(NotKeptError::TooMany);
        }
        let more_than = if signer == Signer::Me { 0 } else { count + 1 };
        self.least_needed(statement, me, more_than).map(Some).ok_or(NotKeptError::TooMany)
    }

    /// The statement that makes room for this one: of those whose loss costs least one of the other member that has most of them, if it has
    /// more than so many; what is withdrawn or was looked for in vain makes room for anything else in any case. While there are such, none
    /// makes room whose loss costs more.
    fn least_needed(&self, statement: &Statement, me: &AccessPoint, more_than: usize) -> Option<StatementId> {
        let is_in_force = worth(statement, self.said_about(&statement.key, me)) > 0;
        let others = || self.of.iter().filter(|(other, _)| **other != statement.by && *other != me).map(|(_, theirs)| &theirs.0);
        let (worth, most) = (0..3).find_map(|worth| {
            let most = others().map(|theirs| &theirs[worth]).max_by_key(|ids| ids.len());
            most.filter(|ids| !ids.is_empty()).map(|ids| (worth, ids))
        })?;
        most.last().copied().filter(|_| (worth == 0 && is_in_force) || most.len() > more_than)
    }

    /// What this access point says of one: whether its proof is there.
    fn said_about(&self, key: &OptOutKey, me: &AccessPoint) -> Option<bool> {
        self.said_by(me, key).map(|kept| kept.statement.stops)
    }

    fn room_for_stranger(&self, statement: &Statement, signer_of: impl Fn(&AccessPoint) -> Signer) -> Result<(), NotKeptError> {
        if statement.key.proof == OptOutProof::Order {
            return Err(NotKeptError::NoMember);
        }
        let of_strangers = self.of.iter().filter(|(by, _)| signer_of(by) == Signer::Stranger).map(|(_, ids)| ids.len());
        if of_strangers.sum::<usize>() >= MAX_OF_STRANGERS { Err(NotKeptError::TooManyOfStrangers) } else { Ok(()) }
    }

    /// A statement is kept from now on. It was stored before, or is to be.
    pub(crate) fn keep(&mut self, kept: Arc<KeptStatement>, me: &AccessPoint, is_stored: bool) {
        let Statement { by, key, .. } = kept.statement.clone();
        let id = kept.head.id;
        self.book.keep(kept, is_stored);
        self.about.entry(key.clone()).or_default().insert(by, id);
        if by == *me {
            // What is said here changes what the others' statements are worth.
            let about: Vec<StatementId> = self.about.get(&key).into_iter().flat_map(|said| said.values().copied()).collect();
            about.iter().for_each(|id| self.place(id, me));
        } else {
            self.place(&id, me);
        }
    }

    fn place(&mut self, id: &StatementId, me: &AccessPoint) {
        let Some(statement) = self.book.get(id).map(|kept| &kept.statement) else { return };
        let worth = worth(statement, self.said_about(&statement.key, me));
        let theirs = self.of.entry(statement.by).or_default();
        theirs.remove(id);
        theirs.0[worth].insert(*id);
    }

    /// A statement is not kept any more, nor asked for again.
    pub(crate) fn drop_one(&mut self, id: &StatementId) {
        let Some(kept) = self.book.drop_one(id) else { return };
        let Statement { by, key, .. } = &kept.statement;
        if let Some(said) = self.about.get_mut(key) {
            said.remove(by);
            if said.is_empty() {
                self.about.remove(key);
            }
        }
        if let Some(ids) = self.of.get_mut(by) {
            ids.remove(id);
            if ids.len() == 0 {
                self.of.remove(by);
            }
        }
    }
}

/// To be read.
impl Register {
    /// What this member says of it.
    pub(crate) fn said_by(&self, by: &AccessPoint, key: &OptOutKey) -> Option<&Arc<KeptStatement>> {
        self.book.get(&statement_id(by, key))
    }

    /// What is spoken of, and by whom.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&OptOutKey, Vec<&Arc<KeptStatement>>)> {
        self.about.iter().map(|(key, said)| (key, said.values().filter_map(|id| self.book.get(id)).collect()))
    }

    /// What is said of one.
    pub(crate) fn about(&self, key: &OptOutKey) -> Vec<&Arc<KeptStatement>> {
        self.about.get(key).into_iter().flat_map(|said| said.values()).filter_map(|id| self.book.get(id)).collect()
    }

    /// Whether anybody says anything of it.
    pub(crate) fn knows(&self, key: &OptOutKey) -> bool {
        self.about.contains_key(key)
    }

    /// How many the member has of whom most are kept.
    pub(crate) fn most_of_one(&self) -> usize {
        self.of.values().map(OfOne::len).max().unwrap_or(0)
    }
}
