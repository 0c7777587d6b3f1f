#!/bin/bash
# Builds RocksDB and the daemon at the same time and tells how far both are.
#   usage: scripts/build.sh PROFILE      (dev, release or dist: see Cargo.toml)
#
# Only the link of the binary needs librocksdb.a, so cargo compiles the daemon's library and all its dependencies meanwhile.
# RocksDB has the lower priority: the longest chain of steps is cargo's, and RocksDB fills the gaps in it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
profile=${1:?usage: scripts/build.sh PROFILE}
case $profile in dev) out=$CARGO_TARGET_DIR/debug ;; *) out=$CARGO_TARGET_DIR/$profile ;; esac
mkdir -p "$out"
[ -t 2 ] && terminal=true || terminal=false
# The crates that there are to compile if nothing is built yet.
crates=$(cargo tree --locked --quiet --package nearcrawl --edges normal,build --prefix none --format '{p}' | sed 's| (.*||' | sort -u | wc -l)

# Each in a process group of its own, so that all of it can be ended together.
set -m
nice -n 5 scripts/build-rocksdb.sh >"$out/rocksdb.log" 2>&1 </dev/null &
rocksdb=$!
cargo build --locked --profile "$profile" --package nearcrawl --lib >"$out/cargo.log" 2>&1 </dev/null &
cargo=$!
set +m
trap 'kill -- -$rocksdb -$cargo 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP

tell() {
    local line compiled parts
    compiled=$(grep -c '^ *Compiling' "$out/cargo.log" || true)
    parts=$(sed -n 's/.* in \([0-9]*\) parts.*/\1/p' "$out/rocksdb.log")
    line="$(printf '%d:%02d ' $((SECONDS / 60)) $((SECONDS % 60))) $(tail -n 1 "$out/cargo.log" | tr -s ' ' | cut -d ' ' -f 2-3)"
    [ "$compiled" = 0 ] || line+=", $compiled of at most $crates crates"
    [ -z "$parts" ] || line+="; RocksDB $(grep -c ' took ' "$out/rocksdb.log" || true) of $parts parts"
    if $terminal; then printf '\r\033[K%s' "$line" >&2; else echo "$line" >&2; fi
}
finished() { # finished PID NAME: whether it has ended well; if it has failed, all ends here
    kill -0 "$1" 2>/dev/null && return 1
    wait "$1" && return 0
    ! $terminal || echo >&2
    grep -v '^ *\(Compiling\|Download\)' "$out/$2.log" >&2
    exit 1
}
every=$($terminal && echo 1 || echo 15)
next=$every
running=true
while $running; do
    sleep 0.2
    running=false
    finished $cargo cargo || running=true
    finished $rocksdb rocksdb || running=true
    [ $SECONDS -lt "$next" ] || { tell && next=$((SECONDS + every)); }
done
! $terminal || printf '\r\033[K' >&2
trap - EXIT
# The relocations of what is installed are packed, 2.8 MB less, if this machine's C library can read them: from 2.36 on, which the package
# names then (scripts/deb.sh).
link=()
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2 || true)
if [ "$profile" = dist ] && [ "$(printf '2.36\n%s\n' "${libc:-0}" | sort -V | head -n 1)" = 2.36 ]; then
    link=(-C link-arg=-Wl,-z,pack-relative-relocs)
fi
cargo rustc --locked --quiet --profile "$profile" --package nearcrawl --bin nearcrawl -- "${link[@]}"
echo "built $out/nearcrawl in $((SECONDS / 60)) min $((SECONDS % 60)) s" >&2
