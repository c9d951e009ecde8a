//! Machines that the Agent service has discovered, in a namespace of their own.

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::{AgentNamespace, Facts};
use crate::names;
use crate::platform::{ClusterIs, Infrastructure, Outside, image_given, requests};

/// Annotation that names another image of the controllers.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-agent-image";
/// Where they publish metrics: not where the proxy listens.
const METRICS: &str = "127.0.0.1:8082";
/// When their health is checked, in seconds.
const INITIAL_DELAY: i32 = 15;
const PERIOD: i32 = 20;
/// What they request.
const REQUESTS: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "20Mi")];
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
        let probes = container.liveness_probe.iter_mut();
        for probe in probes.chain(&mut container.readiness_probe) {
            probe.initial_delay_seconds = Some(INITIAL_DELAY);
            probe.period_seconds = Some(PERIOD);
        }
        container.resources = Some(requests(REQUESTS));
    }

    fn rules(&self) -> Vec<Value> {
        let all = |group: &str, resource: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": ["*"] });
        vec![
            all("extensions.hive.openshift.io", "agentclusterinstalls"),
            all("capi-provider.agent-install.openshift.io", "*"),
            all("hive.openshift.io", "clusterdeployments"),
        ]
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::group::CapiTypes;

    use super::*;
    use crate::facts::fixture;

    /// A cluster on Agents of the namespace `agents`.
    fn facts(home: &str, name: &str) -> Facts {
        let mut cluster = fixture::hosted_cluster("agent");
        cluster.metadata.namespace = Some(home.to_owned());
        cluster.metadata.name = Some(name.to_owned());
        fixture::facts(cluster, CapiTypes::Private)
    }

    /// Machines get the cluster's proxy with their user data, and hosts are discovered with the one of their `InfraEnv`.
    #[test]
    fn agent_clusters_name_the_ignition_server_and_no_proxy() {
        let mut facts = facts("clusters", "one");
        let proxy = json!({ "proxy": {
            "httpProxy": "http://proxy.example.com:3128",
            "httpsProxy": "http://proxy.example.com:3128",
        } });
        facts.cluster.spec.configuration = serde_json::from_value(proxy).unwrap();
        let ClusterIs::Desired(cluster) = Agent.cluster(&facts) else {
            panic!("it is not desired");
        };
        let expected = json!({ "ignitionEndpoint": {
            "url": "https://ignition.one.example.com/ignition",
            "caCertificateReference": { "name": "ignition-server-ca-cert", "namespace": "clusters-one" },
        } });
        assert_eq!(cluster.body["spec"], expected);
        facts.ignition = None;
        assert!(matches!(Agent.cluster(&facts), ClusterIs::Later));
    }

    /// Check T01: clusters of any tenant may use the Agents of one namespace.
    #[test]
    fn clusters_share_no_object_in_the_namespace_of_agents() {
        let clusters = vec![
            facts("clusters", "one"),
            facts("clusters", "two"),
            facts("team-a", "one"),
        ];
        let mut all = BTreeSet::new();
        for facts in &clusters {
            let desired = Agent.external_objects(facts);
            let outdated = Agent.outdated_objects(facts);
            let desired = desired
                .iter()
                .map(|it| (it.resource.kind.clone(), it.namespace(), it.name()));
            let outdated = outdated
                .iter()
                .map(|it| (it.resource.kind.clone(), Some(&*it.namespace), &*it.name));
            for (kind, namespace, name) in desired.chain(outdated) {
                assert_eq!(namespace, Some("agents"));
                // Earlier releases of HyperShift have one Role for all clusters: the bindings of others may name it.
                assert_ne!(name, "capi-provider-role");
                let object = format!("{kind} {name}");
                assert!(all.insert(object.clone()), "{object} is of two clusters");
            }
        }
        assert_eq!(all.len(), 4 * clusters.len());
    }

    #[test]
    fn only_the_provider_of_the_cluster_gets_rights_on_agents() {
        let facts = facts("team-a", "one");
        let objects = Agent.external_objects(&facts);
        let [role, binding] = &*objects else {
            panic!("{objects:?}");
        };
        let subject = json!([
            { "kind": "ServiceAccount", "name": "capi-provider", "namespace": "team-a-one" },
        ]);
        assert_eq!(binding.body["subjects"], subject);
        assert_eq!(binding.body["roleRef"]["name"], role.name());
        let rules = json!([{
            "apiGroups": ["agent-install.openshift.io"],
            "resources": ["agents"],
            "verbs": ["get", "list", "watch", "update", "patch"],
        }]);
        assert_eq!(role.body["rules"], rules);
    }
}
