//! Tests that the commands do what they say, and end with the right codes.

use super::*;
use crate::node::config::Config;
use clap::{CommandFactory, Parser};
use std::{fs, io, path::Path};

#[derive(Debug, Parser)]
struct TestCli {
    #[command(subcommand)]
    command: HierarchyCommand,
}

/// Runs a command line and gives what it printed.
fn hierarchy(arguments: &[&str]) -> Result<String, HierarchyError> {
    let mut out = Vec::new();
    let command = TestCli::try_parse_from([&["hierarchy"], arguments].concat()).unwrap().command;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(run(command, &mut out))?;
    Ok(String::from_utf8(out).unwrap())
}

const RECORDS: &str = "lab|KE|ipv4|127.1.0.0|65536|20000101|allocated|a\nlab|KE|asn|7|1|20000101|allocated|a\n";

/// A directory with a file of records, and the paths of it and of a snapshot to be.
fn laboratory() -> (tempfile::TempDir, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (records, out) = (path("records.zst"), path("lab.snapshot.zst"));
    fs::write(&records, zstd::bulk::compress(RECORDS.as_bytes(), 1).unwrap()).unwrap();
    (dir, records, out)
}

#[test]
fn the_command_line_is_sound_and_every_help_has_examples() {
    TestCli::command().debug_assert();
    for command in TestCli::command().get_subcommands_mut() {
        assert!(command.render_help().to_string().contains("nearcrawl hierarchy "), "{}", command.get_name());
    }
}

