#!/usr/bin/env python3
"""Writes the package's copyright file (DEP-5): our licence, that of the registries' data, and those of all crates in the program.

The crates are those that `cargo tree` says the program links, with the licence that each names; the texts are the files that come
with them, each once. What is not downloaded yet is named without its text."""

import glob
import hashlib
import json
import os
import subprocess
import sys

TEXTS = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")


def cargo(*arguments):
    """What cargo says, from what is downloaded already if that is enough."""
    for offline in (["--offline"], []):
        told = subprocess.run(["cargo", arguments[0], "--locked", *offline, *arguments[1:]], capture_output=True, text=True)
        if told.returncode == 0:
            return told.stdout
    sys.exit("deb-copyright: " + told.stderr)


def crates():
    """Packages that the program links, ours aside; neither tests nor what only builds is in the program."""
    tree = cargo("tree", "--package", "nearcrawl", "--edges", "normal", "--prefix", "none", "--format", "{p}")
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    rustc = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.split()[1] for line in rustc.splitlines() if line.startswith("host:"))
    packages = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", host))["packages"]
    found = [package for package in packages if package["source"] and (package["name"], "v" + package["version"]) in linked]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def indented(text):
    """A paragraph of a DEP-5 field: a space before each line, a dot for an empty one."""
    return "\n".join(" " + line if line.strip() else " ." for line in text.expandtabs().rstrip().splitlines())


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main():
    print("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/")
    print("Upstream-Name: nearcrawl\n")
    print("Files: *\nCopyright: 2026 The nearcrawl contributors\nLicense: MIT or Apache-2.0\n")
    print("Files: data/world.snapshot.zst")
    print("Copyright: AFRINIC, APNIC, ARIN, LACNIC, RIPE NCC (NRO); RouteViews and DB-IP; sapics/ip-location-db")
    print("License: CC-BY-4.0")
    print("Comment:\n" + indented(read("data/ATTRIBUTION.md")) + "\n")
    texts, rows = {}, []
    for crate in crates():
        licence = crate["license"] or "see the text"
        name = f"{crate['name']} {crate['version']}"
        rows.append(f"{name}: {licence}" + (f" ({', '.join(crate['authors'])})" if crate["authors"] else ""))
        directory = os.path.dirname(crate["manifest_path"])
        for path in sorted({path for pattern in TEXTS for path in glob.glob(os.path.join(directory, pattern))}):
            if os.path.isfile(path):
                text = read(path)
                digest = hashlib.sha256("".join(text.split()).encode()).digest()
                texts.setdefault(digest, (text, []))[1].append(f"{name} ({os.path.basename(path)})")
    # What librocksdb-sys builds is not Rust.
    rows.append("RocksDB (in librocksdb-sys): GPL-2.0 or Apache-2.0, used under Apache-2.0 (Facebook, Inc. and its affiliates)")
    print("Files: crates-of-others/*\nCopyright: the authors of each\nLicense: of-each-crate")
    print("Comment: The program contains these crates, each under the licence behind its name.")
    print(indented("\n".join(rows)) + "\n")
    print("License: MIT or Apache-2.0\n" + indented(read("LICENSE-MIT")))
    print(" .\n On Debian systems the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.\n")
    print("License: CC-BY-4.0\n https://creativecommons.org/licenses/by/4.0/legalcode\n")
    apache = [names for text, names in texts.values() if "Apache License" in text and "TERMS AND CONDITIONS" in text]
    others = [(text, names) for text, names in texts.values() if not ("Apache License" in text and "TERMS AND CONDITIONS" in text)]
    print("License: of-each-crate")
    if apache:
        print(" Under the Apache License 2.0, in /usr/share/common-licenses/Apache-2.0:")
        print(indented("\n".join(name for names in apache for name in names)))
    for text, names in sorted(others, key=lambda pair: pair[1]):
        print(" .\n ---- " + "; ".join(names) + ":\n .")
        print(indented(text))


main()
