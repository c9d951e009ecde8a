//! What nodes get for the way to the API server.

use super::*;
use crate::facts::fixture;
use crate::node_pool::config::Content;
use crate::node_pool::fixtures;

#[test]
fn nodes_reach_the_api_server_through_local_haproxy() {
    let (local, remote) = (
        local(&fixtures::cluster()),
        remote(&fixtures::cluster()).unwrap(),
    );
    let config = config(&local, &remote);
    assert!(config.contains("bind 172.20.0.1:6443\n"), "{config}");
    assert!(
        config.contains("server controlplane api.dev.example.com:6443 check"),
        "{config}"
    );
}

#[test]
fn nodes_wait_for_the_address_of_private_clusters_too() {
    let mut cluster = fixtures::cluster();
    cluster.spec.platform.aws.as_mut().unwrap().endpoint_access = AwsEndpointAccess::Private;
    cluster.status.as_mut().unwrap().control_plane_endpoint = None;
    assert!(remote(&cluster).is_none());
}

/// The published port is that of the public address.
#[test]
fn private_clusters_are_reached_at_their_internal_name_and_port() {
    let public = "api.dev.example.com:30443";
    let (route, load_balancer) = (
        "api.one.hypershift.local:443",
        "api.one.hypershift.local:6443",
    );
    for (platform, field, access, strategy, expected) in [
        ("aws", "endpointAccess", "Public", "Route", public),
        ("aws", "endpointAccess", "Public", "LoadBalancer", public),
        ("aws", "endpointAccess", "Private", "Route", route),
        (
            "aws",
            "endpointAccess",
            "Private",
            "LoadBalancer",
            load_balancer,
        ),
        ("aws", "endpointAccess", "PublicAndPrivate", "Route", route),
        ("azure", "topology", "Public", "Route", public),
        ("azure", "topology", "PublicAndPrivate", "Route", route),
        ("azure", "topology", "Private", "Route", route),
        (
            "azure",
            "topology",
            "Private",
            "LoadBalancer",
            load_balancer,
        ),
        ("gcp", "endpointAccess", "PublicAndPrivate", "Route", route),
        ("gcp", "endpointAccess", "Private", "Route", route),
        ("agent", "", "", "LoadBalancer", public),
    ] {
        let mut cluster = fixture::hosted_cluster(platform);
        if !field.is_empty() {
            let mut of_platform = serde_json::to_value(&cluster.spec.platform).unwrap();
            of_platform[platform][field] = json!(access);
            cluster.spec.platform = serde_json::from_value(of_platform).unwrap();
        }
        let services = json!([
            { "service": "Ignition", "servicePublishingStrategy": { "type": "Route" } },
            { "service": "APIServer", "servicePublishingStrategy": { "type": strategy } },
        ]);
        cluster.spec.services = serde_json::from_value(services).unwrap();
        cluster.status = fixtures::cluster().status;
        let status = cluster.status.as_mut().unwrap();
        status.control_plane_endpoint.as_mut().unwrap().port = 30443;
        let found = remote(&cluster).unwrap().written();
        assert_eq!(found, expected, "{platform} {access} {strategy}");
    }
    // Without a topology, a cluster on Azure is public.
    let mut cluster = fixture::hosted_cluster("azure");
    cluster.spec.platform.azure.as_mut().unwrap().topology = None;
    assert!(!is_private(&cluster));
}

/// The control planes of some releases publish the load balancer. Later ones leave it to this operator, and what they
/// published stays.
#[test]
fn a_published_load_balancer_counts_while_the_control_plane_has_it() {
    let core = ["ignition-config-fips", PUBLISHED].map(|name| Source {
        name: name.to_owned(),
        content: Content::Empty,
    });
    let skips = [(Capability::SkipsHaproxy.label(), "true".to_owned())];
    for (capabilities, expected) in [
        (Capabilities::default(), 2),
        (Capabilities::unknown(), 2),
        (Capabilities::of_labels(&skips.into()), 1),
    ] {
        let counts = published(&core, &capabilities);
        assert_eq!(counts.len(), expected, "{capabilities:?}");
        assert_eq!(counts[0].name, "ignition-config-fips");
    }
}

#[test]
fn haproxy_addresses_follow_the_cluster() {
    let mut cluster = fixtures::cluster();
    cluster.spec.networking.service_network[0].cidr.0 = "fd02::/112".to_owned();
    assert_eq!(local(&cluster).written(), "[fd00::1]:6443");
    assert!(
        unit("fd00::1")["contents"]
            .as_str()
            .unwrap()
            .contains("fd00::1/128")
    );
}

