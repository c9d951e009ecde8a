//! Settings of all control planes, as flags have them.

use api::group::CapiTypes;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::facts;
use crate::config::ControlPlanes;
use crate::facts::Facts;
use crate::hosted_cluster::build::build;
use crate::names;

fn object(facts: &Facts, kind: &str, name: &str) -> Option<Value> {
    let plan = build(facts).unwrap();
    let mut objects = plan.iter().flat_map(|it| &it.objects);
    let found = objects.find(|it| it.resource.kind == kind && it.name() == name);
    found.map(|it| it.body.clone())
}

#[test]
fn settings_are_passed_to_the_control_plane_operator() {
    let mut facts = facts("aws", CapiTypes::Private);
    facts.images.control_planes = ControlPlanes {
        cert_rotation_scale: Some("1h".to_owned()),
        version_metrics: true,
        version_metrics_url: Some("https://prometheus.example.com".to_owned()),
        ..ControlPlanes::default()
    };
    let deployment = object(&facts, "Deployment", names::CONTROL_PLANE_OPERATOR).unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let variables = container["env"].as_array().unwrap();
    for (name, value) in [
        ("CERT_ROTATION_SCALE", "1h"),
        ("ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS", "true"),
        ("CVO_PROMETHEUS_URL", "https://prometheus.example.com"),
    ] {
        let variable = json!({ "name": name, "value": value });
        assert!(variables.contains(&variable), "{name}: {variables:?}");
    }
}

#[test]
fn blocked_networks_replace_the_addresses_of_the_api_server() {
    let mut facts = facts("aws", CapiTypes::Private);
    let except = |facts: &Facts| {
        let policy = object(facts, "NetworkPolicy", "management-kas")?;
        let to = &policy["spec"]["egress"][0]["to"];
        Some([0_usize, 1].map(|index| to[index]["ipBlock"]["except"].clone()))
    };
    let host = json!(["192.0.2.1/32"]);
    assert_eq!(except(&facts), Some([host, Value::Null]));
    let networks = ["10.0.0.0/16", "fd00::/8"];
    facts.images.control_planes.blocked = networks.map(|it| it.parse::<IpNet>().unwrap()).to_vec();
    let expected = [json!(["10.0.0.0/16"]), json!(["fd00::/8"])];
    assert_eq!(except(&facts), Some(expected.clone()));
    // Without known addresses, too.
    facts.management.api_server = Vec::new();
    assert_eq!(except(&facts), Some(expected));
    facts.images.control_planes.blocked = Vec::new();
    assert_eq!(except(&facts), None);
}
