//! The last whole sums over rows answer while rows are missing, as the last consistent totals do.
//!
//! While a dead member's subnets are taken over nobody has their rows. Rows are summed by who asks for them: so it keeps what they came to
//! when all were there, in the cache directory of its user, with a file for each question. They answer for [`KEPT`] at most, then the
//! newest do.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    owners::Source,
};
use crate::{io::snapshot, node::clock};
use nearcrawl_core::report::KEPT;
use nearcrawl_model::{
    summary::{Counts, SwarmResults},
    time::{Millis, WallTime},
    view::Age,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    cmp::Reverse,
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Questions whose sums are kept at once: beyond that the oldest are removed.
const MAX_KEPT: usize = 32;

/// The longest sums that are kept, in bytes.
const MAX_BYTES: usize = 16 << 20;

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
    /// The sums over all servers.
    fn total(&self) -> &Counts;
    /// Where they say how old they are.
    fn standing(&mut self) -> &mut Standing;
}

/// What is in a file.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    question: String,
    at: WallTime,
    sums: T,
}

/// A question that rows answer, whom it is asked of, and where answers are kept.
pub struct OfRows<'a> {
    /// The directory; nothing is kept if there is none.
    pub directory: Option<&'a Path>,
    /// What is asked, so that other questions are told apart.
    pub what: String,
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

/// Answers with these sums, which are kept if they are whole, or with the last whole ones.
pub async fn last_whole<T: Sums>(question: OfRows<'_>, newest: Result<T, CommandError>) -> Result<T, CommandError> {
    let Some(directory) = question.directory else { return newest };
    let Some(asked) = whole_question(&question).await else { return newest };
    let (file, now) = (directory.join(name_of(&asked)), clock::now().wall);
    let kept = read::<T>(&file, &asked, now);
    let why = match &newest {
        Ok(sums) if !sums.missing().is_empty() => Some(format!("servers are missing: {}", sums.missing().join("; "))),
        // Owners may be about to read what came to them: sums that fell meanwhile lack it.
        Ok(sums) if kept.as_ref().is_some_and(|(kept, _)| sums.total().is_less_than(kept.total())) => changing(&question).await,
        // Whoever sums for a daemon that has answered; a member over the network may be away, and then nothing is known.
        Err(failure) if failure.exit == Exit::Unavailable && question.member.is_none() => Some(failure.message.clone()),
        Ok(_) | Err(_) => None,
    };
    match (why, kept) {
        (Some(why), Some((mut sums, age))) => {
            *sums.standing() = Standing { consistent_age_ms: Some(age), in_transition_text: Some(why) };
            Ok(sums)
        }
        (Some(_), None) => newest,
        (None, _) => {
            if let Ok(sums) = &newest {
                // What cannot be kept does not answer later; now it does.
                let _ = keep(directory, &file, &Kept { question: asked, at: now, sums });
            }
            newest
        }
    }
}

/// The question with what tells swarms and builds apart; none if the daemon does not answer.
async fn whole_question(question: &OfRows<'_>) -> Option<String> {
    let of = match question.member {
        // Without its key another one may be found at the address the next time.
        Some(member) => member.trim().rsplit_once("/p2p/").map(|(_, key)| key.to_owned())?,
        None => {
            let status: Value = ApiClient::new(question.api).ok()?.get("/api/status", &[]).await.ok()?;
            format!("{} {}", status["swarm"], status["access_point"])
        }
    };
    Some(format!("{} {of} {}", env!("CARGO_PKG_VERSION"), question.what))
}

/// Why sums may lack what changes hands; none if nothing does.
async fn changing(question: &OfRows<'_>) -> Option<String> {
    let mut source = Source::of(question.member, question.api.api.as_deref()).await.ok()?;
    let SwarmResults { consistent_age_ms, in_transition_text, .. } = source.totals().await.ok()?;
    consistent_age_ms.map(|_| in_transition_text.unwrap_or_else(|| "subnets change hands".to_owned()))
}

fn name_of(question: &str) -> String {
    let mut hasher = DefaultHasher::new();
    question.hash(&mut hasher);
    format!("{:016x}.json", hasher.finish())
}

/// What is kept of the question, and how old it is; none if that is too old.
fn read<T: Sums>(file: &Path, question: &str, now: WallTime) -> Option<(T, Millis)> {
    let kept: Kept<T> = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let age = now.0.checked_sub(kept.at.0).filter(|age| *age <= KEPT && kept.question == question)?;
    Some((kept.sums, age))
}

fn keep<T: Serialize>(directory: &Path, file: &Path, kept: &Kept<T>) -> Option<()> {
    let bytes = serde_json::to_vec(kept).ok().filter(|bytes| bytes.len() <= MAX_BYTES)?;
    fs::create_dir_all(directory).ok()?;
    snapshot::write(file, &bytes).ok()?;
    tidy(directory, file)
}

/// Removes what is too old to answer, and the oldest beyond the limit, but not what was written just now.
fn tidy(directory: &Path, written: &Path) -> Option<()> {
    let changed = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(directory).ok()?.filter_map(|entry| changed(entry.ok()?)).collect();
    files.sort_unstable_by_key(|(at, path)| Reverse((path == written, *at)));
    let is_old = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > Duration::from_millis(KEPT));
    for (_, path) in files.iter().enumerate().filter(|(place, (at, _))| *place >= MAX_KEPT || is_old(at)).map(|(_, file)| file) {
        let _ = fs::remove_file(path);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

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

        fn total(&self) -> &Counts {
            &self.total
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
        let api = ApiArgs { api: None, json: false };
        // Over the network, from which nothing answers.
        let member = "/ip4/127.0.0.1/tcp/9/p2p/12D3KooWQfU99zDmYpNoxHXXQGLkNAzBE7TyAmzwJWWYcC4WcgiK";
        let question = OfRows { directory: Some(directory), what: what.to_owned(), member: Some(member), api: &api };
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

    #[test]
    fn kept_sums_answer_for_ten_minutes_and_as_many_are_kept_as_may_be() {
        let directory = tempfile::tempdir().unwrap();
        let at = |minutes: u64| WallTime(1_800_000_000_000 + minutes * 60_000);
        for number in 0..MAX_KEPT + 3 {
            let question = number.to_string();
            let file = directory.path().join(name_of(&question));
            keep(directory.path(), &file, &Kept { question, at: at(1), sums: servers(number as u64, &[]) }).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MAX_KEPT);
        let question = (MAX_KEPT + 2).to_string();
        let file = directory.path().join(name_of(&question));
        let read = |question: &str, now| read::<Servers>(&file, question, now).map(|(sums, age)| (sums.total.servers, age / 60_000));
        assert_eq!((read(&question, at(1)), read(&question, at(11))), (Some((34, 0)), Some((34, 10))));
        assert_eq!((read(&question, at(12)), read(&question, at(0)), read("another", at(1))), (None, None, None));
    }
}
