//! Test that every command in docs/STUDIES.md does what the page says.
//!
//! Its lines are typed one after another at a shell, with real daemons and a small web.

use crate::support::{Ground, Habits, Swarm};
use nearcrawl_lab::{
    demo::{daemons::API_PORT, world::Places},
    web::server::{HttpAnswer, HttpSite},
};
use nearcrawl_model::url::Host;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// How long a line is typed again until it says what the page says.
const LONG_ENOUGH: Duration = Duration::from_secs(120);

/// How long one command may take.
const AT_MOST: Duration = Duration::from_secs(180);

/// Countries of the addresses, and the hosts there. The census finds the first nine, by their names or by their addresses.
const HOSTS: [(&str, &[&str]); 4] = [
    ("KE", &["museum.ke", "library.ke", "archive.ke", "radio.ke", "harbour.example"]),
    ("ZA", &["museum.za", "library.za", "archive.za"]),
    ("DE", &["railway.ke", "north.test", "south.test"]),
    ("JP", &["elsewhere.example", "east.test"]),
];

/// Which front page links to which others: from the starting points, to all of the census and to one host beyond its scope.
const LINKS: [(&str, &str); 5] = [
    ("museum.ke", "library.ke archive.ke"),
    ("library.ke", "radio.ke railway.ke"),
    ("archive.ke", "harbour.example elsewhere.example"),
    ("museum.za", "library.za archive.za"),
    ("radio.ke", "museum.za"),
];

/// How many hosts the census finds.
const OF_THE_CENSUS: usize = 9;

/// The libraries of the second study.
const LIBRARIES: [&str; 3] = ["north.test", "south.test", "east.test"];

/// Sites of nine pages each, three levels deep. The page of the staff is repaired after it was seen once.
#[derive(Default)]
struct Country {
    seen: Mutex<BTreeSet<String>>,
}

fn front(host: &str) -> String {
    format!("http://{host}:8080/")
}

impl HttpSite for Country {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        let outside = |name: String| format!("https://{name}.example/");
        let links: Vec<String> = match path {
            "/" => {
                let others = LINKS.iter().filter(|(from, _)| *from == host).flat_map(|(_, to)| to.split(' ')).map(front);
                ["/a/", "/b/", "/staff"].map(str::to_owned).into_iter().chain(others).chain([outside("unesco".to_owned())]).collect()
            }
            "/a/" | "/b/" => (1..=2).map(|page| format!("{path}{page}")).chain([outside(format!("friends-of-{host}"))]).collect(),
            "/a/1" | "/a/2" | "/b/1" | "/b/2" => vec!["/".to_owned(), front("museum.ke"), front("museum.za")],
            "/staff" => vec!["/staff/all".to_owned(), "/".to_owned()],
            "/staff/all" => vec!["/staff".to_owned(), outside(format!("staff-of-{host}"))],
            _ => return HttpAnswer::status(404),
        };
        let is_repaired = path != "/staff" || !self.seen.lock().unwrap().insert(host.to_owned());
        let picture = if is_repaired { "<img src=/p alt=\"The staff\">" } else { "<img src=/p>" };
        let links: String = links.iter().map(|link| format!("<p><a href=\"{link}\">{link}</a></p>\n")).collect();
        HttpAnswer::html(format!("<!doctype html>\n<html lang=en><title>{host}{path}</title>\n{links}{picture}\n"))
    }
}

/// Each host with an address in its country.
fn names(places: &Places) -> Vec<(Host, IpAddr)> {
    let mut names = Vec::new();
    for (country, hosts) in HOSTS {
        // The first land of a country is that of the access point.
        let lands: Vec<_> = places.lands.iter().filter(|land| land.country == country).skip(1).collect();
        assert!(lands.len() >= hosts.len(), "{country} has {} lands", lands.len());
        for (host, land) in hosts.iter().zip(lands) {
            let IpAddr::V4(first) = land.subnet.first() else { unreachable!("places are IPv4") };
            names.push((host.parse().unwrap(), Ipv4Addr::from_bits(first.to_bits() + 9).into()));
        }
    }
    names
}

