//! How components of OLM and of metrics forwarding follow their input.

use clap::Parser as _;
use control_plane_component::Predicates;
use control_plane_component::release::CatalogImage;
use control_plane_operator::args::Cli;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::input;
use crate::variants::{changed, object};

const ANNOTATIONS: &str = "/metadata/annotations";
const CATALOG: &str = "catalog-operator";
const OPERATOR: &str = "olm-operator";
const PACKAGES: &str = "packageserver";
const PROFILES: &str = "olm-collect-profiles";
const RESOLVER: &str = "endpoint-resolver";
const PROXY: &str = "metrics-proxy";
const CATALOGS: [&str; 3] = [
    "certified-operators",
    "community-operators",
    "redhat-operators",
];
const POD: &str = "/spec/template/spec";

/// A change of the hosted control plane: JSON pointer and value.
type Change = (&'static str, Value);
/// Changes, component, kind and name of an object, path and expected value.
type Row = (
    Vec<Change>,
    &'static str,
    (&'static str, &'static str),
    &'static str,
    Value,
);

/// Returns the value of a path: a JSON pointer that can name the items of lists.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    let parts = path.split('/').skip(1).map(|part| part.replace("~1", "/"));
    parts.fold(object, |value, part| match value {
        Value::Array(items) => match part.parse::<usize>() {
            Ok(index) => items.get(index).unwrap_or(&Value::Null),
            Err(_) => items
                .iter()
                .find(|item| item["name"] == part)
                .unwrap_or(&Value::Null),
        },
        value => &value[part],
    })
}

fn check(rows: Vec<Row>) {
    crate::rows::count(rows.len());
    for (changes, component, (kind, name), path, expected) in rows {
        let found = object(&changed(&changes), component, kind, name);
        assert_eq!(
            *at(&found, path),
            expected,
            "{changes:?}: {component}: {kind}/{name} {path}"
        );
    }
}

fn annotated(annotations: Value) -> Change {
    (ANNOTATIONS, annotations)
}

fn platform(platform: &str) -> Change {
    ("/spec/platform/type", json!(platform))
}

fn placement(placement: &str) -> Change {
    ("/spec/olmCatalogPlacement", json!(placement))
}

fn metrics_set(set: &str) -> Change {
    ("/spec/monitoring", json!({ "metricsSet": set }))
}

fn tls_profile(profile: &str) -> Change {
    let server = json!({ "tlsSecurityProfile": { "type": profile } });
    ("/spec/configuration/apiServer", server)
}

fn unmonitored() -> Change {
    annotated(json!({ "hypershift.openshift.io/disable-monitoring-services": "true" }))
}

/// Whether a component runs.
fn runs(changes: &[Change], component: &str) -> bool {
    let mut input = changed(changes);
    input.predicates = Predicates::Evaluated;
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    !input.component(component).unwrap().is_empty()
}

