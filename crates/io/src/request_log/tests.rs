//! Tests that every line is there once, and that there is never more than is to be kept.

use super::{files, *};
use nearcrawl_model::requests_made::{LATEST_END, RequestsQuery, Uncovered};
use std::{fs, ops::ControlFlow, path::Path};

const DAY: u64 = 86_400_000;

fn config(directory: &Path) -> RequestLogConfig {
    RequestLogConfig { directory: directory.join("requests"), max_days: 30, max_bytes: 64 << 20 }
}

fn line(number: u64) -> RequestLine {
    RequestLine { asked_at: WallTime(20_778 * DAY + number), host: format!("host-{number}.ke"), ..RequestLine::default() }
}

fn text(line: &RequestLine) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap();
    text.push(b'\n');
    text
}

fn read(config: &RequestLogConfig, since: WallTime) -> (Vec<RequestLine>, u64) {
    let (mut reader, mut found) = (Reader::new(&config.directory, since), Vec::new());
    reader
        .read(&mut |line| {
            found.push(line);
            ControlFlow::Continue(())
        })
        .unwrap();
    found.retain(|line| !matches!(line.kind, RequestKind::Begin | RequestKind::End));
    (found, reader.bad())
}

#[test]
fn each_start_and_each_end_in_good_order_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    for ends in [true, false, true] {
        let log = RequestLog::start(config.clone()).unwrap();
        log.write(line(1));
        while log.written() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        // Who is killed says no farewell.
        if ends { log.close() } else { std::mem::forget(log) }
    }
    // One that has nothing to say writes that it was there: of one that is killed during its first request nothing else tells.
    RequestLog::start(config.clone()).unwrap().close();
    let (mut reader, mut kinds) = (Reader::new(&config.directory, WallTime(0)), Vec::new());
    let mut note = |line: RequestLine| {
        kinds.push(line.kind);
        ControlFlow::Continue(())
    };
    reader.read(&mut note).unwrap();
    use RequestKind::{Begin, End, Page};
    assert_eq!(kinds, [Begin, Page, End, Begin, Page, Begin, Page, End, Begin, End]);
}

#[test]
fn what_is_written_is_read_in_its_order_and_from_a_moment_on() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    assert_eq!(read(&config, WallTime(0)), (Vec::new(), 0), "there is no log yet");
    let log = RequestLog::start(config.clone()).unwrap();
    (0..1_000).for_each(|number| log.write(RequestLine { asked_at: now(), ..line(number) }));
    log.close();
    assert_eq!((log.written(), log.dropped()), (1_000, 0));
    let (found, bad) = read(&config, WallTime(0));
    assert_eq!(bad, 0);
    assert!(found.iter().enumerate().all(|(number, line)| line.host == format!("host-{number}.ke")));
    let from = found[600].asked_at;
    assert!(read(&config, from).0.iter().all(|line| line.asked_at >= from));
    assert_eq!(read(&config, WallTime(now().0 + DAY)).0, []);
    // Nothing is written after its end, and nothing waits.
    log.write(line(1));
    assert_eq!(log.dropped(), 1);
}

#[test]
fn there_are_never_more_bytes_nor_days_than_are_to_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let config = RequestLogConfig { max_days: 3, max_bytes: 16_000, ..config(dir.path()) };
    let mut files = Files::new(config.clone());
    for number in 0..3_000_u64 {
        // Five days, in the order of time.
        let now = WallTime((20_778 + number / 600) * DAY + number);
        files.append(&text(&RequestLine { asked_at: now, ..line(number) }), now).unwrap();
        let all: u64 = files::list(&config.directory).unwrap().iter().map(|file| fs::metadata(&file.path).unwrap().len()).sum();
        assert!(all <= config.max_bytes, "{all} bytes after {number} lines");
    }
    let (kept, bad) = read(&config, WallTime(0));
    assert_eq!((kept.last().unwrap().host.as_str(), bad), ("host-2999.ke", 0));
    assert!(kept.len() > 50, "{} lines are all that is left", kept.len());
    assert!(kept.windows(2).all(|pair| pair[0].asked_at < pair[1].asked_at), "without a gap");
    // Days go though nothing is written.
    files.prune(WallTime(20_784 * DAY)).unwrap();
    assert!(files::list(&config.directory).unwrap().iter().all(|file| file.day >= 20_782));
    // With few lines the days decide.
    let few = RequestLogConfig { max_days: 3, max_bytes: 1 << 20, directory: dir.path().join("few") };
    let mut files = Files::new(few.clone());
    (20_778..20_788).for_each(|day| files.append(&text(&line(day)), WallTime(day * DAY)).unwrap());
    let days: Vec<u64> = files::list(&few.directory).unwrap().iter().map(|file| file.day).collect();
    assert_eq!(days, [20_785, 20_786, 20_787]);
}

