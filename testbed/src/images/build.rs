//! Static programs from this tree, as they are put into images.

use std::path::PathBuf;

use anyhow::Result;

use crate::cargo::{Linking, Profile, Program};
use crate::progress::Progress;

/// A program of this tree.
#[derive(Debug, Clone, Copy)]
pub struct StaticProgram {
    /// Its crate.
    pub package: &'static str,
    /// Its name in the crate.
    pub name: &'static str,
}

/// Builds a program so that it needs no library; gives where it is.
///
/// Not optimised, because a release takes minutes, and size and speed are not what the testbed is for.
pub async fn build_static(program: &StaticProgram, progress: &Progress) -> Result<PathBuf> {
    let StaticProgram { package, name } = *program;
    let program = Program {
        package,
        name,
        profile: Profile::Dev,
        linking: Linking::Static,
    };
    program.build(progress).await
}