#[test]
pub(crate) fn operators_follow_their_input() {
    let mut rows = Vec::new();
    for (name, sre) in [(CATALOG, "catalogOperator"), (OPERATOR, "olm")] {
        let deployment = ("Deployment", name);
        let monitor = ("ServiceMonitor", name);
        let service: &'static str = if name == CATALOG {
            "catalog-operator-metrics"
        } else {
            "olm-operator-metrics"
        };
        let container =
            |rest: &str| -> &'static str { format!("{POD}/containers/{name}/{rest}").leak() };
        let proxy = |rest: &str| -> &'static str {
            format!("{POD}/containers/konnectivity-proxy-socks5/{rest}").leak()
        };
        let rule = "/spec/endpoints/0/metricRelabelings/0";
        let regex = if name == CATALOG {
            "(subscription_sync_total|olm_resolution_duration_seconds)"
        } else {
            "(csv_succeeded|csv_abnormal)"
        };
        rows.extend([
            (
                vec![],
                name,
                deployment,
                container("env/RELEASE_VERSION/value"),
                json!("4.18.0"),
            ),
            (
                vec![placement("guest")],
                name,
                deployment,
                container("env/NO_PROXY/value"),
                json!("kube-apiserver"),
            ),
            (
                vec![placement("management")],
                name,
                deployment,
                container("env/NO_PROXY/value"),
                json!("kube-apiserver,certified-operators,community-operators,redhat-operators"),
            ),
            (vec![], name, deployment, proxy("args"), json!(["run"])),
            (vec![], name, deployment, "/spec/replicas", json!(1)),
            (
                vec![(
                    "/spec/controllerAvailabilityPolicy",
                    json!("HighlyAvailable"),
                )],
                name,
                deployment,
                "/spec/replicas",
                json!(1),
            ),
            (
                vec![platform("IBMCloud")],
                name,
                deployment,
                "/spec/template/spec/initContainers/availability-prober/command/3",
                json!("https://kube-apiserver:2040/readyz"),
            ),
            (
                vec![tls_profile("Modern")],
                name,
                deployment,
                // They have no flags for TLS.
                container(if name == CATALOG {
                    "args/16"
                } else {
                    "args/11"
                }),
                Value::Null,
            ),
            (
                vec![],
                name,
                ("Service", service),
                "/spec/ports/0/port",
                json!(8443),
            ),
            (
                vec![unmonitored()],
                name,
                ("Service", service),
                "",
                Value::Null,
            ),
            (vec![unmonitored()], name, monitor, "", Value::Null),
            (
                vec![metrics_set("Telemetry")],
                name,
                monitor,
                rule,
                json!({
                    "action": "keep", "regex": regex, "sourceLabels": ["__name__"],
                }),
            ),
            (
                vec![metrics_set("All")],
                name,
                monitor,
                "/spec/endpoints/0/metricRelabelings/0/action",
                json!("drop"),
            ),
            (
                vec![(
                    "/spec/clusterID",
                    json!("7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11"),
                )],
                name,
                monitor,
                "/spec/endpoints/0/relabelings/0/replacement",
                json!("7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11"),
            ),
        ]);
        let mut input = changed(&[metrics_set("SRE")]);
        let config = format!("{sre}:\n- action: keep\n  regex: up\n  sourceLabels: [__name__]\n");
        input.objects.insert(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "sre-metric-set" },
            "data": { "config": config },
        }));
        let found = object(&input, name, "ServiceMonitor", name);
        assert_eq!(at(&found, rule)["regex"], "up", "{name}");
        assert!(runs(&[platform("None")], name), "{name}");
    }
    check(rows);
}

#[test]
fn operators_wait_for_their_types() {
    let group = "operators.coreos.com";
    for (name, types) in [
        (CATALOG, &["v1alpha1,CatalogSource"][..]),
        (PACKAGES, &["v1alpha1,CatalogSource"]),
        (
            OPERATOR,
            &[
                "v1alpha1,CatalogSource",
                "v1alpha1,Subscription",
                "v2,OperatorCondition",
                "v1,OperatorGroup",
                "v1,OLMConfig",
            ],
        ),
    ] {
        let deployment = object(&input::base(), name, "Deployment", name);
        let command = at(
            &deployment,
            "/spec/template/spec/initContainers/availability-prober/command",
        );
        let expected: Vec<_> = types
            .iter()
            .map(|kind| format!("--required-api={group},{kind}"))
            .collect();
        assert_eq!(command.as_array().unwrap()[5..], expected, "{name}");
    }
}

/// Images that the operators pass on are those of the control plane's release, with overrides.
#[test]
fn catalog_operator_hands_on_images() {
    let mut input = input::base();
    for image in ["operator-lifecycle-manager", "operator-registry"] {
        let replaced = format!("images.example.com/{image}");
        input.release.images.insert(image.to_owned(), replaced);
    }
    let deployment = object(&input, CATALOG, "Deployment", CATALOG);
    let container = at(
        &deployment,
        "/spec/template/spec/containers/catalog-operator",
    );
    for (path, image) in [
        ("/image", "operator-lifecycle-manager"),
        (
            "/env/OLM_OPERATOR_IMAGE/value",
            "operator-lifecycle-manager",
        ),
        ("/env/OPERATOR_REGISTRY_IMAGE/value", "operator-registry"),
    ] {
        let expected = format!("images.example.com/{image}");
        assert_eq!(*at(container, path), expected, "{path}");
    }
}

