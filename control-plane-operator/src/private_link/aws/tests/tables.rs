//! What follows from what: tables.

use std::collections::BTreeSet;

use api::hypershift::v1beta1::{AwsEndpointService, AwsEndpointServiceStatus, HostedControlPlane};
use control_plane_component::Objects;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{SERVICE, cluster, link, refused};
use crate::private_link::aws::cloud::{Endpoint, Group, Rule, Subnet, Zone};
use crate::private_link::aws::endpoint::Progress;
use crate::private_link::aws::objects;
use crate::private_link::aws::plan::{self, Cluster, Link, Problem};
use crate::private_link::aws::status::{patch, status};

fn hcp(edit: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let text = include_str!(
        "../../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
    );
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    let arn = "arn:aws:iam::123456789012:role/one";
    hcp["spec"]["platform"] = json!({ "type": "AWS", "aws": {
        "region": "us-east-1",
        "endpointAccess": "Private",
        "cloudProviderConfig": { "vpc": "vpc-1" },
        "resourceTags": [{ "key": "team", "value": "red" }],
        "rolesRef": {
            "ingressARN": arn, "imageRegistryARN": arn, "storageARN": arn, "networkARN": arn,
            "kubeCloudControllerARN": arn, "nodePoolManagementARN": arn, "controlPlaneOperatorARN": arn,
        },
    }});
    edit(&mut hcp);
    serde_json::from_value(hcp).unwrap()
}

fn tags(pairs: &[(&str, &str)]) -> support::ec2::Tags {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn tags_say_whose_something_is() {
    let own = cluster("a", "vpc-1");
    let owned = ("kubernetes.io/cluster/one-x", "owned");
    let id = "hypershift.openshift.io/cluster-id";
    for (found, expected) in [
        (tags(&[]), false),
        (tags(&[owned]), true),
        (tags(&[owned, (id, "a")]), true),
        (tags(&[owned, (id, "b")]), false),
        (tags(&[(owned.0, "shared")]), false),
        (
            tags(&[("kubernetes.io/cluster/two-x", "owned"), (id, "a")]),
            false,
        ),
    ] {
        assert_eq!(own.owns(&found), expected, "{found:?}");
    }
    // The user's tags do not replace them.
    let liar = Cluster {
        tags: tags(&[
            (owned.0, "shared"),
            (id, "b"),
            ("AWSEndpointService", "other"),
            ("team", "red"),
        ]),
        ..own
    };
    let link = link(AwsEndpointServiceStatus::default());
    let made = link.endpoint_tags(&liar);
    let expected = [
        owned,
        (id, "a"),
        ("AWSEndpointService", "private-router"),
        ("team", "red"),
    ];
    assert_eq!(made, tags(&expected));
    let endpoint = |vpc: &str, tags| Endpoint {
        vpc: vpc.to_owned(),
        tags,
        ..Endpoint::default()
    };
    assert!(link.owns(&endpoint("vpc-1", made.clone()), &liar));
    assert!(!link.owns(&endpoint("vpc-2", made), &liar));
    assert!(!link.owns(&endpoint("vpc-1", tags(&[owned])), &liar));
    let name = ("Name", "one-x-vpce-private-router");
    assert_eq!(
        link.group_tags(&liar).get(name.0).map(String::as_str),
        Some(name.1)
    );
}

#[test]
fn ports_and_records_follow_the_services() {
    for (name, by_route, port, records) in [
        ("kube-apiserver-private", false, 6443, vec!["api"]),
        ("kube-apiserver-private", true, 6443, vec!["api"]),
        ("private-router", true, 443, vec!["api", "*.apps"]),
        ("private-router", false, 443, vec!["*.apps"]),
        ("router-clusters-one", true, 443, vec![]),
    ] {
        let cluster = Cluster {
            is_api_server_by_route: by_route,
            ..cluster("a", "vpc-1")
        };
        let link = Link {
            name: name.to_owned(),
            ..link(AwsEndpointServiceStatus::default())
        };
        let cidr = "10.0.0.0/16".to_owned();
        let rules = BTreeSet::from([Rule { port, cidr }]);
        assert_eq!(link.rules(&cluster), rules, "{name}");
        let expected = records
            .iter()
            .map(|it| format!("{it}.one.hypershift.local"));
        assert_eq!(
            link.records(&cluster),
            expected.collect::<Vec<_>>(),
            "{name} {by_route}"
        );
    }
}

#[test]
fn only_missing_rules_are_added() {
    let rule = |port: u16| Rule {
        port,
        cidr: "10.0.0.0/16".to_owned(),
    };
    let live = Group {
        ingress: [rule(443), rule(22)].into(),
        ..Group::default()
    };
    assert_eq!(plan::missing_rules(&[rule(443)].into(), &live), []);
    assert_eq!(
        plan::missing_rules(&[rule(443), rule(6443)].into(), &live),
        [rule(6443)]
    );
}

#[test]
fn an_endpoint_has_one_subnet_in_each_zone() {
    let ids = ["c", "b", "a", "d"].map(str::to_owned);
    let found = [("a", "1"), ("b", "1"), ("c", "2")].map(|(id, zone)| Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
    });
    // One that is not known yet is kept: AWS says what is wrong with it.
    assert_eq!(plan::one_per_zone(&ids, &found), ["a", "c", "d"]);
    assert_eq!(plan::one_per_zone(&[], &found), Vec::<String>::new());
}

