//! Bodies are built by a small encoder, with field numbers written out a second time on purpose.

mod openapi;
mod properties;

use super::*;

// === encoder ===

fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = value;
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap());
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [
        varint(field << 3 | 2),
        varint(content.len() as u64),
        content.to_vec(),
    ]
    .concat()
}

fn message(field: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    bytes(field, fields.concat())
}

/// Nested messages around one field, the outermost first.
fn path(fields: &[u64], innermost: &str) -> Vec<u8> {
    let (last, above) = fields.split_last().unwrap();
    above
        .iter()
        .rev()
        .fold(bytes(*last, innermost), |content, field| {
            bytes(*field, content)
        })
}

fn body(api_version: &str, kind: &str, object: &[Vec<u8>]) -> Vec<u8> {
    let envelope = [
        message(1, &[bytes(1, api_version), bytes(2, kind)]),
        message(2, object),
        bytes(3, ""),
        bytes(4, ""),
    ];
    [MAGIC.to_vec(), envelope.concat()].concat()
}

fn owned_by(api_version: &str) -> Vec<u8> {
    let owner = message(
        13,
        &[
            bytes(1, "Cluster"),
            bytes(3, "c"),
            bytes(4, "uid"),
            bytes(5, api_version),
            number(6, 1),
        ],
    );
    let manager = message(
        17,
        &[
            bytes(1, "manager"),
            bytes(3, api_version),
            bytes(7, bytes(1, "{\"f:cluster.x-k8s.io\":{}}")),
        ],
    );
    message(
        1,
        &[
            bytes(1, "name"),
            bytes(
                11,
                [
                    bytes(1, "cluster.x-k8s.io/v1beta2"),
                    bytes(2, "cluster.x-k8s.io"),
                ]
                .concat(),
            ),
            owner.clone(),
            bytes(14, "addons.cluster.x-k8s.io"),
            manager,
            owner,
        ],
    )
}

// === the swap ===

const STANDARD: &str = "cluster.x-k8s.io";
const PRIVATE: &str = "cluster.hypershift.openshift.io";

fn swapped(group: &str, resource: &str, input: &[u8]) -> Result<(Vec<u8>, Counts), Refusal> {
    let mut out = b"before".to_vec();
    let result = swap(&Rules::default(), group, resource, input, &mut out);
    assert!(out.starts_with(b"before"));
    let out = out.split_off(6);
    assert!(
        result.is_ok() || out.is_empty(),
        "a refused body leaves nothing behind"
    );
    result.map(|counts| (out, counts))
}

/// Check R06.
#[test]
fn protobuf_secrets_have_owners_and_managers_translated() {
    let secret = |group: &str| {
        body(
            "v1",
            "Secret",
            &[
                owned_by(&format!("{group}/v1beta2")),
                message(
                    2,
                    &[bytes(1, "value"), bytes(2, "cluster.x-k8s.io/v1beta2")],
                ),
                bytes(3, "cluster.x-k8s.io/secret"),
                number(99, 7),
            ],
        )
    };
    let (out, counts) = swapped("", "secrets", &secret(STANDARD)).unwrap();
    assert_eq!(out, secret(PRIVATE));
    assert_eq!(
        counts,
        Counts {
            to_private: 3,
            to_standard: 0,
            leaks: 0,
        }
    );
    let (back, counts) = swapped("", "secrets", &out).unwrap();
    assert_eq!(back, secret(STANDARD));
    assert_eq!(
        counts,
        Counts {
            to_private: 0,
            to_standard: 3,
            leaks: 0,
        }
    );
}

struct Row {
    group: &'static str,
    resource: &'static str,
    api_version: &'static str,
    kind: &'static str,
    /// Field numbers from the object down, and the value.
    places: &'static [(&'static [u64], &'static str)],
}

