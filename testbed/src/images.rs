//! The images of our own programs, built by the recipe that the Dockerfile has, without a builder.
//!
//! The Dockerfile needs base images and a builder, which are not everywhere; the testbed needs neither. So that both make
//! the same images, what they have in common is one table ([`Image`]), and a test compares the Dockerfile with it.

mod archive;
mod build;

pub use archive::{Archive, Blob, Contents, File};
pub use build::{StaticProgram, build_static};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use payload::Capability;

use crate::progress::Progress;

/// What images are built for.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The compiler flags that make a program need no library.
pub const FLAGS: &str = "-C target-feature=+crt-static";
/// The user that images run as.
pub const USER: &str = "65532:65532";
/// The directory of most programs: the root, which is written so.
const ROOT: &str = "";
/// The authorities that a program trusts which calls servers outside of the cluster.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// An image of the product: a target of the Dockerfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Image {
    /// The command line.
    Hypershift,
    /// The operator of hosted clusters and node pools.
    HypershiftOperator,
    /// The operator of one hosted control plane, and the helpers of its components.
    ControlPlaneOperator,
    /// The sidecar that swaps group names.
    CapiProxy,
}

/// How an image is made.
#[derive(Debug)]
pub struct Recipe {
    /// The crate.
    pub package: &'static str,
    /// The program in it: the only one in the image.
    pub program: &'static str,
    /// Other names of the program, beside it.
    pub links: &'static [&'static str],
    /// The directory that it is in.
    pub directory: &'static str,
    /// The default arguments of the program.
    pub command: &'static [&'static str],
    /// Which files it needs beside itself.
    pub needs: &'static [&'static str],
    /// The capabilities in its labels.
    pub capabilities: &'static [Capability],
}

// === impl Image ===

impl Image {
    /// All of them, in the Dockerfile's order.
    pub const ALL: [Self; 4] = [
        Self::Hypershift,
        Self::HypershiftOperator,
        Self::ControlPlaneOperator,
        Self::CapiProxy,
    ];

    /// Its name: of the Dockerfile's target, and in a registry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hypershift => "hypershift",
            Self::HypershiftOperator => "hypershift-operator",
            Self::ControlPlaneOperator => "control-plane-operator",
            Self::CapiProxy => "capi-proxy",
        }
    }

    /// How it is made.
    pub fn recipe(self) -> Recipe {
        match self {
            Self::Hypershift => Recipe {
                package: "cli",
                program: "hypershift",
                links: &[],
                directory: ROOT,
                command: &[],
                // It reads CRDs from URLs.
                needs: &[CERTIFICATES],
                capabilities: &[],
            },
            Self::HypershiftOperator => Recipe {
                package: "hypershift-operator",
                program: "hypershift-operator",
                links: &[],
                directory: ROOT,
                command: &["run"],
                // It reads releases from registries.
                needs: &[CERTIFICATES],
                capabilities: &[],
            },
            Self::ControlPlaneOperator => Recipe {
                package: "control-plane-operator",
                program: "control-plane-operator",
                links: &["control-plane-pki-operator"],
                // Manifests of components name it there, as those of OpenShift do.
                directory: "/usr/bin",
                command: &["run"],
                needs: &[CERTIFICATES],
                capabilities: &[
                    Capability::CreatesAwsSecurityGroup,
                    Capability::DecompressesConfig,
                    Capability::PrivateTypes,
                    Capability::RestrictedPodSecurity,
                    Capability::SignsCertificates,
                    Capability::SkipsHaproxy,
                ],
            },
            Self::CapiProxy => Recipe {
                package: "capi-proxy",
                program: "capi-proxy",
                links: &[],
                directory: ROOT,
                command: &["serve"],
                needs: &[],
                capabilities: &[],
            },
        }
    }

    /// Builds its program, and puts the image together.
    pub async fn build(self, progress: &Progress) -> Result<Archive> {
        let recipe = self.recipe();
        let program = StaticProgram {
            package: recipe.package,
            name: recipe.program,
        };
        let built = build_static(&program, progress).await?;
        self.pack(built, Path::new(CERTIFICATES))
    }

    /// Puts the image together of its program and a bundle of certificate authorities.
    pub fn pack(self, program: PathBuf, authorities: &Path) -> Result<Archive> {
        let recipe = self.recipe();
        let archive = Archive::of(&recipe.contents(program, authorities))?;
        Ok(archive.with_labels(&recipe.labels()))
    }
}

// === impl Recipe ===

impl Recipe {
    fn entrypoint(&self) -> String {
        format!("{}/{}", self.directory, self.program)
    }

