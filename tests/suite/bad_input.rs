//! Tests with input that nobody should give the program.
//!
//! Each has an outcome that says what it is, and nothing is lost.
//!
//! Only what needs whole processes is here, in `bad_peers` and in `hostile_web`. The modules' own tests have the rest:
//!
//! | bad input | where |
//! |---|---|
//! | every kind of mistake in a configuration | `node::config::tests` |
//! | lines of registry files: torn, reversed, too long, overflowing, a flood of long ranges | `nearcrawl_hierarchy::tests::reading` |
//! | damaged state, damaged cache, torn log, full disk | `io::store::tests`, `bit_flips`, `full_disk` |
//! | wrong ids, looping aliases, too many addresses in DNS answers | `io::resolver::tests` |
//! | whatever a web server may send | `hostile_web` |
//! | every spelling of every forbidden address | `addresses` |
//! | hello of another version, oversized and unreadable messages on real libp2p streams | `io::swarm::{hello, codec, tests}` |
//! | bodies, paths and headers of the API | `node::api::tests` |
//! | robots.txt rules that take long | `nearcrawl_core::crawl::site::robots::tests` |

use crate::support::{Ended, Ground, Habits, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::demo::world::Places;
use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet};

/// All files below a directory with their contents.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    all
}

/// A configuration that a daemon could run with, in a directory of its own.
pub fn configuration(directory: &Path, ground: &Ground, more: &str) -> String {
    fs::create_dir_all(directory).unwrap();
    let places = Places::new(ground.net, 6, 1);
    let mut registries = Vec::new();
    for (name, text) in places.registry_files() {
        fs::write(directory.join(&name), text).unwrap();
        registries.push(format!("{:?}", directory.join(name).display().to_string()));
    }
    let path = directory.join("node.toml");
    let text = format!(
        "state_dir = {:?}\ncontact = \"nobody@demo.test\"\n[hierarchy]\ndelegated = [{}]\n[swarm]\nlisten = [\"/ip4/127.{}.0.1/tcp/4817\"]\n\
         [api]\nlisten = \"127.{}.0.1:4880\"\n{more}",
        directory.join("state").display().to_string(),
        registries.join(", "),
        ground.net,
        ground.net,
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Changes a byte of a file, and each that lies so far behind the last one changed, in its first quarter.
fn flip(file: &Path, step: usize) {
    let mut bytes = fs::read(file).unwrap();
    let front = (bytes.len() / 4).max(1);
    for at in (0..front).step_by(step) {
        bytes[at] ^= 1;
    }
    fs::write(file, bytes).unwrap();
}

#[track_caller]
fn assert_ended(ended: &Ended, what: &str, code: i32, says: &[&str]) {
    assert_eq!(ended.code, Some(code), "{what}: {ended:?}");
    for words in says {
        assert!(ended.complained.contains(words), "{what}: {words:?} is not said in {}", ended.complained);
    }
}

#[tokio::test]
async fn a_daemon_that_cannot_start_says_why_by_word_and_code() {
    let ground = Ground::claim();
    let directory = tempfile::tempdir().unwrap();
    type Spoil = fn(&Path);
    let cases: [(&str, &str, Spoil, i32, &[&str]); 9] = [
        ("unknown key", "[crawl]\ndepht = 3\n", |_| {}, 78, &["depht", "depth"]),
        ("no TOML", "[crawl\n", |_| {}, 78, &["node.toml"]),
        ("newer format", "", |state| fs::write(state.join("format"), "99\n").unwrap(), 78, &["newer", "99", "nothing was changed"]),
        ("format of nonsense", "", |state| fs::write(state.join("format"), "nonsense").unwrap(), 74, &["damaged", "copy"]),
        (
            "key readable by others",
            "",
            |state| fs::set_permissions(state.join("key"), fs::Permissions::from_mode(0o644)).unwrap(),
            77,
            &["chmod 600"],
        ),
        ("half a key", "", |state| fs::write(state.join("key"), [7; 16]).unwrap(), 66, &["16 bytes"]),
        ("a flipped bit in the key", "", |state| flip(&state.join("key"), 1), 66, &["damaged", "copy"]),
        (
            "registry file broken",
            "",
            |state| fs::write(state.with_file_name("delegated-apnic-made-up"), "<html>404</html>\n").unwrap(),
            66,
            &["delegated-apnic-made-up"],
        ),
        ("registry file gone", "", |state| fs::remove_file(state.with_file_name("delegated-arin-made-up")).unwrap(), 66, &["arin"]),
    ];
    for (number, (what, more, spoil, code, says)) in cases.into_iter().enumerate() {
        let place = directory.path().join(number.to_string());
        let config = configuration(&place, &ground, "");
        let init = nearcrawl(&["init", "--config", &config]).await;
        assert_eq!(init.code, Some(0), "{what}: {init:?}");
        spoil(&place.join("state"));
        let config = if more.is_empty() { config } else { configuration(&place, &ground, more) };
        let before = contents(&place);
        let ended = nearcrawl(&["run", "--config", &config]).await;
        assert_ended(&ended, what, code, says);
        assert!(before == contents(&place), "{what}: something was written");
    }
}

/// The rows in front of a table are read when a subnet of this access point is loaded, long after the database was opened.
#[tokio::test]
async fn damage_of_the_state_that_a_running_daemon_comes_across_ends_it_with_the_advice_of_a_start() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 6, 8, 0));
    let point = web.places.access_points[0];
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], Habits::default()).await;
    swarm.start([0]).await;
    swarm.seed(0, &web.seeds()).await;
    let pages = web.expected(&web.seeds()).pages() as u64;
    swarm.agree(pages, Duration::from_secs(60)).await;
    assert!(swarm.stop().await);
    let state = swarm.common.directory.join(point.to_string()).join("state");
    let tables = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    let tables = tables.filter(|path| path.extension().is_some_and(|end| end == "sst"));
    flip(&tables.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap(), 50);

    let config = swarm.common.directory.join(format!("{point}.toml")).display().to_string();
    for (start, log) in [("the first start", "listening"), ("the next one", "nearcrawl: ")] {
        let ended = nearcrawl(&["run", "--config", &config]).await;
        assert_ended(&ended, start, 74, &[&format!("{} is damaged", state.display()), "restore it from a copy", log]);
    }
}

