//! Runs one spec from standard input and prints its result: `cargo run --release --example run < spec.json`.
//! For profilers, which see no Python this way. The largest resident set goes to standard error (Linux).

use std::io::Read;

fn main() -> Result<(), String> {
    let mut spec = String::new();
    std::io::stdin().read_to_string(&mut spec).map_err(|e| e.to_string())?;
    println!("{}", simfs_engine::run::run_json(&spec, false)?);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| eprintln!("{line}"));
    Ok(())
}
