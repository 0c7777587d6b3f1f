//! Is the service's unit right, and does it shut the daemon in? Asked of systemd itself, about what `make install` lays down.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// Units that ours depends on, as systemd itself adds them; in a root of our own they must be there, but need not do anything.
const NEIGHBOURS: [&str; 7] =
    ["sysinit.target", "basic.target", "multi-user.target", "shutdown.target", "network-online.target", "nss-lookup.target", "-.mount"];

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
        fs::write(&binary, STAND_IN).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
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

fn systemd_analyze(arguments: &[&str], root: &Path) -> Output {
    let answer =
        Command::new("systemd-analyze").args(arguments).arg(format!("--root={}", root.display())).arg("nearcrawl.service").output();
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
        let verdict = systemd_analyze(&["verify", "--man=no"], &staged.root);
        assert!(verdict.status.success() && said(&verdict).is_empty(), "PREFIX={prefix}: {}", said(&verdict));

        // It does look: a switch that systemd does not know is named.
        let unit = staged.root.join(prefix.trim_start_matches('/')).join("lib/systemd/system/nearcrawl.service");
        let spoilt = fs::read_to_string(&unit).unwrap().replace("UMask=0077", "UMusk=0077");
        fs::write(&unit, spoilt).unwrap();
        assert!(said(&systemd_analyze(&["verify", "--man=no"], &staged.root)).contains("UMusk"), "PREFIX={prefix}");
    }
}

#[test]
fn the_daemon_is_shut_in() {
    let staged = Staged::install("/usr");
    let verdict = systemd_analyze(&["security", "--offline=true", "--threshold=15", "--no-pager"], &staged.root);
    assert!(verdict.status.success(), "exposure above 1.5:\n{}", said(&verdict));
    let text = said(&verdict);
    let level = text.lines().find_map(|line| line.split("Overall exposure level for nearcrawl.service: ").nth(1));
    let level: f64 = level.unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(level <= 1.5, "{level}");
}

#[test]
fn no_setting_is_switched_off_by_a_comment_behind_it() {
    let unit = include_str!("../../systemd/nearcrawl.service");
    for line in unit.lines().filter(|line| !line.starts_with('#')) {
        assert!(!line.contains('#'), "systemd takes the comment for a part of the value: {line}");
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
