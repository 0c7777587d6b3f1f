#!/bin/sh
# Has this machine what a build needs? Installs the Debian packages that are missing; asks for nothing if none is.
#   usage: scripts/setup.sh
# Only the installing needs root. Without root it prints the line to run, and fails.
set -eu
missing=""
need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null || missing="$missing $2"
}
need g++ g++
need make make
need flock util-linux
need systemd-analyze systemd # the tests check the service's unit with it
need dpkg-deb dpkg           # unpacks the pages that the tests crawl
need ip iproute2             # the tests make a network of namespaces with it
need nft nftables            # and routers in it
need python3 python3         # the tests open our Parquet files with DuckDB and pandas (scripts/python.sh)
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"

# RocksDB's bindings are made from its headers with libclang; any version does.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    for file in /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang-[0-9]*.so* /usr/lib*/libclang.so* /usr/local/lib/libclang.so*; do
        case $file in
        *libclang-cpp*) ;;
        *) [ -e "$file" ] && return 0 ;;
        esac
    done
    return 1
}
if ! has_libclang; then
    # The newest that this release of Debian has, like libclang1-14.
    newest() { apt-cache pkgnames libclang1- 2>/dev/null | grep -E '^libclang1-[0-9]+$' | sort -t- -k2 -n | tail -n 1; }
    libclang=$(newest)
    if [ -z "$libclang" ] && [ "$(id -u)" = 0 ]; then
        apt-get update -qq
        libclang=$(newest)
    fi
    missing="$missing ${libclang:-libclang-dev}"
fi

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: these Debian packages, or what your system calls them, are missing:$missing" >&2
        exit 1
    fi
    if [ "$(id -u)" != 0 ]; then
        echo "setup: some packages are missing. Run this, then try again:" >&2
        echo "    sudo apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing" >&2
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
fi

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is missing. Install Rust $(awk -F'"' '/^rust-version/ { print $2 }' "$(dirname "$0")/../Cargo.toml") or newer: https://rustup.rs" >&2
    exit 1
fi
