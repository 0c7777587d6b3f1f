//! Tests that a member that sends more than can be taken in is told so, and counted.

use super::*;
use crate::{
    event::{DiskRoom, RecordOrder},
    routing::acknowledgements::{Acknowledgement, MAX_ACKNOWLEDGEMENTS, Reply},
};
use nearcrawl_model::{
    journal::{Arrival, JournalKey},
    message::HandOff,
    request_record::{RecordParcel, RecordRange},
    spans::Spans,
};

#[test]
fn a_member_that_hands_over_more_than_can_be_recorded_is_told_to_come_again() {
    let mut played = Played::alone();
    played.pass(60_000);
    played.handle(Event::Seeds(vec![url("http://a.ke/")]));
    played.pass(60_000);
    let hand_off = |played: &mut Played, path: &str| {
        let located = LocatedHost { host: host("a.ke"), address: "9.0.1.1".parse().unwrap(), valid_for: 60_000 };
        let arrivals = vec![Arrival { url: url(&format!("http://a.ke/{path}")), place: None, run: 1 }];
        let request = Request::HandOff(vec![HandOff { host: located, arrivals }]);
        played.crawler.handle(played.now, Event::Asked { from: member(2), ticket: Ticket(9_999), request });
        let mut busy = false;
        while let Some(command) = played.crawler.next_command() {
            busy |= matches!(command, Command::Peers(PeerCommand::Answer { ticket: Ticket(9_999), response: Response::Busy(_) }));
        }
        busy
    };
    assert!(!hand_off(&mut played, "first"));
    let journal = JournalKey { subnet: "9.0.1.0/24".parse().unwrap(), host: host("a.ke"), run: 1 };
    for number in 0..MAX_ACKNOWLEDGEMENTS as u64 {
        let reply = Reply::Member { ticket: Ticket(number), not_mine: Vec::new() };
        played.crawler.routing.await_recording(Acknowledgement { reply, needs: vec![(journal.clone(), u64::MAX)] });
    }
    assert!(hand_off(&mut played, "second"), "it is not taken in");
    let status = played.crawler.view().status(Default::default());
    assert_eq!(status.refusals["hand-offs beyond the limit of those being recorded"], 1);
    assert!(status.limits.iter().any(|limit| limit.name == "hand-offs being recorded" && limit.used >= limit.max), "{:?}", status.limits);
}

#[test]
fn without_room_on_the_disk_no_copies_are_kept_for_others_and_it_is_said_why_nothing_is_fetched() {
    let mut played = Played::alone();
    played.pass(60_000);
    let keep = |played: &mut Played| {
        let none = Spans::default();
        let parcel = RecordParcel { covered: none.clone(), asked: none, hours: Vec::new() };
        let compare = Request::CompareRecord(RecordRange { from: 1, until: 2, digest: 3 });
        for request in [Request::Keep(Vec::new()), Request::KeepRecord(Box::new(parcel)), compare] {
            played.crawler.handle(played.now, Event::Asked { from: member(2), ticket: Ticket(9_999), request });
        }
        let commands: Vec<_> = std::iter::from_fn(|| played.crawler.next_command()).collect();
        let keeps = commands.iter().filter(|command| matches!(command, Command::Record { order: RecordOrder::Keep(..), .. })).count();
        let is_no = |command: &&Command| matches!(command, Command::Peers(PeerCommand::Answer { response: Response::NoRoom, .. }));
        let refused = commands.iter().filter(is_no).count();
        assert_eq!(keeps, usize::from(refused == 0), "the copy of a record of requests");
        let compares =
            |command: &Command| matches!(command, Command::Record { order: RecordOrder::Compare(from, _), .. } if *from == member(2));
        assert!(commands.iter().any(compares), "what is here is told in any case");
        refused
    };
    assert_eq!(keep(&mut played), 1, "there is little room for records, and none for whoever owns nothing");
    played.claimed_by(2, "9.0.2.0/24", false);
    assert_eq!(keep(&mut played), 0);
    for (room, says) in
        [(DiskRoom::LittleFree, "less than 256 MiB are free"), (DiskRoom::LimitReached(2 << 30), "the 2 GiB of the disk that they may")]
    {
        played.handle(Event::Room(room));
        assert_eq!(keep(&mut played), 2, "{room:?}");
        let status = played.crawler.view().status(Default::default());
        assert!(status.state_text.contains(says), "{}", status.state_text);
    }
    played.handle(Event::Room(DiskRoom::Enough));
    assert_eq!(keep(&mut played), 0);
}
