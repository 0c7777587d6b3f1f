//! The volunteer's machine: namespaces for mounts, processes and the network, and in them a Debian tree.
//!
//! Only the changes to the tree are kept, in memory. The first process holds all of it; when that is killed, the kernel ends every other
//! one and takes the mounts away.

use super::{
    error::StrangerError,
    world::{MACHINE, NAMES, SERVERS, World},
};
use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufRead, BufReader},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

/// Makes the tree. $1: the Debian that stays as it is; $2: a directory for the rest.
const TREE: &str = r#"
mount --make-rprivate /
mount -t tmpfs -o mode=755 nearcrawl-stranger "$2"
mkdir "$2/changed" "$2/work" "$2/tree"
mount -t overlay -o "lowerdir=$1,upperdir=$2/changed,workdir=$2/work" overlay "$2/tree"
mkdir -p "$2/tree/proc" "$2/tree/dev" "$2/tree/run" "$2/tree/tmp" "$2/tree/etc"
mount -t proc proc "$2/tree/proc"
mount --rbind /dev "$2/tree/dev"
mount -t tmpfs -o mode=755 run "$2/tree/run"
mount -t tmpfs -o mode=1777 tmp "$2/tree/tmp"
rm -f "$2/tree/etc/resolv.conf"
echo "nameserver $3" >"$2/tree/etc/resolv.conf"
echo 127.0.0.1 localhost >"$2/tree/etc/hosts"
hostname stranger
echo ready
exec sleep infinity
"#;

/// How the daemon is started: what its unit says, as systemd does it. There is no systemd here.
const START: &str = r#"
set -eu
directive() { sed -n "s/^$1=//p" /usr/lib/systemd/system/nearcrawl.service; }
as_service() { setpriv --reuid=nearcrawl --regid=nearcrawl --init-groups --no-new-privs env STATE_DIRECTORY=/var/lib/nearcrawl "$@"; }
mkdir -p /var/lib/nearcrawl
chown -R nearcrawl:nearcrawl /var/lib/nearcrawl
chmod "$(directive StateDirectoryMode)" /var/lib/nearcrawl
umask "$(directive UMask)"
ulimit -n "$(directive LimitNOFILE)"
cd /
as_service $(directive ExecStartPre)
echo $$ >/run/nearcrawl.pid
exec setpriv --reuid=nearcrawl --regid=nearcrawl --init-groups --no-new-privs env STATE_DIRECTORY=/var/lib/nearcrawl $(directive ExecStart)
"#;

/// No command takes longer, in seconds.
const COMMAND_TIMEOUT: &str = "180";

/// What dpkg, adduser and the C library keep for themselves, beneath the tree.
const BOOKS: [&str; 6] = ["var/lib/dpkg/", "var/log/", "var/cache/", "etc/.pwd.lock", "etc/ld.so.cache", "root/"];

/// Bytes between the machine and the web servers and name server, as the kernel counts packets.
const COUNTER: &str = "counted";

/// The volunteer's machine, which ends with this.
pub(super) struct Machine {
    holder: Child,
    first: u32,
    directory: PathBuf,
    base: PathBuf,
    daemon: Option<Child>,
}

fn program(program: &'static str) -> impl Fn(std::io::Error) -> StrangerError {
    move |source| StrangerError::Program { program, source }
}

/// Ends with the thread that starts it.
fn end_with_parent(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe and touches no memory of ours.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    }
}

