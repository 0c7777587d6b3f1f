//! Opt-outs: how a proof is looked for, and those that readers bring over the network.

pub(super) mod opt_out_proofs;
pub(super) mod reader_opt_outs;