#[test]
pub(crate) fn packageserver_follows_its_input() {
    let deployment = ("Deployment", PACKAGES);
    let budget = ("PodDisruptionBudget", "packageserver-pdb");
    let policy = |policy: &str| ("/spec/controllerAvailabilityPolicy", json!(policy));
    let tls = "/spec/template/spec/containers/packageserver/args/11";
    let ciphers = "/spec/template/spec/containers/packageserver/args/12";
    let direct = "/spec/template/spec/containers/packageserver/env/NO_PROXY/value";
    let script = "/spec/template/spec/containers/kas-readiness-check/readinessProbe/exec/command/2";
    let check_of = |port: u16| {
        json!(format!(
            "curl --insecure --fail --silent --max-time 4 --output /dev/null https://kube-apiserver:{port}/livez"
        ))
    };
    check(vec![
        (
            vec![policy("SingleReplica")],
            PACKAGES,
            deployment,
            "/spec/replicas",
            json!(1),
        ),
        (
            vec![policy("HighlyAvailable")],
            PACKAGES,
            deployment,
            "/spec/replicas",
            json!(3),
        ),
        (
            vec![policy("HighlyAvailable"), platform("IBMCloud")],
            PACKAGES,
            deployment,
            "/spec/replicas",
            json!(2),
        ),
        (
            vec![policy("SingleReplica"), platform("IBMCloud")],
            PACKAGES,
            deployment,
            "/spec/replicas",
            json!(1),
        ),
        (
            vec![policy("SingleReplica")],
            PACKAGES,
            budget,
            "/spec/minAvailable",
            json!(1),
        ),
        (
            vec![policy("HighlyAvailable")],
            PACKAGES,
            budget,
            "/spec/maxUnavailable",
            json!(1),
        ),
        (
            vec![],
            PACKAGES,
            deployment,
            tls,
            json!("--tls-min-version=VersionTLS12"),
        ),
        (
            vec![tls_profile("Modern")],
            PACKAGES,
            deployment,
            tls,
            json!("--tls-min-version=VersionTLS13"),
        ),
        (
            vec![tls_profile("Modern")],
            PACKAGES,
            deployment,
            ciphers,
            Value::Null,
        ),
        (
            vec![tls_profile("Old")],
            PACKAGES,
            deployment,
            tls,
            json!("--tls-min-version=VersionTLS10"),
        ),
        (
            vec![placement("guest")],
            PACKAGES,
            deployment,
            direct,
            json!("kube-apiserver"),
        ),
        (
            vec![placement("management")],
            PACKAGES,
            deployment,
            direct,
            json!("kube-apiserver,certified-operators,community-operators,redhat-operators"),
        ),
        (vec![], PACKAGES, deployment, script, check_of(6443)),
        (
            vec![platform("IBMCloud")],
            PACKAGES,
            deployment,
            script,
            check_of(2040),
        ),
        (
            vec![],
            PACKAGES,
            deployment,
            "/spec/template/spec/automountServiceAccountToken",
            json!(true),
        ),
        (
            vec![],
            PACKAGES,
            deployment,
            "/spec/template/spec/priorityClassName",
            json!("hypershift-api-critical"),
        ),
        (
            vec![],
            PACKAGES,
            deployment,
            "/spec/template/metadata/labels/hypershift.openshift.io~1need-management-kas-access",
            Value::Null,
        ),
    ]);
}

#[test]
fn profiles_are_collected_at_a_time_of_each_control_plane() {
    let job = ("CronJob", PROFILES);
    let schedule = |namespace: &'static str, expected: &str| -> Row {
        let namespace = ("/metadata/namespace", json!(namespace));
        (
            vec![namespace],
            PROFILES,
            job,
            "/spec/schedule",
            json!(expected),
        )
    };
    check(vec![
        schedule("hcp-namespace", "41 5 * * *"),
        schedule("test-namespace", "9 21 * * *"),
        schedule("another-namespace", "29 5 * * *"),
        (
            vec![],
            PROFILES,
            ("ConfigMap", PROFILES),
            "/data/pprof-config.yaml",
            json!("disabled: false\n"),
        ),
        (
            vec![],
            PROFILES,
            ("Secret", "pprof-cert"),
            "/data/tls.crt",
            json!(""),
        ),
        (
            vec![],
            PROFILES,
            ("Role", PROFILES),
            "/rules/1/resourceNames",
            json!(["pprof-cert"]),
        ),
        (
            vec![],
            PROFILES,
            job,
            "/spec/jobTemplate/spec/template/spec/automountServiceAccountToken",
            json!(true),
        ),
    ]);
    for (name, expected) in [
        ("AWS", true),
        ("None", true),
        ("PowerVS", true),
        ("IBMCloud", false),
    ] {
        assert_eq!(runs(&[platform(name)], PROFILES), expected, "{name}");
    }
    let mut input = input::base();
    input.objects.insert(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "pprof-cert" },
        "data": { "tls.crt": "aXNzdWVk", "tls.key": "aXNzdWVk" },
    }));
    let kept = object(&input, PROFILES, "Secret", "pprof-cert");
    assert_eq!(kept["data"], Value::Null, "what the program wrote stays");
}

