//! Approval of certificates that break the glass, and revocation of all that were signed before.

use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::{Kind, StatusIs};
use crate::schema::{self, immutable, list_map};

/// Empty: the name is that of the CertificateSigningRequest.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "certificates.hypershift.openshift.io",
    version = "v1alpha1",
    kind = "CertificateSigningRequestApproval",
    doc = "Approves the CertificateSigningRequest of the same name.",
    namespaced,
    status = "CertificateSigningRequestApprovalStatus",
    derive = "PartialEq",
    shortname = "csra",
    shortname = "csras",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core")
)]
pub struct CertificateSigningRequestApprovalSpec {}

/// Empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateSigningRequestApprovalStatus {}

/// Which certificates lose their worth.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "certificates.hypershift.openshift.io",
    version = "v1alpha1",
    kind = "CertificateRevocationRequest",
    doc = "Revokes every certificate that a signer of the hosted cluster has signed so far.",
    namespaced,
    status = "CertificateRevocationRequestStatus",
    derive = "PartialEq",
    shortname = "crr",
    shortname = "crrs",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRevocationRequestSpec {
    /// The signer of the certificates to revoke.
    #[schemars(transform = immutable(
        "signerClass cannot change: create a CertificateRevocationRequest for the other signer"
    ))]
    pub signer_class: SignerClass,
}

/// Who is let in by a certificate that breaks the glass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignerClass {
    /// Administrators of the hosted cluster.
    CustomerBreakGlass,
    /// Those who run the service.
    SreBreakGlass,
}

/// Progress of the revocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRevocationRequestStatus {
    /// Certificates that were issued before this moment are revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub revocation_timestamp: Option<Time>,
    /// A Secret with the signer as it was, by which it is proven that its certificates are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub previous_signer: Option<LocalObjectReference>,
    /// Which steps of the revocation are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
}

impl Kind for CertificateSigningRequestApproval {
    const DESCRIPTION: &'static str = "Approves the CertificateSigningRequest of the same name, of the hosted cluster in this namespace, for a signer that breaks the glass.";
    const STATUS: StatusIs = StatusIs::Field;
}

impl Kind for CertificateRevocationRequest {
    const DESCRIPTION: &'static str = "Revokes every certificate that a signer of the hosted cluster in this namespace has signed so far: the signer is replaced, and the old one is no longer trusted.";
}
