//! The ConfigMaps of a known control plane, field by field.

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::facts::{Endpoint, Infra};
use control_plane_component::node_config::configuration_hash;
use control_plane_component::settings::Settings;
use control_plane_component::{Objects, Predicates, Release};

use super::*;

const BASE: &str =
    include_str!("../../../control-plane-component/tests/data/base/hosted-control-plane.yaml");

/// A control plane that users have configured.
fn hosted_control_plane() -> Value {
    let mut hcp: Value = serde_saphyr::from_str(BASE).unwrap();
    let spec = &mut hcp["spec"];
    spec["infraID"] = json!("hcp-x1y2z");
    spec["dns"] = json!({ "baseDomain": "example.com" });
    spec["platform"]["aws"]["region"] = json!("us-east-1");
    spec["platform"]["aws"]["endpointAccess"] = json!("Public");
    spec["infrastructureAvailabilityPolicy"] = json!("HighlyAvailable");
    spec["networking"] = json!({
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{ "cidr": "10.132.0.0/14" }],
        "serviceNetwork": [{ "cidr": "172.31.0.0/16" }],
        "machineNetwork": [{ "cidr": "10.0.0.0/16" }],
    });
    spec["configuration"] = json!({
        "apiServer": { "tlsSecurityProfile": { "type": "Modern" } },
        "image": { "registrySources": { "blockedRegistries": ["bad.example.com"] } },
        "proxy": { "httpsProxy": "http://proxy.example.com:3128", "noProxy": "internal.example.com" },
    });
    hcp
}

fn authority(name: &str, key: &str, text: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { key: text } })
}

/// The objects that each control plane has.
fn inputs() -> Vec<Value> {
    vec![
        authority("root-ca", "ca.crt", "root CA"),
        authority("kubelet-client-ca", "ca.crt", "kubelet CA"),
    ]
}

fn built(hcp: Value, objects: Vec<Value>) -> Desired {
    let hcp: HostedControlPlane = serde_json::from_value(hcp).unwrap();
    let objects: Objects = objects.into_iter().collect();
    let api = Endpoint {
        host: "api.example.com".to_owned(),
        port: 6443,
    };
    let infra = Infra {
        api,
        ..Infra::default()
    };
    let (release, settings) = (Release::default(), Settings::new("own"));
    desired(&Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &infra,
        objects: &objects,
        settings: &settings,
        predicates: Predicates::Evaluated,
    })
}

fn find<'a>(desired: &'a Desired, name: &str) -> Option<&'a Value> {
    let mut objects = desired.objects.iter();
    objects.find(|object| object["metadata"]["name"] == name)
}

/// A file as an object.
fn parsed(desired: &Desired, name: &str, key: &str) -> Value {
    let text = find(desired, name).unwrap()["data"][key].as_str();
    serde_saphyr::from_str(text.unwrap_or_default()).unwrap()
}

/// An object of the hosted cluster's configuration.
fn config(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": { "name": "cluster" }, "spec": spec,
    })
}

