//! Tests that `check` refuses what `run` refuses, in the same words.

use super::*;
use std::{
    ffi::CString,
    fs,
    net::TcpListener,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

const CONTACT: &str = "contact = \"crawl@museum.or.ke\"\n";

/// Mistakes, the exit code, and what the message has to name: the key or the file, and the remedy.
const REFUSED: [(&str, Exit, &[&str]); 25] = [
    ("state_dir = \"state\"", Exit::Config, &["contact is not set"]),
    ("state_dir = \"page.html/state\"", Exit::NoInput, &["page.html", "state_dir must name a directory"]),
    ("state_dir = \"page.html\"", Exit::NoInput, &["page.html", "state_dir must name a directory"]),
    ("state_dir = \"blocked\"", Exit::NoInput, &["blocked/hierarchy", "directory"]),
    ("state_dir = \"newer\"", Exit::Config, &["newer nearcrawl", "99"]),
    ("state_dir = \"half\"", Exit::NoInput, &["half/key", "10 bytes"]),
    ("[swarm]\nlisten = [\"/dns4/localhost/tcp/1\"]", Exit::Config, &["line 4", "swarm.listen", "/ip4/0.0.0.0/tcp/4817"]),
    ("[swarm]\nlisten = [\"/ip4/192.0.2.1/tcp/0\"]", Exit::InUse, &["swarm.listen", "192.0.2.1", "not one of this machine"]),
    ("[swarm]\nadvertise = [\"192.0.2.1:4817\"]", Exit::Config, &["swarm.advertise", "/ip4/192.0.2.1/tcp/4817"]),
    ("[swarm]\nbootstrap = [\"/ip4/192.0.2.1/udp/4817\"]", Exit::Config, &["swarm.bootstrap", "/ip4/192.0.2.1/tcp/4817"]),
    ("[swarm]\npre_shared_key_file = \"none.key\"", Exit::NoInput, &["none.key", "openssl rand -hex 32"]),
    ("[swarm]\npre_shared_key_file = \"short.key\"", Exit::NoInput, &["short.key", "64 hexadecimal digits"]),
    ("[swarm]\npre_shared_key_file = \"pipe\"", Exit::NoInput, &["pipe", "not a file"]),
    ("[hierarchy]\nsnapshot = \"pipe\"", Exit::NoInput, &["hierarchy", "pipe", "not a file"]),
    ("[hierarchy]\nsnapshot = \"none.zst\"", Exit::NoInput, &["hierarchy", "none.zst"]),
    ("[hierarchy]\nsnapshot = \"page.html\"", Exit::NoInput, &["hierarchy", "page.html"]),
    ("[hierarchy]\ndelegated = [\"none.txt\"]", Exit::NoInput, &["hierarchy", "none.txt"]),
    ("[hierarchy]\ndelegated = [\"page.html\"]", Exit::NoInput, &["hierarchy", "page.html"]),
    ("[fetch]\nca_files = [\"none.pem\"]", Exit::Config, &["fetch.ca_files", "none.pem"]),
    ("[fetch]\nca_files = [\"page.html\"]", Exit::Config, &["fetch.ca_files", "page.html", "PEM"]),
    ("[fetch]\nca_files = [\"/dev/zero\"]", Exit::Config, &["fetch.ca_files", "/dev/zero", "not a file"]),
    ("[fetch]\nca_files = [\"pipe\"]", Exit::Config, &["fetch.ca_files", "pipe", "not a file"]),
    ("[crawl]\nsource_address = \"192.0.2.1\"", Exit::Config, &["crawl.source_address", "192.0.2.1"]),
    ("[api]\nlisten = \"192.0.2.1:4880\"", Exit::InUse, &["192.0.2.1:4880", "section [api]"]),
    (
        "[swarm]\nlisten = [\"/ip4/0.0.0.0/tcp/4880\"]\n[api]\nlisten = \"127.78.0.1:4880\"",
        Exit::Config,
        &["swarm.listen", "api.listen", "127.78.0.1:4880"],
    ),
];

/// Mistakes that stand in one file, each with what its line has to name.
const ALL_WRONG: &str = "state_dir = \"state\"\n\
    [crawl]\nsource_address = \"192.0.2.10\"\n\
    [swarm]\nlisten = [\"/ip4/192.0.2.1/tcp/4817\"]\npre_shared_key_file = \"none.key\"\n\
    [api]\nlisten = \"192.0.2.1:4880\"\n\
    [fetch]\nca_files = [\"none.pem\", \"page.html\"]\n\
    [hierarchy]\nsnapshot = \"none.zst\"\n";
const EACH: [&str; 8] = [
    "contact is not set",
    "crawl.source_address = \"192.0.2.10\"",
    "swarm.listen = \"/ip4/192.0.2.1/tcp/4817\"",
    "cannot listen on 192.0.2.1:4880",
    "none.key",
    "none.pem",
    "page.html",
    "none.zst",
];

/// All paths below a directory.
fn paths(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(paths(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}

#[tokio::test]
async fn check_refuses_what_run_refuses_with_the_same_words_and_code() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let file = at("node.toml");
    fs::write(at("page.html"), "<html>404</html>\n").unwrap();
    fs::write(at("short.key"), "abcd\n").unwrap();
    let pipe = CString::new(at("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: `pipe` ends in NUL and lives as long as the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    for (name, below, content) in [("newer", "format", "99\n"), ("blocked", "hierarchy", ""), ("half", "key", "half a key")] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join(below), content).unwrap();
        fs::set_permissions(at(name).join(below), PermissionsExt::from_mode(0o600)).unwrap();
    }
    for (text, exit, words) in REFUSED {
        let top = if text.starts_with("state_dir") { "" } else { "state_dir = \"state\"\n" };
        let contact = if words[0].contains("contact") { "" } else { CONTACT };
        fs::write(&file, format!("{contact}{top}{text}\n")).unwrap();
        let before = paths(directory.path());
        let checked = type_in(&format!("check --config {}", file.display())).await.expect_err(text);
        let line = format!("run --config {}", file.display());
        let run = tokio::time::timeout(Duration::from_secs(20), type_in(&line));
        assert_eq!(run.await.unwrap_or_else(|_| panic!("{text}: it runs")).expect_err(text), checked, "{text}");
        assert_eq!(checked.exit, exit, "{text}: {checked}");
        for word in words {
            assert!(checked.message.contains(word), "{text}: {word:?} is not in {checked}");
        }
        assert_eq!(paths(directory.path()), before, "{text}: something was written");
    }
}

#[tokio::test]
async fn all_that_keeps_a_daemon_from_starting_is_listed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("node.toml");
    fs::write(directory.path().join("page.html"), "<html>404</html>\n").unwrap();
    fs::write(&file, ALL_WRONG).unwrap();
    let checked = type_in(&format!("check --config {}", file.display())).await.unwrap_err();
    let lines: Vec<&str> = checked.message.lines().collect();
    assert_eq!(lines.len(), 1 + EACH.len(), "{checked}");
    assert_eq!(lines[0], "8 mistakes keep a daemon from starting:");
    for each in EACH {
        assert_eq!(lines.iter().filter(|line| line.contains(each)).count(), 1, "{each}: {checked}");
    }
    assert_eq!(checked.exit, Exit::Config, "that of the first");
    assert_eq!(type_in(&format!("run --config {}", file.display())).await.unwrap_err(), checked);
}

#[tokio::test]
async fn ports_that_a_running_daemon_holds_are_no_mistake_of_its_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let [file, state] = ["node.toml", "state"].map(|name| directory.path().join(name));
    let [swarm, api] = ["127.78.0.2:0", "127.78.0.3:0"].map(|address| TcpListener::bind(address).unwrap());
    let (swarm, api) = (swarm.local_addr().unwrap(), (api.local_addr().unwrap(), api));
    let listening = format!("[swarm]\nlisten = [\"/ip4/127.78.0.2/tcp/{}\"]\n[api]\nlisten = \"{}\"\n", swarm.port(), api.0);
    fs::write(&file, format!("{CONTACT}state_dir = \"state\"\n{listening}")).unwrap();
    let text = type_in(&format!("check --config {}", file.display())).await.unwrap();
    assert!(text.ends_with("no mistakes\n") && !state.exists(), "{text}");
}

#[tokio::test]
async fn a_member_to_join_through_is_read_alike_in_the_file_and_on_the_command_line() {
    let failure = type_in("run --bootstrap /ip4/192.0.2.1/udp/4817").await.unwrap_err();
    assert!(failure.exit == Exit::Usage && failure.message.contains("/ip4/192.0.2.1/tcp/4817"), "{failure}");
}
