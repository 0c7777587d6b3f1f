#!/bin/bash
# A small Debian of this machine's release, made once by debootstrap and kept in ~/.cache/nearcrawl. Prints where it is.
#   usage: scripts/debian-tree.sh
#   DEBIAN_MIRROR   where debootstrap gets its packages (default http://deb.debian.org/debian)
# Needs root, debootstrap, and the mirror for the first time. Nobody changes the tree: who uses it works on a copy.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=$NEARCRAWL_CACHE/debian-$release
if [ ! -e "$base/.whole" ]; then
    [ "$(id -u)" = 0 ] || { echo "debian-tree: debootstrap needs root" >&2; exit 1; }
    command -v debootstrap >/dev/null || { echo "debian-tree: debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
    echo "debian-tree: making a Debian $release in $base" >&2
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include=adduser "$release" "$base" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$NEARCRAWL_CACHE/debootstrap.log"
    touch "$base/.whole"
fi
echo "$base"
