//! Machines that the Agent service has discovered, in a namespace of their own.

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::{AgentNamespace, Facts};
use crate::names;
use crate::platform::{ClusterIs, Infrastructure, Outside, image_given};

/// Annotation that names another image of the controllers.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-agent-image";
/// Where they publish metrics: not where the proxy listens.
const METRICS: &str = "127.0.0.1:8082";
/// The authority of the ignition server.
const IGNITION_CA: &str = "ignition-server-ca-cert";

/// The Agent service.
#[derive(Debug)]
pub(crate) struct Agent;

// === impl Agent ===

impl Infrastructure for Agent {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let Some(ignition) = &facts.ignition else {
            return ClusterIs::Later;
        };
        let namespace = &facts.namespace;
        let mut fields = json!({ "spec": { "ignitionEndpoint": {
            "url": format!("https://{ignition}/ignition"),
            "caCertificateReference": { "name": IGNITION_CA, "namespace": namespace },
        }}});
        if let Some(endpoint) = facts.control_plane_endpoint() {
            fields["spec"]["controlPlaneEndpoint"] = endpoint;
        }
        let cluster = Desired::of(
            facts.capi.agent_cluster(),
            namespace,
            &facts.id.name,
            fields,
        );
        ClusterIs::Desired(Box::new(cluster))
    }

    fn is_external(&self) -> bool {
        // Its provider registers the cluster at the Agent service, and reports when that is done.
        false
    }

    fn kinds(&self, _: Capi) -> Option<Vec<ApiResource>> {
        // Its own kinds are not in a group of Cluster API.
        Some(Vec::new())
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.agent_provider.as_ref();
        image_given(facts, IMAGE_ANNOTATION, flag, "Agent")
    }

    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let Some(container) = pod.containers.first_mut() else {
            return;
        };
        container.args = Some(vec![
            "--namespace".to_owned(),
            "$(MY_NAMESPACE)".to_owned(),
            "--health-probe-bind-address=:8081".to_owned(),
            format!("--metrics-bind-address={METRICS}"),
            "--leader-elect".to_owned(),
            "--agent-namespace".to_owned(),
            agent_namespace(facts).to_owned(),
        ]);
        for port in container.ports.iter_mut().flatten() {
            port.container_port = 8081;
        }
    }

    fn rules(&self) -> Vec<Value> {
        let groups = [
            "capi-provider.agent-install.openshift.io",
            "extensions.hive.openshift.io",
            "hive.openshift.io",
        ];
        vec![json!({ "apiGroups": groups, "resources": ["*"], "verbs": ["*"] })]
    }

    fn external_objects(&self, facts: &Facts) -> Vec<Desired> {
        let namespace = agent_namespace(facts);
        let (role_name, binding_name) = (
            names::agent_role(&facts.namespace),
            names::agent_binding(&facts.namespace),
        );
        let verbs = ["get", "list", "watch", "update", "patch"];
        let role = json!({ "rules": [{
            "apiGroups": ["agent-install.openshift.io"], "resources": ["agents"], "verbs": verbs,
        }]});
        let binding = json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role_name },
            "subjects": [{
                "kind": "ServiceAccount", "name": names::CAPI_PROVIDER, "namespace": facts.namespace,
            }],
        });
        let mut binding = Desired::new::<RoleBinding>(namespace, &binding_name, binding);
        if facts.agent_namespace != Some(AgentNamespace::Grandfathered) {
            // Otherwise it would count as one from before consent was required, and consent could not be withdrawn.
            binding = binding.annotated(names::AGENT_CONSENT, "true");
        }
        let role = Desired::new::<Role>(namespace, &role_name, role);
        [role, binding]
            .map(|it| it.labelled(names::AGENT_RBAC, "true"))
            .into()
    }

    fn outdated_objects(&self, facts: &Facts) -> Vec<Outside> {
        let outdated = |resource| Outside {
            resource,
            namespace: agent_namespace(facts).to_owned(),
            name: names::earlier_agent_rbac(&facts.namespace),
        };
        // The binding first: without its role it grants nothing.
        vec![
            outdated(ApiResource::erase::<RoleBinding>(&())),
            outdated(ApiResource::erase::<Role>(&())),
        ]
    }
}

fn agent_namespace(facts: &Facts) -> &str {
    let agent = facts.cluster.spec.platform.agent.as_ref();
    agent
        .map(|it| it.agent_namespace.as_str())
        .unwrap_or_default()
}