    /// The labels that say what it can do.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let capabilities = self.capabilities.iter();
        capabilities
            .map(|it| (it.label(), "true".to_owned()))
            .collect()
    }

    /// What is in the image, with the program at `built`.
    fn contents(&self, built: PathBuf, authorities: &Path) -> Contents {
        let mut files = vec![File::program(self.entrypoint(), built)];
        let links = self.links.iter();
        files.extend(
            links.map(|link| File::link(format!("{}/{link}", self.directory), self.program)),
        );
        let needed = self.needs.iter().map(|path| match *path {
            CERTIFICATES => File::copy(*path, authorities),
            path => File::data(path),
        });
        // A machine without certificates trusts no server, and neither does what is built on it.
        files.extend(needed.filter(File::exists));
        Contents {
            entrypoint: self.entrypoint(),
            command: self.command,
            files,
        }
    }

    /// The lines of the Dockerfile's stage.
    #[cfg(test)]
    fn stage(&self) -> Vec<String> {
        let needed = self.needs.iter();
        let mut lines: Vec<String> = needed
            .map(|path| format!("COPY --from=build {path} {path}"))
            .collect();
        let entrypoint = self.entrypoint();
        lines.push(format!(
            "COPY --from=build /out/{} {entrypoint}",
            self.program
        ));
        if !self.links.is_empty() {
            lines.push(format!("COPY --from=build /out/links/ {}/", self.directory));
        }
        let labels = self.labels().into_iter();
        lines.extend(labels.map(|(label, value)| format!("LABEL {label}={value:?}")));
        lines.push(format!("USER {USER}"));
        lines.push(format!("ENTRYPOINT [{entrypoint:?}]"));
        if !self.command.is_empty() {
            lines.push(format!("CMD {:?}", self.command));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stages of the Dockerfile: their first lines, and the others without comments and empty lines.
    fn stages() -> Vec<(String, Vec<String>)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../Dockerfile");
        let text = std::fs::read_to_string(path).unwrap();
        let mut stages: Vec<(String, Vec<String>)> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if line.starts_with("FROM ") {
                stages.push((line.to_owned(), Vec::new()));
            } else if let Some((_, lines)) = stages.last_mut()
                && !line.starts_with('#')
            {
                lines.push(line.to_owned());
            }
        }
        stages
    }

    #[test]
    fn the_dockerfile_makes_the_images_of_the_table_and_no_others() {
        let stages = stages();
        let expected: Vec<_> = Image::ALL
            .iter()
            .map(|image| {
                let first = format!("FROM scratch AS {}", image.name());
                (first, image.recipe().stage())
            })
            .collect();
        assert_eq!(stages[1..], expected, "{stages:#?}");
    }

    #[test]
    fn the_dockerfile_builds_the_programs_of_the_table_with_its_flags() {
        let stages = stages();
        let (first, lines) = &stages[0];
        assert!(first.ends_with(" AS build"), "{first}");
        let build = lines.join("\n");
        assert!(
            build.contains(&format!("ENV RUSTFLAGS={FLAGS:?}")),
            "{build}"
        );
        assert!(build.contains(&format!("--target {TARGET} ")), "{build}");
        let packages: Vec<_> = Image::ALL
            .iter()
            .map(|image| image.recipe().package)
            .collect();
        let desired = format!("for package in {}; do", packages.join(" "));
        assert!(build.contains(&desired), "no {desired:?} in {build}");
        for image in Image::ALL {
            let installed = format!("target/{TARGET}/release/{}", image.recipe().program);
            assert!(build.contains(&installed), "no {installed:?} in {build}");
            for link in image.recipe().links {
                let made = format!("ln -s {} /out/links/{link}", image.recipe().program);
                assert!(build.contains(&made), "no {made:?} in {build}");
            }
        }
    }

    #[test]
    fn the_only_external_image_is_pinned_by_digest() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../Dockerfile");
        let text = std::fs::read_to_string(path).unwrap();
        let bases = text.lines().filter_map(|line| line.strip_prefix("FROM "));
        for base in bases {
            assert!(
                base.starts_with("scratch ") || base.starts_with("${RUST_IMAGE} "),
                "{base}"
            );
        }
        assert!(
            text.lines().any(|line| line == "ARG RUST_IMAGE"),
            "it has a default"
        );
        assert!(
            text.contains("*@sha256:*) ;;"),
            "an image without a digest is not refused"
        );
    }

    #[test]
    fn no_image_runs_as_root() {
        let (user, group) = USER.split_once(':').unwrap();
        assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    }
}
