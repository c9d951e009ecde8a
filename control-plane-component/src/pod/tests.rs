//! Pod settings by component declaration and hosted control plane.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::asset::Asset;
use crate::facts::Infra;
use crate::proxy::OwnProxy;
use crate::render::render;
use crate::settings::Settings;
use crate::{CapiUse, Konnectivity, Minter, Predicates, Prober, Release, TokenFrom};

static DEPLOYMENT: [Asset; 1] = [Asset::new(
    "deployment.yaml",
    "
apiVersion: apps/v1
kind: Deployment
metadata: { name: router }
spec:
  selector: { matchLabels: { app: a } }
  template:
    metadata: { labels: { app: a } }
    spec:
      containers: [{ name: main, image: registry.example.com/a }]
      volumes:
        - { name: config, configMap: { name: c } }
        - { name: kubeconfig, secret: { secretName: k } }
",
)];

/// Renders the workload of a component for a changed hosted control plane.
fn rendered(
    component: impl FnOnce(Component) -> Component,
    changes: &[(&str, Value)],
    objects: Vec<Value>,
) -> Value {
    attempt(component, changes, objects).unwrap()
}

fn attempt(
    component: impl FnOnce(Component) -> Component,
    changes: &[(&str, Value)],
    objects: Vec<Value>,
) -> Result<Value> {
    let text = include_str!("../../tests/data/base/hosted-control-plane.yaml");
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    for (path, value) in changes {
        let (field, key) = path.split_once('/').unwrap();
        hcp[field][key] = value.clone();
    }
    let hcp = serde_json::from_value(hcp).unwrap();
    let settings = Settings {
        own_image: "registry.example.com/own".to_owned(),
        capi_types: api::group::CapiTypes::Private,
        capi_proxy_image: Some("registry.example.com/proxy".to_owned()),
        uid: Some(1001),
        proxy: OwnProxy {
            https: Some("http://management.example.com:3128".to_owned()),
            ..OwnProxy::default()
        },
        ..Settings::new("own")
    };
    let release = Release::default().with_overrides(&settings.own_image, &BTreeMap::new());
    let objects = Objects::from_iter(objects);
    let context = Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &Infra::default(),
        objects: &objects,
        settings: &settings,
        predicates: Predicates::Evaluated,
    };
    let component = component(Component::new("router", &DEPLOYMENT).api_critical());
    Ok(render(&component, &context)?.workload.unwrap())
}

fn pod(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]
}

#[test]
fn replicas_and_strategy_follow_availability_policy() {
    let dedicated =
        json!({ "hypershift.openshift.io/topology": "dedicated-request-serving-components" });
    let debugged = json!({ "hypershift.openshift.io/debug-deployments": "x,router" });
    for (name, changes, replicas, strategy) in [
        (
            "highly available",
            vec![],
            3,
            json!({ "maxSurge": 0, "maxUnavailable": 1 }),
        ),
        (
            "single",
            vec![("spec/controllerAvailabilityPolicy", json!("SingleReplica"))],
            1,
            Value::Null,
        ),
        (
            "dedicated",
            vec![("metadata/annotations", dedicated)],
            2,
            json!({ "maxSurge": 1, "maxUnavailable": 1 }),
        ),
        (
            "debugged",
            vec![("metadata/annotations", debugged)],
            0,
            Value::Null,
        ),
    ] {
        let workload = rendered(Component::request_serving, &changes, Vec::new());
        assert_eq!(workload["spec"]["replicas"], replicas, "{name}");
        assert_eq!(
            workload["spec"]["strategy"]["rollingUpdate"], strategy,
            "{name}"
        );
    }
}

#[test]
fn changed_config_rolls_out_new_pods() {
    let config = |value: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "a": value } });
    let hash = |objects| {
        let workload = rendered(|component| component, &[], objects);
        workload["spec"]["template"]["metadata"]["annotations"][config_hash::KEY].clone()
    };
    assert_ne!(hash(vec![config("1")]), hash(vec![config("2")]));
    let mut other = config("2");
    other["metadata"]["name"] = json!("not-mounted");
    assert_eq!(hash(vec![config("1")]), hash(vec![config("1"), other]));
}

#[test]
fn pods_are_hardened_and_mount_tokens_only_if_needed() {
    for (management, expected) in [(false, false), (true, true)] {
        let workload = rendered(
            |component| {
                if management {
                    component.management_api()
                } else {
                    component
                }
            },
            &[],
            Vec::new(),
        );
        let pod = pod(&workload);
        assert_eq!(pod["automountServiceAccountToken"], expected);
        assert_eq!(pod["securityContext"]["runAsUser"], 1001);
        let violations = support::testing::restricted_violations(pod);
        assert_eq!(violations, Vec::<String>::new());
        assert_eq!(
            pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
            true
        );
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/tmp");
        assert_eq!(pod["volumes"][1]["secret"]["defaultMode"], 0o640);
    }
}

