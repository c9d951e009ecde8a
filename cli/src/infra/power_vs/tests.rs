//! What is created and destroyed, call by call, and what is left when a command is killed at any of them.

mod faults;
mod refused;
mod reused;

use std::cell::RefCell;
use std::sync::LazyLock;

use fake_clouds::Fake;
use fake_clouds::ibm_cloud::{ACCOUNT, IbmCloud, Kind};
use serde_json::{Value, json};
use support::ibm_cloud::{ApiKey, Endpoints};

use super::api::Api;
use super::create::{CreateRequest, Keys};
use super::executor::Executor;
use super::policies::Credentials;
use super::scope::tests::scope;
use super::*;
use crate::install::display::Display;

const GROUP: &str = "group-0001";
const REGION: &str = "us-south";

/// A cluster, and the calls that are made for it.
struct Cluster {
    scope: Scope,
    api: Api,
    key: ApiKey,
}

/// An account that has nothing but a resource group and the zone of the base domain.
fn account() -> Fake<IbmCloud> {
    Fake::new(IbmCloud::with_zone("group", "example.com"))
}

fn request() -> CreateRequest {
    CreateRequest {
        namespace: "clusters".to_owned(),
        reused: Reused::default(),
        gateway_location: REGION.to_owned(),
        global_routing: false,
        keys: Keys::Keep,
    }
}

// === impl Cluster ===

impl Cluster {
    fn new(infra_id: &str, name: &str) -> Self {
        Self::of(scope(infra_id, name))
    }

    fn of(scope: Scope) -> Self {
        Self {
            api: Api::new(&Endpoints::default(), &scope),
            key: ApiKey::new("key-of-the-user").unwrap(),
            scope,
        }
    }

    fn executor<'a>(&'a self, fake: &'a Fake<IbmCloud>) -> Executor<'a, Fake<IbmCloud>> {
        static QUIET: LazyLock<Display> = LazyLock::new(|| Display::new(true));
        Executor {
            calls: fake,
            scope: &self.scope,
            api: &self.api,
            key: &self.key,
            display: &QUIET,
        }
    }

    /// Creates all, and returns what is written, with the error if it failed.
    async fn attempt(
        &self,
        fake: &Fake<IbmCloud>,
        request: &CreateRequest,
    ) -> (Output, anyhow::Result<()>) {
        let mut output = Output::new(&self.scope);
        let executor = self.executor(fake);
        let record = |_: &Output| anyhow::Ok(());
        let result = executor.create(request, &mut output, &record).await;
        (output, result)
    }

    /// Creates all as a command with an output file does. What is in the file is there after a kill, too.
    async fn attempt_with_file(
        &self,
        fake: &Fake<IbmCloud>,
        keys: Keys,
        file: &RefCell<Option<Output>>,
    ) -> anyhow::Result<()> {
        let mut output = file
            .borrow()
            .clone()
            .unwrap_or_else(|| Output::new(&self.scope));
        let record = |output: &Output| {
            *file.borrow_mut() = Some(output.clone());
            anyhow::Ok(())
        };
        let request = CreateRequest { keys, ..request() };
        let executor = self.executor(fake);
        executor.create(&request, &mut output, &record).await
    }

    async fn create(&self, fake: &Fake<IbmCloud>) -> Output {
        let (output, result) = self.attempt(fake, &request()).await;
        result.unwrap();
        output
    }

    async fn destroy(&self, fake: &Fake<IbmCloud>) -> anyhow::Result<()> {
        self.executor(fake).destroy(&Reused::default()).await
    }

    /// What the cluster and its controllers leave: a record, a load balancer, and the storage of the image registry.
    fn leave(&self, fake: &Fake<IbmCloud>) {
        let cloud = &mut fake.state().cloud;
        let subnet = cloud.named(Kind::Subnet, &self.scope.subnet()).unwrap();
        let subnet = subnet["id"].as_str().unwrap().to_owned();
        let uid = "0123456789abcdef0123456789abcdef";
        let balancer = format!("kube-{}-{uid}", self.scope.name);
        let host = cloud.add_load_balancer(&balancer, &subnet, REGION);
        cloud.add_record(&self.scope.record(), &host);
        let registry = self.scope.registry();
        let instance = cloud.add_object_storage(&registry, GROUP);
        cloud.add_resource_key(&instance, "registry-key");
        let bucket = format!("{registry}-us-south-1");
        cloud.add_bucket(&instance, &bucket, REGION, &["docker/a b", "docker/c"]);
    }
}

/// Fails unless the Secrets have exactly the API keys that exist.
fn assert_secrets_are_valid(fake: &Fake<IbmCloud>, output: &Output, when: &str) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let state = fake.state();
    let keys = state.cloud.all(Kind::ApiKey);
    let mut keys: Vec<_> = keys
        .map(|key| format!("secret-of-{}", text(&key["id"])))
        .collect();
    let secrets = output.secrets.values();
    let mut found: Vec<_> = secrets
        .map(|secret| text(&secret["stringData"]["ibmcloud_api_key"]))
        .collect();
    keys.sort();
    found.sort();
    assert_eq!(found, keys, "{when}");
    assert_eq!(found.len(), Credentials::ALL.len(), "{when}");
    assert!(output.pending_keys.is_empty(), "{when}");
}

