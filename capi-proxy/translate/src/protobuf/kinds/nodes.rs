//! The messages on the way to a group, by the field numbers that lead there.

use super::Node::{self, Leaf, Message};
use super::OBJECT_METADATA;
use crate::place::Action;

// === what kinds share ===

/// `TypeMeta` of the envelope.
pub(in crate::protobuf) const TYPE_META: Node = Message(&[(1, Leaf(Action::ApiVersion))]);

/// An object that names groups in its metadata only.
pub(super) const PLAIN: Node = Message(&[METADATA]);

pub(super) const METADATA: (u32, Node) = (OBJECT_METADATA, OBJECT_META);
const OBJECT_META: Node = Message(&[OWNERS, MANAGED_FIELDS]);
const OWNERS: (u32, Node) = (13, Message(&[(5, Leaf(Action::ApiVersion))]));
const MANAGED_FIELDS: (u32, Node) = (17, Message(&[(3, Leaf(Action::ApiVersion))]));

/// Metadata of an object with a name that ends with a group.
pub(super) const QUALIFIED_METADATA: (u32, Node) = (
    OBJECT_METADATA,
    Message(&[(1, Leaf(Action::Qualified)), OWNERS, MANAGED_FIELDS]),
);

pub(super) const OBJECT_REFERENCE: Node = Message(&[(5, Leaf(Action::ApiVersion))]);
/// `TypedLocalObjectReference` and similar messages with the group as first field.
pub(super) const LOCAL_REFERENCE: Node = Message(&[(1, Leaf(Action::Group))]);
/// `CrossVersionObjectReference`.
const SCALE_TARGET: Node = Message(&[(3, Leaf(Action::ApiVersion))]);

// === workloads ===

/// Also a whole Pod: both have metadata, then a pod's spec.
pub(super) const POD_TEMPLATE: Node = Message(&[METADATA, (2, Message(&[(1, VOLUME)]))]);
/// `volumeSource.ephemeral.volumeClaimTemplate`.
const VOLUME: Node = Message(&[(2, Message(&[(29, Message(&[(1, VOLUME_CLAIM)]))]))]);
/// `dataSource` and `dataSourceRef` of a claim, or of a template of one.
pub(super) const VOLUME_CLAIM: Node = Message(&[
    METADATA,
    (2, Message(&[(7, LOCAL_REFERENCE), (8, LOCAL_REFERENCE)])),
]);
/// `storageos.secretRef` and `claimRef`.
pub(super) const VOLUME_SPEC: Node = Message(&[
    (2, Message(&[(21, Message(&[(5, OBJECT_REFERENCE)]))])),
    (4, OBJECT_REFERENCE),
]);
pub(super) const VOLUME_ATTACHMENT: Node =
    Message(&[METADATA, (2, Message(&[(2, Message(&[(2, VOLUME_SPEC)]))]))]);
pub(super) const ENDPOINT_SUBSET: Node = Message(&[
    (1, Message(&[(2, OBJECT_REFERENCE)])),
    (2, Message(&[(2, OBJECT_REFERENCE)])),
]);
pub(super) const DAEMON_SET: Node = Message(&[METADATA, (2, Message(&[(2, POD_TEMPLATE)]))]);
/// Replica sets and replication controllers have their template where deployments have it.
pub(super) const DEPLOYMENT: Node = Message(&[METADATA, (2, Message(&[(3, POD_TEMPLATE)]))]);
/// Also the template of one in a `CronJob`.
pub(super) const JOB: Node = Message(&[METADATA, (2, Message(&[(6, POD_TEMPLATE)]))]);
pub(super) const CRON_JOB: Node = Message(&[
    METADATA,
    (2, Message(&[(5, JOB)])),
    (3, Message(&[(1, OBJECT_REFERENCE)])),
]);
pub(super) const AUTOSCALER: Node = Message(&[
    METADATA,
    (
        2,
        Message(&[
            (1, SCALE_TARGET),
            (4, Message(&[(2, Message(&[(1, SCALE_TARGET)]))])),
        ]),
    ),
    (
        3,
        Message(&[(5, Message(&[(2, Message(&[(3, SCALE_TARGET)]))]))]),
    ),
]);
pub(super) const INGRESS: Node = Message(&[
    METADATA,
    (
        2,
        Message(&[
            (1, INGRESS_BACKEND),
            (3, Message(&[(2, Message(&[(1, HTTP_RULE)]))])),
        ]),
    ),
]);
const INGRESS_BACKEND: Node = Message(&[(3, LOCAL_REFERENCE)]);
const HTTP_RULE: Node = Message(&[(1, Message(&[(2, INGRESS_BACKEND)]))]);

// === rules and quotas ===

pub(super) const ROLE: Node = Message(&[METADATA, (2, POLICY_RULE)]);
pub(super) const POLICY_RULE: Node =
    Message(&[(2, Leaf(Action::Group)), (4, Leaf(Action::Qualified))]);
pub(super) const ROLE_BINDING: Node = Message(&[
    METADATA,
    (2, Message(&[(2, Leaf(Action::Group))])),
    (3, LOCAL_REFERENCE),
]);
pub(super) const ACCESS_REVIEW: Node =
    Message(&[METADATA, (2, Message(&[(1, RESOURCE_ATTRIBUTES)]))]);
const RESOURCE_ATTRIBUTES: Node =
    Message(&[(3, Leaf(Action::Group)), (7, Leaf(Action::Qualified))]);
pub(super) const FLOW_SCHEMA: Node = Message(&[
    METADATA,
    (
        2,
        Message(&[(4, Message(&[(2, Message(&[(2, Leaf(Action::Group))]))]))]),
    ),
]);
pub(super) const WEBHOOKS: Node = Message(&[METADATA, (2, Message(&[(3, OPERATIONS)]))]);
/// `RuleWithOperations`.
const OPERATIONS: Node = Message(&[(2, Message(&[(1, Leaf(Action::Group))]))]);
pub(super) const ADMISSION_POLICY: Node = Message(&[
    METADATA,
    (2, Message(&[(1, PARAMETER_KIND), (2, MATCH_RESOURCES)])),
]);
pub(super) const ADMISSION_POLICY_BINDING: Node =
    Message(&[METADATA, (2, Message(&[(3, MATCH_RESOURCES)]))]);
const PARAMETER_KIND: Node = Message(&[(1, Leaf(Action::ApiVersion))]);
const MATCH_RESOURCES: Node = Message(&[(3, NAMED_OPERATIONS), (4, NAMED_OPERATIONS)]);
const NAMED_OPERATIONS: Node = Message(&[(1, Leaf(Action::Qualified)), (2, OPERATIONS)]);
pub(super) const QUOTA_SPEC: Node = Message(&[(1, QUOTA)]);
pub(super) const QUOTA_STATUS: Node = Message(&[(1, QUOTA), (2, QUOTA)]);
/// An entry of a map from names of quotas.
const QUOTA: Node = Message(&[(1, Leaf(Action::QuotaKey))]);