/// A line of a block of commands.
#[derive(Debug)]
struct Step {
    command: String,
    /// It is typed until it says this.
    until: Option<String>,
    /// It says this.
    says: Option<String>,
    /// It writes these files.
    writes: Vec<String>,
}

impl Step {
    fn of(line: &str) -> Step {
        let (command, remark) = line.split_once(" # ").unwrap_or((line, ""));
        let after = |word: &str| remark.trim().strip_prefix(word).map(|rest| rest.trim().to_owned());
        let redirected = command.split_once(" > ").map(|(_, file)| file.trim().to_owned());
        let named = after("writes ").map(|files| files.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let writes = redirected.into_iter().chain(named.into_iter().flatten()).collect();
        Step { command: command.trim().to_owned(), until: after("until it says "), says: after("says "), writes }
    }
}

/// The page: the files that it shows, by their names, and its commands.
struct Page {
    files: Vec<(String, String)>,
    steps: Vec<Step>,
}

fn page() -> Page {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/STUDIES.md")).unwrap();
    let mut page = Page { files: Vec::new(), steps: Vec::new() };
    for block in text.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap();
        match kind.split_once(' ') {
            Some((_, file)) => page.files.push((file.to_owned(), format!("{body}\n"))),
            None if kind == "sh" => {
                let lines = body.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
                page.steps.extend(lines.map(Step::of));
            }
            None => assert_eq!(kind, "text", "a block is of commands, of a file that is named, or of what is printed"),
        }
    }
    page
}

