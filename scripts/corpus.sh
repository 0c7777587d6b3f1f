#!/bin/sh
# Are there real pages to crawl in the tests? Downloads packages of Debian's documentation and unpacks them into the cache.
#   usage: scripts/corpus.sh
# Nothing is installed, and root is not needed. Prints the directory. 8,300 pages, 10 MB to download, 220 MB unpacked.
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh
packages="cppreference-doc-en-html apache2-doc postgresql-doc-15"
trap 'rm -rf "$NEARCRAWL_CORPUS"/*.new.$$' EXIT
trap 'exit 1' HUP INT TERM

download() { (cd "$new" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$1") >&2; }

for package in $packages; do
    out=$NEARCRAWL_CORPUS/$package
    [ -d "$out" ] && continue
    new=$out.new.$$
    mkdir -p "$new/unpacked"
    if ! apt-cache show "$package" >/dev/null 2>&1; then
        if [ "$(id -u)" != 0 ]; then
            echo "corpus: the package lists do not have $package. Run this, then try again: sudo apt-get update" >&2
            exit 1
        fi
        apt-get update -qq >&2
    fi
    # Lists that are older than the archive name files that are gone: new lists help then, if we may fetch them.
    download "$package" || { [ "$(id -u)" = 0 ] && apt-get update -qq >&2 && download "$package"; } || {
        echo "corpus: $package cannot be downloaded; is the archive reachable, are the lists fresh (sudo apt-get update)?" >&2
        exit 1
    }
    dpkg-deb -x "$new/$package"_*.deb "$new/unpacked"
    mv -T "$new/unpacked" "$out" 2>/dev/null || [ -d "$out" ] # another run may have been quicker
    rm -rf "$new"
done
echo "$NEARCRAWL_CORPUS"
