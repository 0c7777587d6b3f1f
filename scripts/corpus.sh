#!/bin/sh
# Are there real pages to crawl in the tests? Downloads a package of Debian's documentation and unpacks it into the cache.
#   usage: scripts/corpus.sh
# Nothing is installed, and root is not needed. Prints the directory. 4,400 pages, 4 MB to download, 170 MB unpacked.
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh
package=cppreference-doc-en-html
out=$NEARCRAWL_CORPUS
if [ -d "$out" ]; then
    echo "$out"
    exit 0
fi

new=$out.new.$$
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new/unpacked"
download() { (cd "$new" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$package") >&2; }
if ! apt-cache show "$package" >/dev/null 2>&1; then
    if [ "$(id -u)" != 0 ]; then
        echo "corpus: the package lists do not have $package. Run this, then try again: sudo apt-get update" >&2
        exit 1
    fi
    apt-get update -qq
fi
# Lists that are older than the archive name files that are gone: new lists help then, if we may fetch them.
download || { [ "$(id -u)" = 0 ] && apt-get update -qq && download; } || {
    echo "corpus: $package cannot be downloaded; is the archive reachable, are the lists fresh (sudo apt-get update)?" >&2
    exit 1
}
dpkg-deb -x "$new"/"$package"_*.deb "$new/unpacked"
mv -T "$new/unpacked" "$out" 2>/dev/null || [ -d "$out" ] # another run may have been quicker
echo "$out"
