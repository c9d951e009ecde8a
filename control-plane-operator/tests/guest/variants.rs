//! How input changes objects: one row per rule.

use std::collections::BTreeMap;

use control_plane_operator::hosted_cluster_config::resources::desired::{KINDS, Mode, Object};
use serde_json::{Value, json};

use crate::facts::identity;
use crate::profiles::{Profile, base64, created, server, source};

/// Changes of the HostedControlPlane: pointers and values.
type Changes = Vec<(&'static str, Value)>;

/// A rule: platform, changes, object, pointer, value. Null means that the value, or the object, does not exist.
type Row = (&'static str, Changes, &'static str, &'static str, Value);

const CONFIG: &str = "config.openshift.io/v1";
const OPERATOR: &str = "operator.openshift.io/v1";

fn objects(profile: &Profile) -> BTreeMap<String, Object> {
    let (objects, _) = profile.build();
    objects
        .into_iter()
        .map(|(_, object)| (identity(&object.value), object))
        .collect()
}

fn changed(platform: &'static str, changes: Changes) -> Profile {
    changes
        .into_iter()
        .fold(Profile::new(platform), |profile, (pointer, value)| {
            profile.with(pointer, value)
        })
}

fn value(profile: &Profile, object: &str, pointer: &str) -> Value {
    let objects = objects(profile);
    let created = objects.get(object).and_then(created);
    created.map_or(Value::Null, |value| {
        value.pointer(pointer).cloned().unwrap_or_default()
    })
}

fn check(rows: Vec<Row>) {
    for (platform, changes, object, pointer, expected) in rows {
        let profile = changed(platform, changes.clone());
        let found = value(&profile, object, pointer);
        assert_eq!(
            found, expected,
            "{platform} {changes:?}: {object} {pointer}"
        );
    }
}

fn config(kind: &str) -> String {
    format!("{CONFIG}/{kind}//cluster")
}

#[test]
fn api_server_endpoints_follow_the_network() {
    let (endpoints, slice) = (
        "v1/Endpoints/default/kubernetes",
        "discovery.k8s.io/v1/EndpointSlice/default/kubernetes",
    );
    let ipv6 = || {
        vec![(
            "/spec/networking/serviceNetwork",
            json!([{ "cidr": "fd02::/112" }]),
        )]
    };
    let advertised = || {
        vec![(
            "/spec/networking/apiServer",
            json!({ "advertiseAddress": "10.1.1.1", "port": 443 }),
        )]
    };
    check(vec![
        (
            "None",
            ipv6(),
            endpoints,
            "/subsets/0/addresses/0/ip",
            json!("fd00::1"),
        ),
        ("None", ipv6(), slice, "/addressType", json!("IPv6")),
        (
            "None",
            advertised(),
            endpoints,
            "/subsets/0/addresses/0/ip",
            json!("10.1.1.1"),
        ),
        (
            "None",
            advertised(),
            endpoints,
            "/subsets/0/ports/0/port",
            json!(443),
        ),
        (
            "None",
            advertised(),
            slice,
            "/endpoints/0/addresses/0",
            json!("10.1.1.1"),
        ),
    ]);
}

#[test]
fn admission_policies_follow_capabilities_and_catalogs() {
    let policy =
        |name: &str| format!("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy//{name}");
    let resources = |changes: Changes, name: &str| {
        let pointer = "/spec/matchConstraints/resourceRules/0/resources";
        value(&changed("None", changes), &policy(name), pointer)
    };
    let has = |resources: &Value, name: &str| resources.as_array().unwrap().contains(&json!(name));
    let all = resources(vec![], "config");
    assert!(has(&all, "ingresses") && has(&all, "operatorhubs"));
    let disabled = vec![("/spec/capabilities", json!({ "disabled": ["Ingress"] }))];
    assert!(!has(&resources(disabled, "config"), "ingresses"));
    let guest = || vec![("/spec/olmCatalogPlacement", json!("guest"))];
    assert!(!has(&resources(guest(), "config"), "operatorhubs"));
    assert!(!has(&resources(guest(), "mirror"), "operatorhubs"));
    let azure = policy("deny-removed-managementstate").leak() as &str;
    check(vec![
        (
            "Azure",
            vec![],
            azure,
            "/spec/matchConstraints/resourceRules/0/resources/0",
            json!("configs"),
        ),
        (
            "Azure",
            vec![(
                "/spec/capabilities",
                json!({ "disabled": ["ImageRegistry"] }),
            )],
            azure,
            "/kind",
            Value::Null,
        ),
        ("AWS", vec![], azure, "/kind", Value::Null),
    ]);
}

#[test]
fn admission_policies_name_who_may_write() {
    let expression = |name: &str| {
        let object = format!("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy//{name}");
        let found = value(
            &Profile::new("None"),
            &object,
            "/spec/validations/0/expression",
        );
        found.as_str().unwrap().to_owned()
    };
    let network = "'system:serviceaccount:openshift-network-operator:cluster-network-operator'";
    for name in ["config", "mirror", "icsp", "infra", "ntomirroredconfigmaps"] {
        let text = expression(name);
        for user in [
            "'system:hosted-cluster-config'",
            "'system:kas-bootstrap-container'",
        ] {
            assert!(text.contains(user), "{name}: {text}");
        }
        assert_eq!(text.contains(network), name == "infra", "{name}");
    }
    assert!(expression("config").contains("object.spec == oldObject.spec"));
    assert!(expression("ntomirroredconfigmaps").contains("object.data == oldObject.data"));
}

#[test]
fn older_releases_on_ibm_cloud_have_no_admission_policies() {
    let object = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy//config";
    for (version, exists) in [("4.16.9", false), ("4.17.0", true), ("5.0.0", true)] {
        let mut profile = Profile::new("IBMCloud");
        profile.release.version = version.to_owned();
        assert_eq!(objects(&profile).contains_key(object), exists, "{version}");
    }
}

#[test]
fn cluster_version_follows_the_hosted_cluster() {
    let object = format!("{CONFIG}/ClusterVersion//version");
    let enabled = "/spec/capabilities/additionalEnabledCapabilities";
    let count = |profile: &Profile| value(profile, &object, enabled).as_array().unwrap().len();
    assert_eq!(count(&Profile::new("None")), 16);
    let capabilities = json!({ "disabled": ["Console", "Insights"], "enabled": ["baremetal"] });
    let profile = Profile::new("None").with("/spec/capabilities", capabilities);
    let found = value(&profile, &object, enabled);
    assert_eq!(count(&profile), 15);
    assert!(found.as_array().unwrap().contains(&json!("baremetal")));
    let live = json!({
        "apiVersion": CONFIG, "kind": "ClusterVersion", "metadata": { "name": "version" },
        "status": { "capabilities": { "knownCapabilities": ["Build", "Console"] } },
    });
    assert_eq!(count(&Profile::new("None").live(live)), 2);
    let object = objects(&Profile::new("None").with("/spec/channel", Value::Null));
    let spec = &object["config.openshift.io/v1/ClusterVersion//version"].value["spec"];
    // Null removes the user's value.
    for field in ["channel", "desiredUpdate"] {
        assert_eq!(spec.get(field), Some(&Value::Null), "{field}");
    }
}

#[test]
fn domains_follow_dns_and_ingress_settings() {
    let (dns, ingress) = (config("DNS"), config("Ingress"));
    let (dns, ingress) = (dns.leak() as &str, ingress.leak() as &str);
    let controller =
        "operator.openshift.io/v1/IngressController/openshift-ingress-operator/default";
    let set = |pointer, value| vec![(pointer, value)];
    let shared = json!({ "rolesRef": { "ingressARN": "shared" } });
    check(vec![
        (
            "None",
            set("/spec/dns/baseDomainPrefix", json!("p")),
            dns,
            "/spec/baseDomain",
            json!("p.example.com"),
        ),
        (
            "None",
            set("/spec/dns/baseDomainPrefix", json!("")),
            dns,
            "/spec/baseDomain",
            json!("example.com"),
        ),
        (
            "IBMCloud",
            vec![],
            dns,
            "/spec/baseDomain",
            json!("example.com"),
        ),
        (
            "None",
            set("/spec/dns/publicZoneID", json!("")),
            dns,
            "/spec/publicZone",
            Value::Null,
        ),
        (
            "AWS",
            set("/spec/platform/aws/sharedVPC", shared),
            dns,
            "/spec/platform/aws/privateZoneIAMRole",
            json!("shared"),
        ),
        (
            "None",
            set("/spec/configuration/ingress", json!({ "domain": "d" })),
            ingress,
            "/spec/domain",
            json!("d"),
        ),
        (
            "None",
            set("/spec/configuration/ingress", json!({ "appsDomain": "a" })),
            ingress,
            "/spec/appsDomain",
            json!("a"),
        ),
        (
            "None",
            set("/spec/configuration/ingress", json!({ "appsDomain": "a" })),
            controller,
            "/spec/domain",
            json!("a"),
        ),
        (
            "None",
            set("/spec/configuration/ingress", json!({ "domain": "d" })),
            controller,
            "/spec/domain",
            json!("d"),
        ),
    ]);
}

#[test]
fn infrastructure_follows_the_platform() {
    const ARO: &str = "ManagedIdentities";
    const TOPOLOGY: &str = "/spec/platform/azure/topology";
    let object = config("Infrastructure").leak() as &str;
    let set = |pointer, value| vec![(pointer, value)];
    let swift = |authentication: &str| {
        let instance = "/metadata/annotations/hypershift.openshift.io~1swift-pod-network-instance";
        let authentication = json!({ "azureAuthenticationConfigType": authentication });
        vec![
            (instance, json!("one")),
            (
                "/spec/platform/azure/azureAuthenticationConfig",
                authentication,
            ),
        ]
    };
    let private = || {
        set(
            "/spec/platform/aws/endpointAccess",
            json!("PublicAndPrivate"),
        )
    };
    check(vec![
        (
            "AWS",
            private(),
            object,
            "/status/apiServerInternalURI",
            json!("https://api.hcp.hypershift.local:443"),
        ),
        (
            "AWS",
            private(),
            object,
            "/status/apiServerURL",
            json!("https://api.example.com:443"),
        ),
        (
            "Azure",
            swift(ARO),
            object,
            "/status/apiServerInternalURI",
            json!("https://api.hcp.hypershift.local:443"),
        ),
        (
            "Azure",
            [swift(ARO), set(TOPOLOGY, json!("Public"))].concat(),
            object,
            "/status/apiServerInternalURI",
            json!("https://api.example.com:443"),
        ),
        (
            "Azure",
            swift("WorkloadIdentities"),
            object,
            "/status/apiServerInternalURI",
            json!("https://api.example.com:443"),
        ),
        (
            "None",
            set("/spec/kubeAPIServerDNSName", json!("k.example.com")),
            object,
            "/status/apiServerURL",
            json!("https://k.example.com:443"),
        ),
        (
            "None",
            set("/status/controlPlaneEndpoint/host", json!("fd00::2")),
            object,
            "/status/apiServerURL",
            json!("https://[fd00::2]:443"),
        ),
        (
            "None",
            set(
                "/spec/infrastructureAvailabilityPolicy",
                json!("HighlyAvailable"),
            ),
            object,
            "/status/infrastructureTopology",
            json!("HighlyAvailable"),
        ),
        (
            "Azure",
            vec![],
            object,
            "/spec/cloudConfig/name",
            json!("cloud.conf"),
        ),
        (
            "Azure",
            vec![],
            object,
            "/status/platformStatus/azure/cloudName",
            json!("AzurePublicCloud"),
        ),
        (
            "Azure",
            set(
                "/spec/platform/azure",
                json!({ "cloud": "c", "resourceGroup": "g" }),
            ),
            object,
            "/status/platformStatus/azure",
            json!({ "cloudName": "c", "resourceGroupName": "g" }),
        ),
        (
            "OpenStack",
            vec![],
            object,
            "/status/platformStatus/openstack/loadBalancer/type",
            json!("UserManaged"),
        ),
        (
            "OpenStack",
            vec![],
            object,
            "/spec/cloudConfig/key",
            json!("cloud.conf"),
        ),
        (
            "PowerVS",
            set("/spec/platform/powervs", json!({ "zone": "z" })),
            object,
            "/status/platformStatus/powervs/zone",
            json!("z"),
        ),
        (
            "GCP",
            set(
                "/spec/platform/gcp",
                json!({ "project": "p", "resourceLabels": [{ "key": "kubernetes-io-a" }, { "key": "b" }] }),
            ),
            object,
            "/status/platformStatus/gcp/resourceLabels",
            json!([{ "key": "b", "value": "" }]),
        ),
    ]);
}

#[test]
fn configuration_is_copied() {
    let set = |pointer, value| vec![(pointer, value)];
    let kind = |kind| config(kind).leak() as &str;
    let install = "v1/ConfigMap/kube-system/cluster-config-v1";
    let sources = json!([{ "source": "a", "mirrors": ["b"] }]);
    let networks = json!([{ "cidr": "fd01::/48" }]);
    check(vec![
        (
            "None",
            set(
                "/spec/configuration/image",
                json!({ "allowedRegistriesForImport": [] }),
            ),
            kind("Image"),
            "/spec",
            json!({ "allowedRegistriesForImport": [] }),
        ),
        (
            "None",
            set(
                "/spec/configuration/apiServer",
                json!({ "audit": { "profile": "None" } }),
            ),
            kind("APIServer"),
            "/spec/audit/profile",
            json!("None"),
        ),
        (
            "None",
            set(
                "/spec/configuration/authentication",
                json!({ "type": "OIDC" }),
            ),
            kind("Authentication"),
            "/spec/type",
            json!("OIDC"),
        ),
        (
            "None",
            set(
                "/spec/configuration/authentication",
                json!({ "type": "OIDC" }),
            ),
            kind("Authentication"),
            "/spec/serviceAccountIssuer",
            json!("https://issuer.example.com"),
        ),
        (
            "None",
            set(
                "/spec/configuration/proxy",
                json!({ "httpProxy": "http://p" }),
            ),
            kind("Proxy"),
            "/spec/httpProxy",
            json!("http://p"),
        ),
        (
            "None",
            set(
                "/spec/configuration/proxy",
                json!({ "httpProxy": "http://p" }),
            ),
            kind("Proxy"),
            "/metadata/annotations/hypershift.io~1hosted-cluster-proxy-config",
            json!("true"),
        ),
        (
            "None",
            set(
                "/spec/configuration/proxy",
                json!({ "httpProxy": "http://p" }),
            ),
            kind("Network"),
            "/status/serviceNetwork/0",
            json!("172.31.0.0/16"),
        ),
        (
            "None",
            set(
                "/spec/configuration/network",
                json!({ "serviceNodePortRange": "1-2" }),
            ),
            kind("Network"),
            "/spec/serviceNodePortRange",
            json!("1-2"),
        ),
        (
            "None",
            set("/spec/networking/clusterNetwork", networks),
            kind("Network"),
            "/spec/clusterNetwork/0/hostPrefix",
            json!(64),
        ),
        (
            "None",
            set(
                "/spec/networking/clusterNetwork",
                json!([{ "cidr": "10.0.0.0/8", "hostPrefix": 25 }]),
            ),
            kind("Network"),
            "/spec/clusterNetwork/0/hostPrefix",
            json!(25),
        ),
        (
            "None",
            set("/spec/imageContentSources", sources.clone()),
            kind("ImageDigestMirrorSet"),
            "/spec/imageDigestMirrors",
            sources,
        ),
        (
            "GCP",
            set(
                "/spec/platform/gcp",
                json!({ "project": "p", "region": "r" }),
            ),
            install,
            "/kind",
            json!("ConfigMap"),
        ),
    ]);
}

#[test]
fn proxy_of_a_user_stays_and_a_copied_one_is_emptied() {
    let live = |annotations: Value| {
        json!({
            "apiVersion": CONFIG, "kind": "Proxy",
            "metadata": { "name": "cluster", "annotations": annotations },
            "spec": { "httpProxy": "http://p", "trustedCA": { "name": "old" } },
        })
    };
    let spec = |live| {
        let objects = objects(&Profile::new("None").live(live));
        let is_deleted = objects.contains_key("v1/ConfigMap/openshift-config/old");
        (objects[&config("Proxy")].value["spec"].clone(), is_deleted)
    };
    assert_eq!(spec(live(json!({}))), (json!({}), false));
    let copied = live(json!({ "hypershift.io/hosted-cluster-proxy-config": "true" }));
    let emptied = json!({ "httpProxy": null, "trustedCA": null });
    assert_eq!(spec(copied), (emptied, true));
}

#[test]
fn global_configuration_waits_for_the_api_server() {
    let profile = Profile::new("None").with("/status/controlPlaneEndpoint/host", json!(""));
    let (built, errors) = profile.build();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0]
            .to_string()
            .contains("the address of the API server"),
        "{errors:?}"
    );
    assert!(built.iter().all(|(step, _)| *step != 8));
}

