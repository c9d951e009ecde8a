//! Virtual machines by KubeVirt: on this cluster, or on an infrastructure cluster.

use k8s_openapi::api::core::v1::{PodSpec, Secret};
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::csi_role;
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

    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        let (name, key) = external(facts)?;
        if facts.missing_rights.is_empty() {
            return None;
        }
        let namespace = &facts.id.namespace;
        let kubevirt = facts.cluster.spec.platform.kubevirt.as_ref();
        let credentials = kubevirt.and_then(|it| it.credentials.as_ref());
        let machines = credentials.map_or("", |it| it.infra_namespace.as_str());
        Some(vec![format!(
            "the user of the kubeconfig in Secret {namespace}/{name}, key {key}, may not {} in namespace {machines} of the \
             infrastructure cluster: allow it there by a Role (docs/clusters.md has one)",
            facts.missing_rights.join("; ")
        )])
    }

    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let Some((name, key)) = external(facts) else {
            return Vec::new();
        };
        let data = facts.secret(name).and_then(|it| it.data.as_ref());
        let Some((data, kubeconfig)) = data.and_then(|it| Some((it, it.get(key)?))) else {
            return Vec::new();
        };
        // The provider also reads the key `namespace`. All readers know one key of the kubeconfig: under it they get the one
        // that was checked, whatever else the Secret has there.
        let mut data = data.clone();
        data.insert(KUBECONFIG_KEY.to_owned(), kubeconfig.clone());
        let fields = json!({ "type": "Opaque", "data": data });
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
            // They belong to the virtual machines, or are the operator's.
            json!({
                "apiGroups": ["cdi.kubevirt.io"],
                "resources": ["datavolumes"],
                "verbs": ["get", "list", "watch"],
            }),
        ]
    }

    fn external_objects(&self, facts: &Facts) -> Vec<Desired> {
        csi_role::desired(facts)
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

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use k8s_openapi::ByteString;

    use super::*;
    use crate::facts::{Found, fixture};

    /// A cluster whose machines are on another one.
    fn elsewhere() -> Facts {
        let mut cluster = fixture::hosted_cluster("kubevirt");
        let platform = json!({
            "generateID": "x7k2p",
            "credentials": {
                "infraKubeConfigSecret": { "name": "infra", "key": "value" },
                "infraNamespace": "machines",
            },
        });
        cluster.spec.platform.kubevirt = serde_json::from_value(platform).unwrap();
        fixture::facts(cluster, CapiTypes::Private)
    }

    #[test]
    fn missing_rights_are_a_problem_of_the_credentials() {
        let mut facts = elsewhere();
        assert_eq!(Kubevirt.credentials(&facts), None);
        facts.missing_rights = vec!["create services".to_owned(), "get secrets".to_owned()];
        let problems = Kubevirt.credentials(&facts).unwrap();
        let expected = "may not create services; get secrets in namespace machines of the infrastructure cluster";
        assert!(problems[0].contains(expected), "{problems:?}");
    }

    #[test]
    fn all_keys_of_the_credentials_are_copied() {
        let mut facts = elsewhere();
        let keys = [
            ("value", "checked"),
            ("kubeconfig", "other"),
            ("namespace", "machines"),
        ];
        let data = keys.map(|(key, value)| (key.to_owned(), ByteString(value.into())));
        let mut found = facts.referenced.iter_mut().map(|(_, found)| found);
        let secret = found.find_map(|found| match found {
            Found::Secret(secret) if secret.metadata.name.as_deref() == Some("infra") => {
                Some(secret)
            }
            Found::Secret(_) | Found::ConfigMap(_) | Found::Missing => None,
        });
        secret.unwrap().data = Some(data.into());
        let secrets = Kubevirt.secrets(&facts);
        let [copy] = secrets.as_slice() else {
            panic!("{secrets:?}");
        };
        assert_eq!(copy.name(), KUBEVIRT_CREDENTIALS);
        let text = |value: &str| json!(ByteString(value.into()));
        let expected = json!({
            "value": text("checked"), "kubeconfig": text("checked"), "namespace": text("machines"),
        });
        assert_eq!(copy.body["data"], expected);
    }
}
