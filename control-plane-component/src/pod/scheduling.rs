//! Scheduling: priority classes, tolerations and affinities.

use api::annotations::cluster::{
    API_CRITICAL_PRIORITY_CLASS, CONTROL_PLANE_PRIORITY_CLASS, ETCD_PRIORITY_CLASS,
    REQUEST_SERVING_NODE_ADDITIONAL_SELECTOR,
};
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinity,
    PodAffinityTerm, PodAntiAffinity, PodTemplateSpec, PreferredSchedulingTerm, Toleration,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::labels::HOSTED_CONTROL_PLANE;
use super::{Component, Context, Result};
use crate::declaration::Class;
use crate::error::Error;

const CONTROL_PLANE: &str = "hypershift.openshift.io/control-plane";
const CLUSTER: &str = "hypershift.openshift.io/cluster";
const REQUEST_SERVING: &str = "hypershift.openshift.io/request-serving-component";
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Sets the priority class, and the node selector that users configured.
pub(super) fn priority(
    component: &Component,
    context: &Context<'_>,
    template: &mut PodTemplateSpec,
) -> Result<()> {
    let (class, annotation) = match component.traits.class {
        Class::Etcd => ("hypershift-etcd", &ETCD_PRIORITY_CLASS),
        Class::ApiCritical => ("hypershift-api-critical", &API_CRITICAL_PRIORITY_CLASS),
        Class::Standard => ("hypershift-control-plane", &CONTROL_PLANE_PRIORITY_CLASS),
    };
    let requested = annotation.get(context.annotations()).map_err(invalid)?;
    let pod = template.spec.get_or_insert_default();
    pod.priority_class_name = Some(requested.unwrap_or_else(|| class.to_owned()));
    if !context.spec().node_selector.is_empty() {
        pod.node_selector = Some(context.spec().node_selector.clone());
    }
    Ok(())
}

fn invalid(error: api::annotations::AnnotationError) -> Error {
    Error::Invalid {
        hint: format!("write {}", error.expected),
        field: error.key,
        value: error.value,
    }
}

/// Sets tolerations and affinities: for control plane nodes, for the nodes of this control plane, and for its other
/// pods.
pub(super) fn placement(
    component: &Component,
    context: &Context<'_>,
    template: &mut PodTemplateSpec,
) -> Result<()> {
    let isolated = context.is_dedicated() && component.traits.request_serving;
    let pod = template.spec.get_or_insert_default();
    let tolerations = pod.tolerations.get_or_insert_default();
    tolerations.push(toleration(CONTROL_PLANE, "true"));
    tolerations.push(toleration(CLUSTER, context.namespace()));
    if isolated {
        tolerations.push(toleration(REQUEST_SERVING, "true"));
    }
    tolerations.extend(context.spec().tolerations.iter().cloned());
    let affinity = pod.affinity.get_or_insert_with(Affinity::default);
    affinity.node_affinity = Some(NodeAffinity {
        preferred_during_scheduling_ignored_during_execution: Some(vec![
            preference(CONTROL_PLANE, "true", 50),
            preference(CLUSTER, context.namespace(), 100),
        ]),
        required_during_scheduling_ignored_during_execution: if isolated {
            Some(isolation(context)?)
        } else {
            None
        },
    });
    affinity.pod_affinity = Some(PodAffinity {
        preferred_during_scheduling_ignored_during_execution: Some(vec![colocation(context)]),
        ..PodAffinity::default()
    });
    Ok(())
}

/// Selects the nodes that serve only the requests of this cluster.
fn isolation(context: &Context<'_>) -> Result<NodeSelector> {
    let additional = REQUEST_SERVING_NODE_ADDITIONAL_SELECTOR
        .get(context.annotations())
        .map_err(invalid)?;
    let mut all = vec![
        is_one_of(REQUEST_SERVING, "true"),
        is_one_of(CLUSTER, context.namespace()),
    ];
    let additional = additional.unwrap_or_default();
    all.extend(additional.iter().map(|(key, value)| is_one_of(key, value)));
    Ok(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_expressions: Some(all),
            match_fields: None,
        }],
    })
}

/// Spreads the replicas over zones and nodes.
pub(super) fn spread(
    component: &Component,
    context: &Context<'_>,
    replicas: i32,
    template: &mut PodTemplateSpec,
) {
    if replicas <= 1 || !component.traits.zone_spread {
        return;
    }
    let labels = template.metadata.get_or_insert_default().labels.clone();
    let anti_affinity = |key: &str| PodAffinityTerm {
        label_selector: Some(LabelSelector {
            match_labels: labels.clone(),
            ..LabelSelector::default()
        }),
        topology_key: key.to_owned(),
        ..PodAffinityTerm::default()
    };
    // These clouds often have fewer zones than replicas.
    let is_zone_preferred = context.is_on(PlatformType::KubeVirt);
    let pod = template.spec.get_or_insert_default();
    let affinity = pod.affinity.get_or_insert_with(Affinity::default);
    affinity.pod_anti_affinity = Some(if is_zone_preferred {
        PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![weighted(
                anti_affinity(ZONE),
            )]),
            required_during_scheduling_ignored_during_execution: Some(vec![anti_affinity(
                HOSTNAME,
            )]),
        }
    } else {
        PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: None,
            required_during_scheduling_ignored_during_execution: Some(vec![
                anti_affinity(ZONE),
                anti_affinity(HOSTNAME),
            ]),
        }
    });
}

fn toleration(key: &str, value: &str) -> Toleration {
    Toleration {
        key: Some(key.to_owned()),
        operator: Some("Equal".to_owned()),
        value: Some(value.to_owned()),
        effect: Some("NoSchedule".to_owned()),
        toleration_seconds: None,
    }
}

fn is_one_of(key: &str, value: &str) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![value.to_owned()]),
    }
}

fn preference(key: &str, value: &str, weight: i32) -> PreferredSchedulingTerm {
    PreferredSchedulingTerm {
        weight,
        preference: NodeSelectorTerm {
            match_expressions: Some(vec![is_one_of(key, value)]),
            match_fields: None,
        },
    }
}

/// Prefers nodes that run other pods of the control plane.
fn colocation(context: &Context<'_>) -> WeightedPodAffinityTerm {
    let label = (
        HOSTED_CONTROL_PLANE.to_owned(),
        context.namespace().to_owned(),
    );
    weighted(PodAffinityTerm {
        label_selector: Some(LabelSelector {
            match_labels: Some([label].into()),
            ..LabelSelector::default()
        }),
        topology_key: HOSTNAME.to_owned(),
        ..PodAffinityTerm::default()
    })
}

fn weighted(term: PodAffinityTerm) -> WeightedPodAffinityTerm {
    WeightedPodAffinityTerm {
        weight: 100,
        pod_affinity_term: term,
    }
}
