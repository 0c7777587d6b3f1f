//! Queries that need answers of other members first.
//!
//! They are about a host that is new here, until its steward has answered with its address, and for tables, until the members have told
//! their parts. Each waits for a short time only.

use super::{AdmissionReply, MAX_WAITING, OptOutReply, Reply, SurveyReply};
use nearcrawl_core::crawler::Crawler;
use nearcrawl_model::{
    address::AddressPolicy,
    cross_table::{CrossTableView, Pair},
    survey::SurveyView,
    view::{Subject, WhyView},
};
use std::time::Duration;
use tokio::time::Instant;

/// For how long, at most. Looking up a name may take longer; the same query again is then answered at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// For how long a proof is waited for, less than who asked waits.
const PROOF_TIMEOUT: Duration = Duration::from_secs(9);

/// How often is looked whether the waiting queries wait for the store, which nothing announces.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Questions that wait for a steward's answer.
#[derive(Default)]
pub struct DeferredQueries {
    waiting: Vec<(Subject, Reply<WhyView>, Instant)>,
    tables: Vec<(Pair, Reply<CrossTableView>, Instant)>,
    surveys: Vec<(Made, SurveyReply, Instant)>,
    /// By the numbers of the questions.
    opt_outs: Vec<(u64, OptOutReply, Instant)>,
    /// By the numbers of the questions.
    admissions: Vec<(u64, AdmissionReply, Instant)>,
}

/// A survey with its creator, as in `universities@12D3KooW…`, and its revision.
type Made = (String, u64);

impl DeferredQueries {
    /// Whether one more question may wait.
    pub fn has_room(&self) -> bool {
        self.waiting.len() + self.tables.len() + self.surveys.len() + self.opt_outs.len() + self.admissions.len() < MAX_WAITING
    }

    /// Has this question wait.
    pub fn wait(&mut self, subject: Subject, reply: Reply<WhyView>) {
        self.waiting.push((subject, reply, Instant::now() + ANSWER_TIMEOUT));
    }

    /// Has the question for a table wait.
    pub fn wait_for_table(&mut self, by: Pair, reply: Reply<CrossTableView>) {
        self.tables.push((by, reply, Instant::now() + ANSWER_TIMEOUT));
    }

    /// Has the question wait until a survey of ours is stored.
    pub fn wait_for_survey(&mut self, made: Made, reply: SurveyReply) {
        self.surveys.push((made, reply, Instant::now() + ANSWER_TIMEOUT));
    }

    /// Has the question wait until the proof was looked for, and what follows from that is stored.
    pub fn wait_for_proof(&mut self, number: u64, reply: OptOutReply) {
        self.opt_outs.push((number, reply, Instant::now() + PROOF_TIMEOUT));
    }

    /// Answers those whose proofs were looked for, and those that have waited long enough.
    pub fn looked(&mut self, crawler: &Crawler) {
        let now = Instant::now();
        let outcome = |number: u64| crawler.view().opt_out_outcome(number);
        let is_over = |(number, _, until): &mut (u64, OptOutReply, Instant)| *until <= now || outcome(*number).is_some();
        for (number, reply, _) in self.opt_outs.extract_if(.., is_over) {
            let late = || Err("the proof is being looked for still: ask again in a while".to_owned());
            let _ = reply.send(outcome(number).unwrap_or_else(late).map(|key| crawler.view().opt_out(&key)));
        }
    }

    /// Has the question wait until a certificate or an expulsion is stored.
    pub fn wait_for_admission(&mut self, number: u64, reply: AdmissionReply) {
        self.admissions.push((number, reply, Instant::now() + ANSWER_TIMEOUT));
    }

    /// Answers those whose certificates and expulsions are stored, and those that have waited long enough.
    pub fn admitted(&mut self, crawler: &Crawler) {
        let now = Instant::now();
        let outcome = |number: u64| crawler.view().admission_outcome(number);
        let is_over = |(number, _, until): &mut (u64, AdmissionReply, Instant)| *until <= now || outcome(*number).is_some();
        for (number, reply, _) in self.admissions.extract_if(.., is_over) {
            let _ = reply.send(outcome(number).unwrap_or_else(|| Err("the disk does not answer: it may be taken in later".to_owned())));
        }
    }

