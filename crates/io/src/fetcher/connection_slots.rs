//! Exclusive use of an address: each address has one connection slot (lock and queue) with at most one connection.

use super::connection::Connection;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Mutex as AsyncMutex, watch};

/// The lock and the connection of one address.
pub struct ConnectionSlot {
    /// The connection, idle or in use. The task that holds the lock sends requests.
    pub connection: AsyncMutex<Option<Connection>>,
    /// Whoever's answer came last takes this before the connection is given on, and holds it until the answer is read: the next one may be
    /// on its way meanwhile, but is not read, or told, before.
    pub reading: AsyncMutex<()>,
    /// Changes when tasks that use the slot, or wait for it, must give up.
    stop: watch::Sender<u64>,
}

impl ConnectionSlot {
    /// Completes when tasks must give the slot up.
    pub fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut stop = self.stop.subscribe();
        async move {
            let _ = stop.changed().await;
        }
    }

    /// Makes all tasks give up, then closes the connection and waits until it is closed.
    async fn close(&self) {
        self.stop.send_modify(|count| *count += 1);
        let connection = self.connection.lock().await.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// Closes the connection if it has been idle for so long, or is dead. Does nothing while the slot is in use.
    async fn sweep(&self, idle: Duration) {
        let Ok(mut kept) = self.connection.try_lock() else { return };
        let is_over = kept.as_ref().is_some_and(|connection| !connection.is_usable() || connection.idle_since.elapsed() >= idle);
        // The lock is held until the end, so that no new connection is opened while the old one is closing.
        if is_over && let Some(connection) = kept.take() {
            connection.close().await;
        }
    }

    fn is_empty(&self) -> bool {
        self.connection.try_lock().is_ok_and(|kept| kept.is_none())
    }
}

/// All slots in use. One without a connection is removed as soon as no task uses it.
#[derive(Default)]
pub struct ConnectionSlots(Mutex<HashMap<IpAddr, Arc<ConnectionSlot>>>);

impl ConnectionSlots {
    /// The slot to an address, made if there is none.
    pub fn enter(&self, address: IpAddr) -> Arc<ConnectionSlot> {
        let new =
            || Arc::new(ConnectionSlot { connection: AsyncMutex::new(None), reading: AsyncMutex::new(()), stop: watch::Sender::new(0) });
        self.locked().entry(address).or_insert_with(new).clone()
    }

    /// Ends the use of a slot, and removes it if it is unused and has no connection.
    pub fn leave(&self, address: IpAddr, slot: Arc<ConnectionSlot>) {
        let mut slots = self.locked();
        // Two holders are the map and we: slots are only handed out under this lock.
        if Arc::strong_count(&slot) == 2 && slot.is_empty() {
            slots.remove(&address);
        }
    }

    /// Cancels the requests to an address and closes its connection.
    pub async fn close(&self, address: IpAddr) {
        let slot = self.locked().get(&address).cloned();
        if let Some(slot) = slot {
            slot.close().await;
            self.leave(address, slot);
        }
    }

    /// Stops and closes everything, all at the same time.
    pub async fn close_all(&self) {
        let addresses: Vec<IpAddr> = self.locked().keys().copied().collect();
        futures::future::join_all(addresses.into_iter().map(|address| self.close(address))).await;
    }

    /// Closes connections that have been idle for at least this long.
    pub async fn sweep(&self, idle: Duration) {
        let slots: Vec<(IpAddr, Arc<ConnectionSlot>)> = self.locked().iter().map(|(address, slot)| (*address, slot.clone())).collect();
        for (address, slot) in slots {
            slot.sweep(idle).await;
            self.leave(address, slot);
        }
    }

    /// How many addresses have a slot.
    pub fn count(&self) -> usize {
        self.locked().len()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, Arc<ConnectionSlot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
