//! Whose statements are kept, and within which limits? The greatest revision of each; of two with one revision that with the greater digest.

use nearcrawl_model::{
    access_point::AccessPoint,
    ids::WriteId,
    opt_out::{
        MAX_OF_MEMBER, MAX_ORDERS, MAX_STATEMENTS, OptOutKey, OptOutProof, SignedStatement, Statement, StatementHead, StatementId,
        StatementsDigest, statement_id,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Statements that were refused and are not asked for again.
const MAX_REFUSED: usize = 10_000;

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
    #[error("{MAX_OF_STRANGERS} statements of those who are no members are kept, and no more")]
    TooManyOfStrangers,
    /// Its member has ordered as much as its operator may.
    #[error("the operator of this access point has {MAX_ORDERS} orders, with those that are withdrawn, and may have no more")]
    TooManyOrders,
    /// Its member has said as much as it may.
    #[error("this access point speaks of {MAX_OF_MEMBER} opt-outs, with those that are withdrawn, and may speak of no more")]
    TooManyOfMember,
    /// The swarm has as many as it may.
    #[error("the swarm keeps {MAX_STATEMENTS} statements about opt-outs and no more")]
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

/// A statement that is kept here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptStatement {
    pub(crate) statement: Statement,
    pub(crate) signed: SignedStatement,
    pub(crate) head: StatementHead,
}

/// The statements that are kept here.
#[derive(Debug, Default)]
pub(crate) struct Register {
    kept: BTreeMap<StatementId, Arc<KeptStatement>>,
    /// Who says something of what.
    about: BTreeMap<OptOutKey, BTreeMap<AccessPoint, StatementId>>,
    /// Which are of whom.
    of: BTreeMap<AccessPoint, BTreeSet<StatementId>>,
    /// Versions that are being stored. They hold, but nobody is told of them.
    storing: BTreeMap<StatementId, Option<WriteId>>,
    refused: BTreeSet<StatementHead>,
}

/// Statements come.
impl Register {
    /// Whether a version of a statement is wanted here: it is newer than what is known, and was not refused.
    pub(crate) fn lacks(&self, head: &StatementHead) -> bool {
        self.kept.get(&head.id).is_none_or(|known| known.head < *head) && !self.refused.contains(head)
    }

    /// Whether there is room for a statement, and which one makes room for it: of the other member that has most, if it has more than this one.
    /// Nothing makes room for those of who is no member, and ours for nobody's.
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
        if let Some(known) = self.kept.get(&head.id) {
            return if known.head >= *head { Err(NotKeptError::Known) } else { Ok(None) };
        }
        let signer = signer_of(&statement.by);
        if signer == Signer::Stranger {
            self.room_for_stranger(statement, signer_of)?;
        }
        let theirs = self.of.get(&statement.by);
        let count = theirs.map_or(0, BTreeSet::len);
        if count >= MAX_OF_MEMBER {
            return Err(NotKeptError::TooManyOfMember);
        }
        let is_order = |id: &&StatementId| self.kept.get(*id).is_some_and(|kept| kept.statement.key.proof == OptOutProof::Order);
        if statement.key.proof == OptOutProof::Order && theirs.into_iter().flatten().filter(is_order).count() >= MAX_ORDERS {
            return Err(NotKeptError::TooManyOrders);
        }
        if self.kept.len() < MAX_STATEMENTS {
            return Ok(None);
        }
        if signer == Signer::Stranger {
            return Err(NotKeptError::TooMany);
        }
        let others = self.of.iter().filter(|(by, _)| **by != statement.by && *by != me);
        let most = others.max_by_key(|(_, ids)| ids.len()).filter(|(_, ids)| signer == Signer::Me || ids.len() > count + 1);
        most.and_then(|(_, ids)| ids.last().copied()).map(Some).ok_or(NotKeptError::TooMany)
    }

    fn room_for_stranger(&self, statement: &Statement, signer_of: impl Fn(&AccessPoint) -> Signer) -> Result<(), NotKeptError> {
        if statement.key.proof == OptOutProof::Order {
            return Err(NotKeptError::NoMember);
        }
        let of_strangers = self.of.iter().filter(|(by, _)| signer_of(by) == Signer::Stranger).map(|(_, ids)| ids.len());
        if of_strangers.sum::<usize>() >= MAX_OF_STRANGERS { Err(NotKeptError::TooManyOfStrangers) } else { Ok(()) }
    }

    /// A statement is kept from now on.
    pub(crate) fn keep(&mut self, kept: Arc<KeptStatement>) {
        let Statement { by, key, .. } = &kept.statement;
        self.about.entry(key.clone()).or_default().insert(*by, kept.head.id);
        self.of.entry(*by).or_default().insert(kept.head.id);
        self.kept.insert(kept.head.id, kept);
    }

    /// A statement is not kept any more, nor asked for again.
    pub(crate) fn drop_one(&mut self, id: &StatementId) {
        let Some(kept) = self.kept.remove(id) else { return };
        self.refuse(kept.head);
        let Statement { by, key, .. } = &kept.statement;
        if let Some(said) = self.about.get_mut(key) {
            said.remove(by);
            if said.is_empty() {
                self.about.remove(key);
            }
        }
        if let Some(ids) = self.of.get_mut(by) {
            ids.remove(id);
            if ids.is_empty() {
                self.of.remove(by);
            }
        }
        self.storing.remove(id);
    }

    /// A statement was refused; it is not asked for again.
    pub(crate) fn refuse(&mut self, head: StatementHead) {
        if self.refused.len() >= MAX_REFUSED {
            self.refused.clear();
        }
        self.refused.insert(head);
    }

    /// A version of this statement that comes now is not stored yet.
    pub(crate) fn begin_storing(&mut self, id: StatementId) {
        self.storing.insert(id, None);
    }

    /// What is not stored yet of these is so by this write.
    pub(crate) fn wait_for(&mut self, write: WriteId, in_page: impl Fn(&StatementId) -> bool) {
        self.storing.iter_mut().filter(|(id, _)| in_page(id)).for_each(|(_, waits_for)| *waits_for = Some(write));
    }

    /// What was written is durable. Returns those statements that are, in this version.
    pub(crate) fn stored(&mut self, write: WriteId) -> Vec<Arc<KeptStatement>> {
        let ids: Vec<_> = self.storing.iter().filter(|(_, waits_for)| **waits_for == Some(write)).map(|(id, _)| *id).collect();
        self.storing.retain(|_, waits_for| *waits_for != Some(write));
        ids.iter().filter_map(|id| self.kept.get(id).cloned()).collect()
    }
}

