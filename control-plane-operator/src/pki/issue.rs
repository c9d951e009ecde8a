//! Generates keys and certificates. An RSA key takes 0.1 s or more.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane_component::certificate::{Authority, Form, Leaf, Usage};
use control_plane_component::facts::url;
use control_plane_component::render::KUBECONFIG;
use control_plane_component::{Context, Objects};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};
use serde_json::{Value, json};

use super::Error;
use super::bundles::trusted;
use super::desired::AUTHORITY_VALIDITY;
use super::plan::{BUNDLE, NEXT, PREVIOUS, SIGNER, SIGNING_KEY, Step, signer_hash};
use crate::components::kubeconfig::{Kubeconfig, base64};

/// Certificates are backdated to tolerate clock skew.
const CLOCK_SKEW: Duration = Duration::from_mins(5);

type Data = BTreeMap<String, Vec<u8>>;

/// Returns the Secret of an authority after a step.
pub(super) fn authority(
    authority: &Authority,
    step: Step,
    existing: &Objects,
    now: Timestamp,
) -> Result<Value, Error> {
    let (certificate, key) = authority.form.pair();
    let mut data: Data = existing
        .secret(authority.secret)
        .and_then(|secret| secret.data)
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key, value.0))
        .collect();
    match step {
        Step::Keep => {}
        Step::Issue => {
            let (pem, private) = self_signed(authority, now)?;
            data = Data::from([(certificate.clone(), pem), (key.clone(), private)]);
        }
        Step::Introduce => {
            let (pem, private) = self_signed(authority, now)?;
            data.insert(NEXT.0.to_owned(), pem);
            data.insert(NEXT.1.to_owned(), private);
        }
        Step::Promote => {
            let next = (data.remove(NEXT.0), data.remove(NEXT.1));
            if let (Some(pem), Some(private)) = next {
                data.insert(key.clone(), private);
                if let Some(old) = data.insert(certificate.clone(), pem) {
                    data.insert(PREVIOUS.to_owned(), old);
                }
            }
        }
        Step::Forget => {
            data.remove(PREVIOUS);
        }
    }
    complete(authority.form, &mut data);
    Ok(secret(
        authority.secret,
        authority.form,
        &data,
        &BTreeMap::new(),
        None,
    ))
}

/// Adds copies under other keys, and the bundle of trusted certificates.
fn complete(form: Form, data: &mut Data) {
    let (certificate, key) = form.pair();
    let get = |data: &Data, key: &str| data.get(key).cloned().unwrap_or_default();
    if form == Form::Authority {
        let copies = [
            ("tls.crt", get(data, &certificate)),
            ("tls.key", get(data, &key)),
        ];
        data.extend(copies.map(|(key, value)| (key.to_owned(), value)));
    }
    let trusted = [
        get(data, &certificate),
        get(data, NEXT.0),
        get(data, PREVIOUS),
    ];
    data.insert(BUNDLE.to_owned(), trusted.concat());
}

/// Returns the Secret of a certificate; `None` while its authority does not exist.
pub(super) fn leaf(
    leaf: &Leaf,
    existing: &Objects,
    context: &Context<'_>,
    now: Timestamp,
) -> Result<Option<Value>, Error> {
    let value = |key: &str| existing.secret_value(leaf.authority, key);
    let signer = value("ca.crt")
        .zip(value("ca.key"))
        .or_else(|| value("tls.crt").zip(value("tls.key")));
    let Some((authority, key)) = signer else {
        return Ok(None);
    };
    let issuer = issuer(leaf.authority, &authority, &key)?;
    let (pem, private) = signed(leaf, &issuer, now)?;
    let bundle = trusted(leaf.authority, existing);
    let (certificate, key) = leaf.form.pair();
    let mut data = Data::from([(certificate, pem.clone()), (key, private.clone())]);
    if leaf.form != Form::Tls {
        data.insert("ca.crt".to_owned(), bundle.into_bytes());
    }
    let mut label = None;
    if let Some(server) = server(leaf.form, context) {
        let root = trusted("root-ca", existing);
        let kubeconfig = Kubeconfig {
            server,
            authority: root.as_bytes(),
            user: (&pem, &private),
        };
        data.insert("kubeconfig".to_owned(), kubeconfig.text().into_bytes());
        label = Some("local");
    }
    let signer = (SIGNER.to_owned(), signer_hash(leaf.authority, existing));
    let annotations = BTreeMap::from([signer]);
    Ok(Some(secret(
        &leaf.secret,
        leaf.form,
        &data,
        &annotations,
        label,
    )))
}

