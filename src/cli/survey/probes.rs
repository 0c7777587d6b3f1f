//! Gathers the results of the members' probes of a survey's sample: each member is asked, by way of the daemon or of any member.

use crate::cli::{
    error::{CommandError, Exit},
    owners::Source,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{PublicRequest, PublicResponse},
    survey::{Survey, SurveyId, SurveyPlan, SurveyRef, SurveyView},
    survey_probes::{ProbedSurvey, SurveyProbes},
    url::Host,
    view::{Liveness, MemberView, counted},
};
use serde::Serialize;
use std::{collections::BTreeSet, time::Duration};

/// How often a member that does not answer is asked, with pauses that double.
const TRIES: u32 = 3;

const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// What the members told.
pub struct Gathered {
    /// The member that is asked for the others' first.
    pub probes: Vec<SurveyProbes>,
    /// Which members told nothing, and why.
    pub missing: Vec<String>,
}

/// A survey whose sample every member probes.
pub struct Probed {
    id: SurveyId,
    /// What it is called, with its creator.
    which: String,
    /// The hosts of its sample.
    pub sample: BTreeSet<Host>,
    /// Who is asked: the member that told this first.
    members: Vec<AccessPoint>,
}

impl Probed {
    fn of(survey: &Survey, members: Vec<AccessPoint>) -> Probed {
        let which = SurveyRef { name: survey.plan.name.clone(), creator: Some(survey.creator.to_string()) }.to_string();
        Probed { id: survey.id(), which, sample: survey.sample().into_iter().map(|(host, _)| host).collect(), members }
    }

    /// What a daemon or a member knows of the survey that is called so.
    ///
    /// # Errors
    ///
    /// There is no answer, or no such survey, or it has no sample.
    pub async fn ask(source: &mut Source, wanted: &SurveyRef) -> Result<Probed, CommandError> {
        match source {
            Source::Daemon(api) => {
                let view: SurveyView = api.get("/api/survey", &[("name", &wanted.to_string())]).await?;
                Probed::of_daemon(source, &view).await
            }
            Source::Member(..) => {
                let answer = source.ask_member(PublicRequest::ProbedSurvey(wanted.to_string())).await;
                let answer = answer.map_err(|why| {
                    CommandError::new(Exit::Unavailable, why)
                        .hint("releases before this one do not tell what was probed to who is no member")
                })?;
                let told = match answer {
                    PublicResponse::ProbedSurvey(told) => *told,
                    other => return Err(CommandError::new(Exit::Unavailable, source.refused(other))),
                };
                Probed::told(told, wanted)
            }
        }
    }

    /// The list is its creator's, and the survey the one that was asked for, whatever the member says.
    fn told(told: ProbedSurvey, wanted: &SurveyRef) -> Result<Probed, CommandError> {
        let other = |why: String| CommandError::new(Exit::Data, format!("the member's answer is not used: {why}"));
        let survey = told.signed.read().map_err(|why| other(why.to_string()))?;
        if !wanted.fits(&survey.plan.name, &survey.creator) || survey.plan.probe.is_none() {
            return Err(other(format!("it is not about a survey {wanted} with a sample")));
        }
        Ok(Probed::of(&survey, told.members))
    }

    /// The same by a view that a daemon gave.
    async fn of_daemon(source: &mut Source, view: &SurveyView) -> Result<Probed, CommandError> {
        let Source::Daemon(api) = source else { return Err(CommandError::new(Exit::Internal, "no daemon was asked".to_owned())) };
        if view.probe.is_none() {
            let why = format!("the survey {} was made without --probe: no member probes servers for it", view.name);
            return Err(CommandError::new(Exit::Data, why).hint("`nearcrawl survey create --help` says how one with a sample is made"));
        }
        let mut members: Vec<MemberView> = api.get("/api/members", &[]).await?;
        members.retain(|member| !matches!(member.liveness, Liveness::Left | Liveness::Dead));
        members.sort_by_key(|member| (!member.is_me, member.access_point));
        let plan = SurveyPlan { name: view.name.clone(), entries: view.entries.clone(), probe: view.probe, ..SurveyPlan::default() };
        let SurveyView { creator, revision, state, created_at, changed_at, .. } = *view;
        let survey = Survey { creator, revision, state, created_at, changed_at, plan };
        Ok(Probed::of(&survey, members.into_iter().map(|member| member.access_point).collect()))
    }

