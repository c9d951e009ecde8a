//! Flags of a program that reads releases.

use std::path::PathBuf;

use crate::mirrors::Overrides;
use crate::registry::InvalidAuthorities;
use crate::releases::{Options, Releases};

/// How releases are read. For `#[command(flatten)]`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Release payloads")]
pub struct Args {
    /// Replace a registry or repository by another, in releases and in all images that they name: SOURCE=TARGET,...
    ///
    /// Worker nodes go on using the names that the release has.
    #[arg(long, env = "REGISTRY_OVERRIDES", value_name = "SOURCE=TARGET", value_delimiter = ',', value_parser = pair)]
    pub registry_overrides: Vec<(String, String)>,
    /// Speak to this registry without TLS: HOST[:PORT], as images name it.
    #[arg(long, value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub plain_http_registry: Vec<String>,
    /// Trust the certificate authorities in this PEM file too.
    #[arg(long, value_name = "FILE")]
    pub registry_ca_bundle: Option<PathBuf>,
    /// Keep releases that were read in this directory, so that the next start does not have to read them.
    #[arg(long, value_name = "DIRECTORY")]
    pub release_cache_dir: Option<PathBuf>,
}

/// Why releases cannot be read in this way.
#[derive(Debug, thiserror::Error)]
pub enum InvalidArgs {
    /// A file that cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that makes no sense.
    #[error("cannot use {}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        source: InvalidAuthorities,
    },
}

// === impl Args ===

impl Args {
    /// What the flags say.
    pub fn releases(self) -> Result<Releases, InvalidArgs> {
        let path = self.registry_ca_bundle.unwrap_or_default();
        let named = !path.as_os_str().is_empty();
        let bundle = named.then(|| std::fs::read(&path)).transpose();
        let ca_bundle = bundle.map_err(|source| {
            let path = path.clone();
            InvalidArgs::File { path, source }
        })?;
        let options = Options {
            plain_http: self.plain_http_registry.into_iter().collect(),
            ca_bundle,
            directory: self.release_cache_dir,
            overrides: Overrides::new(self.registry_overrides),
            ..Options::default()
        };
        Releases::new(options).map_err(|source| InvalidArgs::Authorities { path, source })
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text
        .split_once('=')
        .filter(|(source, target)| !source.is_empty() && !target.is_empty());
    pair.map(|(source, target)| (source.to_owned(), target.to_owned()))
        .ok_or_else(|| {
            "it should look like registry.example.com=mirror.example.com/copy".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        let program = Program::try_parse_from([&["program"], flags].concat());
        program.map(|program| program.args)
    }

    #[test]
    fn flags_are_read() {
        let args = parse(&[
            "--registry-overrides=a.example.com=b.example.com/c,d.example.com=e.example.com",
            "--plain-http-registry=registry.example.com:5000",
        ])
        .unwrap();
        assert_eq!(args.registry_overrides.len(), 2);
        let releases = args.releases().unwrap();
        assert!(format!("{releases:?}").contains("registry.example.com:5000"));
        assert!(parse(&["--registry-overrides=a.example.com"]).is_err());
    }

    #[test]
    fn a_bundle_that_is_not_there_is_named() {
        let args = parse(&["--registry-ca-bundle=/nowhere/bundle"]).unwrap();
        let error = args.releases().unwrap_err();
        assert_eq!(error.to_string(), "cannot read /nowhere/bundle");
    }
}
