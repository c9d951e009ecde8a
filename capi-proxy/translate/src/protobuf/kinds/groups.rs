//! The kinds of which every place is known, and the versions that have the same fields.

use super::Group;
use super::Node::{Leaf, Message};
use super::nodes::{
    ACCESS_REVIEW, ADMISSION_POLICY, ADMISSION_POLICY_BINDING, AUTOSCALER, CRON_JOB, DAEMON_SET,
    DEPLOYMENT, ENDPOINT_SUBSET, FLOW_SCHEMA, INGRESS, JOB, LOCAL_REFERENCE, METADATA,
    OBJECT_REFERENCE, PLAIN, POD_TEMPLATE, POLICY_RULE, QUALIFIED_METADATA, QUOTA_SPEC,
    QUOTA_STATUS, ROLE, ROLE_BINDING, VOLUME_ATTACHMENT, VOLUME_CLAIM, VOLUME_SPEC, WEBHOOKS,
};
use crate::place::Action;

/// A kind that is not here may still be sent, see [`Root::Unknown`](super::Root::Unknown).
pub(super) const GROUPS: &[Group] = &[
    Group {
        name: "",
        versions: &["v1"],
        kinds: &[
            (
                "bindings",
                "Binding",
                Message(&[METADATA, (2, OBJECT_REFERENCE)]),
            ),
            ("configmaps", "ConfigMap", PLAIN),
            (
                "endpoints",
                "Endpoints",
                Message(&[METADATA, (2, ENDPOINT_SUBSET)]),
            ),
            (
                "events",
                "Event",
                Message(&[METADATA, (2, OBJECT_REFERENCE), (13, OBJECT_REFERENCE)]),
            ),
            ("limitranges", "LimitRange", PLAIN),
            ("namespaces", "Namespace", PLAIN),
            ("nodes", "Node", PLAIN),
            (
                "persistentvolumeclaims",
                "PersistentVolumeClaim",
                VOLUME_CLAIM,
            ),
            (
                "persistentvolumes",
                "PersistentVolume",
                Message(&[METADATA, (2, VOLUME_SPEC)]),
            ),
            ("pods", "Pod", POD_TEMPLATE),
            (
                "podtemplates",
                "PodTemplate",
                Message(&[METADATA, (2, POD_TEMPLATE)]),
            ),
            (
                "replicationcontrollers",
                "ReplicationController",
                DEPLOYMENT,
            ),
            (
                "resourcequotas",
                "ResourceQuota",
                Message(&[METADATA, (2, QUOTA_SPEC), (3, QUOTA_STATUS)]),
            ),
            ("secrets", "Secret", PLAIN),
            (
                "serviceaccounts",
                "ServiceAccount",
                Message(&[METADATA, (2, OBJECT_REFERENCE)]),
            ),
            ("services", "Service", PLAIN),
        ],
    },
    Group {
        name: "admissionregistration.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha1"],
        kinds: &[
            (
                "mutatingwebhookconfigurations",
                "MutatingWebhookConfiguration",
                WEBHOOKS,
            ),
            (
                "validatingadmissionpolicies",
                "ValidatingAdmissionPolicy",
                ADMISSION_POLICY,
            ),
            (
                "validatingadmissionpolicybindings",
                "ValidatingAdmissionPolicyBinding",
                ADMISSION_POLICY_BINDING,
            ),
            (
                "validatingwebhookconfigurations",
                "ValidatingWebhookConfiguration",
                WEBHOOKS,
            ),
        ],
    },
    Group {
        name: "admissionregistration.k8s.io",
        versions: &["v1beta1", "v1alpha1"],
        kinds: &[
            (
                "mutatingadmissionpolicies",
                "MutatingAdmissionPolicy",
                ADMISSION_POLICY,
            ),
            (
                "mutatingadmissionpolicybindings",
                "MutatingAdmissionPolicyBinding",
                ADMISSION_POLICY_BINDING,
            ),
        ],
    },
    Group {
        name: "apiextensions.k8s.io",
        versions: &["v1"],
        kinds: &[(
            "customresourcedefinitions",
            "CustomResourceDefinition",
            Message(&[
                QUALIFIED_METADATA,
                (2, Message(&[(1, Leaf(Action::Group))])),
            ]),
        )],
    },
    Group {
        name: "apiregistration.k8s.io",
        versions: &["v1"],
        kinds: &[(
            "apiservices",
            "APIService",
            Message(&[
                QUALIFIED_METADATA,
                (2, Message(&[(2, Leaf(Action::Group))])),
            ]),
        )],
    },
    Group {
        name: "apps",
        versions: &["v1"],
        kinds: &[
            ("daemonsets", "DaemonSet", DAEMON_SET),
            ("deployments", "Deployment", DEPLOYMENT),
            ("replicasets", "ReplicaSet", DEPLOYMENT),
            (
                "statefulsets",
                "StatefulSet",
                Message(&[
                    METADATA,
                    (2, Message(&[(3, POD_TEMPLATE), (4, VOLUME_CLAIM)])),
                ]),
            ),
        ],
    },
    Group {
        name: "authentication.k8s.io",
        versions: &["v1", "v1beta1"],
        kinds: &[
            ("selfsubjectreviews", "SelfSubjectReview", PLAIN),
            ("tokenreviews", "TokenReview", PLAIN),
        ],
    },
    Group {
        name: "authorization.k8s.io",
        versions: &["v1"],
        kinds: &[
            (
                "localsubjectaccessreviews",
                "LocalSubjectAccessReview",
                ACCESS_REVIEW,
            ),
            (
                "selfsubjectaccessreviews",
                "SelfSubjectAccessReview",
                ACCESS_REVIEW,
            ),
            (
                "selfsubjectrulesreviews",
                "SelfSubjectRulesReview",
                Message(&[METADATA, (3, Message(&[(1, POLICY_RULE)]))]),
            ),
            ("subjectaccessreviews", "SubjectAccessReview", ACCESS_REVIEW),
        ],
    },
    Group {
        name: "autoscaling",
        versions: &["v1", "v2"],
        kinds: &[(
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            AUTOSCALER,
        )],
    },
    Group {
        name: "batch",
        versions: &["v1"],
        kinds: &[("cronjobs", "CronJob", CRON_JOB), ("jobs", "Job", JOB)],
    },
    Group {
        name: "certificates.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha1"],
        kinds: &[
            (
                "certificatesigningrequests",
                "CertificateSigningRequest",
                PLAIN,
            ),
            ("clustertrustbundles", "ClusterTrustBundle", PLAIN),
        ],
    },
    Group {
        name: "coordination.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha2"],
        kinds: &[
            ("leasecandidates", "LeaseCandidate", PLAIN),
            ("leases", "Lease", PLAIN),
        ],
    },
    Group {
        name: "discovery.k8s.io",
        versions: &["v1"],
        kinds: &[(
            "endpointslices",
            "EndpointSlice",
            Message(&[METADATA, (2, Message(&[(4, OBJECT_REFERENCE)]))]),
        )],
    },
    Group {
        name: "events.k8s.io",
        versions: &["v1"],
        kinds: &[(
            "events",
            "Event",
            Message(&[METADATA, (8, OBJECT_REFERENCE), (9, OBJECT_REFERENCE)]),
        )],
    },
    Group {
        name: "flowcontrol.apiserver.k8s.io",
        versions: &["v1", "v1beta3"],
        kinds: &[
            ("flowschemas", "FlowSchema", FLOW_SCHEMA),
            (
                "prioritylevelconfigurations",
                "PriorityLevelConfiguration",
                PLAIN,
            ),
        ],
    },
    Group {
        name: "networking.k8s.io",
        versions: &["v1"],
        kinds: &[
            (
                "ingressclasses",
                "IngressClass",
                Message(&[METADATA, (2, Message(&[(2, LOCAL_REFERENCE)]))]),
            ),
            ("ingresses", "Ingress", INGRESS),
            ("networkpolicies", "NetworkPolicy", PLAIN),
            ("servicecidrs", "ServiceCIDR", PLAIN),
        ],
    },
    Group {
        name: "node.k8s.io",
        versions: &["v1"],
        kinds: &[("runtimeclasses", "RuntimeClass", PLAIN)],
    },
    Group {
        name: "policy",
        versions: &["v1"],
        kinds: &[("poddisruptionbudgets", "PodDisruptionBudget", PLAIN)],
    },
    Group {
        name: "rbac.authorization.k8s.io",
        versions: &["v1"],
        kinds: &[
            ("clusterrolebindings", "ClusterRoleBinding", ROLE_BINDING),
            ("clusterroles", "ClusterRole", ROLE),
            ("rolebindings", "RoleBinding", ROLE_BINDING),
            ("roles", "Role", ROLE),
        ],
    },
    Group {
        name: "resource.k8s.io",
        versions: &["v1", "v1beta2", "v1beta1"],
        kinds: &[
            ("deviceclasses", "DeviceClass", PLAIN),
            (
                "resourceclaims",
                "ResourceClaim",
                Message(&[METADATA, (3, Message(&[(2, LOCAL_REFERENCE)]))]),
            ),
            (
                "resourceclaimtemplates",
                "ResourceClaimTemplate",
                Message(&[METADATA, (2, PLAIN)]),
            ),
            ("resourceslices", "ResourceSlice", PLAIN),
        ],
    },
    Group {
        name: "scheduling.k8s.io",
        versions: &["v1"],
        kinds: &[("priorityclasses", "PriorityClass", PLAIN)],
    },
    Group {
        name: "storage.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha1"],
        kinds: &[
            ("csidrivers", "CSIDriver", PLAIN),
            ("csinodes", "CSINode", PLAIN),
            ("csistoragecapacities", "CSIStorageCapacity", PLAIN),
            ("storageclasses", "StorageClass", PLAIN),
            ("volumeattachments", "VolumeAttachment", VOLUME_ATTACHMENT),
            ("volumeattributesclasses", "VolumeAttributesClass", PLAIN),
        ],
    },
    Group {
        name: "storagemigration.k8s.io",
        versions: &["v1beta1"],
        kinds: &[(
            "storageversionmigrations",
            "StorageVersionMigration",
            Message(&[
                METADATA,
                (2, Message(&[(1, Message(&[(1, Leaf(Action::Group))]))])),
            ]),
        )],
    },
];
