//! Tests of the engine from outside: they name what `simfs_engine` shows to all.

mod common;
mod directory_churn;
mod exec;
mod inodegc;
mod interval_tree;
mod numbers;
mod range_btree;
mod range_locks;
mod readers_and_writers;
mod spinners;
mod turns;
mod untaken;
