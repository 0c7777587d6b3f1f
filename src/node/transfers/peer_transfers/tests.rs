//! Tests that a member that hands over rows gets as much memory as it is allowed, and no more.

use super::*;
use crate::node::transfers::recovery_budget::{MAX_RECOVERED, MAX_RECOVERED_ONCE};

const MEMBER: AccessPoint = AccessPoint([3; 32]);

fn subnet() -> Subnet {
    "9.0.0.0/24".parse().unwrap()
}

fn key() -> JournalKey {
    JournalKey { subnet: subnet(), host: "a.ke".parse().unwrap(), run: 1 }
}

fn row(sequence: u64, entry: Vec<u8>) -> JournalRow {
    JournalRow { key: key(), sequence, entry }
}

/// A member that answers each request with what this makes of its cursor; how often it was asked comes back at the end.
fn member(
    answer: impl Fn(Option<(JournalKey, u64)>) -> (Vec<JournalRow>, Option<(JournalKey, u64)>) + Send + 'static,
) -> (mpsc::Sender<PeerQuestion>, tokio::task::JoinHandle<usize>) {
    let (asking, mut asked) = mpsc::channel::<PeerQuestion>(1);
    let answering = tokio::spawn(async move {
        let mut times = 0;
        while let Some(question) = asked.recv().await {
            times += 1;
            let Request::Recall(_, cursor) = question.request else { panic!("{:?}", question.request) };
            let (rows, next) = answer(cursor);
            let _ = question.reply.send(Some(Response::Recalled(rows, next)));
        }
        times
    });
    (asking, answering)
}

#[track_caller]
fn assert_unanswered(event: &Event) {
    assert!(matches!(event, Event::Recovered { from: MEMBER, journals: None, bytes: 0, .. }), "{event:?}");
}

fn refused(budget: &RecoveryBudget, words: &str) -> u64 {
    budget.refusals().iter().filter(|(class, _)| class.contains(words)).map(|(_, count)| count).sum()
}

#[tokio::test]
async fn a_member_that_repeats_a_piece_for_ever_is_asked_twice_and_counts_as_not_answered() {
    let standing = Some((key(), 7));
    let earlier = Some((key(), 6));
    let elsewhere = Some((JournalKey { subnet: "9.0.9.0/24".parse().unwrap(), ..key() }, 9));
    for (begin, then, times) in [(&standing, &standing, 2), (&standing, &earlier, 2), (&elsewhere, &None, 1)] {
        let budget = Arc::new(RecoveryBudget::default());
        let (begin, then) = (begin.clone(), then.clone());
        let (asking, answering) =
            member(move |cursor| (vec![row(0, vec![0])], if cursor.is_none() { begin.clone() } else { then.clone() }));
        let recovered = tokio::time::timeout(Duration::from_secs(20), recover(asking, Arc::clone(&budget), (subnet(), None), MEMBER)).await;
        assert_unanswered(&recovered.expect("it ends within 20 s"));
        assert_eq!((answering.await.unwrap(), refused(&budget, "do not advance"), budget.used()), (times, 1, 0));
    }
}

#[tokio::test]
async fn empty_pieces_that_go_on_for_ever_count_as_not_answered() {
    let budget = Arc::new(RecoveryBudget::default());
    let (asking, answering) = member(|cursor| (Vec::new(), Some((key(), cursor.map_or(0, |(_, at)| at + 1)))));
    let recovered = tokio::time::timeout(Duration::from_secs(20), recover(asking, Arc::clone(&budget), (subnet(), None), MEMBER)).await;
    assert_unanswered(&recovered.expect("it ends within 20 s"));
    assert_eq!((answering.await.unwrap(), refused(&budget, "do not advance")), (1, 1));
}

#[tokio::test]
async fn rows_beyond_what_one_member_may_send_of_a_subnet_do_not_count_and_those_before_do() {
    let budget = Arc::new(RecoveryBudget::default());
    let (asking, answering) = member(|cursor| {
        let at = cursor.map_or(0, |(_, at)| at);
        (vec![row(at, vec![0; MAX_ROW_BYTES])], Some((key(), at + 1)))
    });
    let Event::Recovered { journals: Some(journals), bytes, .. } = recover(asking, Arc::clone(&budget), (subnet(), None), MEMBER).await
    else {
        panic!("the first rows count")
    };
    let pieces = MAX_RECOVERED_ONCE / MAX_ROW_BYTES;
    assert_eq!(answering.await.unwrap(), pieces, "each row is a little longer than its share: the last is one too many");
    assert_eq!(bytes, (pieces - 1) * (MAX_ROW_BYTES + "a.ke".len() + ROW_OVERHEAD));
    assert_eq!(journals.len(), 1);
    assert_eq!((refused(&budget, "64 MiB"), budget.used()), (1, bytes), "until the crawler has them");
    budget.arrived(bytes, bytes);
    assert_eq!(budget.used(), bytes, "the crawler holds them");
    budget.arrived(0, 0);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn a_transfer_for_which_there_is_no_room_is_to_be_asked_for_again() {
    let budget = Arc::new(RecoveryBudget::default());
    // Rows that the crawler holds, and those of another transfer.
    let mut other = budget.share();
    assert!(other.take(1_000));
    budget.arrived(0, MAX_RECOVERED - 1_000 - ROW_OVERHEAD);
    let (asking, _) = member(|_| (vec![row(0, vec![0; 100])], None));
    let again = asking.clone();
    assert_unanswered(&recover(asking, Arc::clone(&budget), (subnet(), None), MEMBER).await);
    assert_eq!(refused(&budget, "256 MiB"), 1);
    drop(other);
    let Event::Recovered { journals: Some(_), bytes, .. } = recover(again, Arc::clone(&budget), (subnet(), None), MEMBER).await else {
        panic!("there is room now")
    };
    assert_eq!(bytes, 100 + "a.ke".len() + ROW_OVERHEAD);
}
