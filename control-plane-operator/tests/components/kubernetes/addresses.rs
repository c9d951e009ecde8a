//! How inputs change addresses, certificates and pods of the API server.

use serde_json::{Value, json};

use super::{
    CONFIG, NETWORKING, SERVER, SERVER_PODS, annotation, configuration, networks, platform,
};
use crate::openshift_apis::{Row, check};

#[test]
pub(crate) fn api_server_addresses_follow_the_networks() {
    let v4 = networks(&["10.1.0.0/16", "10.2.0.0/16"], &["172.30.0.0/16"]);
    let v6 = networks(&["fd01::/48"], &["fd02::/112"]);
    let dual = networks(&["10.1.0.0/16"], &["172.30.0.0/16", "fd02::/112"]);
    let port = [(
        NETWORKING,
        json!({ "networkType": "Other", "apiServer": { "port": 7443, "advertiseAddress": "10.9.8.7" } }),
    )];
    let bind = "/data/config.json/servingInfo/bindAddress";
    let advertised = argument!("advertise-address");
    let ranges = "/data/config.json/admission/pluginConfig/network.openshift.io~1RestrictedEndpointsAdmission/configuration/restrictedCIDRs";
    let services = "/data/config.json/servicesSubnet";
    let container_port = container!("kube-apiserver", "/ports/client/containerPort");
    let rows: [Row<'_>; 16] = [
        ("default port", &[], CONFIG, bind, json!("0.0.0.0:6443")),
        ("port", &port, CONFIG, bind, json!("0.0.0.0:7443")),
        (
            "port of pods",
            &port,
            SERVER_PODS,
            container_port,
            json!(7443),
        ),
        ("IPv6", &v6, CONFIG, bind, json!("[::]:6443")),
        (
            "IPv6",
            &v6,
            CONFIG,
            "/data/config.json/servingInfo/bindNetwork",
            json!("tcp6"),
        ),
        (
            "default address",
            &[],
            CONFIG,
            advertised,
            json!(["172.20.0.1"]),
        ),
        ("address", &port, CONFIG, advertised, json!(["10.9.8.7"])),
        ("address, IPv6", &v6, CONFIG, advertised, json!(["fd00::1"])),
        (
            "address, IPv4 first",
            &dual,
            CONFIG,
            advertised,
            json!(["172.20.0.1"]),
        ),
        (
            "endpoints: networks of pods, then of Services",
            &v4,
            CONFIG,
            ranges,
            json!(["10.1.0.0/16", "10.2.0.0/16", "172.30.0.0/16"]),
        ),
        (
            "Services",
            &dual,
            CONFIG,
            services,
            json!("172.30.0.0/16,fd02::/112"),
        ),
        ("no Services", &[], CONFIG, services, json!("")),
        (
            "node ports",
            &configuration("network", &json!({ "serviceNodePortRange": "30000-30100" })),
            CONFIG,
            argument!("service-node-port-range"),
            json!(["30000-30100"]),
        ),
        (
            "default node ports",
            &[],
            CONFIG,
            argument!("service-node-port-range"),
            json!(["30000-32767"]),
        ),
        (
            "etcd of the user",
            &[(
                "/spec/etcd",
                json!({ "managementType": "Unmanaged", "unmanaged": {
                "endpoint": "https://etcd.example.com:2379", "tls": { "clientSecret": { "name": "c" } },
            } }),
            )],
            CONFIG,
            argument!("etcd-servers"),
            json!(["https://etcd.example.com:2379"]),
        ),
        (
            "etcd",
            &[],
            CONFIG,
            argument!("etcd-servers"),
            json!(["https://etcd-client.hcp-namespace.svc:2379"]),
        ),
    ];
    check(SERVER, &rows);
}