/// To be read.
impl Register {
    /// What this member says of it.
    pub(crate) fn said_by(&self, by: &AccessPoint, key: &OptOutKey) -> Option<&Arc<KeptStatement>> {
        self.kept.get(&statement_id(by, key))
    }

    /// What is spoken of, and by whom.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&OptOutKey, Vec<&Arc<KeptStatement>>)> {
        self.about.iter().map(|(key, said)| (key, said.values().filter_map(|id| self.kept.get(id)).collect()))
    }

    /// What is said of one.
    pub(crate) fn about(&self, key: &OptOutKey) -> Vec<&Arc<KeptStatement>> {
        self.about.get(key).into_iter().flat_map(|said| said.values()).filter_map(|id| self.kept.get(id)).collect()
    }

    /// Whether anybody says anything of it.
    pub(crate) fn knows(&self, key: &OptOutKey) -> bool {
        self.about.contains_key(key)
    }

    /// Whether a statement is durable.
    pub(crate) fn is_stored(&self, id: &StatementId) -> bool {
        self.kept.contains_key(id) && !self.storing.contains_key(id)
    }

    /// Statements that are stored in one page.
    pub(crate) fn page(&self, in_page: impl Fn(&StatementId) -> bool) -> Vec<&SignedStatement> {
        self.kept.iter().filter(|(id, _)| in_page(id)).map(|(_, kept)| &kept.signed).collect()
    }

    fn told(&self) -> impl Iterator<Item = &Arc<KeptStatement>> {
        self.kept.iter().filter(|(id, _)| !self.storing.contains_key(*id)).map(|(_, kept)| kept)
    }

    /// Which versions are stored.
    pub(crate) fn heads(&self) -> Vec<StatementHead> {
        self.told().map(|kept| kept.head).collect()
    }

    /// Their digest: equal registers have equal ones.
    pub(crate) fn digest(&self) -> StatementsDigest {
        StatementsDigest::of(self.told().map(|kept| &kept.head))
    }

    /// The signed statements with these ids that are stored.
    pub(crate) fn signed<'a>(&self, ids: impl IntoIterator<Item = &'a StatementId>) -> Vec<SignedStatement> {
        let stored = ids.into_iter().filter(|id| self.is_stored(id));
        stored.filter_map(|id| self.kept.get(id)).map(|kept| kept.signed.clone()).collect()
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// How many the member has of whom most are kept.
    pub(crate) fn most_of_one(&self) -> usize {
        self.of.values().map(BTreeSet::len).max().unwrap_or(0)
    }
}
