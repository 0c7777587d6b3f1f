//! Tests of deliveries of a record to a replica, which is played here.

use super::*;
use nearcrawl_model::{
    request_hour::{AskedServer, RequestHour, mark_of},
    time::WallTime,
};
use std::net::{IpAddr, Ipv4Addr};

const HOUR_0: u32 = 497_000;
const REPLICA: AccessPoint = AccessPoint([2; 32]);

/// A replica, what it does not do, and what went to it.
struct Played {
    deliveries: Deliveries,
    own: RecordIndex,
    disk: BTreeMap<u32, Vec<u8>>,
    replica: RecordIndex,
    now: Now,
    /// Whether the replica knows the question which hours it has, answers at all, and keeps what it is sent.
    compares: bool,
    answers: bool,
    keeps: bool,
    saves: bool,
    messages: usize,
    bytes: usize,
}

impl Played {
    /// At so many minutes of the first hour.
    fn new(minutes: u64) -> Played {
        let now = Now { moment: Moment(1), wall: WallTime(u64::from(HOUR_0) * HOUR + minutes * 60_000) };
        Played {
            deliveries: Deliveries::new(SEND_EVERY),
            own: RecordIndex::default(),
            disk: BTreeMap::new(),
            replica: RecordIndex::default(),
            now,
            compares: true,
            answers: true,
            keeps: true,
            saves: false,
            messages: 0,
            bytes: 0,
        }
    }

    fn store(&mut self, hour: u32, packed: Vec<u8>) {
        self.own.stored(HOUR_0 + hour, &packed);
        self.own.covered.add(HOUR_0 * 12, (HOUR_0 + hour + 1) * 12);
        self.disk.insert(HOUR_0 + hour, packed);
    }

    fn pass(&mut self, minutes: u64) {
        self.now.moment = self.now.moment.after(minutes * 60_000);
        self.now.wall = WallTime(self.now.wall.0 + minutes * 60_000);
    }

    /// Which hours the replica gets now.
    fn look(&mut self) -> Vec<u32> {
        let mut got = Vec::new();
        for member in self.deliveries.due(&[REPLICA].into(), self.now.moment) {
            while let Some(next) = self.deliveries.next(member, &self.own, self.now, self.saves) {
                self.messages += 1;
                match next {
                    _ if !self.answers => {
                        self.deliveries.failed(member, self.now.moment);
                        break;
                    }
                    Delivery::Compare(range) => {
                        let told = self.compares.then(|| self.replica.compared(&range));
                        self.deliveries.compared(member, &self.own, told, self.now);
                    }
                    Delivery::Hours(hours, parcel) => got.extend(self.deliver(member, &hours, &parcel)),
                }
            }
        }
        got
    }

    fn deliver(&mut self, member: AccessPoint, hours: &[u32], parcel: &RecordParcel) -> Vec<u32> {
        let mut sent = Vec::new();
        for hour in hours {
            let packed = &self.disk[hour];
            sent.push((*hour, mark_of(packed), packed.len() as u32));
            self.bytes += packed.len();
            if self.keeps {
                self.replica.stored(*hour, packed);
            }
        }
        self.replica.covered.join(&parcel.covered);
        let kept = self.replica.hours.keys().copied().collect();
        self.deliveries.kept(member, &self.own, &sent, &kept, self.now);
        hours.iter().map(|hour| hour - HOUR_0).collect()
    }

    fn has_all(&self) -> bool {
        self.own.marks == self.replica.marks
    }
}

#[test]
fn a_replica_gets_each_hour_once_and_again_what_has_changed_since() {
    let mut played = Played::new(4 * 60 + 30);
    (0..4).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    assert_eq!(played.look(), [3, 2, 1, 0]);
    assert!(played.has_all() && played.look().is_empty());
    played.pass(10);
    assert!(played.look().is_empty());
    // The machine slept: a request that began three hours ago has ended now.
    played.store(1, vec![9; 100]);
    played.pass(10);
    assert_eq!(played.look(), [1]);
    // The clock is set back by three hours, and the hours of that time are written to once more.
    played.pass(10);
    played.now.wall = WallTime(played.now.wall.0 - 3 * HOUR);
    played.store(1, vec![8; 100]);
    assert_eq!(played.look(), [1]);
    assert!(played.has_all());
}