/// The API server of the kubeconfig in a Secret, if it has one.
fn server(form: Form, context: &Context<'_>) -> Option<String> {
    match form {
        Form::Kubeconfig => Some(context.api_service_url()),
        Form::LocalKubeconfig => Some(url("localhost", context.api_pod_port())),
        Form::Authority | Form::Tls | Form::Leaf | Form::Named(_) => None,
    }
}

/// Returns the Secret with the signing key of service account tokens.
pub(super) fn signing_key() -> Result<Value, Error> {
    let (name, private, public) = SIGNING_KEY;
    let pair = key_pair(name)?;
    let data = Data::from([
        (private.to_owned(), pair.serialize_pem().into_bytes()),
        (public.to_owned(), pair.public_key_pem().into_bytes()),
    ]);
    Ok(secret(name, Form::Leaf, &data, &BTreeMap::new(), None))
}

fn secret(
    name: &str,
    form: Form,
    data: &Data,
    annotations: &BTreeMap<String, String>,
    kubeconfig: Option<&str>,
) -> Value {
    let data: BTreeMap<_, _> = data
        .iter()
        .map(|(key, value)| (key, base64(value)))
        .collect();
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "annotations": annotations },
        "type": form.secret_type(),
        "data": data,
    });
    if let Some(kind) = kubeconfig {
        object["metadata"]["labels"] = json!({ KUBECONFIG: kind });
    }
    object
}

fn key_pair(secret: &str) -> Result<KeyPair, Error> {
    KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).map_err(failed(secret))
}

fn failed(secret: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let secret = secret.to_owned();
    move |source| Error::Certificate { secret, source }
}

fn issuer(secret: &str, certificate: &[u8], key: &[u8]) -> Result<Issuer<'static, KeyPair>, Error> {
    let failed = |source| Error::Authority {
        secret: secret.to_owned(),
        source,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = KeyPair::from_pem(&text(key)).map_err(failed)?;
    Issuer::from_ca_cert_pem(&text(certificate), pair).map_err(failed)
}

fn self_signed(authority: &Authority, now: Timestamp) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let pair = key_pair(authority.secret)?;
    let mut params = params(now, AUTHORITY_VALIDITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationalUnitName, authority.unit);
    subject.push(DnType::CommonName, authority.common_name);
    params.distinguished_name = subject;
    let certificate = params
        .self_signed(&pair)
        .map_err(failed(authority.secret))?;
    Ok((
        certificate.pem().into_bytes(),
        pair.serialize_pem().into_bytes(),
    ))
}

fn signed(
    leaf: &Leaf,
    issuer: &Issuer<'static, KeyPair>,
    now: Timestamp,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let pair = key_pair(&leaf.secret)?;
    let names = CertificateParams::new(leaf.names.clone()).map_err(failed(&leaf.secret))?;
    let mut params = params(now, leaf.validity);
    params.subject_alt_names = names.subject_alt_names;
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = match leaf.usage {
        Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
        Usage::Both => vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ],
        Usage::Unrestricted => Vec::new(),
    };
    let mut subject = DistinguishedName::new();
    for group in &leaf.organizations {
        subject.push(organization(subject.iter().count()), group.as_str());
    }
    subject.push(DnType::CommonName, leaf.common_name.as_str());
    params.distinguished_name = subject;
    let certificate = params
        .signed_by(&pair, issuer)
        .map_err(failed(&leaf.secret))?;
    Ok((
        certificate.pem().into_bytes(),
        pair.serialize_pem().into_bytes(),
    ))
}

/// The library accepts one value per attribute type; further groups use the same type by its OID.
fn organization(index: usize) -> DnType {
    if index == 0 {
        DnType::OrganizationName
    } else {
        DnType::CustomDnType(vec![2, 5, 4, 10])
    }
}

/// Common parameters of all certificates.
fn params(now: Timestamp, validity: Duration) -> CertificateParams {
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = epoch + Duration::from_secs(seconds);
    let mut params = CertificateParams::default();
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + validity;
    params.key_usages = vec![
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}
