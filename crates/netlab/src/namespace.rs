//! A network namespace with a TUN device, held by this process.

use crate::{INSIDE, Node, Router, error::NetlabError, router::GATEWAY};
use std::{
    ffi::{c_char, c_short},
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    process::{Command, Stdio},
};

/// The namespace that the calling thread is in.
const OURS: &str = "/proc/thread-self/ns/net";

/// Whether the namespace of the calling thread passes packets on.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// A namespace, which lasts as long as this, or as processes run in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: File,
    /// That of the router in front of it, which lasts as long.
    _router: Option<File>,
}

impl Namespace {
    /// Makes a namespace for a node, behind a router if there is one; returns it with the device on which its packets come and go.
    pub(crate) fn make(node: &Node, router: Option<Router>) -> Result<(Namespace, File), NetlabError> {
        let (outside, device) = elsewhere(node, || furnish(node))?;
        let Some(router) = router else { return Ok((outside, device)) };
        let inside = elsewhere(node, || {
            leave()?;
            Ok(Namespace { handle: File::open(OURS).map_err(NetlabError::system(OURS))?, _router: None })
        })?;
        elsewhere(node, || outside.run(|| route(&inside, router))?)?;
        elsewhere(node, || inside.run(|| ip(&format!("link set lo up\nroute add default via {GATEWAY} dev eth0\n")))?)?;
        Ok((Namespace { _router: Some(outside.handle), handle: inside.handle }, device))
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

/// Does something in a thread of its own, which goes to another namespace, so that the rest of this process stays where it is.
fn elsewhere<T: Send>(node: &Node, job: impl FnOnce() -> Result<T, NetlabError> + Send) -> Result<T, NetlabError> {
    let made = std::thread::scope(|scope| scope.spawn(job).join());
    made.unwrap_or_else(|_| Err(NetlabError::Plan(format!("the thread that made {} panicked", node.name))))
}

/// Makes a namespace around the calling thread.
fn leave() -> Result<(), NetlabError> {
    // SAFETY: a plain system call; only the calling thread, which ends soon, changes its namespace.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(NetlabError::NotRoot { what: "make a network namespace", source: io::Error::last_os_error() }),
    }
}

/// Makes the namespace of the calling thread a router in front of another one.
fn route(inside: &Namespace, router: Router) -> Result<(), NetlabError> {
    let there = format!("/proc/{}/fd/{}", std::process::id(), inside.handle.as_raw_fd());
    ip(&format!("link add lan0 type veth peer name eth0 netns {there}\naddr add {GATEWAY}/24 dev lan0\nlink set lan0 up\n"))?;
    inside.run(|| ip(&format!("addr add {INSIDE}/24 dev eth0\nlink set eth0 up\n")))??;
    std::fs::write(FORWARDING, "1").map_err(NetlabError::system(FORWARDING))?;
    run_script("nft", &["-f", "-"], &router.rules(), NetlabError::NoNft)
}

/// Runs commands of `ip`.
fn ip(script: &str) -> Result<(), NetlabError> {
    run_script("ip", &["-batch", "-"], script, NetlabError::NoIp)
}

fn run_script(program: &str, arguments: &[&str], script: &str, missing: fn(io::Error) -> NetlabError) -> Result<(), NetlabError> {
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn().map_err(missing)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes()).map_err(NetlabError::system("a pipe"))?;
    }
    if child.wait().map_err(NetlabError::system("wait"))?.success() { Ok(()) } else { Err(NetlabError::Refused(script.to_owned())) }
}

/// Makes a namespace around the calling thread, with all that a node has.
fn furnish(node: &Node) -> Result<(Namespace, File), NetlabError> {
    leave()?;
    let handle = File::open(OURS).map_err(NetlabError::system(OURS))?;
    let device = tun()?;
    let mut script = String::from("link set lo up\nlink set tun0 txqueuelen 2000 up\n");
    for address in &node.addresses {
        script += &format!("addr add {address}/32 dev tun0\n");
    }
    if let Some(first) = node.addresses.first() {
        script += &format!("route add default dev tun0 src {first}\n");
    }
    ip(&script)?;
    Ok((Namespace { handle, _router: None }, device))
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