#[test]
fn catalogs_run_in_the_control_plane_on_request() {
    let hub = |disabled: bool| {
        let hub = json!({ "disableAllDefaultSources": disabled });
        ("/spec/configuration/operatorhub", hub)
    };
    for (changes, expected) in [
        (vec![placement("management")], true),
        (vec![placement("guest")], false),
        (vec![placement("management"), hub(true)], false),
        (vec![placement("management"), hub(false)], true),
        (vec![placement("guest"), hub(false)], false),
        (vec![placement("management"), platform("IBMCloud")], true),
    ] {
        for catalog in CATALOGS {
            let component = format!("{catalog}-catalog");
            assert_eq!(
                runs(&changes, &component),
                expected,
                "{component}: {changes:?}"
            );
        }
    }
}

fn without_image_streams(changes: &[Change]) -> Input {
    let mut input = changed(changes);
    input
        .settings
        .served_groups
        .retain(|group| group != "image.openshift.io");
    input
}

/// Returns trigger, and images of the containers `extract-content` and `registry`.
fn images(input: &Input, catalog: &str) -> (bool, [Value; 2]) {
    let component = format!("{catalog}-catalog");
    let deployment = object(input, &component, "Deployment", &component);
    let trigger = &deployment["metadata"]["annotations"]["image.openshift.io/triggers"];
    let images = ["initContainers/extract-content", "containers/registry"]
        .map(|path| at(&deployment, &format!("{POD}/{path}/image")).clone());
    (trigger.is_string(), images)
}

/// Annotations with images of the catalogs.
fn overridden(image: impl Fn(&str) -> String) -> Change {
    let mut all = json!({});
    for catalog in CATALOGS {
        let key = format!("hypershift.openshift.io/{catalog}-catalog-image");
        all[key] = json!(image(catalog));
    }
    annotated(all)
}

#[test]
fn catalogs_without_image_streams_have_the_index_of_the_release() {
    let registries = "hypershift.openshift.io/olm-catalogs-is-registry-overrides";
    for (annotations, expected) in [
        (json!({}), "registry.redhat.io/redhat"),
        (
            json!({ registries: "registry.redhat.io=mirror.example.com" }),
            "mirror.example.com/redhat",
        ),
        (
            json!({ registries: "registry.redhat.io=mirror.example.com/a" }),
            "mirror.example.com/a",
        ),
        (
            json!({ registries: "registry.redhat.io/redhat=b.example.com" }),
            "b.example.com",
        ),
        (
            json!({ registries: "other.example.com=b.example.com" }),
            "registry.redhat.io/redhat",
        ),
    ] {
        for catalog in CATALOGS {
            let input = without_image_streams(&[annotated(annotations.clone())]);
            let index = catalog.replace("-operators", "-operator-index");
            let expected = json!(format!("{expected}/{index}:v4.18"));
            let images = images(&input, catalog);
            assert_eq!(
                images,
                (false, [expected.clone(), expected]),
                "{annotations}"
            );
        }
    }
}

#[test]
fn catalog_indexes_follow_version_and_registry_overrides() {
    for (version, expected) in [
        ("4.9.12", "v4.9"),
        ("4.22.3", "v4.22"),
        ("4.23.0", "v4.22"),
        ("5.0.0", "v4.22"),
    ] {
        let mut input = without_image_streams(&[]);
        version.clone_into(&mut input.release.version);
        let expected = format!("registry.redhat.io/redhat/redhat-operator-index:{expected}");
        assert_eq!(
            images(&input, "redhat-operators").1[1],
            expected,
            "{version}"
        );
    }
    let mut input = without_image_streams(&[]);
    input.settings.registry_overrides = "registry.redhat.io=own.example.com:5000".parse().unwrap();
    let expected = "own.example.com:5000/redhat/redhat-operator-index:v4.18";
    assert_eq!(images(&input, "redhat-operators").1[1], expected);
}

