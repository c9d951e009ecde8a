//! The release payload for the operator, without the components that run in the control plane.

use std::fmt::Write as _;

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::Context;
use serde_json::{Value, json};

const STORAGE: [&str; 2] = [
    "0000_50_cluster-storage-operator_10_deployment-ibm-cloud-managed.yaml",
    "0000_50_cluster-csi-snapshot-controller-operator_07_deployment-ibm-cloud-managed.yaml",
];
const CONSOLE_LOGIN: &str = "0000_50_console-operator_01-oauth.yaml";
/// Manifests of components that run in the control plane, or that must not be changed there: name prefix and suffixes.
const OMITTED: [(&str, &[&str]); 14] = [
    (
        "0000_50_olm_",
        &[
            "00-pprof-config.yaml",
            "00-pprof-rbac.yaml",
            "00-pprof-secret.yaml",
            "00-packageserver.pdb.yaml",
            "01-olm-operator.serviceaccount.yaml",
            "02-services.yaml",
            "06-psm-operator.deployment.yaml",
            "06-psm-operator.deployment.ibm-cloud-managed.yaml",
            "06-psm-operator.service.yaml",
            "06-psm-operator.servicemonitor.yaml",
            "07-olm-operator.deployment.ibm-cloud-managed.yaml",
            "07-olm-operator.deployment.yaml",
            "07-collect-profiles.cronjob.yaml",
            "08-catalog-operator.deployment.ibm-cloud-managed.yaml",
            "08-catalog-operator.deployment.yaml",
            "15-packageserver.clusterserviceversion.yaml",
            "99-operatorstatus.yaml",
        ],
    ),
    ("0000_90_olm_", &["00-service-monitor.yaml"]),
    (
        "0000_50_operator-marketplace_",
        &[
            "04_service_account.yaml",
            "05_role.yaml",
            "06_role_binding.yaml",
            "07_configmap.yaml",
            "08_service.yaml",
            "09_operator-ibm-cloud-managed.yaml",
            "09_operator.yaml",
            "10_clusteroperator.yaml",
            "11_service_monitor.yaml",
        ],
    ),
    ("0000_03_marketplace-operator_", &["02_operatorhub.cr.yaml"]),
    (
        "0000_70_dns-operator_",
        &["02-deployment-ibm-cloud-managed.yaml"],
    ),
    (
        "0000_50_cluster-ingress-operator_",
        &["02-deployment-ibm-cloud-managed.yaml"],
    ),
    (
        "0000_70_cluster-network-operator_",
        &["03_deployment-ibm-cloud-managed.yaml"],
    ),
    (
        "0000_80_machine-config_01_",
        &[
            "containerruntimeconfigs.crd.yaml",
            "kubeletconfigs.crd.yaml",
            "machineconfigs.crd.yaml",
            "machineconfigpools-Default.crd.yaml",
        ],
    ),
    (
        "0000_50_cluster-node-tuning-operator_",
        &[
            "20-performance-profile.crd.yaml",
            "50-operator-ibm-cloud-managed.yaml",
        ],
    ),
    (
        "0000_50_cluster-image-registry-operator_",
        &[
            "07-operator-ibm-cloud-managed.yaml",
            "07-operator-service.yaml",
        ],
    ),
    (
        "0000_90_cluster-image-registry-operator_",
        &["02_operator-servicemonitor.yaml"],
    ),
    (
        "0000_50_cloud-credential-operator_",
        &["01-operator-config.yaml"],
    ),
    (
        "0000_50_cluster-authentication-operator_",
        &["02_config.cr.yaml"],
    ),
    ("0000_90_etcd-operator_", &["03_prometheusrule.yaml"]),
];
const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const CRD: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

/// An object of the guest: group and version with kind, namespace, name.
type Object = ((&'static str, &'static str), &'static str, &'static str);

