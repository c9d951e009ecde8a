//! karpenter-operator: another program of this operator, which has Karpenter make nodes of the cluster on AWS.

use control_plane_component::declaration::{Minter, Prober, TokenFor};
use control_plane_component::settings::Settings;
use control_plane_component::{Component, Context, TokenFrom, assets};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::{Error, Operators, edit, environment, roles};
use crate::facts::{Facts, auto_node};
use crate::{kinds, names};

/// Variables that it has in common with the control-plane-operator.
const SHARED: [&str; 6] = [
    "CAPI_TYPES",
    "DEFAULT_SECURITY_CONTEXT_UID",
    "IMAGE_OVERRIDES",
    "INSECURE_REGISTRIES",
    "OPENSHIFT_IMG_OVERRIDES",
    "REGISTRY_OVERRIDES",
];

// === impl Operators ===

impl Operators {
    /// Adds it if the cluster has Karpenter, and all that it needs is known. If the cluster had Karpenter, nothing of it is
    /// to be left.
    pub(super) fn add_karpenter(
        &mut self,
        facts: &Facts,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<(), Error> {
        if auto_node::karpenter(&facts.cluster).is_none() {
            if facts.auto_node.is_some() {
                self.obsolete.extend(obsolete(facts));
            }
            return Ok(());
        }
        if !is_ready(facts) {
            return Ok(());
        }
        let component = component(facts, settings);
        self.add(
            facts,
            &component,
            context,
            &roles::karpenter_operator(facts),
        )
    }
}

/// Whether its pods can start: until then nothing is written, and nothing is deleted.
fn is_ready(facts: &Facts) -> bool {
    let control_plane = facts.control_plane.as_ref();
    let status = control_plane.and_then(|it| it.status.as_ref());
    let is_published = status.is_some_and(|it| it.kube_config.is_some());
    let known = facts.auto_node.as_ref();
    is_published
        && known.is_some_and(|it| it.has_kubeconfig)
        && facts.ignition.is_some()
        && facts.images.own.is_some()
}

fn component(facts: &Facts, settings: &Settings) -> Component {
    let manifests = assets!(
        "karpenter-operator": "deployment.yaml",
        "podmonitor.yaml",
        "rolebinding.yaml",
        "serviceaccount.yaml"
    );
    let (arguments, environment) = (arguments(facts, settings), variables(facts, settings));
    Component::new(names::KARPENTER_OPERATOR, manifests)
        .independent()
        .management_api()
        .prober(Prober::default())
        .minter(Minter {
            for_: TokenFor::Cloud,
            namespace: "kube-system",
            name: names::KARPENTER,
            kubeconfig: TokenFrom::Secret("service-network-admin-kubeconfig"),
            oneshot: false,
        })
        .adapt(move |_, workload| {
            edit(workload, |pod| {
                if let Some(container) = pod.containers.first_mut() {
                    let all = container.args.get_or_insert_default();
                    all.extend(arguments.iter().cloned());
                    crate::platform::add(&mut container.env, environment.clone());
                }
            });
            Ok(())
        })
}

fn arguments(facts: &Facts, settings: &Settings) -> Vec<String> {
    let endpoint = facts.ignition.as_deref().unwrap_or_default();
    vec![
        format!("--hosted-control-plane={}", facts.id.name),
        format!("--control-plane-operator-image={}", settings.own_image),
        format!("--ignition-endpoint={endpoint}"),
    ]
}

fn variables(facts: &Facts, settings: &Settings) -> Value {
    let shared = environment(facts, settings);
    let shared = shared.as_array().into_iter().flatten();
    let shared = shared.filter(|it| SHARED.iter().any(|name| it["name"] == *name));
    let aws = facts.cluster.spec.platform.aws.as_ref();
    let region = aws.map(|it| json!({ "name": "AWS_REGION", "value": it.region }));
    shared.cloned().chain(region).collect()
}

/// What is deleted when Karpenter is switched off: it and its operator. Its nodes are the user's, and service accounts
/// without rights go with the namespace.
fn obsolete(facts: &Facts) -> Vec<(ApiResource, String)> {
    let mut kinds = vec![
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Role>(&()),
        kinds::control_plane_component(),
    ];
    if facts.management.monitors {
        kinds.push(kinds::pod_monitor());
    }
    let components = kinds.into_iter().flat_map(|kind| {
        let names = auto_node::COMPONENTS.into_iter();
        names.map(move |name| (kind.clone(), name.to_owned()))
    });
    let rest = [
        (
            ApiResource::erase::<Secret>(&()),
            names::KARPENTER_CREDENTIALS,
        ),
        (ApiResource::erase::<ConfigMap>(&()), names::KARPENTER_TAINT),
    ];
    let rest = rest.map(|(kind, name)| (kind, name.to_owned()));
    components.chain(rest).collect()
}
