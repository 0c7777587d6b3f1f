//! Does all of it hold together? One binary for all integration tests: each binary links RocksDB and libp2p.

mod corpus;
mod lockfile;
mod real_input;
mod support;
mod tidy;
mod unit_file;
