//! Queries to members' logs of requests: whether the swarm made a request to an address at a certain time, and by which rule.
//!
//! The answer is for the owner of a web site who asks: time, rule and host of each request, and no more of it.

use super::{access_point::AccessPoint, ownership_map::at_most, time::WallTime, url::Host};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::net::IpAddr;
use utoipa::ToSchema;

/// Requests of one member that are named; all are counted.
pub const MAX_MADE: usize = 100;

/// The longest time that may be asked about, in milliseconds: two days.
pub const MAX_ASKED_SPAN: u64 = 2 * 86_400_000;

/// A request may end so long after it began, in milliseconds: only then it is written into a log.
pub const LATEST_END: u64 = 600_000;

/// Members in one answer.
const MAX_MEMBERS: usize = 4_096;

/// Bytes of the word that names a rule.
const MAX_RULE: usize = 32;

/// Which requests are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestsQuery {
    /// The address of the server.
    pub address: IpAddr,
    /// Requests that began from then on.
    pub from: WallTime,
    /// Until then, at most [`MAX_ASKED_SPAN`] later.
    pub until: WallTime,
}

impl RequestsQuery {
    /// Whether the time is one that may be asked about.
    pub fn is_fair(&self) -> bool {
        self.until.0.checked_sub(self.from.0).is_some_and(|span| span <= MAX_ASKED_SPAN)
    }

    /// When all requests of that time have ended and been written: no log says no before.
    pub fn known_at(&self) -> WallTime {
        WallTime(self.until.0.saturating_add(LATEST_END))
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeRequest {
    /// When it was begun.
    #[schema(value_type = String)]
    pub asked_at: WallTime,
    /// By which rule it was made, one word: see docs/OPERATING.md.
    #[serde(deserialize_with = "word")]
    pub reason: String,
    /// Whom it was for; none of a request to an address without a name.
    #[schema(value_type = Option<String>)]
    pub host: Option<Host>,
}

fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let word = String::deserialize(deserializer)?;
    let is_word = word.len() <= MAX_RULE && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if is_word { Ok(word) } else { Err(de::Error::custom("a rule is one lower-case word")) }
}

/// Why a member's log does not say whether there was another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Uncovered {
    /// It keeps no log.
    NoLog,
    /// Its log begins later.
    BeginsLater,
    /// Lines are missing at that time.
    LinesMissing,
    /// It was killed about then, and what was under way is missing.
    Killed,
    /// Requests of that time may be under way: they are written when they have ended. See [`RequestsQuery::known_at`].
    TooRecent,
}

/// What a member's log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestsMade {
    /// How many requests.
    pub requests: u64,
    /// The first of them.
    #[serde(deserialize_with = "at_most::<_, _, MAX_MADE>")]
    pub lines: Vec<MadeRequest>,
    /// Why there may have been others; none if there were not.
    pub uncovered: Option<Uncovered>,
}

/// What is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There was such a request.
    Yes,
    /// There was none.
    No,
    /// It cannot be known.
    Unknown,
}

impl RequestsMade {
    /// What follows from it.
    pub fn verdict(&self) -> Verdict {
        match (self.requests, self.uncovered) {
            (1.., _) => Verdict::Yes,
            (0, None) => Verdict::No,
            (0, Some(_)) => Verdict::Unknown,
        }
    }
}

/// What a member says of its requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberRequests {
    /// The member: it would have made them.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Whether it made such a request; unknown if it did not answer.
    pub verdict: Verdict,
    /// How many.
    pub requests: u64,
    /// The first of them.
    #[serde(deserialize_with = "at_most::<_, _, MAX_MADE>")]
    pub lines: Vec<MadeRequest>,
    /// Why its log does not say whether there was another one; none if it does, or there is no answer.
    pub uncovered: Option<Uncovered>,
    /// Whether it answered.
    pub answered: bool,
}

impl MemberRequests {
    /// What a member answered; none if it did not.
    pub fn of(access_point: AccessPoint, made: Option<RequestsMade>) -> MemberRequests {
        let answered = made.is_some();
        let verdict = made.as_ref().map_or(Verdict::Unknown, RequestsMade::verdict);
        let RequestsMade { requests, lines, uncovered } = made.unwrap_or(RequestsMade { requests: 0, lines: Vec::new(), uncovered: None });
        MemberRequests { access_point, verdict, requests, lines, uncovered, answered }
    }
}

/// What all members say together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestsView {
    /// Yes if any member made one, no if none did, unknown if some did not answer or cannot know.
    pub verdict: Verdict,
    /// The address that was asked about.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// From when on.
    #[schema(value_type = String)]
    pub from_at: WallTime,
    /// Until when.
    #[schema(value_type = String)]
    pub until_at: WallTime,
    /// Each member, those that made one first.
    #[serde(deserialize_with = "at_most::<_, _, MAX_MEMBERS>")]
    pub members: Vec<MemberRequests>,
}