#[test]
fn files_have_the_configuration_of_the_hosted_cluster() {
    let desired = built(hosted_control_plane(), inputs());
    assert!(desired.problem.is_none(), "{:?}", desired.problem);
    let mut infrastructure = config(
        "Infrastructure",
        &json!({ "platformSpec": { "type": "AWS", "aws": {} } }),
    );
    infrastructure["status"] = json!({
        "apiServerURL": "https://api.example.com:6443",
        "apiServerInternalURI": "https://api.example.com:6443",
        "etcdDiscoveryDomain": "hcp.example.com",
        "infrastructureName": "hcp-x1y2z",
        "controlPlaneTopology": "External",
        "infrastructureTopology": "HighlyAvailable",
        "platform": "AWS",
        "platformStatus": { "type": "AWS", "aws": { "region": "us-east-1", "resourceTags": [] } },
    });
    let pods = json!([{ "cidr": "10.132.0.0/14", "hostPrefix": 23 }]);
    let mut network = config(
        "Network",
        &json!({
            "clusterNetwork": pods,
            "networkType": "OVNKubernetes",
            "serviceNetwork": ["172.31.0.0/16"],
        }),
    );
    network["status"] = json!({ "clusterNetwork": pods, "serviceNetwork": ["172.31.0.0/16"] });
    let url = "http://proxy.example.com:3128";
    let mut proxy = config(
        "Proxy",
        &json!({ "httpsProxy": url, "noProxy": "internal.example.com" }),
    );
    proxy["metadata"]["annotations"] =
        json!({ "hypershift.io/hosted-cluster-proxy-config": "true" });
    let exempt = ".cluster.local,.ec2.internal,.local,.svc,10.0.0.0/16,10.132.0.0/14,127.0.0.1,169.254.169.254,\
                  172.31.0.0/16,internal.example.com,localhost";
    proxy["status"] = json!({ "httpsProxy": url, "noProxy": exempt });
    let image = json!({ "registrySources": { "blockedRegistries": ["bad.example.com"] } });
    let pool = |name: &str| {
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigPool",
            "metadata": { "name": name, "labels": { "machineconfiguration.openshift.io/mco-built-in": "" } },
            "spec": {
                "machineConfigSelector": { "matchLabels": { "machineconfiguration.openshift.io/role": "worker" } },
                "nodeSelector": { "matchLabels": { "node-role.kubernetes.io/worker": "" } },
            },
        })
    };
    let install = json!({
        "apiVersion": "v1",
        "controlPlane": { "replicas": 1 },
        "networking": { "machineNetwork": [{ "cidr": "10.0.0.0/16" }] },
        "platform": { "aws": { "region": "us-east-1" } },
    });
    let dns = json!({ "baseDomain": "hcp.example.com" });
    for (file, expected) in [
        ("cluster-dns-02-config.yaml", config("DNS", &dns)),
        ("cluster-infrastructure-02-config.yaml", infrastructure),
        ("cluster-network-02-config.yaml", network),
        ("cluster-proxy-01-config.yaml", proxy),
        ("image-config.yaml", config("Image", &image)),
        ("install-config.yaml", install),
        ("master.machineconfigpool.yaml", pool("master")),
        ("worker.machineconfigpool.yaml", pool("worker")),
    ] {
        assert_eq!(parsed(&desired, NAME, file), expected, "{file}");
    }
    let api_server = parsed(&desired, NAME, "cluster-apiserver-config.yaml");
    assert_eq!(api_server["kind"], "APIServer");
    assert_eq!(api_server["spec"]["tlsSecurityProfile"]["type"], "Modern");
}

#[test]
fn only_these_files_exist() {
    let all = [
        "cluster-apiserver-config.yaml",
        "cluster-dns-02-config.yaml",
        "cluster-infrastructure-02-config.yaml",
        "cluster-network-02-config.yaml",
        "cluster-proxy-01-config.yaml",
        "configuration-hash",
        "image-config.yaml",
        "install-config.yaml",
        "master.machineconfigpool.yaml",
        "root-ca.crt",
        "signer-ca.crt",
        "worker.machineconfigpool.yaml",
    ];
    let user = "user-ca-bundle-config.yaml";
    for (bundle, has_bundle) in [(None, false), (Some(""), false), (Some("user CA"), true)] {
        let bundle =
            bundle.map(|text| authority("trusted-ca-bundle-managed", "ca-bundle.crt", text));
        let objects = inputs().into_iter().chain(bundle).collect();
        let hcp = hosted_control_plane();
        let typed: HostedControlPlane = serde_json::from_value(hcp.clone()).unwrap();
        let desired = built(hcp, objects);
        let map = find(&desired, NAME).unwrap();
        let mut files: Vec<_> = map["data"].as_object().unwrap().keys().collect();
        files.sort();
        let mut expected: Vec<_> = all.into_iter().chain(has_bundle.then_some(user)).collect();
        expected.sort_unstable();
        assert_eq!(files, expected);
        assert_eq!(map["data"]["root-ca.crt"], "root CA");
        assert_eq!(map["data"]["signer-ca.crt"], "kubelet CA");
        let hash = configuration_hash(typed.spec.configuration.as_ref());
        assert_eq!(map["data"]["configuration-hash"], hash);
        assert_eq!(map["metadata"]["ownerReferences"][0]["name"], "hcp");
        if has_bundle {
            let bundle = parsed(&desired, NAME, user);
            assert_eq!(bundle["data"], json!({ "ca-bundle.crt": "user CA" }));
            assert_eq!(bundle["kind"], "ConfigMap");
        }
    }
}

/// Without a proxy, its status is empty. The addresses of a private cluster are those in its own network.
#[test]
fn a_private_cluster_without_configuration_has_all_files() {
    let hcp: Value = serde_saphyr::from_str(BASE).unwrap();
    let desired = built(hcp, inputs());
    let proxy = parsed(&desired, NAME, "cluster-proxy-01-config.yaml");
    assert_eq!((&proxy["spec"], &proxy["status"]), (&json!({}), &json!({})));
    let infrastructure = parsed(&desired, NAME, "cluster-infrastructure-02-config.yaml");
    let url = &infrastructure["status"]["apiServerInternalURI"];
    assert_eq!(url, "https://api.hcp.hypershift.local:6443");
    let network = parsed(&desired, NAME, "cluster-network-02-config.yaml");
    assert_eq!(network.get("status"), None);
}

