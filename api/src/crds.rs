//! The custom resource definitions of all kinds, made from their Rust types.
//!
//! `cargo xtask codegen` writes them to `manifests/crds/`, and those with the technology preview to
//! `manifests/crds-tech-preview/`. Those that hosted clusters serve are in `manifests/crds-guest/`. Nothing there is edited by
//! hand.

use kube_core::object::{HasSpec, HasStatus};
use kube_core::{CustomResourceExt, Resource};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::audit_log_persistence::v1alpha1::AuditLogPersistenceConfig;
use crate::certificates::v1alpha1 as certificates;
use crate::features::FeatureSet;
use crate::hypershift::v1beta1 as hypershift;
use crate::karpenter::v1::OpenshiftEc2NodeClass;
use crate::scheduling::v1alpha1::ClusterSizingConfiguration;
use crate::schema;

/// One custom resource definition.
#[derive(Debug, Clone, Copy)]
pub struct Crd {
    /// Its name, `<plural>.<group>`.
    pub name: fn() -> &'static str,
    /// The definition with what a feature set has of it, as it is sent to an API server.
    pub render: fn(FeatureSet) -> Value,
    /// The smallest feature set that has the kind.
    pub features: FeatureSet,
}

/// The annotation of a definition with the name of its feature set. Those of the default set do not have it.
pub const FEATURE_SET: &str = "release.openshift.io/feature-set";

/// All definitions of all feature sets on a management cluster, one a line.
pub const ALL: &[Crd] = &[
    Crd::of::<hypershift::AwsEndpointService>(),
    Crd::of::<hypershift::AzurePrivateLinkService>(),
    Crd::of::<hypershift::CertificateSigningRequestApproval>(),
    Crd::of::<hypershift::ControlPlaneComponent>(),
    Crd::of::<hypershift::HostedCluster>(),
    Crd::of::<hypershift::HostedControlPlane>(),
    Crd::of::<hypershift::NodePool>(),
    Crd::of::<AuditLogPersistenceConfig>(),
    Crd::of::<certificates::CertificateRevocationRequest>(),
    Crd::of::<certificates::CertificateSigningRequestApproval>(),
    Crd::of::<ClusterSizingConfiguration>(),
    Crd::preview::<hypershift::GcpPrivateServiceConnect>(),
    Crd::preview::<hypershift::HcpEtcdBackup>(),
];

/// The definitions that hosted clusters serve, one a line.
pub const GUEST: &[Crd] = &[Crd::of::<OpenshiftEc2NodeClass>()];

/// The definitions that a feature set has on a management cluster.
pub fn of(features: FeatureSet) -> impl Iterator<Item = &'static Crd> {
    ALL.iter()
        .filter(move |crd| features.includes(crd.features))
}

// === impl Crd ===

impl Crd {
    const fn of<T: Kind>() -> Self
    where
        T::Spec: JsonSchema,
        T::Status: JsonSchema,
    {
        Self {
            name: T::crd_name,
            render: render::<T>,
            features: FeatureSet::Default,
        }
    }

    /// A kind of the technology preview.
    const fn preview<T: Kind>() -> Self
    where
        T::Spec: JsonSchema,
        T::Status: JsonSchema,
    {
        Self {
            features: FeatureSet::TechPreviewNoUpgrade,
            ..Self::of::<T>()
        }
    }
}

/// What `#[kube(...)]` does not say of a kind.
pub(crate) trait Kind:
    Resource<DynamicType = ()> + CustomResourceExt + HasSpec + HasStatus
{
    /// What an object of this kind is, for users.
    const DESCRIPTION: &'static str;
    /// Top-level fields that an object must have.
    const REQUIRED: &'static [&'static str] = &[];
    /// Rules on the whole object, in CEL, each with what a user who breaks it should do.
    const RULES: &'static [(&'static str, &'static str)] = &[];
    /// Labels of the definition.
    const LABELS: &'static [(&'static str, &'static str)] = &[];
    /// How the status is written.
    const STATUS: StatusIs = StatusIs::Subresource;
}

/// How the status is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusIs {
    /// By those who may write the subresource.
    Subresource,
    /// By all clients that may update the object.
    Field,
}

fn render<T: Kind>(features: FeatureSet) -> Value
where
    T::Spec: JsonSchema,
    T::Status: JsonSchema,
{
    let mut crd =
        serde_json::to_value(T::crd()).expect("invariant: a CRD of constants has a JSON form");
    if let Value::Object(crd) = &mut crd {
        crd.remove("status");
    }
    crd["spec"]["names"]["listKind"] = json!(format!("{}List", T::kind(&())));
    for (key, value) in T::LABELS {
        crd["metadata"]["labels"][key] = json!(value);
    }
    if features != FeatureSet::Default {
        crd["metadata"]["annotations"][FEATURE_SET] = json!(features.name());
    }
    let version = &mut crd["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] = root::<T>(features);
    if T::STATUS == StatusIs::Field {
        version["subresources"] = json!({});
    }
    crd
}

fn root<T: Kind>(features: FeatureSet) -> Value
where
    T::Spec: JsonSchema,
    T::Status: JsonSchema,
{
    let mut schema = json!({
        "description": T::DESCRIPTION,
        "type": "object",
        "properties": {
            "apiVersion": {
                "description": "The group and version of the kind.",
                "type": "string",
            },
            "kind": {
                "description": "What kind of object this is.",
                "type": "string",
            },
            "metadata": { "type": "object" },
            "spec": schema::of::<T::Spec>(features),
            "status": schema::of::<T::Status>(features),
        },
    });
    if !T::REQUIRED.is_empty() {
        schema["required"] = json!(T::REQUIRED);
    }
    let rule = |(rule, message): &(_, _)| json!({ "rule": rule, "message": message });
    if !T::RULES.is_empty() {
        schema[schema::RULES] = T::RULES.iter().map(rule).collect();
    }
    schema
}
