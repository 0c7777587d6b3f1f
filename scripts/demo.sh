#!/bin/bash
# Does it work on this machine? Builds what is missing and runs the demonstration.
#   usage: scripts/demo.sh [OPTIONS OF nearcrawl demo]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
out=$CARGO_TARGET_DIR/debug
step() { printf 'step %s of 3, after %d:%02d: %s\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)) "$2" >&2; }

cat >&2 <<END
The demonstration: five daemons crawl a made-up web of 66 servers on this machine, and a table says
whether they did it right. The usual times are of a machine with two cores:
  step 1: what a build needs (g++, libclang, cargo)           1 second
  step 2: build RocksDB and about 380 crates                  6 to 9 minutes; after a change seconds
  step 3: the crawl, with one daemon killed in the middle     2 minutes
What is built goes to $NEARCRAWL_CACHE.
END
step 1 "what a build needs"
scripts/setup.sh
step 2 "the build"
scripts/build.sh dev
step 3 "the crawl"
"$out/nearcrawl" demo "$@"
