//! Plays scenarios with several seeds each and prints a table of the verdicts: `make scenarios`.
//!
//! Arguments: `--seeds FIRST..END` (1..4 if missing), then files, or beginnings of the names of shipped scenarios (all if none is named).
//! The verdicts are in the table; the exit status is 65 if a file is wrong, else 0.

use nearcrawl_lab::scenario::{
    Matrix, Verdict,
    file::{Latency, Scenario},
};
use std::{
    ops::Range,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// One scenario with one seed, and how long it took on this machine.
struct Played {
    verdict: Verdict,
    took: Duration,
}

/// What is to be played.
struct Plan {
    seeds: Range<u64>,
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match plan().and_then(|plan| play(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(65)
        }
    }
}

fn plan() -> Result<Plan, String> {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut seeds = 1..4;
    if arguments.next_if(|argument| argument == "--seeds").is_some() {
        let range = arguments.next().unwrap_or_default();
        let ends = range.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
        seeds = ends.ok_or_else(|| format!("{range:?}: write seeds like 1..4, the last one not included"))?;
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let shipped = std::fs::read_dir(&directory).map_err(|why| format!("{}: {why}", directory.display()))?;
    let mut shipped: Vec<PathBuf> = shipped.filter_map(|entry| Some(entry.ok()?.path())).collect();
    shipped.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    shipped.sort();
    let mut files = Vec::new();
    for argument in arguments {
        let begins = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(&argument));
        let found: Vec<PathBuf> = shipped.iter().filter(begins).cloned().collect();
        files.extend(if found.is_empty() { vec![PathBuf::from(&argument)] } else { found });
    }
    Ok(Plan { seeds, files: if files.is_empty() { shipped } else { files } })
}

/// Plays everything on all processors.
fn play(plan: &Plan) -> Result<(), String> {
    let mut scenarios = Vec::new();
    for path in &plan.files {
        let refused = |why: String| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|why| refused(why.to_string()))?;
        scenarios.push(Scenario::read(&text).map_err(|why| refused(why.to_string()))?);
    }
    let jobs: Vec<(usize, u64)> = (0..scenarios.len()).flat_map(|place| plan.seeds.clone().map(move |seed| (place, seed))).collect();
    let (next, table) = (AtomicUsize::new(0), Mutex::new(Table::new(plan)));
    let worker = || {
        while let Some((place, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let played = play_one(&scenarios[*place], &plan.files[*place], *seed);
            let played = played.map(|verdict| Played { verdict, took: begin.elapsed() });
            // A worker that panicked has printed why; the table is as good as before.
            table.lock().unwrap_or_else(std::sync::PoisonError::into_inner).enter(*place, *seed, played);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
        worker();
    });
    let table = table.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!("\n{} of {} runs kept all promises", table.kept, jobs.len());
    table.refused.map_or(Ok(()), Err)
}

fn play_one(scenario: &Scenario, path: &Path, seed: u64) -> Result<Verdict, String> {
    let matrix = match &scenario.latency {
        Latency::Spread | Latency::Equal => None,
        Latency::Matrix { file, .. } => {
            let file = path.parent().unwrap_or(Path::new(".")).join(file);
            let input = std::fs::File::open(&file).map_err(|why| format!("{}: {why}", file.display()))?;
            Some(Matrix::read(&file.display().to_string(), input).map_err(|why| why.to_string())?)
        }
    };
    scenario.play(seed, matrix, &|| ()).map_err(|why| why.to_string())
}

/// Lines are printed in the order of the files, each as soon as all its seeds are played.
struct Table<'a> {
    plan: &'a Plan,
    entered: Vec<Vec<(u64, Played)>>,
    printed: usize,
    kept: usize,
    refused: Option<String>,
}

impl Table<'_> {
    fn new(plan: &Plan) -> Table<'_> {
        println!(
            "| scenario | seeds | kept | broken, by seed | overlaps | pauses | twice | lost | exact wrong | ownerless s | min/s | first violation |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
        let entered = plan.files.iter().map(|_| Vec::new()).collect();
        Table { plan, entered, printed: 0, kept: 0, refused: None }
    }

    fn enter(&mut self, place: usize, seed: u64, played: Result<Played, String>) {
        match played {
            Ok(played) => self.entered[place].push((seed, played)),
            Err(why) => drop(self.refused.get_or_insert(format!("{}: {why}", self.plan.files[place].display()))),
        }
        let seeds = self.plan.seeds.clone().count();
        while self.entered.get(self.printed).is_some_and(|entered| entered.len() == seeds) {
            self.print(self.printed);
            self.printed += 1;
        }
    }

    fn print(&mut self, place: usize) {
        let entered = &mut self.entered[place];
        entered.sort_by_key(|(seed, _)| *seed);
        let sum = |figure: fn(&Verdict) -> u64| entered.iter().map(|(_, played)| figure(&played.verdict)).sum::<u64>();
        let kept = entered.iter().filter(|(_, played)| played.verdict.holds).count();
        let seconds: f64 = entered.iter().map(|(_, played)| played.took.as_secs_f64()).sum();
        let minutes = entered.iter().filter_map(|(_, played)| Some(played.verdict.course.last()?.at as f64 / 60_000.0)).sum::<f64>();
        let first = entered.iter().find_map(|(seed, played)| Some((seed, played.verdict.first_violation.as_ref()?)));
        let first = first.map_or_else(String::new, |(seed, first)| {
            format!("seed {seed}, {:.0} s: {}", first.at_ms as f64 / 1e3, first.what.replace('|', "/"))
        });
        let broken = |(seed, played): &(u64, Played)| format!("{seed}: {}", played.verdict.broken().join(", "));
        let broken: Vec<_> = entered.iter().filter(|(_, played)| !played.verdict.holds).map(broken).collect();
        println!(
            "| {} | {}..{} | {kept} of {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.1} | {first} |",
            self.plan.files[place].file_stem().unwrap_or_default().to_string_lossy(),
            self.plan.seeds.start,
            self.plan.seeds.end,
            entered.len(),
            broken.join("; "),
            sum(|verdict| verdict.overlaps),
            sum(|verdict| verdict.pauses_broken),
            sum(|verdict| verdict.fetched_twice),
            sum(|verdict| verdict.lost),
            sum(|verdict| verdict.exact_but_wrong),
            entered.iter().map(|(_, played)| played.verdict.ownerless_ms_max).max().unwrap_or(0) as f64 / 1e3,
            minutes / seconds.max(0.001),
        );
        self.kept += kept;
    }
}