#[test]
fn what_is_built_can_be_shown_and_counted() {
    let (dir, records, out) = laboratory();
    let routes = dir.path().join("routes.csv").display().to_string();
    fs::write(&routes, "127.1.9.0,127.1.9.255,7,Seven\n").unwrap();
    let told = hierarchy(&["build", &records, "--asn", &routes, "--out", &out]).unwrap();
    assert!(told.contains("1 used") && told.contains("subnets        2 (2 IPv4"), "{told}");
    let shown = hierarchy(&["show", "127.1.9.5", "--snapshot", &out]).unwrap();
    assert!(shown.contains("organisation Seven (AS7, a)") && shown.contains("nested network 127.1.9.0/24 ← its subnet"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&hierarchy(&["show", "127.1.1.1", "--snapshot", &out, "--json"]).unwrap()).unwrap();
    assert_eq!(json["subnet"], "127.1.0.0/16");
    assert_eq!(json["registered"]["organisation"]["name"], "Seven");
    let json: serde_json::Value = serde_json::from_str(&hierarchy(&["stats", "--snapshot", &out, "--json"]).unwrap()).unwrap();
    assert_eq!((&json["subnets"], &json["height"]), (&2.into(), &5.into()));
}

#[test]
fn several_addresses_are_shown_at_once_and_what_is_none_is_refused() {
    let (_dir, records, out) = laboratory();
    hierarchy(&["build", &records, "--out", &out]).unwrap();
    let told = hierarchy(&["show", "127.1.9.5", "127.1.1.1", "--snapshot", &out]).unwrap();
    assert_eq!(told.matches("127.1.0.0/16 ← its subnet").count(), 2, "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&hierarchy(&["show", "127.1.9.5", "2c0f:fe38::1", "--snapshot", &out, "--json"]).unwrap()).unwrap();
    assert_eq!((&json[0]["subnet"], &json[1]["address"]), (&"127.1.0.0/16".into(), &"2c0f:fe38::1".into()));
    let refused = hierarchy(&["show", "127.1.9.5", "museum.ke"]).unwrap_err();
    assert!(refused.exit_code() == 65 && refused.to_string().starts_with("museum.ke is no address"), "{refused}");
}

#[test]
fn two_editions_of_one_registry_are_refused_unless_told() {
    let (dir, _, out) = laboratory();
    let edition = |date: &str| {
        let path = dir.path().join(date).display().to_string();
        fs::write(&path, format!("2|lab|{date}|1|20000101|{date}|+0000\nlab|KE|ipv4|127.1.0.0|65536|20000101|allocated|a\n")).unwrap();
        path
    };
    let (old, new) = (edition("20250101"), edition("20260101"));
    let refused = hierarchy(&["build", &old, &new, "--out", &out]).unwrap_err();
    let said = refused.to_string();
    assert!(refused.exit_code() == 65 && said.starts_with("two editions of lab: ") && said.contains("20250101"), "{said}");
    assert!(!Path::new(&out).exists());
    hierarchy(&["build", &old, &new, "--out", &out, "--overrule"]).unwrap();
}

#[test]
fn names_only_adds_no_networks() {
    let (dir, records, out) = laboratory();
    let routes = dir.path().join("routes.csv").display().to_string();
    fs::write(&routes, "127.1.9.0,127.1.9.255,7,Seven\n").unwrap();
    let told = hierarchy(&["build", &records, "--asn", &routes, "--names-only", "-o", &out]).unwrap();
    assert!(told.contains("subnets        1 ") && told.contains("(1 with a name)"), "{told}");
}

#[test]
fn a_rebuild_that_changes_too_much_is_not_written_unless_overruled() {
    let (dir, records, out) = laboratory();
    hierarchy(&["build", &records, "-o", &out]).unwrap();
    let other = dir.path().join("other.txt").display().to_string();
    fs::write(&other, RECORDS.replace("127.1.", "127.2.")).unwrap();
    let next = dir.path().join("next").display().to_string();
    let arguments = ["build", &other, "--previous", &out, "-o", &next];
    let failure = hierarchy(&arguments).unwrap_err();
    assert!(failure.to_string().contains("0 subnets kept, 1 added, 1 removed"), "{failure}");
    assert_eq!((failure.exit_code(), Path::new(&next).exists()), (65, false));
    assert!(hierarchy(&[&arguments[..], &["--overrule"]].concat()).unwrap().contains("change         0 subnets kept"));
}

#[test]
fn failures_have_their_exit_codes_and_say_which_file() {
    let (dir, records, out) = laboratory();
    let bad = dir.path().join("bad.txt").display().to_string();
    fs::write(&bad, format!("{RECORDS}lab|KE|ipv4|nonsense|1|20000101|allocated|a\n")).unwrap();
    let code = |arguments: &[&str], named: &str| {
        let failure = hierarchy(arguments).unwrap_err();
        assert!(failure.to_string().contains(named), "{failure}");
        failure.exit_code()
    };
    assert_eq!(code(&["build", "/no/such/file", "-o", &out], "/no/such/file"), 66);
    assert_eq!(code(&["build", &records, "-o", "/no/such/directory/x"], "/no/such/directory"), 73);
    assert_eq!(code(&["build", &bad, "-o", &out], "bad.txt"), 65);
    assert_eq!(code(&["stats", "--snapshot", &bad], "bad.txt"), 65);
    assert!(!Path::new(&out).exists(), "nothing was written");
    assert!(hierarchy(&["build", &bad, "-o", &out, "--overrule"]).unwrap().contains("1 bad (first: line 3)"));
}

#[test]
fn a_reader_that_goes_away_is_a_failure_not_a_panic() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (_dir, records, out) = laboratory();
    let command = TestCli::try_parse_from(["hierarchy", "build", &records, "-o", &out]).unwrap().command;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(run(command, &mut Gone)).unwrap_err().exit_code(), 74);
}

/// A server that has one file, and the sums beside it.
fn serve(text: &'static str, answers: usize) -> (String, std::thread::JoinHandle<()>) {
    use std::io::{BufRead, BufReader};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/delegated", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        for _ in 0..answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines: Vec<String> = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|l| !l.is_empty()).collect();
            let (status, body) = match &lines[0] {
                first if first.contains(".md5") => ("404 Not Found", ""),
                _ if lines.iter().any(|l| l.eq_ignore_ascii_case("if-none-match: \"1\"")) => ("304 Not Modified", ""),
                _ => ("200 OK", text),
            };
            let length = if status.starts_with("304") { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
            write!(stream, "HTTP/1.1 {status}\r\nETag: \"1\"\r\nConnection: close\r\n{length}\r\n{body}").unwrap();
        }
    });
    (url, thread)
}

