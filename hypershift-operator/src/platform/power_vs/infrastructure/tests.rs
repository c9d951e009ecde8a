//! What a cluster on Power Virtual Server has, field by field.

use api::group::{self, CapiTypes};
use serde_json::{Value, json};

use super::*;
use crate::facts::fixture;
use crate::platform::tests::{built, serve};

fn facts(types: CapiTypes) -> Facts {
    fixture::facts(fixture::hosted_cluster("powervs"), types)
}

#[test]
fn the_cluster_object_is_ready_and_names_the_workspace() {
    for types in [CapiTypes::Private, CapiTypes::Standard] {
        let mut facts = facts(types);
        let endpoint = json!({ "host": "api.example.com", "port": 6443 });
        serve(&mut facts, &endpoint);
        let clusters = built(&facts, "IBMPowerVSCluster");
        let cluster = &clusters["one"];
        assert_eq!(cluster.resource.group, group::infrastructure(types));
        assert_eq!(cluster.resource.version, "v1beta2");
        assert_eq!(
            cluster.body["spec"],
            json!({
                "controlPlaneEndpoint": endpoint,
                "network": {},
                "serviceInstanceID": "workspace",
            })
        );
        let annotations = &cluster.body["metadata"]["annotations"];
        assert_eq!(annotations[group::MANAGED_BY], "external");
        assert_eq!(cluster.status, Some(json!({ "ready": true })));
        let owner = &built(&facts, "Cluster")["one-x7k2p"].body["spec"]["infrastructureRef"];
        assert_eq!(
            *owner,
            json!({ "apiGroup": group::infrastructure(types), "kind": "IBMPowerVSCluster", "name": "one" })
        );
    }
}

#[test]
fn credentials_are_copied_under_their_names() {
    let facts = facts(CapiTypes::Private);
    let secrets = built(&facts, "Secret");
    let both = ["ibm-credentials.env", "ibmcloud_api_key"];
    for (name, keys) in [
        ("one-cloud-controller", &both[..]),
        ("one-node-pool", &both[..1]),
        ("one-ingress", &both[..]),
        ("one-storage", &both[..]),
        ("one-registry", &both[..]),
    ] {
        let copy = &secrets[name];
        assert_eq!(copy.namespace(), Some("clusters-one"), "{name}");
        let mut found: Vec<_> = copy.body["data"].as_object().unwrap().keys().collect();
        found.sort();
        assert_eq!(found, keys, "{name}");
    }
}

#[test]
fn the_provider_is_that_of_the_release_and_has_its_api_key() {
    let facts = facts(CapiTypes::Private);
    let deployment = &built(&facts, "Deployment")["capi-provider"];
    let pod = &deployment.body["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().unwrap();
    let of = |name: &str| containers.iter().find(|it| it["name"] == name);
    let manager = of("manager").unwrap();
    let image = manager["image"].as_str().unwrap();
    assert!(
        image.contains("ibmcloud-cluster-api-controllers"),
        "{image}"
    );
    assert_eq!(
        manager["command"],
        json!(["/bin/cluster-api-provider-ibmcloud-controller-manager"])
    );
    assert_eq!(
        manager["args"],
        json!([
            "--namespace=$(MY_NAMESPACE)",
            "--v=4",
            "--leader-elect=true",
            "--provider-id-fmt=v2",
        ])
    );
    let variables = manager["env"].as_array().unwrap();
    let expected = json!({
        "name": "IBM_CREDENTIALS_FILE", "value": "/home/.ibmcloud/ibm-credentials.env",
    });
    assert!(variables.contains(&expected), "{variables:?}");
    let named = |list: &Value, name: &str| {
        let mut items = list.as_array().unwrap().iter();
        items.find(|it| it["name"] == name).cloned().unwrap()
    };
    let mount = named(&manager["volumeMounts"], "credentials");
    assert_eq!(mount["mountPath"], "/home/.ibmcloud");
    assert_eq!(mount["readOnly"], true);
    let volume = named(&pod["volumes"], "credentials");
    assert_eq!(volume["secret"]["secretName"], "one-node-pool");
    // It has the proxy on private types only.
    for (types, expected) in [(CapiTypes::Private, true), (CapiTypes::Standard, false)] {
        let deployment = &built(&self::facts(types), "Deployment")["capi-provider"];
        let sidecars = &deployment.body["spec"]["template"]["spec"]["initContainers"];
        let mut sidecars = sidecars.as_array().into_iter().flatten();
        let has_proxy = sidecars.any(|it| it["name"] == "kube-apiserver-proxy");
        assert_eq!(has_proxy, expected, "{types:?}");
    }
    assert!(PowerVs.rules().is_empty());
}

#[test]
fn images_of_the_provider_have_an_order() {
    let release = "images.example.com/4.20.1/ibmcloud-cluster-api-controllers";
    for (annotation, flag, expected) in [
        (None, None, release),
        (None, Some("b"), "b"),
        (Some("a"), None, "a"),
        (Some("a"), Some("b"), "a"),
    ] {
        let mut facts = facts(CapiTypes::Private);
        let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
        let given = annotation.map(|it| (IMAGE_ANNOTATION.to_owned(), it.to_owned()));
        annotations.extend(given);
        facts.images.power_vs_provider = flag.map(str::to_owned);
        let image = PowerVs.provider_image(&facts).unwrap().unwrap();
        assert!(
            image.starts_with(expected),
            "{annotation:?} {flag:?}: {image}"
        );
    }
    let mut unknown = facts(CapiTypes::Private);
    unknown.release = crate::facts::ReleaseIs::NoPullSecret;
    assert_eq!(PowerVs.provider_image(&unknown), Ok(None));
}

#[test]
fn controllers_start_when_all_their_kinds_are_there() {
    let kinds = PowerVs.kinds(Capi::new(CapiTypes::Private)).unwrap();
    let plurals: Vec<_> = kinds.iter().map(|it| it.plural.as_str()).collect();
    assert_eq!(
        plurals,
        [
            "ibmpowervsclusters",
            "ibmpowervsimages",
            "ibmpowervsmachinetemplates",
            "ibmpowervsmachines",
        ]
    );
    let cleaned_up = PowerVs.cleaned_up(Capi::new(CapiTypes::Private));
    assert_eq!(cleaned_up, [image::resource(Capi::new(CapiTypes::Private))]);
}
