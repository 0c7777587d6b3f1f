<<<<<<< HEAD
//! (room being built)

pub mod snapshot;
=======
//! The hands: one library each; they act and report, and decide nothing.

pub mod page;
>>>>>>> page