#[test]
fn what_is_fetched_can_be_built_as_a_directory_and_comes_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (registries, out) = (path("registries"), path("lab.snapshot.zst"));
    let (url, server) = serve(RECORDS, 3);
    let source = format!("lab={url}");
    let told = hierarchy(&["fetch", "--url", &source, "--dir", &registries]).unwrap();
    assert!(told.contains("lab") && told.contains("new, ") && told.contains("2 lines, 1 used"), "{told}");
    assert!(hierarchy(&["fetch", "--url", &source, "--dir", &registries]).unwrap().contains("unchanged"));
    server.join().unwrap();
    let built = hierarchy(&["build", &registries, "-o", &out]).unwrap();
    assert!(built.contains("delegated statistics") && built.contains("subnets        1 "), "{built}");
}

#[test]
fn what_cannot_be_fetched_or_used_has_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let registries = dir.path().join("registries").display().to_string();
    let code = |arguments: &[&str]| {
        let failure = hierarchy(&[&["fetch", "--dir", &registries], arguments].concat()).unwrap_err();
        (failure.exit_code(), failure.to_string())
    };
    assert_eq!(code(&["--url", "nonsense"]).0, 64);
    assert_eq!(code(&["--url", "../lab=http://127.0.0.1/x"]).0, 64);
    let (status, said) = code(&["atlantis"]);
    assert!(status == 64 && said.contains("no source atlantis: there are afrinic, apnic, arin, lacnic, ripencc"), "{said}");
    let (url, server) = serve("<html>Service unavailable</html>", 2);
    let (status, said) = code(&["--url", &format!("lab={url}")]);
    assert!(status == 65 && said.contains("none of the formats"), "{said}");
    server.join().unwrap();
    assert!(fs::read_dir(&registries).unwrap().next().is_none(), "nothing stays of what is of no use");
}

#[test]
fn every_format_is_recognised_packed_or_not_and_can_be_said() {
    use std::io::Write as _;
    let (dir, records, out) = laboratory();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (networks, whois, countries) = (path("a"), path("b.gz"), path("c"));
    fs::write(&networks, "127.1.4.0/22\tKE\t7\tSeven\n").unwrap();
    let mut packed = flate2::write::GzEncoder::new(fs::File::create(&whois).unwrap(), flate2::Compression::fast());
    packed
        .write_all(b"person: Nobody\n\ninetnum: 127.1.4.0 - 127.1.4.255\nnetname: SHOP\norg: ORG-SHOP\ncountry: UG\nsource: LAB\n")
        .unwrap();
    packed.finish().unwrap();
    fs::write(&countries, "127.1.9.0,127.1.9.255,TZ\n127.1.10.0,127.1.10.255,KE\n").unwrap();
    let told = hierarchy(&["build", &records, &whois, &countries, "--networks", &networks, "-o", &out]).unwrap();
    assert!(told.contains("WHOIS objects  ") && told.contains("1 other object skipped") && told.contains("subnets        4 "), "{told}");
    let shown = hierarchy(&["show", "127.1.4.9", "--snapshot", &out]).unwrap();
    assert!(shown.contains("SHOP") && shown.contains("127.1.4.0/24 ← its subnet"), "{shown}");
    let failure = hierarchy(&["build", "--whois", &networks, "-o", &path("other")]).unwrap_err();
    assert_eq!(failure.exit_code(), 65, "{failure}");
}

