//! Virtual machines by KubeVirt: on this cluster, or on an infrastructure cluster.

use k8s_openapi::api::core::v1::{PodSpec, Secret};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::names::{KUBECONFIG_KEY, KUBEVIRT_CREDENTIALS};
use crate::platform::{ClusterIs, Infrastructure, image_given};

/// Annotation that names another image of the controllers.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-kubevirt-image";

/// KubeVirt.
#[derive(Debug)]
pub(crate) struct Kubevirt;

// === impl Kubevirt ===

impl Infrastructure for Kubevirt {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let mut fields = json!({ "spec": {} });
        if let Some(endpoint) = facts.control_plane_endpoint() {
            fields["spec"]["controlPlaneEndpoint"] = endpoint;
        }
        let namespace = &facts.namespace;
        if external(facts).is_some() {
            fields["spec"]["infraClusterSecretRef"] = json!({
                "apiVersion": "v1", "kind": "Secret", "name": KUBEVIRT_CREDENTIALS, "namespace": namespace,
            });
        }
        // A Cluster keeps the object that it refers to: earlier versions of this operator named it by the HostedCluster.
        let live = facts.infrastructure_name.as_deref();
        let name = live.unwrap_or_else(|| facts.infra_id());
        let cluster = Desired::of(facts.capi.kubevirt_cluster(), namespace, name, fields);
        ClusterIs::Desired(Box::new(cluster))
    }

    fn kinds(&self, capi: Capi) -> Option<Vec<ApiResource>> {
        Some(vec![
            capi.kubevirt_cluster(),
            capi.kubevirt_machine_template(),
            capi.kubevirt_machine(),
        ])
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.kubevirt_provider.as_ref();
        image_given(facts, IMAGE_ANNOTATION, flag, "KubeVirt")
    }

    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let Some((name, key)) = external(facts) else {
            return Vec::new();
        };
        let data = facts
            .secret(name)
            .and_then(|secret| secret.data.as_ref()?.get(key));
        let Some(kubeconfig) = data else {
            return Vec::new();
        };
        let fields = json!({ "type": "Opaque", "data": { KUBECONFIG_KEY: kubeconfig } });
        vec![Desired::new::<Secret>(
            &facts.namespace,
            KUBEVIRT_CREDENTIALS,
            fields,
        )]
    }

    fn adapt(&self, _: &Facts, pod: &mut PodSpec) {
        let Some(container) = pod.containers.first_mut() else {
            return;
        };
        container.command = Some(vec!["/manager".to_owned()]);
        let args = [
            "--namespace=$(MY_NAMESPACE)",
            "--v=4",
            "--leader-elect=true",
        ];
        container.args = Some(args.map(str::to_owned).into());
    }

    fn rules(&self) -> Vec<Value> {
        let all = ["*"];
        vec![
            json!({ "apiGroups": [""], "resources": ["services"], "verbs": all }),
            json!({
                "apiGroups": ["kubevirt.io"],
                "resources": ["virtualmachines", "virtualmachineinstances"],
                "verbs": all,
            }),
            json!({ "apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes"], "verbs": all }),
        ]
    }
}

/// The Secret and key with the kubeconfig of the infrastructure cluster.
pub(crate) fn external(facts: &Facts) -> Option<(&str, &str)> {
    let platform = facts.cluster.spec.platform.kubevirt.as_ref()?;
    let secret = platform
        .credentials
        .as_ref()?
        .infra_kube_config_secret
        .as_ref()?;
    Some((&secret.name, &secret.key))
}