#[test]
fn invalid_networks_do_not_prevent_the_others() {
    let networks = json!([{ "cidr": "10.0.0.0" }, { "cidr": "10.4.0.0/14" }]);
    let profile = Profile::new("None").with("/spec/networking/clusterNetwork", networks);
    assert_eq!(profile.build().1.len(), 1);
    let found = value(&profile, &config("Network"), "/spec/clusterNetwork");
    assert_eq!(found, json!([{ "cidr": "10.4.0.0/14", "hostPrefix": 23 }]));
}

#[test]
fn objects_of_disabled_capabilities_are_not_built() {
    let without = |name: &str| {
        let disabled = json!({ "disabled": [name] });
        objects(&Profile::new("AWS").with("/spec/capabilities", disabled))
    };
    let ingress = without("Ingress");
    for id in [
        "v1/Namespace//openshift-ingress",
        "v1/Secret/openshift-ingress/default-ingress-cert",
        "operator.openshift.io/v1/IngressController/openshift-ingress-operator/default",
        "v1/Secret/openshift-ingress-operator/cloud-credentials",
        "rbac.authorization.k8s.io/v1/Role/openshift-route-controller-manager/openshift-route-controllers",
    ] {
        assert!(!ingress.contains_key(id), "{id}");
    }
    let registry = without("ImageRegistry");
    for id in [
        "imageregistry.operator.openshift.io/v1/Config//cluster",
        "v1/Secret/openshift-image-registry/installer-cloud-credentials",
    ] {
        assert!(
            !registry.contains_key(id) && ingress.contains_key(id),
            "{id}"
        );
    }
}

