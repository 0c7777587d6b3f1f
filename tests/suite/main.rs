//! Does the whole hold together? All integration tests in one binary: each test binary links RocksDB and libp2p.

mod corpus;
