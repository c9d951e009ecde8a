//! OpenStack: its provider creates the network and the security groups of the cluster, or finds those of the user. The
//! controllers are those of the release, and they act with credentials of the user's.

use api::hypershift::v1beta1::platform::openstack::OpenStackPlatformSpec;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::{credentials, image, security_groups};
use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::facts::references::{self, Purpose};
use crate::platform::release_image::of_release;
use crate::platform::{ClusterIs, Infrastructure, requests};

/// The release's name for the controllers.
const IMAGE: &str = "openstack-cluster-api-controllers";
/// The release's name for the controllers of images. Releases before 4.19 do not have them.
const RESOURCE_CONTROLLER: &str = "openstack-resource-controller";
/// Annotation that names another image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-openstack-image";
/// Their arguments. They may not change definitions, so they do not migrate them.
const ARGUMENTS: [&str; 5] = [
    "--namespace=$(MY_NAMESPACE)",
    "--leader-elect",
    "--v=2",
    "--skip-crd-migration-phases=StorageVersionMigration",
    "--skip-crd-migration-phases=CleanupManagedFields",
];
/// What they request.
const REQUESTS: [(&str, &str); 2] = [("cpu", "10m"), ("memory", "10Mi")];
/// The first minor version of releases 4 whose controllers migrate definitions.
const FIRST_MIGRATING: u64 = 20;

/// OpenStack.
#[derive(Debug)]
pub(crate) struct OpenStack;

/// The machine networks of a cluster, as CIDRs.
pub(super) fn machine_networks(facts: &Facts) -> Vec<&str> {
    let networks = facts.cluster.spec.networking.machine_network.iter();
    networks.map(|network| network.cidr.0.as_str()).collect()
}

/// Requirements for the configuration of a cluster.
pub(crate) fn problems(facts: &Facts) -> Vec<String> {
    let Some(openstack) = &facts.cluster.spec.platform.openstack else {
        return Vec::new();
    };
    let no_network = machine_networks(facts).is_empty().then(|| {
        "spec.networking.machineNetwork is empty, and clusters on OpenStack require it: set it to the address range of \
         the nodes"
            .to_owned()
    });
    let problems = [no_network, credentials::problem(facts, openstack)];
    problems.into_iter().flatten().collect()
}

// === impl OpenStack ===

impl Infrastructure for OpenStack {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let openstack = facts.cluster.spec.platform.openstack.as_ref();
        let machines = machine_networks(facts);
        let (Some(openstack), [first, ..]) = (openstack, machines.as_slice()) else {
            return ClusterIs::Later;
        };
        let mut spec = spec(facts, openstack, first);
        if let Some(endpoint) = facts.control_plane_endpoint() {
            spec["controlPlaneEndpoint"] = endpoint;
        }
        let (kind, name) = (super::cluster(facts.capi), &facts.id.name);
        let fields = json!({ "spec": spec });
        let cluster = Desired::of(kind, &facts.namespace, name, fields);
        ClusterIs::Desired(Box::new(cluster))
    }

    fn is_external(&self) -> bool {
        // Its provider creates networks and security groups, and reports when they are there.
        false
    }

    fn kinds(&self, capi: Capi) -> Option<Vec<ApiResource>> {
        Some(vec![
            super::cluster(capi),
            super::machine_template(capi),
            super::machine(capi),
            super::server(capi),
        ])
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.openstack_provider.as_ref();
        of_release(facts, IMAGE_ANNOTATION, flag, IMAGE)
    }

    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        Some(references::problems(facts, Purpose::CloudCredentials))
    }

    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let openstack = facts.cluster.spec.platform.openstack.as_ref();
        openstack.map_or_else(Vec::new, |it| credentials::desired(facts, it))
    }

    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let release = facts.operated().read();
        let Some(container) = pod.containers.first_mut() else {
            return;
        };
        let migrates = release.is_none_or(|release| {
            let version = release.version.as_semver();
            version.major > 4 || version.minor >= FIRST_MIGRATING
        });
        let arguments = ARGUMENTS
            .iter()
            .filter(|it| migrates || !it.starts_with("--skip-crd"));
        container.args = Some(arguments.map(|&it| it.to_owned()).collect());
        container.resources = Some(requests(REQUESTS));
        let is_released =
            release.is_some_and(|release| release.component(RESOURCE_CONTROLLER).is_ok());
        if is_released || facts.images.resource_controller.is_some() {
            pod.containers.push(resource_controller());
        }
    }

    fn rules(&self) -> Vec<Value> {
        vec![json!({ "apiGroups": [image::GROUP], "resources": ["*"], "verbs": ["*"] })]
    }

    fn cleaned_up(&self, capi: Capi) -> Vec<ApiResource> {
        vec![image::resource(), super::server(capi)]
    }

    fn secret_finalizer(&self) -> Option<&'static str> {
        Some(image::FINALIZER)
    }
}