#[test]
fn objects_of_the_oauth_server_are_not_built_without_it() {
    let oidc = json!({ "type": "OIDC" });
    let objects = objects(&Profile::new("None").with("/spec/configuration/authentication", oidc));
    for id in [
        "v1/Service/default/openshift-oauth-apiserver",
        "v1/Secret/kube-system/kubeadmin",
        "oauth.openshift.io/v1/OAuthClient//openshift-browser-client",
        "v1/ConfigMap/openshift-config-managed/oauth-serving-cert",
    ] {
        assert!(!objects.contains_key(id), "{id}");
    }
    // Discovery would miss their groups, and namespaces would not be deleted.
    for (group, mode) in [
        ("apps", Mode::Enforce),
        ("oauth", Mode::Delete),
        ("user", Mode::Delete),
    ] {
        let id = format!("apiregistration.k8s.io/v1/APIService//v1.{group}.openshift.io");
        assert_eq!(objects[&id].mode, mode, "{group}");
    }
}

#[test]
fn apis_are_registered_once_their_server_is_available() {
    const ROUTES: &str = "apiregistration.k8s.io/v1/APIService//v1.route.openshift.io";
    const OAUTH: &str = "apiregistration.k8s.io/v1/APIService//v1.oauth.openshift.io";
    const PACKAGES: &str = "apiregistration.k8s.io/v1/APIService//v1.packages.operators.coreos.com";
    let has = |profile: Profile| {
        let objects = objects(&profile);
        [ROUTES, OAUTH, PACKAGES].map(|id| objects.contains_key(id))
    };
    let down = |name| Profile::new("None").source(server(name, 0));
    assert_eq!(has(Profile::new("None")), [true, true, true]);
    assert_eq!(has(down("openshift-apiserver")), [false, true, true]);
    assert_eq!(has(down("openshift-oauth-apiserver")), [true, false, true]);
    assert_eq!(has(down("packageserver")), [true, true, false]);
    // A server that fails later keeps its registration.
    let registered = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.route.openshift.io" },
    });
    let failed = down("openshift-apiserver").live(registered);
    assert_eq!(has(failed), [true, true, true]);
    // Without an address, the API server would look for the Service in vain.
    let no_address = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "openshift-apiserver" },
        "spec": { "clusterIP": "" },
    });
    assert_eq!(
        has(Profile::new("None").source(no_address)),
        [false, true, true]
    );
}

