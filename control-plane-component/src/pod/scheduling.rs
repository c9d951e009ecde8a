//! Where pods run, and which of them go first.

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

/// The class of priority, and the nodes that users chose.
pub(super) fn priority(
    component: &Component,
    context: &Context<'_>,
    template: &mut PodTemplateSpec,
) -> Result<()> {
    let (class, annotation) = match component.traits.class {
        Class::Etcd => ("hypershift-etcd", &ETCD_PRIORITY_CLASS),
        Class::ApiCritical => ("hypershift-api-critical", &API_CRITICAL_PRIORITY_CLASS),
        Class::Usual => ("hypershift-control-plane", &CONTROL_PLANE_PRIORITY_CLASS),
    };
    let wish = annotation.get(context.annotations()).map_err(invalid)?;
    let pod = template.spec.get_or_insert_default();
    pod.priority_class_name = Some(wish.unwrap_or_else(|| class.to_owned()));
    if !context.spec().node_selector.is_empty() {
        pod.node_selector = Some(context.spec().node_selector.clone());
    }
    Ok(())
}

fn invalid(error: api::annotations::AnnotationError) -> Error {
    Error::Invalid {
        way_out: format!("write {}", error.expected),
        field: error.key,
        value: error.value,
    }
}

/// Tolerations and affinities: to nodes for control planes, to the nodes of this one, and to its other pods.
pub(super) fn placement(
    component: &Component,
    context: &Context<'_>,
    template: &mut PodTemplateSpec,
) -> Result<()> {
    let isolated = context.is_dedicated() && component.traits.request_serving;
    let pod = template.spec.get_or_insert_default();
    let tolerations = pod.tolerations.get_or_insert_default();
    tolerations.push(tolerates(CONTROL_PLANE, "true"));
    tolerations.push(tolerates(CLUSTER, context.namespace()));
    if isolated {
        tolerations.push(tolerates(REQUEST_SERVING, "true"));
    }
    tolerations.extend(context.spec().tolerations.iter().cloned());
    let affinity = pod.affinity.get_or_insert_with(Affinity::default);
    affinity.node_affinity = Some(NodeAffinity {
        preferred_during_scheduling_ignored_during_execution: Some(vec![
            prefers(CONTROL_PLANE, "true", 50),
            prefers(CLUSTER, context.namespace(), 100),
        ]),
        required_during_scheduling_ignored_during_execution: if isolated {
            Some(isolation(context)?)
        } else {
            None
        },
    });
    affinity.pod_affinity = Some(PodAffinity {
        preferred_during_scheduling_ignored_during_execution: Some(vec![near(context)]),
        ..PodAffinity::default()
    });
    Ok(())
}

/// The nodes that serve the requests of this cluster and of no other one.
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

/// Keeps the replicas apart.
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
    let apart = |key: &str| PodAffinityTerm {
        label_selector: Some(LabelSelector {
            match_labels: labels.clone(),
            ..LabelSelector::default()
        }),
        topology_key: key.to_owned(),
        ..PodAffinityTerm::default()
    };
    // Zones of such clouds are often fewer than replicas.
    let softly = context.is_on(PlatformType::KubeVirt);
    let pod = template.spec.get_or_insert_default();
    let affinity = pod.affinity.get_or_insert_with(Affinity::default);
    affinity.pod_anti_affinity = Some(if softly {
        PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![weighted(apart(ZONE))]),
            required_during_scheduling_ignored_during_execution: Some(vec![apart(HOSTNAME)]),
        }
    } else {
        PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: None,
            required_during_scheduling_ignored_during_execution: Some(vec![
                apart(ZONE),
                apart(HOSTNAME),
            ]),
        }
    });
}

fn tolerates(key: &str, value: &str) -> Toleration {
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

fn prefers(key: &str, value: &str, weight: i32) -> PreferredSchedulingTerm {
    PreferredSchedulingTerm {
        weight,
        preference: NodeSelectorTerm {
            match_expressions: Some(vec![is_one_of(key, value)]),
            match_fields: None,
        },
    }
}

/// Pods of one control plane are close to each other.
fn near(context: &Context<'_>) -> WeightedPodAffinityTerm {
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
