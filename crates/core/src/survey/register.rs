//! Register of surveys, with its limits.
//!
//! The greatest revision of each is kept; of two with one number, that with the greater digest.

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
    /// It has ended, and its creator has as many as it may that ended later.
    #[error("this access point has {MAX_OF_CREATOR} surveys that ended later, the most that are allowed")]
    TooManyOfCreator,
    /// The swarm has as many as it may, and none that may be dropped.
    #[error("the swarm keeps {MAX_SURVEYS} surveys and no more, and all of them are running or paused")]
    TooMany,
    /// The swarm's surveys take as much room as they may, and none may be dropped.
    #[error("the surveys that run or are paused take {} MiB and may take no more", MAX_TOTAL_BYTES >> 20)]
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

/// Where a survey is stored, and which ones that have ended are dropped for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) slot: u16,
    pub(crate) dropped: Vec<SurveyId>,
}

/// Since when a survey has ended, with its id: all members put those that have ended in the same order. None if it has not.
fn ended_since(survey: &Survey, id: SurveyId, now: WallTime) -> Option<(WallTime, SurveyId)> {
    let said = (survey.state == SurveyState::Ended).then_some(survey.changed_at);
    let since = survey.plan.ends_at.filter(|end| *end <= now).into_iter().chain(said).min()?;
    Some((since, id))
}

/// The surveys that are kept here, and those that are being stored.
#[derive(Debug, Default)]
pub(crate) struct Register {
    kept: BTreeMap<SurveyId, Arc<KeptSurvey>>,
    /// The newest version of each that is being stored.
    coming: BTreeMap<SurveyId, Arc<KeptSurvey>>,
    refused: BTreeSet<SurveyHead>,
    /// The last version of those that were dropped: it and earlier ones, which may not have ended, are not taken in again.
    dropped: BTreeMap<SurveyId, SurveyHead>,
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
        let is_newer = self.known(&head.id).is_none_or(|known| known.head < *head);
        is_newer && !self.was_dropped(head) && !self.refused.contains(head)
    }

    fn was_dropped(&self, head: &SurveyHead) -> bool {
        self.dropped.get(&head.id).is_some_and(|dropped| *head <= *dropped)
    }

    /// Whether a survey may be kept here, at `me`.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn room_for(
        &self,
        me: &AccessPoint,
        survey: &Survey,
        head: &SurveyHead,
        bytes: usize,
        now: WallTime,
    ) -> Result<Room, NotKeptError> {
        let known = self.known(&head.id);
        if known.is_some_and(|known| known.head >= *head) || self.was_dropped(head) {
            return Err(NotKeptError::Known);
        }
        let sampled = known.map(|known| &known.survey.plan).filter(|plan| plan.probe.is_some());
        if sampled.is_some_and(|plan| plan.probe != survey.plan.probe || plan.entries != survey.plan.entries) {
            return Err(NotKeptError::SampleChanged);
        }
        let lives = |kept: &&Arc<KeptSurvey>| ended_since(&kept.survey, kept.head.id, now).is_none();
        let of_creator = || self.newest().filter(|kept| kept.head.id != head.id && kept.survey.creator == survey.creator);
        if ended_since(survey, head.id, now).is_none() && of_creator().filter(lives).count() >= MAX_LIVING {
            return Err(NotKeptError::TooManyLiving);
        }
        let crowded = known.is_none() && of_creator().count() >= MAX_OF_CREATOR;
        let dropped = self.making_room(me, survey, head, bytes, crowded, now)?;
        let slot = known.map(|known| known.slot).or_else(|| {
            let taken: BTreeSet<u16> = self.newest().filter(|kept| !dropped.contains(&kept.head.id)).map(|kept| kept.slot).collect();
            (0..MAX_SURVEYS as u16).find(|slot| !taken.contains(slot))
        });
        slot.map(|slot| Room { slot, dropped }).ok_or(NotKeptError::TooMany)
    }

    /// Which surveys that have ended are dropped for one: those that ended first, of its creator's if that one is `crowded`. Their creators keep
    /// them: whoever never heard that one ended hears it from there.
    fn making_room(
        &self,
        me: &AccessPoint,
        survey: &Survey,
        head: &SurveyHead,
        mut bytes: usize,
        crowded: bool,
        now: WallTime,
    ) -> Result<Vec<SurveyId>, NotKeptError> {
        let limit = ended_since(survey, head.id, now);
        let others: Vec<_> = self.newest().filter(|kept| kept.head.id != head.id).collect();
        let stored = others.iter().filter(|kept| !self.coming.contains_key(&kept.head.id));
        let ended = stored.filter_map(|kept| Some((ended_since(&kept.survey, kept.head.id, now)?, *kept)));
        let mut ended: BTreeMap<_, _> = ended.filter(|(since, _)| limit.is_none_or(|limit| *since < limit)).collect();
        bytes += others.iter().map(|kept| kept.signed.bytes.len()).sum::<usize>();
        let (mut count, mut dropped) = (others.len() + 1, Vec::new());
        let mut crowded = crowded;
        while crowded || count > MAX_SURVEYS || bytes > MAX_TOTAL_BYTES {
            let may_go = |kept: &KeptSurvey| if crowded { kept.survey.creator == survey.creator } else { kept.survey.creator != *me };
            let first = ended.iter().find(|(_, kept)| may_go(kept)).map(|(since, _)| *since);
            let Some(gone) = first.and_then(|since| ended.remove(&since)) else {
                return Err(match (crowded, count > MAX_SURVEYS) {
                    (true, _) => NotKeptError::TooManyOfCreator,
                    (_, true) => NotKeptError::TooMany,
                    _ => NotKeptError::TooLarge,
                });
            };
            (count, bytes, crowded) = (count - 1, bytes - gone.signed.bytes.len(), false);
            dropped.push(gone.head.id);
        }
        Ok(dropped)
    }

    /// One that has ended makes room for another, which is stored in its place.
    pub(crate) fn drop_ended(&mut self, id: &SurveyId) {
        let Some(gone) = self.kept.remove(id) else { return };
        if self.dropped.len() >= MAX_REFUSED {
            self.dropped.pop_first();
        }
        self.dropped.insert(*id, gone.head);
    }

    /// How many of this creator's are kept, with those that have ended.
    pub(crate) fn count_of(&self, creator: &AccessPoint) -> usize {
        self.newest().filter(|kept| kept.survey.creator == *creator).count()
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
