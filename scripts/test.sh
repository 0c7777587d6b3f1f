#!/bin/bash
# Does everything hold? Runs every test and names the ten slowest; the runner's own summary comes last.
#   usage: scripts/test.sh [OPTIONS OF cargo nextest run]       (or of cargo test, if cargo-nextest is not installed)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
echo "real pages: $NEARCRAWL_CORPUS"
cargo nextest --version >/dev/null 2>&1 || exec cargo test --workspace --locked --no-fail-fast "$@"

mkdir -p "$CARGO_TARGET_DIR"
log=$(mktemp "$CARGO_TARGET_DIR/test-log.XXXXXX")
trap 'rm -f "$log"' EXIT
[ -t 2 ] && color=always || color=never
code=0
cargo nextest run --workspace --locked --no-fail-fast --color "$color" "$@" 2>&1 | tee "$log" || code=$?

# A line a test, in the order in which they ended: "PASS [  1.234s] (12/890) PACKAGE TEST". Those that failed are named again
# after the summary, and those that take long have lines of another form before they end.
echo
echo "The ten slowest tests:"
# Every command reads to the end: whoever closes a pipe early makes the one before it fail, and this script with it.
sed 's/\x1b\[[0-9;]*m//g' "$log" |
    sed -n '/^ *Summary \[/,$d; s/^ *\(PASS\|FAIL\|TIMEOUT\|LEAK\|SIG[A-Z]*\) \[ *\([0-9.]*\)s\] *\(( *[0-9]*\/[0-9]*)\)\? */\2 /p' |
    sort -rn | awk 'NR <= 10 { printf "%9.1f s ", $1; $1 = ""; print }'
echo
sed -n '/^\(\x1b\[[0-9;]*m\)* *\(\x1b\[[0-9;]*m\)*Summary/,$p' "$log"
exit "$code"