fn spec(facts: &Facts, openstack: &OpenStackPlatformSpec, machines: &str) -> Value {
    let OpenStackPlatformSpec {
        identity_ref,
        managed_subnets,
        router,
        network,
        subnets,
        network_mtu,
        external_network,
        disable_external_network,
        tags,
        // It is for the ingress controller.
        ingress_floating_ip: _,
    } = openstack;
    let own_tag = format!("openshiftClusterID={}", facts.infra_id());
    let given = tags.iter().filter(|tag| **tag != own_tag);
    let all_tags: Vec<_> = [&own_tag].into_iter().chain(given).collect();
    let rules = security_groups::rules(&machine_networks(facts));
    let mut spec = json!({
        "identityRef": identity_ref,
        "disableAPIServerFloatingIP": true,
        "tags": all_tags,
        "managedSecurityGroups": { "allNodesSecurityGroupRules": rules },
    });
    if subnets.is_empty() {
        // The provider creates one.
        let mut subnet = json!(managed_subnets.first().cloned().unwrap_or_default());
        subnet["cidr"] = json!(machines);
        spec["managedSubnets"] = json!([subnet]);
    } else {
        spec["subnets"] = json!(subnets);
    }
    let optional = [
        ("router", json!(router)),
        ("network", json!(network)),
        ("networkMTU", json!(network_mtu)),
        ("externalNetwork", json!(external_network)),
        ("disableExternalNetwork", json!(disable_external_network)),
    ];
    for (field, value) in optional {
        if !value.is_null() {
            spec[field] = value;
        }
    }
    spec
}

/// The container of the controllers of images.
fn resource_controller() -> Container {
    let probe = |path: &str, delay: u8, period: u8| {
        json!({
            "httpGet": { "path": path, "port": "orc-healthz" },
            "initialDelaySeconds": delay,
            "periodSeconds": period,
        })
    };
    let field = json!({ "fieldRef": { "fieldPath": "metadata.namespace" } });
    let container = json!({
        "name": "orc-manager",
        "image": RESOURCE_CONTROLLER,
        "command": ["/manager"],
        "args": [
            "--namespace=$(MY_NAMESPACE)",
            "--leader-elect",
            "--health-probe-bind-address=:8081",
            "--zap-log-level=4",
        ],
        "env": [{ "name": "MY_NAMESPACE", "valueFrom": field }],
        "ports": [{ "name": "orc-healthz", "containerPort": 8081, "protocol": "TCP" }],
        "livenessProbe": probe("/healthz", 15, 20),
        "readinessProbe": probe("/readyz", 5, 10),
        "resources": {
            "limits": { "cpu": "500m", "memory": "128Mi" },
            "requests": { "cpu": "10m", "memory": "64Mi" },
        },
    });
    serde_json::from_value(container)
        .expect("invariant: the container is a literal in the form of the API")
}

#[cfg(test)]
mod tests;