/// The calls that write, with their documents.
fn writes(fake: &Fake<IbmCloud>) -> Vec<(String, Value)> {
    let calls = fake.state();
    let calls = calls.calls.iter();
    let writes = calls.filter(|call| call.method != http::Method::GET);
    let line = |call: &support::rest::Request| {
        let (host, path) = (call.host(), call.path());
        (format!("{} {host}{path}", call.method), call.body.clone())
    };
    writes.map(line).collect()
}

/// The table is made of the steps that the fact book lists for `create infra powervs`.
#[tokio::test]
async fn infrastructure_is_created_by_these_calls() {
    let fake = account();
    let output = Cluster::new("a-x1", "a").create(&fake).await;
    let vpc = "POST us-south.iaas.cloud.ibm.com/v1";
    let tags = "POST tags.global-search-tagging.cloud.ibm.com/v3/tags/attach";
    let transit = "POST transit.cloud.ibm.com/v1/transit_gateways";
    let power = "POST us-south.power-iaas.cloud.ibm.com/pcloud/v1/cloud-instances";
    let tagged = |crn: &str, name: &str| {
        let names = ["kubernetes.io-cluster-a-x1:owned", name];
        json!({ "resources": [{ "resource_id": crn }], "tag_names": names })
    };
    let rule = |port: u16| {
        json!({
            "direction": "inbound", "ip_version": "ipv4", "protocol": "tcp",
            "port_min": port, "port_max": port,
        })
    };
    let subnet = |zone: &str, cidr: &str| {
        json!({
            "name": "a-x1-vpc-sn", "vpc": { "id": "vpc-0004" }, "resource_group": { "id": GROUP },
            "zone": { "name": zone }, "ip_version": "ipv4", "ipv4_cidr_block": cidr,
        })
    };
    let connection = |name: &str, kind: &str, crn: &str| json!({ "name": name, "network_type": kind, "network_id": crn });
    let vpc_crn = format!("crn:v1:bluemix:public:is:us-south:a/{ACCOUNT}::vpc:vpc-0004");
    let workspace =
        format!("crn:v1:bluemix:public:power-iaas:us-south:a/{ACCOUNT}:instance-0011::");
    let gateway =
        format!("crn:v1:bluemix:public:transit:us-south:a/{ACCOUNT}::gateway:gateway-0012");
    let mut expected = vec![
        (
            format!("{vpc}/vpcs"),
            json!({
                "name": "a-x1-vpc", "resource_group": { "id": GROUP },
                "address_prefix_management": "auto",
            }),
        ),
        (tags.to_owned(), tagged(&vpc_crn, "Name:a-x1-vpc")),
        (
            format!("{vpc}/security_groups/sg-of-vpc-0004/rules"),
            rule(80),
        ),
        (
            format!("{vpc}/security_groups/sg-of-vpc-0004/rules"),
            rule(443),
        ),
        // The first zone has no room.
        (
            format!("{vpc}/subnets"),
            subnet("us-south-1", "10.240.0.0/18"),
        ),
        (
            format!("{vpc}/subnets"),
            subnet("us-south-2", "10.240.64.0/18"),
        ),
        (
            "POST resource-controller.cloud.ibm.com/v2/resource_instances".to_owned(),
            json!({
                "name": "a-x1-pvs", "target": "us-south", "resource_group": GROUP,
                "resource_plan_id": "f165dd34-3a40-423b-9d95-e90a23f724dd",
            }),
        ),
        (tags.to_owned(), tagged(&workspace, "Name:a-x1-pvs")),
        (
            transit.to_owned(),
            json!({
                "name": "a-x1-tg", "location": "us-south", "global": false,
                "resource_group": { "id": GROUP },
            }),
        ),
        (tags.to_owned(), tagged(&gateway, "Name:a-x1-tg")),
        (
            format!("{transit}/gateway-0012/connections"),
            connection("a-x1-tg-vpc-con", "vpc", &vpc_crn),
        ),
        (
            format!("{transit}/gateway-0012/connections"),
            connection("a-x1-tg-pvs-con", "power_virtual_server", &workspace),
        ),
        (
            format!("{power}/instance-0011/services/dhcp"),
            json!({ "name": "a-x1", "dnsServer": "1.1.1.1" }),
        ),
    ];
    let mut found = writes(&fake);
    let credentials = found.split_off(expected.len());
    assert_eq!(found, expected);
    // Policies have a table of their own.
    let iam = "POST iam.cloud.ibm.com/v1";
    expected.clear();
    for (name, policies) in [
        ("cloud-controller-creds", 3),
        ("node-management-creds", 1),
        ("ingress-creds", 1),
        ("storage-creds", 2),
        ("image-registry-creds", 2),
    ] {
        expected.push((format!("{iam}/serviceids"), json!(format!("a-x1-{name}"))));
        for _ in 0..policies {
            expected.push((format!("{iam}/policies"), Value::Null));
        }
        expected.push((format!("{iam}/apikeys"), json!(format!("a-x1-{name}"))));
    }
    let credentials = credentials.into_iter();
    let names = credentials.map(|(line, body)| (line, body["name"].clone()));
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert_eq!(output.account_id, ACCOUNT);
    assert_eq!(output.cloud_instance_id, "instance-0011");
    assert_eq!(output.dhcp_subnet, "DHCPSERVERa-x1_Private");
    assert_eq!(output.vpc_subnet_name, "a-x1-vpc-sn");
    assert_eq!(output.stats.transit_gateway_state.status, "available");
    assert_eq!(output.secrets.len(), 5);
    let secret = output.secret(Credentials::Ingress).unwrap();
    assert_eq!(secret["metadata"]["name"], "a-ingress-creds");
    let key = secret["stringData"]["ibmcloud_api_key"].as_str().unwrap();
    assert!(key.starts_with("secret-of-ApiKey"), "{key}");
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_destruction_leaves_nothing() {
    let fake = account();
    let before = fake.snapshot();
    let cluster = Cluster::new("a-x1", "a");
    let mut output = cluster.create(&fake).await;
    let snapshot = fake.snapshot();
    fake.set_fault(None);
    // With the Secrets of the first run.
    let executor = cluster.executor(&fake);
    let record = |_: &Output| anyhow::Ok(());
    let again = executor.create(&request(), &mut output, &record).await;
    again.unwrap();
    assert_eq!(fake.writes(), [""; 0]);
    assert_eq!(fake.snapshot(), snapshot);
    cluster.leave(&fake);
    cluster.destroy(&fake).await.unwrap();
    assert_eq!(fake.snapshot(), before);
}

#[tokio::test]
async fn api_keys_are_only_replaced_if_that_is_asked_for() {
    let fake = account();
    let cluster = Cluster::new("a-x1", "a");
    let first = cluster.create(&fake).await;
    let snapshot = fake.snapshot();
    fake.set_fault(None);
    let (_, result) = cluster.attempt(&fake, &request()).await;
    let error = result.unwrap_err().to_string();
    assert!(error.contains("--recreate-secrets"), "{error}");
    assert_eq!(fake.writes(), [""; 0]);
    let recreate = CreateRequest {
        keys: Keys::ReplaceAll,
        ..request()
    };
    let (second, result) = cluster.attempt(&fake, &recreate).await;
    result.unwrap();
    assert_eq!(fake.snapshot(), snapshot);
    let writes = writes(&fake);
    assert!(writes.iter().all(|(line, _)| line.contains("/v1/apikeys")));
    assert_eq!(writes.len(), 10);
    for credentials in Credentials::ALL {
        let [old, new] = [&first, &second].map(|output| output.secret(credentials).unwrap());
        assert_ne!(old["stringData"], new["stringData"]);
        assert_eq!(old["metadata"], new["metadata"]);
    }
}

#[tokio::test]
async fn clusters_of_an_account_do_not_touch_each_other() {
    let only_b = account();
    let [a, b] = [Cluster::new("a-x1", "a"), Cluster::new("a-x12", "a-b")];
    b.create(&only_b).await;
    let fake = account();
    a.create(&fake).await;
    b.create(&fake).await;
    a.destroy(&fake).await.unwrap();
    assert_eq!(fake.snapshot(), only_b.snapshot());
}

#[tokio::test]
async fn a_far_vpc_has_a_global_gateway() {
    let fake = account();
    let mut scope = scope("a-x1", "a");
    scope.place.vpc_region = "us-east".to_owned();
    Cluster::of(scope).create(&fake).await;
    let state = fake.state();
    let gateway = state.cloud.named(Kind::Gateway, "a-x1-tg").unwrap();
    assert_eq!(gateway["global"], true);
}

/// Also of a DHCP server that is there already.
#[tokio::test]
async fn timeouts_of_the_dhcp_service_are_waited_out() {
    let fake = account();
    fake.state().cloud.timeouts = 4;
    let output = Cluster::new("a-x1", "a").create(&fake).await;
    assert_eq!(output.stats.dhcp_service.status, "ACTIVE");
    assert_eq!(fake.state().cloud.timeouts, 0);
}

#[tokio::test]
async fn a_failed_connection_is_reported_with_what_is_there() {
    let fake = account();
    fake.state().cloud.failures = 1;
    let (output, result) = Cluster::new("a-x1", "a").attempt(&fake, &request()).await;
    let error = result.unwrap_err().to_string();
    let expected = "connection a-x1-tg-vpc-con is in state failed: delete it";
    assert!(error.contains(expected), "{error}");
    assert_eq!(output.vpc_name, "a-x1-vpc");
    assert_eq!(output.cloud_instance_id, "instance-0011");
    assert_eq!(output.dhcp_subnet_id, "");
}
