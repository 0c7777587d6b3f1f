//! A network namespace with a TUN device, held by this process.

use crate::{Node, error::NetlabError};
use std::{
    ffi::{c_char, c_short},
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    process::{Command, Stdio},
};

/// The namespace that the calling thread is in.
const OURS: &str = "/proc/thread-self/ns/net";

/// A namespace, which lasts as long as this, or as processes run in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: File,
}

impl Namespace {
    /// Makes a namespace for a node; returns it with the device on which its packets come and go.
    pub(crate) fn make(node: &Node) -> Result<(Namespace, File), NetlabError> {
        // A thread of its own goes there, so that the rest of this process stays where it is.
        let made = std::thread::scope(|scope| scope.spawn(|| furnish(node)).join());
        made.unwrap_or_else(|_| Err(NetlabError::Plan(format!("the thread that made {} panicked", node.name))))
    }

    /// The calling thread, and the threads and processes that it starts from now on, are there.
    pub(crate) fn enter(&self) -> Result<(), NetlabError> {
        go_to(&self.handle)
    }

    /// Runs something there; then the calling thread is back where it was, also after a panic.
    pub(crate) fn run<T>(&self, inside: impl FnOnce() -> T) -> Result<T, NetlabError> {
        struct Back(File);
        impl Drop for Back {
            fn drop(&mut self) {
                // Whoever may go there may come back.
                let _ = go_to(&self.0);
            }
        }
        let _back = Back(File::open(OURS).map_err(NetlabError::system(OURS))?);
        self.enter()?;
        Ok(inside())
    }
}

fn go_to(namespace: &File) -> Result<(), NetlabError> {
    // SAFETY: a plain system call on a descriptor that is open through the call.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(NetlabError::NotRoot { what: "enter a network namespace", source: io::Error::last_os_error() }),
    }
}

/// Makes a namespace around the calling thread, with all that a node has.
fn furnish(node: &Node) -> Result<(Namespace, File), NetlabError> {
    // SAFETY: a plain system call; only the calling thread, which ends soon, changes its namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(NetlabError::NotRoot { what: "make a network namespace", source: io::Error::last_os_error() });
    }
    let handle = File::open(OURS).map_err(NetlabError::system(OURS))?;
    let device = tun()?;
    let mut script = String::from("link set lo up\nlink set tun0 txqueuelen 2000 up\n");
    for address in &node.addresses {
        script += &format!("addr add {address}/32 dev tun0\n");
    }
    if let Some(first) = node.addresses.first() {
        script += &format!("route add default dev tun0 src {first}\n");
    }
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().map_err(NetlabError::NoIp)?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all(script.as_bytes()).map_err(NetlabError::system("ip -batch"))?;
    }
    if !ip.wait().map_err(NetlabError::system("ip -batch"))?.success() {
        return Err(NetlabError::Ip(script));
    }
    Ok((Namespace { handle }, device))
}

/// A new TUN device in the namespace of the calling thread.
fn tun() -> Result<File, NetlabError> {
    let device =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun").map_err(NetlabError::NoTun)?;
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"tun0") {
        *to = *from as c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as c_short;
    // SAFETY: the device is open, and the request lives through the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut request) } {
        0 => Ok(device),
        _ => Err(NetlabError::NotRoot { what: "make a TUN device", source: io::Error::last_os_error() }),
    }
}
