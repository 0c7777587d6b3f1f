# Where do builds find RocksDB, and where do they put what they make? Source this from the top of the source tree:
#   . scripts/env.sh
# Everything stays outside the tree, so that several checkouts share it and a fresh one builds in seconds. What is already
# set in the environment is kept.

if [ ! -f Cargo.lock ]; then
    echo "scripts/env.sh: source this from the top of the source tree (there is no Cargo.lock here)" >&2
    return 1
fi
NEARCRAWL_CACHE=${NEARCRAWL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nearcrawl}
export NEARCRAWL_CACHE

# The exact version of the crate whose RocksDB is used; another version gets a directory of its own.
ROCKSDB_VERSION=$(awk '$1 == "name" && $3 == "\"librocksdb-sys\"" { getline; gsub(/"/, ""); print $3 }' Cargo.lock)
# Its headers are read from the crate. ROCKSDB_STATIC stays unset: with it, the library would be copied into a Rust library and
# have to be there before anything that uses it compiles. So it is only linked into programs, in the end; and since there is
# no librocksdb.so beside librocksdb.a, it is part of them.
ROCKSDB_LIB_DIR=${ROCKSDB_LIB_DIR:-$NEARCRAWL_CACHE/rocksdb-$ROCKSDB_VERSION}
export ROCKSDB_LIB_DIR

# bindgen reads RocksDB's headers with a bare libclang, which does not know where the compiler keeps stddef.h.
if command -v gcc >/dev/null; then
    BINDGEN_EXTRA_CLANG_ARGS=${BINDGEN_EXTRA_CLANG_ARGS:--I$(gcc -print-file-name=include)}
    export BINDGEN_EXTRA_CLANG_ARGS
fi

CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$NEARCRAWL_CACHE/target}
export CARGO_TARGET_DIR

# Real pages for the tests, see scripts/corpus.sh.
NEARCRAWL_CORPUS=${NEARCRAWL_CORPUS:-$NEARCRAWL_CACHE/corpus}
export NEARCRAWL_CORPUS