/// Where the commands are typed.
struct Shell {
    directory: PathBuf,
    environment: Vec<(&'static str, String)>,
    /// Each command with what it printed.
    said: Vec<(String, String)>,
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Shell {
    async fn once(&self, command: &str) -> (Option<i32>, String, String) {
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.directory).envs(self.environment.iter().cloned());
        shell.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(AT_MOST, shell.output()).await;
        let output = output.unwrap_or_else(|_| panic!("does not end: {command}")).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    async fn type_in(&mut self, step: &Step) {
        let begun = Instant::now();
        let said = loop {
            let (code, said, complained) = self.once(&step.command).await;
            match &step.until {
                Some(until) if code != Some(0) || !folded(&said).contains(until) => {
                    assert!(begun.elapsed() < LONG_ENOUGH, "{} never says {until:?}: {said}{complained}", step.command);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                _ => {
                    assert_eq!(code, Some(0), "{}: {said}{complained}", step.command);
                    println!("{:5.1} s $ {}\n{said}{complained}", begun.elapsed().as_secs_f64(), step.command);
                    break said;
                }
            }
        };
        if let Some(says) = &step.says {
            assert!(folded(&said).contains(says), "{} does not say {says:?}: {said}", step.command);
        }
        assert!(!said.is_empty() || !step.writes.is_empty(), "{} prints nothing", step.command);
        let in_words = step.command.contains(" > ");
        let asked = |option: &str| !in_words && step.command.ends_with(option);
        for (form, name) in [("csv", " --format csv"), ("csv", " --csv"), ("json", " --json"), ("json", " --format json")] {
            if asked(name) {
                check_content(&step.command, form, said.as_bytes());
            }
        }
        if step.says.is_none() && step.until.is_none() && step.writes.is_empty() {
            check_words(&step.command, &said);
        }
        for file in &step.writes {
            let written = fs::read(self.directory.join(file)).unwrap_or_else(|why| panic!("{}: {file}: {why}", step.command));
            assert!(!written.is_empty(), "{}: {file} is empty", step.command);
            check_content(&format!("{}: {file}", step.command), file.rsplit_once('.').map_or("", |(_, ending)| ending), &written);
        }
        self.said.push((step.command.clone(), said));
    }

    /// What the only command that begins and ends so has printed.
    fn said(&self, begin: &str, end: &str) -> &str {
        let those: Vec<_> = self.said.iter().filter(|(command, _)| command.starts_with(begin) && command.ends_with(end)).collect();
        assert_eq!(those.len(), 1, "{begin} … {end}");
        &those[0].1
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).unwrap()
    }

    fn rows(&self, name: &str) -> Vec<csv::StringRecord> {
        csv::Reader::from_reader(self.file(name).as_bytes()).records().map(|row| row.unwrap()).collect()
    }
}

/// A file, or what was printed, is of its form and has something in it.
fn check_content(what: &str, form: &str, bytes: &[u8]) {
    if form == "parquet" {
        assert!(bytes.len() > 8 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{what} is no Parquet");
        return;
    }
    let text = std::str::from_utf8(bytes).unwrap_or_else(|why| panic!("{what}: {why}"));
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|why| panic!("{what}: {why}: {text}"));
    match form {
        "csv" | "tsv" => {
            let delimiter = if form == "csv" { b',' } else { b'\t' };
            // Every row has as many cells as the first one: the reader refuses others.
            let mut reader = csv::ReaderBuilder::new().has_headers(form == "csv").delimiter(delimiter).from_reader(bytes);
            let rows: Vec<_> = reader.records().map(|row| row.unwrap_or_else(|why| panic!("{what}: {why}"))).collect();
            assert!(!rows.is_empty(), "{what} has no rows: {text}");
        }
        "json" | "jsonld" => {
            let value = json(text);
            let is_empty = value.as_array().map_or_else(|| value.as_object().is_none_or(|object| object.is_empty()), Vec::is_empty);
            assert!(!is_empty, "{what} says nothing: {text}");
        }
        "jsonl" => {
            assert!(text.lines().count() > 0, "{what} has no rows");
            text.lines().for_each(|line| assert!(json(line).is_object(), "{what}: {line}"));
        }
        "html" => {
            let title = text.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default();
            assert!(!title.is_empty() && text.contains(&format!("<h1>{title}</h1>")), "{what} has no title: {title:?}");
            assert!(text.contains("<td") && text.contains("<svg ") && text.ends_with("</html>\n"), "{what} has no table, or no figure");
        }
        "svg" => assert!(text.starts_with("<svg ") && text.contains("</title>") && text.ends_with("</svg>\n"), "{what} is no figure"),
        other => panic!("{what}: how is {other:?} checked?"),
    }
}

/// What a command must say that the page says nothing of: words of its answer by which it is known from any other.
const WORDS: [(&str, &[&str]); 18] = [
    ("nearcrawl status", &["12D3KooW"]),
    ("nearcrawl survey create", &["survey ", " is made of "]),
    ("nearcrawl results --survey census", &["survey census: 9 servers", "as "]),
    ("nearcrawl results --distinct", &["external hosts", "sets of 3 members"]),
    ("nearcrawl results --by registry", &["registry", "servers"]),
    ("nearcrawl servers --tld ke", &["museum.ke", "railway.ke"]),
    ("nearcrawl report offshore", &[".ke", "method: ", "survey: census", "time span: "]),
    ("nearcrawl report nearness --survey", &["median", "KE", "survey: census"]),
    ("nearcrawl report nearness --by registry --format csv", &["p50_ms", "method_text"]),
    ("nearcrawl report load", &["coverage", "host mentions", "survey: census"]),
    ("nearcrawl plan", &["Depth ", "of the external hosts", "Measured on"]),
    ("nearcrawl lab cache --trace links.jsonl", &["looked up: links"]),
    ("nearcrawl lab cache --trace links.tsv", &["looked up: links"]),
    ("nearcrawl lab delegation", &["ipmicra", "random-delegation", "brute-force"]),
    ("nearcrawl members", &["alive", "subnets"]),
    ("nearcrawl why museum.ke", &["museum.ke", "census"]),
    ("nearcrawl export", &["access_point"]),
    ("nearcrawl survey list", &["census"]),
];

fn check_words(command: &str, said: &str) {
    let words = WORDS.iter().filter(|(begin, _)| command.starts_with(begin)).max_by_key(|(begin, _)| begin.len());
    let (_, words) = words.unwrap_or_else(|| panic!("what does `{command}` say? {said}"));
    words.iter().for_each(|word| assert!(folded(said).contains(word.trim()), "{command} does not say {word:?}: {said}"));
}

/// The daemons, and a shell beside them whose commands ask the second one.
async fn laboratory() -> (Swarm, Shell) {
    let ground = Ground::claim();
    let places = Places::new(ground.net, 60, 7);
    let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| places.access_points[point]).to_vec();
    // The libraries are in the configuration's scope, so its interval counts for them, too.
    let scope = format!("[]\nhosts = {LIBRARIES:?}");
    let habits = Habits { threshold_ms: 4, min_delay_ms: 30, delay_factor: 0, tlds: scope.leak(), revisit: "15s", ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, Arc::new(Country::default()), places.registry_files(), names(&places), &points, habits).await;
    swarm.start(0..3).await;

    let directory = swarm.common.directory.join("studies");
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("data"), directory.join("data")).unwrap();
    let text = format!(
        "contact = \"nobody@demo.test\"\nstate_dir = {:?}\n\n[crawl]\nmin_delay = \"10ms\"\ndelay_factor = 0\nallow_ranges = [{:?}]\n\
         ports = [8080]\n\n[dns]\nservers = [{:?}]\n\n[hierarchy]\ndelegated = {:?}\n",
        directory.join("state"),
        swarm.common.range,
        swarm.common.name_server.to_string(),
        swarm.common.registries,
    );
    let config = swarm.common.write("researcher.toml", &text).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_nearcrawl")).parent().unwrap().display();
    let environment = vec![
        ("PATH", format!("{program}:{}", std::env::var("PATH").unwrap())),
        ("NEARCRAWL_CONFIG", config.display().to_string()),
        ("NEARCRAWL_API", format!("http://{}:{API_PORT}", swarm.daemons[1].address)),
    ];
    (swarm, Shell { directory, environment, said: Vec::new() })
}

