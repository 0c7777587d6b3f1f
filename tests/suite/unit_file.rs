//! Tests that the systemd units are right, and shut the daemon in.
//!
//! systemd itself is asked, about what `make install` lays down.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// Units that ours depends on, as systemd itself adds them; in a root of our own they must be there, but need not do anything.
const NEIGHBOURS: [&str; 10] = [
    "sysinit.target",
    "basic.target",
    "multi-user.target",
    "shutdown.target",
    "timers.target",
    "time-set.target",
    "time-sync.target",
    "network-online.target",
    "nss-lookup.target",
    "-.mount",
];

/// What is installed.
const UNITS: [&str; 3] = ["nearcrawl.service", "nearcrawl-hierarchy.service", "nearcrawl-hierarchy.timer"];

/// Stands for the daemon where only its being there matters, and writes the papers that an installation asks it for.
const STAND_IN: &str = "#!/bin/sh\ncase $1$2 in man--section) echo .TH > \"$4/nearcrawl.toml.5\" ;; man*) echo .TH > \"$2/nearcrawl.1\" ;; completions*) echo \"# $2\" ;; esac\n";

/// A root directory that the daemon was installed into.
struct Staged {
    _directory: TempDir,
    root: PathBuf,
}

impl Staged {
    fn install(prefix: &str) -> Staged {
        let directory = tempfile::tempdir().unwrap();
        let staged = Staged { root: directory.path().join("root"), _directory: directory };
        staged.make("install", prefix);
        staged
    }

    fn make(&self, target: &str, prefix: &str) {
        let binary = self.root.with_file_name("stand-in");
        stand_in(&binary);
        // The make that may have started this test has nothing to say to this one.
        let made = Command::new("make")
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["--no-print-directory", target, &format!("PREFIX={prefix}")])
            .arg(format!("DESTDIR={}", self.root.display()))
            .arg(format!("BINARY={}", binary.display()))
            .output()
            .unwrap();
        assert!(made.status.success(), "make {target}: {}", said(&made));
    }

    /// Every file below the root, relative to it, sorted.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(&self.root, &self.root, &mut found);
        found.sort();
        found
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap()
    }
}

fn stand_in(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, STAND_IN).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

fn systemd_analyze(arguments: &[&str], root: &Path, unit: &str) -> Output {
    let answer = Command::new("systemd-analyze").args(arguments).arg(format!("--root={}", root.display())).arg(unit).output();
    answer.expect("systemd-analyze is missing: scripts/setup.sh installs it")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn systemd_has_nothing_to_say_about_the_unit() {
    for prefix in ["/usr", "/usr/local"] {
        let staged = Staged::install(prefix);
        let units = staged.root.join("usr/lib/systemd/system");
        fs::create_dir_all(&units).unwrap();
        for neighbour in NEIGHBOURS {
            let what = if neighbour == "-.mount" { "[Mount]\nWhat=/dev/null\nWhere=/\n" } else { "" };
            fs::write(units.join(neighbour), format!("[Unit]\nDescription=neighbour\nDefaultDependencies=no\n{what}")).unwrap();
        }
        // The renewal tells the daemon by systemctl, which is where it is on every system.
        stand_in(&staged.root.join("usr/bin/systemctl"));
        for unit in UNITS {
            let verdict = systemd_analyze(&["verify", "--man=no"], &staged.root, unit);
            assert!(verdict.status.success() && said(&verdict).is_empty(), "PREFIX={prefix}, {unit}: {}", said(&verdict));
        }

        // It does look: a switch that systemd does not know is named.
        let unit = staged.root.join(prefix.trim_start_matches('/')).join("lib/systemd/system/nearcrawl.service");
        let spoilt = fs::read_to_string(&unit).unwrap().replace("UMask=0077", "UMusk=0077");
        fs::write(&unit, spoilt).unwrap();
        let verdict = systemd_analyze(&["verify", "--man=no"], &staged.root, "nearcrawl.service");
        assert!(said(&verdict).contains("UMusk"), "PREFIX={prefix}");
    }
}

#[test]
fn the_daemon_and_the_renewal_are_shut_in() {
    let staged = Staged::install("/usr");
    for unit in ["nearcrawl.service", "nearcrawl-hierarchy.service"] {
        let verdict = systemd_analyze(&["security", "--offline=true", "--threshold=19", "--no-pager"], &staged.root, unit);
        assert!(verdict.status.success(), "exposure above 1.9:\n{}", said(&verdict));
        let text = said(&verdict);
        let level = text.lines().find_map(|line| line.split(&format!("Overall exposure level for {unit}: ")).nth(1));
        let level: f64 = level.unwrap().split_whitespace().next().unwrap().parse().unwrap();
        // The registries may be anywhere, so the renewal has no list of addresses.
        let most = if unit == "nearcrawl.service" { 1.5 } else { 1.9 };
        assert!(level <= most, "{unit}: {level}");
    }
}

#[test]
fn the_hierarchy_is_renewed_every_three_months_by_the_daemons_user() {
    let (service, timer) = (unit("nearcrawl-hierarchy.service"), unit("nearcrawl-hierarchy.timer"));
    assert!(timer.contains("OnCalendar=quarterly\n") && timer.contains("Persistent=yes\n") && timer.contains("RandomizedDelaySec="));
    // The same state directory, of the same user: what one writes the other reads.
    for line in ["User=nearcrawl", "DynamicUser=yes", "StateDirectory=nearcrawl"] {
        assert!(service.lines().any(|own| own == line), "{line}");
    }
    assert!(unit("nearcrawl.service").contains("\nStateDirectory=nearcrawl\n"));
}

fn unit(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name)).unwrap()
}

#[test]
fn no_setting_is_switched_off_by_a_comment_behind_it() {
    for name in UNITS {
        for line in unit(name).lines().filter(|line| !line.starts_with('#')) {
            assert!(!line.contains('#'), "{name}: systemd takes the comment for a part of the value: {line}");
        }
    }
}

#[test]
fn install_and_uninstall_are_each_others_opposite() {
    let staged = Staged::install("/usr");
    let config = "etc/nearcrawl/nearcrawl.toml";
    let installed = [
        "etc/nearcrawl/nearcrawl.example.toml",
        config,
        "usr/bin/nearcrawl",
        "usr/lib/systemd/system/nearcrawl-hierarchy.service",
        "usr/lib/systemd/system/nearcrawl-hierarchy.timer",
        "usr/lib/systemd/system/nearcrawl.service",
        "usr/share/bash-completion/completions/nearcrawl",
        "usr/share/fish/vendor_completions.d/nearcrawl.fish",
        "usr/share/man/man1/nearcrawl.1",
        "usr/share/man/man5/nearcrawl.toml.5",
        "usr/share/zsh/site-functions/_nearcrawl",
    ];
    assert_eq!(staged.files(), installed);
    assert!(staged.read("usr/lib/systemd/system/nearcrawl.service").contains("ExecStart=/usr/bin/nearcrawl run"));

    // What the operator wrote survives an upgrade and an uninstallation.
    fs::write(staged.root.join(config), "contact = \"ann@example.org\"\n").unwrap();
    staged.make("install", "/usr");
    assert_eq!(staged.read(config), "contact = \"ann@example.org\"\n");
    staged.make("uninstall", "/usr");
    assert_eq!(staged.files(), [config]);
}
