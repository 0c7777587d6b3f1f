//! Is every line there once, and is there never more than is to be kept?

use super::{files, *};
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
    // One that has nothing to say writes nothing.
    RequestLog::start(config.clone()).unwrap().close();
    let (mut reader, mut kinds) = (Reader::new(&config.directory, WallTime(0)), Vec::new());
    let mut note = |line: RequestLine| {
        kinds.push(line.kind);
        ControlFlow::Continue(())
    };
    reader.read(&mut note).unwrap();
    use RequestKind::{Begin, End, Page};
    assert_eq!(kinds, [Begin, Page, End, Begin, Page, Begin, Page, End]);
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
fn a_disk_that_takes_nothing_costs_lines_that_are_counted_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    // Nothing can be written where a file has the directory's name.
    fs::write(&config.directory, b"").unwrap();
    let log = RequestLog::start(config.clone()).unwrap();
    (0..5).for_each(|number| log.write(line(number)));
    while log.dropped() < 5 {
        thread::sleep(Duration::from_millis(1));
    }
    fs::remove_file(&config.directory).unwrap();
    log.write(line(5));
    log.close();
    assert_eq!((log.written(), log.dropped()), (1, 5));
    let (found, _) = read(&config, WallTime(0));
    assert_eq!((found[0].kind, found[0].lines, found[1].host.as_str()), (RequestKind::Gap, Some(5), "host-5.ke"));
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
