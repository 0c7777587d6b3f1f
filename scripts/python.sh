#!/bin/sh
# Is there a Python with DuckDB and pandas, for the tests that open our Parquet files with them? Makes one in the cache, outside the system's own.
#   usage: scripts/python.sh
# Prints the interpreter. 110 MB to download, once; root is needed only where Debian's python3-venv is missing.
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh
packages="duckdb==1.* pandas==2.* pyarrow"
out=$NEARCRAWL_CACHE/python
[ -x "$out/bin/python" ] && [ -e "$out/whole" ] && { echo "$out/bin/python"; exit 0; }
mkdir -p "$NEARCRAWL_CACHE"
exec 9>"$NEARCRAWL_CACHE/python.lock"
flock 9
if [ ! -e "$out/whole" ]; then
    rm -rf "$out"
    python3 -m venv "$out" >&2
    # shellcheck disable=SC2086 # a list of words
    "$out/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: $packages >&2
    touch "$out/whole"
fi
echo "$out/bin/python"