#[test]
fn objects_without_their_setting_are_deleted() {
    let mode = |profile: Profile, id: &str| objects(&profile)[id].mode;
    let none = || Profile::new("None");
    let bundle = json!({ "name": "b" });
    let user_ca = source(
        "ConfigMap",
        "user-ca-bundle",
        json!({ "ca-bundle.crt": "x" }),
    );
    let proxy_ca = source("ConfigMap", "proxy-ca", json!({ "ca-bundle.crt": "x" }));
    let proxy = json!({ "trustedCA": { "name": "proxy-ca" } });
    let forwarded = json!({ "metricsForwarding": { "mode": "Forward" } });
    let hub = |is: bool| {
        json!({
            "apiVersion": CONFIG, "kind": "OperatorHub", "metadata": { "name": "cluster" },
            "spec": { "disableAllDefaultSources": is },
        })
    };
    let catalog =
        "operators.coreos.com/v1alpha1/CatalogSource/openshift-marketplace/redhat-operators";
    let deployment = "apps/v1/Deployment/openshift-monitoring/control-plane-metrics-forwarder";
    for (name, profile, id, expected) in [
        (
            "no bundle",
            none(),
            "v1/ConfigMap/openshift-config/user-ca-bundle",
            Mode::Delete,
        ),
        (
            "a bundle",
            none()
                .with("/spec/additionalTrustBundle", bundle)
                .source(user_ca),
            "v1/ConfigMap/openshift-config/user-ca-bundle",
            Mode::Enforce,
        ),
        (
            "no proxy CA",
            none(),
            "v1/ConfigMap/openshift-controller-manager/openshift-user-ca",
            Mode::Delete,
        ),
        (
            "a proxy CA",
            none()
                .with("/spec/configuration/proxy", proxy)
                .source(proxy_ca),
            "v1/ConfigMap/openshift-controller-manager/openshift-user-ca",
            Mode::Enforce,
        ),
        ("sources", none().live(hub(false)), catalog, Mode::Enforce),
        ("no sources", none().live(hub(true)), catalog, Mode::Delete),
        ("no forwarding", none(), deployment, Mode::Delete),
        (
            "forwarding",
            forwarding(none().with("/spec/monitoring", forwarded)),
            deployment,
            Mode::Enforce,
        ),
        (
            "no addition",
            Profile::new("AWS"),
            "v1/Secret/kube-system/global-pull-secret",
            Mode::Delete,
        ),
    ] {
        assert_eq!(mode(profile, id), expected, "{name}");
    }
    let mut profile = none();
    profile
        .sources
        .remove(&control_plane_component::render::Identity {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: "kubeadmin-password".to_owned(),
        });
    assert_eq!(
        mode(profile, "v1/Secret/kube-system/kubeadmin"),
        Mode::Delete
    );
}

/// Adds what the control plane publishes of its metrics.
fn forwarding(profile: Profile) -> Profile {
    let route = json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": { "name": "metrics-proxy" },
        "status": { "ingress": [{ "host": "m.example.com" }] },
    });
    // The form that component metrics-proxy writes.
    let components = "components: [{ name: kube-apiserver, metricsPort: 6443 }, { name: etcd, metricsPort: 2381 }]";
    profile
        .source(route)
        .source(source(
            "Secret",
            "metrics-proxy-ca-cert",
            json!({ "tls.crt": base64("CA") }),
        ))
        .source(source(
            "ConfigMap",
            "metrics-proxy-config",
            json!({ "config.yaml": components }),
        ))
}

#[test]
fn metrics_are_forwarded_from_each_component() {
    let mode = json!({ "metricsForwarding": { "mode": "Forward" } });
    let enabled = Profile::new("None").with("/spec/monitoring", mode);
    let monitor =
        "monitoring.coreos.com/v1/PodMonitor/openshift-monitoring/control-plane-metrics-forwarder";
    // Without inputs nothing is written, and nothing is deleted.
    assert!(!objects(&enabled).contains_key(monitor));
    let profile = forwarding(enabled);
    let path = |index: usize| {
        value(
            &profile,
            monitor,
            &format!("/spec/podMetricsEndpoints/{index}/path"),
        )
    };
    assert_eq!(
        (path(0), path(1)),
        (json!("/metrics/etcd"), json!("/metrics/kube-apiserver"))
    );
    let config = value(
        &profile,
        "v1/ConfigMap/openshift-monitoring/metrics-forwarder-config",
        "/data/haproxy.cfg",
    );
    assert!(
        config.as_str().unwrap().contains("m.example.com:443"),
        "{config}"
    );
    let disabled = profile.with(
        "/metadata/annotations/hypershift.openshift.io~1disable-monitoring-services",
        json!("true"),
    );
    assert_eq!(objects(&disabled)[monitor].mode, Mode::Delete);
}

