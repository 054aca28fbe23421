//! How kernels differ besides the algorithms of their locks: rules, each with a name and the values that it can have.
//!
//! `rules` is the table of all; the values are declared by family. Which kernel has which is told in
//! `models/kernels/timeline.yaml`.

pub mod btrfs;
mod choice;
pub mod ext4;
mod rules;
pub mod sched;
pub mod vfs;
pub mod xfs;

pub use choice::Choice;
pub use rules::{Rule, Rules};
