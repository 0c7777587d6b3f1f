//! Test that the Debian package is what it says it is.
//!
//! It is made of this test's own program, and looked into without being installed.
//!
//! `make deb-test` installs, upgrades, removes and purges it, which needs root and a Debian made for it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The package, unpacked.
struct Package {
    _directory: TempDir,
    deb: PathBuf,
    root: PathBuf,
    control: PathBuf,
}

fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap_or_else(|why| panic!("{program}: {why}"));
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Makes the package of this test's own program.
pub(crate) fn make(directory: &Path) -> PathBuf {
    // The make that may have started this test has nothing to say to this one. A program of the tests' profile may have any size.
    let made = Command::new("make")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env("DEB_MAX_BINARY", "0")
        .env("DEB_COMPRESSION", "none")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["--no-print-directory", "deb", concat!("BINARY=", env!("CARGO_BIN_EXE_nearcrawl"))])
        .arg(format!("DEB_DIR={}", directory.display()))
        .output()
        .unwrap();
    assert!(made.status.success(), "make deb: {}", String::from_utf8_lossy(&made.stderr));
    println!("{}", String::from_utf8_lossy(&made.stderr).trim());
    PathBuf::from(String::from_utf8(made.stdout).unwrap().trim())
}

impl Package {
    fn make() -> Package {
        let directory = tempfile::tempdir().unwrap();
        let deb = make(directory.path());
        let (root, control) = (directory.path().join("root"), directory.path().join("control"));
        let deb_text = deb.display().to_string();
        output("dpkg-deb", &["--extract", &deb_text, &root.display().to_string()]);
        output("dpkg-deb", &["--control", &deb_text, &control.display().to_string()]);
        Package { _directory: directory, deb, root, control }
    }

    fn field(&self, name: &str) -> String {
        output("dpkg-deb", &["--field", &self.deb.display().to_string(), name]).trim().to_owned()
    }

    /// Every file, with its mode and owner as the archive has them.
    fn files(&self) -> BTreeMap<String, (String, String)> {
        let listed = output("dpkg-deb", &["--contents", &self.deb.display().to_string()]);
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[5].trim_start_matches("./").to_owned(), (words[0].to_owned(), words[1].to_owned()))
        };
        listed.lines().map(row).filter(|(path, _)| !path.is_empty()).collect()
    }

    fn unzipped(&self, path: &str) -> String {
        output("gzip", &["-dc", &self.root.join(path).display().to_string()])
    }
}

/// All of it looks at one package: making it takes seconds.
#[test]
fn the_package_has_everything_in_its_place_and_nothing_else() {
    let package = Package::make();
    named(&package);
    with_right_owners(&package);
    with_papers(&package);
    with_pages(&package);
    with_scripts(&package);
}

fn named(package: &Package) {
    assert_eq!(package.field("Package"), "nearcrawl");
    assert_eq!(package.field("Version"), concat!(env!("CARGO_PKG_VERSION"), "-1"));
    let depends = package.field("Depends");
    assert!(depends.contains("libc6") && depends.contains("libstdc++6"), "{depends}");
    let program = package.root.join("usr/bin/nearcrawl");
    let bytes = fs::metadata(&program).unwrap().len();
    let installed: u64 = package.field("Installed-Size").parse().unwrap();
    assert!(installed >= bytes / 1024 && installed < bytes / 1024 + 4_096, "{installed} KiB, the program has {bytes} bytes");
    // Stripped: no table of symbols, and it runs.
    let sections = output("readelf", &["--section-headers", "--wide", &program.display().to_string()]);
    assert!(!sections.contains(".symtab") && !sections.contains(".debug_info"), "not stripped");
    assert_eq!(output(&program.display().to_string(), &["--version"]).trim(), concat!("nearcrawl ", env!("CARGO_PKG_VERSION")));
}

