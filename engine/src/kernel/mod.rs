//! What kernels do differently: the roles of locks, and rules, each with a name and the values that it can have.
//!
//! `rules` is the table of all rules; the values are declared by family. Which kernel has which is told in
//! `models/kernels/timeline.yaml`.

pub mod block;
pub mod btrfs;
mod choice;
pub mod ext4;
pub mod idle;
pub mod mm;
pub mod process;
mod roles;
mod rules;
pub mod sched;
pub mod time;
pub mod vfs;
pub mod workqueue;
pub mod xfs;

pub use choice::Choice;
pub use roles::{is_for_io, roles, ROLES};
pub use rules::{Rule, Rules};
