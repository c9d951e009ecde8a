//! `OpenAPI` v2 documents as protobuf.

use super::*;

/// A document with one path and one definition; its parameter, response, properties and items refer to it.
fn openapi(group: &str, reversed: &str, title: &str, camel: &str) -> Vec<u8> {
    let name = format!("{reversed}.v1beta2.Machine");
    let reference = bytes(1, format!("#/definitions/{name}"));
    let kinds = |yaml: String| {
        let any = message(2, &[bytes(2, yaml)]);
        [bytes(1, "x-kubernetes-group-version-kind"), any].concat()
    };
    let other = [
        bytes(1, "x-kubernetes-action"),
        message(2, &[bytes(2, format!("group: {group}\n"))]),
    ]
    .concat();
    let one = kinds(format!("group: {group}\nkind: Machine\nversion: v1beta2\n"));
    let list = kinds(format!(
        "- group: {group}\n  kind: Machine\n  version: v1beta2\n"
    ));
    let parameter = message(
        8,
        &[message(
            1,
            &[message(1, &[message(5, std::slice::from_ref(&reference))])],
        )],
    );
    let response = message(
        9,
        &[message(
            1,
            &[
                bytes(1, "200"),
                message(
                    2,
                    &[message(
                        1,
                        &[message(2, &[message(1, std::slice::from_ref(&reference))])],
                    )],
                ),
            ],
        )],
    );
    let operation = message(
        2,
        &[
            bytes(1, format!("{camel}_v1beta2")),
            bytes(5, format!("list{title}V1beta2Machine")),
            bytes(3, format!("objects of {group} are the description's")),
            parameter,
            response,
            bytes(13, one),
            bytes(13, &other),
        ],
    );
    let path = message(
        2,
        &[
            bytes(1, format!("/apis/{group}/v1beta2/machines")),
            message(2, &[operation]),
        ],
    );
    let items = message(23, &[message(1, std::slice::from_ref(&reference))]);
    let property = message(1, &[bytes(1, &name), message(2, &[items])]);
    let schema = [
        message(25, &[property]),
        message(21, &[message(1, std::slice::from_ref(&reference))]),
        message(24, &[reference]),
        bytes(31, list),
    ];
    let definition = message(1, &[bytes(1, &name), message(2, &schema)]);
    [
        bytes(1, "2.0"),
        message(8, &[path]),
        message(9, &[definition]),
    ]
    .concat()
}

/// Check F08.
#[test]
fn group_names_in_openapi_protobuf_are_translated() {
    let standard = openapi(
        "cluster.x-k8s.io",
        "io.x-k8s.cluster",
        "ClusterXK8sIo",
        "clusterXK8sIo",
    );
    let rules = Rules::default();
    let mut private = Vec::new();
    let counts = swap_openapi(&rules, &standard, &mut private).unwrap();
    assert_eq!(counts.to_private, 11, "{counts:?}");
    let mut back = Vec::new();
    swap_openapi(&rules, &private, &mut back).unwrap();
    assert_eq!(back, standard);
    let text = String::from_utf8_lossy(&private);
    // The description, another extension, and a property's name.
    assert_eq!(text.matches("cluster.x-k8s.io").count(), 2, "{text}");
    assert_eq!(text.matches("io.x-k8s.cluster").count(), 1, "{text}");
}

#[test]
fn invalid_openapi_protobuf_is_rejected() {
    let rules = Rules::default();
    let refused = |body: &[u8]| {
        let mut out = Vec::new();
        let refusal = swap_openapi(&rules, body, &mut out).unwrap_err();
        assert!(out.is_empty());
        refusal.code
    };
    let schema = (0..2000).fold(Vec::new(), |schema, _| bytes(24, schema));
    let deep = message(9, &[message(1, &[bytes(2, schema)])]);
    assert_eq!(refused(&deep), 413);
    let whole = openapi("cluster.x-k8s.io", "io.x-k8s.cluster", "C", "c");
    assert_eq!(refused(&whole[..whole.len() - 1]), 400);
}