    /// Answers those whose surveys are stored, and those that have waited long enough.
    pub fn stored(&mut self, crawler: &Crawler) {
        let now = Instant::now();
        let is_over = |((name, revision), _, until): &mut (Made, SurveyReply, Instant)| {
            *until <= now || of(crawler, name).is_some_and(|survey| survey.revision >= *revision)
        };
        for ((name, revision), reply, _) in self.surveys.extract_if(.., is_over) {
            let stored = of(crawler, &name).filter(|survey| survey.revision >= revision);
            let _ = reply.send(stored.ok_or_else(|| "the disk does not answer: the survey may be made later".to_owned()));
        }
    }

    /// When to look at them again, if nothing else happens before.
    pub fn due(&self) -> Option<Instant> {
        let waiting = [self.waiting.len(), self.tables.len(), self.surveys.len(), self.opt_outs.len(), self.admissions.len()];
        (waiting != [0; 5]).then(|| Instant::now() + LOOK_EVERY)
    }

    /// Takes out what can be answered by now, and what has waited long enough; all of them if the steward's answer is not taken in at
    /// present.
    pub fn settled(&mut self, crawler: &Crawler, policy: &AddressPolicy, is_gated: bool) -> Vec<(Subject, Reply<WhyView>)> {
        let now = Instant::now();
        let is_over = |(subject, _, until): &mut (Subject, Reply<WhyView>, Instant)| {
            is_gated || *until <= now || crawler.view().unlocated(subject, policy).is_none()
        };
        self.waiting.extract_if(.., is_over).map(|(subject, reply, _)| (subject, reply)).collect()
    }

    /// The same for tables.
    pub fn gathered(&mut self, crawler: &Crawler, is_gated: bool) -> Vec<(Pair, Reply<CrossTableView>)> {
        let now = Instant::now();
        let is_over =
            |(by, _, until): &mut (Pair, Reply<CrossTableView>, Instant)| is_gated || *until <= now || !crawler.view().is_gathering(*by);
        self.tables.extract_if(.., is_over).map(|(by, reply, _)| (by, reply)).collect()
    }
}

fn of(crawler: &Crawler, name: &str) -> Option<SurveyView> {
    let found = crawler.view().survey(&name.parse().ok()?).ok()?;
    Some(SurveyView { entries: Vec::new(), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{
        clock,
        config::Config,
        setup,
        state::{keyfile::NodeIdentity, persisted_state::PersistedState},
    };
    use nearcrawl_hierarchy::Builder;
    use nearcrawl_model::access_point::AccessPoint;
    use std::{collections::BTreeSet, sync::Arc};
    use tokio::sync::oneshot;

    fn crawler() -> Crawler {
        let identity = NodeIdentity { seed: [7; 32], access_point: AccessPoint([7; 32]), created: false, certificate: None };
        let persisted = PersistedState {
            incarnation: 1,
            secrets: None,
            members: BTreeSet::new(),
            addresses: Vec::new(),
            seeds: Vec::new(),
            sole: true,
            voting: Vec::new(),
            store: Default::default(),
            contacts: Vec::new(),
            surveys: Vec::new(),
            allowance: Default::default(),
            totals: None,
            acquaintances: None,
            pins: BTreeSet::new(),
            ever_in_scope: Default::default(),
            survey_probes: Vec::new(),
            opt_outs: Vec::new(),
            admissions: Vec::new(),
        };
        let (secrets, settings) = (setup::new_secrets().unwrap(), setup::settings(&Config::default(), false));
        setup::crawler(&identity, &persisted, secrets, Vec::new(), settings, Arc::new(Builder::new().finish().unwrap()), clock::now())
    }

    #[tokio::test]
    async fn nobody_waits_for_a_steward_whose_answer_is_not_taken_in() {
        let (crawler, policy, mut deferred) = (crawler(), AddressPolicy::default(), DeferredQueries::default());
        assert!(deferred.due().is_none(), "nothing wakes the loop for nobody");
        let (reply, _answer) = oneshot::channel();
        deferred.wait("museum.or.ke".parse().unwrap(), reply);
        assert!(deferred.settled(&crawler, &policy, false).is_empty(), "the steward may still answer");
        assert!(deferred.due().is_some_and(|due| due < Instant::now() + Duration::from_millis(100)), "it is soon looked again");
        assert_eq!(deferred.settled(&crawler, &policy, true).len(), 1, "the store keeps the loop from taking that in");
        assert!(deferred.due().is_none());
    }
}
