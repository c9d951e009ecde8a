//! Deployments that operators of OpenShift create in the control plane, as their stand-ins create them: pure.
//!
//! The control-plane-operator waits for them by name and by the images of two releases, so both must be right; what they
//! run is a stand-in, too.

use serde_json::{Value, json};

/// Label: the stand-in that created a Deployment.
pub const STAND_IN: &str = "testbed.hypershift.openshift.io/stand-in";
/// Annotation: the version of the release that a Deployment runs.
const VERSION: &str = "release.openshift.io/version";
/// Variable of an operator: the user that its operands run as.
const USER: &str = "RUN_AS_USER";
/// The user where the operator has no such variable.
const DEFAULT_USER: i64 = 65532;

/// A Deployment that an operator creates.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The operator's Deployment, and its program.
    operator: &'static str,
    name: &'static str,
    container: &'static str,
    /// The operator's variable with the image.
    image: &'static str,
    /// Whether a HostedControlPlane has it.
    is_needed: fn(&Value) -> bool,
}

/// An operator's environment, by name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const NETWORK: &str = "cluster-network-operator";
const STORAGE: &str = "cluster-storage-operator";
const SNAPSHOTS: &str = "csi-snapshot-controller-operator";
const OVN_IMAGE: &str = "OVN_CONTROL_PLANE_IMAGE";

const ALL: [Operand; 11] = [
    operand(NETWORK, "ovnkube-control-plane", OVN_IMAGE, is_ovn),
    operand(NETWORK, "network-node-identity", OVN_IMAGE, is_ovn).container("approver"),
    operand(
        NETWORK,
        "cloud-network-config-controller",
        "CLOUD_NETWORK_CONFIG_CONTROLLER_IMAGE",
        |control_plane| is_ovn(control_plane) && (is_aws(control_plane) || is_azure(control_plane)),
    )
    .container("controller"),
    operand(
        NETWORK,
        "multus-admission-controller",
        "MULTUS_ADMISSION_CONTROLLER_IMAGE",
        has_multiple_networks,
    ),
    operand(
        STORAGE,
        "aws-ebs-csi-driver-operator",
        "AWS_EBS_DRIVER_OPERATOR_IMAGE",
        is_aws,
    ),
    driver(
        "aws-ebs-csi-driver-controller",
        "AWS_EBS_DRIVER_CONTROL_PLANE_IMAGE",
        is_aws,
    ),
    operand(
        STORAGE,
        "azure-disk-csi-driver-operator",
        "AZURE_DISK_DRIVER_OPERATOR_IMAGE",
        is_azure,
    ),
    driver(
        "azure-disk-csi-driver-controller",
        "AZURE_DISK_DRIVER_CONTROL_PLANE_IMAGE",
        is_azure,
    ),
    operand(
        STORAGE,
        "azure-file-csi-driver-operator",
        "AZURE_FILE_DRIVER_OPERATOR_IMAGE",
        is_azure,
    ),
    driver(
        "azure-file-csi-driver-controller",
        "AZURE_FILE_DRIVER_CONTROL_PLANE_IMAGE",
        is_azure,
    ),
    operand(
        SNAPSHOTS,
        "csi-snapshot-controller",
        "OPERAND_IMAGE",
        |_| true,
    )
    .container("snapshot-controller"),
];

/// Whether an operator creates Deployments.
pub fn has_operands(operator: &str) -> bool {
    ALL.iter().any(|operand| operand.operator == operator)
}

/// The Deployments that an operator creates for a HostedControlPlane. One whose image its environment does not name is
/// left out.
pub fn of(operator: &str, environment: Environment<'_>, control_plane: &Value) -> Vec<Value> {
    ALL.iter()
        .filter(|operand| operand.operator == operator && (operand.is_needed)(control_plane))
        .filter_map(|operand| operand.deployment(environment, control_plane))
        .collect()
}

fn is_ovn(control_plane: &Value) -> bool {
    let network = control_plane["spec"]["networking"]["networkType"].as_str();
    network.is_none_or(|network| network == "OVNKubernetes")
}

fn has_multiple_networks(control_plane: &Value) -> bool {
    let path = "/spec/operatorConfiguration/clusterNetworkOperator/disableMultiNetwork";
    control_plane.pointer(path) != Some(&json!(true))
}

fn is_aws(control_plane: &Value) -> bool {
    control_plane["spec"]["platform"]["type"] == "AWS"
}

fn is_azure(control_plane: &Value) -> bool {
    control_plane["spec"]["platform"]["type"] == "Azure"
}

const fn operand(
    operator: &'static str,
    name: &'static str,
    image: &'static str,
    is_needed: fn(&Value) -> bool,
) -> Operand {
    Operand {
        operator,
        name,
        container: name,
        image,
        is_needed,
    }
}

/// The controller of a storage driver. In OpenShift, the driver's operator creates it.
const fn driver(name: &'static str, image: &'static str, is_needed: fn(&Value) -> bool) -> Operand {
    operand(STORAGE, name, image, is_needed).container("csi-driver")
}

// === impl Operand ===

impl Operand {
    const fn container(mut self, container: &'static str) -> Self {
        self.container = container;
        self
    }