#[test]
fn containers_on_google_cloud_do_not_run_as_root() {
    for (platform, expected) in [("None", Value::Null), ("GCP", json!(true))] {
        let platform = json!({ "type": platform });
        let workload = rendered(|it| it, &[("spec/platform", platform)], Vec::new());
        let security = &pod(&workload)["containers"][0]["securityContext"];
        assert_eq!(security["runAsNonRoot"], expected, "{security}");
        assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    }
}

#[test]
fn live_resource_requests_are_kept_unless_overridden() {
    let mut live: Value = serde_saphyr::from_str(DEPLOYMENT[0].yaml).unwrap();
    live["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": "7" } });
    let cpu = |changes: &[(&str, Value)], live: Vec<Value>| {
        let workload = rendered(|component| component, changes, live);
        pod(&workload)["containers"][0]["resources"]["requests"]["cpu"].clone()
    };
    assert_eq!(cpu(&[], vec![live.clone()]), "7");
    let key = "resource-request-override.hypershift.openshift.io/router.main";
    let overrides = [("metadata/annotations", json!({ key: "cpu=9,memory=1Gi" }))];
    assert_eq!(cpu(&overrides, vec![live]), "9");
}

/// A component with all helper containers.
fn with_helpers() -> Value {
    rendered(
        |component| {
            component
                .management_api()
                .uses_capi(CapiUse::Proxied)
                .prober(Prober::default())
                .minter(Minter {
                    for_: crate::declaration::TokenFor::Cloud,
                    namespace: "kube-system",
                    name: "a",
                    kubeconfig: TokenFrom::Volume("kubeconfig"),
                    oneshot: false,
                })
        },
        &[],
        Vec::new(),
    )
}

#[test]
fn init_containers_are_added_in_order() {
    let workload = with_helpers();
    let names: Vec<_> = pod(&workload)["initContainers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "kube-apiserver-proxy",
            "availability-prober",
            "cloud-token-minter"
        ]
    );
}

/// Check F03: the hosted API server of a new cluster starts much later than the pod.
#[test]
fn token_minters_are_not_restarted_while_they_wait() {
    let workload = with_helpers();
    let minter = &pod(&workload)["initContainers"][2];
    assert_eq!(minter["name"], "cloud-token-minter");
    assert_eq!(minter["restartPolicy"], "Always");
    let probe = &minter["startupProbe"];
    let seconds = |field: &str| probe[field].as_i64().unwrap();
    assert!(seconds("periodSeconds") * seconds("failureThreshold") >= 1800);
}

#[test]
fn invalid_annotations_are_errors_with_a_hint() {
    let key = "resource-request-override.hypershift.openshift.io/router";
    let overrides = [("metadata/annotations", json!({ key: "much" }))];
    let error = attempt(|component| component, &overrides, Vec::new()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(key) && text.contains("write "), "{text}");
}

/// Check T10: users cannot set labels that NetworkPolicies and Services select by, and those of the manifest stay.
#[test]
fn user_labels_cannot_override_selector_labels() {
    let labels = json!({
        "app": "kube-apiserver",
        "hypershift.openshift.io/need-management-kas-access": "true",
        "hypershift.openshift.io/hosted-control-plane": "clusters-other",
        "kubevirt.io": "virt-launcher",
        "example.com/team": "red",
    });
    let deployment = rendered(|it| it, &[("spec/labels", labels)], Vec::new());
    let found = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(found["app"], "a");
    assert_eq!(found["example.com/team"], "red");
    assert_ne!(
        found["hypershift.openshift.io/hosted-control-plane"],
        "clusters-other"
    );
    assert_eq!(
        found["hypershift.openshift.io/need-management-kas-access"],
        Value::Null
    );
    assert_eq!(found["kubevirt.io"], Value::Null);
}

/// The proxies of a component with all of them, by container name; the last flag of each is the component's own.
fn konnectivity_proxies(changes: &[(&str, Value)]) -> Value {
    let proxies = Konnectivity {
        kubeconfig_volume: None,
        https: Some(&[Konnectivity::DIRECT_TO_CLOUD]),
        socks5: Some(&["--disable-resolver=true"]),
    };
    let workload = rendered(|it| it.konnectivity(proxies), changes, Vec::new());
    pod(&workload).clone()
}

fn arguments(container: &Value) -> Vec<&str> {
    let arguments = container["args"].as_array().unwrap().iter();
    arguments
        .map(|argument| argument.as_str().unwrap())
        .collect()
}

