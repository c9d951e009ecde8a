//! The TLS profile of the hosted cluster, as flags of Cluster API's controllers.

use control_plane_component::Context;
use k8s_openapi::api::core::v1::PodSpec;
use payload::Minor;

use crate::facts::Facts;

/// The first releases whose controllers have the flags.
const FIRST: Minor = Minor::of_4(23);

/// Whether controllers of the release have the flags.
pub(super) fn are_known(facts: &Facts) -> bool {
    let release = facts.operated().read();
    release.is_some_and(|release| release.version.minor() >= FIRST)
}

/// Adds the flags to the controllers, which are the first container.
pub(super) fn add(context: &Context<'_>, pod: &mut PodSpec) {
    if let Some(manager) = pod.containers.first_mut() {
        let args = manager.args.get_or_insert_default();
        args.extend(context.tls().flags());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::group::CapiTypes;
    use serde_json::{Value, json};

    use super::super::build;
    use crate::facts::{ReleaseIs, fixture};
    use crate::names;

    /// The flags for TLS of the controllers of a cluster.
    fn flags(platform: &str, release: &str, profile: &str) -> Vec<Vec<String>> {
        let mut cluster = fixture::hosted_cluster(platform);
        let profile = json!({ "tlsSecurityProfile": { "type": profile } });
        let configuration = json!({ "apiServer": profile });
        cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
        facts.release = ReleaseIs::Read(Arc::new(fixture::release_of(release)));
        let workloads = build(&facts).unwrap().workloads;
        let of = |name: &str| -> Vec<String> {
            let mut workloads = workloads.iter().map(|it| &it.body);
            let deployment = workloads.find(|it| it["metadata"]["name"] == name).unwrap();
            let containers = &deployment["spec"]["template"]["spec"]["containers"];
            let args = containers[0]["args"].as_array().unwrap().iter();
            let args = args.filter_map(Value::as_str).map(str::to_owned);
            args.filter(|it| it.starts_with("--tls-")).collect()
        };
        [names::CLUSTER_API, names::CAPI_PROVIDER].map(of).into()
    }

    #[test]
    fn capi_controllers_have_the_tls_profile_from_4_23_on() {
        for (release, profile, expected) in [
            ("4.22.9", "Modern", None),
            ("4.23.0-rc.1", "Modern", Some("VersionTLS13")),
            ("4.23.0", "Intermediate", Some("VersionTLS12")),
            ("5.0.0", "Modern", Some("VersionTLS13")),
        ] {
            for platform in ["agent", "aws", "azure", "kubevirt", "powervs"] {
                for found in flags(platform, release, profile) {
                    let version = found.first().map(String::as_str);
                    let expected = expected.map(|it| format!("--tls-min-version={it}"));
                    assert_eq!(version, expected.as_deref(), "{platform} {release}");
                    let has_ciphers = found
                        .iter()
                        .any(|it| it.starts_with("--tls-cipher-suites="));
                    assert_eq!(
                        has_ciphers,
                        profile == "Intermediate",
                        "{platform} {release}"
                    );
                }
            }
        }
    }
}