#[test]
fn catalogs_use_the_images_that_were_looked_up() {
    let mut input = without_image_streams(&[]);
    let found = CatalogImage {
        tagged: "registry.example.com/index:v4.17".to_owned(),
        pinned: "registry.example.com/index@sha256:0".to_owned(),
    };
    let catalogs = &mut input.release.catalogs;
    catalogs.insert("certified-operators".to_owned(), Ok(found.clone()));
    let none = Err("the registry does not answer".to_owned());
    catalogs.insert("redhat-operators".to_owned(), none);
    let (trigger, pinned) = images(&input, "certified-operators");
    assert!(!trigger);
    assert_eq!(pinned, [json!(found.pinned), json!(found.pinned)]);
    let mut all = components::all().iter();
    let component = all
        .find(|it| it.name == "redhat-operators-catalog")
        .unwrap();
    let error = input.component(component).unwrap_err().to_string();
    assert!(error.contains("the registry does not answer"), "{error}");
}

#[test]
fn catalogs_with_image_streams_keep_the_triggered_image() {
    let mut input = input::base();
    for catalog in CATALOGS {
        let manifest = [
            json!("from:imagestream"),
            json!(format!("catalogs:{catalog}")),
        ];
        assert_eq!(images(&input, catalog), (true, manifest), "{catalog}");
        let image = format!("registry.example.com/{catalog}@sha256:1");
        input.objects.insert(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": format!("{catalog}-catalog") },
            "spec": { "template": { "spec": { "containers": [{ "name": "registry", "image": image }] } } },
        }));
        let expected = [json!(image), json!(image)];
        assert_eq!(images(&input, catalog), (true, expected), "{catalog}");
    }
    let stream = object(
        &input,
        "redhat-operators-catalog",
        "ImageStream",
        "catalogs",
    );
    assert_eq!(stream["spec"]["lookupPolicy"]["local"], true);
    for catalog in CATALOGS {
        let index = catalog.replace("-operators", "-operator-index");
        let image = format!("registry.redhat.io/redhat/{index}:v4.18");
        let from = at(&stream, &format!("/spec/tags/{catalog}/from"));
        assert_eq!(
            *from,
            json!({ "kind": "DockerImage", "name": image }),
            "{catalog}"
        );
    }
    let none = without_image_streams(&[]);
    let stream = object(&none, "redhat-operators-catalog", "ImageStream", "catalogs");
    assert_eq!(stream, Value::Null);
}

#[test]
fn annotations_override_catalog_images() {
    let by_digest = |catalog: &str| format!("images.example.com/{catalog}@sha256:2");
    for input in [
        changed(&[overridden(by_digest)]),
        without_image_streams(&[overridden(by_digest)]),
    ] {
        for catalog in CATALOGS {
            let image = json!(by_digest(catalog));
            assert_eq!(
                images(&input, catalog),
                (false, [image.clone(), image]),
                "{catalog}"
            );
        }
        let stream = object(
            &input,
            "redhat-operators-catalog",
            "ImageStream",
            "catalogs",
        );
        assert_eq!(stream, Value::Null);
    }
}

#[test]
fn invalid_catalog_images_are_refused() {
    let redhat = "hypershift.openshift.io/redhat-operators-catalog-image";
    for (change, part) in [
        (
            overridden(|catalog| format!("images.example.com/{catalog}:v4.18")),
            "by its digest",
        ),
        (
            annotated(json!({ redhat: "images.example.com/a@sha256:2" })),
            "all three",
        ),
    ] {
        let input = changed(&[change]);
        for catalog in CATALOGS {
            let mut all = components::all().iter();
            let name = format!("{catalog}-catalog");
            let component = all.find(|it| it.name == name).unwrap();
            let error = input.component(component).unwrap_err().to_string();
            assert!(error.contains(part), "{catalog}: {error}");
        }
    }
}

#[test]
fn catalogs_are_scheduled_like_their_control_plane() {
    let mut rows: Vec<Row> = Vec::new();
    for (component, service) in [
        ("certified-operators-catalog", "certified-operators"),
        ("community-operators-catalog", "community-operators"),
        ("redhat-operators-catalog", "redhat-operators"),
    ] {
        let deployment = ("Deployment", component);
        let selector = "/spec/template/spec/nodeSelector";
        let own = json!({ "size": "large" });
        rows.extend([
            (
                vec![],
                component,
                deployment,
                selector,
                json!({ "kubernetes.io/os": "linux" }),
            ),
            (
                vec![("/spec/nodeSelector", own.clone())],
                component,
                deployment,
                selector,
                own,
            ),
            (
                vec![(
                    "/spec/controllerAvailabilityPolicy",
                    json!("HighlyAvailable"),
                )],
                component,
                deployment,
                "/spec/replicas",
                json!(1),
            ),
            (
                vec![],
                component,
                ("Service", service),
                "/spec/ports/0/port",
                json!(50051),
            ),
            (
                vec![],
                component,
                ("Service", service),
                "/spec/selector",
                json!({ "olm.catalogSource": service }),
            ),
        ]);
    }
    check(rows);
}