#[test]
fn a_replica_that_lost_its_disk_gets_all_again_and_one_that_is_new_what_it_lacks() {
    let mut played = Played::new(4 * 60 + 30);
    (0..4).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    played.look();
    played.replica = RecordIndex::default();
    played.pass(60);
    played.look();
    assert!(played.has_all() && !played.replica.covered.is_empty());
    // It had copies from earlier, of which one is another one.
    let mut played = Played::new(4 * 60 + 30);
    (0..4).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    [0, 1, 2].iter().for_each(|hour| played.replica.stored(HOUR_0 + hour, &[*hour as u8; 100]));
    played.replica.stored(HOUR_0 + 1, &[7; 100]);
    assert_eq!(played.look(), [3, 1]);
    // An earlier copy is on its disk again: that comes to light within a day.
    played.replica.stored(HOUR_0 + 2, &[7; 100]);
    for _ in 0..25 {
        played.pass(60);
        played.look();
    }
    assert!(played.has_all());
}

#[test]
fn the_hour_that_goes_on_is_sent_every_ten_minutes_if_it_has_changed_and_large_ones_more_rarely() {
    let mut played = Played::new(5);
    let mut got = Vec::new();
    for minute in 0..60 {
        if minute < 30 {
            played.store(0, vec![minute; 3_000]);
        }
        got.extend(played.look().into_iter().map(|_| minute));
        played.pass(1);
    }
    assert_eq!(got, [0, 10, 20, 30]);
    let mut played = Played::new(5);
    let mut got = Vec::new();
    for minute in 0..60 {
        played.store(0, vec![minute; 3 * RUNNING_BYTES as usize]);
        got.extend(played.look().into_iter().map(|_| minute));
        played.pass(1);
    }
    assert_eq!(got, [0, 30]);
    // Where bytes are spent it waits until it is final.
    let mut played = Played::new(5);
    played.saves = true;
    played.store(0, vec![1; 100]);
    assert!(played.look().is_empty());
    played.pass(75);
    assert_eq!(played.look(), [0]);
}

/// Of what it was not sent the copy would say no.
#[test]
fn of_an_hour_that_waits_the_replica_is_not_told_that_it_is_covered() {
    let mut played = Played::new(55);
    played.store(0, vec![1; 3 * RUNNING_BYTES as usize]);
    played.look();
    assert!(played.replica.covered.contains(HOUR_0 * 12));
    played.own.covered = [HOUR_0 * 12, HOUR_0 * 12 + 1, HOUR_0 * 12 + 2].into_iter().collect();
    played.own.stored(HOUR_0, &[2; 100]);
    played.disk.insert(HOUR_0, vec![2; 100]);
    played.replica.covered = Spans::default();
    played.deliveries.replicas.get_mut(&REPLICA).unwrap().tell_at = Moment(0);
    played.pass(10);
    assert!(played.look().is_empty() && played.replica.covered.is_empty());
    played.pass(20);
    assert!(played.look() == [0] && played.replica.covered.contains(HOUR_0 * 12 + 2));
}

#[test]
fn a_replica_that_lacks_much_gets_it_little_by_little_the_newest_first() {
    let mut played = Played::new(24 * 60 + 30);
    (0..24).for_each(|hour| played.store(hour, vec![hour as u8; 100 << 10]));
    assert_eq!(played.look(), [23, 22, 21, 20, 19, 18, 17, 16]);
    let mut hours = 0;
    while !played.has_all() {
        let before = played.bytes;
        (0..6).for_each(|_| {
            played.look();
            played.pass(10);
        });
        assert!(played.bytes - before <= MAX_HOURLY_BYTES as usize);
        hours += 1;
    }
    assert!((2..=3).contains(&hours), "{hours}");
    // Hours that are over soon are not sent: a replica whose clock is ahead would refuse all that comes with them.
    let mut played = Played::new(30 * 24 * 60 + 30);
    (0..4).for_each(|hour| played.store(hour, vec![1; 100]));
    assert_eq!(played.look(), [3, 2]);
}

#[test]
fn one_that_does_not_answer_is_left_alone_and_one_of_an_earlier_build_gets_what_it_lacks() {
    let mut played = Played::new(4 * 60 + 30);
    played.answers = false;
    (0..4).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    let mut tried = Vec::new();
    for hour in 0..8 {
        let before = played.messages;
        played.look();
        tried.extend((played.messages > before).then_some(hour));
        played.pass(60);
    }
    assert_eq!(tried, [0, 1, 2, 3, 5]);
    played.pass(24 * 60);
    (played.answers, played.compares) = (true, false);
    assert_eq!(played.look(), [3, 2, 1, 0]);
    assert!(played.has_all());
    // It is known by its answers which hours it has.
    played.deliveries = Deliveries::new(SEND_EVERY);
    played.replica.hours.remove(&HOUR_0);
    played.pass(24 * 60);
    assert_eq!(played.look(), [0]);
}

