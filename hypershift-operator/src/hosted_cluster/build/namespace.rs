//! The namespace of a control plane.

use std::collections::BTreeMap;

use api::annotations::cluster::POD_SECURITY_LEVEL;
use api::group::CapiTypes;
use api::hypershift::v1beta1::platform::PlatformType;
use api::names::HOSTED_CONTROL_PLANE;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use crate::desired::Desired;
use crate::facts::Facts;
use crate::names;
use crate::platform::azure::identity::uses_managed;

/// Label of a control-plane-operator's image whose pods keep to the level `restricted`.
const RESTRICTED: &str = "io.openshift.hypershift.restricted-psa";
/// Label of namespaces that OpenShift's own monitoring watches.
const MONITORED: &str = "openshift.io/cluster-monitoring";
/// Annotation with the ID of the cluster's resource in Azure.
const AZURE_RESOURCE: &str = "azure.microsoft.com/hcp-cluster-azure-resource-id";

/// The namespace.
pub(super) fn namespace(facts: &Facts) -> Desired {
    let level = level(facts);
    let mut labels = json!({
        HOSTED_CONTROL_PLANE: "true",
        "pod-security.kubernetes.io/enforce": level,
        "pod-security.kubernetes.io/audit": level,
        "pod-security.kubernetes.io/warn": level,
        // Otherwise OpenShift chooses a level by the rights of service accounts.
        "security.openshift.io/scc.podSecurityLabelSync": "false",
    });
    if facts.images.control_planes.platform_monitoring {
        labels[MONITORED] = json!("true");
    }
    let mut annotations = BTreeMap::new();
    if let Some(user) = facts.management.uid(&facts.namespace) {
        annotations.insert(names::USER, user.to_string());
    }
    if let Some(resource) = azure_resource(facts) {
        annotations.insert(AZURE_RESOURCE, resource.clone());
    }
    let mut metadata = json!({ "labels": labels });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let fields = json!({ "metadata": metadata });
    Desired::new::<Namespace>("", &facts.namespace, fields)
}

/// The resource of a cluster of Azure Red Hat OpenShift in Azure, by which its metrics and logs are found.
fn azure_resource(facts: &Facts) -> Option<&String> {
    let azure = facts.cluster.spec.platform.azure.as_ref()?;
    let resource = facts.annotations().get(AZURE_RESOURCE)?;
    uses_managed(azure).then_some(resource)
}

fn level(facts: &Facts) -> String {
    let given = POD_SECURITY_LEVEL.get(facts.annotations()).ok().flatten();
    given.unwrap_or_else(|| default_level(facts).to_owned())
}

/// The strictest level that the pods of the control plane satisfy.
fn default_level(facts: &Facts) -> &'static str {
    // Virtual machines need devices, whatever the pods of the control-plane-operator need.
    if facts.capi.types() == CapiTypes::Private && runs_virtual_machines(facts) {
        return "privileged";
    }
    if facts.operator_labels.contains_key(RESTRICTED) {
        return "restricted";
    }
    // Releases from before private types do not declare what their pods need.
    if facts.capi.types() == CapiTypes::Standard {
        return "privileged";
    }
    // OpenShift's security context constraints complete the pods; elsewhere those of earlier releases lack a seccomp
    // profile.
    if facts.management.chooses_users {
        return "restricted";
    }
    "baseline"
}

/// Whether virtual machines run in the namespace: those of KubeVirt do, unless they are on another cluster.
fn runs_virtual_machines(facts: &Facts) -> bool {
    let platform = &facts.cluster.spec.platform;
    let is_external = platform
        .kubevirt
        .as_ref()
        .is_some_and(|kubevirt| kubevirt.credentials.is_some());
    platform.type_ == PlatformType::KubeVirt && !is_external
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::fixture;

    /// T05: no field of a HostedCluster gives control plane pods more than they need.
    #[test]
    fn namespaces_get_the_strictest_pod_security_level() {
        // Platform, types, whether the management cluster has SCCs, the level, and the level if the image of the
        // control-plane-operator has the label.
        let table = [
            ("aws", CapiTypes::Private, true, "restricted", "restricted"),
            ("aws", CapiTypes::Private, false, "baseline", "restricted"),
            ("agent", CapiTypes::Private, false, "baseline", "restricted"),
            (
                "kubevirt",
                CapiTypes::Private,
                true,
                "privileged",
                "privileged",
            ),
            (
                "kubevirt",
                CapiTypes::Private,
                false,
                "privileged",
                "privileged",
            ),
            (
                "kubevirt",
                CapiTypes::Standard,
                true,
                "privileged",
                "restricted",
            ),
            ("aws", CapiTypes::Standard, true, "privileged", "restricted"),
            (
                "aws",
                CapiTypes::Standard,
                false,
                "privileged",
                "restricted",
            ),
        ];
        for (platform, types, chooses_users, expected, labelled) in table {
            let cluster = fixture::hosted_cluster(platform);
            let mut facts = fixture::facts(cluster, types);
            facts.management.chooses_users = chooses_users;
            assert_eq!(level(&facts), expected, "{platform} {types:?}");
            facts
                .operator_labels
                .insert(RESTRICTED.to_owned(), String::new());
            assert_eq!(level(&facts), labelled, "{platform} {types:?}");
        }
    }

    #[test]
    fn openshift_watches_namespaces_on_request() {
        let mut facts = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
        for (watches, expected) in [(false, json!(null)), (true, json!("true"))] {
            facts.images.control_planes.platform_monitoring = watches;
            let made = namespace(&facts);
            let labels = &made.body["metadata"]["labels"];
            assert_eq!(labels[MONITORED], expected, "{watches}");
        }
    }

    #[test]
    fn clusters_with_managed_identities_name_their_resource_in_azure() {
        let annotated = |platform: &str| {
            let mut cluster = fixture::hosted_cluster(platform);
            let annotations = cluster.metadata.annotations.get_or_insert_default();
            annotations.insert(AZURE_RESOURCE.to_owned(), "/subscriptions/s".to_owned());
            fixture::facts(cluster, CapiTypes::Private)
        };
        let mut managed = annotated("azure");
        fixture::manage_identities(&mut managed);
        for (name, facts, expected) in [
            ("managed identities", managed, json!("/subscriptions/s")),
            ("workload identities", annotated("azure"), json!(null)),
            ("another platform", annotated("aws"), json!(null)),
        ] {
            let found = &namespace(&facts).body["metadata"]["annotations"][AZURE_RESOURCE];
            assert_eq!(*found, expected, "{name}");
        }
    }

    #[test]
    fn external_infrastructure_does_not_relax_pod_security() {
        let mut cluster = fixture::hosted_cluster("kubevirt");
        let kubevirt = cluster.spec.platform.kubevirt.get_or_insert_default();
        kubevirt.credentials.get_or_insert_default();
        let facts = fixture::facts(cluster, CapiTypes::Private);
        assert!(!runs_virtual_machines(&facts));
    }
}
