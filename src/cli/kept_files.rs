//! Files that keep the last whole sums over rows, one for each question.
//!
//! They are few and small, and none is older than sums may answer: [`KEPT`]. The clock on the wall may be set back at any time: a file of a
//! later time than now is not believed and is removed, since nothing says how old it is; how old others are is said by the boot clock as well.

use crate::io::snapshot;
use nearcrawl_core::report::KEPT;
use nearcrawl_model::time::{Millis, Now, WallTime};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    cmp::Reverse,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Questions whose sums are kept at once: beyond that the oldest are removed.
const MAX_KEPT: usize = 32;

/// The longest sums that are kept, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// What is in a file.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    question: String,
    at: WallTime,
    /// The same by the boot clock, in milliseconds; none in what earlier builds kept.
    #[serde(default)]
    boot_ms: Option<u64>,
    sums: T,
}

impl<T> Kept<T> {
    /// How old it is, at least; none if it is of a later time than now.
    fn age(&self, now: Now) -> Option<Millis> {
        let by_wall = now.wall.0.checked_sub(self.at.0)?;
        // After another boot it is older than that boot.
        let by_boot = self.boot_ms.map_or(0, |then| now.moment.0.checked_sub(then).unwrap_or(now.moment.0));
        Some(by_wall.max(by_boot))
    }
}

/// The file of a question.
pub struct KeptFile {
    directory: PathBuf,
    path: PathBuf,
}

impl KeptFile {
    /// In this directory.
    pub fn of(directory: &Path, question: &str) -> KeptFile {
        let mut hasher = DefaultHasher::new();
        question.hash(&mut hasher);
        KeptFile { directory: directory.to_owned(), path: directory.join(format!("{:016x}.json", hasher.finish())) }
    }

    /// What is kept of the question, and how old it is; none if that is too old. What is of a later time than now is removed: it would be
    /// believed when that comes.
    pub fn read<T: DeserializeOwned>(&self, question: &str, now: Now) -> Option<(T, Millis)> {
        let kept: Kept<T> = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let Some(age) = kept.age(now) else {
            let _ = fs::remove_file(&self.path);
            return None;
        };
        (age <= KEPT && kept.question == question).then_some((kept.sums, age))
    }

    /// Keeps these sums; none if they cannot be kept.
    pub fn keep<T: Serialize>(&self, question: &str, sums: &T, now: Now) -> Option<()> {
        let kept = Kept { question: question.to_owned(), at: now.wall, boot_ms: Some(now.moment.0), sums };
        let bytes = serde_json::to_vec(&kept).ok().filter(|bytes| bytes.len() <= MAX_BYTES)?;
        fs::create_dir_all(&self.directory).ok()?;
        snapshot::write(&self.path, &bytes).ok()?;
        self.tidy()
    }

    /// Removes what is too old to answer or of a later time than now, and the oldest beyond the limit, but not this file.
    fn tidy(&self) -> Option<()> {
        let changed = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
        let entries = fs::read_dir(&self.directory).ok()?;
        let mut files: Vec<(SystemTime, PathBuf)> = entries.filter_map(|entry| changed(entry.ok()?)).collect();
        files.retain(|(_, path)| *path != self.path);
        files.sort_unstable_by_key(|(at, _)| Reverse(*at));
        let answers = |at: &SystemTime| at.elapsed().is_ok_and(|age| age <= Duration::from_millis(KEPT));
        let (answering, useless): (Vec<_>, Vec<_>) = files.into_iter().partition(|(at, _)| answers(at));
        for (_, path) in useless.iter().chain(answering.iter().skip(MAX_KEPT - 1)) {
            let _ = fs::remove_file(path);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::time::Moment;

    fn at(minutes: u64) -> Now {
        Now { moment: Moment(minutes * 60_000), wall: WallTime(1_800_000_000_000 + minutes * 60_000) }
    }

    /// What is kept of a question, and its age in minutes.
    fn told(directory: &Path, question: &str, now: Now) -> Option<(u64, u64)> {
        KeptFile::of(directory, question).read::<u64>(question, now).map(|(sums, age)| (sums, age / 60_000))
    }

    fn files(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn kept_sums_answer_for_ten_minutes_and_as_many_are_kept_as_may_be() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..MAX_KEPT as u64 + 3 {
            let question = number.to_string();
            KeptFile::of(directory.path(), &question).keep(&question, &number, at(1)).unwrap();
        }
        assert_eq!(files(directory.path()), MAX_KEPT);
        let told = |question: &str, now| told(directory.path(), question, now);
        assert_eq!((told("34", at(1)), told("34", at(11))), (Some((34, 0)), Some((34, 10))));
        assert_eq!((told("34", at(12)), told("another", at(1))), (None, None));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_younger_and_what_is_of_later_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let told = |now| told(directory.path(), "a", now);
        let file = KeptFile::of(directory.path(), "a");
        file.keep("a", &7_u64, at(20)).unwrap();
        // Nine minutes later the clock was set back by six.
        let set_back = |minutes: u64, by: u64| Now { wall: at(minutes - by).wall, ..at(minutes) };
        assert_eq!((told(set_back(29, 6)), told(set_back(31, 6))), (Some((7, 9)), None));
        assert_eq!(told(Now { moment: Moment(240_000), ..at(22) }), Some((7, 4)), "the machine was started four minutes ago");
        assert_eq!(told(set_back(21, 5)), None, "it is of a later time");
        assert_eq!((told(at(21)), files(directory.path())), (None, 0), "nor is it believed when that time has come");
    }

    #[test]
    fn files_of_a_later_time_are_not_kept_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let [old, later, young] = ["old", "later", "young"].map(|name| directory.path().join(format!("{name}.json")));
        let hour = Duration::from_secs(3_600);
        let now = SystemTime::now();
        for (path, changed) in [(&old, now - hour), (&later, now + hour), (&young, now - Duration::from_secs(5))] {
            fs::write(path, b"{}").unwrap();
            fs::File::options().write(true).open(path).unwrap().set_modified(changed).unwrap();
        }
        KeptFile::of(directory.path(), "a").keep("a", &7_u64, at(1)).unwrap();
        assert_eq!([old, later, young].map(|path| path.exists()), [false, false, true]);
        assert_eq!(files(directory.path()), 2);
    }
}
