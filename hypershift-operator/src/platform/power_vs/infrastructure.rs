//! IBM Power Virtual Server: workspace and network are the user's, the controllers are those of the release, and they act
//! with API keys of the user's.

use k8s_openapi::api::core::v1::PodSpec;
use kube::api::ApiResource;
use serde_json::json;

use super::image;
use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::facts::references::{self, Purpose};
use crate::platform::release_image::of_release;
use crate::platform::{ClusterIs, Infrastructure, add};

/// The release's name for the controllers.
const IMAGE: &str = "ibmcloud-cluster-api-controllers";
/// Their program.
const PROGRAM: &str = "/bin/cluster-api-provider-ibmcloud-controller-manager";
/// Annotation that names another image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-powervs-image";
/// Where they find the API key.
const CREDENTIALS: &str = "/home/.ibmcloud";

/// IBM Power Virtual Server.
#[derive(Debug)]
pub(crate) struct PowerVs;

// === impl PowerVs ===

impl Infrastructure for PowerVs {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let Some(power_vs) = &facts.cluster.spec.platform.powervs else {
            return ClusterIs::Later;
        };
        let mut fields = json!({ "spec": {
            // The kind requires it; the network of the machines is in their templates.
            "network": {},
            "serviceInstanceID": power_vs.service_instance_id,
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
            image::resource(capi),
            super::machine_template(capi),
            super::machine(capi),
        ])
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.power_vs_provider.as_ref();
        of_release(facts, IMAGE_ANNOTATION, flag, IMAGE)
    }

    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        Some(references::problems(facts, Purpose::CloudCredentials))
    }

    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let power_vs = facts.cluster.spec.platform.powervs.as_ref();
        let (Some(container), Some(power_vs)) = (pod.containers.first_mut(), power_vs) else {
            return;
        };
        container.command = Some(vec![PROGRAM.to_owned()]);
        let args = [
            "--namespace=$(MY_NAMESPACE)",
            "--v=4",
            "--leader-elect=true",
            "--provider-id-fmt=v2",
        ];
        container.args = Some(args.map(str::to_owned).into());
        let file = format!("{CREDENTIALS}/ibm-credentials.env");
        let variables = json!([{ "name": "IBM_CREDENTIALS_FILE", "value": file }]);
        let mounts = json!([{ "name": "credentials", "mountPath": CREDENTIALS, "readOnly": true }]);
        let secret = &power_vs.node_pool_management_creds.name;
        let volumes = json!([{ "name": "credentials", "secret": { "secretName": secret } }]);
        add(&mut container.env, variables);
        add(&mut container.volume_mounts, mounts);
        add(&mut pod.volumes, volumes);
    }

    fn cleaned_up(&self, capi: Capi) -> Vec<ApiResource> {
        vec![image::resource(capi)]
    }
}

#[cfg(test)]
mod tests;