#[test]
fn endpoints_follow_subnets_and_group() {
    let live = Endpoint {
        subnets: ["a".to_owned(), "b".to_owned()].into(),
        groups: ["sg".to_owned()].into(),
        ..Endpoint::default()
    };
    for (subnets, group, expected) in [
        (vec!["a", "b"], "sg", None),
        (vec![], "sg", None),
        (vec!["b", "c"], "sg", Some((vec!["c"], vec!["a"], vec![]))),
        (
            vec!["a", "b"],
            "other",
            Some((vec![], vec![], vec!["other"])),
        ),
    ] {
        let subnets: Vec<_> = subnets.into_iter().map(str::to_owned).collect();
        let change = plan::change(&live, &subnets, group);
        let change = change.as_ref().map(|it| {
            let texts = |all: &Vec<String>| all.clone();
            (
                texts(&it.added_subnets),
                texts(&it.removed_subnets),
                texts(&it.added_groups),
            )
        });
        let texts = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let expected = expected.map(|(a, b, c)| (texts(a), texts(b), texts(c)));
        assert_eq!(change, expected, "{subnets:?} {group}");
    }
}

#[test]
fn states_and_names_of_endpoints_are_understood() {
    for (state, gone, going, useless) in [
        ("pending", false, false, false),
        ("available", false, false, false),
        ("Deleting", false, true, false),
        ("deleted", true, false, false),
        ("Rejected", false, false, true),
        ("failed", false, false, true),
        ("expired", false, false, true),
    ] {
        let endpoint = Endpoint {
            state: state.to_owned(),
            service: SERVICE.to_owned(),
            ..Endpoint::default()
        };
        let found = (
            plan::is_gone(&endpoint),
            plan::is_going(&endpoint),
            plan::is_useless(&endpoint, SERVICE),
        );
        assert_eq!(found, (gone, going, useless), "{state}");
        assert!(plan::is_useless(&endpoint, "another"));
    }
    for (host, expected) in [
        (
            "vpce-0a1-x9.vpce-svc-1.us-east-1.vpce.amazonaws.com",
            Some("vpce-0a1"),
        ),
        (
            "vpce-0a1.vpce-svc-1.us-east-1.vpce.amazonaws.com.",
            Some("vpce-0a1"),
        ),
        ("vpce-.x", None),
        ("router.example.com", None),
        ("", None),
    ] {
        assert_eq!(plan::endpoint_of(host).as_deref(), expected, "{host}");
    }
}