fn forwarding(forwarding: &Value) -> Change {
    (
        "/spec/monitoring",
        json!({ "metricsForwarding": forwarding }),
    )
}

#[test]
fn metrics_are_forwarded_on_request() {
    let forward = || forwarding(&json!({ "mode": "Forward" }));
    for (changes, expected) in [
        (vec![], false),
        (vec![forwarding(&json!({ "mode": "None" }))], false),
        (vec![forward()], true),
        (vec![forward(), platform("IBMCloud")], true),
        (vec![forward(), unmonitored()], false),
        (vec![metrics_set("All")], false),
    ] {
        for component in [RESOLVER, PROXY] {
            assert_eq!(
                runs(&changes, component),
                expected,
                "{component}: {changes:?}"
            );
        }
    }
}

#[test]
pub(crate) fn forwarding_components_follow_their_input() {
    let set = "/spec/template/spec/containers/metrics-proxy/args/9";
    let deployment = ("Deployment", PROXY);
    let route = ("Route", PROXY);
    let resolver = ("Deployment", RESOLVER);
    let policy = |policy: &str| ("/spec/controllerAvailabilityPolicy", json!(policy));
    let access = |access: &str| ("/spec/platform/aws/endpointAccess", json!(access));
    let ignition = json!([{ "service": "Ignition", "servicePublishingStrategy": {
        "type": "Route", "route": { "hostname": "ignition.clusters.example.com" },
    } }]);
    let internal = "metrics-proxy.apps.hcp.hypershift.local";
    let internal_label = "/metadata/labels/hypershift.openshift.io~1internal-route";
    let label = "/metadata/labels/hypershift.openshift.io~1hosted-control-plane";
    let both = json!({ "metricsSet": "All", "metricsForwarding": { "mode": "Forward", "metricsSet": "SRE" } });
    check(vec![
        (vec![], PROXY, deployment, set, json!("All")),
        (
            vec![forwarding(
                &json!({ "mode": "Forward", "metricsSet": "Telemetry" }),
            )],
            PROXY,
            deployment,
            set,
            json!("Telemetry"),
        ),
        (
            vec![("/spec/monitoring", both)],
            PROXY,
            deployment,
            set,
            json!("SRE"),
        ),
        (
            vec![metrics_set("Telemetry")],
            PROXY,
            deployment,
            set,
            json!("Telemetry"),
        ),
        (
            vec![access("Private")],
            PROXY,
            route,
            "/spec/host",
            json!(internal),
        ),
        (
            vec![access("Private")],
            PROXY,
            route,
            internal_label,
            json!("true"),
        ),
        (
            vec![access("PublicAndPrivate")],
            PROXY,
            route,
            "/spec/host",
            json!(internal),
        ),
        (
            vec![access("Public")],
            PROXY,
            route,
            "/spec/host",
            Value::Null,
        ),
        (
            vec![access("Public")],
            PROXY,
            route,
            internal_label,
            Value::Null,
        ),
        (
            vec![access("Public"), ("/spec/services", ignition.clone())],
            PROXY,
            route,
            "/spec/host",
            json!("metrics-proxy-hcp.clusters.example.com"),
        ),
        (
            vec![access("Private"), ("/spec/services", ignition)],
            PROXY,
            route,
            "/spec/host",
            json!(internal),
        ),
        (vec![platform("IBMCloud")], PROXY, route, label, Value::Null),
        (vec![], PROXY, route, "/spec/wildcardPolicy", json!("None")),
        (
            vec![policy("SingleReplica")],
            PROXY,
            deployment,
            "/spec/replicas",
            json!(1),
        ),
        (
            vec![policy("HighlyAvailable")],
            PROXY,
            deployment,
            "/spec/replicas",
            json!(2),
        ),
        (
            vec![],
            PROXY,
            deployment,
            "/spec/template/spec/automountServiceAccountToken",
            json!(false),
        ),
        (
            vec![],
            PROXY,
            ("Service", PROXY),
            "/spec/ports/0/targetPort",
            json!(9443),
        ),
        (
            vec![policy("SingleReplica")],
            RESOLVER,
            resolver,
            "/spec/replicas",
            json!(1),
        ),
        (
            vec![policy("HighlyAvailable")],
            RESOLVER,
            resolver,
            "/spec/replicas",
            json!(2),
        ),
        (
            vec![],
            RESOLVER,
            resolver,
            "/spec/template/spec/automountServiceAccountToken",
            json!(true),
        ),
        (
            vec![],
            RESOLVER,
            ("Service", RESOLVER),
            "/spec/ports/0/targetPort",
            json!(9444),
        ),
        (
            vec![],
            RESOLVER,
            ("Role", RESOLVER),
            "/rules",
            json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] }]),
        ),
        (
            vec![],
            RESOLVER,
            ("Secret", "endpoint-resolver-ca"),
            "/type",
            json!("kubernetes.io/tls"),
        ),
        (
            vec![],
            RESOLVER,
            ("Secret", "endpoint-resolver-serving-cert"),
            "/type",
            json!("kubernetes.io/tls"),
        ),
    ]);
}