#[test]
fn half_a_line_that_a_kill_left_costs_no_other_line() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let now = WallTime(20_778 * DAY);
    let mut files = Files::new(config.clone());
    files.append(&text(&line(1)), now).unwrap();
    let path = files::list(&config.directory).unwrap()[0].path.clone();
    let whole = fs::read(&path).unwrap();
    for cut in [whole.len() - 1, whole.len() / 2, 1] {
        fs::write(&path, [&whole[..], &whole[..cut]].concat()).unwrap();
        // It may be on its way still: nobody reads it, and nobody says that it is bad.
        assert_eq!((read(&config, WallTime(0)).0.len(), read(&config, WallTime(0)).1), (1, 0));
        let mut next = Files::new(config.clone());
        next.append(&text(&line(2)), now).unwrap();
        let (found, bad) = read(&config, WallTime(0));
        let hosts: Vec<&str> = found.iter().map(|line| line.host.as_str()).collect();
        if cut == whole.len() - 1 {
            // Only its end of line was missing.
            assert_eq!((hosts, bad), (vec!["host-1.ke", "host-1.ke", "host-2.ke"], 0));
        } else {
            assert_eq!((hosts, bad), (vec!["host-1.ke", "host-2.ke"], 1));
        }
    }
}

#[test]
fn damaged_lines_are_counted_and_the_others_read() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut files = Files::new(config.clone());
    (0..3).for_each(|number| files.append(&text(&line(number)), WallTime(20_778 * DAY)).unwrap());
    let path = files::list(&config.directory).unwrap()[0].path.clone();
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[second] = b'x';
    fs::write(&path, bytes).unwrap();
    let (found, bad) = read(&config, WallTime(0));
    assert_eq!((found.len(), bad), (2, 1));
}

#[test]
fn what_comes_while_somebody_reads_is_read_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut files = Files::new(config.clone());
    let mut reader = Reader::new(&config.directory, WallTime(0));
    let next = |reader: &mut Reader| {
        let mut found = Vec::new();
        let mut note = |line: RequestLine| {
            found.push(line.host);
            ControlFlow::Continue(())
        };
        reader.read(&mut note).unwrap();
        found
    };
    assert!(next(&mut reader).is_empty());
    for number in 0..4_u64 {
        files.append(&text(&line(number)), WallTime((20_778 + number / 2) * DAY)).unwrap();
        assert_eq!(next(&mut reader), [format!("host-{number}.ke")]);
    }
    assert!(next(&mut reader).is_empty());
}

#[test]
fn lines_that_the_disk_does_not_take_wait_and_are_written_when_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let log = RequestLog::start(config.clone()).unwrap();
    log.write(line(0));
    while log.written() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    // The day's file cannot be written any more: what is in place of it takes no byte.
    let (path, aside) = (files::list(&config.directory).unwrap()[0].path.clone(), dir.path().join("aside"));
    drop(log);
    fs::rename(&path, &aside).unwrap();
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let log = RequestLog::start(config.clone()).unwrap();
    (1..5).for_each(|number| log.write(line(number)));
    thread::sleep(TRY_AGAIN + Duration::from_millis(200));
    assert_eq!((log.written(), log.dropped(), log.unwritten()), (0, 0, 4), "nobody says that they are there");
    fs::rename(&aside, &path).unwrap();
    // Nothing new need come.
    let begun = Instant::now();
    while log.written() < 4 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((log.dropped(), log.unwritten()), (0, 0));
    log.close();
    let hosts: Vec<String> = read(&config, WallTime(0)).0.into_iter().map(|line| line.host).collect();
    assert_eq!(hosts, ["host-0.ke", "host-1.ke", "host-2.ke", "host-3.ke", "host-4.ke"]);
}

