//! Counts the bytes of a TCP connection on the wire: headers, acknowledgements and what is sent again included.
//!
//! The kernel counts its segments.

use std::{
    mem::{offset_of, size_of, zeroed},
    net::SocketAddr,
    os::fd::{AsRawFd, RawFd},
};

/// The header of an Ethernet frame, in bytes. What interfaces count has it, too.
const LINK_HEADER: u64 = 14;

/// What a segment's own header and its times take, in bytes.
const TCP_HEADER: u64 = 20;
const TIMES: u64 = 12;

/// The bit of `tcpi_options` that says that segments have times.
const HAS_TIMES: u8 = 1;

/// What a segment carries at most, in bytes, where the kernel does not say how many there were.
const SEGMENT: u64 = 1_400;

/// What is counted of one connection. It is asked only while the socket is open.
#[derive(Debug)]
pub struct TcpBytes {
    socket: RawFd,
    ip_header: u64,
    /// Payload that is counted: what was read and written, and what was sent again.
    moved: u64,
    begun: Option<Totals>,
    /// Segments whose headers are counted, and payload that is counted because it was sent again.
    segments: u32,
    again: u64,
}

/// What the kernel has counted so far.
#[derive(Clone, Copy, Debug)]
struct Totals {
    /// Payload, both ways; what was sent twice counts twice.
    payload: u64,
    /// Payload that was sent again, once for each time.
    again: u64,
    /// Segments, both ways, those without payload among them.
    segments: u32,
    has_times: bool,
}

impl TcpBytes {
    /// From now on; what the handshake took is not in it. `peer` is the other end, as far as it is known.
    pub fn of(socket: &impl AsRawFd, peer: Option<SocketAddr>) -> TcpBytes {
        let socket = socket.as_raw_fd();
        let ip_header = if peer.is_some_and(|peer| peer.is_ipv6()) { 40 } else { 20 };
        let begun = totals(socket);
        TcpBytes {
            socket,
            ip_header,
            moved: 0,
            begun,
            segments: begun.map_or(0, |begun| begun.segments),
            again: begun.map_or(0, |begun| begun.again),
        }
    }

    /// So many bytes have just been read or written: they, what was sent again, and the headers of all segments since it was last asked. Where the
    /// kernel does not tell, with a header and half an acknowledgement for each segment.
    pub fn more(&mut self, moved: u64) -> u64 {
        let Some(now) = self.begun.and_then(|_| totals(self.socket)) else {
            return moved + moved.div_ceil(SEGMENT) * (self.header(true) * 3 / 2);
        };
        self.grown(moved, now)
    }

    /// So many bytes, and what the kernel has counted besides.
    fn grown(&mut self, moved: u64, now: Totals) -> u64 {
        let again = now.again.saturating_sub(std::mem::replace(&mut self.again, now.again));
        self.moved += moved + again;
        moved + again + self.headers(now)
    }

    /// The connection ends: what came and was not read, what was sent again, and the last acknowledgements.
    pub fn rest(&mut self) -> u64 {
        self.begun.zip(totals(self.socket)).map_or(0, |(begun, now)| self.left(begun, now))
    }

    fn left(&mut self, begun: Totals, now: Totals) -> u64 {
        let payload = now.payload.saturating_sub(begun.payload).saturating_sub(self.moved);
        self.moved += payload;
        payload + self.headers(now)
    }

    fn headers(&mut self, now: Totals) -> u64 {
        let segments = now.segments.wrapping_sub(std::mem::replace(&mut self.segments, now.segments));
        u64::from(segments) * self.header(now.has_times)
    }

    fn header(&self, has_times: bool) -> u64 {
        LINK_HEADER + self.ip_header + TCP_HEADER + if has_times { TIMES } else { 0 }
    }
}

/// None if it is no TCP socket, or the kernel is one that does not count what is sent (before Linux 4.19).
fn totals(socket: RawFd) -> Option<Totals> {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut len = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the kernel writes at most `len` bytes behind the first pointer, and their number behind the second.
    let answer = unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut len) };
    let counts_sent = len as usize >= offset_of!(libc::tcp_info, tcpi_bytes_retrans) + size_of::<u64>();
    (answer == 0 && counts_sent).then(|| Totals {
        payload: info.tcpi_bytes_sent + info.tcpi_bytes_received,
        again: info.tcpi_bytes_retrans,
        segments: info.tcpi_segs_out.wrapping_add(info.tcpi_segs_in),
        has_times: info.tcpi_options & HAS_TIMES != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn small_messages_are_counted_with_the_headers_and_acknowledgements_that_they_need() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        ours.set_nodelay(true).unwrap();
        theirs.set_nodelay(true).unwrap();
        let mut counted = TcpBytes::of(&ours, ours.peer_addr().ok());
        let mut all = 0;
        for _ in 0..100 {
            let mut message = [0; 10];
            ours.write_all(&message).unwrap();
            theirs.read_exact(&mut message).unwrap();
            theirs.write_all(&message).unwrap();
            ours.read_exact(&mut message).unwrap();
            all += counted.more(20);
        }
        // Two segments an exchange at least, and an acknowledgement of its own for each at most.
        assert!((100 * 2 * 76..=100 * (2 * 76 + 2 * 66)).contains(&all), "{all}");
        assert_eq!(counted.more(0), 0, "each header is counted once");
        theirs.write_all(&[0; 1_000]).unwrap();
        ours.peek(&mut [0; 1_000]).unwrap();
        assert!((1_066..=1_066 + 2 * 66).contains(&counted.rest()), "what nobody reads");
        assert_eq!(counted.rest(), 0);
    }

    #[test]
    fn what_is_sent_again_is_counted_when_it_is_sent_and_once() {
        let begun = Totals { payload: 1_000, again: 100, segments: 7, has_times: true };
        let mut counted = TcpBytes { socket: -1, ip_header: 20, moved: 0, begun: Some(begun), segments: 7, again: 100 };
        // 4,200 bytes were written, of which 2,800 went twice, in five segments; 20 that came are not read yet.
        let now = Totals { payload: 1_000 + 4_200 + 2_800 + 20, again: 2_900, segments: 12, ..begun };
        assert_eq!(counted.grown(4_200, now), 4_200 + 2_800 + 5 * 66);
        assert_eq!(counted.grown(0, now), 0);
        assert_eq!(counted.left(begun, now), 20);
        assert_eq!(counted.left(begun, now), 0);
    }

    #[test]
    fn where_the_kernel_does_not_tell_headers_are_estimated() {
        let mut counted = TcpBytes { socket: -1, ip_header: 20, moved: 0, begun: None, segments: 0, again: 0 };
        assert_eq!(counted.more(1_400), 1_400 + 99);
        assert_eq!(counted.more(0), 0);
    }
}
