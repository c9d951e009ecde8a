//! Makes the CRDs of Karpenter part of the binary, where `cargo xtask embed` has fetched them.

use std::path::Path;

fn main() {
    // The directory, because a file that is missing would count as changed each time.
    println!("cargo::rerun-if-changed=embedded");
    println!("cargo::rustc-check-cfg=cfg(embedded_karpenter)");
    if Path::new("embedded/karpenter.json").exists() {
        println!("cargo::rustc-cfg=embedded_karpenter");
    }
}