impl RequestsView {
    /// Of what the members said.
    pub fn new(query: &RequestsQuery, mut members: Vec<MemberRequests>) -> RequestsView {
        members.sort_by_key(|member| (member.verdict != Verdict::Yes, member.verdict == Verdict::No, member.access_point));
        members.truncate(MAX_MEMBERS);
        let verdict = match members.first().map(|first| first.verdict) {
            Some(Verdict::Yes) => Verdict::Yes,
            Some(Verdict::No) => Verdict::No,
            Some(Verdict::Unknown) | None => Verdict::Unknown,
        };
        RequestsView { verdict, address: query.address, from_at: query.from, until_at: query.until, members }
    }

    /// With fewer requests named, if it would take more bytes than that as a message: `requests` of a member still says how many there were.
    #[must_use]
    pub fn fitting(mut self, most: usize) -> RequestsView {
        // The number of lines of a member takes less than this.
        const NUMBERS: usize = 10;
        let length = |made: &MadeRequest| postcard::experimental::serialized_size(made).unwrap_or(usize::MAX);
        let lines: Vec<Vec<MadeRequest>> = self.members.iter_mut().map(|member| std::mem::take(&mut member.lines)).collect();
        let bare = postcard::experimental::serialized_size(&self).unwrap_or(usize::MAX).saturating_add(NUMBERS * lines.len());
        let mut room = most.saturating_sub(bare);
        let mut lines: Vec<_> = lines.into_iter().map(Vec::into_iter).collect();
        // One of each member after the other, so that none is left out for what another one has.
        while lines.iter().any(|lines| lines.len() > 0) {
            for (member, lines) in self.members.iter_mut().zip(&mut lines) {
                let Some(made) = lines.next() else { continue };
                match room.checked_sub(length(&made)) {
                    None => return self,
                    Some(left) => room = left,
                }
                member.lines.push(made);
            }
        }
        self
    }

    /// Members that did not answer.
    pub fn silent(&self) -> impl Iterator<Item = AccessPoint> {
        self.members.iter().filter(|member| !member.answered).map(|member| member.access_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(requests: u64, uncovered: Option<Uncovered>) -> Option<RequestsMade> {
        Some(RequestsMade { requests, lines: Vec::new(), uncovered })
    }

    fn verdict(members: &[Option<RequestsMade>]) -> Verdict {
        let query = RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(0), until: WallTime(1) };
        let members = members.iter().zip(1..).map(|(made, number)| MemberRequests::of(AccessPoint([number; 32]), made.clone()));
        RequestsView::new(&query, members.collect()).verdict
    }

    #[test]
    fn one_yes_is_a_yes_and_only_all_are_a_no() {
        assert_eq!(verdict(&[made(0, None), made(2, Some(Uncovered::Killed)), None]), Verdict::Yes);
        assert_eq!(verdict(&[made(0, None), made(0, None)]), Verdict::No);
        assert_eq!(verdict(&[made(0, None), None]), Verdict::Unknown, "one does not answer");
        assert_eq!(verdict(&[made(0, None), made(0, Some(Uncovered::NoLog))]), Verdict::Unknown);
        assert_eq!(verdict(&[]), Verdict::Unknown);
    }

    #[test]
    fn an_answer_fits_into_its_message_and_says_how_many_requests_are_not_named() {
        let query = RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(0), until: WallTime(1) };
        let line =
            MadeRequest { asked_at: WallTime(5), reason: "second-try".to_owned(), host: format!("{}.ke", "a".repeat(60)).parse().ok() };
        let members = (0..200).map(|number| {
            let made = RequestsMade { requests: 300, lines: vec![line.clone(); if number == 7 { 3 } else { MAX_MADE }], uncovered: None };
            MemberRequests::of(AccessPoint([number; 32]), Some(made))
        });
        let whole = RequestsView::new(&query, members.collect());
        let length = |view: &RequestsView| postcard::to_stdvec(view).unwrap().len();
        let most = 200_000;
        assert!(length(&whole) > 2 * most);
        let fitting = whole.clone().fitting(most);
        assert!(length(&fitting) <= most && length(&fitting) > most - 10_000, "{} bytes", length(&fitting));
        assert!(fitting.members.iter().all(|member| member.requests == 300 && member.lines.len() >= 3));
        assert_eq!(whole.clone().fitting(usize::MAX), whole);
        assert!(whole.fitting(0).members.iter().all(|member| member.lines.is_empty()));
    }

    #[test]
    fn a_rule_is_one_word_and_a_time_two_days_at_most() {
        let line = |reason: &str| MadeRequest { asked_at: WallTime(5), reason: reason.to_owned(), host: None };
        let read = |line: &MadeRequest| postcard::from_bytes::<MadeRequest>(&postcard::to_stdvec(line).unwrap());
        assert_eq!(read(&line("second-try")), Ok(line("second-try")));
        assert!(read(&line("<script>")).is_err() && read(&line(&"a".repeat(MAX_RULE + 1))).is_err());
        let asked = |from, until| RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(from), until: WallTime(until) };
        assert!(asked(5, 5).is_fair() && !asked(6, 5).is_fair() && !asked(0, MAX_ASKED_SPAN + 1).is_fair());
    }
}
