//! Makes the CRDs of the pinned modules part of the binary, where `cargo xtask embed` has fetched them.

use std::path::Path;

fn main() {
    // The directory, because a file that is missing would count as changed each time.
    println!("cargo::rerun-if-changed=embedded");
    println!("cargo::rustc-check-cfg=cfg(embedded_crds)");
    if Path::new("embedded/crds.json").exists() {
        println!("cargo::rustc-cfg=embedded_crds");
    }
}