#[test]
fn lines_beyond_those_that_may_wait_are_counted_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    // Nothing can be written where a file has the directory's name.
    fs::write(&config.directory, b"").unwrap();
    let log = RequestLog::start(config.clone()).unwrap();
    for number in 0..MAX_KEPT as u64 + 5 {
        log.write(line(number));
        if number % 500 == 0 {
            thread::sleep(Duration::from_millis(20));
        }
    }
    while log.dropped() < 5 {
        thread::sleep(Duration::from_millis(1));
    }
    fs::remove_file(&config.directory).unwrap();
    log.close();
    assert_eq!((log.written(), log.dropped()), (MAX_KEPT as u64, 5));
    let (found, _) = read(&config, WallTime(0));
    assert_eq!((found[0].kind, found[0].lines, found[1].host.as_str()), (RequestKind::Gap, Some(5), "host-0.ke"));
    // At the end nothing is left to wait for.
    fs::remove_dir_all(&config.directory).unwrap();
    fs::write(&config.directory, b"").unwrap();
    let log = RequestLog::start(config).unwrap();
    (0..3).for_each(|number| log.write(line(number)));
    log.close();
    assert_eq!((log.written(), log.dropped()), (0, 3));
}

#[test]
fn a_full_disk_leaves_no_half_line() {
    let full = Path::new("/dev/full");
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    fs::create_dir(&config.directory).unwrap();
    let now = WallTime(20_778 * DAY);
    std::os::unix::fs::symlink(full, config.directory.join("2026-11-21-00000.jsonl")).unwrap();
    let mut files = Files::new(config.clone());
    let why = files.append(&text(&line(1)), now).unwrap_err();
    assert_eq!(why.kind(), io::ErrorKind::StorageFull, "{why}");
    fs::remove_file(config.directory.join("2026-11-21-00000.jsonl")).unwrap();
    Files::new(config.clone()).append(&text(&line(2)), now).unwrap();
    assert_eq!(read(&config, WallTime(0)).0.len(), 1);
}

#[test]
fn a_line_says_in_words_what_was_asked_and_why() {
    let page = RequestLine {
        kind: RequestKind::Page,
        reason: "link".to_owned(),
        host: "museum.or.ke".to_owned(),
        address: Some("192.0.2.1".parse().unwrap()),
        port: Some(443),
        path: Some("/a?b".to_owned()),
        level: Some(2),
        tree: Some("museum.or.ke".to_owned()),
        run: Some(3),
        surveys: vec!["unis".to_owned()],
        fetch_status: Some(200),
        bytes: Some(1_234),
        took_ms: Some(70),
        ..line(0)
    };
    assert_eq!(
        page.to_string(),
        "2026-11-21T00:00:00.000Z page   museum.or.ke/a?b at 192.0.2.1:443: a link, 2 from a starting URL, run 3, survey unis; 200, 1234 bytes, 70 ms"
    );
    assert_eq!(serde_json::from_slice::<RequestLine>(&serde_json::to_vec(&page).unwrap()).unwrap(), page);
}

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// Noon of a day, by which the tests below count.
const NOON: u64 = 20_778 * DAY + 12 * HOUR;

/// The server that nobody asked.
const UNASKED: &str = "192.0.2.9";

/// Writes marks and requests with the clock as they say it.
fn written(files: &mut Files, lines: &[(u64, RequestKind)]) {
    for (at, kind) in lines {
        let line =
            RequestLine { asked_at: WallTime(*at), kind: *kind, address: Some("192.0.2.1".parse().unwrap()), ..RequestLine::default() };
        files.append(&text(&line), WallTime(*at)).unwrap();
    }
}

/// Why the log does not say whether a request was made in the five minutes around this moment.
fn lacks(config: &RequestLogConfig, address: &str, at: u64) -> (u64, Option<Uncovered>) {
    let writing = Writing { now: WallTime(NOON + 100 * DAY), unwritten: 0 };
    let query = RequestsQuery { address: address.parse().unwrap(), from: WallTime(at - 5 * MINUTE), until: WallTime(at + 5 * MINUTE) };
    let found = search(&config.directory, &query, &writing).unwrap();
    (found.requests, found.uncovered)
}

