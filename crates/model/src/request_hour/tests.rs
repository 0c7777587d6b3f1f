//! Tests of records of an hour.

use super::*;

const AT: u64 = 1_790_000_000_000 / HOUR * HOUR;

fn asked(address: &str, second: u64, rule: &'static str, host: &str) -> AskedServer<'static> {
    let at = WallTime(AT + second * 1_000);
    AskedServer { at, address: address.parse().unwrap(), rule, host: host.parse().ok(), bytes: 1_500 }
}

fn query(from: u64, until: u64) -> RequestsQuery {
    RequestsQuery { address: "192.0.2.1".parse().unwrap(), from: WallTime(AT + from * 1_000), until: WallTime(AT + until * 1_000) }
}

/// Requests to this many servers, each asked for robots.txt and a page.
fn busy(servers: u32) -> RequestHour {
    busy_at(0..servers)
}

fn busy_at(servers: std::ops::Range<u32>) -> RequestHour {
    let mut hour = RequestHour::new(hour_of(WallTime(AT)));
    for number in servers {
        // Spread over all addresses, the same in each run.
        let address = IpAddr::V4(Ipv4Addr::from_bits(number.wrapping_mul(2_654_435_761)));
        let at = WallTime(AT + u64::from(number.wrapping_mul(40_503) % 3_500) * 1_000);
        let host: Option<Host> = format!("www.shop{number}.example").parse().ok();
        for (rule, later, bytes) in [("robots", 0, 90), ("start", 2_000, u64::from(number.wrapping_mul(7_919) % 100_000))] {
            hour.add(&AskedServer { at: WallTime(at.0 + later), address, rule, host: host.clone(), bytes });
        }
    }
    hour
}

#[test]
fn an_hour_says_of_each_server_how_often_when_and_why_it_was_asked() {
    let mut hour = RequestHour::new(hour_of(WallTime(AT)));
    for (second, rule) in [(310, "link"), (10, "robots"), (3_599, "link"), (20, "a-rule-of-tomorrow")] {
        hour.add(&asked("192.0.2.1", second, rule, "a.ke"));
    }
    for number in 0..=MAX_HOSTS {
        hour.add(&asked("2001:db8::7", 900, "survey", &format!("{number}.ke")));
    }
    hour.add(&asked("::ffff:192.0.2.9", 900, "home", ""));
    let read = RequestHour::unpack(&hour.pack()).unwrap();
    assert_eq!(read, hour);
    let server = read.server(&"192.0.2.1".parse().unwrap()).unwrap();
    assert_eq!(server.span(read.hour), (WallTime(AT + 10_000), WallTime(AT + 3_599_999)));
    assert_eq!((server.requests(), server.bytes(), server.hosts()), (4, 8 << 10, (&["a.ke".parse().unwrap()][..], true)));
    assert_eq!(server.rules().collect::<Vec<_>>(), ["robots", "link", "other"]);
    let many = read.server(&"2001:db8::7".parse().unwrap()).unwrap();
    assert!(many.hosts().0.len() == MAX_HOSTS && !many.hosts().1, "{many:?}");
    assert!(read.server(&"192.0.2.9".parse().unwrap()).unwrap().hosts() == (&[], true) && read.len() == 3);
}

#[test]
fn a_time_within_the_hour_is_answered_as_far_as_five_minutes_tell() {
    let mut hour = RequestHour::new(hour_of(WallTime(AT)));
    for second in [310, 700, 1_000] {
        hour.add(&asked("192.0.2.1", second, "link", "a.ke"));
    }
    let within = |from, until| hour.within(&"192.0.2.1".parse().unwrap(), &query(from, until));
    assert_eq!(within(305, 315), Within::Yes, "the first one");
    assert_eq!(within(995, 1_005), Within::Yes, "the last one");
    assert_eq!(within(600, 900), Within::Yes, "five minutes in which one began");
    assert_eq!(within(800, 850), Within::Perhaps, "a part of them");
    for (from, until) in [(0, 309), (1_001, 3_600)] {
        assert_eq!(within(from, until), Within::No, "{from}");
    }
    assert_eq!(hour.within(&"192.0.2.2".parse().unwrap(), &query(0, 3_600)), Within::No);
    // Without seconds the first and the last one are as vague as the others.
    hour.detail = Detail::SlotsOnly;
    let coarse = RequestHour::unpack(&hour.pack()).unwrap();
    let within = |from, until| coarse.within(&"192.0.2.1".parse().unwrap(), &query(from, until));
    assert_eq!((within(305, 315), within(300, 600), within(0, 299)), (Within::Perhaps, Within::Yes, Within::No));
}

#[test]
fn records_of_the_same_hour_are_one() {
    let (mut one, mut other, mut both) = (busy(0), busy(0), busy(0));
    for (number, second) in [10, 500, 20, 3_000].into_iter().enumerate() {
        let asked = asked("192.0.2.1", second, "link", "a.ke");
        if number % 2 == 0 { &mut one } else { &mut other }.add(&asked);
        both.add(&asked);
    }
    one.merge(&other);
    assert_eq!(one, both);
}

/// What a daemon can do with 64 connections and two seconds between requests.
#[test]
fn the_busiest_hour_fits_and_names_every_server() {
    let hour = busy(57_600);
    let packed = hour.pack();
    assert!(packed.len() <= MAX_PACKED, "{} bytes", packed.len());
    let read = RequestHour::unpack(&packed).unwrap();
    assert_eq!((read.len(), read.left_out), (57_600, 0));
    let few = busy(200).pack().len();
    println!("{} bytes of 57,600 servers; {few} of 200", packed.len());
    assert!(few < 5_000, "{few} bytes of 200 servers with their hosts");
}

#[test]
fn what_does_not_fit_is_counted_and_makes_the_rest_unsure() {
    let mut hour = RequestHour::new(7);
    for number in 0..MAX_SERVERS as u128 + 5 {
        let address = IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8 << 96) + number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c) % (1 << 90)));
        hour.add(&AskedServer { at: WallTime(7 * HOUR), address, rule: "link", host: None, bytes: 0 });
    }
    assert_eq!((hour.len(), hour.left_out), (MAX_SERVERS, 5));
    let packed = hour.pack();
    let read = RequestHour::unpack(&packed).unwrap();
    assert!(packed.len() <= MAX_PACKED && read.left_out + read.len() as u64 == MAX_SERVERS as u64 + 5, "{} {}", packed.len(), read.len());
}