const ROWS: &[Row] = &[
    Row {
        group: "",
        resource: "events",
        api_version: "v1",
        kind: "Event",
        places: &[(&[2, 5], "{}/v1beta2"), (&[13, 5], "{}/v1beta2")],
    },
    Row {
        group: "events.k8s.io",
        resource: "events",
        api_version: "events.k8s.io/v1",
        kind: "Event",
        places: &[(&[8, 5], "{}/v1beta2"), (&[9, 5], "{}/v1beta2")],
    },
    Row {
        group: "authorization.k8s.io",
        resource: "selfsubjectaccessreviews",
        api_version: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        places: &[(&[2, 1, 3], "{}"), (&[2, 1, 7], "machines.{}")],
    },
    Row {
        group: "rbac.authorization.k8s.io",
        resource: "clusterroles",
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        places: &[(&[2, 2], "{}"), (&[2, 4], "machines.{}")],
    },
    Row {
        group: "apiextensions.k8s.io",
        resource: "customresourcedefinitions",
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        places: &[(&[1, 1], "machines.{}"), (&[2, 1], "{}")],
    },
    Row {
        group: "apiregistration.k8s.io",
        resource: "apiservices",
        api_version: "apiregistration.k8s.io/v1",
        kind: "APIService",
        places: &[(&[1, 1], "v1beta2.{}"), (&[2, 2], "{}")],
    },
    Row {
        group: "autoscaling",
        resource: "horizontalpodautoscalers",
        api_version: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        places: &[
            (&[2, 1, 3], "{}/v1beta2"),
            (&[2, 4, 2, 1, 3], "{}/v1beta2"),
            (&[3, 5, 2, 3, 3], "{}/v1beta2"),
        ],
    },
    Row {
        group: "",
        resource: "persistentvolumeclaims",
        api_version: "v1",
        kind: "PersistentVolumeClaim",
        places: &[(&[2, 7, 1], "{}"), (&[2, 8, 1], "{}")],
    },
    Row {
        group: "",
        resource: "resourcequotas",
        api_version: "v1",
        kind: "ResourceQuota",
        places: &[
            (&[2, 1, 1], "count/machines.{}"),
            (&[3, 1, 1], "count/machines.{}"),
            (&[3, 2, 1], "count/machines.{}"),
        ],
    },
    Row {
        group: "apps",
        resource: "statefulsets",
        api_version: "apps/v1",
        kind: "StatefulSet",
        places: &[(&[2, 3, 1, 13, 5], "{}/v1beta2"), (&[2, 4, 2, 8, 1], "{}")],
    },
    Row {
        group: "apps",
        resource: "daemonsets",
        api_version: "apps/v1",
        kind: "DaemonSet",
        places: &[(&[2, 2, 1, 13, 5], "{}/v1beta2")],
    },
    Row {
        group: "apps",
        resource: "deployments",
        api_version: "apps/v1",
        kind: "Deployment",
        places: &[(&[2, 3, 1, 13, 5], "{}/v1beta2")],
    },
    Row {
        group: "batch",
        resource: "cronjobs",
        api_version: "batch/v1",
        kind: "CronJob",
        places: &[
            (&[2, 5, 1, 13, 5], "{}/v1beta2"),
            (&[2, 5, 2, 6, 1, 13, 5], "{}/v1beta2"),
        ],
    },
    Row {
        group: "",
        resource: "pods",
        api_version: "v1",
        kind: "Pod",
        places: &[
            (&[2, 1, 2, 29, 1, 1, 13, 5], "{}/v1beta2"),
            (&[2, 1, 2, 29, 1, 2, 7, 1], "{}"),
        ],
    },
    Row {
        group: "",
        resource: "persistentvolumes",
        api_version: "v1",
        kind: "PersistentVolume",
        places: &[(&[2, 4, 5], "{}/v1beta2")],
    },
    Row {
        group: "networking.k8s.io",
        resource: "ingresses",
        api_version: "networking.k8s.io/v1",
        kind: "Ingress",
        places: &[(&[2, 1, 3, 1], "{}"), (&[2, 3, 2, 1, 1, 2, 3, 1], "{}")],
    },
    Row {
        group: "flowcontrol.apiserver.k8s.io",
        resource: "flowschemas",
        api_version: "flowcontrol.apiserver.k8s.io/v1",
        kind: "FlowSchema",
        places: &[(&[2, 4, 2, 2], "{}")],
    },
    Row {
        group: "admissionregistration.k8s.io",
        resource: "validatingadmissionpolicies",
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        places: &[
            (&[2, 1, 1], "{}/v1beta2"),
            (&[2, 2, 3, 1], "machines.{}"),
            (&[2, 2, 3, 2, 2, 1], "{}"),
            (&[2, 2, 4, 2, 2, 1], "{}"),
        ],
    },
    Row {
        group: "admissionregistration.k8s.io",
        resource: "validatingadmissionpolicybindings",
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicyBinding",
        places: &[(&[2, 3, 3, 2, 2, 1], "{}")],
    },
    Row {
        group: "admissionregistration.k8s.io",
        resource: "validatingwebhookconfigurations",
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingWebhookConfiguration",
        places: &[(&[2, 3, 2, 1], "{}")],
    },
    Row {
        group: "storagemigration.k8s.io",
        resource: "storageversionmigrations",
        api_version: "storagemigration.k8s.io/v1beta1",
        kind: "StorageVersionMigration",
        places: &[(&[2, 1, 1], "{}")],
    },
    Row {
        group: "coordination.k8s.io",
        resource: "leases",
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        places: &[],
    },
];