#[test]
fn konnectivity_proxies_get_the_guest_proxy_and_address_family() {
    let url = "http://proxy.example.com:3128";
    let networking = |services: Value| {
        json!({
            "clusterNetwork": [{ "cidr": "10.132.0.0/14" }], "serviceNetwork": services,
            "machineNetwork": [{ "cidr": "10.0.0.0/16" }, { "cidr": "0.0.0.0/0" }],
        })
    };
    let ipv4 = networking(json!([{ "cidr": "172.31.0.0/16" }]));
    let both = networking(json!([{ "cidr": "172.31.0.0/16" }, { "cidr": "fd02::/112" }]));
    let proxy = |fields: Value| json!({ "proxy": fields });
    let direct = "--connect-directly-to-cloud-apis=true";
    let exempt = "..compute.internal,.cluster.local,.hypershift.local,.svc,10.0.0.0/16,10.132.0.0/14,127.0.0.1,\
                  169.254.169.254,172.31.0.0/16,a.example.com,localhost";
    let unset = "..compute.internal,.cluster.local,.hypershift.local,.svc,10.132.0.0/14,127.0.0.1,\
                 169.254.169.254,localhost";
    for (changes, https, socks5) in [
        (vec![], vec![direct], vec![]),
        (
            vec![("spec/networking", ipv4.clone())],
            vec![direct, "--prefer-ipv4=true"],
            vec!["--prefer-ipv4=true"],
        ),
        (vec![("spec/networking", both)], vec![direct], vec![]),
        (
            vec![("spec/configuration", proxy(json!({})))],
            vec![
                "--http-proxy",
                "",
                "--https-proxy",
                "",
                "--no-proxy",
                unset,
                direct,
            ],
            vec![],
        ),
        (
            vec![
                ("spec/networking", ipv4),
                (
                    "spec/configuration",
                    proxy(json!({ "httpsProxy": url, "noProxy": "a.example.com, ,localhost" })),
                ),
            ],
            vec![
                "--http-proxy",
                "",
                "--https-proxy",
                url,
                "--no-proxy",
                exempt,
                direct,
                "--prefer-ipv4=true",
            ],
            vec!["--prefer-ipv4=true"],
        ),
    ] {
        let pod = konnectivity_proxies(&changes);
        let expected: Vec<_> = ["run"].into_iter().chain(https).collect();
        assert_eq!(arguments(&pod["containers"][1]), expected, "{changes:?}");
        let expected: Vec<_> = ["run", "--disable-resolver=true"]
            .into_iter()
            .chain(socks5)
            .collect();
        assert_eq!(arguments(&pod["containers"][2]), expected, "{changes:?}");
    }
}

#[test]
fn only_konnectivity_proxies_with_cloud_access_get_the_own_proxy() {
    let pod = konnectivity_proxies(&[]);
    let variables = |container: &Value| {
        let variables = container["env"].as_array().unwrap().iter();
        let names = variables.map(|variable| variable["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let expected = ["KUBECONFIG", "HTTPS_PROXY", "NO_PROXY"];
    assert_eq!(variables(&pod["containers"][1]), expected);
    assert_eq!(variables(&pod["containers"][2]), ["KUBECONFIG"]);
}

#[test]
fn konnectivity_proxies_trust_ca_certificates_of_users() {
    let volume = |pod: &Value| {
        let mut volumes = pod["volumes"].as_array().unwrap().iter();
        let volume = volumes.find(|volume| volume["name"] == "proxy-additional-trust-bundle");
        volume.cloned().unwrap_or_default()
    };
    assert_eq!(volume(&konnectivity_proxies(&[])), Value::Null);
    let pod = konnectivity_proxies(&[
        ("spec/additionalTrustBundle", json!({ "name": "user-ca" })),
        (
            "spec/configuration",
            json!({ "proxy": { "trustedCA": { "name": "proxy-ca" } } }),
        ),
    ]);
    let source = |name: &str, path: &str| {
        let items = [json!({ "key": "ca-bundle.crt", "path": path })];
        json!({ "configMap": { "name": name, "items": items } })
    };
    let expected = json!({ "defaultMode": 420, "sources": [
        source("user-ca", "additional-ca-bundle.pem"),
        source("proxy-ca", "proxy-trusted-ca.pem"),
    ] });
    assert_eq!(volume(&pod)["projected"], expected);
    for container in [1, 2] {
        let mounts = pod["containers"][container]["volumeMounts"].as_array();
        let mounts = mounts.unwrap().iter().filter_map(|mount| {
            let file = mount["subPath"].as_str()?;
            let path = mount["mountPath"].as_str()?;
            assert_eq!(path, format!("/etc/pki/tls/certs/{file}"));
            Some(file)
        });
        let files: Vec<_> = mounts.collect();
        assert_eq!(files, ["additional-ca-bundle.pem", "proxy-trusted-ca.pem"]);
    }
}
