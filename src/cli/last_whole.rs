//! The last whole sums over rows answer while rows are missing, as the last consistent totals do.
//!
//! While a dead member's subnets are taken over nobody has their rows. Rows are summed by who asks for them: so it keeps what they came to
//! when all were there, in the cache directory of its user ([`super::kept_files`]), and gives it to the daemon that it asked, where it may
//! change something. So whoever asks that daemon next is told them, too. They answer for [`KEPT`](nearcrawl_core::report::KEPT) at most, then
//! the newest do.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    kept_files::KeptFile,
    owners::Source,
};
use crate::node::{
    api::{KeptSumsView, SumsBody},
    clock,
};
use nearcrawl_model::{
    survey::{SurveyRef, SurveyView},
    time::Millis,
    view::Age,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    env,
    path::{Path, PathBuf},
};

/// How old sums are that answer in place of the newest, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// How long ago all rows were there, in milliseconds; none if these are the newest sums.
    pub consistent_age_ms: Option<Millis>,
    /// Why the newest do not answer.
    pub in_transition_text: Option<String>,
}

impl Standing {
    /// In words, as of totals; none of the newest.
    pub fn sentence(&self) -> Option<String> {
        let (age, why) = self.consistent_age_ms.zip(self.in_transition_text.as_deref())?;
        Some(format!("in transition: last consistent totals, as they were {} ago: {why}", Age(age)))
    }

    /// For columns of the same names.
    pub fn columns(&self) -> [String; 2] {
        [self.consistent_age_ms.map(|age| age.to_string()).unwrap_or_default(), self.in_transition_text.clone().unwrap_or_default()]
    }
}

/// Sums over rows.
pub trait Sums: Serialize + DeserializeOwned {
    /// Whose rows are missing, and why.
    fn missing(&self) -> &[String];
    /// Whether any of the sums over all servers is less than in those.
    fn is_less_than(&self, than: &Self) -> bool;
    /// Where they say how old they are.
    fn standing(&mut self) -> &mut Standing;
}

/// A question that rows answer, whom it is asked of, and where answers are kept.
pub struct OfRows<'a> {
    /// The directory; nothing is kept there if there is none.
    pub directory: Option<&'a Path>,
    /// What is asked, so that other questions are told apart.
    pub what: String,
    /// The survey that is asked about, if it is one; another one of its name, or another revision of it, is another question.
    pub survey: Option<&'a SurveyRef>,
    /// The member over the network that is asked, instead of a daemon.
    pub member: Option<&'a str>,
    /// The daemon that is asked.
    pub api: &'a ApiArgs,
}

/// The directory of this user, if it has one.
pub fn of_user() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join(env!("CARGO_PKG_NAME")).join("sums"))
}

/// By how much sums at the daemon may be younger than this user's and count as the same: a command gives them to both.
const MAX_BETWEEN: Millis = 10_000;

/// Sums that are kept.
struct KeptSums<T> {
    sums: T,
    age: Millis,
    /// Whether another command gave them to the daemon, which believes it unread.
    is_of_others: bool,
}

/// The survey that a name leads to; the name alone does not say which one it was when sums were kept. None if that is not known.
async fn survey_of(survey: &SurveyRef, daemon: Option<&ApiClient>) -> Option<String> {
    let Some(daemon) = daemon else { return survey.creator.is_some().then(|| survey.to_string()) };
    let view: SurveyView = daemon.get("/api/survey", &[("name", &survey.to_string())]).await.ok()?;
    Some(format!("{}@{}, revision {}", view.name, view.creator, view.revision))
}

/// Where the sums of a question are kept: with this user, and at the daemon that is asked.
struct Places {
    question: String,
    file: Option<KeptFile>,
    daemon: Option<ApiClient>,
}