#[test]
fn zones_of_one_name_are_distinguished() {
    let zone = |id: &str, name: &str| Zone {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    let all = [zone("1", "a"), zone("2", "b"), zone("3", "b")];
    for (name, before, expected) in [
        ("a", None, Ok(Some("1"))),
        ("a", Some("2"), Ok(Some("1"))),
        ("b", Some("3"), Ok(Some("3"))),
        ("c", None, Ok(None)),
        ("b", None, Err("2 private zones b")),
        ("b", Some("1"), Err("2 private zones b")),
    ] {
        match (plan::zone(&all, name, before), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected, "{name}"),
            (Err(problem), Err(expected)) => assert!(problem.message().contains(expected)),
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

#[test]
fn links_follow_the_load_balancers_of_services() {
    for (host, expected) in [
        (
            "a1b2c3-0123456789.elb.us-east-1.amazonaws.com",
            Some("a1b2c3"),
        ),
        (
            "k8s-ns-router-0a1-9f8.elb.us-east-1.amazonaws.com",
            Some("k8s-ns-router-0a1"),
        ),
        ("plain.elb.us-east-1.amazonaws.com", Some("plain")),
        ("", None),
    ] {
        let mut objects = Objects::default();
        let ingress = if host.is_empty() {
            json!([])
        } else {
            json!([{ "hostname": host }])
        };
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "private-router" },
            "status": { "loadBalancer": { "ingress": ingress } },
        });
        objects.insert(service.clone());
        let found = objects::balancer(&objects, "private-router");
        assert_eq!(found.as_deref(), expected, "{host}");
        service["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        objects.insert(service);
        assert_eq!(
            objects::balancer(&objects, "private-router"),
            None,
            "{host}"
        );
    }
    let hcp = hcp(|_| {});
    let desired = objects::link(&hcp, "private-router", "a1b2c3");
    let read = |object: &Value| -> AwsEndpointService {
        let mut object = object.clone();
        object["apiVersion"] = json!("hypershift.openshift.io/v1beta1");
        object["kind"] = json!("AWSEndpointService");
        serde_json::from_value(object).unwrap()
    };
    let changed = |pointer: &str, value: Value| {
        let mut object = desired.clone();
        *object.pointer_mut(pointer).unwrap() = value;
        read(&object)
    };
    assert!(objects::has(&read(&desired), &desired));
    // What others add is theirs.
    let finalizers = json!(["other", objects::FINALIZER]);
    assert!(objects::has(
        &changed("/metadata/finalizers", finalizers),
        &desired
    ));
    for (pointer, value) in [
        ("/metadata/finalizers", json!([])),
        ("/metadata/ownerReferences", json!([])),
        ("/spec/networkLoadBalancerName", json!("other")),
        ("/spec/resourceTags", json!([])),
    ] {
        assert!(
            !objects::has(&changed(pointer, value), &desired),
            "{pointer}"
        );
    }
}

#[test]
fn published_names_of_private_clusters_lead_to_the_endpoint() {
    let services = json!([
        { "service": "APIServer", "servicePublishingStrategy": {
            "type": "Route", "route": { "hostname": "api.example.com" } } },
        { "service": "OAuthServer", "servicePublishingStrategy": {
            "type": "Route", "route": { "hostname": "oauth.example.com" } } },
    ]);
    let with = |access: &str, services: &Value| {
        let hcp = hcp(|it| {
            it["spec"]["platform"]["aws"]["endpointAccess"] = json!(access);
            it["spec"]["services"] = services.clone();
        });
        let all = objects::externals(&hcp, "vpce-1.example.com");
        let names = all.iter().map(|it| {
            assert_eq!(it["spec"]["externalName"], "vpce-1.example.com");
            let host = &it["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/hostname"];
            (it["metadata"]["name"].clone(), host.clone())
        });
        names.collect::<Vec<_>>()
    };
    let api = (
        json!("kube-apiserver-external-private"),
        json!("api.example.com"),
    );
    let oauth = (json!("oauth-external-private"), json!("oauth.example.com"));
    assert_eq!(with("Private", &services), [api.clone(), oauth]);
    assert_eq!(with("PublicAndPrivate", &services), []);
    let mut bare = services.clone();
    bare[1]["servicePublishingStrategy"] = json!({ "type": "Route" });
    assert_eq!(with("Private", &bare), [api]);
}

#[test]
fn the_cluster_is_that_of_the_control_plane() {
    let found = Cluster::of(&hcp(|it| {
        it["metadata"]["name"] = json!("one");
        it["spec"]["infraID"] = json!("one-x");
        it["spec"]["clusterID"] = json!("a");
        it["spec"]["networking"]["machineNetwork"] = json!([{ "cidr": "10.0.0.0/16" }]);
        let route = json!({ "type": "Route" });
        it["spec"]["services"] =
            json!([{ "service": "APIServer", "servicePublishingStrategy": route }]);
    }));
    assert_eq!(found.unwrap(), cluster("a", "vpc-1"));
    let problem = Cluster::of(&hcp(|it| {
        it["spec"]["platform"]["aws"]["cloudProviderConfig"] = Value::Null;
    }));
    assert!(problem.unwrap_err().message().contains("set its vpc"));
}

#[test]
fn the_condition_says_what_has_become_of_it() {
    let before = AwsEndpointServiceStatus {
        endpoint_service_name: Some(SERVICE.to_owned()),
        ..AwsEndpointServiceStatus::default()
    };
    let after = AwsEndpointServiceStatus {
        endpoint_id: Some("vpce-1".to_owned()),
        ..before.clone()
    };
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let throttled = refused(400, "Throttling");
    for (made, id, expected) in [
        (Ok(Progress::Record(after.clone())), Some("vpce-1"), None),
        (
            Ok(Progress::Done(after)),
            Some("vpce-1"),
            Some(("True", "AWSSuccess", "VPC endpoint vpce-1 is available")),
        ),
        (
            Err(Problem::Input("waiting for it".to_owned())),
            None,
            Some(("False", "AWSError", "waiting for it")),
        ),
        (
            Err(Problem::Aws(refused(403, "UnauthorizedOperation"))),
            None,
            Some((
                "False",
                "AWSError",
                "AWS refuses it (UnauthorizedOperation)",
            )),
        ),
        (Err(Problem::Aws(throttled)), None, None),
    ] {
        let found = status(&before, &made, Some(3), now);
        assert_eq!(found.endpoint_id.as_deref(), id, "{made:?}");
        assert_eq!(found.endpoint_service_name, before.endpoint_service_name);
        let condition = found.conditions.first();
        let texts = condition.map(|it| (it.status.as_str(), it.reason.as_str()));
        assert_eq!(texts, expected.map(|it| (it.0, it.1)), "{made:?}");
        if let Some((condition, expected)) = condition.zip(expected) {
            assert_eq!(condition.type_, "AWSEndpointAvailable");
            assert!(
                condition.message.contains(expected.2),
                "{}",
                condition.message
            );
        }
        let later = status(&found, &made, Some(3), Timestamp::now());
        assert_eq!(patch(&found, &later), None, "nothing has changed: {made:?}");
    }
    // What is not there any more is removed.
    let written = patch(
        &AwsEndpointServiceStatus {
            dns_names: vec!["a".to_owned()],
            ..before.clone()
        },
        &before,
    );
    assert_eq!(written.unwrap()["status"]["dnsNames"], json!([]));
}
