//! Which surveys are kept, and within which limits? The greatest revision of each; of two with one number, that with the greater digest.

use crate::wishes::KeptSurvey;
use nearcrawl_model::{
    access_point::AccessPoint,
    survey::{
        MAX_LIVING, MAX_OF_CREATOR, MAX_SURVEYS, MAX_TOTAL_BYTES, SignedSurvey, Survey, SurveyHead, SurveyId, SurveyState, SurveysDigest,
    },
    time::WallTime,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Surveys that were refused and are not asked for again.
const MAX_REFUSED: usize = 1_000;

/// Why a survey is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotKeptError {
    /// As new a version is known.
    #[error("a version as new is known")]
    Known,
    /// Its members would probe other servers than those that were probed.
    #[error("the list of a survey with a sample does not change: make another one")]
    SampleChanged,
    /// Its creator has as many that live as it may.
    #[error("{MAX_LIVING} surveys of this access point are running or paused: end one of them first")]
    TooManyLiving,
    /// Its creator has as many as it may.
    #[error("this access point has {MAX_OF_CREATOR} surveys, with those that have ended, and may have no more")]
    TooManyOfCreator,
    /// The swarm has as many as it may.
    #[error("the swarm keeps {MAX_SURVEYS} surveys and no more")]
    TooMany,
    /// The swarm's surveys take as much room as they may.
    #[error("the surveys of the swarm take {} MiB and may take no more", MAX_TOTAL_BYTES >> 20)]
    TooLarge,
}

impl NotKeptError {
    /// What is counted.
    pub(crate) fn class(self) -> &'static str {
        match self {
            NotKeptError::Known => "surveys that are known",
            NotKeptError::SampleChanged => "surveys whose sample changed",
            NotKeptError::TooManyLiving => "living surveys beyond the limit for a creator",
            NotKeptError::TooManyOfCreator => "surveys beyond the limit for a creator",
            NotKeptError::TooMany => "surveys beyond the limit for the swarm",
            NotKeptError::TooLarge => "surveys beyond the limit of bytes",
        }
    }
}

/// The surveys that are kept here, and those that are being stored.
#[derive(Debug, Default)]
pub(crate) struct Register {
    kept: BTreeMap<SurveyId, Arc<KeptSurvey>>,
    /// The newest version of each that is being stored.
    coming: BTreeMap<SurveyId, Arc<KeptSurvey>>,
    refused: BTreeSet<SurveyHead>,
}

impl Register {
    /// The newest version of each, stored or not.
    fn newest(&self) -> impl Iterator<Item = &Arc<KeptSurvey>> {
        let kept = self.kept.iter().filter(|(id, _)| !self.coming.contains_key(*id)).map(|(_, kept)| kept);
        kept.chain(self.coming.values())
    }

    /// The version of a survey that counts, stored or not.
    fn known(&self, id: &SurveyId) -> Option<&Arc<KeptSurvey>> {
        self.coming.get(id).or_else(|| self.kept.get(id))
    }

    /// Whether a version of a survey is wanted here: it is newer than what is known, and was not refused.
    pub(crate) fn lacks(&self, head: &SurveyHead) -> bool {
        self.known(&head.id).is_none_or(|known| known.head < *head) && !self.refused.contains(head)
    }

    /// Whether a survey may be kept, and in which slot.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn room_for(&self, survey: &Survey, head: &SurveyHead, bytes: usize, now: WallTime) -> Result<u16, NotKeptError> {
        let known = self.known(&head.id);
        if known.is_some_and(|known| known.head >= *head) {
            return Err(NotKeptError::Known);
        }
        let sampled = known.map(|known| &known.survey.plan).filter(|plan| plan.probe.is_some());
        if sampled.is_some_and(|plan| plan.probe != survey.plan.probe || plan.entries != survey.plan.entries) {
            return Err(NotKeptError::SampleChanged);
        }
        let others = || self.newest().filter(|kept| kept.head.id != head.id);
        let of_creator = || others().filter(|kept| kept.survey.creator == survey.creator);
        let lives = |survey: &Survey| survey.state_at(now) != SurveyState::Ended;
        if lives(survey) && of_creator().filter(|kept| lives(&kept.survey)).count() >= MAX_LIVING {
            return Err(NotKeptError::TooManyLiving);
        }
        if others().map(|kept| kept.signed.bytes.len()).sum::<usize>() + bytes > MAX_TOTAL_BYTES {
            return Err(NotKeptError::TooLarge);
        }
        if let Some(known) = known {
            return Ok(known.slot);
        }
        if of_creator().count() >= MAX_OF_CREATOR {
            return Err(NotKeptError::TooManyOfCreator);
        }
        let taken: BTreeSet<u16> = self.newest().map(|kept| kept.slot).collect();
        (0..MAX_SURVEYS as u16).find(|slot| !taken.contains(slot)).ok_or(NotKeptError::TooMany)
    }

    /// A survey is being stored.
    pub(crate) fn comes(&mut self, kept: Arc<KeptSurvey>) {
        self.coming.insert(kept.head.id, kept);
    }

    /// A survey is stored: it is kept from now on, unless a newer version is by now.
    pub(crate) fn stored(&mut self, kept: Arc<KeptSurvey>) {
        if self.coming.get(&kept.head.id).is_some_and(|coming| coming.head == kept.head) {
            self.coming.remove(&kept.head.id);
        }
        if self.kept.get(&kept.head.id).is_none_or(|known| known.head < kept.head) {
            self.kept.insert(kept.head.id, kept);
        }
    }

    /// A survey was refused; it is not asked for again.
    pub(crate) fn refuse(&mut self, head: SurveyHead) {
        if self.refused.len() >= MAX_REFUSED {
            self.refused.clear();
        }
        self.refused.insert(head);
    }

    /// The stored survey of a creator with a name.
    pub(crate) fn get(&self, id: &SurveyId) -> Option<&Arc<KeptSurvey>> {
        self.kept.get(id)
    }

    /// All that are stored, in the order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<KeptSurvey>> {
        self.kept.values()
    }

    /// How many are stored or being stored.
    pub(crate) fn len(&self) -> usize {
        self.newest().count()
    }

    /// Which versions are stored.
    pub(crate) fn heads(&self) -> Vec<SurveyHead> {
        self.kept.values().map(|kept| kept.head).collect()
    }

    /// Their digest: equal registers have equal ones.
    pub(crate) fn digest(&self) -> SurveysDigest {
        SurveysDigest::of(self.kept.values().map(|kept| &kept.head))
    }

    /// How many of one creator live or are paused, for those that have most.
    pub(crate) fn most_living(&self, now: WallTime) -> usize {
        let mut living: BTreeMap<AccessPoint, usize> = BTreeMap::new();
        for kept in self.newest().filter(|kept| kept.survey.state_at(now) != SurveyState::Ended) {
            *living.entry(kept.survey.creator).or_default() += 1;
        }
        living.into_values().max().unwrap_or(0)
    }

    /// The signed surveys with these ids, as many as fit into so many bytes, one at least.
    pub(crate) fn signed(&self, ids: &[SurveyId], most_bytes: usize) -> Vec<SignedSurvey> {
        let (mut bytes, mut found) = (0, Vec::new());
        for kept in ids.iter().filter_map(|id| self.kept.get(id)) {
            bytes += kept.signed.bytes.len();
            if !found.is_empty() && bytes > most_bytes {
                break;
            }
            found.push(kept.signed.clone());
        }
        found
    }
}