#[test]
fn a_diff_tells_what_moved_and_a_build_compares_with_what_it_replaces() {
    let (dir, records, out) = laboratory();
    hierarchy(&["build", &records, "-o", &out]).unwrap();
    let other = dir.path().join("other.txt").display().to_string();
    fs::write(&other, format!("{RECORDS}lab|UG|ipv4|127.2.0.0|256|20000101|allocated|b\n")).unwrap();
    let failure = hierarchy(&["build", &other, "-o", &out]).unwrap_err();
    assert!(failure.to_string().contains("1 subnet kept, 1 added") && failure.to_string().contains(&out), "{failure}");
    let next = dir.path().join("next").display().to_string();
    hierarchy(&["build", &other, "-o", &next]).unwrap();
    hierarchy(&["build", &other, "-o", &out, "--fresh"]).unwrap();
    let (built_in, json) = (hierarchy(&["diff", "built-in", &out]).unwrap(), hierarchy(&["diff", &out, &next, "--json"]).unwrap());
    assert!(built_in.contains("2 added") && built_in.contains("would refuse it"), "{built_in}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["kept"], &json["moved_ipv4_addresses"], &json["same_hash"]), (&2.into(), &0.into(), &true.into()));
}

/// A configuration whose only registry is at `url`.
fn configured(directory: &Path, url: &str) -> String {
    let path = directory.join("node.toml");
    let state = directory.join("state");
    fs::write(
        &path,
        format!("state_dir = {state:?}\ncontact = \"ann@museum.ke\"\n[hierarchy]\nsources = [{{name = \"lab\", url = \"{url}\"}}]\n"),
    )
    .unwrap();
    path.display().to_string()
}

#[test]
fn a_renewal_puts_in_place_what_passed_all_checks_and_changes_nothing_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("state/hierarchy.snapshot");
    let (url, server) = serve(RECORDS, 4);
    let config = configured(dir.path(), &url);
    // None of the built-in registries is in it.
    let refused = hierarchy(&["renew", "--config", &config]).unwrap_err();
    let said = refused.to_string();
    assert!(refused.exit_code() == 65 && said.contains("stays as it was") && said.contains("differs too much from the built-in"), "{said}");
    assert!(!place.exists());
    let told = hierarchy(&["renew", "--config", &config, "--overrule"]).unwrap();
    assert!(told.contains("subnets        1 ") && told.contains(&format!("renewed        {}", place.display())), "{told}");
    let there = fs::read(&place).unwrap();
    let told = hierarchy(&["renew", "--config", &config, "--json"]).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["renewed"], &told["change"]["kept"], &told["files"][0]["new"]), (&false.into(), &1.into(), &false.into()));
    server.join().unwrap();
    assert_eq!(fs::read(&place).unwrap(), there);
    // The daemon begins with it, if the configuration names nothing else.
    let loaded = Config::load(Some(Path::new(&config))).unwrap();
    assert_eq!(loaded.snapshot().as_ref(), Some(&place));

    // Another world, and one that is no registry's.
    let (url, server) = serve("lab|KE|ipv4|127.9.0.0|65536|20000101|allocated|a\n", 2);
    let refused = hierarchy(&["renew", "--config", &configured(dir.path(), &url)]).unwrap_err();
    server.join().unwrap();
    assert!(refused.exit_code() == 65 && refused.to_string().contains("1 added, 1 removed"), "{refused}");
    let (url, server) = serve("<html>Service unavailable</html>", 2);
    let refused = hierarchy(&["renew", "--config", &configured(dir.path(), &url)]).unwrap_err();
    server.join().unwrap();
    assert!(refused.exit_code() == 65 && refused.to_string().contains("none of the formats"), "{refused}");
    assert_eq!(fs::read(&place).unwrap(), there);
}

#[test]
fn nothing_is_renewed_without_a_contact_or_where_it_would_not_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("node.toml").display().to_string();
    let refused = |text: &str| {
        fs::write(&config, text).unwrap();
        hierarchy(&["renew", "--config", &config]).unwrap_err()
    };
    let without = refused("");
    assert!(without.exit_code() == 78 && without.to_string().contains("contact is not set"), "{without}");
    let elsewhere = refused("contact = \"ann@museum.ke\"\n[hierarchy]\ndelegated = [\"a\"]\n");
    assert!(elsewhere.exit_code() == 78 && elsewhere.to_string().contains("hierarchy.delegated"), "{elsewhere}");
}
