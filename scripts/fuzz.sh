#!/bin/bash
# Does any input break a decoder or a parser? Fuzzes each target for FUZZ_SECONDS (3600), keeps what it found in fuzz/corpus and appends
# a line a target to docs/FUZZ.md. Those that were fuzzed least, by that file, come first, and none begins after FUZZ_BUDGET seconds in
# all: so a few hours now and then add up to an hour for each.
#   usage: scripts/fuzz.sh [TARGET...]       like model/claim, or a folder like model; all without arguments
# Stable Rust has all that libFuzzer needs: the compiler's coverage pass, and libfuzzer-sys, which compiles libFuzzer with g++.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
seconds=${FUZZ_SECONDS:-3600}
budget=${FUZZ_BUDGET:-}
host=$(rustc -vV | sed -n 's/^host: //p')
# Instrumented code has a directory of its own, or every other build would be done again.
CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-$CARGO_TARGET_DIR/fuzz}
export CARGO_TARGET_DIR
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
passes="$passes -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
passes="$passes -Cllvm-args=-sanitizer-coverage-trace-compares"

# Only what the arguments name is built.
features=page,hierarchy,core,lab
if [ $# != 0 ]; then
    features=$(printf '%s\n' "$@" | sed 's|/.*||' | grep -vx model | sort -u | paste -sd, || true)
fi

# With --target build scripts and macros are not instrumented.
RUSTFLAGS=$passes cargo build --quiet --manifest-path fuzz/Cargo.toml --locked --release --features "$features" --target "$host"
fuzz=$CARGO_TARGET_DIR/$host/release/fuzz
work=$CARGO_TARGET_DIR/work
log=docs/FUZZ.md
commit=$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)

corpus() { # a command on the corpora; libFuzzer complains before it of what only a sanitizer has
    CORPUS="$*" "$fuzz" 2> >(grep -v '^WARNING: Failed to find' >&2)
}

chosen() { # the targets that the arguments name
    [ $# = 0 ] && set -- ""
    for name in "$@"; do
        corpus list | grep -E "^$name(/|\$)" || [ -z "$name" ] || { echo "fuzz: there is no target $name" >&2; exit 1; }
        [ -n "$name" ] || corpus list
    done
}

least_first() { # the targets on standard input, by the seconds that the log has of them
    awk -F ' *[|] *' 'NR == FNR { if ($2 ~ /^[0-9]/) logged[$4] += $5; next } { print logged[$1] + 0, FNR, $1 }' "$log" - | sort -n -k1 -k2 | cut -d' ' -f3
}

failed=0
SECONDS=0 # since here
targets=$(chosen "$@" | least_first)
for target in $targets; do
    if [ -n "$budget" ] && [ "$SECONDS" -ge "$budget" ]; then
        echo "fuzz: the budget of $budget s is spent; the next is $target"
        break
    fi
    inputs=$work/$target
    crashes=$work/crashes/$target
    rm -rf "$inputs" "$inputs.merged" "$crashes"
    mkdir -p "$inputs.merged" "$crashes"
    corpus unpack "$target" "$inputs"
    output=$inputs.log
    echo "fuzz: $target, $seconds s"
    export FUZZ_TARGET=$target
    code=0
    "$fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
        -artifact_prefix="$crashes/" "$inputs" >"$output" 2>&1 || code=$?
    executions=$(sed -n 's/^stat::number_of_executed_units: //p' "$output")
    # A merge keeps the smallest inputs that together reach as much.
    "$fuzz" -merge=1 -timeout=10 -rss_limit_mb=2048 -max_len=16384 "$inputs.merged" "$inputs" >>"$output" 2>&1 || true
    kept=$(corpus pack "$target" "$inputs.merged")
    found=$(find "$crashes" -type f | wc -l)
    echo "| $(date -u +%F) | $commit | $target | $seconds | ${executions:-0} | $kept | $found |" >>"$log"
    if [ "$code" != 0 ]; then
        failed=1
        echo "fuzz: $target broke, see $output; its input as a line for fuzz/corpus/$target.txt:" >&2
        find "$crashes" -type f | while read -r file; do corpus escape "$file" >&2; done
    fi
done
exit $failed
