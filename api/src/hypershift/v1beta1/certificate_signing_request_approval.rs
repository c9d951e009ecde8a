//! The older form of an approval of a certificate signing request, which only has to be known.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::{Kind, StatusIs};

/// Empty: the name is that of the CertificateSigningRequest.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
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

impl Kind for CertificateSigningRequestApproval {
    const DESCRIPTION: &'static str = "Approves the CertificateSigningRequest of the same name, of the hosted cluster in this namespace. certificates.hypershift.openshift.io has the current version.";
    const STATUS: StatusIs = StatusIs::Field;
}
