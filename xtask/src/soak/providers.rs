//! `cargo xtask soak providers`: stock providers beside each other, directly and behind the proxy.

use std::process::ExitCode;

use anyhow::Result;

/// The module with the tests, one for each platform.
pub(super) const MODULE: &str = "providers";
/// What the names of the tests have in common.
const COMPARED: &str = "_makes_the_same_requests_behind_the_proxy";

/// Flags of `soak providers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Providers {
    /// The provider to run, instead of all of them, one after another
    #[arg(long, value_enum, value_name = "NAME")]
    provider: Option<Provider>,
}

/// Platforms with a stock provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Provider {
    /// Amazon Web Services
    Aws,
    /// Google Cloud
    Gcp,
    /// Microsoft Azure
    Azure,
    /// KubeVirt
    Kubevirt,
    /// OpenStack
    Openstack,
    /// IBM Cloud, with virtual servers in a VPC
    Ibmcloud,
    /// IBM Power Virtual Server
    Powervs,
}

/// Runs one of them or all.
pub(super) fn run(flags: &Providers) -> Result<ExitCode> {
    match flags.provider {
        Some(provider) => super::test(MODULE, &provider.test(), &[]),
        None => super::tests(MODULE, &[COMPARED], &[]),
    }
}

// === impl Provider ===

impl Provider {
    /// Its test.
    fn test(self) -> String {
        let name = match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Kubevirt => "kubevirt",
            Self::Openstack => "openstack",
            Self::Ibmcloud => "ibmcloud",
            Self::Powervs => "powervs",
        };
        format!("{name}{COMPARED}")
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_provider_has_a_test_that_names_its_command() {
        let source = crate::sources::read("e2e/tests/providers/main.rs").unwrap();
        for provider in Provider::value_variants() {
            let test = format!("async fn {}()", provider.test());
            assert!(source.contains(&test), "{test}");
            let value = provider.to_possible_value().unwrap();
            let command = format!(
                "cargo xtask soak providers --provider {}\"",
                value.get_name()
            );
            assert!(source.contains(&command), "{command}");
        }
        let all = Provider::value_variants().len();
        assert_eq!(source.matches(COMPARED).count(), all);
    }
}
