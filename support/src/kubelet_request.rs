//! `CertificateSigningRequests` of kubelets: what they ask for, and how one is approved. All but [`approve`] is pure.
//!
//! Who may have a certificate is the caller's decision; what every approver has to require is here.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use x509_parser::prelude::{
    FromDer, GeneralName, ParsedExtension, X509CertificationRequest, X509Name,
};

use crate::reconcile::{is_conflict, is_missing};

/// Signer of kubelet client certificates.
pub const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of kubelet serving certificates.
pub const SERVING: &str = "kubernetes.io/kubelet-serving";
/// The account that new nodes of OpenShift have.
pub const BOOTSTRAPPER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
/// Prefix of a node's user name.
const NODE: &str = "system:node:";
/// The group of nodes.
pub const NODES: &str = "system:nodes";

/// A parsed request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Who is to sign.
    pub signer: String,
    /// Authenticated user that created the request.
    pub username: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// What the certificate is for.
    pub usages: Vec<String>,
    /// Common name of the subject.
    pub common_name: String,
    /// Organizations of the subject.
    pub organizations: Vec<String>,
    /// Host names.
    pub names: Vec<String>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether it has other kinds of names, or other extensions.
    pub has_unsupported: bool,
}

// === impl Request ===

impl Request {
    /// Parses an object. An error says why it cannot be evaluated.
    pub fn read(object: &CertificateSigningRequest) -> Result<Self, &'static str> {
        let spec = &object.spec;
        let der = CertificateSigningRequestDer::from_pem_slice(&spec.request.0);
        let der = der.map_err(|_| "the request is not PEM")?;
        let parsed = X509CertificationRequest::from_der(&der);
        let (rest, parsed) = parsed.map_err(|_| "the request is not valid DER")?;
        if !rest.is_empty() {
            return Err("trailing data after the request");
        }
        let subject = &parsed.certification_request_info.subject;
        let mut request = Self {
            signer: spec.signer_name.clone(),
            username: spec.username.clone().unwrap_or_default(),
            groups: spec.groups.clone().unwrap_or_default(),
            usages: spec.usages.clone().unwrap_or_default(),
            common_name: common_name(subject)?,
            organizations: organizations(subject)?,
            has_unsupported: has_other_attributes(subject),
            ..Self::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            request.add(extension);
        }
        Ok(request)
    }

    /// The name of the node in the subject. An error says why it is no subject of a node.
    pub fn node(&self) -> Result<&str, &'static str> {
        let name = self.common_name.strip_prefix(NODE);
        let name = name
            .filter(|name| !name.is_empty())
            .ok_or("the common name is not a node name")?;
        if self.organizations != [NODES] {
            return Err("the organization is not system:nodes");
        }
        Ok(name)
    }

    /// Checks that the usages are those of kubelets: `purpose` is `client auth` or `server auth`. Key encipherment is
    /// optional, because ECDSA keys do not use it.
    pub fn is_for(&self, purpose: &str) -> Result<(), &'static str> {
        let known = ["digital signature", "key encipherment", purpose];
        let all_known = self
            .usages
            .iter()
            .all(|usage| known.contains(&usage.as_str()));
        let needed = |requested: &str| self.usages.iter().any(|usage| usage == requested);
        if all_known && needed("digital signature") && needed(purpose) {
            return Ok(());
        }
        Err("the usages are not those of a kubelet")
    }

    fn add(&mut self, extension: &ParsedExtension<'_>) {
        let ParsedExtension::SubjectAlternativeName(names) = extension else {
            self.has_unsupported = true;
            return;
        };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => self.names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => match address(bytes) {
                    Some(address) => self.addresses.push(address),
                    None => self.has_unsupported = true,
                },
                _ => self.has_unsupported = true,
            }
        }
    }
}

/// Whether nothing is decided yet.
pub fn is_pending(object: &CertificateSigningRequest) -> bool {
    let status = object.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    conditions.is_none_or(Vec::is_empty)
}

/// Approves a request as it was evaluated. False if it has changed or gone since: another approver was faster.
pub async fn approve(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    manager: &str,
    reason: &str,
    message: &str,
) -> Result<bool, kube::Error> {
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    let change = Patch::Merge(approval(object, reason, message, Timestamp::now()));
    match api
        .patch_approval(&object.name_any(), &params, &change)
        .await
    {
        Ok(_) => Ok(true),
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The merge patch that approves a request. The resource version limits the approval to the evaluated request.
pub fn approval(
    object: &CertificateSigningRequest,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    json!({
        "metadata": { "resourceVersion": object.metadata.resource_version },
        "status": { "conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": now.to_string(),
        }] },
    })
}

/// Requires exactly one common name, because parsers differ in which one they read.
fn common_name(subject: &X509Name<'_>) -> Result<String, &'static str> {
    let mut names = subject.iter_common_name();
    match (names.next(), names.next()) {
        (Some(name), None) => {
            let name = name.as_str().map_err(|_| "the common name is not text")?;
            Ok(name.to_owned())
        }
        _ => Err("the subject must have exactly one common name"),
    }
}

fn organizations(subject: &X509Name<'_>) -> Result<Vec<String>, &'static str> {
    let names = subject.iter_organization();
    let names: Result<Vec<_>, _> = names.map(|name| name.as_str().map(str::to_owned)).collect();
    names.map_err(|_| "an organization is not text")
}

fn has_other_attributes(subject: &X509Name<'_>) -> bool {
    let known = subject.iter_common_name().count() + subject.iter_organization().count();
    subject.iter_attributes().count() > known
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(bytes.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}