#[test]
fn long_hosts_of_the_default_domain_are_shortened() {
    let namespace = "clusters-with-a-long-name-and-a-cluster-with-a-long-name";
    for (namespace, domain, expected) in [
        (
            namespace,
            "apps.example.com",
            Some("metrics-proxy-clusters-with-a-long-name-and-a-cluster-"),
        ),
        (namespace, "", None),
        ("clusters-dev", "apps.example.com", None),
    ] {
        let mut input = changed(&[
            ("/metadata/namespace", json!(namespace)),
            ("/spec/platform/aws/endpointAccess", json!("Public")),
        ]);
        domain.clone_into(&mut input.settings.default_ingress_domain);
        let route = object(&input, PROXY, "Route", PROXY);
        let host = route["spec"]["host"].as_str();
        assert_eq!(host.is_some(), expected.is_some(), "{host:?}");
        if let (Some(host), Some(expected)) = (host, expected) {
            let (label, rest) = host.split_once('.').unwrap();
            assert_eq!((label.len(), rest), (63, domain), "{host}");
            assert!(label.starts_with(expected), "{host}");
        }
    }
}

/// A namespace with components and their monitors.
fn monitored() -> Input {
    let mut input = input::base();
    let labels = |app: &str| json!({ "app": app });
    let deployment = |app: &str, port: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": app },
            "spec": { "template": {
                "metadata": { "labels": labels(app) },
                "spec": { "containers": [{ "name": app, "ports": [port] }] },
            } },
        })
    };
    let service = |name: &str, app: &str, port: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name, "labels": labels(app) },
            "spec": { "selector": labels(app), "ports": [port] },
        })
    };
    let monitor = |kind: &str, name: &str, app: &str, field: &str, endpoint: Value| {
        json!({
            "apiVersion": "monitoring.coreos.com/v1", "kind": kind,
            "metadata": { "name": name, "annotations": {
                "hypershift.openshift.io/metrics-job": name,
            } },
            "spec": { "selector": { "matchLabels": labels(app) }, field: [endpoint] },
        })
    };
    let tls = json!({
        "ca": { "configMap": { "name": "root-ca", "key": "ca.crt" } },
        "cert": { "secret": { "name": "metrics.client", "key": "tls.crt" } },
        "keySecret": { "name": "metrics.client", "key": "tls.key" },
        "serverName": "named",
    });
    let evil = json!({ "ca": { "secret": { "name": "../../etc", "key": "../passwd" } } });
    for object in [
        deployment("named", json!({ "name": "metrics", "containerPort": 8443 })),
        service(
            "named",
            "named",
            json!({ "name": "https", "port": 443, "targetPort": "metrics" }),
        ),
        monitor(
            "ServiceMonitor",
            "named",
            "named",
            "endpoints",
            json!({ "port": "https", "scheme": "https", "tlsConfig": tls }),
        ),
        service(
            "other-name",
            "number",
            json!({ "name": "https", "port": 443, "targetPort": 9443 }),
        ),
        monitor(
            "ServiceMonitor",
            "number",
            "number",
            "endpoints",
            json!({ "port": "https", "path": "/m", "tlsConfig": evil }),
        ),
        service("target", "target", json!({ "name": "https", "port": 443 })),
        monitor(
            "ServiceMonitor",
            "target",
            "target",
            "endpoints",
            json!({ "targetPort": 7443 }),
        ),
        service(
            "plain",
            "plain",
            json!({ "name": "https", "port": 1443, "targetPort": "unknown" }),
        ),
        monitor(
            "ServiceMonitor",
            "plain",
            "plain",
            "endpoints",
            json!({ "port": "https" }),
        ),
        monitor(
            "ServiceMonitor",
            "without-service",
            "none",
            "endpoints",
            json!({ "port": "https" }),
        ),
        monitor(
            "PodMonitor",
            "a-pod",
            "named",
            "podMetricsEndpoints",
            json!({ "port": "metrics" }),
        ),
        monitor(
            "PodMonitor",
            "unknown-port",
            "named",
            "podMetricsEndpoints",
            json!({ "port": "other" }),
        ),
    ] {
        input.objects.insert(object);
    }
    input
}

