//! Replays the inputs that fuzzing found.
//!
//! The targets are in `fuzz/targets`; `make fuzz` looks for more.

#[path = "../../../fuzz/targets/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/targets/page.rs"]
mod targets;

#[test]
fn every_input_of_the_corpus_passes() {
    corpus::replay(targets::TARGETS);
}