/// Of a copy that may be an earlier one the replica would say no of what came later.
#[test]
fn hours_are_not_told_as_covered_before_it_is_known_which_copies_of_them_are_there() {
    let mut played = Played::new(9 * 60 + 30);
    (0..9).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    (0..9).for_each(|hour| played.replica.stored(HOUR_0 + hour, &[hour as u8; 100]));
    played.replica.stored(HOUR_0 + 1, &[7; 100]);
    let covered = |played: &Played, hour: u32| played.replica.covered.contains((HOUR_0 + hour) * 12);
    // It is busy once: that is no refusal, and it is asked again soon.
    played.answers = false;
    assert!(played.look().is_empty());
    (played.answers, played.compares) = (true, false);
    played.pass(10);
    assert_eq!(played.look(), [8, 7, 6], "it refuses to say which copies it has");
    assert!(covered(&played, 8) && !covered(&played, 1) && !covered(&played, 2));
    played.pass(50);
    assert!(played.look().is_empty() && !covered(&played, 1));
    // An hour after it refused it is asked again, and says so.
    played.compares = true;
    played.pass(10);
    assert_eq!(played.look(), [1]);
    assert!(played.has_all() && covered(&played, 1) && covered(&played, 2));
}

#[test]
fn one_that_does_not_answer_once_is_compared_with_soon() {
    let mut played = Played::new(9 * 60 + 30);
    (0..9).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    (0..9).for_each(|hour| played.replica.stored(HOUR_0 + hour, &[hour as u8; 100]));
    played.replica.stored(HOUR_0 + 1, &[7; 100]);
    played.answers = false;
    assert!(played.look().is_empty() && played.messages == 1, "nothing is sent before it is known what it has");
    played.answers = true;
    played.pass(10);
    assert_eq!(played.look(), [1]);
}

#[test]
fn what_is_not_kept_is_not_sent_again_and_again() {
    let mut played = Played::new(4 * 60 + 30);
    played.keeps = false;
    (0..4).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    assert_eq!(played.look().len(), 4);
    for _ in 0..20 {
        played.pass(60);
        assert!(played.look().is_empty());
    }
    played.pass(5 * 60);
    assert_eq!(played.look().len(), 4, "a day later it is asked again");
}

#[test]
fn an_hour_that_a_clock_ahead_left_is_not_sent_before_its_time() {
    let mut played = Played::new(4 * 60 + 30);
    (0..4).for_each(|hour| played.store(hour, vec![hour as u8; 100]));
    played.store(50, vec![1; 100]);
    assert_eq!(played.look(), [3, 2, 1, 0]);
    played.pass(46 * 60);
    assert_eq!(played.look(), [50]);
}

/// What docs/OPERATING.md says of the bytes of copies.
#[test]
fn copies_of_a_day_cost_what_is_written_down() {
    for (servers, least, most) in [(2_u32, 2_000, 60_000), (200, 150_000, 400_000)] {
        let mut played = Played::new(0);
        let mut hour = RequestHour::new(HOUR_0);
        for minute in 0..24 * 60_u32 {
            if minute % 60 == 0 {
                hour = RequestHour::new(HOUR_0 + minute / 60);
            }
            // Each server has its time of the hour, and is asked a page every minute for a tenth of it.
            for number in (0..servers).filter(|number| (number * 7 + 60 - minute % 60) % 60 < 6) {
                // Spread over all addresses, names, seconds and sizes, the same in each run.
                let spread = (minute * 256 + number).wrapping_mul(40_503);
                let address = IpAddr::V4(Ipv4Addr::from_bits(number.wrapping_mul(2_654_435_761)));
                let host = format!("www.{:x}.example", number.wrapping_mul(2_246_822_519)).parse().ok();
                let at = WallTime(played.now.wall.0 + u64::from(spread % 60) * 1_000);
                hour.add(&AskedServer { at, address, rule: "link", host, bytes: u64::from(spread % 90_000) });
            }
            if minute % 5 == 4 && !hour.is_empty() {
                played.store(minute / 60, hour.pack());
            }
            played.look();
            played.pass(1);
        }
        println!("{servers} servers an hour: {} bytes in {} messages to one replica in a day", played.bytes, played.messages);
        assert!((least..most).contains(&played.bytes), "{} bytes", played.bytes);
        assert!(played.messages <= 24 * 6 + 2, "{}", played.messages);
    }
}

#[test]
fn copies_of_the_greatest_hours_cost_what_is_written_down() {
    let mut played = Played::new(0);
    for minute in 0..24 * 60_u64 {
        if minute % 5 == 4 {
            played.store(minute as u32 / 60, vec![minute as u8; (minute as usize % 60 + 1) * (256 << 10) / 60]);
        }
        played.look();
        played.pass(1);
    }
    println!("{} bytes in {} messages to one replica in a day", played.bytes, played.messages);
    assert!((6_000_000..14_000_000).contains(&played.bytes), "{} bytes", played.bytes);
}