impl Places {
    /// None if nobody says which swarm or which survey is asked about.
    async fn of(question: &OfRows<'_>) -> Option<Places> {
        let daemon = if question.member.is_none() { Some(ApiClient::new(question.api).ok()?) } else { None };
        let of = match (question.member, &daemon) {
            // Without its key another one may be found at the address the next time.
            (Some(member), _) => member.trim().rsplit_once("/p2p/").map(|(_, key)| key.to_owned())?,
            (None, Some(daemon)) => {
                let status: Value = daemon.get("/api/status", &[]).await.ok()?;
                format!("{} {}", status["swarm"], status["access_point"])
            }
            (None, None) => return None,
        };
        let survey = match question.survey {
            Some(survey) => format!(" of survey {}", survey_of(survey, daemon.as_ref()).await?),
            None => String::new(),
        };
        let question_text = format!("{} {of} {}{survey}", env!("CARGO_PKG_VERSION"), question.what);
        let file = question.directory.map(|directory| KeptFile::of(directory, &question_text));
        Some(Places { question: question_text, file, daemon })
    }

    /// The youngest sums that are kept and may still answer.
    async fn read<T: Sums>(&self) -> Option<KeptSums<T>> {
        let by_user = self.file.as_ref().and_then(|file| file.read::<T>(&self.question, clock::now()));
        let told = match &self.daemon {
            Some(daemon) => daemon.get::<KeptSumsView>("/api/sums", &[("question", &self.question)]).await.ok(),
            None => None,
        };
        let by_daemon = told.and_then(|told| Some((serde_json::from_value::<T>(told.sums).ok()?, told.age_ms?)));
        youngest(by_user, by_daemon)
    }

    /// Keeps them. What cannot be kept does not answer later; now it does.
    async fn keep<T: Sums>(&self, sums: &T) {
        if let Some(file) = &self.file {
            let _ = file.keep(&self.question, sums, clock::now());
        }
        if let (Some(daemon), Ok(sums)) = (&self.daemon, serde_json::to_value(sums)) {
            let body = SumsBody { question: self.question.clone(), sums };
            let _: Result<Value, CommandError> = daemon.post("/api/sums", &body).await;
        }
    }
}

/// The sums that this user was told, unless the daemon was given younger ones by somebody else.
fn youngest<T>(by_user: Option<(T, Millis)>, by_daemon: Option<(T, Millis)>) -> Option<KeptSums<T>> {
    let until = by_daemon.as_ref().map_or(Millis::MAX, |(_, age)| age.saturating_add(MAX_BETWEEN));
    let by_user = by_user.filter(|(_, age)| *age <= until).map(|(sums, age)| KeptSums { sums, age, is_of_others: false });
    by_user.or_else(|| by_daemon.map(|(sums, age)| KeptSums { sums, age, is_of_others: true }))
}

/// Answers with these sums, which are kept if they are whole, or with the last whole ones.
pub async fn last_whole<T: Sums>(question: OfRows<'_>, newest: Result<T, CommandError>) -> Result<T, CommandError> {
    let Some(places) = Places::of(&question).await else { return newest };
    let kept = places.read::<T>().await;
    let why = match &newest {
        Ok(sums) if !sums.missing().is_empty() => Some(format!("servers are missing: {}", sums.missing().join("; "))),
        // Owners may be about to read what came to them: sums that fell meanwhile lack it.
        Ok(sums) if kept.as_ref().is_some_and(|kept| sums.is_less_than(&kept.sums)) => changing(&question).await,
        // Whoever sums for a daemon that has answered; a member over the network may be away, and then nothing is known.
        Err(failure) if failure.exit == Exit::Unavailable && question.member.is_none() => Some(failure.message.clone()),
        Ok(_) | Err(_) => None,
    };
    match (why, kept) {
        (Some(why), Some(KeptSums { mut sums, age, is_of_others })) => {
            let why = if is_of_others { format!("{why}; the sums are as another command gave them to the daemon") } else { why };
            *sums.standing() = Standing { consistent_age_ms: Some(age), in_transition_text: Some(why) };
            Ok(sums)
        }
        (Some(_), None) => newest,
        (None, _) => {
            if let Ok(sums) = &newest {
                places.keep(sums).await;
            }
            newest
        }
    }
}