/// All of a day's first files can be gone while its last ones are there.
#[test]
fn nobody_says_no_of_a_time_whose_files_were_removed() {
    use RequestKind::{Begin, End, Page};
    let dir = tempfile::tempdir().unwrap();
    let config = RequestLogConfig { max_days: 30, max_bytes: 16_000, ..config(dir.path()) };
    let mut files = Files::new(config.clone());
    written(&mut files, &[(NOON, Begin)]);
    (1..600).for_each(|minute| written(&mut files, &[(NOON + minute * MINUTE, Page)]));
    written(&mut files, &[(NOON + 600 * MINUTE, End)]);
    let first = read(&config, WallTime(0)).0[0].asked_at.0;
    assert!(first > NOON + 2 * HOUR, "files were removed");
    assert_eq!(lacks(&config, UNASKED, NOON + HOUR), (0, Some(Uncovered::BeginsLater)));
    // What began before the first line that is left, and ended after it, has a line; what ended before it has none any more.
    assert_eq!(lacks(&config, UNASKED, first + 5 * MINUTE), (0, Some(Uncovered::BeginsLater)));
    assert_eq!(lacks(&config, UNASKED, first + LATEST_END + 6 * MINUTE), (0, None));
    assert_eq!(lacks(&config, "192.0.2.1", first + HOUR), (11, None));
}

#[test]
fn a_log_that_lost_nothing_covers_what_came_since_its_daemon_began() {
    use RequestKind::{Begin, End};
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    written(&mut Files::new(config.clone()), &[(NOON, Begin), (NOON + HOUR, End), (NOON + 3 * DAY, Begin), (NOON + 3 * DAY + HOUR, End)]);
    assert_eq!(lacks(&config, UNASKED, NOON), (0, Some(Uncovered::BeginsLater)));
    for at in [NOON + 6 * MINUTE, NOON + 2 * HOUR, NOON + 3 * DAY, NOON + 3 * DAY + 2 * HOUR] {
        assert_eq!(lacks(&config, UNASKED, at), (0, None), "{}", WallTime(at));
    }
}

#[test]
fn nobody_says_no_of_requests_that_may_be_under_way_or_lie_ahead() {
    use RequestKind::{Begin, End};
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    written(&mut Files::new(config.clone()), &[(NOON, Begin), (NOON + HOUR, End)]);
    let ask = |until: u64, unwritten| {
        let query = RequestsQuery { address: UNASKED.parse().unwrap(), from: WallTime(NOON + 1), until: WallTime(until) };
        search(&config.directory, &query, &Writing { now: WallTime(NOON + 2 * HOUR), unwritten }).unwrap().uncovered
    };
    assert_eq!(ask(NOON + 2 * HOUR - LATEST_END, 0), None);
    for until in [NOON + 2 * HOUR - LATEST_END + 1, NOON + 2 * HOUR, NOON + DAY, u64::MAX] {
        assert_eq!(ask(until, 0), Some(Uncovered::TooRecent), "{until}");
    }
    // Lines for which the disk has no room are told of by the next one: until then only their writer knows.
    assert_eq!(ask(NOON + 90 * MINUTE, 1), Some(Uncovered::LinesMissing));
    assert_eq!(ask(NOON + 30 * MINUTE, 1), None, "the last line that was written came later");
}