fn with_right_owners(package: &Package) {
    let files = package.files();
    for (path, (mode, owner)) in &files {
        assert_eq!(owner, "root/root", "{path}");
        let expected = match path.as_str() {
            path if path.ends_with('/') => "drwxr-xr-x",
            "usr/bin/nearcrawl" => "-rwxr-xr-x",
            _ => "-rw-r--r--",
        };
        assert_eq!(mode, expected, "{path}");
    }
    let listed: Vec<&str> = files.keys().map(String::as_str).filter(|path| !path.ends_with('/')).collect();
    let pages = listed.iter().filter(|path| path.starts_with("usr/share/man/man1/nearcrawl")).count();
    assert!(pages > 30, "{pages} pages");
    let others: Vec<&str> = listed.into_iter().filter(|path| !path.starts_with("usr/share/man/man1/nearcrawl")).collect();
    let wanted = [
        "etc/nearcrawl/nearcrawl.example.toml",
        "etc/nearcrawl/nearcrawl.toml",
        "usr/bin/nearcrawl",
        "usr/lib/systemd/system/nearcrawl-hierarchy.service",
        "usr/lib/systemd/system/nearcrawl-hierarchy.timer",
        "usr/lib/systemd/system/nearcrawl.service",
        "usr/lib/sysusers.d/nearcrawl.conf",
        "usr/share/bash-completion/completions/nearcrawl",
        "usr/share/doc/nearcrawl/ATTRIBUTION.md",
        "usr/share/doc/nearcrawl/OPERATING.md",
        "usr/share/doc/nearcrawl/changelog.Debian.gz",
        "usr/share/doc/nearcrawl/changelog.gz",
        "usr/share/doc/nearcrawl/copyright",
        "usr/share/fish/vendor_completions.d/nearcrawl.fish",
        "usr/share/man/man5/nearcrawl.toml.5.gz",
        "usr/share/zsh/site-functions/_nearcrawl",
    ];
    assert_eq!(others, wanted);
    // Every file below /etc is kept as its operator left it.
    let kept = fs::read_to_string(package.control.join("conffiles")).unwrap();
    let below_etc: Vec<String> = wanted.iter().filter(|path| path.starts_with("etc/")).map(|path| format!("/{path}")).collect();
    assert_eq!(kept.lines().collect::<Vec<_>>(), below_etc);
}

/// Licences of all that is in it, where the data is from, and what changed.
fn with_papers(package: &Package) {
    let copyright = fs::read_to_string(package.root.join("usr/share/doc/nearcrawl/copyright")).unwrap();
    assert!(copyright.starts_with("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"));
    for part in [
        "License: MIT or Apache-2.0",
        "License: CC-BY-4.0",
        "IP to ASN by DB-IP",
        "\n tokio 1.",
        "\n librocksdb-sys ",
        "Permission is hereby granted",
    ] {
        assert!(copyright.contains(part), "{part} is not in copyright");
    }
    assert!(package.unzipped("usr/share/doc/nearcrawl/changelog.gz").starts_with("# Changes"));
    let own = package.unzipped("usr/share/doc/nearcrawl/changelog.Debian.gz");
    assert!(own.starts_with(concat!("nearcrawl (", env!("CARGO_PKG_VERSION"), "-1) ")), "{own}");
}

fn with_pages(package: &Package) {
    let configuration = package.unzipped("usr/share/man/man5/nearcrawl.toml.5.gz");
    assert!(configuration.contains("revisit") && configuration.contains("Default"));
    assert!(package.unzipped("usr/share/man/man1/nearcrawl-hierarchy-renew.1.gz").contains("\\-\\-overrule"));
    let completions = fs::read_to_string(package.root.join("usr/share/bash-completion/completions/nearcrawl")).unwrap();
    assert!(completions.contains("hierarchy"));
    // The daemon reads the configuration that is packed, and says what is missing in it.
    let config = package.root.join("etc/nearcrawl/nearcrawl.toml").display().to_string();
    let checked = Command::new(env!("CARGO_BIN_EXE_nearcrawl")).args(["check", "--config", &config]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.code() == Some(78) && said.contains("contact is not set"), "{said}");
}

fn with_scripts(package: &Package) {
    for script in ["postinst", "prerm", "postrm"] {
        let path = package.control.join(script);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755, "{script}");
        output("sh", &["-n", &path.display().to_string()]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\nset -e\n"), "{script} goes on after a failure");
        // Nothing is asked of anybody before an operator has said so.
        assert!(
            !text.lines().any(|line| line.trim_start().starts_with("systemctl enable") || line.contains("systemctl start")),
            "{script}"
        );
    }
    let sums = fs::read_to_string(package.control.join("md5sums")).unwrap();
    assert_eq!(sums.lines().count(), package.files().keys().filter(|path| !path.ends_with('/')).count());
    let checked = Command::new("md5sum")
        .args(["--check", "--quiet"])
        .arg(package.control.join("md5sums"))
        .current_dir(Path::new(&package.root))
        .output();
    assert!(checked.unwrap().status.success());
}