/// Why sums may lack what changes hands; none if nothing does.
async fn changing(question: &OfRows<'_>) -> Option<String> {
    let mut source = Source::of(question.member, question.api.api.as_deref()).await.ok()?;
    source.in_transition().await.map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::summary::Counts;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Servers {
        missing: Vec<String>,
        total: Counts,
        standing: Standing,
    }

    impl Sums for Servers {
        fn missing(&self) -> &[String] {
            &self.missing
        }

        fn is_less_than(&self, than: &Servers) -> bool {
            self.total.is_less_than(&than.total)
        }

        fn standing(&mut self) -> &mut Standing {
            &mut self.standing
        }
    }

    fn servers(servers: u64, missing: &[&str]) -> Servers {
        let missing = missing.iter().map(|&who| who.to_owned()).collect();
        Servers { missing, total: Counts { servers, ..Counts::default() }, standing: Standing::default() }
    }

    async fn told(directory: &Path, what: &str, newest: Result<Servers, CommandError>) -> Result<(u64, bool), Exit> {
        told_of(directory, what, None, newest).await
    }

    async fn told_of(
        directory: &Path,
        what: &str,
        survey: Option<&SurveyRef>,
        newest: Result<Servers, CommandError>,
    ) -> Result<(u64, bool), Exit> {
        let api = ApiArgs { api: None, json: false };
        // Over the network, from which nothing answers.
        let member = "/ip4/127.0.0.1/tcp/9/p2p/12D3KooWQfU99zDmYpNoxHXXQGLkNAzBE7TyAmzwJWWYcC4WcgiK";
        let question = OfRows { directory: Some(directory), what: what.to_owned(), survey, member: Some(member), api: &api };
        let told = last_whole(question, newest).await.map_err(|why| why.exit)?;
        assert_eq!(told.standing.sentence().is_some(), told.standing.consistent_age_ms.is_some());
        Ok((told.total.servers, told.standing.consistent_age_ms.is_some()))
    }

    #[tokio::test]
    async fn sums_without_some_rows_give_way_to_the_last_whole_ones() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("sums");
        assert_eq!(told(&at, "a", Ok(servers(3, &["x: silent"]))).await, Ok((3, false)), "there is nothing else");
        assert_eq!(told(&at, "a", Ok(servers(9, &[]))).await, Ok((9, false)));
        assert_eq!(told(&at, "a", Ok(servers(3, &["x: silent"]))).await, Ok((9, true)));
        assert_eq!(told(&at, "a", Err(CommandError::new(Exit::Unavailable, "nothing answers there"))).await, Err(Exit::Unavailable));
        assert_eq!(told(&at, "a", Err(CommandError::new(Exit::Data, "several surveys"))).await, Err(Exit::Data));
        assert_eq!(told(&at, "b", Ok(servers(3, &["x: silent"]))).await, Ok((3, false)), "another question");
        assert_eq!(told(&at, "a", Ok(servers(8, &[]))).await, Ok((8, false)), "nothing changes hands: it is less for another reason");
        assert_eq!(told(&at, "a", Ok(servers(3, &["x: silent"]))).await, Ok((8, true)));
    }

    #[tokio::test]
    async fn over_the_network_a_name_without_its_creator_leads_to_no_sums_of_before() {
        let directory = tempfile::tempdir().unwrap();
        for (survey, is_kept) in [("unis", false), ("unis@Wcgi", true), ("unis@aaaa", true)] {
            let survey: SurveyRef = survey.parse().unwrap();
            let told = async |newest| told_of(directory.path(), "a", Some(&survey), Ok(newest)).await;
            assert_eq!(told(servers(3, &["x: silent"])).await, Ok((3, false)), "{survey}: sums of another survey do not answer");
            assert_eq!(told(servers(9, &[])).await, Ok((9, false)));
            assert_eq!(told(servers(3, &["x: silent"])).await, Ok(if is_kept { (9, true) } else { (3, false) }), "{survey}");
        }
    }

    #[test]
    fn what_a_user_was_told_answers_unless_others_gave_the_daemon_younger_sums() {
        let which = |by_user, by_daemon| youngest(by_user, by_daemon).map(|kept| (kept.sums, kept.age, kept.is_of_others));
        assert_eq!(which(Some(("mine", 5_000)), None), Some(("mine", 5_000, false)));
        assert_eq!(which(None, Some(("theirs", 5_000))), Some(("theirs", 5_000, true)));
        assert_eq!(which(Some(("mine", 5_000)), Some(("mine", 4_900))), Some(("mine", 5_000, false)), "it was given them a moment later");
        assert_eq!(which(Some(("mine", 60_000)), Some(("theirs", 5_000))), Some(("theirs", 5_000, true)));
        assert_eq!(which(None, None), None);
    }
}