/// The share of look-ups that miss in the largest cache, as a line of `lab cache` has it behind the size.
fn misses(table: &str, size: &str) -> f64 {
    let row = table.lines().find(|line| line.split_whitespace().next() == Some(size)).unwrap_or_else(|| panic!("no {size}: {table}"));
    let share = row.split_whitespace().rev().find(|word| word.parse::<f64>().is_ok());
    share.unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_command_of_the_studies_does_what_the_page_says() {
    let page = page();
    assert!(page.steps.len() > 30, "{} commands were found", page.steps.len());
    let (mut swarm, mut shell) = laboratory().await;
    for (name, text) in &page.files {
        fs::write(shell.directory.join(name), text).unwrap();
    }
    for step in &page.steps {
        shell.type_in(step).await;
    }

    // Each server of the census is in one cell of country and top-level domain, and a row of the exports.
    let sum: usize = shell.rows("country-tld.csv").iter().map(|row| row[2].parse::<usize>().unwrap()).sum();
    assert_eq!((sum, shell.rows("servers.csv").len()), (OF_THE_CENSUS, OF_THE_CENSUS));
    let asked: BTreeSet<String> = swarm.log().requests().into_iter().map(|request| request.host).collect();
    assert!(!asked.contains("elsewhere.example"), "a server of another country was asked: {asked:?}");

    // The libraries repaired a page each.
    let trend: Value = serde_json::from_str(&shell.file("trend.json")).unwrap();
    let (total, count) = (&trend["total"], LIBRARIES.len());
    assert_eq!(
        (&total["servers"], &total["failing"]["from"], &total["failing"]["to"]),
        (&count.into(), &count.into(), &0.into()),
        "{trend}"
    );

    // What the pages say of links within and between hosts is what the caches were asked for.
    let links: Vec<Value> = shell.file("links.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let within = links.iter().filter(|link| link["host"] == link["to_host"]).count();
    for (stream, place, times) in [("within", "within a site", within), ("between", "from one site to another", links.len() - within)] {
        let said = shell.said("nearcrawl lab cache --trace links.jsonl", stream);
        assert!(said.contains(&format!("looked up: links {place}, {times} times")), "{said}");
        assert!(misses(said, "16") < misses(said, "1"), "{said}");
    }
    assert!(swarm.stop().await);
}