#[test]
fn ingress_controller_follows_the_platform() {
    let object = "operator.openshift.io/v1/IngressController/openshift-ingress-operator/default";
    let strategy = "/spec/endpointPublishingStrategy";
    let scope = "/spec/endpointPublishingStrategy/loadBalancer/scope";
    let set = |pointer, value| vec![(pointer, value)];
    let nlb = || {
        (
            "/spec/configuration/ingress/loadBalancer/platform/aws/type",
            json!("NLB"),
        )
    };
    let annotation = |name: &str| {
        format!("/metadata/annotations/hypershift.openshift.io~1{name}").leak() as &str
    };
    check(vec![
        (
            "None",
            vec![],
            object,
            strategy,
            json!({ "type": "HostNetwork" }),
        ),
        (
            "KubeVirt",
            vec![],
            object,
            strategy,
            json!({ "type": "NodePortService" }),
        ),
        (
            "AWS",
            vec![],
            object,
            strategy,
            json!({ "type": "LoadBalancerService" }),
        ),
        (
            "AWS",
            vec![nlb()],
            object,
            "/spec/endpointPublishingStrategy/loadBalancer/providerParameters/aws/type",
            json!("NLB"),
        ),
        ("AWS", vec![nlb()], object, scope, json!("External")),
        (
            "AWS",
            vec![
                nlb(),
                ("/spec/platform/aws/endpointAccess", json!("Private")),
            ],
            object,
            scope,
            json!("Internal"),
        ),
        ("Azure", vec![], object, scope, json!("External")),
        (
            "Azure",
            set("/spec/platform/azure/topology", json!("Private")),
            object,
            scope,
            json!("Internal"),
        ),
        (
            "GCP",
            vec![(
                annotation("ingress-controller-load-balancer-scope"),
                json!("Internal"),
            )],
            object,
            scope,
            json!("Internal"),
        ),
        (
            "GCP",
            vec![(annotation("private-ingress-controller"), json!("true"))],
            object,
            strategy,
            json!({ "type": "Private" }),
        ),
        (
            "OpenStack",
            set(
                "/spec/platform/openstack/ingressFloatingIP",
                json!("1.2.3.4"),
            ),
            object,
            "/spec/endpointPublishingStrategy/loadBalancer/providerParameters/openstack/floatingIP",
            json!("1.2.3.4"),
        ),
        (
            "IBMCloud",
            set("/spec/platform/ibmcloud/providerType", json!("UPI")),
            object,
            strategy,
            json!({ "type": "NodePortService", "nodePort": { "protocol": "TCP" } }),
        ),
        (
            "IBMCloud",
            vec![],
            object,
            "/spec/defaultCertificate",
            Value::Null,
        ),
        (
            "IBMCloud",
            vec![],
            object,
            "/spec/nodePlacement/tolerations/0/value",
            json!("edge"),
        ),
        (
            "None",
            set(
                "/spec/infrastructureAvailabilityPolicy",
                json!("HighlyAvailable"),
            ),
            object,
            "/spec/replicas",
            json!(2),
        ),
        (
            "None",
            set(
                "/spec/operatorConfiguration/ingressOperator/endpointPublishingStrategy",
                json!({ "type": "Private" }),
            ),
            object,
            strategy,
            json!({ "type": "Private" }),
        ),
    ]);
}

#[test]
fn registry_follows_platform_and_users() {
    let object = "imageregistry.operator.openshift.io/v1/Config//cluster";
    let live = |spec: Value| {
        json!({
            "apiVersion": "imageregistry.operator.openshift.io/v1", "kind": "Config",
            "metadata": { "name": "cluster" }, "spec": spec,
        })
    };
    check(vec![
        (
            "KubeVirt",
            vec![],
            object,
            "/spec/storage",
            json!({ "emptyDir": {} }),
        ),
        ("AWS", vec![], object, "/spec/storage", Value::Null),
        (
            "IBMCloud",
            vec![],
            object,
            "/spec/managementState",
            json!("Removed"),
        ),
        ("OpenStack", vec![], object, "/kind", Value::Null),
        (
            "None",
            vec![(
                "/spec/infrastructureAvailabilityPolicy",
                json!("HighlyAvailable"),
            )],
            object,
            "/spec/replicas",
            json!(2),
        ),
    ]);
    let spec = |platform, live_spec| {
        let profile = Profile::new(platform).live(live(live_spec));
        objects(&profile)[object].value["spec"].clone()
    };
    let users = json!({ "managementState": "Unmanaged", "httpSecret": "s" });
    assert_eq!(
        spec("None", users),
        json!({ "managementState": "Unmanaged" })
    );
    assert!(spec("OpenStack", json!({}))["httpSecret"].is_string());
    let unusable = json!({ "httpSecret": "s", "storage": { "ibmcos": {} } });
    assert_eq!(spec("IBMCloud", unusable)["managementState"], "Removed");
}

#[test]
fn oidc_clients_are_copied() {
    let provider = json!({
        "type": "OIDC",
        "oidcProviders": [{
            "issuer": { "certificateAuthority": { "name": "ca" } },
            "oidcClients": [{ "clientSecret": { "name": "c" } }],
        }],
    });
    let with = |platform| {
        Profile::new(platform)
            .with("/spec/configuration/authentication", provider.clone())
            .source(source(
                "ConfigMap",
                "ca",
                json!({ "ca-bundle.crt": "x", "other": "y" }),
            ))
    };
    let mut client = source(
        "Secret",
        "c",
        json!({ "clientSecret": base64("s"), "other": base64("o") }),
    );
    let id = "v1/Secret/openshift-config/c";
    let profile = with("None").source(client.clone());
    assert_eq!(
        value(&profile, id, "/data"),
        json!({ "clientSecret": base64("s") })
    );
    let ca = value(&profile, "v1/ConfigMap/openshift-config/ca", "/data");
    assert_eq!(ca, json!({ "ca-bundle.crt": "x" }));
    client["metadata"]["annotations"] =
        json!({ "hypershift.openshift.io/hosted-cluster-sourced": "true" });
    let identities = "/spec/platform/azure/azureAuthenticationConfig/azureAuthenticationConfigType";
    let managed = with("Azure").with(identities, json!("ManagedIdentities"));
    assert!(!objects(&managed.source(client.clone())).contains_key(id));
    assert!(objects(&with("Azure").source(client)).contains_key(id));
}

