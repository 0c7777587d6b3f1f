//! Delays between members, by a relay before each one that holds back what goes through it.
//!
//! A daemon listens where nobody looks and advertises its relay. The relay sees by its address who dials, waits for half of the round
//! trip in each direction, and speaks from the dialler's address to the daemon.

use nearcrawl_lab::demo::daemons::SWARM_PORT;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
    time::Instant,
};

/// Where relays listen, at the address of the daemon behind them.
pub const RELAY_PORT: u16 = 4818;

/// For a swarm whose members are as far apart as in the world, and share two cores with hundreds of servers.
pub const FAR_TIMERS: &str = "dead_after = \"15s\"\nlease = \"10s\"\nvote_after = \"6s\"\n\
     ping_interval = \"1s\"\nping_timeout = \"800ms\"\nsuspicion_timeout = \"4s\"\n";

/// Chunks on their way in one direction of a connection. More wait in the sockets' buffers.
const MAX_UNDERWAY: usize = 256;

/// A relay before one daemon. It ends when this is dropped, and all connections through it.
pub struct Relay {
    _task: JoinSet<()>,
}

impl Relay {
    /// Relays to `address`:`port`; `round_trip` says how far somebody is.
    pub async fn start(
        address: Ipv4Addr,
        port: u16,
        round_trip: impl Fn(Ipv4Addr) -> Duration + Send + Sync + 'static,
    ) -> io::Result<Relay> {
        let listener = TcpListener::bind((address, RELAY_PORT)).await?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                // What has ended is of no interest, but would pile up.
                while connections.try_join_next().is_some() {}
                let Ok((near, asker)) = listener.accept().await else { continue };
                let IpAddr::V4(asker) = asker.ip() else { continue };
                connections.spawn(relay(near, asker, SocketAddr::from((address, port)), round_trip(asker) / 2));
            }
        });
        Ok(Relay { _task: task })
    }

    /// Relays to the daemons at these addresses; `round_trip` says how far each is from somebody.
    pub async fn before_all(
        addresses: &[Ipv4Addr],
        round_trip: impl Fn(Ipv4Addr, Ipv4Addr) -> Duration + Clone + Send + Sync + 'static,
    ) -> Vec<Relay> {
        let mut relays = Vec::new();
        for address in addresses {
            let (address, round_trip) = (*address, round_trip.clone());
            relays.push(Relay::start(address, SWARM_PORT, move |asker| round_trip(address, asker)).await.expect("a relay"));
        }
        relays
    }
}

/// One connection, until either side ends it.
async fn relay(near: TcpStream, asker: Ipv4Addr, to: SocketAddr, delay: Duration) {
    // Connecting takes a round trip, too.
    tokio::time::sleep(2 * delay).await;
    let Ok(far) = dial(asker, to).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    tokio::join!(carry(near_read, far_write, delay), carry(far_read, near_write, delay));
}

async fn dial(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    socket.connect(to).await
}

/// Everything that is read is written so much later.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut underway) = mpsc::channel::<(Instant, Vec<u8>)>(MAX_UNDERWAY);
    let reading = async move {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            if sender.send((Instant::now() + delay, buffer[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((due, bytes)) = underway.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}

#[tokio::test]
async fn an_echo_takes_a_round_trip_and_comes_back_whole() {
    let daemon = TcpListener::bind(("127.79.9.1", 0)).await.unwrap();
    let port = daemon.local_addr().unwrap().port();
    let echo = tokio::spawn(async move {
        let (mut stream, from) = daemon.accept().await.unwrap();
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        from.ip()
    });
    let asker = Ipv4Addr::new(127, 79, 9, 2);
    let round_trip = Duration::from_millis(40);
    let relay = Relay::start(Ipv4Addr::new(127, 79, 9, 1), port, move |who| if who == asker { round_trip } else { Duration::ZERO }).await;
    let mut stream = dial(asker, SocketAddr::from(([127, 79, 9, 1], RELAY_PORT))).await.unwrap();
    let sent: Vec<u8> = (0..100_000u32).map(|byte| byte as u8).collect();
    let begun = Instant::now();
    let (mut read, mut write) = stream.split();
    let mut came = vec![0; sent.len()];
    let (written, read) = tokio::join!(write.write_all(&sent), read.read_exact(&mut came));
    assert!(written.is_ok() && read.is_ok());
    // One to connect, one there and back.
    assert!(begun.elapsed() >= 2 * round_trip, "{:?}", begun.elapsed());
    assert_eq!(came, sent);
    drop(stream);
    assert_eq!(echo.await.unwrap(), IpAddr::V4(asker));
    drop(relay);
}
