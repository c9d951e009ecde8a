//! Services for names outside of the private zone: where there is no public router, the published names are private. Pure.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use control_plane_component::render::owner;
use serde_json::{Value, json};

const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";
/// The Services, and what they lead to.
pub(super) const NAMES: [(&str, ServiceType); 2] = [
    ("kube-apiserver-external-private", ServiceType::ApiServer),
    ("oauth-external-private", ServiceType::OAuthServer),
];

/// The Services of a private cluster that lead clients in its network from the published names to the endpoint of the router.
/// The label says whose they are.
pub(super) fn externals(hcp: &HostedControlPlane, label: &str, host: &str) -> Vec<Value> {
    let named = NAMES.iter().filter_map(|(name, type_)| {
        let mut services = hcp.spec.services.iter();
        let service = services.find(|it| it.service == *type_)?;
        let strategy = &service.service_publishing_strategy;
        let route = strategy.route.as_ref()?;
        let hostname = route.hostname.as_deref().filter(|it| !it.is_empty())?;
        (strategy.type_ == PublishingStrategyType::Route).then_some((*name, hostname))
    });
    named
        .map(|(name, hostname)| {
            json!({
                "metadata": {
                    "namespace": hcp.metadata.namespace,
                    "name": name,
                    "labels": { label: "true" },
                    "annotations": { EXTERNAL_DNS: hostname },
                    "ownerReferences": [owner(hcp)],
                },
                "spec": { "type": "ExternalName", "externalName": host },
            })
        })
        .collect()
}

/// Whether a Service is one of these.
pub(super) fn is_external(labels: Option<&BTreeMap<String, String>>, label: &str) -> bool {
    labels.is_some_and(|it| it.contains_key(label))
}