#[test]
fn konnectivity_agent_follows_platform_release_and_proxy() {
    let object = "apps/v1/DaemonSet/kube-system/konnectivity-agent";
    let pod = |path: &str| format!("/spec/template/spec{path}").leak() as &str;
    let annotation = "/metadata/annotations/hypershift.openshift.io~1konnectivity-agent-image";
    let restart = "/metadata/annotations/hypershift.openshift.io~1restart-date";
    check(vec![
        (
            "IBMCloud",
            vec![],
            object,
            pod("/hostNetwork"),
            json!(false),
        ),
        (
            "IBMCloud",
            vec![],
            object,
            pod("/containers/0/livenessProbe/httpGet/host"),
            Value::Null,
        ),
        (
            "IBMCloud",
            vec![("/spec/platform/ibmcloud/providerType", json!("UPI"))],
            object,
            pod("/dnsPolicy"),
            json!("ClusterFirst"),
        ),
        (
            "None",
            vec![(annotation, json!("i"))],
            object,
            pod("/containers/0/image"),
            json!("i"),
        ),
        (
            "None",
            vec![(restart, json!("now"))],
            object,
            "/spec/template/metadata/annotations/hypershift.openshift.io~1restart-date",
            json!("now"),
        ),
    ]);
    let mut profile = Profile::new("None");
    profile.release.images.remove("apiserver-network-proxy");
    assert_eq!(
        value(&profile, object, pod("/containers/0/image")),
        json!("konnectivity-agent")
    );
    let proxy = json!({
        "apiVersion": CONFIG, "kind": "Proxy", "metadata": { "name": "cluster" },
        "status": { "httpsProxy": "https://p" },
    });
    let found = value(
        &profile.live(proxy),
        object,
        pod("/containers/0/env/1/value"),
    );
    assert_eq!(found, json!("https://p"));
    let live = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "konnectivity-agent", "namespace": "kube-system" },
        "spec": { "selector": { "matchLabels": { "old": "x" } } },
    });
    let found = value(
        &Profile::new("None").live(live),
        object,
        "/spec/template/metadata/labels",
    );
    assert_eq!(found, json!({ "old": "x" }));
}

/// Issue OCPBUGS-84368 of HyperShift.
#[test]
fn connection_checker_does_not_prevent_scale_down() {
    let object = "apps/v1/Deployment/kube-system/kas-connection-checker";
    let evictable = json!({ "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" });
    let annotations = "/spec/template/metadata/annotations";
    check(vec![("AWS", vec![], object, annotations, evictable)]);
}

#[test]
fn network_operator_avoids_the_infrastructures_network() {
    let object = format!("{OPERATOR}/Network//cluster").leak() as &str;
    let ovn = "/spec/defaultNetwork/ovnKubernetesConfig";
    let given = "/spec/operatorConfiguration/clusterNetworkOperator";
    let sdn = || ("/spec/networking/networkType", json!("OpenShiftSDN"));
    let ipv6 = || {
        (
            "/spec/networking/machineNetwork",
            json!([{ "cidr": "fd03::/64" }]),
        )
    };
    check(vec![
        (
            "KubeVirt",
            vec![sdn()],
            object,
            "/spec/defaultNetwork",
            json!({ "openshiftSDNConfig": { "vxlanPort": 9879 } }),
        ),
        (
            "KubeVirt",
            vec![ipv6()],
            object,
            "/spec/defaultNetwork/ovnKubernetesConfig/ipv6",
            json!({ "internalJoinSubnet": "fd99::/64" }),
        ),
        (
            "PowerVS",
            vec![],
            object,
            ovn,
            json!({ "gatewayConfig": { "routingViaHost": true } }),
        ),
        ("None", vec![], object, "/spec/defaultNetwork", Value::Null),
        (
            "None",
            vec![(given, json!({ "disableMultiNetwork": true }))],
            object,
            "/spec/disableMultiNetwork",
            json!(true),
        ),
        (
            "None",
            vec![(given, json!({ "disableMultiNetwork": false }))],
            object,
            "/spec/disableMultiNetwork",
            Value::Null,
        ),
        (
            "KubeVirt",
            vec![(
                given,
                json!({ "ovnKubernetesConfig": { "v4InternalSubnet": "100.1.0.0/16", "mtu": 1400 } }),
            )],
            object,
            ovn,
            json!({ "v4InternalSubnet": "100.1.0.0/16", "genevePort": 9880, "mtu": 1400 }),
        ),
        (
            "None",
            vec![(
                given,
                json!({ "ovnKubernetesConfig": { "ipv4": { "internalJoinSubnet": "100.2.0.0/16" }, "mtu": 0 } }),
            )],
            object,
            ovn,
            json!({ "ipv4": { "internalJoinSubnet": "100.2.0.0/16" } }),
        ),
    ]);
    let live = json!({
        "apiVersion": OPERATOR, "kind": "Network", "metadata": { "name": "cluster" },
        "spec": { "defaultNetwork": { "ovnKubernetesConfig": { "genevePort": 1, "v4InternalSubnet": "x" } } },
    });
    let objects = objects(&Profile::new("KubeVirt").live(live));
    assert_eq!(objects[object].value["spec"]["defaultNetwork"], Value::Null);
}

#[test]
fn pull_secrets_of_users_are_kept_if_annotated() {
    let id = "v1/Secret/openshift/pull-secret";
    let live = |data: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "pull-secret", "namespace": "openshift" }, "data": data,
        })
    };
    let annotation =
        "/metadata/annotations/hypershift.openshift.io~1ensureexists-pullsecret-reconcile";
    let annotated = || Profile::new("None").with(annotation, json!(""));
    for (name, profile, expected) in [
        (
            "not annotated",
            Profile::new("None").live(live(json!({ "a": "" }))),
            true,
        ),
        (
            "a user's",
            annotated().live(live(json!({ "a": "" }))),
            false,
        ),
        ("empty", annotated().live(live(json!({}))), true),
        ("missing", annotated(), true),
    ] {
        assert_eq!(objects(&profile).contains_key(id), expected, "{name}");
    }
}

