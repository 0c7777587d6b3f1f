//! What did the members' probes of a survey's sample come to? Each member is asked, by way of the daemon.

use crate::cli::{
    client::ApiClient,
    error::{CommandError, Exit},
};
use nearcrawl_model::{
    survey::{SurveyRef, SurveyView},
    survey_probes::SurveyProbes,
    view::{MemberView, counted},
};
use serde::Serialize;
use std::time::Duration;

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

/// Asks all members, one after the other.
///
/// # Errors
///
/// The daemon does not answer, or knows of no such survey.
pub async fn gather(api: &ApiClient, survey: &SurveyView) -> Result<Gathered, CommandError> {
    let which = SurveyRef { name: survey.name.clone(), creator: Some(survey.creator.to_string()) }.to_string();
    if survey.probe.is_none() {
        let why = format!("the survey {} was made without --probe: no member probes servers for it", survey.name);
        return Err(CommandError::new(Exit::Data, why).hint("`nearcrawl survey create --help` says how one with a sample is made"));
    }
    let mut members: Vec<MemberView> = api.get("/api/members", &[]).await?;
    members.sort_by_key(|member| (!member.is_me, member.access_point));
    let mut gathered = Gathered { probes: Vec::new(), missing: Vec::new() };
    for member in members {
        let of = member.access_point.to_string();
        let mut pause = FIRST_PAUSE;
        for tried in 1..=TRIES {
            match api.get("/api/survey/probes", &[("name", &which), ("of", &of)]).await {
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
pub(super) async fn placement(api: &ApiClient, survey: &SurveyView) -> Result<Option<Placement>, CommandError> {
    if survey.probe.is_none() {
        return Ok(None);
    }
    let Gathered { probes, missing } = gather(api, survey).await?;
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
