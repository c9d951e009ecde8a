//! How inputs change what machines reach, and the components that manage them.

use control_plane_operator::render::Input;
use serde_json::{Value, json};

use super::{IGNITION, MANAGER, SERVER, annotation, configuration, networks, platform, with_proxy};
use crate::openshift_apis::{Row, check, evaluate};

#[test]
pub(crate) fn ignition_servers_follow_the_hosted_control_plane() {
    let pods = "Deployment/ignition-server";
    let bundle = [(
        "/spec/additionalTrustBundle",
        json!({ "name": "user-ca-bundle" }),
    )];
    let volume = "/spec/template/spec/volumes/trusted-ca/configMap";
    let published = |strategy: Value| {
        [(
            "/spec/services",
            json!([{ "service": "Ignition", "servicePublishingStrategy": strategy }]),
        )]
    };
    let by_port =
        published(json!({ "type": "NodePort", "nodePort": { "address": "a", "port": 30123 } }));
    let access = |access: &str| [("/spec/platform/aws/endpointAccess", json!(access))];
    let (public, both) = (access("Public"), access("PublicAndPrivate"));
    let gate = configuration(
        "featureGate",
        &json!({ "featureSet": "TechPreviewNoUpgrade" }),
    );
    let route = "Route/ignition-server";
    let proxy = "Service/ignition-server-proxy";
    let label = "/metadata/labels/hypershift.openshift.io~1internal-route";
    let rows: [Row<'_>; 14] = [
        (
            "trust bundle",
            &bundle,
            pods,
            &format!("{volume}/name"),
            json!("user-ca-bundle"),
        ),
        (
            "trust bundle",
            &bundle,
            pods,
            &format!("{volume}/items/0/path"),
            json!("user-ca-bundle.pem"),
        ),
        (
            "trust bundle",
            &bundle,
            pods,
            container!("ignition-server", "/volumeMounts/trusted-ca/mountPath"),
            json!("/etc/pki/tls/certs"),
        ),
        (
            "no trust bundle",
            &[],
            pods,
            &format!("{volume}/name"),
            Value::Null,
        ),
        (
            "platform",
            &[],
            pods,
            container!("ignition-server", "/args/AWS"),
            json!("AWS"),
        ),
        (
            "platform",
            &platform("Agent"),
            pods,
            container!("ignition-server", "/args/Agent"),
            json!("Agent"),
        ),
        (
            "features",
            &gate,
            pods,
            "/spec/template/spec/initContainers/fetch-feature-gate/env/FEATURE_GATE_YAML/value/spec/featureSet",
            json!("TechPreviewNoUpgrade"),
        ),
        (
            "certificate on IBM Cloud",
            &platform("IBMCloud"),
            pods,
            "/spec/template/spec/volumes/serving-cert/secret/secretName",
            json!("ignition-server-serving-cert"),
        ),
        (
            "certificate elsewhere",
            &[],
            pods,
            "/spec/template/spec/volumes/serving-cert/secret/secretName",
            json!("ignition-server"),
        ),
        (
            "Route of a private cluster",
            &[],
            route,
            "/spec/host",
            json!("ignition-server.apps.hcp.hypershift.local"),
        ),
        (
            "Route of a cluster that is public, too",
            &both,
            route,
            "/spec/host",
            json!("ignition-server.apps.hcp.hypershift.local"),
        ),
        (
            "label of a private cluster",
            &[],
            route,
            label,
            json!("true"),
        ),
        (
            "label of a public cluster",
            &public,
            route,
            label,
            Value::Null,
        ),
        ("no Route", &by_port, route, "/kind", Value::Null),
    ];
    check(IGNITION, &rows);
    check(
        "ignition-server-proxy",
        &[
            ("port", &by_port, proxy, "/spec/type", json!("NodePort")),
            (
                "port",
                &by_port,
                proxy,
                "/spec/ports/0/nodePort",
                json!(30123),
            ),
            ("Route", &[], proxy, "/spec/type", json!("ClusterIP")),
            (
                "trust bundle",
                &bundle,
                "Deployment/ignition-server-proxy",
                &format!("{volume}/name"),
                json!("user-ca-bundle"),
            ),
            (
                "none on IBM Cloud",
                &platform("IBMCloud"),
                "Deployment/ignition-server-proxy",
                "/kind",
                Value::Null,
            ),
        ],
    );
}