#[test]
fn cloud_credentials_follow_the_platform() {
    let disk = "v1/Secret/openshift-cluster-csi-drivers/azure-disk-credentials";
    let ingress = "v1/Secret/openshift-ingress-operator/cloud-credentials";
    let identities = json!({
        "azureAuthenticationConfigType": "WorkloadIdentities",
        "workloadIdentities": { "disk": { "clientID": "d" }, "ingress": { "clientID": "i" } },
    });
    let managed = json!({
        "azureAuthenticationConfigType": "ManagedIdentities",
        "managedIdentities": { "dataPlane": { "diskMSIClientID": "m" } },
    });
    let set = |value: &Value| {
        vec![(
            "/spec/platform/azure/azureAuthenticationConfig",
            value.clone(),
        )]
    };
    check(vec![
        (
            "Azure",
            set(&identities),
            disk,
            "/data/azure_client_id",
            json!(base64("d")),
        ),
        (
            "Azure",
            set(&identities),
            ingress,
            "/data/azure_client_id",
            json!(base64("i")),
        ),
        (
            "Azure",
            set(&managed),
            disk,
            "/data/azure_client_id",
            json!(base64("m")),
        ),
        (
            "Azure",
            set(&managed),
            ingress,
            "/data/azure_client_id",
            json!(base64("fakeClientID")),
        ),
        (
            "Azure",
            set(&managed),
            disk,
            "/data/azure_resource_prefix",
            json!(base64("hcp-infra")),
        ),
        ("None", vec![], ingress, "/kind", Value::Null),
    ]);
    let registry = "v1/Secret/openshift-image-registry/installer-cloud-credentials";
    let key = source("Secret", "k", json!({ "ibmcloud_api_key": base64("key") }));
    let name = "/spec/platform/powervs/imageRegistryOperatorCloudCreds";
    let profile = Profile::new("PowerVS")
        .with(name, json!({ "name": "k" }))
        .source(key);
    assert_eq!(
        value(&profile, registry, "/data/ibmcloud_api_key"),
        json!(base64("key"))
    );
    let identity = json!({
        "projectNumber": "1", "poolID": "pool", "providerID": "provider",
        "serviceAccountsEmails": { "imageRegistry": "r@example.com" },
    });
    let profile = Profile::new("GCP").with("/spec/platform/gcp/workloadIdentity", identity);
    assert!(
        value(&profile, registry, "/data")
            .get("service_account.json")
            .is_some()
    );
    let credentials = source(
        "Secret",
        "os",
        json!({ "clouds.yaml": base64("c"), "cacert": base64("ca") }),
    );
    let profile = Profile::new("OpenStack")
        .with(
            "/spec/platform/openstack",
            json!({ "identityRef": { "name": "os", "cloudName": "mine" } }),
        )
        .source(credentials);
    let data = value(&profile, registry, "/data");
    let config = data["cloud.conf"].as_str().unwrap();
    assert!(
        ["clouds.yaml", "cacert", "ca-bundle.pem"]
            .iter()
            .all(|key| data.get(key).is_some())
    );
    assert!(config.len() > 100);
}

#[test]
fn invalid_cloud_settings_are_reported() {
    for (platform, pointer, found) in [
        ("AWS", "/spec/platform/aws/rolesRef/storageARN", json!("")),
        (
            "AWS",
            "/spec/platform/aws/rolesRef/storageARN",
            json!("a\ncredential_process = x"),
        ),
        (
            "GCP",
            "/spec/platform/gcp/workloadIdentity",
            json!({ "projectNumber": "1" }),
        ),
    ] {
        let (_, errors) = Profile::new(platform).with(pointer, found.clone()).build();
        assert_eq!(errors.len(), 1, "{platform} {found}: {errors:?}");
    }
}

#[test]
fn operator_catalogs_follow_their_placement() {
    let (hub, guest) = (config("OperatorHub"), || {
        ("/spec/olmCatalogPlacement", json!("guest"))
    });
    let hub = hub.leak() as &str;
    let disabled = || {
        (
            "/spec/configuration/operatorhub",
            json!({ "disableAllDefaultSources": true, "sources": [] }),
        )
    };
    check(vec![
        (
            "None",
            vec![disabled()],
            hub,
            "/spec",
            json!({ "disableAllDefaultSources": true }),
        ),
        (
            "None",
            vec![guest(), disabled()],
            hub,
            "/spec",
            json!({ "disableAllDefaultSources": true }),
        ),
    ]);
    let catalog =
        "operators.coreos.com/v1alpha1/CatalogSource/openshift-marketplace/redhat-operators";
    let mut profile = changed("None", vec![guest()]);
    // Images are found in a registry.
    assert_eq!(profile.build().1.len(), 3);
    profile
        .settings
        .catalog_images
        .insert("redhat-operators".to_owned(), "i".to_owned());
    assert_eq!(value(&profile, catalog, "/spec/image"), json!("i"));
    assert_eq!(value(&profile, catalog, "/spec/address"), Value::Null);
    // After the creation it belongs to users.
    let live = json!({
        "apiVersion": CONFIG, "kind": "OperatorHub", "metadata": { "name": "cluster" },
        "spec": { "disableAllDefaultSources": true },
    });
    let spec = |profile: Profile| objects(&profile.live(live.clone()))[hub].value["spec"].clone();
    assert_eq!(spec(profile), json!({}));
    assert_eq!(
        spec(Profile::new("None")),
        json!({ "disableAllDefaultSources": null })
    );
}

#[test]
fn kubelet_configuration_is_copied_per_node_pool() {
    const LABEL: &str = "hypershift.openshift.io/kubeletconfig-config";
    let labelled = |name: &str, namespace: Value, labels: Value| {
        let mut object = source("ConfigMap", name, json!({ "config": "x" }));
        object["metadata"]["namespace"] = namespace;
        object["metadata"]["labels"] = labels;
        object["metadata"]["labels"][LABEL] = json!("true");
        object
    };
    let pool = |pool: &str| json!({ "hypershift.openshift.io/nodePool": pool });
    let copied = |pool: &str| {
        json!({
            "hypershift.openshift.io/nodePool": pool,
            "hypershift.openshift.io/mirrored-config": "true",
        })
    };
    let namespace = || json!("openshift-config-managed");
    let mut immutable = labelled("a", namespace(), copied("one"));
    immutable["immutable"] = json!(true);
    let profile = Profile::new("None").source(labelled("a", Value::Null, pool("one")));
    let mode = |profile: Profile, name: &str| {
        let id = format!("v1/ConfigMap/openshift-config-managed/{name}");
        objects(&profile).get(&id).map(|object| object.mode)
    };
    let live = |labels| profile.clone().live(labelled("old", namespace(), labels));
    assert_eq!(mode(profile.clone(), "a"), Some(Mode::Merge));
    assert_eq!(
        mode(profile.clone().live(immutable), "a"),
        Some(Mode::Delete)
    );
    assert_eq!(mode(live(copied("one")), "old"), None);
    assert_eq!(mode(live(copied("gone")), "old"), Some(Mode::Delete));
    assert_eq!(mode(live(json!({})), "old"), Some(Mode::Delete));
}