#[test]
pub(crate) fn api_server_pods_follow_the_hosted_control_plane() {
    let single = [("/spec/controllerAvailabilityPolicy", json!("SingleReplica"))];
    let several = [(
        "/spec/controllerAvailabilityPolicy",
        json!("HighlyAvailable"),
    )];
    let unmanaged = [(
        "/spec/etcd",
        json!({ "managementType": "Unmanaged", "unmanaged": {
        "endpoint": "https://etcd.example.com:2379", "tls": { "clientSecret": { "name": "c" } },
    } }),
    )];
    let mut dedicated = several.to_vec();
    dedicated.extend(annotation(
        "hypershift.openshift.io/topology",
        "dedicated-request-serving-components",
    ));
    let modern = configuration(
        "apiServer",
        &json!({ "tlsSecurityProfile": { "type": "Modern" } }),
    );
    let wait = "/spec/template/spec/initContainers/wait-for-etcd/name";
    let webhook = container!("aws-pod-identity-webhook", "/name");
    let secret = "Secret/aws-pod-identity-webhook-kubeconfig";
    let gate = configuration(
        "featureGate",
        &json!({ "featureSet": "TechPreviewNoUpgrade" }),
    );
    let yaml = "/spec/template/spec/initContainers/init-bootstrap-render/env/FEATURE_GATE_YAML/value/spec/featureSet";
    let version =
        "/spec/template/spec/initContainers/init-bootstrap-render/env/PAYLOAD_VERSION/value";
    let counted = "/spec/template/spec/containers/konnectivity-server/args";
    let rows: [Row<'_>; 11] = [
        (
            "TLS of the tunnel",
            &modern,
            SERVER_PODS,
            &format!("{counted}/--tls-min-version"),
            json!("--tls-min-version=VersionTLS13"),
        ),
        (
            "ciphers of the tunnel",
            &modern,
            SERVER_PODS,
            &format!("{counted}/--cipher-suites"),
            Value::Null,
        ),
        (
            "etcd is waited for",
            &[],
            SERVER_PODS,
            wait,
            json!("wait-for-etcd"),
        ),
        (
            "etcd of the user is not",
            &unmanaged,
            SERVER_PODS,
            wait,
            Value::Null,
        ),
        (
            "webhook on AWS",
            &[],
            SERVER_PODS,
            webhook,
            json!("aws-pod-identity-webhook"),
        ),
        (
            "webhook elsewhere",
            &platform("None"),
            SERVER_PODS,
            webhook,
            Value::Null,
        ),
        (
            "its kubeconfig on AWS",
            &[],
            secret,
            "/metadata/name",
            json!("aws-pod-identity-webhook-kubeconfig"),
        ),
        (
            "its kubeconfig elsewhere",
            &platform("None"),
            secret,
            "/metadata/name",
            Value::Null,
        ),
        (
            "features are rendered",
            &gate,
            SERVER_PODS,
            yaml,
            json!("TechPreviewNoUpgrade"),
        ),
        (
            "default features are rendered",
            &[],
            SERVER_PODS,
            yaml,
            Value::Null,
        ),
        (
            "of the release of nodes",
            &[],
            SERVER_PODS,
            version,
            json!("4.18.0"),
        ),
    ];
    check(SERVER, &rows);
    let after = |changes: &[(&str, Value)], expected: &str| {
        let object = crate::variants::object(
            &crate::variants::changed(changes),
            SERVER,
            "Deployment",
            SERVER,
        );
        let containers = object["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap()
            .clone();
        let server = containers
            .iter()
            .find(|it| it["name"] == "konnectivity-server")
            .unwrap();
        let args = server["args"].as_array().unwrap();
        let at = args.iter().position(|it| it == "--server-count").unwrap();
        assert_eq!(args[at + 1], expected, "{changes:?}");
    };
    after(&single, "1");
    after(&several, "3");
    after(&dedicated, "2");
}

#[test]
pub(crate) fn certificates_of_users_are_served_first() {
    let named = configuration(
        "apiServer",
        &json!({ "servingCerts": { "namedCertificates": [
        { "names": ["a.example.com"], "servingCertificate": { "name": "cert-a" } },
        { "names": ["b.example.com"], "servingCertificate": { "name": "cert-b" } },
    ] } }),
    );
    let served = "/data/config.json/servingInfo/namedCertificates";
    let volume = |number: usize| {
        format!("/spec/template/spec/volumes/named-certificate-{number}/secret/secretName")
    };
    let private = "/etc/kubernetes/certs/server-private/tls.crt";
    let rows: [Row<'_>; 6] = [
        (
            "the first",
            &named,
            CONFIG,
            &format!("{served}/0/names"),
            json!(["a.example.com"]),
        ),
        (
            "the second",
            &named,
            CONFIG,
            &format!("{served}/1/names"),
            json!(["b.example.com"]),
        ),
        (
            "the cluster's",
            &named,
            CONFIG,
            &format!("{served}/2/certFile"),
            json!(private),
        ),
        (
            "none",
            &[],
            CONFIG,
            &format!("{served}/0/certFile"),
            json!(private),
        ),
        (
            "Secret of the first",
            &named,
            SERVER_PODS,
            &volume(0),
            json!("cert-a"),
        ),
        (
            "Secret of the second",
            &named,
            SERVER_PODS,
            &volume(1),
            json!("cert-b"),
        ),
    ];
    check(SERVER, &rows);
}