#[test]
fn every_protobuf_field_with_a_group_is_translated() {
    for row in ROWS {
        let object = |group: &str| {
            let place = |&(fields, text): &(&[u64], &str)| path(fields, &text.replace("{}", group));
            let fields: Vec<_> = row
                .places
                .iter()
                .map(place)
                .chain([owned_by(&format!("{group}/v1beta2"))])
                .collect();
            body(row.api_version, row.kind, &fields)
        };
        let (out, counts) = swapped(row.group, row.resource, &object(STANDARD)).unwrap();
        assert_eq!(out, object(PRIVATE), "{} {}", row.api_version, row.kind);
        assert_eq!(
            counts.to_private,
            row.places.len() as u64 + 3,
            "{} {}",
            row.api_version,
            row.kind
        );
        assert_eq!(
            swapped(row.group, row.resource, &out).unwrap().0,
            object(STANDARD)
        );
    }
}

#[test]
fn the_protobuf_envelope_is_translated() {
    let options = |group: &str| {
        let preconditions = message(2, &[bytes(1, "uid")]);
        body(
            &format!("{group}/v1beta2"),
            "DeleteOptions",
            &[number(1, 30), preconditions, bytes(4, "Background")],
        )
    };
    let (out, _) = swapped("", "secrets", &options(STANDARD)).unwrap();
    assert_eq!(out, options(PRIVATE));
    let unchanged = body("v1", "DeleteOptions", &[bytes(4, "Background")]);
    assert_eq!(
        swapped("", "secrets", &unchanged).unwrap(),
        (unchanged, Counts::default())
    );
}

#[test]
fn protobuf_without_a_type_gets_its_kind_from_the_url() {
    let event = |group: &str| body("", "", &[path(&[2, 5], &format!("{group}/v1"))]);
    assert_eq!(
        swapped("", "events", &event(STANDARD)).unwrap().0,
        event(PRIVATE)
    );
}

#[test]
fn metadata_of_unknown_protobuf_kinds_is_translated() {
    let object = |group: &str| {
        let rest = message(
            2,
            &[
                bytes(1, "gateway.networking.x-k8s.io/v1"),
                bytes(2, "cluster.x-k8s.io/cluster-name"),
            ],
        );
        body(
            "new.k8s.io/v1",
            "New",
            &[owned_by(&format!("{group}/v1beta2")), rest],
        )
    };
    assert_eq!(
        swapped("new.k8s.io", "news", &object(STANDARD)).unwrap().0,
        object(PRIVATE)
    );
}

#[test]
fn unknown_protobuf_kinds_with_group_names_are_rejected() {
    let names = [
        STANDARD.to_owned(),
        format!("{PRIVATE}/v1beta2"),
        format!("ipam.{STANDARD}/v1"),
    ];
    for name in &names {
        for object in [
            vec![bytes(7, name)],
            vec![path(&[3, 200, 4], name)],
            vec![number(5, 1), path(&[2, 1], name)],
        ] {
            let input = body("new.k8s.io/v1", "New", &object);
            assert_eq!(
                swapped("new.k8s.io", "news", &input).unwrap_err().code,
                415,
                "{name}"
            );
            // Another version of a known kind, and a subresource's own kind, are unknown as well.
            let input = body("apps/v9", "Deployment", &object);
            assert_eq!(
                swapped("apps", "deployments", &input).unwrap_err().code,
                415,
                "{name}"
            );
            let input = body("autoscaling/v1", "Scale", &object);
            assert_eq!(
                swapped("apps", "deployments", &input).unwrap_err().code,
                415,
                "{name}"
            );
        }
    }
}

