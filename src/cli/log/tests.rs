//! Tests that `log` shows what is there, and that `verify` says yes only of what was asked.

use crate::{
    cli::tests::type_in,
    io::request_log::{RequestKind, RequestLine},
    node::clock,
};
use nearcrawl_model::time::WallTime;
use std::{fs, path::Path};

const HOUR: u64 = 3_600_000;

/// A state directory whose daemon asked two servers two hours ago, and the moment of the first request. It began a minute before, and ended an hour later.
fn state() -> (tempfile::TempDir, String, WallTime) {
    let dir = tempfile::tempdir().unwrap();
    let then = WallTime(clock::now().wall.0 - 2 * HOUR);
    let mark = |at: u64, kind| RequestLine::mark(WallTime(at), kind);
    let mut lines = vec![mark(then.0 - 60_000, RequestKind::Begin)];
    for (host, address, kind) in [("a.ke", "192.0.2.1", RequestKind::Page), ("b.ke", "192.0.2.2", RequestKind::Dns)] {
        let reason = if kind == RequestKind::Page { "start" } else { "lookup" }.to_owned();
        let (host, address) = (host.to_owned(), Some(address.parse().unwrap()));
        lines.push(RequestLine { asked_at: then, kind, reason, host, address, fetch_status: Some(200), ..RequestLine::default() });
    }
    lines.push(mark(then.0 + HOUR, RequestKind::End));
    let day: String = then.to_string().chars().take(10).collect();
    fs::create_dir(dir.path().join("requests")).unwrap();
    let text: String = lines.iter().map(|line| format!("{}\n", serde_json::to_string(line).unwrap())).collect();
    fs::write(dir.path().join(format!("requests/{day}-00000.jsonl")), text).unwrap();
    let path = dir.path().display().to_string();
    (dir, path, then)
}

#[tokio::test]
async fn verify_says_yes_of_what_was_asked_no_of_what_was_not_and_unknown_of_what_is_not_covered() {
    let (dir, state, now) = state();
    let ask = async |address: &str, time: WallTime| type_in(&format!("verify {address} {time} --state {state} --within 1m")).await;
    let is = |answer: Result<String, crate::cli::CommandError>| answer.map_or_else(|why| why.exit as u8, |_| 0);
    assert_eq!(is(ask("192.0.2.1", now).await), 0);
    assert_eq!(is(ask("192.0.2.1", WallTime(now.0 + 50_000)).await), 0);
    let said = type_in(&format!("verify 192.0.2.1 {now} --state {state}")).await.unwrap();
    assert!(said.starts_with("yes: 1 request to 192.0.2.1") && said.contains("a starting URL"), "{said}");
    assert_eq!(is(ask("192.0.2.1", WallTime(now.0 + 70_000)).await), 1);
    assert_eq!(is(ask("192.0.2.9", now).await), 1);
    // A look-up in the DNS is no request to the server.
    assert_eq!(is(ask("192.0.2.2", now).await), 1);
    assert_eq!(is(ask("192.0.2.9", WallTime(now.0 - 3 * 86_400_000)).await), 69);
    // Who was killed may have asked: nobody can say no of then, nor of long before the next start.
    let file = fs::read_dir(dir.path().join("requests")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read_to_string(&file).unwrap();
    let begin = |at: u64| serde_json::to_string(&RequestLine::mark(WallTime(at), RequestKind::Begin)).unwrap();
    let without_end: String = whole.lines().filter(|line| !line.contains("\"end\"")).map(|line| format!("{line}\n")).collect();
    let end = whole.lines().last().unwrap();
    fs::write(&file, format!("{without_end}{}\n{end}\n", begin(now.0 + HOUR / 3))).unwrap();
    assert_eq!(is(ask("192.0.2.9", now).await), 69);
    assert_eq!(is(ask("192.0.2.9", WallTime(now.0 + HOUR / 6)).await), 69);
    assert_eq!(is(ask("192.0.2.9", WallTime(now.0 + HOUR)).await), 1);
    fs::write(&file, &without_end).unwrap();
    assert_eq!(is(ask("192.0.2.9", WallTime(now.0 + HOUR)).await), 69, "it was not started again");
    fs::write(&file, format!("{whole}{}\n", begin(now.0 + HOUR + 1))).unwrap();
    assert_eq!(is(ask("192.0.2.9", now).await), 1, "it had ended in good order");
    fs::write(&file, &whole).unwrap();
    // Where lines are missing, nobody can say no.
    let gap = serde_json::to_string(&RequestLine::gap(WallTime(now.0 + 1_000), 3)).unwrap();
    fs::write(&file, format!("{without_end}{gap}\n{end}\n")).unwrap();
    assert_eq!(is(ask("192.0.2.9", now).await), 69);
    assert_eq!(is(ask("192.0.2.1", now).await), 0);
    fs::write(&file, &whole).unwrap();
    // A request is in the log when it has ended: what may be under way, or lies ahead, is asked about again later.
    for ahead in [0, 3 * HOUR] {
        let early = ask("192.0.2.9", WallTime(clock::now().wall.0 + ahead)).await.unwrap_err();
        let (words, others) = if ahead == 0 { ("ask again in ", "future") } else { ("in the future", "ask again in ") };
        let said = early.to_string();
        assert!(early.exit as u8 == 69 && said.contains(words) && !said.contains(others), "{said}");
    }
}

#[tokio::test]
async fn where_there_is_no_log_both_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().display();
    for command in [format!("log --state {state}"), format!("verify 192.0.2.1 2026-11-26T08:15:00Z --state {state}")] {
        let why = type_in(&command).await.unwrap_err();
        assert!(why.exit as u8 == 66 && why.hint.as_ref().is_some_and(|hint| hint.contains("--state")), "{why}");
    }
    assert!(!Path::new(&format!("{state}/requests")).exists());
}

#[test]
fn moments_are_written_in_several_ways() {
    let read = |text: &str| super::moment(text).ok();
    assert_eq!(read("2026-11-26T08:15:00Z"), "2026-11-26T08:15:00Z".parse().ok());
    assert_eq!(read("2026-11-26"), "2026-11-26T00:00:00Z".parse().ok());
    let day_ago = read("1d").unwrap().0;
    assert!(clock::now().wall.0 - day_ago >= 86_400_000 && clock::now().wall.0 - day_ago < 86_460_000);
    assert_eq!((read("yesterday"), read("5")), (None, None));
    // What a site owner's log has: with the offset of its time zone.
    let at = "2026-11-28T15:58:40Z".parse().ok();
    let written = ["2026-11-28T18:58:40+03:00", "2026-11-28T10:58:40-05:00", "28/Nov/2026:18:58:40 +0300", "[28/Nov/2026:10:58:40 -0500]"];
    for text in written {
        assert_eq!(read(text), at, "{text}");
    }
    for unzoned in ["2026-11-28T18:58:40", "28/Nov/2026:18:58:40", "1969-12-31T00:00:00+00:00", "31/Nov/2026:18:58:40 +0300"] {
        assert_eq!(read(unzoned), None, "{unzoned}");
    }
}
