//! Keeps memory small: threads share heaps, and what is not needed any more goes back to the system.

/// For the beginning of the program, before there are threads: they share two heaps. Each would get its own, and what a thread of the store
/// or of RocksDB has freed would be of no use to the others: 8 of 100 MB after a crawl of 28,000 pages, for no time that could be measured.
pub fn share_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number that is read when a thread asks for memory for the first time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives back what was freed. The allocator would keep it for later; after unpacking a hierarchy that is 50 MB and no later comes.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time from any thread, and takes nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How much memory this process uses, in bytes: what is resident but for pages of files, which the system takes back when it needs them; none
/// where it does not tell.
pub fn in_use() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').skip(1).map_while(|word| word.parse::<u64>().ok());
    let pages = pages.next()?.saturating_sub(pages.next()?);
    // SAFETY: it reads a number of the system and changes nothing.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    pages.checked_mul(page)
}

/// How much memory the system lets this process use, in bytes: the smallest limit of its control groups, or of its address space; none if
/// there is no limit. Beyond `memory.high` nothing is ended, but slowed down until it is of no use.
pub fn limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = limit_of_groups(std::path::Path::new("/sys/fs/cgroup"), &groups);
    let mut space = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes one rlimit to the address that it is given, which is that of a local variable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut space) } == 0 && space.rlim_cur != libc::RLIM_INFINITY;
    of_groups.into_iter().chain(known.then_some(space.rlim_cur)).min()
}

/// The smallest limit of these control groups, as `/proc/self/cgroup` lists them, and of those around them; of version 2 and version 1.
fn limit_of_groups(root: &std::path::Path, groups: &str) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (base, files) = match controllers {
            "" => (root.to_owned(), ["memory.max", "memory.high"].as_slice()),
            _ if controllers.split(',').any(|one| one == "memory") => (root.join("memory"), ["memory.limit_in_bytes"].as_slice()),
            _ => continue,
        };
        let group = base.join(group.trim_start_matches('/'));
        for group in group.ancestors().take_while(|at| at.starts_with(&base)) {
            // "max" is no limit, and version 1 writes one by a number beyond all memory.
            let read = |file: &&str| std::fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
            limits.extend(files.iter().filter_map(read).filter(|limit| *limit < 1 << 60));
        }
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_smallest_limit_of_all_groups_around_the_process_holds() {
        let directory = tempfile::tempdir().unwrap();
        let (root, inner) = (directory.path(), directory.path().join("a.slice/b.service"));
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(limit_of_groups(root, "0::/a.slice/b.service\n"), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(root.join("a.slice/memory.max"), "134217728\n").unwrap();
        assert_eq!(limit_of_groups(root, "0::/a.slice/b.service\n"), Some(128 << 20));
        fs::write(inner.join("memory.high"), "100663296\n").unwrap();
        assert_eq!(limit_of_groups(root, "0::/a.slice/b.service\n"), Some(96 << 20), "where it is slowed down");
        fs::create_dir_all(root.join("memory/docker/x")).unwrap();
        fs::write(root.join("memory/memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        fs::write(root.join("memory/docker/x/memory.limit_in_bytes"), "67108864\n").unwrap();
        assert_eq!(limit_of_groups(root, "5:cpu,memory:/docker/x\n4:pids:/docker/x\n"), Some(64 << 20));
    }
}