#[test]
fn storage_follows_the_platform() {
    let driver = |name: &str| format!("{OPERATOR}/ClusterCSIDriver//{name}").leak() as &str;
    let identities = "/spec/platform/azure/azureAuthenticationConfig/azureAuthenticationConfigType";
    let kind = "/kind";
    let is = || json!("ClusterCSIDriver");
    let settings = "/spec/platform/kubevirt/storageDriver";
    let manual = || {
        let classes = json!([{ "guestStorageClassName": "g", "infraStorageClassName": "i" }]);
        let snapshots =
            json!([{ "guestVolumeSnapshotClassName": "s", "infraVolumeSnapshotClassName": "j" }]);
        vec![(
            settings,
            json!({
                "type": "Manual",
                "manual": { "storageClassMapping": classes, "volumeSnapshotClassMapping": snapshots },
            }),
        )]
    };
    check(vec![
        (
            "OpenStack",
            vec![],
            driver("manila.csi.openstack.org"),
            kind,
            is(),
        ),
        ("Azure", vec![], driver("disk.csi.azure.com"), kind, is()),
        (
            "Azure",
            vec![(identities, json!("ManagedIdentities"))],
            driver("disk.csi.azure.com"),
            kind,
            Value::Null,
        ),
        (
            "IBMCloud",
            vec![],
            "operator.openshift.io/v1/Storage//cluster",
            kind,
            Value::Null,
        ),
        (
            "PowerVS",
            vec![],
            "operator.openshift.io/v1/CSISnapshotController//cluster",
            kind,
            Value::Null,
        ),
        (
            "KubeVirt",
            vec![(settings, json!({ "type": "None" }))],
            "storage.k8s.io/v1/CSIDriver//csi.kubevirt.io",
            kind,
            Value::Null,
        ),
        (
            "KubeVirt",
            manual(),
            "storage.k8s.io/v1/StorageClass//g",
            "/parameters/infraStorageClassName",
            json!("i"),
        ),
        (
            "KubeVirt",
            manual(),
            "storage.k8s.io/v1/StorageClass//kubevirt-csi-infra-default",
            kind,
            Value::Null,
        ),
        (
            "KubeVirt",
            manual(),
            "snapshot.storage.k8s.io/v1/VolumeSnapshotClass//s",
            "/parameters/infraSnapshotClassName",
            json!("j"),
        ),
        (
            "KubeVirt",
            vec![],
            "apps/v1/DaemonSet/openshift-cluster-csi-drivers/kubevirt-csi-node",
            "/spec/template/spec/containers/1/image",
            json!("csi-node-driver-registrar"),
        ),
    ]);
}

#[test]
fn webhooks_and_drivers_of_azure_exist_on_azure_only() {
    for (id, platform) in [
        (
            "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration//azure-workload-identity-webhook",
            "Azure",
        ),
        (
            "apps/v1/DaemonSet/kube-system/azure-cloud-node-manager",
            "Azure",
        ),
        (
            "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration//aws-pod-identity",
            "AWS",
        ),
    ] {
        for found in ["AWS", "Azure", "None"] {
            let exists = objects(&Profile::new(found)).contains_key(id);
            assert_eq!(exists, found == platform, "{found}: {id}");
        }
    }
}

#[test]
fn pull_secrets_of_users_are_merged() {
    let additional = |config: Value| {
        let mut object = source(
            "Secret",
            "additional-pull-secret",
            json!({ ".dockerconfigjson": base64(&config.to_string()) }),
        );
        object["metadata"]["namespace"] = json!("kube-system");
        object
    };
    let original = json!({ "auths": { "a": { "auth": "ours" } } }).to_string();
    let profile = || {
        let secret = source(
            "Secret",
            "pull-secret",
            json!({ ".dockerconfigjson": base64(&original) }),
        );
        Profile::new("AWS").source(secret)
    };
    let users = json!({ "auths": { "a": { "auth": "theirs" }, "b": {} }, "credsStore": "x" });
    let id = "v1/Secret/kube-system/global-pull-secret";
    let merged = profile().live(additional(users));
    let expected = json!({ "auths": { "a": { "auth": "ours" }, "b": {} } }).to_string();
    assert_eq!(
        value(&merged, id, "/data/.dockerconfigjson"),
        json!(base64(&expected))
    );
    let daemon_set = "apps/v1/DaemonSet/kube-system/global-pull-secret-syncer";
    let mounts = "/spec/template/spec/containers/0/volumeMounts";
    let count = |profile: &Profile| value(profile, daemon_set, mounts).as_array().unwrap().len();
    assert_eq!((count(&profile()), count(&merged)), (3, 4));
    // The nodes keep what they have.
    let invalid = profile().live(additional(json!({ "auths": {} })));
    assert_eq!(invalid.build().1.len(), 1);
    assert!(!objects(&invalid).contains_key(daemon_set));
}

#[test]
fn metrics_rules_name_metrics() {
    let monitor =
        "monitoring.coreos.com/v1/ServiceMonitor/openshift-kube-apiserver/openshift-kube-apiserver";
    let rules = value(
        &Profile::new("None"),
        monitor,
        "/spec/endpoints/0/metricRelabelings",
    );
    let rules = rules.as_array().unwrap();
    assert_eq!(rules.len(), 11);
    assert!(rules.iter().all(|rule| rule["action"] == "drop"));
    let alerts = value(
        &Profile::new("None"),
        "monitoring.coreos.com/v1/PrometheusRule/openshift-kube-apiserver/podsecurity",
        "/spec/groups/0/rules",
    );
    assert!(
        alerts[0]["expr"]
            .as_str()
            .unwrap()
            .contains("ocp_namespace=\"\"")
    );
    assert!(
        alerts[1]["expr"]
            .as_str()
            .unwrap()
            .contains("ocp_namespace!=\"\"")
    );
}

#[test]
fn releases_without_an_image_are_reported() {
    let mut profile = Profile::new("KubeVirt");
    profile.release.images.clear();
    let (objects, errors) = profile.build();
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(
        errors.iter().all(|error| error.contains("no image")),
        "{errors:?}"
    );
    assert!(
        objects
            .iter()
            .any(|(_, object)| object.key().name == "kube-control-plane-signer")
    );
}

#[test]
fn all_kinds_are_watched() {
    let platforms = [
        "AWS",
        "Azure",
        "GCP",
        "IBMCloud",
        "KubeVirt",
        "None",
        "OpenStack",
        "PowerVS",
    ];
    let mode = json!({ "metricsForwarding": { "mode": "Forward" } });
    for platform in platforms {
        let profile = Profile::new(platform).with("/spec/monitoring", mode.clone());
        for (_, object) in forwarding(profile).build().0 {
            let key = object.key();
            let kind = (key.api_version.as_str(), key.kind.as_str());
            assert!(KINDS.contains(&kind), "{platform}: {key}");
        }
    }
    assert!(KINDS.is_sorted());
}