#[test]
fn metrics_proxy_scrapes_what_monitors_name() {
    let map = object(&monitored(), PROXY, "ConfigMap", "metrics-proxy-config");
    let config = map["data"]["config.yaml"].as_str().unwrap();
    let config: Value = serde_saphyr::from_str(config).unwrap();
    assert_eq!(
        config["endpointResolver"]["url"],
        "https://endpoint-resolver.hcp-namespace.svc"
    );
    let components = config["components"].as_array().unwrap();
    let names: Vec<_> = components.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["a-pod", "named", "number", "plain", "target"]);
    let certificates = "/etc/metrics-proxy/certs";
    for (path, expected) in [
        ("/a-pod/metricsPort", json!(8443)),
        ("/a-pod/metricsPath", json!("/metrics")),
        ("/a-pod/metricsScheme", json!("http")),
        ("/a-pod/selector", json!({ "app": "named" })),
        ("/named/metricsPort", json!(8443)),
        ("/named/metricsScheme", json!("https")),
        ("/named/tlsServerName", json!("named")),
        (
            "/named/caFile",
            json!(format!("{certificates}/root-ca/ca.crt")),
        ),
        (
            "/named/certFile",
            json!(format!("{certificates}/metrics.client/tls.crt")),
        ),
        (
            "/named/keyFile",
            json!(format!("{certificates}/metrics.client/tls.key")),
        ),
        ("/named/metricsJob", json!("named")),
        ("/named/metricsNamespace", Value::Null),
        ("/number/metricsPort", json!(9443)),
        ("/number/metricsPath", json!("/m")),
        ("/number/caFile", Value::Null),
        ("/plain/metricsPort", json!(1443)),
        ("/target/metricsPort", json!(7443)),
    ] {
        assert_eq!(*at(&config["components"], path), expected, "{path}");
    }
}

#[test]
fn metrics_proxy_mounts_what_scrapes_need() {
    let deployment = object(&monitored(), PROXY, "Deployment", PROXY);
    let pod = &deployment["spec"]["template"]["spec"];
    for (path, expected) in [
        (
            "/volumes/metrics-client/secret/secretName",
            json!("metrics.client"),
        ),
        ("/volumes/metrics-client/secret/optional", json!(true)),
        ("/volumes/metrics-client/secret/defaultMode", json!(416)),
        ("/volumes/root-ca/configMap/name", json!("root-ca")),
        (
            "/volumes/root-ca/configMap/items",
            json!([{ "key": "ca.crt", "path": "ca.crt" }]),
        ),
        // The authority signs client certificates, so the proxy must not have its key.
        (
            "/volumes/client-ca/secret/items",
            json!([{ "key": "ca.crt", "path": "ca.crt" }]),
        ),
    ] {
        assert_eq!(*at(pod, path), expected, "{path}");
    }
    let mounts = at(pod, "/containers/metrics-proxy/volumeMounts");
    let mounts = mounts
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| &mount["mountPath"]);
    let mounts: Vec<_> = mounts.filter_map(Value::as_str).collect();
    assert!(
        mounts.contains(&"/etc/metrics-proxy/certs/metrics.client"),
        "{mounts:?}"
    );
    assert!(mounts.iter().all(|path| !path.contains("..")), "{mounts:?}");
}

#[test]
fn command_lines_of_forwarding_components_are_accepted() {
    for component in [RESOLVER, PROXY] {
        let deployment = object(&input::base(), component, "Deployment", component);
        let container = at(&deployment, &format!("{POD}/containers/{component}"));
        let words = ["command", "args"].map(|field| container[field].as_array().unwrap());
        let words = words
            .into_iter()
            .flatten()
            .map(|word| word.as_str().unwrap());
        // The pod sets it as an environment variable.
        let line = words.chain(["--namespace=hcp-namespace"]);
        assert!(Cli::try_parse_from(line).is_ok(), "{container}");
    }
}
