//! Tests of the engine from outside. They are one program: each program of its own would be linked with the whole engine again.

mod common;
mod directory_churn;
mod exec;
mod inodegc;
mod interval_tree;
mod numbers;
mod range_btree;
mod range_locks;
mod readers_and_writers;
mod turns;
mod untaken;
