//! Names the engine by what it is made from: stored results of one source are not taken for those of another.

use std::fs;
use std::path::{Path, PathBuf};

/// The second has programs written in Python, and brings the others to the machine in Python.
const FOLDERS: [&str; 2] = ["src", "python"];

fn main() {
    let mut files = vec![PathBuf::from("Cargo.toml"), PathBuf::from("Cargo.lock")];
    for folder in FOLDERS {
        collect(Path::new(folder), &mut files);
        println!("cargo:rerun-if-changed={folder}"); // files that come or go
    }
    files.sort();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        let name = file.to_string_lossy().replace('\\', "/");
        for byte in name.bytes().chain(fs::read(file).unwrap_or_default()) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3); // FNV-1a
        }
    }
    println!("cargo:rustc-env=SIMFS_ENGINE_SOURCE={digest:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
