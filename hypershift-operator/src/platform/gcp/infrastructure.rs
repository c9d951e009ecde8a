//! Google Cloud: the network is the user's, the controllers are those of the release, and they act as a service account of
//! the user's.

use api::hypershift::v1beta1::platform::gcp::{GcpEndpointAccess, GcpPlatformSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::credentials::{self, FILE, NODE_MANAGEMENT};
use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::platform::release_image::of_release;
use crate::platform::{ClusterIs, Infrastructure, add, requests};

/// The service account of the hosted cluster, in namespace `kube-system`, whose tokens the controllers exchange.
pub(crate) const ACCOUNT: &str = "capi-gcp-controller-manager";
/// The release's name for the controllers.
const IMAGE: &str = "gcp-cluster-api-controllers";
/// Annotation that names another image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-gcp-image";
/// Where they find their credentials.
const CREDENTIALS: &str = "/home/.gcp";
/// Their arguments.
const ARGUMENTS: [&str; 4] = [
    "--namespace=$(MY_NAMESPACE)",
    "--leader-elect=true",
    "--feature-gates=MachinePool=false",
    "--v=2",
];
/// What they request.
const REQUESTS: [(&str, &str); 2] = [("cpu", "10m"), ("memory", "128Mi")];

/// Google Cloud.
#[derive(Debug)]
pub(crate) struct Gcp;

/// Why the cluster cannot be run. Nodes reach the control plane by Private Service Connect, which every cluster on Google
/// Cloud has: this operator makes the service attachment, in its region. A control plane that exists is not held up: its
/// condition `GCPServiceAttachmentAvailable` reports the same.
pub(crate) fn unsupported(facts: &Facts) -> Option<String> {
    let gcp = facts.cluster.spec.platform.gcp.as_ref()?;
    if facts.control_plane.is_some() {
        return None;
    }
    let access = match gcp.endpoint_access {
        GcpEndpointAccess::Private => "Private",
        GcpEndpointAccess::PublicAndPrivate => "PublicAndPrivate",
    };
    let region = &gcp.region;
    match facts.cloud.gcp_private_service_connect.as_ref() {
        Some(own) if own.name == *region => None,
        Some(own) => Some(format!(
            "spec.platform.gcp.endpointAccess is {access}, and spec.platform.gcp.region is {region}: this operator manages \
             service attachments in {} only, which other regions do not reach. Create the cluster there",
            own.name
        )),
        None => Some(format!(
            "spec.platform.gcp.endpointAccess is {access}, and this operator manages no service attachments: nodes would not \
             reach the control plane. Have the administrator of the management cluster run `hypershift install` with \
             --private-platform GCP, --gcp-project and --gcp-region"
        )),
    }
}

// === impl Gcp ===

impl Infrastructure for Gcp {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let Some(gcp) = &facts.cluster.spec.platform.gcp else {
            return ClusterIs::Later;
        };
        let mut fields = json!({ "spec": {
            "additionalLabels": super::labels(&facts.id.name, facts.infra_id(), &[&gcp.resource_labels]),
            "network": network(gcp),
            "project": gcp.project,
            "region": gcp.region,
        }});
        if let Some(endpoint) = facts.control_plane_endpoint() {
            fields["spec"]["controlPlaneEndpoint"] = endpoint;
        }
        let (kind, name) = (super::cluster(facts.capi), &facts.id.name);
        let cluster = Desired::of(kind, &facts.namespace, name, fields);
        ClusterIs::Desired(Box::new(cluster))
    }

    fn kinds(&self, capi: Capi) -> Option<Vec<ApiResource>> {
        Some(vec![
            super::cluster(capi),
            super::machine_template(capi),
            super::machine(capi),
        ])
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.gcp_provider.as_ref();
        of_release(facts, IMAGE_ANNOTATION, flag, IMAGE)
    }

    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        let gcp = facts.cluster.spec.platform.gcp.as_ref();
        Some(gcp.map_or_else(Vec::new, credentials::problems))
    }

    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let gcp = facts.cluster.spec.platform.gcp.as_ref();
        gcp.map_or_else(Vec::new, |gcp| credentials::desired(facts, gcp))
    }

    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let gcp = facts.cluster.spec.platform.gcp.as_ref();
        let (Some(container), Some(gcp)) = (pod.containers.first_mut(), gcp) else {
            return;
        };
        adapt(container, gcp);
        let secret = json!({ "secretName": NODE_MANAGEMENT });
        let volumes = json!([{ "name": "credentials", "secret": secret }]);
        add(&mut pod.volumes, volumes);
    }
}

fn adapt(container: &mut Container, gcp: &GcpPlatformSpec) {
    container.args = Some(ARGUMENTS.map(str::to_owned).into());
    container.resources = Some(requests(REQUESTS));
    let file = format!("{CREDENTIALS}/{FILE}");
    let variables = json!([
        { "name": "GOOGLE_APPLICATION_CREDENTIALS", "value": file },
        { "name": "GOOGLE_CLOUD_PROJECT", "value": gcp.project },
    ]);
    let mounts = json!([{ "name": "credentials", "mountPath": CREDENTIALS, "readOnly": true }]);
    add(&mut container.env, variables);
    add(&mut container.volume_mounts, mounts);
}

/// Fields that the provider fills in are not written.
fn network(gcp: &GcpPlatformSpec) -> Value {
    let network = &gcp.network_config;
    let subnet = &network.private_service_connect_subnet.name;
    json!({
        "name": network.network.name,
        "subnets": [{ "name": subnet, "region": gcp.region }],
    })
}

#[cfg(test)]
mod tests;