/// Check O07: what this version makes is what earlier versions made, in other words.
#[test]
fn another_text_of_the_load_balancer_replaces_no_nodes() {
    let (cluster, release) = (fixtures::cluster(), fixtures::release("4.22.0"));
    let made = |cluster: &HostedCluster| {
        let made = machine_config(&fixtures::pool(), cluster, &release, None);
        let text = made.unwrap().unwrap().text();
        serde_json::from_str::<Value>(&text).unwrap()["spec"].clone()
    };
    let desired = made(&cluster);
    let mut earlier = desired.clone();
    let config = config(&local(&cluster), &remote(&cluster).unwrap());
    let config = config.replace("  timeout client-fin 5s\n", "");
    let config = config.replace("  timeout server-fin 5s\n", "");
    earlier["config"]["storage"]["files"][0] = file(&format!("{CONFIG}/haproxy.cfg"), &config);
    assert_ne!(earlier, desired);
    assert!(is_same(&earlier, &desired));
    let mut moved = fixtures::cluster();
    let status = moved.status.as_mut().unwrap();
    status.control_plane_endpoint.as_mut().unwrap().port = 443;
    assert!(!is_same(&made(&moved), &desired));
}

/// Behind a proxy, the pod is the program of the control-plane-operator. Another image of it replaces no nodes.
#[test]
fn nodes_behind_a_proxy_run_the_forwarder() {
    let (pool, release) = (fixtures::pool(), fixtures::release("4.22.0"));
    let mut cluster = fixtures::cluster();
    let proxy = json!({ "proxy": { "httpsProxy": "http://proxy.example.net:3128" } });
    cluster.spec.configuration = serde_json::from_value(proxy).unwrap();
    assert!(has_proxy(&cluster));
    let waiting = machine_config(&pool, &cluster, &release, None).unwrap_err();
    assert!(waiting.starts_with("Waiting for the image"), "{waiting}");
    let made = |cluster: &HostedCluster, image: &str| {
        let made = machine_config(&pool, cluster, &release, Some(image));
        let text = made.unwrap().unwrap().text();
        serde_json::from_str::<Value>(&text).unwrap()["spec"].clone()
    };
    let desired = made(&cluster, "images.example.com/operator:1");
    let files = desired["config"]["storage"]["files"].as_array().unwrap();
    let [manifest] = &**files else {
        panic!("{files:?}");
    };
    assert_eq!(manifest["path"], MANIFEST);
    let source = manifest["contents"]["source"].as_str().unwrap();
    let (_, content) = source.split_once("base64,").unwrap();
    let pod: Value = serde_json::from_slice(&BASE64.decode(content).unwrap()).unwrap();
    let expected = json!({
        "hostNetwork": true,
        "priorityClassName": "system-node-critical",
        "containers": [{
            "name": "kubernetes-default-proxy",
            "image": "images.example.com/operator:1",
            "command": [
                "control-plane-operator",
                "kubernetes-default-proxy",
                "--listen-addr=172.20.0.1:6443",
                "--proxy-addr=proxy.example.net:3128",
                "--apiserver-addr=api.dev.example.com:6443",
            ],
            "ports": [{ "name": "apiserver", "containerPort": 6443, "hostPort": 6443, "protocol": "TCP" }],
            "resources": { "requests": { "cpu": "13m", "memory": "16Mi" } },
            "securityContext": { "runAsUser": 1001 },
        }],
    });
    assert_eq!(pod["spec"], expected);
    assert_eq!(pod["metadata"]["name"], "kube-apiserver-proxy");
    assert!(is_same(
        &made(&cluster, "images.example.com/operator:2"),
        &desired
    ));
    let mut direct = cluster.clone();
    direct.spec.configuration = None;
    assert!(!is_same(
        &made(&direct, "images.example.com/operator:1"),
        &desired
    ));
}

/// Check T16: nothing but an address or a name gets into the load balancer's configuration.
#[test]
fn haproxy_config_rejects_injected_settings() {
    let release = fixtures::release("4.22.0");
    for (field, host, expected) in [
        ("advertiseAddress", "10.0.0.1", true),
        ("advertiseAddress", "fd00::1", true),
        ("advertiseAddress", "10.0.0.1:6443\n  stats enable", false),
        ("host", "api.example.com\n  server other 192.0.2.1:1", false),
    ] {
        let mut cluster = fixtures::cluster();
        if field == "host" {
            let status = cluster.status.as_mut().unwrap();
            status.control_plane_endpoint.as_mut().unwrap().host = host.to_owned();
        } else {
            let settings = serde_json::json!({ "advertiseAddress": host });
            cluster.spec.networking.api_server = serde_json::from_value(settings).unwrap();
        }
        let made = machine_config(&fixtures::pool(), &cluster, &release, None);
        assert_eq!(made.is_ok(), expected, "{host:?}: {made:?}");
        if let Err(message) = made {
            assert!(message.contains(field), "{message}");
        }
    }
}
