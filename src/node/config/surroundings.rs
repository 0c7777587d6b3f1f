//! Default state directory, which depends on how the daemon was started.

use std::{env, ffi::OsString, path::PathBuf};

/// What the process was started with, as far as defaults depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    /// `STATE_DIRECTORY`: set by systemd; several are separated by colons.
    pub state_directory: Option<OsString>,
    /// The environment variable `XDG_STATE_HOME`.
    pub state_home: Option<OsString>,
    /// The environment variable `HOME`.
    pub home: Option<OsString>,
    /// Whether the process runs as root.
    pub root: bool,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn of_this_process() -> Surroundings {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        // SAFETY: geteuid has no preconditions and cannot fail.
        let root = unsafe { libc::geteuid() } == 0;
        Surroundings { state_directory: set("STATE_DIRECTORY"), state_home: set("XDG_STATE_HOME"), home: set("HOME"), root }
    }

    /// The default of `state_dir`.
    pub(super) fn state_dir(&self) -> PathBuf {
        if let Some(given) = &self.state_directory {
            let first = given.to_string_lossy().split(':').next().map(PathBuf::from);
            return first.unwrap_or_else(|| PathBuf::from(given));
        }
        match (&self.state_home, &self.home) {
            _ if self.root => PathBuf::from("/var/lib/nearcrawl"),
            (Some(state), _) => PathBuf::from(state).join("nearcrawl"),
            (None, Some(home)) => PathBuf::from(home).join(".local/state/nearcrawl"),
            (None, None) => PathBuf::from("/var/lib/nearcrawl"),
        }
    }
}