    /// Asks all members, one after the other.
    ///
    /// # Errors
    ///
    /// Whoever is asked for the others' does not know the survey any more, or does not answer at all.
    pub async fn gather(&self, source: &mut Source) -> Result<Gathered, CommandError> {
        let mut gathered = Gathered { probes: Vec::new(), missing: Vec::new() };
        for member in &self.members {
            let mut pause = FIRST_PAUSE;
            for tried in 1..=TRIES {
                match self.probes(source, *member).await {
                    Ok(probes) => {
                        gathered.probes.push(probes);
                        break;
                    }
                    Err(CommandError { exit: Exit::Unavailable, message, .. }) if tried == TRIES => gathered.missing.push(message),
                    Err(CommandError { exit: Exit::Unavailable, .. }) => tokio::time::sleep(pause).await,
                    Err(why) => return Err(why),
                }
                pause *= 2;
            }
        }
        Ok(gathered)
    }

    async fn probes(&self, source: &mut Source, of: AccessPoint) -> Result<SurveyProbes, CommandError> {
        if let Source::Daemon(api) = source {
            return api.get("/api/survey/probes", &[("name", &self.which), ("of", &of.to_string())]).await;
        }
        let unavailable = |why| CommandError::new(Exit::Unavailable, why);
        match source.ask_member(PublicRequest::SurveyProbes { of, survey: self.id }).await.map_err(unavailable)? {
            PublicResponse::SurveyProbes(probes) => Ok(SurveyProbes { access_point: of, ..*probes }),
            other => Err(unavailable(source.refused(other))),
        }
    }
}

/// How far the probes of a sample are.
#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    /// How many servers the sample has.
    servers: u32,
    /// How many of them the member that is asked has probed.
    probed: u32,
    /// How many members there are.
    members: u64,
    /// How many of them have probed all.
    members_whole: u64,
    /// Whose probes are missing, and why.
    missing_text: Vec<String>,
}

/// How far they are; none of a survey without a sample.
pub(super) async fn placement(source: &mut Source, survey: &SurveyView) -> Result<Option<Placement>, CommandError> {
    if survey.probe.is_none() {
        return Ok(None);
    }
    let probed = Probed::of_daemon(source, survey).await?;
    let Gathered { probes, missing } = probed.gather(source).await?;
    let ours = probes.first();
    Ok(Some(Placement {
        servers: ours.map_or(0, |ours| ours.servers),
        probed: ours.map_or(0, SurveyProbes::done),
        members: (probes.len() + missing.len()) as u64,
        members_whole: probes.iter().filter(|probes| probes.is_whole()).count() as u64,
        missing_text: probes.iter().filter_map(unfinished).chain(missing).collect(),
    }))
}

/// What a member has still to probe, if anything, as the start of a sentence.
pub fn unfinished(probes: &SurveyProbes) -> Option<String> {
    if probes.is_whole() {
        return None;
    }
    let waits = [
        (probes.waiting_for_budget, "for their subnets' budget of contacts"),
        (probes.waiting_for_address, "for their addresses"),
        (probes.waiting_for_turn, "for a turn at their owners"),
    ];
    let waits: Vec<String> =
        waits.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} wait {what}")).collect();
    let waits = if waits.is_empty() { String::new() } else { format!(" ({})", waits.join(", ")) };
    Some(format!("{} has probed {} of {} so far{waits}", probes.access_point.short(), probes.done(), counted(probes.servers, "server")))
}

impl Placement {
    /// As a sentence.
    pub(super) fn text(&self) -> String {
        let missing = if self.missing_text.is_empty() { String::new() } else { format!(": {}", self.missing_text.join("; ")) };
        format!(
            "placement: {} of {} probed by this member, {} of {} whole{missing}",
            self.probed,
            counted(self.servers, "server"),
            self.members_whole,
            counted(self.members, "member")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        survey_probes::{ProbeOutcome, ProbedServer},
        time::WallTime,
    };

    #[test]
    fn a_member_that_is_not_whole_says_what_it_waits_for() {
        let row = |host: &str, outcome| ProbedServer { host: host.parse().unwrap(), address: None, at: WallTime(0), outcome, rtt_us: None };
        let mut probes = SurveyProbes {
            access_point: AccessPoint([7; 32]),
            address: None,
            servers: 4,
            denied: 1,
            waiting_for_budget: 1,
            waiting_for_address: 0,
            waiting_for_turn: 0,
            rows: vec![row("a.ke", ProbeOutcome::NoAnswer), row("b.ke", ProbeOutcome::UnderWay)],
            round_trips: Vec::new(),
        };
        let said = unfinished(&probes).unwrap();
        assert!(said.ends_with(" has probed 1 of 4 servers so far (1 wait for their subnets' budget of contacts)"), "{said}");
        probes.rows.push(row("c.ke", ProbeOutcome::NoAddress));
        probes.rows[1].outcome = ProbeOutcome::Interrupted;
        assert_eq!(unfinished(&probes), None, "three are done, and the fourth is denied");
    }
}