/// A machine whose clock is behind when it starts, until the time comes from the network.
#[test]
fn a_kill_before_a_start_with_a_clock_that_is_behind_is_seen() {
    use RequestKind::{Begin, End, Page};
    let killed_at = NOON + 10 * MINUTE;
    for behind in [30 * MINUTE, 8 * HOUR, 3 * DAY, NOON] {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        let before = [(NOON - 4 * DAY, Begin), (NOON - DAY, Page), (NOON, Page), (killed_at, Page)];
        written(&mut Files::new(config.clone()), &before);
        let start = killed_at + 20 * MINUTE;
        // The clock is put right half an hour after the start, while it runs.
        let mut files = Files::new(config.clone());
        written(&mut files, &[(start - behind, Begin), (start - behind + 20 * MINUTE, Page)]);
        let then = lacks(&config, UNASKED, killed_at + 10 * MINUTE);
        assert_eq!(then, (0, Some(Uncovered::Killed)), "{behind} ms behind, and not put right");
        written(&mut files, &[(start + 30 * MINUTE, Page), (start + HOUR, Page), (start + 2 * HOUR, End)]);
        // The log shows no more of the clock than that it is behind where the daemon was killed: until a line comes of a later time.
        let until = if behind < HOUR { killed_at + 10 * MINUTE } else { start };
        for at in [killed_at, killed_at + 10 * MINUTE, until] {
            assert_eq!(lacks(&config, UNASKED, at), (0, Some(Uncovered::Killed)), "{behind} ms behind, at {}", WallTime(at));
        }
        for at in [NOON - 2 * DAY, NOON - HOUR, start + HOUR] {
            assert_eq!(lacks(&config, UNASKED, at), (0, None), "{behind} ms behind, at {}", WallTime(at));
        }
        // No line is lost for standing out of order.
        assert_eq!(lacks(&config, "192.0.2.1", start + 30 * MINUTE).0, 1);
        assert_eq!(lacks(&config, "192.0.2.1", NOON - DAY).0, 1);
    }
}

/// A clock that was ahead for a while ends no search, and its files go when they are old.
#[test]
fn lines_of_a_clock_that_was_ahead_hide_none() {
    use RequestKind::{Begin, End, Page};
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let ahead = NOON + 20 * DAY;
    let lines = [(NOON, Begin), (ahead, Page), (NOON + HOUR, Page), (NOON + 2 * HOUR, Page), (NOON + 3 * HOUR, End)];
    written(&mut Files::new(config.clone()), &lines);
    for at in [NOON + HOUR, NOON + 2 * HOUR, ahead] {
        assert_eq!(lacks(&config, "192.0.2.1", at).0, 1);
    }
    assert_eq!(lacks(&config, UNASKED, NOON + HOUR), (0, None));
}

#[test]
fn who_is_killed_and_not_started_again_is_known_to_be_killed() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let log = RequestLog::start(config.clone()).unwrap();
    log.write(RequestLine { asked_at: now(), ..line(1) });
    while log.written() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let query = RequestsQuery { address: UNASKED.parse().unwrap(), from: now(), until: WallTime(now().0 + HOUR) };
    let lacks =
        |now: u64| search(&config.directory, &query, &Writing { now: WallTime(now), unwritten: log.unwritten() }).unwrap().uncovered;
    let later = now().0 + DAY;
    while !files::is_written(&config.directory) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(lacks(later), None, "it is idle");
    assert_eq!(lacks(query.until.0), Some(Uncovered::TooRecent));
    log.close();
    assert_eq!(lacks(later), None, "it has ended in good order");
    // As a kill leaves it: no end, and nobody holds the lock.
    let path = files::list(&config.directory).unwrap()[0].path.clone();
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(&path, lines.lines().filter(|line| !line.contains("\"end\"")).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    assert_eq!(lacks(later), Some(Uncovered::Killed));
}

#[test]
fn a_damaged_line_is_one_that_is_missing() {
    use RequestKind::{Begin, End, Page};
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let lines = [(NOON, Begin), (NOON + HOUR, Page), (NOON + 2 * HOUR, Page), (NOON + 3 * HOUR, Page), (NOON + 4 * HOUR, End)];
    written(&mut Files::new(config.clone()), &lines);
    let path = files::list(&config.directory).unwrap()[0].path.clone();
    let damaged = fs::read_to_string(&path).unwrap().replacen(&WallTime(NOON + 2 * HOUR).to_string(), "?", 1);
    fs::write(&path, damaged).unwrap();
    assert_eq!(lacks(&config, UNASKED, NOON + 2 * HOUR), (0, Some(Uncovered::LinesMissing)));
    assert_eq!(lacks(&config, UNASKED, NOON + 30 * MINUTE), (0, None));
    assert_eq!(lacks(&config, UNASKED, NOON + 3 * HOUR + 30 * MINUTE), (0, None));
}
