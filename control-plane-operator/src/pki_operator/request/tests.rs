use k8s_openapi::ByteString;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use super::super::fixtures::at;
use super::super::issue;
use super::*;

const NAMESPACE: &str = "clusters-a";

/// A request of a user, before it is changed.
struct Made {
    subject: Vec<(DnType, &'static str)>,
    names: Vec<SanType>,
    object: Value,
}

fn made() -> Made {
    Made {
        subject: vec![
            (DnType::OrganizationName, "system:masters"),
            (DnType::CommonName, "system:customer-break-glass:alice"),
        ],
        names: Vec::new(),
        object: json!({
            "metadata": { "name": "alice", "creationTimestamp": at(1).to_string() },
            "spec": {
                "request": "",
                "signerName": "hypershift.openshift.io/clusters-a.customer-break-glass",
                "usages": ["client auth", "digital signature", "key encipherment"],
            },
            "status": { "conditions": [{ "type": "Approved", "status": "True" }] },
        }),
    }
}

impl Made {
    fn request(self) -> CertificateSigningRequest {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (type_, value) in self.subject {
            params.distinguished_name.push(type_, value);
        }
        params.subject_alt_names = self.names;
        let key = KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let mut request: CertificateSigningRequest = serde_json::from_value(self.object).unwrap();
        if request.spec.request.0.is_empty() {
            request.spec.request = ByteString(pem.into_bytes());
        }
        request
    }
}

fn outcome(made: Made) -> String {
    match decide(&made.request(), NAMESPACE, Some(at(0))) {
        Decision::Ignore(reason) => format!("ignore: {reason}"),
        Decision::Approve(class) => format!("approve: {}", class.name()),
        Decision::Sign(class, _) => format!("sign: {}", class.name()),
        Decision::Refuse(_, problem) => format!("refuse: {problem}"),
    }
}

type Row = (&'static str, fn(&mut Made), &'static str);

const SIGNED: &str = "sign: customer-break-glass";

#[test]
fn requests_are_decided_by_their_state() {
    let conditions = |types: &[&str]| -> Value {
        types
            .iter()
            .map(|type_| json!({ "type": type_, "status": "True" }))
            .collect()
    };
    for (types, certificate, expected) in [
        (&[][..], None, "approve: customer-break-glass"),
        (&["Approved"], None, SIGNED),
        (&["Denied"], None, "ignore: it is denied"),
        (&["Approved", "Denied"], None, "ignore: it is denied"),
        (&["Approved", "Failed"], None, "ignore: it has failed"),
        (&["Approved"], Some("AAAA"), "ignore: it is signed"),
        (&["Approved"], Some(""), SIGNED),
    ] {
        let mut made = made();
        made.object["status"] =
            json!({ "conditions": conditions(types), "certificate": certificate });
        assert_eq!(outcome(made), expected, "{types:?} {certificate:?}");
    }
}

/// T15: an operator acts on the signers of its own hosted cluster only.
#[test]
fn requests_for_other_signers_are_ignored() {
    for (signer, expected) in [
        (
            "hypershift.openshift.io/clusters-a.sre-break-glass",
            "refuse: the common name \"system:customer-break-glass:alice\" does not begin with \"system:sre-break-glass:\"",
        ),
        (
            "hypershift.openshift.io/clusters-b.customer-break-glass",
            "ignore: it is for another signer",
        ),
        (
            "hypershift.openshift.io/clusters-a.customer-break-glass.x",
            "ignore: it is for another signer",
        ),
        (
            "hypershift.openshift.io/x.clusters-a.customer-break-glass",
            "ignore: it is for another signer",
        ),
        (
            "example.com/clusters-a.customer-break-glass",
            "ignore: it is for another signer",
        ),
        (
            "kubernetes.io/kube-apiserver-client",
            "ignore: it is for another signer",
        ),
        ("", "ignore: it is for another signer"),
    ] {
        let mut made = made();
        made.object["spec"]["signerName"] = signer.into();
        assert_eq!(outcome(made), expected, "{signer}");
    }
}

#[test]
fn requests_are_validated() {
    let rows: [Row; 17] = [
        ("as it is", |_| {}, SIGNED),
        ("no group", |it| drop(it.subject.remove(0)), SIGNED),
        (
            "two groups",
            |it| {
                it.subject
                    .push((DnType::CustomDnType(vec![2, 5, 4, 10]), "others"))
            },
            SIGNED,
        ),
        (
            "a serial number",
            |it| {
                it.subject
                    .push((DnType::CustomDnType(vec![2, 5, 4, 5]), "1"))
            },
            SIGNED,
        ),
        (
            "no common name",
            |it| drop(it.subject.pop()),
            "refuse: the subject must have exactly one common name",
        ),
        (
            "two common names",
            |it| {
                it.subject.push((
                    DnType::CustomDnType(vec![2, 5, 4, 3]),
                    "system:customer-break-glass:b",
                ))
            },
            "refuse: the subject must have exactly one common name",
        ),
        (
            "an administrator's name",
            |it| it.subject[1].1 = "system:admin",
            "refuse: the common name \"system:admin\" does not begin with \"system:customer-break-glass:\"",
        ),
        (
            "the prefix of another class",
            |it| it.subject[1].1 = "system:sre-break-glass:alice",
            "refuse: the common name \"system:sre-break-glass:alice\" does not begin with \"system:customer-break-glass:\"",
        ),
        (
            "the prefix without its end",
            |it| it.subject[1].1 = "system:customer-break-glass-alice",
            "refuse: the common name \"system:customer-break-glass-alice\" does not begin with \"system:customer-break-glass:\"",
        ),
        (
            "a DNS name",
            |it| {
                it.names
                    .push(SanType::DnsName("a.example.com".try_into().unwrap()))
            },
            "refuse: the request has subject alternative names, which are not allowed",
        ),
        (
            "an address",
            |it| it.names.push(SanType::IpAddress([10, 0, 0, 1].into())),
            "refuse: the request has subject alternative names, which are not allowed",
        ),
        (
            "client auth only",
            |it| it.object["spec"]["usages"] = json!(["client auth"]),
            SIGNED,
        ),
        (
            "no client auth",
            |it| it.object["spec"]["usages"] = json!(["digital signature"]),
            "refuse: usage \"client auth\" is required",
        ),
        (
            "server auth",
            |it| it.object["spec"]["usages"] = json!(["client auth", "server auth"]),
            "refuse: usage \"server auth\" is not allowed",
        ),
        (
            "any usage",
            |it| it.object["spec"]["usages"] = json!(["client auth", "any"]),
            "refuse: usage \"any\" is not allowed",
        ),
        (
            "no usages",
            |it| it.object["spec"]["usages"] = Value::Null,
            "refuse: usage \"client auth\" is required",
        ),
        (
            "no PEM",
            |it| it.object["spec"]["request"] = json!("AAAA"),
            "refuse: the request is not PEM",
        ),
    ];
    for (name, change, expected) in rows {
        let mut made = made();
        change(&mut made);
        assert_eq!(outcome(made), expected, "{name}");
    }
}

#[test]
fn requests_that_are_not_der_are_refused() {
    let mut request = made().request();
    let pem = "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n";
    request.spec.request = ByteString(pem.into());
    let refused = Decision::Refuse(Class::Customer, "the request is not valid DER".to_owned());
    assert_eq!(decide(&request, NAMESPACE, None), refused);
}

#[test]
fn old_approvals_do_not_approve_new_requests() {
    let stale = Decision::Ignore("its approval is more than a day older");
    for (approved, created, expected) in [
        (at(0), at(24), Decision::Approve(Class::Customer)),
        (at(5), at(1), Decision::Approve(Class::Customer)),
        (at(0), at(25), stale),
    ] {
        let mut made = made();
        made.object["status"] = json!({});
        made.object["metadata"]["creationTimestamp"] = created.to_string().into();
        assert_eq!(
            decide(&made.request(), NAMESPACE, Some(approved)),
            expected,
            "{approved} {created}"
        );
    }
}

/// Without both times, it is unknown whether the approval is of this request.
#[test]
fn requests_of_unknown_age_are_not_approved() {
    let unknown = Decision::Ignore("its creation time, or that of its approval, is unknown");
    let mut made = made();
    made.object["status"] = json!({});
    let mut request = made.request();
    assert_eq!(decide(&request, NAMESPACE, None), unknown);
    request.metadata.creation_timestamp = None;
    assert_eq!(decide(&request, NAMESPACE, Some(at(0))), unknown);
}

#[test]
fn lifetimes_are_limited() {
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    for (requested, longest, expected) in [
        (None, hour * 36, (hour * 36).saturating_sub(CLOCK_SKEW)),
        (Some(3600), hour * 36, hour),
        (Some(600), hour * 36, minute * 10),
        (Some(1), hour * 36, minute * 10),
        (Some(-1), hour * 36, (hour * 36).saturating_sub(CLOCK_SKEW)),
        (Some(500 * 60), hour * 36, minute * 495),
        (
            Some(500 * 60 - 1),
            hour * 36,
            (minute * 500).saturating_sub(Duration::from_secs(1)),
        ),
        (
            Some(i32::MAX),
            hour * 36,
            (hour * 36).saturating_sub(CLOCK_SKEW),
        ),
        (None, minute, minute),
        (Some(3600), minute, minute),
    ] {
        let mut made = made();
        made.object["spec"]["expirationSeconds"] = requested.into();
        let decision = decide(&made.request(), NAMESPACE, None);
        let Decision::Sign(_, order) = decision else {
            panic!("{decision:?}");
        };
        assert_eq!(
            order.until(longest, at(0)),
            at(0) + expected,
            "{requested:?}"
        );
    }
}

/// The signed certificate has the subject and the key of the request.
#[test]
fn orders_are_signed_as_requested() {
    let mut made = made();
    made.subject
        .push((DnType::CustomDnType(vec![2, 5, 4, 10]), "others"));
    let request = made.request();
    let Decision::Sign(_, order) = decide(&request, NAMESPACE, None) else {
        panic!("not signed");
    };
    let signer = super::super::fixtures::signer(at(0));
    let pem = issue::sign(&signer, &order.subject, &order.key().unwrap(), at(2), at(1)).unwrap();
    let certificate = super::super::x509::Certificate::parse(pem.as_bytes()).unwrap();
    assert!(certificate.is_issued_by(&signer.certificate));
    let (_, parsed) = x509_parser::parse_x509_certificate(&certificate.der).unwrap();
    let groups = parsed.subject().iter_organization();
    let groups: Vec<_> = groups.map(|group| group.as_str().unwrap()).collect();
    assert_eq!(groups, ["system:masters", "others"]);
    assert_eq!(parsed.public_key().raw, order.key);
}