#[test]
fn group_names_after_two_byte_lengths_are_found() {
    let group = format!("{}.example.com", ["a"; 80].join("."));
    let pair = format!("{group}=private.example.com").parse().unwrap();
    let rules = Rules::new(api::group::GroupTable::empty().with(pair).unwrap());
    let input = body(
        "new.k8s.io/v1",
        "New",
        &[path(&[2, 1], &format!("{group}/v1"))],
    );
    assert_eq!(
        swap(&rules, "new.k8s.io", "news", &input, &mut Vec::new())
            .unwrap_err()
            .code,
        415
    );
}

#[test]
fn overlong_protobuf_lengths_round_trip() {
    let rules = Rules::default();
    // 24 in two bytes, and the lengths around it in their plain form.
    let long = [
        vec![5 << 3 | 2, 0x98, 0x00],
        b"cluster.x-k8s.io/v1beta2".to_vec(),
    ]
    .concat();
    let input = body("v1", "Event", &[bytes(2, long)]);
    let (out, counts) = swapped("", "events", &input).unwrap();
    assert_eq!(counts.to_private, 1);
    assert_ne!(out, input);
    assert_eq!(swapped("", "events", &out).unwrap().0, input);
    // All ten bytes used, and a longer name needs one more.
    let ten = [[0xfe].as_slice(), &[0x80; 8], &[0x00]].concat();
    let label = "v1".to_owned() + &"a".repeat(0x7e - 19);
    let full = [
        vec![5 << 3 | 2],
        ten,
        format!("cluster.x-k8s.io/{label}").into_bytes(),
    ]
    .concat();
    let mut out = Vec::new();
    let refusal = swap(
        &rules,
        "",
        "events",
        &body("v1", "Event", &[bytes(2, full)]),
        &mut out,
    )
    .unwrap_err();
    assert_eq!((refusal.code, out.len()), (400, 0));
}

/// Check R29.
#[test]
fn invalid_protobuf_is_rejected() {
    let good = body("v1", "Secret", &[owned_by("cluster.x-k8s.io/v1beta2")]);
    let with_object = |object: &[u8]| body("v1", "Secret", &[object.to_vec()]);
    for (name, input) in [
        ("no magic", good[1..].to_vec()),
        ("empty", Vec::new()),
        ("cut in the envelope", good[..good.len() - 1].to_vec()),
        ("two objects", [good.clone(), message(2, &[])].concat()),
        ("two types", [good.clone(), message(1, &[])].concat()),
        (
            "object is a number",
            [MAGIC.to_vec(), number(2, 7)].concat(),
        ),
        (
            "content type of its own",
            [MAGIC.to_vec(), bytes(4, "application/json")].concat(),
        ),
        (
            "content encoding",
            [MAGIC.to_vec(), bytes(3, "gzip")].concat(),
        ),
        ("field zero", with_object(&bytes(0, "x"))),
        (
            "field number past 32 bits",
            with_object(&bytes((1 << 32) + 1, "x")),
        ),
        ("group", with_object(&varint(7 << 3 | 3))),
        (
            "number past 64 bits",
            with_object(&[
                0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02,
            ]),
        ),
        ("number of eleven bytes", with_object(&[0x80; 11])),
        ("length past the end", with_object(&[0x0a, 0x05, 0x00])),
        (
            "huge length",
            with_object(&[vec![0x0a], varint(u64::MAX)].concat()),
        ),
        ("metadata cut", with_object(&bytes(1, [0x0a]))),
        ("fixed number cut", with_object(&[0x09, 0x00])),
    ] {
        let refusal = swapped("", "secrets", &input).unwrap_err();
        assert!(matches!(refusal.code, 400 | 415), "{name}: {refusal:?}");
    }
}

#[test]
fn truncated_protobuf_is_rejected_or_valid() {
    let good = body(
        "v1",
        "Event",
        &[
            owned_by("cluster.x-k8s.io/v1beta2"),
            path(&[2, 5], "cluster.x-k8s.io/v1"),
        ],
    );
    for end in 0..good.len() {
        if let Ok((out, _)) = swapped("", "events", &good[..end]) {
            assert_eq!(
                swapped("", "events", &out).unwrap().0,
                good[..end],
                "cut at {end}"
            );
        }
    }
}
