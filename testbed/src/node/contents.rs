//! What a testbed's registry holds: our images, and those that the testbed itself needs.

use std::collections::HashMap;

use anyhow::Result;

use crate::binaries::{Binaries, Binary};
use crate::images::{Archive, Contents, File, Image, StaticProgram, build_static};
use crate::progress::Progress;
use crate::registry::Registry;

/// The image of the program that looks up a name.
pub(super) const RESOLVE: &str = "resolve";
/// The image of the process that a pod's network belongs to.
pub(super) const PAUSE: &str = "pause";
/// The image of the name service.
pub(super) const COREDNS: &str = "coredns";

/// Images that are ready to be pushed.
#[derive(Debug)]
pub(super) struct Built {
    ours: Vec<(Image, Archive)>,
    own: Vec<(&'static str, Archive)>,
}

/// The references of images that have been pushed.
#[derive(Debug)]
pub(super) struct Pushed {
    pub(super) ours: HashMap<Image, String>,
    pub(super) pause: String,
    pub(super) name_service: String,
}

// === impl Built ===

impl Built {
    /// Builds our requested images, and the testbed's own.
    pub(super) async fn new(
        images: &[Image],
        binaries: &Binaries,
        progress: &Progress,
    ) -> Result<Self> {
        let mut ours = Vec::new();
        for &image in images {
            ours.push((image, image.build(progress).await?));
        }
        let mut own = Vec::new();
        for name in [PAUSE, RESOLVE] {
            let package = "pod-tools";
            let program = build_static(&StaticProgram { package, name }, progress).await?;
            own.push((
                name,
                single(name, File::program(format!("/{name}"), program))?,
            ));
        }
        let coredns = File::program("/coredns", binaries.path(Binary::CoreDns)?);
        own.push((COREDNS, single(COREDNS, coredns)?));
        Ok(Self { ours, own })
    }

    /// Pushes them.
    pub(super) async fn push(&self, registry: &Registry) -> Result<Pushed> {
        let mut ours = HashMap::new();
        for (image, archive) in &self.ours {
            ours.insert(*image, registry.push(image.name(), archive).await?);
        }
        for (name, archive) in &self.own {
            registry.push(name, archive).await?;
        }
        Ok(Pushed {
            ours,
            pause: Registry::reference(PAUSE),
            name_service: Registry::reference(COREDNS),
        })
    }
}

/// An image of one program.
fn single(name: &str, program: File) -> Result<Archive> {
    Archive::of(&Contents {
        entrypoint: format!("/{name}"),
        command: &[],
        files: vec![program],
    })
}