#[test]
fn settings_of_the_cluster_are_manifests() {
    let machine_config = |name: &str, spec: Value| {
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": { "name": name, "labels": { "machineconfiguration.openshift.io/role": "worker" } },
            "spec": spec,
        })
    };
    let ignition = json!({ "version": "3.2.0" });
    let mut hcp = hosted_control_plane();
    let bare = built(hcp.clone(), inputs());
    let mirrors = "ignition-config-40-image-content-source";
    assert_eq!(find(&bare, mirrors), None);
    assert_eq!(bare.deletions, [Identity::new("v1", "ConfigMap", mirrors)]);
    hcp["spec"]["fips"] = json!(true);
    hcp["spec"]["sshKey"] = json!({ "name": "ssh-key" });
    let source = json!({ "source": "registry.example.com/a", "mirrors": ["images.example.com/a"] });
    hcp["spec"]["imageContentSources"] = json!([source]);
    let key = crate::components::kubeconfig::base64(b"ssh-ed25519 AAAA user\n");
    let key = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "ssh-key" }, "data": { "id_rsa.pub": key },
    });
    let full = built(hcp, inputs().into_iter().chain([key]).collect());
    assert!(full.deletions.is_empty(), "{:?}", full.deletions);
    let user = |fields: Value| json!({ "config": { "ignition": ignition, "passwd": { "users": [fields] } } });
    let fips = |is_on: bool| json!({ "config": { "ignition": ignition }, "fips": is_on });
    let ssh = json!({ "name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA user"] });
    for (desired, map, expected) in [
        (
            &bare,
            "ignition-config-fips",
            machine_config("30-fips", fips(false)),
        ),
        (
            &full,
            "ignition-config-fips",
            machine_config("30-fips", fips(true)),
        ),
        (
            &bare,
            "ignition-config-worker-ssh",
            machine_config("99-worker-ssh", user(json!({ "name": "core" }))),
        ),
        (
            &full,
            "ignition-config-worker-ssh",
            machine_config("99-worker-ssh", user(ssh)),
        ),
        (
            &full,
            mirrors,
            config(
                "ImageDigestMirrorSet",
                &json!({ "imageDigestMirrors": [source] }),
            ),
        ),
    ] {
        assert_eq!(parsed(desired, map, "config"), expected, "{map}");
        let labels = &find(desired, map).unwrap()["metadata"]["labels"];
        let label = json!({ "hypershift.openshift.io/core-ignition-config": "true" });
        assert_eq!(*labels, label, "{map}");
    }
}

/// Nodes would be replaced by ones without the key, and again by ones with it.
#[test]
fn the_ssh_key_is_waited_for() {
    let mut hcp = hosted_control_plane();
    hcp["spec"]["sshKey"] = json!({ "name": "ssh-key" });
    let desired = built(hcp, inputs());
    let problem = desired.problem.as_ref().unwrap().to_string();
    assert_eq!(problem, "waiting for Secret ssh-key with key id_rsa.pub");
    assert_eq!(find(&desired, "ignition-config-worker-ssh"), None);
    assert!(find(&desired, NAME).is_some());
}

#[test]
fn problems_of_one_config_map_do_not_affect_the_others() {
    let mut invalid = hosted_control_plane();
    invalid["spec"]["networking"]["clusterNetwork"][0]["cidr"] = json!("10.132.0.0");
    for (hcp, objects, expected) in [
        (
            hosted_control_plane(),
            vec![authority("root-ca", "ca.crt", "root CA")],
            "waiting for ConfigMap kubelet-client-ca with key ca.crt",
        ),
        (
            invalid,
            inputs(),
            "invalid value \"10.132.0.0\" for spec.networking: ",
        ),
    ] {
        let desired = built(hcp, objects);
        let problem = desired.problem.as_ref().unwrap().to_string();
        assert!(problem.starts_with(expected), "{problem}");
        assert_eq!(find(&desired, NAME), None);
        assert!(find(&desired, "ignition-config-fips").is_some());
    }
}

/// Tokens of NodePools have this hash of the same configuration: the tests of `token_fields` in hypershift-operator have
/// the same value. With another one, the ignition server would make no payload.
#[test]
fn the_configuration_has_the_hash_of_tokens() {
    let mut hcp = hosted_control_plane();
    hcp["spec"]["configuration"] = json!({ "proxy": {
        "httpProxy": "http://proxy.example.com:3128",
        "noProxy": ".example.com",
        "readinessEndpoints": ["https://example.com"],
        "trustedCA": { "name": "proxy-ca" },
    } });
    let desired = built(hcp, inputs());
    let map = find(&desired, NAME).unwrap();
    assert_eq!(map["data"]["configuration-hash"], "ea9a9489");
}