#[test]
pub(crate) fn featuregate_generator_follows_the_hosted_control_plane() {
    let gate = configuration(
        "featureGate",
        &json!({ "featureSet": "TechPreviewNoUpgrade" }),
    );
    let custom = configuration(
        "featureGate",
        &json!({
            "featureSet": "CustomNoUpgrade", "customNoUpgrade": { "enabled": ["A"] },
        }),
    );
    let id = "Job/featuregate-generator";
    let env = "/spec/template/spec/initContainers/render-feature-gates/env";
    let yaml = format!("{env}/FEATURE_GATE_YAML/value/spec");
    let version = format!("{env}/PAYLOAD_VERSION/value");
    check(
        "featuregate-generator",
        &[
            ("none", &[], id, &format!("{yaml}/featureSet"), Value::Null),
            (
                "a set",
                &gate,
                id,
                &format!("{yaml}/featureSet"),
                json!("TechPreviewNoUpgrade"),
            ),
            (
                "single features",
                &custom,
                id,
                &format!("{yaml}/customNoUpgrade/enabled"),
                json!(["A"]),
            ),
            ("the version of nodes", &[], id, &version, json!("4.18.0")),
            (
                "the version of nodes",
                &[],
                id,
                "/spec/template/spec/containers/apply/env/PAYLOAD_VERSION/value",
                json!("4.18.0"),
            ),
        ],
    );
}

#[test]
pub(crate) fn config_operator_follows_the_hosted_control_plane() {
    let operator = "hosted-cluster-config-operator";
    let id = "Deployment/hosted-cluster-config-operator";
    let words = "/spec/template/spec/containers/hosted-cluster-config-operator/command";
    let env = |name: &str| format!("/spec/template/spec/containers/{operator}/env/{name}/value");
    check(
        operator,
        &[
            ("platform", &[], id, &format!("{words}/AWS"), json!("AWS")),
            (
                "platform",
                &platform("None"),
                id,
                &format!("{words}/None"),
                json!("None"),
            ),
            (
                "version",
                &[],
                id,
                &env("OPENSHIFT_RELEASE_VERSION"),
                json!("4.18.0"),
            ),
            (
                "version of Kubernetes",
                &[],
                id,
                &env("KUBERNETES_VERSION"),
                json!("1.30.1"),
            ),
            (
                "release",
                &[],
                id,
                &env("OPERATE_ON_RELEASE_IMAGE"),
                json!("registry.example.com/release:4.16.10-x86_64"),
            ),
            (
                "no managed service",
                &[],
                id,
                &env("MANAGED_SERVICE"),
                Value::Null,
            ),
        ],
    );
    let managed = |input: &mut Input| input.settings.managed_service = Some("ARO-HCP".to_owned());
    evaluate(
        operator,
        managed,
        &[(
            "managed service",
            &[],
            id,
            &env("MANAGED_SERVICE"),
            json!("ARO-HCP"),
        )],
    );
}

