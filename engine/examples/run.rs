//! Runs one spec from standard input and prints its result: `cargo run --release --example run < spec.json`.
//! For profilers, which see no Python this way.

use std::io::Read;

fn main() -> Result<(), String> {
    let mut spec = String::new();
    std::io::stdin().read_to_string(&mut spec).map_err(|e| e.to_string())?;
    println!("{}", simfs_engine::run::run_json(&spec, false)?);
    Ok(())
}
