//! Plays scenarios made from seeds and prints one table of what came of them: `make sweep` and `make chaos`.
//!
//! Options: `--seeds FIRST..END` (the last one not included), `--members N`, `--minutes N` (twenty quiet ones follow), `--resume FILE`
//! (runs that the file has are not played again, and new ones are appended to it), `--allow PROMISE=N,…` (so many seeds may break this
//! promise; a change of behaviour draws other courses, so which seeds they are says nothing), `--scenario FILE` (this is played in their
//! place), `--log FILE` and `--label TEXT` (a line of the table is appended to the file, beginning with the label). Exit status: 0 if no
//! promise was broken by more seeds than are allowed, 1 if not, 65 if an option or a file is wrong.

use nearcrawl_lab::scenario::{Failover, Verdict, file::Scenario};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::OpenOptions,
    io::Write,
    ops::Range,
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, MutexGuard, PoisonError},
};

const HEAD: &str = "| run | seeds | members | minutes | simulated h | fetches | overlaps | pauses | twice | lost | exact wrong | unsettled | fail-over p50, p90, p99, max (s); the same while a quorum could be asked | MB a member and day | seeds with a broken promise |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Seeds with a broken promise that are named.
const NAMED: usize = 12;

#[derive(Clone)]
struct Options {
    seeds: Range<u64>,
    members: u32,
    minutes: u32,
    resume: Option<PathBuf>,
    allowed: BTreeMap<String, usize>,
    scenario: Option<PathBuf>,
    log: Option<PathBuf>,
    label: String,
}

/// What came of one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    seed: u64,
    members: u32,
    minutes: u32,
    lived_minutes: u64,
    fetches: u64,
    overlaps: u64,
    pauses_broken: u64,
    fetched_twice: u64,
    lost: u64,
    exact_but_wrong: u64,
    holds: bool,
    failovers: Vec<u64>,
    #[serde(default)]
    failovers_with_quorum: Vec<u64>,
    bytes_member_day: u64,
    bytes_by_kind: BTreeMap<String, u64>,
    broken: Vec<String>,
    first_text: Option<String>,
}

fn main() -> ExitCode {
    match options().and_then(|options| sweep(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(65)
        }
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seeds: 1..41,
        members: 12,
        minutes: 30,
        resume: None,
        allowed: BTreeMap::new(),
        scenario: None,
        log: None,
        label: "-".to_owned(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name}: a value is missing"))?;
        let number = || value.parse::<u32>().map_err(|why| format!("{name} {value}: {why}"));
        match name.as_str() {
            "--seeds" => {
                let ends = value.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
                options.seeds = ends.ok_or_else(|| format!("{value:?}: write seeds like 1..41, the last one not included"))?;
            }
            "--members" => options.members = number()?,
            "--minutes" => options.minutes = number()?,
            "--resume" => options.resume = Some(PathBuf::from(value)),
            "--allow" => {
                let one =
                    |text: &str| text.trim().split_once('=').and_then(|(promise, most)| Some((promise.to_owned(), most.parse().ok()?)));
                let all = value.split(',').map(|text| one(text).ok_or_else(|| format!("{name} {text:?}: write it like fetched_twice=2")));
                options.allowed = all.collect::<Result<_, _>>()?;
            }
            "--scenario" => options.scenario = Some(PathBuf::from(value)),
            "--log" => options.log = Some(PathBuf::from(value)),
            "--label" => options.label = value,
            _ => return Err(format!("{name}: there are --seeds, --members, --minutes, --resume, --allow, --scenario, --log and --label")),
        }
    }
    Ok(options)
}

