//! Does all of it hold together? One binary for all integration tests: each binary links RocksDB and libp2p.

#![expect(clippy::unwrap_used, reason = "a panic is how a test and its helpers fail")]

mod addresses;
mod allowance;
mod bad_input;
mod bad_peers;
mod bit_flips;
mod census;
mod cloned_key;
mod corpus;
mod crawl_tool;
mod delegation;
mod evaluation;
mod exports;
mod false_editions;
mod floods;
mod full_disk;
mod fuzzing;
mod hostile_web;
mod interrupted_crawls;
mod kills;
mod liars;
mod limits;
mod lockfile;
mod machines;
mod many_hosts;
mod migration;
mod modules;
mod moved_hosts;
mod moves;
mod netlab;
mod package;
mod panics;
mod real_input;
mod reports;
mod second_runs;
mod shared_hierarchy;
mod small_swarms;
mod stalled_store;
mod studies;
mod support;
mod surveys;
mod suspended;
mod tidy;
mod two_spellings;
mod unit_file;