#[test]
pub(crate) fn machine_approver_and_autoscaler_follow_the_hosted_control_plane() {
    let own =
        |name: &str, value: &str| annotation(&format!("hypershift.openshift.io/{name}"), value);
    let approver = "Deployment/machine-approver";
    let modern = configuration(
        "apiServer",
        &json!({ "tlsSecurityProfile": { "type": "Modern" } }),
    );
    let flag = container!("0", "/args");
    let kubeconfig = |input: &mut Input| {
        input.hosted_control_plane.status = serde_json::from_value(json!({
            "ready": true, "initialized": true,
            "kubeConfig": { "name": "admin-kubeconfig", "key": "kubeconfig" },
        }))
        .unwrap();
    };
    evaluate(
        "machine-approver",
        kubeconfig,
        &[
            (
                "namespace",
                &[],
                approver,
                &format!("{flag}/--machine-namespace"),
                json!("--machine-namespace=hcp-namespace"),
            ),
            (
                "TLS",
                &modern,
                approver,
                &format!("{flag}/--tls-min-version"),
                json!("--tls-min-version=VersionTLS13"),
            ),
            (
                "no machines",
                &own("disable-machine-management", "true"),
                approver,
                "/kind",
                Value::Null,
            ),
        ],
    );
    let autoscaler = "Deployment/cluster-autoscaler";
    evaluate(
        "cluster-autoscaler",
        kubeconfig,
        &[
            (
                "off",
                &own("disable-cluster-autoscaler", "true"),
                autoscaler,
                "/spec/replicas",
                json!(0),
            ),
            ("on", &[], autoscaler, "/spec/replicas", json!(1)),
            (
                "image",
                &own("cluster-autoscaler-image", "i.example.com/a"),
                autoscaler,
                "/spec/template/spec/containers/0/image",
                json!("i.example.com/a"),
            ),
            (
                "no machines",
                &own("disable-machine-management", "true"),
                autoscaler,
                "/kind",
                Value::Null,
            ),
        ],
    );
}

#[test]
pub(crate) fn servers_use_the_proxy_of_the_operator() {
    let url = json!("http://proxy.example.com:3128");
    let networks = networks(&["10.1.0.0/16"], &["172.30.0.0/16"]);
    for (component, container, exempt) in [
        (
            SERVER,
            SERVER,
            ".internal,10.1.0.0/16,172.30.0.0/16,kube-apiserver",
        ),
        (MANAGER, MANAGER, ".internal,kube-apiserver"),
        (
            "hosted-cluster-config-operator",
            "hosted-cluster-config-operator",
            ".internal,kube-apiserver",
        ),
        (IGNITION, IGNITION, ".internal,kube-apiserver"),
        (
            "ignition-server-proxy",
            "haproxy",
            ".internal,kube-apiserver",
        ),
    ] {
        let id = format!("Deployment/{component}");
        let value =
            |name: &str| format!("/spec/template/spec/containers/{container}/env/{name}/value");
        evaluate(
            component,
            with_proxy,
            &[
                ("URL", &networks, &id, &value("HTTPS_PROXY"), url.clone()),
                ("exempt", &networks, &id, &value("NO_PROXY"), json!(exempt)),
                ("unset", &networks, &id, &value("HTTP_PROXY"), Value::Null),
            ],
        );
        check(
            component,
            &[(
                "no proxy",
                &networks,
                &id,
                &value("HTTPS_PROXY"),
                Value::Null,
            )],
        );
    }
}

#[test]
fn autoscaler_ignores_labels_of_its_cloud() {
    let labels = |name: &str| -> Vec<String> {
        let input = crate::variants::changed(&platform(name));
        let object = crate::variants::object(
            &input,
            "cluster-autoscaler",
            "Deployment",
            "cluster-autoscaler",
        );
        let args = object["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        let args = args.as_array().unwrap().iter();
        let labels = args.filter_map(|it| it.as_str()?.strip_prefix("--balancing-ignore-label="));
        labels.map(str::to_owned).collect()
    };
    for (name, expected, own) in [
        ("AWS", 9, "topology.k8s.aws/zone-id"),
        ("Azure", 8, "kubernetes.azure.com/agentpool"),
        ("None", 6, "topology.ebs.csi.aws.com/zone"),
    ] {
        let found = labels(name);
        assert_eq!(found.len(), expected, "{name}: {found:?}");
        assert!(found.iter().any(|it| it == own), "{name}: {found:?}");
    }
}