/// The runs so far, and the file to which new ones are appended.
struct Runs {
    played: BTreeMap<u64, Run>,
    file: Option<std::fs::File>,
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    // A worker that panicked has printed why; what the others played is as good as before.
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays the seeds that are missing on all processors; whether every promise was kept.
fn sweep(options: &Options) -> Result<bool, String> {
    let given = options.scenario.as_deref().map(|path| read(path, options.minutes)).transpose()?;
    let members = given.as_ref().map_or(options.members, |given| given.members);
    let options = &Options { members, ..options.clone() };
    let runs = Mutex::new(resumed(options)?);
    let missing: Vec<u64> = options.seeds.clone().filter(|seed| !lock(&runs).played.contains_key(seed)).collect();
    let next = Mutex::new(missing.iter());
    let worker = || {
        while let Some(seed) = next.lock().unwrap_or_else(PoisonError::into_inner).next() {
            let drawn = || Scenario::chaos(*seed, options.members, options.minutes);
            match given.clone().unwrap_or_else(drawn).play(*seed, None, &|| ()) {
                Ok(verdict) => enter(&mut lock(&runs), Run::of(options, &verdict)),
                Err(why) => eprintln!("seed {seed}: {why}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (1..processors).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
    let missing: BTreeSet<u64> = options.seeds.clone().filter(|seed| !runs.played.contains_key(seed)).collect();
    if !missing.is_empty() {
        return Err(format!("these seeds ended in a panic: {missing:?}"));
    }
    let row = row(options, &runs.played);
    println!("\n{HEAD}\n{row}\n\nMB a member and day, by what messages are about: {}", kinds(&runs.played));
    if let Some(path) = &options.log {
        let refused = |why: std::io::Error| format!("{}: {why}", path.display());
        let mut log = OpenOptions::new().create(true).append(true).open(path).map_err(refused)?;
        writeln!(log, "{row}").map_err(refused)?;
    }
    let mut seeds: BTreeMap<&str, usize> = BTreeMap::new();
    runs.played.values().flat_map(|run| &run.broken).for_each(|promise| *seeds.entry(promise).or_default() += 1);
    let beyond: Vec<_> = seeds.iter().filter(|(promise, count)| **count > options.allowed.get(**promise).copied().unwrap_or(0)).collect();
    if !options.allowed.is_empty() && !beyond.is_empty() {
        println!("\nbroken by more seeds than the allowed {:?}: {beyond:?}", options.allowed);
    }
    Ok(beyond.is_empty())
}

/// The scenario of a file, of so many minutes.
fn read(path: &std::path::Path, minutes: u32) -> Result<Scenario, String> {
    let refused = |why: String| format!("{}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|why| refused(why.to_string()))?;
    let scenario = Scenario::read(&text).map_err(|why| refused(why.to_string()))?;
    Ok(Scenario { minutes, ..scenario })
}

/// Runs of this size that the file to resume from has.
fn resumed(options: &Options) -> Result<Runs, String> {
    let Some(path) = &options.resume else { return Ok(Runs { played: BTreeMap::new(), file: None }) };
    let refused = |why: std::io::Error| format!("{}: {why}", path.display());
    let text = if path.exists() { std::fs::read_to_string(path).map_err(refused)? } else { String::new() };
    // The last line may be cut off.
    let read = text.lines().filter_map(|line| serde_json::from_str::<Run>(line).ok());
    let same = read.filter(|run| (run.members, run.minutes) == (options.members, options.minutes) && options.seeds.contains(&run.seed));
    let played = same.map(|run| (run.seed, run)).collect();
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(refused)?;
    if !text.is_empty() && !text.ends_with('\n') {
        writeln!(file).map_err(refused)?;
    }
    Ok(Runs { played, file: Some(file) })
}

fn enter(runs: &mut Runs, run: Run) {
    let first = run.first_text.as_deref().unwrap_or("kept all promises");
    println!("seed {}: {}{}{first}", run.seed, run.broken.join(", "), if run.broken.is_empty() { "" } else { "; " });
    if let (Some(file), Ok(line)) = (&mut runs.file, serde_json::to_string(&run))
        && let Err(why) = writeln!(file, "{line}")
    {
        eprintln!("seed {} cannot be written down: {why}", run.seed);
    }
    runs.played.insert(run.seed, run);
}

impl Run {
    fn of(options: &Options, verdict: &Verdict) -> Run {
        Run {
            seed: verdict.seed,
            members: options.members,
            minutes: options.minutes,
            lived_minutes: verdict.course.last().map_or(0, |last| last.at / 60_000),
            fetches: verdict.fetches,
            overlaps: verdict.overlaps,
            pauses_broken: verdict.pauses_broken,
            fetched_twice: verdict.fetched_twice,
            lost: verdict.lost,
            exact_but_wrong: verdict.exact_but_wrong,
            holds: verdict.holds,
            failovers: verdict.failovers.clone(),
            failovers_with_quorum: verdict.failovers_with_quorum.clone(),
            bytes_member_day: verdict.bytes_member_day,
            bytes_by_kind: verdict.bytes_by_kind.iter().map(|(kind, bytes)| ((*kind).to_owned(), *bytes)).collect(),
            broken: verdict.broken().into_iter().map(str::to_owned).collect(),
            first_text: verdict.first_violation.as_ref().map(|first| format!("{:.0} s: {}", first.at_ms as f64 / 1e3, first.what)),
        }
    }
}

/// Traffic by what messages are about, the most first.
fn kinds(runs: &BTreeMap<u64, Run>) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, bytes) in runs.values().flat_map(|run| &run.bytes_by_kind) {
        *sums.entry(kind).or_default() += bytes;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mean = |bytes: u64| bytes as f64 / runs.len().max(1) as f64 / 1e6;
    sums.into_iter().map(|(kind, bytes)| format!("{kind} {:.1}", mean(bytes))).collect::<Vec<_>>().join(", ")
}

/// The median, the 90th and 99th percentile and the maximum of the times of all runs, in seconds.
fn shares(runs: &BTreeMap<u64, Run>, of: fn(&Run) -> &Vec<u64>) -> String {
    let mut times: Vec<u64> = runs.values().flat_map(|run| of(run).iter().copied()).collect();
    times.sort_unstable();
    let Failover { p50, p99, max, .. } = Failover::of(&times);
    let p90 = times.get((times.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0);
    [p50, p90, p99, max].map(|ms| format!("{:.0}", ms as f64 / 1e3)).join(", ")
}

/// All runs as one row of the table.
fn row(options: &Options, runs: &BTreeMap<u64, Run>) -> String {
    let sum = |figure: fn(&Run) -> u64| runs.values().map(figure).sum::<u64>();
    let seconds = [shares(runs, |run| &run.failovers), shares(runs, |run| &run.failovers_with_quorum)].join("; ");
    let failed: Vec<_> = runs.values().filter(|run| !run.holds).map(|run| format!("{} ({})", run.seed, run.broken.join(", "))).collect();
    let more = if failed.len() > NAMED { format!("; {} more", failed.len() - NAMED) } else { String::new() };
    format!(
        "| {} | {}..{} | {} | {} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {seconds} | {:.0} | {}{more} |",
        options.label,
        options.seeds.start,
        options.seeds.end,
        options.members,
        options.minutes,
        sum(|run| run.lived_minutes) as f64 / 60.0,
        sum(|run| run.fetches),
        sum(|run| run.overlaps),
        sum(|run| run.pauses_broken),
        sum(|run| run.fetched_twice),
        sum(|run| run.lost),
        sum(|run| run.exact_but_wrong),
        runs.values().filter(|run| run.broken == ["end"]).count(),
        sum(|run| run.bytes_member_day) as f64 / runs.len().max(1) as f64 / 1e6,
        failed.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; "),
    )
}