#[test]
fn foreign_bytes_are_refused() {
    let columns = || {
        let mut columns = Columns::empty(7, 0, Detail::NoHosts);
        let server = ServerHour { slots: 1, requests: 1, ..ServerHour::default() };
        let mut before = (0, 0);
        columns.push(&mut before, &"192.0.2.1".parse().unwrap(), server.clone());
        columns.push(&mut before, &"192.0.2.2".parse().unwrap(), server);
        columns
    };
    let read = |columns: Columns| RequestHour::unpack(&packed::pack(&postcard::to_stdvec(&columns).unwrap()));
    assert_eq!(read(columns()).map(|hour| hour.len()), Ok(2));
    let wrong: [fn(&mut Columns); 7] = [
        |columns| columns.v4.truncate(1),
        |columns| columns.v4[1] = 0,
        |columns| columns.v4[1] = u32::MAX,
        |columns| columns.slots[0] = 0,
        |columns| columns.slots[0] = 1 << SLOTS,
        |columns| columns.lasted[0] = 3_600,
        |columns| columns.hosts.push(Vec::new()),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        let mut columns = columns();
        change(&mut columns);
        assert!(read(columns).is_err(), "{number}");
    }
    assert!(RequestHour::unpack(b"").is_err() && RequestHour::unpack(&[0, 1, 2]).is_err());
}

#[test]
fn two_copies_together_count_requests_once_and_leave_out_no_server_of_the_earlier_one() {
    let hour = |asked: &[AskedServer<'_>]| {
        let mut hour = RequestHour::new(hour_of(WallTime(AT)));
        asked.iter().for_each(|asked| hour.add(asked));
        hour
    };
    let [robots, page, other] =
        [asked("192.0.2.1", 10, "robots", "a.ke"), asked("192.0.2.1", 700, "link", "b.ke"), asked("192.0.2.2", 20, "start", "c.ke")];
    let (earlier, later) = (hour(&[robots.clone(), other]), hour(&[robots, page]));
    let both = RequestHour::unpack(&earlier.pack_with(&later).unwrap()).unwrap();
    let server = both.server(&"192.0.2.1".parse().unwrap()).unwrap();
    assert_eq!((server.requests(), server.bytes(), server.hosts().0.len()), (2, 4 << 10, 2));
    assert_eq!(server.span(both.hour), (WallTime(AT + 10_000), WallTime(AT + 700_999)));
    assert_eq!(both.server(&"192.0.2.2".parse().unwrap()), earlier.server(&"192.0.2.2".parse().unwrap()));
    assert_eq!(later.pack_with(&later).map(|packed| mark_of(&packed)), Some(mark_of(&later.pack())), "one copy with itself");
}

/// A member cannot make room for other servers in place of those that it named.
#[test]
fn where_two_copies_do_not_fit_the_earlier_one_stays_and_the_rest_is_not_said_no_of() {
    let (earlier, later) = (busy_at(0..1_000), busy_at(1_000..60_000));
    let packed = earlier.pack_with(&later).unwrap();
    assert!(packed.len() <= MAX_PACKED, "{} bytes", packed.len());
    let both = RequestHour::unpack(&packed).unwrap();
    assert!(earlier.servers.keys().all(|address| both.server(address).is_some()) && both.len() <= MAX_SERVERS);
    let (earlier, later) = (busy_at(0..50_000), busy_at(50_000..100_000));
    let packed = earlier.pack_with(&later).unwrap();
    assert!(packed.len() <= MAX_PACKED, "{} bytes", packed.len());
    let both = RequestHour::unpack(&packed).unwrap();
    assert!(earlier.servers.keys().all(|address| both.server(address).is_some()) && both.left_out > 0, "{}", both.left_out);
}
