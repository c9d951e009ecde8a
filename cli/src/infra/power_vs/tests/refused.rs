//! What is refused before anything is written.

use super::*;

type Setup = fn(&mut IbmCloud);

const OTHER: &str = "kubernetes.io-cluster-b-x2:owned";

fn crn_of(cloud: &IbmCloud, kind: Kind, name: &str) -> String {
    let found = cloud.named(kind, name).unwrap();
    found["crn"].as_str().unwrap().to_owned()
}

fn tag(cloud: &mut IbmCloud, kind: Kind, name: &str) {
    let crn = crn_of(cloud, kind, name);
    cloud.tag(&crn, OTHER);
}

fn reuse(workspace: Option<&str>, vpc: Option<&str>, gateway: Option<&str>) -> CreateRequest {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    CreateRequest {
        reused: Reused {
            workspace: owned(workspace),
            vpc: owned(vpc),
            gateway: owned(gateway),
        },
        ..request()
    }
}

#[tokio::test]
async fn what_prevents_the_creation_is_found_before_anything_is_written() {
    let rows: [(Setup, CreateRequest, &str); 13] = [
        (
            |cloud| drop(cloud.add_record("*.apps.a.example.com", "192.0.2.1")),
            request(),
            "DNS record *.apps.a.example.com exists",
        ),
        (
            |cloud| cloud.set(Kind::Group, GROUP, "name", json!("other")),
            request(),
            "there is no resource group group",
        ),
        (
            |cloud| cloud.set(Kind::Zone, "zone-0003", "name", json!("example.org")),
            request(),
            "no instance of Internet Services in the account has zone example.com",
        ),
        (
            |cloud| {
                cloud.add_vpc("a-x1-vpc", REGION, GROUP);
                tag(cloud, Kind::Vpc, "a-x1-vpc");
            },
            request(),
            "VPC a-x1-vpc belongs to another cluster",
        ),
        (
            |cloud| {
                cloud.add_workspace("a-x1-pvs", REGION, GROUP);
                tag(cloud, Kind::Instance, "a-x1-pvs");
            },
            request(),
            "workspace a-x1-pvs belongs to another cluster",
        ),
        (
            |cloud| drop(cloud.add_workspace("a-x1-pvs", "dal10", GROUP)),
            request(),
            "is in zone dal10, not in us-south",
        ),
        (
            |cloud| {
                cloud.add_gateway("a-x1-tg", false);
                tag(cloud, Kind::Gateway, "a-x1-tg");
            },
            request(),
            "transit gateway a-x1-tg belongs to another cluster",
        ),
        (
            |cloud| drop(cloud.add_service_id("a-x1-ingress-creds", "of another tool")),
            request(),
            "service ID a-x1-ingress-creds is not described as one of the cluster's",
        ),
        (
            |cloud| {
                let vpc = cloud.add_vpc("shared", REGION, GROUP);
                cloud.add_rule(&vpc, 80);
            },
            reuse(None, Some("shared"), None),
            "has no inbound rule for TCP port 443",
        ),
        (
            |_| {},
            reuse(None, Some("shared"), None),
            "there is no VPC shared",
        ),
        (
            |_| {},
            reuse(Some("instance-0002"), None, None),
            "there is no workspace instance-0002",
        ),
        (
            |_| {},
            reuse(None, None, Some("shared")),
            "there is no transit gateway shared",
        ),
        (
            |cloud| drop(cloud.add_gateway("shared", false)),
            CreateRequest {
                global_routing: true,
                ..reuse(None, None, Some("shared"))
            },
            "has local routing, and must have global routing",
        ),
    ];
    for (setup, request, expected) in rows {
        let fake = account();
        setup(&mut fake.state().cloud);
        let (_, result) = Cluster::new("a-x1", "a").attempt(&fake, &request).await;
        let error = format!("{:#}", result.unwrap_err());
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(fake.writes(), [""; 0], "{expected}");
    }
}

#[tokio::test]
async fn a_zone_without_support_is_refused_without_a_call() {
    let fake = account();
    let mut scope = scope("a-x1", "a");
    scope.place.zone = "wdc06".to_owned();
    let cluster = Cluster::of(scope);
    let (output, result) = cluster.attempt(&fake, &request()).await;
    assert!(result.unwrap_err().to_string().contains("wdc06"));
    assert_eq!(fake.count(), 0);
    assert_eq!(output.account_id, "");
}

/// Names alone do not make something belong to the cluster.
#[tokio::test]
async fn what_has_the_tag_of_another_cluster_is_not_destroyed() {
    let fake = account();
    let cluster = Cluster::new("a-x1", "a");
    cluster.create(&fake).await;
    {
        let cloud = &mut fake.state().cloud;
        for (kind, name) in [
            (Kind::Vpc, "a-x1-vpc"),
            (Kind::Instance, "a-x1-pvs"),
            (Kind::Gateway, "a-x1-tg"),
        ] {
            let crn = crn_of(cloud, kind, name);
            // Its own tag was lost.
            cloud.untag(&crn);
            cloud.tag(&crn, OTHER);
        }
    }
    let error = cluster.destroy(&fake).await.unwrap_err().to_string();
    for what in [
        "VPC a-x1-vpc",
        "workspace a-x1-pvs",
        "transit gateway a-x1-tg",
    ] {
        let expected = format!("{what} belongs to another cluster");
        assert!(error.contains(&expected), "{expected}: {error}");
    }
    let state = fake.state();
    assert!(state.cloud.named(Kind::Vpc, "a-x1-vpc").is_some());
    assert!(state.cloud.named(Kind::Instance, "a-x1-pvs").is_some());
    assert!(state.cloud.named(Kind::Gateway, "a-x1-tg").is_some());
    assert_eq!(state.cloud.all(Kind::DhcpServer).count(), 1);
    assert_eq!(state.cloud.all(Kind::ServiceId).count(), 0);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let fake = account();
    let cluster = Cluster::new("a-x1", "a");
    let executor = cluster.executor(&fake);
    let output = Output::new(&cluster.scope);
    executor.report(&request(), &output).await.unwrap();
    cluster.create(&fake).await;
    cluster.leave(&fake);
    fake.set_fault(None);
    executor
        .report_destruction(&Reused::default())
        .await
        .unwrap();
    assert_eq!(fake.writes(), [""; 0]);
}
