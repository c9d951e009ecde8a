//! Resources that exist are used and kept, and what was created in them is destroyed.

use super::*;

/// A VPC, a workspace and a gateway of an owner of their own; with networks in them, or without.
fn shared(cloud: &mut IbmCloud, has_networks: bool) -> CreateRequest {
    let vpc = cloud.add_vpc("shared-vpc", REGION, GROUP);
    cloud.add_rule(&vpc, 80);
    cloud.add_rule(&vpc, 443);
    let workspace = cloud.add_workspace("shared-pvs", REGION, GROUP);
    cloud.add_gateway("shared-tg", true);
    if has_networks {
        cloud.add_subnet("shared-subnet", &vpc, REGION);
        cloud.add_dhcp_server(&workspace, None);
    }
    CreateRequest {
        reused: Reused {
            workspace: Some(workspace),
            vpc: Some("shared-vpc".to_owned()),
            gateway: Some("shared-tg".to_owned()),
        },
        ..request()
    }
}

#[tokio::test]
async fn what_is_reused_is_kept() {
    for has_networks in [false, true] {
        let fake = account();
        let request = shared(&mut fake.state().cloud, has_networks);
        let before = fake.snapshot();
        let cluster = Cluster::new("a-x1", "a");
        let (output, result) = cluster.attempt(&fake, &request).await;
        result.unwrap();
        assert_eq!(output.vpc_name, "shared-vpc");
        let (subnet, network) = if has_networks {
            ("shared-subnet", "DHCPSERVER_Private")
        } else {
            ("a-x1-vpc-sn", "DHCPSERVERa-x1_Private")
        };
        assert_eq!(output.vpc_subnet_name, subnet);
        assert_eq!(output.dhcp_subnet, network);
        {
            let state = fake.state();
            for (kind, name) in [
                (Kind::Vpc, "shared-vpc"),
                (Kind::Instance, "shared-pvs"),
                (Kind::Gateway, "shared-tg"),
            ] {
                let found = state.cloud.named(kind, name).unwrap();
                let crn = found["crn"].as_str().unwrap();
                assert_eq!(state.cloud.tags(crn), [""; 0], "{name}");
            }
            assert_eq!(state.cloud.all(Kind::Connection).count(), 2);
        }
        // The gateway is found by the connections.
        let reused = Reused {
            gateway: None,
            ..request.reused
        };
        let executor = cluster.executor(&fake);
        executor.destroy(&reused).await.unwrap();
        assert_eq!(fake.snapshot(), before, "{has_networks}");
    }
}

/// Another cluster's load balancer on the same subnet, a record of another cluster of the same name, and a service ID that is
/// not only for the image registry.
#[tokio::test]
async fn what_others_have_beside_it_stays() {
    let fake = account();
    let request = shared(&mut fake.state().cloud, true);
    let cluster = Cluster::new("a-x1", "a");
    let (_, result) = cluster.attempt(&fake, &request).await;
    result.unwrap();
    let service_id = {
        let cloud = &mut fake.state().cloud;
        let subnet = cloud.named(Kind::Subnet, "shared-subnet").unwrap();
        let subnet = subnet["id"].as_str().unwrap().to_owned();
        let uid = "0123456789abcdef0123456789abcdef";
        cloud.add_load_balancer(&format!("kube-a-{uid}"), &subnet, REGION);
        cloud.add_load_balancer(&format!("kube-a-b-{uid}"), &subnet, REGION);
        cloud.add_record("*.apps.a.example.com", "9-eu-de.lb.appdomain.cloud");
        let registry = cloud.add_object_storage("a-x1-image-registry", GROUP);
        let service_id = cloud.add_resource_key(&registry, "key");
        let other = json!({ "name": "other", "iam_id": format!("iam-{service_id}") });
        cloud.add(Kind::ApiKey, other);
        cloud.add_bucket(&registry, "a-x1-image-registry-us-south-1", REGION, &["k"]);
        let others = cloud.add_object_storage("a-x1-image-registry-2", GROUP);
        cloud.add_bucket(&others, "others", REGION, &["k"]);
        service_id
    };
    let executor = cluster.executor(&fake);
    executor.destroy(&request.reused).await.unwrap();
    let state = fake.state();
    let names = |kind: Kind| -> Vec<String> {
        let all = state.cloud.all(kind);
        all.map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(Kind::LoadBalancer),
        ["kube-a-b-0123456789abcdef0123456789abcdef"]
    );
    assert_eq!(names(Kind::Record), ["*.apps.a.example.com"]);
    assert_eq!(names(Kind::Bucket), ["others"]);
    assert_eq!(names(Kind::Subnet), ["shared-subnet"]);
    assert_eq!(state.cloud.all(Kind::DhcpServer).count(), 1);
    let mut service_ids = state.cloud.all(Kind::ServiceId);
    assert!(service_ids.all(|it| it["id"] == service_id));
    assert_eq!(names(Kind::ServiceId).len(), 1);
}