/// Leftovers of older layouts in guests.
const STALE: [Object; 5] = [
    (
        ("policy/v1", "PodDisruptionBudget"),
        "openshift-operator-lifecycle-manager",
        "packageserver-pdb",
    ),
    (DEPLOYMENT, "openshift-network-operator", "network-operator"),
    (
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        "",
        "default-account-cluster-network-operator",
    ),
    (
        DEPLOYMENT,
        "openshift-cluster-node-tuning-operator",
        "cluster-node-tuning-operator",
    ),
    (
        DEPLOYMENT,
        "openshift-image-registry",
        "cluster-image-registry-operator",
    ),
];
/// Leftovers where storage is managed from the control plane.
const STALE_WITH_STORAGE: [Object; 9] = [
    (CRD, "", "machineconfigs.machineconfiguration.openshift.io"),
    (
        CRD,
        "",
        "machineconfigpools.machineconfiguration.openshift.io",
    ),
    (
        DEPLOYMENT,
        "openshift-cluster-storage-operator",
        "cluster-storage-operator",
    ),
    (
        DEPLOYMENT,
        "openshift-cluster-storage-operator",
        "csi-snapshot-controller-operator",
    ),
    (
        DEPLOYMENT,
        "openshift-cluster-csi-drivers",
        "aws-ebs-csi-driver-operator",
    ),
    (
        DEPLOYMENT,
        "openshift-cluster-csi-drivers",
        "aws-ebs-csi-driver-controller",
    ),
    (
        DEPLOYMENT,
        "openshift-cluster-storage-operator",
        "csi-snapshot-controller",
    ),
    (
        DEPLOYMENT,
        "openshift-kube-storage-version-migrator-operator",
        "kube-storage-version-migrator-operator",
    ),
    (
        DEPLOYMENT,
        "openshift-kube-storage-version-migrator",
        "migrator",
    ),
];
/// Removes manifests of other feature sets: `$feature_set` is the cluster's.
const FEATURE_SET_FILTER: &str = r#"for file in "$payload"/manifests/*.yaml; do
  [ -e "$file" ] || continue
  named="$(sed -n 's|^ *"\{0,1\}release.openshift.io/feature-set"\{0,1\}: *||p' "$file" | head -n 1 | tr -d "\"' ")"
  case ",$named," in
    ,, | *",$feature_set,"*) ;;
    *) rm -f "$file" ;;
  esac
done
"#;

/// The script that copies the payload from the release image to the operator's directory.
pub(super) fn script(context: &Context<'_>) -> String {
    let set = json!(context.feature_set());
    let set = set.as_str().unwrap_or("Default").to_owned();
    let mut script = format!(
        "set -eu\npayload=/var/payload\nfeature_set={set}\n\
         cp -R /manifests \"$payload/\"\ncp -R /release-manifests \"$payload/\"\n\
         rm -f \"$payload\"/manifests/*_deployment.yaml \"$payload\"/manifests/*_servicemonitor.yaml \
         \"$payload\"/manifests/0000_50_cluster-update-console-plugin_*\n{FEATURE_SET_FILTER}\
         cd \"$payload/release-manifests\"\nrm -f"
    );
    // Writing to a String cannot fail.
    for file in omitted(context) {
        let _ = write!(script, " \\\n  {file}");
    }
    let _ = write!(
        script,
        "\ncat > 0000_01_cleanup.yaml <<'OBJECTS'\n{}OBJECTS\n",
        cleanup(context)
    );
    script
}

/// Whether storage is managed from the control plane.
fn manages_storage(context: &Context<'_>) -> bool {
    !context.is_on(PlatformType::IbmCloud) && !context.is_on(PlatformType::PowerVs)
}

/// Manifests of the release that are omitted.
fn omitted(context: &Context<'_>) -> Vec<String> {
    let listed = OMITTED.iter().flat_map(|(group, ends)| {
        let ends = ends.iter();
        ends.map(move |end| format!("{group}{end}"))
    });
    let mut all: Vec<_> = listed.collect();
    if manages_storage(context) {
        all.extend(STORAGE.map(str::to_owned));
    }
    if !context.is_oauth_enabled() {
        all.push(CONSOLE_LOGIN.to_owned());
    }
    all
}

/// Manifests of objects that the operator deletes in the guest, as YAML.
fn cleanup(context: &Context<'_>) -> String {
    let storage = STALE_WITH_STORAGE.iter();
    let storage = storage.filter(|_| manages_storage(context));
    let stale = STALE.iter().chain(storage);
    let objects: Vec<_> = stale
        .map(|object| removal_manifest(object).to_string())
        .collect();
    format!("---\n{}\n", objects.join("\n---\n"))
}

/// JSON is YAML.
fn removal_manifest(((api_version, kind), namespace, name): &Object) -> Value {
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": name, "annotations": {
            "include.release.openshift.io/ibm-cloud-managed": "true",
            "release.openshift.io/delete": "true",
        } },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}