    fn deployment(&self, environment: Environment<'_>, control_plane: &Value) -> Option<Value> {
        let image = environment(self.image)?;
        let namespace = &control_plane["metadata"]["namespace"];
        let spec = &control_plane["spec"];
        let version = ["OPERAND_IMAGE_VERSION", "RELEASE_VERSION"];
        let version = version
            .into_iter()
            .find_map(environment)
            .unwrap_or_default();
        let user = environment(USER).and_then(|user| user.parse().ok());
        let is_highly_available = spec["controllerAvailabilityPolicy"] == "HighlyAvailable";
        let mut labels = spec["labels"].as_object().cloned().unwrap_or_default();
        labels.insert("app".to_owned(), json!(self.name));
        labels.insert(
            "hypershift.openshift.io/hosted-control-plane".to_owned(),
            namespace.clone(),
        );
        Some(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "namespace": namespace,
                "name": self.name,
                "labels": { STAND_IN: self.operator },
                "annotations": { VERSION: version },
            },
            "spec": {
                "replicas": if is_highly_available { 2 } else { 1 },
                "selector": { "matchLabels": { "app": self.name } },
                "template": {
                    "metadata": { "labels": labels, "annotations": { VERSION: version } },
                    "spec": self.pod(&image, user.unwrap_or(DEFAULT_USER), control_plane),
                },
            },
        }))
    }

    fn pod(&self, image: &str, user: i64, control_plane: &Value) -> Value {
        let namespace = &control_plane["metadata"]["namespace"];
        let (role, cluster) = (
            "hypershift.openshift.io/control-plane",
            "hypershift.openshift.io/cluster",
        );
        let toleration = |key: &str, value: &Value| json!({ "key": key, "operator": "Equal", "value": value, "effect": "NoSchedule" });
        let mut tolerations = vec![
            toleration(role, &json!("true")),
            toleration(cluster, namespace),
        ];
        let requested = control_plane["spec"]["tolerations"].as_array();
        tolerations.extend(requested.into_iter().flatten().cloned());
        json!({
            "automountServiceAccountToken": false,
            "nodeSelector": control_plane["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default(),
            "priorityClassName": "hypershift-control-plane",
            "tolerations": tolerations,
            "affinity": affinity(namespace, role),
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": user,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "terminationGracePeriodSeconds": 5,
            "containers": [{
                "name": self.container,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "resources": { "requests": { "cpu": "5m", "memory": "10Mi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                    "readOnlyRootFilesystem": true,
                },
            }],
        })
    }
}

/// Prefers nodes of control planes, and those with other pods of this one.
fn affinity(namespace: &Value, role: &str) -> Value {
    let own = json!({ "hypershift.openshift.io/hosted-control-plane": namespace });
    json!({
        "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 50,
            "preference": {
                "matchExpressions": [{ "key": role, "operator": "In", "values": ["true"] }],
            },
        }] },
        "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": { "matchLabels": own },
                "topologyKey": "kubernetes.io/hostname",
            },
        }] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment in which each variable has its own name as its value.
    fn named(name: &str) -> Option<String> {
        (name != USER).then(|| name.to_owned())
    }

    fn control_plane(platform: &str, network: &str) -> Value {
        json!({
            "metadata": { "namespace": "clusters-one" },
            "spec": {
                "platform": { "type": platform },
                "networking": { "networkType": network },
            },
        })
    }

    fn names(operator: &str, control_plane: &Value) -> Vec<String> {
        let all = of(operator, &named, control_plane);
        let names = all.iter().map(|it| it["metadata"]["name"].as_str());
        names.map(|name| name.unwrap().to_owned()).collect()
    }

    #[test]
    fn operands_follow_platform_and_network() {
        for (operator, platform, network, expected) in [
            (
                NETWORK,
                "AWS",
                "OVNKubernetes",
                &[
                    "ovnkube-control-plane",
                    "network-node-identity",
                    "cloud-network-config-controller",
                    "multus-admission-controller",
                ][..],
            ),
            (NETWORK, "AWS", "Other", &["multus-admission-controller"]),
            (
                NETWORK,
                "None",
                "OVNKubernetes",
                &[
                    "ovnkube-control-plane",
                    "network-node-identity",
                    "multus-admission-controller",
                ],
            ),
            (
                STORAGE,
                "AWS",
                "Other",
                &[
                    "aws-ebs-csi-driver-operator",
                    "aws-ebs-csi-driver-controller",
                ],
            ),
            (STORAGE, "None", "Other", &[]),
            (SNAPSHOTS, "None", "Other", &["csi-snapshot-controller"]),
            ("dns-operator", "AWS", "Other", &[]),
        ] {
            let found = names(operator, &control_plane(platform, network));
            assert_eq!(found, expected, "{operator} on {platform} with {network}");
            assert_eq!(has_operands(operator), operator != "dns-operator");
        }
        let mut single = control_plane("AWS", "Other");
        single["spec"]["operatorConfiguration"] =
            json!({ "clusterNetworkOperator": { "disableMultiNetwork": true } });
        assert!(names(NETWORK, &single).is_empty());
    }

    #[test]
    fn operands_run_the_images_of_the_environment() {
        let mut highly_available = control_plane("AWS", "Other");
        highly_available["spec"]["controllerAvailabilityPolicy"] = json!("HighlyAvailable");
        for (environment, user) in [
            (&named as Environment<'_>, DEFAULT_USER),
            (
                &|name| {
                    (name == USER)
                        .then(|| "1234".to_owned())
                        .or_else(|| named(name))
                },
                1234,
            ),
        ] {
            let all = of(STORAGE, environment, &highly_available);
            let controller = &all[1]["spec"];
            let pod = &controller["template"]["spec"];
            assert_eq!(controller["replicas"], 2);
            assert_eq!(pod["securityContext"]["runAsUser"], user);
            assert_eq!(pod["containers"][0]["name"], "csi-driver");
            let image = &pod["containers"][0]["image"];
            assert_eq!(image, "AWS_EBS_DRIVER_CONTROL_PLANE_IMAGE");
            let version = &all[1]["metadata"]["annotations"][VERSION];
            assert_eq!(version, "OPERAND_IMAGE_VERSION");
        }
        let without_images = of(STORAGE, &|_| None, &highly_available);
        assert!(without_images.is_empty());
    }
}
