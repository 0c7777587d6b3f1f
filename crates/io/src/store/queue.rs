//! Queue of actions for a thread of the store, in the order in which callers asked first, also when it is full and many futures wait.
//!
//! A bounded channel alone does not keep that order: a future that was waiting is given a slot and woken, and until it is polled one that
//! asks for the first time may take a slot that became free meanwhile, and be before it.

use super::error::StoreError;
use tokio::{
    sync::{Mutex, mpsc},
    task::unconstrained,
};

/// Where actions for a thread are put in.
pub(super) struct ActionQueue<A> {
    queue: mpsc::Sender<A>,
    /// Held by the future that is the next to put something in; it goes from one to the next in the order in which they asked.
    turn: Mutex<()>,
}

impl<A> std::fmt::Debug for ActionQueue<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActionQueue").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl<A> ActionQueue<A> {
    pub(super) fn new(queue: mpsc::Sender<A>) -> ActionQueue<A> {
        ActionQueue { queue, turn: Mutex::new(()) }
    }

    /// Waits for room, then puts in what `action` makes.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) async fn put(&self, action: impl FnOnce() -> A) -> Result<(), StoreError> {
        // Without tokio's budget for a task: a future that it sends away before it asked has no place, and the next one is not sent away.
        unconstrained(async {
            let _turn = self.turn.lock().await;
            let place = self.queue.reserve().await.map_err(|_| StoreError::Closed)?;
            place.send(action());
            Ok(())
        })
        .await
    }

    /// Puts something in if there is room and nobody waits.
    pub(super) fn try_put(&self, action: impl FnOnce() -> A) {
        if let Ok(_turn) = self.turn.try_lock()
            && let Ok(place) = self.queue.try_reserve()
        {
            place.send(action());
        }
    }

    /// How many actions wait in the queue.
    pub(super) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;
    use std::{pin::pin, task::Poll};

    #[tokio::test]
    async fn whoever_waited_is_before_who_asks_when_there_is_room_for_both() {
        let (sender, mut actions) = mpsc::channel(2);
        let queue = ActionQueue::new(sender);
        queue.put(|| 1).await.unwrap();
        queue.put(|| 2).await.unwrap();
        let mut third = pin!(queue.put(|| 3));
        assert!(poll!(&mut third).is_pending(), "the queue is full");
        assert_eq!((actions.recv().await, actions.recv().await), (Some(1), Some(2)));

        // The third has been woken, and is polled after the fourth.
        let mut fourth = pin!(queue.put(|| 4));
        let mut fourth_is_put = matches!(poll!(&mut fourth), Poll::Ready(Ok(())));
        queue.try_put(|| 5);
        third.await.unwrap();
        if !fourth_is_put {
            fourth_is_put = fourth.await.is_ok();
        }

        assert!(fourth_is_put);
        assert_eq!((actions.recv().await, actions.recv().await), (Some(3), Some(4)));
        assert!(actions.try_recv().is_err(), "what is only put if nobody waits was not");
    }
}
