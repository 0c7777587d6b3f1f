//! The running network: a thread reads what the nodes send, keeps it as long as it is on its way, and writes it to the receiver.

use crate::{Dropped, NetlabError, Plan, namespace::Namespace, network::Network};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Packets read from one node before a look at the others and at the clock.
const BATCH: usize = 64;

/// It is looked at least so often whether the network is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The largest packet, in bytes.
const MAX_PACKET: usize = 65_536;

/// A running network. It ends when this is dropped.
#[derive(Debug)]
pub struct Lab {
    namespaces: Vec<Namespace>,
    network: Arc<Mutex<Network>>,
    stop: Arc<AtomicBool>,
    forwarder: Option<JoinHandle<()>>,
}

impl Lab {
    /// Makes the namespaces and begins to pass packets between them.
    ///
    /// # Errors
    /// The plan is contradictory, or the message says what is missing here.
    pub fn start(plan: &Plan) -> Result<Lab, NetlabError> {
        let network = Arc::new(Mutex::new(Network::new(plan)?));
        let made =
            plan.nodes.iter().map(|node| Namespace::make(node, plan.routers.get(&node.name).copied())).collect::<Result<Vec<_>, _>>()?;
        let (namespaces, devices): (Vec<Namespace>, Vec<File>) = made.into_iter().unzip();
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, ends) = (network.clone(), stop.clone());
        let forwarder = std::thread::Builder::new()
            .name("netlab".to_owned())
            .spawn(move || forward(&shared, &devices, &ends))
            .map_err(NetlabError::system("a thread for packets"))?;
        Ok(Lab { namespaces, network, stop, forwarder: Some(forwarder) })
    }

    /// The calling thread, and the threads and processes that it starts from now on, are at a node.
    ///
    /// # Errors
    /// There is no such node.
    pub fn enter(&self, node: &str) -> Result<(), NetlabError> {
        self.namespace(node)?.enter()
    }

    /// Runs something at a node; processes and sockets that are made meanwhile stay there.
    ///
    /// # Errors
    /// There is no such node.
    pub fn run_at<T>(&self, node: &str, inside: impl FnOnce() -> T) -> Result<T, NetlabError> {
        self.namespace(node)?.run(inside)
    }

    /// From now on nothing passes between these nodes and those.
    ///
    /// # Errors
    /// There is no such node.
    pub fn part(&self, these: &[&str], those: &[&str]) -> Result<(), NetlabError> {
        let mut network = self.network();
        let (these, those) = (numbers(&network, these)?, numbers(&network, those)?);
        network.part(&these, &those);
        Ok(())
    }

    /// From now on everything passes.
    pub fn heal(&self) {
        self.network().heal();
    }

    /// From now on this share (0 to 1) of packets between any two of these nodes is lost, and none between others.
    ///
    /// # Errors
    /// There is no such node.
    pub fn lose(&self, share: f64, between: &[&str]) -> Result<(), NetlabError> {
        let mut network = self.network();
        let between = numbers(&network, between)?;
        network.lose(share, &between);
        Ok(())
    }

    /// How many packets were dropped since the start, by reason.
    pub fn dropped(&self) -> BTreeMap<Dropped, u64> {
        self.network().dropped().clone()
    }

    fn namespace(&self, node: &str) -> Result<&Namespace, NetlabError> {
        let number = self.network().node(node)?;
        self.namespaces.get(number).ok_or_else(|| NetlabError::Plan(format!("there is no node {node}")))
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        lock(&self.network)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(forwarder) = self.forwarder.take() {
            // If it panicked, that was seen: nothing passed any more.
            let _ = forwarder.join();
        }
    }
}

fn lock(network: &Mutex<Network>) -> MutexGuard<'_, Network> {
    network.lock().unwrap_or_else(PoisonError::into_inner)
}

fn numbers(network: &Network, names: &[&str]) -> Result<Vec<usize>, NetlabError> {
    names.iter().map(|name| network.node(name)).collect()
}

/// Passes packets until it is told to stop.
fn forward(network: &Mutex<Network>, devices: &[File], stop: &AtomicBool) {
    be_punctual();
    let began = Instant::now();
    let waiting = |device: &File| libc::pollfd { fd: device.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polls: Vec<_> = devices.iter().map(waiting).collect();
    let mut packet = vec![0; MAX_PACKET];
    while !stop.load(Ordering::Relaxed) {
        let mut network = lock(network);
        for (node, device) in devices.iter().enumerate() {
            if polls[node].revents & libc::POLLIN != 0 {
                read_some(&mut network, node, device, &mut packet, began);
            }
        }
        while let Some((to, bytes)) = network.take_due(began.elapsed()) {
            let mut device = &devices[to];
            if device.write(&bytes).is_err() {
                network.count(Dropped::NotTaken);
            }
        }
        let wait = network.next_due().map_or(LOOK_EVERY, |due| due.saturating_sub(began.elapsed()).min(LOOK_EVERY));
        drop(network);
        let wait = libc::timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        // SAFETY: the array and the time live through the call, and the length is the array's.
        unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, &wait, std::ptr::null()) };
    }
}

fn read_some(network: &mut Network, node: usize, mut device: &File, packet: &mut [u8], began: Instant) {
    for _ in 0..BATCH {
        let Ok(length) = device.read(packet) else { return };
        network.accept(node, &packet[..length], began.elapsed());
    }
}

/// Lets this thread wake up within a microsecond of its time rather than fifty, and before ordinary processes. Where that is refused,
/// packets are less punctual.
fn be_punctual() {
    // SAFETY: plain system calls that concern the calling thread only.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &libc::sched_param { sched_priority: 10 });
    }
}