#[tokio::test]
async fn what_another_process_holds_is_not_taken_from_it() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 6, 3, 0));
    let point = web.places.access_points[0];
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], Habits::default()).await;
    swarm.start([0]).await;
    let config = swarm.common.directory.join(format!("{point}.toml"));
    let path = config.display().to_string();
    let ended = nearcrawl(&["run", "--config", &path]).await;
    assert_ended(&ended, "state directory in use", 73, &["in use by another nearcrawl"]);

    // Another state directory, but the same addresses.
    let text = fs::read_to_string(&config).unwrap();
    let state = format!("{:?}", swarm.common.directory.join(point.to_string()).display().to_string());
    let elsewhere = format!("{:?}", swarm.common.directory.join("elsewhere").display().to_string());
    let same_swarm_port = text.replace(&state, &elsewhere);
    fs::write(&config, &same_swarm_port).unwrap();
    let ended = nearcrawl(&["run", "--config", &path]).await;
    assert_ended(&ended, "swarm port in use", 73, &["4817", "another daemon"]);
    fs::write(&config, same_swarm_port.replace("tcp/4817", "tcp/4818")).unwrap();
    let ended = nearcrawl(&["run", "--config", &path]).await;
    assert_ended(&ended, "API port in use", 73, &["4880"]);

    swarm.seed(0, &web.seeds()).await;
    let pages = web.expected(&web.seeds()).pages() as u64;
    swarm.agree(pages, Duration::from_secs(30)).await;
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn registry_files_that_cannot_be_believed_are_refused_and_no_snapshot_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("delegated");
    let out = directory.path().join("out.zst");
    let (file, out_text) = (file.display().to_string(), out.display().to_string());
    let header = |lines: usize| format!("2|apnic|20261121|{lines}|19700101|20261121|+0000\napnic|*|ipv4|*|{lines}|summary\n");
    let line = |start: &str, count: u64| format!("apnic|JP|ipv4|{start}|{count}|20200101|allocated|org-{start}\n");
    let cases: [(&str, String, i32, &str); 7] = [
        ("no registry file", "<html>Service unavailable</html>\n".to_owned(), 65, ""),
        ("empty", String::new(), 65, ""),
        ("cut off", header(3) + &line("10.0.0.0", 256), 65, ""),
        ("more than anybody has", header(1) + &line("16.0.0.0", 1 << 31), 65, ""),
        ("past the last address", header(1) + &line("255.255.255.0", 1024), 65, ""),
        ("negative", header(1) + "apnic|JP|ipv4|10.0.0.0|-256|20200101|allocated|org\n", 65, ""),
        ("nonsense as address", header(1) + &line("10.0.0.999", 256), 65, ""),
    ];
    for (what, text, code, says) in cases {
        fs::write(&file, text).unwrap();
        let ended = nearcrawl(&["hierarchy", "build", &file, "--out", &out_text]).await;
        assert_ended(&ended, what, code, &[says, &file]);
        assert!(!out.exists(), "{what}");
    }
    let ended = nearcrawl(&["hierarchy", "build", "/nowhere/delegated", "--out", &out_text]).await;
    assert_ended(&ended, "no file", 66, &["/nowhere/delegated"]);

    // Ranges that overlap are what registries really have: the smaller one is inside the larger one, whoever comes first.
    fs::write(&file, header(3) + &line("10.0.0.0", 65_536) + &line("10.0.2.0", 256) + &line("10.0.3.128", 384)).unwrap();
    let built = nearcrawl(&["hierarchy", "build", &file, "--out", &out_text]).await;
    assert_eq!(built.code, Some(0), "{built:?}");
    for (address, holder) in [("10.0.0.1", "org-10.0.0.0"), ("10.0.2.9", "org-10.0.2.0"), ("10.0.3.200", "org-10.0.3.128")] {
        let shown = nearcrawl(&["hierarchy", "show", address, "--snapshot", &out_text]).await;
        assert!(shown.code == Some(0) && shown.said.contains(holder), "{address}: {shown:?}");
    }
    let ended = nearcrawl(&["hierarchy", "build", &file, "--out", "/nowhere/out.zst"]).await;
    assert_ended(&ended, "no place to write", 73, &["/nowhere/out.zst"]);
    fs::write(&out, "no snapshot").unwrap();
    assert_ended(&nearcrawl(&["hierarchy", "stats", "--snapshot", &out_text]).await, "no snapshot", 65, &[]);
}

/// Counts who connects to an address that nobody may contact.
pub async fn forbidden(address: SocketAddr, tasks: &mut JoinSet<()>) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(address).await.unwrap();
    let connects = Arc::new(AtomicUsize::new(0));
    let counter = connects.clone();
    tasks.spawn(async move {
        while let Ok(connection) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            drop(connection);
        }
    });
    connects
}