impl Machine {
    /// Makes the machine at its place in the network.
    pub(super) fn start(world: &World, base: &Path, workplace: &Path) -> Result<Machine, StrangerError> {
        let directory = workplace.join("machine");
        let cannot = |said: String| StrangerError::Machine { tree: base.to_owned(), said };
        let said = workplace.join("machine.log");
        let log = File::create(&said).map_err(|source| StrangerError::Files { path: said.clone(), source })?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-euc", TREE, "sh"]);
        command.arg(base).arg(&directory).arg(NAMES.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        end_with_parent(&mut command);
        let holder = world.lab.run_at(MACHINE, || command.spawn())?.map_err(program("unshare"))?;
        let mut machine = Machine { holder, first: 0, directory, base: base.to_owned(), daemon: None };
        let mut line = String::new();
        if let Some(output) = machine.holder.stdout.take() {
            // If it fails instead, the end of its output comes.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let holder = machine.holder.id();
        let children = std::fs::read_to_string(format!("/proc/{holder}/task/{holder}/children")).unwrap_or_default();
        match (line.trim(), children.split_whitespace().next().and_then(|id| id.parse().ok())) {
            ("ready", Some(first)) => machine.first = first,
            _ => return Err(cannot(std::fs::read_to_string(&said).unwrap_or_default().trim().to_owned())),
        }
        machine.count()?;
        Ok(machine)
    }

    /// A command in the machine's namespaces, not in its tree.
    fn beside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first.to_string(), "--mount", "--pid", "--ipc", "--uts", "--net", "--"]).stdin(Stdio::null());
        end_with_parent(&mut command);
        command
    }

    /// A command in its tree, as root types it.
    fn inside(&self) -> Command {
        let mut command = self.beside();
        command.arg("chroot").arg(self.directory.join("tree"));
        command.args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"]);
        command
    }

    /// What a command says to its end, and its exit status.
    fn output(&self, words: &[&str]) -> Result<Output, StrangerError> {
        self.inside().args(["timeout", COMMAND_TIMEOUT]).args(words).output().map_err(program("nsenter"))
    }

    /// What a command prints that must succeed.
    pub(super) fn types(&self, words: &[&str]) -> Result<String, StrangerError> {
        let output = self.output(words)?;
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
        if code == 0 {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).trim().to_owned()).join("\n");
        Err(StrangerError::Typed { typed: words.join(" "), code, said })
    }

    /// Copies a file of this machine into the tree.
    pub(super) fn receives(&self, file: &Path, at: &str) -> Result<(), StrangerError> {
        let files = |source| StrangerError::Files { path: file.to_owned(), source };
        let input = File::open(file).map_err(files)?;
        let mut command = self.inside();
        let status = command.args(["sh", "-c", "cat >\"$1\"", "sh", at]).stdin(input).status().map_err(program("nsenter"))?;
        if status.success() { Ok(()) } else { Err(StrangerError::NotSo(format!("{} could not be copied to {at}", file.display()))) }
    }

    /// Starts the daemon as its unit does.
    pub(super) fn start_daemon(&mut self) -> Result<(), StrangerError> {
        let path = self.log();
        let files = |source| StrangerError::Files { path: path.clone(), source };
        let log = File::create(&path).map_err(files)?;
        let errors = log.try_clone().map_err(files)?;
        let mut command = self.inside();
        let child = command.args(["sh", "-c", START]).stdout(log).stderr(errors).spawn().map_err(program("nsenter"))?;
        self.daemon = Some(child);
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.directory.with_file_name("daemon.log")
    }

    /// The end of what the daemon said.
    pub(super) fn said(&self) -> String {
        let said = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }

    /// Whether the daemon has ended, and how.
    pub(super) fn ended(&mut self) -> Option<i32> {
        let status = self.daemon.as_mut()?.try_wait().ok()??;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
    }

    /// Asks the daemon to stop, as `systemctl stop` does.
    pub(super) fn stop_daemon(&self) -> Result<(), StrangerError> {
        self.types(&["sh", "-c", "kill -TERM \"$(cat /run/nearcrawl.pid)\""]).map(drop)
    }

    /// Processes on the machine besides the first one and the one that looks.
    pub(super) fn processes(&self) -> Result<usize, StrangerError> {
        let said = self.types(&["sh", "-c", "cat /proc/[0-9]*/comm"])?;
        Ok(said.lines().filter(|name| !["sleep", "sh", "cat", "timeout", "env"].contains(name)).count())
    }

    /// What the tree has that its Debian has not, and what is missing of that, apart from the records of dpkg and adduser.
    pub(super) fn changes(&self) -> Result<BTreeSet<String>, StrangerError> {
        let changed = self.directory.join("changed");
        let mut command = self.beside();
        command.arg("find").arg(&changed).args(["-mindepth", "1", "-printf", "%y %P\\n"]);
        let output = command.output().map_err(program("find"))?;
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let accounts = ["passwd", "group", "shadow", "gshadow", "subuid", "subgid"];
        let is_account = |path: &str| path.strip_prefix("etc/").is_some_and(|name| accounts.contains(&name.trim_end_matches('-')));
        let is_new = |(kind, path): &(&str, &str)| *kind != "d" || !self.base.join(path).is_dir();
        let rows = listed.lines().filter_map(|line| line.split_once(' ')).filter(is_new);
        let rows = rows.filter(|(_, path)| !BOOKS.iter().any(|book| path.starts_with(book) || path == &book.trim_end_matches('/')));
        Ok(rows.filter(|(_, path)| !is_account(path)).map(|(kind, path)| format!("{kind} {path}")).collect())
    }

    /// Has the kernel count bytes to and from the web and the name server, in both directions.
    fn count(&self) -> Result<(), StrangerError> {
        let all: Vec<String> = SERVERS.iter().chain([&NAMES]).map(ToString::to_string).collect();
        let all = all.join(", ");
        let rules = format!(
            "add table ip stranger\nadd counter ip stranger {COUNTER}\n\
             add chain ip stranger in {{ type filter hook input priority 0; }}\nadd chain ip stranger out {{ type filter hook output priority 0; }}\n\
             add rule ip stranger in ip saddr {{ {all} }} counter name {COUNTER}\nadd rule ip stranger out ip daddr {{ {all} }} counter name {COUNTER}\n"
        );
        let path = self.directory.with_file_name("rules.nft");
        std::fs::write(&path, rules).map_err(|source| StrangerError::Files { path: path.clone(), source })?;
        self.nft(&["-f", &path.display().to_string()]).map(drop)
    }

    fn nft(&self, arguments: &[&str]) -> Result<String, StrangerError> {
        let output = self.beside().arg("nft").args(arguments).output().map_err(program("nft"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(StrangerError::NotSo(format!("nft: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }

    /// How many bytes these were.
    pub(super) fn counted(&self) -> Result<u64, StrangerError> {
        let said = self.nft(&["list", "counter", "ip", "stranger", COUNTER])?;
        let mut words = said.split_whitespace().skip_while(|word| *word != "bytes").skip(1);
        words.next().and_then(|word| word.parse().ok()).ok_or_else(|| StrangerError::NotSo(format!("nft lists {said}")))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The other processes on the machine end with the first one, and that with its holder.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.wait();
        }
    }
}
